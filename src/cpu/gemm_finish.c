/* gemm_finish.c: from sums to C: biases, activation, rounding. */
#include "gemm_int.h"

/* A loop over the n elements of C from at on, with the usual stride as a constant so that it vectorises. */
#define EACH(body) \
    do { \
        if (cs == 1) \
            for (int64_t j = 0, e = at; j < n; j++, e++) \
                body; \
        else \
            for (int64_t j = 0, e = at; j < n; j++, e += cs) \
                body; \
    } while (0)

static void add_c_f32(float *v, const wk_mat *c, int64_t at, int64_t n)
{
    int64_t cs = c->cs;
    const float *f = c->data;
    const uint16_t *h = c->data;
    switch (c->dtype) {
    case WK_F16: EACH(v[j] += wk_f16_to_f32(h[e])); break;
    case WK_BF16: EACH(v[j] += wk_bf16_to_f32(h[e])); break;
    default: EACH(v[j] += f[e]); break;
    }
}

static void store_c_f32(const float *v, const wk_mat *c, int64_t at, int64_t n)
{
    int64_t cs = c->cs;
    float *f = c->data;
    uint16_t *h = c->data;
    switch (c->dtype) {
    case WK_F16: EACH(h[e] = wk_f32_to_f16(v[j])); break;
    case WK_BF16: EACH(h[e] = wk_f32_to_bf16(v[j])); break;
    default: EACH(f[e] = v[j]); break;
    }
}

static void add_c_f64(double *v, const wk_mat *c, int64_t at, int64_t n)
{
    int64_t cs = c->cs;
    const double *f = c->data;
    EACH(v[j] += f[e]);
}

static void store_c_f64(const double *v, const wk_mat *c, int64_t at, int64_t n)
{
    int64_t cs = c->cs;
    double *f = c->data;
    EACH(f[e] = v[j]);
}

#define REAL float
#define NAME(x) x##_f32
#include "gemm_finish.inc.h"

#define REAL double
#define NAME(x) x##_f64
#include "gemm_finish.inc.h"

void WK_ISA(gemm_finish)(const wk_gemm_args *g, void *v, int64_t ldv, int64_t i0, int64_t mn, int64_t j0,
                         int64_t jn)
{
    if (g->c.dtype == WK_F64)
        finish_f64(g, v, ldv, i0, mn, j0, jn);
    else
        finish_f32(g, v, ldv, i0, mn, j0, jn);
}
