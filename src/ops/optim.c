/* optim.c: front ends of the optimizer steps. */
#include <stdio.h>
#include "optim.h"
#include "core/families.h"
#include "core/memory.h"
#include "wick/optim.h"

/* ---- checks and outputs ---- */

static wk_status check_rate(const wk_call *c, const char *name, double v)
{
    WK_NEED(v >= 0 && isfinite(v), c, WK_ERR_PARAM, name, "expected a number of 0 or more, got %g", v);
    return WK_OK;
}

static wk_status check_sgd(const wk_call *c)
{
    const wk_sgd_params *p = c->params;
    WK_TRY(check_rate(c, "lr", p->lr));
    WK_TRY(check_rate(c, "momentum", p->momentum));
    return check_rate(c, "weight_decay", p->weight_decay);
}

static wk_status infer_sgd(wk_call *c)
{
    WK_TRY(check_sgd(c));
    WK_TRY(wk_call_same_shape(c, 1, 0));
    if (c->in[2])
        WK_TRY(wk_call_same_shape(c, 2, 0));
    wk_call_out_like(c, 0, c->in[0]);
    wk_call_out_like(c, 1, c->in[2] ? c->in[2] : c->in[0]);
    return WK_OK;
}

static wk_status check_adamw(const wk_call *c)
{
    const wk_adamw_options *p = c->params;
    WK_TRY(check_rate(c, "lr", p->lr));
    WK_NEED(p->beta1 >= 0 && p->beta1 < 1, c, WK_ERR_PARAM, "beta1",
            "expected a number from 0 up to 1, got %g", p->beta1);
    WK_NEED(p->beta2 >= 0 && p->beta2 < 1, c, WK_ERR_PARAM, "beta2",
            "expected a number from 0 up to 1, got %g", p->beta2);
    WK_TRY(check_rate(c, "eps", p->eps));
    WK_TRY(check_rate(c, "weight_decay", p->weight_decay));
    WK_NEED(p->step >= 1, c, WK_ERR_PARAM, "step", "expected 1 or more, got %lld", (long long)p->step);
    return WK_OK;
}

static wk_status infer_adamw(wk_call *c)
{
    WK_TRY(check_adamw(c));
    WK_TRY(wk_call_same_shape(c, 1, 0));
    WK_TRY(wk_call_same_shape(c, 2, 0));
    WK_TRY(wk_call_same_shape(c, 3, 0));
    wk_call_out_like(c, 0, c->in[0]);
    wk_call_out_like(c, 1, c->in[2]);
    wk_call_out_like(c, 2, c->in[3]);
    return WK_OK;
}

/* ---- lists ---- */

enum { OP_sgd_step, OP_adamw_step, OP_sgd_step_list, OP_adamw_step_list };

int wk_step_tensors(const wk_op *op, const void *params)
{
    if (op == &wk_ops_optim[OP_adamw_step_list])
        return 4;
    return ((const wk_sgd_params *)params)->momentum != 0 ? 3 : 2;
}

/* param0, grad0, momentum0, param1, ... */
static const char *sgd_name(const void *params, int i, char *buf, size_t room)
{
    static const char *const names[] = {"param", "grad", "momentum"};
    int each = params ? wk_step_tensors(&wk_ops_optim[OP_sgd_step_list], params) : 2;
    snprintf(buf, room, "%s%d", names[i % each], i / each);
    return buf;
}

static const char *adamw_name(const void *params, int i, char *buf, size_t room)
{
    static const char *const names[] = {"param", "grad", "m", "v"};
    (void)params;
    snprintf(buf, room, "%s%d", names[i % 4], i / 4);
    return buf;
}

static bool sgd_gives(const void *params, int i)
{
    return i % wk_step_tensors(&wk_ops_optim[OP_sgd_step_list], params) != 1;
}

static bool adamw_gives(const void *params, int i)
{
    (void)params;
    return i % 4 != 1;
}

