/* sample.h: calls as text ("x=T[2,3] dim=1"), and tensors to go with them. CONTRIBUTING.md has the syntax. */
#ifndef WK_CHECK_SAMPLE_H
#define WK_CHECK_SAMPLE_H

#include "core/op.h"

/* How the tensors of a sample lie in memory. */
typedef enum {
    WK_LAYOUT_PACKED,
    WK_LAYOUT_TRANSPOSED, /* the last two dims swapped in memory */
    WK_LAYOUT_NARROWED,   /* a part of a larger tensor: offset and padded rows */
    WK_LAYOUT_BROADCAST,  /* the first dim has stride 0 */
    WK_LAYOUT_COUNT
} wk_layout;

const char *wk_layout_name(wk_layout layout);

enum { WK_SAMPLE_TAIL = 64 };

typedef struct {
    wk_call call; /* in and tail point to the tensors below, params to the buffer */
    _Alignas(16) char params[WK_PARAMS_BYTES];
    unsigned seen; /* parameters that the text sets */
    wk_tensor *in[WK_MAX_IN], *tail[WK_SAMPLE_TAIL];
    const char *expect; /* of an error sample: the word its message must have; NULL otherwise */
} wk_sample;

/* Reads the text and makes its tensors on the device, in the innermost scope; T stands for dtype. The same seed
 * gives the same values. The status is that of the first thing wrong with the text or its parameters, which for an
 * error sample is a result like any other. */
wk_status wk_sample_make(const wk_op *op, const char *text, wk_dtype dtype, wk_layout layout, uint64_t seed,
                         wk_device *device, wk_sample *s);

/* Asks for every output, optional or not; gradients of tail inputs, where the backward op has them, go to tail_out,
 * which has WK_SAMPLE_TAIL places. */
void wk_sample_want_all(wk_sample *s, wk_tensor **tail_out);

/* The same call with every tensor of a float dtype T or S as f64, on the CPU. */
wk_status wk_sample_as_f64(const wk_sample *s, wk_sample *wide);

/* Whether the layout makes a difference to any tensor of the sample. */
bool wk_sample_has_layout(const char *text, wk_layout layout);

#endif
