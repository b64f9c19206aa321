/* access.c: single elements of tensors in host memory. */
#include "ref.h"

double wk_ref_get(const wk_tensor *t, int64_t i)
{
    int64_t offset = 0;
    for (int d = t->rank - 1; d >= 0; d--) {
        offset += i % t->shape[d] * t->strides[d];
        i /= t->shape[d];
    }
    return wk_load_f64(t->dtype, (const char *)wk_ptr(t) + offset * (int64_t)wk_bytes(t->dtype));
}

void wk_ref_set(wk_tensor *t, int64_t i, double v)
{
    wk_store_f64(t->dtype, (char *)wk_ptr(t) + i * (int64_t)wk_bytes(t->dtype), v);
}
