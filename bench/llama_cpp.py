#!/usr/bin/env python3
"""wick and llama.cpp on the same GGUF file and the same cores, in turns; the best of each counts.

    llama_cpp.py [--types q4_0,f32] [--dtypes f32,bf16] [--threads 2,1] [--rounds 3] [--wick build/wick]
                 [--llama-bench "llama-bench"] [--folder /tmp]
    llama_cpp.py --make q4_0 FILE.gguf

Files of the shape of a model with 0.85 billion weights are made in --folder, with random weights, where they are missing
(q4_0: 0.5 GB, f32: 3.4 GB). Prints tokens per second of a prompt of 512 tokens and of 64 single steps, and wick's share
of llama.cpp's. --dtypes are those of wick's activations. --llama-bench may be a longer command. Needs nothing but Python.
"""
import argparse, array, json, os, random, shlex, struct, subprocess

LAYERS, HIDDEN, INNER, HEADS, KV_HEADS, VOCAB = 16, 2048, 5632, 32, 8, 32000
PROMPT, STEPS = 512, 64

# ---- the file ----

# Number of the type, weights and bytes of a block, where its f16 numbers are and by how much they are multiplied.
TYPES = {"f32": (0, 1, 4, []), "f16": (1, 1, 2, []), "q4_0": (2, 32, 18, [(0, 8)]), "q8_0": (8, 32, 34, [(0, 128)]),
         "q4_k": (12, 256, 144, [(0, 945), (2, 63)]), "q6_k": (14, 256, 210, [(208, 4096)])}
SPREAD, PATTERN = 0.02, 1 << 16  # blocks, which repeat

def pattern(rng, kind):
    """Random weights: PATTERN blocks or numbers of a type."""
    _, _, size, scales = TYPES[kind]
    if kind == "f32":
        return array.array("f", [rng.gauss(0, SPREAD) for _ in range(PATTERN)]).tobytes()
    if kind == "f16":
        return struct.pack(f"<{PATTERN}e", *[rng.gauss(0, SPREAD) for _ in range(PATTERN)])
    data = bytearray(rng.randbytes(PATTERN * size))
    for block in range(PATTERN):
        for at, most in scales:
            struct.pack_into("<e", data, block * size + at, rng.uniform(1, 2) * 2 * SPREAD / most)
    return bytes(data)

def text(s):
    return struct.pack("<Q", len(s.encode())) + s.encode()

def value(v):
    """A value with its kind in front."""
    if isinstance(v, int):
        return struct.pack("<II", 4, v)
    if isinstance(v, float):
        return struct.pack("<If", 6, v)
    if isinstance(v, str):
        return struct.pack("<I", 8) + text(v)
    kind, items = (8, map(text, v)) if isinstance(v[0], str) else \
        (6, (struct.pack("<f", x) for x in v)) if isinstance(v[0], float) else (5, (struct.pack("<i", x) for x in v))
    return struct.pack("<IIQ", 9, kind, len(v)) + b"".join(items)

def metadata():
    pieces = ["<unk>", "<s>", "</s>"] + ["<0x%02X>" % b for b in range(256)] + ["\u2581"]
    pieces += ["\u2581t%d" % i for i in range(VOCAB - len(pieces))]
    kinds = [2, 3, 3] + [6] * 256 + [1] * (VOCAB - 259)
    return {"general.architecture": "llama", "general.name": "random", "llama.block_count": LAYERS, "llama.context_length": 4096,
            "llama.embedding_length": HIDDEN, "llama.feed_forward_length": INNER, "llama.attention.head_count": HEADS,
            "llama.attention.head_count_kv": KV_HEADS, "llama.rope.dimension_count": HIDDEN // HEADS,
            "llama.attention.layer_norm_rms_epsilon": 1e-5, "llama.vocab_size": VOCAB, "tokenizer.ggml.model": "llama",
            "tokenizer.ggml.tokens": pieces, "tokenizer.ggml.scores": [-float(i) for i in range(VOCAB)],
            "tokenizer.ggml.token_type": kinds, "tokenizer.ggml.bos_token_id": 1, "tokenizer.ggml.eos_token_id": 2,
            "tokenizer.ggml.unknown_token_id": 0}

