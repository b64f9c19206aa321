#!/usr/bin/env python3
"""torch_models.py: PyTorch, eager, on what `wick run resnet --random` and `wick run bert --random` measure.

usage: torch_models.py [resnet50|resnet18|minilm|base ...] [--device cuda] [--dtype f16] [--batch N] [--tokens 128] [--seconds 2]

Uses torchvision and transformers where they are installed, otherwise (or with --plain) the same models in plain PyTorch. ResNets are
measured in both memory layouts. Prints one JSON object a case.
"""
import argparse
import json
import statistics
import time

import torch
import torch.nn.functional as F
from torch import nn

BERTS = {"minilm": dict(layers=6, hidden=384, heads=12, inner=1536), "base": dict(layers=12, hidden=768, heads=12, inner=3072)}


class Block(nn.Module):
    """A ResNet's block: two convolutions of 3 x 3, or 1 x 1, 3 x 3, 1 x 1."""

    def __init__(self, channels, width, stride, deep):
        super().__init__()
        sizes = [(1, width, 1), (3, width, stride), (1, 4 * width, 1)] if deep else [(3, width, stride), (3, width, 1)]
        self.layers, before = nn.ModuleList(), channels
        for k, out, step in sizes:
            self.layers.append(nn.Sequential(nn.Conv2d(before, out, k, step, k // 2, bias=False), nn.BatchNorm2d(out)))
            before = out
        self.short = None
        if stride > 1 or channels != before:
            self.short = nn.Sequential(nn.Conv2d(channels, before, 1, stride, bias=False), nn.BatchNorm2d(before))
        self.channels = before

    def forward(self, x):
        y = x
        for layer in self.layers[:-1]:
            y = F.relu(layer(y), inplace=True)
        return F.relu(self.layers[-1](y) + (self.short(x) if self.short else x), inplace=True)


def plain_resnet(depth):
    deep, counts = {18: (False, (2, 2, 2, 2)), 50: (True, (3, 4, 6, 3))}[depth]
    layers = [nn.Conv2d(3, 64, 7, 2, 3, bias=False), nn.BatchNorm2d(64), nn.ReLU(inplace=True), nn.MaxPool2d(3, 2, 1)]
    channels = 64
    for stage, count in enumerate(counts):
        for i in range(count):
            layers.append(Block(channels, 64 << stage, 2 if stage and not i else 1, deep))
            channels = layers[-1].channels
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(channels, 1000))


def make_resnet(depth, plain):
    if not plain:
        try:
            import torchvision

            return "torchvision", getattr(torchvision.models, f"resnet{depth}")(weights=None)
        except (ImportError, RuntimeError):
            pass
    return "plain", plain_resnet(depth)


class PlainBert(nn.Module):
    def __init__(self, layers, hidden, heads, inner):
        super().__init__()
        self.heads, self.hidden = heads, hidden
        self.words, self.positions, self.types = nn.Embedding(30522, hidden), nn.Embedding(512, hidden), nn.Embedding(2, hidden)
        self.norm = nn.LayerNorm(hidden, eps=1e-12)
        make = lambda: nn.ModuleDict(dict(q=nn.Linear(hidden, hidden), k=nn.Linear(hidden, hidden), v=nn.Linear(hidden, hidden),
                                          out=nn.Linear(hidden, hidden), norm1=nn.LayerNorm(hidden, eps=1e-12),
                                          up=nn.Linear(hidden, inner), down=nn.Linear(inner, hidden),
                                          norm2=nn.LayerNorm(hidden, eps=1e-12)))
        self.layers = nn.ModuleList(make() for _ in range(layers))

    def forward(self, ids):
        n, s = ids.shape
        place = torch.arange(s, device=ids.device)
        x = self.norm(self.words(ids) + self.positions(place) + self.types(torch.zeros_like(ids)))
        for layer in self.layers:
            q, k, v = (layer[name](x).view(n, s, self.heads, -1).transpose(1, 2) for name in "qkv")
            y = F.scaled_dot_product_attention(q, k, v).transpose(1, 2).reshape(n, s, self.hidden)
            x = layer["norm1"](x + layer["out"](y))
            x = layer["norm2"](x + layer["down"](F.gelu(layer["up"](x))))
        return x


def make_bert(name, plain):
    c = BERTS[name]
    if not plain:
        try:
            from transformers import BertConfig, BertModel

            config = BertConfig(hidden_size=c["hidden"], num_hidden_layers=c["layers"], num_attention_heads=c["heads"],
                                intermediate_size=c["inner"], attn_implementation="sdpa")
            model = BertModel(config, add_pooling_layer=False)
            return "transformers", lambda ids: model(ids).last_hidden_state, model
        except ImportError:
            pass
    model = PlainBert(**c)
    return "plain", model, model


def embed(hidden):
    """The mean of a text's tokens, made of length 1."""
    return F.normalize(hidden.float().mean(1), dim=1)


def measure(f, seconds, sync):
    """Median and least milliseconds of five stretches with one wait each, as `wick run` measures."""

    def stretch(n):
        start = time.perf_counter()
        for _ in range(n):
            f()
        sync()
        return (time.perf_counter() - start) / n * 1e3

    stretch(5)
    n = max(1, int(seconds * 1e3 / 5 / stretch(1)))
    ms = [stretch(n) for _ in range(5)]
    return statistics.median(ms), min(ms)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("names", nargs="*", default=["resnet50", "minilm"])
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--dtype", default="f16", choices=["f32", "f16", "bf16"])
    parser.add_argument("--batch", type=int)
    parser.add_argument("--tokens", type=int, default=128)
    parser.add_argument("--seconds", type=float, default=2)
    parser.add_argument("--plain", action="store_true")
    a = parser.parse_args()
    dtype = {"f32": torch.float32, "f16": torch.float16, "bf16": torch.bfloat16}[a.dtype]
    sync = torch.cuda.synchronize if a.device.startswith("cuda") else lambda: None
    for name in a.names or ["resnet50", "minilm"]:
        batch = a.batch or (64 if name.startswith("resnet") else 32)

        def report(library, layout, f):
            median, least = measure(f, a.seconds, sync)
            print(json.dumps(dict(model=name, library=library, layout=layout, device=a.device, dtype=a.dtype, batch=batch,
                                  ms=round(median, 4), ms_min=round(least, 4), per_second=round(batch * 1e3 / median, 1))),
                  flush=True)

        with torch.inference_mode():
            if name.startswith("resnet"):
                library, model = make_resnet(int(name[6:]), a.plain)
                for layout, form in (("nchw", torch.contiguous_format), ("nhwc", torch.channels_last)):
                    model = model.eval().to(a.device, dtype, memory_format=form)
                    x = torch.randn(batch, 3, 224, 224, device=a.device, dtype=dtype).contiguous(memory_format=form)
                    report(library, layout, lambda: model(x))
            else:
                library, forward, model = make_bert(name, a.plain)
                model.eval().to(a.device, dtype)
                ids = torch.randint(0, 30000, (batch, a.tokens), device=a.device)
                report(library, "", lambda: embed(forward(ids)))


if __name__ == "__main__":
    main()
