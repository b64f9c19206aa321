/* miopen.c: MIOpen loaded, its handles, and the plans they keep. */
#include <dirent.h>
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>
#include "core/memory.h"
#include "dnn.h"
#include "gpu/runtime.h"

static const char *const sonames[] = {"libMIOpen.so.1", "libMIOpen.so", NULL};
static const char *const folders[] = {"/opt/rocm/lib", "/opt/rocm/lib64", NULL};
wk_library wk_lib_miopen = {.name = "libMIOpen",
                            .sonames = sonames,
                            .variable = "WICK_MIOPEN_LIBRARY",
                            .package = "miopen-hip (AMD's), libmiopen1 (Debian, Ubuntu)",
                            .beside = &wk_lib_hip,
                            .folders = folders};
wk_miopen_calls wk_miopen;
static bool loaded;

/* ---- loading ---- */

/* A folder of this user's alone, made where it is not there. */
static bool own_folder(const char *path)
{
    struct stat st;
    mkdir(path, 0700);
    return lstat(path, &st) == 0 && S_ISDIR(st.st_mode) && st.st_uid == getuid() && !(st.st_mode & 022) &&
           access(path, W_OK) == 0;
}

/* In wick's cache, or in /tmp where that cannot be written; false when there is no place. */
static bool find_folder(char *path, size_t room)
{
    size_t n = wk_cache_folder(path, room - 32);
    if (n) {
        snprintf(path + n, room - n, "/miopen/");
        wk_make_folders(path);
        path[strlen(path) - 1] = 0;
        if (access(path, W_OK) == 0)
            return true;
    }
    snprintf(path, room, "/tmp/wick-miopen-%u", (unsigned)getuid());
    return own_folder(path);
}

/* Whether it begins as a database of SQLite does and is as long as that beginning says. */
static bool is_database(FILE *f)
{
    static const char magic[16] = "SQLite format 3";
    unsigned char head[32];
    struct stat st;
    if (fread(head, 1, sizeof head, f) != sizeof head || memcmp(head, magic, sizeof magic) != 0 ||
        fstat(fileno(f), &st) != 0)
        return false;
    uint64_t page = (uint64_t)head[16] << 8 | head[17]; /* 1 stands for 65536 */
    uint64_t pages =
        (uint64_t)head[28] << 24 | (uint64_t)head[29] << 16 | (uint64_t)head[30] << 8 | (uint64_t)head[31];
    page = page == 1 ? 65536 : page;
    return page >= 512 && (uint64_t)st.st_size >= pages * page && (uint64_t)st.st_size % page == 0;
}

/* MIOpen gives up on a database that is none, and prints about it at every call: one that was damaged goes. An empty one
 * is new. */
static void drop_damaged(const char *folder)
{
    char file[900];
    struct dirent *e;
    DIR *d = opendir(folder);
    while (d && (e = readdir(d))) {
        const char *dot = strrchr(e->d_name, '.');
        snprintf(file, sizeof file, "%s/%s", folder, e->d_name);
        FILE *f = dot && strcmp(dot, ".ukdb") == 0 ? fopen(file, "rb") : NULL;
        if (!f)
            continue;
        bool empty = fgetc(f) == EOF;
        rewind(f);
        bool good = empty || is_database(f);
        fclose(f);
        if (!good)
            unlink(file);
    }
    if (d)
        closedir(d);
}

/* MIOpen reads these when it is loaded: nothing on the terminal, and its databases and kernels beside wick's. What the
 * user has set stays. */
static bool set_environment(void)
{
    static const char *const places[] = {"MIOPEN_USER_DB_PATH", "MIOPEN_CUSTOM_CACHE_DIR"};
    char path[600];
    setenv("MIOPEN_LOG_LEVEL", "1", 0);
    if (getenv(places[0]) && getenv(places[1]))
        return true;
    if (!find_folder(path, sizeof path)) {
        snprintf(wk_lib_miopen.trouble, sizeof wk_lib_miopen.trouble, "no folder to keep its databases in");
        return false;
    }
    drop_damaged(path);
    for (int i = 0; i < 2; i++)
        setenv(places[i], path, 0);
    return true;
}

