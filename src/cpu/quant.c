/* quant.c: the ops on quantised weights: few rows of x by dot products with each row of weights, many by the matrix
 * product, which takes the weights as it packs them, or in bf16 by a product of their own. */
#include "quant.h"
#include "core/families.h"
#include "core/pool.h"
#include "activation.h"
#include "bands.h"
#include "gemm_int.h"
#include "ids.h"

enum {
    THIN_ROWS = 8,          /* of x in floats; more go to the matrix product */
    INT_ROWS = 24,          /* the same by integers, */
    FEW_ROWS = 10,          /* and where many have a product of their own */
    TASK_BYTES = 96 << 10,  /* of weights in a task */
    LONG_BYTES = 512 << 10, /* the same by integers for one row: streams from memory that are long */
    LEAST_TASKS = 8,        /* of those, and their number a multiple of it: as many for each thread */
    THIN_VALUES = 4096,     /* of x that dot products in floats go over at a time */
    MANY_ROWS = 512,        /* of x that are packed at a time: weights are unpacked once for them */
    PACK_BYTES =
        QUANT_BLOCK * GEMM_NV * WK_VEC_BYTES, /* of a panel's columns, as they come: QUANT_BLOCK of each */
};

static int64_t least(int64_t a, int64_t b) { return a < b ? a : b; }
static int64_t most(int64_t a, int64_t b) { return a > b ? a : b; }

/* Quantised rows in memory. */
typedef struct {
    int64_t format, blocks; /* of a row */
    const wk_qformat_info *info;
    const uint8_t *data;
    int64_t pitch;
} rows;

static wk_status rows_of(const wk_call *c, const wk_tensor *weight, rows *q)
{
    const wk_tensor *w = wk_quant_rows(weight);
    if (!w)
        return wk_error_status();
    q->format = WK_PARAMS(c, wk_quant_params)->format;
    q->info = wk_quant_info(c);
    q->blocks = w->shape[w->rank - 1] / q->info->bytes;
    q->data = wk_ptr(w);
    q->pitch = w->rank == 2 ? w->strides[0] : w->shape[w->rank - 1];
    return WK_OK;
}

/* n blocks of a row from block b on, in the compute type. */
static void unpack(const rows *q, int64_t row, int64_t b, int64_t n, wk_compute compute, void *dst)
{
    const uint8_t *p = q->data + row * q->pitch + b * q->info->bytes;
    if (compute == WK_COMPUTE_F64)
        WK_ISA(wk_quant_unpack_f64)(q->format, p, n, dst);
    else
        WK_ISA(wk_quant_unpack)(q->format, p, n, dst);
}

/* ---- dequantize and qembedding ---- */

typedef struct {
    rows q;
    wk_tensor *y;
    const wk_tensor *ids; /* packed; NULL: row i is row i */
    int64_t limit;
    wk_bad_id bad;
} unpacking;

/* One row, as many blocks at a time as fit in the scratch. */
static void unpack_row(const unpacking *u, int64_t row, char *dst, char *scratch)
{
    wk_compute compute = wk_dtypes[u->y->dtype].compute;
    int64_t step = QUANT_BLOCK * 4 / u->q.info->block;
    for (int64_t b = 0; b < u->q.blocks; b += step) {
        int64_t n = least(step, u->q.blocks - b), count = n * u->q.info->block;
        unpack(&u->q, row, b, n, compute, scratch);
        WK_ISA(wk_block_store)(u->y->dtype, compute, scratch, dst, count, false);
        dst += count * (int64_t)wk_bytes(u->y->dtype);
    }
}

static void unpack_rows(void *ctx, int64_t begin, int64_t end, void *scratch)
{
    unpacking *u = ctx;
    int64_t k = u->q.blocks * u->q.info->block, bytes = k * (int64_t)wk_bytes(u->y->dtype);
    for (int64_t i = begin; i < end; i++) {
        char *dst = (char *)wk_ptr(u->y) + i * bytes;
        int64_t row = i;
        if (u->ids)
            row = wk_load_i64(u->ids->dtype,
                              (const char *)wk_ptr(u->ids) + i * (int64_t)wk_bytes(u->ids->dtype));
        if (row >= 0 && row < u->limit) {
            unpack_row(u, row, dst, scratch);
            continue;
        }
        if (row != wk_id_padding(u->ids->dtype))
            wk_bad_id_note(&u->bad, i);
        memset(dst, 0, (size_t)bytes);
    }
}

