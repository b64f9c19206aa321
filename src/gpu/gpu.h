/* gpu.h: what AMD and NVIDIA devices share, as the op families see it: the device, kernels and their launch.
 *
 * A family's src/gpu/FAMILY.c fills a struct of arguments and launches an instance of a kernel of
 * src/gpu/kernels/FAMILY.hip; the struct is declared in src/gpu/kernels/FAMILY.h, which both include. */
#ifndef WK_GPU_GPU_H
#define WK_GPU_GPU_H

#include <pthread.h>
#include "core/op.h"
#include "driver.h"
#include "kernels/types.h"
#include "wick/stream.h"

typedef struct wk_gpu {
    wk_device base; /* first: a wk_device * of a GPU is a wk_gpu * */
    const wk_driver *driver;
    int ordinal;
    void *context;
    wk_gpu_facts facts;
    pthread_mutex_t lock;       /* of what follows */
    struct wk_arena *arena;     /* memory.c */
    struct wk_modules *modules; /* module.c */
    wk_stream *stream;          /* the default one */
    wk_stream *streams;         /* all of them */
    wk_mailbox *mailbox, *mailbox_on_device;
    struct wk_staging *staging; /* copy.c: pinned memory on the way between host and device */
    int blas_state; /* 0: not looked for yet; 1: the library serves this device; -1: it does not */
} wk_gpu;

static inline wk_gpu *wk_gpu_of(const wk_device *d) { return (wk_gpu *)d; }

/* A GPU by its number among all found; NULL past the last. Opened on first use. */
wk_device *wk_gpu_at(int i);
/* Why a device of that name's maker ("rocm:0") is not there; NULL when there is no reason to tell. */
const char *wk_gpu_missing(const char *name);

/* Fails with the driver's words in front of which `doing` stands: "launching softmax_rows". */
wk_status wk_gpu_fail(const wk_gpu *g, int code, const char *doing);

/* ---- kernels ---- */

/* A kernel: a template in a file of src/gpu/kernels. Its parameters are, in this order, a formula (a type named in
 * the instance, when `formula`), dtypes and small integers. */
typedef struct {
    const char *file, *name, *args; /* "softmax", "softmax_rows", "softmax_args" */
    int threads;                    /* the most a block of it has */
    bool formula;
    int types, ints;
    bool exact; /* no product may be fused with a sum */
    /* Blocks that share a unit on NVIDIA, at least: bounds the registers. 0: the compiler's choice, which may be to spill
     * some for more blocks at once. */
    int blocks;
    bool clusters; /* the last integer is the number of blocks of a cluster; `blocks` is set */
} wk_kernel;

/* Which instance. Unused fields must be zero. */
typedef struct {
    /* A literal: compared by address. One that is made at run time (expr.c) is its name, a line's end and its
     * definition, and is never freed. */
    const char *formula;
    unsigned char t[8]; /* wk_dtype */
    short i[8];
} wk_instance;
#define WK_INSTANCE(...) (&(wk_instance){__VA_ARGS__})

typedef struct {
    i64 x, y, z; /* blocks; 0 in y or z counts as 1. x may be any number: kernels that ask for more than
                      * WK_GRID_MAX blocks loop */
    int threads; /* of a block; 0: the kernel's most */
    int shared;  /* dynamic shared memory in bytes */
} wk_grid;
enum { WK_GRID_MAX = 1 << 20 };

/* Launches on the thread's stream of the call's device; no block, no launch. */
wk_status wk_gpu_launch(const wk_call *c, const wk_kernel *kernel, const wk_instance *instance, wk_grid grid,
                        const void *args);
#define WK_LAUNCH(c, kernel, instance, grid, args) wk_gpu_launch(c, kernel, instance, grid, &(args))

/* Blocks for n items, `per_block` each, at most `most` (a grid-stride loop does the rest). */
static inline i64 wk_blocks(i64 n, i64 per_block, i64 most)
{
    i64 blocks = (n + per_block - 1) / per_block;
    return blocks < most ? blocks : most;
}

/* How the registers of one block, or of a cluster of blocks (kernels/cluster.h), keep a line as it lies in memory: packs of 16
 * bytes to a thread. No blocks: it is too long. */
enum { WK_KEPT_THREADS = 512 }; /* of a block, at most */
typedef struct {
    short packs, threads, blocks;
    short lines; /* in shared memory, of a cluster's (wk_gpu_ahead) */
} wk_kept_form;
wk_kept_form wk_gpu_kept(const wk_call *c, i64 bytes);
/* The grid of a kernel that keeps so many lines. */
static inline wk_grid wk_kept_grid(const wk_kept_form *f, i64 lines)
{
    return (wk_grid){.x = wk_blocks(lines, 1, WK_GRID_MAX / f->blocks) * f->blocks, .threads = f->threads};
}

/* The same for lines of a cluster each, more than a block keeps, on their way to shared memory (kernels/ahead.h), which has
 * room for so many of them: blocks have as many threads as the kernel's may, of so many packs at most, and share a unit as its
 * record says. No blocks: lines are too short or too long, or the device has no clusters. */
wk_kept_form wk_gpu_ahead(const wk_call *c, const wk_kernel *kernel, int packs, int room, i64 bytes);
/* Launches a kernel for so many of them: a cluster for each, or, where there is room for several, as many as run at a time. */
wk_status wk_gpu_launch_ahead(const wk_call *c, const wk_kernel *kernel, const wk_instance *instance,
                              const wk_kept_form *form, i64 lines, const void *args);

wk_divisor wk_divisor_of(i64 d);
/* Whether a kernel needs 64-bit indices for n places. WICK_WIDE_INDEX=1 says so of any number: how tests reach such kernels
 * without 2^31 elements. */
bool wk_gpu_wide(i64 n);
/* For a kernel that checks indices: input `slot` of the call. */
wk_report wk_report_of(const wk_call *c, int slot);

/* Counters on the device that are 0 before and after every kernel of the thread's stream, WK_GPU_COUNTERS of them: for blocks
 * that share a result, see last_of in kernels/device.h. */
enum { WK_GPU_COUNTERS = 1024 };
u32 *wk_gpu_counters(const wk_call *c);

/* Zeroes device memory on the thread's stream. */
wk_status wk_gpu_zero(const wk_call *c, void *p, size_t bytes);

/* ---- streams ---- */

/* The calling thread's stream on this device: the one pushed last, else the device's own. */
wk_stream *wk_gpu_stream(const wk_gpu *g);
void *wk_gpu_stream_handle(const wk_gpu *g);
/* How many there are now. */
int wk_gpu_stream_count(wk_gpu *g);

#endif
