/* train.c: parameters that are trained, with AdamW's state. */
#include "train.h"
#include "error.h"

bool wm_params_add(wm_params *params, const char *name, wk_device *device, int rank, const int64_t *shape,
                   double limit, int64_t seed)
{
    wm_param *p = &params->p[params->n];
    *p = (wm_param){.name = name,
                    .value =
                        wk_rand(device, WK_F32, rank, shape, -limit, limit, seed, (int64_t)params->n << 32),
                    .m = wk_fill(device, WK_F32, rank, shape, 0),
                    .v = wk_fill(device, WK_F32, rank, shape, 0)};
    params->n++;
    if (!p->value || !p->m || !p->v)
        wm_fail(WK_ERR_MEMORY, "train: parameter '%s'", name);
    return wm_error_status() == WK_OK;
}

bool wm_params_update(wm_params *params, double lr)
{
    params->step++;
    for (int i = 0; i < params->n; i++) {
        wm_param *p = &params->p[i];
        wk_adamw_options *options = WK_ADAMW(.lr = lr, .step = params->step);
        if (wk_adamw_step_into(p->value, p->grad, p->m, p->v, options) != WK_OK) {
            wm_fail(WK_ERR_INTERNAL, "train: parameter '%s'", p->name);
            return false;
        }
    }
    return true;
}

void wm_params_free(wm_params *params)
{
    for (int i = 0; i < params->n; i++) {
        wk_drop(params->p[i].value);
        wk_drop(params->p[i].m);
        wk_drop(params->p[i].v);
    }
    *params = (wm_params){0};
}
