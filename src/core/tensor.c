/* tensor.c: storage and tensors; views are in view.c. */
#include "memory.h"
#include "scope.h"
#include "tensor.h"

/* ---- storage ---- */

static wk_storage *storage_new(wk_device *device, void *data, size_t bytes, bool owned)
{
    wk_storage *s = wk_alloc(sizeof *s);
    if (!s)
        return NULL;
    *s = (wk_storage){.refs = 1, .device = device, .data = data, .bytes = bytes, .owned = owned};
    return s;
}

void wk_storage_drop(wk_storage *s)
{
    if (atomic_fetch_sub(&s->refs, 1) != 1)
        return;
    if (s->owned)
        s->device->table->free(s->device, s->data, s->bytes, atomic_load(&s->stream));
    if (s->release)
        s->release(s->ctx);
    wk_free(s);
}

wk_status wk_storage_use(wk_storage *s) { return s->device->table->use ? s->device->table->use(s) : WK_OK; }

/* ---- tensors ---- */

static wk_tensor *out_of_memory(size_t bytes, const wk_device *device)
{
    wk_fail(WK_ERR_MEMORY, "out of memory: %zu bytes on %s", bytes, device->name);
    return NULL;
}

/* A tensor over storage s, whose reference it takes (dropped on failure). */
static wk_tensor *tensor_over(wk_storage *s, wk_dtype dtype, int rank, const int64_t *shape)
{
    wk_tensor *t = wk_alloc(sizeof *t);
    if (t) {
        *t = (wk_tensor){.refs = 1, .storage = s, .dtype = dtype, .rank = rank, .scope_slot = -1};
        if (rank > 0) /* without dimensions shape may be NULL */
            memcpy(t->shape, shape, (size_t)rank * sizeof *shape);
        wk_shape_strides(rank, shape, t->strides);
        if (wk_scope_add(t))
            return t;
    }
    wk_free(t);
    wk_device *device = s->device;
    wk_storage_drop(s);
    return out_of_memory(sizeof *t, device);
}

static wk_status check_new(const char *call, const wk_device *device, wk_dtype dtype, int rank,
                           const int64_t *shape)
{
    if (!device)
        return wk_fail(WK_ERR_ARGUMENT, "%s: device: expected a device, got NULL", call);
    if (!wk_dtype_valid(dtype))
        return wk_fail(WK_ERR_DTYPE, "%s: dtype: expected one of wk_dtype, got %d", call, (int)dtype);
    if (rank < 0 || rank > WK_MAX_RANK)
        return wk_fail(WK_ERR_SHAPE, "%s: rank: expected 0 to %d, got %d", call, WK_MAX_RANK, rank);
    if (rank > 0 && !shape)
        return wk_fail(WK_ERR_ARGUMENT, "%s: shape: expected %d sizes, got NULL", call, rank);
    wk_shape_text text;
    if (wk_shape_count(rank, shape) < 0)
        return wk_fail(WK_ERR_SHAPE,
                       "%s: shape: expected sizes of 0 or more and less than 2^60 elements, got %s", call,
                       wk_shape_str(&text, rank, shape));
    return WK_OK;
}

wk_tensor *wk_tensor_new(wk_device *device, wk_dtype dtype, int rank, const int64_t *shape)
{
    size_t bytes = (size_t)wk_shape_count(rank, shape) * wk_bytes(dtype);
    void *stream = NULL, *data = device->table->alloc(device, bytes, &stream);
    if (!data)
        return out_of_memory(bytes, device);
    wk_storage *s = storage_new(device, data, bytes, true);
    if (!s) {
        device->table->free(device, data, bytes, stream);
        return out_of_memory(sizeof *s, device);
    }
    atomic_store(&s->stream, stream);
    return tensor_over(s, dtype, rank, shape);
}

wk_tensor *wk_empty(wk_device *device, wk_dtype dtype, int rank, const int64_t *shape)
{
    if (wk_pending() || check_new("empty", device, dtype, rank, shape) != WK_OK)
        return NULL;
    return wk_tensor_new(device, dtype, rank, shape);
}

wk_tensor *wk_from_host(wk_device *device, wk_dtype dtype, int rank, const int64_t *shape, const void *data)
{
    if (wk_pending() || check_new("from_host", device, dtype, rank, shape) != WK_OK)
        return NULL;
    int64_t count = wk_shape_count(rank, shape);
    if (!data && count > 0) {
        wk_fail(WK_ERR_ARGUMENT, "from_host: data: expected %lld elements, got NULL", (long long)count);
        return NULL;
    }
    wk_tensor *t = wk_tensor_new(device, dtype, rank, shape);
    if (t && count &&
        device->table->upload(device, wk_ptr(t), data, (size_t)count * wk_bytes(dtype)) != WK_OK) {
        wk_drop(t);
        return NULL;
    }
    return t;
}

