#!/bin/sh
# aarch64.sh: wick for 64-bit Arm: cross-compiled without a warning, and its tests run by qemu.
# usage: aarch64.sh [JOBS]
set -e
jobs=${1:-2}
need() { # package, then the command it brings
    command -v "$2" >/dev/null || (apt-get update -qq && apt-get install -y -qq --no-install-recommends "$1") >/dev/null
}
need gcc-aarch64-linux-gnu aarch64-linux-gnu-gcc
[ -e /usr/aarch64-linux-gnu/include/stdio.h ] || need libc6-dev-arm64-cross no-command
need qemu-user qemu-aarch64
folder=build-aarch64
cmake -S . -B $folder -DCMAKE_SYSTEM_NAME=Linux -DCMAKE_SYSTEM_PROCESSOR=aarch64 \
    -DCMAKE_C_COMPILER=aarch64-linux-gnu-gcc \
    -DCMAKE_EXE_LINKER_FLAGS=-static -DWICK_WERROR=ON \
    -DCMAKE_CROSSCOMPILING_EMULATOR=qemu-aarch64 >/dev/null
cmake --build $folder -j"$jobs" >$folder/build.log 2>&1 || { tail -n 30 $folder/build.log; exit 1; }
(cd $folder && ctest --output-on-failure -j"$jobs" -R '^(dtypes|tensors|core|params|io|goldens_base)$')
qemu-aarch64 $folder/wick check --device cpu --quick | tail -n 1
