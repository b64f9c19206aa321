#!/usr/bin/env python3
"""wick's kernels beside MIOpen's on the emulated AMD GPU: what each executes and touches for the same call.

    bench/emulated.py [--wick build/wick] [--arch gfx90a] [NAME...]

Prints a table for docs/performance.md: vector instructions (of a wave, matrix ones among them) and memory transactions (lines of 64
bytes a wave's access touches) of all kernels that the call runs, and the ratios (below 1: wick needs fewer). Counts are exact and the
same in every run; they are not times.
"""
import argparse, json, os, struct, subprocess, sys, tempfile
from array import array
from math import prod
from random import Random

INTEGERS = {"labels": (1, 63), "input_lengths": (16, 16), "label_lengths": (5, 5)}
X, CHANNELS = [4, 64, 28, 28], {"weight": [64], "bias": [64]}
LSTM = {"weight_ih_l0": [256, 64], "weight_hh_l0": [256, 64], "bias_ih_l0": [256], "bias_hh_l0": [256]}
STATES = {"x": [16, 8, 64], "h0": [1, 8, 64], "c0": [1, 8, 64]}


def both(call, op, params, inputs):
    """An op of one input, and its gradient."""
    (name, shape), = inputs.items()
    return [(f"{op} {call}", op, params, inputs), (f"{op}_backward {call}", f"{op}_backward", params, {name: shape, "dy": shape})]


def size(name, shape):
    return f"{name}={','.join(map(str, shape))}"


def convs(call, op, params, x, weight, y):
    return [(f"{op} {call}", op, params, {"x": x, "weight": weight}),
            (f"{op}_backward_data {call}", f"{op}_backward_data", [*params, size("input_size", x)], {"dy": y, "weight": weight}),
            (f"{op}_backward_weight {call}", f"{op}_backward_weight", [*params, size("kernel_size", weight)], {"x": x, "dy": y})]


def pools(call, op, params, x, y):
    return [(f"{op} {call}", op, params, {"x": x}), (f"{op}_backward {call}", f"{op}_backward", params, {"x": x, "dy": y})]


