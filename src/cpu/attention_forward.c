/* attention_forward.c: attention, block by block; see attention_int.h. */
#include <float.h>
#include "core/memory.h"
#include "core/pool.h"
#include "core/random.h"
#include "attention_int.h"
#include "block.h"
#include "stream.h"

/* The thin way holds THIN_MR rows by THIN_NV vectors of the result in registers, or dot products of THIN_MR rows with
 * 4 keys. */
#if defined(__AVX512F__) || defined(__aarch64__)
enum { THIN_MR = 4, THIN_NV = 4 };
#else
enum { THIN_MR = 2, THIN_NV = 4 };
#endif
/* The key that is asked for from so many before it. What is made of keys takes about as long as they take to come. */
enum { THIN_AHEAD = 8 };

/* A vector that stays in its register: GCC would load it from memory again at every use. */
#if defined(__x86_64__)
#define KEEP(v) __asm__("" : "+v"(v))
#elif defined(__aarch64__)
#define KEEP(v) __asm__("" : "+w"(v))
#else
#define KEEP(v) (void)(v)
#endif

/* Attention of a block in bf16 by pairs, work_f32 at w; false where that is not to be. */
static bool attend_pairs(const attn_plan *p, const attn_rows *r, int64_t from, int64_t to, void *w);

#include "real_f32.h"
#define WK_REAL_DTYPE WK_F32
#define SUM_FOUR(a, b, c, d, four) \
    do { \
        quarter_f32 ab = \
            __builtin_shufflevector(a, b, 0, 4, 1, 5) + __builtin_shufflevector(a, b, 2, 6, 3, 7); \
        quarter_f32 cd = \
            __builtin_shufflevector(c, d, 0, 4, 1, 5) + __builtin_shufflevector(c, d, 2, 6, 3, 7); \
        four[0] = __builtin_shufflevector(ab, cd, 0, 1, 4, 5) + __builtin_shufflevector(ab, cd, 2, 3, 6, 7); \
    } while (0)
#include "line.inc.h"
#include "attention_block.inc.h"
#include "attention_forward.inc.h"
#undef WK_REAL_DTYPE
#undef SUM_FOUR
#include "real_f64.h"
#define WK_REAL_DTYPE WK_F64
#define SUM_FOUR(a, b, c, d, four) \
    do { \
        four[0] = __builtin_shufflevector(a, b, 0, 2) + __builtin_shufflevector(a, b, 1, 3); \
        four[1] = __builtin_shufflevector(c, d, 0, 2) + __builtin_shufflevector(c, d, 1, 3); \
    } while (0)
#include "line.inc.h"
#include "attention_block.inc.h"
#include "attention_forward.inc.h"
#undef WK_REAL_DTYPE
#undef SUM_FOUR

#include "attention_pairs.inc.h"

enum { FEW_TASKS = 16, SPLIT_KEYS = 256 };

/* ---- Pieces that the backward uses too ---- */

void WK_ISA(attn_product)(const gemm_kernel *kernel, int64_t m, int64_t n, int64_t k, attn_mat a,
                          const void *b, const void *more, int64_t b_rs, void *c, int64_t c_rs, bool add)
{
    int64_t width = gemm_panel_columns(kernel), bytes = (int64_t)kernel->bytes;
    for (int64_t i = 0; i < m; i += kernel->rows) {
        for (int64_t j = 0; j < n; j += width) {
            gemm_tile t = {.a = (const char *)a.data + i * a.rs * bytes,
                           .b = (const char *)b + j * bytes,
                           .more = more ? (const char *)more + j * bytes : NULL,
                           .c = (char *)c + (i * c_rs + j) * bytes,
                           .a_rs = a.rs,
                           .a_ks = a.cs,
                           .b_ks = b_rs,
                           .ldc = c_rs,
                           .k = k,
                           .rows = (int)gemm_min(m - i, kernel->rows),
                           .cols = (int)gemm_min(n - j, width),
                           .add = add};
            kernel->tile(&t);
        }
    }
}

