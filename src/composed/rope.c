/* rope.c: queries and keys turned one after the other. */
#include "ops/rope.h"
#include "composed.h"

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

const wk_impl wk_composed_rope[] = {
    {"rope_qk", "composed", run_rope_qk, NULL, NULL},
    {0},
};
