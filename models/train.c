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
    wk_tensor *value[WM_MAX_PARAMS], *m[WM_MAX_PARAMS], *v[WM_MAX_PARAMS];
    const wk_tensor *grad[WM_MAX_PARAMS];
    for (int i = 0; i < params->n; i++) {
        value[i] = params->p[i].value;
        grad[i] = params->p[i].grad;
        m[i] = params->p[i].m;
        v[i] = params->p[i].v;
    }
    wk_adamw_options *options = WK_ADAMW(.lr = lr, .step = ++params->step);
    if (wk_adamw_step_list(params->n, value, grad, m, v, options) != WK_OK)
        wm_fail(WK_ERR_INTERNAL, "train: step %lld", (long long)params->step);
    return wm_error_status() == WK_OK;
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
