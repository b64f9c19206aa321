#!/bin/sh
# vendor.sh: wick's own declarations of vendor functions against the vendors' headers, where these are installed:
# ROCm's on this machine or in the emulator's chroot (ROCM_ROOT), CUDA's under CUDA_HOME, cuDNN's under CUDNN_HOME or
# beside CUDA's. Says what it did not find.
cd "$(dirname "$0")/.." || exit 1
failed=0 checked=0
check() { # name, then the compiler's options
    name=$1
    shift
    if [ -e "tests/vendor/$name.cc" ]; then
        set -- ${CXX:-c++} -std=c++17 "$@" "tests/vendor/$name.cc"
    else
        set -- ${CC:-cc} "$@" "tests/vendor/$name.c"
    fi
    if "$@" -Wall -Wextra -Werror -fsyntax-only -Isrc; then
        echo "vendor: $name: declarations agree"
        checked=$((checked + 1))
    else
        failed=1
    fi
}
root=${ROCM_ROOT:-/opt/sid}
for include in /usr/include /opt/rocm/include "$root/usr/include"; do
    [ -e "$include/hip/hip_runtime_api.h" ] && [ -e "$include/rocblas/rocblas.h" ] || continue
    check rocm -D__HIP_PLATFORM_AMD__ -idirafter "$include"
    rocm=yes
    if [ -e "$include/miopen/miopen.h" ]; then
        check miopen -D__HIP_PLATFORM_AMD__ -idirafter "$include"
    else
        echo "vendor: no MIOpen header here: not checked"
    fi
    break
done
[ -n "${rocm:-}" ] || echo "vendor: no ROCm headers here: not checked"
cuda=${CUDA_HOME:-/usr/local/cuda}/include
if [ -e "$cuda/cublas_v2.h" ]; then check cuda -isystem "$cuda"; else echo "vendor: no CUDA headers here: not checked"; fi
for include in ${CUDNN_HOME:+"$CUDNN_HOME/include"} "$cuda" /usr/include /usr/include/x86_64-linux-gnu; do
    [ -e "$include/cudnn.h" ] && [ -e "$cuda/cuda_runtime_api.h" ] || continue
    check cudnn -isystem "$include" -isystem "$cuda"
    cudnn=yes
    break
done
[ -n "${cudnn:-}" ] || echo "vendor: no cuDNN headers here: not checked"
[ "$checked" -gt 0 ] || [ "$failed" -gt 0 ] || exit 77 # skipped
exit $failed
