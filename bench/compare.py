#!/usr/bin/env python3
"""wick and PyTorch on the CPU cases, in turns on the same cores; the best time of each counts.

    compare.py [--rounds 3] [--wick build/wick] [--python "python3"] [--out FOLDER] [--markdown] [FILTER...]

Prints each case with both times, the ratio (above 1: wick is faster), wick's share of what its own copy of as many bytes moves, and the
geometric mean of the ratios. Needs PyTorch in the Python that --python names (it may be a longer command).
"""
import argparse, json, math, os, shlex, subprocess

def run(command):
    lines = subprocess.run(command, capture_output=True, text=True).stdout.splitlines()
    return [r for r in map(json.loads, lines) if "case" in r and "us" in r]

# The head of the table, and a line of it.
PLAIN = (f"{'case':32}{'wick us':>12}{'torch us':>12}{'ratio':>8}{'GB/s':>8}{'of copy':>9}",
         "{case:32}{us:12.1f}{peer:>12}{ratio:>8}{gbs:>8}{share:>9}")
MARKDOWN = ("| case | wick µs | PyTorch µs | ratio | GB/s | of copy |\n|---|---:|---:|---:|---:|---:|",
            "| {case} | {us:.1f} | {peer} | {ratio} | {gbs} | {share} |")

def show(best, head, line):
    ratios = []
    print(head)
    for case, w in best["wick"].items():
        t = best["torch"].get(case)
        ratio = t["us"] / w["us"] if t else None
        ratios += [ratio] if ratio else []
        share = f"{100 * w['share']:.0f} %" if w.get("limit") == "copy" else ""
        print(line.format(case=case, us=w["us"], peer=f"{t['us']:.1f}" if t else "", ratio=f"{ratio:.2f}" if ratio else "",
                          gbs=w.get("gbs", ""), share=share))
    if ratios:
        mean = math.exp(sum(map(math.log, ratios)) / len(ratios))
        print(f"\nGeometric mean of {len(ratios)} ratios: {mean:.2f}, lowest {min(ratios):.2f}.")

def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--rounds", type=int, default=3)
    p.add_argument("--wick", default="build/wick")
    p.add_argument("--python", default="python3")
    p.add_argument("--out")
    p.add_argument("--markdown", action="store_true", help="the table as docs/performance.md has it")
    p.add_argument("filter", nargs="*")
    a = p.parse_args()
    wick = [a.wick, "bench", "--device", "cpu", "--json", "--seconds", "0.6"]
    wick += [x for f in a.filter for x in ("--filter", f)]
    torch = shlex.split(a.python) + [os.path.join(os.path.dirname(__file__), "torch_cpu.py")] + a.filter
    best = {"wick": {}, "torch": {}}
    for _ in range(a.rounds):
        for who, command in (("torch", torch), ("wick", wick)):
            for r in run(command):
                old = best[who].get(r["case"])
                if old is None or r["us"] < old["us"]:
                    best[who][r["case"]] = r
    show(best, *(MARKDOWN if a.markdown else PLAIN))
    if a.out:
        os.makedirs(a.out, exist_ok=True)
        for who, cases in best.items():
            with open(os.path.join(a.out, who + ".jsonl"), "w") as f:
                f.writelines(json.dumps(r) + "\n" for r in cases.values())

if __name__ == "__main__":
    main()
