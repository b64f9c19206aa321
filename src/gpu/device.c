/* device.c: GPUs as devices of the core. */
#include <stdio.h>
#include <stdlib.h>
#include "core/memory.h"
#include "cuda/cuda_libs.h"
#include "families.h"
#include "library.h"
#include "rocm/rocm.h"
#include "runtime.h"

wk_status wk_gpu_fail(const wk_gpu *g, int code, const char *doing)
{
    return wk_fail(code == g->driver->out_of_memory ? WK_ERR_MEMORY : WK_ERR_DEVICE, "%s: %s: %s (error %d)",
                   g->base.name, doing, g->driver->text(code), code);
}

/* ---- what only the data shows ---- */

wk_status wk_gpu_mail(wk_gpu *g)
{
    volatile wk_mailbox *m = g->mailbox;
    u64 what = m->what;
    if (!what)
        return WK_OK;
    i64 value = m->value, limit = (i64)(what >> 16);
    m->what = 0;
    const wk_op *op = wk_op_at((int)(what >> 4 & 0xFFF));
    int slot = (int)(what & 15) - 1;
    if (!op)
        return wk_fail(WK_ERR_INTERNAL, "%s: a kernel left an error of no op", g->base.name);
    if (strcmp(op->name, "div") == 0)
        return wk_fail(WK_ERR_INDEX, "%s: %s: integer division by zero", op->name, op->in[slot].name);
    const char *name = op->in[slot].name;
    const char *kind = strstr(name, "cu_seqlens") ? "numbers that go up"
                       : strstr(name, "lengths")  ? "lengths"
                                                  : "indices";
    return wk_fail(WK_ERR_INDEX, "%s: %s: expected %s from 0 to %lld, got %lld", op->name, name, kind,
                   (long long)limit - 1, (long long)value);
}

wk_report wk_report_of(const wk_call *c, int slot)
{
    return (wk_report){wk_gpu_of(c->device)->mailbox_on_device, c->op->number, slot};
}

static wk_status sync(wk_device *d)
{
    wk_gpu *g = wk_gpu_of(d);
    int code = g->driver->enter(g->context);
    if (code == 0 && wk_gpu_stream(g)->graph)
        return wk_fail(WK_ERR_ARGUMENT, "sync: a graph is being captured: end it first");
    pthread_mutex_lock(&g->lock);
    for (wk_stream *s = g->streams; s && code == 0; s = s->next) {
        if (!s->idle && !s->graph)
            code = g->driver->stream_sync(s->handle);
    }
    pthread_mutex_unlock(&g->lock);
    return code ? wk_gpu_fail(g, code, "waiting for the device") : wk_gpu_mail(g);
}

static const char *arch_of(const wk_device *d) { return wk_gpu_of(d)->facts.arch; }

static const char *library_of(const wk_device *d, const char *impl)
{
    (void)d;
    return wk_library_version(impl);
}

static bool capturing(wk_device *d) { return wk_gpu_stream(wk_gpu_of(d))->graph != NULL; }

static const wk_device_table gpu_table = {
    .alloc = wk_arena_alloc,
    .free = wk_arena_free,
    .upload = wk_gpu_upload,
    .download = wk_gpu_download,
    .sync = sync,
    .use = wk_gpu_use,
    .used = wk_gpu_used,
    .arch = arch_of,
    .library = library_of,
    .capturing = capturing,
    .variants = wk_gpu_variants,
    .stats = wk_arena_stats,
    .trim = wk_arena_trim,
    .limit = wk_arena_limit,
};

/* ---- opening ---- */

static wk_status open_mailbox(wk_gpu *g)
{
    int code =
        g->driver->host_alloc((void **)&g->mailbox, (void **)&g->mailbox_on_device, sizeof *g->mailbox);
    if (code)
        return wk_gpu_fail(g, code, "allocating pinned memory");
    *g->mailbox = (wk_mailbox){0};
    return WK_OK;
}

