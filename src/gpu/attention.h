/* attention.h: what the files of attention share. attention.c has the family's list, attention_joint.c the gradients in one pass. */
#ifndef WK_GPU_ATTENTION_H
#define WK_GPU_ATTENTION_H

#include "gpu.h"
#include "kernels/attention.h"

/* All gradients in one pass (kernels/attention_joint_grad.hip), of a call without mask and cap. y: the result of the forward. */
bool wk_gpu_joint_takes(const wk_call *c, const attn_args *a, const attn_view *y);
wk_status wk_gpu_joint_gradients(const wk_call *c, const attn_args *a, attn_view y);
/* Whether the kernels make the gradients so. */
bool wk_gpu_sdpa_backward_is_joint(const wk_call *c);

#endif
