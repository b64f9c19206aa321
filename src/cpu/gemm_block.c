/* gemm_block.c: the matrix product by blocks.
 *
 * The outer block (mo by no by ko) bounds the memory for packing: its part of A, and of B where several tiles
 * share it, is packed in one parallel region; in a second one every task works out a tile of C (mt by nt) over
 * all of ko, kc at a time, so that what it reads of A and B stays in the second-level cache. A tile of C has
 * one task, whose order of additions is fixed: the threads do not change the result. */
#include "gemm_int.h"
#include <stdatomic.h>
#include "core/pool.h"

enum {
    TILE_ROWS = 96,         /* a multiple of any kernel's rows */
    TILE_PANELS = 4,        /* of GEMM_NV vectors each */
    KC = 256,               /* a panel of A is to stay in the first-level cache: 8 rows of KC floats, 8 KiB */
    KO = 1024,              /* KC and KO count packed elements, KC those that are not cut */
    PLAIN_KC = 128,         /* the same for odd numbers */
    OUTER_BYTES = 8 << 20,  /* of packed A, and of B */
    WHOLE_BYTES = 16 << 20, /* all of A where it is cut, which then is done once */
    MIN_TASK = 1 << 19,     /* multiply-adds, some 10 us: smaller tasks are not worth having more of them */
    FEW_TASKS = 16,
    PACK_PANELS_A = 4,      /* panels of A that one task packs */
    CUT_ROWS = 128,         /* of B, that are packed and cut at a time */
    CUT_COLUMNS = 32,       /* of B, and rows of A: as many as kernels that cut have */
    SERIAL_PACK = 64 << 10, /* bytes up to which packing is not shared */
    SMALL_BYTES =
        128 << 10 /* an operand of this size stays in the second-level cache: packing gains nothing */
};

/* n cut into equal blocks, each a multiple of unit and about as large as wanted. */
static int64_t even_block(int64_t n, int64_t want, int64_t unit)
{
    return gemm_round_up(gemm_blocks(n, gemm_blocks(n, want)), unit);
}

/* ---- The plan ---- */

static void plan_tiles(gemm_plan *plan, const wk_gemm_args *g)
{
    int64_t mr = plan->kernel->rows, nr = gemm_panel_columns(plan->kernel);
    plan->mt = even_block(g->m, TILE_ROWS * plan->kernel->blocks, mr);
    plan->nt = even_block(g->n, TILE_PANELS * plan->kernel->blocks * nr, nr);
    while (gemm_blocks(g->m, plan->mt) * gemm_blocks(g->n, plan->nt) < FEW_TASKS &&
           plan->mt * plan->nt * g->k > MIN_TASK) {
        if (plan->nt > nr)
            plan->nt = gemm_round_up(plan->nt / 2, nr);
        else if (plan->mt > 2 * mr)
            plan->mt = gemm_round_up(plan->mt / 2, mr);
        else
            break;
    }
}

/* Whether the kernel can read A as it is. */
static bool fits_a(const gemm_kernel *kernel, const wk_gemm_args *g)
{
    return g->a.dtype == kernel->a_dtype &&
           (kernel->pair == 1 || (g->a.cs == 1 && g->a.rs % kernel->pair == 0 && g->k % kernel->pair == 0));
}

/* Rows that are runs of memory are read where they are: what another thread has packed comes from its caches, which may be
 * far, and has to be taken out of ours before it is packed anew. */
static bool plan_packs_a(const gemm_kernel *kernel, const wk_gemm_args *g)
{
    if (!fits_a(kernel, g))
        return true;
    return g->a.cs != 1 && g->n > 2 * gemm_panel_columns(kernel) &&
           g->m * g->k * (int64_t)kernel->bytes > SMALL_BYTES;
}

static bool plan_reads_b(const gemm_kernel *kernel, const wk_gemm_args *g)
{
    if (g->pack_b || g->b.dtype != kernel->b_dtype || g->b.cs != 1)
        return false;
    return g->m <= 2 * kernel->rows || g->k * g->n * (int64_t)kernel->bytes <= SMALL_BYTES;
}

/* What odd numbers are packed into: a panel of B, and one of A. */
static size_t plain_bytes(void)
{
    const gemm_kernel *kernel = &WK_ISA(gemm_kernel_f32);
    return PLAIN_KC * (size_t)(gemm_panel_columns(kernel) + kernel->rows) * kernel->bytes;
}

