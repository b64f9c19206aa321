/* optim.h: what front end and kernels of the optimizer steps share. AdamW's parameters are wk_adamw_options. */
#ifndef WK_OPS_OPTIM_H
#define WK_OPS_OPTIM_H

#include "core/op.h"

typedef struct {
    double lr, momentum, weight_decay;
} wk_sgd_params;

#endif
