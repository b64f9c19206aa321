/* ref.h: what the reference implementations share. */
#ifndef WK_REF_H
#define WK_REF_H

#include "core/op.h"

extern const wk_impl wk_ref_matmul[];
extern const wk_impl wk_ref_conv[];
extern const wk_impl wk_ref_attention[];
extern const wk_impl wk_ref_rnn[];
extern const wk_impl wk_ref_copy[];
extern const wk_impl wk_ref_index[];
extern const wk_impl wk_ref_scan[];
extern const wk_impl wk_ref_pool[];
extern const wk_impl wk_ref_resample[];
extern const wk_impl wk_ref_norm[];
extern const wk_impl wk_ref_quant[];

/* Element i (row-major) of a tensor in host memory, whatever its layout and dtype. */
double wk_ref_get(const wk_tensor *t, int64_t i);
/* The same for writing; rounds once. */
void wk_ref_set(wk_tensor *t, int64_t i, double v);
/* All elements, row-major: the tensor's own memory or a copy in the call's scope, for loops over each many times. A copy that
 * cannot be made leaves an error pending. */
const double *wk_ref_values(const wk_tensor *t);
/* Element i as an integer, and back: integers wrap. */
int64_t wk_ref_get_int(const wk_tensor *t, int64_t i);
void wk_ref_set_int(wk_tensor *t, int64_t i, int64_t v);
/* Element i of one tensor to place j of another of the same dtype, as it is. */
void wk_ref_move(wk_tensor *to, int64_t j, const wk_tensor *from, int64_t i);

#endif
