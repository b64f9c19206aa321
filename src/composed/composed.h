/* composed.h: ops made of other ops, on any device: what stands behind the fused implementations. */
#ifndef WK_COMPOSED_H
#define WK_COMPOSED_H

#include "core/op.h"

extern const wk_impl wk_composed_act[];
extern const wk_impl wk_composed_expr[];
extern const wk_impl wk_composed_matmul[];
extern const wk_impl wk_composed_norm[];
extern const wk_impl wk_composed_optim[];
extern const wk_impl wk_composed_rope[];

#endif
