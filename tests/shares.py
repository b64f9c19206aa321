#!/usr/bin/env python3
"""shares.py: prints the tables of src/cpu/shares.h.

Z(t) = t s(-t), everything times 4, is a parabola on each half of [0, 16), all numbers in f16. Of the points that a parabola
can be about, the one is taken whose results, computed as the library does, are the nearest to the function at every bf16 of
the piece and its negative; the worst of all is printed to standard error, in units of bf16's last place.
"""
import math
import struct
import sys

SCALE, PIECES, POINTS, TRIES = 4, 32, 64, 512


def f16(v):
    return struct.unpack("<e", struct.pack("<e", v))[0]


def solve(rows, rhs):
    """Least squares by the normal equations, Gauss's way."""
    n = len(rows[0])
    a = [[sum(r[i] * r[j] for r in rows) for j in range(n)] + [sum(r[i] * y for r, y in zip(rows, rhs))] for i in range(n)]
    for i in range(n):
        a[i] = [v / a[i][i] for v in a[i]]
        for k in range(n):
            if k != i:
                a[k] = [x - a[k][i] * y for x, y in zip(a[k], a[i])]
    return [row[n] for row in a]


def fit(z, about, places):
    """Coefficients of relative errors' least squares, the highest rounded first: the lower ones make up for it."""
    powers = (0, 1, 2) if about else (1, 2)
    rows, rhs, c = [[(t - about) ** k / z(t) for k in powers] for t in places], [1.0] * len(places), [0.0] * 3
    for n in range(len(powers), 0, -1):
        k = powers[n - 1]
        c[k] = f16(solve([r[:n] for r in rows], rhs)[n - 1])
        rhs = [y - r[n - 1] * c[k] for r, y in zip(rows, rhs)]
    return [about] + [-v for v in c]


def worst(z, row, numbers):
    """Of what the library makes of these numbers and their negatives."""
    about, c0, c1, c2 = row
    error = 0
    for t in numbers:
        f = f16(t - about)
        p = f16(c2 * f + c1)
        for want, first in ((t - z(t), f16(c0 + t)), (-z(t), c0)):
            got, unit = f16(p * f + first), 2.0 ** (math.frexp(want)[1] - 8)
            error = max(error, abs(round(abs(got) / unit) * unit - abs(want)) / unit)
    return error


def piece(z, first, last):
    places = [(first + last) / 2 + (last - first) / 2 * math.cos(math.pi * (k + 0.5) / POINTS) for k in range(POINTS)]
    numbers = [(1 + m / 128) * 2.0**e for e in range(-12, 4) for m in range(128)]
    numbers = [t for t in numbers if first <= t < last]
    middle = {f16(first + (last - first) * (0.2 + 0.6 * k / TRIES)) for k in range(TRIES)} if first else {0.0}
    rows = [fit(z, about, places) for about in sorted(middle)]
    return min((worst(z, row, numbers), row) for row in rows)


def table(name, share_of_minus):
    z = lambda t: t * share_of_minus(t / SCALE)
    found = [piece(z, k * 0.5, (k + 1) * 0.5) for k in range(PIECES)]
    print(name, max(error for error, row in found), file=sys.stderr)
    print(f"static const share_table {name}_table = {{")
    for row in zip(*(row for error, row in found)):
        words = [f"0x{struct.unpack('<H', struct.pack('<e', v))[0]:04X}" for v in row]
        print("    {" + ",\n     ".join(", ".join(words[k : k + 16]) for k in (0, 16)) + "},")
    print("};")


def tail(name, first, count, function):
    """The bf16 of a function at `count` neighbouring negative ones, from the bits `first` on."""
    words = []
    for bits in range(first, first + count):
        x = -struct.unpack(">f", struct.pack(">HH", bits, 0))[0]
        y = function(x)
        unit = 2.0 ** max(math.frexp(y)[1] - 8, -133)
        words.append(f"0x{struct.unpack('>HH', struct.pack('>f', round(-y / unit) * unit))[0] | 0x8000:04X}")
    print(f"static const uint16_t {name}_tail[SHARE_TAIL] = {{")
    print("    " + ",\n    ".join(", ".join(words[k : k + 16]) for k in range(0, count, 16)) + "};")


def gelu_share(t):
    return 1 / (1 + math.exp(-2 * 0.79788456080286535588 * (t + 0.044715 * t**3)))


table("gelu", lambda t: gelu_share(-t))
tail("gelu", 0x4080, 192, lambda x: x * gelu_share(x))
