/* exec_matrix.c - matrix instructions: WMMA of gfx11 and gfx12, MFMA of gfx90a and gfx942. */
#include "exec.h"
#include "fp8.h"

/* ---- WMMA, waves of 32 lanes ------------------------------------------------------------------------------------
 * 16 x 16 matrices, inner dimension 16 (32 for one of 4-bit integers).  gfx11: row i of A and column i of B
 * live in lane i, and again in lane i + 16; element (2 r + l / 16, l % 16) of C and D is register r of lane l.
 * gfx12: lanes 16 and up hold the second half of the inner dimension instead of a copy; C and D have element
 * (r + 8 (l / 16), l % 16), two to a register when they are 16 bits wide. */
enum {
    WMMA_F16,
    WMMA_BF16,
    WMMA_I8,
    WMMA_I4,
    WMMA_FP8,
    WMMA_FP8_BF8,
    WMMA_BF8_FP8,
    WMMA_BF8,
    WMMA_OUT16 = 16,
    WMMA_K32 = 32
};
#define GFX12 (emu_cfg.gen >= 12)

/* element k of row (column) i of A (matrix 0) or B (matrix 1) */
static double wmma_element(const Wave *w, const Inst *in, int matrix, int i, int k)
{
    int type = in->def->aux & 15, half = in->def->aux & WMMA_K32 ? 16 : 8, lane = GFX12 ? i + k / half * 16 : i;
    int bits = type <= WMMA_BF16 ? 16 : type == WMMA_I4 ? 4 : 8, e = GFX12 ? k % half : k, per = 32 / bits;
    uint32_t v = w->v[in->op[1 + matrix].reg + (unsigned)(e / per)][lane] >> bits * (e % per);
    switch (type) {
    case WMMA_F16: return h2f(v);
    case WMMA_BF16: return bf2f(v);
    case WMMA_I8:
    case WMMA_I4:
        return in->neg_lo >> matrix & 1 ? (int32_t)(v << (32 - bits)) >> (32 - bits)
                                        : (int32_t)(v & ((1u << bits) - 1));
    default: return fp8_to_float(v & 0xff, type == WMMA_BF8 || type == (matrix ? WMMA_FP8_BF8 : WMMA_BF8_FP8));
    }
}

static void wmma(Wave *w, const Inst *in)
{
    int type = in->def->aux & 15, kdim = in->def->aux & WMMA_K32 ? 32 : 16;
    bool out16 = in->def->aux & WMMA_OUT16, integer = type == WMMA_I8 || type == WMMA_I4;
    unsigned d = in->op[0].reg;
    const Opnd *c = &in->op[3];
    double a[16][32], b[16][32];
    uint32_t r[8][32] = {0};
    if (w->lanes != 32) {
        wave_fault(w, in, false, "WMMA in waves of 64 lanes is not supported");
        return;
    }
    for (int i = 0; i < 16; i++)
        for (int k = 0; k < kdim; k++) {
            a[i][k] = wmma_element(w, in, 0, i, k);
            b[i][k] = wmma_element(w, in, 1, i, k);
        }
    for (int q = 0; q < 8; q++)
        for (int l = 0; l < 32; l++) {
            int row = GFX12 ? q + l / 16 * 8 : 2 * q + l / 16, col = l % 16;
            bool packed = GFX12 && out16;
            unsigned reg = (unsigned)(packed ? q / 2 : q);
            int sh = packed ? 16 * (q & 1) : out16 && in->op_sel >> 2 & 1 ? 16 : 0;
            uint32_t cv = c->kind == K_VGPR ? w->v[c->reg + reg][l] : sget32(w, c);
            uint32_t h = cv >> (c->kind == K_VGPR ? sh : 0) & 0xffff;
            if (integer) {
                int64_t sum = (int32_t)cv;
                for (int k = 0; k < kdim; k++)
                    sum += (int64_t)a[row][k] * (int64_t)b[col][k];
                if (in->flags & IF_CLAMP)
                    sum = sum > INT32_MAX ? INT32_MAX : sum < INT32_MIN ? INT32_MIN : sum;
                r[q][l] = (uint32_t)sum;
                continue;
            }
            float sum = !out16 ? u2f(cv) : type == WMMA_BF16 ? bf2f(h) : h2f(h);
            for (int k = 0; k < kdim; k++)
                sum += (float)a[row][k] * (float)b[col][k];
            uint32_t v = !out16 ? f2u(sum) : type == WMMA_BF16 ? f2bf(sum) : f2h(sum);
            if (packed)
                r[reg][l] |= v << sh;
            else /* gfx11 leaves the other half of a 16-bit result alone */
                r[q][l] = out16 ? (w->v[d + reg][l] & ~(0xffffu << sh)) | v << sh : v;
        }
    for (unsigned q = 0; q < (GFX12 && out16 ? 4 : 8); q++)
        memcpy(w->v[d + q], r[q], sizeof r[q]);
}

