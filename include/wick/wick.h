/* wick.h: neural-network ops on AMD GPUs, NVIDIA GPUs and the CPU, from C.
 *
 *     wk_device *gpu = wk_device_open("auto");
 *     wk_tensor *x = wk_from_host(gpu, WK_F32, 2, (int64_t[]){2, 3}, data);
 *     wk_tensor *y = wk_softmax(x, 1, (int64_t[]){-1}, WK_SOFTMAX_ACCURATE);
 *     if (wk_to_host(y, result) != WK_OK)
 *         fprintf(stderr, "%s\n", wk_error());
 *
 * Compiles as C99, C11 and C++. */
#ifndef WICK_WICK_H
#define WICK_WICK_H

#include "core.h"
#include "io.h"
#include "ops.h"
#include "stream.h"

#endif
