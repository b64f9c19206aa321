#!/usr/bin/env python3
"""gguf_models.py: writes the tiny GGUF models of this folder and what PyTorch makes of their weights. usage: gguf_models.py [NAME...]

Each folder gguf-NAME has model.gguf, with random weights in blocks, the tokenizer of another folder, and beside it
    reference.safetensors   ids, hidden states between the layers, logits and greedily generated tokens, in f32
    tokens.json             texts and their tokens
The files are written, and their blocks read, by the format's description alone; with the package gguf at hand the blocks
are compared with what that makes of them. Needs torch and numpy.
"""
import json
import os
import struct
import sys

import numpy as np
import torch
import torch.nn.functional as F

HERE = os.path.dirname(os.path.abspath(__file__))
PROMPT, NEW = 29, 24

# ---- blocks: number of the type, weights, bytes ----

TYPES = {"f32": (0, 1, 4), "f16": (1, 1, 2), "q4_0": (2, 32, 18), "q8_0": (8, 32, 34), "q4_k": (12, 256, 144),
         "q6_k": (14, 256, 210)}


REAL = np.float32  # what weights are computed in


def f16(blocks, at):
    return blocks[:, at:at + 2].copy().view(np.float16).astype(REAL)


def read_q4_0(b):
    q = b[:, 2:]
    return f16(b, 0) * (np.concatenate([q & 15, q >> 4], 1).astype(np.float32) - 8)


def read_q8_0(b):
    return f16(b, 0) * b[:, 2:].copy().view(np.int8).astype(np.float32)


def read_q4_k(b):
    s, n = b[:, 4:16], len(b)
    scale = np.concatenate([s[:, :4] & 63, (s[:, 8:] & 15) | (s[:, :4] >> 6) << 4], 1).astype(np.float32)
    least = np.concatenate([s[:, 4:8] & 63, (s[:, 8:] >> 4) | (s[:, 4:8] >> 6) << 4], 1).astype(np.float32)
    q = b[:, 16:].reshape(n, 4, 1, 32)
    q = np.concatenate([q & 15, q >> 4], 2).reshape(n, 8, 32).astype(np.float32)
    return ((f16(b, 0) * scale)[:, :, None] * q - (f16(b, 2) * least)[:, :, None]).reshape(n, 256)


def read_q6_k(b):
    n = len(b)
    low = b[:, :128].reshape(n, 2, 1, 64)
    low = np.concatenate([low & 15, low >> 4], 2).reshape(n, 2, 4, 32)
    high = b[:, 128:192].reshape(n, 2, 1, 32) >> np.array([0, 2, 4, 6], np.uint8).reshape(1, 1, 4, 1) & 3
    q = (low | high << 4).astype(np.float32) - 32
    scale = f16(b, 208) * b[:, 192:208].copy().view(np.int8).astype(np.float32)
    return (q.reshape(n, 16, 16) * scale[:, :, None]).reshape(n, 256)


READERS = {"q4_0": read_q4_0, "q8_0": read_q8_0, "q4_k": read_q4_k, "q6_k": read_q6_k}
# Where the f16 numbers are, and by how much they are multiplied at most.
SCALES = {"q4_0": [(0, 8)], "q8_0": [(0, 128)], "q4_k": [(0, 945), (2, 63)], "q6_k": [(208, 4096)]}


def random_blocks(rng, n, kind, size):
    """n blocks of weights of about that size."""
    b = rng.integers(0, 256, (n, TYPES[kind][2]), np.uint8)
    for at, most in SCALES[kind]:
        d = rng.uniform(1, 2, n) * rng.choice([-1, 1], n) * size * 2 / most
        b[:, at:at + 2] = d.astype(np.float16).view(np.uint8).reshape(-1, 2)
    return b


