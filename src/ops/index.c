/* index.c: front ends of the ops that ids lead, and their gradients. */
#include <stdatomic.h>
#include <stdlib.h>
#include "index.h"
#include "wick/index.h"

static atomic_int deterministic = -1; /* -1: not asked the environment yet */

void wk_set_deterministic(int on) { atomic_store(&deterministic, on != 0); }

int wk_deterministic(void)
{
    int on = atomic_load_explicit(&deterministic, memory_order_relaxed);
    if (on < 0) {
        const char *text = getenv("WICK_DETERMINISTIC");
        on = !text || strcmp(text, "0") != 0;
        atomic_store(&deterministic, on);
    }
    return on;
}

/* ---- checks and outputs ---- */

/* The dim of a tensor of this rank; a scalar has one in name, as in PyTorch. */
static wk_status find_dim(const wk_call *c, int rank, int *dim)
{
    return wk_call_dim(c, "dim", WK_PARAMS(c, wk_index_params)->dim, rank ? rank : 1, dim);
}

/* ids of the rank and, but for dim, of at most the sizes of a tensor. */
static wk_status check_ids(const wk_call *c, int i, int rank, const int64_t *shape, int dim)
{
    const wk_tensor *ids = c->in[i];
    WK_TRY(wk_call_rank(c, i, rank, rank));
    for (int d = 0; d < rank && wk_count(ids) > 0; d++)
        WK_NEED(d == dim || ids->shape[d] <= shape[d], c, WK_ERR_SHAPE, "ids",
                "expected a size of at most %lld in dim %d, got %lld", (long long)shape[d], d,
                (long long)ids->shape[d]);
    return WK_OK;
}

/* The shape of slices of a tensor: that of the tensor, but as many as there are ids (1-D) in dim. */
static wk_status slices_shape(const wk_call *c, int i, int rank, const int64_t *from, int *dim,
                              int64_t *shape)
{
    wk_shape_text text;
    WK_TRY(wk_call_rank(c, i, 1, 1));
    WK_TRY(wk_call_dim(c, "dim", WK_PARAMS(c, wk_index_params)->dim, rank, dim));
    memcpy(shape, from, (size_t)rank * sizeof *shape);
    shape[*dim] = c->in[i]->shape[0];
    WK_NEED(wk_shape_count(rank, shape) >= 0, c, WK_ERR_SHAPE, "ids",
            "expected a result of less than 2^60 elements, got %s", wk_shape_str(&text, rank, shape));
    return WK_OK;
}

static wk_status infer_gather(wk_call *c)
{
    const wk_tensor *x = c->in[0], *ids = c->in[1];
    int dim;
    WK_TRY(find_dim(c, x->rank, &dim));
    WK_TRY(check_ids(c, 1, x->rank, x->shape, dim));
    wk_call_out(c, 0, c->dtype, ids->rank, ids->shape);
    return WK_OK;
}

static wk_status infer_scatter(wk_call *c)
{
    const wk_tensor *x = c->in[0], *ids = c->in[1], *src = c->in[2];
    int dim;
    WK_TRY(find_dim(c, x->rank, &dim));
    WK_TRY(check_ids(c, 1, x->rank, x->shape, dim));
    WK_TRY(wk_call_rank(c, 2, x->rank, x->rank));
    for (int d = 0; d < x->rank && wk_count(ids) > 0; d++)
        WK_NEED(ids->shape[d] <= src->shape[d], c, WK_ERR_SHAPE, "src",
                "expected a size of at least %lld, that of ids, in dim %d, got %lld",
                (long long)ids->shape[d], d, (long long)src->shape[d]);
    wk_call_out_like(c, 0, x);
    return WK_OK;
}

static wk_status infer_index_select(wk_call *c)
{
    const wk_tensor *x = c->in[0];
    int64_t shape[WK_MAX_RANK];
    int dim;
    WK_TRY(wk_call_rank(c, 0, 1, WK_MAX_RANK));
    WK_TRY(slices_shape(c, 1, x->rank, x->shape, &dim, shape));
    wk_call_out(c, 0, c->dtype, x->rank, shape);
    return WK_OK;
}

static wk_status infer_index_add(wk_call *c)
{
    const wk_tensor *x = c->in[0];
    int64_t shape[WK_MAX_RANK];
    int dim;
    WK_TRY(wk_call_rank(c, 0, 1, WK_MAX_RANK));
    WK_TRY(slices_shape(c, 1, x->rank, x->shape, &dim, shape));
    WK_TRY(wk_call_shape(c, 2, x->rank, shape));
    wk_call_out_like(c, 0, x);
    return WK_OK;
}

