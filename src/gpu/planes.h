/* planes.h: kernels over planes [n, c, h, w]: pooling and resampling. */
#ifndef WK_GPU_PLANES_H
#define WK_GPU_PLANES_H

#include "gpu.h"
#include "kernels/planes.h"

/* t as planes of h x w (flat: of one row w); copied where its rows are not walked by one. */
wk_status wk_planes_view(const wk_tensor *t, bool flat, plane_view *v);
/* Channels of t as wk_planes_view takes it. */
wk_divisor wk_planes_channels(const wk_tensor *t, bool flat);

/* Rows that a thread takes, for `threads` of one row each: more than one where there are threads enough. */
i32 wk_planes_rows(int64_t threads, int64_t high);

/* Launches for all planes of high x wide items, each with less than 2^31 items. `lanes` threads work on an item;
 * args is the kernel's struct and walk, in it, is filled here but for channels and rows. */
wk_status wk_planes_run(const wk_call *c, const wk_kernel *k, const wk_instance *instance, const void *args,
                        plane_walk *walk, const int64_t size[3], int lanes);

#endif
