/* exec.h - operand access shared by the exec_*.c files.
 *
 * The files that loop over lanes are compiled twice, for waves of 64 and of 32 lanes (WAVE_LANES); a register has room
 * for 64 in both.  The names that such a file shows to others end in _32 in the second copy. */
#ifndef ROCM_EMU_EXEC_H
#define ROCM_EMU_EXEC_H
#include "emu.h"
#if defined(__AVX512F__)
#include <immintrin.h>
#endif

#ifndef WAVE_LANES
#define WAVE_LANES 64
#endif
#if WAVE_LANES == 32
#define src32_slow src32_slow_32
#define src64 src64_32
#define wr32_slow wr32_slow_32
#define wr64 wr64_32
#define region_hit_slow region_hit_slow_32
#define ops_vector ops_vector_32
#define ops_vector16 ops_vector16_32
#define ops_compare ops_compare_32
#define ops_memory ops_memory_32
#endif
#define ALL_LANES (~(uint64_t)0 >> (64 - WAVE_LANES))
#define FOR_LANES(l) for (int l = 0; l < WAVE_LANES; l++)
#define ACTIVE(m, l) ((m) >> (l)&1)

/* ---- bit casts and conversions ------------------------------------------------------------------- */
static inline float u2f(uint32_t u)
{
    float f;
    memcpy(&f, &u, 4);
    return f;
}
static inline uint32_t f2u(float f)
{
    uint32_t u;
    memcpy(&u, &f, 4);
    return u;
}
static inline double u2d(uint64_t u)
{
    double d;
    memcpy(&d, &u, 8);
    return d;
}
static inline uint64_t d2u(double d)
{
    uint64_t u;
    memcpy(&u, &d, 8);
    return u;
}
static inline float h2f(uint32_t u)
{
    _Float16 h;
    uint16_t b = (uint16_t)u;
    memcpy(&h, &b, 2);
    return (float)h;
}
static inline uint32_t f2h(float f)
{
    _Float16 h = (_Float16)f;
    uint16_t b;
    memcpy(&b, &h, 2);
    return b;
}
static inline float bf2f(uint32_t u) { return u2f(u << 16); }
static inline uint32_t f2bf(float f)
{
    uint32_t u = f2u(f);
    return (u & 0x7fffffffu) > 0x7f800000u ? u >> 16 | 0x40 : (u + 0x7fff + (u >> 16 & 1)) >> 16;
}
static inline uint32_t d2h(double d)
{
    _Float16 h = (_Float16)d;
    uint16_t b;
    memcpy(&b, &h, 2);
    return b;
}

/* the minimum and maximum of gfx12: a NaN wins */
static inline float minimum(float a, float b)
{
    return a != a ? a : b != b ? b : a == b ? u2f(f2u(a) | f2u(b)) : a < b ? a : b;
}
static inline float maximum(float a, float b)
{
    return a != a ? a : b != b ? b : a == b ? u2f(f2u(a) & f2u(b)) : a > b ? a : b;
}

/* ---- scalar operands -------------------------------------------------------------------------------- */
static inline uint32_t sget32(const Wave *w, const Opnd *o)
{
    switch (o->kind) {
    case K_SGPR: return w->s[o->reg];
    case K_IMM: return (uint32_t)o->imm;
    case K_SCC: return w->scc;
    case K_VCCZ: return VCC(w) == 0;
    case K_EXECZ: return EXEC(w) == 0;
    default: return 0;
    }
}
static inline uint64_t sget64(const Wave *w, const Opnd *o)
{
    if (o->kind == K_SGPR)
        return w->s[o->reg] | (uint64_t)w->s[o->reg + 1] << 32;
    return o->kind == K_IMM ? o->imm : sget32(w, o);
}
static inline void sset64(Wave *w, const Opnd *o, uint64_t v)
{
    w->s[o->reg] = (uint32_t)v;
    w->s[o->reg + 1] = (uint32_t)(v >> 32);
}
/* lane masks: a pair of SGPRs, or one when waves have 32 lanes */
static inline uint64_t mask_get(const Wave *w, const Opnd *o) { return w->lanes == 64 ? sget64(w, o) : sget32(w, o); }
static inline void mask_set(Wave *w, const Opnd *o, uint64_t m)
{
    w->s[o->reg] = (uint32_t)m;
    if (w->lanes == 64)
        w->s[o->reg + 1] = (uint32_t)(m >> 32);
}

