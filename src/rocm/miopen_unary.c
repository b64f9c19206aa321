/* miopen_unary.c: activations and their gradients by MIOpen. Where its result differs from wick's at a few points, or by
 * a factor, an expression mends it. */
#include <math.h>
#include <stdio.h>
#include "dnn.h"
#include "gpu/families.h"
#include "gpu/vendor_ops.h"
#include "ops/unary.h"
#include "wick/expr.h"

/* An op in MIOpen's terms. Where `given` its three numbers are the op's own, else these. `clips`: it is clamp, whose
 * numbers are 0 and the end at which MIOpen clips. */
typedef struct {
    miopenActivationMode_t mode;
    bool given, clips;
    double alpha, beta, gamma;
    const char *mend;              /* of x, dy and MIOpen's result y; NULL: that is wick's too */
    const char *wrong, *wrong_f16; /* why not even that helps, in any dtype and in f16; NULL: it does */
} activation;

typedef struct {
    activation a;
    wk_vendor_unary u;
    wk_tensor *y; /* of the gradient, the forward's result, worked out again */
} work;

/* clamp's ends. */
static void ends_of(const wk_call *c, double *low, double *high)
{
    double numbers[3];
    int64_t whole[3];
    wk_unary_numbers(c, numbers, whole);
    *low = numbers[0];
    *high = numbers[1];
}

static const char *refuse_kind(const wk_call *c, const activation *a)
{
    double low, high;
    const char *why = wk_dnn_refuse(c, WK_SET(WK_F32) | WK_SET(WK_F16));
    if (a->wrong || (c->dtype == WK_F16 && a->wrong_f16))
        return a->wrong ? a->wrong : a->wrong_f16;
    if (!why && a->clips) {
        ends_of(c, &low, &high);
        if (low != 0)
            return "MIOpen clamps at 0 below (clipped relu), and nowhere else";
    }
    return why;
}

static miopenStatus_t destroy(wk_dnn_plan *p) { return wk_miopen.miopenDestroyActivationDescriptor(p->op); }

static miopenStatus_t set_up(miopenHandle_t h, wk_dnn_plan *p, const void *data)
{
    const work *w = data;
    miopenActivationDescriptor_t op;
    (void)h;
    WK_DNN_TRY(wk_dnn_tensor(p, 0, w->u.x->dtype, 4, (int64_t[]){1, 1, 1, wk_count(w->u.x)}));
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
    WK_DNN_TRY(wk_miopen.miopenActivationForward(h, p->op, &wk_dnn_one, t, wk_ptr(w->u.x), &wk_dnn_zero, t,
                                                 wk_ptr(w->y)));
    if (!w->u.dy)
        return miopenStatusSuccess;
    return wk_miopen.miopenActivationBackward(h, p->op, &wk_dnn_one, t, wk_ptr(w->y), t, wk_ptr(w->u.dy), t,
                                              wk_ptr(w->u.x), &wk_dnn_zero, t, wk_ptr(w->u.out));
}

static wk_status mend(const work *w, const char *text)
{
    const wk_tensor *inputs[3];
    wk_expr *e = wk_expr_compile(text);
    int n = e ? wk_expr_inputs(e) : 0;
    for (int i = 0; i < n; i++) {
        const char *name = wk_expr_input(e, i);
        inputs[i] = strcmp(name, "x") == 0 ? w->u.x : strcmp(name, "dy") == 0 ? w->u.dy : w->u.out;
    }
    wk_status status = e ? wk_expr_run_into(w->u.out, e, inputs, n) : wk_error_status();
    wk_expr_drop(e);
    return status;
}

/* Of clamp's gradient the end is a number of the call. */
static wk_status mend_clamp(const work *w)
{
    char text[80];
    if (isinf(w->a.alpha))
        return WK_OK;
    snprintf(text, sizeof text, "where(x < %.17g, y, 0)", w->a.alpha);
    return mend(w, text);
}

