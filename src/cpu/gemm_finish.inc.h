/* gemm_finish.inc.h: the finishing of C in the compute type REAL; NAME(x) is x with its suffix. */

static void NAME(add_bias)(REAL *v, const wk_gemm_args *g, int64_t i, int64_t j0, int64_t n)
{
    if (g->row_bias) {
        REAL bias = ((const REAL *)g->row_bias)[i];
        for (int64_t j = 0; j < n; j++)
            v[j] += bias;
    }
    if (g->col_bias) {
        const REAL *bias = (const REAL *)g->col_bias + j0;
        for (int64_t j = 0; j < n; j++)
            v[j] += bias[j];
    }
}

static void NAME(finish)(const wk_gemm_args *g, REAL *v, int64_t ldv, int64_t i0, int64_t mn, int64_t j0,
                         int64_t jn)
{
    const wk_mat *c = &g->c;
    bool in_place = gemm_c_in_place(g) && v == (REAL *)c->data + i0 * c->rs + j0;
    if (in_place && !g->row_bias && !g->col_bias && !g->act)
        return;
    for (int64_t i = i0; i < i0 + mn; i++, v += ldv) {
        int64_t at = i * c->rs + j0 * c->cs;
        if (g->accumulate && !in_place)
            NAME(add_c)(v, c, at, jn);
        NAME(add_bias)(v, g, i, j0, jn);
        if (g->act)
            g->act(v, jn, g->act_ctx);
        if (g->store_c)
            g->store_c(g->pack_ctx, i, j0, jn, v);
        else if (!in_place)
            NAME(store_c)(v, c, at, jn);
    }
}

#undef REAL
#undef NAME
