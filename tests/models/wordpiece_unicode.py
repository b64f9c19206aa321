#!/usr/bin/env python3
"""Writes wordpiece_unicode.h: what BERT's tokenizer knows of Unicode, asked of the reference (pip install tokenizers).

usage: wordpiece_unicode.py > wordpiece_unicode.h
"""
import unicodedata

from tokenizers.normalizers import BertNormalizer
from tokenizers.pre_tokenizers import BertPreTokenizer

OFF = dict(clean_text=False, handle_chinese_chars=False, strip_accents=False, lowercase=False)
HANGUL = range(0xAC00, 0xD7A4)  # taken apart by arithmetic
ALL = [c for c in range(0x110000) if not 0xD800 <= c < 0xE000]


def normalizer(**on):
    return BertNormalizer(**{**OFF, **on}).normalize_str


def ranges(chosen):
    found = []
    for c in chosen:
        if found and found[-1][1] == c - 1:
            found[-1][1] = c
        else:
            found.append([c, c])
    return found


def table(comment, name, kind, rows):
    print(f"\n/* {comment} */\nstatic const {kind} {name}[] = {{")
    line = "   "
    for row in rows:
        item = " {" + ", ".join(f"0x{v:X}" if v >= 0 else f"-0x{-v:X}" for v in row) + "},"
        if len(line) + len(item) > 109:
            print(line)
            line = "   "
        line += item
    print(line + "\n};")


def shifts(mapping):
    """Runs of code points, each one or each second, that are moved by the same number."""
    runs = []
    for c, to in mapping:
        last = runs[-1] if runs else None
        if last and last[3] == to - c and c - last[1] in (1, 2) and last[2] in (0, c - last[1]):
            last[2], last[1] = c - last[1], c
        else:
            runs.append([c, c, 0, to - c])
    return [[a, b, max(step, 1), by] for a, b, step, by in runs]


def main():
    clean, cjk = normalizer(clean_text=True), normalizer(handle_chinese_chars=True)
    strip, lower = normalizer(strip_accents=True), normalizer(lowercase=True)
    split = BertPreTokenizer().pre_tokenize_str
    cleaned = {c: clean(f"a{chr(c)}a") for c in ALL}
    parts = {c: [word for word, _ in split(f"a{chr(c)}a")] for c in ALL}
    stripped = {c: strip(f"a{chr(c)}")[1:] for c in ALL if c not in HANGUL}
    moved = [(c, s) for c, s in stripped.items() if s and s != chr(c)]

    print("/* wordpiece_unicode.h: what BERT's tokenizer knows of Unicode. Written by tests/models/wordpiece_unicode.py. */")
    print("/* clang-format off */")
    span = "struct wm_span"
    print("\n/* From a code point to another, both included. */\nstruct wm_span {\n    uint32_t first, last;\n};")
    table("Control characters and the like: left out.", "removed_spans", span,
          ranges(c for c in ALL if cleaned[c] == "aa"))
    table("White space.", "space_spans", span, ranges(c for c in ALL if parts[c] == ["a", "a"]))
    table("Punctuation: a word of its own.", "punctuation_spans", span,
          ranges(c for c in ALL if parts[c] == ["a", chr(c), "a"]))
    table("Chinese characters: spaces are put around them.", "chinese_spans", span,
          ranges(c for c in ALL if cjk(chr(c)) != chr(c)))
    table("Accents: left out where accents are stripped.", "accent_spans", span,
          ranges(c for c, s in stripped.items() if not s))
    table("Letters and what they are without their accents.", "plain_letters", span,
          [(c, ord(s)) for c, s in moved if len(s) == 1])
    pairs = []
    for c, s in moved:
        if len(s) > 1:  # the first of the two may come apart again
            first, second = (int(x, 16) for x in unicodedata.decomposition(chr(c)).split())
            assert stripped[first] + stripped[second] == s
            pairs.append((c, first, second))
    print("\nstruct wm_pair {\n    uint32_t from, first, second;\n};")
    table("Letters that come apart into two.", "letter_pairs", "struct wm_pair", pairs)
    print("\n/* Code points first, first + step .. last move by so much. */")
    print("struct wm_shift {\n    uint32_t first, last, step;\n    int32_t by;\n};")
    lowered = [(c, lower(chr(c))) for c in ALL]
    table("Capital letters and the way to their small ones.", "small_shifts", "struct wm_shift",
          shifts([(c, ord(s)) for c, s in lowered if len(s) == 1 and s != chr(c)]))
    print("/* clang-format on */")


if __name__ == "__main__":
    main()
