/* reduce.h: the one reduction engine. */
#ifndef WK_CPU_REDUCE_H
#define WK_CPU_REDUCE_H

#include "core/op.h"
#include "isa.h"

/* What is done with the elements x of one result; c is a number of that result's own. */
typedef enum {
    WK_R_SUM,         /* sum of x */
    WK_R_SUM_ABS,     /* sum of |x| */
    WK_R_SUM_SQR,     /* sum of (x - c)^2 */
    WK_R_SUM_EXP,     /* sum of exp(x - c) */
    WK_R_PROD,        /* product of x */
    WK_R_PROD_OTHERS, /* product of the x that are not 0 */
    WK_R_ZEROS,       /* how many x are 0 */
    WK_R_EQUAL,       /* how many x are equal to c */
    WK_R_EQUAL_ABS,   /* how many |x| are equal to c */
    WK_R_MIN,         /* and the place of the first */
    WK_R_MAX,
    WK_R_AMAX, /* of |x| */
    WK_R_COUNT
} wk_reduction;

/* x over the dims of set to out (packed, one element for each place of the other dims). center: NULL, or a packed
 * tensor of x's compute dtype with a c for each result. indices: NULL, or u32 places for min, max and amax,
 * counted in the reduced elements' order. Either of out and indices may be NULL. */
wk_status WK_ISA(wk_reduce)(wk_reduction how, const wk_tensor *x, unsigned set, const wk_tensor *center,
                            wk_tensor *out, wk_tensor *indices);

/* x summed over the dimensions that out (packed) is broadcast over to have x's shape. */
wk_status WK_ISA(wk_sum_to)(const wk_tensor *x, wk_tensor *out);

#endif
