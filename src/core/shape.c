/* shape.c: arithmetic on shapes and strides. */
#include <stdio.h>
#include <string.h>
#include "shape.h"

const char *wk_shape_str(wk_shape_text *buf, int rank, const int64_t *shape)
{
    size_t at = 0, room = sizeof buf->text;
    at += (size_t)snprintf(buf->text, room, "[");
    for (int i = 0; i < rank && at < room; i++)
        at += (size_t)snprintf(buf->text + at, room - at, i ? ",%lld" : "%lld", (long long)shape[i]);
    if (at < room)
        snprintf(buf->text + at, room - at, "]");
    return buf->text;
}

int64_t wk_shape_count(int rank, const int64_t *shape)
{
    int64_t n = 1;
    bool empty = false;
    for (int i = 0; i < rank; i++) {
        if (shape[i] < 0)
            return -1;
        empty |= shape[i] == 0;
    }
    for (int i = 0; i < rank && !empty; i++) {
        if (__builtin_mul_overflow(n, shape[i], &n) || n > INT64_MAX / 8)
            return -1;
    }
    return empty ? 0 : n;
}

void wk_shape_strides(int rank, const int64_t *shape, int64_t *strides)
{
    int64_t step = 1;
    for (int i = rank - 1; i >= 0; i--) {
        strides[i] = step;
        step *= shape[i] > 1 ? shape[i] : 1;
    }
}

bool wk_shape_equal(int rank_a, const int64_t *a, int rank_b, const int64_t *b)
{
    return rank_a == rank_b && (rank_a == 0 || memcmp(a, b, (size_t)rank_a * sizeof *a) == 0);
}

int wk_shape_dim(int rank, int64_t dim)
{
    if (dim < -rank || dim >= rank)
        return -1;
    return (int)(dim < 0 ? dim + rank : dim);
}

bool wk_shape_broadcast(int rank_a, const int64_t *a, int rank_b, const int64_t *b, int *rank, int64_t *shape)
{
    int r = rank_a > rank_b ? rank_a : rank_b;
    for (int i = 0; i < r; i++) {
        int64_t x = i < r - rank_a ? 1 : a[i - (r - rank_a)];
        int64_t y = i < r - rank_b ? 1 : b[i - (r - rank_b)];
        if (x != y && x != 1 && y != 1)
            return false;
        shape[i] = x == 1 ? y : x;
    }
    *rank = r;
    return true;
}

int wk_shape_coalesce(int rank, int64_t *shape, int n, int64_t (*strides)[WK_MAX_RANK])
{
    int r = 0;
    for (int d = 0; d < rank; d++) {
        if (shape[d] == 1)
            continue;
        bool joins = r > 0;
        for (int i = 0; i < n && joins; i++)
            joins = strides[i][r - 1] == strides[i][d] * shape[d];
        if (joins) {
            shape[r - 1] *= shape[d];
        } else {
            shape[r] = shape[d];
            r++;
        }
        for (int i = 0; i < n; i++)
            strides[i][r - 1] = strides[i][d];
    }
    return r;
}
