/* matmul.c: matmul, linear and their gradients on the GPU: which kernel a product gets, and gradients as products. */
#include "matmul.h"
#include "families.h"
#include "kernels/matmul.h"
#include "ops/act.h"
#include "ops/matmul.h"
#include "wick/ops.h"

static const wk_kernel tiles_kernel = {"matmul", "matmul_tiles", "matmul_args", 256, .types = 2};
/* Of four waves: 64 lanes, 32 lanes. */
static const wk_kernel matrix_kernel[] = {
    {"matmul_matrix", "matmul_matrix", "matmul_args", 256, .types = 2},
    {"matmul_matrix", "matmul_matrix", "matmul_args", 128, .types = 2},
};
static const wk_kernel dot_kernel = {"matmul",   "matmul_dot", "matmul_args", 256,
                                     .types = 2, .ints = 1,    .blocks = 2};
/* The same for one row, with registers for the four blocks on a unit that all of memory's speed takes. */
static const wk_kernel row_kernel = {"matmul",   "matmul_dot", "matmul_args", 256,
                                     .types = 2, .ints = 1,    .blocks = 4};
static const wk_kernel columns_kernel = {"matmul", "matmul_columns", "matmul_args",
                                         256,      .types = 2,       .ints = 2};
static const wk_kernel finish_kernel = {"matmul", "matmul_finish", "matmul_finish_args", 256, .types = 2};

bool wk_gpu_has_matrix(const wk_gpu *g)
{
    static const char *const with[] = {"gfx90a", "gfx942", "gfx950", "gfx11",
                                       "gfx120", "sm_8",   "sm_9",   "sm_1"};
    for (size_t i = 0; i < sizeof with / sizeof *with; i++) {
        if (strncmp(g->facts.arch, with[i], strlen(with[i])) == 0)
            return true;
    }
    return false;
}

/* A product on its way to a kernel. */
typedef struct {
    matmul_args g;
    wk_dtype in, out;
    int64_t batch[WK_MAX_RANK]; /* the sizes behind g.batch_size */
} product;

/* ---- from tensors to arguments ---- */

static wk_status fill_batch(product *p, const wk_tensor *a, const wk_tensor *b, const wk_tensor *y)
{
    matmul_args *g = &p->g;
    int64_t strides[3][WK_MAX_RANK];
    memcpy(p->batch, y->shape, sizeof p->batch);
    memcpy(strides[0], a->strides, sizeof a->strides);
    memcpy(strides[1], b->strides, sizeof b->strides);
    memcpy(strides[2], y->strides, sizeof y->strides);
    int rank = wk_shape_coalesce(y->rank - 2, p->batch, 3, strides);
    int64_t batch = wk_shape_count(rank, p->batch);
    if (batch >= (int64_t)1 << 31)
        return wk_fail(WK_ERR_UNSUPPORTED, "matmul: expected fewer than 2^31 products at once, got %lld",
                       (long long)batch);
    g->batch = (i32)batch;
    g->batch_rank = rank;
    for (int d = 0; d < rank; d++) {
        int from = rank - 1 - d;
        g->batch_size[d] = wk_divisor_of(p->batch[from]);
        g->a.step[d] = strides[0][from];
        g->b.step[d] = strides[1][from];
        g->c_step[d] = strides[2][from];
    }
    return WK_OK;
}

/* Whether 16 bytes (or `width` elements of them) can be read at a time along the dimension of stride 1. */
static bool reads_wide(const matmul_operand *o, const product *p, int64_t contiguous, int64_t other,
                       int width)
{
    size_t bytes = wk_bytes(p->in);
    if (contiguous != 1 || other % width || (size_t)o->data % ((size_t)width * bytes))
        return false;
    for (int d = 0; d < p->g.batch_rank; d++) {
        if (o->step[d] % width)
            return false;
    }
    return true;
}

