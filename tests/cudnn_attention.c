/* cudnn_attention.c: cuDNN plans gradients of attention for an H200 that is not there; see cudnn.c. */
#define wk_cudnn_run_sdpa_backward tested_run
#define wk_cudnn_refuse_sdpa_backward tested_refuse
#include "../src/cuda/cudnn_attention_grad.c"
#include "cudnn_plans.h"

typedef struct {
    int64_t b, hq, hk, s, t, d;
    bool causal;
    int64_t window;
} size;

static const size all[] = {
    {1, 16, 16, 4096, 4096, 128, true, 0}, {1, 16, 16, 2048, 4096, 128, true, 0},
    {2, 8, 8, 4096, 4096, 64, false, 0},   {1, 4, 4, 128, 256, 64, true, 0},
    {1, 4, 4, 256, 256, 128, true, 100},   {1, 24, 6, 4096, 4096, 128, true, 0},
    {1, 8, 1, 2048, 2048, 64, false, 0},
};

static void packed(wk_cudnn_attention *w, int id, int64_t heads, int64_t rows, int64_t width)
{
    const int64_t shape[] = {w->b, heads, rows, width};
    wk_shape_strides(4, shape, w->strides[id]);
}

static wk_cudnn_attention call_of(const size *z, wk_dtype dtype)
{
    wk_cudnn_attention w = {.dtype = dtype,
                            .b = z->b,
                            .hq = z->hq,
                            .hk = z->hk,
                            .s = z->s,
                            .t = z->t,
                            .d = z->d,
                            .dv = z->d,
                            .causal = z->causal,
                            .windowed = z->window > 0};
    for (int id = WK_ATTN_Q; id < WK_ATTN_MAPS; id++) {
        bool of_keys = id == WK_ATTN_K || id == WK_ATTN_V || id == WK_ATTN_DK || id == WK_ATTN_DV;
        packed(&w, id, of_keys ? z->hk : z->hq, of_keys ? z->t : z->s, z->d);
    }
    return w;
}

static void test_size(const size *z, wk_dtype dtype, bool any_order)
{
    static wk_cudnn_plan p;
    wk_cudnn_attention w = call_of(z, dtype);
    w.any_order = any_order;
    p = (wk_cudnn_plan){0};
    set_up(NULL, &p, &w);
    test_check(p.status == CUDNN_STATUS_SUCCESS, __FILE__, __LINE__, "%d keys, any order %d: %s", (int)z->t,
               any_order, p.trouble);
    for (int i = 0; i < p.n_configs; i++)
        CHECK(!(wk_cudnn_notes(p.configs[i]) >> CUDNN_NUMERICAL_NOTE_DOWN_CONVERT_INPUTS & 1));
    wk_cudnn_plan_clear(&p);
}

int main(void)
{
    if (!has_driver() || !open_device()) {
        SKIP("cuDNN does not plan here");
        return test_end();
    }
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        for (int way = 0; way < 4; way++)
            test_size(&all[i], way & 1 ? WK_F16 : WK_BF16, way & 2);
    }
    return test_end();
}
