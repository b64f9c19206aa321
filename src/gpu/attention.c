/* attention.c: attention and its gradients on the GPU, and multi-head attention with its projections. */
#include "attention.h"
#include "families.h"
#include "matmul.h"
#include "ops/attention.h"
#include "ops/matmul.h"
#include "core/random.h"
#include "wick/ops.h"

static const wk_kernel forward_kernel = {"attention", "attn_forward", "attn_args",
                                         256,         .types = 1,     .ints = 1};
static const wk_kernel thin_kernel = {"attention_thin", "attn_thin", "attn_args", 256, .types = 1, .ints = 2};
/* Made for blocks of 512 though they have 256: so two of them fit an NVIDIA multiprocessor's registers. Not for four rows of
 * f64, which take more. */
static const wk_kernel thin_half_kernel = {"attention_thin", "attn_thin", "attn_args", 512,
                                           .types = 1,       .ints = 2};
/* By the threads of a block. */
static const wk_kernel matrix_kernel[] = {
    {"attention_matrix", "attn_matrix", "attn_args", 128, .types = 1, .ints = 5},
    {"attention_matrix", "attn_matrix", "attn_args", 256, .types = 1, .ints = 5},
};
static const wk_kernel decode_kernel[] = {
    {"attention_decode", "attn_decode", "attn_args", 128, .types = 1, .ints = 5, .blocks = 2},
    {"attention_decode", "attn_decode", "attn_args", 256, .types = 1, .ints = 5},
};
static const wk_kernel matrix_grad_kernel[] = {
    {"attention_matrix_grad", "attn_matrix_grad", "attn_args", 128, .types = 1, .ints = 6},
    {"attention_matrix_grad", "attn_matrix_grad", "attn_args", 256, .types = 1, .ints = 6},
};
static const wk_kernel broad_kernel[] = {
    {"attention_broad", "attn_broad", "attn_args", 128, .types = 1, .ints = 5},
    {"attention_broad", "attn_broad", "attn_args", 256, .types = 1, .ints = 5},
};
/* Of few owners to a thread: rather no third block on a unit than registers spilled for it. */
static const wk_kernel broad_small_kernel = {"attention_broad", "attn_broad", "attn_args", 128,
                                             .types = 1,        .ints = 5,    .blocks = 1};
static const wk_kernel broad_grad_kernel[] = {
    {"attention_broad_grad", "attn_broad_grad", "attn_args", 128, .types = 1, .ints = 6},
    {"attention_broad_grad", "attn_broad_grad", "attn_args", 256, .types = 1, .ints = 6},
};
static const wk_kernel join_kernel = {"attention", "attn_join", "attn_join_args", 256, .types = 1};
static const wk_kernel check_kernel = {"attention", "attn_check", "attn_check_args", 256, .types = 1};
static const wk_kernel delta_kernel = {"attention_grad", "attn_delta", "attn_delta_args", 256, .types = 1};
static const wk_kernel grad_kernel = {"attention_grad", "attn_grad", "attn_args", 256, .types = 1, .ints = 2};

/* ---- from tensors to arguments ---- */

/* Whether n neighbours along d may be read at once, whatever the row. */
static bool reads_at_once(const attn_view *v, i64 n, size_t bytes)
{
    return v->d == 1 && v->b % n == 0 && v->h % n == 0 && v->s % n == 0 &&
           (size_t)v->data % ((size_t)n * bytes) == 0;
}

static attn_view with_width(attn_view v, wk_dtype dtype)
{
    size_t bytes = wk_bytes(dtype);
    v.wide = bytes == 2 && reads_at_once(&v, 8, bytes) ? 8 : reads_at_once(&v, 4, bytes) ? 4 : 1;
    return v;
}

/* t as [b, h, rows, width]. */
static attn_view view_of(const wk_tensor *t)
{
    attn_view v = {wk_ptr(t), t->strides[0], t->strides[1], t->strides[2], t->strides[3], 1};
    return with_width(v, t->dtype);
}

/* t as [rows, h, width], all sequences. */
static attn_view packed_view_of(const wk_tensor *t)
{
    attn_view v = {wk_ptr(t), 0, t->strides[1], t->strides[0], t->strides[2], 1};
    return with_width(v, t->dtype);
}