static wk_status run_unpacking(unpacking *u, int64_t n)
{
    int64_t k = most(1, u->q.blocks * u->q.info->block);
    return WK_ISA(wk_bands_run)(n, most(1, (1 << 15) / k), QUANT_BLOCK * 4 * sizeof(double), unpack_rows, u);
}

static wk_status run_dequantize(wk_call *c)
{
    int64_t n = wk_shape_count(c->in[0]->rank - 1, c->in[0]->shape);
    unpacking u = {.y = c->out[0], .limit = n};
    WK_TRY(rows_of(c, c->in[0], &u.q));
    return wk_count(u.y) ? run_unpacking(&u, n) : WK_OK;
}

static wk_status run_qembedding(wk_call *c)
{
    unpacking u = {.y = c->out[0], .ids = wk_tensor_packed(c->in[1]), .limit = c->in[0]->shape[0]};
    u.bad.at = INT64_MAX;
    if (!u.ids)
        return wk_error_status();
    WK_TRY(rows_of(c, c->in[0], &u.q));
    WK_TRY(run_unpacking(&u, wk_count(u.ids)));
    return wk_bad_id_status(c, u.ids, &u.bad, u.limit);
}

/* ---- qlinear of few rows ---- */

typedef struct {
    rows q;
    const wk_tensor *y;
    const float *x, *bias;      /* where y is not f64 */
    quant_x integers[INT_ROWS]; /* x's rows for integer instructions */
    int64_t groups;             /* of 128 of their values that are so; the rest goes in floats */
    int64_t m, n, k;
    wk_activation_ctx act;
} thin;

/* sums += x . weights for blocks [b, b + n) of row j; sums are ld apart. */
static void add_floats(const thin *t, int64_t j, int64_t b, int64_t n, float *sums, int64_t ld)
{
    const uint8_t *blocks = t->q.data + j * t->q.pitch + b * t->q.info->bytes;
    float part[WK_QUANT_THIN];
    for (int64_t i = 0; i < t->m; i += WK_QUANT_THIN) {
        int m = (int)least(WK_QUANT_THIN, t->m - i);
        WK_ISA(wk_quant_dot)(t->q.format, blocks, n, t->x + i * t->k + b * t->q.info->block, t->k, m, part);
        for (int r = 0; r < m; r++)
            sums[(i + r) * ld] += part[r];
    }
}

static void finish_row(const thin *t, int64_t i, int64_t begin, int64_t width, float *row)
{
    char *dst = (char *)wk_ptr(t->y) + (i * t->n + begin) * (int64_t)wk_bytes(t->y->dtype);
    for (int64_t j = 0; j < width && t->bias; j++)
        row[j] += t->bias[begin + j];
    if (t->act.fn)
        WK_ISA(wk_activation_row)(row, width, &t->act);
    WK_ISA(wk_block_store)(t->y->dtype, WK_COMPUTE_F32, row, dst, width, false);
}

/* Columns [begin, end) of y; scratch has them for each row of x. */
static void thin_columns(void *ctx, int64_t begin, int64_t end, void *scratch)
{
    const thin *t = ctx;
    float *sums = scratch;
    int64_t width = end - begin, first = t->groups * 128 / t->q.info->block;
    int64_t step = THIN_VALUES / (least(t->m, WK_QUANT_THIN) * QUANT_BLOCK); /* what the cache takes */
    step = most(1, step) * QUANT_BLOCK / t->q.info->block;
    memset(sums, 0, (size_t)(t->m * width) * sizeof *sums);
    for (int64_t i = 0; i < t->m && t->groups; i++)
        WK_ISA(wk_quant_dot_int)
    (t->q.format, t->q.data + begin * t->q.pitch, t->q.pitch, width, t->groups, &t->integers[i],
     sums + i * width);
    for (int64_t b = first; b < t->q.blocks; b += step)
        for (int64_t j = begin; j < end; j++)
            add_floats(t, j, b, least(step, t->q.blocks - b), sums + j - begin, width);
    for (int64_t i = 0; i < t->m; i++)
        finish_row(t, i, begin, width, sums + i * width);
}

