/* sort.c: sorting and the largest k on the GPU: tiles in shared memory, then merging, or choosing from the tiles'
 * best. */
#include "sort.h"
#include "copy.h"
#include "gpu.h"
#include "kernels/scan.h"
#include "ops/scan.h"
#include "walk.h"

static const wk_kernel tiles_kernel = {"sort", "sort_tiles", "sort_args", WK_SORT_THREADS, .types = 1};
static const wk_kernel merge_kernel = {"sort", "sort_merge", "sort_args", WK_SORT_THREADS, .types = 1};

enum { LOG_TILE = 11 };
_Static_assert(1 << LOG_TILE == WK_SORT_TILE, "the size of a tile");
static int64_t tiles_of(int64_t n) { return (n + WK_SORT_TILE - 1) / WK_SORT_TILE; }

/* Pairs for all lines; NULL with an error. */
static void *pairs_new(const wk_call *c, int64_t lines, int64_t n)
{
    int64_t words = wk_bytes(c->dtype) == 8 ? 2 : 1;
    wk_tensor *t = wk_tensor_new(c->device, WK_I64, 3, (int64_t[]){lines, n, words});
    return t ? wk_ptr(t) : NULL;
}

static wk_status launch(const wk_call *c, const wk_kernel *kernel, sort_args *a, int64_t tiles)
{
    a->tiles = wk_wide_divisor_of(tiles);
    a->blocks = (a->lines + a->tile_lines - 1) / a->tile_lines * tiles;
    return WK_LAUNCH(c, kernel, WK_INSTANCE(.t = {(unsigned char)c->dtype}),
                     (wk_grid){.x = wk_blocks(a->blocks, 1, WK_GRID_MAX)}, *a);
}

/* Lines that fit into a tile: done at once, several by a block. */
static wk_status sort_short(const wk_call *c, sort_args a)
{
    a.log_size = 3; /* what a thread sorts */
    while (1 << a.log_size < a.n)
        a.log_size++;
    a.tile_lines = 1;
    while (a.tile_lines << a.log_size < WK_SORT_TILE && a.tile_lines < a.lines)
        a.tile_lines *= 2;
    a.keep = (i32)a.k;
    a.to = NULL;
    return launch(c, &tiles_kernel, &a, 1);
}

/* Every tile keeps its best k, and so do tiles of those, until one tile is left. */
static wk_status choose(const wk_call *c, sort_args a)
{
    while (a.n > WK_SORT_TILE) {
        int64_t tiles = tiles_of(a.n);
        a.log_size = LOG_TILE;
        a.keep = (i32)a.k;
        a.tile_lines = 1;
        a.stride = tiles * a.k;
        a.to = pairs_new(c, a.lines, a.stride);
        if (!a.to)
            return wk_error_status();
        WK_TRY(launch(c, &tiles_kernel, &a, tiles));
        a.from = a.to;
        a.n = a.stride;
    }
    return sort_short(c, a);
}

/* Sorted tiles, then runs of twice the length until one is left; the last pass writes the results. */
static wk_status sort_long(const wk_call *c, sort_args a)
{
    void *rooms[2] = {pairs_new(c, a.lines, a.n), NULL};
    bool more = a.n > 2 * WK_SORT_TILE; /* than one merging pass */
    if (!rooms[0] || (more && !(rooms[1] = pairs_new(c, a.lines, a.n))))
        return wk_error_status();
    a.stride = a.n;
    a.log_size = LOG_TILE;
    a.keep = WK_SORT_TILE;
    a.tile_lines = 1;
    a.to = rooms[0];
    WK_TRY(launch(c, &tiles_kernel, &a, tiles_of(a.n)));
    for (a.run = WK_SORT_TILE; a.run < a.n; a.run *= 2) {
        bool last = 2 * a.run >= a.n;
        a.from = a.to;
        a.to = last ? NULL : a.from == rooms[0] ? rooms[1] : rooms[0];
        WK_TRY(launch(c, &merge_kernel, &a, tiles_of(last ? a.k : a.n)));
    }
    return WK_OK;
}

/* ---- lines along any dim ---- */

/* x with the dim last and its elements side by side. */
static const wk_tensor *lines_in(const wk_tensor *x, const int *forth, bool is_last)
{
    const wk_tensor *view = is_last ? x : wk_permute(x, forth);
    if (!view || view->rank == 0 || view->strides[view->rank - 1] == 1)
        return view;
    return wk_tensor_packed(view);
}

static wk_status sort_lines(const wk_call *c, const wk_tensor *x, sort_args a)
{
    wk_gpu_walk kept = {0};
    for (int d = 0; d + 1 < x->rank; d++)
        wk_gpu_walk_add(&kept, x->shape[d], x->strides[d], x->strides[d]);
    wk_gpu_walk_join(&kept);
    a.kept = wk_gpu_walk_dims(&kept, 1);
    a.x = wk_ptr(x);
    a.lines = wk_gpu_walk_count(&kept);
    if (a.n <= WK_SORT_TILE)
        return sort_short(c, a);
    return a.k <= WK_SORT_TILE / 2 ? choose(c, a) : sort_long(c, a);
}

static wk_status run_sorting(wk_call *c, bool descending, bool nan_first, wk_tensor *values,
                             wk_tensor *indices)
{
    const wk_tensor *given = c->in[0], *out = values ? values : indices;
    int dim = wk_shape_dim(given->rank, WK_PARAMS(c, wk_scan_params)->dim), forth[WK_MAX_RANK],
        back[WK_MAX_RANK];
    bool is_last = given->rank == 0 || dim == given->rank - 1;
    if (!out || wk_count(out) == 0)
        return WK_OK;
    wk_scan_dim_last(given->rank, dim, forth, back);
    const wk_tensor *x = lines_in(given, forth, is_last);
    wk_tensor *outs[2] = {values, indices}, *to[2];
    for (int i = 0; i < 2; i++) {
        to[i] = wk_scan_lines(outs[i], forth, is_last);
        if (!x || (outs[i] && !to[i]))
            return wk_error_status();
    }
    sort_args a = {.values = to[0] ? wk_ptr(to[0]) : NULL,
                   .indices = to[1] ? wk_ptr(to[1]) : NULL,
                   .n = given->rank ? given->shape[dim] : 1,
                   .k = given->rank ? out->shape[dim] : 1,
                   .flip = descending ? UINT64_MAX : 0,
                   .nan = nan_first ? 0 : UINT64_MAX};
    WK_TRY(sort_lines(c, x, a));
    for (int i = 0; i < 2 && !is_last; i++) {
        wk_tensor *moved = to[i] ? wk_permute(to[i], back) : NULL;
        if (to[i] && !moved)
            return wk_error_status();
        if (moved)
            WK_TRY(wk_gpu_copy(c, moved, outs[i]));
    }
    return WK_OK;
}

wk_status wk_gpu_run_sort(wk_call *c)
{
    return run_sorting(c, WK_PARAMS(c, wk_scan_params)->descending, false, c->out[0], NULL);
}

wk_status wk_gpu_run_argsort(wk_call *c)
{
    return run_sorting(c, WK_PARAMS(c, wk_scan_params)->descending, false, NULL, c->out[0]);
}

wk_status wk_gpu_run_topk(wk_call *c) { return run_sorting(c, true, true, c->out[0], c->out[1]); }
