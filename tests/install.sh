#!/bin/sh
# install.sh: an installed copy is used from a small outside CMake project and through pkg-config.
# usage: install.sh BUILD
set -e
build=$(cd "$1" && pwd)
source=$PWD
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cmake --install "$build" --prefix "$folder/usr" >/dev/null

echo "== CMake package"
mkdir "$folder/outside"
cp "$source/examples/hello.c" "$folder/outside/"
cat >"$folder/outside/CMakeLists.txt" <<'CMAKE'
cmake_minimum_required(VERSION 3.18)
project(outside C)
find_package(wick REQUIRED)
add_executable(hello hello.c)
target_link_libraries(hello PRIVATE wick::wick)
CMAKE
cmake -S "$folder/outside" -B "$folder/outside/build" -DCMAKE_PREFIX_PATH="$folder/usr" >/dev/null
cmake --build "$folder/outside/build" >/dev/null
"$folder/outside/build/hello"

echo "== installed program, manual page, completion"
"$folder/usr/bin/wick" --version
test -s "$(find "$folder/usr" -name 'wick.1*')"
test -s "$(find "$folder/usr" -path '*completions*' -type f)"
passed=3

if command -v pkg-config >/dev/null; then
    echo "== pkg-config"
    pc=$(dirname "$(find "$folder/usr" -name wick.pc)")
    lib=$(dirname "$(find "$folder/usr" -name libwick.so)")
    # shellcheck disable=SC2046
    PKG_CONFIG_PATH=$pc "${CC:-cc}" "$source/examples/hello.c" -o "$folder/hello" $(PKG_CONFIG_PATH=$pc pkg-config --cflags --libs wick)
    LD_LIBRARY_PATH=$lib "$folder/hello"
    echo "$((passed + 1)) passed, 0 failed"
else
    echo "$passed passed, 0 failed, 1 skipped (no pkg-config)"
fi
