#!/usr/bin/env python3
"""make.py: writes the tiny language models of this folder with what the references make of them. usage: make.py [NAME...]

Each folder is a model as Hugging Face lays it out, with random weights and a tokenizer trained on a few lines, and beside it
    reference.safetensors   ids, hidden states between the layers, logits and greedily generated tokens, in f32
    tokens.json             texts and their tokens
Needs torch, transformers, tokenizers and safetensors.
"""
import json
import os
import random
import shutil
import sys

import torch
from safetensors.torch import save_file
from tokenizers import Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers
from transformers import LlamaConfig, LlamaForCausalLM, MistralConfig, MistralForCausalLM
from transformers import Qwen2Config, Qwen2ForCausalLM, Qwen3Config, Qwen3ForCausalLM

HERE = os.path.dirname(os.path.abspath(__file__))
TAIL = r"| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
HEAD = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|"
LLAMA3, QWEN2 = HEAD + r"\p{N}{1,3}" + TAIL, HEAD + r"\p{N}" + TAIL
CORPUS = ["The wick of a candle carries the wax to the flame. It's what they're for; we'll see that it doesn't drown.",
          "In 1823 the chemist Michel Chevreul took fat apart, and by 1825 candles were made of stearin.",
          "Der Docht zieht das flüssige Wachs nach oben. 蜡烛的芯 把 蜡 带 到 火焰。 Фитиль свечи горит ровно.",
          "    if (n == 0)\n        return  WK_OK;\n\t/* 100 000 candles, 12345 wicks */\r\n", "naïve café Ångström 🙂🕯️"]

# ---- tokenizers ----


def byte_level(pre, normalizer=None, size=400, special=(), bos=None, ignore_merges=False):
    t = Tokenizer(models.BPE(ignore_merges=ignore_merges))
    if normalizer:
        t.normalizer = normalizer
    t.pre_tokenizer = pre
    t.decoder = decoders.ByteLevel()
    t.train_from_iterator(CORPUS * 3, trainers.BpeTrainer(vocab_size=size, initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
                                                          show_progress=False))
    t.add_special_tokens(list(special))
    t.add_tokens(["<tool>", "wax paper"])
    parts = [processors.ByteLevel(trim_offsets=False)]
    if bos:
        parts.append(processors.TemplateProcessing(single=bos + " $A", special_tokens=[(bos, t.token_to_id(bos))]))
    t.post_processor = processors.Sequence(parts) if bos else parts[0]
    return t


def split(regex):
    return pre_tokenizers.Sequence([pre_tokenizers.Split(Regex(regex), "isolated"),
                                    pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)])


