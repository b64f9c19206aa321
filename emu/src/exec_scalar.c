/* exec_scalar.c - SALU, scalar memory and program control. */
#include "exec.h"
#include <math.h>

/* ---- two sources, 32 bits.  SCC: `n` unchanged, `z` result != 0, or an expression ------------------ */
#define D w->s[in->op[0].reg]
#define A32 uint32_t a = sget32(w, &in->op[1])
#define B32 uint32_t b = sget32(w, &in->op[2])
#define A64 uint64_t a = sget64(w, &in->op[1])
#define B64 uint64_t b = sget64(w, &in->op[2])

/* Each list: mnemonic, value, new SCC (may use a, b, d; `w->scc` keeps it) */
#define SOP2_32(X) \
    X(s_add_u32, a + b, d < a) \
    X(s_sub_u32, a - b, a < b) \
    X(s_add_i32, a + b, ((~(a ^ b) & (a ^ d)) >> 31)) \
    X(s_sub_i32, a - b, (((a ^ b) & (a ^ d)) >> 31)) \
    X(s_addc_u32, a + b + w->scc, ((uint64_t)a + b + w->scc) >> 32 & 1) \
    X(s_subb_u32, a - b - w->scc, (uint64_t)b + w->scc > a) \
    X(s_min_i32, (int32_t)a < (int32_t)b ? a : b, (int32_t)a < (int32_t)b) \
    X(s_min_u32, a < b ? a : b, a < b) \
    X(s_max_i32, (int32_t)a > (int32_t)b ? a : b, (int32_t)a > (int32_t)b) \
    X(s_max_u32, a > b ? a : b, a > b) \
    X(s_cselect_b32, w->scc ? a : b, w->scc) \
    X(s_and_b32, a &b, d != 0) \
    X(s_or_b32, a | b, d != 0) \
    X(s_xor_b32, a ^ b, d != 0) \
    X(s_andn2_b32, a & ~b, d != 0) \
    X(s_orn2_b32, a | ~b, d != 0) \
    X(s_nand_b32, ~(a & b), d != 0) \
    X(s_nor_b32, ~(a | b), d != 0) \
    X(s_xnor_b32, ~(a ^ b), d != 0) \
    X(s_lshl_b32, a << (b & 31), d != 0) \
    X(s_lshr_b32, a >> (b & 31), d != 0) \
    X(s_ashr_i32, (uint32_t)((int32_t)a >> (b & 31)), d != 0) \
    X(s_bfm_b32, ((1u << (a & 31)) - 1) << (b & 31), w->scc) \
    X(s_mul_i32, a *b, w->scc) \
    X(s_mul_hi_u32, (uint32_t)((uint64_t)a * b >> 32), w->scc) \
    X(s_mul_hi_i32, (uint32_t)((int64_t)(int32_t)a * (int32_t)b >> 32), w->scc) \
    X(s_bfe_u32, bfe_u(a, b), d != 0) \
    X(s_bfe_i32, bfe_i(a, b), d != 0) \
    X(s_absdiff_i32, (int32_t)a > (int32_t)b ? a - b : b - a, d != 0) \
    X(s_lshl1_add_u32, (a << 1) + b, ((uint64_t)a << 1) + b > 0xffffffffu) \
    X(s_lshl2_add_u32, (a << 2) + b, ((uint64_t)a << 2) + b > 0xffffffffu) \
    X(s_lshl3_add_u32, (a << 3) + b, ((uint64_t)a << 3) + b > 0xffffffffu) \
    X(s_lshl4_add_u32, (a << 4) + b, ((uint64_t)a << 4) + b > 0xffffffffu) \
    X(s_pack_ll_b32_b16, (a & 0xffff) | b << 16, w->scc) \
    X(s_pack_lh_b32_b16, (a & 0xffff) | (b & 0xffff0000u), w->scc) \
    X(s_pack_hh_b32_b16, a >> 16 | (b & 0xffff0000u), w->scc) \
    X(s_pack_hl_b32_b16, a >> 16 | b << 16, w->scc)
/* floats in SGPRs (gfx12); SCC stays.  min_num and max_num prefer a number to a NaN. */
#define FA u2f(a)
#define FB u2f(b)
#define FD u2f(D)
#define HA h2f(a)
#define HB h2f(b)
#define SOP2_FLOAT(X) \
    X(s_add_f32, f2u(FA + FB), w->scc) \
    X(s_sub_f32, f2u(FA - FB), w->scc) \
    X(s_mul_f32, f2u(FA *FB), w->scc) \
    X(s_fmac_f32, f2u(__builtin_fmaf(FA, FB, FD)), w->scc) \
    X(s_min_num_f32, f2u(FA != FA ? FB : FB != FB ? FA : minimum(FA, FB)), w->scc) \
    X(s_max_num_f32, f2u(FA != FA ? FB : FB != FB ? FA : maximum(FA, FB)), w->scc) \
    X(s_minimum_f32, f2u(minimum(FA, FB)), w->scc) \
    X(s_maximum_f32, f2u(maximum(FA, FB)), w->scc) \
    X(s_cvt_pk_rtz_f16_f32, to_half_rtz(FA) | to_half_rtz(FB) << 16, w->scc)
