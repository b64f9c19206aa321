/* device.h: what a device is to the core: memory, copies, waiting. The ops are in the op table. */
#ifndef WK_CORE_DEVICE_H
#define WK_CORE_DEVICE_H

#include <stdbool.h>
#include "wick/core.h"

typedef enum { WK_KIND_CPU, WK_KIND_ROCM, WK_KIND_CUDA, WK_KIND_COUNT } wk_device_kind;

struct wk_storage;
struct wk_call;

/* A backend is this table; every function records its own error. */
typedef struct {
    /* NULL when there is none; the caller says for what. *stream: whose work may use it at once (NULL: any). */
    void *(*alloc)(wk_device *, size_t bytes, void **stream);
    void (*free)(wk_device *, void *data, size_t bytes, void *stream);
    wk_status (*upload)(wk_device *, void *dst, const void *host, size_t bytes);
    wk_status (*download)(wk_device *, void *host, const void *src, size_t bytes);
    wk_status (*sync)(wk_device *);
    /* Work on the calling thread's stream is about to use the memory, and is queued now; NULL on the CPU. */
    wk_status (*use)(struct wk_storage *);
    wk_status (*used)(struct wk_storage *);
    /* NULL on the CPU, all three: what the GPU is ("gfx90a", "sm_90"), the version of the library behind an
     * implementation ("" where it is not known), whether the thread's calls are being captured, not run. */
    const char *(*arch)(const wk_device *);
    const char *(*library)(const wk_device *, const char *impl);
    bool (*capturing)(wk_device *);
    /* The ways c->impl has for the call beside its usual one, best first, that need no larger workspace: numbers for
     * c->variant. May search for long. NULL on the CPU. */
    int (*variants)(struct wk_call *c, size_t workspace, uint64_t *list, int room);
    void (*stats)(const wk_device *, wk_memory_stats *);
    void (*trim)(wk_device *);
    void (*limit)(wk_device *, uint64_t bytes);
} wk_device_table;

struct wk_device {
    wk_device_kind kind;
    char name[16];
    char description[160];
    const wk_device_table *table;
};

/* The CPU, always there. */
wk_device *wk_cpu(void);

#endif
