/* bench_cases.c: what `wick bench` measures. */
#include "bench_cases.h"

#define MB (1024.0 * 1024.0)

/* ---- the CPU's ---- */

/* Elements of the elementwise cases, and bytes of an element. */
#define N (16.0 * MB)
#define F32 4.0
#define BF16 2.0

/* Cases that exist in f32 and in bf16 alike, of so many elements (number and text) and of so many rows (text);
 * tag belongs to their names: X(name, op, sample, bytes as multiples of an element, layout). */
#define CPU_BOTH(X, tag, elements, count, rows) \
    X("copy" tag, "copy", "x=T[" count "]", 2 * (elements), WK_LAYOUT_PACKED), \
        X("add" tag, "add", "a=T[" count "] b=T[" count "]", 3 * (elements), WK_LAYOUT_PACKED), \
        X("exp" tag, "exp", "x=T[" count "]", 2 * (elements), WK_LAYOUT_PACKED), \
        X("gelu" tag, "gelu", "x=T[" count "]", 2 * (elements), WK_LAYOUT_PACKED), \
        X("sum_all" tag, "sum", "x=T[" count "]", elements, WK_LAYOUT_PACKED), \
        X("sum_last" tag, "sum", "x=T[" rows ",4096] dims=-1", elements, WK_LAYOUT_PACKED), \
        X("sum_first" tag, "sum", "x=T[" rows ",4096] dims=0", elements, WK_LAYOUT_PACKED), \
        X("argmax_last" tag, "argmax", "x=T[" rows ",4096] dim=-1", elements, WK_LAYOUT_PACKED), \
        X("transpose_copy" tag, "copy", "x=T[" rows ",4096]", 2 * (elements), WK_LAYOUT_TRANSPOSED), \
        X("softmax." rows "x1024" tag, "softmax", "x=T[" rows ",1024]", (elements) / 2, WK_LAYOUT_PACKED), \
        X("layer_norm." rows "x1024" tag, "layer_norm", "x=T[" rows ",1024] weight=T[1024] bias=T[1024]", \
          (elements) / 2, WK_LAYOUT_PACKED), \
        X("rms_norm." rows "x1024" tag, "rms_norm", "x=T[" rows ",1024] weight=T[1024]", (elements) / 2, \
          WK_LAYOUT_PACKED)
#define IN_F32(n, o, s, elements, l) \
    { \
        n ".f32", o, s, WK_F32, (elements)*F32, 0, l, BENCH_PLAIN \
    }
#define IN_BF16(n, o, s, elements, l) \
    { \
        n ".bf16", o, s, WK_BF16, (elements)*BF16, 0, l, BENCH_PLAIN \
    }

/* Arrays of a gigabyte, which no cache holds: these show the memory. */
static const bench_case cpu_large_cases[] = {
    CPU_BOTH(IN_F32, ".large", 16 * N, "268435456", "65536"),
    CPU_BOTH(IN_BF16, ".large", 16 * N, "268435456", "65536"),
    {"cast.large.f32_bf16", "cast", "x=T[268435456] dtype=bf16", WK_F32, 16 * 6 * N, 0, 0, BENCH_PLAIN},
    {0},
};

#define LSTM_LAYER(l) \
    " weight_ih_l" l "=T[2048,512]:-0.04..0.04 weight_hh_l" l "=T[2048,512]:-0.04..0.04" \
    " bias_ih_l" l "=T[2048]:-0.04..0.04 bias_hh_l" l "=T[2048]:-0.04..0.04"
#define GRU_LAYER(l) \
    " weight_ih_l" l "=T[1536,512]:-0.04..0.04 weight_hh_l" l "=T[1536,512]:-0.04..0.04" \
    " bias_ih_l" l "=T[1536]:-0.04..0.04 bias_hh_l" l "=T[1536]:-0.04..0.04"

/* The flops of a two-layer RNN of size 512 over 32 steps of 16 sequences, a gate. */
#define RNN_GATE (2.0 * 32 * 16 * 2 * 2 * 512 * 512)
#define IMAGE (8.0 * 64 * 112 * 112 * F32)
#define ROWS (8.0 * MB) /* elements of 8192 x 1024 */

