/* scan.c: front ends of running sums and sorting. */
#include "scan.h"
#include "wick/scan.h"

/* ---- lines along any dim, for kernels that work on the last ---- */

void wk_scan_dim_last(int rank, int dim, int *forth, int *back)
{
    for (int i = 0; i < rank; i++)
        forth[i] = i < dim ? i : i < rank - 1 ? i + 1 : dim;
    for (int i = 0; i < rank; i++)
        back[forth[i]] = i;
}

wk_tensor *wk_scan_lines(wk_tensor *out, const int *forth, bool is_last)
{
    int64_t shape[WK_MAX_RANK];
    if (!out || is_last)
        return out;
    for (int d = 0; d < out->rank; d++)
        shape[d] = out->shape[forth[d]];
    return wk_tensor_new(out->storage->device, out->dtype, out->rank, shape);
}

/* ---- checks and outputs ---- */

/* A scalar has a dim in name, as in PyTorch. */
static wk_status find_dim(const wk_call *c, int *dim)
{
    int rank = c->in[0]->rank;
    return wk_call_dim(c, "dim", WK_PARAMS(c, wk_scan_params)->dim, rank ? rank : 1, dim);
}

static wk_status infer_cumsum(wk_call *c)
{
    int dim;
    WK_TRY(find_dim(c, &dim));
    wk_call_out_like(c, 0, c->in[0]);
    return WK_OK;
}

static wk_status infer_cumsum_backward(wk_call *c)
{
    WK_TRY(wk_call_same_shape(c, 1, 0));
    return infer_cumsum(c);
}

/* Places in a line are u32. */
static wk_status check_line(const wk_call *c, int dim)
{
    const wk_tensor *x = c->in[0];
    WK_NEED(x->rank == 0 || x->shape[dim] <= UINT32_MAX, c, WK_ERR_SHAPE, "x",
            "expected a size below 2^32 in dim %d, got %lld", dim, (long long)x->shape[dim]);
    return WK_OK;
}

static wk_status infer_sort(wk_call *c)
{
    int dim;
    WK_TRY(find_dim(c, &dim));
    WK_TRY(check_line(c, dim));
    wk_call_out_like(c, 0, c->in[0]);
    return WK_OK;
}

static wk_status infer_argsort(wk_call *c)
{
    WK_TRY(infer_sort(c));
    c->spec[0].dtype = WK_U32;
    return WK_OK;
}

static wk_status infer_topk(wk_call *c)
{
    const wk_tensor *x = c->in[0];
    int64_t k = WK_PARAMS(c, wk_scan_params)->k, shape[WK_MAX_RANK];
    int dim;
    WK_TRY(find_dim(c, &dim));
    WK_TRY(check_line(c, dim));
    int64_t n = x->rank ? x->shape[dim] : 1;
    WK_NEED(k >= 0 && k <= n, c, WK_ERR_PARAM, "k", "expected 0 to %lld, the size of dim %d, got %lld",
            (long long)n, dim, (long long)k);
    memcpy(shape, x->shape, sizeof shape);
    shape[dim] = k;
    WK_NEED(x->rank > 0 || k == 1, c, WK_ERR_PARAM, "k", "expected 1 for a scalar, got %lld", (long long)k);
    wk_call_out(c, 0, c->dtype, x->rank, shape);
    wk_call_out(c, 1, WK_U32, x->rank, shape);
    return WK_OK;
}

/* ---- the table ---- */

#define SAMPLES(name, ...) static const char *const name[] = {__VA_ARGS__, NULL}

SAMPLES(cumsum_samples, "x=T[4,5] dim=0", "x=T[4,5] dim=-1", "x=T[3,4,5] dim=1", "x=T[2500] dim=0",
        "x=T[300,70] dim=0", "x=T[70,301] dim=1", "x=T[64,48] dim=1", "x=T[3,3000] dim=1",
        "x=T[3000,3] dim=0", "x=T[] dim=0", "x=T[0,3] dim=0", "x=T[3,0] dim=0", "x=T[2,1,2,1,2,1,2,3] dim=4",
        "x=T[40000] dim=0", "x=T[6]:special dim=0");
SAMPLES(cumsum_errors, "x=T[3] ! dim", "x=T[3] dim=1 ! dim", "dim=0 ! x");
SAMPLES(cumsum_backward_samples, "x=T[4,5] dy=T[4,5] dim=0", "x=T[4,5] dy=T[4,5] dim=-1",
        "x=T[3,4,5] dy=T[3,4,5] dim=1", "x=T[2500] dy=T[2500] dim=0", "x=T[40000] dy=T[40000] dim=0",
        "x=T[64,48] dy=T[64,48] dim=1", "x=T[0,3] dy=T[0,3] dim=0", "x=T[] dy=T[] dim=0");
SAMPLES(cumsum_backward_errors, "x=T[3] dim=0 ! dy", "x=T[3] dy=T[4] dim=0 ! dy",
        "x=T[3] dy=T[3] dim=1 ! dim", "x=i32[3] dy=i32[3] dim=0 ! dtype");
