/* rocblas.c: matrix products by rocBLAS. */
#include <dirent.h>
#include <glob.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include "gpu/blas.h"
#include "gpu/families.h"
#include "rocm.h"
#include "rocblas.h"

static const char *const sonames[] = {"librocblas.so.5", "librocblas.so.4", "librocblas.so.3",
                                      "librocblas.so.0", "librocblas.so",   NULL};
static const char *const folders[] = {"/opt/rocm/lib", "/opt/rocm/lib64", NULL};
wk_library wk_lib_rocblas = {.name = "librocblas",
                             .sonames = sonames,
                             .variable = "WICK_ROCBLAS_LIBRARY",
                             .package = "rocblas (AMD's), librocblas4 (Debian, Ubuntu)",
                             .beside = &wk_lib_hip,
                             .folders = folders};

static struct {
#define X(result, name, arguments) result(*name) arguments;
    WK_ROCBLAS_CALLS(X)
#undef X
} blas;
static bool loaded;

static void load_all(void)
{
    static const wk_symbol symbols[] = {
#define X(result, name, arguments) {#name, (void **)&blas.name},
        WK_ROCBLAS_CALLS(X)
#undef X
    };
    wk_library *l = &wk_lib_rocblas;
    if (!wk_library_load(l) || !wk_library_symbols(l, symbols, sizeof symbols / sizeof *symbols))
        return;
    blas.rocblas_get_version_string(l->version, sizeof l->version);
    size_t length = strlen(l->version); /* "4.4.1." where the package was built without a revision */
    if (length && l->version[length - 1] == '.')
        l->version[length - 1] = 0;
    loaded = true;
}

/* True when the folder has both a list of kernels for the architecture and code to go with it. */
static bool folder_serves(const char *folder, const char *arch)
{
    bool list = false, code = false;
    DIR *d = opendir(folder);
    struct dirent *e;
    while (d && !(list && code) && (e = readdir(d))) {
        const char *at = strstr(e->d_name, arch), *dot = strrchr(e->d_name, '.');
        char after = at ? at[strlen(arch)] : 0;
        if (!at || !dot || (after != '.' && after != '-' && after != '_'))
            continue;
        list = list || strcmp(dot, ".dat") == 0;
        code = code || strcmp(dot, ".co") == 0 || strcmp(dot, ".hsaco") == 0;
    }
    if (d)
        closedir(d);
    return list && code;
}

/* rocBLAS ends the process when it finds no kernels for the device, so they are looked for before it is called: where
 * the variable says, else beside the library (Debian puts a version in between). */
static bool has_kernels(const char *arch)
{
    char pattern[640];
    const char *given = getenv("ROCBLAS_TENSILE_LIBPATH"), *end = strrchr(wk_lib_rocblas.path, '/');
    if (given && *given)
        return folder_serves(given, arch);
    bool found = false;
    static const char *const below[] = {"rocblas/library", "rocblas/*/library"};
    for (int i = 0; end && i < 2 && !found; i++) {
        glob_t g;
        snprintf(pattern, sizeof pattern, "%.*s/%s", (int)(end - wk_lib_rocblas.path), wk_lib_rocblas.path,
                 below[i]);
        if (glob(pattern, 0, NULL, &g) != 0)
            continue;
        for (size_t k = 0; k < g.gl_pathc && !found; k++)
            found = folder_serves(g.gl_pathv[k], arch);
        globfree(&g);
    }
    return found;
}

static bool load(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, load_all);
    return loaded;
}

static const char *missing(wk_gpu *g)
{
    if (!load())
        return wk_lib_rocblas.trouble;
    if (g->blas_state == 0) /* two threads may look at once: they find the same */
        g->blas_state = has_kernels(g->facts.arch) ? 1 : -1;
    return g->blas_state > 0 ? NULL : "rocBLAS has no kernels for this architecture";
}

static wk_status fail(const wk_gpu *g, const char *doing, rocblas_status status)
{
    return wk_fail(status == rocblas_status_not_implemented ? WK_ERR_UNSUPPORTED : WK_ERR_DEVICE,
                   "%s: %s: %s", g->base.name, doing, blas.rocblas_status_to_string(status));
}

/* Without atomics every run gives the same bits. */
static wk_status open_handle(wk_gpu *g, void **handle)
{
    rocblas_handle h = NULL;
    rocblas_status status = blas.rocblas_create_handle(&h);
    if (status == rocblas_status_success)
        status = blas.rocblas_set_atomics_mode(h, rocblas_atomics_not_allowed);
    if (status != rocblas_status_success)
        return fail(g, "opening rocBLAS", status);
    *handle = h;
    return WK_OK;
}

static wk_status attach(wk_gpu *g, void *handle, void *stream)
{
    rocblas_status status = blas.rocblas_set_stream(handle, stream);
    return status == rocblas_status_success ? WK_OK : fail(g, "setting rocBLAS's stream", status);
}

/* Row-major y = a . b is column-major y^T = b^T . a^T: the operands change places. */
static wk_status product(wk_gpu *g, void *handle, const wk_product *p)
{
    static const rocblas_datatype types[] = {[WK_F32] = rocblas_datatype_f32_r,
                                             [WK_F16] = rocblas_datatype_f16_r,
                                             [WK_BF16] = rocblas_datatype_bf16_r,
                                             [WK_F64] = rocblas_datatype_f64_r};
    static const rocblas_operation turn[] = {rocblas_operation_none, rocblas_operation_transpose};
    const float one = 1, zero = 0;
    const double one64 = 1, zero64 = 0;
    bool wide = p->dtype == WK_F64;
    const void *alpha = wide ? (const void *)&one64 : &one;
    const void *beta = p->adds ? alpha : wide ? (const void *)&zero64 : &zero;
    rocblas_datatype t = types[p->dtype], ty = types[p->out],
                     compute = wide ? rocblas_datatype_f64_r : rocblas_datatype_f32_r;
    rocblas_status status = blas.rocblas_gemm_strided_batched_ex(
        handle, turn[p->b_turned], turn[p->a_turned], (rocblas_int)p->n, (rocblas_int)p->m, (rocblas_int)p->k,
        alpha, p->b, t, (rocblas_int)p->ldb, p->b_stride, p->a, t, (rocblas_int)p->lda, p->a_stride, beta,
        p->y, ty, (rocblas_int)p->ldy, p->y_stride, p->y, ty, (rocblas_int)p->ldy, p->y_stride,
        (rocblas_int)p->batch, compute, rocblas_gemm_algo_standard, 0, 0);
    return status == rocblas_status_success ? WK_OK : fail(g, "gemm", status);
}

const wk_blas wk_rocblas = {load, missing, open_handle, attach, product, NULL};

const wk_impl wk_rocm_impls_matmul[] = {
    {"matmul", "rocblas", wk_blas_run_matmul, wk_blas_refuse, &wk_rocblas},
    {"linear", "rocblas", wk_blas_run_linear, wk_blas_refuse_linear, &wk_rocblas},
    {"linear_act", "rocblas", wk_blas_run_linear_act, wk_blas_refuse, &wk_rocblas},
    {0},
};