static wk_status check_input_size(wk_call *c, int least)
{
    const wk_list *size = &WK_PARAMS(c, wk_index_params)->input_size;
    wk_shape_text text;
    WK_NEED(size->n >= least && wk_shape_count((int)size->n, size->v) >= 0, c, WK_ERR_PARAM, "input_size",
            "expected the shape of x, got %s", wk_shape_str(&text, (int)size->n, size->v));
    wk_call_out(c, 0, c->dtype, (int)size->n, size->v);
    return WK_OK;
}

static wk_status infer_gather_backward(wk_call *c)
{
    const wk_list *size = &WK_PARAMS(c, wk_index_params)->input_size;
    int dim;
    WK_TRY(check_input_size(c, 0));
    WK_TRY(find_dim(c, (int)size->n, &dim));
    WK_TRY(check_ids(c, 0, (int)size->n, size->v, dim));
    return wk_call_same_shape(c, 1, 0);
}

static wk_status infer_index_select_backward(wk_call *c)
{
    const wk_list *size = &WK_PARAMS(c, wk_index_params)->input_size;
    int64_t shape[WK_MAX_RANK];
    int dim;
    WK_TRY(check_input_size(c, 1));
    WK_TRY(slices_shape(c, 0, (int)size->n, size->v, &dim, shape));
    return wk_call_shape(c, 1, (int)size->n, shape);
}

static wk_status infer_scatter_backward(wk_call *c)
{
    const wk_tensor *ids = c->in[0], *dy = c->in[1];
    int dim;
    WK_TRY(find_dim(c, dy->rank, &dim));
    WK_TRY(check_ids(c, 0, dy->rank, dy->shape, dim));
    wk_call_out_like(c, 0, dy);
    wk_call_out(c, 1, c->dtype, ids->rank, ids->shape);
    return WK_OK;
}

static wk_status infer_index_add_backward(wk_call *c)
{
    const wk_tensor *dy = c->in[1];
    int64_t shape[WK_MAX_RANK];
    int dim;
    WK_TRY(wk_call_rank(c, 1, 1, WK_MAX_RANK));
    WK_TRY(slices_shape(c, 0, dy->rank, dy->shape, &dim, shape));
    wk_call_out_like(c, 0, dy);
    wk_call_out(c, 1, c->dtype, dy->rank, shape);
    return WK_OK;
}

/* ---- the table ---- */

#define SAMPLES(name, ...) static const char *const name[] = {__VA_ARGS__, NULL}

SAMPLES(gather_samples, "x=T[4,5] ids=i64[4,7]:0..5 dim=1", "x=T[4,5] ids=u8[9,5]:0..4 dim=0",
        "x=T[3,4,5] ids=i32[2,6,3]:0..4 dim=1", "x=T[4,5] ids=u32[4,0] dim=-1", "x=T[0,5] ids=i64[0,5] dim=0",
        "x=T[7] ids=i64[3]:0..7 dim=0", "x=T[] ids=i64[]:0..1 dim=0",
        "x=T[2,300] ids=u8[2,90]:250..256 dim=1", "x=T[30,70] ids=i64[30,1100]:0..70 dim=1",
        "x=T[70,90] ids=i64[400,90]:0..70 dim=0", "x=T[2,1,2,1,2,1,2,3] ids=i64[2,1,2,1,2,1,2,3]:0..2 dim=6",
        "x=T[600,3] ids=i64[700,3]:0..600 dim=0", "x=T[6]:special ids=i32[9]:0..6 dim=0",
        "x=T[16,2500] ids=i32[16,1025]:0..2500 dim=1", "x=T[17,3072] ids=i64[17,2300]:0..3072 dim=1");
SAMPLES(gather_errors, "x=T[4,5] ids=i64[4,7]:0..5 ! dim", "x=T[4,5] ids=i64[4,7]:0..5 dim=2 ! dim",
        "x=T[4,5] ids=i64[4]:0..5 dim=0 ! ids", "x=T[4,5] ids=i64[5,5]:0..5 dim=1 ! ids",
        "x=T[4,5] ids=i64[4,7]:5..6 dim=1 ! ids", "x=T[4,5] ids=i32[4,7]:-1..0 dim=1 ! -1",
        "x=T[4,5] ids=f32[4,7] dim=1 ! ids", "x=T[4,5] dim=1 ! ids", "x=T[0] ids=i64[2]:0..1 dim=0 ! ids");
