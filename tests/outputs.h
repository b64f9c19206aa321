/* outputs.h: run a sample and look at the bits of everything it makes. */
#ifndef WK_TESTS_OUTPUTS_H
#define WK_TESTS_OUTPUTS_H

#include <stdlib.h>
#include "check/sample.h"
#include "test.h"

/* A sample's call, to be run again and again. */
typedef struct {
    wk_sample sample;
    wk_tensor *tail_out[WK_SAMPLE_TAIL];
} sample_call;

static inline wk_status sample_begin(sample_call *c, const wk_op *op, const char *text, wk_dtype dtype,
                                     wk_layout layout)
{
    memset(c->tail_out, 0, sizeof c->tail_out);
    wk_status status = wk_sample_make(op, text, dtype, layout, 1, wk_cpu(), &c->sample);
    wk_sample_want_all(&c->sample, c->tail_out);
    return status;
}

/* Runs a copy of the call, whose record an implementation may change on its way; the outputs come back. */
static inline wk_status sample_run(sample_call *c)
{
    wk_call call = c->sample.call;
    memset(call.out, 0, sizeof call.out);
    memset(c->tail_out, 0, sizeof c->tail_out);
    wk_status status = wk_call_run(&call);
    memcpy(c->sample.call.out, call.out, sizeof call.out);
    return status;
}

static inline const wk_tensor *sample_output(const sample_call *c, int i)
{
    const wk_call *call = &c->sample.call;
    return i < WK_MAX_OUT ? call->out[i] : call->tail_out ? call->tail_out[i - WK_MAX_OUT] : NULL;
}
enum { SAMPLE_OUTPUTS = WK_MAX_OUT + WK_SAMPLE_TAIL };

/* All outputs one after the other: they are packed. The caller frees them. */
static inline char *sample_bits(const sample_call *c, size_t *bytes)
{
    char *bits = NULL;
    *bytes = 0;
    for (int i = 0; i < SAMPLE_OUTPUTS; i++) {
        const wk_tensor *t = sample_output(c, i);
        size_t more = t ? (size_t)wk_count(t) * wk_bytes(t->dtype) : 0;
        char *bigger = realloc(bits, *bytes + more + 1);
        if (!bigger)
            abort();
        bits = bigger;
        if (more > 0)
            memcpy(bits + *bytes, wk_ptr(t), more);
        *bytes += more;
    }
    return bits;
}

/* Whether the outputs are bit for bit those. */
static inline bool sample_same_bits(const sample_call *c, const char *want, size_t want_bytes)
{
    size_t bytes;
    char *bits = sample_bits(c, &bytes);
    bool same = bytes == want_bytes && memcmp(bits, want, bytes) == 0;
    free(bits);
    return same;
}

#endif
