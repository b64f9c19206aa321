/* scan.h: what front end and kernels of running sums and sorting share. */
#ifndef WK_OPS_SCAN_H
#define WK_OPS_SCAN_H

#include "core/op.h"

typedef struct {
    int64_t dim, descending, k;
} wk_scan_params;

/* The dim moved to the end: forth[i] is the dim that comes to place i, and back takes it back. */
void wk_scan_dim_last(int rank, int dim, int *forth, int *back);

/* A place for the lines of an output: itself, or a tensor with the dim last. */
wk_tensor *wk_scan_lines(wk_tensor *out, const int *forth, bool is_last);

#endif
