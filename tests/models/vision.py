#!/usr/bin/env python3
"""Writes what tests/vision.c and tests/train.c compare with: small images and Pillow's pixels, tiny ResNets and a tiny
BERT with random weights and what torchvision's and transformers' own code gives for them layer by layer, tokens of
awkward texts, embeddings of MiniLM's real weights, and the gradients of the models that are trained.

Needs torch, torchvision, transformers, tokenizers, safetensors, pillow and numpy.
usage: vision.py [--minilm FOLDER] [PART...]     parts: images seeds tokens resnet bert minilm train
"""
import argparse
import io
import json
import os
import random
import struct
import zlib

import numpy as np

HERE = os.path.dirname(os.path.abspath(__file__))


def save(name, tensors):
    from safetensors.numpy import save_file

    path = os.path.join(HERE, name)
    os.makedirs(os.path.dirname(path), exist_ok=True)
    save_file({k: np.ascontiguousarray(v) for k, v in tensors.items()}, path)
    print(f"{name}: {os.path.getsize(path)} bytes")


def fnv(data):
    h = 2166136261
    for b in data:
        h = (h ^ b) * 16777619 & 0xFFFFFFFF
    return h


# ---- images ----


def picture(w, h, rng):
    y, x = np.mgrid[0:h, 0:w]
    a = np.stack([127 + 120 * np.sin(x / 7 + y / 11), 127 + 120 * np.cos(x / 5 - y / 9), (x * 3 + y * 2) % 256], -1)
    return np.clip(a + rng.normal(0, 6, (h, w, 3)), 0, 255).astype("u1")