/* Debian's MIOpen has no sources in assembly, tries these in fusions all the same, fails and prints. The variables are
 * read when they are first needed. */
static void avoid_missing(const wk_library *l)
{
    if (dlsym(l->handle, "MIOPEN_KERNEL_CONV_WINOGRAD_V30_3_1_FP32_F2X3_STRIDE1"))
        return;
    setenv("MIOPEN_DEBUG_AMD_FUSED_WINOGRAD", "0", 0);
    setenv("MIOPEN_DEBUG_AMD_WINOGRAD_RXS_F2X3_G1", "0", 0);
}

static void load_all(void)
{
#define X(result, name, arguments) {#name, (void **)&wk_miopen.name},
    static const wk_symbol symbols[] = {WK_MIOPEN_CALLS(X)}, newer[] = {WK_MIOPEN_BETA_CALLS(X)};
#undef X
    wk_library *l = &wk_lib_miopen;
    size_t version[3] = {0};
    if (!set_environment() || !wk_library_load(l) ||
        !wk_library_symbols(l, symbols, sizeof symbols / sizeof *symbols))
        return;
    for (size_t i = 0; i < sizeof newer / sizeof *newer; i++)
        *newer[i].place = dlsym(l->handle, newer[i].name);
    avoid_missing(l);
    if (wk_miopen.miopenGetVersion(&version[0], &version[1], &version[2]) == miopenStatusSuccess)
        snprintf(l->version, sizeof l->version, "%zu.%zu.%zu", version[0], version[1], version[2]);
    loaded = true;
}

bool wk_miopen_load(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, load_all);
    return loaded;
}

/* ---- statuses ---- */

static wk_status fail(const wk_gpu *g, const char *doing, miopenStatus_t status)
{
    bool lacks = status == miopenStatusNotImplemented || status == miopenStatusUnsupportedOp;
    bool full = status == miopenStatusAllocFailed; /* another implementation may need less */
    return wk_fail(lacks || full ? WK_ERR_UNSUPPORTED : WK_ERR_DEVICE, "%s: MIOpen: %s: %s", g->base.name,
                   doing,
                   lacks  ? "it has nothing for this call"
                   : full ? "out of memory"
                          : wk_miopen.miopenGetErrorString(status));
}

const char *wk_dnn_refuse(const wk_call *c, unsigned dtypes)
{
    if (!(dtypes >> c->dtype & 1))
        return "MIOpen does not take this dtype";
    if (wk_gpu_of(c->device)->driver->plans)
        return "a planning device has no libraries";
    for (int i = 0; i < WK_MAX_IN; i++) {
        if (!c->in[i])
            continue;
        if (wk_count(c->in[i]) == 0)
            return "MIOpen takes no empty tensors";
        if (wk_count(c->in[i]) > INT32_MAX)
            return "2^31 elements and more";
    }
    for (int i = 0; i < wk_op_outputs(c->op); i++) {
        int64_t n = wk_shape_count(c->spec[i].rank, c->spec[i].shape);
        if (n == 0 || n > INT32_MAX)
            return n ? "2^31 elements and more" : "MIOpen takes no empty tensors";
    }
    return wk_miopen_load() ? NULL : wk_lib_miopen.trouble;
}

/* ---- plans ---- */

enum { PLANS = 512, NEAR = 8, WORKSPACE_MOST = 1 << 30 };

/* What a stream keeps. A plan's place is at its hash or a few behind; where all of these are taken the one that was
 * not used for longest goes. */
typedef struct wk_dnn {
    miopenHandle_t handle;
    void *stream; /* that the handle works on */
    uint64_t calls;
    wk_dnn_plan *plans[PLANS];
} wk_dnn;

miopenDataType_t wk_dnn_dtype(wk_dtype dtype)
{
    static const miopenDataType_t types[WK_DTYPE_COUNT] = {[WK_F32] = miopenFloat,
                                                           [WK_F16] = miopenHalf,
                                                           [WK_BF16] = miopenBFloat16,
                                                           [WK_F64] = miopenDouble,
                                                           [WK_I64] = miopenInt64};
    return types[dtype];
}