#define SOP2_HALF(X) \
    X(s_add_f16, f2h(HA + HB), w->scc) \
    X(s_sub_f16, f2h(HA - HB), w->scc) \
    X(s_mul_f16, f2h(HA *HB), w->scc) \
    X(s_fmac_f16, d2h((double)HA *HB + h2f(D)), w->scc) \
    X(s_min_num_f16, f2h(HA != HA ? HB : HB != HB ? HA : minimum(HA, HB)), w->scc) \
    X(s_max_num_f16, f2h(HA != HA ? HB : HB != HB ? HA : maximum(HA, HB)), w->scc) \
    X(s_minimum_f16, f2h(minimum(HA, HB)), w->scc) \
    X(s_maximum_f16, f2h(maximum(HA, HB)), w->scc)
static uint32_t to_half_rtz(float x)
{
    uint32_t h = f2h(x);
    return isfinite(x) && fabsf(h2f(h)) > fabsf(x) ? h - 1 : h;
}

static uint32_t bfe_u(uint32_t a, uint32_t b)
{
    uint32_t off = b & 31, width = b >> 16 & 0x7f;
    return !width ? 0 : width >= 32 ? a >> off : a >> off & ((1u << width) - 1);
}
static uint32_t bfe_i(uint32_t a, uint32_t b)
{
    uint32_t off = b & 31, width = b >> 16 & 0x7f;
    if (!width)
        return 0;
    if (off + width > 32)
        width = 32 - off;
    return (uint32_t)((int32_t)(a << (32 - off - width)) >> (32 - width));
}
static uint64_t bfe_u64(uint64_t a, uint64_t b)
{
    uint64_t off = b & 63, width = b >> 16 & 0x7f;
    return !width ? 0 : width >= 64 ? a >> off : a >> off & ((1ull << width) - 1);
}
static uint64_t bfe_i64(uint64_t a, uint64_t b)
{
    uint64_t off = b & 63, width = b >> 16 & 0x7f;
    if (!width)
        return 0;
    if (off + width > 64)
        width = 64 - off;
    return (uint64_t)((int64_t)(a << (64 - off - width)) >> (64 - width));
}

#define DEF(n, e, c) \
    static void op_##n(Wave *w, const Inst *in) \
    { \
        A32; \
        B32; \
        uint32_t d = (e); \
        uint32_t cc = (uint32_t)(c); \
        D = d; \
        w->scc = cc; \
    }
SOP2_32(DEF)
SOP2_FLOAT(DEF)
SOP2_HALF(DEF)
#undef DEF

#define SOP2_64(X) \
    X(s_and_b64, a &b, d != 0) \
    X(s_or_b64, a | b, d != 0) \
    X(s_xor_b64, a ^ b, d != 0) \
    X(s_andn2_b64, a & ~b, d != 0) \
    X(s_orn2_b64, a | ~b, d != 0) \
    X(s_nand_b64, ~(a & b), d != 0) \
    X(s_nor_b64, ~(a | b), d != 0) \
    X(s_xnor_b64, ~(a ^ b), d != 0) \
    X(s_cselect_b64, w->scc ? a : b, w->scc) \
    X(s_lshl_b64, a << (b & 63), d != 0) \
    X(s_lshr_b64, a >> (b & 63), d != 0) \
    X(s_ashr_i64, (uint64_t)((int64_t)a >> (b & 63)), d != 0) \
    X(s_bfe_u64, bfe_u64(a, b), d != 0) \
    X(s_bfe_i64, bfe_i64(a, b), d != 0) \
    X(s_bfm_b64, ((1ull << (a & 63)) - 1) << (b & 63), w->scc) \
    X(s_add_nc_u64, a + b, w->scc) \
    X(s_sub_nc_u64, a - b, w->scc) \
    X(s_mul_u64, a *b, w->scc)
#define DEF(n, e, c) \
    static void op_##n(Wave *w, const Inst *in) \
    { \
        A64; \
        B64; \
        uint64_t d = (e); \
        uint32_t cc = (uint32_t)(c); \
        sset64(w, &in->op[0], d); \
        w->scc = cc; \
    }
SOP2_64(DEF)
#undef DEF

/* ---- one source ---------------------------------------------------------------------------------------- */
#define SOP1_32(X) \
    X(s_mov_b32, a, w->scc) \
    X(s_cmov_b32, w->scc ? a : D, w->scc) \
    X(s_not_b32, ~a, d != 0) \
    X(s_wqm_b32, wqm(a), d != 0) \
    X(s_brev_b32, (uint32_t)(brev64(a) >> 32), w->scc) \
    X(s_bcnt0_i32_b32, 32 - (uint32_t)__builtin_popcount(a), d != 0) \
    X(s_bcnt1_i32_b32, (uint32_t)__builtin_popcount(a), d != 0) \
    X(s_ff0_i32_b32, ~a ? (uint32_t)__builtin_ctz(~a) : ~0u, w->scc) \
    X(s_ff1_i32_b32, a ? (uint32_t)__builtin_ctz(a) : ~0u, w->scc) \
    X(s_flbit_i32_b32, a ? (uint32_t)__builtin_clz(a) : ~0u, w->scc) \
    X(s_flbit_i32, a == 0 || a == ~0u ? ~0u : (uint32_t)__builtin_clrsb((int)a) + 1, w->scc) \
    X(s_sext_i32_i8, (uint32_t)(int8_t)a, w->scc) \
    X(s_sext_i32_i16, (uint32_t)(int16_t)a, w->scc) \
    X(s_abs_i32, (int32_t)a < 0 ? -a : a, d != 0) \
    X(s_bitset0_b32, D & ~(1u << (a & 31)), w->scc) \
    X(s_bitset1_b32, D | 1u << (a & 31), w->scc)
