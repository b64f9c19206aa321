/* scan.c: references of running sums and sorting. */
#include "ops/scan.h"
#include "ref.h"

/* The lines along dim: element j of line l is number (l / inner * n + j) * inner + l % inner. */
typedef struct {
    int64_t lines, n, inner;
} lines;

static lines lines_of(const wk_call *c, const wk_tensor *t)
{
    lines l = {.n = 1, .inner = 1};
    int dim = wk_shape_dim(t->rank, WK_PARAMS(c, wk_scan_params)->dim);
    for (int d = dim + 1; t->rank > 0 && d < t->rank; d++)
        l.inner *= t->shape[d];
    if (t->rank > 0)
        l.n = t->shape[dim];
    l.lines = l.n ? wk_count(t) / l.n : 0;
    return l;
}

static int64_t element(const lines *l, int64_t line, int64_t j)
{
    return (line / l->inner * l->n + j) * l->inner + line % l->inner;
}

static wk_status run_sums(wk_call *c, const wk_tensor *x, bool backwards)
{
    lines l = lines_of(c, x);
    for (int64_t line = 0; line < l.lines; line++) {
        double sum = 0;
        int64_t whole = 0;
        for (int64_t k = 0; k < l.n; k++) {
            int64_t i = element(&l, line, backwards ? l.n - 1 - k : k);
            sum += wk_ref_get(x, i);
            whole += wk_ref_get_int(x, i);
            if (wk_is_float(x->dtype))
                wk_ref_set(c->out[0], i, sum);
            else
                wk_ref_set_int(c->out[0], i, whole);
        }
    }
    return WK_OK;
}

static wk_status run_cumsum(wk_call *c) { return run_sums(c, c->in[0], false); }
static wk_status run_cumsum_backward(wk_call *c) { return run_sums(c, c->in[1], true); }

/* Whether element i of x comes before j; equal ones (false both ways) keep their order. */
static bool before(const wk_tensor *x, int64_t i, int64_t j, bool descending, bool nan_first)
{
    double a = wk_ref_get(x, i), b = wk_ref_get(x, j);
    int64_t whole_a = wk_ref_get_int(x, i), whole_b = wk_ref_get_int(x, j);
    if (!wk_is_float(x->dtype)) /* f64 does not have every i64 */
        return descending ? whole_a > whole_b : whole_a < whole_b;
    if (a != a || b != b)
        return nan_first ? a != a && b == b : a == a && b != b;
    return descending ? a > b : a < b;
}

/* Fills outputs with the first of each line's elements in order, by counting for each how many come before it. */
static wk_status run_order(wk_call *c, bool descending, bool nan_first, wk_tensor *y, wk_tensor *indices)
{
    const wk_tensor *x = c->in[0];
    lines l = lines_of(c, x), to = lines_of(c, y ? y : indices);
    for (int64_t i = 0; i < l.lines * l.n; i++) {
        int64_t line = i / l.n, at = i % l.n, rank = 0, v = element(&l, line, at);
        for (int64_t j = 0; j < l.n; j++) {
            int64_t u = element(&l, line, j);
            rank +=
                before(x, u, v, descending, nan_first) || (j < at && !before(x, v, u, descending, nan_first));
        }
        if (rank < to.n && y)
            wk_ref_move(y, element(&to, line, rank), x, element(&l, line, at));
        if (rank < to.n && indices)
            wk_ref_set_int(indices, element(&to, line, rank), at);
    }
    return WK_OK;
}

static wk_status run_sort(wk_call *c)
{
    return run_order(c, WK_PARAMS(c, wk_scan_params)->descending, false, c->out[0], NULL);
}

static wk_status run_argsort(wk_call *c)
{
    return run_order(c, WK_PARAMS(c, wk_scan_params)->descending, false, NULL, c->out[0]);
}

static wk_status run_topk(wk_call *c)
{
    return c->out[0] || c->out[1] ? run_order(c, true, true, c->out[0], c->out[1]) : WK_OK;
}

/* Every pair is compared: not for long lines. */
static const char *refuse_long(const wk_call *c)
{
    return lines_of(c, c->in[0]).n > 4096 ? "it takes lines of up to 4096 elements" : NULL;
}

const wk_impl wk_ref_scan[] = {
    {"cumsum", "ref", run_cumsum, NULL, NULL},    {"cumsum_backward", "ref", run_cumsum_backward, NULL, NULL},
    {"sort", "ref", run_sort, refuse_long, NULL}, {"argsort", "ref", run_argsort, refuse_long, NULL},
    {"topk", "ref", run_topk, refuse_long, NULL}, {0},
};
