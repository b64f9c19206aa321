/* module.c: from a kernel and an instance to a function on the device, and its launch. */
#include <stdio.h>
#include <stdlib.h>
#include "core/dtype.h"
#include "core/memory.h"
#include "pack.h"
#include "rtc.h"
#include "runtime.h"

/* ---- compiling ---- */

void wk_kernel_name_of(const wk_kernel *k, const wk_instance *i, wk_kernel_name *name)
{
    char *s = name->text;
    size_t room = sizeof name->text;
    size_t at = (size_t)snprintf(s, room, "%s<", k->name);
    if (k->formula)
        at += (size_t)snprintf(s + at, room - at, "%.*s,", (int)strcspn(i->formula, "\n"), i->formula);
    for (int t = 0; t < k->types; t++)
        at += (size_t)snprintf(s + at, room - at, "%s,", wk_dtypes[i->t[t]].name);
    for (int n = 0; n < k->ints; n++)
        at += (size_t)snprintf(s + at, room - at, "%d,", i->i[n]);
    s[at - 1] = '>'; /* in place of the last comma: a kernel has at least one parameter */
}

/* Values that take two registers each leave room for half the blocks; left to itself NVIDIA's compiler spills a few for
 * one block more. */
static int least_blocks(const wk_kernel *k, const wk_instance *i)
{
    bool wide = k->types && wk_bytes((wk_dtype)i->t[0]) == 8;
    return !wide ? k->blocks : k->blocks > 1 ? k->blocks / 2 : 1;
}

/* "INSTANCE(wk_kernel, softmax_rows, softmax_args, 256, f16, 1)" behind the file it is in, and behind `definition`. The
 * blocks of a cluster are the last parameter. */
static void instance_source(const wk_kernel *k, const wk_kernel_name *name, int least, const char *definition,
                            char *source, size_t room)
{
    const char *arguments = strchr(name->text, '<') + 1;
    char blocks[48] = "(";
    if (k->clusters)
        snprintf(blocks, sizeof blocks, "_CLUSTER(%d, %d, ", atoi(strrchr(arguments, ',') + 1), least);
    else if (least)
        snprintf(blocks, sizeof blocks, "_OF(%d, ", least);
    snprintf(source, room, "#include \"%s.hip\"\n%sINSTANCE%swk_kernel, %s, %s, %d, %.*s)\n", k->file,
             definition, blocks, k->name, k->args, k->threads, (int)(strlen(arguments) - 1), arguments);
}

/* That of a formula which is made at run time stands behind its name. */
static const char *definition_of(const wk_kernel *k, const wk_instance *i)
{
    const char *line = k->formula ? strchr(i->formula, '\n') : NULL;
    return line ? line + 1 : "";
}

enum { OPTIONS = 8 };
typedef struct {
    char text[OPTIONS][64];
    const char *list[OPTIONS];
    int n;
} option_list;

static void add_option(option_list *o, const char *format, const char *value)
{
    snprintf(o->text[o->n], sizeof o->text[0], format, value);
    o->list[o->n] = o->text[o->n];
    o->n++;
}

/* What bounds a kernel's registers on NVIDIA. */
typedef struct {
    int blocks;    /* on a unit, at least; 0: as the compiler likes */
    int registers; /* 0: what the blocks leave */
} register_bounds;

static void options_for(wk_device_kind kind, const char *arch, int wave, const wk_kernel *k,
                        const register_bounds *bounds, option_list *o)
{
    bool amd = kind == WK_KIND_ROCM;
    char registers[12];
    o->n = 0;
    /* Hopper's own instructions have a name of their own. */
    add_option(o, amd ? "--offload-arch=%s" : "--gpu-architecture=%s",
               strcmp(arch, "sm_90") ? arch : "sm_90a");
    add_option(o, "-DWAVE=%s", wave == 64 ? "64" : "32");
    add_option(o, "%s", amd ? "-DWK_AMD" : "-DWK_NVIDIA");
    add_option(o, "%s", amd ? "-std=c++17" : "--std=c++17");
    if (amd)
        add_option(o, "%s", "-Wno-unused-value");
    if (k->exact)
        add_option(o, "%s", amd ? "-ffp-contract=off" : "--fmad=false");
    if (bounds->registers) {
        snprintf(registers, sizeof registers, "%d", bounds->registers);
        add_option(o, "--maxrregcount=%s", registers);
    }
}