SAMPLES(scatter_samples, "x=T[4,5] ids=i64[4,3]:0..5 src=T[4,3] dim=1",
        "x=T[4,5] ids=u8[9,5]:0..4 src=T[9,5] dim=0", "x=T[3,4,5] ids=i32[2,6,3]:0..4 src=T[2,6,3] dim=1",
        "x=T[4,5] ids=u32[4,0] src=T[4,0] dim=-1", "x=T[7] ids=i64[3]:0..7 src=T[3] dim=0",
        "x=T[] ids=i64[]:0..1 src=T[] dim=0", "x=T[2,300] ids=u8[2,90]:250..256 src=T[2,90] dim=1",
        "x=T[30,70] ids=i64[30,1100]:0..70 src=T[30,1100] dim=1",
        "x=T[70,90] ids=i64[400,90]:0..70 src=T[400,90] dim=0",
        "x=T[600,3] ids=i64[700,3]:0..600 src=T[700,3] dim=0", "x=T[3] ids=i64[2100]:0..3 src=T[2100] dim=0",
        "x=T[2,3000] ids=i32[2,2100]:0..3000 src=T[2,2100] dim=1",
        "x=T[9000] ids=i32[300]:0..9000 src=T[300] dim=0", "x=T[2,3] ids=u8[2,2100]:0..3 src=T[2,2100] dim=1",
        "x=T[16,4] ids=i32[16,1025]:0..4 src=T[16,1025] dim=1",
        "x=T[16,2000] ids=i64[16,2048]:0..2000 src=T[16,2048] dim=1",
        "x=T[16,4096] ids=i32[16,1501]:0..4096 src=T[16,1501] dim=1",
        "x=T[16,5000] ids=i64[16,1500]:0..5000 src=T[16,1500] dim=1",
        "x=T[16,3000] ids=i64[16,4200]:0..300 src=T[16,4200] dim=1");
SAMPLES(scatter_errors, "x=T[4,5] ids=i64[4,7]:0..5 src=T[4,7] ! dim",
        "x=T[4,5] ids=i64[4,7]:0..5 src=T[4,7] dim=2 ! dim", "x=T[4,5] ids=i64[4,7]:0..5 dim=1 ! src",
        "x=T[4,5] ids=i64[4]:0..5 src=T[4] dim=0 ! ids", "x=T[4,5] ids=i64[5,5]:0..5 src=T[5,5] dim=1 ! ids",
        "x=T[4,5] ids=i64[4,7]:0..5 src=T[4,6] dim=1 ! src",
        "x=T[4,5] ids=i64[4,7]:0..5 src=T[28] dim=1 ! src",
        "x=T[4,5] ids=i64[4,7]:5..6 src=T[4,7] dim=1 ! ids",
        "x=T[4,5] ids=i64[4,7]:-3..-2 src=T[4,7] dim=1 ! -3",
        "x=f32[4] ids=i64[4]:0..4 src=f64[4] dim=0 ! src");
SAMPLES(select_samples, "x=T[4,5] ids=i64[7]:0..4 dim=0", "x=T[4,5] ids=u8[3]:0..5 dim=1",
        "x=T[3,4,5] ids=i32[6]:0..4 dim=1", "x=T[4,5] ids=u32[0] dim=-1", "x=T[4,0] ids=i64[3]:0..4 dim=0",
        "x=T[7] ids=i64[3]:0..7 dim=0", "x=T[300,2] ids=u8[90]:250..256 dim=0",
        "x=T[90,700] ids=i64[300]:0..90 dim=0", "x=T[40,32] ids=i64[90]:0..40 dim=0",
        "x=T[2,1,2,1,2,1,2,3] ids=i64[4]:0..2 dim=6", "x=T[6]:special ids=i32[9]:0..6 dim=0");
SAMPLES(select_errors, "x=T[4,5] ids=i64[7]:0..4 ! dim", "x=T[4,5] ids=i64[7]:0..4 dim=2 ! dim",
        "x=T[4,5] ids=i64[7,1]:0..4 dim=0 ! ids", "x=T[4,5] ids=i64[7]:4..5 dim=0 ! ids",
        "x=T[4,5] ids=i32[7]:-1..0 dim=0 ! -1", "x=T[4,5] ids=i16[7]:0..4 dim=0 ! ids",
        "x=T[] ids=i64[1]:0..1 dim=0 ! x", "x=T[0,5] ids=i64[1]:0..1 dim=0 ! expected");
