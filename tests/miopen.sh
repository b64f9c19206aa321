#!/bin/sh
# miopen.sh: what may go wrong with MIOpen: no cache, a damaged one, none that can be written, too little memory, calls that fail.
# Results stay right, by the next implementation where it has to be, and nothing is printed. On the emulator; rocm.sh runs it.
# usage: miopen.sh RUN BUILD, where RUN is emu/run
run=$1 build=$2
passed=0 failed=0
cd "$build" || exit 1
root=${ROCM_ROOT:-/opt/sid}
export WICK_EXACT_ALLOC=0
folder=$(mktemp -d "$root/tmp/wick-miopen-XXXXXX") || exit 1
inside=${folder#"$root"}
trap 'rm -rf "$folder"' EXIT
shim=$build/tests/libshim_miopen.so

# what, then a command that has to succeed and print nothing but its last line; MIOpen's variables are wick's to set
check() {
    what=$1
    shift
    output=$("$run" env -u MIOPEN_USER_DB_PATH -u MIOPEN_CUSTOM_CACHE_DIR -u MIOPEN_LOG_LEVEL WICK_CACHE="$inside/cache" "$@" 2>&1)
    status=$?
    if [ $status -eq 0 ] && [ "$(echo "$output" | wc -l)" -eq 1 ]; then
        passed=$((passed + 1))
    else
        failed=$((failed + 1))
        echo "$what: exit $status:"
        echo "$output" | head -n 5
    fi
}

check 'reasons' sh -c "./wick ops sdpa --device rocm:0 | grep 'f32 .*miopen: .*one shape (it takes others)'"
check 'an empty cache' tests/test_miopen rocm:0 miopen
[ -n "$(ls "$folder/cache/miopen")" ] || { echo "MIOpen's files are not in the cache"; failed=$((failed + 1)); }
check 'a full cache' tests/test_miopen rocm:0 miopen
check 'a search' tests/test_miopen rocm:0 any search
rm -f "$folder/cache/tune.txt"
found=$(find "$folder/cache/miopen" -name '*.ufdb.txt')
[ -n "$found" ] || { echo "the search has left no find database"; failed=$((failed + 1)); }
sed -i 's/[0-9]/x/3; s/:/=/2' $found
check 'a find database with wrong words' tests/test_miopen rocm:0 miopen
find "$folder/cache/miopen" -type f | while read -r file; do head -c 3000 /dev/urandom >"$file"; done
check 'a damaged cache' tests/test_miopen rocm:0 miopen
find "$folder/cache/miopen" -type f | while read -r file; do head -c 100 "$file" >"$file.cut" && mv "$file.cut" "$file"; done
check 'a cut cache' tests/test_miopen rocm:0 miopen
find "$folder/cache/miopen" -type f | while read -r file; do
    dd if=/dev/urandom of="$file" bs=1024 seek=5 count=3 conv=notrunc 2>/dev/null
done
# SQLite cannot tell when it is a kernel's code that is damaged: MIOpen says so then, and wick's kernel takes over.
check 'a cache damaged in the middle' sh -c 'tests/test_miopen rocm:0 any 2>/dev/null'
rm -r "$folder/cache/miopen"
check 'no place for a cache' env WICK_CACHE=/proc/nowhere HOME=/proc/nowhere tests/test_miopen rocm:0 miopen
check 'no library' env WICK_MIOPEN_LIBRARY=/nowhere.so tests/test_miopen rocm:0 kernel
check 'little memory' env WICK_EXACT_ALLOC=1 tests/test_miopen rocm:0 kernel limit 16384
check 'enough memory' env WICK_EXACT_ALLOC=1 tests/test_miopen rocm:0 miopen limit 1048576
check 'no workspace' env WICK_WORKSPACE=0 tests/test_miopen rocm:0 kernel
check 'a workspace' env WICK_WORKSPACE=1 tests/test_miopen rocm:0 miopen
check 'no number of a workspace' env WICK_WORKSPACE=much tests/test_miopen rocm:0 miopen
check 'no call fails' env WICK_MIOPEN_LIBRARY="$shim" tests/test_miopen rocm:0 miopen
for call in miopenCreateWithStream=7 miopenCreateTensorDescriptor=4 miopenSetTensorDescriptor=3 miopenCreateConvolutionDescriptor=4 \
    miopenInitConvolutionNdDescriptor=3 miopenConvolutionForwardGetSolution=7 miopenConvolutionForwardCompileSolution=7 \
    miopenConvolutionForwardImmediate=7 miopenConvolutionForwardImmediate=5 miopenConvolutionForwardImmediate=4; do
    check "$call" env WICK_MIOPEN_LIBRARY="$shim" WICK_TEST_FAIL=$call tests/test_miopen rocm:0 kernel
    check "$call, forced" env WICK_MIOPEN_LIBRARY="$shim" WICK_TEST_FAIL=$call tests/test_miopen rocm:0 miopen forced
done
check 'a call that fails later' env WICK_MIOPEN_LIBRARY="$shim" WICK_TEST_FAIL=miopenConvolutionForwardImmediate=7@2 tests/test_miopen rocm:0 any
check 'a call that fails later, forced' env WICK_MIOPEN_LIBRARY="$shim" WICK_TEST_FAIL=miopenConvolutionForwardImmediate=7@2 \
    tests/test_miopen rocm:0 later
# A library that says all is well and has done nothing: WICK_VERIFY=1 finds it, the line it gives repeats the call, and a line in deny.txt
# passes MIOpen over.
wrong="env WICK_MIOPEN_LIBRARY=$shim WICK_TEST_FAIL=miopenConvolutionForwardImmediate=0"
said=$("$run" env WICK_CACHE="$inside/cache" WICK_VERIFY=1 $wrong tests/test_miopen rocm:0 wrong 2>&1)
again=$(echo "$said" | sed -n 's/.*; again: wick \(op .*\); to pass .*/\1/p')
deny=$(echo "$said" | sed -n 's/.*wk_deny("\([^"]*\)").*/\1/p')
[ -n "$again" ] && [ -n "$deny" ] || { echo "a wrong result: $said"; failed=$((failed + 1)); }
check 'a wrong result, again' sh -c "WICK_VERIFY=1 $wrong ./wick $again 2>&1 | grep 'verify: miopen gives y'"
check 'a wrong result, unseen' sh -c "$wrong ./wick $again && echo"
check 'a right result, watched' sh -c "WICK_VERIFY=1 ./wick $again && echo"
echo "$deny" >"$folder/cache/deny.txt"
check 'a denied library' env WICK_VERIFY=1 $wrong tests/test_miopen rocm:0 kernel
rm "$folder/cache/deny.txt"
# An op that wick's kernel takes first: forced, it fails; else all is as if MIOpen were not there.
while read -r op calls; do
    for call in $calls; do
        check "$op: $call" env WICK_MIOPEN_LIBRARY="$shim" WICK_TEST_FAIL="$call" tests/test_miopen rocm:0 fails "$op"
    done
done <<'END'
dropout miopenCreateDropoutDescriptor=4 miopenRestoreDropoutDescriptor=7 miopenDropoutForward=7
dropout_backward miopenDropoutBackward=5
max_pool2d miopenCreatePoolingDescriptor=4 miopenSetPoolingIndexType=3 miopenPoolingForward=7
max_pool2d_backward miopenPoolingBackward=7
batch_norm_train miopenCreateTensorDescriptor=4 miopenBatchNormalizationForwardTraining=7
layer_norm miopenLayerNormForward=6
group_norm miopenGroupNormForward=7
rms_norm_backward miopenGetT5LayerNormBackwardWorkspaceSize=7 miopenT5LayerNormBackward=5
relu6 miopenActivationForward=7
max miopenGetReductionWorkspaceSize=7 miopenReduceTensor=7
rnn miopenCreateRNNDescriptor=4 miopenRNNForward=7
rnn_backward miopenRNNBackwardSeqData=7 miopenRNNBackwardWeightsSeqTensor=5
sdpa_backward miopenCreateMhaProblem=7 miopenFindSolutions=7 miopenRunSolution=7
END
echo "$passed passed, $failed failed"
[ $failed -eq 0 ]
