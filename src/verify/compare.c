/* compare.c: two results of one call, element by element. */
#include "compare.h"
#include "core/memory.h"
#include "wick/ops.h"

double wk_tolerance(wk_dtype dtype)
{
    switch (dtype) {
    case WK_F64: return 1e-11;
    case WK_F32: return 1e-5;
    case WK_F16: return 1.5e-3;
    case WK_BF16: return 1.2e-2;
    default: return 0;
    }
}

double wk_tolerance_gpu(wk_dtype dtype)
{
    bool rounds = wk_matmul_precision() == WK_PRECISION_FAST && dtype != WK_F64;
    return rounds ? 2 * wk_tolerance(dtype == WK_F32 ? WK_F16 : dtype) : wk_tolerance(dtype);
}

/* The typical size of the finite values. */
static double typical(const double *v, int64_t n)
{
    double sum = 0;
    int64_t finite = 0;
    for (int64_t i = 0; i < n; i++) {
        if (isfinite(v[i])) {
            sum += v[i] * v[i];
            finite++;
        }
    }
    return finite ? sqrt(sum / (double)finite) : 0;
}

static double error_of(double got, double want, double scale)
{
    if (isnan(want) || isnan(got))
        return isnan(want) && isnan(got) ? 0 : INFINITY;
    if (got == want)
        return 0;
    if (isinf(got) || isinf(want))
        return INFINITY;
    /* Samples are of the order of 1: what is far below that is what is left where terms cancel. */
    return fabs(got - want) / (fabs(want) + 0.5 * scale + 1e-6);
}

/* The tensor's elements as doubles, rounded to `as` first; NULL with an error. */
static double *doubles_of(const wk_tensor *t, wk_dtype as)
{
    int64_t n = wk_count(t);
    size_t bytes = wk_bytes(t->dtype);
    char *raw = wk_alloc((size_t)n * bytes);
    double *v = wk_alloc((size_t)n * sizeof *v);
    wk_status status = raw && v ? wk_to_host(t, raw) : wk_fail(WK_ERR_MEMORY, "compare: out of memory");
    for (int64_t i = 0; status == WK_OK && i < n; i++) {
        char element[8];
        v[i] = wk_load_f64(t->dtype, raw + (size_t)i * bytes);
        if (as != t->dtype && wk_is_float(as)) {
            wk_store_f64(as, element, v[i]);
            v[i] = wk_load_f64(as, element);
        }
    }
    wk_free(raw);
    if (status != WK_OK) {
        wk_free(v);
        v = NULL;
    }
    return v;
}

wk_status wk_compare(const wk_tensor *got, const wk_tensor *want, wk_comparison *c)
{
    wk_shape_text a, b;
    *c = (wk_comparison){0};
    if (!wk_shape_equal(got->rank, got->shape, want->rank, want->shape))
        return wk_fail(WK_ERR_SHAPE, "compare: expected shape %s, got %s",
                       wk_shape_str(&b, want->rank, want->shape), wk_shape_str(&a, got->rank, got->shape));
    double *g = doubles_of(got, got->dtype), *w = g ? doubles_of(want, got->dtype) : NULL;
    double scale = w ? typical(w, wk_count(want)) : 0;
    for (int64_t i = 0; w && i < wk_count(got); i++) {
        double e = error_of(g[i], w[i], scale);
        if (e > c->worst)
            *c = (wk_comparison){e, i, g[i], w[i]};
    }
    bool done = w != NULL;
    wk_free(g);
    wk_free(w);
    return done ? WK_OK : wk_error_status();
}