/* Sizes as the kernels count them; q, k, v are views of [b, h, rows, width]. */
static wk_status fill_sizes(const wk_call *c, attn_args *a, int64_t b, int64_t hq, int64_t hk, int64_t s,
                            int64_t t, int64_t d, int64_t dv)
{
    const int64_t most = INT32_MAX / 2;
    int64_t group = hk ? hq / hk : 1;
    if (group * s > most || t > most || d > most || dv > most || b * hk > most || hq > most)
        return wk_call_fail(c, WK_ERR_UNSUPPORTED, c->device->name, "sizes beyond 2^30");
    a->batch = (i32)b;
    a->hq = (i32)hq;
    a->hk = (i32)hk;
    a->group = (i32)group;
    a->s = (i32)s;
    a->t = (i32)t;
    a->d = (i32)d;
    a->dv = (i32)dv;
    a->units = (i32)(b * hk);
    a->rows = b * hq * s;
    a->splits = 1;
    a->split_keys = a->t;
    return WK_OK;
}

/* Cuts n rows of a unit (of all sequences, where they are laid end to end) into blocks. */
static void cut_rows(attn_args *a, int64_t n, int owners)
{
    a->owners = owners;
    a->blocks = (i32)(a->sequences.q ? n / owners + a->batch : (n + owners - 1) / owners);
}

static void fill_options(attn_args *a, const wk_sdpa_options *o)
{
    a->scale = wk_sdpa_scale(o, a->d);
    a->softcap = o->softcap;
    a->causal = (i32)o->causal;
    a->window = o->window;
}

static void fill_mask(attn_args *a, const wk_tensor *mask)
{
    if (!mask)
        return;
    wk_tensor m = wk_sdpa_mask(mask, a->batch, a->hq, a->s, a->t);
    a->mask = view_of(&m);
    a->mask_kind = m.dtype == WK_U8 ? WK_MASK_KEEP : m.dtype == WK_F32 ? WK_MASK_F32 : WK_MASK_OWN;
}

static wk_status fill_batch(const wk_call *c, attn_args *a, const wk_tensor *q, const wk_tensor *k,
                            const wk_tensor *v, const wk_tensor *mask)
{
    WK_TRY(fill_sizes(c, a, q->shape[0], q->shape[1], k->shape[1], q->shape[2], k->shape[2], q->shape[3],
                      v->shape[3]));
    a->q = view_of(q);
    a->k = view_of(k);
    a->v = view_of(v);
    fill_mask(a, mask);
    return WK_OK;
}

/* y [b, h, rows, width], rows packed. */
static void fill_result(attn_args *a, const wk_tensor *y)
{
    a->y = wk_ptr(y);
    a->y_b = y->strides[0];
    a->y_h = y->strides[1];
    a->y_s = y->strides[2];
}

/* ---- launches ---- */

/* Columns of a result that one block makes; wider ones take several blocks. 256 need more than 256 registers on AMD. */
static int columns_of(const wk_call *c, wk_dtype dtype, int64_t width)
{
    const wk_gpu *g = wk_gpu_of(c->device);
    bool roomy = c->device->kind == WK_KIND_CUDA || (g->facts.wave == 64 && wk_gpu_has_matrix(g));
    return dtype == WK_F64 || width <= 64 ? 64 : width <= 128 || !roomy ? 128 : 256;
}

static int64_t chunks_of(int64_t width, int columns) { return width ? (width + columns - 1) / columns : 1; }

static wk_grid grid_of(const attn_args *a, int64_t width, int columns)
{
    return (wk_grid){.x = wk_blocks((i64)a->blocks * a->units, 1, WK_GRID_MAX),
                     .y = chunks_of(width, columns),
                     .z = a->splits};
}

/* Cuts the keys into splits of so many, and makes room for the parts. */
static wk_status split_keys(const wk_call *c, attn_args *a, wk_dtype dtype, int64_t keys)
{
    a->split_keys = (i32)keys;
    a->splits = (i32)((a->t + keys - 1) / keys);
    wk_dtype compute = wk_stat_dtype(dtype);
    wk_tensor *y = wk_tensor_new(c->device, compute, 3, (int64_t[]){a->splits, a->rows, a->dv});
    wk_tensor *state = wk_tensor_new(c->device, compute, 3, (int64_t[]){2, a->splits, a->rows});
    if (!y || !state)
        return wk_error_status();
    a->part_y = wk_ptr(y);
    a->part_top = wk_ptr(state);
    a->part_sum = (char *)a->part_top + a->splits * a->rows * (i64)wk_bytes(compute);
    return WK_OK;
}

/* Cuts the keys where there are too few rows for `each` blocks on every unit of the device. */
static wk_status choose_splits(const wk_call *c, attn_args *a, wk_dtype dtype, int64_t each,
                               int64_t keys_each)
{
    int64_t wanted = each * (int64_t)wk_gpu_of(c->device)->facts.units / ((int64_t)a->blocks * a->units);
    int64_t most = a->t / keys_each, splits = wanted < most ? wanted : most;
    if (splits < 2)
        return WK_OK;
    splits = splits > 128 ? 128 : splits;
    return split_keys(c, a, dtype, ((a->t + splits - 1) / splits + 63) / 64 * 64);
}

