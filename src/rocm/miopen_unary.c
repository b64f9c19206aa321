/* miopen_unary.c: activations and their gradients by MIOpen. */
#include "dnn.h"
#include "gpu/families.h"
#include "ops/unary.h"

/* An op in MIOpen's terms. Where `given` its three numbers are the op's own, else these. */
typedef struct {
    miopenActivationMode_t mode;
    bool given;
    double alpha, beta, gamma;
    const char *wrong,
        *wrong_f16; /* why its results are not wick's, in any dtype and in f16; NULL: they are */
} activation;

typedef struct {
    activation a;
    const wk_tensor *x, *dy;
    wk_tensor *y, *out; /* of the gradient, y is the forward's result, worked out again */
} work;

static const char *refuse_kind(const wk_call *c, const activation *a)
{
    if (a->wrong || (c->dtype == WK_F16 && a->wrong_f16))
        return a->wrong ? a->wrong : a->wrong_f16;
    return wk_dnn_refuse(c, WK_DNN_REALS);
}

static miopenStatus_t destroy(wk_dnn_plan *p) { return wk_miopen.miopenDestroyActivationDescriptor(p->op); }

static miopenStatus_t set_up(miopenHandle_t h, wk_dnn_plan *p, const void *data)
{
    const work *w = data;
    miopenActivationDescriptor_t op;
    (void)h;
    WK_DNN_TRY(wk_dnn_tensor(p, 0, w->x->dtype, 4, (int64_t[]){1, 1, 1, wk_count(w->x)}));
    WK_DNN_TRY(wk_miopen.miopenCreateActivationDescriptor(&op));
    p->op = op;
    p->destroy = destroy;
    return wk_miopen.miopenSetActivationDescriptor(op, w->a.mode, w->a.alpha, w->a.beta, w->a.gamma);
}

static miopenStatus_t queue(miopenHandle_t h, const wk_dnn_plan *p, void *workspace, const void *data)
{
    const work *w = data;
    miopenTensorDescriptor_t t = p->tensor[0];
    (void)workspace;
    WK_DNN_TRY(wk_miopen.miopenActivationForward(h, p->op, &wk_dnn_one, t, wk_ptr(w->x), &wk_dnn_zero, t,
                                                 wk_ptr(w->y)));
    if (!w->dy)
        return miopenStatusSuccess;
    return wk_miopen.miopenActivationBackward(h, p->op, &wk_dnn_one, t, wk_ptr(w->y), t, wk_ptr(w->dy), t,
                                              wk_ptr(w->x), &wk_dnn_zero, t, wk_ptr(w->out));
}

static wk_status run(wk_call *c)
{
    work w = {.a = *(const activation *)c->impl->data, .out = c->out[0]};
    double numbers[3];
    int64_t whole[3];
    if (w.a.given) {
        wk_unary_numbers(c, numbers, whole);
        w.a.alpha = numbers[0];
        w.a.beta = numbers[1];
        w.a.gamma = numbers[2];
    }
    w.x = wk_tensor_packed(c->in[0]);
    w.dy = w.x && c->in[1] ? wk_tensor_packed(c->in[1]) : NULL;
    w.y = c->in[1] ? wk_tensor_new(c->device, c->dtype, c->in[0]->rank, c->in[0]->shape) : c->out[0];
    if (wk_pending())
        return wk_error_status();
    wk_dnn_call d = {.call = c, .set_up = set_up, .run = queue, .data = &w};
    wk_key_add(&d.key, w.a.mode);
    wk_key_add(&d.key, wk_count(w.x));
    wk_key_real(&d.key, w.a.alpha);
    wk_key_real(&d.key, w.a.beta);
    wk_key_real(&d.key, w.a.gamma);
    return wk_dnn_run(&d);
}

/* ---- the list ---- */

typedef struct {
    activation forward, backward;
} pair;

#define FROM_Y "MIOpen works this gradient out from the rounded y"
#define BOTH(...) .forward = {__VA_ARGS__}, .backward = {__VA_ARGS__}

static const pair a_sigmoid = {BOTH(.mode = miopenActivationLOGISTIC), .backward.wrong_f16 = FROM_Y},
                  a_tanh = {BOTH(.mode = miopenActivationTANH, .alpha = 1, .beta = 1),
                            .backward.wrong = FROM_Y},
                  a_relu = {BOTH(.mode = miopenActivationRELU),
                            .forward.wrong = "MIOpen's relu makes NaN of -inf"},
                  a_softplus = {BOTH(.mode = miopenActivationSOFTRELU),
                                .backward.wrong = "MIOpen's gradient of softplus loses NaN"},
                  a_abs = {BOTH(.mode = miopenActivationABS),
                           .backward.wrong = "MIOpen's gradient of abs is not 0 at 0"},
                  a_relu6 = {BOTH(.mode = miopenActivationCLIPPEDRELU, .alpha = 6),
                             .forward.wrong = "MIOpen's clipped relu makes 0 of NaN",
                             .backward.wrong_f16 = "MIOpen's gradient of relu6 is not 0 at 6"},
                  a_leaky_relu = {BOTH(.mode = miopenActivationLEAKYRELU, .given = true)},
                  a_elu = {BOTH(.mode = miopenActivationELU, .given = true),
                           .forward.wrong_f16 = "MIOpen's elu takes 1 from a rounded exp"},
                  a_power = {BOTH(.mode = miopenActivationPOWER, .given = true),
                             .backward.wrong = "MIOpen's gradient of power leaves dy out"};

#define ROWS(name) \
    {#name, "miopen", run, refuse_##name, &a_##name.forward}, \
        {#name "_backward", "miopen", run, refuse_##name, &a_##name.backward},
#define REFUSE(name) \
    static const char *refuse_##name(const wk_call *c) \
    { \
        return refuse_kind(c, c->in[1] ? &a_##name.backward : &a_##name.forward); \
    }
/* clang-format off */
#define ALL(X) X(sigmoid) X(tanh) X(relu) X(softplus) X(abs) X(relu6) X(leaky_relu) X(elu) X(power)
ALL(REFUSE)

const wk_impl wk_rocm_impls_unary[] = {
    ALL(ROWS)
    {0},
};
/* clang-format on */
