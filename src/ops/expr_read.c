/* expr_read.c: from the text of an expression to its program. */
#include <ctype.h>
#include "expr.h"

enum { MAX_DEPTH = 64 };

const wk_expr_op wk_expr_ops[WK_EXPR_OPS] = {
#define PLAIN(name, ...) [WK_EXPR_##name] = {#name, 1, 0, false},
#define NUMBERED(name, n) [WK_EXPR_##name] = {#name, 1, n, false},
#define BINARY(name) [WK_EXPR_##name] = {#name, 2, 0, false},
#define COMPARE(name) [WK_EXPR_##name] = {#name, 2, 0, true},
    WK_EXPR_PLAIN(PLAIN) NUMBERED(leaky_relu, 1) NUMBERED(elu, 1) NUMBERED(clamp, 2) NUMBERED(power, 3)
        NUMBERED(powf, 1) NUMBERED(affine, 2) WK_EXPR_BINARY(BINARY)
            WK_EXPR_COMPARE(COMPARE)[WK_EXPR_where] = {"where", 3, 0, false},
#undef PLAIN
#undef NUMBERED
#undef BINARY
#undef COMPARE
};

typedef struct {
    const char *text, *at;
    wk_expr *e;
    unsigned values; /* bit i: input i is used as a value */
    int depth;
} reader;

static wk_status fail(const reader *r, const char *expected)
{
    return wk_fail(WK_ERR_PARAM, "expr: text: expected %s at %d, got '%.24s'", expected,
                   (int)(r->at - r->text), r->at);
}

static void skip_space(reader *r)
{
    while (*r->at == ' ' || *r->at == '\t' || *r->at == '\n')
        r->at++;
}

static bool take(reader *r, const char *token)
{
    skip_space(r);
    size_t n = strlen(token);
    if (strncmp(r->at, token, n) != 0)
        return false;
    r->at += n;
    return true;
}

/* ---- nodes ---- */

/* A sum or product is the same either way round. */
static bool commutes(int op)
{
    return op == WK_EXPR_add || op == WK_EXPR_mul || op == WK_EXPR_eq || op == WK_EXPR_ne;
}

/* The node, or the earlier one that is the same. */
static wk_status add_node(reader *r, wk_expr_node node, int *made)
{
    wk_expr *e = r->e;
    if (node.op < WK_EXPR_OPS && commutes(node.op) && node.in[0] > node.in[1]) {
        uint8_t first = node.in[0];
        node.in[0] = node.in[1];
        node.in[1] = first;
    }
    for (int i = 0; i < e->n_nodes; i++) {
        const wk_expr_node *n = &e->nodes[i];
        if (n->op == node.op && memcmp(n->in, node.in, sizeof node.in) == 0 &&
            memcmp(n->numbers, node.numbers, sizeof node.numbers) == 0) {
            *made = i;
            return WK_OK;
        }
    }
    if (e->n_nodes == WK_EXPR_NODES)
        return wk_fail(WK_ERR_PARAM, "expr: text: expected at most %d steps", WK_EXPR_NODES);
    *made = e->n_nodes;
    e->nodes[e->n_nodes++] = node;
    return WK_OK;
}

/* A node is a value or a condition; an input becomes what it is first used as. */
static wk_status use_as(reader *r, int node, bool condition)
{
    wk_expr_node *n = &r->e->nodes[node];
    if (n->op == WK_EXPR_input) {
        unsigned bit = 1u << n->in[0], other = condition ? r->values : r->e->conditions;
        if (other & bit)
            return wk_fail(WK_ERR_PARAM, "expr: text: expected %s as a value or as a condition, got both",
                           r->e->names[n->in[0]]);
        *(condition ? &r->e->conditions : &r->values) |= bit;
        n->condition = condition;
        return WK_OK;
    }
    if (n->condition == condition)
        return WK_OK;
    return wk_fail(WK_ERR_PARAM, "expr: text: expected %s before %d",
                   condition ? "a condition" : "no condition", (int)(r->at - r->text));
}

static wk_status add_op(reader *r, int op, const int *in, const double *numbers, int *made)
{
    wk_expr_node node = {.op = (uint8_t)op, .condition = wk_expr_ops[op].condition};
    for (int i = 0; i < wk_expr_ops[op].tensors; i++) {
        WK_TRY(use_as(r, in[i], op == WK_EXPR_where && i == 0));
        node.in[i] = (uint8_t)in[i];
    }
    for (int i = 0; i < wk_expr_ops[op].numbers; i++)
        node.numbers[i] = numbers[i];
    return add_node(r, node, made);
}

/* ---- the grammar ---- */

static wk_status read_compare(reader *r, int *made);

static bool read_number(reader *r, double *value)
{
    char *end;
    if (!isdigit((unsigned char)*r->at) && *r->at != '.')
        return false;
    *value = wk_read_double(r->at, &end);
    bool read = end != r->at;
    r->at = end;
    return read;
}

/* A number as an argument: with its sign. */
static wk_status read_argument(reader *r, double *value)
{
    bool minus = take(r, "-");
    skip_space(r);
    if (strncmp(r->at, "inf", 3) == 0 && !isalnum((unsigned char)r->at[3])) {
        r->at += 3;
        *value = INFINITY;
    } else if (!read_number(r, value)) {
        return fail(r, "a number");
    }
    *value = minus ? -*value : *value;
    return WK_OK;
}

