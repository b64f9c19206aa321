/* determinism.c: the same bits with any number of threads, and from run to run: for the samples of every op, and
 * for calls large enough to be cut into many tasks. Arguments: only these ops. */
#include "outputs.h"

/* op, sample. Sums over long and short lines, along and across; products of every path; gradients. */
static const char *const large[][2] = {
    {"sum", "x=T[300000]"},
    {"sum", "x=T[700,900] dim=0"},
    {"sum", "x=T[700,900] dim=1"},
    {"sum", "x=T[3,500,7,40] dims=0,2"},
    {"mean", "x=T[1000000]"},
    {"norm2", "x=T[64,5000] dim=1"},
    {"var", "x=T[50,9000] dim=1"},
    {"var", "x=T[9000,50] dim=0"},
    {"log_sum_exp", "x=T[400000] dims=all"},
    {"max", "x=T[500,700] dim=0"},
    {"argmax", "x=T[3,200000] dim=1"},
    {"prod", "x=T[4,100000]:0.9999..1.0001 dim=1"},
    {"sum_backward", "x=T[700,900] dy=T[900] dim=0"},
    {"prod_backward", "x=T[7,3000]:0.99..1.01 dy=T[7] dim=1"},
    {"softmax", "x=T[500,1100]"},
    {"softmax", "x=T[1100,500] dim=0"},
    {"softmax", "x=T[2,300000]"},
    {"softmax_backward", "y=T[500,1100]:0..1 dy=T[500,1100]"},
    {"add_backward", "a=T[500,400] b=T[400] dy=T[500,400]"},
    {"mul_backward", "a=T[500,400] b=T[500,1] dy=T[500,400]"},
    {"matmul", "a=T[260,300] b=T[300,280]"},
    {"matmul", "a=T[1,3000] b=T[3000,1000]"},
    {"matmul", "a=T[1000,3000] b=T[3000]"},
    {"matmul", "a=T[64,20000] b=T[20000,48]"},
    {"matmul", "a=T[40,33,65] b=T[40,65,31]"},
    {"matmul_backward", "a=T[200,300] b=T[300,250] dy=T[200,250]"},
    {"linear", "x=T[130,500] weight=T[400,500] bias=T[400] act=gelu"},
    {"linear_backward", "x=T[3000,100] weight=T[70,100] dy=T[3000,70]"},
    {"qlinear", "x=T[530,512] weight=u8[200,288]:q4_k format=q4_k act=gelu"},
    {"conv2d", "x=T[2,16,40,40] weight=T[32,16,3,3] bias=T[32] padding=1"},
    {"conv2d", "x=T[1,64,56,56] weight=T[64,1,3,3] groups=64 padding=1"},
    {"conv2d", "x=T[2,32,30,30] weight=T[48,32,1,1]"},
    {"conv2d_backward_data", "dy=T[2,32,40,40] weight=T[32,16,3,3] padding=1 input_size=2,16,40,40"},
    {"conv2d_backward_weight", "x=T[4,16,40,40] dy=T[4,32,40,40] padding=1 kernel_size=32,16,3,3"},
    {"conv1d", "x=T[3,20,5000] weight=T[30,20,5]"},
    {"conv3d", "x=T[1,8,12,20,20] weight=T[16,8,3,3,3]"},
    {"conv_transpose2d", "x=T[2,16,30,30] weight=T[16,24,4,4] stride=2 padding=1"},
    {"max_pool2d", "x=T[4,30,60,60] kernel_size=3 stride=2"},
    {"avg_pool2d_backward", "x=T[4,30,60,60] dy=T[4,30,30,30] kernel_size=2 stride=2"},
    {"sdpa", "q=T[2,4,300,64] k=T[2,4,300,64] v=T[2,4,300,64] causal=1"},
    {"sdpa", "q=T[2,8,1,64] k=T[2,2,2000,64] v=T[2,2,2000,64]"},
    {"sdpa_backward",
     "q=T[1,4,500,128]:-1..1 k=T[1,2,500,128]:-1..1 v=T[1,2,500,128] y=T[1,4,500,128] lse=S[1,4,500]:6..7 "
     "dy=T[1,4,500,128] causal=1"},
    {"sdpa_backward",
     "q=T[1,4,150,32] k=T[1,2,170,32] v=T[1,2,170,32] y=T[1,4,150,32] lse=S[1,4,150]:5..6 dy=T[1,4,150,32]"},
    {"layer_norm", "x=T[700,800] weight=T[800] bias=T[800]"},
    {"rms_norm", "x=T[700,800] weight=T[800]"},
    {"batch_norm_train", "x=T[8,32,40,40] weight=S[32] bias=S[32] running_mean=S[32] running_var=S[32]:1..2"},
    {"layer_norm_backward", "x=T[700,300] dy=T[700,300] weight=T[300]"},
    {"rms_norm_backward", "x=T[700,300] dy=T[700,300] weight=T[300]"},
    {"batch_norm_backward",
     "x=T[8,32,40,40] dy=T[8,32,40,40] weight=S[32] save_mean=S[32] save_invstd=S[32]:1..2"},
    {"group_norm", "x=T[4,32,50,50] weight=T[32] bias=T[32] groups=8"},
    {"scatter_add", "x=T[64,4096] ids=i64[64,4096]:0..4096 src=T[64,4096] dim=1"},
    {"scatter_add", "x=T[64,1500] ids=i64[64,4096]:0..1500 src=T[64,4096] dim=1"},
    {"scatter_add", "x=T[300,500] ids=i64[900,500]:0..300 src=T[900,500] dim=0"},
    {"index_add", "x=T[300,500] ids=i64[5000]:0..300 src=T[5000,500] dim=0"},
    {"index_select_backward", "ids=i64[5000]:0..100 dy=T[5000,64] dim=0 input_size=100,64"},
    {"gather_backward", "ids=i64[900,500]:0..300 dy=T[900,500] dim=0 input_size=300,500"},
    {"cumsum", "x=T[300,3000] dim=1"},
    {"cumsum", "x=T[3000,300] dim=0"},
    {"cross_entropy", "x=T[3000,200] target=i64[3000]:0..200"},
    {"mse_loss", "x=T[400000] target=T[400000]"},
    {"dropout", "x=T[300000] p=0.3 seed=5"},
    {"randn", "shape=300000 dtype=T seed=5"},
};
enum { LARGE = sizeof large / sizeof *large };

