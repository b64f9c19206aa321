/* scan.h: what front end and kernels of running sums and sorting share. */
#ifndef WK_OPS_SCAN_H
#define WK_OPS_SCAN_H

#include "core/op.h"

typedef struct {
    int64_t dim, descending, k;
} wk_scan_params;

#endif