void WK_ISA(gemm_block_plan)(gemm_plan *plan, const wk_gemm_args *g)
{
    const gemm_kernel *kernel = WK_ISA(gemm_pick_kernel)(g);
    *plan = (gemm_plan){.kernel = kernel};
    plan_tiles(plan, g);

    int64_t k = gemm_max(gemm_blocks(g->k, kernel->pair), 1), row = k * (int64_t)kernel->bytes;
    int64_t m = gemm_round_up(g->m, plan->mt), n = gemm_round_up(g->n, plan->nt);
    bool whole = gemm_pieces(kernel) && m * row <= WHOLE_BYTES && plan->nt * row <= WHOLE_BYTES;
    plan->ko = even_block(k, whole ? k : KO, kernel->step);
    plan->kc =
        even_block(plan->ko, (KC + KC / 4) * kernel->blocks / gemm_max(gemm_pieces(kernel), 1), kernel->step);
    int64_t outer = OUTER_BYTES / (plan->ko * (int64_t)kernel->bytes);
    plan->mo = whole ? m : gemm_min(gemm_round_up(outer, plan->mt), m);
    plan->no = gemm_min(gemm_round_up(outer, plan->nt), n);
    plan->tasks = plan->mo / plan->mt * (plan->no / plan->nt);

    plan->pack_a = plan_packs_a(kernel, g);
    plan->direct_b = plan_reads_b(kernel, g);
    plan->share_b = !plan->direct_b && (g->m > plan->mt || (gemm_pieces(kernel) && k > plan->ko));
    plan->c_scratch = !gemm_c_in_place(g) || gemm_pieces(kernel);

    if (plan->pack_a)
        plan->a_bytes = (size_t)(plan->mo * plan->ko) * kernel->bytes;
    if (plan->share_b)
        plan->b_bytes = (size_t)(plan->no * plan->ko) * kernel->bytes;
    else
        plan->slot += (size_t)(plan->kc * gemm_panel_columns(kernel)) * kernel->bytes;
    if (gemm_pieces(kernel))
        plan->slot += plain_bytes();
    if (plan->c_scratch && k > plan->ko)
        plan->c_bytes = (size_t)(plan->mo * plan->no) * gemm_compute_bytes(g);
    else if (plan->c_scratch)
        plan->slot += (size_t)(plan->mt * plan->nt) * gemm_compute_bytes(g);
    plan->a_bytes = (size_t)gemm_round_up((int64_t)plan->a_bytes, GEMM_ALIGN);
    plan->b_bytes = (size_t)gemm_round_up((int64_t)plan->b_bytes, GEMM_ALIGN);
    plan->c_bytes = (size_t)gemm_round_up((int64_t)plan->c_bytes, GEMM_ALIGN);
    plan->shared = plan->a_bytes + plan->b_bytes + plan->c_bytes;
    plan->slot = (size_t)gemm_round_up((int64_t)plan->slot, GEMM_ALIGN);
}

/* ---- One outer block ---- */

typedef struct {
    const gemm_plan *plan;
    const wk_gemm_args *g;
    gemm_packer packer_a, packer_b;
    char *a, *b, *c; /* packed, and sums that are not in C */
    gemm_slots slots;
    int64_t i0, mn, j0, jn;    /* rows and columns of C */
    int64_t q0, qn;            /* packed elements along k */
    bool keeps_a;              /* A is packed as it was for the block before this one */
    _Atomic bool odd_a, odd_b; /* among what was packed for all */
} block;

static const char *at(const wk_mat *x, int64_t i, int64_t j)
{
    return (const char *)x->data + (i * x->rs + j * x->cs) * (int64_t)wk_bytes(x->dtype);
}

/* Packed elements along k in a panel that holds n of them. */
static int64_t padded(const gemm_kernel *kernel, int64_t n) { return gemm_round_up(n, kernel->step); }

/* Values along k in an element as packers make it; what is cut comes to it one by one. */
static int packed_pair(const gemm_kernel *kernel) { return gemm_pieces(kernel) ? 1 : kernel->pair; }

/* Rows [p, p + pn) of columns [j, j + jn) of B, by the caller's packer or ours. */
static void fill_b(const block *s, int64_t p, int64_t pn, int64_t j, int64_t jn, int64_t width, void *dst)
{
    const wk_gemm_args *g = s->g;
    wk_gemm_pack_fn pack = packed_pair(s->plan->kernel) == 2 ? g->pack_b_pairs : g->pack_b;
    if (g->pack_b)
        pack(g->pack_ctx, p, pn, j, jn, width, dst);
    else
        s->packer_b(dst, width, at(&g->b, p, j), g->b.cs, g->b.rs, jn, pn);
}

