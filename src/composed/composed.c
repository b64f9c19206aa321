/* composed.c: every family's compositions in one list. */
#include "composed.h"
#include "core/families.h"

const wk_impl *const wk_composed_families[] = {wk_composed_act,
                                               wk_composed_expr,
                                               wk_composed_matmul,
                                               wk_composed_norm,
                                               wk_composed_optim,
                                               wk_composed_rope,
                                               NULL};
