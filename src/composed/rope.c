/* rope.c: queries and keys turned one after the other. */
#include "ops/rope.h"
#include "composed.h"
#include "wick/ops.h"

static wk_status run_rope_qk(wk_call *c)
{
    static const char *const names[] = {"rope", "rope_i", "rope_thd"};
    const wk_op *op = wk_op_find(names[WK_PARAMS(c, wk_rope_params)->layout]);
    const wk_tensor *in[] = {c->in[0], c->in[3]};
    for (int i = 0; i < 2; i++) {
        wk_call one = {.op = op, .in = {in[i], c->in[1], c->in[2]}, .out = {c->out[i]}};
        WK_TRY(wk_call_run(&one));
    }
    return WK_OK;
}

/* x [b, t, h, d] to the places of the cache [b, h, places, d]. */
static wk_status write_places(const wk_tensor *cache, const wk_tensor *place, const wk_tensor *x,
                              wk_tensor *y)
{
    int64_t ids[4] = {x->shape[0], 1, x->shape[1], 1};
    int64_t all[4] = {x->shape[0], x->shape[2], x->shape[1], x->shape[3]};
    const wk_tensor *turned = wk_transpose(x, 1, 2);
    const wk_tensor *spread = wk_broadcast(wk_reshape(place, 4, ids), 4, all);
    return turned && spread ? wk_scatter_into(y, cache, spread, turned, 2) : wk_error_status();
}

static wk_status run_rope_cache(wk_call *c)
{
    const wk_op *op = wk_op_find("rope_thd");
    wk_call q = {.op = op, .in = {c->in[0], c->in[1], c->in[2]}, .out = {c->out[0]}};
    wk_call k = {.op = op, .in = {c->in[3], c->in[1], c->in[2]}};
    WK_TRY(wk_call_run(&q));
    WK_TRY(wk_call_run(&k));
    WK_TRY(write_places(c->in[5], c->in[7], k.out[0], c->out[1]));
    return write_places(c->in[6], c->in[7], c->in[4], c->out[2]);
}

const wk_impl wk_composed_rope[] = {
    {"rope_qk", "composed", run_rope_qk, NULL, NULL},
    {"rope_cache", "composed", run_rope_cache, NULL, NULL},
    {0},
};
