/* index.c: references of the ops that ids lead: one id after the other. */
#include "ops/index.h"
#include "ref.h"

/* The id that stands for none. */
static int64_t padding(wk_dtype d)
{
    return d == WK_U8 ? UINT8_MAX : d == WK_U32 ? UINT32_MAX : d == WK_I32 ? INT32_MAX : INT64_MAX;
}

/* For place i of `walk` (ids, or the slices that 1-D ids choose): its id, and the number of the element of big that
 * it leads to. False for the id that stands for none. Bad ids were refused before: see inside. */
static bool lead(const wk_call *c, const wk_tensor *big, const wk_tensor *walk, const wk_tensor *ids,
                 int64_t i, int64_t *j)
{
    bool slices = c->impl->data != NULL;
    int dim = wk_shape_dim(big->rank, WK_PARAMS(c, wk_index_params)->dim);
    int64_t at[WK_MAX_RANK], rest = i, id;
    for (int d = walk->rank - 1; d >= 0; d--) {
        at[d] = rest % walk->shape[d];
        rest /= walk->shape[d];
    }
    id = wk_ref_get_int(ids, slices ? at[dim] : i);
    *j = 0;
    for (int d = 0; d < big->rank; d++)
        *j = *j * big->shape[d] + (d == dim ? id : at[d]);
    return id != padding(ids->dtype);
}

/* The number in src of place i of ids, whose shape may be smaller. */
static int64_t source(const wk_tensor *src, const wk_tensor *walk, int64_t i)
{
    int64_t at[WK_MAX_RANK], j = 0;
    for (int d = walk->rank - 1; d >= 0; d--) {
        at[d] = i % walk->shape[d];
        i /= walk->shape[d];
    }
    for (int d = 0; d < walk->rank; d++)
        j = j * src->shape[d] + at[d];
    return j;
}

static void read_all(const wk_call *c, const wk_tensor *x, const wk_tensor *ids, wk_tensor *y)
{
    int64_t j;
    for (int64_t i = 0; i < wk_count(y); i++) {
        if (lead(c, x, y, ids, i, &j))
            wk_ref_move(y, i, x, j);
        else
            wk_ref_set(y, i, 0);
    }
}

static void move_all(wk_tensor *y, const wk_tensor *x)
{
    for (int64_t i = 0; i < wk_count(y); i++)
        wk_ref_move(y, i, x, i);
}

/* y += src at ids. Sums are held in f64 in `sums`, or as integers in y itself. */
static wk_status add_all(wk_call *c, wk_tensor *y, const wk_tensor *ids, const wk_tensor *src)
{
    const wk_tensor *walk = c->impl->data ? src : ids;
    wk_tensor *sums = wk_tensor_new(y->storage->device, WK_F64, y->rank, y->shape);
    int64_t j;
    if (!sums)
        return wk_error_status();
    for (int64_t i = 0; i < wk_count(y); i++)
        wk_ref_set(sums, i, wk_ref_get(y, i));
    for (int64_t i = 0; i < wk_count(walk); i++) {
        int64_t k = source(src, walk, i);
        if (!lead(c, y, walk, ids, i, &j))
            continue;
        if (wk_is_float(y->dtype))
            wk_ref_set(sums, j, wk_ref_get(sums, j) + wk_ref_get(src, k));
        else
            wk_ref_set_int(y, j, wk_ref_get_int(y, j) + wk_ref_get_int(src, k));
    }
    for (int64_t i = 0; i < wk_count(y) && wk_is_float(y->dtype); i++)
        wk_ref_set(y, i, wk_ref_get(sums, i));
    return WK_OK;
}

static wk_status run_read(wk_call *c)
{
    read_all(c, c->in[0], c->in[1], c->out[0]);
    return WK_OK;
}

static wk_status run_scatter(wk_call *c)
{
    int64_t j;
    move_all(c->out[0], c->in[0]);
    for (int64_t i = 0; i < wk_count(c->in[1]); i++) {
        if (lead(c, c->out[0], c->in[1], c->in[1], i, &j))
            wk_ref_move(c->out[0], j, c->in[2], source(c->in[2], c->in[1], i));
    }
    return WK_OK;
}