static void choose_read(matmul_operand *o, const product *p, int width)
{
    if (reads_wide(o, p, o->k, o->row, width))
        o->read = WK_READ_K_WIDE;
    else if (reads_wide(o, p, o->row, o->k, width))
        o->read = WK_READ_ROW_WIDE;
    else
        o->read = o->k <= o->row ? WK_READ_K : WK_READ_ROW;
}

/* c^T = b a^T: for a result with few columns. */
static void swap_operands(matmul_args *g)
{
    matmul_operand o = g->a;
    i64 m = g->m, row = g->c_row, bias = g->bias_row;
    g->a = g->b;
    g->b = o;
    g->m = g->n;
    g->n = m;
    g->c_row = g->c_col;
    g->c_col = row;
    g->bias_row = g->bias_col;
    g->bias_col = bias;
}

/* ---- splits ---- */

/* Cuts the sum where the result alone keeps too few blocks busy; `step` is the least that is worth a block. */
static void choose_splits(const wk_call *c, matmul_args *g, int64_t blocks, int64_t step)
{
    int64_t wanted = 2 * (int64_t)wk_gpu_of(c->device)->facts.units / (blocks * g->batch);
    int64_t most = g->k / step;
    int64_t splits = wanted < most ? wanted : most;
    splits = splits > 64 ? 64 : splits < 1 ? 1 : splits;
    g->split_k = ((g->k + splits - 1) / splits + WK_TILE_K - 1) / WK_TILE_K * WK_TILE_K;
    g->splits = g->split_k ? (i32)((g->k + g->split_k - 1) / g->split_k) : 1;
}

static wk_status launch_finish(const wk_call *c, const product *p, const matmul_args *g, const void *parts)
{
    matmul_finish_args f = {.parts = parts,
                            .c = g->c,
                            .c_row = g->c_row,
                            .c_col = g->c_col,
                            .bias = g->bias,
                            .z = g->z,
                            .bias_row = g->bias_row,
                            .bias_col = g->bias_col,
                            .n = g->n,
                            .m = (i32)g->m,
                            .count = g->batch * g->m * g->n,
                            .splits = g->splits,
                            .act = g->act,
                            .batch_rank = g->batch_rank};
    memcpy(f.c_step, g->c_step, sizeof f.c_step);
    memcpy(f.batch_size, g->batch_size, sizeof f.batch_size);
    wk_grid grid = {.x = wk_blocks(f.count, 256, WK_GRID_MAX)};
    return WK_LAUNCH(c, &finish_kernel,
                     WK_INSTANCE(.t = {(unsigned char)wk_stat_dtype(p->in), (unsigned char)p->out}), grid, f);
}

/* Launches the kernel over `blocks` in x; with splits, into parts that are then added. ints follow the dtypes. */
static wk_status launch(const wk_call *c, product *p, const wk_kernel *kernel, int64_t blocks, int rows,
                        int vec)
{
    matmul_args *g = &p->g, part;
    wk_instance instance = {.t = {(unsigned char)p->in, (unsigned char)p->out},
                            .i = {(short)rows, (short)vec}};
    wk_grid grid = {.x = blocks < WK_GRID_MAX ? blocks : WK_GRID_MAX,
                    .y = g->batch < 65535 ? g->batch : 65535,
                    .z = g->splits};
    if (g->splits == 1)
        return WK_LAUNCH(c, kernel, &instance, grid, *g);
    int64_t shape[4] = {g->splits, g->batch, g->m, g->n};
    wk_dtype compute = wk_stat_dtype(p->in);
    wk_tensor *parts = wk_tensor_new(c->device, compute, 4, shape);
    if (!parts)
        return wk_error_status();
    part = *g;
    part.c = wk_ptr(parts);
    part.c_row = g->n;
    part.c_col = 1;
    part.c_split = g->batch * g->m * g->n;
    part.bias = NULL;
    part.z = NULL;
    part.act = 0;
    i64 step = g->m * g->n;
    for (int d = 0; d < g->batch_rank; d++) {
        part.c_step[d] = step;
        step *= g->batch_size[d].d;
    }
    instance.t[1] = (unsigned char)compute;
    WK_TRY(WK_LAUNCH(c, kernel, &instance, grid, part));
    return launch_finish(c, p, g, wk_ptr(parts));
}

