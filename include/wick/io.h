/* wick/io.h: tensors in files and in other libraries' hands: safetensors, GGUF, npy, DLPack.
 *
 * Files are read memory-mapped and privately: what an op writes into such a tensor stays in this process. A
 * mapped file must not be cut short by others while tensors over it live. Reading needs a regular file.
 * Errors: WK_ERR_IO with the system's reason, WK_ERR_FORMAT with the byte and what is wrong with it. */
#ifndef WICK_IO_H
#define WICK_IO_H

#include "core.h"
#include "quant.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- safetensors ----
 * Dtypes F32 F16 BF16 F64 U8 U32 I64 I32 I16; BOOL reads as u8; others are refused by name. */

typedef struct wk_safetensors wk_safetensors;

/* Opens a file and checks all of its header. NULL on failure; give it back with wk_safetensors_close. */
WK_API wk_safetensors *wk_safetensors_open(const char *path);
/* The same over memory of the caller's, which release (NULL for none) takes back with ctx when the handle and
 * the last tensor over it are gone; on failure it is not called. name is for messages; NULL is fine. */
WK_API wk_safetensors *wk_safetensors_over(const char *name, void *data, size_t bytes,
                                           void (*release)(void *ctx), void *ctx);
/* Tensors made from it stay valid. NULL is fine. */
WK_API void wk_safetensors_close(wk_safetensors *file);

/* Tensors are numbered in the order of the header. */
WK_API int64_t wk_safetensors_count(const wk_safetensors *file);
/* The number of the tensor of that name; -1, without an error, when there is none. */
WK_API int64_t wk_safetensors_find(const wk_safetensors *file, const char *name);
/* Of tensor i: NULL, WK_DTYPE_COUNT or -1, without an error, when i is out of range. */
WK_API const char *wk_safetensors_name(const wk_safetensors *file, int64_t i);
WK_API wk_dtype wk_safetensors_dtype(const wk_safetensors *file, int64_t i);
WK_API int wk_safetensors_rank(const wk_safetensors *file, int64_t i);
WK_API const int64_t *wk_safetensors_shape(const wk_safetensors *file, int64_t i);
/* Tensor i on the CPU: a view on the file, without a copy unless its data are not aligned to the dtype. NULL
 * on failure. */
WK_API wk_tensor *wk_safetensors_tensor(const wk_safetensors *file, int64_t i);
/* The same by name; no such name is WK_ERR_ARGUMENT. */
WK_API wk_tensor *wk_safetensors_get(const wk_safetensors *file, const char *name);

/* Writes n tensors, of any device and layout, each under its name. A file of that name is replaced at the end,
 * in one step: on failure it is as it was. */
WK_API wk_status wk_safetensors_save(const char *path, int n, const char *const *names,
                                     wk_tensor *const *tensors);

/* ---- GGUF ----
 * Models with quantised weights, versions 2 and 3: values by key, and tensors. */

typedef struct wk_gguf wk_gguf;

/* Opens a file and checks all of it but the data. NULL on failure; give it back with wk_gguf_close. */
WK_API wk_gguf *wk_gguf_open(const char *path);
/* The same over memory of the caller's; as wk_safetensors_over. */
WK_API wk_gguf *wk_gguf_over(const char *name, void *data, size_t bytes, void (*release)(void *ctx),
                             void *ctx);
/* Tensors made from it stay valid, texts do not. NULL is fine. */
WK_API void wk_gguf_close(wk_gguf *file);
WK_API int wk_gguf_version(const wk_gguf *file);

/* What a value is; the numbers are the file's. */
typedef enum {
    WK_GGUF_U8,
    WK_GGUF_I8,
    WK_GGUF_U16,
    WK_GGUF_I16,
    WK_GGUF_U32,
    WK_GGUF_I32,
    WK_GGUF_F32,
    WK_GGUF_BOOL,
    WK_GGUF_STRING,
    WK_GGUF_ARRAY,
    WK_GGUF_U64,
    WK_GGUF_I64,
    WK_GGUF_F64,
    WK_GGUF_KIND_COUNT
} wk_gguf_kind;

