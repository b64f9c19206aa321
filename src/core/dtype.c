/* dtype.c: the table of dtypes, and conversion of single elements. */
#include "dtype.h"

const wk_dtype_info wk_dtypes[WK_DTYPE_COUNT] = {
    [WK_F32] = {"f32", 4, 1, true, true, WK_COMPUTE_F32},
    [WK_F16] = {"f16", 2, 1, true, true, WK_COMPUTE_F32},
    [WK_BF16] = {"bf16", 2, 1, true, true, WK_COMPUTE_F32},
    [WK_F64] = {"f64", 8, 1, true, true, WK_COMPUTE_F64},
    [WK_U8] = {"u8", 1, 1, false, false, WK_COMPUTE_I64},
    [WK_U32] = {"u32", 4, 1, false, false, WK_COMPUTE_I64},
    [WK_I64] = {"i64", 8, 1, false, true, WK_COMPUTE_I64},
    [WK_I32] = {"i32", 4, 1, false, true, WK_COMPUTE_I64},
    [WK_I16] = {"i16", 2, 1, false, true, WK_COMPUTE_I64},
};

const char *wk_dtype_name(wk_dtype d) { return wk_dtype_valid(d) ? wk_dtypes[d].name : "?"; }

size_t wk_dtype_size(wk_dtype d) { return wk_dtype_valid(d) ? wk_dtypes[d].bytes : 0; }

wk_dtype wk_dtype_parse(const char *name)
{
    int d = 0;
    while (d < WK_DTYPE_COUNT && (!name || strcmp(name, wk_dtypes[d].name) != 0))
        d++;
    return (wk_dtype)d;
}

/* The element as it is in memory: every dtype but u32 and the floats sign- or zero-extends from here. Its bytes are copied
 * by their number, each a single load: references read single elements all the time. */
typedef union {
    float f;
    double d;
    uint8_t u8;
    uint16_t h;
    uint32_t u32;
    int64_t i64;
    int32_t i32;
    int16_t i16;
} element;

static inline element read_element(wk_dtype d, const void *p)
{
    element e;
    switch (wk_bytes(d)) {
    case 1: memcpy(&e, p, 1); break;
    case 2: memcpy(&e, p, 2); break;
    case 4: memcpy(&e, p, 4); break;
    default: memcpy(&e, p, 8);
    }
    return e;
}

double wk_load_f64(wk_dtype d, const void *p)
{
    element e = read_element(d, p);
    switch (d) {
    case WK_F32: return e.f;
    case WK_F16: return wk_f16_to_f32(e.h);
    case WK_BF16: return wk_bf16_to_f32(e.h);
    case WK_F64: return e.d;
    default: return (double)wk_load_i64(d, p);
    }
}

int64_t wk_load_i64(wk_dtype d, const void *p)
{
    element e = read_element(d, p);
    switch (d) {
    case WK_U8: return e.u8;
    case WK_U32: return e.u32;
    case WK_I64: return e.i64;
    case WK_I32: return e.i32;
    case WK_I16: return e.i16;
    default: return wk_saturate(wk_load_f64(d, p), -0x1p63, 0x1p63);
    }
}

void wk_store_f64(wk_dtype d, void *p, double v)
{
    element e;
    switch (d) {
    case WK_F32: e.f = (float)v; break;
    case WK_F16: e.h = wk_f32_to_f16(wk_f64_to_f32_odd(v)); break;
    case WK_BF16: e.h = wk_f32_to_bf16(wk_f64_to_f32_odd(v)); break;
    case WK_F64: e.d = v; break;
    case WK_U8: e.u8 = (uint8_t)wk_saturate(v, 0, UINT8_MAX); break;
    case WK_U32: e.u32 = (uint32_t)wk_saturate(v, 0, UINT32_MAX); break;
    case WK_I64: e.i64 = wk_saturate(v, -0x1p63, 0x1p63); break;
    case WK_I32: e.i32 = (int32_t)wk_saturate(v, INT32_MIN, INT32_MAX); break;
    case WK_I16: e.i16 = (int16_t)wk_saturate(v, INT16_MIN, INT16_MAX); break;
    default: return;
    }
    memcpy(p, &e, wk_bytes(d));
}

void wk_store_i64(wk_dtype d, void *p, int64_t v)
{
    if (wk_is_float(d))
        wk_store_f64(d, p, (double)v);
    else /* little-endian: the low bytes are the wrapped value */
        memcpy(p, &v, wk_bytes(d));
}
