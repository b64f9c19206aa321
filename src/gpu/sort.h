/* sort.h: sorting on the GPU, as the list of the scan family has it. */
#ifndef WK_GPU_SORT_H
#define WK_GPU_SORT_H

#include "core/op.h"

wk_status wk_gpu_run_sort(wk_call *c);
wk_status wk_gpu_run_argsort(wk_call *c);
wk_status wk_gpu_run_topk(wk_call *c);

#endif
