/* dlpack.c: tensors to and from other libraries by DLPack's ABI. */
#include <stdio.h>
#include <stdlib.h>
#include "../core/memory.h"
#include "../core/scope.h"
#include "../core/tensor.h"
#include "wick/dlpack.h"
#include "wick/io.h"

static const DLDataType dtypes[WK_DTYPE_COUNT] = {
    [WK_F32] = {kDLFloat, 32, 1}, [WK_F16] = {kDLFloat, 16, 1}, [WK_BF16] = {kDLBfloat, 16, 1},
    [WK_F64] = {kDLFloat, 64, 1}, [WK_U8] = {kDLUInt, 8, 1},    [WK_U32] = {kDLUInt, 32, 1},
    [WK_I64] = {kDLInt, 64, 1},   [WK_I32] = {kDLInt, 32, 1},   [WK_I16] = {kDLInt, 16, 1}};

/* ---- out ---- */

/* A handle is a view of its own, which belongs to no scope, beside DLPack's struct. */
typedef struct {
    DLManagedTensor handle;
    wk_tensor *view;
} plain_export;

typedef struct {
    DLManagedTensorVersioned handle;
    wk_tensor *view;
} versioned_export;

static void delete_plain(DLManagedTensor *handle)
{
    wk_drop(((plain_export *)handle->manager_ctx)->view);
    wk_free(handle->manager_ctx);
}

static void delete_versioned(DLManagedTensorVersioned *handle)
{
    wk_drop(((versioned_export *)handle->manager_ctx)->view);
    wk_free(handle->manager_ctx);
}

/* "cuda:1" */
static DLDevice device_out(const wk_device *d)
{
    static const DLDeviceType types[WK_KIND_COUNT] = {kDLCPU, kDLROCM, kDLCUDA};
    const char *colon = strchr(d->name, ':');
    return (DLDevice){types[d->kind], colon ? atoi(colon + 1) : 0};
}

/* A record of that many bytes, and a view of t that shape and strides can point into. */
static void *make_export(const char *call, const wk_tensor *t, size_t bytes, wk_tensor **view, DLTensor *out)
{
    if (wk_pending())
        return NULL;
    if (!t) {
        wk_fail(WK_ERR_ARGUMENT, "%s: t: expected a tensor, got NULL", call);
        return NULL;
    }
    wk_device *device = t->storage->device;
    if (device->kind != WK_KIND_CPU && wk_sync(device) != WK_OK)
        return NULL;
    void *record = wk_alloc(bytes);
    *view = record ? wk_tensor_view(t) : NULL;
    if (!*view) {
        wk_free(record);
        wk_fail(WK_ERR_MEMORY, "%s: out of memory", call);
        return NULL;
    }
    wk_scope_remove(*view);
    *out = (DLTensor){.data = wk_ptr(t),
                      .device = device_out(device),
                      .ndim = t->rank,
                      .dtype = dtypes[t->dtype],
                      .shape = (*view)->shape,
                      .strides = (*view)->strides};
    return record;
}

struct DLManagedTensor *wk_to_dlpack(const wk_tensor *t)
{
    wk_tensor *view;
    DLTensor out;
    plain_export *e = make_export("to_dlpack", t, sizeof *e, &view, &out);
    if (!e)
        return NULL;
    *e = (plain_export){{.dl_tensor = out, .manager_ctx = e, .deleter = delete_plain}, view};
    return &e->handle;
}

struct DLManagedTensorVersioned *wk_to_dlpack_versioned(const wk_tensor *t)
{
    wk_tensor *view;
    DLTensor out;
    versioned_export *e = make_export("to_dlpack_versioned", t, sizeof *e, &view, &out);
    if (!e)
        return NULL;
    *e = (versioned_export){
        {.version = {1, 0}, .manager_ctx = e, .deleter = delete_versioned, .dl_tensor = out}, view};
    return &e->handle;
}

/* ---- in ---- */

static const char call[] = "from_dlpack";

