/* expr.c: elementwise expressions on the GPU: the program as a formula in the kernels' language, compiled at its first
 * use like every other kernel. */
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include "ops/expr.h"
#include "core/memory.h"
#include "families.h"
#include "kernels/expr.h"
#include "map.h"
#include "runtime.h"

static const wk_kernel kernel = {.file = "expr",
                                 .name = "expr",
                                 .args = "expr_args",
                                 .threads = 256,
                                 .formula = true,
                                 .types = 3,
                                 .ints = 2};

/* ---- the formula's text ---- */

enum { TEXT = 1 << 14 }; /* far more than 96 steps take */
typedef struct {
    char text[TEXT];
    size_t n;
} writer;

static void put(writer *w, const char *format, ...) __attribute__((format(printf, 2, 3)));
static void put(writer *w, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    int n = vsnprintf(w->text + w->n, TEXT - w->n, format, args);
    va_end(args);
    w->n = w->n + (size_t)n < TEXT ? w->n + (size_t)n : TEXT - 1;
}

/* A number in the compute type, with all its digits. */
static void put_number(writer *w, double v)
{
    if (isinf(v))
        put(w, "%sinfinity<R>()", v < 0 ? "-" : "");
    else
        put(w, "(R)%.17e", v);
}

static void put_node(writer *w, const wk_expr *e, int i)
{
    const wk_expr_node *n = &e->nodes[i];
    put(w, "   %s v%d = ", n->condition ? "bool" : "R", i);
    if (n->op == WK_EXPR_input) {
        put(w, "get(x%d[i])%s;\n", n->in[0], n->condition ? " != 0" : "");
    } else if (n->op == WK_EXPR_number) {
        put_number(w, n->numbers[0]);
        put(w, ";\n");
    } else {
        put(w, "f_%s::run(", wk_expr_ops[n->op].name);
        for (int k = 0; k < wk_expr_ops[n->op].tensors; k++)
            put(w, n->op == WK_EXPR_where && k == 0 ? "(i64)v%d, " : "v%d, ", n->in[k]);
        put(w, "numbers<R>(");
        for (int k = 0; k < 3; k++) {
            put_number(w, n->numbers[k]);
            put(w, k < 2 ? ", " : "))%s;\n", n->condition ? " != 0" : "");
        }
    }
}

/* The body of the struct: inputs as packs, and the result for element i of them. */
static void put_formula(writer *w, const wk_expr *e)
{
    int last = e->n_nodes - 1;
    put(w, "{\n static const int INPUTS = %d;\n template <class T, class C, int VEC> struct inputs {\n",
        e->n_inputs);
    for (int k = 0; k < e->n_inputs; k++)
        put(w, "  %s x%d[VEC];\n", e->conditions >> k & 1 ? "C" : "T", k);
    put(w, "  MEMBER void bring(const expr_args &a, const i64 *at)\n  {\n");
    for (int k = 0; k < e->n_inputs; k++) {
        const char *type = e->conditions >> k & 1 ? "C" : "T";
        put(w, "   fetch<%s, VEC>((const %s *)a.in[%d] + at[%d], 0, a.constant[%d], x%d);\n", type, type, k,
            k, k, k);
    }
    put(w, "  }\n  template <class R> MEMBER auto run(int i) const\n  {\n");
    for (int i = 0; i <= last; i++)
        put_node(w, e, i);
    put(w, "   return %sv%d;\n  }\n };\n};\n", e->nodes[last].condition ? "(i64)" : "", last);
}

/* ---- formulas that were made ---- */

/* Kept for good: the kernels that were compiled of them are found by their address. */
typedef struct made {
    struct made *next;
    char text[];
} made;
static made *all_made;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

/* The one of that text, made if need be; NULL when memory is short. */
static const char *intern(const char *text, size_t n)
{
    const char *found = NULL;
    pthread_mutex_lock(&lock);
    for (made *m = all_made; m && !found; m = m->next)
        found = strcmp(m->text, text) == 0 ? m->text : NULL;
    made *m = found ? NULL : wk_alloc(sizeof *m + n + 1);
    if (m) {
        memcpy(m->text, text, n + 1);
        m->next = all_made;
        all_made = m;
        found = m->text;
    }
    pthread_mutex_unlock(&lock);
    return found;
}

