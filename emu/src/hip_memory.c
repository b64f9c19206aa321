/* hip_memory.c - the HIP memory entry points: allocation, copies, fills, pools, pointer queries. */
#define _GNU_SOURCE
#include "hip_api.h"

#define RET(e) return api_return((e), __func__)
#define STREAM(s) \
    do { \
        if (!stream_ok(s)) \
            RET(hipErrorInvalidHandle); \
    } while (0)

/* ---- allocation ----------------------------------------------------------------------------------------------- */
static hipError_t allocate(void **p, size_t n, int kind, unsigned flags)
{
    if (!p)
        RET(hipErrorInvalidValue);
    *p = NULL;
    hipError_t e = capture_unsafe();
    if (e)
        RET(e);
    if (!n)
        RET(hipSuccess);
    *p = region_alloc(n, kind, flags);
    RET(*p ? hipSuccess : hipErrorOutOfMemory);
}
static hipError_t release(void *p)
{
    Region r;
    if (!p)
        RET(hipSuccess);
    if (!region_find((uintptr_t)p, &r) || r.kind == REGION_INTERNAL || !r.base || r.lo != (uintptr_t)p)
        RET(hipErrorInvalidValue);
    hipError_t e = capture_unsafe();
    if (e)
        RET(e);
    (void)!stream_drain_all(); /* freeing waits for the device */
    RET(region_free(p) ? hipSuccess : hipErrorInvalidValue);
}
hipError_t hipMalloc(void **p, size_t n) { return allocate(p, n, REGION_DEVICE, 0); }
hipError_t hipExtMallocWithFlags(void **p, size_t n, unsigned f) { return allocate(p, n, REGION_DEVICE, f); }
hipError_t hipMallocManaged(void **p, size_t n, unsigned f) { return allocate(p, n, REGION_MANAGED, f); }
hipError_t hipHostMalloc(void **p, size_t n, unsigned f) { return allocate(p, n, REGION_HOST, f); }
hipError_t hipHostAlloc(void **p, size_t n, unsigned f) { return allocate(p, n, REGION_HOST, f); }
hipError_t hipMallocHost(void **p, size_t n) { return allocate(p, n, REGION_HOST, 0); }
hipError_t hipMemAllocHost(void **p, size_t n) { return allocate(p, n, REGION_HOST, 0); }
hipError_t hipFree(void *p) { return release(p); }
hipError_t hipHostFree(void *p) { return release(p); }
hipError_t hipFreeHost(void *p) { return release(p); }
hipError_t hipMallocPitch(void **p, size_t *pitch, size_t w, size_t h)
{
    if (!pitch)
        RET(hipErrorInvalidValue);
    *pitch = (w + 255) & ~(size_t)255;
    return allocate(p, *pitch * h, REGION_DEVICE, 0);
}
hipError_t hipMemAllocPitch(hipDeviceptr_t *p, size_t *pitch, size_t w, size_t h, unsigned e)
{
    (void)e;
    return hipMallocPitch(p, pitch, w, h);
}
hipError_t hipHostRegister(void *p, size_t n, unsigned f)
{
    if (!p || !n)
        RET(hipErrorInvalidValue);
    RET(region_add(p, n, REGION_HOST, f) ? hipSuccess : hipErrorHostMemoryAlreadyRegistered);
}
hipError_t hipHostUnregister(void *p)
{
    Region r;
    bool ok = region_find((uintptr_t)p, &r) && !r.base && region_remove(p);
    RET(ok ? hipSuccess : hipErrorHostMemoryNotRegistered);
}
hipError_t hipHostGetDevicePointer(void **d, void *h, unsigned f)
{
    Region r;
    (void)f;
    if (!d || !region_find((uintptr_t)h, &r))
        RET(hipErrorInvalidValue);
    *d = h;
    RET(hipSuccess);
}
hipError_t hipHostGetFlags(unsigned *f, void *h)
{
    Region r;
    if (!f || !region_find((uintptr_t)h, &r) || r.kind != REGION_HOST)
        RET(hipErrorInvalidValue);
    *f = r.flags;
    RET(hipSuccess);
}
hipError_t hipMemGetInfo(size_t *free_bytes, size_t *total)
{
    if (free_bytes)
        *free_bytes = EMU_TOTAL_MEM - region_device_bytes();
    if (total)
        *total = EMU_TOTAL_MEM;
    RET(hipSuccess);
}