/* The tensors of each step have one shape; the gradient has the parameter's dtype. */
static wk_status infer_list(wk_call *c)
{
    int each = wk_step_tensors(c->op, c->params);
    char buf[48];
    WK_TRY(each == 4 ? check_adamw(c) : check_sgd(c));
    WK_NEED(c->n_tail % each == 0, c, WK_ERR_ARGUMENT,
            c->op->tail_name(c->params, c->n_tail, buf, sizeof buf),
            "expected %d tensors for each step, got %d in all", each, c->n_tail);
    c->dtype = c->n_tail ? c->tail[0]->dtype : WK_F32;
    for (int i = 0; i < c->n_tail; i++) {
        const wk_tensor *t = c->tail[i], *param = c->tail[i - i % each];
        const char *name = c->op->tail_name(c->params, i, buf, sizeof buf);
        wk_shape_text want, got;
        WK_NEED(wk_is_float(t->dtype) && (i % each != 1 || t->dtype == param->dtype), c, WK_ERR_DTYPE, name,
                "expected dtype %s, got %s",
                i % each == 1 ? wk_dtype_name(param->dtype) : "f32, f16, bf16 or f64",
                wk_dtype_name(t->dtype));
        WK_NEED(wk_shape_equal(t->rank, t->shape, param->rank, param->shape), c, WK_ERR_SHAPE, name,
                "expected shape %s, got %s", wk_shape_str(&want, param->rank, param->shape),
                wk_shape_str(&got, t->rank, t->shape));
    }
    WK_NEED(c->tail_out, c, WK_ERR_ARGUMENT, "tensors", "expected places for the results, got none");
    return WK_OK;
}

/* ---- the table ---- */

#define SAMPLES(name, ...) static const char *const name[] = {__VA_ARGS__, NULL}

SAMPLES(sgd_samples, "param=T[4,5] grad=T[4,5] lr=0.1",
        "param=T[40000] grad=T[40000] lr=0.1 weight_decay=0.01",
        "param=T[3,7] grad=T[3,7] momentum=T[3,7] lr=0.1 momentum=0.9 weight_decay=0.1",
        "param=T[3,7] grad=T[3,7] momentum=S[3,7] lr=0.1 momentum=0.9",
        "param=T[3] grad=T[3] lr=0.1 momentum=0.9", "param=T[] grad=T[] lr=1", "param=T[0] grad=T[0] lr=1");
SAMPLES(sgd_errors, "param=T[3] lr=0.1 ! grad", "param=T[3] grad=T[3] ! lr",
        "param=T[3] grad=T[4] lr=0.1 ! grad", "param=T[3] grad=T[3] momentum=T[4] lr=0.1 ! momentum",
        "param=T[3] grad=T[3] momentum=i32[3] lr=0.1 ! momentum", "param=f32[3] grad=f16[3] lr=0.1 ! grad",
        "param=T[3] grad=T[3] lr=-1 ! lr", "param=T[3] grad=T[3] lr=nan ! lr",
        "param=T[3] grad=T[3] lr=1 momentum=-1 ! momentum",
        "param=T[3] grad=T[3] lr=1 weight_decay=-1 ! weight_decay", "param=i32[3] grad=i32[3] lr=1 ! dtype");
SAMPLES(adamw_samples, "param=T[4,5] grad=T[4,5] m=T[4,5] v=T[4,5]:0.1..2 step=1",
        "param=T[40000] grad=T[40000] m=T[40000] v=T[40000]:0.1..2 step=100 lr=0.01",
        "param=T[3,7] grad=T[3,7] m=S[3,7] v=S[3,7]:0.1..2 step=3 beta1=0.8 beta2=0.95 eps=1e-6",
        "param=T[3] grad=T[3] m=T[3] v=T[3]:0.1..2 step=2 weight_decay=0 lr=0.1",
        "param=T[0] grad=T[0] m=T[0] v=T[0] step=1");
SAMPLES(adamw_errors, "param=T[3] grad=T[3] m=T[3] step=1 ! v", "param=T[3] grad=T[3] m=T[3] v=T[3] ! step",
        "param=T[3] grad=T[4] m=T[3] v=T[3] step=1 ! grad", "param=T[3] grad=T[3] m=T[4] v=T[3] step=1 ! m",
        "param=T[3] grad=T[3] m=T[3] v=T[3,1] step=1 ! v", "param=T[3] grad=T[3] m=i64[3] v=T[3] step=1 ! m",
        "param=T[3] grad=T[3] m=T[3] v=T[3] step=0 ! step",
        "param=T[3] grad=T[3] m=T[3] v=T[3] step=1 beta1=1 ! beta1",
        "param=T[3] grad=T[3] m=T[3] v=T[3] step=1 beta2=-0.5 ! beta2",
        "param=T[3] grad=T[3] m=T[3] v=T[3] step=1 eps=-1 ! eps",
        "param=T[3] grad=T[3] m=T[3] v=T[3] step=1 lr=inf ! lr");

