/* quant.h: what front end and kernels of quantised weights share: the formats, and how a block of each is read. */
#ifndef WK_OPS_QUANT_H
#define WK_OPS_QUANT_H

#include "core/op.h"
#include "wick/quant.h"

typedef struct {
    int64_t format; /* wk_qformat */
    int64_t act;    /* wk_activation, of qlinear */
    int64_t dtype;  /* wk_dtype, of the others */
} wk_quant_params;

typedef struct {
    const char *name;
    int block, bytes;
    /* Where a block has its f16 numbers (-1: no second one), and the largest number each is multiplied with. */
    int scale_at[2];
    double largest[2];
} wk_qformat_info;

extern const wk_qformat_info wk_qformats[WK_QFORMAT_COUNT];

static inline const wk_qformat_info *wk_quant_info(const wk_call *c)
{
    return &wk_qformats[WK_PARAMS(c, wk_quant_params)->format];
}

/* The 6-bit scale and minimum of run j (of 8, 32 weights each) of a block of q4_k. `packed` are its 12 bytes. */
static inline void wk_q4_k_scale(const uint8_t *packed, int j, unsigned *scale, unsigned *min)
{
    if (j < 4) {
        *scale = packed[j] & 63;
        *min = packed[j + 4] & 63;
    } else {
        *scale = (packed[j + 4] & 15u) | (packed[j - 4] >> 6 << 4);
        *min = (unsigned)(packed[j + 4] >> 4) | (packed[j] >> 6 << 4);
    }
}

/* The f16 at p, of any alignment. */
static inline float wk_quant_f16(const uint8_t *p) { return wk_f16_to_f32((uint16_t)(p[0] | p[1] << 8)); }

/* weight with rows whose bytes are neighbours, copied where its layout is another; NULL with an error. */
const wk_tensor *wk_quant_rows(const wk_tensor *weight);

#endif