void wk_kernel_key(const char *arch, int wave, const wk_kernel *k, const wk_instance *i, wk_cache_key *key)
{
    wk_kernel_name name;
    char source[400];
    wk_kernel_name_of(k, i, &name);
    /* A made formula's name holds a hash of it. */
    instance_source(k, &name, least_blocks(k, i), "", source, sizeof source);
    snprintf(key->text, sizeof key->text, "%s wave %d%s\n%sfiles %016llx\n", arch, wave,
             k->exact ? " exact" : "", source, (unsigned long long)wk_kernel_hash(k->file));
}

static wk_status compile_within(const register_bounds *bounds, wk_rtc *rtc, const char *arch, int wave,
                                const wk_kernel *k, const wk_instance *i, const wk_kernel_name *name,
                                void **code, size_t *bytes)
{
    const char *definition = definition_of(k, i);
    size_t room = 400 + strlen(definition);
    char *source = wk_alloc(room);
    option_list options;
    wk_kernel_texts texts = wk_kernel_sources();
    if (!source)
        return wk_fail(WK_ERR_MEMORY, "compiling %s: out of memory", name->text);
    instance_source(k, name, bounds->blocks, definition, source, room);
    options_for(rtc == &wk_rocm_rtc ? WK_KIND_ROCM : WK_KIND_CUDA, arch, wave, k, bounds, &options);
    wk_rtc_job job = {.name = name->text,
                      .source = source,
                      .headers = texts.texts,
                      .header_names = texts.names,
                      .n_headers = texts.n,
                      .options = options.list,
                      .n_options = options.n};
    wk_status status = wk_rtc_compile(rtc, &job, code, bytes);
    wk_free(source);
    return status;
}

/* Other bounds in the place of those under which code spills: first the same registers, but known to the whole compiler and
 * not only to its end; then one block less. False: it does not spill, or nothing is left to try. On sm_90, where bounds
 * were chosen by the clock, they hold. */
static bool bounds_without_spills(const char *arch, const wk_kernel *k, const void *code, size_t bytes,
                                  register_bounds *bounds)
{
    const wk_arch *a = wk_arch_find(arch);
    wk_object_facts f;
    if (!a || a->kind != WK_KIND_CUDA || strcmp(arch, "sm_90") == 0 || !wk_object_facts_of(code, bytes, &f) ||
        f.spills == 0)
        return false;
    if (!bounds->registers) {
        bounds->registers = f.registers;
        return true;
    }
    f.shared_bytes = 0; /* not what is short */
    int blocks = wk_occupancy_of(a, &f, k->threads).now;
    if (bounds->blocks && blocks > bounds->blocks)
        blocks = bounds->blocks;
    *bounds = (register_bounds){.blocks = blocks - 1};
    return blocks > 1;
}

static wk_status compile(wk_rtc *rtc, const char *arch, int wave, const wk_kernel *k, const wk_instance *i,
                         const wk_kernel_name *name, void **code, size_t *bytes)
{
    register_bounds bounds = {.blocks = least_blocks(k, i)};
    for (;;) {
        WK_TRY(compile_within(&bounds, rtc, arch, wave, k, i, name, code, bytes));
        if (!bounds_without_spills(arch, k, *code, *bytes, &bounds))
            return WK_OK;
        wk_free(*code);
    }
}

wk_status wk_kernel_code(wk_device_kind kind, const char *arch, int wave, const wk_kernel *k,
                         const wk_instance *i, void **code, size_t *bytes)
{
    wk_rtc *rtc = kind == WK_KIND_ROCM ? &wk_rocm_rtc : &wk_cuda_rtc;
    wk_kernel_name name;
    wk_cache_key key, full;
    wk_kernel_key(arch, wave, k, i, &key);
    if ((*code = wk_pack_read(arch, &key, bytes)))
        return WK_OK;
    wk_kernel_name_of(k, i, &name);
    bool able = wk_rtc_load(rtc);
    snprintf(full.text, sizeof full.text, "%s\n%.*s", able ? rtc->version : "?",
             (int)(sizeof full.text - sizeof rtc->version - 2), key.text);
    if ((*code = wk_cache_read(arch, name.text, &full, bytes)))
        return WK_OK;
    if (!able)
        return wk_fail(WK_ERR_DEVICE, "compiling %s: %s: %s; it comes with %s", name.text, rtc->library->name,
                       rtc->library->trouble, rtc->library->package);
    WK_TRY(compile(rtc, arch, wave, k, i, &name, code, bytes));
    wk_cache_write(arch, name.text, &full, *code, *bytes);
    return WK_OK;
}

