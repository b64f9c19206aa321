/* optim.c: optimizer steps on the GPU. */
#include "ops/optim.h"
#include "families.h"
#include "gpu.h"
#include "kernels/optim.h"
#include "wick/copy.h"
#include "wick/optim.h"

static const wk_kernel sgd_kernel = {"optim", "optim_sgd", "optim_args", 256, .types = 2, .ints = 1};
static const wk_kernel adamw_kernel = {"optim", "optim_adamw", "optim_args", 256, .types = 3, .ints = 1};

static const wk_kernel list_kernel = {"optim", "optim_list", "optim_list_args", 256, .types = 3, .ints = 2};

/* The call's tensors; inputs that are not packed become copies (one that is written in place is packed). */
static wk_status take_tensors(wk_call *c, optim_args *a)
{
    const void **in[] = {&a->param, &a->grad, &a->m, &a->v};
    void **out[] = {&a->new_param, &a->new_m, &a->new_v};
    for (int i = 0; i < 4; i++) {
        if (c->in[i] && !(c->in[i] = wk_tensor_packed(c->in[i])))
            return wk_error_status();
        *in[i] = c->in[i] ? wk_ptr(c->in[i]) : NULL;
    }
    for (int i = 0; i < 3; i++)
        *out[i] = c->out[i] ? wk_ptr(c->out[i]) : NULL;
    a->count = wk_count(c->in[0]);
    return WK_OK;
}

/* 16 bytes of the widest dtype, where all addresses and the count allow it. */
static int vector_width(const wk_call *c, const optim_args *a)
{
    size_t widest = 0, any = (size_t)a->param | (size_t)a->grad | (size_t)a->m | (size_t)a->v |
                             (size_t)a->new_param | (size_t)a->new_m | (size_t)a->new_v;
    for (int i = 0; i < 4; i++) {
        size_t bytes = c->in[i] ? wk_bytes(c->in[i]->dtype) : 0;
        widest = bytes > widest ? bytes : widest;
    }
    return any % 16 || a->count % (i64)(16 / widest) ? 1 : (int)(16 / widest);
}

static wk_status launch(const wk_call *c, const wk_kernel *k, const optim_args *a)
{
    int vec = vector_width(c, a);
    wk_instance instance = {.i = {(short)vec}};
    for (int i = 0; i < k->types; i++) { /* parameters, m, v: inputs 0, 2, 3 */
        const wk_tensor *t = c->in[i ? i + 1 : 0];
        instance.t[i] = (unsigned char)(t ? t->dtype : c->dtype);
    }
    return WK_LAUNCH(c, k, &instance, ((wk_grid){.x = wk_blocks(a->count, 256 * vec, WK_GRID_MAX)}), *a);
}

static optim_args sgd_numbers(const wk_call *c)
{
    const wk_sgd_params *p = c->params;
    return (optim_args){.lr = p->lr, .decay = p->weight_decay, .beta1 = p->momentum};
}

static wk_status run_sgd(wk_call *c)
{
    optim_args a = sgd_numbers(c);
    WK_TRY(take_tensors(c, &a));
    return launch(c, &sgd_kernel, &a);
}

static optim_args adamw_numbers(const wk_call *c)
{
    const wk_adamw_options *o = c->params;
    return (optim_args){.lr = o->lr / (1 - pow(o->beta1, (double)o->step)),
                        .decay = 1 - o->lr * o->weight_decay,
                        .beta1 = o->beta1,
                        .beta2 = o->beta2,
                        .root = sqrt(1 - pow(o->beta2, (double)o->step)),
                        .eps = o->eps};
}

static wk_status run_adamw(wk_call *c)
{
    optim_args a = adamw_numbers(c);
    WK_TRY(take_tensors(c, &a));
    return launch(c, &adamw_kernel, &a);
}

/* ---- lists ---- */

/* The tensors of one step as they are to be changed: the outputs, holding the inputs' values. */
typedef struct {
    const wk_tensor *t[4]; /* param, grad, m, v; NULL where there is none */
} one_step;

static wk_status take_step(const wk_call *c, int first, int each, one_step *s)
{
    *s = (one_step){0};
    for (int k = 0; k < each; k++) {
        const wk_tensor *in = c->tail[first + k];
        wk_tensor *out = c->tail_out[first + k];
        s->t[k] = k == 1 ? wk_tensor_packed(in) : out;
        if (!s->t[k])
            return wk_error_status();
        if (k != 1 && wk_ptr(out) != wk_ptr(in))
            WK_TRY(wk_copy_into(out, in));
    }
    return WK_OK;
}

static wk_dtype dtype_of(const one_step *s, int k) { return s->t[k] ? s->t[k]->dtype : s->t[0]->dtype; }

/* Those that can share a launch. */
static bool same_dtypes(const one_step *a, const one_step *b)
{
    return dtype_of(a, 0) == dtype_of(b, 0) && dtype_of(a, 2) == dtype_of(b, 2) &&
           dtype_of(a, 3) == dtype_of(b, 3);
}

static wk_status launch_list(const wk_call *c, const one_step *steps, int n, bool adamw)
{
    optim_list_args a = {.step = adamw ? adamw_numbers(c) : sgd_numbers(c)};
    size_t any = 0, widest = 0;
    for (int i = 0; i < WK_STEPS; i++) {
        a.first[i] = INT64_MAX;
        if (i >= n)
            continue;
        void *p[4];
        for (int k = 0; k < 4; k++) {
            p[k] = steps[i].t[k] ? wk_ptr(steps[i].t[k]) : NULL;
            any |= (size_t)p[k];
            widest = wk_bytes(dtype_of(&steps[i], k)) > widest ? wk_bytes(dtype_of(&steps[i], k)) : widest;
        }
        a.param[i] = p[0];
        a.grad[i] = p[1];
        a.m[i] = p[2];
        a.v[i] = p[3];
        a.count[i] = wk_count(steps[i].t[0]);
        a.first[i] = a.chunks;
        a.chunks += (a.count[i] + WK_STEP_CHUNK - 1) / WK_STEP_CHUNK;
    }
    wk_instance instance = {.t = {(unsigned char)dtype_of(steps, 0), (unsigned char)dtype_of(steps, 2),
                                  (unsigned char)dtype_of(steps, 3)},
                            .i = {adamw, any % 16 ? 1 : (short)(16 / widest)}};
    return WK_LAUNCH(c, &list_kernel, &instance, ((wk_grid){.x = wk_blocks(a.chunks, 1, WK_GRID_MAX)}), a);
}

static wk_status run_list(wk_call *c)
{
    int each = wk_step_tensors(c->op, c->params), n = 0;
    one_step steps[WK_STEPS], next;
    for (int i = 0; i < c->n_tail; i += each) {
        WK_TRY(take_step(c, i, each, &next));
        if (wk_count(next.t[0]) == 0)
            continue;
        if (n == WK_STEPS || (n > 0 && !same_dtypes(steps, &next))) {
            WK_TRY(launch_list(c, steps, n, each == 4));
            n = 0;
        }
        steps[n++] = next;
    }
    return n > 0 ? launch_list(c, steps, n, each == 4) : WK_OK;
}

const wk_impl wk_gpu_impls_optim[] = {
    {"sgd_step", "kernel", run_sgd, NULL, NULL},
    {"adamw_step", "kernel", run_adamw, NULL, NULL},
    {"sgd_step_list", "kernel", run_list, NULL, NULL},
    {"adamw_step_list", "kernel", run_list, NULL, NULL},
    {0},
};
