/* expr.c: an elementwise expression as the ops it is made of, one after the other. */
#include "ops/expr.h"
#include "composed.h"
#include "wick/ops.h"

/* The node's value; NULL with an error. */
static const wk_tensor *value_of(const wk_call *c, const wk_expr_node *n, const wk_tensor *const *values)
{
    if (n->op == WK_EXPR_input)
        return c->tail[n->in[0]];
    if (n->op == WK_EXPR_number)
        return wk_fill(c->device, c->dtype, 0, NULL, n->numbers[0]);
    const wk_expr_op *op = &wk_expr_ops[n->op];
    wk_unary_params p = {wk_scalar_of(n->numbers[0]), wk_scalar_of(n->numbers[1]),
                         wk_scalar_of(n->numbers[2])};
    wk_call one = {.op = wk_op_find(op->name), .params = &p};
    for (int i = 0; i < op->tensors; i++)
        one.in[i] = values[n->in[i]];
    return wk_call_run1(&one);
}

static wk_status run_expr(wk_call *c)
{
    wk_expr read;
    const wk_expr *e = wk_expr_of(c->params, &read);
    const wk_tensor *values[WK_EXPR_NODES], *y = NULL;
    if (!e)
        return wk_error_status();
    for (int i = 0; i < e->n_nodes; i++) {
        y = values[i] = value_of(c, &e->nodes[i], values);
        if (!y)
            return wk_error_status();
    }
    /* A result that no op of the output's shape came before (where(a < b, 1, 2) of numbers) has a smaller one. */
    const wk_tensor *spread = wk_broadcast(y, c->out[0]->rank, c->out[0]->shape);
    return spread ? wk_copy_into(c->out[0], spread) : wk_error_status();
}

const wk_impl wk_composed_expr[] = {
    {"expr", "composed", run_expr, NULL, NULL},
    {0},
};
