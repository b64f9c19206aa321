/* copy.c: ops that move elements without computing. */
#include "core/families.h"
#include "strided.h"

static wk_status run_copy(wk_call *c)
{
    WK_ISA(wk_tensor_copy)(c->in[0], c->out[0]);
    return WK_OK;
}

const wk_impl WK_ISA(wk_cpu_copy)[] = {
    {"copy", "simd", run_copy, NULL, NULL},
    {0},
};