miopenStatus_t wk_dnn_tensor(wk_dnn_plan *p, int i, wk_dtype dtype, int rank, const int64_t *shape)
{
    int lengths[WK_MAX_RANK], steps[WK_MAX_RANK];
    int64_t strides[WK_MAX_RANK];
    wk_shape_strides(rank, shape, strides);
    for (int d = 0; d < rank; d++) {
        lengths[d] = (int)shape[d];
        steps[d] = (int)strides[d];
    }
    WK_DNN_TRY(wk_miopen.miopenCreateTensorDescriptor(&p->tensor[i]));
    return wk_miopen.miopenSetTensorDescriptor(p->tensor[i], wk_dnn_dtype(dtype), rank, lengths, steps);
}

void wk_dnn_key_add(wk_dnn_call *d, int64_t value)
{
    if (d->key_n < WK_DNN_KEY)
        d->key[d->key_n] = value;
    d->key_n++;
}

void wk_dnn_key_real(wk_dnn_call *d, double value)
{
    int64_t bits;
    memcpy(&bits, &value, sizeof bits);
    wk_dnn_key_add(d, bits);
}

void wk_dnn_key_shape(wk_dnn_call *d, int rank, const int64_t *shape)
{
    wk_dnn_key_add(d, rank);
    for (int i = 0; i < rank; i++)
        wk_dnn_key_add(d, shape[i]);
}

static void plan_free(wk_dnn_plan *p)
{
    if (!p)
        return;
    for (int i = 0; i < WK_DNN_TENSORS; i++) {
        if (p->tensor[i])
            wk_miopen.miopenDestroyTensorDescriptor(p->tensor[i]);
    }
    if (p->op)
        p->destroy(p);
    wk_free(p->extra);
    wk_free(p);
}

static unsigned hash_of(const wk_dnn_call *d)
{
    uint64_t h = 0xcbf29ce484222325;
    for (int i = 0; i < d->key_n; i++) {
        h = (h ^ (uint64_t)d->key[i]) * 0x9e3779b97f4a7c15;
        h ^= h >> 29;
    }
    return (unsigned)(h % PLANS);
}

static bool is_for(const wk_dnn_plan *p, const wk_dnn_call *d)
{
    return p->key_n == d->key_n && memcmp(p->key, d->key, (size_t)d->key_n * sizeof *d->key) == 0;
}

/* Where the call's plan is, or goes. */
static wk_dnn_plan **place_of(wk_dnn *dnn, const wk_dnn_call *d)
{
    unsigned first = hash_of(d);
    wk_dnn_plan **oldest = NULL;
    for (unsigned i = 0; i < NEAR; i++) {
        wk_dnn_plan **at = &dnn->plans[(first + i) % PLANS];
        if (!*at || is_for(*at, d))
            return at;
        if (!oldest || (*at)->used < (*oldest)->used)
            oldest = at;
    }
    return oldest;
}

/* The plan for a call, made where there is none yet. */
static wk_status plan_of(const wk_stream *s, const wk_dnn_call *d, wk_dnn_plan **plan)
{
    const wk_gpu *g = s->gpu;
    wk_dnn *dnn = s->dnn;
    wk_dnn_plan **place = place_of(dnn, d), *p = *place;
    if (!p || !is_for(p, d)) {
        if (s->graph)
            return wk_fail(WK_ERR_UNSUPPORTED, "MIOpen: nothing is set up while a graph is captured");
        plan_free(p);
        *place = NULL;
        p = wk_alloc(sizeof *p);
        if (!p)
            return wk_fail(WK_ERR_MEMORY, "MIOpen: out of memory");
        *p = (wk_dnn_plan){.key_n = d->key_n};
        memcpy(p->key, d->key, (size_t)d->key_n * sizeof *d->key);
        p->status = d->set_up(dnn->handle, p, d->data);
        if (p->status == miopenStatusSuccess && p->workspace > WORKSPACE_MOST)
            p->status = miopenStatusUnsupportedOp;
        if (p->status == miopenStatusAllocFailed) {
            plan_free(p);
            return fail(g, "setting up", miopenStatusAllocFailed);
        }
        *place = p;
    }
    p->used = ++dnn->calls;
    *plan = p;
    return p->status == miopenStatusSuccess ? WK_OK : fail(g, "setting up", p->status);
}

