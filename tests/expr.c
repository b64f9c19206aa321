/* expr.c: elementwise expressions: random ones against the ops they are made of, one after the other; what does not
 * read; handles.
 *
 *     test_expr [DEVICE [HOW MANY]] */
#include <math.h>
#include <stdlib.h>
#include "test.h"
#include "verify/compare.h"
#include "wick/wick.h"

static wk_device *device;
static uint64_t state = 1;

static unsigned draw(unsigned n)
{
    state = state * 6364136223846793005u + 1442695040888963407u;
    return (unsigned)(state >> 33) % n;
}

/* ---- random texts ---- */

enum { TEXT = 4000, INPUTS = 5 };
typedef struct {
    char text[TEXT];
    size_t n;
} words;

static void put(words *w, const char *s)
{
    size_t n = strlen(s);
    if (w->n + n < TEXT) {
        memcpy(w->text + w->n, s, n + 1);
        w->n += n;
    }
}

static void put_value(words *w, int depth);

static void put_leaf(words *w)
{
    static const char *const numbers[] = {"0.5", "2", "-1.25", "1e-1", "3"};
    put(w, draw(5) ? (const char *[]){"a", "b", "c", "x1", "_y"}[draw(INPUTS)] : numbers[draw(5)]);
}

/* Conditions on inputs alone: a value that differs in its last bit must not turn one around. */
static void put_condition(words *w)
{
    static const char *const signs[] = {"<", "<=", ">", ">=", "==", "!="};
    static const char *const names[] = {"lt(", "le(", "gt(", "ge(", "eq(", "ne("};
    bool by_name = draw(2);
    put(w, by_name ? names[draw(6)] : "(");
    put_leaf(w);
    put(w, by_name ? "," : signs[draw(6)]);
    put_leaf(w);
    put(w, ")");
}

static void put_call(words *w, int depth)
{
    /* What stays of the order of its argument, and has no steps. */
    static const char *const unary[] = {
        "neg(",      "abs(", "tanh(",     "sigmoid(",    "erf(",   "relu(", "silu(", "gelu(",        "sin(",
        "gelu_erf(", "cos(", "softplus(", "hard_swish(", "relu6(", "mish(", "sqr(",  "hard_sigmoid("};
    static const char *const numbered[] = {"leaky_relu(", "leaky_relu(", "elu(", "clamp(", "affine("};
    static const char *const numbers[] = {")", ",0.3)", ",0.7)", ",-1,1.5)", ",0.5,-0.25)"};
    static const char *const binary[] = {"add(", "sub(", "mul(", "minimum(", "maximum("};
    unsigned kind = draw(6), k = draw(5);
    put(w, kind < 3 ? unary[draw(17)] : kind == 3 ? numbered[k] : kind == 4 ? binary[k] : "where(");
    if (kind == 5) {
        put_condition(w);
        put(w, ",");
    }
    put_value(w, depth - 1);
    if (kind >= 4) {
        put(w, ",");
        put_value(w, depth - 1);
    }
    put(w, kind == 3 ? numbers[k] : ")");
}

static void put_value(words *w, int depth)
{
    static const char *const signs[] = {"+", "-", "*", " + ", "*"};
    if (depth == 0) {
        put_leaf(w);
    } else if (draw(2)) {
        put_call(w, depth);
    } else {
        put(w, draw(6) ? "(" : "-(");
        put_value(w, depth - 1);
        put(w, signs[draw(5)]);
        put_value(w, depth - 1);
        put(w, ")");
    }
}

/* ---- against the ops ---- */

static const int64_t shapes[][3] = {{3, 5, 8}, {1, 5, 8}, {3, 1, 8}, {3, 5, 1}, {1, 1, 8}, {1, 1, 1}};

static const wk_tensor *random_input(wk_dtype dtype)
{
    double values[3 * 5 * 8];
    const int64_t *shape = shapes[draw(3) ? 0 : draw(6)];
    for (size_t i = 0; i < sizeof values / sizeof *values; i++)
        values[i] = (draw(4001) - 2000.0) / 1000;
    wk_tensor *t = wk_cast(wk_from_host(wk_cpu(), WK_F64, 3, shape, values), dtype);
    if (draw(3) == 0) /* in another order in memory */
        t = wk_transpose(wk_copy(wk_transpose(t, 1, 2)), 1, 2);
    return wk_to(t, device);
}

static double allowed(wk_dtype dtype)
{
    return dtype == WK_F64 ? 1e-9 : dtype == WK_F32 ? 2e-4 : dtype == WK_F16 ? 0.1 : 0.8;
}

static void check_text(const char *text, wk_dtype dtype)
{
    const wk_tensor *in[INPUTS];
    wk_comparison c = {.worst = INFINITY};
    wk_scope_begin();
    wk_expr *e = wk_expr_compile(text);
    int n = wk_expr_inputs(e);
    for (int i = 0; i < n; i++)
        in[i] = random_input(dtype);
    const wk_tensor *one = wk_expr_run(e, in, n);
    bool fused = strcmp(wk_last_impl(), "composed") != 0;
    wk_force_impl("composed");
    const wk_tensor *many = wk_to(wk_expr_run(e, in, n), wk_cpu());
    wk_force_impl(NULL);
    bool made = one && many && wk_compare(one, many, &c) == WK_OK;
    test_check(made && fused && c.worst <= allowed(dtype), text, 0, "%s: %s; at %lld got %.9g, expected %.9g",
               wk_dtype_name(dtype), wk_error(), (long long)c.place, c.got, c.want);
    wk_error_clear();
    wk_expr_drop(e);
    wk_scope_end();
}

