#!/bin/sh
# valgrind.sh: the core and a representative subset of ops under valgrind, which knows no AVX-512. usage: valgrind.sh BUILD
set -e
export WICK_ISA=avx2
# What the pool's threads hold at the end is "possibly lost": not counted.
check() {
    valgrind -q --error-exitcode=9 --leak-check=full --show-leak-kinds=definite --errors-for-leak-kinds=definite "$@" >"$log" 2>&1 ||
        { cat "$log"; exit 1; }
    tail -n 1 "$log"
}
log=$(mktemp)
trap 'rm -f "$log"' EXIT
for name in core tensors params; do
    check "$1/tests/test_$name"
done
for op in add sum softmax matmul conv2d sdpa layer_norm rnn scatter_add max_pool2d argsort; do
    check "$1/wick" check --op $op --dtype f32
done
