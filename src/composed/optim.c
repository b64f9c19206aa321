/* optim.c: optimizer steps of a list, one after the other. */
#include "ops/optim.h"
#include "composed.h"
#include "core/families.h"
#include "wick/optim.h"

static wk_status run_steps(wk_call *c)
{
    int each = wk_step_tensors(c->op, c->params);
    const wk_op *op = wk_op_find(each == 4 ? "adamw_step" : "sgd_step");
    for (int i = 0; i < c->n_tail; i += each) {
        wk_call one = {.op = op, .params = c->params};
        for (int k = 0; k < each; k++)
            one.in[k] = c->tail[i + k];
        one.out[0] = c->tail_out[i];
        for (int k = 2; k < each; k++)
            one.out[k - 1] = c->tail_out[i + k];
        WK_TRY(wk_call_run(&one));
    }
    return WK_OK;
}

const wk_impl wk_composed_optim[] = {
    {"sgd_step_list", "composed", run_steps, NULL, NULL},
    {"adamw_step_list", "composed", run_steps, NULL, NULL},
    {0},
};