/* Elements from the first to the last one that the view reaches, both counted; 0 for an empty view. -1 when a
 * stride is negative or the reach is past counting. */
static int64_t view_reach(int rank, const int64_t *shape, const int64_t *strides)
{
    int64_t last = 0;
    if (wk_shape_count(rank, shape) == 0)
        return 0;
    for (int i = 0; i < rank; i++) {
        int64_t step;
        if (strides[i] < 0 || __builtin_mul_overflow(shape[i] - 1, strides[i], &step) ||
            __builtin_add_overflow(last, step, &last) || last > INT64_MAX / 16)
            return -1;
    }
    return last + 1;
}

wk_tensor *wk_from_pointer(wk_device *device, wk_dtype dtype, int rank, const int64_t *shape,
                           const int64_t *strides, void *data, void (*release)(void *ctx), void *ctx)
{
    if (wk_pending() || check_new("from_pointer", device, dtype, rank, shape) != WK_OK)
        return NULL;
    int64_t packed[WK_MAX_RANK];
    wk_shape_strides(rank, shape, packed);
    int64_t reach = view_reach(rank, shape, strides ? strides : packed);
    if (reach < 0) {
        wk_fail(WK_ERR_SHAPE, "from_pointer: strides: expected 0 or more and a reach under 2^59 elements");
        return NULL;
    }
    if (!data && reach > 0) {
        wk_fail(WK_ERR_ARGUMENT, "from_pointer: data: expected %lld elements, got NULL", (long long)reach);
        return NULL;
    }
    if ((uintptr_t)data % wk_bytes(dtype) && reach > 0) {
        wk_fail(WK_ERR_ARGUMENT, "from_pointer: data: expected an address aligned to %s",
                wk_dtype_name(dtype));
        return NULL;
    }
    wk_storage *s = storage_new(device, data, (size_t)reach * wk_bytes(dtype), false);
    if (!s)
        return out_of_memory(sizeof *s, device);
    wk_tensor *t = tensor_over(s, dtype, rank, shape);
    if (!t)
        return NULL;
    s->release = release; /* from here on: a failed call must leave the memory to the caller */
    s->ctx = ctx;
    if (strides && rank > 0)
        memcpy(t->strides, strides, (size_t)rank * sizeof *strides);
    return t;
}

wk_tensor *wk_tensor_view(const wk_tensor *t)
{
    atomic_fetch_add(&t->storage->refs, 1);
    wk_tensor *v = tensor_over(t->storage, t->dtype, t->rank, t->shape);
    if (v) {
        memcpy(v->strides, t->strides, sizeof t->strides);
        v->offset = t->offset;
    }
    return v;
}

wk_tensor *wk_as_strided(const wk_tensor *t, int rank, const int64_t *shape, const int64_t *strides,
                         int64_t offset)
{
    if (wk_pending())
        return NULL;
    if (!t || (rank > 0 && !strides)) {
        wk_fail(WK_ERR_ARGUMENT, "as_strided: %s: got NULL", t ? "strides" : "t");
        return NULL;
    }
    if (check_new("as_strided", t->storage->device, t->dtype, rank, shape) != WK_OK)
        return NULL;
    int64_t reach = view_reach(rank, shape, strides),
            total = (int64_t)(t->storage->bytes / wk_bytes(t->dtype));
    if (reach < 0 || offset < -t->offset || offset > total - t->offset ||
        t->offset + offset + reach > total) {
        wk_fail(WK_ERR_SHAPE,
                "as_strided: strides and offset: expected a view inside the storage's %lld elements, got one "
                "that "
                "begins at %lld and reaches %lld",
                (long long)total, (long long)(t->offset + offset), (long long)reach);
        return NULL;
    }
    wk_tensor *v = wk_tensor_view(t);
    if (!v)
        return NULL;
    v->rank = rank;
    v->offset += offset;
    for (int i = 0; i < rank; i++) {
        v->shape[i] = shape[i];
        v->strides[i] = strides[i];
    }
    return v;
}

wk_tensor *wk_retain(const wk_tensor *t)
{
    wk_tensor *mine = (wk_tensor *)t; /* the count is not part of what const promises */
    if (mine)
        atomic_fetch_add(&mine->refs, 1);
    return mine;
}

