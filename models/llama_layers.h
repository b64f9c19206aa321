/* llama_layers.h: one pass of tokens through the layers of a Llama-like model. */
#ifndef WM_LLAMA_LAYERS_H
#define WM_LLAMA_LAYERS_H

#include "llama_int.h"

typedef struct {
    const wm_llama *model;
    wk_tensor *const *keys, *const *values; /* of each layer: [batch, kv_heads, capacity, head_dim] */
    int64_t row, rows;                      /* the texts of the batch that it is about */
    int64_t n;                              /* tokens of each */
    int64_t seen;                           /* keys that are looked at, the pass's own among them */
    const wk_tensor *cos, *sin;             /* of the positions: [n, head_dim / 2], or [rows, n, ..] */
    /* Where the keys go: behind the others, to seen - n; or where `place` says, u32 [rows, n]. Then
     * the masks (u8 [rows, 1, 1, seen]) say which keys count, in layers without and with a window. */
    const wk_tensor *place, *mask, *window_mask;
    wm_llama_watch watch; /* NULL: nobody watches */
    void *watch_ctx;
} wm_pass;

/* The hidden states [rows, n, hidden] behind the last norm, in the caller's scope; ids is u32 [rows * n]. NULL with an
 * error. */
wk_tensor *wm_llama_run(const wm_pass *p, const wk_tensor *ids);
/* The logits f32 [rows, vocab] of hidden states [rows, hidden]; best (NULL: not wanted) gets the best token of each. */
wk_tensor *wm_llama_head(const wm_llama *m, const wk_tensor *hidden, wk_tensor **best);

#endif
