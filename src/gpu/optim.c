/* optim.c: optimizer steps on the GPU. */
#include "ops/optim.h"
#include "families.h"
#include "gpu.h"
#include "kernels/optim.h"
#include "wick/optim.h"

static const wk_kernel sgd_kernel = {"optim", "optim_sgd", "optim_args", 256, .types = 2, .ints = 1};
static const wk_kernel adamw_kernel = {"optim", "optim_adamw", "optim_args", 256, .types = 3, .ints = 1};

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

static wk_status run_sgd(wk_call *c)
{
    const wk_sgd_params *p = c->params;
    optim_args a = {.lr = p->lr, .decay = p->weight_decay, .beta1 = p->momentum};
    WK_TRY(take_tensors(c, &a));
    return launch(c, &sgd_kernel, &a);
}

static wk_status run_adamw(wk_call *c)
{
    const wk_adamw_options *o = c->params;
    optim_args a = {.lr = o->lr / (1 - pow(o->beta1, (double)o->step)),
                    .decay = 1 - o->lr * o->weight_decay,
                    .beta1 = o->beta1,
                    .beta2 = o->beta2,
                    .root = sqrt(1 - pow(o->beta2, (double)o->step)),
                    .eps = o->eps};
    WK_TRY(take_tensors(c, &a));
    return launch(c, &adamw_kernel, &a);
}

const wk_impl wk_gpu_impls_optim[] = {
    {"sgd_step", "kernel", run_sgd, NULL, NULL},
    {"adamw_step", "kernel", run_adamw, NULL, NULL},
    {0},
};