def tensors(kind):
    """name, shape, type; the output of files in q4_k is q6_k, as usual."""
    kv = HIDDEN // HEADS * KV_HEADS
    last = "q6_k" if kind == "q4_k" else kind
    yield "token_embd.weight", (VOCAB, HIDDEN), kind
    for i in range(LAYERS):
        yield f"blk.{i}.attn_norm.weight", (HIDDEN,), "f32"
        yield f"blk.{i}.ffn_norm.weight", (HIDDEN,), "f32"
        for name, n, k in (("attn_q", HIDDEN, HIDDEN), ("attn_k", kv, HIDDEN), ("attn_v", kv, HIDDEN),
                           ("attn_output", HIDDEN, HIDDEN), ("ffn_gate", INNER, HIDDEN), ("ffn_up", INNER, HIDDEN),
                           ("ffn_down", HIDDEN, INNER)):
            yield f"blk.{i}.{name}.weight", (n, k), kind
    yield "output_norm.weight", (HIDDEN,), "f32"
    yield "output.weight", (VOCAB, HIDDEN), last

def make(path, kind):
    rng, patterns, head, at = random.Random(1), {}, b"", 0
    plan = []
    for name, shape, t in tensors(kind):
        number, block, size, _ = TYPES[t]
        n = shape[0] * (shape[1] if len(shape) > 1 else 1) // block * size
        head += text(name) + struct.pack(f"<I{len(shape)}QIQ", len(shape), *reversed(shape), number, at)
        plan.append((len(shape), t, n))
        at += n + -n % 32
    pairs = metadata()
    head = b"GGUF" + struct.pack("<IQQ", 3, len(plan), len(pairs)) + b"".join(text(k) + value(v) for k, v in pairs.items()) + head
    with open(path + ".part", "wb") as f:
        f.write(head + bytes(-len(head) % 32))
        for rank, t, n in plan:
            if rank == 1:
                f.write(array.array("f", [1.0] * (n // 4)).tobytes())
            else:
                patterns[t] = patterns.get(t) or pattern(rng, t)
                for done in range(0, n, len(patterns[t])):
                    f.write(patterns[t][:n - done])
            f.write(bytes(-n % 32))
    os.rename(path + ".part", path)

# ---- the comparison ----

def run_wick(command, path, dtype, threads, prompt, steps):
    env = os.environ | {"WICK_THREADS": str(threads)}
    command = command + ["run", "llama", path, "--device", "cpu", "--dtype", dtype, "--prompt-tokens", str(prompt), "--tokens",
                         str(steps + 1), "--ignore-eos", "--repeat", "2", "--json"]
    r = json.loads(subprocess.run(command, env=env, capture_output=True, text=True, check=True).stdout)
    return r["tokens_per_s"] if steps else prompt / r["first_token_ms"] * 1e3

def run_llama(command, path, threads, prompt, steps):
    command = command + ["-m", path, "-t", str(threads), "-p", str(0 if steps else prompt), "-n", str(steps), "-r", "1", "-o", "json"]
    return json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)[0]["avg_ts"]

def compare(a):
    wick, llama, dtypes = shlex.split(a.wick), shlex.split(a.llama_bench), a.dtypes.split(",")
    print(f"{'weights':8}{'threads':>8}{'':>10}{'llama.cpp':>11}" + "".join(f"{'wick ' + d:>11}{'ratio':>7}" for d in dtypes) + "  tokens/s")
    for kind in a.types.split(","):
        path = os.path.join(a.folder, f"random-{kind}.gguf")
        if not os.path.exists(path):
            make(path, kind)
        for threads in map(int, a.threads.split(",")):
            for what, prompt, steps in (("prompt", PROMPT, 0), ("steps", 1, STEPS)):
                rounds = [[run_llama(llama, path, threads, prompt, steps)] +
                          [run_wick(wick, path, d, threads, prompt, steps) for d in dtypes] for _ in range(a.rounds)]
                l, *w = map(max, zip(*rounds))
                print(f"{kind:8}{threads:8}{what:>10}{l:11.2f}" + "".join(f"{x:11.2f}{x / l:7.2f}" for x in w), flush=True)

def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--types", default="q4_0,f32")
    p.add_argument("--dtypes", default="f32")
    p.add_argument("--threads", default="2,1")
    p.add_argument("--rounds", type=int, default=3)
    p.add_argument("--wick", default="build/wick")
    p.add_argument("--llama-bench", default="llama-bench")
    p.add_argument("--folder", default="/tmp")
    p.add_argument("--make", nargs=2, metavar=("TYPE", "FILE"))
    a = p.parse_args()
    if a.make:
        make(a.make[1], a.make[0])
    else:
        compare(a)

main()