static const int threads[] = {1, 2, 3, 4, 7, 1, 4};

static void check_sample(const wk_op *op, const char *text, wk_dtype dtype)
{
    static sample_call c;
    char *want = NULL;
    size_t bytes = 0;
    wk_scope_begin();
    wk_status status = sample_begin(&c, op, text, dtype, WK_LAYOUT_PACKED);
    for (size_t i = 0; status == WK_OK && i < sizeof threads / sizeof *threads; i++) {
        wk_set_num_threads(threads[i]);
        wk_scope_begin();
        status = sample_run(&c);
        if (status == WK_OK && !want)
            want = sample_bits(&c, &bytes);
        else if (status == WK_OK)
            test_check(sample_same_bits(&c, want, bytes), op->name, 0, "%s %s: other bits with %d threads",
                       wk_dtype_name(dtype), text, threads[i]);
        wk_scope_end();
    }
    test_check(status == WK_OK, op->name, 0, "%s %s: %s", wk_dtype_name(dtype), text, wk_error());
    free(want);
    wk_error_clear();
    wk_scope_end();
}

static void check_samples(const wk_op *op)
{
    for (const char *const *text = op->samples; text && *text; text++) {
        for (int d = 0; d < WK_DTYPE_COUNT; d++) {
            if (op->dtypes >> d & 1)
                check_sample(op, *text, (wk_dtype)d);
        }
    }
}

static void check_large(const char *name, const char *text)
{
    static const wk_dtype dtypes[] = {WK_F32, WK_BF16, WK_F64};
    const wk_op *op = wk_op_find(name);
    if (!test_check(op != NULL, name, 0, "no such op"))
        return;
    for (int i = 0; i < 3; i++)
        check_sample(op, text, dtypes[i]);
}

static bool chosen(const char *name, int argc, char **argv)
{
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], name) == 0)
            return true;
    }
    return argc <= 1;
}

int main(int argc, char **argv)
{
    for (int i = 0; i < wk_op_count(); i++) {
        if (chosen(wk_op_at(i)->name, argc, argv))
            check_samples(wk_op_at(i));
    }
    for (int i = 0; i < LARGE; i++) {
        if (chosen(large[i][0], argc, argv))
            check_large(large[i][0], large[i][1]);
    }
    return test_end();
}