def sentence_piece(metaspace):
    """A BPE over letters with tokens for bytes, as SentencePiece's are converted."""
    spaced = [("▁" + line).replace(" ", "▁") for line in CORPUS]
    trained = Tokenizer(models.BPE())
    trained.pre_tokenizer = pre_tokenizers.Split("▁", "merged_with_next")
    trained.train_from_iterator(spaced, trainers.BpeTrainer(vocab_size=170, show_progress=False))
    inner = json.loads(trained.to_str())["model"]
    first = ["<unk>", "<s>", "</s>"] + ["<0x%02X>" % i for i in range(256)]
    vocab = first + [w for w, _ in sorted(inner["vocab"].items(), key=lambda x: x[1])]
    merges = [tuple(m) for m in inner["merges"]]
    t = Tokenizer(models.BPE(vocab={w: i for i, w in enumerate(vocab)}, merges=merges, unk_token="<unk>", fuse_unk=True,
                             byte_fallback=True))
    if metaspace:
        t.pre_tokenizer = pre_tokenizers.Metaspace(replacement="▁", prepend_scheme="first", split=False)
    else:
        t.normalizer = normalizers.Sequence([normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")])
    t.decoder = decoders.Sequence([decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse(), decoders.Strip(" ", 1, 0)])
    t.post_processor = processors.TemplateProcessing(single="<s> $A", special_tokens=[("<s>", 1)])
    t.add_special_tokens(["<unk>", "<s>", "</s>"])
    return t


# ---- texts ----

TEXTS = ["", " ", "  ", "a", "Hello, world!", "It's he'll THEY'RE we'Ve I'M 'ſ 'T 's", "1 12 123 1234 12345 1234567 ½ ⅷ ٣٤٥ 𝟙𝟚",
         "   leading", "trailing   ", "a  b   c    d", "\n", "\n\n\n", "a\n\n  b \n c\r\n\r\nd\t\te \t f", "\u00a0\u2003\u3000x\u2028y\u0085z",
         "!!!...\n\n?", " ??\r\nx", "x=1;y+=2//z\n", "\x00\x01\x02\x1b[31mred\x7f\ufeff", "\U0001F469\u200d\U0001F469\u200d\U0001F467\u200d\U0001F466 \U0001F1E9\U0001F1EA \U0001F64B\U0001F3FD",
         "日本語テキスト、漢字とかな。", "مرحبا بالعالم", "नमस्ते दुनिया", "e\u0301 \u212b \u1100\u1161\u11a8 q\u0323\u0307 q\u0307\u0323 \u0958 \u1e9b\u0323 \ufb01", "\u0301\u0301 a\u0300\u0301\u0302",
         "<s>text</s> <|end|>x<|end|> <tool>a<tool > wax paper  waxpaper", "<|begin|><|begin|> hi <unk>", "▁▁a▁ b", "naïve café", "ẞßſ", "a" * 200, " " * 200, "ab" * 99,
         "the the the theatre", "🕯️🕯️", "\u200b\u200d\u2060", "𠀀𠮷", "\uffff\U0010ffff", "x\u0000y"]
POOL = [*"abcdeXYZ '’.,;!?-_/0123456789\n\r\t  ", "'s", "'LL", "é", "e\u0301", "ß", "ж", "中", "한", "\u1112\u1161\u11ab", "\u0327", "\u0323", "🙂", "\u200d", "\u00a0", "\u3000", "\x07",
        "<s>", "</s>", "<|end|>", "<tool>", "▁", "the", " wick", "ſ", "²", "٣"]
LONG = [("a", 100000), (" ", 100000), ("\n ", 50000), ("The wick's 12345 candles…\n", 4000), ("\u0301\u0323", 25000), ("'", 100000), ("<", 100000), ("🙂é中 ", 9000), ("1", 100000)]


def fnv(ids):
    h = 0xCBF29CE484222325
    for i in ids:
        for byte in i.to_bytes(4, "little"):
            h = (h ^ byte) * 0x100000001B3 & (1 << 64) - 1
    return "%016x" % h


def write_tokens(t, path):
    rng = random.Random(7)
    texts = TEXTS + CORPUS + ["".join(rng.choice(POOL) for _ in range(rng.randint(1, 24))) for _ in range(150)]
    cases = []
    for text in texts:
        ids = t.encode(text).ids
        cases.append(dict(text=text, ids=ids, decoded=t.decode(ids, skip_special_tokens=True)))
    for text, times in LONG:
        ids = t.encode(text * times, add_special_tokens=False).ids
        cases.append(dict(text=text, times=times, count=len(ids), hash=fnv(ids)))
    with open(path, "w") as f:
        f.write("[\n" + ",\n".join(json.dumps(c, ensure_ascii=False, separators=(",", ":")) for c in cases) + "\n]\n")


# ---- models ----

SMALL = dict(hidden_size=48, intermediate_size=80, num_attention_heads=4, num_key_value_heads=2, num_hidden_layers=3,
             initializer_range=0.15, max_position_embeddings=256, rms_norm_eps=1e-5, pad_token_id=None)
THETA = dict(rope_type="default", rope_theta=10000.0)

MODELS = {
    "llama3": (LlamaForCausalLM, LlamaConfig, torch.bfloat16, dict(tie_word_embeddings=False, rope_parameters=dict(
        rope_type="llama3", rope_theta=500.0, factor=8.0, low_freq_factor=1.0, high_freq_factor=4.0, original_max_position_embeddings=24)),
        lambda: byte_level(split(LLAMA3), special=["<|begin|>", "<|end|>"], bos="<|begin|>", ignore_merges=True), "<|end|>"),
    "llama2": (LlamaForCausalLM, LlamaConfig, torch.float16, dict(attention_bias=True, mlp_bias=True, tie_word_embeddings=False,
        rope_parameters=dict(rope_type="linear", rope_theta=10000.0, factor=2.5)), lambda: sentence_piece(False), "</s>"),
    "mistral": (MistralForCausalLM, MistralConfig, torch.float32, dict(sliding_window=8, rope_parameters=THETA),
        lambda: sentence_piece(True), "</s>"),
    "qwen2": (Qwen2ForCausalLM, Qwen2Config, torch.bfloat16, dict(tie_word_embeddings=True, use_sliding_window=True, sliding_window=6,
        max_window_layers=1, rope_parameters=THETA), lambda: byte_level(split(QWEN2), normalizers.NFC(), special=["<|end|>"]), "<|end|>"),
    "qwen3": (Qwen3ForCausalLM, Qwen3Config, torch.float32, dict(head_dim=20, tie_word_embeddings=False, rope_parameters=THETA),
        lambda: byte_level(pre_tokenizers.ByteLevel(add_prefix_space=False), special=["<|end|>"]), "<|end|>"),
}
PROMPT, NEW = 29, 24


def make_weights(model, dtype):
    """Random everywhere, norms and biases too, and exact in the dtype of the file."""
    with torch.no_grad():
        for name, p in model.named_parameters():
            if name.endswith("norm.weight"):
                p.copy_(1 + 0.2 * torch.randn_like(p))
            elif name.endswith("bias"):
                p.copy_(0.2 * torch.randn_like(p))
            p.copy_(p.to(dtype).float())


def save_weights(model, dtype, folder, shards):
    tensors = {k: v.to(dtype).contiguous() for k, v in model.state_dict().items()}
    if model.config.tie_word_embeddings:
        tensors.pop("lm_head.weight", None)
    names = sorted(tensors)
    if shards == 1:
        save_file(tensors, folder + "/model.safetensors", metadata=dict(format="pt"))
        return
    index = {}
    for i in range(shards):
        name = "model-%05d-of-%05d.safetensors" % (i + 1, shards)
        part = names[i::shards]
        save_file({k: tensors[k] for k in part}, folder + "/" + name, metadata=dict(format="pt"))
        index.update({k: name for k in part})
    with open(folder + "/model.safetensors.index.json", "w") as f:
        json.dump(dict(metadata=dict(total_size=0), weight_map=index), f, indent=1)


def generate(model, ids):
    """Greedy tokens, each with how far the best is ahead of the second."""
    tokens, margins = list(ids), []
    for _ in range(NEW):
        logits = model(torch.tensor([tokens])).logits[0, -1]
        two = logits.topk(2)
        margins.append((two.values[0] - two.values[1]).item())
        tokens.append(two.indices[0].item())
    return tokens[len(ids):], min(margins)


def make_model(name):
    kind, config, dtype, extra, tokenizer, eos = MODELS[name]
    folder = HERE + "/" + name
    shutil.rmtree(folder, ignore_errors=True)
    os.makedirs(folder)
    t = tokenizer()
    t.save(folder + "/tokenizer.json", pretty=False)
    write_tokens(t, folder + "/tokens.json")
    vocab = t.get_vocab_size() + 5
    end = t.token_to_id(eos)
    c = config(**{**SMALL, "vocab_size": vocab, "eos_token_id": end, "bos_token_id": None, **extra})
    c._attn_implementation = "eager"
    for seed in range(100):
        torch.manual_seed(seed)
        model = kind(c).float().eval()
        make_weights(model, dtype)
        ids = torch.randint(0, vocab, (PROMPT,)).tolist()
        with torch.inference_mode():
            new, margin = generate(model, ids)
            if margin < 0.02 or len(set(new)) < 8 or end in new:
                continue
            out = model(torch.tensor([ids]), output_hidden_states=True)
            rows = {"ids": torch.tensor(ids), "generated": torch.tensor(new), "logits": out.logits[0].contiguous()}
            for i, h in enumerate(out.hidden_states):
                rows["hidden.%d" % i] = h[0].contiguous()
            break
    else:
        raise SystemExit(name + ": no seed with a clear choice of tokens")
    save_weights(model, dtype, folder, 3 if name == "mistral" else 1)
    save_file(rows, folder + "/reference.safetensors")
    c.dtype = dtype
    c.architectures = [kind.__name__]
    with open(folder + "/config.json", "w") as f:
        f.write(c.to_json_string())
    print("%s: seed %d, vocabulary %d, least margin %.3f" % (name, seed, vocab, margin))


with torch.no_grad():
    for name in sys.argv[1:] or MODELS:
        make_model(name)