/* ---- the three kernels ---- */

static wk_status run_tiles(const wk_call *c, product *p)
{
    matmul_args *g = &p->g;
    i64 row_tiles = (g->m + WK_TILE - 1) / WK_TILE, col_tiles = (g->n + WK_TILE - 1) / WK_TILE;
    const wk_gpu *gpu = wk_gpu_of(c->device);
    bool matrix = wk_bytes(p->in) == 2 && wk_gpu_has_matrix(gpu);
    choose_read(&g->a, p, matrix ? 8 : 4);
    choose_read(&g->b, p, matrix ? 8 : 4);
    g->row_tiles = wk_divisor_of(row_tiles);
    g->tiles = row_tiles * col_tiles;
    if (row_tiles >= (i64)1 << 31 || g->tiles >= (i64)1 << 31)
        return wk_fail(WK_ERR_UNSUPPORTED, "matmul: a matrix of %lld x %lld is too large", (long long)g->m,
                       (long long)g->n);
    choose_splits(c, g, g->tiles, 256);
    return launch(c, p, matrix ? &matrix_kernel[gpu->facts.wave == 32] : &tiles_kernel, g->tiles, 0, 0);
}

/* Rows the thin kernels are made for. */
static int thin_rows(i64 m) { return m == 1 ? 1 : m <= 4 ? 4 : WK_THIN; }

static wk_status run_dot(const wk_call *c, product *p)
{
    matmul_args *g = &p->g;
    int vec = (int)(16 / wk_bytes(p->in)), waves = 256 / wk_gpu_of(c->device)->facts.wave;
    g->vec = g->k % vec == 0 && reads_wide(&g->a, p, g->a.k, g->a.row, vec) &&
             reads_wide(&g->b, p, g->b.k, g->b.row, vec);
    i64 blocks = (g->n + waves - 1) / waves;
    choose_splits(c, g, blocks, 512);
    return launch(c, p, g->m == 1 ? &row_kernel : &dot_kernel, blocks, thin_rows(g->m), 0);
}

static wk_status run_columns(const wk_call *c, product *p)
{
    matmul_args *g = &p->g;
    int vec = (int)(16 / wk_bytes(p->in));
    if (g->n % vec || !reads_wide(&g->b, p, g->b.row, g->b.k, vec))
        vec = 1;
    i64 blocks = (g->n + WK_COLUMN_LANES * vec - 1) / (WK_COLUMN_LANES * vec);
    choose_splits(c, g, blocks, 128);
    return launch(c, p, &columns_kernel, blocks, thin_rows(g->m), vec);
}

wk_status wk_gpu_product(const wk_call *c, const wk_tensor *a_in, const wk_tensor *b_in,
                         const wk_tensor *y_in, const wk_tensor *bias, const wk_tensor *z, int64_t act)
{
    wk_tensor a = wk_tensor_local(a_in), b = wk_tensor_local(b_in), y = wk_tensor_local(y_in);
    if (wk_count(&y) == 0)
        return WK_OK;
    wk_join_batch(&a, &b, &y);
    int r = y.rank;
    product p = {.in = a.dtype, .out = y.dtype};
    matmul_args *g = &p.g;
    *g = (matmul_args){.a = {.data = wk_ptr(&a), .row = a.strides[r - 2], .k = a.strides[r - 1]},
                       .b = {.data = wk_ptr(&b), .row = b.strides[r - 1], .k = b.strides[r - 2]},
                       .c = wk_ptr(&y),
                       .c_row = y.strides[r - 2],
                       .c_col = y.strides[r - 1],
                       .bias = bias ? wk_ptr(bias) : NULL,
                       .bias_col = bias ? bias->strides[0] : 0,
                       .z = z ? wk_ptr(z) : NULL,
                       .act = (i32)act,
                       .m = y.shape[r - 2],
                       .n = y.shape[r - 1],
                       .k = a.shape[r - 1]};
    WK_TRY(fill_batch(&p, &a, &b, &y));
    if (g->n < g->m && g->n <= WK_THIN)
        swap_operands(g);
    if (g->m > WK_THIN)
        return run_tiles(c, &p);
    return g->b.row == 1 && g->b.k != 1 && g->n > 1 ? run_columns(c, &p) : run_dot(c, &p);
}