/* ---- stream-ordered allocation: one pool, at once ------------------------------------------------------------------ */
static int the_pool;
#define POOL ((hipMemPool_t)&the_pool)
hipError_t hipMallocAsync(void **p, size_t n, hipStream_t s)
{
    STREAM(s);
    if (!p)
        RET(hipErrorInvalidValue);
    if (!stream_capturing(s))
        return hipMalloc(p, n);
    *p = capture_allocate(s, n);
    RET(*p ? hipSuccess : hipErrorOutOfMemory);
}
hipError_t hipMallocFromPoolAsync(void **p, size_t n, hipMemPool_t m, hipStream_t s)
{
    (void)m;
    return hipMallocAsync(p, n, s);
}
hipError_t hipFreeAsync(void *p, hipStream_t s)
{
    Region r;
    STREAM(s);
    if (!p)
        RET(hipSuccess);
    if (!region_find((uintptr_t)p, &r) || r.kind != REGION_DEVICE || r.lo != (uintptr_t)p)
        RET(hipErrorInvalidValue);
    RET(stream_free(s, p));
}
hipError_t hipDeviceGetDefaultMemPool(hipMemPool_t *m, int d)
{
    *m = POOL;
    RET(d ? hipErrorInvalidDevice : hipSuccess);
}
hipError_t hipDeviceGetMemPool(hipMemPool_t *m, int d)
{
    *m = POOL;
    RET(d ? hipErrorInvalidDevice : hipSuccess);
}
hipError_t hipDeviceSetMemPool(int d, hipMemPool_t m)
{
    (void)m;
    RET(d ? hipErrorInvalidDevice : hipSuccess);
}
hipError_t hipMemPoolCreate(hipMemPool_t *m, const hipMemPoolProps *p)
{
    (void)p;
    *m = POOL;
    RET(hipSuccess);
}
hipError_t hipMemPoolDestroy(hipMemPool_t m)
{
    (void)m;
    RET(hipSuccess);
}
hipError_t hipMemPoolTrimTo(hipMemPool_t m, size_t n)
{
    (void)m, (void)n;
    RET(hipSuccess);
}
hipError_t hipMemPoolSetAttribute(hipMemPool_t m, hipMemPoolAttr a, void *v)
{
    (void)m, (void)a, (void)v;
    RET(hipSuccess);
}
hipError_t hipMemPoolGetAttribute(hipMemPool_t m, hipMemPoolAttr a, void *v)
{
    (void)m, (void)a;
    *(uint64_t *)v = 0;
    RET(hipSuccess);
}

