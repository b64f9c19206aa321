/* bench_cases_gpu.c: what `wick bench` measures on GPUs: the cases of bench/torch_gpu.py, under the same names. */
#include "bench_cases.h"

#define N (64.0 * 1024 * 1024) /* elements of the large elementwise cases */

/* Cases in f32 and f16 alike: X(name, op, sample, elements moved, bytes more, layout). */
#define BOTH(X) \
    X("copy", "copy", "x=T[67108864]", 2 * N, 0, WK_LAYOUT_PACKED) \
    X("add", "add", "a=T[67108864] b=T[67108864]", 3 * N, 0, WK_LAYOUT_PACKED) \
    X("exp", "exp", "x=T[67108864]", 2 * N, 0, WK_LAYOUT_PACKED) \
    X("gelu", "gelu", "x=T[67108864]", 2 * N, 0, WK_LAYOUT_PACKED) \
    X("affine", "affine", "x=T[67108864] mul=2 add=1", 2 * N, 0, WK_LAYOUT_PACKED) \
    X("where", "where", "cond=u8[67108864]:0..2 a=T[67108864] b=T[67108864]", 3 * N, N, WK_LAYOUT_PACKED) \
    X("sum_all", "sum", "x=T[67108864]", N, 0, WK_LAYOUT_PACKED) \
    X("sum_last", "sum", "x=T[8192,8192] dims=-1", N, 0, WK_LAYOUT_PACKED) \
    X("sum_first", "sum", "x=T[8192,8192] dims=0", N, 0, WK_LAYOUT_PACKED) \
    X("argmax_last", "argmax", "x=T[8192,8192] dim=-1", N, 0, WK_LAYOUT_PACKED) \
    X("transpose_copy", "copy", "x=T[8192,8192]", 2 * N, 0, WK_LAYOUT_TRANSPOSED) \
    X("broadcast_add_row", "add", "a=T[8192,8192] b=T[8192]", 2 * N, 0, WK_LAYOUT_PACKED)

#define ROW_CASES(rows, cols, suffix, dtype, bytes) \
    {"softmax." rows "x" cols suffix, "softmax", "x=T[" rows "," cols "]", dtype, bytes, 0, 0, BENCH_PLAIN}, \
        {"layer_norm." rows "x" cols suffix, \
         "layer_norm", \
         "x=T[" rows "," cols "] weight=T[" cols "] bias=T[" cols "]", \
         dtype, \
         bytes, \
         0, \
         0, \
         BENCH_PLAIN}, \
        {"rms_norm." rows "x" cols suffix, \
         "rms_norm", \
         "x=T[" rows "," cols "] weight=T[" cols "]", \
         dtype, \
         bytes, \
         0, \
         0, \
         BENCH_PLAIN},

#define SDPA(name, q, kv, more, bytes, flops) \
    {"sdpa." name ".bf16", "sdpa", "q=T[" q "] k=T[" kv "] v=T[" kv "]" more, WK_BF16, bytes, flops, 0, \
     BENCH_PLAIN},

#define SDPA_GRADIENT(name, q, kv, row, more, flops, how) \
    {"sdpa_backward." name, \
     "sdpa_backward", \
     "q=T[" q "] k=T[" kv "] v=T[" kv "] y=T[" q "] lse=S[" row "]:20..21 dy=T[" q "]" more, \
     WK_BF16, \
     0, \
     flops, \
     0, \
     how},
#define SDPA_BACKWARD(name, q, kv, row, more, flops) \
    SDPA_GRADIENT(name ".bf16", q, kv, row, more, flops, BENCH_PLAIN) \
    SDPA_GRADIENT(name ".bf16.fast", q, kv, row, more, flops, BENCH_FAST) \
    SDPA_GRADIENT(name ".bf16.fast.any_order", q, kv, row, more, flops, BENCH_FAST | BENCH_ANY_ORDER)

#define CONV(name, x, w, more, flops) \
    {"conv2d." name ".f32", "conv2d", "x=T[" x "] weight=T[" w "]" more, WK_F32, 0, flops, 0, BENCH_PLAIN}, \
        {"conv2d." name ".f16", \
         "conv2d", \
         "x=T[" x "] weight=T[" w "]" more, \
         WK_F16, \
         0, \
         flops, \
         0, \
         BENCH_PLAIN},
