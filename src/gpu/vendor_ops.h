/* vendor_ops.h: arguments of calls as MIOpen and cuDNN both want them: packed, with nothing left out. */
#ifndef WK_GPU_VENDOR_OPS_H
#define WK_GPU_VENDOR_OPS_H

#include "core/op.h"
#include "ops/norm.h"
#include "ops/pool.h"
#include "vendor.h"

/* An op of one input and its gradient: x, or y where the gradient wants that. */
typedef struct {
    const wk_tensor *x, *dy; /* dy: NULL in the forward */
    wk_tensor *out;
} wk_vendor_unary;

wk_status wk_vendor_unary_of(const wk_call *c, wk_vendor_unary *u);

/* Softmax over neighbours, as [outer, a line, inner, 1]; false for other dims. */
bool wk_vendor_softmax_shape(const wk_call *c, int64_t shape[4]);

/* Batch norm of [n, c, 1, inner], statistics of c elements; what a call of its kind has is all there. Per activation
 * every element of a sample is a channel of its own: what is left is spatial with planes of one. */
typedef struct {
    wk_batch_shape s;
    double eps, momentum;
    bool train;
    const wk_tensor *x, *dy, *weight, *bias, *mean, *var; /* of the gradient, var is the inverse deviation */
    wk_tensor *out, *dweight, *dbias;
    wk_tensor *new_mean, *new_var; /* of training: they hold the old ones, to be moved on */
    wk_tensor *save_mean, *save_invstd;
} wk_vendor_norm;

wk_status wk_vendor_norm_train(const wk_call *c, wk_vendor_norm *w);
wk_status wk_vendor_norm_infer(const wk_call *c, wk_vendor_norm *w);
wk_status wk_vendor_norm_backward(const wk_call *c, wk_vendor_norm *w);

/* Lengths of a recurrent layer's sequences on the host, where a library wants them: the device is waited for. Where one is
 * shorter than `least`, or longer than x, the call is another implementation's (WK_ERR_UNSUPPORTED). */
wk_status wk_vendor_lengths(const wk_call *c, const char *library, int least, int *lengths);

/* Windows of pooling: h, w. */
typedef struct {
    int size[2], padding[2], stride[2];
} wk_vendor_window;

wk_vendor_window wk_vendor_window_of(const wk_pool_shape *s);
void wk_vendor_pool_key(wk_key *k, const wk_pool_shape *s);

#endif
