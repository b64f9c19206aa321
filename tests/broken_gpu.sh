#!/bin/sh
# broken_gpu.sh WICK OLD BROKEN TURING: a driver that is missing, too old or failing, and a GPU that is too old, cost the
# device, with a clear message, and leave the CPU working. The last three are libraries made of fake_driver.c.
wick=$1 old=$2 broken=$3 turing=$4
passed=0 failed=0
expect() { # what, word, exit status, then the command
    what=$1 word=$2 want=$3
    shift 3
    output=$("$@" 2>&1)
    status=$?
    if [ $status -eq "$want" ] && echo "$output" | grep -q -- "$word"; then
        passed=$((passed + 1))
    else
        failed=$((failed + 1))
        echo "$what: exit $status, expected $want and '$word':"
        echo "$output" | head -n 5
    fi
}
for maker in cuda rocm; do
    case $maker in cuda) variable=WICK_CUDA_LIBRARY ;; rocm) variable=WICK_HIP_LIBRARY ;; esac
    try() { env WICK_DEVICES=$maker "$variable=$library" "$wick" "$@"; }
    library=/nowhere/libnone.so
    expect "$maker missing" "it comes with" 1 try check --device $maker:0 --op relu
    expect "$maker missing, info" "not found" 0 try info
    library=$old
    expect "$maker old" "too old: it lacks" 1 try check --device $maker:0 --op relu
    expect "$maker old, info" "too old" 0 try info
    library=$broken
    expect "$maker broken" "error" 1 try check --device $maker:0 --op relu
    for library in /nowhere/libnone.so "$old" "$broken"; do
        expect "$maker $library: the CPU" "^cpu:.* 0 failed" 0 try check --op relu --dtype f32
    done
    expect "$maker switched off" "no device '$maker:0'" 1 env WICK_DEVICES=cpu "$wick" check --device $maker:0
done
expect "a GPU that is too old" "sm_75, expected sm_80 or newer" 1 \
    env WICK_DEVICES=cuda "WICK_CUDA_LIBRARY=$turing" "$wick" check --device cuda:0 --op relu
expect "a GPU that is too old: the CPU" "^cpu:.* 0 failed" 0 \
    env WICK_DEVICES=cuda "WICK_CUDA_LIBRARY=$turing" "$wick" check --op relu --dtype f32
# A library of the maker's that is wished for and no good is not replaced by another one.
expect "cuDNN missing" "libcudnn  *not found" 0 env WICK_CUDNN_LIBRARY=/nowhere/libcudnn.so.9 "$wick" info
expect "cuDNN that is none" "libcudnn .*too old: it lacks" 0 env "WICK_CUDNN_LIBRARY=$old" "$wick" info
echo "$passed passed, $failed failed"
[ $failed -eq 0 ]
