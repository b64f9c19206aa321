/* real_f64.h: REAL is double; see real_f32.h. */
#include "real_undef.h"
#include "vmath_f64.h"

#define REAL double
#define ELEMENT double
#define REAL_COMPUTE WK_COMPUTE_F64
#define FN(name) name##_f64
#define R_ABS fabs
#define R_SQRT sqrt
#define R_FLOOR floor
#define R_CEIL ceil
#define R_TRUNC trunc
#define R_COPYSIGN copysign
#define R_EXP exp
#define R_EXP_TERM exp /* may be 0 or infinite a little early */
#define R_EXPM1 expm1
#define R_LOG log
#define R_LOG1P log1p
#define R_TANH tanh
#define R_SIGMOID wk_sigmoid_f64
#define R_SILU wk_silu_f64
#define R_GELU wk_gelu_f64
#define R_SOFTPLUS wk_softplus_f64
#define R_ERF erf
#define R_SIN_BLOCK wk_sin_block_f64
#define R_COS_BLOCK wk_cos_block_f64
#define R_POW pow
#define R_LOWEST (-DBL_MAX)
