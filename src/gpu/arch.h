/* arch.h: the architectures kernels can be built for without a GPU, and what one of their compute units has. */
#ifndef WK_GPU_ARCH_H
#define WK_GPU_ARCH_H

#include "core/device.h"
#include "object.h"

typedef struct {
    const char *name; /* "gfx90a", "sm_90" */
    wk_device_kind kind;
    int wave;         /* lanes */
    int units;        /* compute units of a usual device */
    int shared_bytes; /* a block can have, beyond which kernels are not built */
    /* What bounds occupancy. AMD: of a SIMD; NVIDIA: of a multiprocessor. */
    int waves, blocks; /* at most; blocks 0: no bound of its own */
    int registers;     /* of a lane (AMD), of all lanes (NVIDIA) */
    int granule;       /* registers are given in such pieces, to a lane (AMD) or a wave (NVIDIA) */
    int simds;         /* that share unit_shared_bytes */
    int unit_shared_bytes;
} wk_arch;

/* NULL when there is none of that name. */
const wk_arch *wk_arch_find(const char *name);
/* All of them, in order; NULL past the last. */
const wk_arch *wk_arch_at(int i);

/* Waves that run at once on a SIMD (AMD) or blocks on a multiprocessor (NVIDIA), and the most there could be. */
typedef struct {
    int now, most;
} wk_occupancy;
wk_occupancy wk_occupancy_of(const wk_arch *arch, const wk_object_facts *facts, int threads);

#endif