static wk_status run_add(wk_call *c)
{
    move_all(c->out[0], c->in[0]);
    return add_all(c, c->out[0], c->in[1], c->in[2]);
}

static wk_status run_read_backward(wk_call *c)
{
    for (int64_t i = 0; i < wk_count(c->out[0]); i++)
        wk_ref_set(c->out[0], i, 0);
    return add_all(c, c->out[0], c->in[0], c->in[1]);
}

static wk_status run_add_backward(wk_call *c)
{
    if (c->out[0])
        move_all(c->out[0], c->in[1]);
    if (c->out[1])
        read_all(c, c->in[1], c->in[0], c->out[1]);
    return WK_OK;
}

/* The gradient of an element of y goes to the last of src that wrote it, and to x where none did. */
static wk_status run_scatter_backward(wk_call *c)
{
    const wk_tensor *ids = c->in[0], *dy = c->in[1];
    wk_tensor *writer = wk_tensor_new(dy->storage->device, WK_I64, dy->rank, dy->shape);
    int64_t j;
    if (!writer)
        return wk_error_status();
    for (int64_t i = 0; i < wk_count(dy); i++)
        wk_ref_set_int(writer, i, -1);
    for (int64_t i = 0; i < wk_count(ids); i++) {
        if (lead(c, dy, ids, ids, i, &j))
            wk_ref_set_int(writer, j, i);
    }
    for (int64_t i = 0; i < wk_count(ids) && c->out[1]; i++) {
        wk_ref_set(c->out[1], i, 0);
        if (lead(c, dy, ids, ids, i, &j) && wk_ref_get_int(writer, j) == i)
            wk_ref_move(c->out[1], i, dy, j);
    }
    for (int64_t i = 0; i < wk_count(dy) && c->out[0]; i++) {
        wk_ref_set(c->out[0], i, 0);
        if (wk_ref_get_int(writer, i) < 0)
            wk_ref_move(c->out[0], i, dy, i);
    }
    return WK_OK;
}

/* Bad ids are for the fast one to report. */
static const char *inside(const wk_call *c, const wk_tensor *ids, int64_t rank, const int64_t *shape)
{
    int dim = wk_shape_dim((int)rank, WK_PARAMS(c, wk_index_params)->dim);
    int64_t size = rank ? shape[dim] : 1;
    for (int64_t i = 0; i < wk_count(ids); i++) {
        int64_t id = wk_ref_get_int(ids, i);
        if (id != padding(ids->dtype) && (id < 0 || id >= size))
            return "it takes ids in range only";
    }
    return NULL;
}

static const char *refuse_forward(const wk_call *c)
{
    return inside(c, c->in[1], c->in[0]->rank, c->in[0]->shape);
}
static const char *refuse_read_backward(const wk_call *c)
{
    const wk_list *size = &WK_PARAMS(c, wk_index_params)->input_size;
    return inside(c, c->in[0], size->n, size->v);
}
static const char *refuse_write_backward(const wk_call *c)
{
    return inside(c, c->in[0], c->in[1]->rank, c->in[1]->shape);
}

const wk_impl wk_ref_index[] = {
    {"gather", "ref", run_read, refuse_forward, NULL},
    {"scatter", "ref", run_scatter, refuse_forward, NULL},
    {"scatter_add", "ref", run_add, refuse_forward, NULL},
    {"index_select", "ref", run_read, refuse_forward, "slices"},
    {"index_add", "ref", run_add, refuse_forward, "slices"},
    {"gather_backward", "ref", run_read_backward, refuse_read_backward, NULL},
    {"index_select_backward", "ref", run_read_backward, refuse_read_backward, "slices"},
    {"scatter_backward", "ref", run_scatter_backward, refuse_write_backward, NULL},
    {"scatter_add_backward", "ref", run_add_backward, refuse_write_backward, NULL},
    {"index_add_backward", "ref", run_add_backward, refuse_write_backward, "slices"},
    {0},
};
