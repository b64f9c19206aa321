/* binary.c: arithmetic on two tensors, comparison, where, and their gradients. */
#include "core/families.h"
#include "activation.h"
#include "lanes.h"
#include "map.h"
#include "reduce.h"

#include "real_f32.h"
#include "binary.inc.h"
#include "real_f64.h"
#include "binary.inc.h"

/* ---- elements as they are, for ops that are done before the next ones come out of memory ---- */

#define DIRECT(name, formula) \
    static inline wk_lanes name##_lanes(wk_lanes a, wk_lanes b) { return formula; } \
    WK_LANES_BINARY_F32(name##_lanes_f32, name##_lanes, 1, several)
DIRECT(add, a + b)
DIRECT(sub, a - b)
DIRECT(mul, a *b)
DIRECT(div, a / b)
#undef DIRECT
WK_LANES_BINARY(add_bf16, add_lanes, wk_words_of, 1, several)
WK_LANES_BINARY(sub_bf16, sub_lanes, wk_words_of, 1, several)
WK_LANES_BINARY(mul_bf16, mul_lanes, wk_words_of, 1, several)

/* ---- integers: sums and products without a sign, where wrapping is defined ---- */

#define INTEGER(name, formula) \
    static void name##_i64(void *out, const void *const *in, int64_t n, const void *params) \
    { \
        const int64_t *as = in[0], *bs = in[1]; \
        int64_t *ys = out; \
        (void)params; \
        WK_INDEPENDENT for (int64_t i = 0; i < n; i++) \
        { \
            int64_t a = as[i], b = bs[i]; \
            ys[i] = formula; \
        } \
    }
INTEGER(add, (int64_t)((uint64_t)a + (uint64_t)b))
INTEGER(sub, (int64_t)((uint64_t)a - (uint64_t)b))
INTEGER(mul, (int64_t)((uint64_t)a *(uint64_t)b))
INTEGER(minimum, a < b ? a : b)
INTEGER(maximum, a > b ? a : b)
INTEGER(eq, a == b)
INTEGER(ne, a != b)
INTEGER(lt, a < b)
INTEGER(le, a <= b)
INTEGER(gt, a > b)
INTEGER(ge, a >= b)
#undef INTEGER

/* A zero divisor is noted in *params and reported after the run; INT64_MIN / -1 wraps. */
static void div_i64(void *out, const void *const *in, int64_t n, const void *params)
{
    const int64_t *as = in[0], *bs = in[1];
    int64_t *ys = out;
    for (int64_t i = 0; i < n; i++) {
        if (bs[i] == 0)
            atomic_store((atomic_int *)params, 1);
        ys[i] = bs[i] == 0 ? 0 : bs[i] == -1 ? (int64_t) - (uint64_t)as[i] : as[i] / bs[i];
    }
}

static void where_i64(void *out, const void *const *in, int64_t n, const void *params)
{
    const int64_t *cond = in[0], *as = in[1], *bs = in[2];
    int64_t *ys = out;
    (void)params;
    for (int64_t i = 0; i < n; i++)
        ys[i] = cond[i] ? as[i] : bs[i];
}

/* ---- running them ---- */

typedef struct {
    wk_block_fn fn[3];                   /* by wk_compute */
    wk_lanes_fn direct_f32, direct_bf16; /* NULL: there is none */
} binary_row;

static wk_status run_binary(wk_call *c)
{
    const binary_row *row = c->impl->data;
    wk_compute compute = wk_dtypes[c->dtype].compute;
    atomic_int zero_divisor = 0;
    wk_map m = {.in = {c->in[0], c->in[1]},
                .in_compute = {compute, compute},
                .n_in = 2,
                .out = c->out[0],
                .out_compute = compute,
                .fn = row->fn[compute],
                .direct_f32 = row->direct_f32,
                .direct_bf16 = row->direct_bf16,
                .params = &zero_divisor};
    WK_TRY(WK_ISA(wk_map_run)(&m));
    if (zero_divisor)
        return wk_call_fail(c, WK_ERR_INDEX, "b", "integer division by zero");
    return WK_OK;
}

static wk_status run_compare(wk_call *c)
{
    const binary_row *row = c->impl->data;
    wk_compute compute = wk_dtypes[c->dtype].compute;
    wk_map m = {.in = {c->in[0], c->in[1]},
                .in_compute = {compute, compute},
                .n_in = 2,
                .out = c->out[0],
                .out_compute = WK_COMPUTE_I64,
                .fn = row->fn[compute]};
    return WK_ISA(wk_map_run)(&m);
}

static wk_status run_where(wk_call *c)
{
    const binary_row *row = c->impl->data;
    wk_compute compute = wk_dtypes[c->dtype].compute;
    wk_map m = {.in = {c->in[0], c->in[1], c->in[2]},
                .in_compute = {WK_COMPUTE_I64, compute, compute},
                .n_in = 3,
                .out = c->out[0],
                .out_compute = compute,
                .fn = row->fn[compute]};
    return WK_ISA(wk_map_run)(&m);
}

/* ---- gradients ---- */

typedef struct {
    wk_block_fn fn[2][2]; /* for a, b; by wk_compute */
} gradient_row;

/* Runs a map whose result has shape of dy into out, summing over the dimensions out is broadcast over. The
 * values between the two are kept in the compute type: one rounding, at the end. */
static wk_status map_and_sum(wk_map *m, const wk_tensor *dy, wk_tensor *out)
{
    m->out = out;
    if (wk_shape_equal(out->rank, out->shape, dy->rank, dy->shape))
        return WK_ISA(wk_map_run)(m);
    m->out = wk_tensor_new(out->storage->device, wk_compute_dtype(m->out_compute), dy->rank, dy->shape);
    if (!m->out)
        return wk_error_status();
    WK_TRY(WK_ISA(wk_map_run)(m));
    return WK_ISA(wk_sum_to)(m->out, out);
}

static wk_status run_gradients(wk_call *c)
{
    const gradient_row *row = c->impl->data;
    wk_compute compute = wk_dtypes[c->dtype].compute;
    for (int i = 0; i < 2; i++) {
        wk_map m = {.in = {c->in[0], c->in[1], c->in[2]},
                    .in_compute = {compute, compute, compute},
                    .n_in = 3,
                    .out_compute = compute,
                    .fn = row->fn[i][compute]};
        if (c->out[i])
            WK_TRY(map_and_sum(&m, c->in[2], c->out[i]));
    }
    return WK_OK;
}

static wk_status run_where_gradients(wk_call *c)
{
    const gradient_row *row = c->impl->data;
    wk_compute compute = wk_dtypes[c->dtype].compute;
    for (int i = 0; i < 2; i++) {
        wk_map m = {.in = {c->in[0], c->in[3]},
                    .in_compute = {WK_COMPUTE_I64, compute},
                    .n_in = 2,
                    .out_compute = compute,
                    .fn = row->fn[i][compute]};
        if (c->out[i])
            WK_TRY(map_and_sum(&m, c->in[3], c->out[i]));
    }
    return WK_OK;
}

#define ROW(name, run) \
    { \
#name, "simd", run, NULL, &(const binary_row) \
        { \
            .fn = { name##_f32, name##_f64, name##_i64 } \
        } \
    }
#define DIRECT_ROW(name, on_bf16) \
    { \
#name, "simd", run_binary, NULL, &(const binary_row) \
        { \
            {name##_f32, name##_f64, name##_i64}, WK_WIDE_LANES(name##_lanes_f32), on_bf16 \
        } \
    }
#define GRADIENTS(name, run) \
    { \
#name "_backward", "simd", run, NULL, &(const gradient_row) \
        { \
            { \
                {name##_da_f32, name##_da_f64}, { name##_db_f32, name##_db_f64 } \
            } \
        } \
    }

const wk_impl WK_ISA(wk_cpu_binary)[];

wk_block_fn WK_ISA(wk_binary_block)(const char *op, wk_compute compute)
{
    for (const wk_impl *i = WK_ISA(wk_cpu_binary); i->op; i++) {
        bool forward = i->run == run_binary || i->run == run_compare || i->run == run_where;
        if (forward && strcmp(i->op, op) == 0)
            return ((const binary_row *)i->data)->fn[compute];
    }
    return NULL;
}

const wk_impl WK_ISA(wk_cpu_binary)[] = {
    DIRECT_ROW(add, add_bf16),
    DIRECT_ROW(sub, sub_bf16),
    DIRECT_ROW(mul, mul_bf16),
    DIRECT_ROW(div, NULL),
    ROW(minimum, run_binary),
    ROW(maximum, run_binary),
    {"pow", "simd", run_binary, NULL, &(const binary_row){.fn = {pow_f32, pow_f64, NULL}}},
    ROW(eq, run_compare),
    ROW(ne, run_compare),
    ROW(lt, run_compare),
    ROW(le, run_compare),
    ROW(gt, run_compare),
    ROW(ge, run_compare),
    ROW(where, run_where),
    GRADIENTS(add, run_gradients),
    GRADIENTS(sub, run_gradients),
    GRADIENTS(mul, run_gradients),
    GRADIENTS(div, run_gradients),
    GRADIENTS(minimum, run_gradients),
    GRADIENTS(maximum, run_gradients),
    GRADIENTS(pow, run_gradients),
    GRADIENTS(where, run_where_gradients),
    {0},
};
