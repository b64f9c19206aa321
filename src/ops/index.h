/* index.h: what front end and kernels of the indexing ops share. */
#ifndef WK_OPS_INDEX_H
#define WK_OPS_INDEX_H

#include "core/op.h"

typedef struct {
    int64_t dim;
    wk_list input_size; /* of the gradients */
} wk_index_params;

#endif