/* Packs rows [p, p + pn) of columns [j, j + jn) of B in pieces, by way of a part that stays in the cache. Whether any is
 * odd. */
static bool cut_b_panel(const block *s, int64_t p, int64_t pn, int64_t j, int64_t jn, char *dst)
{
    const gemm_kernel *kernel = s->plan->kernel;
    _Alignas(GEMM_ALIGN) float part[CUT_ROWS * CUT_COLUMNS];
    int64_t width = gemm_round_up(jn, kernel->lanes),
            bytes = GEMM_CUT_STEP / 2 * width * (int64_t)kernel->bytes;
    bool odd = false;
    for (int64_t rows; pn > 0; p += rows, pn -= rows) {
        rows = gemm_min(pn, CUT_ROWS);
        fill_b(s, p, rows, j, jn, width, part);
        memset(part + rows * width, 0,
               (size_t)((gemm_round_up(rows, GEMM_CUT_STEP) - rows) * width) * sizeof *part);
        for (int64_t i = 0; i < rows; i += GEMM_CUT_STEP, dst += bytes)
            odd |= kernel->cut_b(dst, part + i * width, width);
    }
    return odd;
}

/* The same of mr rows of A, of which there are mn, from i on. */
static bool cut_a_panel(const block *s, int64_t i, int64_t mn, int64_t p, int64_t pn, char *dst)
{
    const wk_gemm_args *g = s->g;
    const gemm_kernel *kernel = s->plan->kernel;
    _Alignas(GEMM_ALIGN) float part[CUT_COLUMNS * GEMM_CUT_STEP];
    int64_t bytes = GEMM_CUT_STEP / 2 * kernel->rows * (int64_t)kernel->bytes;
    bool odd = false;
    memset(part + mn * GEMM_CUT_STEP, 0, (size_t)((kernel->rows - mn) * GEMM_CUT_STEP) * sizeof *part);
    for (; pn > 0; p += GEMM_CUT_STEP, pn -= GEMM_CUT_STEP, dst += bytes) {
        s->packer_a(part, GEMM_CUT_STEP, at(&g->a, i, p), g->a.cs, g->a.rs, gemm_min(pn, GEMM_CUT_STEP), mn);
        odd |= kernel->cut_a(dst, part, kernel->rows);
    }
    return odd;
}

/* Packs rows [q, q + qn) of columns [j, j + jn) of B. Whether any is odd. */
static bool pack_b_panel(const block *s, int64_t q, int64_t qn, int64_t j, int64_t jn, char *dst)
{
    const gemm_kernel *kernel = s->plan->kernel;
    int64_t p = q * kernel->pair, pn = gemm_min(qn * kernel->pair, s->g->k - p);
    int64_t width = gemm_round_up(jn, kernel->lanes);
    if (gemm_pieces(kernel))
        return cut_b_panel(s, p, pn, j, jn, dst);
    fill_b(s, p, pn, j, jn, width, dst);
    memset(dst + qn * width * (int64_t)kernel->bytes, 0,
           (size_t)(padded(kernel, qn) - qn) * (size_t)width * kernel->bytes);
    return false;
}

static bool pack_a_panels(const block *s, int64_t first, int64_t last)
{
    bool odd = false;
    const wk_gemm_args *g = s->g;
    const gemm_kernel *kernel = s->plan->kernel;
    int64_t p = s->q0 * kernel->pair, pn = gemm_min(s->qn * kernel->pair, g->k - p);
    int64_t mr = kernel->rows, depth = padded(kernel, s->qn);
    for (int64_t i = first * mr; i < gemm_min(last * mr, s->mn); i += mr) {
        char *dst = s->a + i * depth * (int64_t)kernel->bytes;
        int64_t mn = gemm_min(mr, s->mn - i);
        if (gemm_pieces(kernel))
            odd |= cut_a_panel(s, s->i0 + i, mn, p, pn, dst);
        else
            s->packer_a(dst, mr, at(&g->a, s->i0 + i, p), g->a.rs, g->a.cs, mn, pn);
    }
    return odd;
}

static int64_t pack_tasks_a(const block *s)
{
    return s->plan->pack_a && !s->keeps_a ? gemm_blocks(s->mn, PACK_PANELS_A * s->plan->kernel->rows) : 0;
}

static int64_t pack_tasks_b(const block *s)
{
    return s->plan->share_b ? gemm_blocks(s->jn, gemm_panel_columns(s->plan->kernel)) : 0;
}

