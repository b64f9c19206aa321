/* ids.h: what kernels are told of ids. */
#ifndef WK_GPU_IDS_H
#define WK_GPU_IDS_H

#include "core/dtype.h"

/* The size of an id, negative when it is signed: what load_id of kernels/ids.h takes. */
static inline int wk_id_bytes(wk_dtype d) { return d == WK_U8 ? 1 : d == WK_U32 ? 4 : d == WK_I32 ? -4 : -8; }

#endif
