/* wick/quant.h: weights in blocks of few bits, as GGUF files have them.
 *
 * A quantised matrix of n rows and k columns is a u8 tensor [n, wk_qrow_bytes(format, k)]: the bytes of the file, row
 * by row; k is a multiple of the format's block. Little-endian; an f16 stands in each block for its scale. */
#ifndef WICK_QUANT_H
#define WICK_QUANT_H

#include "core.h"
#include "matmul.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef enum {
    WK_Q4_0, /* 32 weights in 18 bytes: scale * (4 bits - 8) */
    WK_Q8_0, /* 32 in 34: scale * 8 bits */
    WK_Q4_K, /* 256 in 144: a scale and a minimum, of 6 bits each, for every 32 */
    WK_Q6_K, /* 256 in 210: a scale of 8 bits for every 16, times 6 bits - 32 */
    WK_QFORMAT_COUNT
} wk_qformat;

/* "q4_0"; NULL for no format. */
WK_API const char *wk_qformat_name(wk_qformat format);
/* Weights in a block, and its bytes; 0 for no format. */
WK_API int wk_qformat_block(wk_qformat format);
WK_API int wk_qformat_bytes(wk_qformat format);
/* Bytes of a row of k weights; -1 when k is not a multiple of the block. */
WK_API int64_t wk_qrow_bytes(wk_qformat format, int64_t k);

/* act(x [.., k] . weight^T + bias [n]) as [.., n]; bias may be NULL. x and bias are float. The weights count as exactly
 * what dequantize gives in f32 (f64 for f64), and sums are made in f32 (f64), as linear does; x is not rounded. Only
 * where x is f16 or bf16 and has more than eight rows may a GPU round the weights to that dtype first. A block whose scale is no
 * finite number makes its row's results infinite or NaN, which of them is not promised. */
WK_API wk_tensor *wk_qlinear(const wk_tensor *x, const wk_tensor *weight, const wk_tensor *bias,
                             wk_qformat format, wk_activation act);

/* weight [.., bytes of a row] as [.., k] in a float dtype. */
WK_API wk_tensor *wk_dequantize(const wk_tensor *weight, wk_qformat format, wk_dtype dtype);

/* The rows of weight [n, bytes of a row] at ids, of any shape, as [.., k] in a float dtype. ids as index_select's. */
WK_API wk_tensor *wk_qembedding(const wk_tensor *weight, const wk_tensor *ids, wk_qformat format,
                                wk_dtype dtype);

#ifdef __cplusplus
}
#endif
#endif