/* As with rocBLAS, which MIOpen's handle has one of inside. */
static void detach(wk_stream *s)
{
    wk_dnn *dnn = s->dnn;
    pthread_mutex_lock(&s->dnn_lock);
    if (dnn->handle && s != s->gpu->stream)
        wk_miopen.miopenSetStream(dnn->handle, s->gpu->stream->handle);
    dnn->stream = NULL;
    pthread_mutex_unlock(&s->dnn_lock);
}

static wk_status open_handle(const wk_gpu *g, wk_stream *s)
{
    wk_dnn *dnn = s->dnn;
    if (!dnn) {
        dnn = wk_alloc(sizeof *dnn);
        if (!dnn)
            return wk_fail(WK_ERR_MEMORY, "MIOpen: out of memory");
        *dnn = (wk_dnn){0};
        s->dnn = dnn;
        s->dnn_detach = detach;
    }
    if (dnn->handle && dnn->stream == s->handle)
        return WK_OK;
    miopenStatus_t status = dnn->handle ? wk_miopen.miopenSetStream(dnn->handle, s->handle)
                                        : wk_miopen.miopenCreateWithStream(&dnn->handle, s->handle);
    dnn->stream = status == miopenStatusSuccess ? s->handle : NULL;
    return status == miopenStatusSuccess ? WK_OK : fail(g, "opening it", status);
}

/* A workspace that does not fit is no error: the next implementation needs none. */
static wk_status get_workspace(const wk_call *c, size_t bytes, void **workspace)
{
    *workspace = NULL;
    if (bytes == 0)
        return WK_OK;
    wk_tensor *t = wk_tensor_new(c->device, WK_U8, 1, (int64_t[]){(int64_t)bytes});
    if (t)
        *workspace = wk_ptr(t);
    if (t || wk_error_status() != WK_ERR_MEMORY)
        return t ? WK_OK : wk_error_status();
    wk_error_clear();
    return wk_fail(WK_ERR_UNSUPPORTED, "%s: MIOpen: no memory for a workspace of %zu bytes", c->device->name,
                   bytes);
}

static wk_status run_locked(const wk_gpu *g, wk_stream *s, const wk_dnn_call *d)
{
    wk_dnn_plan *plan = NULL;
    void *workspace;
    WK_TRY(open_handle(g, s));
    wk_dnn *dnn = s->dnn;
    WK_TRY(plan_of(s, d, &plan));
    WK_TRY(get_workspace(d->call, plan->workspace, &workspace));
    miopenStatus_t status = d->run(dnn->handle, plan, workspace, d->data);
    if (status != miopenStatusAllocFailed) /* what failed once is not tried again: it would print again */
        plan->status = status;
    return status == miopenStatusSuccess ? WK_OK : fail(g, "running", status);
}

wk_status wk_dnn_run(wk_dnn_call *d)
{
    wk_gpu *g = wk_gpu_of(d->call->device);
    wk_stream *s = wk_gpu_stream(g);
    wk_dnn_key_add(d, (int64_t)(intptr_t)d->call->op);
    wk_dnn_key_add(d, d->call->dtype);
    if (d->key_n > WK_DNN_KEY)
        return wk_fail(WK_ERR_INTERNAL, "MIOpen: a key of %d numbers", d->key_n);
    int code = g->driver->enter(g->context);
    if (code)
        return wk_gpu_fail(g, code, d->call->op->name);
    pthread_mutex_lock(&s->dnn_lock); /* a handle is for one thread at a time */
    wk_status status = run_locked(g, s, d);
    pthread_mutex_unlock(&s->dnn_lock);
    return status;
}
