/* cublas.c: matrix products by cuBLAS. */
#include <pthread.h>
#include <stdio.h>
#include "core/memory.h"
#include "cublas.h"
#include "cuda_libs.h"
#include "gpu/blas.h"
#include "gpu/families.h"
#include "wick/matmul.h"

static const char *const sonames[] = {"libcublas.so.13", "libcublas.so.12", "libcublas.so.11", "libcublas.so",
                                      NULL};
static const char *const folders[] = {"/usr/local/cuda/lib64", NULL};
wk_library wk_lib_cublas = {.name = "libcublas",
                            .sonames = sonames,
                            .variable = "WICK_CUBLAS_LIBRARY",
                            .package =
                                "libcublas-13-0 (NVIDIA's), nvidia-cublas (Python), libcublas12 (Debian)",
                            .beside = &wk_lib_nvrtc,
                            .folders = folders};

static struct {
#define X(result, name, arguments) result(*name) arguments;
    WK_CUBLAS_CALLS(X)
    WK_CUBLAS_LT_CALLS(X)
#undef X
} blas;
static bool loaded, has_ends;

static void load_all(void)
{
#define X(result, name, arguments) {#name, (void **)&blas.name},
    static const wk_symbol symbols[] = {WK_CUBLAS_CALLS(X)};
    static const wk_symbol ends[] = {WK_CUBLAS_LT_CALLS(X)};
#undef X
    wk_library *l = &wk_lib_cublas;
    int version[3] = {0};
    if (!wk_library_load(l) || !wk_library_symbols(l, symbols, sizeof symbols / sizeof *symbols))
        return;
    for (int i = MAJOR_VERSION; i <= PATCH_LEVEL; i++)
        blas.cublasGetProperty(i, &version[i]);
    snprintf(l->version, sizeof l->version, "%d.%d.%d", version[0], version[1], version[2]);
    loaded = true;
    wk_library_newer_symbols(l, ends, sizeof ends / sizeof *ends);
    has_ends = blas.cublasLtMatmul != NULL;
}

static bool load(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, load_all);
    return loaded;
}

static const char *missing(wk_gpu *g)
{
    (void)g;
    return load() ? NULL : wk_lib_cublas.trouble;
}

static wk_status fail(const wk_gpu *g, const char *doing, cublasStatus_t status)
{
    return wk_fail(status == CUBLAS_STATUS_NOT_SUPPORTED ? WK_ERR_UNSUPPORTED : WK_ERR_DEVICE, "%s: %s: %s",
                   g->base.name, doing, blas.cublasGetStatusString(status));
}

/* A workspace of wick's own: cuBLAS then allocates nothing, so its calls can be captured, and gives the same bits on
 * every run. The size is what NVIDIA recommends for Hopper. */
enum { WORKSPACE = 32 << 20 };
typedef struct {
    cublasHandle_t cublas;
    void *workspace, *stream;
} blas_handle;

static wk_status open_handle(wk_gpu *g, void **handle)
{
    blas_handle *h = wk_alloc(sizeof *h);
    if (!h)
        return wk_fail(WK_ERR_MEMORY, "%s: opening cuBLAS: out of memory", g->base.name);
    int code = g->driver->alloc(&h->workspace, WORKSPACE);
    cublasStatus_t status = code ? CUBLAS_STATUS_SUCCESS : blas.cublasCreate_v2(&h->cublas);
    if (code == 0 && status == CUBLAS_STATUS_SUCCESS) {
        *handle = h;
        return WK_OK;
    }
    if (code == 0)
        g->driver->free(h->workspace);
    wk_free(h);
    return code ? wk_gpu_fail(g, code, "allocating a workspace for cuBLAS")
                : fail(g, "opening cuBLAS", status);
}

/* Another stream takes the workspace away: it is given again. */
static wk_status attach(wk_gpu *g, void *handle, void *stream)
{
    blas_handle *h = handle;
    cublasStatus_t status = blas.cublasSetStream_v2(h->cublas, stream);
    h->stream = stream;
    if (status == CUBLAS_STATUS_SUCCESS)
        status = blas.cublasSetWorkspace_v2(h->cublas, h->workspace, WORKSPACE);
    return status == CUBLAS_STATUS_SUCCESS ? WK_OK : fail(g, "setting cuBLAS's stream", status);
}

static const cudaDataType types[] = {
    [WK_F32] = CUDA_R_32F, [WK_F16] = CUDA_R_16F, [WK_BF16] = CUDA_R_16BF, [WK_F64] = CUDA_R_64F};
static const cublasOperation_t turn[] = {CUBLAS_OP_N, CUBLAS_OP_T};

/* Row-major y = a . b is column-major y^T = b^T . a^T: the operands change places. */
static wk_status product(wk_gpu *g, void *opened, const wk_product *p)
{
    cublasHandle_t handle = ((blas_handle *)opened)->cublas;
    const float one = 1, zero = 0;
    const double one64 = 1, zero64 = 0;
    bool wide = p->dtype == WK_F64, fast = p->dtype == WK_F32 && wk_matmul_precision() == WK_PRECISION_FAST;
    cublasComputeType_t compute = wide   ? CUBLAS_COMPUTE_64F
                                  : fast ? CUBLAS_COMPUTE_32F_FAST_TF32
                                         : CUBLAS_COMPUTE_32F;
    const void *alpha = wide ? (const void *)&one64 : &one;
    const void *beta = p->adds ? alpha : wide ? (const void *)&zero64 : &zero;
    cudaDataType t = types[p->dtype], ty = types[p->out];
    cublasOperation_t tb = turn[p->b_turned], ta = turn[p->a_turned];
    int n = (int)p->n, m = (int)p->m, k = (int)p->k, ldb = (int)p->ldb, lda = (int)p->lda, ldy = (int)p->ldy;
    cublasStatus_t status =
        p->batch == 1
            ? blas.cublasGemmEx(handle, tb, ta, n, m, k, alpha, p->b, t, ldb, p->a, t, lda, beta, p->y, ty,
                                ldy, compute, CUBLAS_GEMM_DEFAULT)
            : blas.cublasGemmStridedBatchedEx(handle, tb, ta, n, m, k, alpha, p->b, t, ldb, p->b_stride, p->a,
                                              t, lda, p->a_stride, beta, p->y, ty, ldy, p->y_stride,
                                              (int)p->batch, compute, CUBLAS_GEMM_DEFAULT);
    return status == CUBLAS_STATUS_SUCCESS ? WK_OK : fail(g, "gemm", status);
}

