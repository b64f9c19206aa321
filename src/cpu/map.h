/* map.h: the one strided elementwise loop.
 *
 * Everything elementwise is a function on blocks: n packed values of a compute type from every input, n packed
 * values out. The engine walks any layout, converts dtypes on the way in and out while the block is in the
 * first-level cache, and shares blocks among threads. So an op is a formula, written for float, double and
 * int64_t, never for a dtype or a layout. */
#ifndef WK_CPU_MAP_H
#define WK_CPU_MAP_H

#include "core/op.h"
#include "isa.h"

enum { WK_BLOCK = 1024, WK_MAP_INPUTS = 4 };

/* out[i] = f(in[0][i], in[1][i], ...) for i < n. out may be one of the inputs, never a part of one. */
typedef void (*wk_block_fn)(void *out, const void *const *in, int64_t n, const void *params);

/* The same on elements as they are; see lanes.h. stream: out is the start of a line, and is written past the cache. */
typedef void (*wk_lanes_fn)(void *out, const void *const *in, int64_t n, bool stream);

typedef struct {
    const wk_tensor *in[WK_MAP_INPUTS]; /* each of the output's shape, or broadcast to it */
    wk_compute in_compute[WK_MAP_INPUTS];
    int n_in;
    wk_tensor *out; /* packed */
    wk_compute out_compute;
    wk_block_fn fn;                      /* NULL: the values of the first input */
    wk_lanes_fn direct_f32, direct_bf16; /* for a call in which all are that; NULL: there is none */
    const void *params;
} wk_map;

/* Runs it. Fails only for want of memory. */
wk_status WK_ISA(wk_map_run)(const wk_map *m);

#endif