/* ---- matmul and linear ---- */

/* t, or a packed copy where neither dimension of its matrices is contiguous. */
static const wk_tensor *readable(const wk_tensor *t)
{
    bool far = t->rank > 1 && t->strides[t->rank - 1] > 1 && t->strides[t->rank - 2] > 1;
    return far && t->shape[t->rank - 1] > 1 && t->shape[t->rank - 2] > 1 ? wk_tensor_packed(t) : t;
}

static wk_status run_matmul(wk_call *c)
{
    wk_matmul_shape s;
    if (wk_count(c->out[0]) == 0)
        return WK_OK;
    const wk_tensor *a = readable(c->in[0]), *b = readable(c->in[1]);
    if (!a || !b)
        return wk_error_status();
    WK_TRY(wk_matmul_shapes(c, a, b, &s));
    wk_tensor y = wk_matmul_result(c->out[0], &s, s.m, s.n);
    return wk_gpu_product(c, &s.a, &s.b, &y, NULL, NULL, 0);
}

static wk_status multiply_linear(const wk_call *c, const wk_tensor *z, int64_t act)
{
    wk_tensor x, y, weight;
    if (wk_count(c->out[0]) == 0)
        return WK_OK;
    if (wk_gpu_takes_row(c))
        return wk_gpu_row_linear(c, z, act);
    const wk_tensor *in = readable(c->in[0]), *w = readable(c->in[1]);
    if (!in || !w)
        return wk_error_status();
    WK_TRY(wk_as_rows(in, &x));
    WK_TRY(wk_as_rows(c->out[0], &y));
    weight = wk_flipped(w);
    return wk_gpu_product(c, &x, &weight, &y, c->in[2], z, act);
}

static wk_status run_linear(wk_call *c)
{
    return multiply_linear(c, NULL, WK_PARAMS(c, wk_linear_params)->act);
}

static wk_status run_linear_act(wk_call *c)
{
    const wk_tensor *given = c->in[WK_LINEAR_ACT_Z], *z = given ? wk_tensor_packed(given) : NULL;
    return given && !z ? wk_error_status() : multiply_linear(c, z, wk_act_of(c).kind);
}

static const char *refuse_act(const wk_call *c)
{
    return wk_act_of(c).kind <= WK_ACT_SILU ? NULL : "an activation that products do not end with";
}

/* ---- gradients: matmul itself on turned operands ---- */

wk_status wk_matmul_into(const wk_tensor *a, const wk_tensor *b, wk_tensor *y)
{
    wk_call c = {.op = wk_op_find("matmul"), .in = {a, b}, .out = {y}};
    return wk_call_run(&c);
}

/* The dimensions of the batch that a gradient with `own` leading dimensions is summed over, moved behind its rows:
 * [kept.., rows, summed.., k] and [kept.., summed.., k, cols], each then seen with one dimension for the sum. */
static const wk_tensor *sum_in_product(const wk_matmul_shape *s, const wk_tensor *t, const bool *summed,
                                       bool rows_first)
{
    int dims[WK_MAX_RANK], n = 0, kept = 0;
    int64_t shape[WK_MAX_RANK], steps = 1;
    for (int d = 0; d < s->rank; d++) {
        if (!summed[d])
            shape[kept++] = s->lead[dims[n++] = d];
        else
            steps *= s->lead[d];
    }
    if (rows_first)
        dims[n++] = s->rank;
    for (int d = 0; d < s->rank; d++) {
        if (summed[d])
            dims[n++] = d;
    }
    if (!rows_first)
        dims[n++] = s->rank;
    dims[n] = s->rank + 1;
    shape[kept] = t->shape[s->rank] * (rows_first ? 1 : steps);
    shape[kept + 1] = t->shape[s->rank + 1] * (rows_first ? steps : 1);
    return wk_reshape(wk_permute(t, dims), kept + 2, shape);
}