/* ---- vector operands: 64 lanes at once --------------------------------------------------------------- */
void src32_slow(Wave *w, const Inst *in, int i, uint32_t *tmp);
static inline const uint32_t *src32(Wave *w, const Inst *in, int i, uint32_t *tmp)
{
    const Opnd *o = &in->op[i];
    if (likely(o->kind == K_VGPR && !(in->flags & (IF_SDWA | IF_DPP | IF_MODS))))
        return w->v[o->reg];
    if (likely(o->kind == K_SGPR && !(in->flags & (IF_SDWA | IF_DPP | IF_MODS)))) {
        uint32_t v = w->s[o->reg];
        FOR_LANES (l)
            tmp[l] = v;
        return tmp;
    }
    src32_slow(w, in, i, tmp);
    return tmp;
}
void src64(Wave *w, const Inst *in, int i, uint64_t *tmp);

static inline void blend32(uint32_t *restrict d, const uint32_t *restrict r, uint64_t m)
{
    if (likely(m == ALL_LANES)) {
        memcpy(d, r, WAVE_LANES * 4);
        return;
    }
#if defined(__AVX512F__)
    for (int k = 0; k < WAVE_LANES / 16; k++)
        _mm512_mask_storeu_epi32(d + 16 * k, (__mmask16)(m >> 16 * k), _mm512_loadu_si512(r + 16 * k));
#else
    FOR_LANES (l)
        d[l] = ACTIVE(m, l) ? r[l] : d[l];
#endif
}

/* d[l] = v where m says so */
static inline void blend64(uint64_t *d, uint64_t v, uint64_t m)
{
    if (!m)
        return;
#if defined(__AVX512F__)
    for (int k = 0; k < WAVE_LANES / 8; k++)
        _mm512_mask_storeu_epi64(d + 8 * k, (__mmask8)(m >> 8 * k), _mm512_set1_epi64((long long)v));
#else
    FOR_LANES (l)
        d[l] = ACTIVE(m, l) ? v : d[l];
#endif
}

/* bit l of the result: r[l] != 0 */
static inline uint64_t lane_mask(const uint32_t *r)
{
    uint64_t m = 0;
#if defined(__AVX512F__)
    for (int k = 0; k < WAVE_LANES / 16; k++) {
        __m512i x = _mm512_loadu_si512(r + 16 * k);
        m |= (uint64_t)_mm512_test_epi32_mask(x, x) << 16 * k;
    }
#else
    FOR_LANES (l)
        m |= (uint64_t)(r[l] != 0) << l;
#endif
    return m;
}

/* r[l]: bit l of m */
static inline void mask_lanes(uint64_t m, uint32_t *r)
{
#if defined(__AVX512F__)
    for (int k = 0; k < WAVE_LANES / 16; k++)
        _mm512_storeu_si512(r + 16 * k, _mm512_maskz_set1_epi32((__mmask16)(m >> 16 * k), 1));
#else
    FOR_LANES (l)
        r[l] = (uint32_t)ACTIVE(m, l);
#endif
}

/* the lowest lane of a mask, which loses it */
static inline int take_lane(uint64_t *left)
{
    int l = __builtin_ctzll(*left);
    *left &= *left - 1;
    return l;
}

void wr32_slow(Wave *w, const Inst *in, uint32_t *r);
static inline void wr32(Wave *w, const Inst *in, uint32_t *r)
{
    if (unlikely(in->flags & IF_SLOWDST))
        wr32_slow(w, in, r);
    else
        blend32(w->v[in->op[0].reg], r, EXEC(w));
}
void wr64(Wave *w, const Inst *in, uint64_t *r);

/* ---- memory ------------------------------------------------------------------------------------------- */
enum { SMEM_BYTES = 0x100 }; /* in the aux of a scalar load: its size is in bytes */
bool region_hit_slow(Wave *w, uintptr_t addr, size_t n);
/* may the kernel touch [addr, addr + n)? */
static inline bool region_hit(Wave *w, uintptr_t addr, size_t n)
{
    return likely(addr >= w->hit[0].lo && addr + n <= w->hit[0].hi) || region_hit_slow(w, addr, n);
}

#endif
