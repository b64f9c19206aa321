/* kernels_compile.h: every kernel that ops need on an architecture, planned and compiled by several processes. */
#ifndef WK_CLI_KERNELS_COMPILE_H
#define WK_CLI_KERNELS_COMPILE_H

#include "args.h"
#include "gpu/plan.h"

typedef struct {
    const wk_arch *arch;
    wk_wanted *wanted;
    int n;
    struct kernel_code {
        void *code;
        size_t bytes;
    } * codes; /* beside wanted; NULL until compiled */
} kernel_set;

/* Plans: runs the samples of the ops of these names (all where the list is empty; a name may end in *). Returns
 * ARGS_GO, or the exit status after saying what is wrong. */
int kernels_plan(const wk_arch *arch, const arg_list *ops, kernel_set *set);

/* Fills codes, in as many processes as that: the compilers do one kernel at a time in each. */
int kernels_compile(kernel_set *set, int jobs);

void kernels_free(kernel_set *set);

#endif
