#!/bin/sh
# install.sh: installs the build into a temporary folder, moves that, and builds a program outside of the tree
# against it: with find_package and with pkg-config, shared and static.
# usage: install.sh CMAKE BUILD_FOLDER CC
cmake=$1 build=$2 cc=$3
passed=0 failed=0 skipped=0
folder=$(mktemp -d) || exit 1
trap 'rm -rf "$folder"' EXIT

check() { # what, then a command that has to succeed
    what=$1
    shift
    if "$@" >"$folder/log" 2>&1; then
        passed=$((passed + 1))
    else
        failed=$((failed + 1))
        echo "failed: $what" >&2
        cat "$folder/log" >&2
    fi
}

check 'cmake --install' "$cmake" --install "$build" --prefix "$folder/first"
mv "$folder/first" "$folder/moved"
prefix=$folder/moved
pc=$(dirname "$(find "$prefix" -name wick.pc)")
lib=$(dirname "$pc")
mkdir "$folder/outside"
cd "$folder/outside" || exit 1
cat >main.c <<'END'
#include <stdio.h>
#include <wick/wick.h>

int main(void)
{
    float data[3] = {-1, 0, 2}, result[3] = {9, 9, 9};
    wk_tensor *x = wk_from_host(wk_device_open("cpu"), WK_F32, 1, (int64_t[]){3}, data), *y = wk_relu(x);
    if (wk_to_host(y, result) != WK_OK)
        fprintf(stderr, "%s\n", wk_error());
    wk_drop(y);
    wk_drop(x);
    return !(result[0] == 0 && result[1] == 0 && result[2] == 2);
}
END
cat >CMakeLists.txt <<'END'
cmake_minimum_required(VERSION 3.18)
project(outside C)
find_package(wick 0.1 REQUIRED)
add_executable(with_shared main.c)
target_link_libraries(with_shared PRIVATE wick::wick)
add_executable(with_static main.c)
target_link_libraries(with_static PRIVATE wick::wick_static)
END
check 'find_package' "$cmake" -S . -B build "-DCMAKE_PREFIX_PATH=$prefix" "-DCMAKE_C_COMPILER=$cc"
check 'build with CMake' "$cmake" --build build
check 'CMake, shared' build/with_shared
check 'CMake, static' build/with_static

for header in "$prefix"/include/wick/*.h; do
    printf '#include <wick/%s>\n' "$(basename "$header")" >alone.c
    check "$header by itself, as C99" "$cc" -std=c99 -pedantic-errors -Wall -Werror "-I$prefix/include" -c alone.c
done

if command -v pkg-config >/dev/null; then
    export PKG_CONFIG_PATH="$pc"
    # shellcheck disable=SC2046 # the flags are words
    check 'pkg-config, shared' "$cc" main.c -o shared $(pkg-config --cflags --libs wick) "-Wl,-rpath,$lib"
    check 'pkg-config, shared: run' ./shared
    # shellcheck disable=SC2046
    check 'pkg-config, static' "$cc" -static main.c -o static $(pkg-config --static --cflags --libs wick)
    check 'pkg-config, static: run' ./static
else
    skipped=$((skipped + 1))
fi

check 'the tool' "$prefix/bin/wick" --version
check 'the man page' test -s "$prefix/share/man/man1/wick.1"
check 'the completion' bash -n "$prefix/share/bash-completion/completions/wick"

if [ "$skipped" -gt 0 ]; then
    echo "$passed passed, $failed failed, $skipped skipped (no pkg-config)"
else
    echo "$passed passed, $failed failed"
fi
test "$failed" -eq 0