/* ---- MFMA, waves of 64 lanes ------------------------------------------------------------------------------------
 * D = A B + C for one or more independent blocks, each M x M with inner dimension K.  Lane l holds row
 * (column) l % M of A (B), `per` elements of it; l / M says which block, or which part of K when there is
 * only one block.  EXEC is ignored. */
enum {
    MFMA_F32,
    MFMA_XF32,
    MFMA_F16,
    MFMA_BF16,
    MFMA_I8,
    MFMA_F64,
    MFMA_FP8, /* and the other three of fp8 and bf8 for A and B */
    MFMA_FP8_BF8,
    MFMA_BF8_FP8,
    MFMA_BF8
};
#define MFMA(m, k, blocks, per, type) ((m) | (k) << 6 | (blocks) << 12 | (per) << 17 | (type) << 21)
typedef struct {
    int m, k, blocks, per, type;
} Shape;
static Shape mfma_shape(const OpDef *d)
{
    return (Shape){d->aux & 63, d->aux >> 6 & 63, d->aux >> 12 & 31, d->aux >> 17 & 15, (int)(d->aux >> 21)};
}

/* x, or 0 where it is less than the least normal number and the unit has none of those */
static float normal(float x, float least) { return emu_cfg.mfma_flushes && x > -least && x < least ? 0 : x; }

/* element e of a lane's part of A (matrix 0) or B (matrix 1) */
static double mfma_element(const Wave *w, unsigned reg, int lane, int e, int type, int matrix)
{
    unsigned n = (unsigned)e;
    switch (type) {
    case MFMA_F32: return u2f(w->v[reg][lane]);
    case MFMA_XF32: return u2f((w->v[reg + n][lane] + 0xfff + (w->v[reg + n][lane] >> 13 & 1)) & ~0x1fffu);
    case MFMA_F16: return normal(h2f(w->v[reg + n / 2][lane] >> 16 * (e & 1)), 0x1p-14f);
    case MFMA_BF16: return normal(u2f(w->v[reg + n / 2][lane] >> 16 * (e & 1) << 16), 0x1p-126f);
    case MFMA_I8: return (int8_t)(w->v[reg + n / 4][lane] >> 8 * (e & 3));
    case MFMA_F64: return u2d(w->v[reg][lane] | (uint64_t)w->v[reg + 1][lane] << 32);
    default: {
        bool bf8 = type == MFMA_BF8 || type == (matrix ? MFMA_FP8_BF8 : MFMA_BF8_FP8);
        return fp8_to_float(w->v[reg + n / 4][lane] >> 8 * (e & 3), bf8);
    }
    }
}

/* BLGP: whose B a lane takes */
static int mfma_b_lane(int blgp, int l)
{
    switch (blgp) {
    case 1: return l & 31;
    case 2: return 32 | (l & 31);
    case 3: return (l + 16) & 63;
    case 0: return l;
    default: return 16 * (blgp - 4) + (l & 15);
    }
}

