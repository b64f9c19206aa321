#!/bin/sh
# valgrind.sh: a representative subset under valgrind, which knows no AVX-512. usage: valgrind.sh BUILD
set -e
export WICK_ISA=avx2
for op in add sum softmax matmul conv2d sdpa layer_norm rnn scatter_add max_pool2d argsort; do
    valgrind -q --error-exitcode=9 --leak-check=full "$1/wick" check --op $op --dtype f32 | tail -n 1
done
