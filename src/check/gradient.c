/* gradient.c: gradients against finite differences, for any op by the names of its backward op's slots.
 *
 * With f = sum(y * dy), the backward op has to give df/dx for every input it names. Its inputs are taken by name
 * from the forward call: inputs, outputs, dy; its parameters too, and input_size and kernel_size are the shapes of
 * x and weight. An op that gives dx beside y (a loss) is checked with dy = 1. */
#include <stdio.h>
#include "check.h"
#include "wick/ops.h"

enum { PROBES = 12 };

typedef struct {
    wk_device *device;
    const char *text;
    wk_sample forward, backward;
    wk_tensor *dy;
    wk_tensor *tail_out[WK_SAMPLE_TAIL];
    wk_check_result *r;
} gradient;

/* call: the one that gave the gradient. */
static void fail(gradient *g, const wk_call *call, const char *what)
{
    if (!g->r->sample) {
        g->r->sample = g->text;
        snprintf(g->r->message, sizeof g->r->message, "gradient: %s", what);
    }
    wk_check_fail(g->r, call);
}

/* ---- by name ---- */

static int input_named(const wk_op *op, const char *name)
{
    for (int i = 0; i < wk_op_inputs(op); i++) {
        if (strcmp(op->in[i].name, name) == 0)
            return i;
    }
    return -1;
}

static const wk_tensor *tensor_named(const gradient *g, const char *name)
{
    const wk_op *op = g->forward.call.op;
    int i = input_named(op, name);
    if (i >= 0)
        return g->forward.call.in[i];
    for (i = 0; i < wk_op_outputs(op); i++) {
        if (strcmp(op->out[i].name, name) == 0)
            return g->forward.call.out[i];
    }
    return strcmp(name, "dy") == 0 ? g->dy : NULL;
}

static const wk_param *param_named(const wk_op *op, const char *name)
{
    for (const wk_param *p = op->params; p && p->name; p++) {
        if (strcmp(p->name, name) == 0)
            return p;
    }
    return NULL;
}

/* The forward's parameters for the backward op. False when the text sets one that the gradient does not know. */
static bool carry_params(gradient *g, const wk_op *back)
{
    const wk_op *op = g->forward.call.op;
    wk_params_defaults(back, g->backward.params);
    for (const wk_param *p = op->params; p && p->name; p++) {
        const wk_param *to = param_named(back, p->name);
        if (!to && (g->forward.seen >> (p - op->params) & 1))
            return false;
        if (to && to->type == p->type)
            memcpy(g->backward.params + to->offset, g->forward.params + p->offset, wk_param_bytes(to));
    }
    static const char *const sizes[][2] = {{"input_size", "x"}, {"kernel_size", "weight"}};
    for (int i = 0; i < 2; i++) {
        const wk_param *to = param_named(back, sizes[i][0]);
        const wk_tensor *t = tensor_named(g, sizes[i][1]);
        if (to && t && !param_named(op, sizes[i][0])) {
            wk_list *list = (wk_list *)(g->backward.params + to->offset);
            list->n = t->rank;
            memcpy(list->v, t->shape, sizeof t->shape);
        }
    }
    return true;
}

/* ---- differences ---- */

/* sum(y * dy) of the forward call as it is now. */
static double objective(gradient *g, bool *fine)
{
    wk_call c = g->forward.call;
    double sum = 0;
    memset(c.out, 0, sizeof c.out);
    wk_scope_begin();
    *fine = wk_call_run(&c) == WK_OK;
    for (int64_t i = 0; *fine && i < wk_count(c.out[0]); i++)
        sum += ((double *)wk_ptr(c.out[0]))[i] * ((double *)wk_ptr(g->dy))[i];
    wk_scope_end();
    *fine = *fine && isfinite(sum);
    return sum;
}

/* Compares some elements of dx, which call gave, with differences in x; steps across a kink show as a difference between the two
 * one-sided slopes and are left out. */
static void probe(gradient *g, const wk_call *call, const char *name, wk_tensor *x, const wk_tensor *dx)
{
    int64_t n = wk_count(x);
    double *values = wk_ptr(x), *slopes = wk_ptr(dx), scale = 0;
    char what[200];
    bool fine;
    for (int64_t i = 0; i < n; i++)
        scale = fabs(slopes[i]) > scale ? fabs(slopes[i]) : scale;
    double middle = objective(g, &fine);
    for (int64_t k = 0; fine && k < PROBES && k < n; k++) {
        int64_t i = n <= PROBES ? k : k * (n - 1) / (PROBES - 1);
        double x0 = values[i], h = 1e-6 * (fabs(x0) + 1);
        values[i] = x0 + h;
        double up = objective(g, &fine);
        values[i] = x0 - h;
        double down = fine ? objective(g, &fine) : 0;
        values[i] = x0;
        double left = (middle - down) / h, right = (up - middle) / h, slope = (up - down) / (2 * h);
        double size = fabs(slope) + fabs(slopes[i]) + 0.01 * scale + 1e-3;
        bool kink = fabs(left - right) > 1e-3 * (fabs(left) + fabs(right) + 1e-2);
        if (!fine || kink)
            continue;
        double allowed = 2e-5 * size + 1e-9 * fabs(middle) / h;
        if (fabs(slope - slopes[i]) > allowed * wk_check_configured()->allow) {
            snprintf(what, sizeof what, "d%s[%lld]: got %.9g, finite differences give %.9g", name,
                     (long long)i, slopes[i], slope);
            fail(g, call, what);
            return;
        }
    }
    if (fine)
        g->r->passed++;
    wk_error_clear();
}