attn_mat WK_ISA(attn_rows_of)(wk_dtype dtype, const char *base, attn_strides strides, int64_t row, int64_t n,
                              int64_t width, int64_t pitch, void *buf)
{
    wk_compute compute = wk_dtypes[dtype].compute;
    int64_t bytes = (int64_t)wk_bytes(dtype), wide = (int64_t)wk_compute_bytes(compute);
    const char *from = base + row * strides.s * bytes;
    if (dtype == wk_compute_dtype(compute) && (pitch == 0 || (strides.d == 1 && pitch == width)))
        return (attn_mat){from, strides.s, strides.d};
    if (pitch == 0)
        pitch = width;
    if (pitch == width && strides.d == 1 && strides.s == width) {
        WK_ISA(wk_block_load)(dtype, from, 1, buf, n * width);
        return (attn_mat){buf, pitch, 1};
    }
    for (int64_t i = 0; i < n; i++) {
        char *to = (char *)buf + i * pitch * wide;
        WK_ISA(wk_block_load)(dtype, from + i * strides.s * bytes, strides.d, to, width);
        memset(to + width * wide, 0, (size_t)((pitch - width) * wide));
    }
    return (attn_mat){buf, pitch, 1};
}

/* Fills in the ranges of keys of a block whose other fields are set. */
static void find_keys(const attn_plan *p, attn_rows *r)
{
    r->keys = (wk_key_range){r->of->t, 0};
    for (int x = 0; x < r->rows; x++) {
        wk_key_range see = wk_sdpa_keys(p->causal, p->window, r->of->s, r->of->t, attn_query(r, x));
        r->see[x] = see;
        if (see.lo < see.hi) {
            r->keys.lo = gemm_min(r->keys.lo, see.lo);
            r->keys.hi = gemm_max(r->keys.hi, see.hi);
        }
    }
}

attn_rows WK_ISA(attn_block)(const attn_plan *p, const attn_sequence *q, int64_t i)
{
    int64_t unit = i / q->blocks, group = p->hq / p->hk;
    int64_t first = i % q->blocks * ATTN_ROWS, all = q->whole_groups ? group * q->s : q->s;
    attn_rows r = {.of = q,
                   .head = q->whole_groups ? unit * group : unit,
                   .key_head = q->whole_groups ? unit : unit / group,
                   .first = first,
                   .rows = (int)gemm_min(all - first, ATTN_ROWS)};
    find_keys(p, &r);
    return r;
}

int64_t WK_ISA(attn_cut_rows)(attn_plan *p)
{
    int64_t blocks = 0;
    for (int64_t i = 0; i < p->n; i++) {
        attn_sequence *q = &p->sequences[i];
        q->whole_groups = q->s < ATTN_ROWS;
        q->units = q->whole_groups ? p->hk : p->hq;
        q->blocks = gemm_blocks(q->whole_groups ? p->hq / p->hk * q->s : q->s, ATTN_ROWS);
        blocks += q->units * q->blocks;
    }
    return blocks;
}

/* ---- Tasks ---- */

/* The sequence that has the task. */
static const attn_sequence *sequence_of(const attn_plan *p, int64_t task)
{
    int64_t lo = 0, hi = p->n;
    while (hi - lo > 1) {
        int64_t mid = lo + (hi - lo) / 2;
        *(p->sequences[mid].first_task <= task ? &lo : &hi) = mid;
    }
    return &p->sequences[lo];
}

static size_t scratch_bytes(const attn_plan *p)
{
    work_f32 f32;
    work_f64 f64;
    return p->compute == WK_COMPUTE_F64 ? work_init_f64(&f64, p, NULL) : work_init_f32(&f32, p, NULL);
}