static void mfma(Wave *w, const Inst *in)
{
    Shape s = mfma_shape(in->def);
    int m = s.m, kdim = s.k, type = s.type, cbsz = in->matrix[0], abid = in->matrix[1], blgp = in->matrix[2];
    double a[512], b[512]; /* block, row (column), k: one element a lane and `per` */
    uint32_t r[32][LANES];
    const Opnd *c = &in->op[3];
    unsigned d = in->op[0].reg;
    bool four = type == MFMA_F64 && m == 4; /* four blocks of 4 x 4 x 4 */
    double sa = 1, sb = 1, sc = 1;
    if (w->lanes != 64) {
        wave_fault(w, in, false, "MFMA needs waves of 64 lanes");
        return;
    }
    if (type == MFMA_F64) { /* on gfx942 the field means signs */
        sa = blgp & 1 ? -1 : 1, sb = blgp & 2 ? -1 : 1, sc = blgp & 4 ? -1 : 1;
        blgp = 0;
    }
#define AT(block, i, k) (((block)*m + (i)) * kdim + (k))
    FOR_LANES (l) {
        int i = l % m, g = l / m;
        for (int e = 0; e < s.per; e++) {
            int block = four ? l / 16 : s.blocks > 1 ? g : 0, k = four ? l / 4 % 4 : s.blocks > 1 ? e : g * s.per + e;
            a[AT(block, i, k)] = sa * mfma_element(w, in->op[1].reg, l, e, type, 0);
            b[AT(block, i, k)] = sb * mfma_element(w, in->op[2].reg, mfma_b_lane(blgp, l), e, type, 1);
        }
    }
    int words = type == MFMA_F64 ? 2 : 1, regs = m * m * s.blocks / LANES; /* elements of D a lane holds */
    FOR_LANES (l)
        for (int v = 0; v < regs; v++) {
            int block = 0, row, col = l % m;
            if (four)
                block = l / 16, row = l / 4 % 4;
            else if (type == MFMA_F64)
                row = 4 * v + l / 16;
            else if (m == 32)
                block = v / 16, row = 8 * (v % 16 / 4) + 4 * (l / 32) + v % 4;
            else if (m == 16)
                block = v / 4, row = 4 * (l / 16) + v % 4;
            else
                block = l / 4, row = v;
            int from = cbsz ? (block & ~((1 << cbsz) - 1)) + abid : block; /* CBSZ: one block of A for several */
            const double *ap = &a[AT(from, row, 0)], *bp = &b[AT(block, col, 0)];
            unsigned at = (unsigned)(v * words);
            uint32_t c0 = c->kind == K_VGPR ? w->v[c->reg + at][l] : (uint32_t)c->imm;
            if (type == MFMA_F64) {
                double sum = sc * u2d(c->kind == K_VGPR ? c0 | (uint64_t)w->v[c->reg + at + 1][l] << 32 : c->imm);
                for (int k = 0; k < kdim; k++)
                    sum = __builtin_fma(ap[k], bp[k], sum);
                r[at][l] = (uint32_t)d2u(sum);
                r[at + 1][l] = (uint32_t)(d2u(sum) >> 32);
            } else if (type == MFMA_I8) {
                int64_t sum = (int32_t)c0;
                for (int k = 0; k < kdim; k++)
                    sum += (int64_t)ap[k] * (int64_t)bp[k];
                r[at][l] = (uint32_t)sum;
            } else {
                float sum = u2f(c0);
                for (int k = 0; k < kdim; k++)
                    sum = __builtin_fmaf((float)ap[k], (float)bp[k], sum);
                r[at][l] = f2u(type == MFMA_F16 || type == MFMA_BF16 ? normal(sum, 0x1p-126f) : sum);
            }
        }
#undef AT
    for (int v = 0; v < regs * words; v++)
        memcpy(w->v[d + (unsigned)v], r[v], sizeof r[v]);
}

