/* families.h: every family of ops, once. A family has the same file name in every layer: src/ops/NAME.c,
 * src/cpu/NAME.c, ... Each defines the table named here, ended by an empty entry. */
#ifndef WK_CORE_FAMILIES_H
#define WK_CORE_FAMILIES_H

#include "op.h"

/* Families of the op table, in the order `wick ops` lists them. */
#define WK_FAMILIES(F) \
    F(unary) \
    F(binary) \
    F(reduce) \
    F(matmul) \
    F(quant) \
    F(copy) \
    F(softmax) \
    F(rope) \
    F(attention) \
    F(random) \
    F(loss) \
    F(ctc) \
    F(optim) \
    F(conv) \
    F(pool) \
    F(resample) \
    F(norm) \
    F(index) \
    F(scan) \
    F(rnn) \
    F(act) \
    F(expr)

#define WK_FAMILY_OPS(name) extern wk_op wk_ops_##name[];
WK_FAMILIES(WK_FAMILY_OPS)
#undef WK_FAMILY_OPS

/* Implementations on the CPU: one list of families for every instruction-set level, and the references. */
extern const wk_impl *const wk_cpu_families_base[], *const wk_cpu_families_avx2[],
                                                        *const wk_cpu_families_avx512[];
extern const wk_impl *const wk_ref_families[];

/* Implementations made of other ops, for every device: the last that are tried. */
extern const wk_impl *const wk_composed_families[];

/* Builds the table once; every look-up does, and so does the first call. */
void wk_ops_init(void);

#endif