def filtered(rows, step, rng):
    """The rows (bytes), each under one of the five filters."""
    out, above = b"", bytes(len(rows[0]))
    for i, row in enumerate(rows):
        kind, line = i % 5, bytearray()
        for k, v in enumerate(row):
            a = row[k - step] if k >= step else 0
            b, c = above[k], above[k - step] if k >= step else 0
            p = min((a, b, c), key=lambda q: abs(a + b - c - q))
            line.append((v - (0, a, b, (a + b) // 2, p)[kind]) & 255)
        out, above = out + bytes([kind]) + bytes(line), row
    return out


def packed(samples, depth):
    if depth == 16:
        return samples.astype(">u2").tobytes()
    bits = "".join(format(int(v), f"0{depth}b") for v in samples.reshape(-1))
    return int(bits.ljust((len(bits) + 7) // 8 * 8, "0"), 2).to_bytes((len(bits) + 7) // 8, "big")


def png(samples, depth, colour, interlaced, palette=None, cuts=3, level=9):
    """A PNG file of samples [h, w, channels] that may be interlaced and of any depth, its data in several chunks."""
    h, w, channels = samples.shape
    passes = [(0, 0, 8, 8), (4, 0, 8, 8), (0, 4, 4, 8), (2, 0, 4, 4), (0, 2, 2, 4), (1, 0, 2, 2), (0, 1, 1, 2)]
    raw = b""
    for x, y, dx, dy in passes if interlaced else [(0, 0, 1, 1)]:
        part = samples[y::dy, x::dx]
        if part.size:
            raw += filtered([packed(row, depth) for row in part], max(1, channels * depth // 8), None)

    def chunk(kind, data):
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    data = zlib.compress(raw, level)
    n = max(1, (len(data) + cuts - 1) // cuts)
    out = b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", w, h, depth, colour, 0, 0, interlaced))
    out += chunk(b"tEXt", b"Comment\0made for a test")
    if palette is not None:
        out += chunk(b"PLTE", palette.astype("u1").tobytes())
    for i in range(0, len(data), n):
        out += chunk(b"IDAT", data[i : i + n])
    return out + chunk(b"IEND", b"")


def png_files(rng):
    channels = {0: 1, 2: 3, 3: 1, 4: 2, 6: 4}
    for colour, depths in {0: (1, 2, 4, 8, 16), 2: (8, 16), 3: (1, 2, 4, 8), 4: (8, 16), 6: (8, 16)}.items():
        for depth in depths:
            for interlaced in (0, 1):
                w, h = (13, 11) if interlaced else (17, 9)
                samples = rng.integers(0, 1 << depth, (h, w, channels[colour]))
                palette = rng.integers(0, 256, (1 << depth, 3)) if colour == 3 else None
                name = f"c{colour}-d{depth}-i{interlaced}.png"
                yield name, png(samples, depth, colour, interlaced, palette, level=int(rng.integers(0, 10)))
    yield "one.png", png(np.zeros((1, 1, 3), int), 8, 2, 1)
    yield "flat.png", png(np.full((40, 300, 3), 7), 8, 2, 0)  # long repeats
    yield "photo.png", png(picture(61, 47, rng).astype(int), 8, 2, 0, level=6)


def jpeg_files(rng):
    from PIL import Image

    for w, h in ((33, 25), (16, 16), (3, 5)):
        for subsampling in (0, 1, 2):
            for progressive in (False, True):
                for restart in (0, 2):
                    out = io.BytesIO()
                    more = {"restart_marker_blocks": restart} if restart else {}
                    if w < 8 and (progressive or restart):
                        continue  # Pillow has no room to write these
                    Image.fromarray(picture(w, h, rng)).save(out, "JPEG", quality=85, subsampling=subsampling,
                                                             progressive=progressive, **more)
                    yield f"{w}x{h}-s{subsampling}-p{int(progressive)}-r{restart}.jpg", out.getvalue()
    for name, mode, more in (("grey", "L", {}), ("grey-p", "L", {"progressive": True}), ("rgb", "RGB", {"keep_rgb": True}),
                             ("q100", "RGB", {"quality": 100, "subsampling": 0}), ("q5", "RGB", {"quality": 5})):
        out = io.BytesIO()
        Image.fromarray(picture(29, 21, rng)).convert(mode).save(out, "JPEG", **more)
        yield f"{name}.jpg", out.getvalue()


def make_images():
    from PIL import Image

    rng = np.random.default_rng(11)
    tensors = {}
    files = [*png_files(rng), *jpeg_files(rng)]
    with open(os.path.join(HERE, "picture.jpg"), "wb") as f:
        f.write(dict(files)["33x25-s2-p0-r0.jpg"])
    for name, data in files:
        image = Image.open(io.BytesIO(data))
        if image.mode.startswith("I"):  # 16-bit grey: the high byte, as Pillow takes it of colours
            pixels = np.repeat((np.asarray(image).astype("i4") >> 8).astype("u1")[..., None], 3, 2)
        else:
            pixels = np.asarray(image.convert("RGB"))
        tensors[name] = np.frombuffer(data, "u1")
        tensors[name + ".rgb"] = pixels
    for name, (w, h) in {"wide": (97, 61), "tall": (40, 71), "up": (20, 23)}.items():
        image = Image.fromarray(picture(w, h, rng))
        small = (48, 48 * h // w) if w <= h else (48 * w // h, 48)
        resized = image.resize(small, Image.BILINEAR)
        left, top = (int(round((s - 40) / 2.0)) for s in small)
        x = np.asarray(resized.crop((left, top, left + 40, top + 40))).astype("f4") / np.float32(255)
        x = (x - np.float32([0.485, 0.456, 0.406])) / np.float32([0.229, 0.224, 0.225])
        tensors[f"prepare.{name}"] = np.asarray(image)
        tensors[f"prepare.{name}.expect"] = x.transpose(2, 0, 1).astype("f4")
    save("images.safetensors", tensors)


def make_seeds():
    """Small files for the fuzzer to begin with, as C."""
    from PIL import Image

    rng = np.random.default_rng(3)
    files = [png(rng.integers(0, 2, (5, 5, 1)), 1, 0, 1), png(rng.integers(0, 4, (3, 6, 1)), 2, 3, 0, rng.integers(0, 256, (4, 3))),
             png(rng.integers(0, 65536, (3, 3, 4)), 16, 6, 1), png(np.full((9, 70, 3), 9), 8, 2, 0, cuts=2)]
    for mode, size, more in (("L", 8, {}), ("RGB", 17, {"subsampling": 2}), ("RGB", 16, {"subsampling": 1, "progressive": True}),
                             ("L", 24, {"progressive": True, "restart_marker_blocks": 2}),
                             ("RGB", 16, {"subsampling": 0, "restart_marker_blocks": 1})):
        out = io.BytesIO()
        Image.fromarray(picture(size, size, rng)).convert(mode).save(out, "JPEG", quality=60, optimize=True, **more)
        files.append(out.getvalue())
    with open(os.path.join(HERE, "..", "fuzz_image_seeds.h"), "w") as f:
        f.write("/* fuzz_image_seeds.h: small PNG and JPEG files. Written by tests/models/vision.py seeds. */\n"
                "/* clang-format off */\n")
        for i, data in enumerate(files):
            f.write(f"#define SEED_{i} \\\n")
            rows = [data[k : k + 27] for k in range(0, len(data), 27)]
            f.write(" \\\n".join('    "' + "".join(f"\\x{b:02x}" for b in row) + '"' for row in rows) + "\n")
        f.write("/* clang-format on */\n")


# ---- tokens ----

TEXTS = ["", "Hello, World!", "  \t\n x", "[CLS] a [SEP]b[MASK]c [sep] [SEP", "don't stop—believin’…",
         "Ünïcödé naïve café İstanbul ǅ ẞ ΣΑΣ", "你好，世界 abc中文def", "\u200b\u200dzero\u00adwidth\ufeff",
         "👩‍👩‍👧‍👦 🇩🇪 ☃️ 🏳️‍🌈", "a" * 100, "a" * 101, "b" * 250 + " ok", "\x01\x7f\x85\xa0\u2028 x", "한국어 텍스트 각",
         "हिन्दी বাংলা தமிழ்", "مرحبا بالعالم", "e\u0301\u0323 o\u0308\u0304", "①②½ﬁ ™ ℃", "$100+5=105 <b>x</b> `~^|",
         "\ufffd \ud7ff \ue000 \U0010ffff", "x" * 99 + "é", "ﷺ \u1e9b\u0323 \u0345",
         "1,000.50 U.S.A. e-mail@x.org http://a.b/c?d=e&f", "The quick brown fox jumps over the lazy dog.",
         "A cat sits on the mat.", "A kitten is sitting.", "Stocks fell sharply today.", "Отличный день, Ёжик!",
         "Tiếng Việt có dấu", "Ελληνικά γράμματα", "ａｂｃ １２３", "line\r\nline\rline\u2029end"]


def train_tokenizer():
    from tokenizers import BertWordPieceTokenizer

    t = BertWordPieceTokenizer(lowercase=True)
    t.train_from_iterator(TEXTS * 3 + [__doc__] * 4, vocab_size=620, min_frequency=1, show_progress=False,
                          limit_alphabet=400)
    return t


def awkward_texts():
    random.seed(5)
    pools = [range(32, 127), range(0xA0, 0x250), range(0x300, 0x370), range(0x370, 0x530), range(0x4E00, 0x4F00),
             range(0xAC00, 0xAD00), range(0x1F300, 0x1F700), range(0x2000, 0x2100), range(1, 32), range(0x900, 0xE00)]
    texts = list(TEXTS)
    for _ in range(200):
        s = ""
        for _ in range(random.randrange(1, 12)):
            pool = random.choice(pools)
            s += "".join(chr(random.choice(pool)) for _ in range(random.randrange(1, 12)))
            if random.random() < 0.3:
                s += random.choice([" ", "  ", "\n", "[SEP]", "[MASK]", "the ", "ing"])
        texts.append(s)
    return texts


def normalised_sums():
    """Of every code point between two letters: what each way of cleaning makes of it."""
    from tokenizers.normalizers import BertNormalizer
    from tokenizers.pre_tokenizers import BertPreTokenizer

    points = [c for c in range(1, 0x110000) if not 0xD800 <= c < 0xE000]
    sums = []
    for strip in (False, True):
        for lower in (False, True):
            n = BertNormalizer(clean_text=True, handle_chinese_chars=True, strip_accents=strip, lowercase=lower)
            sums.append(fnv("".join(n.normalize_str(chr(c)) for c in points).encode()))
    split = BertPreTokenizer().pre_tokenize_str
    sums.append(fnv(bytes(len(split(f"a{chr(c)}a")) for c in points)))
    return sums


def make_tokens():
    from tokenizers.processors import BertProcessing

    t = train_tokenizer()
    t.post_processor = BertProcessing(("[SEP]", t.token_to_id("[SEP]")), ("[CLS]", t.token_to_id("[CLS]")))
    os.makedirs(os.path.join(HERE, "bert"), exist_ok=True)
    t.save(os.path.join(HERE, "bert", "tokenizer.json"), pretty=False)
    texts = awkward_texts()
    joined = " ".join(texts)
    texts.append(joined * (100_000 // len(joined.encode()) + 1))  # kept as a sum only
    raw = [s.encode() for s in texts]
    ids = [t.encode(s).ids for s in texts]
    save("tokens.safetensors", {
        "texts": np.frombuffer(b"".join(raw[:-1]), "u1"),
        "text_sizes": np.array([len(r) for r in raw[:-1]], "i4"),
        "ids": np.array([i for one in ids[:-1] for i in one], "i4"),
        "id_counts": np.array([len(i) for i in ids[:-1]], "i4"),
        "long": np.array([len(raw[-1]), len(ids[-1]), fnv(np.array(ids[-1], "<i4").tobytes())], "u4"),
        "sums": np.array(normalised_sums(), "u4"),
    })


# ---- models ----


def make_resnet():
    import torch
    from torchvision.models.resnet import BasicBlock, Bottleneck

    class Tiny(torch.nn.Module):
        """torchvision's ResNet with other widths."""

        def __init__(self, block, blocks, planes, groups):
            super().__init__()
            self.conv1 = torch.nn.Conv2d(3, planes[0], 7, 2, 3, bias=False)
            self.bn1 = torch.nn.BatchNorm2d(planes[0])
            channels = planes[0]
            for s, (count, width) in enumerate(zip(blocks, planes)):
                layers = []
                for i in range(count):
                    stride, out = 2 if s > 0 and i == 0 else 1, width * block.expansion
                    short = None
                    if stride > 1 or channels != out:
                        short = torch.nn.Sequential(torch.nn.Conv2d(channels, out, 1, stride, bias=False),
                                                    torch.nn.BatchNorm2d(out))
                    layers.append(block(channels, width, stride, short, groups, 64 if groups == 1 else 64 * 2))
                    channels = out
                setattr(self, f"layer{s + 1}", torch.nn.Sequential(*layers))
            self.fc = torch.nn.Linear(channels, 10)

        def forward(self, x, seen):
            x = seen("conv1", torch.relu(self.bn1(self.conv1(x))))
            x = torch.nn.functional.max_pool2d(x, 3, 2, 1)
            for s in range(1, 5):
                for i, block in enumerate(getattr(self, f"layer{s}")):
                    x = seen(f"layer{s}.{i}", block(x))
            return seen("fc", self.fc(seen("avgpool", x.mean((2, 3)))))

    torch.manual_seed(2)
    for name, block, blocks, planes, groups in (("basic", BasicBlock, (1, 2, 1, 1), (6, 8, 12, 16), 1),
                                                ("bottleneck", Bottleneck, (1, 1, 2, 1), (4, 4, 8, 8), 2)):
        m = Tiny(block, blocks, planes, groups).eval()
        for module in m.modules():
            if isinstance(module, torch.nn.BatchNorm2d):
                torch.nn.init.uniform_(module.weight, 0.5, 1.5)
                torch.nn.init.normal_(module.bias, 0, 0.3)
                torch.nn.init.normal_(module.running_mean, 0, 0.3)
                torch.nn.init.uniform_(module.running_var, 0.5, 2)
        expect = {"x": torch.randn(2, 3, 45, 50).numpy()}

        def seen(where, y):
            expect[where] = y.detach().numpy()
            return y

        with torch.no_grad():
            m(torch.from_numpy(expect["x"]), seen)
        save(f"resnet-{name}.safetensors", {k: v.numpy() for k, v in m.state_dict().items()})
        save(f"resnet-{name}.expect.safetensors", expect)


def encode(texts, t, limit):
    ids = [t.encode(s).ids for s in texts]
    ids = [i if len(i) <= limit else i[: limit - 1] + i[-1:] for i in ids]
    n = max(map(len, ids))
    return (np.array([i + [0] * (n - len(i)) for i in ids], "i8"),
            np.array([[1] * len(i) + [0] * (n - len(i)) for i in ids], "i8"))


def sentence(model, ids, mask):
    """Hidden states of every layer, and the mean of the last one's tokens, made of length 1."""
    import torch

    with torch.no_grad():
        states = model(torch.from_numpy(ids), torch.from_numpy(mask), output_hidden_states=True).hidden_states
    m = torch.from_numpy(mask)[..., None].float()
    mean = (states[-1] * m).sum(1) / m.sum(1)
    return [s.numpy() for s in states], torch.nn.functional.normalize(mean, dim=1).numpy()


def text_tensors(texts):
    raw = [s.encode() for s in texts]
    return {"texts": np.frombuffer(b"".join(raw), "u1"), "text_sizes": np.array([len(r) for r in raw], "i4")}


def make_bert():
    import torch
    from tokenizers import Tokenizer
    from transformers import BertConfig, BertModel

    t = Tokenizer.from_file(os.path.join(HERE, "bert", "tokenizer.json"))
    torch.manual_seed(4)
    m = BertModel(BertConfig(vocab_size=t.get_vocab_size(), hidden_size=32, num_hidden_layers=2,
                             num_attention_heads=4, intermediate_size=64, max_position_embeddings=48,
                             initializer_range=0.3), add_pooling_layer=False).eval()
    for name, p in m.named_parameters():
        if name.endswith("bias") or "LayerNorm" in name:
            torch.nn.init.normal_(p, 1 if name.endswith("LayerNorm.weight") else 0, 0.2)
    m.save_pretrained(os.path.join(HERE, "bert"))
    texts = [TEXTS[i] for i in (1, 5, 6, 8, 23, 24, 25, 26, 0, 22)]
    ids, mask = encode(texts, t, 48)
    states, embedding = sentence(m, ids, mask)
    expect = {"ids": ids.astype("i4"), "mask": mask.astype("u1"), "embedding": embedding, **text_tensors(texts)}
    for i, s in enumerate(states):
        expect[f"hidden.{i}"] = s
    save("bert.expect.safetensors", expect)


def make_minilm(folder):
    import torch
    from tokenizers import Tokenizer
    from transformers import BertModel

    t = Tokenizer.from_file(os.path.join(folder, "tokenizer.json"))
    t.no_truncation()
    t.no_padding()
    m = BertModel.from_pretrained(folder).eval()
    texts = [s for s in TEXTS if "\0" not in s] + ["word " * 400]
    ids, mask = encode(texts, t, 256)
    save("minilm.expect.safetensors", {"embedding": sentence(m, ids, mask)[1], **text_tensors(texts)})


# ---- training ----


def record_training(name, parts, loss_of, inputs):
    """Parameters, the loss, every gradient, and the losses of three steps of AdamW on the same batch."""
    import torch

    model = torch.nn.ModuleDict(parts)
    tensors = {f"value.{k}": v.detach().numpy().copy() for k, v in model.named_parameters()}
    optimizer, losses = torch.optim.AdamW(model.parameters(), lr=0.01), []
    for step in range(4):
        optimizer.zero_grad()
        loss = loss_of(model)
        loss.backward()
        losses.append(loss.item())
        if step == 0:
            tensors.update({f"grad.{k}": v.grad.numpy().copy() for k, v in model.named_parameters()})
        optimizer.step()
    save(name, {**tensors, **{k: v.numpy() for k, v in inputs.items()}, "losses": np.array(losses, "f4")})


def make_train():
    import torch
    from torch.nn import LSTM, Conv2d, Linear
    from torch.nn import functional as F

    torch.manual_seed(6)
    x, labels = torch.randn(5, 1, 20, 20), torch.randint(0, 10, (5,), dtype=torch.int32)

    def cnn(m):
        y = F.max_pool2d(F.relu(m["conv1"](x)), 2)
        y = F.max_pool2d(F.relu(m["conv2"](y)), 2)
        return F.cross_entropy(m["linear2"](F.relu(m["linear1"](y.flatten(1)))), labels.long())

    record_training("train-cnn.safetensors", {"conv1": Conv2d(1, 8, 5, padding=2), "conv2": Conv2d(8, 16, 5),
                                              "linear1": Linear(144, 64), "linear2": Linear(64, 10)},
                    cnn, {"x": x, "labels": labels})

    lines = torch.randn(56, 3, 12)
    widths, counts = torch.tensor([56, 31, 44], dtype=torch.int32), torch.tensor([5, 2, 4], dtype=torch.int32)
    digits = torch.randint(1, 11, (3, 5), dtype=torch.int32)

    def ctc(m):
        packed = torch.nn.utils.rnn.pack_padded_sequence(lines, widths.long(), enforce_sorted=False)
        y, _ = torch.nn.utils.rnn.pad_packed_sequence(m["lstm"](packed)[0], total_length=56)
        logits = F.log_softmax(m["linear"](y), -1)
        return F.ctc_loss(logits, digits.long(), widths.long(), counts.long(), reduction="none").mean()

    record_training("train-ctc.safetensors", {"lstm": LSTM(12, 40, bidirectional=True), "linear": Linear(80, 11)}, ctc,
                    {"x": lines, "widths": widths, "labels": digits, "counts": counts})


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--minilm")
    parser.add_argument("parts", nargs="*")
    args = parser.parse_args()
    for part in args.parts or ["images", "seeds", "tokens", "resnet", "bert", "train"]:
        if part == "minilm":
            make_minilm(args.minilm)
        else:
            globals()[f"make_{part}"]()


if __name__ == "__main__":
    main()
