/* norm.h: what the files of the norms share. norm.c has the family's list and the rows that registers hold,
 * norm_planes.c the longer ones and group norm's gradient, batch_norm.c and lrn.c the others. */
#ifndef WK_GPU_NORM_H
#define WK_GPU_NORM_H

#include "ops/norm.h"
#include "gpu.h"
#include "kernels/norm.h"

wk_status wk_gpu_batch_norm_train(wk_call *c);
wk_status wk_gpu_batch_norm_infer(wk_call *c);
wk_status wk_gpu_batch_norm_backward(wk_call *c);
wk_status wk_gpu_batch_norm_act(wk_call *c);
const char *wk_gpu_batch_norm_act_refuse(const wk_call *c);
wk_status wk_gpu_lrn(wk_call *c);
wk_status wk_gpu_lrn_backward(wk_call *c);

/* layer, rms and group norm by planes. weight and bias: packed, or NULL. */
wk_status wk_gpu_norm_long(const wk_call *c, const wk_group_shape *s, const wk_tensor *weight,
                           const wk_tensor *bias);
wk_status wk_gpu_norm_long_backward(const wk_call *c, const wk_group_shape *s, const wk_tensor *weight);

/* [arrays][parts][columns] of `dtype` to the call's outputs 1 and 2. */
wk_status wk_gpu_norm_sum(const wk_call *c, wk_dtype dtype, const void *parts, i64 n_parts, i64 columns);

/* ---- norm_planes.c, for batch norm ---- */

enum { WK_SUMS_X, WK_SUMS_DY, WK_SUMS_BOTH, WK_SUMS_ROWS };
enum { WK_FINISH_TRAIN, WK_FINISH_BATCH_GRAD, WK_FINISH_ROWS, WK_FINISH_ROWS_GRAD, WK_FINISH_WEIGHTS };

/* Cuts planes into chunks and makes room for their sums. */
wk_status wk_planes_measure(const wk_call *c, norm_planes_args *a, i64 planes, int sums);
/* The same for [rows, columns], down the columns; *strips of them. */
wk_status wk_columns_measure(const wk_call *c, norm_columns_args *a, int sums, i64 *strips);
wk_status wk_norm_finish(const wk_call *c, norm_finish_args *a, int kind);
/* a->count elements; gradient when there is a dy. */
wk_status wk_planes_apply(const wk_call *c, norm_planes_args *a);

static inline wk_divisor wk_divisor_if_small(i64 d)
{
    return wk_divisor_of(d > 0 && d < (i64)1 << 31 ? d : 1);
}

static inline const void *wk_ptr_or_null(const wk_tensor *t) { return t ? wk_ptr(t) : NULL; }

/* The elements of 16 bytes where all pointers lie on 16 bytes (NULL does) and `multiple`, of sizes and steps or-ed
 * together, is a multiple of that; else 1. */
static inline int wk_pack_width(wk_dtype dtype, i64 multiple, const void *const *pointers, int n)
{
    int vec = (int)(16 / wk_bytes(dtype));
    for (int i = 0; i < n; i++) {
        if ((size_t)pointers[i] % 16)
            return 1;
    }
    return multiple % vec ? 1 : vec;
}

#endif
