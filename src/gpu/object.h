/* object.h: what a compiled kernel needs, read from its code object without a device. */
#ifndef WK_GPU_OBJECT_H
#define WK_GPU_OBJECT_H

#include <stdbool.h>
#include <stddef.h>

typedef struct {
    int registers;        /* of a lane */
    int scalar_registers; /* of a wave; AMD alone */
    int shared_bytes;     /* of a block */
    int scratch_bytes;    /* of a lane, in memory: spilled registers and arrays that are no registers */
    int spills;           /* AMD: registers; NVIDIA: instructions that store or load them */
} wk_object_facts;

/* Of the one kernel in an AMD code object or a cubin; false when it is neither or damaged. */
bool wk_object_facts_of(const void *code, size_t bytes, wk_object_facts *facts);

#endif