/* ---- functions, found by kernel and instance ---- */

typedef struct {
    const wk_kernel *kernel;
    wk_instance instance;
    void *module, *function;
    _Atomic int shared; /* dynamic shared memory it was prepared for */
    int clusters;       /* that run at a time; 0: not asked for yet */
} entry;

enum { SLOTS = 1 << 14 }; /* far more than there are instances */
struct wk_modules {
    _Atomic(entry *) slots[SLOTS]; /* an entry is never changed nor taken out */
    int used;
};

wk_status wk_modules_open(wk_gpu *g)
{
    g->modules = wk_alloc(sizeof *g->modules);
    if (!g->modules)
        return wk_fail(WK_ERR_MEMORY, "out of memory opening %s", g->base.name);
    memset(g->modules, 0, sizeof *g->modules);
    return WK_OK;
}

static bool same(const entry *e, const wk_kernel *k, const wk_instance *i)
{
    return e->kernel == k && memcmp(&e->instance, i, sizeof *i) == 0;
}

static unsigned hash(const wk_kernel *k, const wk_instance *i)
{
    u64 words[sizeof *i / 8], h = (u64)(size_t)k;
    memcpy(words, i, sizeof words);
    for (size_t n = 0; n < sizeof words / 8; n++)
        h = (h ^ words[n]) * 0x9E3779B97F4A7C15 ^ h >> 29;
    return (unsigned)(h >> 40);
}

/* Where it is, or the empty slot where it belongs. */
static _Atomic(entry *) *slot_for(struct wk_modules *m, const wk_kernel *k, const wk_instance *i)
{
    for (unsigned at = hash(k, i);; at++) {
        _Atomic(entry *) *slot = &m->slots[at % SLOTS];
        entry *e = atomic_load_explicit(slot, memory_order_acquire);
        if (!e || same(e, k, i))
            return slot;
    }
}

static wk_status load_function(wk_gpu *g, entry *e)
{
    void *code = NULL;
    size_t bytes;
    if (g->driver->plans)
        return WK_OK;
    WK_TRY(wk_kernel_code(g->driver->kind, g->facts.arch, g->facts.wave, e->kernel, &e->instance, &code,
                          &bytes));
    int error = g->driver->module_load(&e->module, code);
    if (error == 0)
        error = g->driver->module_function(&e->function, e->module, "wk_kernel");
    wk_free(code);
    return error ? wk_gpu_fail(g, error, e->kernel->name) : WK_OK;
}

static wk_status make_entry(wk_gpu *g, const wk_kernel *k, const wk_instance *i, entry **made)
{
    if (g->modules->used >= SLOTS / 2)
        return wk_fail(WK_ERR_INTERNAL, "%s: too many kernels", k->name);
    entry *e = wk_alloc(sizeof *e);
    if (!e)
        return wk_fail(WK_ERR_MEMORY, "%s: out of memory", k->name);
    *e = (entry){.kernel = k, .instance = *i};
    wk_status status = load_function(g, e);
    if (status != WK_OK) {
        wk_free(e);
        return status;
    }
    g->modules->used++;
    *made = e;
    return WK_OK;
}

static wk_status find_entry(wk_gpu *g, const wk_kernel *k, const wk_instance *i, entry **found)
{
    *found = atomic_load_explicit(slot_for(g->modules, k, i), memory_order_acquire);
    if (*found)
        return WK_OK;
    pthread_mutex_lock(&g->lock);
    _Atomic(entry *) *slot = slot_for(g->modules, k, i);
    *found = atomic_load(slot); /* another thread may have been first */
    wk_status status = *found ? WK_OK : make_entry(g, k, i, found);
    if (status == WK_OK)
        atomic_store_explicit(slot, *found, memory_order_release);
    pthread_mutex_unlock(&g->lock);
    return status;
}

