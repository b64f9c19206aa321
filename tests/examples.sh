#!/bin/sh
# examples.sh: every example compiles without a warning and runs. Rust and Python ones where their tools are installed.
# usage: examples.sh BUILD
set -e
build=$(cd "$1" && pwd)
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
passed=0 skipped=0
export LD_LIBRARY_PATH="$build${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}"
for source in examples/*.c; do
    name=$(basename "$source" .c)
    libraries="-L$build -lwick" arguments=
    case $name in # models are not in the library
    llama) arguments="$PWD/tests/models/llama3 wick" ;;
    bert) arguments="$PWD/tests/models/bert cat kitten stocks" ;;
    resnet) arguments="$PWD/tests/models/resnet-basic.safetensors $PWD/tests/models/picture.jpg" ;;
    esac
    [ -z "$arguments" ] || libraries="-Imodels $build/libwick_models.a $build/libwick.a -ldl -lpthread"
    "${CC:-cc}" -std=c11 -Wall -Wextra -Werror "$source" -Iinclude $libraries -lm -o "$folder/$name"
    echo "== $name"
    (cd "$folder" && "./$name" $arguments)
    passed=$((passed + 1))
done
if command -v rustc >/dev/null; then
    echo "== ffi.rs"
    rustc -O --edition 2021 examples/ffi.rs -L "$build" -l wick -o "$folder/ffi_rs"
    "$folder/ffi_rs"
    passed=$((passed + 1))
else
    echo "== ffi.rs: skipped, no rustc" && skipped=$((skipped + 1))
fi
if command -v python3 >/dev/null; then
    echo "== ffi.py"
    python3 examples/ffi.py "$build/libwick.so"
    passed=$((passed + 1))
else
    echo "== ffi.py: skipped, no python3" && skipped=$((skipped + 1))
fi
echo "$passed passed, 0 failed, $skipped skipped"
