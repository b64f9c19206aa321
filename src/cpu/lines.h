/* lines.h: the engine for ops that work along whole lines of a tensor: softmax, norms, scans, sorting.
 *
 * A line is the elements of some dims taken together, in row-major order. The engine brings lines of any layout
 * and dtype to packed values of the compute type and takes the results back; the op is a function on one line. */
#ifndef WK_CPU_LINES_H
#define WK_CPU_LINES_H

#include "core/op.h"
#include "isa.h"
#include "stream.h"

enum { WK_LINE_TENSORS = 4 };

/* in[k], out[k]: the line of each tensor, n values; or of several lines, one behind the other. out may be the same memory as
 * an input's. Behind the outs comes scratch memory. */
typedef void (*wk_line_fn)(void *const *out, const void *const *in, int64_t line, int64_t n, const void *ctx);

typedef struct {
    const wk_tensor *in[WK_LINE_TENSORS]; /* of one shape */
    wk_compute in_compute[WK_LINE_TENSORS];
    int n_in;
    wk_tensor *out[WK_LINE_TENSORS]; /* packed, of that shape too */
    wk_compute out_compute[WK_LINE_TENSORS];
    int n_out;
    unsigned set;  /* the dims that make a line */
    bool as_is;    /* lines are handed over in their own dtypes; the computes do not matter */
    bool asks;     /* the function asks for what follows a line itself, while it computes */
    bool straight; /* the function writes results past the cache itself; see wk_lines_past */
    int together; /* short lines that lie one behind the other are handed over so many at a time, a power of 2, or
                     * half of that and so on; 0: one */
    size_t scratch; /* bytes behind the outs */
    wk_line_fn fn;
    const void *ctx;
} wk_lines;

/* Whether lines of n elements are so long that they are handed over one at a time. */
static inline bool wk_lines_single(const wk_tensor *x, int64_t n)
{
    enum { SHORT_BYTES = 4096 };
    return n * (int64_t)wk_bytes(x->dtype) > SHORT_BYTES;
}

/* Whether y, in lines of n elements, is so large that it goes past the cache, and lines are whole ones of the cache's, so that a
 * function can write them there itself. */
static inline bool wk_lines_past(const wk_tensor *y, int64_t n)
{
    size_t bytes = wk_bytes(y->dtype);
    return (size_t)wk_count(y) * bytes >= WK_STREAM_BYTES && (size_t)n * bytes % WK_LINE == 0 &&
           (uintptr_t)wk_ptr(y) % WK_LINE == 0;
}

/* Runs it. Fails only for want of memory. */
wk_status WK_ISA(wk_lines_run)(const wk_lines *l);

#endif