SAMPLES(
    sgd_list_samples, "param0=T[4,5] grad0=T[4,5] lr=0.1",
    "param0=T[4,5] grad0=T[4,5] momentum0=T[4,5] param1=T[1025] grad1=T[1025] momentum1=T[1025] param2=T[0] "
    "grad2=T[0] momentum2=T[0] param3=T[5000] grad3=T[5000] momentum3=S[5000] lr=0.1 momentum=0.9 "
    "weight_decay=0.1",
    "param0=T[8200] grad0=T[8200] param1=T[] grad1=T[] param2=T[33] grad2=T[33] lr=0.5");
SAMPLES(sgd_list_errors, "lr=0.1 ! tensors", "param0=T[3] lr=0.1 ! grad0",
        "param0=T[3] grad0=T[4] lr=0.1 ! grad0", "param0=T[3] grad0=T[3] param1=T[4] lr=0.1 ! grad1",
        "param0=T[3] grad0=T[3] lr=-1 ! lr", "param0=i32[3] grad0=i32[3] lr=1 ! param0",
        "param0=f32[3] grad0=f16[3] lr=1 ! grad0", "param0=T[3] grad0=T[3] lr=0.1 momentum=0.9 ! momentum0");
SAMPLES(
    adamw_list_samples, "param0=T[4,5] grad0=T[4,5] m0=T[4,5] v0=T[4,5]:0.1..2 step=1",
    "param0=T[4,5] grad0=T[4,5] m0=T[4,5] v0=T[4,5]:0.1..2 param1=T[9001] grad1=T[9001] m1=T[9001] "
    "v1=T[9001]:0.1..2 param2=T[0] grad2=T[0] m2=T[0] v2=T[0] param3=T[300] grad3=T[300] m3=S[300] "
    "v3=S[300]:0.1..2 step=3 lr=0.01 beta1=0.8",
    "param0=T[70] grad0=T[70] m0=S[70] v0=S[70]:0.1..2 param1=T[3,7] grad1=T[3,7] m1=S[3,7] v1=S[3,7]:0.1..2 "
    "step=2 weight_decay=0");
SAMPLES(adamw_list_errors, "step=1 ! tensors", "param0=T[3] grad0=T[3] m0=T[3] step=1 ! v0",
        "param0=T[3] grad0=T[3] m0=T[4] v0=T[3] step=1 ! m0", "param0=T[3] grad0=T[3] m0=T[3] v0=T[3] ! step",
        "param0=T[3] grad0=T[3] m0=i32[3] v0=T[3] step=1 ! m0",
        "param0=T[3] grad0=T[3] m0=T[3] v0=T[3] step=1 beta1=2 ! beta1");

#define SGD(field) offsetof(wk_sgd_params, field)
#define ADAMW(field) offsetof(wk_adamw_options, field)

#define SGD_PARAMS \
    WK_PARAM_LIST({"lr", WK_P_FLOAT, SGD(lr), NULL, NULL, 0}, \
                  {"momentum", WK_P_FLOAT, SGD(momentum), "0", NULL, 0}, \
                  {"weight_decay", WK_P_FLOAT, SGD(weight_decay), "0", NULL, 0})
#define ADAMW_PARAMS \
    WK_PARAM_LIST({"lr", WK_P_FLOAT, ADAMW(lr), "0.001", NULL, 0}, \
                  {"beta1", WK_P_FLOAT, ADAMW(beta1), "0.9", NULL, 0}, \
                  {"beta2", WK_P_FLOAT, ADAMW(beta2), "0.999", NULL, 0}, \
                  {"eps", WK_P_FLOAT, ADAMW(eps), "1e-8", NULL, 0}, \
                  {"weight_decay", WK_P_FLOAT, ADAMW(weight_decay), "0.01", NULL, 0}, \
                  {"step", WK_P_INT, ADAMW(step), NULL, NULL, 0})

