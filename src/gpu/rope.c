/* rope.c: rotary embedding on the GPU. */
#include "ops/rope.h"
#include "families.h"
#include "gpu.h"
#include "ids.h"
#include "kernels/rope.h"
#include "wick/ops.h"

static const wk_kernel kernel = {"rope", "rope", "rope_args", 256, .types = 1, .ints = 2};

/* t itself where the elements of its last dimension lie side by side, else a packed copy. */
static const wk_tensor *side_by_side(const wk_tensor *t)
{
    int last = t->rank - 1;
    return t->strides[last] == 1 || t->shape[last] <= 1 ? t : wk_tensor_packed(t);
}

/* Pairs a thread turns at once: 16 bytes of each side, where everything is a multiple of that. */
static int vector_width(const rope_args *a, wk_dtype dtype)
{
    i64 vec = (i64)(16 / wk_bytes(dtype));
    const i64 multiples[] = {a->r, a->d, a->x_b, a->x_h, a->x_t, a->cos_b, a->cos_t, a->sin_b, a->sin_t};
    for (size_t i = 0; i < sizeof multiples / sizeof *multiples; i++) {
        if (multiples[i] % vec)
            return 1;
    }
    if ((a->k_b | a->k_h | a->k_t | a->v_b | a->v_h) % vec)
        return 1;
    size_t any = (size_t)a->x | (size_t)a->y | (size_t)a->cos | (size_t)a->sin | (size_t)a->k |
                 (size_t)a->k_y | (size_t)a->v | (size_t)a->v_y;
    return any % 16 ? 1 : (int)vec;
}

/* rope_qk's keys. */
static wk_status add_keys(const wk_call *c, rope_args *a, int h, int t)
{
    const wk_tensor *k = side_by_side(c->in[3]), *y = c->out[1];
    if (!k)
        return wk_error_status();
    a->k = wk_ptr(k);
    a->k_y = wk_ptr(y);
    a->k_b = k->strides[0];
    a->k_h = k->strides[h];
    a->k_t = k->strides[t];
    a->k_y_b = y->strides[0];
    a->k_y_h = y->strides[h];
    a->k_y_t = y->strides[t];
    a->k_heads = (i32)k->shape[h];
    return WK_OK;
}

/* The rows of a cache that rope_cache gives: all of it where it is not changed in place. */
static wk_status place_cache(const wk_tensor *given, wk_tensor *y)
{
    return wk_ptr(given) == wk_ptr(y) ? WK_OK : wk_copy_into(y, given);
}

/* rope_cache's values, and that keys and values go to a cache [b, h, places, d]. */
static wk_status add_cache(const wk_call *c, rope_args *a)
{
    const wk_tensor *v = side_by_side(c->in[4]), *place = wk_tensor_packed(c->in[7]);
    wk_tensor *keys = c->out[1], *values = c->out[2];
    if (!v || !place)
        return wk_error_status();
    WK_TRY(place_cache(c->in[5], keys));
    WK_TRY(place_cache(c->in[6], values));
    a->v = wk_ptr(v);
    a->v_b = v->strides[0];
    a->v_h = v->strides[2];
    a->v_y = wk_ptr(values);
    a->v_y_b = values->strides[0];
    a->v_y_h = values->strides[1];
    a->v_y_t = values->strides[2];
    a->k_y_h = keys->strides[1];
    a->k_y_t = keys->strides[2];
    a->place = wk_ptr(place);
    a->id_bytes = wk_id_bytes(place->dtype);
    a->limit = keys->shape[2];
    a->report = wk_report_of(c, 7);
    return WK_OK;
}

