/* vector_list.h - the vector instructions that are an expression of their operands a, b, c: lists of names and
 * expressions, by the types of operands and result, for exec_vector.c. */
#ifndef ROCM_EMU_VECTOR_LIST_H
#define ROCM_EMU_VECTOR_LIST_H

#define F32_1(X) \
    X(v_floor_f32, floorf(a)) \
    X(v_ceil_f32, ceilf(a)) \
    X(v_trunc_f32, truncf(a)) \
    X(v_rndne_f32, __builtin_roundevenf(a)) \
    X(v_fract_f32, fract_f32(a)) \
    X(v_rcp_f32, 1.0f / a) \
    X(v_rcp_iflag_f32, 1.0f / a) \
    X(v_sqrt_f32, sqrtf(a)) \
    X(v_rsq_f32, (float)(1.0 / sqrt((double)a))) \
    X(v_exp_f32, vexp2(a)) \
    X(v_log_f32, vlog2(a)) \
    X(v_sin_f32, sin_turns(a)) \
    X(v_cos_f32, cos_turns(a)) \
    X(v_frexp_mant_f32, frexp_mant_f32(a)) \
    X(v_exp_legacy_f32, vexp2(a)) \
    X(v_log_legacy_f32, vlog2(a))
#define F32_2(X) \
    X(v_add_f32, a + b) \
    X(v_sub_f32, a - b) \
    X(v_subrev_f32, b - a) \
    X(v_mul_f32, a *b) \
    X(v_mul_legacy_f32, a == 0 || b == 0 ? 0 : a * b) \
    X(v_min_f32, min_f32(a, b)) \
    X(v_max_f32, max_f32(a, b)) \
    X(v_minimum_f32, minimum(a, b)) \
    X(v_maximum_f32, maximum(a, b))
#define F32_3(X) \
    X(v_fma_f32, __builtin_fmaf(a, b, c)) \
    X(v_mad_f32, a *b + c) \
    X(v_mad_legacy_f32, a == 0 || b == 0 ? c : a * b + c) \
    X(v_maxmin_f32, min_f32(max_f32(a, b), c)) \
    X(v_minmax_f32, max_f32(min_f32(a, b), c)) \
    X(v_min3_f32, min_f32(min_f32(a, b), c)) \
    X(v_max3_f32, max_f32(max_f32(a, b), c)) \
    X(v_med3_f32, med3_f32(a, b, c)) \
    X(v_minimum3_f32, minimum(minimum(a, b), c)) \
    X(v_maximum3_f32, maximum(maximum(a, b), c)) \
    X(v_minimummaximum_f32, maximum(minimum(a, b), c)) \
    X(v_maximumminimum_f32, minimum(maximum(a, b), c)) \
    X(v_div_fixup_f32, div_fixup_f32(a, b, c)) \
    X(v_madmk_f32, a *b + c) \
    X(v_madak_f32, a *b + c) \
    X(v_fmamk_f32, __builtin_fmaf(a, b, c)) \
    X(v_fmaak_f32, __builtin_fmaf(a, b, c))
#define F32_ACC(X) \
    X(v_mac_f32, a *b + c) \
    X(v_fmac_f32, __builtin_fmaf(a, b, c))
#define U32_1(X) \
    X(v_mov_b32, a) \
    X(v_not_b32, ~a) \
    X(v_bfrev_b32, brev32(a)) \
    X(v_ffbh_u32, a ? (uint32_t)__builtin_clz(a) : ~0u) \
    X(v_ffbl_b32, a ? (uint32_t)__builtin_ctz(a) : ~0u) \
    X(v_sat_pk_u8_i16, (uint32_t)(MED3((int16_t)a, 0, 255) | MED3((int16_t)(a >> 16), 0, 255) << 8)) \
    X(v_ffbh_i32, a == 0 || a == ~0u ? ~0u : (uint32_t)__builtin_clrsb((int)a) + 1)