#define SOP1_FLOAT(X) \
    X(s_floor_f32, f2u(floorf(FA)), w->scc) \
    X(s_ceil_f32, f2u(ceilf(FA)), w->scc) \
    X(s_trunc_f32, f2u(truncf(FA)), w->scc) \
    X(s_rndne_f32, f2u(__builtin_roundevenf(FA)), w->scc) \
    X(s_cvt_f32_i32, f2u((float)(int32_t)a), w->scc) \
    X(s_cvt_f32_u32, f2u((float)a), w->scc) \
    X(s_cvt_i32_f32, to_i32(FA), w->scc) \
    X(s_cvt_u32_f32, !(FA > 0) ? 0 : FA >= 4294967296.0f ? UINT32_MAX : (uint32_t)FA, w->scc) \
    X(s_cvt_f16_f32, f2h(FA), w->scc)
#define SOP1_HALF(X) \
    X(s_floor_f16, f2h(floorf(HA)), w->scc) \
    X(s_ceil_f16, f2h(ceilf(HA)), w->scc) \
    X(s_trunc_f16, f2h(truncf(HA)), w->scc) \
    X(s_rndne_f16, f2h(__builtin_roundevenf(HA)), w->scc) \
    X(s_cvt_f32_f16, f2u(HA), w->scc) \
    X(s_cvt_hi_f32_f16, f2u(h2f(a >> 16)), w->scc)
static uint32_t to_i32(float x)
{
    return x != x ? 0 : x >= 2147483648.0f ? INT32_MAX : x <= -2147483648.0f ? 0x80000000u : (uint32_t)(int32_t)x;
}

static uint64_t brev64(uint64_t v)
{
    uint64_t r = 0;
    for (int i = 0; i < 64; i++)
        r |= (v >> i & 1) << (63 - i);
    return r;
}
static uint64_t wqm(uint64_t v)
{
    uint64_t r = 0;
    for (int i = 0; i < 64; i += 4)
        r |= v >> i & 15 ? 15ull << i : 0;
    return r;
}
#define DEF(n, e, c) \
    static void op_##n(Wave *w, const Inst *in) \
    { \
        A32; \
        (void)a; \
        uint32_t d = (e); \
        uint32_t cc = (uint32_t)(c); \
        D = d; \
        w->scc = cc; \
    }
SOP1_32(DEF)
SOP1_FLOAT(DEF)
SOP1_HALF(DEF)
#undef DEF
/* three sources: a * b + c, the literal in its place */
static void op_s_fmaak_f32(Wave *w, const Inst *in)
{
    D = f2u(__builtin_fmaf(u2f(sget32(w, &in->op[1])), u2f(sget32(w, &in->op[2])), u2f(sget32(w, &in->op[3]))));
}

#define D64 sget64(w, &in->op[0])
#define SOP1_64(X) \
    X(s_mov_b64, a, w->scc) \
    X(s_cmov_b64, w->scc ? a : D64, w->scc) \
    X(s_not_b64, ~a, d != 0) \
    X(s_wqm_b64, wqm(a), d != 0) \
    X(s_brev_b64, brev64(a), w->scc) \
    X(s_bitset0_b64, D64 & ~(1ull << (a & 63)), w->scc) \
    X(s_bitset1_b64, D64 | 1ull << (a & 63), w->scc)
#define DEF(n, e, c) \
    static void op_##n(Wave *w, const Inst *in) \
    { \
        A64; \
        uint64_t d = (e); \
        uint32_t cc = (uint32_t)(c); \
        sset64(w, &in->op[0], d); \
        w->scc = cc; \
    }
SOP1_64(DEF)
#undef DEF

/* 64-bit source, 32-bit result */
#define SOP1_64_32(X) \
    X(s_bcnt0_i32_b64, 64 - (uint32_t)__builtin_popcountll(a), d != 0) \
    X(s_bcnt1_i32_b64, (uint32_t)__builtin_popcountll(a), d != 0) \
    X(s_ff0_i32_b64, ~a ? (uint32_t)__builtin_ctzll(~a) : ~0u, w->scc) \
    X(s_ff1_i32_b64, a ? (uint32_t)__builtin_ctzll(a) : ~0u, w->scc) \
    X(s_flbit_i32_b64, a ? (uint32_t)__builtin_clzll(a) : ~0u, w->scc) \
    X(s_flbit_i32_i64, a == 0 || a == ~0ull ? ~0u : (uint32_t)__builtin_clrsbll((long long)a) + 1, w->scc)
