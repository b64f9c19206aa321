/* access.c: single elements of tensors in host memory. */
#include "ref.h"
#include "wick/ops.h"

/* Most tensors that come here are packed, and divisions are what takes the time otherwise. */
static void *element(const wk_tensor *t, int64_t i)
{
    int64_t offset = i;
    if (!wk_is_packed(t)) {
        offset = 0;
        for (int d = t->rank - 1; d >= 0; d--) {
            offset += i % t->shape[d] * t->strides[d];
            i /= t->shape[d];
        }
    }
    return (char *)wk_ptr(t) + offset * (int64_t)wk_bytes(t->dtype);
}

double wk_ref_get(const wk_tensor *t, int64_t i) { return wk_load_f64(t->dtype, element(t, i)); }
void wk_ref_set(wk_tensor *t, int64_t i, double v) { wk_store_f64(t->dtype, element(t, i), v); }
int64_t wk_ref_get_int(const wk_tensor *t, int64_t i) { return wk_load_i64(t->dtype, element(t, i)); }
void wk_ref_set_int(wk_tensor *t, int64_t i, int64_t v) { wk_store_i64(t->dtype, element(t, i), v); }

void wk_ref_move(wk_tensor *to, int64_t j, const wk_tensor *from, int64_t i)
{
    memcpy(element(to, j), element(from, i), wk_bytes(to->dtype));
}

const double *wk_ref_values(const wk_tensor *t)
{
    const wk_tensor *x = t->dtype == WK_F64 ? t : wk_cast(t, WK_F64);
    x = x ? wk_tensor_packed(x) : NULL;
    return x ? wk_ptr(x) : NULL;
}