/* Few rows of x as integers, if these take all of its numbers. */
static wk_status prepare_integers(thin *t)
{
    int64_t groups = t->k / 128;
    if (t->m > INT_ROWS || groups == 0 || !WK_ISA(wk_quant_has_int)())
        return WK_OK;
    int64_t row = gemm_round_up((int64_t)WK_ISA(wk_quant_x_bytes)(t->q.format, groups), GEMM_ALIGN);
    int64_t bytes = t->m * row;
    wk_tensor *room = wk_tensor_new(t->y->storage->device, WK_U8, 1, &bytes);
    if (!room)
        return wk_error_status();
    t->groups = groups;
    for (int64_t i = 0; i < t->m && t->groups; i++)
        if (!WK_ISA(wk_quant_prepare)(t->q.format, t->x + i * t->k, groups, (char *)wk_ptr(room) + i * row,
                                      &t->integers[i]))
            t->groups = 0;
    return WK_OK;
}

/* Rows of weights in a task. */
static int64_t rows_per_task(const thin *t)
{
    int64_t row = most(1, t->q.blocks * t->q.info->bytes), rows = most(1, TASK_BYTES / row);
    if (t->groups && t->m == 1) {
        int64_t tasks = (t->n * row / LONG_BYTES + LEAST_TASKS) / LEAST_TASKS * LEAST_TASKS;
        rows = (t->n + tasks - 1) / tasks;
    }
    return (rows + 15) / 16 * 16; /* results by cache lines */
}

static wk_status run_thin(thin *t)
{
    int64_t rows = rows_per_task(t);
    return WK_ISA(wk_bands_run)(t->n, rows, (size_t)(t->m * rows) * sizeof(float), thin_columns, t);
}

/* ---- qlinear of many rows: the weights are B, transposed ---- */

typedef struct {
    rows q;
    wk_compute compute;
} packing;

/* As many blocks at a time as make QUANT_BLOCK values of a column. */
static void pack_weights(const void *ctx, int64_t p0, int64_t pn, int64_t j0, int64_t jn, int64_t nr,
                         void *dst)
{
    _Alignas(64) double buffer[PACK_BYTES / sizeof(double)]; /* or floats, twice as many */
    const packing *s = ctx;
    int64_t bytes = (int64_t)wk_compute_bytes(s->compute), block = s->q.info->block;
    gemm_packer turn = WK_ISA(gemm_pick_packer)(wk_compute_dtype(s->compute), 1);
    for (int64_t p = p0, some; p < p0 + pn; p += some) {
        int64_t b = p / block, skip = p - b * block;
        int64_t n = least(QUANT_BLOCK / block, (p0 + pn + block - 1) / block - b), pitch = n * block;
        some = least(pitch - skip, p0 + pn - p);
        for (int64_t j = 0; j < jn; j++)
            unpack(&s->q, j0 + j, b, n, s->compute, (char *)buffer + j * pitch * bytes);
        turn((char *)dst + (p - p0) * nr * bytes, nr, (char *)buffer + skip * bytes, pitch, 1, jn, some);
    }
}

/* Rows [i, i + m) of y; x is in the compute type. */
static wk_status run_product(thin *t, int64_t i, int64_t m, const wk_tensor *x, const void *bias)
{
    wk_dtype dtype = t->y->dtype;
    packing s = {t->q, wk_dtypes[dtype].compute};
    wk_gemm_args g = {.m = m,
                      .n = t->n,
                      .k = t->k,
                      .a = {(char *)wk_ptr(x) + i * t->k * (int64_t)wk_bytes(x->dtype), x->dtype, t->k, 1},
                      .b = {NULL, x->dtype, 1, t->k},
                      .c = {(char *)wk_ptr(t->y) + i * t->n * (int64_t)wk_bytes(dtype), dtype, t->n, 1},
                      .pack_b = pack_weights,
                      .pack_ctx = &s,
                      .col_bias = bias,
                      .act = t->act.fn ? WK_ISA(wk_activation_row) : NULL,
                      .act_ctx = &t->act};
    return WK_ISA(wk_gemm)(&g) ? WK_OK : wk_fail(WK_ERR_MEMORY, "out of memory for packing the operands");
}

/* ---- The same by products of their own (quant_pairs.c, quant_digits.c) ---- */

typedef struct {
    const thin *t;
    const quant_many *way;
    int64_t i0; /* the first of x's rows */
    quant_packed x;
} many;

static void many_columns(void *ctx, int64_t begin, int64_t end, void *scratch)
{
    const many *s = ctx;
    const rows *q = &s->t->q;
    float *sums =
        s->way->panels(q->format, &s->x, q->data + begin * q->pitch, q->pitch, end - begin, scratch);
    for (int64_t i = 0; i < s->x.rows; i++)
        for (int64_t j = begin; j < end; j += WK_QUANT_PANEL)
            finish_row(s->t, s->i0 + i, j, least(WK_QUANT_PANEL, end - j),
                       sums + (j - begin) / WK_QUANT_PANEL * quant_panel_size(s->x.rows) +
                           i * WK_QUANT_PANEL);
}