static void check_random(int count)
{
    static const wk_dtype dtypes[] = {WK_F64, WK_F32, WK_F64, WK_F16, WK_F32, WK_BF16};
    for (int i = 0; i < count;) {
        words w = {.n = 0};
        put_value(&w, 1 + (int)draw(4));
        wk_expr *e = wk_expr_compile(w.text);
        if (!e) { /* numbers alone, or too long */
            bool expected = strstr(wk_error(), "a name of an input") || strstr(wk_error(), "at most");
            test_check(expected, w.text, 0, "%s", wk_error());
            wk_error_clear();
            continue;
        }
        wk_expr_drop(e);
        check_text(w.text, dtypes[i++ % 6]);
    }
}

/* ---- handles and errors ---- */

static void check_handles(void)
{
    const float a[] = {1, 2, 3}, b[] = {4, 5, 6};
    float y[3] = {0};
    int64_t n = 3;
    wk_scope_begin();
    wk_expr *e = wk_expr_compile("b*2 - a");
    CHECK_EQ(wk_expr_inputs(e), 2);
    CHECK_STR(wk_expr_input(e, 0), "b");
    CHECK_STR(wk_expr_input(e, 1), "a");
    CHECK(wk_expr_input(e, 2) == NULL);
    wk_tensor *ta = wk_from_host(device, WK_F32, 1, &n, a), *tb = wk_from_host(device, WK_F32, 1, &n, b);
    wk_tensor *dst = wk_empty(device, WK_F32, 1, &n);
    CHECK(wk_expr_run_into(dst, e, (const wk_tensor *[]){tb, ta}, 2) == WK_OK);
    CHECK(wk_to_host(dst, y) == WK_OK && y[0] == 7 && y[1] == 8 && y[2] == 9);
    CHECK(wk_expr_run_into(ta, e, (const wk_tensor *[]){tb, ta}, 2) == WK_OK); /* over an input */
    CHECK(wk_to_host(ta, y) == WK_OK && y[0] == 7 && y[1] == 8 && y[2] == 9);
    CHECK_ERROR(!wk_expr_run(e, (const wk_tensor *[]){tb}, 1), WK_ERR_ARGUMENT, "a");
    CHECK_ERROR(!wk_expr_run(e, NULL, 2), WK_ERR_ARGUMENT, "inputs");
    CHECK_ERROR(!wk_expr_run(NULL, NULL, 0), WK_ERR_ARGUMENT, "expression");
    CHECK_ERROR(wk_expr_run_into(NULL, e, (const wk_tensor *[]){tb, ta}, 2) != WK_OK, WK_ERR_ARGUMENT, "dst");
    wk_expr_drop(e);
    wk_expr_drop(NULL);
    wk_scope_end();
}

static void check_errors(void)
{
    static const char *const texts[][2] = {
        {"", "a name"},
        {"a +", "a name"},
        {"a b", "operator"},
        {"(a", "')'"},
        {"a)", "operator"},
        {"f(a)", "op"},
        {"exp(a", "')'"},
        {"exp()", "a name"},
        {"pow(a)", "','"},
        {"a < b < c", "operator"},
        {"clamp(a,b,1)", "number"},
        {"-(a<b)", "condition"},
        {"where(a+1,a,a)", "condition"},
        {"3", "input"},
        {"a $ b", "operator"},
    };
    char deep[4000];
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        CHECK_ERROR(!wk_expr_compile(texts[i][0]), WK_ERR_PARAM, texts[i][1]);
    CHECK_ERROR(!wk_expr_compile(NULL), WK_ERR_ARGUMENT, "text");
    memset(deep, '(', sizeof deep - 1);
    deep[sizeof deep - 1] = 0;
    CHECK_ERROR(!wk_expr_compile(deep), WK_ERR_PARAM, "inside each other");
    memset(deep, '-', sizeof deep - 1);
    CHECK_ERROR(!wk_expr_compile(deep), WK_ERR_PARAM, "inside each other");
    CHECK_ERROR(!wk_expr_compile("a+b+c+d+e+f+g+h+i"), WK_ERR_PARAM, "at most 8 inputs");
    char *at = deep + sprintf(deep, "a");
    for (int i = 0; i < 99; i++)
        at += sprintf(at, "+%d*a", i + 2);
    CHECK_ERROR(!wk_expr_compile(deep), WK_ERR_PARAM, "at most 96 steps");
}

int main(int argc, char **argv)
{
    device = wk_device_open(argc > 1 ? argv[1] : "cpu");
    if (!device) {
        fprintf(stderr, "%s\n", wk_error());
        return TEST_SKIPPED;
    }
    check_handles();
    check_errors();
    check_random(argc > 2 ? atoi(argv[2]) : 600);
    return test_end();
}