SAMPLES(index_add_samples, "x=T[4,5] ids=i64[7]:0..4 src=T[7,5] dim=0",
        "x=T[4,5] ids=u8[3]:0..5 src=T[4,3] dim=1", "x=T[3,4,5] ids=i32[6]:0..4 src=T[3,6,5] dim=1",
        "x=T[4,5] ids=u32[0] src=T[4,0] dim=-1", "x=T[4,0] ids=i64[3]:0..4 src=T[3,0] dim=0",
        "x=T[300,2] ids=u8[90]:250..256 src=T[90,2] dim=0",
        "x=T[90,700] ids=i64[300]:0..90 src=T[300,700] dim=0", "x=T[7] ids=i64[3]:0..7 src=T[3] dim=0",
        "x=T[40,32] ids=i64[900]:0..3 src=T[900,32] dim=0",
        "x=T[20,2048] ids=i32[33]:0..20 src=T[33,2048] dim=0",
        "x=T[300,3] ids=i64[9001]:0..300 src=T[9001,3] dim=0",
        "x=T[40000] ids=i32[66000]:0..40000 src=T[66000] dim=0");
SAMPLES(index_add_errors, "x=T[4,5] ids=i64[7]:0..4 src=T[7,5] ! dim",
        "x=T[4,5] ids=i64[7]:0..4 src=T[6,5] dim=0 ! src", "x=T[4,5] ids=i64[7]:0..4 dim=0 ! src",
        "x=T[4,5] ids=i64[7]:4..5 src=T[7,5] dim=0 ! ids", "x=T[4,5] ids=i64[7]:-9..-8 src=T[7,5] dim=0 ! -9",
        "x=f32[4] ids=i64[4]:0..4 src=f64[4] dim=0 ! src");
SAMPLES(gather_backward_samples, "ids=i64[4,7]:0..5 dy=T[4,7] dim=1 input_size=4,5",
        "ids=i32[2,6,3]:0..4 dy=T[2,6,3] dim=1 input_size=3,4,5",
        "ids=u8[2,90]:250..256 dy=T[2,90] dim=1 input_size=2,300",
        "ids=u32[4,0] dy=T[4,0] dim=1 input_size=4,5", "ids=i64[]:0..1 dy=T[] dim=0 input_size=",
        "ids=i64[400,90]:0..70 dy=T[400,90] dim=0 input_size=70,90");
SAMPLES(gather_backward_errors, "ids=i64[4,7]:0..5 dy=T[4,7] dim=1 ! input_size",
        "ids=i64[4,7]:0..5 dy=T[4,7] dim=1 input_size=4,-5 ! input_size",
        "ids=i64[4,7]:0..5 dy=T[4,6] dim=1 input_size=4,5 ! dy",
        "ids=i64[4,7]:0..5 dy=T[4,7] dim=1 input_size=3,5 ! ids",
        "ids=i64[4,7]:5..6 dy=T[4,7] dim=1 input_size=4,5 ! ids",
        "ids=i64[4,7]:0..5 dy=T[4,7] dim=1 input_size=4611686018427387904,4611686018427387904 ! input_size");
SAMPLES(select_backward_samples, "ids=i64[7]:0..4 dy=T[7,5] dim=0 input_size=4,5",
        "ids=u8[3]:0..5 dy=T[4,3] dim=-1 input_size=4,5",
        "ids=i32[6]:0..4 dy=T[3,6,5] dim=1 input_size=3,4,5", "ids=u32[0] dy=T[0,5] dim=0 input_size=4,5",
        "ids=u8[90]:250..256 dy=T[90,2] dim=0 input_size=300,2",
        "ids=i64[300]:0..90 dy=T[300,700] dim=0 input_size=90,700");
SAMPLES(select_backward_errors, "ids=i64[7]:0..4 dy=T[7,5] dim=0 ! input_size",
        "ids=i64[7]:0..4 dy=T[7,5] dim=0 input_size= ! input_size",
        "ids=i64[7]:0..4 dy=T[6,5] dim=0 input_size=4,5 ! dy",
        "ids=i64[7,1]:0..4 dy=T[7,5] dim=0 input_size=4,5 ! ids",
        "ids=i64[7]:4..5 dy=T[7,5] dim=0 input_size=4,5 ! ids");
