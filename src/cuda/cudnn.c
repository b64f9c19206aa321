/* cudnn.c: cuDNN loaded, its handles, and the plans they keep. */
#include <stdio.h>
#include "core/memory.h"
#include "cudnn_plan.h"
#include "gpu/blas.h"
#include "gpu/families.h"
#include "gpu/runtime.h"
#include "wick/index.h"

static const char *const sonames[] = {"libcudnn.so.9", NULL};
static const char *const folders[] = {"@/../../cudnn/lib", /* Python's wheels */
                                      "/usr/local/cuda/lib64",
                                      "$VIRTUAL_ENV/lib/python3*/site-packages/nvidia/cudnn/lib",
                                      "$CONDA_PREFIX/lib",
                                      "$CONDA_PREFIX/lib/python3*/site-packages/nvidia/cudnn/lib",
                                      "$HOME/.local/lib/python3*/site-packages/nvidia/cudnn/lib",
                                      "/usr/local/lib/python3*/dist-packages/nvidia/cudnn/lib",
                                      "/usr/local/lib/python3*/site-packages/nvidia/cudnn/lib",
                                      "/usr/lib/python3*/site-packages/nvidia/cudnn/lib",
                                      NULL};
wk_library wk_lib_cudnn = {.name = "libcudnn",
                           .sonames = sonames,
                           .variable = "WICK_CUDNN_LIBRARY",
                           .package = "libcudnn9-cuda-13 (NVIDIA's), nvidia-cudnn-cu13 (Python)",
                           .beside = &wk_lib_cublas,
                           .folders = folders};
wk_cudnn_calls wk_cudnn;
static bool loaded;

/* ---- loading ---- */

/* cuDNN looks for cuBLAS and NVRTC by name: those that wick uses are there before. */
static void load_all(void)
{
    static const wk_symbol symbols[] = {
#define X(result, name, arguments) {#name, (void **)&wk_cudnn.name},
        WK_CUDNN_CALLS(X) WK_CUDNN_LAYER_CALLS(X)
#undef X
    };
    wk_library *l = &wk_lib_cudnn;
    wk_cublas.load();
    if (!wk_library_load(l) || !wk_library_symbols(l, symbols, sizeof symbols / sizeof *symbols))
        return;
    size_t version = wk_cudnn.cudnnGetVersion();
    snprintf(l->version, sizeof l->version, "%zu.%zu.%zu", version / 10000, version / 100 % 100,
             version % 100);
    loaded = true;
}

bool wk_cudnn_load(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, load_all);
    return loaded;
}

/* ---- statuses ---- */

static bool out_of_memory(cudnnStatus_t status)
{
    return status == CUDNN_STATUS_INTERNAL_ERROR_HOST_ALLOCATION_FAILED ||
           status == CUDNN_STATUS_INTERNAL_ERROR_DEVICE_ALLOCATION_FAILED;
}

/* What it lacks, and what it has no memory for, another implementation may do. */
static wk_status fail(const wk_gpu *g, const char *doing, cudnnStatus_t status)
{
    bool lacks = status / 1000 == CUDNN_STATUS_NOT_SUPPORTED / 1000;
    char words[160];
    wk_cudnn_words(words, sizeof words);
    return wk_fail(lacks || out_of_memory(status) ? WK_ERR_UNSUPPORTED : WK_ERR_DEVICE,
                   "%s: cuDNN: %s: %s%s%s", g->base.name, doing, wk_cudnn.cudnnGetErrorString(status),
                   words[0] ? ": " : "", words);
}

const char *wk_cudnn_refuse(const wk_call *c, unsigned dtypes)
{
    static const wk_vendor_words words = {"cuDNN does not take this dtype", "cuDNN takes no empty tensors"};
    const char *why = wk_vendor_refuse(c, dtypes, &words);
    return why ? why : wk_cudnn_load() ? NULL : wk_lib_cudnn.trouble;
}

