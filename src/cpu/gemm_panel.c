/* gemm_panel.c: small products with a panel of B that was packed once for many of them. */
#include "gemm_int.h"

enum { CACHE_BYTES = 24 << 10 /* of a panel, that stay in the first-level cache for all rows */ };

static const gemm_kernel *kernel_of(wk_dtype dtype)
{
    wk_mat any = {.dtype = dtype};
    return WK_ISA(gemm_pick_kernel)(&(wk_gemm_args){.a = any, .b = any, .c = any});
}

int64_t WK_ISA(wk_gemm_panel_width)(wk_dtype dtype) { return gemm_panel_columns(kernel_of(dtype)); }

void WK_ISA(wk_gemm_panel_pack)(int64_t k, int64_t n, wk_mat b, void *panel)
{
    WK_ISA(gemm_pick_packer)
    (b.dtype, 1)(panel, WK_ISA(wk_gemm_panel_width)(b.dtype), b.data, b.cs, b.rs, n, k);
}

void WK_ISA(wk_gemm_panel_run)(int64_t m, int64_t n, int64_t k, wk_mat a, const void *panel, wk_mat c,
                               bool add)
{
    const gemm_kernel *kernel = kernel_of(c.dtype);
    int64_t bytes = (int64_t)kernel->bytes, width = gemm_panel_columns(kernel);
    int64_t rows = gemm_blocks(m, gemm_max(1, gemm_blocks(m, GEMM_MR))); /* blocks of about the same size */
    int64_t depth = m > rows ? CACHE_BYTES / (width * bytes) : gemm_max(k, 1);
    for (int64_t p = 0; p == 0 || p < k; p += depth) {
        for (int64_t i = 0; i < m; i += rows) {
            gemm_tile t = {.a = (const char *)a.data + (i * a.rs + p * a.cs) * bytes,
                           .b = (const char *)panel + p * width * bytes,
                           .c = (char *)c.data + i * c.rs * bytes,
                           .a_rs = a.rs,
                           .a_ks = a.cs,
                           .b_ks = width,
                           .ldc = c.rs,
                           .k = gemm_min(depth, k - p),
                           .rows = (int)gemm_min(rows, m - i),
                           .cols = (int)n,
                           .add = add || p > 0};
            kernel->tile(&t);
        }
    }
}
