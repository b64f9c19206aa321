/* random.h: dropout's mask, for those who apply it by other means. */
#ifndef WK_GPU_RANDOM_H
#define WK_GPU_RANDOM_H

#include "core/op.h"

/* Writes the mask of a call of dropout, or of its gradient, as `count` bytes of 0 and 1. */
wk_status wk_dropout_mask(const wk_call *c, void *mask, int64_t count);

#endif
