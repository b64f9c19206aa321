/* act.h: what front end and implementations of the ops with an activation at their end share. */
#ifndef WK_OPS_ACT_H
#define WK_OPS_ACT_H

#include "conv.h"
#include "wick/act.h"

typedef struct {
    wk_conv_params conv; /* first: wk_conv_geometry_of looks there */
    int64_t act;         /* wk_activation */
    double alpha, beta;  /* NaN: the activation's own default */
    double eps;
    int64_t mode; /* wk_batch_norm_mode */
    int64_t dim;  /* of bias_act's bias */
} wk_act_params;

/* Input slots, of all ops that have such an input. */
enum {
    WK_BIAS_ACT_Z = 2,
    WK_LINEAR_ACT_Z = 3,
    WK_CONV_ACT_Z = 3,
    WK_CONV_BN_WEIGHT = 3,
    WK_CONV_BN_BIAS,
    WK_CONV_BN_MEAN,
    WK_CONV_BN_VAR,
    WK_NORM_ACT_Z = 5,
};

/* The name of the unary op that an activation is; "none" for none. */
const char *wk_act_name(int64_t act);
/* The activation of the call with its numbers, defaults put in. */
wk_act wk_act_of(const wk_call *c);
/* Runs bias_act(x, bias, z) with the activation of the call c, into out. */
wk_status wk_act_finish(const wk_call *c, const wk_tensor *x, const wk_tensor *bias, const wk_tensor *z,
                        int64_t dim, wk_tensor *out);

#endif
