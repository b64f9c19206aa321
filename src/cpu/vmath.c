/* vmath.c: the numbers that vmath.h must not see. */
#include "vmath.h"

const float WK_ISA(wk_exp_bounds)[8] = {-104.0f, 89.0f, -88.03f, 88.73f, -127.0f, 128.0f, -150.0f, 129.0f};
