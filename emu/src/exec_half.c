/* exec_half.c - VALU: 16-bit, packed, dot-product and mixed-precision instructions. */
#include "vmath.h"
#include <math.h>

#define MIN(a, b) ((a) < (b) ? (a) : (b))
#define MAX(a, b) ((a) > (b) ? (a) : (b))
#define MED3(a, b, c) MAX(MIN(a, b), MIN(MAX(a, b), c))
static inline float med3f(float a, float b, float c) { return max_f32(min_f32(a, b), min_f32(max_f32(a, b), c)); }
/* a*b is exact in double, so this rounds once but for rare ties beyond 53 bits */
static inline uint32_t fma_h(float a, float b, float c) { return d2h((double)a * b + c); }
static float fract_h(float x)
{
    float r = x - floorf(x);
    return r < 1 ? r : 0x1.ffcp-1f;
}
static float turns(float x) { return (float)(2 * 3.14159265358979323846 * (x - floor((double)x))); }
static uint32_t cvt_u16(float x) { return !(x > 0) ? 0 : x >= 65535 ? 65535 : (uint32_t)x; }
static uint32_t cvt_i16(float x)
{
    return x != x ? 0 : (uint16_t)(int16_t)(x <= -32768 ? -32768 : x >= 32767 ? 32767 : (int)x);
}
static float div_fixup_h(float q, float d, float n)
{
    double r;
    bool neg = (f2u(d) ^ f2u(n)) >> 31;
    if (div_special(d, n, &r))
        return (float)r;
    return neg ? -fabsf(q) : fabsf(q);
}

#define FN(n) static void op_##n(Wave *w, const Inst *in)
#define SRC(x, i) \
    uint32_t t##x[LANES]; \
    const uint32_t *x##p = src32(w, in, i, t##x)
#define OUT(...) \
    do { \
        uint32_t r[LANES]; \
        FOR_LANES (l) { \
            __VA_ARGS__; \
        } \
        wr32(w, in, r); \
    } while (0)
/* instructions new with op_sel leave the other half of the destination alone */
#define OUT_KEEP(...) \
    do { \
        uint32_t r[LANES]; \
        const uint32_t *dp = w->v[in->op[0].reg]; \
        FOR_LANES (l) { \
            __VA_ARGS__; \
            r[l] = (r[l] & 0xffff) | (dp[l] & 0xffff0000u); \
        } \
        wr32(w, in, r); \
    } while (0)

/* results are bit patterns; a, b, c are floats in the F16 lists and 32-bit words in the others */
#define F16_1(X) \
    X(v_rcp_f16, f2h(1.0f / a)) \
    X(v_sqrt_f16, f2h(sqrtf(a))) \
    X(v_rsq_f16, f2h(1.0f / sqrtf(a))) \
    X(v_log_f16, f2h(vlog2(a))) \
    X(v_exp_f16, f2h(vexp2(a))) \
    X(v_floor_f16, f2h(floorf(a))) \
    X(v_ceil_f16, f2h(ceilf(a))) \
    X(v_trunc_f16, f2h(truncf(a))) \
    X(v_rndne_f16, f2h(__builtin_roundevenf(a))) \
    X(v_fract_f16, f2h(fract_h(a))) \
    X(v_sin_f16, f2h(sinf(turns(a)))) \
    X(v_cos_f16, f2h(cosf(turns(a)))) \
    X(v_frexp_mant_f16, f2h(frexp_mant_f32(a))) \
    X(v_frexp_exp_i16_f16, (uint16_t)frexp_exp_f32(a)) \
    X(v_cvt_u16_f16, cvt_u16(a)) \
    X(v_cvt_i16_f16, cvt_i16(a))
#define F16_2(X) \
    X(v_add_f16, f2h(a + b)) \
    X(v_sub_f16, f2h(a - b)) \
    X(v_subrev_f16, f2h(b - a)) \
    X(v_mul_f16, f2h(a *b)) \
    X(v_min_f16, f2h(min_f32(a, b))) \
    X(v_max_f16, f2h(max_f32(a, b))) \
    X(v_minimum_f16, f2h(minimum(a, b))) \
    X(v_maximum_f16, f2h(maximum(a, b)))
