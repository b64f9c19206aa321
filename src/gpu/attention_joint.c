/* attention_joint.c: the gradients of attention in one pass, on Hopper. */
#include "attention.h"

static const wk_kernel sample_kernel = {
    "attention_joint_grad", "attn_joint_sample", "attn_joint_args", 256, .types = 1, .ints = 1};
static const wk_kernel copies_kernel = {
    "attention_joint_grad", "attn_joint_copies", "attn_joint_args", 256, .types = 1, .ints = 1, .blocks = 3};
static const wk_kernel mend_kernel = {
    "attention_joint_grad", "attn_joint_mend", "attn_joint_args", 256, .types = 1, .ints = 1};
static const wk_kernel pass_kernel = {
    "attention_joint_grad", "attn_joint_grad", "attn_joint_args", 384, .types = 1, .ints = 1};

/* Streams whose passes may run at the same time; see may_pair. */
enum { STREAMS = 8 };

/* bf16 alone: weights have 11 bits there, which for f16 is too little. Short sequences are not worth the copies. */
bool wk_gpu_joint_takes(const wk_call *c, const attn_args *a, const attn_view *y)
{
    bool wanted = true;
    for (int i = 0; i < 3; i++)
        wanted = wanted && c->out[i] && wk_count(c->out[i]);
    return wanted && c->dtype == WK_BF16 && strcmp(wk_gpu_of(c->device)->facts.arch, "sm_90") == 0 &&
           a->window == 0 && (!a->causal || a->s == a->t) && a->d == a->dv && (a->d == 64 || a->d == 128) &&
           a->s >= WK_JOINT_ROUND && a->t >= WK_JOINT_ROUND && a->q.wide == 8 && a->k.wide == 8 &&
           a->v.wide == 8 && a->dy.wide == 8 && y->wide == 8 &&
           wk_gpu_stream_count(wk_gpu_of(c->device)) <= STREAMS;
}

/* The next part of a workspace. */
static void *part_of(int64_t *used, char *base, int64_t bytes)
{
    char *part = base ? base + *used : NULL;
    *used += (bytes + 1023) / 1024 * 1024;
    return part;
}

static int64_t rounded(int64_t rows) { return (rows + WK_JOINT_ROUND - 1) / WK_JOINT_ROUND * WK_JOINT_ROUND; }

/* Queries and dy, and what is known of queries. */
static int64_t tile_bytes(int64_t d, int64_t per_tile) { return 2 * per_tile * d * 2 + 1024; }

/* Lays the parts out from `base` on, where there is one; returns their bytes. Those that begin as zeros come first. */
static int64_t lay_out(attn_joint_args *j, int64_t d, int64_t per_tile, char *base, int64_t *zeros)
{
    int64_t heads = (int64_t)j->batch * j->hq, key_heads = (int64_t)j->batch * j->hk, used = 0;
    int64_t query_rows = heads * rounded(j->s), key_rows = key_heads * rounded(j->t);
    j->peaks = part_of(&used, base, WK_PEAKS * 4);
    j->turns = part_of(&used, base, (heads * j->tiles + 1) * 4);
    *zeros = used;
    j->keys16 = part_of(&used, base, key_rows * 2 * d * 2);
    j->tiles16 = part_of(&used, base, query_rows / per_tile * tile_bytes(d, per_tile));
    j->sums = part_of(&used, base, heads * j->tiles * per_tile * d * 4);
    return used;
}

static int pairs_of(const attn_joint_args *j) { return j->blocks - j->blocks / 2; }

/* Pairs of blocks wait for each other's first halves: all pairs of a unit must run at the same time. Blocks that wait for
 * one that has not begun must therefore leave room for it, those of other streams' passes too. */
static bool may_pair(const wk_call *c, const attn_joint_args *j)
{
    return (pairs_of(j) - 1) * STREAMS < (int)wk_gpu_of(c->device)->facts.units;
}

/* Causal blocks that are not paired wait for nobody, as each begins after those that come to a tile before it; but the longest begin
 * last, and have the device for themselves at the end: too long, unless there are many more blocks than run at once. */
static bool should_pair(const wk_call *c, const attn_joint_args *j)
{
    int64_t enough = 16 * (int64_t)wk_gpu_of(c->device)->facts.units;
    return j->causal && (int64_t)j->batch * j->hk * j->blocks < enough && may_pair(c, j);
}

static wk_status launch_all(const wk_call *c, const attn_joint_args *j, int d, int per_tile)
{
    wk_instance instance = {.t = {WK_BF16}, .i = {(short)d}};
    wk_grid sample = {.x = 1, .y = 4}, rows = {.x = 1024, .y = 4};
    i64 blocks = j->paired ? pairs_of(j) : j->blocks, tiles = (i64)j->batch * j->hq * j->tiles;
    i64 numbers = blocks * j->batch * j->hk + (tiles + WK_JOINT_END - 1) / WK_JOINT_END;
    i64 units = wk_gpu_of(c->device)->facts.units;
    wk_grid pass = {.x = j->paired || numbers < units ? numbers : units}; /* see joint_load_all */
    /* Keys and values; two tiles of queries, of scores, of sums; gates and walks. */
    pass.shared = 2 * WK_JOINT_KEYS * d * 2 +
                  2 * (tile_bytes(d, per_tile) + WK_JOINT_KEYS * per_tile * 2 + per_tile * d * 4) + 192;
    WK_TRY(WK_LAUNCH(c, &sample_kernel, &instance, sample, *j));
    WK_TRY(WK_LAUNCH(c, &copies_kernel, &instance, rows, *j));
    WK_TRY(WK_LAUNCH(c, &mend_kernel, &instance, rows, *j));
    return WK_LAUNCH(c, &pass_kernel, &instance, pass, *j);
}

wk_status wk_gpu_joint_gradients(const wk_call *c, const attn_args *a, attn_view y)
{
    int per_tile = a->d == 64 ? 128 : 64;
    attn_joint_args j = {.q = a->q,
                         .k = a->k,
                         .v = a->v,
                         .dy = a->dy,
                         .y = y,
                         .lse = a->lse,
                         .dq = wk_ptr(c->out[0]),
                         .dk = wk_ptr(c->out[1]),
                         .dv = wk_ptr(c->out[2]),
                         .batch = a->batch,
                         .hq = a->hq,
                         .hk = a->hk,
                         .group = a->group,
                         .s = a->s,
                         .t = a->t,
                         .blocks = (a->t + WK_JOINT_KEYS - 1) / WK_JOINT_KEYS,
                         .tiles = (a->s + per_tile - 1) / per_tile,
                         .causal = a->causal,
                         .scale = (float)a->scale};
    int64_t zeros, bytes = lay_out(&j, a->d, per_tile, NULL, &zeros);
    wk_tensor *room = wk_tensor_new(c->device, WK_U8, 1, &bytes);
    if (!room)
        return wk_error_status();
    lay_out(&j, a->d, per_tile, wk_ptr(room), &zeros);
    j.paired = should_pair(c, &j);
    WK_TRY(wk_gpu_zero(c, j.peaks, (size_t)zeros));
    return launch_all(c, &j, a->d, per_tile);
}
