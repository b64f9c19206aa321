#!/bin/sh
# fuzz.sh: every fuzzer for a bounded time, under the address sanitizer where that build is there.
# usage: fuzz.sh BUILD SECONDS
set -e
build=$1 seconds=$2
[ ! -x build-asan/tests/fuzz_op ] || build=build-asan
for fuzzer in json safetensors npy op image wordpiece; do
    echo "== fuzz_$fuzzer ($build)"
    "$build/tests/fuzz_$fuzzer" "${seconds}s"
done
