/* ref.c: the reference implementations: the formula and nothing else, in f64. What is fast elsewhere is measured
 * against these. */
#include "core/families.h"
#include "ref.h"

const wk_impl *const wk_ref_families[] = {wk_ref_matmul,   wk_ref_conv,  wk_ref_attention, wk_ref_rnn,
                                          wk_ref_copy,     wk_ref_index, wk_ref_scan,      wk_ref_pool,
                                          wk_ref_resample, wk_ref_norm,  wk_ref_quant,     NULL};