# Every op that wick also has of MIOpen: call, op, parameters, inputs (of f32, but for those named in INTEGERS and the case
# that MIOpen does well in bf16 alone).
CASES = [
    *both("1M", "abs", [], {"x": [1 << 20]})[:1],
    *both("1M", "tanh", [], {"x": [1 << 20]})[:1],
    *both("1M", "relu", [], {"x": [1 << 20]})[1:],
    *both("1M", "sigmoid", [], {"x": [1 << 20]}),
    *both("1M", "softplus", [], {"x": [1 << 20]})[:1],
    *both("1M", "relu6", [], {"x": [1 << 20]})[1:],
    *both("1M", "leaky_relu", ["slope=0.1"], {"x": [1 << 20]}),
    *both("1M", "elu", ["alpha=1"], {"x": [1 << 20]}),
    ("power 1M", "power", ["alpha=1.5", "beta=0.5", "gamma=2.5"], {"x": [1 << 20]}),
    *[(f"{op} {which}", op, [f"dims={dims}"], {"x": shape})
      for op in ("sum", "mean", "prod", "norm1", "norm2", "min", "max", "amax")
      for which, dims, shape in (("last 256x4096", "1", [256, 4096]), ("first 4096x256", "0", [4096, 256]), ("all 1M", "0", [1 << 20]))
      if op == "sum" or dims == "1"],
    ("softmax 64x1024", "softmax", ["dim=-1"], {"x": [64, 1024]}),
    ("softmax_backward 64x1024", "softmax_backward", ["dim=-1"], {"y": [64, 1024], "dy": [64, 1024]}),
    ("rms_norm 256x1024", "rms_norm", [], {"x": [256, 1024], "weight": [1024]}),
    ("layer_norm 256x1024 bf16", "layer_norm", [], {"x": [256, 1024], "weight": [1024], "bias": [1024]}),
    ("rope_i 2x8x64x64", "rope_i", [], {"x": [2, 8, 64, 64], "cos": [64, 32], "sin": [64, 32]}),
    ("rope_i_backward 2x8x64x64", "rope_i_backward", [], {"dy": [2, 8, 64, 64], "cos": [64, 32], "sin": [64, 32]}),
    ("sdpa 2x4x64x64", "sdpa", [], {"q": [2, 4, 64, 64], "k": [2, 4, 64, 64], "v": [2, 4, 64, 64]}),
    *pools("2s2 4x16x56x56", "avg_pool2d", ["kernel_size=2", "stride=2"], [4, 16, 56, 56], [4, 16, 28, 28]),
    *pools("3s2 4x16x57x57", "avg_pool2d", ["kernel_size=3", "stride=2"], [4, 16, 57, 57], [4, 16, 28, 28]),
    *pools("4x64x28x28", "global_avg_pool2d", [], X, [4, 64, 1, 1]),
    *pools("2s2 4x16x1024", "avg_pool1d", ["kernel_size=2", "stride=2"], [4, 16, 1024], [4, 16, 512]),
    ("batch_norm_infer 4x64x28x28", "batch_norm_infer", [], {"x": X, "mean": [64], "var": [64], **CHANNELS}),
    ("batch_norm_backward 4x64x28x28", "batch_norm_backward", [],
     {"x": X, "dy": X, "weight": [64], "save_mean": [64], "save_invstd": [64]}),
    ("lrn 4x64x28x28", "lrn", ["size=5", "alpha=1e-4", "beta=0.75", "k=2"], {"x": X}),
    ("lrn_backward 4x64x28x28", "lrn_backward", ["size=5", "alpha=1e-4", "beta=0.75", "k=2"], {"x": X, "y": X, "dy": X}),
    ("ctc_loss 16x8x64", "ctc_loss", ["logits=1"],
     {"x": [16, 8, 64], "labels": [8, 5], "input_lengths": [8], "label_lengths": [8]}),
    ("rnn lstm 16x8x64", "rnn", ["hidden=64"], {**STATES, **LSTM}),
    ("rnn_backward lstm 16x8x64", "rnn_backward", ["hidden=64"],
     {**STATES, "dy": [16, 8, 64], **LSTM}),
    *convs("3x3 2x32x28x28", "conv2d", ["padding=1"], [2, 32, 28, 28], [32, 32, 3, 3], [2, 32, 28, 28]),
    *convs("1x1 2x64x28x28", "conv2d", [], [2, 64, 28, 28], [64, 64, 1, 1], [2, 64, 28, 28]),
    *convs("3x3s2 2x32x29x29", "conv2d", ["stride=2"], [2, 32, 29, 29], [32, 32, 3, 3], [2, 32, 14, 14]),
    *convs("3 4x32x256", "conv1d", ["padding=1"], [4, 32, 256], [32, 32, 3], [4, 32, 256]),
    *convs("3x3x3 1x16x8x14x14", "conv3d", ["padding=1"], [1, 16, 8, 14, 14], [16, 16, 3, 3, 3], [1, 16, 8, 14, 14]),
    *convs("4s2 4x32x128", "conv_transpose1d", ["stride=2", "padding=1"], [4, 32, 128], [32, 32, 4], [4, 32, 256]),
    *convs("4x4s2 2x32x14x14", "conv_transpose2d", ["stride=2", "padding=1"], [2, 32, 14, 14], [32, 32, 4, 4], [2, 32, 28, 28]),
    ("conv2d_bias_act 3x3 2x32x28x28", "conv2d_bias_act", ["padding=1", "act=leaky_relu", "alpha=0.1"],
     {"x": [2, 32, 28, 28], "weight": [32, 32, 3, 3], "bias": [32]}),
    ("conv2d_bn_act 3x3 2x32x28x28", "conv2d_bn_act", ["padding=1", "act=leaky_relu", "alpha=0.1"],
     {"x": [2, 32, 28, 28], "weight": [32, 32, 3, 3], "mean": [32], "var": [32]}),
]


