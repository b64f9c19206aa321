/* cudnn_attention.h: what the graphs of attention and of its gradients have in common. */
#ifndef WK_CUDA_CUDNN_ATTENTION_H
#define WK_CUDA_CUDNN_ATTENTION_H

#include "cudnn_plan.h"
#include "ops/attention.h"

/* Tensors by what they are: first those in memory that are given, then those made, then numbers. */
enum {
    WK_ATTN_Q = 1,
    WK_ATTN_K,
    WK_ATTN_V,
    WK_ATTN_Y,
    WK_ATTN_DY,
    WK_ATTN_DQ,
    WK_ATTN_DK,
    WK_ATTN_DV,
    WK_ATTN_MAPS, /* so many have strides */
    WK_ATTN_LSE = WK_ATTN_MAPS,
    WK_ATTN_DELTA,
    WK_ATTN_DQ_SUM,
    WK_ATTN_SCALE,
    WK_ATTN_ONE,
    WK_ATTN_LOWEST,
    WK_ATTN_KEYS,
    WK_ATTN_QUERIES,
    WK_ATTN_REACH,
    WK_ATTN_LOWEST2,
    WK_ATTN_IDS
};

typedef struct {
    wk_dtype dtype;
    int64_t b, hq, hk, s, t, d, dv;
    int64_t strides[WK_ATTN_MAPS][4];
    bool causal, windowed; /* windowed: keys too far before the query are not seen either */
    bool lse;              /* wanted, or there */
    bool any_order;        /* of gradients: blocks of keys add to that of the queries as they come */
    int number;            /* of the configuration to take; 0: the first that works */
    float scale, one, lowest, reach;
    int32_t keys, queries;
    void *data[WK_ATTN_IDS]; /* of what is in memory, or NULL */
} wk_cudnn_attention;

/* Why cuDNN takes no such call, forward or backward; mask: its slot. */
const char *wk_cudnn_attention_refuse(const wk_call *c, int mask);
/* The same of a call too small for what setting it up costs. */
const char *wk_cudnn_attention_small(const wk_call *c);

/* Takes sizes and options from the call, whose first inputs are q, k and v. */
void wk_cudnn_attention_fill(wk_cudnn_attention *w, const wk_call *c);
/* Takes a tensor of 4 dimensions that is read, copied where cuDNN does not take its layout; or one that is written. */
wk_status wk_cudnn_attention_read(wk_cudnn_attention *w, int id, const wk_tensor *t);
wk_status wk_cudnn_attention_write(wk_cudnn_attention *w, int id, const wk_tensor *t);
/* Runs the call; set_up builds the graph. */
wk_status wk_cudnn_attention_run(const wk_call *c, wk_cudnn_attention *w,
                                 void (*set_up)(cudnnHandle_t, wk_cudnn_plan *, const void *));

/* One of the maps as it is, or turned. */
cudnnBackendDescriptor_t wk_cudnn_attention_map(wk_cudnn_plan *p, const wk_cudnn_attention *w, int id,
                                                bool turned);
/* A number for each query: [b, hq, s, 1] in f32. id 0: not in memory. */
cudnnBackendDescriptor_t wk_cudnn_attention_rows(wk_cudnn_plan *p, const wk_cudnn_attention *w, int id);
/* Scores of keys that are not seen become -inf. */
cudnnBackendDescriptor_t wk_cudnn_attention_hide(wk_cudnn_plan *p, const wk_cudnn_attention *w,
                                                 cudnnBackendDescriptor_t scores);

/* In cudnn_attention_grad.c. */
wk_status wk_cudnn_run_sdpa_backward(wk_call *c);
const char *wk_cudnn_refuse_sdpa_backward(const wk_call *c);

#endif