#define U32_2(X) \
    X(v_and_b32, a &b) \
    X(v_or_b32, a | b) \
    X(v_xor_b32, a ^ b) \
    X(v_xnor_b32, ~(a ^ b)) \
    X(v_lshlrev_b32, b << (a & 31)) \
    X(v_lshrrev_b32, b >> (a & 31)) \
    X(v_ashrrev_i32, (uint32_t)((int32_t)b >> (a & 31))) \
    X(v_min_i32, (uint32_t)MIN((int32_t)a, (int32_t)b)) \
    X(v_max_i32, (uint32_t)MAX((int32_t)a, (int32_t)b)) \
    X(v_min_u32, MIN(a, b)) \
    X(v_max_u32, MAX(a, b)) \
    X(v_mul_lo_u32, a *b) \
    X(v_mul_lo_i32, a *b) \
    X(v_mul_hi_u32, (uint32_t)((uint64_t)a * b >> 32)) \
    X(v_mul_hi_i32, (uint32_t)((int64_t)(int32_t)a * (int32_t)b >> 32)) \
    X(v_mul_u32_u24, u24(a) * u24(b)) \
    X(v_mul_i32_i24, (uint32_t)((int64_t)i24(a) * i24(b))) \
    X(v_mul_hi_u32_u24, (uint32_t)((uint64_t)u24(a) * u24(b) >> 32)) \
    X(v_mul_hi_i32_i24, (uint32_t)((int64_t)i24(a) * i24(b) >> 32)) \
    X(v_bfm_b32, ((1u << (a & 31)) - 1) << (b & 31)) \
    X(v_bcnt_u32_b32, (uint32_t)__builtin_popcount(a) + b) \
    X(v_cvt_pk_u16_u32, MIN(a, 65535u) | MIN(b, 65535u) << 16) \
    X(v_cvt_pk_i16_i32, ((uint32_t)sat_i16((int32_t)a) & 0xffff) | (uint32_t)sat_i16((int32_t)b) << 16)
#define U32_3(X) \
    X(v_xor3_b32, a ^ b ^ c) \
    X(v_maxmin_u32, MIN(MAX(a, b), c)) \
    X(v_minmax_u32, MAX(MIN(a, b), c)) \
    X(v_maxmin_i32, (uint32_t)MIN(MAX((int32_t)a, (int32_t)b), (int32_t)c)) \
    X(v_minmax_i32, (uint32_t)MAX(MIN((int32_t)a, (int32_t)b), (int32_t)c)) \
    X(v_add3_u32, a + b + c) \
    X(v_lshl_add_u32, (a << (b & 31)) + c) \
    X(v_add_lshl_u32, (a + b) << (c & 31)) \
    X(v_lshl_or_b32, a << (b & 31) | c) \
    X(v_and_or_b32, (a & b) | c) \
    X(v_or3_b32, a | b | c) \
    X(v_xad_u32, (a ^ b) + c) \
    X(v_bfe_u32, bfe_u(a, b, c)) \
    X(v_bfe_i32, bfe_i(a, b, c)) \
    X(v_bfi_b32, (a & b) | (~a & c)) \
    X(v_alignbit_b32, (uint32_t)(((uint64_t)a << 32 | b) >> (c & 31))) \
    X(v_alignbyte_b32, (uint32_t)(((uint64_t)a << 32 | b) >> 8 * (c & 3))) \
    X(v_perm_b32, perm(a, b, c)) \
    X(v_mad_u32_u24, u24(a) * u24(b) + c) \
    X(v_mad_i32_i24, (uint32_t)((int64_t)i24(a) * i24(b)) + c) \
    X(v_min3_i32, (uint32_t)MIN(MIN((int32_t)a, (int32_t)b), (int32_t)c)) \
    X(v_max3_i32, (uint32_t)MAX(MAX((int32_t)a, (int32_t)b), (int32_t)c)) \
    X(v_min3_u32, MIN(MIN(a, b), c)) \
    X(v_max3_u32, MAX(MAX(a, b), c)) \
    X(v_med3_u32, MED3(a, b, c)) \
    X(v_med3_i32, (uint32_t)MED3((int32_t)a, (int32_t)b, (int32_t)c)) \
    X(v_sad_u8, sad_u8(a, b, c, false)) \
    X(v_msad_u8, sad_u8(a, b, c, true)) \
    X(v_sad_hi_u8, (sad_u8(a, b, 0, false) << 16) + c) \
    X(v_sad_u16, sad_u16(a, b, c)) \
    X(v_sad_u32, (a > b ? a - b : b - a) + c) \
    X(v_lerp_u8, lerp_u8(a, b, c)) \
    X(v_mad_u32_u16, (a & 0xffff) * (b & 0xffff) + c) \
    X(v_mad_i32_i16, (uint32_t)((int16_t)a * (int16_t)b) + c)
