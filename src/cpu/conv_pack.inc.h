/* conv_pack.inc.h: the packer for a window of SOURCE into panels of PACKED, by run_ of that kind. */

static void NAME(pack)(const void *ctx, int64_t p0, int64_t pn, int64_t j0, int64_t jn, int64_t nr, void *dst)
{
    const conv_patches *s = ctx;
    run runs[MAX_RUNS];
    for (int64_t j = 0; j < jn; j += MAX_RUNS) {
        int n = find_runs(s, j0 + j, conv_min(jn - j, MAX_RUNS), runs);
        PACKED *out = (PACKED *)dst + j;
        for (int64_t p = p0; p < p0 + pn; p++, out += nr) {
            const SOURCE *src = (const SOURCE *)s->data + s->offsets[p];
            for (int i = 0; i < n; i++)
                NAME(run)(out + runs[i].to, src + runs[i].from, runs[i].length);
        }
    }
    for (int64_t p = 0; p < pn && jn < nr; p++)
        memset((PACKED *)dst + p * nr + jn, 0, (size_t)(nr - jn) * sizeof(PACKED));
}

#undef PACKED
#undef SOURCE
#undef NAME