/* ---- copies and fills ------------------------------------------------------------------------------------------------ */
/* A range that starts in an allocation must end in it; a range meant to be on the device must start in one. */
static bool range_ok(const void *p, size_t n, bool device)
{
    Region r;
    if (!region_find((uintptr_t)p, &r))
        return !device;
    return (uintptr_t)p + n <= r.hi;
}
/* memory a kernel may touch: only then does an asynchronous copy return before it is done */
static bool pinned(const void *p)
{
    Region r;
    return region_find((uintptr_t)p, &r);
}
static hipError_t copy_on(void *d, const void *s, size_t n, hipMemcpyKind k, hipStream_t st, bool wait)
{
    hipError_t e = wait ? capture_forbids_wait(st) : hipSuccess;
    if (e)
        RET(e);
    if (!n)
        RET(wait ? stream_drain(st) : hipSuccess);
    if (!d || !s)
        RET(hipErrorInvalidValue);
    bool to = k == hipMemcpyHostToDevice || k == hipMemcpyDeviceToDevice,
         from = k == hipMemcpyDeviceToHost || k == hipMemcpyDeviceToDevice;
    if (!range_ok(d, n, to) || !range_ok(s, n, from)) {
        emu_log("copy of %zu bytes from %p to %p (kind %d) leaves its allocation", n, s, d, (int)k);
        RET(hipErrorInvalidValue);
    }
    if (api_device_state())
        RET(api_device_state());
    e = stream_copy(st, d, s, n);
    if (!e && !stream_capturing(st) && (wait || !pinned(d) || !pinned(s)))
        e = stream_drain(st);
    RET(e);
}
static hipError_t copy(void *d, const void *s, size_t n, hipMemcpyKind k) { return copy_on(d, s, n, k, NULL, true); }
static hipError_t copy2d(void *d, size_t dp, const void *s, size_t sp, size_t w, size_t h, hipMemcpyKind k,
                         hipStream_t st, bool wait)
{
    if (w > dp || w > sp)
        RET(hipErrorInvalidPitchValue);
    for (size_t i = 0; i < h; i++) {
        hipError_t e = copy_on((char *)d + i * dp, (const char *)s + i * sp, w, k, st, wait);
        if (e)
            return e;
    }
    RET(hipSuccess);
}
hipError_t hipMemcpy(void *d, const void *s, size_t n, hipMemcpyKind k) { return copy(d, s, n, k); }
hipError_t hipMemcpyAsync(void *d, const void *s, size_t n, hipMemcpyKind k, hipStream_t st)
{
    STREAM(st);
    return copy_on(d, s, n, k, st, false);
}
hipError_t hipMemcpyWithStream(void *d, const void *s, size_t n, hipMemcpyKind k, hipStream_t st)
{
    STREAM(st);
    return copy_on(d, s, n, k, st, true);
}
hipError_t hipMemcpyHtoD(hipDeviceptr_t d, void *s, size_t n) { return copy(d, s, n, hipMemcpyHostToDevice); }
hipError_t hipMemcpyDtoH(void *d, hipDeviceptr_t s, size_t n) { return copy(d, s, n, hipMemcpyDeviceToHost); }
hipError_t hipMemcpyDtoD(hipDeviceptr_t d, hipDeviceptr_t s, size_t n)
{
    return copy(d, s, n, hipMemcpyDeviceToDevice);
}
hipError_t hipMemcpyHtoDAsync(hipDeviceptr_t d, void *s, size_t n, hipStream_t st)
{
    STREAM(st);
    return copy_on(d, s, n, hipMemcpyHostToDevice, st, false);
}
hipError_t hipMemcpyDtoHAsync(void *d, hipDeviceptr_t s, size_t n, hipStream_t st)
{
    STREAM(st);
    return copy_on(d, s, n, hipMemcpyDeviceToHost, st, false);
}
hipError_t hipMemcpyDtoDAsync(hipDeviceptr_t d, hipDeviceptr_t s, size_t n, hipStream_t st)
{
    STREAM(st);
    return copy_on(d, s, n, hipMemcpyDeviceToDevice, st, false);
}
hipError_t hipMemcpyPeer(void *d, int dd, const void *s, int sd, size_t n)
{
    (void)dd, (void)sd;
    return copy(d, s, n, hipMemcpyDeviceToDevice);
}
hipError_t hipMemcpyPeerAsync(void *d, int dd, const void *s, int sd, size_t n, hipStream_t st)
{
    (void)dd, (void)sd;
    STREAM(st);
    return copy_on(d, s, n, hipMemcpyDeviceToDevice, st, false);
}
hipError_t hipMemcpy2D(void *d, size_t dp, const void *s, size_t sp, size_t w, size_t h, hipMemcpyKind k)
{
    return copy2d(d, dp, s, sp, w, h, k, NULL, true);
}
hipError_t hipMemcpy2DAsync(void *d, size_t dp, const void *s, size_t sp, size_t w, size_t h, hipMemcpyKind k,
                            hipStream_t st)
{
    STREAM(st);
    return copy2d(d, dp, s, sp, w, h, k, st, false);
}