#define DEF(n, e, c) \
    static void op_##n(Wave *w, const Inst *in) \
    { \
        A64; \
        uint32_t d = (e); \
        uint32_t cc = (uint32_t)(c); \
        D = d; \
        w->scc = cc; \
    }
SOP1_64_32(DEF)
#undef DEF

/* d = exec; exec = f(a, exec) */
#define SAVEEXEC(X) \
    X(s_and_saveexec_b64, a &e) \
    X(s_or_saveexec_b64, a | e) \
    X(s_xor_saveexec_b64, a ^ e) \
    X(s_andn2_saveexec_b64, a & ~e) \
    X(s_orn2_saveexec_b64, a | ~e) \
    X(s_nand_saveexec_b64, ~(a & e)) \
    X(s_nor_saveexec_b64, ~(a | e)) \
    X(s_xnor_saveexec_b64, ~(a ^ e)) \
    X(s_andn1_saveexec_b64, ~a &e) \
    X(s_orn1_saveexec_b64, ~a | e)
#define DEF(n, x) \
    static void op_##n(Wave *w, const Inst *in) \
    { \
        A64; \
        uint64_t e = EXEC(w); \
        sset64(w, &in->op[0], e); \
        EXEC(w) = (x); \
        w->scc = EXEC(w) != 0; \
    }
SAVEEXEC(DEF)
#undef DEF

/* the same for waves of 32 lanes */
#define SAVEEXEC32(X) \
    X(s_and_saveexec_b32, a &e) \
    X(s_or_saveexec_b32, a | e) \
    X(s_xor_saveexec_b32, a ^ e) \
    X(s_andn2_saveexec_b32, a & ~e) \
    X(s_orn2_saveexec_b32, a | ~e) \
    X(s_nand_saveexec_b32, ~(a & e)) \
    X(s_nor_saveexec_b32, ~(a | e)) \
    X(s_xnor_saveexec_b32, ~(a ^ e)) \
    X(s_andn1_saveexec_b32, ~a &e) \
    X(s_orn1_saveexec_b32, ~a | e)
#define DEF(n, x) \
    static void op_##n(Wave *w, const Inst *in) \
    { \
        A32; \
        uint32_t e = w->s[S_EXEC]; \
        D = e; \
        w->s[S_EXEC] = (x); \
        w->scc = w->s[S_EXEC] != 0; \
    }
SAVEEXEC32(DEF)
#undef DEF
#define WREXEC32(X) \
    X(s_andn1_wrexec_b32, ~a &e) \
    X(s_andn2_wrexec_b32, a & ~e)
#define DEF(n, x) \
    static void op_##n(Wave *w, const Inst *in) \
    { \
        A32; \
        uint32_t e = w->s[S_EXEC], d = (x); \
        w->s[S_EXEC] = d; \
        D = d; \
        w->scc = d != 0; \
    }
WREXEC32(DEF)
#undef DEF

/* exec = d = f(a, exec) */
#define WREXEC(X) \
    X(s_andn1_wrexec_b64, ~a &e) \
    X(s_andn2_wrexec_b64, a & ~e)
#define DEF(n, x) \
    static void op_##n(Wave *w, const Inst *in) \
    { \
        A64; \
        uint64_t e = EXEC(w), d = (x); \
        EXEC(w) = d; \
        sset64(w, &in->op[0], d); \
        w->scc = d != 0; \
    }
WREXEC(DEF)
#undef DEF

/* ---- compares: operands are op[0], op[1] -------------------------------------------------------------- */
#define SOPC_32(X) \
    X(s_cmp_eq_i32, a == b) \
    X(s_cmp_lg_i32, a != b) \
    X(s_cmp_eq_u32, a == b) \
    X(s_cmp_lg_u32, a != b) \
    X(s_cmp_gt_i32, (int32_t)a > (int32_t)b) \
    X(s_cmp_ge_i32, (int32_t)a >= (int32_t)b) \
    X(s_cmp_lt_i32, (int32_t)a < (int32_t)b) \
    X(s_cmp_le_i32, (int32_t)a <= (int32_t)b) \
    X(s_cmp_gt_u32, a > b) \
    X(s_cmp_ge_u32, a >= b) \
    X(s_cmp_lt_u32, a < b) \
    X(s_cmp_le_u32, a <= b) \
    X(s_bitcmp0_b32, !(a >> (b & 31) & 1)) \
    X(s_bitcmp1_b32, a >> (b & 31) & 1)
#define DEF(n, e) \
    static void op_##n(Wave *w, const Inst *in) \
    { \
        uint32_t a = sget32(w, &in->op[0]), b = sget32(w, &in->op[1]); \
        w->scc = (e); \
    }
