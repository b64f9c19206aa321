/* expr.h: an elementwise expression as a program: nodes in an order in which each uses earlier ones only. */
#ifndef WK_OPS_EXPR_H
#define WK_OPS_EXPR_H

#include "core/op.h"
#include "unary.h"
#include "wick/expr.h"

enum { WK_EXPR_NODES = 96, WK_EXPR_INPUTS = 8, WK_EXPR_NAME = 32, WK_EXPR_TEXT = 440 };

/* Every op that an expression may have: X(name). */
#define WK_EXPR_PLAIN(X) WK_UNARY_PLAIN(X)
#define WK_EXPR_NUMBERED(X) WK_UNARY_WITH_PARAMS(X)
#define WK_EXPR_BINARY(X) X(add) X(sub) X(mul) X(div) X(minimum) X(maximum) X(pow)
#define WK_EXPR_COMPARE(X) X(eq) X(ne) X(lt) X(le) X(gt) X(ge)

enum {
#define PLAIN(name, ...) WK_EXPR_##name,
#define NAME(name) WK_EXPR_##name,
    WK_EXPR_PLAIN(PLAIN) WK_EXPR_NUMBERED(NAME) WK_EXPR_BINARY(NAME) WK_EXPR_COMPARE(NAME) WK_EXPR_where,
#undef PLAIN
#undef NAME
    WK_EXPR_OPS,
    WK_EXPR_input = WK_EXPR_OPS, /* nodes that are no ops */
    WK_EXPR_number,
};

typedef struct {
    const char *name;
    int tensors, numbers; /* arguments */
    bool condition;       /* gives one */
} wk_expr_op;
extern const wk_expr_op wk_expr_ops[WK_EXPR_OPS];

typedef struct {
    uint8_t op;
    bool condition;    /* holds true or false */
    uint8_t in[3];     /* nodes; of an input its number */
    double numbers[3]; /* of the op; of a number its value */
} wk_expr_node;

struct wk_expr {
    int n_nodes, n_inputs; /* the last node is the result */
    wk_expr_node nodes[WK_EXPR_NODES];
    char names[WK_EXPR_INPUTS][WK_EXPR_NAME];
    unsigned conditions; /* bit i: input i is a condition */
    /* GPUs: its code by the dtypes of conditions, see gpu/expr.c; filled in at the first use. */
    _Atomic(const char *) formula;
};

/* Reads the text; fails with what was expected where. */
wk_status wk_expr_read(const char *text, wk_expr *e);

typedef struct {
    char text[WK_EXPR_TEXT];
    const wk_expr *program; /* NULL: to be read from the text */
} wk_expr_params;

/* The program of a call: that of its parameters, or their text read into *room; NULL with an error. */
const wk_expr *wk_expr_of(const void *params, wk_expr *room);

#endif
