/* view.c: views without a copy. */
#include "tensor.h"
#include "wick/ops.h"

/* A view to change, or NULL with an error when t is NULL or an error is pending. */
static wk_tensor *view_of(const wk_tensor *t, const char *call)
{
    if (wk_pending())
        return NULL;
    if (!t) {
        wk_fail(WK_ERR_ARGUMENT, "%s: t: expected a tensor, got NULL", call);
        return NULL;
    }
    return wk_tensor_view(t);
}

static wk_tensor *refuse(wk_tensor *v)
{
    wk_drop(v);
    return NULL;
}

static int dim_of(const wk_tensor *t, int dim, const char *call)
{
    int d = wk_shape_dim(t->rank, dim);
    if (d < 0)
        wk_fail(WK_ERR_PARAM, "%s: dim: expected %d to %d, got %d", call, -t->rank, t->rank - 1, dim);
    return d;
}

wk_tensor *wk_transpose(const wk_tensor *t, int dim0, int dim1)
{
    wk_tensor *v = view_of(t, "transpose");
    if (!v)
        return NULL;
    int a = dim_of(v, dim0, "transpose"), b = dim_of(v, dim1, "transpose");
    if (a < 0 || b < 0)
        return refuse(v);
    v->shape[a] = t->shape[b];
    v->shape[b] = t->shape[a];
    v->strides[a] = t->strides[b];
    v->strides[b] = t->strides[a];
    return v;
}

wk_tensor *wk_permute(const wk_tensor *t, const int *dims)
{
    wk_tensor *v = view_of(t, "permute");
    if (!v)
        return NULL;
    unsigned seen = 0;
    for (int i = 0; i < t->rank; i++) {
        int d = dims ? wk_shape_dim(t->rank, dims[i]) : -1;
        if (d < 0 || (seen >> d & 1)) {
            wk_fail(WK_ERR_PARAM, "permute: dims: expected each of 0 to %d once", t->rank - 1);
            return refuse(v);
        }
        seen |= 1u << d;
        v->shape[i] = t->shape[d];
        v->strides[i] = t->strides[d];
    }
    return v;
}

wk_tensor *wk_narrow(const wk_tensor *t, int dim, int64_t start, int64_t length)
{
    wk_tensor *v = view_of(t, "narrow");
    if (!v)
        return NULL;
    int d = dim_of(v, dim, "narrow");
    if (d < 0)
        return refuse(v);
    if (start < 0 || length < 0 || start > t->shape[d] || length > t->shape[d] - start) {
        wk_fail(WK_ERR_PARAM, "narrow: start and length: expected a part of 0 to %lld, got %lld and %lld",
                (long long)t->shape[d], (long long)start, (long long)length);
        return refuse(v);
    }
    v->shape[d] = length;
    if (wk_count(v) > 0)
        v->offset += start * t->strides[d];
    return v;
}

wk_tensor *wk_broadcast(const wk_tensor *t, int rank, const int64_t *shape)
{
    wk_tensor *v = view_of(t, "broadcast");
    if (!v)
        return NULL;
    int lead = rank - t->rank;
    bool fits = rank <= WK_MAX_RANK && lead >= 0 && (shape || rank == 0) && wk_shape_count(rank, shape) >= 0;
    for (int i = rank - 1; i >= 0 && fits; i--) {
        int64_t from = i < lead ? 1 : t->shape[i - lead];
        fits = from == shape[i] || from == 1;
        v->strides[i] = i >= lead && from == shape[i] ? t->strides[i - lead] : 0;
        v->shape[i] = shape[i];
    }
    if (!fits) {
        wk_shape_text a, b;
        bool readable = shape && rank >= 0 && rank <= WK_MAX_RANK;
        wk_fail(WK_ERR_SHAPE, "broadcast: shape: expected one that %s grows to, got %s",
                wk_shape_str(&a, t->rank, t->shape), wk_shape_str(&b, readable ? rank : 0, shape));
        return refuse(v);
    }
    v->rank = rank;
    return v;
}

wk_tensor *wk_squeeze(const wk_tensor *t, int dim)
{
    wk_tensor *v = view_of(t, "squeeze");
    if (!v)
        return NULL;
    int d = dim_of(v, dim, "squeeze");
    if (d < 0)
        return refuse(v);
    if (t->shape[d] != 1) {
        wk_fail(WK_ERR_SHAPE, "squeeze: dim: expected a dimension of size 1, got %lld",
                (long long)t->shape[d]);
        return refuse(v);
    }
    for (int i = d; i + 1 < t->rank; i++) {
        v->shape[i] = t->shape[i + 1];
        v->strides[i] = t->strides[i + 1];
    }
    v->rank--;
    return v;
}