static wk_status run_rope(wk_call *c)
{
    const wk_rope_kind of_call = wk_rope_kind_of(c), *kind = &of_call;
    const wk_tensor *x = side_by_side(c->in[0]), *cos = side_by_side(c->in[1]), *sin = side_by_side(c->in[2]);
    wk_tensor *y = c->out[0];
    if (!x || !cos || !sin)
        return wk_error_status();
    if (wk_count(y) == 0 && !(c->in[3] && wk_count(c->out[1])))
        return WK_OK;
    int t = kind->thd ? 1 : 2, h = kind->thd ? 2 : 1, angle = cos->rank - 2;
    rope_args a = {.x = wk_ptr(x),
                   .cos = wk_ptr(cos),
                   .sin = wk_ptr(sin),
                   .y = wk_ptr(y),
                   .x_b = x->strides[0],
                   .x_h = x->strides[h],
                   .x_t = x->strides[t],
                   .y_b = y->strides[0],
                   .y_h = y->strides[h],
                   .y_t = y->strides[t],
                   .cos_b = angle ? cos->strides[0] : 0,
                   .cos_t = cos->strides[angle],
                   .sin_b = angle ? sin->strides[0] : 0,
                   .sin_t = sin->strides[angle],
                   .h = (i32)x->shape[h],
                   .t = (i32)x->shape[t],
                   .d = (i32)x->shape[3],
                   .r = (i32)cos->shape[angle + 1],
                   .sign = kind->backward ? -1 : 1};
    if (c->in[3])
        WK_TRY(add_keys(c, &a, h, t));
    if (c->in[4])
        WK_TRY(add_cache(c, &a));
    int vec = vector_width(&a, c->dtype);
    a.k_turn = (a.h + WK_ROPE_HEADS - 1) / WK_ROPE_HEADS;
    a.v_turn = a.k_turn + (a.k_heads + WK_ROPE_HEADS - 1) / WK_ROPE_HEADS;
    a.turns = a.v_turn + (a.v ? a.v_turn - a.k_turn : 0);
    a.per_row = (a.d - a.r) / vec;
    a.tasks = x->shape[0] * a.turns * a.t * a.per_row;
    a.by_per_row = wk_divisor_of(a.per_row);
    a.by_t = wk_divisor_of(a.t);
    a.by_turns = wk_divisor_of(a.turns);
    return WK_LAUNCH(c, &kernel,
                     WK_INSTANCE(.t = {(unsigned char)c->dtype}, .i = {(short)vec, (short)kind->interleaved}),
                     ((wk_grid){.x = wk_blocks(a.tasks, 256, WK_GRID_MAX)}), a);
}

/* Positions and places in a row are 32-bit. */
static const char *refuse_huge(const wk_call *c)
{
    for (int d = 1; d < 4; d++) {
        if (c->in[0]->shape[d] > INT32_MAX || (c->in[3] && c->in[3]->shape[d] > INT32_MAX / 2))
            return "a dimension has 2^31 elements or more";
    }
    return NULL;
}

/* One token of each text, turned as a whole, values as wide as keys. */
static const char *refuse_cache(const wk_call *c)
{
    const wk_tensor *q = c->in[0], *cos = c->in[1], *v = c->in[4];
    if (q->shape[1] != 1)
        return "more or fewer than one position";
    if (2 * cos->shape[cos->rank - 1] != q->shape[3] || v->shape[3] != q->shape[3])
        return "heads that are turned in part, or values of another width";
    if (wk_count(c->out[0]) == 0 || wk_count(c->in[3]) == 0)
        return "no elements";
    return refuse_huge(c);
}

#define KIND(...) (&(const wk_rope_kind){__VA_ARGS__})

const wk_impl wk_gpu_impls_rope[] = {
    {"rope", "kernel", run_rope, refuse_huge, KIND(false, false, false)},
    {"rope_backward", "kernel", run_rope, refuse_huge, KIND(false, false, true)},
    {"rope_i", "kernel", run_rope, refuse_huge, KIND(true, false, false)},
    {"rope_i_backward", "kernel", run_rope, refuse_huge, KIND(true, false, true)},
    {"rope_thd", "kernel", run_rope, refuse_huge, KIND(false, true, false)},
    {"rope_thd_backward", "kernel", run_rope, refuse_huge, KIND(false, true, true)},
    {"rope_qk", "kernel", run_rope, refuse_huge, NULL},
    {"rope_cache", "kernel", run_rope, refuse_cache, KIND(false, true, false)},
    {0},
};
