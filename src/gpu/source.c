/* source.c: the kernels' text, carried in the library. */
#include <stdio.h>
#include "runtime.h"

/* A file of src/gpu/kernels, as strip.cmake left it, as a string by the assembler: no size limit. */
#define TEXT(symbol, file) \
    __asm__(".pushsection .rodata\n" \
            ".global wk_text_" #symbol "\n" \
            ".hidden wk_text_" #symbol "\n" \
            "wk_text_" #symbol ":\n" \
            ".incbin \"stripped/" file "\"\n" \
            ".byte 0\n" \
            ".popsection\n"); \
    extern const char wk_text_##symbol[];

/* X(symbol, file): every file, headers first. */
/* clang-format off */
#define FILES(X) \
    X(types_h, "types.h") \
    X(device_h, "device.h") \
    X(ahead_h, "ahead.h") \
    X(cluster_h, "cluster.h") \
    X(gate_h, "gate.h") \
    X(act_h, "act.h") \
    X(act_grad_h, "act_grad.h") \
    X(attention_h, "attention.h") \
    X(attention_broad_h, "attention_broad.h") \
    X(attention_matrix_h, "attention_matrix.h") \
    X(attention_tile_h, "attention_tile.h") \
    X(conv_h, "conv.h") \
    X(conv_end_h, "conv_end.h") \
    X(conv_tile_h, "conv_tile.h") \
    X(copy_h, "copy.h") \
    X(ctc_h, "ctc.h") \
    X(depthwise_h, "depthwise.h") \
    X(expr_h, "expr.h") \
    X(ids_h, "ids.h") \
    X(index_h, "index.h") \
    X(index_sum_h, "index_sum.h") \
    X(loss_h, "loss.h") \
    X(lrn_h, "lrn.h") \
    X(map_h, "map.h") \
    X(matmul_h, "matmul.h") \
    X(mma_h, "mma.h") \
    X(norm_h, "norm.h") \
    X(row_linear_h, "row_linear.h") \
    X(optim_h, "optim.h") \
    X(order_h, "order.h") \
    X(pad_h, "pad.h") \
    X(philox_h, "philox.h") \
    X(planes_h, "planes.h") \
    X(pool_h, "pool.h") \
    X(quant_h, "quant.h") \
    X(quant_format_h, "quant_format.h") \
    X(random_h, "random.h") \
    X(reduce_h, "reduce.h") \
    X(resample_h, "resample.h") \
    X(rnn_h, "rnn.h") \
    X(rope_h, "rope.h") \
    X(scan_h, "scan.h") \
    X(softmax_h, "softmax.h") \
    X(tile_h, "tile.h") \
    X(walk_h, "walk.h") \
    X(wgmma_h, "wgmma.h") \
    X(act_hip, "act.hip") \
    X(attention_hip, "attention.hip") \
    X(attention_broad_hip, "attention_broad.hip") \
    X(attention_broad_grad_hip, "attention_broad_grad.hip") \
    X(attention_decode_hip, "attention_decode.hip") \
    X(attention_grad_hip, "attention_grad.hip") \
    X(attention_joint_grad_hip, "attention_joint_grad.hip") \
    X(attention_matrix_hip, "attention_matrix.hip") \
    X(attention_matrix_grad_hip, "attention_matrix_grad.hip") \
    X(attention_thin_hip, "attention_thin.hip") \
    X(binary_hip, "binary.hip") \
    X(conv_hip, "conv.hip") \
    X(conv_patch_hip, "conv_patch.hip") \
    X(copy_hip, "copy.hip") \
    X(ctc_hip, "ctc.hip") \
    X(depthwise_hip, "depthwise.hip") \
    X(expr_hip, "expr.hip") \
    X(index_hip, "index.hip") \
    X(index_lines_hip, "index_lines.hip") \
    X(lines_hip, "lines.hip") \
    X(loss_hip, "loss.hip") \
    X(lrn_hip, "lrn.hip") \
    X(map_hip, "map.hip") \
    X(matmul_hip, "matmul.hip") \
    X(matmul_matrix_hip, "matmul_matrix.hip") \
    X(norm_hip, "norm.hip") \
    X(row_linear_hip, "row_linear.hip") \
    X(norm_ahead_hip, "norm_ahead.hip") \
    X(norm_planes_hip, "norm_planes.hip") \
    X(optim_hip, "optim.hip") \
    X(order_hip, "order.hip") \
    X(pad_hip, "pad.hip") \
    X(planes_hip, "planes.hip") \
    X(pool_hip, "pool.hip") \
    X(quant_hip, "quant.hip") \
    X(quant_matrix_hip, "quant_matrix.hip") \
    X(quant_row_hip, "quant_row.hip") \
    X(random_hip, "random.hip") \
    X(reduce_hip, "reduce.hip") \
    X(resample_hip, "resample.hip") \
    X(rnn_hip, "rnn.hip") \
    X(rope_hip, "rope.hip") \
    X(scan_hip, "scan.hip") \
    X(softmax_hip, "softmax.hip") \
    X(sort_hip, "sort.hip") \
    X(unary_hip, "unary.hip") \
    X(walk_hip, "walk.hip") \
    /* clang-format on */

FILES(TEXT)

#define NAME(symbol, file) file,
#define POINTER(symbol, file) wk_text_##symbol,
/* hipRTC puts its own prelude in front of everything, half a megabyte of it, unless there is a file of that name. */
static const char *const names[] = {FILES(NAME) "hiprtc_runtime.h"};
static const char *const texts[] = {FILES(POINTER) "\n"};
enum { N = sizeof names / sizeof *names };

wk_kernel_texts wk_kernel_sources(void) { return (wk_kernel_texts){names, texts, N}; }

/* Each file counts once, in the order it is met. */
static u64 hash_file(u64 h, const char *name, size_t length, bool *seen)
{
    static const char include[] = "#include \"";
    for (int i = 0; i < N; i++) {
        if (seen[i] || strlen(names[i]) != length || memcmp(names[i], name, length) != 0)
            continue;
        seen[i] = true;
        h = wk_hash(h, texts[i], strlen(texts[i]));
        for (const char *at = texts[i]; (at = strstr(at, include)); at++) {
            const char *file = at + sizeof include - 1;
            h = hash_file(h, file, strcspn(file, "\""), seen);
        }
    }
    return h;
}

u64 wk_kernel_hash(const char *file)
{
    char name[64];
    bool seen[N] = {false};
    snprintf(name, sizeof name, "%s.hip", file);
    return hash_file(WK_HASH_START, name, strlen(name), seen);
}
