/* expr.c: front end of elementwise expressions. */
#include <stdio.h>
#include "expr.h"
#include "core/families.h"
#include "core/memory.h"

const wk_expr *wk_expr_of(const void *params, wk_expr *room)
{
    const wk_expr_params *p = params;
    if (p->program)
        return p->program;
    return wk_expr_read(p->text, room) == WK_OK ? room : NULL;
}

/* ---- checks and outputs ---- */

/* The names of the inputs; none where the text does not read, which infer says. */
static const char *input_name(const void *params, int i, char *buf, size_t room)
{
    wk_expr read;
    bool pending = wk_pending();
    const wk_expr *e = params && !pending ? wk_expr_of(params, &read) : NULL;
    if (!e && !pending)
        wk_error_clear();
    if (!e || i < 0 || i >= e->n_inputs)
        return NULL;
    snprintf(buf, room, "%s", e->names[i]);
    return buf;
}

static wk_status check_input(wk_call *c, const wk_expr *e, int i, bool *found)
{
    const wk_tensor *t = c->tail[i];
    bool condition = e->conditions >> i & 1;
    if (condition)
        WK_NEED(WK_CONDS >> t->dtype & 1, c, WK_ERR_DTYPE, e->names[i],
                "expected u8, u32 or i64 for a condition, got %s", wk_dtype_name(t->dtype));
    else
        WK_NEED(*found ? t->dtype == c->dtype : wk_is_float(t->dtype), c, WK_ERR_DTYPE, e->names[i],
                "expected dtype %s, got %s", *found ? wk_dtype_name(c->dtype) : "f32, f16, bf16 or f64",
                wk_dtype_name(t->dtype));
    if (!condition && !*found) {
        c->dtype = t->dtype;
        *found = true;
    }
    return WK_OK;
}

static wk_status infer_expr(wk_call *c)
{
    wk_expr read;
    const wk_expr *e = wk_expr_of(c->params, &read);
    bool found = false;
    int rank = 0;
    int64_t shape[WK_MAX_RANK];
    if (!e)
        return wk_error_status();
    WK_NEED(c->n_tail == e->n_inputs, c, WK_ERR_ARGUMENT,
            c->n_tail < e->n_inputs ? e->names[c->n_tail] : "inputs", "expected %d inputs, got %d",
            e->n_inputs, c->n_tail);
    for (int i = 0; i < c->n_tail; i++) {
        int64_t have[WK_MAX_RANK];
        int have_rank = rank;
        wk_shape_text before, got;
        WK_TRY(check_input(c, e, i, &found));
        memcpy(have, shape, sizeof have);
        WK_NEED(wk_shape_broadcast(have_rank, have, c->tail[i]->rank, c->tail[i]->shape, &rank, shape), c,
                WK_ERR_SHAPE, e->names[i], "expected a shape that broadcasts with %s, got %s",
                wk_shape_str(&before, have_rank, have),
                wk_shape_str(&got, c->tail[i]->rank, c->tail[i]->shape));
    }
    WK_NEED(found, c, WK_ERR_PARAM, "text", "expected an input that is no condition");
    wk_call_out(c, 0, e->nodes[e->n_nodes - 1].condition ? WK_U8 : c->dtype, rank, shape);
    return WK_OK;
}

/* ---- the table ---- */

#define SAMPLES(name, ...) static const char *const name[] = {__VA_ARGS__, NULL}

SAMPLES(expr_samples, "text=gelu(a*b+c)*d a=T[4,5] b=T[4,5] c=T[5] d=T[4,5]",
        "text=silu(gate)*up gate=T[40,256] up=T[40,256]", "text=x x=T[3,7]", "text=-x+1 x=T[1025]",
        "text=where(a<b,a,b*2)-0.5 a=T[3,1,5] b=T[4,1]", "text=where(m,x,-inf) m=u8[3,5]:0..2 x=T[3,5]",
        "text=where(m,exp(x),where(x>=1,x,y)) m=i64[3,1]:0..2 x=T[3,5] y=T[5]", "text=a<=b a=T[4,5] b=T[4,5]",
        "text=(a+b)*(a+b)+(b+a) a=T[6,5] b=T[6,5]",
        "text=clamp(x,-1,0.5)*leaky_relu(x)+leaky_relu(x,0.2) x=T[33]",
        "text=elu(x)+elu(x,0.5)+power(y,1,0.5,2)+powf(y,1.5)+affine(x,2,-1) x=T[33] y=T[33]:0.1..3",
        "text=minimum(maximum(a,b),c)/sqrt(sqr(a)+1) a=T[2,1,2,1,2,1,2,3] b=T[2,1,3] c=T[]",
        "text=tanh(a)*sigmoid(b)+relu(c)*erf(d)+softplus(e)*mish(f)+abs(g)*sin(h) a=T[9] b=T[9] c=T[9] "
        "d=T[9] e=T[9] "
        "f=T[9] g=T[9] h=T[9]",
        "text=pow(x,2)+log(x)+rsqrt(x)+recip(x)+floor(x)+ceil(x)+round(x)+sign(x) x=T[5,8]:0.1..4",
        "text=relu6(x)+hard_swish(x)+hard_sigmoid(x)+gelu_erf(x)+cos(x)+neg(x) x=T[70]",
        "text=add(a,sub(b,mul(a,div(b,3)))) a=T[4,8] b=T[8]", "text=a*0+b a=T[6]:special b=T[6]",
        "text=exp(x) x=T[0,3]", "text=x*2 x=T[]");