def block_of(name, n, bf16):
    random = Random(name)
    if name in INTEGERS:
        return "I32", array("i", (random.randint(*INTEGERS[name]) for _ in range(n))).tobytes()
    low = 0.1 if name in ("var", "save_invstd") else -1
    data = array("f", (random.uniform(low, 1) for _ in range(n))).tobytes()
    return ("BF16", b"".join(data[i + 2 : i + 4] for i in range(0, 4 * n, 4))) if bf16 else ("F32", data)


def write(path, tensors, bf16):
    header, at, data = {}, 0, b""
    for name, shape in tensors.items():
        dtype, block = block_of(name, prod(shape), bf16)
        header[name] = {"dtype": dtype, "shape": shape, "data_offsets": [at, at + len(block)]}
        at += len(block)
        data += block
    text = json.dumps(header).encode()
    with open(path, "wb") as f:
        f.write(struct.pack("<Q", len(text)) + text + data)


def counts(args, folder, op, params, impl):
    profile, env = os.path.join(folder, "profile.json"), dict(os.environ, ROCM_EMU_ARCH=args.arch)
    command = [args.run, args.wick, "op", op, os.path.join(folder, "in.safetensors"), os.path.join(folder, "out.safetensors"),
               *params, "--device", "rocm:0"]
    if impl == "wick":
        env["WICK_WITHOUT"] = "miopen"
    else:
        command += ["--impl", impl]
    for turn in range(2):  # the first call may compile, and run kernels that look for the best way
        env["ROCM_EMU_PROFILE"] = profile
        if os.path.exists(profile):
            os.remove(profile)
        done = subprocess.run(command, env=env, capture_output=True, text=True)
        if done.returncode:
            return None, done.stderr.strip().splitlines()[-1] if done.stderr else "failed"
    rows = [json.loads(line) for line in open(profile)]
    if args.kernels:
        for r in sorted(rows, key=valu, reverse=True):
            print(f"    {impl}: {r['kernel']} {valu(r)} {lines(r)} waves {r['waves']} vgprs {r['vgprs']} scratch {r['scratch_size']}", file=sys.stderr)
    return rows, None


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--wick", default="build/wick")
    p.add_argument("--run", default="emu/run")
    p.add_argument("--arch", default="gfx90a")
    p.add_argument("--kernels", action="store_true", help="also every kernel by itself, to standard error")
    p.add_argument("name", nargs="*")
    args = p.parse_args()
    print("| call | vector instructions, wick | MIOpen | ratio | transactions, wick | MIOpen | ratio |")
    print("|---|---:|---:|---:|---:|---:|---:|")
    with tempfile.TemporaryDirectory(dir=".") as folder:
        for name, op, params, tensors in CASES:
            if args.name and not any(n in name for n in args.name):
                continue
            bf16 = name.endswith("bf16")
            write(os.path.join(folder, "in.safetensors"), tensors, bf16)
            sums, ours = [], []
            for impl in ("wick", "miopen"):
                rows, why = counts(args, folder, op, params, impl)
                if rows is None:
                    print(f"{name}: {impl}: {why}", file=sys.stderr)
                    break
                rows = [r for r in rows if impl == "wick" or is_part(r, ours)]
                ours = rows
                sums.append((sum(valu(r) for r in rows), sum(lines(r) for r in rows)))
            if len(sums) == 2:
                (v, m), (v2, m2) = sums
                dtype = "" if bf16 else " f32"
                print(f"| {name}{dtype} | {v} | {v2} | {v / v2:.2f} | {m} | {m2} | {m / m2:.2f} |", flush=True)


def is_part(row, ours):
    """Whether a kernel counts for MIOpen: not what mends its results, but what wick's own way runs as well (a bias's gradient)."""
    return row["kernel"] != "wk_kernel" or (valu(row), lines(row)) in [(valu(r), lines(r)) for r in ours]


def valu(row):
    return row["insts"]["valu"] + row["insts"]["matrix"]


def lines(row):
    return sum(row[kind]["lines"] for kind in ("global_load", "global_store", "global_atomic"))


main()
