/* norm.c: layer, rms and group norm on the GPU, where registers hold a row; the family's list. */
#include "norm.h"
#include "families.h"

static const wk_kernel rows_kernel = {"norm", "norm_rows", "norm_rows_args", 1024, .types = 1, .ints = 4};
static const wk_kernel dense_kernel = {"norm", "norm_rows", "norm_rows_args", 256, .types = 1, .ints = 4};
static const wk_kernel pairs_kernel = {"norm", "norm_row_pairs", "norm_rows_args",
                                       256,    .types = 1,       .ints = 3};
static const wk_kernel kept_kernel = {"norm",     "norm_kept", "norm_rows_args", WK_KEPT_THREADS,
                                      .types = 1, .ints = 3,   .blocks = 2,      .clusters = true};
static const wk_kernel ahead_kernel = {"norm_ahead", "norm_ahead", "norm_rows_args", 512,
                                       .types = 1,   .ints = 4,    .blocks = 1,      .clusters = true};
static const wk_kernel grad_kernel = {"norm", "norm_rows_grad", "norm_rows_args", 512, .types = 1, .ints = 3};
static const wk_kernel sum_kernel = {"norm", "norm_sum", "norm_sum_args", 512, .types = 2};

/* Packs of a row that a block has for each of its threads, at most: twice as many weights have to stay in registers. */
enum { AHEAD_PACKS = 4 };
/* Samples of a thread, at least, whose shares of dweight and dbias are one part. */
enum { STRIP = 4 };

/* ---- how a row is spread over threads ---- */

typedef struct {
    int vec, packs, lanes, threads;
} row_form;

/* A row of n elements over some lanes of a wave, or a block of up to `most` threads, of which each has as many as its
 * registers hold: addresses need some too. False: it is too long. */
static bool form_of(const wk_call *c, i64 n, int vec, int most, row_form *f)
{
    int each = c->dtype == WK_F64 || (most < 1024 && vec == 1) ? 8 : 16,
        wave = wk_gpu_of(c->device)->facts.wave;
    const int lanes[] = {8, 32, wave, 256, most};
    for (int i = 0; i < 5; i++) {
        if ((i64)lanes[i] * each < n)
            continue;
        *f =
            (row_form){.vec = vec, .packs = 1, .lanes = lanes[i], .threads = lanes[i] < 256 ? 256 : lanes[i]};
        while ((i64)f->packs * f->vec * f->lanes < n)
            f->packs *= 2;
        return true;
    }
    return false;
}

/* Rows of 16-bit elements are short in bytes: fewer threads with more of a row each, `each` elements, keep more rows on their
 * way. Such blocks are small enough for the registers that takes. */
static bool dense_form(const wk_call *c, i64 n, int vec, int each, row_form *f)
{
    int wave = wk_gpu_of(c->device)->facts.wave;
    if (wk_bytes(c->dtype) != 2 || vec < 8 || n <= 256)
        return false;
    for (int lanes = 16; lanes * each <= 4096; lanes *= 2) {
        if ((i64)lanes * each < n)
            continue;
        *f = (row_form){.vec = vec, .packs = 1, .lanes = lanes, .threads = lanes > wave ? lanes : 256};
        while ((i64)f->packs * f->vec * f->lanes < n)
            f->packs *= 2;
        return true;
    }
    return false;
}

/* Samples: *t's dimensions before `first`, with one step from each to the next, and the others packed; where t is not
 * so it becomes a copy. */
static wk_status samples_of(const wk_tensor **t, int first, i64 *step)
{
    const wk_tensor *x = *t;
    int64_t expected = 1, shape[WK_MAX_RANK], strides[1][WK_MAX_RANK];
    bool packed = true;
    for (int d = x->rank - 1; d >= first; d--) {
        packed = packed && (x->shape[d] == 1 || x->strides[d] == expected);
        expected *= x->shape[d];
    }
    memcpy(shape, x->shape, sizeof shape);
    memcpy(strides[0], x->strides, sizeof strides[0]);
    int rank = wk_shape_coalesce(first, shape, 1, strides);
    *step = rank ? strides[0][0] : expected;
    if (packed && rank <= 1)
        return WK_OK;
    *step = expected;
    *t = wk_tensor_packed(x);
    return *t ? WK_OK : wk_error_status();
}

