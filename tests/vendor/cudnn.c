/* cudnn.c: wick's own declarations of cuDNN's functions against the real headers; see tests/vendor.sh. A declaration
 * that differs from the header's is an error of the compiler. */
#define WK_VENDOR_HEADERS
#include <cudnn.h>
#include "cuda/cudnn.h"

#define X(result, name, arguments) extern result name arguments;
WK_CUDNN_CALLS(X)
WK_CUDNN_LAYER_CALLS(X)
#undef X

#define X(name, value) _Static_assert((int)name == value, #name);
WK_CUDNN_CONSTANTS(X)
WK_CUDNN_BACKEND_CONSTANTS(X)