/* two for each product added up */
uint64_t matrix_flops(const OpDef *d)
{
    if (d->fn == wmma)
        return 2 * 16 * 16 * (d->aux & WMMA_K32 ? 32 : 16);
    Shape s = mfma_shape(d);
    return 2ull * (unsigned)(s.m * s.m * s.k * s.blocks);
}

#define MROW(n, m, k, blocks, per, type) \
    {"v_mfma_" n, type == MFMA_F64 ? "xxxd" : "xxxf", mfma, MFMA(m, k, blocks, per, type)},
/* clang-format off */
const OpDef ops_matrix[] = {
    MROW("f32_32x32x1f32", 32, 1, 2, 1, MFMA_F32) MROW("f32_16x16x1f32", 16, 1, 4, 1, MFMA_F32) MROW("f32_4x4x1f32", 4, 1, 16, 1, MFMA_F32)
    MROW("f32_32x32x2f32", 32, 2, 1, 1, MFMA_F32) MROW("f32_16x16x4f32", 16, 4, 1, 1, MFMA_F32)
    MROW("f32_32x32x4f16", 32, 4, 2, 4, MFMA_F16) MROW("f32_16x16x4f16", 16, 4, 4, 4, MFMA_F16) MROW("f32_4x4x4f16", 4, 4, 16, 4, MFMA_F16)
    MROW("f32_32x32x8f16", 32, 8, 1, 4, MFMA_F16) MROW("f32_16x16x16f16", 16, 16, 1, 4, MFMA_F16)
    MROW("f32_32x32x2bf16", 32, 2, 2, 2, MFMA_BF16) MROW("f32_16x16x2bf16", 16, 2, 4, 2, MFMA_BF16) MROW("f32_4x4x2bf16", 4, 2, 16, 2, MFMA_BF16)
    MROW("f32_32x32x4bf16", 32, 4, 1, 2, MFMA_BF16) MROW("f32_16x16x8bf16", 16, 8, 1, 2, MFMA_BF16)
    MROW("f32_32x32x4bf16_1k", 32, 4, 2, 4, MFMA_BF16) MROW("f32_16x16x4bf16_1k", 16, 4, 4, 4, MFMA_BF16) MROW("f32_4x4x4bf16_1k", 4, 4, 16, 4, MFMA_BF16)
    MROW("f32_32x32x8bf16_1k", 32, 8, 1, 4, MFMA_BF16) MROW("f32_16x16x16bf16_1k", 16, 16, 1, 4, MFMA_BF16)
    MROW("i32_32x32x4i8", 32, 4, 2, 4, MFMA_I8) MROW("i32_16x16x4i8", 16, 4, 4, 4, MFMA_I8) MROW("i32_4x4x4i8", 4, 4, 16, 4, MFMA_I8)
    MROW("i32_32x32x8i8", 32, 8, 1, 4, MFMA_I8) MROW("i32_16x16x16i8", 16, 16, 1, 4, MFMA_I8)
    MROW("f64_16x16x4f64", 16, 4, 1, 1, MFMA_F64) MROW("f64_4x4x4f64", 4, 4, 4, 1, MFMA_F64)
    /* the names and new shapes of gfx942 */
    MROW("f32_32x32x1_2b_f32", 32, 1, 2, 1, MFMA_F32) MROW("f32_16x16x1_4b_f32", 16, 1, 4, 1, MFMA_F32) MROW("f32_4x4x1_16b_f32", 4, 1, 16, 1, MFMA_F32)
    MROW("f32_32x32x2_f32", 32, 2, 1, 1, MFMA_F32) MROW("f32_16x16x4_f32", 16, 4, 1, 1, MFMA_F32)
    MROW("f32_32x32x4_2b_f16", 32, 4, 2, 4, MFMA_F16) MROW("f32_16x16x4_4b_f16", 16, 4, 4, 4, MFMA_F16) MROW("f32_4x4x4_16b_f16", 4, 4, 16, 4, MFMA_F16)
    MROW("f32_32x32x8_f16", 32, 8, 1, 4, MFMA_F16) MROW("f32_16x16x16_f16", 16, 16, 1, 4, MFMA_F16)
    MROW("f32_32x32x4_2b_bf16", 32, 4, 2, 4, MFMA_BF16) MROW("f32_16x16x4_4b_bf16", 16, 4, 4, 4, MFMA_BF16) MROW("f32_4x4x4_16b_bf16", 4, 4, 16, 4, MFMA_BF16)
    MROW("f32_32x32x8_bf16", 32, 8, 1, 4, MFMA_BF16) MROW("f32_16x16x16_bf16", 16, 16, 1, 4, MFMA_BF16)
    MROW("i32_32x32x4_2b_i8", 32, 4, 2, 4, MFMA_I8) MROW("i32_16x16x4_4b_i8", 16, 4, 4, 4, MFMA_I8) MROW("i32_4x4x4_16b_i8", 4, 4, 16, 4, MFMA_I8)
    MROW("i32_32x32x16_i8", 32, 16, 1, 8, MFMA_I8) MROW("i32_16x16x32_i8", 16, 32, 1, 8, MFMA_I8)
    MROW("f64_16x16x4_f64", 16, 4, 1, 1, MFMA_F64) MROW("f64_4x4x4_4b_f64", 4, 4, 4, 1, MFMA_F64)
    MROW("f32_32x32x4_xf32", 32, 4, 1, 2, MFMA_XF32) MROW("f32_16x16x8_xf32", 16, 8, 1, 2, MFMA_XF32)
    MROW("f32_32x32x16_fp8_fp8", 32, 16, 1, 8, MFMA_FP8) MROW("f32_16x16x32_fp8_fp8", 16, 32, 1, 8, MFMA_FP8)
    MROW("f32_32x32x16_fp8_bf8", 32, 16, 1, 8, MFMA_FP8_BF8) MROW("f32_16x16x32_fp8_bf8", 16, 32, 1, 8, MFMA_FP8_BF8)
    MROW("f32_32x32x16_bf8_fp8", 32, 16, 1, 8, MFMA_BF8_FP8) MROW("f32_16x16x32_bf8_fp8", 16, 32, 1, 8, MFMA_BF8_FP8)
    MROW("f32_32x32x16_bf8_bf8", 32, 16, 1, 8, MFMA_BF8) MROW("f32_16x16x32_bf8_bf8", 16, 32, 1, 8, MFMA_BF8)
    {"v_wmma_f32_16x16x16_f16", "xxxf", wmma, WMMA_F16}, {"v_wmma_f32_16x16x16_bf16", "xxxf", wmma, WMMA_BF16},
    {"v_wmma_f16_16x16x16_f16", "xxxh", wmma, WMMA_F16 | WMMA_OUT16}, {"v_wmma_bf16_16x16x16_bf16", "xxxh", wmma, WMMA_BF16 | WMMA_OUT16},
    {"v_wmma_i32_16x16x16_iu8", "xxxi", wmma, WMMA_I8}, {"v_wmma_i32_16x16x16_iu4", "xxxi", wmma, WMMA_I4},
    {"v_wmma_i32_16x16x32_iu4", "xxxi", wmma, WMMA_I4 | WMMA_K32},
    {"v_wmma_f32_16x16x16_fp8_fp8", "xxxf", wmma, WMMA_FP8}, {"v_wmma_f32_16x16x16_fp8_bf8", "xxxf", wmma, WMMA_FP8_BF8},
    {"v_wmma_f32_16x16x16_bf8_fp8", "xxxf", wmma, WMMA_BF8_FP8}, {"v_wmma_f32_16x16x16_bf8_bf8", "xxxf", wmma, WMMA_BF8},
    {NULL, NULL, NULL, 0}};
/* clang-format on */