/* ---- the plan of a call ---- */

typedef struct {
    wk_group_shape s;
    const wk_tensor *weight, *bias;
    norm_rows_args a;
    i64 n;
} plan;

static wk_status packed_or_null(const wk_tensor *t, const wk_tensor **packed)
{
    *packed = t ? wk_tensor_packed(t) : NULL;
    return t && !*packed ? wk_error_status() : WK_OK;
}

static wk_status make_plan(const wk_call *c, const wk_tensor *weight, const wk_tensor *bias, plan *p)
{
    const wk_norm_params *o = c->params;
    *p = (plan){.s = wk_group_shape_of(c->in[0], strncmp(c->op->name, "group", 5) == 0, o->groups)};
    p->n = p->s.channels * p->s.inner;
    WK_TRY(packed_or_null(weight, &p->weight));
    WK_TRY(packed_or_null(bias, &p->bias));
    p->a = (norm_rows_args){.weight = wk_ptr_or_null(p->weight),
                            .bias = wk_ptr_or_null(p->bias),
                            .samples = p->s.samples,
                            .rows = p->s.samples * p->s.groups,
                            .groups = (i32)p->s.groups,
                            .n = (i32)p->n,
                            .channels = (i32)p->s.channels,
                            .centred = !wk_norm_is_rms(c->op),
                            .by_groups = wk_divisor_if_small(p->s.groups),
                            .by_inner = wk_divisor_if_small(p->s.inner),
                            .eps = o->eps,
                            .inverse_n = p->n ? 1 / (double)p->n : 0};
    return WK_OK;
}

static int first_dim(const wk_call *c)
{
    return strncmp(c->op->name, "group", 5) == 0 ? 1 : c->in[0]->rank - 1;
}

/* Launches the rows of a plan whose x, y and their like are there; mode as in norm.hip. Where rows have the same weights a
 * thread takes parts of two of them. */
static wk_status launch_rows(const wk_call *c, plan *p, int vec, int mode)
{
    row_form f;
    bool pairs = mode == 0 && p->s.groups == 1 && dense_form(c, p->n, vec, p->n > 2048 ? 32 : 16, &f);
    bool dense = pairs || dense_form(c, p->n, vec, mode == 2 ? 16 : 32, &f);
    if (!dense)
        form_of(c, p->n, vec, 1024, &f);
    int per_block = f.threads / f.lanes * (pairs ? 2 : 1);
    p->a.whole = p->s.inner % vec == 0;
    if (p->s.groups == 1) /* about as many as units work on at a time, as measured */
        p->a.ahead = wk_gpu_of(c->device)->facts.units * (pairs ? 5 : mode == 2 ? 5 * per_block : 2);
    wk_instance instance = {.t = {(unsigned char)c->dtype},
                            .i = {(short)f.vec, (short)f.packs, (short)f.lanes, (short)mode}};
    if (pairs)
        instance = (wk_instance){.t = {(unsigned char)c->dtype},
                                 .i = {(short)f.packs, (short)f.lanes, (short)p->a.centred}};
    wk_grid grid = {.x = wk_blocks(p->a.rows, per_block, WK_GRID_MAX), .threads = f.threads};
    const wk_kernel *kernel = pairs ? &pairs_kernel : dense ? &dense_kernel : &rows_kernel;
    return WK_LAUNCH(c, kernel, &instance, grid, p->a);
}

/* Rows of layer and rms norm that a block or a cluster keeps. */
static wk_kept_form kept_form(const wk_call *c, const plan *p, bool *ahead)
{
    bool plain = p->s.inner == 1 && p->s.groups == 1 && c->dtype != WK_F64 && p->n <= INT32_MAX;
    i64 bytes = p->n * (i64)wk_bytes(c->dtype);
    wk_kept_form f = {0};
    if (plain)
        f = wk_gpu_ahead(c, &ahead_kernel, AHEAD_PACKS, WK_AHEAD_LINES, bytes);
    *ahead = f.blocks > 0;
    return *ahead || !plain ? f : wk_gpu_kept(c, bytes);
}

