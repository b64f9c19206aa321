/* host.h: what the CPU can do. */
#ifndef WK_CORE_HOST_H
#define WK_CORE_HOST_H

#include <stdbool.h>
#include <stdint.h>

/* Instruction-set levels, each a whole set of kernels; see cpu/isa.h. */
typedef enum { WK_LEVEL_BASE, WK_LEVEL_AVX2, WK_LEVEL_AVX512, WK_LEVEL_COUNT } wk_isa_level;

/* The best level this machine and this build have, or the one WICK_ISA names where that is lower. */
wk_isa_level wk_host_level(void);
const char *wk_isa_level_name(wk_isa_level level);
/* The level and what this machine has beside it, in words. */
const char *wk_host_isa(void);

/* Whether the processor has tile registers for matrices of bf16 (AMX), the kernel lets this process use them, and
 * WICK_ISA is not set. */
bool wk_host_has_amx(void);

/* Whether the processor computes in f16 (AVX-512's FP16), and WICK_ISA is not set. */
bool wk_host_has_f16(void);

/* How many bytes ahead of its place a loop asks for memory: as much as a core takes in until a line has come. Known once the
 * device is. */
typedef struct {
    int64_t one;     /* of a loop on one array, or on two that computes meanwhile */
    int64_t several; /* of a loop on several that does little: 0 where the processor does better by itself */
} wk_ahead_bytes;
extern wk_ahead_bytes wk_host_ahead;

#endif
