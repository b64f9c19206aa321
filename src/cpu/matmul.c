/* matmul.c: matmul, linear and their gradients on the GEMM core. */
#include "ops/act.h"
#include "ops/matmul.h"
#include "core/families.h"
#include "core/memory.h"
#include "activation.h"
#include "gemm.h"
#include "map.h"
#include "reduce.h"

static wk_status gemm_failed(void)
{
    return wk_fail(WK_ERR_MEMORY, "out of memory for packing the operands");
}

/* The last two dimensions of t as a matrix. */
static wk_mat matrix_of(const wk_tensor *t)
{
    return (wk_mat){wk_ptr(t), t->dtype, t->strides[t->rank - 2], t->strides[t->rank - 1]};
}

static wk_mat transposed(wk_mat m) { return (wk_mat){m.data, m.dtype, m.cs, m.rs}; }

/* Where product i of the batch begins in t, whose leading dimensions are those of the result. */
static int64_t batch_offset(const wk_tensor *t, int64_t i)
{
    int64_t offset = 0;
    for (int d = t->rank - 3; d >= 0; d--) {
        offset += i % t->shape[d] * t->strides[d];
        i /= t->shape[d];
    }
    return offset;
}

/* Products of a batch of matrices a, b into y, all with the same leading dimensions. */
static wk_status batched(const wk_tensor *a, const wk_tensor *b, const wk_tensor *y)
{
    wk_gemm_args g = {.m = y->shape[y->rank - 2],
                      .n = y->shape[y->rank - 1],
                      .k = a->shape[a->rank - 1],
                      .a = matrix_of(a),
                      .b = matrix_of(b),
                      .c = matrix_of(y)};
    int64_t batch = wk_shape_count(y->rank - 2, y->shape);
    if (batch == 1)
        return WK_ISA(wk_gemm)(&g) ? WK_OK : gemm_failed();
    size_t bytes = (size_t)batch * 3 * sizeof(int64_t);
    int64_t *offsets = wk_alloc(bytes);
    if (!offsets)
        return wk_fail(WK_ERR_MEMORY, "out of memory: %zu bytes", bytes);
    for (int64_t i = 0; i < batch; i++) {
        offsets[i] = batch_offset(a, i);
        offsets[batch + i] = batch_offset(b, i);
        offsets[2 * batch + i] = batch_offset(y, i);
    }
    bool done = WK_ISA(wk_gemm_batch)(&g, batch, offsets, offsets + batch, offsets + 2 * batch);
    wk_free(offsets);
    return done ? WK_OK : gemm_failed();
}

/* Views a, b, y of one batch. */
static wk_status product(wk_tensor a, wk_tensor b, wk_tensor y)
{
    wk_join_batch(&a, &b, &y);
    return batched(&a, &b, &y);
}

static wk_status run_matmul(wk_call *c)
{
    wk_matmul_shape s;
    WK_TRY(wk_matmul_shapes(c, c->in[0], c->in[1], &s));
    if (wk_count(c->out[0]) == 0)
        return WK_OK;
    return product(s.a, s.b, wk_matmul_result(c->out[0], &s, s.m, s.n));
}

/* x . y for every product of the batch into out, summed over the batch dimensions that out (with `own` leading
 * dimensions of its own) is broadcast over. */
static wk_status product_and_sum(const wk_matmul_shape *s, wk_tensor x, wk_tensor y, int own, wk_tensor *out)
{
    int64_t rows = x.shape[x.rank - 2], cols = y.shape[y.rank - 1];
    if (wk_count(out) == wk_shape_count(s->rank, s->lead) * rows * cols)
        return product(x, y, wk_matmul_result(out, s, rows, cols));
    wk_tensor shape = wk_matmul_result(out, s, rows, cols);
    wk_tensor *full = wk_tensor_new(out->storage->device, wk_stat_dtype(out->dtype), shape.rank, shape.shape);
    if (!full)
        return wk_error_status();
    WK_TRY(product(x, y, *full));
    wk_tensor target = wk_tensor_local(out);
    target.rank = own + 2;
    target.shape[own] = rows;
    target.shape[own + 1] = cols;
    return WK_ISA(wk_sum_to)(full, &target);
}

/* b's gradient where one b serves the whole batch: a and dy as tall matrices, one product. */
static bool shared_weight(wk_tensor *a, wk_tensor *dy, const wk_tensor *b)
{
    wk_tensor tall_a = wk_tensor_local(a), tall_dy = wk_tensor_local(dy);
    if (b->rank != 2 || !wk_join_rows(&tall_a) || !wk_join_rows(&tall_dy))
        return false;
    *a = tall_a;
    *dy = tall_dy;
    return true;
}

