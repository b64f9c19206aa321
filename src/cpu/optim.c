/* optim.c: optimizer steps: one pass over the parameters and their state. */
#include "core/families.h"
#include "ops/optim.h"
#include "wick/optim.h"
#include "blocks.h"

typedef struct {
    double beta1, beta2, eps;
    double keep; /* 1 - lr weight_decay */
    double rate; /* lr / (1 - beta1^step) */
    double root; /* sqrt(1 - beta2^step) */
} adamw;

#include "real_f32.h"
#include "optim.inc.h"
#include "real_f64.h"
#include "optim.inc.h"

static wk_status run(wk_call *c, wk_blocks_fn f32, wk_blocks_fn f64, void *ctx)
{
    wk_compute compute = wk_dtypes[c->dtype].compute;
    wk_blocks b = {.count = wk_count(c->in[0]), .fn = compute == WK_COMPUTE_F64 ? f64 : f32, .ctx = ctx};
    for (int k = 0; k < WK_BLOCKS_TENSORS; k++) {
        b.in[k] = c->in[k];
        b.out[k] = c->out[k];
        b.in_compute[k] = b.out_compute[k] = compute;
    }
    return WK_ISA(wk_blocks_run)(&b);
}

static wk_status run_sgd(wk_call *c)
{
    wk_sgd_params p = *WK_PARAMS(c, wk_sgd_params);
    return run(c, sgd_f32, sgd_f64, &p);
}

static wk_status run_adamw(wk_call *c)
{
    const wk_adamw_options *o = c->params;
    adamw p = {.beta1 = o->beta1,
               .beta2 = o->beta2,
               .eps = o->eps,
               .keep = 1 - o->lr * o->weight_decay,
               .rate = o->lr / (1 - pow(o->beta1, (double)o->step)),
               .root = sqrt(1 - pow(o->beta2, (double)o->step))};
    return run(c, adamw_f32, adamw_f64, &p);
}

const wk_impl WK_ISA(wk_cpu_optim)[] = {
    {"sgd_step", "simd", run_sgd, NULL, NULL},
    {"adamw_step", "simd", run_adamw, NULL, NULL},
    {0},
};
