/* softmax.c: softmax and its gradient, line by line. */
#include <float.h>
#include "ops/softmax.h"
#include "ops/reduce.h"
#include "core/families.h"
#include "wick/softmax.h"
#include "lines.h"

#include "real_f32.h"
#include "line.inc.h"
#include "softmax.inc.h"
#include "real_f64.h"
#include "line.inc.h"
#include "softmax.inc.h"

static wk_status run(wk_call *c, wk_line_fn f32, wk_line_fn f64, int n_in)
{
    const wk_softmax_params *p = c->params;
    wk_compute compute = wk_dtypes[c->dtype].compute;
    wk_lines l = {.in = {c->in[0], c->in[1]},
                  .in_compute = {compute, compute},
                  .n_in = n_in,
                  .out = {c->out[0]},
                  .out_compute = {compute},
                  .n_out = 1,
                  .fn = compute == WK_COMPUTE_F64 ? f64 : f32,
                  .ctx = &p->mode};
    WK_TRY(wk_reduce_dims(c, &p->dims, c->in[0]->rank, &l.set));
    return WK_ISA(wk_lines_run)(&l);
}

static wk_status run_softmax(wk_call *c) { return run(c, softmax_f32, softmax_f64, 1); }
static wk_status run_softmax_backward(wk_call *c)
{
    return run(c, softmax_backward_f32, softmax_backward_f64, 2);
}

const wk_impl WK_ISA(wk_cpu_softmax)[] = {
    {"softmax", "simd", run_softmax, NULL, NULL},
    {"softmax_backward", "simd", run_softmax_backward, NULL, NULL},
    {0},
};
