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

typedef struct {
    const wk_tensor *in[WK_MAP_INPUTS]; /* each of the output's shape, or broadcast to it */
    wk_compute in_compute[WK_MAP_INPUTS];
    int n_in;
    wk_tensor *out; /* packed */
    wk_compute out_compute;
    wk_block_fn fn;
    wk_block_fn
        direct; /* the same on bf16 values, for a call in which all are packed bf16; NULL: there is none */
    const void *params;
} wk_map;

/* Such a direct one: a function of two floats on bf16 values, two in a word at a time: its halves are floats but for a
 * shift and a mask, so that nothing is widened or packed. */
#define WK_DIRECT_BF16(name, function) \
    static void name(void *out, const void *const *in, int64_t n, const void *params) \
    { \
        const uint16_t *as = in[0], *bs = in[1]; \
        uint16_t *ys = out; \
        (void)params; \
        WK_INDEPENDENT for (int64_t i = 0; i < n / 2; i++) \
        { \
            uint32_t a, b, y; \
            memcpy(&a, as + 2 * i, 4); \
            memcpy(&b, bs + 2 * i, 4); \
            y = wk_bf16_pair(function(wk_bits_float(a << 16), wk_bits_float(b << 16)), \
                             function(wk_bits_float(a & 0xFFFF0000), wk_bits_float(b & 0xFFFF0000))); \
            memcpy(ys + 2 * i, &y, 4); \
        } \
        if (n % 2) \
            ys[n - 1] = wk_f32_to_bf16(function(wk_bf16_to_f32(as[n - 1]), wk_bf16_to_f32(bs[n - 1]))); \
    }

/* Runs it. Fails only for want of memory. */
wk_status WK_ISA(wk_map_run)(const wk_map *m);

#endif
