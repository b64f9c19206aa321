/* pad.h: pad, tril, triu and one_hot on the GPU; in the table of copy.c. */
#ifndef WK_GPU_PAD_H
#define WK_GPU_PAD_H

#include "gpu.h"

wk_status wk_gpu_pad(wk_call *c);
wk_status wk_gpu_triangle(wk_call *c); /* the implementation's data is not NULL: the upper one */
wk_status wk_gpu_one_hot(wk_call *c);

#endif
