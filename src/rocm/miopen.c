/* miopen.c: the handles of MIOpen, and the plans they keep. */
#include "core/memory.h"
#include "dnn.h"
#include "gpu/runtime.h"

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
    static const wk_vendor_words words = {"MIOpen does not take this dtype", "MIOpen takes no empty tensors"};
    const char *why = wk_vendor_refuse(c, dtypes, &words);
    return why ? why : wk_miopen_load() ? NULL : wk_lib_miopen.trouble;
}

/* ---- plans ---- */

/* What a stream has. */
typedef struct wk_dnn {
    miopenHandle_t handle;
    void *stream; /* that the handle works on */
    wk_keeper keeper;
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
    wk_vendor_packed(rank, shape, lengths, steps);
    WK_DNN_TRY(wk_miopen.miopenCreateTensorDescriptor(&p->tensor[i]));
    return wk_miopen.miopenSetTensorDescriptor(p->tensor[i], wk_dnn_dtype(dtype), rank, lengths, steps);
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

/* The plan for a call, made where there is none yet. */
static wk_status plan_of(const wk_stream *s, const wk_dnn_call *d, wk_dnn_plan **plan)
{
    const wk_gpu *g = s->gpu;
    wk_dnn *dnn = s->dnn;
    wk_kept **place;
    wk_dnn_plan *p = (wk_dnn_plan *)wk_keeper_find(&dnn->keeper, &d->key, &place);
    if (!p) {
        if (s->graph)
            return wk_fail(WK_ERR_UNSUPPORTED, "MIOpen: nothing is set up while a graph is captured");
        plan_free((wk_dnn_plan *)*place);
        *place = NULL;
        p = wk_alloc(sizeof *p);
        if (!p)
            return wk_fail(WK_ERR_MEMORY, "MIOpen: out of memory");
        *p = (wk_dnn_plan){.kept = {d->key, dnn->keeper.calls}};
        p->status = d->set_up(dnn->handle, p, d->data);
        if (p->status == miopenStatusSuccess && p->workspace > wk_workspace_most())
            p->status = miopenStatusUnsupportedOp;
        if (p->status == miopenStatusAllocFailed) {
            plan_free(p);
            return fail(g, "setting up", miopenStatusAllocFailed);
        }
        *place = &p->kept;
    }
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

static wk_status run_locked(const wk_gpu *g, wk_stream *s, const wk_dnn_call *d)
{
    wk_dnn_plan *plan = NULL;
    void *workspace;
    WK_TRY(open_handle(g, s));
    wk_dnn *dnn = s->dnn;
    WK_TRY(plan_of(s, d, &plan));
    WK_TRY(wk_vendor_workspace(d->call, "MIOpen", plan->workspace, &workspace));
    miopenStatus_t status = d->run(dnn->handle, plan, workspace, d->data);
    if (status != miopenStatusAllocFailed) /* what failed once is not tried again: it would print again */
        plan->status = status;
    return status == miopenStatusSuccess ? WK_OK : fail(g, "running", status);
}

wk_status wk_dnn_run(wk_dnn_call *d)
{
    wk_gpu *g = wk_gpu_of(d->call->device);
    wk_stream *s = wk_gpu_stream(g);
    wk_key_add(&d->key, (int64_t)(intptr_t)d->call->op);
    wk_key_add(&d->key, d->call->dtype);
    if (d->key.n > WK_KEY)
        return wk_fail(WK_ERR_INTERNAL, "MIOpen: a key of %d numbers", d->key.n);
    int code = g->driver->enter(g->context);
    if (code)
        return wk_gpu_fail(g, code, d->call->op->name);
    pthread_mutex_lock(&s->dnn_lock); /* a handle is for one thread at a time */
    wk_status status = run_locked(g, s, d);
    pthread_mutex_unlock(&s->dnn_lock);
    return status;
}