cudnnDataType_t wk_cudnn_dtype(wk_dtype dtype)
{
    static const cudnnDataType_t types[WK_DTYPE_COUNT] = {[WK_F32] = CUDNN_DATA_FLOAT,
                                                          [WK_F16] = CUDNN_DATA_HALF,
                                                          [WK_BF16] = CUDNN_DATA_BFLOAT16,
                                                          [WK_F64] = CUDNN_DATA_DOUBLE};
    return types[dtype];
}

/* ---- plans ---- */

/* What a stream has. */
typedef struct {
    cudnnHandle_t handle;
    void *stream; /* that the handle works on */
    wk_stream *beside;
    wk_keeper plans;
} cudnn_stream;

void wk_cudnn_plan_clear(wk_cudnn_plan *p)
{
    if (p->execution)
        wk_cudnn.cudnnBackendDestroyDescriptor(p->execution);
    while (p->n_configs > 0)
        wk_cudnn.cudnnBackendDestroyDescriptor(p->configs[--p->n_configs]);
    while (p->n_made > 0)
        wk_cudnn.cudnnBackendDestroyDescriptor(p->made[--p->n_made]);
    for (int i = 0; i < WK_CUDNN_TENSORS; i++) {
        if (p->tensor[i])
            wk_cudnn.cudnnDestroyTensorDescriptor(p->tensor[i]);
    }
    if (p->op)
        p->destroy(p);
}

static void plan_free(wk_cudnn_plan *p)
{
    if (!p)
        return;
    wk_cudnn_plan_clear(p);
    wk_free(p);
}

void wk_cudnn_packed(wk_cudnn_plan *p, int i, wk_dtype dtype, int rank, const int64_t *shape)
{
    int lengths[WK_MAX_RANK], steps[WK_MAX_RANK];
    wk_vendor_packed(rank, shape, lengths, steps);
    if (wk_cudnn_ok(p, wk_cudnn.cudnnCreateTensorDescriptor(&p->tensor[i]), "a tensor"))
        wk_cudnn_ok(
            p, wk_cudnn.cudnnSetTensorNdDescriptor(p->tensor[i], wk_cudnn_dtype(dtype), rank, lengths, steps),
            "a tensor");
}

/* The plan for a call, made where there is none yet. */
static wk_status plan_of(const wk_stream *s, const wk_cudnn_call *d, wk_cudnn_plan **plan)
{
    cudnn_stream *k = s->dnn;
    wk_kept **place;
    wk_cudnn_plan *p = (wk_cudnn_plan *)wk_keeper_find(&k->plans, &d->key, &place);
    if (!p) {
        if (s->graph)
            return wk_fail(WK_ERR_UNSUPPORTED, "cuDNN: nothing is set up while a graph is captured");
        plan_free((wk_cudnn_plan *)*place);
        *place = NULL;
        p = wk_alloc(sizeof *p);
        if (!p)
            return wk_fail(WK_ERR_MEMORY, "cuDNN: out of memory");
        *p = (wk_cudnn_plan){.kept = {d->key, k->plans.calls}};
        d->set_up(k->handle, p, d->data);
        if (out_of_memory(p->status)) {
            plan_free(p);
            return wk_fail(WK_ERR_UNSUPPORTED, "cuDNN: setting up: out of memory");
        }
        *place = &p->kept;
    }
    *plan = p;
    return p->status == CUDNN_STATUS_SUCCESS
               ? WK_OK
               : wk_fail(WK_ERR_UNSUPPORTED, "%s: cuDNN: %s", s->gpu->base.name, p->trouble);
}

static void detach(wk_stream *s)
{
    cudnn_stream *k = s->dnn;
    pthread_mutex_lock(&s->dnn_lock);
    if (k->handle && s != s->gpu->stream)
        wk_cudnn.cudnnSetStream(k->handle, s->gpu->stream->handle);
    k->stream = NULL;
    wk_stream *beside = k->beside;
    k->beside = NULL;
    pthread_mutex_unlock(&s->dnn_lock);
    wk_stream_drop(beside);
}