#define F16_3(X) /* keep the high half */ \
    X(v_maxmin_f16, f2h(min_f32(max_f32(a, b), c))) \
    X(v_minmax_f16, f2h(max_f32(min_f32(a, b), c))) \
    X(v_fma_f16, fma_h(a, b, c)) \
    X(v_mad_f16, f2h(h2f(f2h(a *b)) + c)) \
    X(v_min3_f16, f2h(min_f32(min_f32(a, b), c))) \
    X(v_max3_f16, f2h(max_f32(max_f32(a, b), c))) \
    X(v_med3_f16, f2h(med3f(a, b, c))) \
    X(v_minimum3_f16, f2h(minimum(minimum(a, b), c))) \
    X(v_maximum3_f16, f2h(maximum(maximum(a, b), c))) \
    X(v_minimummaximum_f16, f2h(maximum(minimum(a, b), c))) \
    X(v_maximumminimum_f16, f2h(minimum(maximum(a, b), c))) \
    X(v_div_fixup_f16, f2h(div_fixup_h(a, b, c)))
#define F16_3Z(X) /* zero it */ \
    X(v_fma_legacy_f16, fma_h(a, b, c)) \
    X(v_mad_legacy_f16, f2h(h2f(f2h(a *b)) + c)) \
    X(v_div_fixup_legacy_f16, f2h(div_fixup_h(a, b, c))) \
    X(v_madmk_f16, f2h(h2f(f2h(a *b)) + c)) \
    X(v_madak_f16, f2h(h2f(f2h(a *b)) + c))
#define W16_1(X) \
    X(v_mov_b16, "ww", a & 0xffff) \
    X(v_not_b16, "ww", ~a & 0xffff) \
    X(v_cvt_f16_u16, "hw", f2h((float)(uint16_t)a)) \
    X(v_cvt_f16_i16, "hw", f2h((float)(int16_t)a))
#define S (int16_t)
#define U (uint16_t)
#define CL(sat, plain) (in->flags & IF_CLAMP ? (uint32_t)(sat) : (uint32_t)(plain))
#define W16_2(X) \
    X(v_and_b16, a &b) \
    X(v_or_b16, a | b) \
    X(v_xor_b16, a ^ b) \
    X(v_mul_lo_u16, U a *U b) \
    X(v_lshlrev_b16, b << (a & 15)) \
    X(v_lshrrev_b16, (uint32_t)(U b >> (a & 15))) \
    X(v_ashrrev_i16, (uint32_t)(S b >> (a & 15))) \
    X(v_max_u16, (uint32_t)MAX(U a, U b)) \
    X(v_min_u16, (uint32_t)MIN(U a, U b)) \
    X(v_max_i16, (uint32_t)MAX(S a, S b)) \
    X(v_min_i16, (uint32_t)MIN(S a, S b)) \
    X(v_add_u16, CL(MIN(U a + U b, 65535), a + b)) \
    X(v_sub_u16, CL(MAX(U a - U b, 0), a - b)) \
    X(v_subrev_u16, CL(MAX(U b - U a, 0), b - a))
#define W16_2K(X) \
    X(v_add_i16, CL(MED3(S a + S b, -32768, 32767), a + b)) \
    X(v_sub_i16, CL(MED3(S a - S b, -32768, 32767), a - b))
#define W16_3(X) \
    X(v_mad_u16, U a *U b + c) \
    X(v_mad_i16, U a *U b + c) \
    X(v_min3_i16, (uint32_t)MIN(MIN(S a, S b), S c)) \
    X(v_max3_i16, (uint32_t)MAX(MAX(S a, S b), S c)) \
    X(v_med3_i16, (uint32_t)MED3(S a, S b, S c)) \
    X(v_min3_u16, (uint32_t)MIN(MIN(U a, U b), U c)) \
    X(v_max3_u16, (uint32_t)MAX(MAX(U a, U b), U c)) \
    X(v_med3_u16, (uint32_t)MED3(U a, U b, U c))
#define W16_3Z(X) \
    X(v_mad_legacy_u16, U a *U b + c) \
    X(v_mad_legacy_i16, U a *U b + c)

