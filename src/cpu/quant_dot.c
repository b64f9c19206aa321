/* quant_dot.c: rows of quantised weights as floats, and their dot products with rows of x: weights go from memory
 * through registers into the sums. */
#include "quant.h"

QUANT_INLINE void unpack(int format, const uint8_t *block, int64_t n, float *dst)
{
    const int bytes = wk_qformats[format].bytes;
    for (int64_t b = 0; b < n; b++, block += bytes) {
        quant_scales s;
        quant_read_scales(format, block, &s);
        for (int r = 0; r < quant_runs_of(format); r++, dst += QUANT_RUN) {
            qvec w[QUANT_VECS];
            quant_weights(format, block, &s, r, w);
            memcpy(dst, w, sizeof w);
        }
    }
}

void WK_ISA(wk_quant_unpack)(int64_t format, const uint8_t *blocks, int64_t n, float *dst)
{
    switch (format) {
    case WK_Q4_0: unpack(WK_Q4_0, blocks, n, dst); break;
    case WK_Q8_0: unpack(WK_Q8_0, blocks, n, dst); break;
    case WK_Q4_K: unpack(WK_Q4_K, blocks, n, dst); break;
    default: unpack(WK_Q6_K, blocks, n, dst);
    }
}

void WK_ISA(wk_quant_unpack_f64)(int64_t format, const uint8_t *blocks, int64_t n, double *dst)
{
    const int bytes = wk_qformats[format].bytes;
    for (int64_t b = 0; b < n; b++, blocks += bytes) {
        quant_scales s;
        quant_read_scales((int)format, blocks, &s);
        for (int r = 0; r < quant_runs_of((int)format); r++, dst += QUANT_RUN) {
            int8_t q[QUANT_RUN];
            quant_run run = quant_read_run((int)format, blocks, r);
            memcpy(q, &run, sizeof q);
            for (int i = 0; i < QUANT_RUN; i++)
                dst[i] = (double)s.scale[2 * r + i / 16] * q[i] - (format == WK_Q4_K ? (double)s.min[r] : 0);
        }
    }
}

/* ---- Dot products ---- */

/* Apart, and by memory: what has an address does not stay in registers. */
static __attribute__((noinline)) void put_sums(const float *lanes, int m, float *y)
{
    for (int i = 0; i < m; i++) {
        float sum = 0;
        for (int l = 0; l < 2 * QUANT_LANES; l++)
            sum += lanes[i * 2 * QUANT_LANES + l];
        y[i] = sum;
    }
}

/* format and m are constants. */
QUANT_INLINE void dot(int format, int m, const uint8_t *block, int64_t n, const float *x, int64_t ldx,
                      float *y)
{
    const int bytes = wk_qformats[format].bytes;
    qvec sum[WK_QUANT_THIN][2];
    for (int i = 0; i < m; i++)
        sum[i][0] = sum[i][1] = (qvec){0};
    for (int64_t b = 0; b < n; b++, block += bytes) {
        quant_scales s;
        quant_read_scales(format, block, &s);
        for (int r = 0; r < quant_runs_of(format); r++, x += QUANT_RUN) {
            qvec w[QUANT_VECS];
            quant_weights(format, block, &s, r, w);
            for (int v = 0; v < QUANT_VECS; v++)
                for (int i = 0; i < m; i++)
                    sum[i][v % 2] += *(const uqvec *)(x + i * ldx + v * QUANT_LANES) * w[v];
        }
    }
    float lanes[WK_QUANT_THIN * 2 * QUANT_LANES];
    for (int i = 0; i < m; i++)
        memcpy(lanes + i * 2 * QUANT_LANES, sum[i], sizeof sum[i]);
    put_sums(lanes, m, y);
}

QUANT_INLINE void dot_rows(int format, const uint8_t *blocks, int64_t n, const float *x, int64_t ldx, int m,
                           float *y)
{
    switch (m) {
    case 1: dot(format, 1, blocks, n, x, ldx, y); break;
    case 2: dot(format, 2, blocks, n, x, ldx, y); break;
    case 3: dot(format, 3, blocks, n, x, ldx, y); break;
    default: dot(format, 4, blocks, n, x, ldx, y);
    }
}

void WK_ISA(wk_quant_dot)(int64_t format, const uint8_t *blocks, int64_t n, const float *x, int64_t ldx,
                          int m, float *y)
{
    switch (format) {
    case WK_Q4_0: dot_rows(WK_Q4_0, blocks, n, x, ldx, m, y); break;
    case WK_Q8_0: dot_rows(WK_Q8_0, blocks, n, x, ldx, m, y); break;
    case WK_Q4_K: dot_rows(WK_Q4_K, blocks, n, x, ldx, m, y); break;
    default: dot_rows(WK_Q6_K, blocks, n, x, ldx, m, y);
    }
}