SAMPLES(expr_errors, "text=a+ ! text", "text=a+b a=T[3] ! b", "text=a+b a=T[3] b=T[4] ! b",
        "text=cube(a) ! op", "text=(a ! )", "text=1+2 ! text", "text=a+(a<1) ! condition",
        "text=where(a,a,1) ! both", "text=where(m,x,1) m=f32[3] x=T[3] ! m", "text=clamp(a) ! number",
        "text=a+b a=f32[3] b=f16[3] ! b", "text=a a=i32[3] ! a", "text=where(m,1,2) m=u8[3] ! condition",
        "text=gelu(a,b) ! )", "! text");

enum { OP_expr };

wk_op wk_ops_expr[] = {
    [OP_expr] = {.name = "expr",
                 .summary = "an elementwise expression such as gelu(a*b+c)*d in one pass",
                 .dtypes = WK_FLOATS,
                 .in = {{"inputs", WK_TAIL | WK_ANY, 0}},
                 .tail_name = input_name,
                 .out = {{"y", WK_ANY, 0}},
                 .params = WK_PARAM_LIST(
                     {"text", WK_P_TEXT, offsetof(wk_expr_params, text), NULL, NULL, WK_EXPR_TEXT}),
                 .infer = infer_expr,
                 .samples = expr_samples,
                 .errors = expr_errors},
    {0},
};

/* ---- the API ---- */

wk_expr *wk_expr_compile(const char *text)
{
    if (wk_pending())
        return NULL;
    if (!text) {
        wk_fail(WK_ERR_ARGUMENT, "expr: text: expected a text, got NULL");
        return NULL;
    }
    wk_expr *e = wk_alloc(sizeof *e);
    if (!e) {
        wk_fail(WK_ERR_MEMORY, "expr: out of memory");
        return NULL;
    }
    if (wk_expr_read(text, e) == WK_OK)
        return e;
    wk_free(e);
    return NULL;
}

void wk_expr_drop(wk_expr *e) { wk_free(e); }

int wk_expr_inputs(const wk_expr *e) { return e ? e->n_inputs : 0; }

const char *wk_expr_input(const wk_expr *e, int i)
{
    return e && i >= 0 && i < e->n_inputs ? e->names[i] : NULL;
}

/* A call of it; false with an error. */
static bool take_call(wk_call *c, wk_expr_params *p, const wk_expr *e, const wk_tensor *const *inputs, int n)
{
    if (wk_pending())
        return false;
    if (!e || n < 0 || (n > 0 && !inputs)) {
        wk_fail(WK_ERR_ARGUMENT, "expr: %s: expected %s", e ? "inputs" : "e",
                e ? "tensors" : "an expression, got NULL");
        return false;
    }
    p->text[0] = 0;
    p->program = e;
    *c = (wk_call){.op = &wk_ops_expr[OP_expr], .params = p, .tail = inputs, .n_tail = n};
    return true;
}

wk_tensor *wk_expr_run(const wk_expr *e, const wk_tensor *const *inputs, int n)
{
    wk_call c;
    wk_expr_params p;
    return take_call(&c, &p, e, inputs, n) ? wk_call_run1(&c) : NULL;
}

wk_status wk_expr_run_into(wk_tensor *dst, const wk_expr *e, const wk_tensor *const *inputs, int n)
{
    wk_call c;
    wk_expr_params p;
    if (!take_call(&c, &p, e, inputs, n))
        return wk_error_status();
    if (!dst)
        return wk_fail(WK_ERR_ARGUMENT, "expr: dst: expected a tensor, got NULL");
    c.out[0] = dst;
    return wk_call_run(&c);
}