/* Tasks of A and of B are mixed evenly: threads take neighbouring ones, and the columns of B that a thread has packed
 * are those of the tiles that it works out afterwards. */
static void pack_task(void *ctx, int64_t task)
{
    block *s = ctx;
    int64_t tasks_a = pack_tasks_a(s), tasks = tasks_a + pack_tasks_b(s), a = task * tasks_a / tasks;
    int64_t nr = gemm_panel_columns(s->plan->kernel), j = (task - a) * nr;
    if ((task + 1) * tasks_a / tasks > a) {
        if (pack_a_panels(s, a * PACK_PANELS_A, (a + 1) * PACK_PANELS_A))
            atomic_store(&s->odd_a, true);
    } else if (pack_b_panel(s, s->q0, s->qn, s->j0 + j, gemm_min(nr, s->jn - j),
                            s->b + j * padded(s->plan->kernel, s->qn) * (int64_t)s->plan->kernel->bytes)) {
        atomic_store(&s->odd_b, true);
    }
}

static void pack_block(block *s)
{
    const gemm_plan *plan = s->plan;
    int64_t a = pack_tasks_a(s), b = pack_tasks_b(s), tasks = a + b;
    int64_t bytes = ((a ? s->mn : 0) + (b ? s->jn : 0)) * s->qn * (int64_t)plan->kernel->bytes;
    if (bytes > SERIAL_PACK)
        wk_parallel_for(tasks, pack_task, s);
    else
        for (int64_t i = 0; i < tasks; i++)
            pack_task(s, i);
}

/* ---- One tile of C ---- */

/* Points t at columns [j, j + cols) of B, from q on, packing them into local if nobody else needs them. Whether any of
 * those is odd. */
static bool find_b(const block *s, gemm_tile *t, int64_t q, int64_t j, char *local)
{
    const gemm_plan *plan = s->plan;
    const gemm_kernel *kernel = plan->kernel;
    t->b_ks = gemm_round_up(t->cols, kernel->lanes);
    if (plan->share_b) {
        t->b = s->b + ((j - s->j0) * padded(kernel, s->qn) + (q - s->q0) * t->b_ks) * (int64_t)kernel->bytes;
    } else if (plan->direct_b && t->b_ks == t->cols) {
        t->b = at(&s->g->b, q, j);
        t->b_ks = s->g->b.rs;
    } else {
        t->b = local;
        return pack_b_panel(s, q, t->k, j, t->cols, local);
    }
    return false;
}

/* The same with rows [i, i + rows) of A. */
static void find_a(const block *s, gemm_tile *t, int64_t q, int64_t i, char *local)
{
    const gemm_kernel *kernel = s->plan->kernel;
    if (s->plan->pack_a) {
        t->a = s->a +
               ((i - s->i0) * padded(kernel, s->qn) + (q - s->q0) * kernel->rows) * (int64_t)kernel->bytes;
        t->a_rs = kernel->step;
        t->a_ks = kernel->rows;
    } else if (!fits_a(kernel, s->g)) {
        s->packer_a(local, kernel->rows, at(&s->g->a, i, q), s->g->a.rs, s->g->a.cs, t->rows, t->k);
        t->a = local;
        t->a_rs = 1;
        t->a_ks = kernel->rows;
    } else {
        t->a = at(&s->g->a, i, q * kernel->pair);
        t->a_rs = s->g->a.rs / kernel->pair;
        t->a_ks = kernel->pair == 1 ? s->g->a.cs : 1;
    }
}

/* Adds up rows [i, i1) and columns [j, j1) into c, over all of the block's k. Whether an odd number was met on the way. */
static bool sum_tile(const block *s, int64_t i, int64_t i1, int64_t j, int64_t j1, char *c, int64_t ldc,
                     bool add, char *local)
{
    const gemm_kernel *kernel = s->plan->kernel;
    int64_t nr = gemm_panel_columns(kernel), bytes = (int64_t)gemm_compute_bytes(s->g), q = s->q0,
            q1 = s->q0 + s->qn;
    gemm_tile t = {.ldc = ldc, .add = add};
    bool odd = false;
    if (kernel->begin)
        kernel->begin();
    do {
        t.k = gemm_min(s->plan->kc, q1 - q);
        for (int64_t jj = j; jj < j1; jj += nr) {
            t.cols = (int)gemm_min(nr, j1 - jj);
            odd |= find_b(s, &t, q, jj, local);
            for (int64_t ii = i; ii < i1; ii += kernel->rows) {
                t.rows = (int)gemm_min(kernel->rows, i1 - ii);
                t.c = c + ((ii - i) * ldc + jj - j) * bytes;
                find_a(s, &t, q, ii, local + s->plan->kc * nr * (int64_t)kernel->bytes);
                kernel->tile(&t);
            }
        }
        t.add = true;
        q += t.k;
    } while (q < q1);
    if (kernel->end)
        kernel->end();
    return odd;
}

