#!/usr/bin/env python3
"""docs/performance.md's table from what was measured.

    build/wick bench --device cuda:0 --json > wick.jsonl
    python3 bench/torch_gpu.py > torch.jsonl
    python3 bench/performance.py wick.jsonl torch.jsonl > table.md

Both files are the output of one machine, one after the other; the first line of PyTorch's says what that was. They may hold
several runs: the best time of each counts, since a GPU slows down by some percent after heavy work.
"""
import json
import math
import sys


def rows(path):
    facts, cases = {}, {}
    for line in open(path):
        try:
            row = json.loads(line)
        except ValueError:
            continue
        if "us" in row:
            best = cases.setdefault(row["case"], row)
            cases[row["case"]] = row if row["us"] < best["us"] else best
        elif "case" not in row:
            facts.update(row)
    return facts, cases


def number(value, form):
    return format(value, form) if value else ""


def main():
    _, wick = rows(sys.argv[1])
    facts, peer = rows(sys.argv[2])
    print(", ".join(f"{key} {value}" for key, value in facts.items()) + "\n")
    print("| case | wick µs | GB/s | TFLOP/s | of the limit | PyTorch µs | ratio | implementation |")
    print("|---|---:|---:|---:|---:|---:|---:|---|")
    ratios = []
    for name, row in wick.items():
        other = peer.get(name, {}).get("us")
        ratio = other / row["us"] if other else None
        if ratio:
            ratios.append(ratio)
        share = f'{100 * row["share"]:.0f} % of {row["limit"]}' if "share" in row else ""
        print(f'| {name} | {row["us"]:.2f} | {number(row.get("gbs"), ".0f")} | {number(row.get("tflops"), ".1f")} '
              f'| {share} | {number(other, ".2f")} | {number(ratio, ".2f")} | {row.get("impl", "")} |')
    if ratios:
        mean = math.exp(sum(map(math.log, ratios)) / len(ratios))
        print(f"\nGeometric mean of {len(ratios)} ratios: {mean:.2f}; the smallest is {min(ratios):.2f}.")


main()