int wk_modules_list(wk_gpu *g, wk_wanted *list, int room)
{
    int n = 0;
    for (int i = 0; i < SLOTS; i++) {
        const entry *e = atomic_load(&g->modules->slots[i]);
        if (e && n < room)
            list[n] = (wk_wanted){e->kernel, &e->instance};
        n += e != NULL;
    }
    return n;
}

/* ---- launching ---- */

wk_status wk_gpu_function(wk_gpu *g, const wk_kernel *k, const wk_instance *i, void **function)
{
    entry *e;
    WK_TRY(find_entry(g, k, i, &e));
    *function = e->function;
    return WK_OK;
}

/* Enters the device and finds the function, which may have so much dynamic shared memory from now on. */
static wk_status prepare(wk_gpu *g, const wk_kernel *k, const wk_instance *i, int shared, entry **e)
{
    int code = g->driver->enter(g->context);
    if (code)
        return wk_gpu_fail(g, code, k->name);
    WK_TRY(find_entry(g, k, i, e));
    if (shared <= atomic_load_explicit(&(*e)->shared, memory_order_acquire))
        return WK_OK;
    pthread_mutex_lock(&g->lock); /* or another thread might set less after this one */
    if (shared > (*e)->shared && (code = g->driver->function_shared((*e)->function, shared)) == 0)
        atomic_store_explicit(&(*e)->shared, shared, memory_order_release);
    pthread_mutex_unlock(&g->lock);
    return code ? wk_gpu_fail(g, code, k->name) : WK_OK;
}

/* A function that is prepared for the grid. */
static wk_status launch(wk_gpu *g, const wk_kernel *k, const entry *e, const wk_grid *grid, const void *args)
{
    unsigned blocks[3] = {(unsigned)grid->x, grid->y ? (unsigned)grid->y : 1,
                          grid->z ? (unsigned)grid->z : 1};
    void *list[] = {(void *)args};
    int code = (g->facts.early ? g->driver->launch_early : g->driver->launch)(
        e->function, blocks, (unsigned)(grid->threads ? grid->threads : k->threads), (unsigned)grid->shared,
        wk_gpu_stream_handle(g), list);
    return code ? wk_gpu_fail(g, code, k->name) : WK_OK;
}

wk_status wk_gpu_launch(const wk_call *c, const wk_kernel *k, const wk_instance *i, wk_grid grid,
                        const void *args)
{
    wk_gpu *g = wk_gpu_of(c->device);
    entry *e;
    if (grid.x <= 0)
        return WK_OK;
    WK_TRY(prepare(g, k, i, grid.shared, &e));
    return launch(g, k, e, &grid, args);
}

wk_status wk_gpu_zero(const wk_call *c, void *p, size_t bytes)
{
    wk_gpu *g = wk_gpu_of(c->device);
    if (bytes == 0)
        return WK_OK;
    int code = g->driver->enter(g->context);
    if (code == 0)
        code = g->driver->fill(p, 0, bytes, wk_gpu_stream_handle(g));
    return code ? wk_gpu_fail(g, code, "zeroing memory") : WK_OK;
}

/* ---- lines that blocks keep ---- */

enum { PACK = 16, PACKS = 8, CLUSTER = 8 }; /* bytes; of a thread, blocks of a cluster, at most */

static bool has_clusters(const wk_gpu *g)
{
    return strncmp(g->facts.arch, "sm_", 3) == 0 && atoi(g->facts.arch + 3) >= 90;
}

/* Those of some architectures may have twice as many blocks. */
static int largest_cluster(const wk_gpu *g)
{
    int arch = has_clusters(g) ? atoi(g->facts.arch + 3) : 0;
    return !arch ? 1 : arch == 90 || arch == 100 || arch == 103 ? 2 * CLUSTER : CLUSTER;
}

/* One block where that is enough, with as few threads as may be. Blocks of a cluster are small, so that more clusters run at a
 * time, or else as large as they can be. */
