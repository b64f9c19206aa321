/* cudnn_conv.h: convolutions by cuDNN: what their graphs (cudnn_conv_graph.c), their calls (cudnn_conv.c) and those with an
 * activation at the end (cudnn_act.c) share. */
#ifndef WK_CUDA_CUDNN_CONV_H
#define WK_CUDA_CUDNN_CONV_H

#include "cudnn_plan.h"
#include "gpu/conv.h"
#include "ops/conv.h"

/* What a graph has in memory. After the map is made come, where they are there and in this order: + bias,
 * (x - mean) / sqrt(var + eps), * scale, + shift; all have a number for each channel. */
enum {
    WK_CONV_IMAGE,
    WK_CONV_MAP,
    WK_CONV_WEIGHT,
    WK_CONV_TENSORS,
    WK_CONV_BIAS = WK_CONV_TENSORS,
    WK_CONV_MEAN,
    WK_CONV_VAR,
    WK_CONV_EPS,
    WK_CONV_SCALE,
    WK_CONV_SHIFT,
    WK_CONV_POINTERS
};

typedef struct {
    const wk_call *call;
    wk_conv_geometry g, of_graph; /* of_graph: of what cuDNN makes, which may have image and map exchanged */
    wk_conv_way way;              /* of that */
    wk_dtype dtype;
    int dims;
    bool channels_last, turned, fast;
    wk_cudnn_fft fft;
    int64_t channels; /* of the image and the weights, filled up to that; 0: as they are */
    int number;       /* of the configuration to take; 0: the first that works */
    unsigned has;     /* bit i: i of the end of the graph is there */
    bool relu;        /* at its very end */
    float eps;
    int64_t shape[WK_CONV_TENSORS][5], strides[WK_CONV_TENSORS][5];
    void *data[WK_CONV_POINTERS];
} wk_cudnn_conv;

static inline bool wk_conv_has(const wk_cudnn_conv *w, int i) { return w->has >> i & 1; }

/* ---- graphs ---- */

void wk_cudnn_conv_set_up(cudnnHandle_t handle, wk_cudnn_plan *p, const void *data);
/* The graph with all configurations that cuDNN has for it. */
void wk_cudnn_conv_list(cudnnHandle_t handle, wk_cudnn_plan *p, const wk_cudnn_conv *w);

/* ---- calls ---- */

/* Why cuDNN takes no such convolution. */
const char *wk_cudnn_conv_refuse(const wk_call *c);
/* Whether it is fast with more in the graph than the convolution. */
bool wk_cudnn_conv_ends_well(const wk_conv_geometry *g);
/* Runs a convolution, or an op with an activation at its end. */
wk_status wk_cudnn_conv_run(wk_call *c);

/* The tensors at the end of an op with an activation, by the numbers above. */
typedef struct {
    const wk_tensor *t[WK_CONV_POINTERS];
    bool relu;
    float eps;
} wk_cudnn_end;
wk_cudnn_end wk_cudnn_act_end(const wk_call *c);

#endif
