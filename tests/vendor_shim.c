/* vendor_shim.c: a library that stands in front of HIP (SHIM_HIP) or MIOpen (SHIM_MIOPEN): counts the calls of each function and hands
 * them on, or lets chosen ones fail; see second_call.c and rocm.sh.
 *
 * WICK_TEST_FAIL="miopenConvolutionForwardImmediate=7 ..." makes every call of the function return that status; 0 is a
 * call that says all is well and has done nothing; 7@3: from the third call on. The functions take any arguments: they jump to the real one with all registers as
 * they came. */
#include <dlfcn.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

typedef struct {
    const char *name;
    long count;
    void *real;
    int fail;  /* the status + 1; 0: the call is handed on */
    long from; /* and which call is the first to fail */
} counted;     /* the code below knows the offsets */
_Static_assert(offsetof(counted, count) == 8 && offsetof(counted, real) == 16 &&
                   offsetof(counted, fail) == 24 && offsetof(counted, from) == 32,
               "offsets");

#ifdef SHIM_HIP
#include "rocm/hip.h"
#define CALLS(X) \
    WK_HIP_CALLS(X) \
    X(hipError_t, hipGetDevicePropertiesR0600, ()) \
    X(hipError_t, hipGetDeviceProperties, ()) \
    X(hipError_t, hipFuncSetAttribute, ()) \
    X(hipError_t, hipExtMallocWithFlags, ()) \
    X(hipError_t, hipMallocAsync, ()) \
    X(hipError_t, hipStreamCreate, ()) \
    X(hipError_t, hipEventCreate, ()) \
    X(hipError_t, hipModuleLoad, ()) \
    X(hipError_t, hipModuleLoadDataEx, ())
static const char *const sonames[] = {"libamdhip64.so.7", "libamdhip64.so.6", "libamdhip64.so.5", NULL};
#else
#include "rocm/miopen.h"
#define CALLS(X) WK_MIOPEN_CALLS(X) WK_MIOPEN_BETA_CALLS(X)
static const char *const sonames[] = {"libMIOpen.so.1", NULL};
#endif

#define X(result, name, arguments) \
    __attribute__((visibility("hidden"))) counted shim_##name = {#name, 0, NULL, 0, 0}; \
    __asm__(".pushsection .text\n.globl " #name "\n.type " #name ", @function\n" #name ":\n" \
            "  lock incq shim_" #name "+8(%rip)\n" \
            "  movl shim_" #name "+24(%rip), %eax\n" \
            "  testl %eax, %eax\n" \
            "  jz 1f\n" \
            "  movq shim_" #name "+8(%rip), %r11\n" \
            "  cmpq shim_" #name "+32(%rip), %r11\n" \
            "  jl 1f\n" \
            "  decl %eax\n  ret\n" \
            "1: jmp *shim_" #name "+16(%rip)\n.popsection\n");
CALLS(X)
#undef X

#define X(result, name, arguments) &shim_##name,
static counted *calls[] = {CALLS(X) NULL};
#undef X

/* All of them, for who counts; ended by NULL. */
counted **wk_shim_calls(void) { return calls; }

__attribute__((constructor)) static void start(void)
{
    void *real = NULL;
    const char *wish = getenv("WICK_TEST_FAIL");
    for (const char *const *so = sonames; *so && !real; so++)
        real = dlopen(*so, RTLD_NOW | RTLD_LOCAL);
    for (counted **c = calls; *c; c++) {
        size_t n = strlen((*c)->name);
        (*c)->real = real ? dlsym(real, (*c)->name) : NULL;
        (*c)->fail = (*c)->real ? 0 : 1 + 1;
        for (const char *at = wish; at && (at = strstr(at, (*c)->name)); at += n) {
            char *end;
            if (at[n] != '=')
                continue;
            (*c)->fail = 1 + (int)strtol(at + n + 1, &end, 10);
            (*c)->from = *end == '@' ? atol(end + 1) : 0;
        }
    }
}