#define CONV_GRADIENT(op, name, in, dtype, flops, how) \
    {#op "." name, #op, in, dtype, 0, flops, 0, BENCH_FIRST_ALONE | (how)},
#define CONV_DATA(name, x, y, w, more, dtype, flops) \
    CONV_GRADIENT(conv2d_backward_data, name, "dy=T[" y "] weight=T[" w "] input_size=" x more, dtype, \
                  flops, BENCH_PLAIN)
#define CONV_WEIGHT(name, x, y, w, more, dtype, flops) \
    CONV_GRADIENT(conv2d_backward_weight, name, "x=T[" x "] dy=T[" y "] kernel_size=" w more, dtype, flops, \
                  BENCH_PLAIN) \
    CONV_GRADIENT(conv2d_backward_weight, name ".any_order", "x=T[" x "] dy=T[" y "] kernel_size=" w more, \
                  dtype, flops, BENCH_ANY_ORDER)
#define CONV_GRADIENTS(name, x, y, w, more, flops) \
    CONV_DATA(name ".f32", x, y, w, more, WK_F32, flops) \
    CONV_DATA(name ".f16", x, y, w, more, WK_F16, flops) \
    CONV_WEIGHT(name ".f32", x, y, w, more, WK_F32, flops) \
    CONV_WEIGHT(name ".f16", x, y, w, more, WK_F16, flops)

#define RNN_LAYER(l, gates) \
    " weight_ih_l" l "=T[" gates ",1024]:-0.03..0.03 weight_hh_l" l "=T[" gates ",1024]:-0.03..0.03" \
    " bias_ih_l" l "=T[" gates "]:-0.03..0.03 bias_hh_l" l "=T[" gates "]:-0.03..0.03"
#define RNN(name, mode, gates, count, suffix, dtype) \
    {name ".2x1024.t128.b64" suffix, \
     "rnn", \
     "x=T[128,64,1024]" RNN_LAYER("0", gates) RNN_LAYER("1", gates) " hidden=1024 layers=2 mode=" mode, \
     dtype, \
     0, \
     2.0 * 128 * 64 * 2 * (count)*2 * 1024 * 1024, \
     0, \
     BENCH_PLAIN},

#define IMAGE (64.0 * 64 * 112 * 112 * 4)
#define SMALLER (16.0 * 64 * 112 * 112 * 4)
#define ROWS (16384.0 * 4096)

/* clang-format off */
/* Fused ops; PyTorch's counterpart is what its eager mode runs for the same formula. */
#define ADD_NORM(op, rows, cols, more) \
    {op "." rows "x" cols ".bf16", op, "x=T[" rows "," cols "] residual=T[" rows "," cols "] weight=T[" cols "]" more, \
     WK_BF16, 4 * HALF, 0, 0, BENCH_PLAIN},
#define HALF (8192.0 * 4096 * 2) /* bytes of a bf16 tensor of 8192 x 4096; 65536 x 512 is as large */
/* The layers of a language model's step. */
#define ROW(k, n) \
    {"linear.1x" #k "x" #n ".bf16", "linear", "x=T[1," #k "] weight=T[" #n "," #k "]", WK_BF16, 2.0 * k * n, 0, 0, BENCH_PLAIN},
#define FUSED \
    ADD_NORM("add_rms_norm", "8192", "4096", "") \
    ADD_NORM("add_rms_norm", "65536", "512", "") \
    ADD_NORM("add_layer_norm", "8192", "4096", " bias=T[4096]") \
    ROW(4096, 4096) ROW(14336, 4096) ROW(4096, 128256) \
    {"rms_norm_linear.gated.1x4096x14336.bf16", "rms_norm_linear", \
     "x=T[1,4096] residual=T[1,4096] norm=T[4096] weight=T[14336,4096] gated=1", WK_BF16, 14336.0 * 4096 * 2, 0, 0, BENCH_PLAIN}, \
    {"bias_act.gelu.8192x8192.bf16", "bias_act", "x=T[8192,8192] bias=T[8192] act=gelu", WK_BF16, 2 * N * 2, 0, 0, BENCH_PLAIN}, \
    {"silu_mul.8192x8192.bf16", "silu_mul", "gate=T[8192,8192] up=T[8192,8192]", WK_BF16, 3 * N * 2, 0, 0, BENCH_PLAIN}, \
    {"silu_mul.packed.8192x8192.bf16", "silu_mul", "gate=T[8192,16384]", WK_BF16, 3 * N * 2, 0, 0, BENCH_PLAIN}, \
    {"silu_mul_backward.8192x8192.bf16", "silu_mul_backward", "gate=T[8192,8192] up=T[8192,8192] dy=T[8192,8192]", \
     WK_BF16, 5 * N * 2, 0, 0, BENCH_PLAIN}, \
    {"rope_qk.8x32x2048x128.bf16", "rope_qk", \
     "q=T[8,32,2048,128] k=T[8,8,2048,128] cos=T[2048,64] sin=T[2048,64]", WK_BF16, 2.5 * N * 2, 0, 0, BENCH_PLAIN}, \
    {"softmax_cross_entropy.8192x32000.bf16", "softmax_cross_entropy", "x=T[8192,32000] target=i64[8192]:0..32000", \
     WK_BF16, 2.0 * 8192 * 32000 * 2, 0, 0, BENCH_PLAIN}, \
    {"linear_act.gelu.4096x4096x14336.bf16", "linear_act", \
     "x=T[4096,4096] weight=T[14336,4096] bias=T[14336] act=gelu", WK_BF16, 0, 2.0 * 4096 * 4096 * 14336, 0, BENCH_PLAIN}, \
    {"linear_act.residual.4096x4096x4096.bf16", "linear_act", \
     "x=T[4096,4096] weight=T[4096,4096] bias=T[4096] z=T[4096,4096]", WK_BF16, 0, 2.0 * 4096 * 4096 * 4096, 0, BENCH_PLAIN}, \
    {"conv2d_bias_act.resnet_3x3.f16", "conv2d_bias_act", \
     "x=T[64,64,56,56] weight=T[64,64,3,3] bias=T[64] z=T[64,64,56,56] padding=1 act=relu", WK_F16, 0, \
     2.0 * 64 * 64 * 56 * 56 * 64 * 9, 0, BENCH_PLAIN}, \
    {"conv2d_bn_act.resnet_3x3.f16", "conv2d_bn_act", \
     "x=T[64,64,56,56] weight=T[64,64,3,3] bn_weight=S[64] bn_bias=S[64] mean=S[64]:0..1 var=S[64]:1..2 padding=1 " \
     "act=relu", WK_F16, 0, 2.0 * 64 * 64 * 56 * 56 * 64 * 9, 0, BENCH_PLAIN}, \
    {"batch_norm_act.relu.f32", "batch_norm_act", \
     "x=T[64,64,112,112] weight=S[64] bias=S[64] mean=S[64]:0..1 var=S[64]:1..2 act=relu", WK_F32, 2 * IMAGE, 0, 0, \
     BENCH_PLAIN}, \
    EXPR(".f32", WK_F32, 4) EXPR(".bf16", WK_BF16, 2)
#define EXPR(suffix, dtype, bytes) \
    {"expr.gelu_abcd" suffix, "expr", \
     "text=gelu(a*b+c)*d a=T[67108864] b=T[67108864] c=T[67108864] d=T[67108864]", dtype, 5 * N * (bytes), 0, 0, BENCH_PLAIN},
/* clang-format on */

static const bench_case cases[] = {
/* clang-format off */
#define IN_F32(n, o, s, elements, more, l) {n ".f32", o, s, WK_F32, (elements) * 4 + (more), 0, l, BENCH_PLAIN},
    BOTH(IN_F32)
#define IN_F16(n, o, s, elements, more, l) {n ".f16", o, s, WK_F16, (elements) * 2 + (more), 0, l, BENCH_PLAIN},
    BOTH(IN_F16)
    {"cast.f32_bf16", "cast", "x=T[67108864] dtype=bf16", WK_F32, 6 * N, 0, 0, BENCH_PLAIN},
    ROW_CASES("8192", "4096", ".f32", WK_F32, 8.0 * 8192 * 4096)
    ROW_CASES("8192", "4096", ".bf16", WK_BF16, 4.0 * 8192 * 4096)
    ROW_CASES("131072", "512", ".f32", WK_F32, 8.0 * 131072 * 512)
    ROW_CASES("131072", "512", ".bf16", WK_BF16, 4.0 * 131072 * 512)
    ROW_CASES("512", "131072", ".f32", WK_F32, 8.0 * 131072 * 512)
    ROW_CASES("512", "131072", ".bf16", WK_BF16, 4.0 * 131072 * 512)
    {"cross_entropy.8192x32000.f32", "cross_entropy", "x=T[8192,32000] target=i64[8192]:0..32000", WK_F32,
     4.0 * 8192 * 32000, 0, 0, BENCH_FIRST_ALONE},
    {"cross_entropy.8192x32000.bf16", "cross_entropy", "x=T[8192,32000] target=i64[8192]:0..32000", WK_BF16,
     2.0 * 8192 * 32000, 0, 0, BENCH_FIRST_ALONE},
    {"rope.8x32x2048x128.bf16", "rope", "x=T[8,32,2048,128] cos=T[2048,64] sin=T[2048,64]", WK_BF16, 2 * N * 2, 0, 0,
     BENCH_PLAIN},
    {"matmul.4096.f32", "matmul", "a=T[4096,4096] b=T[4096,4096]", WK_F32, 0, 2.0 * 4096 * 4096 * 4096, 0, BENCH_PLAIN},
    {"matmul.4096.f64", "matmul", "a=T[4096,4096] b=T[4096,4096]", WK_F64, 0, 2.0 * 4096 * 4096 * 4096, 0, BENCH_PLAIN},
    {"matmul.8192.f16", "matmul", "a=T[8192,8192] b=T[8192,8192]", WK_F16, 0, 2.0 * 8192 * 8192 * 8192, 0, BENCH_PLAIN},
    {"matmul.8192.bf16", "matmul", "a=T[8192,8192] b=T[8192,8192]", WK_BF16, 0, 2.0 * 8192 * 8192 * 8192, 0, BENCH_PLAIN},
    {"matmul.1x4096x14336.bf16", "matmul", "a=T[1,4096] b=T[4096,14336]", WK_BF16, 4096.0 * 14336 * 2, 0, 0, BENCH_PLAIN},
#define QLINEAR(format, row_bytes) \
    {"qlinear.1x4096x14336." format ".f16", "qlinear", \
     "x=T[1,4096] weight=u8[14336," #row_bytes "]:" format " format=" format, WK_F16, 14336.0 * row_bytes, 0, 0, \
     BENCH_PLAIN}, \
        {"qlinear.8x4096x14336." format ".f16", "qlinear", \
         "x=T[8,4096] weight=u8[14336," #row_bytes "]:" format " format=" format, WK_F16, 14336.0 * row_bytes, 0, 0, \
         BENCH_PLAIN}, \
    { \
        "qlinear.512x4096x14336." format ".f16", "qlinear", \
            "x=T[512,4096] weight=u8[14336," #row_bytes "]:" format " format=" format, WK_F16, 0, \
            2.0 * 512 * 4096 * 14336, 0, BENCH_PLAIN \
    }
    QLINEAR("q4_0", 2304),
    QLINEAR("q8_0", 4352),
    QLINEAR("q4_k", 2304),
    QLINEAR("q6_k", 3360),
    {"matmul.b64.512.f16", "matmul", "a=T[64,512,512] b=T[64,512,512]", WK_F16, 0, 64 * 2.0 * 512 * 512 * 512, 0,
     BENCH_PLAIN},
    SDPA("prefill", "4,32,4096,128", "4,32,4096,128", " causal=1", 0, 2.0 * 4 * 32 * 4096 * 4096 * 128)
    SDPA("gqa", "4,32,4096,128", "4,8,4096,128", " causal=1", 0, 2.0 * 4 * 32 * 4096 * 4096 * 128)
    SDPA("full64", "8,16,4096,64", "8,16,4096,64", "", 0, 4.0 * 8 * 16 * 4096 * 4096 * 64)
    SDPA("decode", "16,32,1,128", "16,8,8192,128", "", 2.0 * 16 * 8 * 8192 * 128 * 2, 0)
    SDPA_BACKWARD("prefill", "4,32,4096,128", "4,32,4096,128", "4,32,4096", " causal=1", 5.0 * 4 * 32 * 4096 * 4096 * 128)
    SDPA_BACKWARD("gqa", "4,32,4096,128", "4,8,4096,128", "4,32,4096", " causal=1", 5.0 * 4 * 32 * 4096 * 4096 * 128)
    SDPA_BACKWARD("full64", "8,16,4096,64", "8,16,4096,64", "8,16,4096", "", 10.0 * 8 * 16 * 4096 * 4096 * 64)
    {"sdpa.f32.2x16x2048x64", "sdpa", "q=T[2,16,2048,64] k=T[2,16,2048,64] v=T[2,16,2048,64]", WK_F32, 0,
     4.0 * 2 * 16 * 2048 * 2048 * 64, 0, BENCH_PLAIN},
    CONV("resnet_3x3", "64,64,56,56", "64,64,3,3", " padding=1", 2.0 * 64 * 64 * 56 * 56 * 64 * 9)
    CONV("resnet_1x1", "64,256,56,56", "64,256,1,1", "", 2.0 * 64 * 64 * 56 * 56 * 256)
    CONV("stem_7x7", "64,3,224,224", "64,3,7,7", " stride=2 padding=3", 2.0 * 64 * 64 * 112 * 112 * 3 * 49)
    CONV("sd_3x3", "4,320,64,64", "320,320,3,3", " padding=1", 2.0 * 4 * 320 * 64 * 64 * 320 * 9)
    CONV("depthwise", "64,128,56,56", "128,1,3,3", " padding=1 groups=128", 2.0 * 64 * 128 * 56 * 56 * 9)
    CONV_GRADIENTS("resnet_3x3", "64,64,56,56", "64,64,56,56", "64,64,3,3", " padding=1",
                   2.0 * 64 * 64 * 56 * 56 * 64 * 9)
    CONV_GRADIENTS("sd_3x3", "4,320,64,64", "4,320,64,64", "320,320,3,3", " padding=1",
                   2.0 * 4 * 320 * 64 * 64 * 320 * 9)
    {"conv1d.whisper.f16", "conv1d", "x=T[8,80,3000] weight=T[512,80,3] padding=1", WK_F16, 0,
     2.0 * 8 * 512 * 3000 * 80 * 3, 0, BENCH_PLAIN},
    {"conv_transpose2d.dcgan.f16", "conv_transpose2d", "x=T[16,256,32,32] weight=T[256,128,4,4] stride=2 padding=1",
     WK_F16, 0, 2.0 * 16 * 256 * 128 * 32 * 32 * 16, 0, BENCH_PLAIN},
    {"max_pool2d.3s2.f32", "max_pool2d", "x=T[64,64,112,112] kernel_size=3 stride=2", WK_F32, 1.25 * IMAGE, 0, 0, BENCH_PLAIN},
    {"avg_pool2d.2s2.f32", "avg_pool2d", "x=T[64,64,112,112] kernel_size=2 stride=2", WK_F32, 1.25 * IMAGE, 0, 0, BENCH_PLAIN},
    {"upsample_nearest2d.x2.f32", "upsample_nearest2d", "x=T[16,64,112,112] scale=2", WK_F32, 5 * SMALLER, 0, 0, BENCH_PLAIN},
    {"batch_norm.infer.f32", "batch_norm_infer",
     "x=T[64,64,112,112] weight=S[64] bias=S[64] mean=S[64]:0..1 var=S[64]:1..2", WK_F32, 2 * IMAGE, 0, 0, BENCH_PLAIN},
    {"batch_norm.train.f32", "batch_norm_train",
     "x=T[64,64,112,112] weight=S[64] bias=S[64] running_mean=S[64]:0..1 running_var=S[64]:1..2", WK_F32, 3 * IMAGE, 0,
     0, BENCH_PLAIN},
    {"lrn.5.f32", "lrn", "x=T[16,64,112,112] size=5 alpha=0.0001 beta=0.75 k=1", WK_F32, 2 * SMALLER, 0, 0, BENCH_PLAIN},
    RNN("lstm", "lstm", "4096", 4, ".f32", WK_F32)
    RNN("lstm", "lstm", "4096", 4, ".f16", WK_F16)
    RNN("gru", "gru", "3072", 3, ".f32", WK_F32)
    RNN("gru", "gru", "3072", 3, ".f16", WK_F16)
    {"ctc_loss.t256.b32.c64", "ctc_loss",
     "x=T[256,32,64]:-8..-1 labels=i32[32,32]:1..64 input_lengths=i64[32]:256..257 label_lengths=i64[32]:32..33", WK_F32,
     0, 0, 0, BENCH_FIRST_ALONE},
    {"index_select.embedding.bf16", "index_select", "x=T[128000,4096] ids=i64[16384]:0..128000 dim=0", WK_BF16,
     2 * ROWS * 2, 0, 0, BENCH_PLAIN},
    {"index_add.f32", "index_add", "x=T[32768,4096] ids=i64[16384]:0..32768 src=T[16384,4096] dim=0", WK_F32,
     3 * ROWS * 4, 0, 0, BENCH_IN_PLACE},
    {"gather.last.f32", "gather", "x=T[16384,4096] ids=i64[16384,4096]:0..4096 dim=1", WK_F32, ROWS * 16, 0, 0, BENCH_PLAIN},
    {"scatter_add.last.f32", "scatter_add", "x=T[16384,4096] ids=i64[16384,4096]:0..4096 src=T[16384,4096] dim=1", WK_F32,
     ROWS * 20, 0, 0, BENCH_IN_PLACE},
    {"dropout.f32", "dropout", "x=T[67108864] p=0.5 seed=1", WK_F32, 2 * N * 4, 0, 0, BENCH_PLAIN},
    FUSED
    {"eager_overhead.add1024", "affine", "x=T[1024] mul=1 add=1", WK_F32, 0, 0, 0, BENCH_PLAIN},
    {"graph_replay.add1024", "affine", "x=T[1024] mul=1 add=1", WK_F32, 0, 0, 0, BENCH_PLAIN},
    /* clang-format on */
    {0},
};

const bench_case *bench_cases_gpu(void) { return cases; }
