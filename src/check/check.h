/* check.h: is a device right? Runs the samples of the op table and compares with the reference. */
#ifndef WK_CHECK_CHECK_H
#define WK_CHECK_CHECK_H

#include "sample.h"
#include "verify/compare.h"

/* One line of a check: an op, an implementation, a dtype; over all samples and layouts. */
typedef struct {
    const wk_op *op;
    const char *impl;
    wk_dtype dtype;
    int passed, failed, refused; /* refused: the implementation does not take such calls */
    double worst;                /* error over tolerance */
    char message[600];           /* of the first failure, or the first refusal */
    const char *sample;          /* that failed first; NULL when none did */
    wk_layout layout;
} wk_check_result;

/* How strict the checks are, and who wants to know of failures. */
typedef struct {
    double allow; /* times the tolerances */
    /* Called at the first failure of each result, whose message is there already, while the call's tensors live. call
     * is NULL when the sample's text itself did not read. */
    void (*failed)(void *ctx, const wk_check_result *r, const wk_call *call);
    void *ctx;
} wk_check_options;

/* For all checks from now on, of any thread; NULL: the usual tolerances, and nobody. */
void wk_check_configure(const wk_check_options *options);
const wk_check_options *wk_check_configured(void);

/* Counts a failure and says so where it is the first. */
void wk_check_fail(wk_check_result *r, const wk_call *call);

/* Checks one op on a device with one implementation and dtype. */
void wk_check_run(wk_device *device, const wk_op *op, const char *impl, wk_dtype dtype, bool quick,
                  wk_check_result *r);

/* Runs the same calls, in every dtype and with every implementation, without looking at results: for a planning device
 * (gpu/plan.h), which notes the kernels they need. Returns the calls that ran; what failed is in r. */
int wk_check_plan(wk_device *device, const wk_op *op, wk_check_result *r);

/* Runs the op's error samples: each has to fail with its word. */
void wk_check_errors(wk_device *device, const wk_op *op, wk_check_result *r);

/* Compares the op's gradient with finite differences, in f64 on the device. passed is 0 where it has none. */
void wk_check_gradient(wk_device *device, const wk_op *op, wk_check_result *r);

/* True when the op takes calls of the dtype (ops without a tensor of the call's dtype: by their dtype parameter). */
bool wk_check_takes(const wk_op *op, wk_dtype dtype);

#endif