static const bench_case cpu_cases[] = {
    CPU_BOTH(IN_F32, "", N, "16777216", "4096"),
    CPU_BOTH(IN_BF16, "", N, "16777216", "4096"),
    {"cast.f32_bf16", "cast", "x=T[16777216] dtype=bf16", WK_F32, 6 * N, 0, 0, BENCH_PLAIN},
    {"matmul.1024.f32", "matmul", "a=T[1024,1024] b=T[1024,1024]", WK_F32, 0, 2048 * MB, 0, BENCH_PLAIN},
    {"matmul.1024.f64", "matmul", "a=T[1024,1024] b=T[1024,1024]", WK_F64, 0, 2048 * MB, 0, BENCH_PLAIN},
    {"matmul.1024.bf16", "matmul", "a=T[1024,1024] b=T[1024,1024]", WK_BF16, 0, 2048 * MB, 0, BENCH_PLAIN},
    {"matmul.1024.f16", "matmul", "a=T[1024,1024] b=T[1024,1024]", WK_F16, 0, 2048 * MB, 0, BENCH_PLAIN},
    {"matmul.1x4096x4096.f32", "matmul", "a=T[1,4096] b=T[4096,4096]", WK_F32, 16 * MB *F32, 0, 0,
     BENCH_PLAIN},
    {"matmul.1x4096x4096.bf16", "matmul", "a=T[1,4096] b=T[4096,4096]", WK_BF16, 16 * MB *BF16, 0, 0,
     BENCH_PLAIN},
    {"matmul.b16.128.f32", "matmul", "a=T[16,128,128] b=T[16,128,128]", WK_F32, 0, 64 * MB, 0, BENCH_PLAIN},
#define QLINEAR_MANY(name, format, row_bytes, dtype) \
    { \
        "qlinear.512x4096x14336." name, "qlinear", \
            "x=T[512,4096] weight=u8[14336," #row_bytes "]:" format " format=" format, dtype, 0, \
            2.0 * 512 * 4096 * 14336, 0, BENCH_PLAIN \
    }
#define QLINEAR(format, row_bytes) \
    {"qlinear.1x4096x14336." format, \
     "qlinear", \
     "x=T[1,4096] weight=u8[14336," #row_bytes "]:" format " format=" format, \
     WK_F32, \
     14336.0 * row_bytes, \
     0, \
     0, \
     BENCH_PLAIN}, \
        QLINEAR_MANY(format, format, row_bytes, WK_F32), \
        QLINEAR_MANY(format ".bf16", format, row_bytes, WK_BF16)
    QLINEAR("q4_0", 2304),
    QLINEAR("q8_0", 4352),
    QLINEAR("q4_k", 2304),
    QLINEAR("q6_k", 3360),
#define SDPA(name, kv, dtype) \
    { \
        name, "sdpa", "q=T[1,16,1024,64] k=T[1," kv ",1024,64] v=T[1," kv ",1024,64] causal=1", dtype, 0, \
            2048 * MB, 0, BENCH_PLAIN \
    }
    SDPA("sdpa.causal.f32", "16", WK_F32),
    SDPA("sdpa.causal.bf16", "16", WK_BF16),
    SDPA("sdpa.gqa.f32", "4", WK_F32),
    SDPA("sdpa.gqa.bf16", "4", WK_BF16),
    {"sdpa.decode.f32", "sdpa", "q=T[1,16,1,64] k=T[1,4,4096,64] v=T[1,4,4096,64]", WK_F32, 2 * MB *F32, 0, 0,
     BENCH_PLAIN},
    {"rope.f32", "rope", "x=T[1,16,1024,64] cos=T[1024,32] sin=T[1024,32]", WK_F32, 2 * MB *F32, 0, 0,
     BENCH_PLAIN},
#define CONV(name, x, w, params, flops) \
    { \
        "conv2d." name ".f32", \
        "conv2d", \
        "x=T[" x "] weight=T[" w "]" params, \
        WK_F32, \
        0, \
        flops, \
        0, \
        BENCH_PLAIN}, \
    { \
        "conv2d." name ".bf16", "conv2d", "x=T[" x "] weight=T[" w "]" params, WK_BF16, 0, flops, 0, \
            BENCH_PLAIN \
    }
    CONV("resnet_3x3", "4,64,56,56", "64,64,3,3", " padding=1", 2.0 * 4 * 64 * 56 * 56 * 64 * 9),
    CONV("resnet_1x1", "4,256,56,56", "64,256,1,1", "", 2.0 * 4 * 64 * 56 * 56 * 256),
    CONV("stem_7x7", "1,3,224,224", "64,3,7,7", " stride=2 padding=3", 2.0 * 64 * 112 * 112 * 3 * 49),
    CONV("depthwise", "4,128,56,56", "128,1,3,3", " padding=1 groups=128", 2.0 * 4 * 128 * 56 * 56 * 9),
    {"conv1d.whisper.f32", "conv1d", "x=T[1,80,3000] weight=T[384,80,3] padding=1", WK_F32, 0,
     2.0 * 384 * 3000 * 80 * 3, 0, BENCH_PLAIN},
    {"conv_transpose2d.dcgan.f32", "conv_transpose2d",
     "x=T[1,256,32,32] weight=T[256,128,4,4] stride=2 padding=1", WK_F32, 0, 2.0 * 256 * 128 * 32 * 32 * 16,
     0, BENCH_PLAIN},
    {"max_pool2d.3s2.f32", "max_pool2d", "x=T[8,64,112,112] kernel_size=3 stride=2", WK_F32, 1.25 * IMAGE, 0,
     0, BENCH_PLAIN},
    {"avg_pool2d.2s2.f32", "avg_pool2d", "x=T[8,64,112,112] kernel_size=2 stride=2", WK_F32, 1.25 * IMAGE, 0,
     0, BENCH_PLAIN},
    {"upsample_nearest2d.x2.f32", "upsample_nearest2d", "x=T[8,64,112,112] scale=2", WK_F32, 5 * IMAGE, 0, 0,
     BENCH_PLAIN},
    {"batch_norm.infer.f32", "batch_norm_infer",
     "x=T[8,64,112,112] weight=S[64] bias=S[64] mean=S[64]:0..1 var=S[64]:1..2", WK_F32, 2 * IMAGE, 0, 0,
     BENCH_PLAIN},
    {"batch_norm.train.f32", "batch_norm_train",
     "x=T[8,64,112,112] weight=S[64] bias=S[64] running_mean=S[64]:0..1 running_var=S[64]:1..2", WK_F32,
     3 * IMAGE, 0, 0, BENCH_PLAIN},
    {"lstm.2x512.t32.b16.f32", "rnn",
     "x=T[32,16,512]" LSTM_LAYER("0") LSTM_LAYER("1") " mode=lstm hidden=512 layers=2", WK_F32, 0,
     4 * RNN_GATE, 0, BENCH_PLAIN},
    {"gru.2x512.t32.b16.f32", "rnn",
     "x=T[32,16,512]" GRU_LAYER("0") GRU_LAYER("1") " mode=gru hidden=512 layers=2", WK_F32, 0, 3 * RNN_GATE,
     0, BENCH_PLAIN},
    {"index_select.embedding.f32", "index_select", "x=T[32000,1024] ids=i64[8192]:0..32000 dim=0", WK_F32,
     2 * ROWS *F32, 0, 0, BENCH_PLAIN},
    {"gather.last.f32", "gather", "x=T[8192,1024] ids=i64[8192,1024]:0..1024 dim=1", WK_F32, ROWS * 16, 0, 0,
     BENCH_PLAIN},
    {"scatter_add.last.f32", "scatter_add",
     "x=T[8192,1024] ids=i64[8192,1024]:0..1024 src=T[8192,1024] dim=1", WK_F32, ROWS * 20, 0, 0,
     BENCH_IN_PLACE},
    {"ctc_loss.t128.b16.c64", "ctc_loss",
     "x=T[128,16,64]:-8..-1 labels=i32[16,20]:1..64 input_lengths=i64[16]:128..129 "
     "label_lengths=i64[16]:20..21",
     WK_F32, 0, 0, 0, BENCH_PLAIN},
    /* Fused ops; PyTorch's counterpart is what its eager mode runs for the same formula. */
    {"expr.gelu_abcd.f32", "expr",
     "text=gelu(a*b+c)*d a=T[16777216] b=T[16777216] c=T[16777216] d=T[16777216]", WK_F32, 5 * N *F32, 0, 0,
     BENCH_PLAIN},
    {"expr.gelu_abcd.bf16", "expr",
     "text=gelu(a*b+c)*d a=T[16777216] b=T[16777216] c=T[16777216] d=T[16777216]", WK_BF16, 5 * N *BF16, 0, 0,
     BENCH_PLAIN},
    {"add_rms_norm.4096x1024.f32", "add_rms_norm", "x=T[4096,1024] residual=T[4096,1024] weight=T[1024]",
     WK_F32, 16 * MB *F32, 0, 0, BENCH_PLAIN},
    {"add_rms_norm.4096x1024.bf16", "add_rms_norm", "x=T[4096,1024] residual=T[4096,1024] weight=T[1024]",
     WK_BF16, 16 * MB *BF16, 0, 0, BENCH_PLAIN},
    {"silu_mul.f32", "silu_mul", "gate=T[4096,4096] up=T[4096,4096]", WK_F32, 3 * N *F32, 0, 0, BENCH_PLAIN},
    {"silu_mul.bf16", "silu_mul", "gate=T[4096,4096] up=T[4096,4096]", WK_BF16, 3 * N *BF16, 0, 0,
     BENCH_PLAIN},
    {"bias_act.gelu.f32", "bias_act", "x=T[4096,4096] bias=T[4096] act=gelu", WK_F32, 2 * N *F32, 0, 0,
     BENCH_PLAIN},
    {"linear_act.gelu.1024.f32", "linear_act", "x=T[1024,1024] weight=T[1024,1024] bias=T[1024] act=gelu",
     WK_F32, 0, 2048 * MB, 0, BENCH_PLAIN},
    {"conv2d_bias_act.resnet_3x3.f32", "conv2d_bias_act",
     "x=T[4,64,56,56] weight=T[64,64,3,3] bias=T[64] padding=1 act=relu", WK_F32, 0,
     2.0 * 4 * 64 * 56 * 56 * 64 * 9, 0, BENCH_PLAIN},
    {"eager_overhead.add1024", "affine", "x=T[1024] mul=1 add=1", WK_F32, 0, 0, 0, BENCH_PLAIN},
    {0},
};

const bench_case *bench_cases(wk_device_kind kind, bool large)
{
    return kind != WK_KIND_CPU ? bench_cases_gpu() : large ? cpu_large_cases : cpu_cases;
}