static wk_status launch_join(const wk_call *c, const attn_args *a, wk_dtype dtype)
{
    attn_join_args j = {.part_y = a->part_y,
                        .part_top = a->part_top,
                        .part_sum = a->part_sum,
                        .y = a->y,
                        .lse = a->lse,
                        .rows = a->rows,
                        .n1 = a->hq,
                        .n2 = a->s,
                        .y0 = a->y_b,
                        .y1 = a->y_h,
                        .y2 = a->y_s,
                        .dv = a->dv,
                        .splits = a->splits};
    wk_grid grid = {.x = wk_blocks(j.rows, 256 / wk_gpu_of(c->device)->facts.wave, WK_GRID_MAX)};
    return WK_LAUNCH(c, &join_kernel, WK_INSTANCE(.t = {(unsigned char)dtype}), grid, j);
}

/* Whether the few rows of a unit are better off the thin way. */
static bool is_thin(const attn_args *a)
{
    return !a->sequences.q && a->group * a->s <= WK_ATTN_THIN && a->d <= WK_ATTN_WIDEST &&
           a->dv <= WK_ATTN_WIDEST && a->dv > 0 && !a->drop_below;
}

static wk_status launch_thin(const wk_call *c, attn_args *a, wk_dtype dtype)
{
    size_t bytes = wk_bytes(dtype);
    i64 vec = 16 / (i64)bytes;
    int rows = a->rows == 0 ? 1 : a->group * a->s, made_for = rows == 1 ? 1 : rows <= 4 ? 4 : WK_ATTN_THIN;
    bool wide = a->d % vec == 0 && a->dv % vec == 0 && reads_at_once(&a->k, vec, bytes) &&
                reads_at_once(&a->v, vec, bytes);
    bool half = c->device->kind == WK_KIND_CUDA && made_for < (dtype == WK_F64 ? 4 : WK_ATTN_THIN);
    cut_rows(a, rows, WK_ATTN_THIN);
    WK_TRY(choose_splits(c, a, dtype, 2, WK_ATTN_CHUNK));
    wk_grid grid = {.x = wk_blocks(a->units, 1, WK_GRID_MAX), .z = a->splits, .threads = 256};
    WK_TRY(WK_LAUNCH(
        c, half ? &thin_half_kernel : &thin_kernel,
        WK_INSTANCE(.t = {(unsigned char)dtype}, .i = {(short)made_for, (short)(wide ? vec : 1)}), grid, *a));
    return a->splits > 1 ? launch_join(c, a, dtype) : WK_OK;
}

static int widest(const attn_args *a) { return a->d > a->dv ? a->d : a->dv; }

/* Matrix units take f16 and bf16, and on CDNA f32; without dropout. */
static bool takes_matrix(const wk_call *c, const attn_args *a, wk_dtype dtype)
{
    const wk_gpu *g = wk_gpu_of(c->device);
    return (wk_bytes(dtype) == 2 || (dtype == WK_F32 && g->facts.wave == 64)) && !a->drop_below &&
           wk_gpu_has_matrix(g);
}

/* Nothing but scaled products. */
static short is_plain(const attn_args *a)
{
    return a->mask_kind == WK_MASK_NONE && a->softcap == 0 && a->scale > 0;
}
/* How blocks are made: for heads up to `d` wide, of `waves` times 16 owners, with tiles of n others. */
typedef struct {
    int d, n, waves, shared;
} matrix_shape;

static matrix_shape shape_for(const wk_call *c, const attn_args *a, wk_dtype dtype)
{
    const wk_gpu *g = wk_gpu_of(c->device);
    bool hopper = strcmp(g->facts.arch, "sm_90") == 0, plain = is_plain(a);
    int width = widest(a), d = width <= 64 ? 64 : width <= 128 ? 128 : 256;
    matrix_shape m = {.d = d, .n = 64, .waves = hopper ? 8 : 4};
    /* More would take too many registers, or too much code. */
    if (hopper)
        m.n = plain && d <= 128 ? 128 : 64;
    else if (c->device->kind == WK_KIND_CUDA)
        m.n = d <= 128 ? 64 : 32;
    else if (g->facts.wave == 64)
        m.n = plain && d <= 128 && dtype != WK_F32 ? 64 : 32;
    else
        m.n = plain && d <= 64 ? 32 : 16;
    if (c->device->kind == WK_KIND_CUDA) { /* tiles of keys and values; queries, where they have to stay */
        int rows = hopper ? 5 * m.n + m.waves * 16 : 4 * m.n + (d > 128 ? 64 : 0);
        m.shared = rows * d * 2 + 16;
    }
    return m;
}

