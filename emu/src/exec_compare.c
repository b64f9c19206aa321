/* exec_compare.c - VOPC: v_cmp_* and v_cmpx_* of every type. */
#include "exec.h"
#include <math.h>

/* The mask goes to the SGPR pair op[0]; v_cmpx (aux 1) also makes it EXEC. */
static void put(Wave *w, const Inst *in, uint64_t m)
{
    m &= EXEC(w);
    mask_set(w, &in->op[0], m); /* since gfx10 v_cmpx has no other destination than EXEC */
    if (in->def->aux)
        EXEC(w) = m;
}

#define CONDS_F(X, T) \
    X(f, T, 0) \
    X(lt, T, a < b) \
    X(eq, T, a == b) \
    X(le, T, a <= b) \
    X(gt, T, a > b) \
    X(lg, T, a<b || a> b) \
    X(ge, T, a >= b) \
    X(o, T, a == a && b == b) \
    X(u, T, a != a || b != b) \
    X(nge, T, !(a >= b)) \
    X(nlg, T, !(a < b || a > b)) \
    X(ngt, T, !(a > b)) \
    X(nle, T, !(a <= b)) \
    X(neq, T, !(a == b)) \
    X(nlt, T, !(a < b)) \
    X(tru, T, 1)
#define CONDS_I(X, T) \
    X(f, T, 0) \
    X(lt, T, a < b) \
    X(eq, T, a == b) \
    X(le, T, a <= b) \
    X(gt, T, a > b) \
    X(ne, T, a != b) \
    X(ge, T, a >= b) \
    X(t, T, 1)

#define GET_f32(x) u2f(x)
#define GET_f16(x) h2f(x)
#define GET_i32(x) (int32_t)(x)
#define GET_u32(x) (x)
#define GET_i16(x) (int16_t)(x)
#define GET_u16(x) (uint16_t)(x)
#define GET_f64(x) u2d(x)
#define GET_i64(x) (int64_t)(x)
#define GET_u64(x) (x)

#define DEF32(c, T, e) \
    static void cmp_##c##_##T(Wave *w, const Inst *in) \
    { \
        uint32_t ta[LANES], tb[LANES], r[LANES]; \
        const uint32_t *ap = src32(w, in, 1, ta), *bp = src32(w, in, 2, tb); \
        FOR_LANES (l) { \
            __typeof__(GET_##T(ap[l])) a = GET_##T(ap[l]), b = GET_##T(bp[l]); \
            (void)a, (void)b; \
            r[l] = (e); \
        } \
        put(w, in, lane_mask(r)); \
    }
#define DEF64(c, T, e) \
    static void cmp_##c##_##T(Wave *w, const Inst *in) \
    { \
        uint64_t ap[LANES], bp[LANES]; \
        uint32_t r[LANES]; \
        src64(w, in, 1, ap); \
        src64(w, in, 2, bp); \
        FOR_LANES (l) { \
            __typeof__(GET_##T(ap[l])) a = GET_##T(ap[l]), b = GET_##T(bp[l]); \
            (void)a, (void)b; \
            r[l] = (e); \
        } \
        put(w, in, lane_mask(r)); \
    }
CONDS_F(DEF32, f32)
CONDS_F(DEF32, f16)
CONDS_F(DEF64, f64)
CONDS_I(DEF32, i32)
CONDS_I(DEF32, u32)
CONDS_I(DEF32, i16)
CONDS_I(DEF32, u16)
CONDS_I(DEF64, i64)
CONDS_I(DEF64, u64)

/* class bits: sNaN qNaN -inf -normal -denormal -0 +0 +denormal +normal +inf */
static uint32_t class_bits(bool neg, bool nan, bool quiet, bool inf, bool zero, bool denormal)
{
    if (nan)
        return quiet ? 2 : 1;
    if (inf)
        return neg ? 4 : 512;
    if (zero)
        return neg ? 32 : 64;
    if (denormal)
        return neg ? 16 : 128;
    return neg ? 8 : 256;
}
static void cmp_class_f32(Wave *w, const Inst *in)
{
    uint32_t ta[LANES], tb[LANES], r[LANES];
    const uint32_t *ap = src32(w, in, 1, ta), *bp = src32(w, in, 2, tb);
    FOR_LANES (l) {
        uint32_t e = ap[l] >> 23 & 255, m = ap[l] & 0x7fffff;
        r[l] = bp[l] & class_bits(ap[l] >> 31, e == 255 && m, m >> 22, e == 255, !e && !m, !e);
    }
    put(w, in, lane_mask(r));
}
static void cmp_class_f16(Wave *w, const Inst *in)
{
    uint32_t ta[LANES], tb[LANES], r[LANES];
    const uint32_t *ap = src32(w, in, 1, ta), *bp = src32(w, in, 2, tb);
    FOR_LANES (l) {
        uint32_t e = ap[l] >> 10 & 31, m = ap[l] & 0x3ff;
        r[l] = bp[l] & class_bits(ap[l] >> 15 & 1, e == 31 && m, m >> 9, e == 31, !e && !m, !e);
    }
    put(w, in, lane_mask(r));
}
static void cmp_class_f64(Wave *w, const Inst *in)
{
    uint64_t ap[LANES];
    uint32_t tb[LANES], r[LANES];
    src64(w, in, 1, ap);
    const uint32_t *bp = src32(w, in, 2, tb);
    FOR_LANES (l) {
        uint64_t e = ap[l] >> 52 & 2047, m = ap[l] & ((1ull << 52) - 1);
        r[l] = bp[l] & class_bits(ap[l] >> 63, e == 2047 && m, m >> 51, e == 2047, !e && !m, !e);
    }
    put(w, in, lane_mask(r));
}

#define SIG_f32 "Mff"
#define SIG_f16 "Mhh"
#define SIG_f64 "Mdd"
#define SIG_i32 "Mii"
#define SIG_u32 "Mii"
#define SIG_i16 "Mww"
#define SIG_u16 "Mww"
#define SIG_i64 "Mll"
#define SIG_u64 "Mll"
#define ROW(c, T, e) {"v_cmp_" #c "_" #T, SIG_##T, cmp_##c##_##T, 0}, {"v_cmpx_" #c "_" #T, SIG_##T, cmp_##c##_##T, 1},
/* clang-format off */
const OpDef ops_compare[] = {
    CONDS_F(ROW, f32) CONDS_F(ROW, f16) CONDS_F(ROW, f64)
    CONDS_I(ROW, i32) CONDS_I(ROW, u32) CONDS_I(ROW, i16) CONDS_I(ROW, u16) CONDS_I(ROW, i64) CONDS_I(ROW, u64)
    {"v_cmp_class_f32", "Mfi", cmp_class_f32, 0}, {"v_cmpx_class_f32", "Mfi", cmp_class_f32, 1},
    {"v_cmp_class_f16", "Mhi", cmp_class_f16, 0}, {"v_cmpx_class_f16", "Mhi", cmp_class_f16, 1},
    {"v_cmp_class_f64", "Mdi", cmp_class_f64, 0}, {"v_cmpx_class_f64", "Mdi", cmp_class_f64, 1},
    {NULL, NULL, NULL, 0}};
/* clang-format on */
