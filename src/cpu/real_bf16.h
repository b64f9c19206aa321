/* real_bf16.h: REAL is float, but elements are bf16 as they lie in memory; for the few files that read them by
 * twos.inc.h. See real_f32.h. */
#include "real_f32.h"

#undef ELEMENT
#undef FN
#define ELEMENT uint16_t
#define ELEMENT_BF16
#define ELEMENT_WORDS (WK_VEC_BYTES == WK_LINE) /* their vectors are the words of lanes.h */
#define FN(name) name##_bf16
