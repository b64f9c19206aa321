/* softmax.c: front ends of softmax and its gradient. */
#include "softmax.h"
#include "reduce.h"
#include "wick/softmax.h"

bool wk_softmax_fold(const wk_tensor *x, unsigned set, int64_t shape[3])
{
    int first = 0, last = x->rank;
    while (first < x->rank && !(set >> first & 1))
        first++;
    while (last > first && !(set >> (last - 1) & 1))
        last--;
    for (int d = first; d < last; d++) {
        if (!(set >> d & 1))
            return false;
    }
    shape[0] = wk_shape_count(first, x->shape);
    shape[1] = wk_shape_count(last - first, x->shape + first);
    shape[2] = wk_shape_count(x->rank - last, x->shape + last);
    return true;
}

static wk_status infer_softmax(wk_call *c)
{
    const wk_softmax_params *p = c->params;
    unsigned set;
    WK_TRY(wk_reduce_dims(c, &p->dims, c->in[0]->rank, &set));
    WK_NEED(p->mode >= WK_SOFTMAX_ACCURATE && p->mode <= WK_SOFTMAX_LOG, c, WK_ERR_PARAM, "mode",
            "expected one of wk_softmax_mode, got %d", (int)p->mode);
    wk_call_out_like(c, 0, c->in[0]);
    return WK_OK;
}

static wk_status infer_softmax_backward(wk_call *c)
{
    WK_TRY(wk_call_same_shape(c, 1, 0));
    return infer_softmax(c);
}

/* ---- the table ---- */

#define SAMPLES(name, ...) static const char *const name[] = {__VA_ARGS__, NULL}

SAMPLES(softmax_samples, "x=T[4,5]", "x=T[4,5] dim=0", "x=T[3,4,5] dim=1 mode=log", "x=T[3,300] mode=fast",
        "x=T[2,3,4,5] dims=1,2,3", "x=T[2,3,4,5] dims=1", "x=T[3,21,40] dim=1", "x=T[3,50,8] dim=1 mode=log",
        "x=T[2,3,4,5] dims=0,2", "x=T[2,2000]:-30..30", "x=T[7,1025] mode=log", "x=T[9,4096]",
        "x=T[21,512]:-9..9", "x=T[64,33]", "x=T[8,517]:-9..9", "x=T[2,20000] mode=log", "x=T[56,2049]:-9..9",
        "x=T[3,9000]", "x=T[2,32768]:-30..30 mode=fast", "x=T[1,70000]:-9..9 mode=log",
        "x=T[25,2049] mode=log", "x=T[3,5001]:-9..9 mode=fast", "x=T[]", "x=T[0,3]", "x=T[3,0]",
        "x=T[6]:special");
SAMPLES(softmax_errors, "! x", "x=T[3] dim=1 ! dim", "x=T[3] mode=slow ! mode", "x=i32[3] ! dtype",
        "x=T[3,4] dims=0,0 ! dims");
SAMPLES(softmax_backward_samples, "y=T[4,5]:0..1 dy=T[4,5]", "y=T[4,5]:0..1 dy=T[4,5] dim=0",
        "y=T[3,4,5]:-4..0 dy=T[3,4,5] dim=1 mode=log", "y=T[2,3,4,5]:0..1 dy=T[2,3,4,5] dims=1,2,3",
        "y=T[3,2000]:0..1 dy=T[3,2000]", "y=T[9,2048]:0..1 dy=T[9,2048]",
        "y=T[33,70]:-4..0 dy=T[33,70] mode=log", "y=T[2,20000]:0..0.0001 dy=T[2,20000]",
        "y=T[56,2049]:0..0.001 dy=T[56,2049]", "y=T[2,3,4]:0..1 dy=T[2,3,4] dims=0,2",
        "y=T[3,21,40]:0..1 dy=T[3,21,40] dim=1", "y=T[3,50,8]:0..1 dy=T[3,50,8] dim=1", "y=T[0,3] dy=T[0,3]");
SAMPLES(softmax_backward_errors, "y=T[3] ! dy", "y=T[3] dy=T[4] ! dy", "y=T[3] dy=T[3] dim=2 ! dim");

enum { OP_softmax, OP_softmax_backward };
#define PARAMS \
    WK_PARAM_LIST( \
        {"dim", WK_P_LIST, offsetof(wk_softmax_params, dims), "-1", NULL, 0}, \
        {"mode", WK_P_ENUM, offsetof(wk_softmax_params, mode), "accurate", "accurate|fast|log", 0})

wk_op wk_ops_softmax[] = {
    [OP_softmax] = {.name = "softmax",
                    .summary = "exp(x) over its sum, or the log of that",
                    .dtypes = WK_FLOATS,
                    .in = {{"x", 0, 0}},
                    .out = {{"y", 0, 0}},
                    .params = PARAMS,
                    .infer = infer_softmax,
                    .samples = softmax_samples,
                    .errors = softmax_errors},
    [OP_softmax_backward] = {.name = "softmax_backward",
                             .summary = "gradient of softmax",
                             .dtypes = WK_FLOATS,
                             .in = {{"y", 0, 0}, {"dy", 0, 0}},
                             .out = {{"dx", 0, 0}},
                             .params = PARAMS,
                             .infer = infer_softmax_backward,
                             .samples = softmax_backward_samples,
                             .errors = softmax_backward_errors},
    {0},
};

/* ---- the API ---- */

static wk_tensor *run_softmax(int op, const wk_tensor *x, const wk_tensor *dy, int n, const int64_t *dims,
                              wk_softmax_mode mode)
{
    wk_softmax_params p = {.dims = {1, {-1}}, .mode = mode};
    if (wk_pending())
        return NULL;
    if (n < 0 || n > WK_MAX_RANK || (n > 0 && !dims)) {
        wk_fail(WK_ERR_PARAM, "%s: dims: expected 0 to %d dims, got %d", wk_ops_softmax[op].name, WK_MAX_RANK,
                n);
        return NULL;
    }
    if (n > 0) {
        p.dims.n = n;
        memcpy(p.dims.v, dims, (size_t)n * sizeof *dims);
    }
    return wk_call_run1(&(wk_call){.op = &wk_ops_softmax[op], .params = &p, .in = {x, dy}});
}

wk_tensor *wk_softmax(const wk_tensor *x, int n, const int64_t *dims, wk_softmax_mode mode)
{
    return run_softmax(OP_softmax, x, NULL, n, dims, mode);
}

wk_tensor *wk_softmax_backward(const wk_tensor *y, const wk_tensor *dy, int n, const int64_t *dims,
                               wk_softmax_mode mode)
{
    return run_softmax(OP_softmax_backward, y, dy, n, dims, mode);
}
