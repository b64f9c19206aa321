/* miopen_rope.c: rotary embedding by MIOpen, which turns neighbours (rope_i) and wants a cosine and a sine for each of
 * them, where wick has one for both. */
#include "dnn.h"
#include "gpu/families.h"
#include "wick/core.h"

typedef struct {
    bool backward;
    const wk_tensor *x, *cos, *sin; /* angles as [t, d] */
    wk_tensor *y;
} work;

enum { GROUP = 256 }; /* elements that a group of MIOpen's kernel turns */

static const char *refuse(const wk_call *c)
{
    const wk_tensor *x = c->in[0], *cos = c->in[1];
    if (c->dtype == WK_BF16)
        return "MIOpen's RoPE takes the bits of bf16 for whole numbers";
    const char *why = wk_dnn_refuse(c, WK_DNN_REALS);
    if (why)
        return why;
    if (wk_count(x) > GROUP && wk_count(x) % GROUP)
        return "MIOpen's RoPE leaves the end unwritten where it is no full group";
    if (cos->rank != 2)
        return "MIOpen's angles are the same for the whole batch";
    if (2 * cos->shape[1] != x->shape[3])
        return "MIOpen turns all of a row";
    return wk_miopen.miopenRoPEForward && wk_miopen.miopenRoPEBackward ? NULL : "this MIOpen has no RoPE";
}

static const char *refuse_halves(const wk_call *c)
{
    (void)c;
    return "MIOpen turns pairs of neighbours, not of halves";
}

static miopenStatus_t set_up(miopenHandle_t h, wk_dnn_plan *p, const void *data)
{
    const work *w = data;
    (void)h;
    WK_DNN_TRY(wk_dnn_tensor(p, 0, w->x->dtype, 4, w->x->shape));
    return wk_dnn_tensor(p, 1, w->x->dtype, 2, w->x->shape + 2);
}

static miopenStatus_t queue(miopenHandle_t h, const wk_dnn_plan *p, void *workspace, const void *data)
{
    const work *w = data;
    miopenTensorDescriptor_t x = p->tensor[0], angles = p->tensor[1];
    (void)workspace;
    return (w->backward ? wk_miopen.miopenRoPEBackward : wk_miopen.miopenRoPEForward)(
        h, x, wk_ptr(w->x), angles, wk_ptr(w->cos), angles, wk_ptr(w->sin), x, wk_ptr(w->y));
}

/* [t', r] as [t, 2 r], each number twice. */
static const wk_tensor *doubled(const wk_tensor *angles, int64_t t)
{
    wk_tensor *rows = wk_unsqueeze(wk_narrow(angles, 0, 0, t), 2);
    wk_tensor *twice = wk_broadcast(rows, 3, (int64_t[]){t, angles->shape[1], 2});
    return twice ? wk_tensor_packed(twice) : NULL;
}

static wk_status run(wk_call *c)
{
    int64_t t = c->in[0]->shape[2];
    work w = {.backward = strstr(c->op->name, "backward") != NULL, .y = c->out[0]};
    w.x = wk_tensor_packed(c->in[0]);
    w.cos = doubled(c->in[1], t);
    w.sin = doubled(c->in[2], t);
    if (wk_pending())
        return wk_error_status();
    wk_dnn_call d = {.call = c, .set_up = set_up, .run = queue, .data = &w};
    wk_key_shape(&d.key, 4, c->in[0]->shape);
    return wk_dnn_run(&d);
}

const wk_impl wk_rocm_impls_rope[] = {
    {"rope_i", "miopen", run, refuse, NULL},
    {"rope_i_backward", "miopen", run, refuse, NULL},
    {"rope", "miopen", run, refuse_halves, NULL},
    {"rope_backward", "miopen", run, refuse_halves, NULL},
    {"rope_thd", "miopen", run, refuse_halves, NULL},
    {"rope_thd_backward", "miopen", run, refuse_halves, NULL},
    {0},
};