static wk_status run(wk_call *c)
{
    work w = {.a = *(const activation *)c->impl->data};
    double numbers[3];
    int64_t whole[3];
    if (w.a.given) {
        wk_unary_numbers(c, numbers, whole);
        w.a.alpha = numbers[0];
        w.a.beta = numbers[1];
        w.a.gamma = numbers[2];
    }
    if (w.a.clips)
        ends_of(c, &w.a.beta, &w.a.alpha);
    WK_TRY(wk_vendor_unary_of(c, &w.u));
    w.y = c->in[1] ? wk_tensor_new(c->device, c->dtype, c->in[0]->rank, c->in[0]->shape) : c->out[0];
    if (!w.y)
        return wk_error_status();
    wk_dnn_call d = {.call = c, .set_up = set_up, .run = queue, .data = &w};
    wk_key_add(&d.key, w.a.mode);
    wk_key_add(&d.key, wk_count(w.u.x));
    wk_key_real(&d.key, w.a.alpha);
    wk_key_real(&d.key, w.a.beta);
    wk_key_real(&d.key, w.a.gamma);
    WK_TRY(wk_dnn_run(&d));
    if (w.a.clips && w.u.dy)
        return mend_clamp(&w);
    return w.a.mend ? mend(&w, w.a.mend) : WK_OK;
}

/* ---- the list ---- */

typedef struct {
    activation forward, backward;
} pair;

#define FROM_Y "MIOpen works this gradient out from the rounded y"
#define BOTH(...) .forward = {__VA_ARGS__}, .backward = {__VA_ARGS__}

#define KEEP_NAN "where(x != x, x, y)"

/* relu by elu of -0: by relu MIOpen makes NaN of -inf, by elu +0. */
static const pair a_sigmoid = {BOTH(.mode = miopenActivationLOGISTIC), .backward.wrong_f16 = FROM_Y},
                  a_tanh = {BOTH(.mode = miopenActivationTANH, .alpha = 1, .beta = 1),
                            .backward.wrong = FROM_Y},
                  a_relu = {.forward = {.mode = miopenActivationELU, .alpha = -0.0},
                            .backward = {.mode = miopenActivationRELU}},
                  a_softplus = {BOTH(.mode = miopenActivationSOFTRELU), .backward.mend = KEEP_NAN,
                                .backward.wrong_f16 =
                                    "MIOpen's gradient of softplus divides inf by inf from 12 on"},
                  a_abs = {BOTH(.mode = miopenActivationABS),
                           .backward.mend = "where(x > 0, y, where(x < 0, y, 0 * dy))"},
                  a_relu6 = {BOTH(.mode = miopenActivationCLIPPEDRELU, .alpha = 6), .forward.mend = KEEP_NAN,
                             .backward.mend = "where(x < 6, y, 0)"},
                  a_clamp = {BOTH(.mode = miopenActivationCLIPPEDRELU, .clips = true),
                             .forward.mend = KEEP_NAN},
                  a_leaky_relu = {BOTH(.mode = miopenActivationLEAKYRELU, .given = true)},
                  a_elu = {BOTH(.mode = miopenActivationELU, .given = true),
                           .forward.wrong_f16 = "MIOpen's elu takes 1 from a rounded exp"};

#define ROWS(name) \
    {#name, "miopen", run, refuse_##name, &a_##name.forward}, \
        {#name "_backward", "miopen", run, refuse_##name, &a_##name.backward},
#define REFUSE(name) \
    static const char *refuse_##name(const wk_call *c) \
    { \
        return refuse_kind(c, c->in[1] ? &a_##name.backward : &a_##name.forward); \
    }
/* clang-format off */
#define ALL(X) X(sigmoid) X(tanh) X(relu) X(softplus) X(abs) X(relu6) X(clamp) X(leaky_relu) X(elu)
ALL(REFUSE)

const wk_impl wk_rocm_impls_unary[] = {
    ALL(ROWS)
    {0},
};
/* clang-format on */
