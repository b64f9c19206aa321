/* optim.c: front ends of the optimizer steps. */
#include "optim.h"
#include "wick/optim.h"

/* ---- checks and outputs ---- */

static wk_status check_rate(const wk_call *c, const char *name, double v)
{
    WK_NEED(v >= 0 && isfinite(v), c, WK_ERR_PARAM, name, "expected a number of 0 or more, got %g", v);
    return WK_OK;
}

static wk_status infer_sgd(wk_call *c)
{
    const wk_sgd_params *p = c->params;
    WK_TRY(check_rate(c, "lr", p->lr));
    WK_TRY(check_rate(c, "momentum", p->momentum));
    WK_TRY(check_rate(c, "weight_decay", p->weight_decay));
    WK_TRY(wk_call_same_shape(c, 1, 0));
    if (c->in[2])
        WK_TRY(wk_call_same_shape(c, 2, 0));
    wk_call_out_like(c, 0, c->in[0]);
    wk_call_out_like(c, 1, c->in[2] ? c->in[2] : c->in[0]);
    return WK_OK;
}

static wk_status infer_adamw(wk_call *c)
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
    WK_TRY(wk_call_same_shape(c, 1, 0));
    WK_TRY(wk_call_same_shape(c, 2, 0));
    WK_TRY(wk_call_same_shape(c, 3, 0));
    wk_call_out_like(c, 0, c->in[0]);
    wk_call_out_like(c, 1, c->in[2]);
    wk_call_out_like(c, 2, c->in[3]);
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

enum { OP_sgd_step, OP_adamw_step };

#define SGD(field) offsetof(wk_sgd_params, field)
#define ADAMW(field) offsetof(wk_adamw_options, field)

wk_op wk_ops_optim[] = {
    [OP_sgd_step] = {.name = "sgd_step",
                     .summary = "one step of SGD with momentum",
                     .dtypes = WK_FLOATS,
                     .in = {{"param", 0, 0}, {"grad", 0, 0}, {"momentum", WK_OPTIONAL, WK_FLOATS}},
                     .out = {{"param", WK_SKIP, 0}, {"momentum", WK_SKIP, 0}},
                     .params = {{"lr", WK_P_FLOAT, SGD(lr), NULL, NULL, 0},
                                {"momentum", WK_P_FLOAT, SGD(momentum), "0", NULL, 0},
                                {"weight_decay", WK_P_FLOAT, SGD(weight_decay), "0", NULL, 0}},
                     .infer = infer_sgd,
                     .samples = sgd_samples,
                     .errors = sgd_errors},
    [OP_adamw_step] = {.name = "adamw_step",
                       .summary = "one step of AdamW",
                       .dtypes = WK_FLOATS,
                       .in = {{"param", 0, 0}, {"grad", 0, 0}, {"m", 0, WK_FLOATS}, {"v", 0, WK_FLOATS}},
                       .out = {{"param", WK_SKIP, 0}, {"m", WK_SKIP, 0}, {"v", WK_SKIP, 0}},
                       .params = {{"lr", WK_P_FLOAT, ADAMW(lr), "0.001", NULL, 0},
                                  {"beta1", WK_P_FLOAT, ADAMW(beta1), "0.9", NULL, 0},
                                  {"beta2", WK_P_FLOAT, ADAMW(beta2), "0.999", NULL, 0},
                                  {"eps", WK_P_FLOAT, ADAMW(eps), "1e-8", NULL, 0},
                                  {"weight_decay", WK_P_FLOAT, ADAMW(weight_decay), "0.01", NULL, 0},
                                  {"step", WK_P_INT, ADAMW(step), NULL, NULL, 0}},
                       .infer = infer_adamw,
                       .samples = adamw_samples,
                       .errors = adamw_errors},
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
