/* copy.c: references of the ops that move elements: for each element of the result, where it comes from. */
#include "ops/copy.h"
#include "ops/reduce.h"
#include "wick/copy.h"
#include "ref.h"

/* The place of element i of a shape in each dim, and back. */
static void places(int rank, const int64_t *shape, int64_t i, int64_t *at)
{
    for (int d = rank - 1; d >= 0; d--) {
        at[d] = i % shape[d];
        i /= shape[d];
    }
}

static int64_t number(int rank, const int64_t *shape, const int64_t *at)
{
    int64_t i = 0;
    for (int d = 0; d < rank; d++)
        i = i * shape[d] + at[d];
    return i;
}

static void move_all(wk_tensor *y, const wk_tensor *x)
{
    for (int64_t i = 0; i < wk_count(y); i++)
        wk_ref_move(y, i, x, i);
}

static wk_status run_copy(wk_call *c)
{
    move_all(c->out[0], c->in[0]);
    return WK_OK;
}

static wk_status run_copy2d(wk_call *c)
{
    const wk_copy2d_params *p = c->params;
    move_all(c->out[0], c->in[1]);
    for (int64_t r = 0; r < p->rows; r++) {
        for (int64_t i = 0; i < p->cols; i++)
            wk_ref_move(c->out[0], p->dst_offset + r * p->dst_stride + i, c->in[0],
                        p->src_offset + r * p->src_stride + i);
    }
    return WK_OK;
}

static wk_status run_cat(wk_call *c)
{
    wk_tensor *y = c->out[0];
    int dim = wk_shape_dim(y->rank, WK_PARAMS(c, wk_cat_params)->dim);
    for (int64_t i = 0; i < wk_count(y); i++) {
        int64_t at[WK_MAX_RANK];
        int k = 0;
        places(y->rank, y->shape, i, at);
        for (; wk_cat_skips(c->tail[k]) || at[dim] >= c->tail[k]->shape[dim]; k++)
            at[dim] -= wk_cat_skips(c->tail[k]) ? 0 : c->tail[k]->shape[dim];
        wk_ref_move(y, i, c->tail[k], number(y->rank, c->tail[k]->shape, at));
    }
    return WK_OK;
}

static wk_status run_stack(wk_call *c)
{
    wk_tensor *y = c->out[0];
    int dim = wk_shape_dim(y->rank, WK_PARAMS(c, wk_cat_params)->dim);
    for (int64_t i = 0; i < wk_count(y); i++) {
        int64_t at[WK_MAX_RANK] = {0}, k;
        places(y->rank, y->shape, i, at);
        k = at[dim];
        memmove(at + dim, at + dim + 1, (size_t)(y->rank - dim - 1) * sizeof *at);
        wk_ref_move(y, i, c->tail[k], number(y->rank - 1, c->tail[k]->shape, at));
    }
    return WK_OK;
}

static wk_status run_pad(wk_call *c)
{
    const wk_pad_params *p = c->params;
    const wk_tensor *x = c->in[0];
    int dim = wk_shape_dim(x->rank, p->dim);
    int64_t n = x->shape[dim];
    for (int64_t i = 0; i < wk_count(c->out[0]); i++) {
        int64_t at[WK_MAX_RANK];
        places(x->rank, c->out[0]->shape, i, at);
        int64_t j = at[dim] - p->left, nearest = j < 0 ? 0 : j >= n ? n - 1 : j;
        at[dim] = p->mode == WK_PAD_REFLECT ? 2 * nearest - j : nearest;
        if (p->mode == WK_PAD_ZEROS && j != nearest)
            wk_ref_set(c->out[0], i, 0);
        else
            wk_ref_move(c->out[0], i, x, number(x->rank, x->shape, at));
    }
    return WK_OK;
}

static wk_status run_flip(wk_call *c)
{
    const wk_tensor *x = c->in[0];
    unsigned set;
    WK_TRY(wk_reduce_dims(c, &WK_PARAMS(c, wk_flip_params)->dims, x->rank, &set));
    for (int64_t i = 0; i < wk_count(x); i++) {
        int64_t at[WK_MAX_RANK];
        places(x->rank, x->shape, i, at);
        for (int d = 0; d < x->rank; d++)
            at[d] = set >> d & 1 ? x->shape[d] - 1 - at[d] : at[d];
        wk_ref_move(c->out[0], i, x, number(x->rank, x->shape, at));
    }
    return WK_OK;
}

static wk_status run_slice_assign(wk_call *c)
{
    const wk_tensor *x = c->in[0], *src = c->in[1];
    move_all(c->out[0], x);
    for (int64_t i = 0; i < wk_count(src); i++) {
        int64_t at[WK_MAX_RANK];
        places(x->rank, src->shape, i, at);
        for (int d = 0; d < x->rank; d++)
            at[d] += WK_PARAMS(c, wk_slice_params)->start.v[d];
        wk_ref_move(c->out[0], number(x->rank, x->shape, at), src, i);
    }
    return WK_OK;
}

static wk_status run_one_hot(wk_call *c)
{
    const wk_one_hot_params *p = c->params;
    for (int64_t i = 0; i < wk_count(c->out[0]); i++) {
        const wk_scalar *v = wk_ref_get_int(c->in[0], i / p->depth) == i % p->depth ? &p->on : &p->off;
        if (wk_is_float(c->out[0]->dtype))
            wk_ref_set(c->out[0], i, v->f);
        else
            wk_ref_set_int(c->out[0], i, v->i);
    }
    return WK_OK;
}

static wk_status run_triangle(wk_call *c)
{
    const wk_tensor *x = c->in[0];
    int64_t diagonal = WK_PARAMS(c, wk_triangle_params)->diagonal;
    bool upper = c->impl->data != NULL;
    for (int64_t i = 0; i < wk_count(x); i++) {
        int64_t at[WK_MAX_RANK];
        places(x->rank, x->shape, i, at);
        int64_t off = at[x->rank - 1] - at[x->rank - 2];
        if (upper ? off >= diagonal : off <= diagonal)
            wk_ref_move(c->out[0], i, x, i);
        else
            wk_ref_set(c->out[0], i, 0);
    }
    return WK_OK;
}

/* Ids are for the fast one to check. */
static const char *no_bad_ids(const wk_call *c)
{
    const wk_tensor *ids = c->in[0];
    int64_t depth = WK_PARAMS(c, wk_one_hot_params)->depth;
    for (int64_t i = 0; i < wk_count(ids); i++) {
        int64_t id = wk_ref_get_int(ids, i);
        if (id < -1 || id >= depth)
            return "it takes ids in range only";
    }
    return NULL;
}

const wk_impl wk_ref_copy[] = {
    {"copy", "ref", run_copy, NULL, NULL},
    {"copy2d", "ref", run_copy2d, NULL, NULL},
    {"cat", "ref", run_cat, NULL, NULL},
    {"stack", "ref", run_stack, NULL, NULL},
    {"pad", "ref", run_pad, NULL, NULL},
    {"flip", "ref", run_flip, NULL, NULL},
    {"slice_assign", "ref", run_slice_assign, NULL, NULL},
    {"one_hot", "ref", run_one_hot, no_bad_ids, NULL},
    {"tril", "ref", run_triangle, NULL, NULL},
    {"triu", "ref", run_triangle, NULL, "upper"},
    {0},
};
