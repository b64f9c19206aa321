/* map.c: elementwise ops on the GPU: which form of the kernel a call gets. */
#include "map.h"

void wk_broadcast_strides(const wk_tensor *t, const wk_tensor *out, int64_t *strides)
{
    int lead = out->rank - t->rank;
    for (int d = 0; d < out->rank; d++)
        strides[d] = d < lead || t->shape[d - lead] == 1 ? 0 : t->strides[d - lead];
}

/* The usual case without much ado: every input is packed and of the output's shape, or has one element. */
static bool plan_packed(const wk_tensor *const *in, int n, const wk_tensor *out, wk_map_walk *w)
{
    i64 count = wk_count(out);
    for (int k = 0; k < n; k++) {
        bool same = wk_shape_equal(in[k]->rank, in[k]->shape, out->rank, out->shape) && wk_is_packed(in[k]);
        if (!same && wk_count(in[k]) != 1)
            return false;
        w->strides[k][0] = count > 1 && same;
    }
    w->rank = 1;
    w->shape[0] = count;
    return true;
}

void wk_map_plan(const wk_tensor *const *in, int n, const wk_tensor *out, wk_map_walk *w)
{
    w->packed = plan_packed(in, n, out, w);
    if (w->packed)
        return;
    memcpy(w->shape, out->shape, sizeof w->shape);
    for (int k = 0; k < n; k++)
        wk_broadcast_strides(in[k], out, w->strides[k]);
    w->rank = wk_shape_coalesce(out->rank, w->shape, n, w->strides);
    w->packed = w->rank <= 1;
    for (int k = 0; k < n && w->rank == 1; k++)
        w->packed = w->packed && w->strides[k][0] <= 1;
}

int wk_map_width(const wk_tensor *const *in, int n, const wk_tensor *out, const wk_map_walk *w)
{
    size_t widest = wk_bytes(out->dtype);
    for (int k = 0; k < n; k++)
        widest = wk_bytes(in[k]->dtype) > widest ? wk_bytes(in[k]->dtype) : widest;
    int vec = (int)(16 / widest);
    int64_t inner = w->rank ? w->shape[w->rank - 1] : 1;
    if (inner % vec || (size_t)wk_ptr(out) % ((size_t)vec * wk_bytes(out->dtype)))
        return 1;
    for (int k = 0; k < n; k++) {
        size_t bytes = wk_bytes(in[k]->dtype);
        int64_t step = w->rank ? w->strides[k][w->rank - 1] : 0;
        if (step > 1)
            return 1;
        if (step == 1 && (size_t)wk_ptr(in[k]) % ((size_t)vec * bytes))
            return 1;
        for (int d = 0; step == 1 && d + 1 < w->rank; d++) {
            if (w->strides[k][d] % vec)
                return 1;
        }
    }
    return vec;
}

static void fill_walk(const wk_map_walk *w, int n_in, map_args *a)
{
    a->rank = w->rank;
    for (int d = 0; d < w->rank; d++) {
        int from = w->rank - 1 - d; /* innermost first */
        a->size64[d] = w->shape[from];
        a->size[d] = wk_divisor_of(w->shape[from] < (i64)1 << 31 ? w->shape[from] : 1);
        for (int k = 0; k < n_in; k++)
            a->stride[k][d] = w->strides[k][from];
    }
}

bool wk_map_better_packed(const wk_tensor *t)
{
    if (t->rank < 2 || wk_count(t) < 1 << 16 || t->strides[t->rank - 1] < 2)
        return false;
    for (int d = 0; d + 1 < t->rank; d++) {
        if (t->strides[d] == 1 && t->shape[d] > 1)
            return true;
    }
    return false;
}

/* Two dims, of which every input walks the inner one by 0 or 1 and which is long enough to keep most threads of its blocks
 * busy. */
static bool are_rows(const wk_gpu_map *m, const wk_map_walk *w, int vec)
{
    enum { MOST_ROWS = 65535 }; /* of a grid's y */
    i64 tile = (i64)m->kernel->threads * vec, width = w->rank == 2 ? w->shape[1] : 0;
    if (width < tile / 2 || width >= (i64)1 << 30 || w->shape[0] > MOST_ROWS)
        return false;
    for (int k = 0; k < m->n_in; k++) {
        if (w->strides[k][1] != 0 && w->strides[k][1] != 1)
            return false;
    }
    return m->n_in > 0 && 8 * width >= 7 * ((width + tile - 1) / tile * tile);
}

/* Packed kernels do not loop, and those of one input do not ask whether it is one element. */
enum { MOST_BLOCKS = (1 << 24) - 1 }; /* a grid of HIP has less than 2^32 threads */
static int mode_of(const wk_gpu_map *m, const wk_map_walk *w, i64 count, int vec)
{
    bool repeats = m->n_in == 1 && count > 1 && (w->rank == 0 || w->strides[0][0] == 0);
    if (w->packed && !repeats && count / vec <= (i64)MOST_BLOCKS * m->kernel->threads)
        return 0;
    return are_rows(m, w, vec) ? 3 : wk_gpu_wide(count) ? 2 : 1;
}

static wk_status launch(const wk_call *c, const wk_gpu_map *m, const wk_map_walk *w, map_args *a)
{
    int vec = wk_map_width(m->in, m->n_in, m->out, w), mode = mode_of(m, w, a->count, vec);
    wk_instance instance = {.formula = m->formula, .i = {(short)m->n_in, (short)vec, (short)mode}};
    instance.t[0] = (unsigned char)m->out->dtype;
    for (int k = 0; k < 3; k++)
        instance.t[k + 1] = (unsigned char)(k < m->n_in ? m->in[k]->dtype : m->out->dtype);
    if (mode)
        fill_walk(w, m->n_in, a);
    for (int k = 0; k < m->n_in; k++)
        a->constant[k] = w->rank == 0 || w->strides[k][0] == 0;
    wk_grid grid = {.x =
                        wk_blocks(a->count, (i64)m->kernel->threads * vec, mode ? WK_GRID_MAX : MOST_BLOCKS)};
    if (mode == 3)
        grid = (wk_grid){.x = wk_blocks(w->shape[1], (i64)m->kernel->threads * vec, WK_GRID_MAX),
                         .y = w->shape[0]};
    return WK_LAUNCH(c, m->kernel, &instance, grid, *a);
}

wk_status wk_gpu_map_run(const wk_call *c, const wk_gpu_map *given)
{
    wk_gpu_map m = *given;
    wk_map_walk w;
    map_args a; /* a packed kernel does not look at the strides: they are filled in where one does */
    a.out = wk_ptr(m.out);
    a.count = wk_count(m.out);
    if (a.count == 0)
        return WK_OK;
    for (int k = 0; k < m.n_in; k++) {
        if (wk_map_better_packed(m.in[k]) && !(m.in[k] = wk_tensor_packed(m.in[k])))
            return wk_error_status();
        a.in[k] = wk_ptr(m.in[k]);
    }
    for (int i = 0; i < 3; i++) {
        a.f[i] = m.f[i];
        a.n[i] = m.n[i];
    }
    a.report = wk_report_of(c, m.slot);
    wk_map_plan(m.in, m.n_in, m.out, &w);
    return launch(c, &m, &w, &a);
}
