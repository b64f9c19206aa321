/* optim.h: what front end and kernels of the optimizer steps share. AdamW's parameters are wk_adamw_options. */
#ifndef WK_OPS_OPTIM_H
#define WK_OPS_OPTIM_H

#include "core/op.h"

typedef struct {
    double lr, momentum, weight_decay;
} wk_sgd_params;

/* Tensors of each step in the tail of the list ops: param, grad and, with momentum, momentum; param, grad, m, v. */
int wk_step_tensors(const wk_op *op, const void *params);

#endif