/* Weights in two parts are as good as f32; where fast products are allowed they are rounded. */
static short weight_parts(wk_dtype dtype)
{
    return dtype == WK_F32 || wk_matmul_precision() == WK_PRECISION_FAST ? 1 : 2;
}

static const wk_kernel *kernel_of(const wk_call *c, const wk_kernel *list, int waves)
{
    return &list[waves * wk_gpu_of(c->device)->facts.wave / 128 - 1];
}

static wk_status launch_matrix(const wk_call *c, attn_args *a, wk_dtype dtype)
{
    matrix_shape m = shape_for(c, a, dtype);
    cut_rows(a, (int64_t)a->group * a->s, m.waves * 16);
    if (!a->sequences.q)
        WK_TRY(choose_splits(c, a, dtype, 2, 128));
    wk_instance instance = {.t = {(unsigned char)dtype},
                            .i = {(short)m.d, (short)m.n, (short)m.waves, is_plain(a), weight_parts(dtype)}};
    wk_grid grid = {
        .x = wk_blocks((i64)a->blocks * a->units, 1, WK_GRID_MAX), .z = a->splits, .shared = m.shared};
    grid.y = grid.x ? ((i64)a->blocks * a->units + grid.x - 1) / grid.x : 1;
    WK_TRY(WK_LAUNCH(c, kernel_of(c, matrix_kernel, m.waves), &instance, grid, *a));
    return a->splits > 1 ? launch_join(c, a, dtype) : WK_OK;
}

static bool is_rdna(const wk_call *c)
{
    return c->device->kind == WK_KIND_ROCM && wk_gpu_of(c->device)->facts.wave == 32;
}

/* Up to 16 rows of a unit, whose keys and values are read 16 bytes at a time. */
static bool is_decoding(const wk_call *c, const attn_args *a, wk_dtype dtype)
{
    bool rdna3 =
        strncmp(wk_gpu_of(c->device)->facts.arch, "gfx11", 5) == 0; /* its operands hold everything twice */
    return wk_bytes(dtype) == 2 && takes_matrix(c, a, dtype) && widest(a) <= 128 && !rdna3 &&
           !a->sequences.q && a->group * a->s <= 16 && a->dv > 0 && a->d % 8 == 0 && a->dv % 8 == 0 &&
           a->q.wide == 8 && a->k.wide == 8 && a->v.wide == 8;
}

static wk_status launch_decoding(const wk_call *c, attn_args *a, wk_dtype dtype)
{
    bool nvidia = c->device->kind == WK_KIND_CUDA, few = a->group * a->s <= 8;
    cut_rows(a, 16, 16);
    bool brief = nvidia && a->t > 128 &&
                 (a->t + 127) / 128 * (int64_t)a->units <= 2 * (int64_t)wk_gpu_of(c->device)->facts.units;
    WK_TRY(brief ? split_keys(c, a, dtype, 128) : choose_splits(c, a, dtype, nvidia ? 1 : 2, 128));
    /* NVIDIA: all that a multiprocessor has room for, so that one block is enough; or half of it, so that the next kernel may
     * begin beside it, where there is little to do. */
    int waves = nvidia && a->split_keys > 256 ? 8 : 4;
    int d = widest(a) > 64 ? 128 : 64;
    if (a->splits > 1 && a->units <= WK_GPU_COUNTERS)
        a->counters = wk_gpu_counters(c);
    wk_instance instance = {
        .t = {(unsigned char)dtype},
        .i = {(short)d, nvidia && few ? 8 : 16, (short)waves, is_plain(a), weight_parts(dtype)}};
    wk_grid grid = {.x = wk_blocks(a->units, 1, WK_GRID_MAX), .z = a->splits};
    if (nvidia) /* what the waves leave for each other: 16 rows, with two numbers each */
        grid.shared = waves * 16 * (d + 4 + 2) * 4;
    WK_TRY(WK_LAUNCH(c, kernel_of(c, decode_kernel, waves), &instance, grid, *a));
    return a->splits > 1 && !a->counters ? launch_join(c, a, dtype) : WK_OK;
}

/* How blocks are made for f32 without matrix units: for heads up to `d` wide, of `rows` owners, tm to a thread, with tiles
 * of n others. */
typedef struct {
    int d, rows, tm, n, shared;
} broad_shape;

static int broad_shared(broad_shape m, bool gradient)
{
    int owned = gradient ? 2 * m.rows : m.rows;
    return ((owned + 2 * m.n) * (m.d + 4) + m.rows * (m.n + m.d / 8)) * 4;
}