enum { OLDEST_SM = 80 }; /* of those whose instructions NVIDIA's side of the kernels has */

wk_status wk_gpu_open(wk_gpu *g, const wk_driver *driver, int ordinal)
{
    wk_gpu_facts f = {0};
    *g = (wk_gpu){.base = {.kind = driver->kind, .table = &gpu_table}, .driver = driver, .ordinal = ordinal};
    snprintf(g->base.name, sizeof g->base.name, "%s:%d", driver->maker, ordinal);
    pthread_mutex_init(&g->lock, NULL);
    int code = g->driver->open(g->ordinal, &f, &g->context);
    if (code == 0)
        code = g->driver->enter(g->context);
    if (code)
        return wk_gpu_fail(g, code, "opening the device");
    if (driver->kind == WK_KIND_CUDA && atoi(f.arch + strlen("sm_")) < OLDEST_SM)
        return wk_fail(WK_ERR_DEVICE, "%s: %s is %s, expected sm_%d or newer", g->base.name, f.name, f.arch,
                       OLDEST_SM);
    snprintf(g->base.description, sizeof g->base.description, "%s, %s, %d units of %d lanes, %.1f GiB",
             f.name, f.arch, f.units, f.wave, (double)f.memory / 0x1p30);
    g->facts = f;
    WK_TRY(wk_arena_open(g));
    WK_TRY(wk_modules_open(g));
    WK_TRY(open_mailbox(g));
    g->stream = wk_stream_make(g, NULL);
    return g->stream ? WK_OK : wk_error_status();
}

/* ---- the list ---- */

enum { MAX_GPUS = 32 };
static wk_gpu gpus[MAX_GPUS];
static int gpu_count;
static char missing[WK_KIND_COUNT][640];

/* A device that cannot be opened is left out, and the log told: the others and the CPU work on. */
static void add_maker(const wk_driver *driver)
{
    int n = 0;
    if (driver->count(&n) != 0)
        return;
    for (int i = 0; i < n && gpu_count < MAX_GPUS; i++) {
        wk_gpu *g = &gpus[gpu_count];
        if (wk_gpu_open(g, driver, i) == WK_OK) {
            gpu_count++;
            continue;
        }
        wk_say("%s is left out: %s", g->base.name, wk_error());
        snprintf(missing[driver->kind], sizeof missing[0], "%s", wk_error());
        wk_error_clear();
    }
}

static void note_missing(wk_device_kind kind, const wk_library *l, const char *why)
{
    snprintf(missing[kind], sizeof missing[kind], "%s: %s%s%s", l->name, why,
             l->handle ? "" : "; it comes with ", l->handle ? "" : l->package);
}

static void find_all(void)
{
    const char *why, *only = getenv("WICK_DEVICES"); /* "rocm", "cuda" or "cpu": look for no others */
    if (only && strcmp(only, "cpu") == 0)
        return;
    const wk_driver *driver = only && strcmp(only, "cuda") == 0 ? NULL : wk_rocm_driver(&why);
    if (driver)
        add_maker(driver);
    else if (!only || strcmp(only, "rocm") == 0)
        note_missing(WK_KIND_ROCM, &wk_lib_hip, why);
    driver = only && strcmp(only, "rocm") == 0 ? NULL : wk_cuda_driver(&why);
    if (driver)
        add_maker(driver);
    else if (!only || strcmp(only, "cuda") == 0)
        note_missing(WK_KIND_CUDA, &wk_lib_cuda, why);
}

static void find_once(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, find_all);
}

wk_device *wk_gpu_at(int i)
{
    find_once();
    return i < gpu_count ? &gpus[i].base : NULL;
}

const char *wk_gpu_missing(const char *name)
{
    find_once();
    wk_device_kind kind = strncmp(name, "cuda", 4) == 0   ? WK_KIND_CUDA
                          : strncmp(name, "rocm", 4) == 0 ? WK_KIND_ROCM
                                                          : WK_KIND_CPU;
    return missing[kind][0] ? missing[kind] : NULL;
}