def random_weights(rng, shape, kind, size):
    """Bytes of the type, and the numbers they stand for."""
    if kind in ("f32", "f16"):
        w = rng.normal(0, size, shape).astype(np.float32 if kind == "f32" else np.float16)
        return w.tobytes(), w.astype(np.float32)
    b = random_blocks(rng, int(np.prod(shape)) // TYPES[kind][1], kind, size)
    w = READERS[kind](b).reshape(shape)
    try:
        from gguf import GGMLQuantizationType, quants
        theirs = quants.dequantize(b.reshape(shape[0], -1), GGMLQuantizationType(TYPES[kind][0]))
        assert np.array_equal(theirs, w), kind
    except ImportError:
        pass
    return b.tobytes(), w


# ---- the file ----

def text(s):
    s = s.encode() if isinstance(s, str) else s
    return struct.pack("<Q", len(s)) + s


def value(v):
    """A value with its kind in front."""
    if isinstance(v, bool):
        return struct.pack("<IB", 7, v)
    if isinstance(v, int):
        return struct.pack("<II", 4, v)
    if isinstance(v, float):
        return struct.pack("<If", 6, v)
    if isinstance(v, str):
        return struct.pack("<I", 8) + text(v)
    item = 8 if isinstance(v[0], str) else 6 if isinstance(v[0], float) else 5
    body = b"".join(text(x) if item == 8 else struct.pack("<f" if item == 6 else "<i", x) for x in v)
    return struct.pack("<IIQ", 9, item, len(v)) + body


def write_gguf(path, version, pairs, tensors):
    head = b"GGUF" + struct.pack("<IQQ", version, len(tensors), len(pairs))
    head += b"".join(text(k) + value(v) for k, v in pairs.items())
    data = b""
    for name, (shape, kind, content) in tensors.items():
        head += text(name) + struct.pack("<I%dQ" % len(shape), len(shape), *reversed(shape))
        head += struct.pack("<IQ", TYPES[kind][0], len(data))
        data += content + bytes(-len(content) % 32)
    with open(path, "wb") as f:
        f.write(head + bytes(-len(head) % 32) + data)


def write_safetensors(path, tensors):
    head, data = {}, b""
    for name, t in tensors.items():
        content = t.numpy().tobytes()
        head[name] = dict(dtype="I64" if t.dtype == torch.int64 else "F32", shape=list(t.shape),
                          data_offsets=[len(data), len(data) + len(content)])
        data += content
    head = json.dumps(head).encode()
    head += b" " * (-len(head) % 8)
    with open(path, "wb") as f:
        f.write(struct.pack("<Q", len(head)) + head + data)


# ---- tokenizers ----

def byte_level(source, pre):
    """Pairs for the tokenizer.json of a folder, whose tokens.json then holds for them too."""
    with open(HERE + "/" + source + "/tokenizer.json") as f:
        t = json.load(f)
    tokens = {i: s for s, i in t["model"]["vocab"].items()}
    kinds = {i: 1 for i in tokens}
    for a in t["added_tokens"]:
        tokens[a["id"]] = a["content"]
        kinds[a["id"]] = 3 if a["special"] else 4
    n = len(tokens)
    merges = [m if isinstance(m, str) else " ".join(m) for m in t["model"]["merges"]]
    with open(HERE + "/" + source + "/tokens.json") as f:
        cases = f.read()
    pairs = {"tokenizer.ggml.model": "gpt2", "tokenizer.ggml.pre": pre, "tokenizer.ggml.tokens": [tokens[i] for i in range(n)],
             "tokenizer.ggml.token_type": [kinds[i] for i in range(n)], "tokenizer.ggml.merges": merges,
             "tokenizer.ggml.add_bos_token": pre == "llama-bpe"}
    if pre == "llama-bpe":
        pairs["tokenizer.ggml.bos_token_id"] = next(i for i in tokens if tokens[i] == "<|begin|>")
    pairs["tokenizer.ggml.eos_token_id"] = next(i for i in tokens if tokens[i] == "<|end|>")
    return pairs, cases


def merge_pieces(pieces, scores):
    """SentencePiece's rule: of all neighbours that make a piece those with the best score, the first of them."""
    while True:
        best = None
        for i in range(len(pieces) - 1):
            s = scores.get(pieces[i] + pieces[i + 1])
            if s is not None and (best is None or s > best[0]):
                best = (s, i)
        if best is None:
            return pieces
        i = best[1]
        pieces = pieces[:i] + [pieces[i] + pieces[i + 1]] + pieces[i + 2:]


def sentence_piece(source):
    """The vocabulary of a folder with scores in the order of its merges; several pieces share a score."""
    with open(HERE + "/" + source + "/tokenizer.json") as f:
        t = json.load(f)
    ids = t["model"]["vocab"]
    n = len(ids)
    scores = {s: -1e4 for s in ids}
    for rank, m in enumerate(t["model"]["merges"]):
        scores["".join(m.split(" ") if isinstance(m, str) else m)] = -float(rank // 3)
    tokens = sorted(ids, key=ids.get)
    kinds = [2 if s == "<unk>" else 3 if s in ("<s>", "</s>") else 6 if s.startswith("<0x") else 1 for s in tokens]
    normal = {s: scores[s] for s, k in zip(tokens, kinds) if k == 1}
    pairs = {"tokenizer.ggml.model": "llama", "tokenizer.ggml.tokens": tokens, "tokenizer.ggml.token_type": kinds,
             "tokenizer.ggml.scores": [float(scores[s]) for s in tokens], "tokenizer.ggml.bos_token_id": ids["<s>"],
             "tokenizer.ggml.eos_token_id": ids["</s>"], "tokenizer.ggml.unknown_token_id": ids["<unk>"]}
    added = [a["content"] for a in t["added_tokens"]]
    cases = []
    with open(HERE + "/" + source + "/tokens.json") as f:
        for c in json.load(f):
            if "hash" in c or any(a in c["text"] for a in added) or "\0" in c["text"]:
                continue
            out = [ids["<s>"]]
            spaced = ("▁" + c["text"] if c["text"] else "").replace(" ", "▁")
            for piece in merge_pieces(list(spaced), normal):
                out += [ids[piece]] if piece in normal else [ids["<0x%02X>" % b] for b in piece.encode()]
            cases.append(json.dumps(dict(text=c["text"], ids=out, decoded=c["decoded"]), ensure_ascii=False))
    return pairs, "[\n" + ",\n".join(cases) + "\n]\n"


# ---- the models ----

MODELS = {  # architecture, version of the file, types (of attn_v, ffn_down and output, where they differ), sizes, tokenizer
    "q4_0": ("llama", 3, "q4_0", "q4_0", dict(hidden=64, inner=96, heads=4, kv=2, dim=16, layers=2), lambda: sentence_piece("llama2")),
    "q8_0": ("qwen2", 3, "q8_0", "q8_0", dict(hidden=64, inner=96, heads=4, kv=2, dim=16, layers=2), lambda: byte_level("qwen2", "qwen2")),
    "q4_k": ("llama", 3, "q4_k", "q6_k", dict(hidden=256, inner=256, heads=4, kv=2, dim=64, layers=1), lambda: byte_level("llama3", "llama-bpe")),
    "q6_k": ("qwen3", 3, "q6_k", "q6_k", dict(hidden=256, inner=256, heads=4, kv=2, dim=64, layers=1), lambda: byte_level("qwen3", "gpt-2")),
    "f16": ("llama", 2, "f16", "f16", dict(hidden=48, inner=80, heads=4, kv=2, dim=12, layers=2), lambda: sentence_piece("llama2")),
}


def make_tensors(rng, arch, kind, other, s, vocab):
    """name: (shape, type, bytes) and name: numbers, as the file has them."""
    q, kv, h, gain = s["heads"] * s["dim"], s["kv"] * s["dim"], s["hidden"], (1 if arch == "qwen2" else 0.6) * s["hidden"] ** -0.5
    plan = {"token_embd.weight": ((vocab, h), other, 0.5), "output_norm.weight": ((h,), "f32", 0.2)}
    if arch != "qwen2":
        plan["output.weight"] = ((vocab, h), other, gain)
    for i in range(s["layers"]):
        b = "blk.%d." % i
        plan |= {b + "attn_norm.weight": ((h,), "f32", 0.2), b + "ffn_norm.weight": ((h,), "f32", 0.2),
                 b + "attn_q.weight": ((q, h), kind, gain), b + "attn_k.weight": ((kv, h), kind, gain),
                 b + "attn_v.weight": ((kv, h), other, gain), b + "attn_output.weight": ((h, q), kind, gain),
                 b + "ffn_gate.weight": ((s["inner"], h), kind, gain), b + "ffn_up.weight": ((s["inner"], h), kind, gain),
                 b + "ffn_down.weight": ((h, s["inner"]), other, gain)}
        if arch == "qwen2":
            plan |= {b + "attn_%s.bias" % x: ((n,), "f32", 0.2) for x, n in (("q", q), ("k", kv), ("v", kv))}
        if arch == "qwen3":
            plan |= {b + "attn_%s_norm.weight" % x: ((s["dim"],), "f32", 0.2) for x in "qk"}
    if kind == "q4_k":
        plan["rope_freqs.weight"] = ((s["dim"] // 2,), "f32", 0.2)
    stored, weights = {}, {}
    for name, (shape, t, size) in plan.items():
        content, w = random_weights(rng, shape, t, size)
        if "norm" in name or "rope" in name:
            w = 1 + np.abs(w)
            content = w.tobytes()
        stored[name] = (shape, t, content)
        weights[name] = torch.from_numpy(w)
    return stored, weights


def rotate(x, dim, theta, factors, interleaved):
    """x [heads, n, dim]. Files of the architecture llama turn neighbours, the others the two halves."""
    f = theta ** (-torch.arange(0, dim, 2, dtype=torch.float32) / dim) / factors
    angle = torch.arange(x.shape[1], dtype=torch.float32)[:, None] * f
    c, s = angle.cos(), angle.sin()
    if interleaved:
        a, b = x[..., 0::2], x[..., 1::2]
        return torch.stack([a * c - b * s, a * s + b * c], -1).flatten(-2)
    a, b = x.chunk(2, -1)
    return torch.cat([a * c - b * s, a * s + b * c], -1)


def run(arch, w, s, ids):
    """Hidden states before each layer and behind the last norm, and the logits."""
    n, dim, eps, states = len(ids), s["dim"], 1e-5, []
    factors = w.get("rope_freqs.weight", torch.ones(dim // 2))
    x = w["token_embd.weight"][torch.tensor(ids)]
    norm = lambda x, name: F.rms_norm(x, x.shape[-1:], w[name], eps)
    for i in range(s["layers"]):
        b = "blk.%d." % i
        states.append(x)
        y = norm(x, b + "attn_norm.weight")
        heads = {}
        for part, count in (("q", s["heads"]), ("k", s["kv"]), ("v", s["kv"])):
            t = F.linear(y, w[b + "attn_%s.weight" % part], w.get(b + "attn_%s.bias" % part)).view(n, count, dim)
            if part != "v" and b + "attn_%s_norm.weight" % part in w:
                t = norm(t, b + "attn_%s_norm.weight" % part)
            t = t.transpose(0, 1)
            heads[part] = t if part == "v" else rotate(t, dim, 10000.0, factors, arch == "llama")
        k, v = (heads[p].repeat_interleave(s["heads"] // s["kv"], 0) for p in "kv")
        y = F.scaled_dot_product_attention(heads["q"][None], k[None], v[None], is_causal=True)[0]
        x = x + F.linear(y.transpose(0, 1).reshape(n, -1), w[b + "attn_output.weight"])
        y = norm(x, b + "ffn_norm.weight")
        y = F.silu(F.linear(y, w[b + "ffn_gate.weight"])) * F.linear(y, w[b + "ffn_up.weight"])
        x = x + F.linear(y, w[b + "ffn_down.weight"])
    x = norm(x, "output_norm.weight")
    return states + [x], F.linear(x, w.get("output.weight", w["token_embd.weight"]))


def generate(arch, w, s, ids):
    tokens, margins = list(ids), []
    for _ in range(NEW):
        two = run(arch, w, s, tokens)[1][-1].topk(2)
        margins.append((two.values[0] - two.values[1]).item())
        tokens.append(two.indices[0].item())
    return tokens[len(ids):], min(margins)


def make_model(name):
    arch, version, kind, other, s, tokenizer = MODELS[name]
    folder = HERE + "/gguf-" + name
    os.makedirs(folder, exist_ok=True)
    pairs, cases = tokenizer()
    vocab = len(pairs["tokenizer.ggml.tokens"])
    for seed in range(200):
        rng = np.random.default_rng(seed)
        stored, w = make_tensors(rng, arch, kind, other, s, vocab)
        ids = rng.integers(0, vocab, PROMPT).tolist()
        new, margin = generate(arch, w, s, ids)
        if margin > 0.02 and len(set(new)) >= 8 and pairs["tokenizer.ggml.eos_token_id"] not in new:
            break
    else:
        raise SystemExit(name + ": no seed with a clear choice of tokens")
    states, logits = run(arch, w, s, ids)
    rows = {"ids": torch.tensor(ids), "generated": torch.tensor(new), "logits": logits}
    rows |= {"hidden.%d" % i: h.contiguous() for i, h in enumerate(states)}
    write_safetensors(folder + "/reference.safetensors", rows)
    shape = {"block_count": s["layers"], "embedding_length": s["hidden"], "feed_forward_length": s["inner"],
             "attention.head_count": s["heads"], "attention.head_count_kv": s["kv"], "context_length": 256,
             "attention.layer_norm_rms_epsilon": 1e-5, "rope.freq_base": 10000.0}
    if s["dim"] * s["heads"] != s["hidden"]:
        shape["attention.key_length"] = s["dim"]
    write_gguf(folder + "/model.gguf", version, {"general.architecture": arch, "general.alignment": 32}
               | {arch + "." + k: v for k, v in shape.items()} | pairs, stored)
    with open(folder + "/tokens.json", "w") as f:
        f.write(cases)
    print("gguf-%s: seed %d, vocabulary %d, least margin %.3f" % (name, seed, vocab, margin))


if __name__ == "__main__":
    torch.set_num_threads(1)
    with torch.no_grad():
        for name in sys.argv[1:] or MODELS:
            make_model(name)
