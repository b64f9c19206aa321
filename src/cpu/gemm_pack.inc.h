/* gemm_pack.inc.h: the packer for matrices of SOURCE into panels of PACKED, by the loaders one_, four_ and run_
 * of that kind. VEC4: four of PACKED. */

/* One 4 by 4 block: columns at src, stride bytes apart, become rows of dst. */
ALWAYS_INLINE void NAME(transpose4)(PACKED *dst, int64_t width, const char *src, int64_t stride)
{
    VEC4 a, b, c, d;
    NAME(four)(&a, src);
    NAME(four)(&b, src + stride);
    NAME(four)(&c, src + 2 * stride);
    NAME(four)(&d, src + 3 * stride);
    VEC4 ab_lo = __builtin_shufflevector(a, b, 0, 4, 1, 5), ab_hi = __builtin_shufflevector(a, b, 2, 6, 3, 7);
    VEC4 cd_lo = __builtin_shufflevector(c, d, 0, 4, 1, 5), cd_hi = __builtin_shufflevector(c, d, 2, 6, 3, 7);
    VEC4 rows[4] = {
        __builtin_shufflevector(ab_lo, cd_lo, 0, 1, 4, 5), __builtin_shufflevector(ab_lo, cd_lo, 2, 3, 6, 7),
        __builtin_shufflevector(ab_hi, cd_hi, 0, 1, 4, 5), __builtin_shufflevector(ab_hi, cd_hi, 2, 3, 6, 7)};
    for (int i = 0; i < 4; i++)
        memcpy(dst + i * width, &rows[i], sizeof rows[i]);
}

/* k is contiguous; the x are stride bytes apart. Goes through k in steps of a cache line, so that a line is used
 * up when it is read. */
static void NAME(transpose)(PACKED *dst, int64_t width, const void *src, int64_t stride, int64_t xn,
                            int64_t pn)
{
    const int64_t line = LINE / sizeof(SOURCE);
    for (int64_t p0 = 0; p0 < pn; p0 += line) {
        int64_t p1 = gemm_min(p0 + line, pn), x = 0;
        for (; x + 4 <= xn; x += 4) {
            const char *at = (const char *)src + x * stride;
            int64_t p = p0;
            for (int i = 0; i < 4; i++)
                prefetch(at + p * (int64_t)sizeof(SOURCE) + i * stride, AHEAD_LINES * LINE, 1);
            for (; p + 4 <= p1; p += 4)
                NAME(transpose4)(dst + p * width + x, width, at + p * (int64_t)sizeof(SOURCE), stride);
            for (; p < p1; p++)
                for (int i = 0; i < 4; i++)
                    dst[p * width + x + i] = NAME(one)(at + i * stride + p * (int64_t)sizeof(SOURCE));
        }
        for (; x < width; x++)
            for (int64_t p = p0; p < p1; p++)
                dst[p * width + x] =
                    x < xn ? NAME(one)((const char *)src + x * stride + p * (int64_t)sizeof(SOURCE)) : 0;
    }
}

static void NAME(pack)(void *dst, int64_t width, const void *src, int64_t sx, int64_t sp, int64_t xn,
                       int64_t pn)
{
    PACKED *out = dst;
    const SOURCE *in = src;
    if (sp == 1 && sx != 1) {
        NAME(transpose)(out, width, src, sx * (int64_t)sizeof(SOURCE), xn, pn);
        return;
    }
    for (int64_t p = 0; p < pn; p++, out += width, in += sp) {
        if (sx == 1) {
            prefetch(in, AHEAD_ROWS * sp * (int64_t)sizeof *in, xn * (int64_t)sizeof *in);
            NAME(run)(out, in, xn);
        } else {
            for (int64_t x = 0; x < xn; x++)
                out[x] = NAME(one)(in + x * sx);
        }
        for (int64_t x = xn; x < width; x++)
            out[x] = 0;
    }
}

#undef PACKED
#undef SOURCE
#undef VEC4
#undef NAME