SAMPLES(sort_samples, "x=T[4,5]", "x=T[4,5] dim=0", "x=T[3,4,5] dim=1 descending=1", "x=T[17]:-3..3",
        "x=T[33] descending=1", "x=T[700]", "x=T[900]:-3..3 descending=1", "x=T[7,300]:-3..3 dim=1",
        "x=T[300,7]:-9..9 dim=0", "x=T[]", "x=T[0,3]", "x=T[3,0] dim=1", "x=T[100000]", "x=T[6]:special",
        "x=T[600]:special", "x=T[600]:special descending=1");
SAMPLES(sort_errors, "! x", "x=T[3] dim=1 ! dim", "x=T[3] descending=2 ! descending");
SAMPLES(topk_samples, "x=T[4,5] k=2", "x=T[4,5] k=3 dim=0", "x=T[3,4,5] k=4 dim=1", "x=T[700] k=7",
        "x=T[700]:-3..3 k=100", "x=T[700] k=700", "x=T[7,300] k=1", "x=T[] k=1 dim=0", "x=T[4,5] k=0",
        "x=T[0,5] k=2", "x=T[6]:special k=3", "x=T[70000] k=50", "x=T[2,9000] k=1500");
SAMPLES(topk_errors, "x=T[3] ! k", "x=T[3] k=4 ! k", "x=T[3] k=-1 ! k", "x=T[3] k=1 dim=1 ! dim");

#define AT(field) offsetof(wk_scan_params, field)
#define DIM(fallback) \
    { \
        "dim", WK_P_INT, AT(dim), fallback, NULL, 0 \
    }
#define DESCENDING \
    { \
        "descending", WK_P_BOOL, AT(descending), "0", NULL, 0 \
    }

enum { OP_cumsum, OP_cumsum_backward, OP_sort, OP_argsort, OP_topk };

wk_op wk_ops_scan[] = {
    [OP_cumsum] = {.name = "cumsum",
                   .summary = "running sums along a dim",
                   .dtypes = WK_ALL,
                   .in = {{"x", 0, 0}},
                   .out = {{"y", 0, 0}},
                   .params = WK_PARAM_LIST(DIM(NULL)),
                   .infer = infer_cumsum,
                   .samples = cumsum_samples,
                   .errors = cumsum_errors},
    [OP_cumsum_backward] = {.name = "cumsum_backward",
                            .summary = "gradient of cumsum",
                            .dtypes = WK_FLOATS,
                            .in = {{"x", 0, 0}, {"dy", 0, 0}},
                            .out = {{"dx", 0, 0}},
                            .params = WK_PARAM_LIST(DIM(NULL)),
                            .infer = infer_cumsum_backward,
                            .samples = cumsum_backward_samples,
                            .errors = cumsum_backward_errors},
    [OP_sort] = {.name = "sort",
                 .summary = "lines along a dim in order",
                 .dtypes = WK_ALL,
                 .in = {{"x", 0, 0}},
                 .out = {{"y", 0, 0}},
                 .params = WK_PARAM_LIST(DIM("-1"), DESCENDING),
                 .infer = infer_sort,
                 .samples = sort_samples,
                 .errors = sort_errors},
    [OP_argsort] = {.name = "argsort",
                    .summary = "where the elements of the sorted lines are",
                    .dtypes = WK_ALL,
                    .in = {{"x", 0, 0}},
                    .out = {{"y", 0, WK_SET(WK_U32)}},
                    .params = WK_PARAM_LIST(DIM("-1"), DESCENDING),
                    .infer = infer_argsort,
                    .samples = sort_samples,
                    .errors = sort_errors},
    [OP_topk] = {.name = "topk",
                 .summary = "the k largest along a dim, and where they are",
                 .dtypes = WK_ALL,
                 .in = {{"x", 0, 0}},
                 .out = {{"y", WK_SKIP, 0}, {"indices", WK_SKIP, WK_SET(WK_U32)}},
                 .params = WK_PARAM_LIST({"k", WK_P_INT, AT(k), NULL, NULL, 0}, DIM("-1")),
                 .infer = infer_topk,
                 .samples = topk_samples,
                 .errors = topk_errors},
    {0},
};

/* ---- the API ---- */

static wk_tensor *run(int op, const wk_tensor *x, const wk_tensor *dy, int dim, int descending)
{
    wk_scan_params p = {.dim = dim, .descending = descending != 0};
    return wk_call_run1(&(wk_call){.op = &wk_ops_scan[op], .params = &p, .in = {x, dy}});
}

wk_tensor *wk_cumsum(const wk_tensor *x, int dim) { return run(OP_cumsum, x, NULL, dim, 0); }
wk_tensor *wk_cumsum_backward(const wk_tensor *x, const wk_tensor *dy, int dim)
{
    return run(OP_cumsum_backward, x, dy, dim, 0);
}
wk_tensor *wk_sort(const wk_tensor *x, int dim, int descending)
{
    return run(OP_sort, x, NULL, dim, descending);
}
wk_tensor *wk_argsort(const wk_tensor *x, int dim, int descending)
{
    return run(OP_argsort, x, NULL, dim, descending);
}

wk_status wk_topk(const wk_tensor *x, int64_t k, int dim, wk_tensor **y, wk_tensor **indices)
{
    wk_scan_params p = {.dim = dim, .k = k};
    wk_call c = {.op = &wk_ops_scan[OP_topk], .params = &p, .in = {x}};
    return wk_call_run_into(&c, (wk_tensor * *const[]){y, indices}, 2);
}
