#include "families.h"
const wk_impl wk_gpu_impls_quant[] = {{0}};