SAMPLES(scatter_backward_samples, "ids=i64[4,7]:0..5 dy=T[4,5] dim=1",
        "ids=i32[2,6,3]:0..4 dy=T[3,4,5] dim=1", "ids=u8[2,90]:250..256 dy=T[2,300] dim=1",
        "ids=u32[4,0] dy=T[4,5] dim=1", "ids=i64[]:0..1 dy=T[] dim=0",
        "ids=i64[30,1100]:0..70 dy=T[30,70] dim=1", "ids=i64[400,90]:0..70 dy=T[70,90] dim=0");
SAMPLES(scatter_backward_errors, "ids=i64[4,7]:0..5 dy=T[4,5] ! dim", "ids=i64[4,7]:0..5 dim=1 ! dy",
        "ids=i64[4,7]:0..5 dy=T[3,5] dim=1 ! ids", "ids=i64[7]:0..5 dy=T[3,5] dim=1 ! ids",
        "ids=i64[4,7]:5..6 dy=T[4,5] dim=1 ! ids");
SAMPLES(index_add_backward_samples, "ids=i64[7]:0..4 dy=T[4,5] dim=0", "ids=u8[3]:0..5 dy=T[4,5] dim=1",
        "ids=i32[6]:0..4 dy=T[3,4,5] dim=1", "ids=u32[0] dy=T[4,5] dim=0",
        "ids=u8[90]:250..256 dy=T[300,2] dim=0", "ids=i64[300]:0..90 dy=T[90,700] dim=0");
SAMPLES(index_add_backward_errors, "ids=i64[7]:0..4 dy=T[4,5] ! dim", "ids=i64[7]:0..4 dim=0 ! dy",
        "ids=i64[7,1]:0..4 dy=T[4,5] dim=0 ! ids", "ids=i64[7]:4..5 dy=T[4,5] dim=0 ! ids",
        "ids=i64[7]:0..4 dy=T[] dim=0 ! dy");

#define DIM \
    { \
        "dim", WK_P_INT, offsetof(wk_index_params, dim), NULL, NULL, 0 \
    }
#define INPUT_SIZE \
    { \
        "input_size", WK_P_LIST, offsetof(wk_index_params, input_size), NULL, NULL, 0 \
    }

enum {
#define INDEX(name) OP_##name, OP_##name##_backward
    INDEX(gather),
    INDEX(scatter),
    INDEX(scatter_add),
    INDEX(index_select),
    INDEX(index_add),
#undef INDEX
};

