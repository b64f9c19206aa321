/* matmul.h: what front end and kernels of the matrix products share. */
#ifndef WK_OPS_MATMUL_H
#define WK_OPS_MATMUL_H

#include "core/op.h"

typedef struct {
    int64_t act; /* wk_activation */
} wk_linear_params;

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

#endif
