/* wick/ctc.h: connectionist temporal classification. */
#ifndef WICK_CTC_H
#define WICK_CTC_H

#include "core.h"

#ifdef __cplusplus
extern "C" {
#endif

/* A field that is zero means its default. */
typedef struct {
    size_t size;           /* set by WK_CTC */
    int64_t blank;         /* the class that stands for no label; 0 */
    int64_t logits;        /* 1: x is not normalised yet, log-softmax is applied first; 0 */
    int64_t zero_infinity; /* 1: an impossible alignment has loss and gradient 0; 0 */
} wk_ctc_options;
#define WK_CTC(...) (&(wk_ctc_options){.size = sizeof(wk_ctc_options), __VA_ARGS__})

/* The loss of every sequence of a batch, [b]: -log of the probability of its labels. x [t, b, c] are log-probabilities;
 * labels [b, max] i32, of which label_lengths [b] count; input_lengths [b] steps of x count (both i32 or i64). An
 * impossible alignment (more labels than steps) gives infinity. dx (NULL: not wanted) is the gradient of the sum of the
 * losses as PyTorch defines it, softmax minus the label's share: right for the logits whether or not x was
 * normalised here. Labels and lengths out of range fail with WK_ERR_INDEX. options may be NULL. Float. */
WK_API wk_tensor *wk_ctc_loss(const wk_tensor *x, const wk_tensor *labels, const wk_tensor *input_lengths,
                              const wk_tensor *label_lengths, const wk_ctc_options *options, wk_tensor **dx);

#ifdef __cplusplus
}
#endif
#endif