/* False: none that fits; NVIDIA's before sm_80, which has matrix units too, do not copy to shared memory by themselves. */
static bool broad_for(const wk_call *c, const attn_args *a, wk_dtype dtype, bool gradient, broad_shape *m)
{
    const wk_gpu *g = wk_gpu_of(c->device);
    bool nvidia = c->device->kind == WK_KIND_CUDA;
    int d = widest(a) <= 64 ? 64 : 128;
    broad_shape wide = {.d = d, .rows = 128, .tm = 8, .n = gradient || !is_plain(a) ? 32 : 64};
    broad_shape small = {.d = d, .rows = 64, .tm = 4, .n = 32};
    bool fits = nvidia && broad_shared(wide, gradient) <= g->facts.shared_bytes;
    *m = fits ? wide : small;
    m->shared = nvidia ? broad_shared(*m, gradient) : 0;
    return dtype == WK_F32 && !a->drop_below && widest(a) <= 128 && (!nvidia || wk_gpu_has_matrix(g)) &&
           broad_shared(*m, gradient) <= g->facts.shared_bytes;
}

static const wk_kernel *broad_kernel_of(const wk_kernel *list, broad_shape m)
{
    return &list[m.rows / m.tm * m.d / 8 / 128 - 1];
}

static wk_status launch_broad(const wk_call *c, attn_args *a, broad_shape m)
{
    cut_rows(a, (int64_t)a->group * a->s, m.rows);
    if (!a->sequences.q)
        WK_TRY(choose_splits(c, a, WK_F32, 2, 128));
    wk_instance instance = {.t = {WK_F32},
                            .i = {(short)m.d, (short)m.rows, (short)m.tm, (short)m.n, is_plain(a)}};
    wk_grid grid = {
        .x = wk_blocks((i64)a->blocks * a->units, 1, WK_GRID_MAX), .z = a->splits, .shared = m.shared};
    bool small = m.d == 64 && m.tm < 8;
    WK_TRY(WK_LAUNCH(c, small ? &broad_small_kernel : broad_kernel_of(broad_kernel, m), &instance, grid, *a));
    return a->splits > 1 ? launch_join(c, a, WK_F32) : WK_OK;
}

/* dtype: of q, k, v and y. */
static wk_status launch_forward(const wk_call *c, attn_args *a, wk_dtype dtype)
{
    int columns = columns_of(c, dtype, a->dv);
    broad_shape broad;
    if (is_decoding(c, a, dtype))
        return launch_decoding(c, a, dtype);
    if (is_thin(a))
        return launch_thin(c, a, dtype);
    if (takes_matrix(c, a, dtype) && widest(a) <= (is_rdna(c) || dtype == WK_F32 ? 128 : 256))
        return launch_matrix(c, a, dtype);
    if (broad_for(c, a, dtype, false, &broad))
        return launch_broad(c, a, broad);
    cut_rows(a, (int64_t)a->group * a->s, WK_ATTN_ROWS);
    if (!a->sequences.q)
        WK_TRY(choose_splits(c, a, dtype, chunks_of(a->dv, columns) > 1 ? 1 : 2, 128));
    WK_TRY(WK_LAUNCH(c, &forward_kernel, WK_INSTANCE(.t = {(unsigned char)dtype}, .i = {(short)columns}),
                     grid_of(a, a->dv, columns), *a));
    return a->splits > 1 ? launch_join(c, a, dtype) : WK_OK;
}

/* ---- sdpa ---- */

static wk_status run_sdpa(wk_call *c)
{
    const wk_tensor *y = c->out[0], *lse = c->out[1];
    attn_args a = {0};
    if (wk_count(y) == 0 && (!lse || wk_count(lse) == 0))
        return WK_OK;
    WK_TRY(fill_batch(c, &a, c->in[0], c->in[1], c->in[2], c->in[3]));
    fill_options(&a, c->params);
    fill_result(&a, y);
    a.lse = lse ? wk_ptr(lse) : NULL;
    return launch_forward(c, &a, c->dtype);
}

static wk_status launch_delta(const wk_call *c, attn_args *a)
{
    wk_tensor *delta = wk_tensor_new(c->device, wk_stat_dtype(c->dtype), 1, &a->rows);
    if (!delta)
        return wk_error_status();
    a->delta = wk_ptr(delta);
    attn_delta_args d = {.y = view_of(c->in[3]),
                         .dy = a->dy,
                         .delta = wk_ptr(delta),
                         .rows = a->rows,
                         .hq = a->hq,
                         .s = a->s,
                         .dv = a->dv};
    wk_grid grid = {.x = wk_blocks(d.rows, 256 / wk_gpu_of(c->device)->facts.wave, WK_GRID_MAX)};
    return WK_LAUNCH(c, &delta_kernel, WK_INSTANCE(.t = {(unsigned char)c->dtype}), grid, d);
}

