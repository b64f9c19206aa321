/* miopen_random.c: dropout, which MIOpen has and cannot do as wick promises. */
#include "gpu/families.h"

static const char *refuse(const wk_call *c)
{
    (void)c;
    return "MIOpen's masks come from other random numbers than wick's, which are the same on every device";
}

const wk_impl wk_rocm_impls_random[] = {
    {"dropout", "miopen", NULL, refuse, NULL},
    {"dropout_backward", "miopen", NULL, refuse, NULL},
    {0},
};
