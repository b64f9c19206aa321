/* dnn.h: how ops run by MIOpen: a handle for each stream, and what was set up for a call kept for the next like it. */
#ifndef WK_ROCM_DNN_H
#define WK_ROCM_DNN_H

#include "gpu/gpu.h"
#include "gpu/vendor.h"
#include "miopen.h"
#include "rocm.h"

/* The functions, by their own names: wk_miopen.miopenSoftmaxForward_V2(...). */
#define X(result, name, arguments) result(*name) arguments;
typedef struct {
    WK_MIOPEN_CALLS(X)
    WK_MIOPEN_BETA_CALLS(X)
} wk_miopen_calls;
#undef X
extern wk_miopen_calls wk_miopen;

/* Loads the library, once; false when it is not to be had. */
bool wk_miopen_load(void);

enum { WK_DNN_TENSORS = 8 };

/* What was set up for a kind of call: descriptors, and what the library answered. */
typedef struct wk_dnn_plan {
    wk_kept kept; /* first */
    miopenTensorDescriptor_t tensor[WK_DNN_TENSORS];
    void *op; /* the descriptor of the op itself; freed by */
    miopenStatus_t (*destroy)(struct wk_dnn_plan *);
    void *extra;      /* what the family keeps beside it; from wk_alloc */
    size_t workspace; /* bytes that run gets */
    uint64_t solution;
    miopenStatus_t status; /* of the set-up: kept too, so that a refusal is asked for once */
} wk_dnn_plan;

/* One call by MIOpen. `set_up` fills a plan, only when there is none yet for the key; `run` queues the work. Both
 * get `data` and run one at a time on a stream. */
typedef struct {
    const wk_call *call;
    wk_key key; /* all that the plan depends on beside op and dtype */
    miopenStatus_t (*set_up)(miopenHandle_t, wk_dnn_plan *, const void *data);
    miopenStatus_t (*run)(miopenHandle_t, const wk_dnn_plan *, void *workspace, const void *data);
    const void *data;
} wk_dnn_call;

/* WK_ERR_UNSUPPORTED when MIOpen has nothing for the call; the next implementation may take it. */
wk_status wk_dnn_run(wk_dnn_call *d);

/* Makes tensor i of the plan, packed; sizes below 2^31. */
miopenStatus_t wk_dnn_tensor(wk_dnn_plan *p, int i, wk_dtype dtype, int rank, const int64_t *shape);
miopenDataType_t wk_dnn_dtype(wk_dtype dtype);

/* Why MIOpen cannot take the call, whatever the op: the library is missing, a dtype out of the set, an empty tensor, a
 * size beyond an int. NULL when it can. */
const char *wk_dnn_refuse(const wk_call *c, unsigned dtypes);

/* x without its mean along dims, which is kept as *mean: MIOpen's norms take mean(x^2) - mean(x)^2 for the variance, of
 * which little is left where the mean is large. */
const wk_tensor *wk_dnn_centred(const wk_tensor *x, int n, const int64_t *dims, const wk_tensor **mean);

enum {
    WK_DNN_REALS = WK_SET(WK_F32) | WK_SET(WK_F16) | WK_SET(WK_BF16),
};

/* Goes on with the next call of MIOpen only after a good one. */
#define WK_DNN_TRY(expression) \
    do { \
        miopenStatus_t status_ = (expression); \
        if (status_ != miopenStatusSuccess) \
            return status_; \
    } while (0)

/* alpha and beta. */
static const float wk_dnn_one = 1, wk_dnn_zero = 0;

#endif