static void run_task(void *ctx, int64_t task)
{
    attn_plan *p = ctx;
    size_t bytes = scratch_bytes(p);
    char *memory = wk_scratch_alloc(bytes);
    if (!memory) {
        atomic_store(&p->no_memory, true);
        return;
    }
    const attn_sequence *q = sequence_of(p, task);
    int64_t local = task - q->first_task, split = local % q->splits;
    attn_rows r = WK_ISA(attn_block)(p, q, local / q->splits);
    void *part = q->splits > 1 ? p->part_memory + (size_t)(q->first_part + local) * p->part_bytes : NULL;
    if (p->compute == WK_COMPUTE_F64)
        run_rows_f64(p, &r, split, part, memory);
    else
        run_rows_f32(p, &r, split, part, memory);
    wk_scratch_free(memory, bytes);
}

/* Puts the parts of every sequence that has been split together. */
static bool merge(const attn_plan *p)
{
    size_t bytes = scratch_bytes(p);
    char *memory = wk_scratch_alloc(bytes);
    for (int64_t n = 0; memory && n < p->n; n++) {
        const attn_sequence *q = &p->sequences[n];
        for (int64_t i = 0; q->splits > 1 && i < q->units * q->blocks; i++) {
            attn_rows r = WK_ISA(attn_block)(p, q, i);
            const char *parts = p->part_memory + (size_t)(q->first_part + i * q->splits) * p->part_bytes;
            if (p->compute == WK_COMPUTE_F64)
                merge_rows_f64(p, &r, parts, memory);
            else
                merge_rows_f32(p, &r, parts, memory);
        }
    }
    if (memory)
        wk_scratch_free(memory, bytes);
    return memory != NULL;
}

/* Cuts the work by sizes alone. Where there are few blocks of rows, keys are split too. */
static void cut(attn_plan *p)
{
    int64_t blocks = WK_ISA(attn_cut_rows)(p);
    p->tasks = p->parts = 0;
    for (int64_t i = 0; i < p->n; i++) {
        attn_sequence *q = &p->sequences[i];
        int64_t wanted = blocks > 0 && blocks < FEW_TASKS ? gemm_blocks(FEW_TASKS, blocks) : 1;
        q->split_keys = wanted == 1
                            ? gemm_max(q->t, 1)
                            : gemm_max(gemm_round_up(gemm_blocks(q->t, wanted), ATTN_KEYS), SPLIT_KEYS);
        q->splits = gemm_max(gemm_blocks(q->t, q->split_keys), 1);
        q->first_task = p->tasks;
        q->first_part = p->parts;
        p->tasks += q->units * q->blocks * q->splits;
        p->parts += q->splits > 1 ? q->units * q->blocks * q->splits : 0;
    }
}

wk_status WK_ISA(attn_forward)(attn_plan *p)
{
    if (p->d > ATTN_MAX_WIDTH || p->dv > ATTN_MAX_WIDTH)
        return wk_fail(WK_ERR_MEMORY, "out of memory for heads of %lld elements",
                       (long long)gemm_max(p->d, p->dv));
    cut(p);
    p->part_bytes = (size_t)(ATTN_ROWS * (p->dv + 2)) * wk_compute_bytes(p->compute);
    size_t bytes = (size_t)p->parts * p->part_bytes;
    p->part_memory = bytes ? wk_block_alloc(bytes) : NULL;
    size_t value_bytes = values_bytes(p);
    p->value_memory = value_bytes ? wk_block_alloc(value_bytes) : NULL;
    bool done = (!bytes || p->part_memory) && (!value_bytes || p->value_memory);
    if (done) {
        turn_values(p);
        wk_parallel_for(p->tasks, run_task, p);
        done = !p->no_memory && (p->parts == 0 || merge(p));
    }
    if (p->value_memory)
        wk_block_free(p->value_memory, value_bytes);
    if (p->part_memory)
        wk_block_free(p->part_memory, bytes);
    return done ? WK_OK : wk_fail(WK_ERR_MEMORY, "out of memory for blocks of scores");
}