static wk_status launch_kept(const wk_call *c, const plan *p, const wk_kept_form *f, bool ahead)
{
    wk_instance instance = {.t = {(unsigned char)c->dtype}, .i = {f->packs, f->threads, f->blocks}};
    if (!ahead)
        return WK_LAUNCH(c, &kept_kernel, &instance, wk_kept_grid(f, p->a.rows), p->a);
    instance.i[2] = (short)p->a.centred;
    instance.i[3] = f->blocks;
    return wk_gpu_launch_ahead(c, &ahead_kernel, &instance, f, p->a.rows, &p->a);
}

static wk_status run_norm(wk_call *c)
{
    plan p;
    row_form f;
    const wk_tensor *x = c->in[0];
    if (wk_count(c->out[0]) == 0)
        return WK_OK;
    WK_TRY(make_plan(c, c->in[1], c->in[2], &p));
    bool fits = form_of(c, p.n, 1, 1024, &f) && p.s.groups <= INT32_MAX / p.n;
    bool ahead;
    wk_kept_form kept = kept_form(c, &p, &ahead);
    if (!fits && !kept.blocks)
        return wk_gpu_norm_long(c, &p.s, p.weight, p.bias);
    WK_TRY(samples_of(&x, first_dim(c), &p.a.x_step));
    p.a.x = wk_ptr(x);
    p.a.y = wk_ptr(c->out[0]);
    int vec = wk_pack_width(c->dtype, p.n | p.a.x_step, (const void *[]){p.a.x, p.a.y, p.a.weight, p.a.bias},
                            p.s.inner > 1 ? 2 : 4);
    if (!fits && vec == 1)
        return wk_gpu_norm_long(c, &p.s, p.weight, p.bias);
    if (!fits)
        return launch_kept(c, &p, &kept, ahead);
    return launch_rows(c, &p, vec, p.s.inner > 1);
}

/* ---- with a sum before ---- */

static const char *refuse_long(const wk_call *c)
{
    row_form f;
    const wk_tensor *x = c->in[0];
    return form_of(c, x->shape[x->rank - 1], 1, 1024, &f) ? NULL : "rows are too long for registers";
}

static wk_status run_add_norm(wk_call *c)
{
    plan p;
    const wk_tensor *x = c->in[0], *z = c->in[1];
    if (wk_count(c->out[0]) == 0)
        return WK_OK;
    WK_TRY(make_plan(c, c->in[2], c->in[3], &p));
    WK_TRY(samples_of(&x, first_dim(c), &p.a.x_step));
    WK_TRY(samples_of(&z, first_dim(c), &p.a.dy_step));
    p.a.x = wk_ptr(x);
    p.a.z = wk_ptr(z);
    p.a.y = wk_ptr(c->out[0]);
    p.a.sum = c->out[1] ? wk_ptr(c->out[1]) : NULL;
    int vec = wk_pack_width(c->dtype, p.n | p.a.x_step | p.a.dy_step,
                            (const void *[]){p.a.x, p.a.z, p.a.y, p.a.sum, p.a.weight, p.a.bias}, 6);
    return launch_rows(c, &p, vec, 2);
}

/* ---- gradients ---- */

wk_status wk_gpu_norm_sum(const wk_call *c, wk_dtype dtype, const void *parts, i64 n_parts, i64 columns)
{
    norm_sum_args a = {.parts = parts,
                       .out = {c->out[1] ? wk_ptr(c->out[1]) : NULL, c->out[2] ? wk_ptr(c->out[2]) : NULL},
                       .n_parts = n_parts,
                       .columns = columns};
    wk_grid grid = {.x = wk_blocks(columns, 32, WK_GRID_MAX), .y = c->out[2] ? 2 : 1};
    return WK_LAUNCH(c, &sum_kernel, WK_INSTANCE(.t = {(unsigned char)c->dtype, (unsigned char)dtype}), grid,
                     a);
}