wk_tensor *wk_unsqueeze(const wk_tensor *t, int dim)
{
    wk_tensor *v = view_of(t, "unsqueeze");
    if (!v)
        return NULL;
    int d = wk_shape_dim(t->rank + 1, dim);
    if (t->rank == WK_MAX_RANK || d < 0) {
        wk_fail(WK_ERR_PARAM, "unsqueeze: dim: expected %d to %d and a rank below %d, got %d", -t->rank - 1,
                t->rank, WK_MAX_RANK, dim);
        return refuse(v);
    }
    for (int i = t->rank; i > d; i--) {
        v->shape[i] = t->shape[i - 1];
        v->strides[i] = t->strides[i - 1];
    }
    v->shape[d] = 1;
    v->strides[d] = d < t->rank ? t->strides[d] * t->shape[d] : 1;
    v->rank++;
    return v;
}

/* Strides that show the elements of v in the new shape without a copy; false when there are none. Both shapes
 * are cut into the smallest runs of dimensions that hold the same number of elements; each run of the old
 * shape must be walked in one go. */
static bool view_strides(const wk_tensor *v, int rank, const int64_t *shape, int64_t *strides)
{
    int64_t old_shape[WK_MAX_RANK], old[1][WK_MAX_RANK];
    memcpy(old_shape, v->shape, sizeof old_shape);
    memcpy(old[0], v->strides, sizeof old[0]);
    int old_rank = wk_shape_coalesce(v->rank, old_shape, 1, old);
    int d = old_rank - 1;
    int64_t left = d >= 0 ? old_shape[d] : 1, step = d >= 0 ? old[0][d] : 1;
    for (int i = rank - 1; i >= 0; i--) {
        strides[i] = step;
        if (shape[i] == 1)
            continue;
        if (left == 1 && d > 0) {
            d--;
            left = old_shape[d];
            strides[i] = step = old[0][d];
        }
        if (left % shape[i])
            return false;
        left /= shape[i];
        step *= shape[i];
    }
    return true;
}

wk_tensor *wk_reshape(const wk_tensor *t, int rank, const int64_t *shape)
{
    if (wk_pending())
        return NULL;
    if (!t || rank < 0 || rank > WK_MAX_RANK || (rank > 0 && !shape)) {
        wk_fail(WK_ERR_ARGUMENT, "reshape: expected a tensor and a shape of rank 0 to %d", WK_MAX_RANK);
        return NULL;
    }
    int64_t want[WK_MAX_RANK], count = wk_count(t), known = 1;
    int open = -1, opens = 0;
    for (int i = 0; i < rank; i++) {
        want[i] = shape[i];
        if (shape[i] == -1) {
            open = i;
            opens++;
        } else if (shape[i] < 0 || __builtin_mul_overflow(known, shape[i], &known)) {
            opens = 2;
        }
    }
    if (opens == 1 && known > 0 && count % known == 0) {
        want[open] = count / known;
        known = count;
    }
    if (opens > 1 || known != count || (opens == 1 && want[open] < 0)) {
        wk_shape_text a, b;
        wk_fail(WK_ERR_SHAPE, "reshape: shape: expected %lld elements, as of %s, got %s", (long long)count,
                wk_shape_str(&a, t->rank, t->shape), wk_shape_str(&b, rank, shape));
        return NULL;
    }
    int64_t strides[WK_MAX_RANK];
    wk_shape_strides(rank, want, strides);
    bool in_place = count == 0 || view_strides(t, rank, want, strides);
    wk_tensor *v = in_place ? wk_tensor_view(t) : wk_copy(t);
    if (!v)
        return NULL;
    v->rank = rank;
    memcpy(v->shape, want, sizeof want);
    memcpy(v->strides, strides, sizeof strides);
    if (!in_place)
        wk_shape_strides(rank, want, v->strides);
    return v;
}

wk_tensor *wk_flatten(const wk_tensor *t, int first, int last)
{
    if (wk_pending())
        return NULL;
    if (!t) {
        wk_fail(WK_ERR_ARGUMENT, "flatten: t: expected a tensor, got NULL");
        return NULL;
    }
    if (t->rank == 0)
        return wk_reshape(t, 1, (int64_t[]){1});
    int a = dim_of(t, first, "flatten"), b = a < 0 ? -1 : dim_of(t, last, "flatten");
    if (b < 0)
        return NULL;
    if (a > b) {
        wk_fail(WK_ERR_PARAM, "flatten: dims: expected first <= last, got %d and %d", first, last);
        return NULL;
    }
    int64_t shape[WK_MAX_RANK];
    int rank = 0;
    for (int i = 0; i < t->rank; i++) {
        if (i > a && i <= b)
            shape[rank - 1] *= t->shape[i];
        else
            shape[rank++] = t->shape[i];
    }
    return wk_reshape(t, rank, shape);
}

const wk_tensor *wk_tensor_packed(const wk_tensor *t) { return wk_is_packed(t) ? t : wk_copy(t); }