static wk_device *device_in(DLDevice d)
{
    char name[32];
    const char *kind = NULL;
    switch ((int)d.device_type) {
    case kDLCPU:
    case kDLCUDAHost:
    case kDLROCMHost: return wk_cpu();
    case kDLCUDA:
    case kDLCUDAManaged: kind = "cuda"; break;
    case kDLROCM: kind = "rocm"; break;
    }
    if (!kind) {
        wk_fail(WK_ERR_DEVICE, "%s: device: expected kDLCPU, kDLCUDA or kDLROCM, got type %d", call,
                (int)d.device_type);
        return NULL;
    }
    snprintf(name, sizeof name, "%s:%d", kind, (int)d.device_id);
    return wk_device_open(name);
}

static wk_dtype dtype_in(DLDataType d)
{
    for (int i = 0; d.lanes == 1 && i < WK_DTYPE_COUNT; i++) {
        if (dtypes[i].code == d.code && dtypes[i].bits == d.bits)
            return (wk_dtype)i;
    }
    if (d.lanes == 1 && d.code == kDLBool && d.bits == 8)
        return WK_U8;
    wk_fail(WK_ERR_DTYPE,
            "%s: dtype: expected f32, f16, bf16, f64, u8, u32, i64, i32, i16 or bool, got code %d, %d bits, "
            "%d lanes",
            call, d.code, d.bits, d.lanes);
    return WK_DTYPE_COUNT;
}

/* Strides without those of dimensions that take no step, which may be anything. */
static wk_status strides_in(const DLTensor *t, int64_t *strides)
{
    for (int i = 0; i < t->ndim; i++) {
        strides[i] = t->shape[i] > 1 ? t->strides[i] : 1;
        if (strides[i] < 0)
            return wk_fail(WK_ERR_SHAPE, "%s: strides: expected 0 or more, got %lld in dim %d", call,
                           (long long)strides[i], i);
    }
    return WK_OK;
}

static wk_tensor *import(const DLTensor *t, void (*release)(void *), void *handle)
{
    int64_t strides[WK_MAX_RANK];
    if (t->ndim < 0 || t->ndim > WK_MAX_RANK || (t->ndim > 0 && !t->shape)) {
        wk_fail(WK_ERR_SHAPE, "%s: shape: expected one of rank 0 to %d, got rank %d", call, WK_MAX_RANK,
                (int)t->ndim);
        return NULL;
    }
    wk_dtype dtype = dtype_in(t->dtype);
    wk_device *device = dtype == WK_DTYPE_COUNT ? NULL : device_in(t->device);
    if (!device || (t->strides && strides_in(t, strides) != WK_OK))
        return NULL;
    void *data = t->data ? (char *)t->data + t->byte_offset : NULL;
    if ((uintptr_t)data % wk_bytes(dtype) != 0) {
        wk_fail(WK_ERR_ARGUMENT,
                "%s: data: expected an address that is a multiple of %zu, got one that is not", call,
                wk_bytes(dtype));
        return NULL;
    }
    return wk_from_pointer(device, dtype, t->ndim, t->shape, t->strides ? strides : NULL, data, release,
                           handle);
}

static void release_plain(void *handle)
{
    DLManagedTensor *h = handle;
    if (h->deleter)
        h->deleter(h);
}

static void release_versioned(void *handle)
{
    DLManagedTensorVersioned *h = handle;
    if (h->deleter)
        h->deleter(h);
}

static wk_tensor *no_handle(void)
{
    wk_fail(WK_ERR_ARGUMENT, "%s: handle: expected a tensor, got NULL", call);
    return NULL;
}

wk_tensor *wk_from_dlpack(struct DLManagedTensor *handle)
{
    if (wk_pending())
        return NULL;
    return handle ? import(&handle->dl_tensor, release_plain, handle) : no_handle();
}

wk_tensor *wk_from_dlpack_versioned(struct DLManagedTensorVersioned *handle)
{
    if (wk_pending())
        return NULL;
    if (!handle)
        return no_handle();
    if (handle->version.major != 1) {
        wk_fail(WK_ERR_FORMAT, "%s: handle: expected version 1, got %u.%u", call, handle->version.major,
                handle->version.minor);
        return NULL;
    }
    return import(&handle->dl_tensor, release_versioned, handle);
}