static wk_status zero_weights(const wk_call *c)
{
    for (int i = 1; i < 3; i++) {
        if (c->out[i])
            WK_TRY(wk_gpu_zero(c, wk_ptr(c->out[i]), (size_t)wk_count(c->out[i]) * wk_bytes(c->dtype)));
    }
    return WK_OK;
}

static wk_status launch_grad(const wk_call *c, plan *p, const row_form *f)
{
    wk_dtype stat = wk_stat_dtype(c->dtype);
    i64 per_block = f->threads / f->lanes, columns = p->s.groups * p->n;
    i64 most = wk_gpu_of(c->device)->facts.units * (i64)(1024 / f->threads) / p->s.groups + 1;
    p->a.n_parts = wk_blocks(p->s.samples, per_block * STRIP, most);
    if (c->out[1] || c->out[2]) {
        wk_tensor *parts = wk_tensor_new(c->device, stat, 3, (int64_t[]){2, p->a.n_parts, columns});
        if (!parts)
            return wk_error_status();
        p->a.parts = wk_ptr(parts);
    }
    wk_grid grid = {.x = p->a.n_parts * p->s.groups, .threads = f->threads};
    WK_TRY(WK_LAUNCH(
        c, &grad_kernel,
        WK_INSTANCE(.t = {(unsigned char)c->dtype}, .i = {(short)f->vec, (short)f->packs, (short)f->lanes}),
        grid, p->a));
    return p->a.parts ? wk_gpu_norm_sum(c, stat, p->a.parts, p->a.n_parts, columns) : WK_OK;
}

static wk_status run_norm_backward(wk_call *c)
{
    plan p;
    row_form f;
    const wk_tensor *x = c->in[0], *dy = c->in[1];
    if (wk_count(x) == 0)
        return zero_weights(c);
    WK_TRY(make_plan(c, c->in[2], NULL, &p));
    if (p.s.inner > 1 || !form_of(c, p.n, 2, 512, &f) || p.s.groups > WK_GRID_MAX)
        return wk_gpu_norm_long_backward(c, &p.s, p.weight);
    WK_TRY(samples_of(&x, first_dim(c), &p.a.x_step));
    WK_TRY(samples_of(&dy, first_dim(c), &p.a.dy_step));
    p.a.x = wk_ptr(x);
    p.a.dy = wk_ptr(dy);
    p.a.y = c->out[0] ? wk_ptr(c->out[0]) : NULL;
    int vec = wk_pack_width(c->dtype, p.n | p.a.x_step | p.a.dy_step,
                            (const void *[]){p.a.x, p.a.dy, p.a.y, p.a.weight}, 4);
    return form_of(c, p.n, vec, 512, &f) ? launch_grad(c, &p, &f)
                                         : wk_gpu_norm_long_backward(c, &p.s, p.weight);
}

const wk_impl wk_gpu_impls_norm[] = {
    {"batch_norm_train", "kernel", wk_gpu_batch_norm_train, NULL, NULL},
    {"batch_norm_infer", "kernel", wk_gpu_batch_norm_infer, NULL, NULL},
    {"batch_norm_backward", "kernel", wk_gpu_batch_norm_backward, NULL, NULL},
    {"batch_norm_act", "kernel", wk_gpu_batch_norm_act, wk_gpu_batch_norm_act_refuse, NULL},
    {"layer_norm", "kernel", run_norm, NULL, NULL},
    {"rms_norm", "kernel", run_norm, NULL, NULL},
    {"group_norm", "kernel", run_norm, NULL, NULL},
    {"add_layer_norm", "kernel", run_add_norm, refuse_long, NULL},
    {"add_rms_norm", "kernel", run_add_norm, refuse_long, NULL},
    {"layer_norm_backward", "kernel", run_norm_backward, NULL, NULL},
    {"rms_norm_backward", "kernel", run_norm_backward, NULL, NULL},
    {"group_norm_backward", "kernel", run_norm_backward, NULL, NULL},
    {"lrn", "kernel", wk_gpu_lrn, NULL, NULL},
    {"lrn_backward", "kernel", wk_gpu_lrn_backward, NULL, NULL},
    {0},
};
