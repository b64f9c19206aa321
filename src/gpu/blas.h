/* blas.h: matrix products by the makers' libraries: what src/rocm/rocblas.c and src/cuda/cublas.c fill in. */
#ifndef WK_GPU_BLAS_H
#define WK_GPU_BLAS_H

#include "gpu.h"

/* y = a . b for `batch` products, row-major. A transposed operand is one whose columns lie one element apart. */
typedef struct {
    wk_dtype dtype, out; /* of a and b; of y: the same, or f32 */
    bool adds;           /* to what y holds */
    i64 m, n, k, batch;
    const void *a, *b;
    void *y;
    bool a_turned, b_turned;
    i64 lda, ldb, ldy;                /* between rows, or columns of a transposed one */
    i64 a_stride, b_stride, y_stride; /* between products; 0: the same one */
    /* Of product_to_end: + bias, for each column; + z, which lies like y; gelu. */
    bool ends, gelu;
    const void *bias, *z; /* or NULL */
} wk_product;

typedef struct {
    /* Loads the library, once; false when it is not to be had. */
    bool (*load)(void);
    /* Why it cannot be used on this device; NULL when it can. Loads it on first use. */
    const char *(*missing)(wk_gpu *g);
    wk_status (*open)(wk_gpu *g, void **handle);
    /* From now on the handle's work goes to the stream. */
    wk_status (*attach)(wk_gpu *g, void *handle, void *stream);
    /* WK_ERR_UNSUPPORTED when the library has no kernel for it. */
    wk_status (*product)(wk_gpu *g, void *handle, const wk_product *p);
    /* The same with an end, which sees the sum before it is rounded; NULL: it has no such. */
    wk_status (*product_to_end)(wk_gpu *g, void *handle, const wk_product *p);
} wk_blas;

extern const wk_blas wk_rocblas, wk_cublas;

/* matmul, linear and linear_act through wk_blas (impl->data). */
wk_status wk_blas_run_matmul(wk_call *c);
wk_status wk_blas_run_linear(wk_call *c);
wk_status wk_blas_run_linear_act(wk_call *c);
const char *wk_blas_refuse(const wk_call *c);
/* The same for linear, which leaves single rows of 16-bit elements to the kernel. */
const char *wk_blas_refuse_linear(const wk_call *c);
/* The stream is about to go: its handle lets go of it while it is still there. */
void wk_blas_detach(wk_stream *s);

#endif