SOPC_32(DEF)
#define SOPC_FLOAT(X, T, F) \
    X(s_cmp_lt_##T, F(a) < F(b)) \
    X(s_cmp_eq_##T, F(a) == F(b)) \
    X(s_cmp_le_##T, F(a) <= F(b)) \
    X(s_cmp_gt_##T, F(a) > F(b)) \
    X(s_cmp_lg_##T, F(a) < F(b) || F(a) > F(b)) \
    X(s_cmp_ge_##T, F(a) >= F(b)) \
    X(s_cmp_o_##T, F(a) == F(a) && F(b) == F(b)) \
    X(s_cmp_u_##T, F(a) != F(a) || F(b) != F(b)) \
    X(s_cmp_nge_##T, !(F(a) >= F(b))) \
    X(s_cmp_nlg_##T, !(F(a) < F(b) || F(a) > F(b))) \
    X(s_cmp_ngt_##T, !(F(a) > F(b))) \
    X(s_cmp_nle_##T, !(F(a) <= F(b))) \
    X(s_cmp_neq_##T, F(a) != F(b)) \
    X(s_cmp_nlt_##T, !(F(a) < F(b)))
SOPC_FLOAT(DEF, f32, u2f)
SOPC_FLOAT(DEF, f16, h2f)
#undef DEF
#define SOPC_64(X) \
    X(s_cmp_eq_u64, "ll", a == b) \
    X(s_cmp_lg_u64, "ll", a != b) \
    X(s_bitcmp0_b64, "li", !(a >> (b & 63) & 1)) \
    X(s_bitcmp1_b64, "li", a >> (b & 63) & 1)
#define DEF(n, sig, e) \
    static void op_##n(Wave *w, const Inst *in) \
    { \
        uint64_t a = sget64(w, &in->op[0]), b = sig[1] == 'l' ? sget64(w, &in->op[1]) : sget32(w, &in->op[1]); \
        w->scc = (e)&1; \
    }
SOPC_64(DEF)
#undef DEF

/* ---- SOPK: the immediate is the low half of the encoding ----------------------------------------------- */
#define SIMM ((int32_t)(int16_t)(in->raw[0] & 0xffff))
#define UIMM (in->raw[0] & 0xffff)
#define SOPK_CMP(X) \
    X(s_cmpk_eq_i32, (int32_t)a == SIMM) \
    X(s_cmpk_lg_i32, (int32_t)a != SIMM) \
    X(s_cmpk_gt_i32, (int32_t)a > SIMM) \
    X(s_cmpk_ge_i32, (int32_t)a >= SIMM) \
    X(s_cmpk_lt_i32, (int32_t)a < SIMM) \
    X(s_cmpk_le_i32, (int32_t)a <= SIMM) \
    X(s_cmpk_eq_u32, a == UIMM) \
    X(s_cmpk_lg_u32, a != UIMM) \
    X(s_cmpk_gt_u32, a > UIMM) \
    X(s_cmpk_ge_u32, a >= UIMM) \
    X(s_cmpk_lt_u32, a < UIMM) \
    X(s_cmpk_le_u32, a <= UIMM)
#define DEF(n, e) \
    static void op_##n(Wave *w, const Inst *in) \
    { \
        uint32_t a = sget32(w, &in->op[0]); \
        w->scc = (e); \
    }
SOPK_CMP(DEF)
#undef DEF

static void op_s_movk_i32(Wave *w, const Inst *in) { D = (uint32_t)SIMM; }
static void op_s_cmovk_i32(Wave *w, const Inst *in)
{
    if (w->scc)
        D = (uint32_t)SIMM;
}
static void op_s_mulk_i32(Wave *w, const Inst *in) { D *= (uint32_t)SIMM; }
static void op_s_addk_i32(Wave *w, const Inst *in)
{
    uint32_t a = D, b = (uint32_t)SIMM, d = a + b;
    D = d;
    w->scc = (~(a ^ b) & (a ^ d)) >> 31;
}

/* hwreg(id, offset, width) in simm16.  Only MODE is kept; HW_ID and the rest read as 0. */
enum { HWREG_MODE = 1, HWREG_SH_MEM_BASES = 15 };
static void op_s_getreg_b32(Wave *w, const Inst *in)
{
    uint32_t imm = UIMM, id = imm & 63, off = imm >> 6 & 31, width = (imm >> 11 & 31) + 1;
    uint32_t v = id == HWREG_MODE ? w->mode : id == HWREG_SH_MEM_BASES ? SHARED_HI | PRIVATE_HI >> 16 : 0;
    D = v >> off & (width == 32 ? ~0u : (1u << width) - 1);
}
static void setreg(Wave *w, uint32_t imm, uint32_t v)
{
    uint32_t off = imm >> 6 & 31, width = (imm >> 11 & 31) + 1;
    uint32_t m = (width == 32 ? ~0u : (1u << width) - 1) << off;
    if ((imm & 63) == HWREG_MODE) /* rounding and denormal bits are stored, not obeyed */
        w->mode = (w->mode & ~m) | (v << off & m);
}
static void op_s_setreg_b32(Wave *w, const Inst *in)
{
    const Opnd *o = in->op[0].kind == K_NONE ? &in->op[1] : &in->op[0];
    setreg(w, UIMM, sget32(w, o));
}
static void op_s_setreg_imm32_b32(Wave *w, const Inst *in) { setreg(w, UIMM, in->raw[1]); }

/* ---- control flow ------------------------------------------------------------------------------------------ */
static void jump(Wave *w, const Inst *in, uint64_t addr)
{
    const Module *m = w->mod;
    if (addr < m->text_lo || addr >= m->text_hi || addr & 3)
        wave_fault(w, in, false, "jump to 0x%llx, outside the code object", (unsigned long long)addr);
    else
        w->pc = m->insts + (addr - m->text_lo) / 4;
}
#define BRANCH(X) \
    X(s_branch, 1) \
    X(s_cbranch_scc0, !w->scc) \
    X(s_cbranch_scc1, w->scc) \
    X(s_cbranch_vccz, VCC(w) == 0) \
    X(s_cbranch_vccnz, VCC(w) != 0) \
    X(s_cbranch_execz, EXEC(w) == 0) \
    X(s_cbranch_execnz, EXEC(w) != 0) \
    X(s_cbranch_cdbgsys, 0) \
    X(s_cbranch_cdbguser, 0)
#define DEF(n, e) \
    static void op_##n(Wave *w, const Inst *in) \
    { \
        if (e) \
            w->pc = in + in->offset; \
    }
BRANCH(DEF)
#undef DEF
static void op_s_getpc_b64(Wave *w, const Inst *in) { sset64(w, &in->op[0], inst_addr(w, in) + 4u * in->len); }
static void op_s_setpc_b64(Wave *w, const Inst *in) { jump(w, in, sget64(w, &in->op[0])); }
static void op_s_swappc_b64(Wave *w, const Inst *in)
{
    uint64_t to = sget64(w, &in->op[1]);
    sset64(w, &in->op[0], inst_addr(w, in) + 4u * in->len);
    jump(w, in, to);
}
static void op_s_call_b64(Wave *w, const Inst *in)
{
    sset64(w, &in->op[0], inst_addr(w, in) + 4u * in->len);
    w->pc = in + SIMM + 1;
}
static void op_nop(Wave *w, const Inst *in) { (void)w, (void)in; }
static void op_s_barrier(Wave *w, const Inst *in)
{
    (void)in;
    w->status = WAVE_BARRIER;
}
static void op_s_sleep(Wave *w, const Inst *in)
{
    (void)in;
    hostcall_poll();
    w->status = WAVE_YIELD;
}
static void op_s_endpgm(Wave *w, const Inst *in)
{
    (void)in;
    w->status = WAVE_END;
}
static void op_s_trap(Wave *w, const Inst *in)
{
    wave_fault(w, in, false, "trap: abort or a failed assertion in the kernel");
}

/* s_movrels/s_movreld: SGPR indexed by M0 */
static void op_s_movrels_b32(Wave *w, const Inst *in) { D = w->s[(in->op[1].reg + w->s[S_M0]) & 127]; }
static void op_s_movreld_b32(Wave *w, const Inst *in)
{
    w->s[(in->op[0].reg + w->s[S_M0]) & 127] = sget32(w, &in->op[1]);
}

/* ---- scalar memory -------------------------------------------------------------------------------------------- */
static bool readable(Wave *w, const Inst *in, uint64_t addr, size_t n)
{
    if (likely(region_hit(w, addr, n)))
        return true;
    wave_fault(w, in, true, "scalar read of %zu bytes at 0x%llx, outside every allocation", n,
               (unsigned long long)addr);
    return false;
}
static uint64_t smem_offset(const Wave *w, const Inst *in)
{
    return (uint64_t)(int64_t)in->offset +
           (in->op[2].kind == K_IMM ? (uint64_t)(int64_t)(int32_t)in->op[2].imm : sget32(w, &in->op[2]));
}
static void op_s_load(Wave *w, const Inst *in)
{
    uint64_t addr = (sget64(w, &in->op[1]) + smem_offset(w, in)) & ~(uint64_t)3;
    size_t n = in->def->aux;
    if (readable(w, in, addr, n * 4))
        memcpy(&w->s[in->op[0].reg], (const void *)(uintptr_t)addr, n * 4);
}
/* 8 and 16 bits (gfx12): aux has the size in bytes, not dwords */
enum { SMEM_SEXT = 0x200 };
static void op_s_load_small(Wave *w, const Inst *in)
{
    uint64_t addr = sget64(w, &in->op[1]) + smem_offset(w, in);
    uint32_t v = 0, n = in->def->aux & 3;
    if (!readable(w, in, addr, n))
        return;
    memcpy(&v, (const void *)(uintptr_t)addr, n);
    D = !(in->def->aux & SMEM_SEXT) ? v : n == 1 ? (uint32_t)(int8_t)v : (uint32_t)(int16_t)v;
}
static void op_s_buffer_load(Wave *w, const Inst *in)
{
    const uint32_t *rs = &w->s[in->op[1].reg];
    uint64_t base = rs[0] | (uint64_t)(rs[1] & 0xffff) << 32;
    uint32_t stride = rs[1] >> 16 & 0x3fff;
    uint64_t limit = stride ? (uint64_t)stride * rs[2] : rs[2], off = smem_offset(w, in) & ~(uint64_t)3;
    for (uint32_t i = 0; i < in->def->aux; i++, off += 4) {
        uint32_t v = 0;
        if (off + 4 <= limit) {
            if (!readable(w, in, base + off, 4))
                return;
            memcpy(&v, (const void *)(uintptr_t)(base + off), 4);
        }
        w->s[in->op[0].reg + i] = v;
    }
}
static void op_s_memtime(Wave *w, const Inst *in) { sset64(w, &in->op[0], w->icount * 4); }

#define ROW(n, sig) {#n, sig, op_##n, 0},
#define R2(n, e, c) ROW(n, "iii")
#define R2L(n, e, c) ROW(n, "lll")
#define R1(n, e, c) ROW(n, "ii")
#define R1L(n, e, c) ROW(n, "ll")
#define R1M(n, e, c) ROW(n, "il")
#define RX(n, e) ROW(n, "ll")
#define RC(n, e) ROW(n, "ii")
#define RC64(n, sig, e) ROW(n, sig)
#define RK(n, e) ROW(n, "ii")
#define RB(n, e) ROW(n, "B")
#define R2H(n, e, c) ROW(n, "hhh")
#define R1H(n, e, c) ROW(n, "hh")
#define RCH(n, e) ROW(n, "hh")
#define NOTHING(n) {n, "", op_nop, 0},
/* clang-format off */
const OpDef ops_scalar[] = {
    SOP2_32(R2) SOP2_64(R2L) SOP1_32(R1) SOP1_64(R1L) SOP1_64_32(R1M) SAVEEXEC(RX) WREXEC(RX)
    SOPC_32(RC) SOPC_64(RC64) SOPK_CMP(RK) BRANCH(RB)
    ROW(s_movk_i32, "ii") ROW(s_cmovk_i32, "ii") ROW(s_mulk_i32, "ii") ROW(s_addk_i32, "ii")
    ROW(s_getreg_b32, "ix") ROW(s_setreg_b32, "xi") ROW(s_setreg_imm32_b32, "")
    ROW(s_getpc_b64, "l") ROW(s_setpc_b64, "l") ROW(s_swappc_b64, "ll") ROW(s_call_b64, "lx")
    ROW(s_barrier, "") ROW(s_sleep, "") ROW(s_endpgm, "") ROW(s_trap, "")
    ROW(s_movrels_b32, "ii") ROW(s_movreld_b32, "ii")
    {"s_endpgm_saved", "", op_s_endpgm, 0}, {"s_nop", "", op_nop, 0}, {"s_waitcnt", "", op_nop, 0},
    {"s_setprio", "", op_nop, 0}, {"s_sethalt", "", op_nop, 0}, {"s_sendmsg", "", op_nop, 0}, {"s_sendmsghalt", "", op_nop, 0},
    {"s_icache_inv", "", op_nop, 0}, {"s_incperflevel", "", op_nop, 0}, {"s_decperflevel", "", op_nop, 0},
    {"s_ttracedata", "", op_nop, 0}, {"s_wakeup", "", op_nop, 0}, {"s_dcache_inv", "", op_nop, 0}, {"s_dcache_wb", "", op_nop, 0},
    {"s_dcache_inv_vol", "", op_nop, 0}, {"s_dcache_wb_vol", "", op_nop, 0}, {"s_code_end", "", op_s_endpgm, 0},
    {"s_memtime", "l", op_s_memtime, 0}, {"s_memrealtime", "l", op_s_memtime, 0},
    {"s_load_dword", "ixx", op_s_load, 1}, {"s_load_dwordx2", "lxx", op_s_load, 2}, {"s_load_dwordx4", "xxx", op_s_load, 4},
    {"s_load_dwordx8", "xxx", op_s_load, 8}, {"s_load_dwordx16", "xxx", op_s_load, 16},
    {"s_buffer_load_dword", "ixx", op_s_buffer_load, 1}, {"s_buffer_load_dwordx2", "lxx", op_s_buffer_load, 2},
    {"s_buffer_load_dwordx4", "xxx", op_s_buffer_load, 4}, {"s_buffer_load_dwordx8", "xxx", op_s_buffer_load, 8},
    {"s_buffer_load_dwordx16", "xxx", op_s_buffer_load, 16},
    /* names since gfx10 and gfx11 */
    SAVEEXEC32(RC) WREXEC32(RC)
    {"s_and_not1_b32", "iii", op_s_andn2_b32, 0}, {"s_or_not1_b32", "iii", op_s_orn2_b32, 0},
    {"s_and_not1_b64", "lll", op_s_andn2_b64, 0}, {"s_or_not1_b64", "lll", op_s_orn2_b64, 0},
    {"s_and_not0_saveexec_b32", "ii", op_s_andn1_saveexec_b32, 0}, {"s_and_not1_saveexec_b32", "ii", op_s_andn2_saveexec_b32, 0},
    {"s_or_not0_saveexec_b32", "ii", op_s_orn1_saveexec_b32, 0}, {"s_or_not1_saveexec_b32", "ii", op_s_orn2_saveexec_b32, 0},
    {"s_and_not0_saveexec_b64", "ll", op_s_andn1_saveexec_b64, 0}, {"s_and_not1_saveexec_b64", "ll", op_s_andn2_saveexec_b64, 0},
    {"s_or_not0_saveexec_b64", "ll", op_s_orn1_saveexec_b64, 0}, {"s_or_not1_saveexec_b64", "ll", op_s_orn2_saveexec_b64, 0},
    {"s_and_not0_wrexec_b32", "ii", op_s_andn1_wrexec_b32, 0}, {"s_and_not1_wrexec_b32", "ii", op_s_andn2_wrexec_b32, 0},
    {"s_ctz_i32_b32", "ii", op_s_ff1_i32_b32, 0}, {"s_ctz_i32_b64", "il", op_s_ff1_i32_b64, 0},
    {"s_clz_i32_u32", "ii", op_s_flbit_i32_b32, 0}, {"s_clz_i32_u64", "il", op_s_flbit_i32_b64, 0},
    {"s_cls_i32", "ii", op_s_flbit_i32, 0}, {"s_cls_i32_i64", "il", op_s_flbit_i32_i64, 0},
    {"s_load_b32", "ixx", op_s_load, 1}, {"s_load_b64", "lxx", op_s_load, 2}, {"s_load_b128", "xxx", op_s_load, 4},
    {"s_load_b256", "xxx", op_s_load, 8}, {"s_load_b512", "xxx", op_s_load, 16},
    {"s_buffer_load_b32", "ixx", op_s_buffer_load, 1}, {"s_buffer_load_b64", "lxx", op_s_buffer_load, 2}, {"s_buffer_load_b128", "xxx", op_s_buffer_load, 4},
    {"s_buffer_load_b256", "xxx", op_s_buffer_load, 8}, {"s_buffer_load_b512", "xxx", op_s_buffer_load, 16},
    {"s_delay_alu", "", op_nop, 0}, {"s_clause", "", op_nop, 0}, {"s_set_inst_prefetch_distance", "", op_nop, 0}, {"s_inst_prefetch", "", op_nop, 0},
    {"s_version", "", op_nop, 0}, {"s_wait_idle", "", op_nop, 0}, {"s_denorm_mode", "", op_nop, 0}, {"s_round_mode", "", op_nop, 0},
    {"s_waitcnt_vscnt", "", op_nop, 0}, {"s_waitcnt_vmcnt", "", op_nop, 0}, {"s_waitcnt_expcnt", "", op_nop, 0}, {"s_waitcnt_lgkmcnt", "", op_nop, 0},
    /* gfx12 */
    SOP2_FLOAT(R2) SOP2_HALF(R2H) SOP1_FLOAT(R1) SOP1_HALF(R1H) SOPC_FLOAT(RC, f32, u2f) SOPC_FLOAT(RCH, f16, h2f)
    {"s_fmaak_f32", "iiii", op_s_fmaak_f32, 0}, {"s_fmamk_f32", "iiii", op_s_fmaak_f32, 0},
    {"s_add_co_u32", "iii", op_s_add_u32, 0}, {"s_sub_co_u32", "iii", op_s_sub_u32, 0}, {"s_add_co_i32", "iii", op_s_add_i32, 0},
    {"s_sub_co_i32", "iii", op_s_sub_i32, 0}, {"s_add_co_ci_u32", "iii", op_s_addc_u32, 0}, {"s_sub_co_ci_u32", "iii", op_s_subb_u32, 0},
    {"s_addk_co_i32", "ii", op_s_addk_i32, 0}, {"s_barrier_wait", "", op_s_barrier, 0}, {"s_sleep_var", "i", op_s_sleep, 0},
    {"s_load_u8", "ixx", op_s_load_small, SMEM_BYTES | 1}, {"s_load_i8", "ixx", op_s_load_small, SMEM_BYTES | SMEM_SEXT | 1},
    {"s_load_u16", "ixx", op_s_load_small, SMEM_BYTES | 2}, {"s_load_i16", "ixx", op_s_load_small, SMEM_BYTES | SMEM_SEXT | 2},
    {"s_load_b96", "xxx", op_s_load, 3}, {"s_buffer_load_b96", "xxx", op_s_buffer_load, 3},
    NOTHING("s_barrier_signal") NOTHING("s_wait_loadcnt") NOTHING("s_wait_storecnt") NOTHING("s_wait_samplecnt") NOTHING("s_wait_bvhcnt")
    NOTHING("s_wait_expcnt") NOTHING("s_wait_dscnt") NOTHING("s_wait_kmcnt") NOTHING("s_wait_loadcnt_dscnt") NOTHING("s_wait_storecnt_dscnt")
    NOTHING("s_wait_alu") NOTHING("s_prefetch_inst") NOTHING("s_prefetch_inst_pc_rel") NOTHING("s_prefetch_data") NOTHING("s_prefetch_data_pc_rel")
    NOTHING("s_buffer_prefetch_data")
    {"s_waitcnt_depctr", "", op_nop, 0}, {"s_wait_event", "", op_nop, 0}, {"s_gl1_inv", "", op_nop, 0},
    {NULL, NULL, NULL, 0}};
/* clang-format on */
