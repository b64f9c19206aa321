/* vendor_ops.c: arguments of calls as MIOpen and cuDNN both want them. */
#include "vendor_ops.h"
#include "ops/reduce.h"
#include "ops/rnn.h"
#include "ops/softmax.h"
#include "runtime.h"
#include "wick/ops.h"

wk_status wk_vendor_unary_of(const wk_call *c, wk_vendor_unary *u)
{
    *u = (wk_vendor_unary){.x = wk_tensor_packed(c->in[0]), .out = c->out[0]};
    u->dy = c->in[1] ? wk_tensor_packed(c->in[1]) : NULL;
    return wk_pending() ? wk_error_status() : WK_OK;
}

bool wk_vendor_softmax_shape(const wk_call *c, int64_t shape[4])
{
    const wk_softmax_params *p = c->params;
    unsigned set;
    shape[3] = 1;
    return wk_reduce_dims(c, &p->dims, c->in[0]->rank, &set) == WK_OK &&
           wk_softmax_fold(c->in[0], set, shape);
}

/* ---- batch norm ---- */

static const wk_tensor *or_filled(const wk_call *c, const wk_tensor *t, const wk_vendor_norm *w, double value)
{
    return t ? wk_tensor_packed(t) : wk_fill(c->device, wk_stat_dtype(c->dtype), 1, &w->s.c, value);
}

static wk_tensor *or_new(const wk_call *c, wk_tensor *t, const wk_vendor_norm *w)
{
    return t ? t : wk_tensor_new(c->device, wk_stat_dtype(c->dtype), 1, &w->s.c);
}

/* The running statistics, which a library moves on where they are: a copy in out. */
static wk_tensor *running(const wk_call *c, wk_tensor *out, const wk_tensor *t, const wk_vendor_norm *w,
                          double value)
{
    wk_tensor *copy = or_new(c, out, w);
    if (!copy)
        return NULL;
    if (!t)
        return wk_fill_into(copy, value) == WK_OK ? copy : NULL;
    const wk_tensor *same = wk_reshape(wk_tensor_packed(t), copy->rank, copy->shape);
    return wk_copy_into(copy, same) == WK_OK ? copy : NULL;
}

static void start(const wk_call *c, wk_vendor_norm *w)
{
    const wk_norm_params *p = c->params;
    *w = (wk_vendor_norm){.eps = p->eps, .momentum = p->momentum, .out = c->out[0]};
    w->s = wk_batch_shape_of(c->in[0], p->mode);
    w->x = wk_tensor_packed(c->in[0]);
}

static wk_status finish(void) { return wk_pending() ? wk_error_status() : WK_OK; }

wk_status wk_vendor_norm_train(const wk_call *c, wk_vendor_norm *w)
{
    start(c, w);
    w->train = true;
    w->weight = or_filled(c, c->in[1], w, 1);
    w->bias = or_filled(c, c->in[2], w, 0);
    w->new_mean = running(c, c->out[1], c->in[3], w, 0);
    w->new_var = running(c, c->out[2], c->in[4], w, 1);
    w->save_mean = or_new(c, c->out[3], w);
    w->save_invstd = or_new(c, c->out[4], w);
    return finish();
}

wk_status wk_vendor_norm_infer(const wk_call *c, wk_vendor_norm *w)
{
    start(c, w);
    w->weight = or_filled(c, c->in[1], w, 1);
    w->bias = or_filled(c, c->in[2], w, 0);
    w->mean = wk_tensor_packed(c->in[3]);
    w->var = wk_tensor_packed(c->in[4]);
    return finish();
}

wk_status wk_vendor_norm_backward(const wk_call *c, wk_vendor_norm *w)
{
    start(c, w);
    w->dy = wk_tensor_packed(c->in[1]);
    w->weight = or_filled(c, c->in[2], w, 1);
    w->mean = wk_tensor_packed(c->in[3]);
    w->var = wk_tensor_packed(c->in[4]);
    if (!w->out)
        w->out = wk_tensor_new(c->device, c->dtype, c->in[0]->rank, c->in[0]->shape);
    w->dweight = or_new(c, c->out[1], w);
    w->dbias = or_new(c, c->out[2], w);
    return finish();
}

/* ---- recurrent layers ---- */

wk_status wk_vendor_lengths(const wk_call *c, const char *library, int least, int *lengths)
{
    const wk_tensor *packed = wk_tensor_packed(c->in[WK_RNN_LENGTHS]);
    int64_t t = c->in[WK_RNN_X]->shape[0], b = c->in[WK_RNN_X]->shape[1];
    if (!packed)
        return wk_error_status();
    WK_TRY(wk_gpu_download(c->device, lengths, wk_ptr(packed), (size_t)b * sizeof *lengths));
    for (int64_t i = 0; i < b; i++) {
        if (lengths[i] < least || lengths[i] > t)
            return wk_fail(WK_ERR_UNSUPPORTED, "%s takes lengths from %d to that of x", library, least);
    }
    return WK_OK;
}

/* ---- pooling ---- */

wk_vendor_window wk_vendor_window_of(const wk_pool_shape *s)
{
    return (wk_vendor_window){.size = {(int)s->h.kernel, (int)s->w.kernel},
                              .padding = {(int)s->h.padding, (int)s->w.padding},
                              .stride = {(int)s->h.stride, (int)s->w.stride}};
}

void wk_vendor_pool_key(wk_key *k, const wk_pool_shape *s)
{
    const wk_pool_dim *dims[] = {&s->h, &s->w};
    wk_key_add(k, s->planes);
    for (int i = 0; i < 2; i++) {
        const wk_pool_dim *d = dims[i];
        wk_key_shape(k, 5, (int64_t[]){d->in, d->out, d->kernel, d->stride, d->padding});
    }
}