void wk_drop(wk_tensor *t)
{
    if (!t)
        return;
    /* Only the last reference may look at the slot: until then the scope's thread may write it. */
    if (atomic_load(&t->refs) == 1 && t->scope_slot >= 0)
        wk_scope_remove(t);
    if (atomic_fetch_sub(&t->refs, 1) != 1)
        return;
    wk_storage_drop(t->storage);
    wk_free(t);
}

/* ---- questions ---- */

wk_dtype wk_dtype_of(const wk_tensor *t) { return t ? t->dtype : WK_DTYPE_COUNT; }
int wk_rank(const wk_tensor *t) { return t ? t->rank : -1; }
const int64_t *wk_shape(const wk_tensor *t) { return t ? t->shape : NULL; }
const int64_t *wk_strides(const wk_tensor *t) { return t ? t->strides : NULL; }
int64_t wk_count(const wk_tensor *t) { return t ? wk_shape_count(t->rank, t->shape) : 0; }
wk_device *wk_device_of(const wk_tensor *t) { return t ? t->storage->device : NULL; }
void *wk_data(const wk_tensor *t) { return t ? wk_ptr(t) : NULL; }
uint64_t wk_storage_version(const wk_tensor *t) { return t ? atomic_load(&t->storage->version) : 0; }

int64_t wk_dim(const wk_tensor *t, int dim)
{
    int d = t ? wk_shape_dim(t->rank, dim) : -1;
    return d < 0 ? -1 : t->shape[d];
}

int wk_is_packed(const wk_tensor *t)
{
    int64_t step = 1;
    for (int i = t ? t->rank - 1 : -1; i >= 0; i--) {
        if (t->shape[i] == 0)
            return 1;
        if (t->shape[i] != 1 && t->strides[i] != step)
            return 0;
        step *= t->shape[i];
    }
    return t != NULL;
}

bool wk_tensor_overlap(const wk_tensor *a, const wk_tensor *b)
{
    const char *pa = wk_ptr(a), *pb = wk_ptr(b);
    const char *ea = pa + view_reach(a->rank, a->shape, a->strides) * (int64_t)wk_bytes(a->dtype);
    const char *eb = pb + view_reach(b->rank, b->shape, b->strides) * (int64_t)wk_bytes(b->dtype);
    return pa < eb && pb < ea;
}

/* ---- between host and devices ---- */

wk_status wk_to_host(const wk_tensor *t, void *data)
{
    if (wk_pending())
        return wk_error_status();
    if (!t || (!data && wk_count(t) > 0))
        return wk_fail(WK_ERR_ARGUMENT, "to_host: %s: got NULL", t ? "data" : "t");
    if (wk_count(t) == 0)
        return WK_OK;
    if (!wk_scope_open())
        return wk_fail(WK_ERR_MEMORY, "to_host: out of memory");
    const wk_tensor *p = wk_tensor_packed(t);
    wk_device *device = t->storage->device;
    wk_status status = wk_error_status();
    if (p && (status = wk_storage_use(p->storage)) == WK_OK)
        status = device->table->download(device, data, wk_ptr(p), (size_t)wk_count(t) * wk_bytes(t->dtype));
    wk_scope_end();
    return status;
}

wk_tensor *wk_to(const wk_tensor *t, wk_device *device)
{
    if (wk_pending())
        return NULL;
    if (!t || !device) {
        wk_fail(WK_ERR_ARGUMENT, "to: %s: got NULL", t ? "device" : "t");
        return NULL;
    }
    if (t->storage->device == device)
        return wk_tensor_view(t);
    size_t bytes = (size_t)wk_count(t) * wk_bytes(t->dtype);
    void *host = wk_block_alloc(bytes);
    if (!host)
        return out_of_memory(bytes, wk_cpu());
    wk_tensor *moved = NULL;
    if (wk_to_host(t, host) == WK_OK)
        moved = wk_from_host(device, t->dtype, t->rank, t->shape, host);
    wk_block_free(host, bytes);
    return moved;
}

double wk_item(const wk_tensor *t)
{
    if (!t)
        wk_fail(WK_ERR_ARGUMENT, "item: t: expected a tensor, got NULL");
    else if (wk_count(t) != 1)
        wk_fail(WK_ERR_SHAPE, "item: t: expected one element, got %lld", (long long)wk_count(t));
    if (wk_pending())
        return NAN;
    double bits;
    return wk_to_host(t, &bits) == WK_OK ? wk_load_f64(t->dtype, &bits) : NAN;
}
