#!/bin/sh
# sanitizers.sh: the tests under the address and undefined-behaviour sanitizers, and the threaded ones under the thread
# sanitizer. One instruction-set level each, the machine's own: the sanitizers look at the C code, which is the same for all.
# usage: sanitizers.sh [JOBS]
set -e
jobs=${1:-2}
flags=
[ "$(uname -m)" != x86_64 ] || flags=-march=native
suite() { # folder, sanitizers, then ctest's arguments
    folder=$1 kind=$2
    shift 2
    cmake -S . -B "$folder" -DWICK_SANITIZE="$kind" -DWICK_MAX_LEVEL=base -DCMAKE_C_FLAGS="$flags" >/dev/null
    cmake --build "$folder" -j"$jobs" >"$folder/build.log" 2>&1 || { tail -n 30 "$folder/build.log"; exit 1; }
    (cd "$folder" && ctest --output-on-failure -j"$jobs" "$@")
}
echo "== address, undefined"
suite build-asan address,undefined -E 'samples_|size|headers'
build-asan/wick ops --names | xargs -P "$jobs" -n 5 build-asan/tests/test_samples # all ops in one process take too long for ctest
echo "== thread"
TSAN_OPTIONS=die_after_fork=0 suite build-tsan thread -R '^(threads|core)$'
for op in add sum argmax softmax matmul conv2d sdpa rnn layer_norm batch_norm_train scatter_add argsort; do
    build-tsan/tests/test_samples $op # one of every engine: all of them would take an hour
done
