/* host.h: what the CPU can do. */
#ifndef WK_CORE_HOST_H
#define WK_CORE_HOST_H

/* Instruction-set levels, each a whole set of kernels; see cpu/isa.h. */
typedef enum { WK_LEVEL_BASE, WK_LEVEL_AVX2, WK_LEVEL_AVX512, WK_LEVEL_COUNT } wk_isa_level;

/* The best level this machine and this build have, or the one WICK_ISA names where that is lower. */
wk_isa_level wk_host_level(void);
const char *wk_isa_level_name(wk_isa_level level);

#endif
