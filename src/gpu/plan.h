/* plan.h: which kernels an architecture needs, found out without a GPU.
 *
 * A planning device takes every op. Its memory is host memory and its launches do nothing but note the kernel's
 * instance, so that running the samples of all ops on it gives the set of instances they need. Its driver is the third
 * filling of the table in driver.h. */
#ifndef WK_GPU_PLAN_H
#define WK_GPU_PLAN_H

#include "arch.h"
#include "gpu.h"

/* NULL with an error. It lives until the process ends. */
wk_device *wk_plan_open(const wk_arch *arch);

typedef struct {
    const wk_kernel *kernel;
    const wk_instance *instance;
} wk_wanted;
/* Instances that were asked for on a device so far, in the order of their names; their number to n. From wk_alloc; NULL
 * with an error. */
wk_wanted *wk_plan_wanted(wk_device *device, int *n);

#endif