/* Keys are numbered in the order of the file. NULL when i is out of range. */
WK_API int64_t wk_gguf_keys(const wk_gguf *file);
WK_API const char *wk_gguf_key(const wk_gguf *file, int64_t i);
/* WK_GGUF_KIND_COUNT when there is no such key. *item (NULL is fine) gets the kind of an array's elements. */
WK_API wk_gguf_kind wk_gguf_kind_of(const wk_gguf *file, const char *key, wk_gguf_kind *item);
/* Elements of an array; -1 for what is none. */
WK_API int64_t wk_gguf_length(const wk_gguf *file, const char *key);
/* The value: 0 or NULL, without an error, when there is no such key or it is of another kind. A bool is an integer,
 * an integer is a float too. A string is not ended by a 0. */
WK_API int wk_gguf_int(const wk_gguf *file, const char *key, int64_t *v);
WK_API int wk_gguf_float(const wk_gguf *file, const char *key, double *v);
WK_API const char *wk_gguf_string(const wk_gguf *file, const char *key, size_t *size);
/* The same for element i of an array. */
WK_API int wk_gguf_int_at(const wk_gguf *file, const char *key, int64_t i, int64_t *v);
WK_API int wk_gguf_float_at(const wk_gguf *file, const char *key, int64_t i, double *v);
WK_API const char *wk_gguf_string_at(const wk_gguf *file, const char *key, int64_t i, size_t *size);

/* Tensors are numbered in the order of the file; shapes are as in the rest of wick, rows before columns. */
WK_API int64_t wk_gguf_count(const wk_gguf *file);
WK_API int64_t wk_gguf_find(const wk_gguf *file, const char *name);
WK_API const char *wk_gguf_name(const wk_gguf *file, int64_t i);
/* "Q4_K". */
WK_API const char *wk_gguf_type(const wk_gguf *file, int64_t i);
/* WK_DTYPE_COUNT where the tensor is quantised, WK_QFORMAT_COUNT where it is not; both for types wick lacks. */
WK_API wk_dtype wk_gguf_dtype(const wk_gguf *file, int64_t i);
WK_API wk_qformat wk_gguf_format(const wk_gguf *file, int64_t i);
WK_API int wk_gguf_rank(const wk_gguf *file, int64_t i);
WK_API const int64_t *wk_gguf_shape(const wk_gguf *file, int64_t i);
/* Tensor i on the CPU, a view on the file. A quantised one is u8, as the ops of wick/quant.h take it: the last size is
 * the bytes of a row. NULL on failure: types wick lacks are WK_ERR_UNSUPPORTED. */
WK_API wk_tensor *wk_gguf_tensor(const wk_gguf *file, int64_t i);

/* ---- npy ----
 * NumPy's array files, versions 1 to 3: little-endian f2 f4 f8 u1 u4 i8 i4 i2, and b1 as u8. */

/* The array on the CPU, a view on the file; an array in Fortran order becomes a transposed view. */
WK_API wk_tensor *wk_npy_load(const char *path);
/* The same from memory; as wk_safetensors_over. */
WK_API wk_tensor *wk_npy_over(const char *name, void *data, size_t bytes, void (*release)(void *ctx),
                              void *ctx);
/* Writes version 1, C order. npy has no bf16: WK_ERR_DTYPE, cast it first. */
WK_API wk_status wk_npy_save(const char *path, const wk_tensor *t);

/* ---- DLPack ----
 * Tensors of PyTorch, NumPy, JAX and others, without a copy. The structs are those of dlpack.h: include
 * wick/dlpack.h, or the original, for what is inside. A CPU, CUDA or ROCm tensor goes both ways; pinned host
 * memory comes in as the CPU's. */

struct DLManagedTensor;
struct DLManagedTensorVersioned;

/* A handle on t's memory; whoever takes it calls its deleter once, on any thread. Work of t's device is waited
 * for. NULL on failure. */
WK_API struct DLManagedTensor *wk_to_dlpack(const wk_tensor *t);
WK_API struct DLManagedTensorVersioned *wk_to_dlpack_versioned(const wk_tensor *t);
/* A tensor over the handle's memory. From success on the handle is wick's, and its deleter is called when the
 * last view is gone; on failure it stays the caller's. Read-only memory is taken as well: do not write into
 * it. Refused: lanes other than 1, negative strides, data not aligned to the dtype, dtypes wick lacks, and a
 * versioned handle of another major version than 1. */
WK_API wk_tensor *wk_from_dlpack(struct DLManagedTensor *handle);
WK_API wk_tensor *wk_from_dlpack_versioned(struct DLManagedTensorVersioned *handle);

#ifdef __cplusplus
}
#endif
#endif