/* x . y for every product of the batch into out, summed over the dimensions that out is broadcast over. */
static wk_status product_and_sum(const wk_matmul_shape *s, wk_tensor x, wk_tensor y, const wk_tensor *like,
                                 wk_tensor *out)
{
    bool summed[WK_MAX_RANK];
    int own = like->rank > 1 ? like->rank - 2 : 0, kept = 0;
    int64_t shape[WK_MAX_RANK];
    for (int d = 0; d < s->rank; d++) {
        int at = d - (s->rank - own);
        summed[d] = at < 0 || like->shape[at] != s->lead[d];
        if (!summed[d])
            shape[kept++] = s->lead[d];
    }
    const wk_tensor *a = sum_in_product(s, &x, summed, true), *b = sum_in_product(s, &y, summed, false);
    if (!a || !b)
        return wk_error_status();
    wk_tensor target = wk_tensor_local(out);
    target.rank = kept + 2;
    shape[kept] = a->shape[kept];
    shape[kept + 1] = b->shape[kept + 1];
    memcpy(target.shape, shape, sizeof shape);
    wk_shape_strides(target.rank, target.shape, target.strides);
    return wk_matmul_into(a, b, &target);
}

static wk_status run_matmul_backward(wk_call *c)
{
    const wk_tensor *packed = wk_tensor_packed(c->in[2]);
    wk_matmul_shape s;
    if (!packed)
        return wk_error_status();
    WK_TRY(wk_matmul_shapes(c, c->in[0], c->in[1], &s));
    wk_tensor dy = wk_matmul_result(packed, &s, s.m, s.n);
    if (c->out[0] && wk_count(c->out[0]))
        WK_TRY(product_and_sum(&s, dy, wk_flipped(&s.b), c->in[0], c->out[0]));
    if (c->out[1] && wk_count(c->out[1]))
        WK_TRY(product_and_sum(&s, wk_flipped(&s.a), dy, c->in[1], c->out[1]));
    return WK_OK;
}

static wk_status run_linear_backward(wk_call *c)
{
    wk_tensor x, dy, dx, dy_turned;
    WK_TRY(wk_as_rows(c->in[0], &x));
    WK_TRY(wk_as_rows(c->in[2], &dy));
    if (c->out[0] && wk_count(c->out[0])) {
        WK_TRY(wk_as_rows(c->out[0], &dx));
        WK_TRY(wk_matmul_into(&dy, c->in[1], &dx));
    }
    dy_turned = wk_flipped(&dy);
    if (c->out[1] && wk_count(c->out[1]))
        WK_TRY(wk_matmul_into(&dy_turned, &x, c->out[1]));
    if (!c->out[2] || wk_count(c->out[2]) == 0)
        return WK_OK;
    wk_tensor *sums = wk_sum(&dy, 1, &(int64_t){0}, 0);
    return sums ? wk_copy_into(c->out[2], sums) : wk_error_status();
}

const wk_impl wk_gpu_impls_matmul[] = {
    {"matmul", "kernel", run_matmul, NULL, NULL},
    {"matmul_backward", "kernel", run_matmul_backward, NULL, NULL},
    {"linear", "kernel", run_linear, NULL, NULL},
    {"linear_act", "kernel", run_linear_act, refuse_act, NULL},
    {"rms_norm_linear", "kernel", wk_gpu_norm_linear, wk_gpu_refuse_norm_linear, NULL},
    {"linear_backward", "kernel", run_linear_backward, NULL, NULL},
    {0},
};