#define F64_1(X) \
    X(v_floor_f64, floor(a)) \
    X(v_ceil_f64, ceil(a)) \
    X(v_trunc_f64, trunc(a)) \
    X(v_rndne_f64, __builtin_roundeven(a)) \
    X(v_fract_f64, fract_f64(a)) \
    X(v_rcp_f64, 1.0 / a) \
    X(v_sqrt_f64, sqrt(a)) \
    X(v_rsq_f64, 1.0 / sqrt(a)) \
    X(v_frexp_mant_f64, frexp_mant_f64(a))
#define F64_2(X) \
    X(v_add_f64, a + b) \
    X(v_mul_f64, a *b) \
    X(v_min_f64, min_f64(a, b)) \
    X(v_max_f64, max_f64(a, b))
#define F64_3(X) \
    X(v_fma_f64, __builtin_fma(a, b, c)) \
    X(v_div_fixup_f64, div_fixup_f64(a, b, c))
/* conversions: name, signature, source getter, result */
#define CVT_32(X) \
    X(v_cvt_f32_i32, "fi", f2u((float)(int32_t)a)) \
    X(v_cvt_f32_u32, "fi", f2u((float)a)) \
    X(v_cvt_i32_f32, "if", (uint32_t)cvt_i32(u2f(a))) \
    X(v_cvt_u32_f32, "if", cvt_u32(u2f(a))) \
    X(v_cvt_rpi_i32_f32, "if", (uint32_t)cvt_i32(floor((double)u2f(a) + 0.5))) \
    X(v_cvt_flr_i32_f32, "if", (uint32_t)cvt_i32(floorf(u2f(a)))) \
    X(v_cvt_f32_ubyte0, "fi", f2u((float)(a & 0xff))) \
    X(v_cvt_f32_ubyte1, "fi", f2u((float)(a >> 8 & 0xff))) \
    X(v_cvt_f32_ubyte2, "fi", f2u((float)(a >> 16 & 0xff))) \
    X(v_cvt_f32_ubyte3, "fi", f2u((float)(a >> 24))) \
    X(v_cvt_f16_f32, "hf", f2h(u2f(a))) \
    X(v_cvt_f32_f16, "fh", f2u(h2f(a))) \
    X(v_cvt_u32_u16, "iw", a & 0xffff) \
    X(v_cvt_i32_i16, "iw", (uint32_t)(int16_t)a) \
    X(v_frexp_exp_i32_f32, "if", (uint32_t)frexp_exp_f32(u2f(a))) \
    X(v_cvt_off_f32_i4, "fi", f2u((float)((int32_t)(a << 28) >> 28) / 16.0f))
#define CVT_32_2(X) \
    X(v_ldexp_f32, "ffi", f2u(vldexp(u2f(a), (int32_t)b))) \
    X(v_cvt_pkrtz_f16_f32, "iff", f2h_rtz(u2f(a)) | f2h_rtz(u2f(b)) << 16) \
    X(v_cvt_pknorm_i16_f32, "iff", norm_i16(u2f(a)) | norm_i16(u2f(b)) << 16) \
    X(v_cvt_pknorm_u16_f32, "iff", norm_u16(u2f(a)) | norm_u16(u2f(b)) << 16)
#define CVT_32_3(X) X(v_cvt_pk_u8_f32, "ifii", cvt_pk_u8(u2f(a), b, c))
#define CVT_32_64(X) /* 32-bit source, 64-bit result */ \
    X(v_cvt_f64_f32, "df", d2u((double)u2f(a))) \
    X(v_cvt_f64_i32, "di", d2u((double)(int32_t)a)) \
    X(v_cvt_f64_u32, "di", d2u((double)a))
#define CVT_64_32(X) \
    X(v_cvt_f32_f64, "fd", f2u((float)u2d(a))) \
    X(v_cvt_i32_f64, "id", (uint32_t)cvt_i32(u2d(a))) \
    X(v_cvt_u32_f64, "id", cvt_u32(u2d(a))) \
    X(v_frexp_exp_i32_f64, "id", (uint32_t)frexp_exp_f64(u2d(a)))
/* 32-bit first source, 64-bit second */
#define SHIFT64(X) \
    X(v_lshlrev_b64, b << (a & 63)) \
    X(v_lshrrev_b64, b >> (a & 63)) \
    X(v_ashrrev_i64, (uint64_t)((int64_t)b >> (a & 63)))
/* 64-bit first source, 32-bit second */
#define D_I(X) \
    X(v_ldexp_f64, ldexp(a, (int32_t)b)) \
    X(v_trig_preop_f64, trig_preop(a, b))
#endif
