/* order.c: a stable sort of pairs by key on the GPU. */
#include "order.h"
#include "kernels/order.h"

_Static_assert((int)WK_GPU_FEW_IDS == (int)WK_ORDER_FEW, "one number for both");

static const wk_kernel count = {"order", "order_count", "order_args", 256, .ints = 1};
static const wk_kernel sum = {"order", "order_sum", "order_args", 1024, .ints = 1};
static const wk_kernel ranges = {"order", "order_ranges", "order_args", 1024, .ints = 1};
static const wk_kernel move = {"order", "order_move", "order_args", 256, .ints = 1};

wk_status wk_gpu_pairs_new(const wk_call *c, i64 n, wk_gpu_pairs *pairs)
{
    wk_tensor *t = wk_tensor_new(c->device, WK_U32, 2, (int64_t[]){2, n});
    if (!t)
        return wk_error_status();
    *pairs = (wk_gpu_pairs){wk_ptr(t), (u32 *)wk_ptr(t) + n};
    return WK_OK;
}

static wk_status run_pass(const wk_call *c, const order_args *a)
{
    wk_grid grid = {.x = wk_blocks(a->blocks, 1, WK_GRID_MAX)};
    WK_TRY(WK_LAUNCH(c, &count, WK_INSTANCE(.i = {256}), grid, *a));
    WK_TRY(WK_LAUNCH(c, &sum, WK_INSTANCE(.i = {1024}), (wk_grid){.x = 1}, *a));
    return WK_LAUNCH(c, &move, WK_INSTANCE(.i = {256}), grid, *a);
}

static void swap(wk_gpu_pairs *a, wk_gpu_pairs *b)
{
    wk_gpu_pairs t = *a;
    *a = *b;
    *b = t;
}

static int passes_for(u32 most)
{
    int passes = 0;
    while (passes < 4 && most >> 8 * passes)
        passes++;
    return passes;
}

/* Blocks take ranges of keys, of about 128 pairs each, so that all of them work at once. */
static wk_status order_few(const wk_call *c, u32 most, order_args a, wk_gpu_pairs *pairs)
{
    wk_gpu_pairs to, mid;
    u32 blocks = (u32)wk_blocks(a.n, 128, wk_gpu_of(c->device)->facts.units);
    WK_TRY(wk_gpu_pairs_new(c, a.n, &to));
    WK_TRY(wk_gpu_pairs_new(c, a.n, &mid));
    a.to_keys = to.keys;
    a.to_places = to.places;
    a.mid_keys = mid.keys;
    a.mid_places = mid.places;
    a.width = most / blocks + 1;
    a.passes = passes_for(a.width - 1);
    *pairs = to;
    return WK_LAUNCH(c, &ranges, WK_INSTANCE(.i = {1024}), (wk_grid){.x = blocks}, a);
}

wk_status wk_gpu_order_ids(const wk_call *c, const wk_gpu_ids *ids, wk_gpu_pairs *pairs)
{
    order_args a = {.n = ids->n,
                    .ids = ids->at,
                    .id_step = ids->step,
                    .id_bytes = ids->bytes,
                    .limit = ids->limit,
                    .report = wk_report_of(c, ids->slot)};
    return order_few(c, (u32)ids->limit, a, pairs);
}

wk_status wk_gpu_order(const wk_call *c, i64 n, u32 most, wk_gpu_pairs *pairs)
{
    wk_gpu_pairs to;
    i64 blocks = (n + WK_ORDER_TILE - 1) / WK_ORDER_TILE;
    order_args a = {.n = n, .blocks = (u32)blocks, .keys = pairs->keys, .places = pairs->places};
    int passes = passes_for(most);
    if (passes == 0)
        return WK_OK;
    if (n <= WK_ORDER_FEW)
        return order_few(c, most, a, pairs);
    wk_tensor *counts = wk_tensor_new(c->device, WK_U32, 2, (int64_t[]){WK_ORDER_DIGITS, blocks});
    if (!counts)
        return wk_error_status();
    a.counts = wk_ptr(counts);
    WK_TRY(wk_gpu_pairs_new(c, n, &to));
    for (int pass = 0; pass < passes; pass++) {
        a.keys = pairs->keys;
        a.places = pairs->places;
        a.to_keys = to.keys;
        a.to_places = to.places;
        a.shift = 8 * pass;
        WK_TRY(run_pass(c, &a));
        swap(pairs, &to);
    }
    return WK_OK;
}
