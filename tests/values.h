/* values.h: small tensors for tests, and a look at their elements. */
#ifndef WK_TESTS_VALUES_H
#define WK_TESTS_VALUES_H

#include <stdlib.h>
#include "core/tensor.h"
#include "test.h"
#include "wick/ops.h"

/* A shape or a list of dims, with its rank in front: SHAPE(2, 3) is `2, (int64_t[]){2, 3}`. */
#define SHAPE(...) \
    (int)(sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t)), (int64_t[]) { __VA_ARGS__ }
#define SCALAR 0, NULL

/* 0, 1, 2, ... in the shape. */
static inline wk_tensor *counting(wk_dtype dtype, int rank, const int64_t *shape)
{
    wk_tensor *t = wk_empty(wk_cpu(), dtype, rank, shape);
    for (int64_t i = 0; t && i < wk_count(t); i++)
        wk_store_f64(dtype, (char *)wk_data(t) + (size_t)i * wk_dtype_size(dtype), (double)i);
    return t;
}

/* The elements in order as doubles, by wk_to_host; the caller frees them. NULL when that fails. */
static inline double *elements(const wk_tensor *t)
{
    int64_t n = wk_count(t);
    size_t bytes = wk_dtype_size(wk_dtype_of(t));
    char *raw = malloc((size_t)n * bytes + 1);
    double *v = malloc((size_t)(n + 1) * sizeof *v);
    if (!t || !raw || !v || wk_to_host(t, raw) != WK_OK) {
        free(v);
        v = NULL;
    }
    for (int64_t i = 0; v && i < n; i++)
        v[i] = wk_load_f64(wk_dtype_of(t), raw + (size_t)i * bytes);
    free(raw);
    return v;
}

/* Whether t has exactly these elements. */
static inline bool holds(const wk_tensor *t, int n, const double *want)
{
    double *v = t ? elements(t) : NULL;
    bool same = v && wk_count(t) == n;
    for (int i = 0; same && i < n; i++)
        same = v[i] == want[i] || (v[i] != v[i] && want[i] != want[i]);
    free(v);
    return same;
}
#define HOLDS(t, ...) \
    holds((t), (int)(sizeof((double[]){__VA_ARGS__}) / sizeof(double)), (double[]){__VA_ARGS__})

static inline bool same_elements(const wk_tensor *a, const wk_tensor *b)
{
    double *v = b ? elements(b) : NULL;
    bool same = v && holds(a, (int)wk_count(b), v);
    free(v);
    return same;
}

static inline bool has_shape(const wk_tensor *t, int rank, const int64_t *shape)
{
    return t && wk_shape_equal(t->rank, t->shape, rank, shape);
}

#endif
