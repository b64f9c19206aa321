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
    {2, 32, 32, 4096, 4096, 128, true, 0}, {2, 32, 8, 4096, 4096, 128, true, 0},
    {4, 16, 16, 4096, 4096, 64, false, 0}, {1, 4, 4, 128, 256, 64, true, 0},
    {1, 4, 2, 256, 256, 128, true, 100},
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

int main(void)
{
    if (!open_device()) {
        SKIP("cuDNN does not plan here");
        return test_end();
    }
    wk_set_deterministic(0);
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        for (int half = 0; half < 2; half++) {
            static wk_cudnn_plan p;
            wk_cudnn_attention w = call_of(&all[i], half ? WK_F16 : WK_BF16);
            p = (wk_cudnn_plan){0};
            set_up(NULL, &p, &w);
            test_check(p.status == CUDNN_STATUS_SUCCESS, __FILE__, __LINE__, "%d: %s", (int)i, p.trouble);
            for (int k = 0; k < p.n_configs; k++)
                CHECK(!(notes_of(p.configs[k]) >> CUDNN_NUMERICAL_NOTE_DOWN_CONVERT_INPUTS & 1));
            drop_plan(&p);
        }
    }
    return test_end();
}
