/* real_f32.h: the meaning of REAL in NAME.inc.h files, which are compiled once for float and once for double:
 *     #include "real_f32.h"
 *     #include "norm.inc.h"
 *     #include "real_f64.h"
 *     #include "norm.inc.h" */
#include "real_undef.h"
#include "vmath.h"

#define REAL float
#define ELEMENT float
#define REAL_COMPUTE WK_COMPUTE_F32
#define FN(name) name##_f32
#define R_ABS fabsf
#define R_SQRT sqrtf
#define R_FLOOR floorf
#define R_CEIL ceilf
#define R_TRUNC truncf
#define R_COPYSIGN copysignf
#define R_EXP wk_expf
#define R_EXP_TERM wk_exp_termf /* may be 0 or infinite a little early */
#define R_EXPM1 wk_expm1f
#define R_LOG wk_logf
#define R_LOG1P wk_log1pf
#define R_TANH wk_tanhf
#define R_SIGMOID wk_sigmoidf
#define R_SILU wk_siluf
#define R_GELU wk_geluf
#define R_SOFTPLUS wk_softplusf
#define R_ERF wk_erff
#define R_SIN_BLOCK wk_sin_block
#define R_COS_BLOCK wk_cos_block
#define R_POW wk_pow_f32
#define R_LOWEST (-FLT_MAX)
