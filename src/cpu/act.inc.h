/* act.inc.h: sums and products before and after an activation, for REAL. */

/* ys = the inputs added up, then the activation. */
static void FN(bias_act)(void *out, const void *const *in, int64_t n, const void *params)
{
    const finish *f = params;
    const REAL *xs = in[0], *bs = in[1], *zs = in[2];
    REAL *ys = out;
    if (f->n_in == 3)
        WK_INDEPENDENT for (int64_t i = 0; i < n; i++) ys[i] = xs[i] + bs[i] + zs[i];
    else if (f->n_in == 2)
        WK_INDEPENDENT for (int64_t i = 0; i < n; i++) ys[i] = xs[i] + bs[i];
    const void *from = f->n_in > 1 ? out : in[0];
    if (f->act.fn)
        f->act.fn(out, (const void *const[]){from}, n, &f->act.numbers);
    else if (from != out)
        memcpy(out, from, (size_t)n * sizeof *ys);
}

/* The most frequent ones in one go: ys = act(xs + bs). */
#define FUSED(name, formula) \
    static void FN(name)(void *out, const void *const *in, int64_t n, const void *params) \
    { \
        const REAL *xs = in[0], *bs = in[1]; \
        REAL *ys = out; \
        (void)params; \
        WK_INDEPENDENT for (int64_t i = 0; i < n; i++) \
        { \
            REAL x = xs[i] + bs[i]; \
            ys[i] = formula; \
        } \
    }
FUSED(bias_relu, x < 0 ? 0 : x)
FUSED(bias_gelu, R_GELU(x))
FUSED(bias_silu, R_SILU(x))
#undef FUSED

static void FN(silu_mul)(void *out, const void *const *in, int64_t n, const void *params)
{
    const REAL *gate = in[0], *up = in[1];
    REAL *ys = out;
    (void)params;
    WK_INDEPENDENT for (int64_t i = 0; i < n; i++) ys[i] = R_SILU(gate[i]) * up[i];
}

/* Inputs: gate, up, dy. */
static void FN(silu_mul_dgate)(void *out, const void *const *in, int64_t n, const void *params)
{
    const REAL *gate = in[0], *up = in[1], *dys = in[2];
    REAL *ds = out;
    (void)params;
    WK_INDEPENDENT for (int64_t i = 0; i < n; i++)
    {
        REAL s = R_SIGMOID(gate[i]);
        ds[i] = dys[i] * up[i] * s * (1 + gate[i] * R_SIGMOID(-gate[i]));
    }
}
