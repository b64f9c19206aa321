/* miopen.cc: wick's own declarations of MIOpen's functions against the real header, which is C++; see vendor.sh. A
 * function whose type differs does not fit its pointer, and that is an error of the compiler. */
#include <cstddef>
#include <cstdint>
#define MIOPEN_BETA_API 1
#include <miopen/miopen.h>

#define WK_ROCM_HIP_H /* the vendor's is there */
namespace own { /* the structs as wick declares them */
#include "rocm/miopen.h"
}
#define SAME(field) \
    static_assert(offsetof(own::miopenConvSolution_t, field) == offsetof(miopenConvSolution_t, field), #field)
SAME(time);
SAME(workspace_size);
SAME(solution_id);
SAME(algorithm);
static_assert(offsetof(own::miopenConvAlgoPerf_t, time) == offsetof(miopenConvAlgoPerf_t, time), "time");
static_assert(offsetof(own::miopenConvAlgoPerf_t, memory) == offsetof(miopenConvAlgoPerf_t, memory), "memory");
static_assert(sizeof(own::miopenConvAlgoPerf_t) == sizeof(miopenConvAlgoPerf_t), "size");
static_assert(sizeof(own::miopenConvSolution_t) == sizeof(miopenConvSolution_t), "size");

#undef WK_ROCM_MIOPEN_H
#define WK_VENDOR_HEADERS
#include "rocm/miopen.h"

#define X(result, name, arguments) result(*check_##name) arguments = name;
WK_MIOPEN_CALLS(X)
WK_MIOPEN_BETA_CALLS(X)
#undef X

#define X(name, value) static_assert((int)name == value, #name);
WK_MIOPEN_CONSTANTS(X)