static wk_status read_call(reader *r, int op, int *made)
{
    const wk_expr_op *o = &wk_expr_ops[op];
    int in[3];
    double numbers[3] = {op == WK_EXPR_leaky_relu ? 0.01 : 1};
    bool open = op == WK_EXPR_leaky_relu || op == WK_EXPR_elu; /* the number may be left out */
    for (int i = 0; i < o->tensors; i++) {
        if (i > 0 && !take(r, ","))
            return fail(r, "',' and an argument");
        WK_TRY(read_compare(r, &in[i]));
    }
    for (int i = 0; i < o->numbers; i++) {
        bool more = take(r, ",");
        if (!more && open)
            break;
        if (!more)
            return fail(r, "',' and a number");
        WK_TRY(read_argument(r, &numbers[i]));
    }
    if (!take(r, ")"))
        return fail(r, "')'");
    return add_op(r, op, in, numbers, made);
}

static wk_status read_input(reader *r, const char *name, size_t n, int *made)
{
    wk_expr *e = r->e;
    int i = 0;
    while (i < e->n_inputs && (strlen(e->names[i]) != n || memcmp(e->names[i], name, n) != 0))
        i++;
    if (i == WK_EXPR_INPUTS)
        return wk_fail(WK_ERR_PARAM, "expr: text: expected at most %d inputs", WK_EXPR_INPUTS);
    if (i == e->n_inputs) {
        memcpy(e->names[i], name, n);
        e->names[i][n] = 0;
        e->n_inputs++;
    }
    return add_node(r, (wk_expr_node){.op = WK_EXPR_input, .in = {(uint8_t)i}}, made);
}

static wk_status read_name(reader *r, int *made)
{
    const char *name = r->at;
    size_t n = 0;
    while (isalnum((unsigned char)name[n]) || name[n] == '_')
        n++;
    if (n >= WK_EXPR_NAME)
        return fail(r, "a name of fewer than 32 letters");
    if (n == 3 && memcmp(name, "inf", 3) == 0) {
        r->at += n;
        return add_node(r, (wk_expr_node){.op = WK_EXPR_number, .numbers = {INFINITY}}, made);
    }
    int op = 0;
    while (op < WK_EXPR_OPS &&
           (strlen(wk_expr_ops[op].name) != n || memcmp(wk_expr_ops[op].name, name, n) != 0))
        op++;
    const char *after = name + n;
    while (*after == ' ')
        after++;
    if (*after != '(') {
        r->at += n;
        return read_input(r, name, n, made);
    }
    if (op == WK_EXPR_OPS)
        return fail(r, "an elementwise op");
    r->at = after + 1;
    return read_call(r, op, made);
}

static wk_status read_primary(reader *r, int *made)
{
    double value;
    if (take(r, "-")) {
        int in;
        skip_space(r);
        if (read_number(r, &value))
            return add_node(r, (wk_expr_node){.op = WK_EXPR_number, .numbers = {-value}}, made);
        if (++r->depth > MAX_DEPTH)
            return fail(r, "fewer steps inside each other");
        WK_TRY(read_primary(r, &in));
        r->depth--;
        return add_op(r, WK_EXPR_neg, &in, NULL, made);
    }
    if (take(r, "(")) {
        WK_TRY(read_compare(r, made));
        return take(r, ")") ? WK_OK : fail(r, "')'");
    }
    skip_space(r);
    if (isalpha((unsigned char)*r->at) || *r->at == '_')
        return read_name(r, made);
    if (!read_number(r, &value))
        return fail(r, "a name, a number or '('");
    return add_node(r, (wk_expr_node){.op = WK_EXPR_number, .numbers = {value}}, made);
}

static wk_status read_product(reader *r, int *made)
{
    WK_TRY(read_primary(r, made));
    for (;;) {
        int op = take(r, "*") ? WK_EXPR_mul : take(r, "/") ? WK_EXPR_div : -1, in[2] = {*made, 0};
        if (op < 0)
            return WK_OK;
        WK_TRY(read_primary(r, &in[1]));
        WK_TRY(add_op(r, op, in, NULL, made));
    }
}

static wk_status read_sum(reader *r, int *made)
{
    WK_TRY(read_product(r, made));
    for (;;) {
        int op = take(r, "+") ? WK_EXPR_add : take(r, "-") ? WK_EXPR_sub : -1, in[2] = {*made, 0};
        if (op < 0)
            return WK_OK;
        WK_TRY(read_product(r, &in[1]));
        WK_TRY(add_op(r, op, in, NULL, made));
    }
}

static wk_status read_compare(reader *r, int *made)
{
    static const struct {
        const char *sign;
        int op;
    } signs[] = {{"<=", WK_EXPR_le}, {">=", WK_EXPR_ge}, {"==", WK_EXPR_eq},
                 {"!=", WK_EXPR_ne}, {"<", WK_EXPR_lt},  {">", WK_EXPR_gt}};
    if (++r->depth > MAX_DEPTH)
        return fail(r, "fewer steps inside each other");
    WK_TRY(read_sum(r, made));
    for (size_t i = 0; i < sizeof signs / sizeof *signs; i++) {
        if (!take(r, signs[i].sign))
            continue;
        int in[2] = {*made, 0};
        WK_TRY(read_sum(r, &in[1]));
        WK_TRY(add_op(r, signs[i].op, in, NULL, made));
        break;
    }
    r->depth--;
    return WK_OK;
}

wk_status wk_expr_read(const char *text, wk_expr *e)
{
    int result;
    reader r = {.text = text, .at = text, .e = e};
    memset(e, 0, sizeof *e);
    WK_TRY(read_compare(&r, &result));
    skip_space(&r);
    if (*r.at)
        return fail(&r, "an operator or the end");
    if (e->n_inputs == 0)
        return wk_fail(WK_ERR_PARAM, "expr: text: expected a name of an input, got '%.40s'", text);
    return e->nodes[result].op == WK_EXPR_input ? use_as(&r, result, false) : WK_OK;
}