wk_kept_form wk_gpu_kept(const wk_call *c, i64 bytes)
{
    enum { SMALL = 256 };
    int most = has_clusters(wk_gpu_of(c->device)) ? CLUSTER : 1, threads = 128, blocks = 1;
    while (threads < WK_KEPT_THREADS && (i64)threads * PACKS * PACK < bytes)
        threads *= 2;
    if ((i64)threads * PACKS * PACK < bytes && bytes <= (i64)most * SMALL * PACKS * PACK)
        threads = SMALL;
    while (blocks <= most && (i64)blocks * threads * PACKS * PACK < bytes)
        blocks *= 2;
    if (blocks > most || bytes <= 0)
        return (wk_kept_form){0};
    i64 each = (i64)blocks * threads * PACK;
    return (wk_kept_form){(short)((bytes + each - 1) / each), (short)threads, (short)blocks, 0};
}

static int ahead_shared(const wk_kept_form *f) { return f->lines * f->packs * f->threads * PACK; }

wk_kept_form wk_gpu_ahead(const wk_call *c, const wk_kernel *k, int packs, int room, i64 bytes)
{
    enum { LEAST = 64 << 10 }; /* bytes of a line */
    const wk_gpu *g = wk_gpu_of(c->device);
    int most = largest_cluster(g);
    wk_kept_form f = {.threads = (short)k->threads, .blocks = 2, .lines = (short)room};
    i64 part = (i64)packs * f.threads * PACK;
    while (f.blocks < most && f.blocks * part < bytes)
        f.blocks *= 2;
    i64 each = (i64)f.blocks * f.threads * PACK;
    if (most == 1 || bytes <= LEAST || bytes > f.blocks * part)
        return (wk_kept_form){0};
    f.packs = (short)((bytes + each - 1) / each);
    /* Blocks have an eighth for what is not lines. */
    return k->blocks * ahead_shared(&f) <= g->facts.shared_bytes / 8 * 7 ? f : (wk_kept_form){0};
}

/* Clusters do not reach over the groups of multiprocessors, of which the driver alone knows how many are in working order. */
static int clusters_at_a_time(const wk_gpu *g, entry *e, const wk_kept_form *f)
{
    int code, n = 0;
    if (e->clusters)
        return e->clusters;
    code = g->driver->clusters
               ? g->driver->clusters(e->function, (unsigned)f->threads, (unsigned)ahead_shared(f), &n)
               : -1;
    e->clusters = code == 0 && n > 0 ? n : 1 + g->facts.units / 2 / f->blocks;
    return e->clusters;
}

wk_status wk_gpu_launch_ahead(const wk_call *c, const wk_kernel *k, const wk_instance *i,
                              const wk_kept_form *f, i64 lines, const void *args)
{
    wk_gpu *g = wk_gpu_of(c->device);
    wk_grid grid = {.threads = f->threads, .shared = ahead_shared(f)};
    entry *e;
    if (lines <= 0)
        return WK_OK;
    WK_TRY(prepare(g, k, i, grid.shared, &e));
    int most = clusters_at_a_time(g, e, f); /* asked for in any case: large clusters are allowed by it */
    i64 clusters = f->lines > 1 ? most : INT32_MAX / f->blocks; /* that stay, or that come and go */
    grid.x = wk_blocks(lines, 1, clusters) * f->blocks;
    return launch(g, k, e, &grid, args);
}

bool wk_gpu_wide(i64 n)
{
    static atomic_int forced; /* 0: not read yet; 1: no; 2: yes */
    int f = atomic_load_explicit(&forced, memory_order_relaxed);
    if (f == 0) {
        const char *text = getenv("WICK_WIDE_INDEX");
        f = text && text[0] == '1' ? 2 : 1;
        atomic_store_explicit(&forced, f, memory_order_relaxed);
    }
    return f == 2 || n >= (i64)1 << 31;
}

/* n / d = (mulhi(n, magic) + n) >> shift for n below 2^31 (Granlund and Montgomery). */
wk_divisor wk_divisor_of(i64 d)
{
    wk_divisor v = {.d = (u32)d};
    while (((u64)1 << v.shift) < (u64)d)
        v.shift++;
    v.magic = (u32)((((u64)1 << 32) * (((u64)1 << v.shift) - (u64)d)) / (u64)d + 1);
    return v;
}
