/* copy.c: front ends of the ops that move elements without computing. */
#include "core/op.h"
#include "wick/copy.h"

static wk_status infer_copy(wk_call *c)
{
    wk_call_out_like(c, 0, c->in[0]);
    return WK_OK;
}

#define SAMPLES(name, ...) static const char *const name[] = {__VA_ARGS__, NULL}

SAMPLES(copy_samples, "x=T[4,5]", "x=T[3,1,7]", "x=T[70,90]", "x=T[3,40,50]", "x=T[5000]", "x=T[]",
        "x=T[0,3]", "x=T[2,1,2,1,2,1,2,3]", "x=T[6]:special");
SAMPLES(copy_errors, "! x");

enum { OP_copy };

wk_op wk_ops_copy[] = {
    [OP_copy] = {.name = "copy",
                 .summary = "any layout to packed",
                 .dtypes = WK_ALL,
                 .in = {{"x", 0, 0}},
                 .out = {{"y", 0, 0}},
                 .infer = infer_copy, .any_output = true,
                 .samples = copy_samples,
                 .errors = copy_errors},
    {0},
};

/* ---- the API ---- */

wk_tensor *wk_copy(const wk_tensor *x)
{
    return wk_call_run1(&(wk_call){.op = &wk_ops_copy[OP_copy], .in = {x}});
}

wk_status wk_copy_into(wk_tensor *dst, const wk_tensor *src)
{
    if (wk_pending())
        return wk_error_status();
    if (!dst)
        return wk_fail(WK_ERR_ARGUMENT, "copy: dst: expected a tensor, got NULL");
    return wk_call_run(&(wk_call){.op = &wk_ops_copy[OP_copy], .in = {src}, .out = {dst}});
}