/* As shape_for. together: whether dk and dv fit one block's registers. */
static matrix_shape grad_shape_for(const wk_call *c, const attn_args *a, bool *together)
{
    matrix_shape m = shape_for(c, a, c->dtype);
    bool hopper = m.waves == 8;
    m.n = hopper || (m.d == 64 && is_plain(a) && c->dtype != WK_F32) ? 64 : 32;
    if (is_rdna(c))
        m.n = 16;
    *together = wk_gpu_of(c->device)->facts.wave == 64 || (hopper && (m.d == 64 || is_plain(a)));
    if (m.shared) { /* the tiles, the owners, and what is known of queries */
        int rows = hopper ? 6 * m.n + 2 * 16 * m.waves : 4 * m.n;
        m.shared = rows * m.d * 2 + 3 * m.n * 16 + 64;
    }
    return m;
}

static wk_status launch_matrix_gradient(const wk_call *c, attn_args *a, matrix_shape m, int of)
{
    cut_rows(a, of == WK_GRAD_Q ? (int64_t)a->group * a->s : a->t, m.waves * 16);
    wk_instance instance = {
        .t = {(unsigned char)c->dtype},
        .i = {(short)m.d, (short)m.n, (short)m.waves, (short)of, is_plain(a), weight_parts(c->dtype)}};
    wk_grid grid = {.x = wk_blocks((i64)a->blocks * a->units, 1, WK_GRID_MAX), .shared = m.shared};
    return WK_LAUNCH(c, kernel_of(c, matrix_grad_kernel, m.waves), &instance, grid, *a);
}

static bool is_wanted(const wk_tensor *t) { return t && wk_count(t); }

static wk_status matrix_gradients(const wk_call *c, attn_args a)
{
    bool together;
    matrix_shape m = grad_shape_for(c, &a, &together);
    const wk_tensor *dq = c->out[0], *dk = c->out[1], *dv = c->out[2];
    if (is_wanted(dq)) {
        a.y = wk_ptr(dq);
        WK_TRY(launch_matrix_gradient(c, &a, m, WK_GRAD_Q));
    }
    a.y = is_wanted(dk) ? wk_ptr(dk) : NULL;
    a.y2 = is_wanted(dv) ? wk_ptr(dv) : NULL;
    if (a.y && a.y2 && together)
        return launch_matrix_gradient(c, &a, m, WK_GRAD_KV);
    if (a.y)
        WK_TRY(launch_matrix_gradient(c, &a, m, WK_GRAD_K));
    return a.y2 ? launch_matrix_gradient(c, &a, m, WK_GRAD_V) : WK_OK;
}

/* dq, dk or dv. */
static wk_status launch_broad_gradient(const wk_call *c, attn_args a, broad_shape m, int of)
{
    a.y = wk_ptr(c->out[of]);
    cut_rows(&a, of == WK_GRAD_Q ? (int64_t)a.group * a.s : a.t, m.rows);
    wk_instance instance = {
        .t = {WK_F32}, .i = {(short)m.d, (short)m.rows, (short)m.tm, (short)m.n, (short)of, is_plain(&a)}};
    wk_grid grid = {.x = wk_blocks((i64)a.blocks * a.units, 1, WK_GRID_MAX), .shared = m.shared};
    return WK_LAUNCH(c, broad_kernel_of(broad_grad_kernel, m), &instance, grid, a);
}

static wk_status launch_gradient(const wk_call *c, attn_args a, int of)
{
    int64_t owners = of == WK_GRAD_Q ? (int64_t)a.group * a.s : a.t, width = of == WK_GRAD_V ? a.dv : a.d;
    int columns = columns_of(c, c->dtype, width);
    a.y = wk_ptr(c->out[of]);
    cut_rows(&a, owners, WK_ATTN_ROWS);
    wk_instance instance = {.t = {(unsigned char)c->dtype}, .i = {(short)columns, (short)of}};
    return WK_LAUNCH(c, &grad_kernel, &instance, grid_of(&a, width, columns), a);
}

static wk_status fill_backward(const wk_call *c, attn_args *a)
{
    WK_TRY(fill_batch(c, a, c->in[0], c->in[1], c->in[2], c->in[6]));
    fill_options(a, c->params);
    a->dy = view_of(c->in[5]);
    return WK_OK;
}

static bool takes_joint(const wk_call *c, const attn_args *a)
{
    attn_view y = view_of(c->in[3]);
    return is_plain(a) && wk_gpu_joint_takes(c, a, &y);
}