/* ---- products with an end, by cuBLASLt: it sees the sum in f32. Its relu would make 0 of NaN. ---- */

enum { FIRST, SECOND, RESULT, MATRICES };

typedef struct {
    cublasLtMatmulDesc_t product;
    cublasLtMatrixLayout_t matrix[MATRICES];
} ended;

static void drop(ended *e)
{
    if (e->product)
        blas.cublasLtMatmulDescDestroy(e->product);
    for (int i = 0; i < MATRICES; i++) {
        if (e->matrix[i])
            blas.cublasLtMatrixLayoutDestroy(e->matrix[i]);
    }
}

static cublasStatus_t describe(const wk_product *p, ended *e)
{
    static const int ends[][2] = {{CUBLASLT_EPILOGUE_DEFAULT, CUBLASLT_EPILOGUE_BIAS},
                                  {CUBLASLT_EPILOGUE_GELU, CUBLASLT_EPILOGUE_GELU_BIAS}};
    cudaDataType t = types[p->dtype], ty = types[p->out];
    uint64_t n = (uint64_t)p->n, m = (uint64_t)p->m, k = (uint64_t)p->k;
    const struct {
        cublasLtMatmulDescAttributes_t name;
        const void *value;
        size_t bytes;
    } settings[] = {
        {CUBLASLT_MATMUL_DESC_TRANSA, &turn[p->b_turned], sizeof *turn},
        {CUBLASLT_MATMUL_DESC_TRANSB, &turn[p->a_turned], sizeof *turn},
        {CUBLASLT_MATMUL_DESC_EPILOGUE, &ends[p->gelu][p->bias != NULL], sizeof **ends},
        {CUBLASLT_MATMUL_DESC_BIAS_POINTER, &p->bias, sizeof p->bias},
    };
    cublasStatus_t status = blas.cublasLtMatmulDescCreate(&e->product, CUBLAS_COMPUTE_32F, CUDA_R_32F);
    for (size_t i = 0; status == 0 && i < sizeof settings / sizeof *settings; i++)
        status = blas.cublasLtMatmulDescSetAttribute(e->product, settings[i].name, settings[i].value,
                                                     settings[i].bytes);
    if (status == 0)
        status = blas.cublasLtMatrixLayoutCreate(&e->matrix[FIRST], t, p->b_turned ? k : n,
                                                 p->b_turned ? n : k, p->ldb);
    if (status == 0)
        status = blas.cublasLtMatrixLayoutCreate(&e->matrix[SECOND], t, p->a_turned ? m : k,
                                                 p->a_turned ? k : m, p->lda);
    return status ? status : blas.cublasLtMatrixLayoutCreate(&e->matrix[RESULT], ty, n, m, p->ldy);
}

/* It takes memory for well aligned: what it reads and writes by 16 bytes is at a multiple of that. */
static bool is_aligned(const wk_product *p)
{
    return ((size_t)p->a | (size_t)p->b | (size_t)p->y | (size_t)p->bias | (size_t)p->z) % 16 == 0;
}

/* What it does not take goes another way. */
static wk_status product_to_end(wk_gpu *g, void *opened, const wk_product *p)
{
    const blas_handle *h = opened;
    const float one = 1, zero = 0;
    ended e = {0};
    bool takes = has_ends && p->batch == 1 && is_aligned(p);
    cublasStatus_t status = takes ? describe(p, &e) : CUBLAS_STATUS_NOT_SUPPORTED;
    if (status == CUBLAS_STATUS_SUCCESS)
        status =
            blas.cublasLtMatmul((cublasLtHandle_t)h->cublas, e.product, &one, p->b, e.matrix[FIRST], p->a,
                                e.matrix[SECOND], p->z ? &one : &zero, p->z ? p->z : p->y, e.matrix[RESULT],
                                p->y, e.matrix[RESULT], NULL, h->workspace, WORKSPACE, h->stream);
    drop(&e);
    return status == CUBLAS_STATUS_SUCCESS ? WK_OK
                                           : wk_fail(WK_ERR_UNSUPPORTED, "%s: cuBLASLt: %s", g->base.name,
                                                     blas.cublasGetStatusString(status));
}

const wk_blas wk_cublas = {load, missing, open_handle, attach, product, product_to_end};

const wk_impl wk_cuda_impls_matmul[] = {
    {"matmul", "cublas", wk_blas_run_matmul, wk_blas_refuse, &wk_cublas},
    {"linear", "cublas", wk_blas_run_linear, wk_blas_refuse_linear, &wk_cublas},
    {"linear_act", "cublas", wk_blas_run_linear_act, wk_blas_refuse, &wk_cublas},
    {0},
};
