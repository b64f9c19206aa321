/* attention_backward.c: the gradients of attention. Scores are made again block by block from lse, once for the
 * rows (dq) and once for the keys (dk, dv), so that every sum has one owner and one order. */
#include <float.h>
#include "core/memory.h"
#include "core/pool.h"
#include "attention_int.h"
#include "block.h"

#include "real_f32.h"
#define WK_REAL_DTYPE WK_F32
#include "attention_block.inc.h"
#include "attention_backward.inc.h"
#undef WK_REAL_DTYPE
#include "real_f64.h"
#define WK_REAL_DTYPE WK_F64
#include "attention_block.inc.h"
#include "attention_backward.inc.h"
#undef WK_REAL_DTYPE

/* Scratch memory for a task; NULL, noted in the plan, when there is none. */
static char *scratch(attn_plan *p, size_t *bytes)
{
    grad_work_f32 f32;
    grad_work_f64 f64;
    *bytes =
        p->compute == WK_COMPUTE_F64 ? grad_work_init_f64(&f64, p, NULL) : grad_work_init_f32(&f32, p, NULL);
    char *memory = wk_scratch_alloc(*bytes);
    if (!memory)
        atomic_store(&p->no_memory, true);
    return memory;
}

static void run_rows(void *ctx, int64_t task)
{
    attn_grad_plan *g = ctx;
    const attn_sequence *first = g->p.sequences;
    int64_t blocks = first->units * first->blocks;
    size_t bytes;
    char *memory = scratch(&g->p, &bytes);
    if (!memory)
        return;
    attn_rows r = WK_ISA(attn_block)(&g->p, &first[task / blocks], task % blocks);
    (g->p.compute == WK_COMPUTE_F64 ? grad_q_f64 : grad_q_f32)(g, &r, memory);
    wk_scratch_free(memory, bytes);
}

static void run_keys(void *ctx, int64_t task)
{
    attn_grad_plan *g = ctx;
    const attn_sequence *first = g->p.sequences;
    int64_t blocks = gemm_blocks(first->t, ATTN_KEYS), head = task / blocks;
    size_t bytes;
    char *memory = scratch(&g->p, &bytes);
    if (!memory)
        return;
    (g->p.compute == WK_COMPUTE_F64 ? grad_kv_f64 : grad_kv_f32)(g, &first[head / g->p.hk], head % g->p.hk,
                                                                 task % blocks * ATTN_KEYS, memory);
    wk_scratch_free(memory, bytes);
}

wk_status WK_ISA(attn_backward)(attn_grad_plan *g)
{
    attn_plan *p = &g->p;
    if (p->d > ATTN_MAX_WIDTH || p->dv > ATTN_MAX_WIDTH)
        return wk_fail(WK_ERR_MEMORY, "out of memory for heads of %lld elements",
                       (long long)gemm_max(p->d, p->dv));
    int64_t blocks = WK_ISA(attn_cut_rows)(p);
    if (g->dq)
        wk_parallel_for(blocks, run_rows, g);
    if (g->dk || g->dv)
        wk_parallel_for(p->n * p->hk * gemm_blocks(p->sequences->t, ATTN_KEYS), run_keys, g);
    return p->no_memory ? wk_fail(WK_ERR_MEMORY, "out of memory for blocks of scores") : WK_OK;
}
