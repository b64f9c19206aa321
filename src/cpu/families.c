/* families.c: every family's implementations at this instruction-set level. */
#include "core/families.h"
#include "isa.h"

#define FAMILY(name) extern const wk_impl WK_ISA(wk_cpu_##name)[];
WK_FAMILIES(FAMILY)
#undef FAMILY

#define FAMILY(name) WK_ISA(wk_cpu_##name),
const wk_impl *const WK_ISA(wk_cpu_families)[] = {WK_FAMILIES(FAMILY) NULL};
