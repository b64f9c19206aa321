#!/usr/bin/env python3
"""unicode.py: writes models/unicode_table.h, the Unicode data that tokenizers need. usage: unicode.py > models/unicode_table.h

Classes of code points (letter, number, white space) and what NFC needs (combining classes, pairs). The data are those of the
Python that runs this: 3.14 has Unicode 16, as the regular expressions of the `tokenizers` library do.
"""
import unicodedata as u

SPACES = [*range(9, 14), 0x20, 0x85, 0xA0, 0x1680, *range(0x2000, 0x200B), 0x2028, 0x2029, 0x202F, 0x205F, 0x3000]
LAST = 0x110000
# Marks and pairs that are younger than the NFC of the `tokenizers` library: to it they are letters like others.
YOUNG = [(0x7FD, 0x7FD), (0x897, 0x89F), (0x8CA, 0x8D3), (0x9FE, 0x9FE), (0xC3C, 0xC3C), (0xD3B, 0xD3C), (0xEBA, 0xEBA), (0x1715, 0x1715),
         (0x1ABF, 0x1ACE), (0x1DF6, 0x1DFA), (0xA82C, 0xA82C), (0x105C9, 0x105E4), (0x10D24, 0x10D6D), (0x10EAB, 0x10EFF), (0x10F46, 0x10F85),
         (0x11070, 0x11070), (0x1133B, 0x1133B), (0x11383, 0x113D0), (0x1145E, 0x1145E), (0x11839, 0x119E0), (0x11A34, 0x11A99),
         (0x11D42, 0x11D97), (0x11F41, 0x11F42), (0x16121, 0x1612F), (0x16D68, 0x16D6A), (0x16FF0, 0x16FF1), (0x1E08F, 0x1E08F),
         (0x1E130, 0x1E136), (0x1E2AE, 0x1E2EF), (0x1E4EC, 0x1E4EF), (0x1E5EE, 0x1E5EF)]


def rows(values, per_line):
    lines = [values[i:i + per_line] for i in range(0, len(values), per_line)]
    return ",\n".join("    " + ", ".join(line) for line in lines)


def changes(value_of, shift):
    """The code points where the value changes, each with the new value in its low bits."""
    found, last = [], None
    for c in range(LAST):
        value = value_of(c)
        if value != last:
            found.append(hex(c << shift | value))
            last = value
    return found


def is_young(c):
    return any(low <= c <= high for low, high in YOUNG)


def class_of(c):
    return 3 if c in SPACES else {"L": 1, "N": 2}.get(u.category(chr(c))[0], 0)


def decomposition(c):
    if 0xAC00 <= c < 0xD7A4 or is_young(c):  # Hangul is done by arithmetic
        return []
    text = u.decomposition(chr(c))
    return [] if not text or text[0] == "<" else [int(x, 16) for x in text.split()]


def main():
    pairs = [(c, *(decomposition(c) + [0])[:2]) for c in range(LAST) if decomposition(c)]
    joins = sorted((a, b, c) for c, a, b in pairs if b and u.normalize("NFC", chr(c)) == chr(c))
    print("/* unicode_table.h: Unicode %s, for unicode.c only; written by tests/models/unicode.py. */" % u.unidata_version)
    print("/* clang-format off */")
    print("\n/* Code points where the class changes: the code point times 4, and the class from there on. */")
    print("static const uint32_t class_changes[] = {\n%s};" % rows(changes(class_of, 2), 12))
    print("\n/* The same for the canonical combining class, times 256. */")
    print("static const uint32_t combining_changes[] = {\n%s};"
          % rows(changes(lambda c: 0 if is_young(c) else u.combining(chr(c)), 8), 11))
    print("\n/* Canonical decompositions, by code point; the second is 0 where there is one only. */")
    print("static const uint32_t decompositions[][3] = {\n%s};" % rows(["{%#x, %#x, %#x}" % p for p in pairs], 4))
    print("\n/* Pairs that become one code point: first, second, result. */")
    print("static const uint32_t compositions[][3] = {\n%s};" % rows(["{%#x, %#x, %#x}" % j for j in joins], 4))


main()
