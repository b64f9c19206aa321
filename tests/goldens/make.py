"""Makes the golden files: what PyTorch says every op of wick gives, in every dtype.

    python3 tests/goldens/make.py [--op NAME]

Needs PyTorch and NumPy; the files here are of PyTorch 2.14. Without --op all of them are written anew, with it the
file of that op's family. The same files come out each time on one version of PyTorch.

The ops of a family stand in a module of its name beside this file, a function each: the reference, in f64, with
PyTorch's op where it has one and the formula where it has not. Results are rounded once, to the output's dtype.
The file FAMILY.safetensors holds the tensors CASE.in.NAME and CASE.out.NAME; its metadata say for each CASE what
to call: "OP param=value ...". tests/goldens.c runs them.

Not here, since what they give is wick's own random numbers: rand, randn, dropout.
"""
import argparse
import os
import sys

import golden
import attention
import conv
import copies
import elementwise
import fused
import index
import loss
import matmul
import norm
import pool
import quant
import reduce
import rnn

FAMILIES = [elementwise, reduce, matmul, copies, conv, pool, index, norm, attention, rnn, loss, fused, quant]


def main():
    parser = argparse.ArgumentParser(description="Makes the golden files.")
    parser.add_argument("--op", help="only the file of this op's family")
    only = parser.parse_args().op
    if only and only not in golden.OPS:
        sys.exit(f"make.py: no op '{only}'")
    here = os.path.dirname(os.path.abspath(__file__))
    total = 0
    for family in FAMILIES:
        ops = [op for op in golden.OPS.values() if op.family == family.__name__]
        if only and golden.OPS[only] not in ops:
            continue
        cases = [case for op in ops for case in op.build()]
        size = golden.write(os.path.join(here, family.__name__ + ".safetensors"), cases)
        total += size
        print(f"{family.__name__:12} {len(ops):4} ops {len(cases):5} cases {size:8} bytes")
    print(f"{total} bytes")


if __name__ == "__main__":
    main()