/* What the stream has, made where there is none yet. */
static cudnn_stream *kept_by(wk_stream *s)
{
    cudnn_stream *k = s->dnn ? s->dnn : wk_alloc(sizeof *k);
    if (!k) {
        wk_fail(WK_ERR_MEMORY, "cuDNN: out of memory");
        return NULL;
    }
    if (!s->dnn) {
        *k = (cudnn_stream){0};
        s->dnn = k;
        s->dnn_detach = detach;
    }
    return k;
}

wk_status wk_cudnn_beside(wk_stream *s, wk_stream **beside)
{
    pthread_mutex_lock(&s->dnn_lock);
    cudnn_stream *k = kept_by(s);
    if (k && !k->beside)
        k->beside = wk_stream_make(s->gpu, NULL);
    *beside = k ? k->beside : NULL;
    pthread_mutex_unlock(&s->dnn_lock);
    return *beside ? WK_OK : wk_error_status();
}

static wk_status open_handle(const wk_gpu *g, wk_stream *s)
{
    cudnn_stream *k = kept_by(s);
    if (!k)
        return wk_error_status();
    if (s->graph && !k->handle)
        return wk_fail(WK_ERR_UNSUPPORTED, "cuDNN: it is not opened while a graph is captured");
    if (k->handle && k->stream == s->handle)
        return WK_OK;
    cudnnStatus_t status = k->handle ? CUDNN_STATUS_SUCCESS : wk_cudnn.cudnnCreate(&k->handle);
    if (status == CUDNN_STATUS_SUCCESS)
        status = wk_cudnn.cudnnSetStream(k->handle, s->handle);
    k->stream = status == CUDNN_STATUS_SUCCESS ? s->handle : NULL;
    return status == CUDNN_STATUS_SUCCESS ? WK_OK : fail(g, "opening it", status);
}

static wk_status run_locked(const wk_gpu *g, wk_stream *s, const wk_cudnn_call *d)
{
    wk_cudnn_plan *plan = NULL;
    void *workspace;
    WK_TRY(open_handle(g, s));
    cudnn_stream *k = s->dnn;
    WK_TRY(plan_of(s, d, &plan));
    WK_TRY(wk_vendor_workspace(d->call, "cuDNN", plan->workspace, &workspace));
    cudnnStatus_t status = d->run(k->handle, plan, workspace, d->data);
    if (status == CUDNN_STATUS_SUCCESS)
        return WK_OK;
    if (!out_of_memory(status)) /* what failed once is not tried again */
        wk_cudnn_ok(plan, status, "running");
    return fail(g, "running", status);
}

wk_status wk_cudnn_run(wk_cudnn_call *d)
{
    wk_gpu *g = wk_gpu_of(d->call->device);
    wk_stream *s = wk_gpu_stream(g);
    wk_key_add(&d->key, (int64_t)(intptr_t)d->call->op);
    wk_key_add(&d->key, d->call->dtype);
    wk_key_add(&d->key, wk_deterministic());
    if (d->key.n > WK_KEY)
        return wk_fail(WK_ERR_INTERNAL, "cuDNN: a key of %d numbers", d->key.n);
    int code = g->driver->enter(g->context);
    if (code)
        return wk_gpu_fail(g, code, d->call->op->name);
    pthread_mutex_lock(&s->dnn_lock); /* a handle is for one thread at a time */
    wk_status status = run_locked(g, s, d);
    pthread_mutex_unlock(&s->dnn_lock);
    return status;
}

int wk_cudnn_variants(wk_call *c, size_t workspace, uint64_t *list, int room)
{
    if (strncmp(c->op->name, "conv", 4) == 0)
        return wk_cudnn_conv_variants(c, workspace, list, room);
    return strcmp(c->op->name, "sdpa") == 0 ? wk_cudnn_attention_variants(list, room) : 0;
}
