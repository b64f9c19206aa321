/* ref.h: what the reference implementations share. */
#ifndef WK_REF_H
#define WK_REF_H

#include "core/op.h"

extern const wk_impl wk_ref_matmul[];
extern const wk_impl wk_ref_conv[];
extern const wk_impl wk_ref_attention[];
extern const wk_impl wk_ref_rnn[];

/* Element i (row-major) of a tensor in host memory, whatever its layout and dtype. */
double wk_ref_get(const wk_tensor *t, int64_t i);
/* Element i of a packed tensor; rounds once. */
void wk_ref_set(wk_tensor *t, int64_t i, double v);

#endif