/* Columns of a task: as many panels as leave a few tasks for each thread, whose number results do not depend on: each column is
 * worked out by itself. */
static int64_t columns_per_task(int64_t n)
{
    enum { TASKS = 6 };
    int64_t panels = n / (WK_QUANT_PANEL * TASKS * wk_pool_threads());
    return WK_QUANT_PANEL * most(1, least(WK_QUANT_PANELS, panels));
}

/* A block of x's rows with a number for which it does not go is multiplied in the usual way. */
static wk_status run_many(thin *t, const quant_many *way, const wk_tensor *x, const void *bias)
{
    int64_t block = least(MANY_ROWS, t->m), bytes = (int64_t)way->x_bytes(block, t->k);
    int64_t columns = columns_per_task(t->n);
    wk_tensor *room = wk_tensor_new(t->y->storage->device, WK_U8, 1, &bytes);
    const wk_tensor *floats = NULL;
    if (!room)
        return wk_error_status();
    for (int64_t i = 0; i < t->m; i += block) {
        many s = {.t = t, .way = way, .i0 = i};
        int64_t m = least(block, t->m - i);
        const char *values = (const char *)wk_ptr(x) + i * t->k * (int64_t)wk_bytes(x->dtype);
        if (way->pack(values, m, t->k, wk_ptr(room), &s.x)) {
            WK_TRY(WK_ISA(wk_bands_run)(t->n, columns, way->panel_bytes(m, columns), many_columns, &s));
            continue;
        }
        if (!floats && !(floats = WK_ISA(wk_compute_copy)(x)))
            return wk_error_status();
        WK_TRY(run_product(t, i, m, floats, bias));
    }
    return WK_OK;
}

/* The way for so many rows; NULL: none. */
static const quant_many *way_for(const thin *t, wk_dtype dtype)
{
    int64_t format = t->q.format;
    if (t->m <= FEW_ROWS || dtype == WK_F64)
        return NULL;
    if (dtype == WK_BF16 && WK_ISA(wk_quant_pairs).has(format))
        return &WK_ISA(wk_quant_pairs);
    if (WK_ISA(wk_quant_pieces).has(format))
        return &WK_ISA(wk_quant_pieces);
    return WK_ISA(wk_quant_digits).has(format) ? &WK_ISA(wk_quant_digits) : NULL;
}

static wk_status run_qlinear(wk_call *c)
{
    wk_compute compute = wk_dtypes[c->dtype].compute;
    const wk_tensor *x, *bias = NULL;
    thin t = {.y = c->out[0], .n = c->in[1]->shape[0]};
    if (wk_count(c->out[0]) == 0)
        return WK_OK;
    WK_TRY(rows_of(c, c->in[1], &t.q));
    t.k = t.q.blocks * t.q.info->block;
    t.m = wk_count(c->out[0]) / t.n;
    t.act.fn = WK_ISA(wk_activation_block)(WK_PARAMS(c, wk_quant_params)->act, compute);
    if (c->in[2] && !(bias = WK_ISA(wk_compute_copy)(c->in[2])))
        return wk_error_status();
    const void *values = bias ? wk_ptr(bias) : NULL;
    t.bias = compute == WK_COMPUTE_F64 ? NULL : values;
    const quant_many *way = way_for(&t, c->dtype);
    x = way && way->dtype == c->dtype ? wk_tensor_packed(c->in[0]) : WK_ISA(wk_compute_copy)(c->in[0]);
    if (!x)
        return wk_error_status();
    if (way)
        return run_many(&t, way, x, values);
    t.x = wk_ptr(x);
    if (compute == WK_COMPUTE_F64)
        return run_product(&t, 0, t.m, x, values);
    WK_TRY(prepare_integers(&t));
    return t.groups || t.m <= THIN_ROWS ? run_thin(&t) : run_product(&t, 0, t.m, x, values);
}

const wk_impl WK_ISA(wk_cpu_quant)[] = {
    {"qlinear", "simd", run_qlinear, NULL, NULL},
    {"dequantize", "simd", run_dequantize, NULL, NULL},
    {"qembedding", "simd", run_qembedding, NULL, NULL},
    {0},
};