static hipError_t fill(void *d, uint64_t v, size_t unit, size_t count, hipStream_t s, bool wait)
{
    STREAM(s);
    hipError_t e = wait ? capture_forbids_wait(s) : hipSuccess;
    if (e)
        RET(e);
    if (count && (!d || !range_ok(d, unit * count, true))) {
        emu_log("memset of %zu bytes at %p leaves its allocation", unit * count, d);
        RET(hipErrorInvalidValue);
    }
    if (api_device_state())
        RET(api_device_state());
    e = count ? stream_fill(s, d, v, unit, count) : hipSuccess;
    RET(!e && wait ? stream_drain(s) : e);
}
hipError_t hipMemset(void *d, int v, size_t n) { return fill(d, (uint8_t)v, 1, n, NULL, true); }
hipError_t hipMemsetAsync(void *d, int v, size_t n, hipStream_t s) { return fill(d, (uint8_t)v, 1, n, s, false); }
hipError_t hipMemsetD8(hipDeviceptr_t d, unsigned char v, size_t n) { return fill(d, v, 1, n, NULL, true); }
hipError_t hipMemsetD8Async(hipDeviceptr_t d, unsigned char v, size_t n, hipStream_t s)
{
    return fill(d, v, 1, n, s, false);
}
hipError_t hipMemsetD16(hipDeviceptr_t d, unsigned short v, size_t n) { return fill(d, v, 2, n, NULL, true); }
hipError_t hipMemsetD16Async(hipDeviceptr_t d, unsigned short v, size_t n, hipStream_t s)
{
    return fill(d, v, 2, n, s, false);
}
hipError_t hipMemsetD32(hipDeviceptr_t d, int v, size_t n) { return fill(d, (uint32_t)v, 4, n, NULL, true); }
hipError_t hipMemsetD32Async(hipDeviceptr_t d, int v, size_t n, hipStream_t s)
{
    return fill(d, (uint32_t)v, 4, n, s, false);
}
static hipError_t fill2d(void *d, size_t pitch, int v, size_t w, size_t h, hipStream_t s, bool wait)
{
    for (size_t i = 0; i < h; i++) {
        hipError_t e = fill((char *)d + i * pitch, (uint8_t)v, 1, w, s, wait);
        if (e)
            return e;
    }
    RET(hipSuccess);
}
hipError_t hipMemset2D(void *d, size_t pitch, int v, size_t w, size_t h)
{
    return fill2d(d, pitch, v, w, h, NULL, true);
}
hipError_t hipMemset2DAsync(void *d, size_t pitch, int v, size_t w, size_t h, hipStream_t s)
{
    return fill2d(d, pitch, v, w, h, s, false);
}