/* ---- one sample ---- */

static bool run_forward(gradient *g, const wk_op *op)
{
    g->forward.call.want = ~0u;
    if (wk_sample_make(op, g->text, WK_F64, WK_LAYOUT_PACKED, 7, wk_cpu(), &g->forward) != WK_OK)
        return false;
    g->forward.call.want = ~0u;
    if (wk_call_run(&g->forward.call) != WK_OK || !wk_is_float(g->forward.call.out[0]->dtype))
        return false;
    const wk_tensor *y = g->forward.call.out[0];
    wk_tensor *weights = wk_empty(wk_cpu(), WK_F64, y->rank, y->shape);
    for (int64_t i = 0; weights && i < wk_count(y); i++)
        ((double *)wk_ptr(weights))[i] = sin(1 + 2.3 * (double)i);
    g->dy = weights;
    return weights && wk_count(y) > 0;
}

static void compare_gradients(gradient *g, const wk_op *back)
{
    const wk_op *op = g->forward.call.op;
    for (int i = 0; i < wk_op_outputs(back); i++) {
        const char *name = back->out[i].name;
        int k = name[0] == 'd' ? input_named(op, name + 1) : -1;
        if (k >= 0 && g->forward.in[k] && g->backward.call.out[i])
            probe(g, &g->backward.call, name + 1, g->forward.in[k], g->backward.call.out[i]);
    }
    for (int i = 0; g->backward.call.tail_out && i < g->backward.call.n_tail; i++) {
        char buf[48];
        probe(g, &g->backward.call, op->tail_name(g->forward.params, i, buf, sizeof buf), g->forward.tail[i],
              g->tail_out[i]);
    }
}

static void check_backward(gradient *g, const wk_op *back)
{
    wk_sample *b = &g->backward;
    memset(b, 0, sizeof *b);
    if (!carry_params(g, back))
        return;
    b->call = (wk_call){.op = back, .params = b->params, .want = ~0u, .device = g->device};
    for (int i = 0; i < wk_op_inputs(back); i++) {
        if (back->in[i].flags & WK_TAIL)
            continue;
        b->call.in[i] = tensor_named(g, back->in[i].name);
        if (!b->call.in[i] && !(back->in[i].flags & WK_OPTIONAL))
            return; /* the forward call did not make it (a reserve without training) */
    }
    if (back->tail_name) {
        b->call.tail = g->forward.call.tail;
        b->call.n_tail = g->forward.call.n_tail;
        b->call.tail_out = g->tail_out;
    }
    if (wk_call_run(&b->call) != WK_OK) {
        fail(g, &b->call, wk_error());
        return;
    }
    compare_gradients(g, back);
}

/* dx among the forward's own outputs. */
static void check_own(gradient *g)
{
    const wk_op *op = g->forward.call.op;
    for (int i = 1; i < wk_op_outputs(op); i++) {
        int k = op->out[i].name[0] == 'd' ? input_named(op, op->out[i].name + 1) : -1;
        if (k < 0 || !g->forward.call.out[i])
            continue;
        for (int64_t j = 0; j < wk_count(g->dy); j++)
            ((double *)wk_ptr(g->dy))[j] = 1;
        probe(g, &g->forward.call, op->in[k].name, g->forward.in[k], g->forward.call.out[i]);
    }
}

void wk_check_gradient(wk_device *device, const wk_op *op, wk_check_result *r)
{
    static const char *const suffixes[] = {"_backward", "_backward_data", "_backward_weight"};
    *r = (wk_check_result){.op = op, .impl = "", .dtype = WK_F64};
    if (!wk_check_takes(op, WK_F64) || wk_op_inputs(op) == 0 || op->tail_gives ||
        strstr(op->name, "_backward"))
        return;
    for (const char *const *text = op->samples; text && *text; text++) {
        gradient g = {.device = device, .text = *text, .r = r};
        if (strstr(*text, ":special")) /* no slopes there */
            continue;
        /* CTC's dx is PyTorch's: of log-probabilities that stay normalised, which single differences do not. */
        if (strcmp(op->name, "ctc_loss") == 0 && !strstr(*text, "logits=1"))
            continue;
        wk_scope_begin();
        if (run_forward(&g, op)) {
            for (int i = 0; i < 3; i++) {
                char name[80];
                snprintf(name, sizeof name, "%s%s", op->name, suffixes[i]);
                const wk_op *back = wk_op_find(name);
                if (back)
                    check_backward(&g, back);
            }
            check_own(&g);
        }
        wk_error_clear();
        wk_scope_end();
    }
}
