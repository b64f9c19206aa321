/* loss.h: what front end and kernels of the losses share. */
#ifndef WK_OPS_LOSS_H
#define WK_OPS_LOSS_H

#include "core/op.h"

typedef struct {
    int64_t reduction; /* wk_loss_reduction */
    double delta;      /* of huber_loss */
} wk_loss_params;

#endif
