/* cudnn_unary.c: activations and their gradients by cuDNN. */
#include "cudnn_plan.h"
#include "gpu/families.h"
#include "gpu/vendor_ops.h"
#include "ops/unary.h"

/* An op in cuDNN's terms. */
typedef struct {
    cudnnActivationMode_t mode;
    bool given; /* its number is the op's own */
    double number;
} activation;

typedef struct {
    activation a;
    wk_vendor_unary u;
    wk_tensor *y; /* of the gradient, the forward's result, worked out again */
} work;

static const char *refuse(const wk_call *c)
{
    const char *why = wk_cudnn_refuse(c, WK_FLOATS);
    if (why)
        return why;
    return c->in[1] && wk_bytes(c->dtype) == 2 ? "cuDNN works gradients out from the rounded y" : NULL;
}

static void destroy(wk_cudnn_plan *p) { wk_cudnn.cudnnDestroyActivationDescriptor(p->op); }

static void set_up(cudnnHandle_t h, wk_cudnn_plan *p, const void *data)
{
    const work *w = data;
    cudnnActivationDescriptor_t op = NULL;
    (void)h;
    wk_cudnn_packed(p, 0, w->u.x->dtype, 4, (int64_t[]){1, 1, 1, wk_count(w->u.x)});
    if (!wk_cudnn_ok(p, wk_cudnn.cudnnCreateActivationDescriptor(&op), "the activation"))
        return;
    p->op = op;
    p->destroy = destroy;
    wk_cudnn_ok(p, wk_cudnn.cudnnSetActivationDescriptor(op, w->a.mode, CUDNN_PROPAGATE_NAN, w->a.number),
                "the activation");
}

static cudnnStatus_t queue(cudnnHandle_t h, const wk_cudnn_plan *p, void *workspace, const void *data)
{
    const work *w = data;
    cudnnTensorDescriptor_t t = p->tensor[0];
    const void *one = wk_cudnn_factor(w->u.x->dtype, true), *zero = wk_cudnn_factor(w->u.x->dtype, false);
    (void)workspace;
    cudnnStatus_t status =
        wk_cudnn.cudnnActivationForward(h, p->op, one, t, wk_ptr(w->u.x), zero, t, wk_ptr(w->y));
    if (!w->u.dy || status != CUDNN_STATUS_SUCCESS)
        return status;
    return wk_cudnn.cudnnActivationBackward(h, p->op, one, t, wk_ptr(w->y), t, wk_ptr(w->u.dy), t,
                                            wk_ptr(w->u.x), zero, t, wk_ptr(w->u.out));
}

static wk_status run(wk_call *c)
{
    work w = {.a = *(const activation *)c->impl->data};
    double numbers[3];
    int64_t whole[3];
    if (w.a.given) {
        wk_unary_numbers(c, numbers, whole);
        w.a.number = numbers[0];
    }
    WK_TRY(wk_vendor_unary_of(c, &w.u));
    w.y = c->in[1] ? wk_tensor_new(c->device, c->dtype, c->in[0]->rank, c->in[0]->shape) : c->out[0];
    if (!w.y)
        return wk_error_status();
    wk_cudnn_call d = {.call = c, .set_up = set_up, .run = queue, .data = &w};
    wk_key_add(&d.key, w.a.mode);
    wk_key_add(&d.key, wk_count(w.u.x));
    wk_key_real(&d.key, w.a.number);
    return wk_cudnn_run(&d);
}

static const activation a_sigmoid = {.mode = CUDNN_ACTIVATION_SIGMOID},
                        a_tanh = {.mode = CUDNN_ACTIVATION_TANH}, a_relu = {.mode = CUDNN_ACTIVATION_RELU},
                        a_relu6 = {.mode = CUDNN_ACTIVATION_CLIPPED_RELU, .number = 6},
                        a_elu = {.mode = CUDNN_ACTIVATION_ELU, .given = true};

#define ROWS(name) \
    {#name, "cudnn", run, refuse, &a_##name}, {#name "_backward", "cudnn", run, refuse, &a_##name},

const wk_impl wk_cuda_impls_unary[] = {
    /* clang-format off */
    ROWS(sigmoid) ROWS(relu) ROWS(relu6) ROWS(elu)
    {"tanh", "cudnn", run, refuse, &a_tanh}, /* its gradient, 1 - y^2, loses too many bits */
    /* clang-format on */
    {0},
};
