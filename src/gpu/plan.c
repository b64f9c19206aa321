/* plan.c: the planning device. */
#include <stdio.h>
#include <stdlib.h>
#include "core/memory.h"
#include "plan.h"
#include "runtime.h"

/* ---- a driver that computes nothing ---- */

enum { NO_MEMORY = 1, NOT_HERE };

static const char *text(int code) { return code == NO_MEMORY ? "out of memory" : "not on a planning device"; }

static int count(int *n)
{
    *n = 0;
    for (; wk_arch_at(*n); ++*n) {
    }
    return 0;
}

/* The ordinal is the architecture's place in the table. */
static int open_arch(int ordinal, wk_gpu_facts *f, void **context)
{
    const wk_arch *arch = wk_arch_at(ordinal);
    if (!arch)
        return NOT_HERE;
    *f = (wk_gpu_facts){.wave = arch->wave,
                        .units = arch->units,
                        .shared_bytes = arch->shared_bytes,
                        .memory = (size_t)1 << 36};
    snprintf(f->name, sizeof f->name, "planning for %s", arch->name);
    snprintf(f->arch, sizeof f->arch, "%s", arch->name);
    *context = (void *)arch;
    return 0;
}

static int enter(void *context)
{
    (void)context;
    return 0;
}

static int memory(size_t *free, size_t *total)
{
    *free = *total = (size_t)1 << 36;
    return 0;
}

/* Aligned like a device's, since kernels are chosen by alignment. */
static int alloc(void **p, size_t bytes) { return posix_memalign(p, 256, bytes) == 0 ? 0 : NO_MEMORY; }

static int release(void *p)
{
    free(p);
    return 0;
}

static int host_alloc(void **host, void **device, size_t bytes)
{
    int code = alloc(host, bytes);
    *device = *host;
    return code;
}

static int copy(void *dst, const void *src, size_t bytes, wk_copy_way way, void *stream)
{
    (void)way, (void)stream;
    memmove(dst, src, bytes);
    return 0;
}

static int fill(void *dst, unsigned char byte, size_t bytes, void *stream)
{
    (void)stream;
    memset(dst, byte, bytes);
    return 0;
}

/* Streams and events are but names: everything is done at once. */
static char a_name;
static int name_new(void **name)
{
    *name = &a_name;
    return 0;
}
static int event_new(void **event, bool timing)
{
    (void)timing;
    return name_new(event);
}
static int nothing(void *name)
{
    (void)name;
    return 0;
}
static int nothing2(void *a, void *b)
{
    (void)a, (void)b;
    return 0;
}
static int event_ms(float *ms, void *from, void *to)
{
    (void)from, (void)to;
    *ms = 0;
    return 0;
}

static int function_shared(void *function, int bytes)
{
    (void)function, (void)bytes;
    return 0;
}

static int launch(void *function, const unsigned grid[3], unsigned threads, unsigned shared, void *stream,
                  void **args)
{
    (void)function, (void)grid, (void)threads, (void)shared, (void)stream, (void)args;
    return 0;
}

static int no_capture(void *stream)
{
    (void)stream;
    return NOT_HERE;
}

#define DRIVER(kind_, maker_) \
    { \
        .kind = kind_, .maker = maker_, .plans = true, .out_of_memory = NO_MEMORY, .text = text, \
        .count = count, .open = open_arch, .enter = enter, .memory = memory, .alloc = alloc, \
        .free = release, .host_alloc = host_alloc, .host_free = release, .copy = copy, .fill = fill, \
        .stream_new = name_new, .stream_free = nothing, .stream_sync = nothing, .stream_wait = nothing2, \
        .event_new = event_new, .event_free = nothing, .event_record = nothing2, .event_sync = nothing, \
        .event_ms = event_ms, .function_shared = function_shared, .launch = launch, \
        .capture_begin = no_capture \
    }
static const wk_driver amd = DRIVER(WK_KIND_ROCM, "rocm"), nvidia = DRIVER(WK_KIND_CUDA, "cuda");

/* ---- the device ---- */

/* Devices are never closed; these are kept where checkers of leaks see them. */
typedef struct planned {
    wk_gpu gpu;
    struct planned *next;
} planned;
static _Atomic(planned *) all_planned;

wk_device *wk_plan_open(const wk_arch *arch)
{
    int ordinal = 0;
    while (wk_arch_at(ordinal) != arch)
        ordinal++;
    planned *p = wk_alloc(sizeof *p);
    if (!p) {
        wk_fail(WK_ERR_MEMORY, "out of memory planning for %s", arch->name);
        return NULL;
    }
    if (wk_gpu_open(&p->gpu, arch->kind == WK_KIND_ROCM ? &amd : &nvidia, ordinal) != WK_OK) {
        wk_free(p);
        return NULL;
    }
    p->next = atomic_load(&all_planned);
    while (!atomic_compare_exchange_weak(&all_planned, &p->next, p)) {
    }
    return &p->gpu.base;
}

static int by_name(const void *a, const void *b)
{
    const wk_wanted *x = a, *y = b;
    wk_kernel_name name_x, name_y;
    int files = strcmp(x->kernel->file, y->kernel->file);
    wk_kernel_name_of(x->kernel, x->instance, &name_x);
    wk_kernel_name_of(y->kernel, y->instance, &name_y);
    return files ? files : strcmp(name_x.text, name_y.text);
}

/* Two kernels of one name in two places of the source are one. */
static int without_doubles(wk_wanted *list, int n)
{
    int kept = 0;
    for (int i = 0; i < n; i++) {
        if (kept == 0 || by_name(&list[kept - 1], &list[i]) != 0)
            list[kept++] = list[i];
    }
    return kept;
}

wk_wanted *wk_plan_wanted(wk_device *device, int *n)
{
    wk_gpu *g = wk_gpu_of(device);
    *n = wk_modules_list(g, NULL, 0);
    wk_wanted *list = wk_alloc((size_t)(*n ? *n : 1) * sizeof *list);
    if (!list) {
        wk_fail(WK_ERR_MEMORY, "out of memory for the list of %d kernels", *n);
        return NULL;
    }
    wk_modules_list(g, list, *n);
    qsort(list, (size_t)*n, sizeof *list, by_name);
    *n = without_doubles(list, *n);
    return list;
}
