/* vendor.c: what MIOpen and cuDNN have in common. */
#include "vendor.h"
#include "runtime.h"

enum { NEAR = 8 };

void wk_key_add(wk_key *k, int64_t value)
{
    if (k->n < WK_KEY)
        k->v[k->n] = value;
    k->n++;
}

void wk_key_real(wk_key *k, double value)
{
    int64_t bits;
    memcpy(&bits, &value, sizeof bits);
    wk_key_add(k, bits);
}

void wk_key_shape(wk_key *k, int rank, const int64_t *shape)
{
    wk_key_add(k, rank);
    for (int i = 0; i < rank; i++)
        wk_key_add(k, shape[i]);
}

static bool is_for(const wk_kept *p, const wk_key *key)
{
    return p->key.n == key->n && memcmp(p->key.v, key->v, (size_t)key->n * sizeof *key->v) == 0;
}

wk_kept *wk_keeper_find(wk_keeper *k, const wk_key *key, wk_kept ***place)
{
    uint64_t first = wk_hash(WK_HASH_START, key->v, (size_t)key->n * sizeof *key->v);
    wk_kept **oldest = NULL;
    k->calls++;
    for (unsigned i = 0; i < NEAR; i++) {
        wk_kept **at = &k->places[(first + i) % WK_KEEPER_PLACES];
        if (!*at || is_for(*at, key)) {
            if (*at)
                (*at)->used = k->calls;
            *place = at;
            return *at;
        }
        if (!oldest || (*at)->used < (*oldest)->used)
            oldest = at;
    }
    *place = oldest;
    return NULL;
}

const char *wk_vendor_refuse(const wk_call *c, unsigned dtypes, const wk_vendor_words *words)
{
    static const char many[] = "2^31 elements and more";
    if (!(dtypes >> c->dtype & 1))
        return words->dtype;
    if (wk_gpu_of(c->device)->driver->plans)
        return "a planning device has no libraries";
    for (int i = 0; i < WK_MAX_IN; i++) {
        int64_t n = c->in[i] ? wk_count(c->in[i]) : 1;
        if (n == 0 || n > INT32_MAX)
            return n ? many : words->empty;
    }
    for (int i = 0; i < wk_op_outputs(c->op); i++) {
        int64_t n = wk_shape_count(c->spec[i].rank, c->spec[i].shape);
        if (n == 0 || n > INT32_MAX)
            return n ? many : words->empty;
    }
    return NULL;
}

void wk_vendor_packed(int rank, const int64_t *shape, int *lengths, int *steps)
{
    int64_t strides[WK_MAX_RANK];
    wk_shape_strides(rank, shape, strides);
    for (int d = 0; d < rank; d++) {
        lengths[d] = (int)shape[d];
        steps[d] = (int)strides[d];
    }
}

wk_status wk_vendor_workspace(const wk_call *c, const char *library, size_t bytes, void **workspace)
{
    *workspace = NULL;
    if (bytes == 0)
        return WK_OK;
    wk_tensor *t = wk_tensor_new(c->device, WK_U8, 1, (int64_t[]){(int64_t)bytes});
    if (t)
        *workspace = wk_ptr(t);
    if (t || wk_error_status() != WK_ERR_MEMORY)
        return t ? WK_OK : wk_error_status();
    wk_error_clear();
    return wk_fail(WK_ERR_UNSUPPORTED, "%s: %s: no memory for a workspace of %zu bytes", c->device->name,
                   library, bytes);
}