/* "f_expr_HASH", a line's end, "struct f_expr_HASH {...};"; NULL with an error. */
static const char *make_formula(const wk_expr *e)
{
    writer *body = wk_alloc(sizeof *body), *whole = body ? wk_alloc(sizeof *whole) : NULL;
    const char *formula = NULL;
    if (whole) {
        body->n = whole->n = 0;
        put_formula(body, e);
        unsigned long long h = wk_hash(WK_HASH_START, body->text, body->n);
        put(whole, "f_expr_%016llx\nstruct f_expr_%016llx %s", h, h, body->text);
        formula = intern(whole->text, whole->n);
    }
    wk_free(whole);
    wk_free(body);
    if (!formula)
        wk_fail(WK_ERR_MEMORY, "out of memory for a formula");
    return formula;
}

static const char *formula_of(const wk_expr *e)
{
    _Atomic(const char *) *place = &((wk_expr *)e)->formula; /* the same for all who write it */
    const char *formula = atomic_load_explicit(place, memory_order_acquire);
    if (!formula && (formula = make_formula(e)))
        atomic_store_explicit(place, formula, memory_order_release);
    return formula;
}

/* ---- calls ---- */

static wk_status launch(const wk_call *c, const wk_expr *e, const wk_tensor *const *in, const char *formula)
{
    wk_map_walk w;
    expr_args a = {.out = wk_ptr(c->out[0]), .count = wk_count(c->out[0])};
    wk_instance instance = {.formula = formula,
                            .t = {(unsigned char)c->out[0]->dtype, (unsigned char)c->dtype, WK_U8}};
    wk_map_plan(in, e->n_inputs, c->out[0], &w);
    int vec = wk_map_width(in, e->n_inputs, c->out[0], &w), mode = w.packed                 ? 0
                                                                   : a.count < (i64)1 << 31 ? 1
                                                                                            : 2;
    a.rank = mode ? w.rank : 0;
    for (int d = 0; d < a.rank; d++) {
        int from = w.rank - 1 - d; /* innermost first */
        a.size64[d] = w.shape[from];
        a.size[d] = wk_divisor_of(w.shape[from] < (i64)1 << 31 ? w.shape[from] : 1);
    }
    for (int k = 0; k < e->n_inputs; k++) {
        a.in[k] = wk_ptr(in[k]);
        a.constant[k] = w.rank == 0 || w.strides[k][w.rank - 1] == 0;
        for (int d = 0; d < a.rank; d++)
            a.stride[k][d] = w.strides[k][w.rank - 1 - d];
        if (e->conditions >> k & 1)
            instance.t[2] = (unsigned char)in[k]->dtype;
    }
    instance.i[0] = (short)vec;
    instance.i[1] = (short)mode;
    wk_grid grid = {.x = wk_blocks(a.count, (i64)kernel.threads * vec, WK_GRID_MAX)};
    return WK_LAUNCH(c, &kernel, &instance, grid, a);
}

static wk_status run_expr(wk_call *c)
{
    wk_expr read;
    const wk_expr *e = wk_expr_of(c->params, &read);
    const wk_tensor *in[WK_EXPR_INPUTS];
    const char *formula = e ? formula_of(e) : NULL;
    if (!formula)
        return wk_error_status();
    if (wk_count(c->out[0]) == 0)
        return WK_OK;
    for (int k = 0; k < e->n_inputs; k++) {
        in[k] = wk_map_better_packed(c->tail[k]) ? wk_tensor_packed(c->tail[k]) : c->tail[k];
        if (!in[k])
            return wk_error_status();
    }
    return launch(c, e, in, formula);
}

/* A kernel has one dtype for all conditions. */
static const char *refuse_mixed(const wk_call *c)
{
    int first = -1;
    for (int k = 0; k < c->n_tail; k++) {
        wk_dtype dtype = c->tail[k]->dtype;
        if (wk_is_float(dtype))
            continue;
        if (first >= 0 && (int)dtype != first)
            return "conditions of several dtypes";
        first = dtype;
    }
    return NULL;
}

const wk_impl wk_gpu_impls_expr[] = {
    {"expr", "kernel", run_expr, refuse_mixed, NULL},
    {0},
};