#define READ(name_, summary_, samples_) \
    [OP_##name_] = {.name = #name_, \
                    .summary = summary_, \
                    .dtypes = WK_ALL, \
                    .in = {{"x", 0, 0}, {"ids", 0, WK_IDS}}, \
                    .out = {{"y", 0, 0}}, \
                    .params = WK_PARAM_LIST(DIM), \
                    .infer = infer_##name_, \
                    .samples = samples_##_samples, \
                    .errors = samples_##_errors}, \
    [OP_##name_##_backward] = {.name = #name_ "_backward", \
                               .summary = "gradient of " #name_, \
                               .dtypes = WK_ALL, \
                               .in = {{"ids", 0, WK_IDS}, {"dy", 0, 0}}, \
                               .out = {{"dx", 0, 0}}, \
                               .params = WK_PARAM_LIST(DIM, INPUT_SIZE), \
                               .infer = infer_##name_##_backward, \
                               .samples = samples_##_backward_samples, \
                               .errors = samples_##_backward_errors}
#define WRITE(name_, summary_, check_, samples_) \
    [OP_##name_] = {.name = #name_, \
                    .summary = summary_, \
                    .dtypes = WK_ALL, \
                    .in = {{"x", WK_UPDATE, 0}, {"ids", 0, WK_IDS}, {"src", 0, 0}}, \
                    .out = {{"y", 0, 0}}, \
                    .any_output = true, \
                    .params = WK_PARAM_LIST(DIM), \
                    .infer = infer_##check_, \
                    .samples = samples_##_samples, \
                    .errors = samples_##_errors}, \
    [OP_##name_##_backward] = {.name = #name_ "_backward", \
                               .summary = "gradients of " #name_, \
                               .dtypes = WK_ALL, \
                               .in = {{"ids", 0, WK_IDS}, {"dy", 0, 0}}, \
                               .out = {{"dx", WK_SKIP, 0}, {"dsrc", WK_SKIP, 0}}, \
                               .params = WK_PARAM_LIST(DIM), \
                               .infer = infer_##check_##_backward, \
                               .samples = samples_##_backward_samples, \
                               .errors = samples_##_backward_errors}

wk_op wk_ops_index[] = {
    READ(gather, "elements at ids along a dim", gather),
    WRITE(scatter, "src written over x at ids along a dim", scatter, scatter),
    WRITE(scatter_add, "src added to x at ids along a dim", scatter, scatter),
    READ(index_select, "slices at ids along a dim", select),
    WRITE(index_add, "slices of src added to those of x at ids", index_add, index_add),
    {0},
};

/* ---- the API ---- */

static wk_tensor *run(int op, const wk_tensor *x, const wk_tensor *ids, const wk_tensor *src, int dim)
{
    wk_index_params p = {.dim = dim};
    return wk_call_run1(&(wk_call){.op = &wk_ops_index[op], .params = &p, .in = {x, ids, src}});
}

static wk_status run_into(int op, wk_tensor *dst, const wk_tensor *x, const wk_tensor *ids,
                          const wk_tensor *src, int dim)
{
    wk_index_params p = {.dim = dim};
    wk_call c = {.op = &wk_ops_index[op], .params = &p, .in = {x, ids, src}, .out = {dst}};
    if (wk_pending())
        return wk_error_status();
    if (!dst)
        return wk_call_fail(&c, WK_ERR_ARGUMENT, "dst", "expected a tensor, got NULL");
    return wk_call_run(&c);
}

static wk_tensor *run_read_backward(int op, const wk_tensor *ids, const wk_tensor *dy, int dim, int rank,
                                    const int64_t *input_size)
{
    wk_index_params p = {.dim = dim, .input_size.n = rank};
    wk_call c = {.op = &wk_ops_index[op], .params = &p, .in = {ids, dy}};
    if (wk_pending())
        return NULL;
    if (rank < 0 || rank > WK_MAX_RANK || (rank > 0 && !input_size)) {
        wk_call_fail(&c, WK_ERR_PARAM, "input_size", "expected 0 to %d sizes, got %d", WK_MAX_RANK,
                     input_size ? rank : 0);
        return NULL;
    }
    if (rank > 0)
        memcpy(p.input_size.v, input_size, (size_t)rank * sizeof *input_size);
    return wk_call_run1(&c);
}

static wk_status run_write_backward(int op, const wk_tensor *ids, const wk_tensor *dy, int dim,
                                    wk_tensor **dx, wk_tensor **dsrc)
{
    wk_index_params p = {.dim = dim};
    wk_call c = {.op = &wk_ops_index[op], .params = &p, .in = {ids, dy}};
    return wk_call_run_into(&c, (wk_tensor * *const[]){dx, dsrc}, 2);
}

wk_tensor *wk_gather(const wk_tensor *x, const wk_tensor *ids, int dim)
{
    return run(OP_gather, x, ids, NULL, dim);
}

wk_tensor *wk_index_select(const wk_tensor *x, const wk_tensor *ids, int dim)
{
    return run(OP_index_select, x, ids, NULL, dim);
}

wk_tensor *wk_gather_backward(const wk_tensor *ids, const wk_tensor *dy, int dim, int rank,
                              const int64_t *input_size)
{
    return run_read_backward(OP_gather_backward, ids, dy, dim, rank, input_size);
}

wk_tensor *wk_index_select_backward(const wk_tensor *ids, const wk_tensor *dy, int dim, int rank,
                                    const int64_t *input_size)
{
    return run_read_backward(OP_index_select_backward, ids, dy, dim, rank, input_size);
}

#define API_WRITE(name) \
    wk_tensor *wk_##name(const wk_tensor *x, const wk_tensor *ids, const wk_tensor *src, int dim) \
    { \
        return run(OP_##name, x, ids, src, dim); \
    } \
    wk_status wk_##name##_into(wk_tensor *dst, const wk_tensor *x, const wk_tensor *ids, \
                               const wk_tensor *src, int dim) \
    { \
        return run_into(OP_##name, dst, x, ids, src, dim); \
    } \
    wk_status wk_##name##_backward(const wk_tensor *ids, const wk_tensor *dy, int dim, wk_tensor **dx, \
                                   wk_tensor **dsrc) \
    { \
        return run_write_backward(OP_##name##_backward, ids, dy, dim, dx, dsrc); \
    }
API_WRITE(scatter)
API_WRITE(scatter_add)
API_WRITE(index_add)
