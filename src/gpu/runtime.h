/* runtime.h: the parts of the GPU layer that the op families do not see. */
#ifndef WK_GPU_RUNTIME_H
#define WK_GPU_RUNTIME_H

#include "core/folder.h"
#include "gpu.h"
#include "plan.h"
#include "wick/stream.h"

/* ---- streams: stream.c ---- */

/* Blocks of memory that were freed, by size class. Work that is queued on the pool's stream from now on may use
 * them. */
enum { WK_SIZE_CLASSES = 8 * 36 };
typedef struct {
    void **blocks;
    int n, room;
} wk_block_stack;

struct wk_stream {
    wk_gpu *gpu;
    void *handle;
    bool foreign;      /* not wick's to destroy */
    bool idle;         /* given back: the record waits for the next stream */
    void *event;       /* for others to wait on */
    wk_stream *ran_on; /* of a captured graph: the stream it was last replayed on */
    wk_graph *graph;   /* being captured on it */
    void *blas;        /* the handle of rocBLAS or cuBLAS, made on first use; kept with the record */
    void *blas_on;     /* the stream it works on; NULL: none yet */
    pthread_mutex_t blas_lock;
    void *counters;                  /* see wk_gpu_counters; kept with the record */
    void *dnn;                       /* the same of MIOpen or cuDNN, with what it keeps from call to call */
    void (*dnn_detach)(wk_stream *); /* the stream is about to go: the handle lets go of it */
    pthread_mutex_t dnn_lock;
    wk_block_stack freed[WK_SIZE_CLASSES];
    wk_stream *next;
};

/* A stream of the device's own (handle NULL), or one over a foreign handle. NULL with an error. */
wk_stream *wk_stream_make(wk_gpu *g, void *handle);
/* Makes s wait for all that `earlier` has queued. */
wk_status wk_stream_follow(wk_stream *s, wk_stream *earlier);
/* The thread's stream is about to use the memory; and that work is queued now. */
wk_status wk_gpu_use(wk_storage *s);
wk_status wk_gpu_used(wk_storage *s);
/* graph.c: the same while a graph is captured: it keeps the memory. */
wk_status wk_graph_use(wk_graph *graph, wk_storage *s);

/* ---- memory: memory.c ---- */

wk_status wk_arena_open(wk_gpu *g);
/* Whether freed memory stays with its stream; not with WICK_EXACT_ALLOC=1. */
bool wk_arena_keeps(const wk_gpu *g);
void *wk_arena_alloc(wk_device *d, size_t bytes, void **stream);
void wk_arena_free(wk_device *d, void *data, size_t bytes, void *stream);
void wk_arena_stats(const wk_device *d, wk_memory_stats *stats);
void wk_arena_trim(wk_device *d);
void wk_arena_limit(wk_device *d, uint64_t bytes);
/* Moves a stream's freed blocks to another's; the work of the first is done. */
void wk_arena_move(wk_stream *from, wk_stream *to);

/* ---- copies: transfer.c ---- */

wk_status wk_gpu_upload(wk_device *d, void *dst, const void *host, size_t bytes);
wk_status wk_gpu_download(wk_device *d, void *host, const void *src, size_t bytes);

/* ---- errors found on the device ---- */

/* What kernels left in the mailbox since the last look, as an error of this thread. To be called with the device's
 * work done. */
wk_status wk_gpu_mail(wk_gpu *g);

/* ---- opening: device.c ---- */

/* Fills the record of a driver's device. */
wk_status wk_gpu_open(wk_gpu *g, const wk_driver *driver, int ordinal);

/* ---- kernels: module.c, source.c, cache.c, pack.c ---- */

wk_status wk_modules_open(wk_gpu *g);
/* The first `room` of the instances that were asked for; returns how many there are. */
int wk_modules_list(wk_gpu *g, wk_wanted *list, int room);

/* The text of a kernel file ("softmax.hip", "device.h") and all of them for the compiler; see source.c. */
typedef struct {
    const char *const *names, *const *texts;
    int n;
} wk_kernel_texts;
wk_kernel_texts wk_kernel_sources(void);
/* A number for the text of FILE.hip and everything it includes. */
u64 wk_kernel_hash(const char *file);

/* What an instance is called, as in "softmax_rows<f16,1>". */
typedef struct {
    char text[160];
} wk_kernel_name;
void wk_kernel_name_of(const wk_kernel *k, const wk_instance *i, wk_kernel_name *name);

/* Code objects on disk. The key says all that the code depends on; that of a pack leaves the compiler's version out. */
typedef struct {
    char text[768];
} wk_cache_key;
/* The key of an instance for packs. */
void wk_kernel_key(const char *arch, int wave, const wk_kernel *k, const wk_instance *i, wk_cache_key *key);
/* The code, from wk_alloc; NULL when it is not there or damaged. */
void *wk_cache_read(const char *arch, const char *name, const wk_cache_key *key, size_t *bytes);
/* Keeps it; a full or read-only disk is told to the log and otherwise ignored. */
void wk_cache_write(const char *arch, const char *name, const wk_cache_key *key, const void *code,
                    size_t bytes);

/* The code object of one instance for an architecture, from wk_alloc: out of a pack, out of the cache, or compiled. */
wk_status wk_kernel_code(wk_device_kind kind, const char *arch, int wave, const wk_kernel *k,
                         const wk_instance *i, void **code, size_t *bytes);

/* The driver's function for an instance. */
wk_status wk_gpu_function(wk_gpu *g, const wk_kernel *k, const wk_instance *i, void **function);

/* FNV-1a, for keys and checksums; begins with WK_HASH_START, or goes on from an earlier one. */
#define WK_HASH_START 0xcbf29ce484222325u
static inline u64 wk_hash(u64 h, const void *data, size_t n)
{
    const unsigned char *p = data;
    for (size_t i = 0; i < n; i++)
        h = (h ^ p[i]) * 0x100000001b3;
    return h;
}

#endif