bool wk_gpu_sdpa_backward_is_joint(const wk_call *c)
{
    attn_args a = {0};
    return fill_backward(c, &a) == WK_OK && takes_joint(c, &a);
}

static wk_status run_sdpa_backward(wk_call *c)
{
    attn_args a = {0};
    broad_shape broad;
    WK_TRY(fill_backward(c, &a));
    const wk_tensor *lse = wk_tensor_packed(c->in[4]);
    if (!lse)
        return wk_error_status();
    a.lse = wk_ptr(lse);
    if (takes_joint(c, &a)) {
        wk_status status = wk_gpu_joint_gradients(c, &a, view_of(c->in[3]));
        if (status != WK_ERR_MEMORY)
            return status;
        wk_error_clear(); /* the others need less */
    }
    WK_TRY(launch_delta(c, &a));
    if (takes_matrix(c, &a, c->dtype) && widest(&a) <= 128)
        return matrix_gradients(c, a);
    bool is_broad = broad_for(c, &a, c->dtype, true, &broad);
    for (int of = WK_GRAD_Q; of <= WK_GRAD_V; of++) {
        if (is_wanted(c->out[of]))
            WK_TRY(is_broad ? launch_broad_gradient(c, a, broad, of) : launch_gradient(c, a, of));
    }
    return WK_OK;
}

/* ---- sequences laid end to end ---- */

static wk_status check_sequences(const wk_call *c, int slot, int64_t total)
{
    const wk_tensor *t = c->in[slot];
    attn_check_args a = {.data = wk_ptr(t),
                         .stride = t->strides[0],
                         .count = t->shape[0],
                         .total = total,
                         .is_signed = t->dtype == WK_I32,
                         .report = wk_report_of(c, slot)};
    wk_grid grid = {.x = wk_blocks(a.count, 256, WK_GRID_MAX)};
    return WK_LAUNCH(c, &check_kernel, WK_INSTANCE(.t = {WK_U32}), grid, a);
}

static wk_status run_sdpa_varlen(wk_call *c)
{
    const wk_tensor *q = c->in[0], *k = c->in[1], *v = c->in[2], *y = c->out[0];
    int64_t n = c->in[3]->shape[0] - 1;
    attn_args a = {.sequences = {.q = wk_ptr(c->in[3]),
                                 .k = wk_ptr(c->in[4]),
                                 .q_stride = c->in[3]->strides[0],
                                 .k_stride = c->in[4]->strides[0],
                                 .q_signed = c->in[3]->dtype == WK_I32,
                                 .k_signed = c->in[4]->dtype == WK_I32,
                                 .q_total = q->shape[0],
                                 .k_total = k->shape[0]},
                   .y = wk_ptr(y),
                   .y_h = y->strides[1],
                   .y_s = y->strides[0]};
    WK_TRY(check_sequences(c, 3, q->shape[0]));
    WK_TRY(check_sequences(c, 4, k->shape[0]));
    if (wk_count(y) == 0 || n == 0)
        return WK_OK;
    WK_TRY(
        fill_sizes(c, &a, n, q->shape[1], k->shape[1], q->shape[0], k->shape[0], q->shape[2], v->shape[2]));
    fill_options(&a, c->params);
    a.q = packed_view_of(q);
    a.k = packed_view_of(k);
    a.v = packed_view_of(v);
    a.units = a.hk;
    return launch_forward(c, &a, c->dtype);
}

/* ---- multi-head attention ----
 * What lies between the products is in the compute dtype, so that f16 and bf16 are rounded once; where fast products are
 * allowed it is in the call's dtype. */

static wk_dtype dtype_between(const wk_call *c)
{
    return wk_matmul_precision() == WK_PRECISION_FAST ? c->dtype : wk_stat_dtype(c->dtype);
}

/* t in another dtype; t itself where it has that. */
static const wk_tensor *in_dtype(const wk_tensor *t, wk_dtype dtype)
{
    return t->dtype == dtype ? t : wk_cast(t, dtype);
}

/* y = x . weight^T + bias; x and weight of one dtype, y and bias of one. */
static wk_status project_into(const wk_call *c, const wk_tensor *x, const wk_tensor *weight,
                              const wk_tensor *bias, wk_tensor *y)
{
    wk_tensor x_rows, y_rows, turned = wk_flipped(weight);
    if (x->dtype == y->dtype) {
        wk_linear_params none = {WK_ACT_NONE};
        wk_call l = {.op = wk_op_find("linear"), .params = &none, .in = {x, weight, bias}, .out = {y}};
        return wk_call_run(&l);
    }
    WK_TRY(wk_as_rows(x, &x_rows));
    WK_TRY(wk_as_rows(y, &y_rows));
    return wk_gpu_product(c, &x_rows, &turned, &y_rows, bias, NULL, WK_ACT_NONE);
}