#define DEF(n, e) \
    FN(n) \
    { \
        SRC(a, 1); \
        OUT(float a = h2f(ap[l]); r[l] = (e)); \
    }
F16_1(DEF)
#undef DEF
#define DEF(n, e) \
    FN(n) \
    { \
        SRC(a, 1); \
        SRC(b, 2); \
        OUT(float a = h2f(ap[l]), b = h2f(bp[l]); r[l] = (e)); \
    }
F16_2(DEF)
#undef DEF
#define DEF(n, e) \
    FN(n) \
    { \
        SRC(a, 1); \
        SRC(b, 2); \
        SRC(c, 3); \
        OUT_KEEP(float a = h2f(ap[l]), b = h2f(bp[l]), c = h2f(cp[l]); r[l] = (e)); \
    }
F16_3(DEF)
#undef DEF
#define DEF(n, e) \
    FN(n) \
    { \
        SRC(a, 1); \
        SRC(b, 2); \
        SRC(c, 3); \
        OUT(float a = h2f(ap[l]), b = h2f(bp[l]), c = h2f(cp[l]); r[l] = (e)); \
    }
F16_3Z(DEF)
#undef DEF
#define DEF(n, s, e) \
    FN(n) \
    { \
        SRC(a, 1); \
        OUT(uint32_t a = ap[l]; r[l] = (e)); \
    }
W16_1(DEF)
#undef DEF
#define DEF(n, e) \
    FN(n) \
    { \
        SRC(a, 1); \
        SRC(b, 2); \
        OUT(uint32_t a = ap[l], b = bp[l]; r[l] = (uint16_t)(e)); \
    }
W16_2(DEF)
#undef DEF
#define DEF(n, e) \
    FN(n) \
    { \
        SRC(a, 1); \
        SRC(b, 2); \
        OUT_KEEP(uint32_t a = ap[l], b = bp[l]; r[l] = (e)); \
    }
W16_2K(DEF)
#undef DEF
#define DEF(n, e) \
    FN(n) \
    { \
        SRC(a, 1); \
        SRC(b, 2); \
        SRC(c, 3); \
        OUT_KEEP(uint32_t a = ap[l], b = bp[l], c = cp[l]; r[l] = (e)); \
    }
W16_3(DEF)
#undef DEF
#define DEF(n, e) \
    FN(n) \
    { \
        SRC(a, 1); \
        SRC(b, 2); \
        SRC(c, 3); \
        OUT(uint32_t a = ap[l], b = bp[l], c = cp[l]; r[l] = (uint16_t)(e)); \
    }
W16_3Z(DEF)
#undef DEF
FN(v_mac_f16)
{
    SRC(a, 1);
    SRC(b, 2);
    const uint32_t *cp = w->v[in->op[0].reg];
    OUT(r[l] = f2h(h2f(f2h(h2f(ap[l]) * h2f(bp[l]))) + h2f(cp[l])));
}
FN(v_fmac_f16)
{
    SRC(a, 1);
    SRC(b, 2);
    const uint32_t *cp = w->v[in->op[0].reg];
    int sh = in->flags & IF_OPSEL_DST ? 16 : 0; /* the half that is the destination also accumulates */
    OUT(r[l] = fma_h(h2f(ap[l]), h2f(bp[l]), h2f(cp[l] >> sh)));
}
FN(v_ldexp_f16)
{
    SRC(a, 1);
    SRC(b, 2);
    OUT(r[l] = f2h(vldexp(h2f(ap[l]), (int16_t)bp[l])));
}
FN(v_cndmask_b16)
{
    SRC(a, 1);
    SRC(b, 2);
    uint64_t m = mask_get(w, &in->op[3]);
    OUT(r[l] = (ACTIVE(m, l) ? bp[l] : ap[l]) & 0xffff);
}
FN(v_swap_b16)
{
    uint32_t ta[LANES], tb[LANES];
    Inst back = *in;
    src32_slow(w, in, 1, tb);
    back.op[1] = in->op[0]; /* read the first operand as a source */
    if (in->flags & IF_OPSEL_DST)
        back.op[1].mods |= MOD_HI;
    src32_slow(w, &back, 1, ta);
    wr32(w, in, tb);
    back.op[0] = in->op[1];
    back.flags = (uint16_t)((in->flags & ~IF_OPSEL_DST) | (in->op[1].mods & MOD_HI ? IF_OPSEL_DST : 0));
    wr32(w, &back, ta);
}
FN(v_pack_b32_f16)
{
    SRC(a, 1);
    SRC(b, 2);
    OUT(r[l] = (ap[l] & 0xffff) | bp[l] << 16);
}