wk_op wk_ops_optim[] = {
    [OP_sgd_step] = {.name = "sgd_step",
                     .summary = "one step of SGD with momentum",
                     .dtypes = WK_FLOATS,
                     .in = {{"param", 0, 0}, {"grad", 0, 0}, {"momentum", WK_OPTIONAL, WK_FLOATS}},
                     .out = {{"param", WK_SKIP, 0}, {"momentum", WK_SKIP, 0}},
                     .params = SGD_PARAMS,
                     .infer = infer_sgd,
                     .samples = sgd_samples,
                     .errors = sgd_errors},
    [OP_adamw_step] = {.name = "adamw_step",
                       .summary = "one step of AdamW",
                       .dtypes = WK_FLOATS,
                       .in = {{"param", 0, 0}, {"grad", 0, 0}, {"m", 0, WK_FLOATS}, {"v", 0, WK_FLOATS}},
                       .out = {{"param", WK_SKIP, 0}, {"m", WK_SKIP, 0}, {"v", WK_SKIP, 0}},
                       .params = ADAMW_PARAMS,
                       .infer = infer_adamw,
                       .samples = adamw_samples,
                       .errors = adamw_errors},
    [OP_sgd_step_list] = {.name = "sgd_step_list",
                          .summary = "one step of SGD on each tensor of a list",
                          .dtypes = WK_FLOATS,
                          .in = {{"tensors", WK_TAIL | WK_ANY, 0}},
                          .tail_name = sgd_name,
                          .tail_gives = sgd_gives,
                          .params = SGD_PARAMS,
                          .infer = infer_list,
                          .samples = sgd_list_samples,
                          .errors = sgd_list_errors},
    [OP_adamw_step_list] = {.name = "adamw_step_list",
                            .summary = "one step of AdamW on each tensor of a list",
                            .dtypes = WK_FLOATS,
                            .in = {{"tensors", WK_TAIL | WK_ANY, 0}},
                            .tail_name = adamw_name,
                            .tail_gives = adamw_gives,
                            .params = ADAMW_PARAMS,
                            .infer = infer_list,
                            .samples = adamw_list_samples,
                            .errors = adamw_list_errors},
    {0},
};

/* ---- the API ---- */

wk_status wk_sgd_step(const wk_tensor *param, const wk_tensor *grad, const wk_tensor *momentum, double lr,
                      double momentum_factor, double weight_decay, wk_tensor **new_param,
                      wk_tensor **new_momentum)
{
    wk_sgd_params p = {lr, momentum_factor, weight_decay};
    wk_call c = {.op = &wk_ops_optim[OP_sgd_step], .params = &p, .in = {param, grad, momentum}};
    return wk_call_run_into(&c, (wk_tensor * *const[]){new_param, new_momentum}, 2);
}

static wk_status need_target(const char *op, const char *name, const wk_tensor *t)
{
    if (wk_pending())
        return wk_error_status();
    return t ? WK_OK : wk_fail(WK_ERR_ARGUMENT, "%s: %s: expected a tensor, got none", op, name);
}

wk_status wk_sgd_step_into(wk_tensor *param, const wk_tensor *grad, wk_tensor *momentum, double lr,
                           double momentum_factor, double weight_decay)
{
    wk_sgd_params p = {lr, momentum_factor, weight_decay};
    WK_TRY(need_target("sgd_step", "param", param));
    if (momentum_factor != 0)
        WK_TRY(need_target("sgd_step", "momentum", momentum));
    return wk_call_run(&(wk_call){.op = &wk_ops_optim[OP_sgd_step],
                                  .params = &p,
                                  .in = {param, grad, momentum},
                                  .out = {param, momentum}});
}

static void adamw_params(void *params, const wk_adamw_options *options)
{
    wk_params_from_options(&wk_ops_optim[OP_adamw_step], params, options, options ? options->size : 0);
    wk_adamw_options *p = params;
    if (p->weight_decay < 0)
        p->weight_decay = 0;
}

wk_status wk_adamw_step(const wk_tensor *param, const wk_tensor *grad, const wk_tensor *m, const wk_tensor *v,
                        const wk_adamw_options *options, wk_tensor **new_param, wk_tensor **new_m,
                        wk_tensor **new_v)
{
    _Alignas(8) char p[WK_PARAMS_BYTES];
    adamw_params(p, options);
    wk_call c = {.op = &wk_ops_optim[OP_adamw_step], .params = p, .in = {param, grad, m, v}};
    return wk_call_run_into(&c, (wk_tensor * *const[]){new_param, new_m, new_v}, 3);
}

