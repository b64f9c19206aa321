/* gemm.c: the entry points of the matrix product, and its memory. */
#include "gemm_int.h"
#include <sched.h>
#include <stdatomic.h>
#include "core/memory.h"
#include "core/pool.h"

enum {
    BATCH_SMALL = 1 << 21,  /* multiply-adds: up to here a product of a batch is not shared among threads, */
    BATCH_MEDIUM = 1 << 24, /* and up to here not when there are MANY of them */
    BATCH_MANY = 16,
    BATCH_TASK = 1 << 17, /* tiny products are handed out so many multiply-adds at a time */
};

/* ---- Memory ---- */

void WK_ISA(gemm_slots_init)(gemm_slots *s, char *base, size_t bytes, int count)
{
    s->base = base;
    s->step = bytes + WK_SCRATCH_GAP;
    s->count = count;
    for (int i = 0; i < count; i++)
        atomic_init(&s->slot[i].busy, 0);
}

char *WK_ISA(gemm_slot_take)(gemm_slots *s)
{
    static _Thread_local int last;
    for (;;) {
        for (int k = 0; k < s->count; k++) {
            int i = (last + k) % s->count;
            if (!atomic_exchange_explicit(&s->slot[i].busy, 1, memory_order_acquire)) {
                last = i;
                return s->base + (size_t)i * s->step;
            }
        }
        sched_yield(); /* only when the number of threads was raised meanwhile */
    }
}

void WK_ISA(gemm_slot_give)(gemm_slots *s, char *slot)
{
    atomic_store_explicit(&s->slot[(size_t)(slot - s->base) / s->step].busy, 0, memory_order_release);
}

/* ---- Products ---- */

static void make_plan(gemm_plan *plan, const wk_gemm_args *g)
{
    if (!WK_ISA(gemm_thin_plan)(plan, g))
        WK_ISA(gemm_block_plan)(plan, g);
}

/* Scratch for as many tasks as can run at a time. */
static int slots_for(int64_t tasks) { return (int)gemm_min(gemm_min(wk_pool_width(), GEMM_SLOTS), tasks); }

static void run_plan(const gemm_plan *plan, const wk_gemm_args *g, char *memory, int slots)
{
    if (plan->thin)
        WK_ISA(gemm_thin_run)(plan, g, memory, slots);
    else
        WK_ISA(gemm_block_run)(plan, g, memory, slots);
}

bool WK_ISA(wk_gemm)(const wk_gemm_args *g)
{
    if (g->m == 0 || g->n == 0)
        return true;
    gemm_plan plan;
    make_plan(&plan, g);
    int slots = slots_for(plan.tasks);
    size_t bytes = plan.shared + gemm_slots_bytes(plan.slot, slots);
    char *memory = wk_block_alloc(bytes);
    if (!memory)
        return false;
    run_plan(&plan, g, memory, slots);
    wk_block_free(memory, bytes);
    return true;
}

/* ---- Batches ---- */

typedef struct {
    const wk_gemm_args *g;
    const gemm_plan *plan;
    const int64_t *a, *b, *c;
    int64_t batch, group;
    gemm_slots slots;
} batch_run;

static wk_gemm_args product_of(const batch_run *s, int64_t i)
{
    wk_gemm_args one = *s->g;
    one.a.data = (char *)one.a.data + s->a[i] * (int64_t)wk_bytes(one.a.dtype);
    if (!one.pack_b)
        one.b.data = (char *)one.b.data + s->b[i] * (int64_t)wk_bytes(one.b.dtype);
    one.c.data = (char *)one.c.data + s->c[i] * (int64_t)wk_bytes(one.c.dtype);
    return one;
}

static void batch_task(void *ctx, int64_t task)
{
    batch_run *s = ctx;
    char *slot = s->plan->shared + s->plan->slot ? WK_ISA(gemm_slot_take)(&s->slots) : NULL;
    int64_t end = gemm_min((task + 1) * s->group, s->batch);
    for (int64_t i = task * s->group; i < end; i++) {
        wk_gemm_args one = product_of(s, i);
        run_plan(s->plan, &one, slot, 1);
    }
    if (slot)
        WK_ISA(gemm_slot_give)(&s->slots, slot);
}

static bool spread_whole(const wk_gemm_args *g, int64_t batch)
{
    int64_t size = g->m * g->n * g->k;
    return batch > 1 && (size <= BATCH_SMALL || (size <= BATCH_MEDIUM && batch >= BATCH_MANY));
}

bool WK_ISA(wk_gemm_batch)(const wk_gemm_args *g, int64_t batch, const int64_t *a_offsets,
                           const int64_t *b_offsets, const int64_t *c_offsets)
{
    if (g->m == 0 || g->n == 0 || batch == 0)
        return true;
    gemm_plan plan;
    make_plan(&plan, g);
    batch_run s = {g, &plan, a_offsets, b_offsets, c_offsets, .batch = batch};
    s.group = gemm_max(1, BATCH_TASK / gemm_max(1, g->m * g->n * g->k));
    int64_t tasks = gemm_blocks(batch, s.group);
    bool whole = spread_whole(g, batch);
    int slots = slots_for(whole ? tasks : plan.tasks);
    size_t one = (size_t)gemm_round_up((int64_t)(plan.shared + plan.slot), GEMM_ALIGN);
    size_t bytes = whole ? gemm_slots_bytes(one, slots) : plan.shared + gemm_slots_bytes(plan.slot, slots);
    char *base = wk_block_alloc(bytes);
    if (!base)
        return false;
    if (whole) {
        WK_ISA(gemm_slots_init)(&s.slots, base, one, slots);
        wk_parallel_for(tasks, batch_task, &s);
    } else {
        for (int64_t i = 0; i < batch; i++) {
            wk_gemm_args product = product_of(&s, i);
            run_plan(&plan, &product, base, slots);
        }
    }
    wk_block_free(base, bytes);
    return true;
}
