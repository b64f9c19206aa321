/* driver.h: what the GPU layer needs of a maker's driver, as one table with three fillings (src/rocm/driver.c,
 * src/cuda/driver.c, and src/gpu/plan.c, which only notes what is asked for). Functions return 0 or the driver's own error code, which `text` puts into words. Handles are
 * untyped: each filling casts them to its own. */
#ifndef WK_GPU_DRIVER_H
#define WK_GPU_DRIVER_H

#include <stdbool.h>
#include <stddef.h>
#include "core/device.h"

/* What kernels and launches have to know of a device. */
typedef struct {
    char name[96];
    char arch[24];    /* "gfx90a", "sm_90": what code objects are built for */
    int wave;         /* lanes */
    int units;        /* compute units, multiprocessors */
    int shared_bytes; /* a block can have */
    size_t memory;    /* bytes in all */
    bool early;       /* kernels may begin before the one ahead is done, see device.h's wait_for_inputs */
} wk_gpu_facts;

typedef struct {
    int registers, shared_bytes, local_bytes; /* local: spilled registers and arrays that are no registers */
} wk_function_facts;

typedef enum { WK_COPY_UP, WK_COPY_DOWN, WK_COPY_WITHIN } wk_copy_way;

typedef struct wk_driver {
    wk_device_kind kind;
    const char *maker; /* "rocm", "cuda" */
    bool plans; /* memory is the host's, and launches are only noted: no library of the maker's may be used */
    int out_of_memory; /* the code of that error */
    const char *(*text)(int code);

    int (*count)(int *n);
    int (*open)(int ordinal, wk_gpu_facts *facts, void **context);
    int (*enter)(void *context); /* makes the device the calling thread's */
    int (*memory)(size_t *free, size_t *total);

    int (*alloc)(void **p, size_t bytes);
    int (*free)(void *p);
    int (*host_alloc)(void **host, void **device, size_t bytes); /* pinned, and seen by the device */
    int (*host_free)(void *host);
    int (*copy)(void *dst, const void *src, size_t bytes, wk_copy_way way, void *stream);
    int (*fill)(void *dst, unsigned char byte, size_t bytes, void *stream);

    int (*stream_new)(void **stream);
    int (*stream_free)(void *stream);
    int (*stream_sync)(void *stream);
    int (*stream_wait)(void *stream, void *event);
    int (*event_new)(void **event, bool timing);
    int (*event_free)(void *event);
    int (*event_record)(void *event, void *stream);
    int (*event_sync)(void *event);
    int (*event_ms)(float *ms, void *from, void *to);

    int (*module_load)(void **module, const void *image);
    int (*module_unload)(void *module);
    int (*module_function)(void **function, void *module, const char *name);
    int (*function_facts)(void *function, wk_function_facts *facts);
    int (*function_shared)(void *function, int bytes); /* more dynamic shared memory than the default */
    /* Clusters of a kernel that is made for them, that run at a time; NULL, or an error: this is not known. Lets them be as
     * large as the device can. */
    int (*clusters)(void *function, unsigned threads, unsigned shared, int *n);
    int (*launch)(void *function, const unsigned grid[3], unsigned threads, unsigned shared, void *stream,
                  void **args);
    /* The same, and the kernel may begin before the one ahead of it is done; for devices whose facts say so. */
    int (*launch_early)(void *function, const unsigned grid[3], unsigned threads, unsigned shared,
                        void *stream, void **args);

    int (*capture_begin)(void *stream);
    int (*capture_end)(void *stream, void **graph);
    int (*graph_build)(void **exec, void *graph);
    int (*graph_launch)(void *exec, void *stream);
    int (*graph_free)(void *graph, void *exec); /* either may be NULL */
} wk_driver;

/* The makers' tables; NULL when the library or a usable device is missing, and then *why says so. Loaded once. */
const wk_driver *wk_rocm_driver(const char **why);
const wk_driver *wk_cuda_driver(const char **why);

#endif
