/* optim.hip: optimizer steps: one pass over parameters, gradients and state. P, M and V are the dtypes of the
 * parameters and of the two states. */
#include "device.h"
#include "optim.h"

/* VEC elements in the compute type of the parameters; 0 where there are none. */
template <class R, class T, int VEC> DEVICE void fetch(const void *p, i64 at, R *to)
{
    pack<T, VEC> v = {};
    if (p)
        v = load<VEC>((const T *)p + at);
    UNROLL
    for (int i = 0; i < VEC; i++)
        to[i] = (R)get(v.v[i]);
}

template <class R, class T, int VEC> DEVICE void keep(void *p, i64 at, const R *from)
{
    pack<T, VEC> v;
    UNROLL
    for (int i = 0; i < VEC; i++)
        v.v[i] = put<T>(from[i]);
    if (p)
        store<VEC>((T *)p + at, v);
}

template <class P, class M, int VEC> DEVICE void sgd_at(const optim_args &a, i64 at)
{
    typedef acc<P> R;
    R lr = (R)a.lr, factor = (R)a.beta1, decay = (R)a.decay;
    R param[VEC], grad[VEC], m[VEC];
    fetch<R, P, VEC>(a.param, at, param);
    fetch<R, P, VEC>(a.grad, at, grad);
    fetch<R, M, VEC>(a.m, at, m);
    UNROLL
    for (int i = 0; i < VEC; i++) {
        R step = grad[i] + decay * param[i];
        m[i] = a.m ? factor * m[i] + step : step;
        param[i] -= lr * m[i];
    }
    keep<R, P, VEC>(a.new_param, at, param);
    keep<R, M, VEC>(a.new_m, at, m);
}

template <class P, class M, class V, int VEC> DEVICE void adamw_at(const optim_args &a, i64 at)
{
    typedef acc<P> R;
    R beta1 = (R)a.beta1, rest1 = (R)(1 - a.beta1), beta2 = (R)a.beta2, rest2 = (R)(1 - a.beta2);
    R rate = (R)a.lr, stay = (R)a.decay, root = (R)a.root, eps = (R)a.eps;
    R param[VEC], grad[VEC], m[VEC], v[VEC];
    fetch<R, P, VEC>(a.param, at, param);
    fetch<R, P, VEC>(a.grad, at, grad);
    fetch<R, M, VEC>(a.m, at, m);
    fetch<R, V, VEC>(a.v, at, v);
    UNROLL
    for (int i = 0; i < VEC; i++) {
        m[i] = beta1 * m[i] + rest1 * grad[i];
        v[i] = beta2 * v[i] + rest2 * grad[i] * grad[i];
        param[i] = param[i] * stay - rate * m[i] / (m_sqrt(v[i]) / root + eps);
    }
    keep<R, P, VEC>(a.new_param, at, param);
    keep<R, M, VEC>(a.new_m, at, m);
    keep<R, V, VEC>(a.new_v, at, v);
}

template <class P, class M, int VEC> DEVICE void optim_sgd(const optim_args &a)
{
    for (i64 at = global_thread() * VEC; at < a.count; at += global_threads() * VEC)
        sgd_at<P, M, VEC>(a, at);
}

template <class P, class M, class V, int VEC> DEVICE void optim_adamw(const optim_args &a)
{
    for (i64 at = global_thread() * VEC; at < a.count; at += global_threads() * VEC)
        adamw_at<P, M, V, VEC>(a, at);
}

/* ---- lists ---- */

/* Tensor k of the list. */
DEVICE void take_step(const optim_list_args &a, int k, optim_args *one, i64 *first)
{
    *first = a.first[k];
    one->count = a.count[k];
    one->param = one->new_param = a.param[k];
    one->grad = a.grad[k];
    one->m = one->new_m = a.m[k];
    one->v = one->new_v = a.v[k];
}

/* The tensor that a chunk is of. On NVIDIA every place of the list is looked at: what is indexed at run time would be copied to
 * memory first. On AMD the list is in memory, and all of it at once would need more registers than there are. */
DEVICE optim_args find_step(const optim_list_args &a, i64 chunk, i64 *start)
{
    optim_args one = a.step;
    i64 first = 0;
#ifdef WK_AMD
    int k = 0;
    ROLLED
    while (k + 1 < WK_STEPS && chunk >= a.first[k + 1])
        k++;
    take_step(a, k, &one, &first);
#else
    UNROLL
    for (int k = 0; k < WK_STEPS; k++) {
        if (chunk >= a.first[k])
            take_step(a, k, &one, &first);
    }
#endif
    *start = (chunk - first) * WK_STEP_CHUNK;
    return one;
}

template <class P, class M, class V, int ADAMW, int VEC> DEVICE void list_step(const optim_args &one, i64 at)
{
    if constexpr (ADAMW)
        adamw_at<P, M, V, VEC>(one, at);
    else
        sgd_at<P, M, VEC>(one, at);
}

template <class P, class M, class V, int ADAMW, int VEC> DEVICE void optim_list(const optim_list_args &a)
{
    for (i64 chunk = block_id(); chunk < a.chunks; chunk += grid_blocks()) {
        i64 start;
        optim_args one = find_step(a, chunk, &start);
        i64 end = lesser(start + WK_STEP_CHUNK, one.count);
        for (i64 at = start + thread_id() * VEC; at < end; at += 256 * VEC) {
            if (at + VEC <= end)
                list_step<P, M, V, ADAMW, VEC>(one, at);
            else
                for (i64 i = at; i < end; i++)
                    list_step<P, M, V, ADAMW, 1>(one, i);
        }
    }
}
