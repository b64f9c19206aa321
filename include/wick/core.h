/* wick/core.h: tensors, devices, scopes, errors. Every function says who owns what and what may be NULL.
 *
 * Threads: distinct threads may use distinct tensors, and the same tensor read-only, at the same time.
 * Errors: a call that fails returns NULL (or a status) and records the reason for the calling thread; see
 * wk_error. The library never prints, exits or aborts.
 * A program that loads it by dlopen may close and open it at will; it stays in memory, as its threads do. */
#ifndef WICK_CORE_H
#define WICK_CORE_H

#include <stddef.h>
#include <stdint.h>

#if defined(_WIN32)
#define WK_API
#else
#define WK_API __attribute__((visibility("default")))
#endif

#ifdef __cplusplus
extern "C" {
#endif

#define WK_VERSION_MAJOR 0
#define WK_VERSION_MINOR 1
#define WK_VERSION_PATCH 0
#define WK_MAX_RANK 8

typedef enum {
    WK_F32,
    WK_F16,
    WK_BF16,
    WK_F64,
    WK_U8,
    WK_U32,
    WK_I64,
    WK_I32,
    WK_I16,
    WK_DTYPE_COUNT
} wk_dtype;

typedef enum {
    WK_OK,
    WK_ERR_ARGUMENT,    /* an argument is missing, or of the wrong kind */
    WK_ERR_SHAPE,       /* a rank or a size does not fit */
    WK_ERR_DTYPE,       /* a dtype the op does not take, or dtypes that do not fit together */
    WK_ERR_PARAM,       /* a parameter is out of its range */
    WK_ERR_INDEX,       /* an index points outside its tensor; an integer division by zero */
    WK_ERR_DEVICE,      /* no such device, tensors on different devices, a driver's error */
    WK_ERR_MEMORY,      /* out of memory */
    WK_ERR_UNSUPPORTED, /* a forced implementation does not take the call */
    WK_ERR_IO,          /* a file cannot be opened, read or written */
    WK_ERR_FORMAT,      /* a file is malformed */
    WK_ERR_INTERNAL     /* a defect of wick */
} wk_status;

typedef struct wk_tensor wk_tensor;
typedef struct wk_device wk_device;

/* ---- Version ---- */

/* "0.1.0". Never NULL. */
WK_API const char *wk_version(void);

/* ---- Errors ---- */

/* The status of the first call that failed on this thread since wk_error_clear; WK_OK when none did.
 * While an error is pending every op on this thread returns NULL at once, so that a chain of calls is checked
 * once, at its end. */
WK_API wk_status wk_error_status(void);

/* Its message, one line, naming the op, the argument and what was expected: "" when nothing is pending. Valid
 * until the next call of wk_error_clear on this thread. */
WK_API const char *wk_error(void);
WK_API void wk_error_clear(void);

/* "shape", "dtype", ... Never NULL. */
WK_API const char *wk_status_name(wk_status status);

/* ---- Dtypes ---- */

/* "f32", "bf16", ...; "?" for a value that is no dtype. */
WK_API const char *wk_dtype_name(wk_dtype dtype);
/* Bytes of one element; 0 for a value that is no dtype. */
WK_API size_t wk_dtype_size(wk_dtype dtype);
/* The dtype of that name; returns WK_DTYPE_COUNT, without an error, when there is none. */
WK_API wk_dtype wk_dtype_parse(const char *name);

/* ---- Devices ---- */

/* How many devices can be opened; the CPU is always the last one. */
WK_API int wk_device_count(void);
/* The name of device i ("cpu", "rocm:0", "cuda:0"), or NULL without an error when i is out of range. */
WK_API const char *wk_device_name_at(int i);
/* "cpu", "rocm:0", "cuda:0", or "auto" for the best one here. Devices live as long as the process: there is
 * nothing to give back. NULL with WK_ERR_DEVICE when there is no such device. */
WK_API wk_device *wk_device_open(const char *name);
WK_API const char *wk_device_name(const wk_device *device);
/* A line about the hardware: "AMD EPYC, 2 threads, avx512". */
WK_API const char *wk_device_description(const wk_device *device);
/* Waits for all work of the device and reports what went wrong since the last call (a bad index, say). */
WK_API wk_status wk_sync(wk_device *device);

typedef struct {
    uint64_t in_use;      /* bytes that live tensors and workspaces hold */
    uint64_t cached;      /* bytes kept for the next allocation */
    uint64_t peak;        /* the most in_use has been */
    uint64_t allocations; /* how often memory was asked for */
    uint64_t system;      /* how often the cache had none and the system was asked */
} wk_memory_stats;
WK_API wk_status wk_memory(const wk_device *device, wk_memory_stats *stats);
/* Gives cached memory back to the system. */
WK_API wk_status wk_memory_trim(wk_device *device);
/* The most bytes the device may hold for tensors, cached ones counted; 0 means no limit. */
WK_API wk_status wk_memory_limit(wk_device *device, uint64_t bytes);

/* Threads that CPU ops use, the caller among them; 0 means the number of CPUs this process may use. Results
 * do not depend on it. */
WK_API void wk_set_num_threads(int threads);
WK_API int wk_num_threads(void);

/* ---- Scopes ----
 * A tensor that an op makes belongs to the innermost scope of the thread, and goes when that scope ends;
 * without a scope it belongs to the caller, who gives it back with wk_drop. So calls nest:
 *     wk_scope_begin();
 *     y = wk_relu(wk_conv2d(x, w, b, NULL));
 *     y = wk_scope_end_keep(y);               the rest is gone, y belongs to the outer scope or to you */
WK_API void wk_scope_begin(void);
WK_API void wk_scope_end(void);
/* Ends the scope and hands x (NULL is fine) to the outer scope, or to the caller when there is none. */
WK_API wk_tensor *wk_scope_end_keep(wk_tensor *x);

/* ---- Tensors ----
 * A view (shape, strides in elements, offset) on reference-counted storage. Views made by wk_narrow and the
 * like share storage and keep it alive. */

/* Adds a reference that is the caller's, given back with wk_drop. NULL gives NULL. */
WK_API wk_tensor *wk_retain(const wk_tensor *t);
/* Gives a reference back: one of wk_retain's if there is one, else the scope's or the caller's. NULL is
 * fine. A tensor in a scope is dropped on that scope's thread. */
WK_API void wk_drop(wk_tensor *t);

/* A packed tensor with undefined contents. */
WK_API wk_tensor *wk_empty(wk_device *device, wk_dtype dtype, int rank, const int64_t *shape);
/* A packed copy of packed host data. */
WK_API wk_tensor *wk_from_host(wk_device *device, wk_dtype dtype, int rank, const int64_t *shape,
                               const void *data);
/* A tensor over memory of the caller's, on that device, aligned to the dtype: strides in elements, NULL for packed; no copy.
 * release (NULL for none) is called with ctx when the last view is gone, never before this call returns a
 * tensor; on failure it is not called. */
WK_API wk_tensor *wk_from_pointer(wk_device *device, wk_dtype dtype, int rank, const int64_t *shape,
                                  const int64_t *strides, void *data, void (*release)(void *ctx), void *ctx);
/* Writes the elements, packed, to host memory that holds wk_count(t) * wk_dtype_size(...) bytes. Waits for
 * the device. */
WK_API wk_status wk_to_host(const wk_tensor *t, void *data);
/* The tensor on another device, packed; a view of it when it is there already. */
WK_API wk_tensor *wk_to(const wk_tensor *t, wk_device *device);

WK_API wk_dtype wk_dtype_of(const wk_tensor *t);
WK_API int wk_rank(const wk_tensor *t);
/* The size of a dimension; negative ones count from the end; -1 when there is none. */
WK_API int64_t wk_dim(const wk_tensor *t, int dim);
WK_API const int64_t *wk_shape(const wk_tensor *t);
WK_API const int64_t *wk_strides(const wk_tensor *t);
WK_API int64_t wk_count(const wk_tensor *t);
WK_API int wk_is_packed(const wk_tensor *t);
WK_API wk_device *wk_device_of(const wk_tensor *t);
/* The address of the first element, on the tensor's device. */
WK_API void *wk_data(const wk_tensor *t);
/* Counts the writes into the storage by _into forms. */
WK_API uint64_t wk_storage_version(const wk_tensor *t);
/* The only element of a one-element tensor as a double; NaN with an error otherwise. */
WK_API double wk_item(const wk_tensor *t);

/* ---- Views: no copy, the storage is shared ---- */

/* One size may be -1: it is worked out. A layout that cannot be viewed so is copied first. */
WK_API wk_tensor *wk_reshape(const wk_tensor *t, int rank, const int64_t *shape);
WK_API wk_tensor *wk_transpose(const wk_tensor *t, int dim0, int dim1);
/* dims names, for each dimension of the result, the one of t it comes from. */
WK_API wk_tensor *wk_permute(const wk_tensor *t, const int *dims);
WK_API wk_tensor *wk_narrow(const wk_tensor *t, int dim, int64_t start, int64_t length);
/* To that shape by NumPy's rules: stride 0 where a size of 1 grows. */
WK_API wk_tensor *wk_broadcast(const wk_tensor *t, int rank, const int64_t *shape);
/* Takes out a dimension of size 1. */
WK_API wk_tensor *wk_squeeze(const wk_tensor *t, int dim);
WK_API wk_tensor *wk_unsqueeze(const wk_tensor *t, int dim);
/* Joins the dimensions first..last into one. */
WK_API wk_tensor *wk_flatten(const wk_tensor *t, int first, int last);
/* Any view on t's storage: strides and offset in elements, the offset counted from t's first element. Fails
 * when it would reach outside the storage. */
WK_API wk_tensor *wk_as_strided(const wk_tensor *t, int rank, const int64_t *shape, const int64_t *strides,
                                int64_t offset);

/* ---- Which code runs ---- */

/* The implementation that ran the last op of this thread, "simd" or "ref" on the CPU; "" before the first. */
WK_API const char *wk_last_impl(void);
/* Only implementations of this name run on this thread until it is set back with NULL; an op that has none of
 * that name, or whose implementation does not take the call, fails with WK_ERR_UNSUPPORTED and the reason. */
WK_API wk_status wk_force_impl(const char *name);

/* ---- Search for the fastest ---- */

/* What a search may cost, for each op with new shapes, dtype and parameters. A field that is 0 has its default. */
typedef struct {
    size_t size;        /* of this struct; WK_TUNE fills it in */
    double seconds;     /* of measuring: 1; compiling, and a vendor's own search, come on top */
    uint64_t workspace; /* most bytes of temporary memory for a vendor's algorithm: 256 MiB */
    int again;          /* 1: search anew where there is a choice already */
} wk_tune_options;
#define WK_TUNE(...) (&(wk_tune_options){.size = sizeof(wk_tune_options), __VA_ARGS__})

/* While on, each op that this thread calls on a GPU is searched for: all implementations that take the call, and the
 * algorithms that vendors' libraries have for it, are timed on its arguments. The fastest is kept in tune.txt in the
 * cache folder and runs from then on, in every process. So run a model once with it on, and again when the GPU or a
 * library changes. NULL turns it off. Not for ops that change an input, nor while a graph is captured. */
WK_API wk_status wk_tune(const wk_tune_options *options);

/* ---- Vendors' libraries under watch ---- */

/* While on, each result of a vendor's library (rocBLAS, MIOpen, cuBLAS, cuDNN) is compared with that of wick's own
 * kernel: a call whose result is off fails with WK_ERR_DEVICE and a message that says what differs, how to repeat it
 * with `wick op`, and how to pass the implementation over. Slow: both run, and the host compares. WICK_VERIFY=1 in the
 * environment turns it on. */
WK_API void wk_set_verify(int on);
/* Passes a vendor's implementation over from now on, in this process: "conv2d miopen bf16 gfx90a 3.4.0" is op,
 * implementation, dtype, architecture and version of the library; * is any, and so is what is left out at the end.
 * The file deny.txt in the cache folder holds such lines for every process. */
WK_API wk_status wk_deny(const char *entry);

/* ---- Hooks ---- */

/* Called after every op of any thread with its name and implementation; NULL takes it away. To be changed while no
 * op runs: fn and ctx are not changed together. */
typedef void (*wk_trace_fn)(void *ctx, const char *op, const char *impl, double microseconds);
WK_API void wk_set_trace(wk_trace_fn fn, void *ctx);
/* Called with a line of text when wick has something to tell (a library that could not be loaded, ...). */
typedef void (*wk_log_fn)(void *ctx, const char *line);
WK_API void wk_set_log(wk_log_fn fn, void *ctx);

#ifdef __cplusplus
}
#endif
#endif
