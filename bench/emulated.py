#!/usr/bin/env python3
"""wick's kernels beside MIOpen's on the emulated AMD GPU: what each executes and touches for the same call.

    bench/emulated.py [--wick build/wick] [--arch gfx90a] [NAME...]

Prints a table for docs/performance.md: vector instructions (of a wave, matrix ones among them) and memory transactions (lines of 64 bytes a wave's
access touches) of all kernels that the call runs, and the ratios (below 1: wick needs fewer). Counts are exact and the same in
every run; they are not times.
"""
import argparse, json, os, struct, subprocess, sys, tempfile
from random import Random

# name: op, parameters, inputs
CASES = {
    "softmax 64x1024": ("softmax", ["dim=-1"], {"x": [64, 1024]}),
    "softmax_backward 64x1024": ("softmax_backward", ["dim=-1"], {"y": [64, 1024], "dy": [64, 1024]}),
    "max_pool2d 3s2 4x16x56x56": ("max_pool2d", ["kernel_size=3", "stride=2"], {"x": [4, 16, 56, 56]}),
    "avg_pool2d 2s2 4x16x56x56": ("avg_pool2d", ["kernel_size=2", "stride=2"], {"x": [4, 16, 56, 56]}),
    "leaky_relu 1M": ("leaky_relu", ["slope=0.1"], {"x": [1 << 20]}),
    "sigmoid 1M": ("sigmoid", [], {"x": [1 << 20]}),
    "batch_norm_infer 4x64x28x28": ("batch_norm_infer", [], {"x": [4, 64, 28, 28], "mean": [64], "var": [64], "weight": [64],
                                                            "bias": [64]}),
    "lrn 4x64x28x28": ("lrn", ["size=5", "alpha=1e-4", "beta=0.75", "k=2"], {"x": [4, 64, 28, 28]}),
    "sum last 256x4096": ("sum", ["dims=1"], {"x": [256, 4096]}),
    "sum first 4096x256": ("sum", ["dims=0"], {"x": [4096, 256]}),
    "rms_norm 256x1024": ("rms_norm", [], {"x": [256, 1024], "weight": [1024]}),
    "conv2d 3x3 2x32x28x28": ("conv2d", ["padding=1"], {"x": [2, 32, 28, 28], "weight": [32, 32, 3, 3]}),
    "conv2d 1x1 2x64x28x28": ("conv2d", [], {"x": [2, 64, 28, 28], "weight": [64, 64, 1, 1]}),
}


def write(path, tensors):
    random, header, at, data = Random(1), {}, 0, b""
    for name, shape in tensors.items():
        n = 1
        for d in shape:
            n *= d
        low = 0.1 if name == "var" else -1
        block = struct.pack(f"<{n}f", *(random.uniform(low, 1) for _ in range(n)))
        header[name] = {"dtype": "F32", "shape": shape, "data_offsets": [at, at + len(block)]}
        at += len(block)
        data += block
    text = json.dumps(header).encode()
    with open(path, "wb") as f:
        f.write(struct.pack("<Q", len(text)) + text + data)


def counts(args, folder, op, params, impl):
    profile, env = os.path.join(folder, "profile.json"), dict(os.environ, ROCM_EMU_ARCH=args.arch)
    if os.path.exists(profile):
        os.remove(profile)
    command = [args.run, args.wick, "op", op, os.path.join(folder, "in.safetensors"), os.path.join(folder, "out.safetensors"),
               *params, "--device", "rocm:0", "--impl", impl]
    for turn in range(2):  # the first call may compile, and run kernels that look for the best way
        env["ROCM_EMU_PROFILE"] = profile
        done = subprocess.run(command, env=env, capture_output=True, text=True)
        if done.returncode:
            return None, done.stderr.strip().splitlines()[-1] if done.stderr else "failed"
    rows = [json.loads(line) for line in open(profile)]
    return rows, None


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--wick", default="build/wick")
    p.add_argument("--run", default="emu/run")
    p.add_argument("--arch", default="gfx90a")
    p.add_argument("name", nargs="*")
    args = p.parse_args()
    print("| call | vector instructions, wick | MIOpen | ratio | transactions, wick | MIOpen | ratio |")
    print("|---|---:|---:|---:|---:|---:|---:|")
    with tempfile.TemporaryDirectory(dir=".") as folder:
        for name, (op, params, tensors) in CASES.items():
            if args.name and not any(n in name for n in args.name):
                continue
            write(os.path.join(folder, "in.safetensors"), tensors)
            both = []
            for impl in ("kernel", "miopen"):
                rows, why = counts(args, folder, op, params, impl)
                if rows is None:
                    print(f"{name}: {impl}: {why}", file=sys.stderr)
                    break
                both.append((sum(valu(r) for r in rows), sum(lines(r) for r in rows)))
            if len(both) == 2:
                (v, m), (v2, m2) = both
                print(f"| {name} f32 | {v} | {v2} | {v / v2:.2f} | {m} | {m2} | {m / m2:.2f} |", flush=True)


def valu(row):
    return row["insts"]["valu"] + row["insts"]["matrix"]


def lines(row):
    return sum(row[kind]["lines"] for kind in ("global_load", "global_store", "global_atomic"))


main()