/* ---- packed: each half of each source picked by op_sel / op_sel_hi, signs by neg_lo / neg_hi ---------------- */
static void packed_source(Wave *w, const Inst *in, int i, uint32_t *lo, uint32_t *hi)
{
    uint32_t tmp[LANES];
    const uint32_t *p = src32(w, in, i, tmp);
    int k = i - 1, slo = in->op_sel >> k & 1 ? 16 : 0, shi = in->op_sel_hi >> k & 1 ? 16 : 0;
    uint32_t nlo = in->neg_lo >> k & 1 ? 0x8000 : 0, nhi = in->neg_hi >> k & 1 ? 0x8000 : 0;
    FOR_LANES (l) {
        lo[l] = (p[l] >> slo & 0xffff) ^ nlo;
        hi[l] = (p[l] >> shi & 0xffff) ^ nhi;
    }
}
static uint32_t clamp_h(uint32_t h)
{
    float x = h2f(h);
    return f2h(x > 0 ? (x < 1 ? x : 1) : 0);
}
#define PSRC(x, i) \
    uint32_t x##lo[LANES], x##hi[LANES]; \
    packed_source(w, in, i, x##lo, x##hi)
static void packed_write(Wave *w, const Inst *in, uint32_t *r, bool is_float)
{
    if (is_float && in->flags & IF_CLAMP)
        FOR_LANES (l)
            r[l] = clamp_h(r[l]) | clamp_h(r[l] >> 16) << 16;
    blend32(w->v[in->op[0].reg], r, EXEC(w));
}
#define PK_F2(X) \
    X(v_pk_add_f16, f2h(a + b)) \
    X(v_pk_mul_f16, f2h(a *b)) \
    X(v_pk_min_f16, f2h(min_f32(a, b))) \
    X(v_pk_max_f16, f2h(max_f32(a, b))) \
    X(v_pk_minimum_f16, f2h(minimum(a, b))) \
    X(v_pk_maximum_f16, f2h(maximum(a, b)))
#define PK_W2(X) \
    X(v_pk_add_u16, CL(MIN(U a + U b, 65535), a + b)) \
    X(v_pk_sub_u16, CL(MAX(U a - U b, 0), a - b)) \
    X(v_pk_mul_lo_u16, U a *U b) \
    X(v_pk_add_i16, CL(MED3(S a + S b, -32768, 32767), a + b)) \
    X(v_pk_sub_i16, CL(MED3(S a - S b, -32768, 32767), a - b)) \
    X(v_pk_lshlrev_b16, b << (a & 15)) \
    X(v_pk_lshrrev_b16, U b >> (a & 15)) \
    X(v_pk_ashrrev_i16, S b >> (a & 15)) \
    X(v_pk_min_u16, MIN(U a, U b)) \
    X(v_pk_max_u16, MAX(U a, U b)) \
    X(v_pk_min_i16, MIN(S a, S b)) \
    X(v_pk_max_i16, MAX(S a, S b))
#define PK_W3(X) \
    X(v_pk_mad_u16, U a *U b + c) \
    X(v_pk_mad_i16, U a *U b + c)
#define DEF(n, e) \
    FN(n) \
    { \
        PSRC(a, 1); \
        PSRC(b, 2); \
        uint32_t r[LANES]; \
        FOR_LANES (l) { \
            float a = h2f(alo[l]), b = h2f(blo[l]); \
            r[l] = (e); \
            a = h2f(ahi[l]), b = h2f(bhi[l]); \
            r[l] |= (e) << 16; \
        } \
        packed_write(w, in, r, true); \
    }
PK_F2(DEF)
#undef DEF
#define DEF(n, e) \
    FN(n) \
    { \
        PSRC(a, 1); \
        PSRC(b, 2); \
        uint32_t r[LANES]; \
        FOR_LANES (l) { \
            uint32_t a = alo[l], b = blo[l]; \
            r[l] = (uint32_t)(e)&0xffff; \
            a = ahi[l], b = bhi[l]; \
            r[l] |= (uint32_t)(e) << 16; \
        } \
        packed_write(w, in, r, false); \
    }
PK_W2(DEF)
#undef DEF
#define DEF(n, e) \
    FN(n) \
    { \
        PSRC(a, 1); \
        PSRC(b, 2); \
        PSRC(c, 3); \
        uint32_t r[LANES]; \
        FOR_LANES (l) { \
            uint32_t a = alo[l], b = blo[l], c = clo[l]; \
            r[l] = (uint32_t)(e)&0xffff; \
            a = ahi[l], b = bhi[l], c = chi[l]; \
            r[l] |= (uint32_t)(e) << 16; \
        } \
        packed_write(w, in, r, false); \
    }
PK_W3(DEF)
#undef DEF
FN(v_pk_fma_f16)
{
    PSRC(a, 1);
    PSRC(b, 2);
    PSRC(c, 3);
    uint32_t r[LANES];
    FOR_LANES (l) {
        r[l] = fma_h(h2f(alo[l]), h2f(blo[l]), h2f(clo[l]));
        r[l] |= fma_h(h2f(ahi[l]), h2f(bhi[l]), h2f(chi[l])) << 16;
    }
    packed_write(w, in, r, true);
}

FN(v_pk_fmac_f16)
{
    PSRC(a, 1);
    PSRC(b, 2);
    const uint32_t *c = w->v[in->op[0].reg];
    uint32_t r[LANES];
    FOR_LANES (l) {
        r[l] = fma_h(h2f(alo[l]), h2f(blo[l]), h2f(c[l]));
        r[l] |= fma_h(h2f(ahi[l]), h2f(bhi[l]), h2f(c[l] >> 16)) << 16;
    }
    packed_write(w, in, r, true);
}

/* ---- dot products -------------------------------------------------------------------------------------------- */
FN(v_dot2_f32_f16)
{
    PSRC(a, 1);
    PSRC(b, 2);
    SRC(c, 3);
    uint32_t neg = in->neg_lo >> 2 & 1 ? 0x80000000u : 0;
    OUT(r[l] = f2u(h2f(alo[l]) * h2f(blo[l]) + h2f(ahi[l]) * h2f(bhi[l]) + u2f(cp[l] ^ neg)));
}
FN(v_dot2acc_f32_f16) /* VOP2: accumulates in the destination */
{
    SRC(a, 1);
    SRC(b, 2);
    const uint32_t *cp = w->v[in->op[0].reg];
    OUT(r[l] = f2u(h2f(ap[l]) * h2f(bp[l]) + h2f(ap[l] >> 16) * h2f(bp[l] >> 16) + u2f(cp[l])));
}
static inline int64_t field(uint32_t v, int k, int bits, bool sign)
{
    return sign ? (int64_t)((int32_t)(v << (32 - bits - k)) >> (32 - bits)) : (int64_t)(v >> k & ((1u << bits) - 1));
}
static void dot_mixed(Wave *w, const Inst *in, int bits, bool sign_a, bool sign_b)
{
    SRC(a, 1);
    SRC(b, 2);
    SRC(c, 3);
    bool clamp = in->flags & IF_CLAMP, sign = sign_a || sign_b;
    uint32_t r[LANES];
    FOR_LANES (l) {
        int64_t sum = sign ? (int64_t)(int32_t)cp[l] : (int64_t)cp[l];
        for (int k = 0; k < 32; k += bits)
            sum += field(ap[l], k, bits, sign_a) * field(bp[l], k, bits, sign_b);
        if (clamp)
            sum = sign ? MED3(sum, (int64_t)INT32_MIN, (int64_t)INT32_MAX) : MIN(sum, (int64_t)UINT32_MAX);
        r[l] = (uint32_t)sum;
    }
    blend32(w->v[in->op[0].reg], r, EXEC(w));
}
static void dot_int(Wave *w, const Inst *in, int bits, bool sign) { dot_mixed(w, in, bits, sign, sign); }
static void dot_acc(Wave *w, const Inst *in, int bits) /* VOP2: accumulates in the destination */
{
    Inst three = *in;
    three.op[3] = in->op[0];
    dot_int(w, &three, bits, true);
}
FN(v_dot2c_i32_i16) { dot_acc(w, in, 16); }
FN(v_dot4c_i32_i8) { dot_acc(w, in, 8); }
FN(v_dot8c_i32_i4) { dot_acc(w, in, 4); }
FN(v_dot4_i32_iu8) { dot_mixed(w, in, 8, in->neg_lo & 1, in->neg_lo >> 1 & 1); }
FN(v_dot8_i32_iu4) { dot_mixed(w, in, 4, in->neg_lo & 1, in->neg_lo >> 1 & 1); }
FN(v_dot2_f32_bf16)
{
    SRC(a, 1);
    SRC(b, 2);
    SRC(c, 3);
    OUT(r[l] = f2u(u2f(ap[l] << 16) * u2f(bp[l] << 16) + u2f(ap[l] & 0xffff0000u) * u2f(bp[l] & 0xffff0000u) +
                   u2f(cp[l])));
}
FN(v_dot2_i32_i16) { dot_int(w, in, 16, true); }
FN(v_dot2_u32_u16) { dot_int(w, in, 16, false); }
FN(v_dot4_i32_i8) { dot_int(w, in, 8, true); }
FN(v_dot4_u32_u8) { dot_int(w, in, 8, false); }
FN(v_dot8_i32_i4) { dot_int(w, in, 4, true); }
FN(v_dot8_u32_u4) { dot_int(w, in, 4, false); }

/* ---- mixed precision: op_sel_hi says a source is f16, op_sel which half; neg_hi means abs ---------------------- */
static void mix_source(Wave *w, const Inst *in, int i, float *out)
{
    uint32_t tmp[LANES];
    const uint32_t *p = src32(w, in, i, tmp);
    int k = i - 1, sh = in->op_sel >> k & 1 ? 16 : 0;
    if (in->op_sel_hi >> k & 1)
        FOR_LANES (l)
            out[l] = h2f(p[l] >> sh);
    else
        FOR_LANES (l)
            out[l] = u2f(p[l]);
    if (in->neg_hi >> k & 1)
        FOR_LANES (l)
            out[l] = fabsf(out[l]);
    if (in->neg_lo >> k & 1)
        FOR_LANES (l)
            out[l] = -out[l];
}
static void mix(Wave *w, const Inst *in, float *r)
{
    float a[LANES], b[LANES], c[LANES];
    mix_source(w, in, 1, a);
    mix_source(w, in, 2, b);
    mix_source(w, in, 3, c);
    if (in->def->aux)
        FOR_LANES (l)
            r[l] = __builtin_fmaf(a[l], b[l], c[l]);
    else
        FOR_LANES (l)
            r[l] = a[l] * b[l] + c[l];
    if (in->flags & IF_CLAMP)
        FOR_LANES (l)
            r[l] = r[l] > 0 ? (r[l] < 1 ? r[l] : 1) : 0;
}
FN(mix_f32)
{
    float f[LANES];
    uint32_t r[LANES];
    mix(w, in, f);
    FOR_LANES (l)
        r[l] = f2u(f[l]);
    blend32(w->v[in->op[0].reg], r, EXEC(w));
}
FN(mixlo_f16)
{
    float f[LANES];
    uint32_t r[LANES], *d = w->v[in->op[0].reg];
    mix(w, in, f);
    FOR_LANES (l)
        r[l] = (d[l] & 0xffff0000u) | f2h(f[l]);
    blend32(d, r, EXEC(w));
}
FN(mixhi_f16)
{
    float f[LANES];
    uint32_t r[LANES], *d = w->v[in->op[0].reg];
    mix(w, in, f);
    FOR_LANES (l)
        r[l] = (d[l] & 0xffff) | f2h(f[l]) << 16;
    blend32(d, r, EXEC(w));
}

#define ROW(n, sig) {#n, sig, op_##n, 0},
#define R1(n, e) ROW(n, "hh")
#define R2(n, e) ROW(n, "hhh")
#define R3(n, e) ROW(n, "hhhh")
#define RS(n, s, e) ROW(n, s)
#define RW2(n, e) ROW(n, "www")
#define RW3(n, e) ROW(n, "wwww")
#define RP2(n, e) ROW(n, "ppp")
#define RQ2(n, e) ROW(n, "qqq")
#define RQ3(n, e) ROW(n, "qqqq")
/* clang-format off */
const OpDef ops_vector16[] = {
    F16_1(R1) F16_2(R2) F16_3(R3) F16_3Z(R3) W16_1(RS) W16_2(RW2) W16_2K(RW2) W16_3(RW3) W16_3Z(RW3)
    ROW(v_mac_f16, "hhh") ROW(v_fmac_f16, "hhh") ROW(v_ldexp_f16, "hhw") ROW(v_pack_b32_f16, "ihh")
    PK_F2(RP2) PK_W2(RQ2) PK_W3(RQ3) ROW(v_pk_fma_f16, "pppp")
    ROW(v_dot2_f32_f16, "fppf") ROW(v_dot2_i32_i16, "iqqi") ROW(v_dot2_u32_u16, "iqqi") ROW(v_dot4_i32_i8, "iiii")
    ROW(v_dot4_u32_u8, "iiii") ROW(v_dot8_i32_i4, "iiii") ROW(v_dot8_u32_u4, "iiii")
    /* names since gfx10 and gfx11 */
    {"v_add_nc_u16", "www", op_v_add_u16, 0}, {"v_sub_nc_u16", "www", op_v_sub_u16, 0}, {"v_add_nc_i16", "www", op_v_add_i16, 0},
    {"v_sub_nc_i16", "www", op_v_sub_i16, 0}, {"v_fmamk_f16", "hhhh", op_v_fma_legacy_f16, 0}, {"v_fmaak_f16", "hhhh", op_v_fma_legacy_f16, 0},
    {"v_pk_fmac_f16", "ppp", op_v_pk_fmac_f16, 0}, ROW(v_cndmask_b16, "wwwM") ROW(v_swap_b16, "ww")
    ROW(v_dot4_i32_iu8, "iiii") ROW(v_dot8_i32_iu4, "iiii") ROW(v_dot2_f32_bf16, "fiif") ROW(v_dot2acc_f32_f16, "fii") {"v_dot2c_f32_f16", "fii", op_v_dot2acc_f32_f16, 0},
    ROW(v_dot2c_i32_i16, "iii") ROW(v_dot4c_i32_i8, "iii") ROW(v_dot8c_i32_i4, "iii")
    {"v_mad_mix_f32", "ffff", op_mix_f32, 0}, {"v_mad_mixlo_f16", "iiii", op_mixlo_f16, 0}, {"v_mad_mixhi_f16", "iiii", op_mixhi_f16, 0},
    {"v_fma_mix_f32", "ffff", op_mix_f32, 1}, {"v_fma_mixlo_f16", "iiii", op_mixlo_f16, 1}, {"v_fma_mixhi_f16", "iiii", op_mixhi_f16, 1},
    /* gfx12 */
    {"v_min_num_f16", "hhh", op_v_min_f16, 0}, {"v_max_num_f16", "hhh", op_v_max_f16, 0}, {"v_min3_num_f16", "hhhh", op_v_min3_f16, 0},
    {"v_max3_num_f16", "hhhh", op_v_max3_f16, 0}, {"v_med3_num_f16", "hhhh", op_v_med3_f16, 0}, {"v_minmax_num_f16", "hhhh", op_v_minmax_f16, 0},
    {"v_maxmin_num_f16", "hhhh", op_v_maxmin_f16, 0}, {"v_pk_min_num_f16", "ppp", op_v_pk_min_f16, 0}, {"v_pk_max_num_f16", "ppp", op_v_pk_max_f16, 0},
    {NULL, NULL, NULL, 0}};
/* clang-format on */