/* ---- device variables of compiled code -------------------------------------------------------------------------------- */
hipError_t hipGetSymbolAddress(void **p, const void *sym)
{
    size_t n;
    RET(p && fatbin_variable(sym, p, &n) ? hipSuccess : hipErrorInvalidSymbol);
}
hipError_t hipGetSymbolSize(size_t *n, const void *sym)
{
    void *p;
    RET(n && fatbin_variable(sym, &p, n) ? hipSuccess : hipErrorInvalidSymbol);
}
/* asynchronous on a captured stream, at once otherwise */
static hipError_t symbol_copy(const void *sym, void *host, size_t n, size_t off, bool to_device, hipStream_t s)
{
    void *p;
    size_t size;
    if (!fatbin_variable(sym, &p, &size))
        RET(hipErrorInvalidSymbol);
    if (off > size || n > size - off)
        RET(hipErrorInvalidValue);
    void *from = to_device ? host : (char *)p + off, *to = to_device ? (char *)p + off : host;
    if (stream_capturing(s))
        RET(stream_copy(s, to, from, n));
    hipError_t e = capture_forbids_wait(NULL);
    if (e)
        RET(e);
    (void)!stream_drain(NULL);
    memmove(to, from, n);
    RET(api_device_state());
}
hipError_t hipMemcpyToSymbol(const void *sym, const void *s, size_t n, size_t off, hipMemcpyKind k)
{
    (void)k;
    return symbol_copy(sym, (void *)s, n, off, true, NULL);
}
hipError_t hipMemcpyToSymbolAsync(const void *sym, const void *s, size_t n, size_t off, hipMemcpyKind k, hipStream_t st)
{
    (void)k;
    STREAM(st);
    return symbol_copy(sym, (void *)s, n, off, true, st);
}
hipError_t hipMemcpyFromSymbol(void *d, const void *sym, size_t n, size_t off, hipMemcpyKind k)
{
    (void)k;
    return symbol_copy(sym, d, n, off, false, NULL);
}
hipError_t hipMemcpyFromSymbolAsync(void *d, const void *sym, size_t n, size_t off, hipMemcpyKind k, hipStream_t st)
{
    (void)k;
    STREAM(st);
    return symbol_copy(sym, d, n, off, false, st);
}

/* ---- what a pointer is --------------------------------------------------------------------------------------------------- */
hipError_t hipPointerGetAttributes(hipPointerAttribute_t *a, const void *p)
{
    Region r;
    if (!a || !p)
        RET(hipErrorInvalidValue);
    memset(a, 0, sizeof *a);
    if (!region_find((uintptr_t)p, &r)) { /* plain host memory */
        a->type = hipMemoryTypeUnregistered;
        a->device = hipInvalidDeviceId;
        RET(hipSuccess);
    }
    a->type = r.kind == REGION_HOST      ? hipMemoryTypeHost
              : r.kind == REGION_MANAGED ? hipMemoryTypeManaged
                                         : hipMemoryTypeDevice;
    a->isManaged = r.kind == REGION_MANAGED;
    a->devicePointer = (void *)p;
    a->hostPointer = r.kind == REGION_HOST || r.kind == REGION_MANAGED ? (void *)p : NULL;
    a->allocationFlags = r.flags;
    RET(hipSuccess);
}
hipError_t hipMemGetAddressRange(hipDeviceptr_t *base, size_t *size, hipDeviceptr_t p)
{
    Region r;
    if (!region_find((uintptr_t)p, &r))
        RET(hipErrorNotFound);
    if (base)
        *base = (void *)r.lo;
    if (size)
        *size = r.hi - r.lo;
    RET(hipSuccess);
}
hipError_t hipMemPtrGetInfo(void *p, size_t *size)
{
    Region r;
    if (!size || !region_find((uintptr_t)p, &r) || r.lo != (uintptr_t)p)
        RET(hipErrorInvalidValue);
    *size = r.hi - r.lo;
    RET(hipSuccess);
}
hipError_t hipMemAdvise(const void *p, size_t n, hipMemoryAdvise a, int d)
{
    (void)p, (void)n, (void)a, (void)d;
    RET(hipSuccess);
}
hipError_t hipMemPrefetchAsync(const void *p, size_t n, int d, hipStream_t s)
{
    (void)p, (void)n, (void)d;
    STREAM(s);
    RET(hipSuccess);
}
hipError_t hipStreamWriteValue32(hipStream_t s, void *p, uint32_t v, unsigned f)
{
    (void)f;
    return fill(p, v, 4, 1, s, false);
}
hipError_t hipStreamWriteValue64(hipStream_t s, void *p, uint64_t v, unsigned f)
{
    (void)f;
    return fill(p, v, 8, 1, s, false);
}