/* The same over all of k where numbers are odd: none is cut, and nothing is shared with other tasks. */
static void sum_odd(const block *s, int64_t i, int64_t i1, int64_t j, int64_t j1, char *c, int64_t ldc,
                    char *local)
{
    gemm_plan plan = {.kernel = &WK_ISA(gemm_kernel_f32), .kc = PLAIN_KC};
    block plain = {.plan = &plan, .g = s->g, .packer_a = s->packer_a, .packer_b = s->packer_b, .qn = s->g->k};
    sum_tile(&plain, i, i1, j, j1, c, ldc, false, local);
}

static void tile_task(void *ctx, int64_t task)
{
    block *s = ctx;
    const gemm_plan *plan = s->plan;
    const wk_gemm_args *g = s->g;
    int64_t down = gemm_blocks(s->mn, plan->mt), bytes = (int64_t)gemm_compute_bytes(g);
    int64_t i = s->i0 + task % down * plan->mt, i1 = gemm_min(i + plan->mt, s->i0 + s->mn);
    int64_t j = s->j0 + task / down * plan->nt, j1 = gemm_min(j + plan->nt, s->j0 + s->jn);
    char *slot = plan->slot ? WK_ISA(gemm_slot_take)(&s->slots) : NULL, *c;
    int64_t ldc;
    bool add = s->q0 > 0, last = (s->q0 + s->qn) * plan->kernel->pair >= g->k;
    if (!plan->c_scratch) {
        c = (char *)g->c.data + (i * g->c.rs + j) * bytes;
        ldc = g->c.rs;
        add |= g->accumulate;
    } else if (plan->c_bytes) {
        c = s->c + ((i - s->i0) * plan->no + j - s->j0) * bytes;
        ldc = plan->no;
    } else {
        c = slot + plan->slot - (size_t)(plan->mt * plan->nt * bytes);
        ldc = plan->nt;
    }
    bool odd = s->odd_a || s->odd_b || sum_tile(s, i, i1, j, j1, c, ldc, add, slot);
    if (last && odd && gemm_pieces(plan->kernel))
        sum_odd(s, i, i1, j, j1, c, ldc, slot);
    if (last)
        WK_ISA(gemm_finish)(g, c, ldc, i, i1 - i, j, j1 - j);
    if (slot)
        WK_ISA(gemm_slot_give)(&s->slots, slot);
}

void WK_ISA(gemm_block_run)(const gemm_plan *plan, const wk_gemm_args *g, char *memory, int slots)
{
    const gemm_kernel *kernel = plan->kernel;
    block s = {.plan = plan, .g = g, .a = memory};
    s.b = s.a + plan->a_bytes;
    s.c = s.b + plan->b_bytes;
    int pair = packed_pair(kernel);
    s.packer_a = kernel->pack_a ? kernel->pack_a : WK_ISA(gemm_pick_packer)(g->a.dtype, pair);
    s.packer_b = WK_ISA(gemm_pick_packer)(g->b.dtype, pair);
    WK_ISA(gemm_slots_init)(&s.slots, s.c + plan->c_bytes, plan->slot, slots);

    int64_t k = gemm_blocks(g->k, kernel->pair);
    for (s.i0 = 0; s.i0 < g->m; s.i0 += plan->mo)
        for (s.j0 = 0; s.j0 < g->n; s.j0 += plan->no) {
            s.mn = gemm_min(plan->mo, g->m - s.i0);
            s.jn = gemm_min(plan->no, g->n - s.j0);
            s.q0 = 0;
            s.keeps_a = s.j0 > 0 && k <= plan->ko;
            s.odd_a = s.keeps_a && s.odd_a;
            s.odd_b = false;
            do { /* once even when k is 0: C gets its biases */
                s.qn = gemm_min(plan->ko, k - s.q0);
                pack_block(&s);
                wk_parallel_for(gemm_blocks(s.mn, plan->mt) * gemm_blocks(s.jn, plan->nt), tile_task, &s);
                s.q0 += s.qn;
            } while (s.q0 < k);
        }
}
