/* tensor.h: the inside of tensors and scopes. */
#ifndef WK_CORE_TENSOR_H
#define WK_CORE_TENSOR_H

#include <stdatomic.h>
#include "device.h"
#include "dtype.h"
#include "error.h"
#include "shape.h"

/* Memory that views share. Foreign memory has a release function, wick's own goes back to the device. */
typedef struct wk_storage {
    atomic_long refs;
    wk_device *device;
    void *data;
    size_t bytes;
    _Atomic uint64_t version;
    /* Of a GPU: the stream whose work used it last. Another stream waits for that one before it uses it, and a freed
     * block is that stream's to reuse. */
    _Atomic(void *) stream;
    bool owned;
    void (*release)(void *ctx);
    void *ctx;
} wk_storage;

struct wk_tensor {
    atomic_long refs;
    wk_storage *storage;
    wk_dtype dtype;
    int rank;
    int64_t shape[WK_MAX_RANK], strides[WK_MAX_RANK];
    int64_t offset;  /* of the first element in the storage */
    long scope_slot; /* where its scope keeps it, -1 for none */
};

/* Before work on the thread's stream uses the memory: waits, on the device, for the stream that used it last. */
wk_status wk_storage_use(wk_storage *s);
void wk_storage_drop(wk_storage *s);

/* What an output has to be. */
typedef struct {
    wk_dtype dtype;
    int rank;
    int64_t shape[WK_MAX_RANK];
} wk_spec;

/* A packed tensor with undefined contents, owned by the innermost scope. NULL with an error. */
wk_tensor *wk_tensor_new(wk_device *device, wk_dtype dtype, int rank, const int64_t *shape);
/* Another view on t's storage, a copy of its shape to be changed by the caller. */
wk_tensor *wk_tensor_view(const wk_tensor *t);
/* t where it is packed, else a packed copy; owned by the innermost scope either way (no wk_drop needed). */
const wk_tensor *wk_tensor_packed(const wk_tensor *t);
/* True when the bytes of the two views may overlap. */
bool wk_tensor_overlap(const wk_tensor *a, const wk_tensor *b);

/* A copy of the view on the stack, for a function to change shape and strides of; it holds no reference. (A plain
 * copy would read the count that other threads change.) */
static inline wk_tensor wk_tensor_local(const wk_tensor *t)
{
    wk_tensor v = {
        .storage = t->storage, .dtype = t->dtype, .rank = t->rank, .offset = t->offset, .scope_slot = -1};
    memcpy(v.shape, t->shape, sizeof v.shape);
    memcpy(v.strides, t->strides, sizeof v.strides);
    return v;
}

/* Address of the first element; host memory on the CPU. */
static inline void *wk_ptr(const wk_tensor *t)
{
    return (char *)t->storage->data + t->offset * (int64_t)wk_bytes(t->dtype);
}

#endif