/* Rows [i e, (i + n) e) of a weight or bias. */
static wk_tensor rows_of(const wk_tensor *t, int64_t i, int64_t n, int64_t e)
{
    wk_tensor v = wk_tensor_local(t);
    v.offset += i * e * t->strides[0];
    v.shape[0] = n * e;
    return v;
}

static bool same_view(const wk_tensor *a, const wk_tensor *b)
{
    return wk_ptr(a) == wk_ptr(b) && memcmp(a->shape, b->shape, sizeof(int64_t) * 3) == 0 &&
           memcmp(a->strides, b->strides, sizeof(int64_t) * 3) == 0;
}

/* Parts [i, i + n) of the input projection applied to x [b, rows, e]. */
static const wk_tensor *project(const wk_call *c, const wk_tensor *x, int64_t i, int64_t n)
{
    int64_t e = x->shape[2];
    wk_tensor weight = rows_of(c->in[3], i, n, e), bias = rows_of(c->in[4], i, n, e);
    wk_tensor *y =
        wk_tensor_new(c->device, dtype_between(c), 3, (int64_t[]){x->shape[0], x->shape[1], n * e});
    const wk_tensor *b = y ? in_dtype(&bias, y->dtype) : NULL;
    return b && project_into(c, x, &weight, b, y) == WK_OK ? y : NULL;
}

/* Part i of n in a projection [b, rows, n e], as heads: [b, heads, rows, e / heads]. */
static wk_tensor heads_of(const wk_tensor *t, int64_t i, int64_t n, int64_t heads)
{
    wk_tensor v = wk_tensor_local(t);
    int64_t rows = t->shape[1], e = t->shape[2] / n;
    v.rank = 4;
    memcpy(v.shape, (int64_t[]){t->shape[0], heads, rows, e / heads}, 4 * sizeof(int64_t));
    memcpy(v.strides, (int64_t[]){rows * n * e, e / heads, n * e, 1}, 4 * sizeof(int64_t));
    v.offset += i * e;
    return v;
}

/* q, k and v as heads; one product where all three come from the same tensor. */
static wk_status project_all(const wk_call *c, wk_tensor *qkv)
{
    int64_t heads = WK_PARAMS(c, wk_mha_options)->heads;
    bool one = same_view(c->in[0], c->in[1]) && same_view(c->in[0], c->in[2]);
    const wk_tensor *all = one ? project(c, c->in[0], 0, 3) : NULL;
    for (int i = 0; i < 3; i++) {
        const wk_tensor *part = one ? all : project(c, c->in[i], i, 1);
        if (!part)
            return wk_error_status();
        qkv[i] = heads_of(part, one ? i : 0, one ? 3 : 1, heads);
    }
    return WK_OK;
}

static wk_status run_mha(wk_call *c)
{
    const wk_mha_options *o = c->params;
    wk_dtype between = dtype_between(c);
    attn_args a = {0};
    wk_tensor qkv[3];
    if (wk_count(c->out[0]) == 0)
        return WK_OK;
    wk_tensor *mixed = wk_tensor_new(c->device, between, 3, c->out[0]->shape);
    const wk_tensor *mask = c->in[7], *weight = in_dtype(c->in[5], between);
    if (mask && mask->dtype == c->dtype)
        mask = in_dtype(mask, between);
    if (!mixed || !weight || (c->in[7] && !mask))
        return wk_error_status();
    WK_TRY(project_all(c, qkv));
    WK_TRY(fill_batch(c, &a, &qkv[0], &qkv[1], &qkv[2], mask));
    wk_tensor y = heads_of(mixed, 0, 1, o->heads);
    a.scale = 1 / sqrt((double)a.d);
    a.causal = (i32)o->causal;
    a.drop_below = wk_dropout_threshold(o->dropout);
    a.keep = wk_dropout_scale(o->dropout);
    a.seed = (u64)o->seed;
    a.offset = (u64)o->offset;
    fill_result(&a, &y);
    WK_TRY(launch_forward(c, &a, between));
    return project_into(c, mixed, weight, c->in[6], c->out[0]);
}

const wk_impl wk_gpu_impls_attention[] = {
    {"sdpa", "kernel", run_sdpa, NULL, NULL},
    {"sdpa_backward", "kernel", run_sdpa_backward, NULL, NULL},
    {"sdpa_varlen", "kernel", run_sdpa_varlen, NULL, NULL},
    {"mha", "kernel", run_mha, NULL, NULL},
    {0},
};