static wk_status run_matmul_backward(wk_call *c)
{
    const wk_tensor *a = c->in[0], *b = c->in[1], *packed = wk_tensor_packed(c->in[2]);
    wk_matmul_shape s;
    WK_TRY(wk_matmul_shapes(c, a, b, &s));
    if (!packed)
        return wk_error_status();
    wk_tensor dy = wk_matmul_result(packed, &s, s.m, s.n);
    if (c->out[0])
        WK_TRY(product_and_sum(&s, dy, wk_flipped(&s.b), a->rank > 1 ? a->rank - 2 : 0, c->out[0]));
    if (c->out[1] && shared_weight(&s.a, &dy, b))
        return product(wk_flipped(&s.a), dy, *c->out[1]);
    if (c->out[1])
        WK_TRY(product_and_sum(&s, wk_flipped(&s.a), dy, b->rank > 1 ? b->rank - 2 : 0, c->out[1]));
    return WK_OK;
}

/* ---- linear ---- */

/* add: what y holds already is added to the product. */
static wk_status multiply_linear(const wk_call *c, const wk_activation_ctx *act, bool add)
{
    wk_tensor x, y;
    const wk_tensor *bias = NULL;
    if (wk_count(c->out[0]) == 0)
        return WK_OK;
    WK_TRY(wk_as_rows(c->in[0], &x));
    WK_TRY(wk_as_rows(c->out[0], &y));
    if (c->in[2] && !(bias = WK_ISA(wk_compute_copy)(c->in[2])))
        return wk_error_status();
    wk_gemm_args g = {.m = y.shape[0],
                      .n = y.shape[1],
                      .k = x.shape[1],
                      .a = matrix_of(&x),
                      .b = transposed(matrix_of(c->in[1])),
                      .c = matrix_of(&y),
                      .col_bias = bias ? wk_ptr(bias) : NULL,
                      .accumulate = add,
                      .act = act->fn ? WK_ISA(wk_activation_row) : NULL,
                      .act_ctx = act};
    return WK_ISA(wk_gemm)(&g) ? WK_OK : gemm_failed();
}

static wk_status run_linear(wk_call *c)
{
    wk_compute compute = wk_dtypes[c->dtype].compute;
    wk_activation_ctx act = {.fn = WK_ISA(wk_activation_block)(WK_PARAMS(c, wk_linear_params)->act, compute)};
    return multiply_linear(c, &act, false);
}

/* z goes to y first, and the product is added to it before the activation. */
static wk_status run_linear_act(wk_call *c)
{
    wk_act a = wk_act_of(c);
    wk_activation_ctx act = {.fn = WK_ISA(wk_activation_block)(a.kind, wk_dtypes[c->dtype].compute),
                             .numbers.f = {a.alpha, a.beta}};
    const wk_tensor *z = c->in[WK_LINEAR_ACT_Z];
    if (z)
        WK_TRY(wk_copy_into(c->out[0], z));
    return multiply_linear(c, &act, z != NULL);
}

static wk_status run_linear_backward(wk_call *c)
{
    wk_tensor x, dy, dx, weight = wk_tensor_local(c->in[1]);
    WK_TRY(wk_as_rows(c->in[0], &x));
    WK_TRY(wk_as_rows(c->in[2], &dy));
    if (c->out[0] && wk_count(c->out[0])) {
        WK_TRY(wk_as_rows(c->out[0], &dx));
        WK_TRY(batched(&dy, &weight, &dx));
    }
    if (c->out[1] && wk_count(c->out[1])) {
        wk_tensor dy_t = wk_flipped(&dy);
        WK_TRY(batched(&dy_t, &x, c->out[1]));
    }
    return c->out[2] ? WK_ISA(wk_reduce)(WK_R_SUM, &dy, 1, NULL, c->out[2], NULL) : WK_OK;
}

const wk_impl WK_ISA(wk_cpu_matmul)[] = {
    {"matmul", "simd", run_matmul, NULL, NULL},
    {"matmul_backward", "simd", run_matmul_backward, NULL, NULL},
    {"linear", "simd", run_linear, NULL, NULL},
    {"linear_act", "simd", run_linear_act, NULL, NULL},
    {"linear_backward", "simd", run_linear_backward, NULL, NULL},
    {0},
};
