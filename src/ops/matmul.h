/* matmul.h: what front end and kernels of the matrix products share. */
#ifndef WK_OPS_MATMUL_H
#define WK_OPS_MATMUL_H

#include "core/op.h"

typedef struct {
    int64_t act; /* wk_activation */
} wk_linear_params;

typedef struct {
    double eps;
    int64_t gated;
} wk_norm_linear_params;

/* The two operands as batches of matrices: vectors get the dimension they lack, leading dimensions those of the
 * result. */
typedef struct {
    int64_t m, n, k;
    int rank;                  /* of the leading dimensions */
    int64_t lead[WK_MAX_RANK]; /* of the result */
    wk_tensor a, b;            /* views: leading dimensions broadcast (stride 0), then the matrix */
} wk_matmul_shape;

/* Works it out; fails when the shapes do not fit. */
wk_status wk_matmul_shapes(const wk_call *c, const wk_tensor *a, const wk_tensor *b, wk_matmul_shape *s);

/* t, packed, seen as [lead.., rows, cols]. */
wk_tensor wk_matmul_result(const wk_tensor *t, const wk_matmul_shape *s, int64_t rows, int64_t cols);

/* The view with its last two dimensions exchanged. */
wk_tensor wk_flipped(const wk_tensor *t);

/* The leading dimensions of t joined with its rows: one tall matrix, where its layout allows that. */
bool wk_join_rows(wk_tensor *t);

/* Where b is the same for the whole batch, the batch is one product with a tall a: the three become matrices if their
 * layouts allow it. */
void wk_join_batch(wk_tensor *a, wk_tensor *b, wk_tensor *y);

/* t as a matrix of rows of its last dimension; copied where its layout has no such view. */
wk_status wk_as_rows(const wk_tensor *t, wk_tensor *rows);

#endif
