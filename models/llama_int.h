/* llama_int.h: the parts of a Llama-like model, for loading and running it. */
#ifndef WM_LLAMA_INT_H
#define WM_LLAMA_INT_H

#include "llama.h"

/* Up to three linear layers of one input. On GPUs they are one matrix, so that one product does them all; on the CPU each
 * is its own and may lie in its file. */
enum { WM_JOINT = 3 };
typedef struct {
    wk_tensor *weight[WM_JOINT], *bias[WM_JOINT]; /* bias: NULL for none */
    wk_qformat format[WM_JOINT];                  /* of weights in blocks; WK_QFORMAT_COUNT: floats */
    int64_t out[WM_JOINT];                        /* rows of each */
    int n;
    bool merged; /* weight[0] has all rows */
} wm_joint;

typedef struct {
    wk_tensor *attn_norm, *mlp_norm;
    wk_tensor *q_norm, *k_norm; /* NULL: none */
    wm_joint qkv, out, gate_up, down;
} wm_llama_layer;

struct wm_llama {
    wm_llama_config config;
    wk_device *device;
    wk_dtype dtype;
    bool gpu;
    wk_tensor *embedding, *norm, *head; /* head is embedding where they are tied */
    wk_qformat embedding_format, head_format;
    wm_llama_layer *layers;
};

#endif