wk_status wk_adamw_step_into(wk_tensor *param, const wk_tensor *grad, wk_tensor *m, wk_tensor *v,
                             const wk_adamw_options *options)
{
    _Alignas(8) char p[WK_PARAMS_BYTES];
    adamw_params(p, options);
    WK_TRY(need_target("adamw_step", "param", param));
    WK_TRY(need_target("adamw_step", "m", m));
    WK_TRY(need_target("adamw_step", "v", v));
    return wk_call_run(&(wk_call){
        .op = &wk_ops_optim[OP_adamw_step], .params = p, .in = {param, grad, m, v}, .out = {param, m, v}});
}

/* ---- lists ---- */

/* One call for n steps of `each` tensors in place; tensors[k][i] is number k of step i. What is not packed is done by
 * itself, which `single` does. */
static wk_status run_list(int op, const void *params, int n, const wk_tensor *const *const *tensors, int each,
                          wk_status (*single)(const void *params, const wk_tensor *const *of_step))
{
    const wk_tensor **tail = wk_alloc((size_t)n * (size_t)each * 2 * sizeof *tail + 1);
    wk_tensor **out = (wk_tensor **)(tail + (size_t)n * (size_t)each);
    wk_status status = tail ? WK_OK : wk_fail(WK_ERR_MEMORY, "%s: out of memory", wk_ops_optim[op].name);
    int used = 0;
    for (int i = 0; i < n && status == WK_OK; i++) {
        bool packed = true;
        for (int k = 0; k < each; k++) {
            const wk_tensor *t = tail[used + k] = tensors[k][i];
            out[used + k] = k == 1 ? NULL : (wk_tensor *)t;
            packed = packed && (k == 1 || !t || wk_is_packed(t));
        }
        if (packed)
            used += each;
        else
            status = single(params, tail + used);
    }
    if (status == WK_OK && used > 0)
        status = wk_call_run(&(wk_call){
            .op = &wk_ops_optim[op], .params = params, .tail = tail, .n_tail = used, .tail_out = out});
    wk_free(tail);
    return status;
}

static wk_status check_list(const char *op, int n, const void *const *lists, int each)
{
    if (wk_pending())
        return wk_error_status();
    if (n < 0)
        return wk_fail(WK_ERR_ARGUMENT, "%s: n: expected 0 or more, got %d", op, n);
    for (int k = 0; k < each && n > 0; k++) {
        if (!lists[k])
            return wk_fail(WK_ERR_ARGUMENT, "%s: expected %d lists, number %d is NULL", op, each, k);
    }
    return WK_OK;
}

static wk_status single_sgd(const void *params, const wk_tensor *const *t)
{
    const wk_sgd_params *p = params;
    return wk_sgd_step_into((wk_tensor *)t[0], t[1], p->momentum != 0 ? (wk_tensor *)t[2] : NULL, p->lr,
                            p->momentum, p->weight_decay);
}

wk_status wk_sgd_step_list(int n, wk_tensor *const *params, const wk_tensor *const *grads,
                           wk_tensor *const *momenta, double lr, double momentum_factor, double weight_decay)
{
    wk_sgd_params p = {lr, momentum_factor, weight_decay};
    int each = momentum_factor != 0 ? 3 : 2;
    const wk_tensor *const *const lists[] = {(const wk_tensor *const *)params, grads,
                                             (const wk_tensor *const *)momenta};
    WK_TRY(check_list("sgd_step_list", n, (const void *const *)lists, each));
    return run_list(OP_sgd_step_list, &p, n, lists, each, single_sgd);
}

static wk_status single_adamw(const void *params, const wk_tensor *const *t)
{
    wk_call c = {.op = &wk_ops_optim[OP_adamw_step],
                 .params = params,
                 .in = {t[0], t[1], t[2], t[3]},
                 .out = {(wk_tensor *)t[0], (wk_tensor *)t[2], (wk_tensor *)t[3]}};
    return wk_call_run(&c);
}

wk_status wk_adamw_step_list(int n, wk_tensor *const *params, const wk_tensor *const *grads,
                             wk_tensor *const *m, wk_tensor *const *v, const wk_adamw_options *options)
{
    _Alignas(8) char p[WK_PARAMS_BYTES];
    const wk_tensor *const *const lists[] = {(const wk_tensor *const *)params, grads,
                                             (const wk_tensor *const *)m, (const wk_tensor *const *)v};
    adamw_params(p, options);
    WK_TRY(check_list("adamw_step_list", n, (const void *const *)lists, 4));
    return run_list(OP_adamw_step_list, p, n, lists, 4, single_adamw);
}
