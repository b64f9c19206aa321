/* ctc.h: the arguments of the kernels of the CTC loss. */
#ifndef WK_KERNELS_CTC_H
#define WK_KERNELS_CTC_H

#include "types.h"

enum { WK_CTC_STATES = 1024 }; /* a block holds, one for each thread */

typedef struct {
    const void *x;                             /* [t, b, c] with these strides */
    i64 x_t, x_b, x_c, steps, batch, classes;  /* of x */
    const i32 *labels;                         /* [b, max] */
    i64 label_b, label_i, max_labels;          /* strides, size */
    const void *input_lengths, *label_lengths; /* of i32, or i64 when wide */
    i64 input_step, label_step;                /* strides */
    i32 input_wide, label_wide, blank, zero_infinity;
    wk_divisor by_batch; /* of steps * batch, which is below 2^31 */
    void *log_sums;      /* [t, b]: what makes logits log-probabilities; NULL: they are that already */
    double *paths
        [2]; /* [b, t, states]: log-probabilities of all ways to a state and from it, the step's own included */
    i64 states;              /* the most: 2 max_labels + 1 */
    double *log_probability; /* [b] */
    i32 *first,
        *next; /* [b, c], [b, max]: labels of each class: the first one's number + 1, and after each the next */
    void *loss, *dx; /* packed; dx may be NULL */
    wk_report report_labels, report_inputs, report_counts;
} ctc_args;

#endif
