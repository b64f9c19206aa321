#!/usr/bin/env python3
"""torch_llama.py: PyTorch on the Llama shapes of `wick run llama --random`: prompt and decoding of a model with random weights.

usage: torch_llama.py [8b|1b|tiny] [--device cuda] [--dtype bf16] [--prompt-tokens 2048] [--tokens 128] [--repeat 3] [--plain]

Uses transformers with scaled dot-product attention where it is installed; otherwise (or with --plain) the same model in plain
PyTorch, whose cache is allocated ahead. Prints one JSON object a run.
"""
import argparse
import json
import time

import torch
import torch.nn.functional as F

SIZES = {
    "8b": dict(layers=32, hidden=4096, heads=32, kv=8, dim=128, inner=14336, vocab=128256, tied=False),
    "1b": dict(layers=16, hidden=2048, heads=32, kv=8, dim=64, inner=8192, vocab=128256, tied=True),
    "tiny": dict(layers=2, hidden=64, heads=4, kv=2, dim=16, inner=96, vocab=512, tied=False),
}
THETA, EPS = 500000.0, 1e-5


class Plain:
    """The model as straight-line PyTorch."""

    def __init__(self, c, device, dtype, capacity):
        self.c, self.at = c, 0
        make = lambda *shape: torch.randn(*shape, device=device, dtype=dtype) * 0.02
        q, kv = c["heads"] * c["dim"], c["kv"] * c["dim"]
        self.embedding = make(c["vocab"], c["hidden"])
        self.head = self.embedding if c["tied"] else make(c["vocab"], c["hidden"])
        self.norm = torch.ones(c["hidden"], device=device, dtype=dtype)
        self.layers = [
            dict(qkv=make(q + 2 * kv, c["hidden"]), out=make(c["hidden"], q), gate_up=make(2 * c["inner"], c["hidden"]),
                 down=make(c["hidden"], c["inner"]), k=make(1, c["kv"], capacity, c["dim"]), v=make(1, c["kv"], capacity, c["dim"]))
            for _ in range(c["layers"])
        ]
        f = THETA ** (-torch.arange(0, c["dim"], 2, device=device).float() / c["dim"])
        angle = torch.outer(torch.arange(capacity, device=device).float(), torch.cat([f, f]))
        self.cos, self.sin = angle.cos().to(dtype), angle.sin().to(dtype)

    def turn(self, x, n):
        a, b = x.chunk(2, -1)
        return x * self.cos[self.at:self.at + n] + torch.cat([-b, a], -1) * self.sin[self.at:self.at + n]

    def attend(self, layer, x, n):
        c = self.c
        q, k, v = F.linear(x, layer["qkv"]).view(1, n, -1, c["dim"]).transpose(1, 2).split([c["heads"], c["kv"], c["kv"]], 1)
        end = self.at + n
        layer["k"][:, :, self.at:end] = self.turn(k, n)
        layer["v"][:, :, self.at:end] = v
        y = F.scaled_dot_product_attention(self.turn(q, n), layer["k"][:, :, :end], layer["v"][:, :, :end],
                                           is_causal=n > 1, enable_gqa=True)
        return F.linear(y.transpose(1, 2).reshape(1, n, -1), layer["out"])

    def __call__(self, ids):
        n = ids.shape[1]
        x = F.embedding(ids, self.embedding)
        rms = lambda x: F.rms_norm(x, (self.c["hidden"],), self.norm, EPS)
        for layer in self.layers:
            x = x + self.attend(layer, rms(x), n)
            gate, up = F.linear(rms(x), layer["gate_up"]).chunk(2, -1)
            x = x + F.linear(F.silu(gate) * up, layer["down"])
        self.at += n
        return F.linear(rms(x[:, -1:]), self.head)

    def restart(self):
        self.at = 0


class Transformers:
    """transformers' LlamaForCausalLM."""

    def __init__(self, c, device, dtype, capacity):
        from transformers import LlamaConfig, LlamaForCausalLM

        config = LlamaConfig(hidden_size=c["hidden"], intermediate_size=c["inner"], num_hidden_layers=c["layers"],
                             num_attention_heads=c["heads"], num_key_value_heads=c["kv"], vocab_size=c["vocab"],
                             head_dim=c["dim"], rope_theta=THETA, rms_norm_eps=EPS, tie_word_embeddings=c["tied"],
                             max_position_embeddings=capacity, attn_implementation="sdpa")
        before = torch.get_default_dtype()
        torch.set_default_dtype(dtype)
        with torch.device(device):
            self.model = LlamaForCausalLM(config).eval()
        torch.set_default_dtype(before)
        self.past = None

    def __call__(self, ids):
        out = self.model(ids, past_key_values=self.past, use_cache=True, logits_to_keep=1)
        self.past = out.past_key_values
        return out.logits

    def restart(self):
        self.past = None


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("size", nargs="?", default="8b", choices=SIZES)
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--dtype", default="bf16", choices=["f32", "f16", "bf16"])
    parser.add_argument("--prompt-tokens", type=int, default=2048)
    parser.add_argument("--tokens", type=int, default=128)
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--plain", action="store_true")
    a = parser.parse_args()
    dtype = {"f32": torch.float32, "f16": torch.float16, "bf16": torch.bfloat16}[a.dtype]
    c, kind = SIZES[a.size], Plain
    if not a.plain:
        try:
            import transformers  # noqa: F401

            kind = Transformers
        except ImportError:
            pass
    sync = torch.cuda.synchronize if a.device.startswith("cuda") else lambda: None
    with torch.inference_mode():
        model = kind(c, a.device, dtype, a.prompt_tokens + a.tokens)
        prompt = (torch.arange(a.prompt_tokens, device=a.device) * 7919 % c["vocab"])[None]
        for _ in range(a.repeat):
            model.restart()
            sync()
            start = time.perf_counter()
            token = model(prompt)[:, -1].argmax(-1, keepdim=True)
            token.item()
            first = time.perf_counter()
            for _ in range(a.tokens - 1):
                token = model(token)[:, -1].argmax(-1, keepdim=True)
                token.item()
            end = time.perf_counter()
            print(json.dumps(dict(library=kind.__name__.lower(), size=a.size, dtype=a.dtype, prompt_tokens=a.prompt_tokens,
                                  prompt_ms=round((first - start) * 1e3, 3),
                                  ms_per_token=round((end - first) * 1e3 / max(a.tokens - 1, 1), 4))), flush=True)


if __name__ == "__main__":
    main()
