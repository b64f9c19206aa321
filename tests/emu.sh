#!/bin/sh
# emu.sh: the emulator's own tests, each on every architecture, JOBS at a time; see emu/README.md. Needs root.
# usage: emu.sh [JOBS [ARCH...]]
set -e
here=$(cd "$(dirname "$0")/.." && pwd)

# one test: ARCH TEST [ARGUMENT]; a line FAIL, a status other than 0 or no line that says pass or skip fails it
if [ "${1:-}" = --one ]; then
    shift
    log=$EMU_LOGS/$1.$2$3 start=$(date +%s) status=0
    (cd "$EMU_LOGS" && ROCM_EMU_ARCH=$1 ROCM_EMU_THREADS=1 timeout 600 "$here/emu/run" "/opt/rocm-emu/$2" $3) >"$log" 2>&1 || status=$?
    passed=$(grep -c ' pass ' "$log" || true) failed=$(grep -c FAIL "$log" || true) skipped=$(grep -c ' skip: ' "$log" || true)
    echo "$1 $2${3:+ $3}: $passed passed, $failed failed, $skipped skipped, $(($(date +%s) - start)) s"
    [ "$status" = 0 ] && [ "$failed" = 0 ] && [ "$((passed + skipped))" -gt 0 ] && exit 0
    echo "$1 $2: FAILED, status $status" >>"$EMU_LOGS/failures"
    { grep FAIL "$log" || tail -n 20 "$log"; } >&2
    exit 0 # the others run on; the count is in the file
fi

jobs=${1:-2}
[ $# = 0 ] || shift
"$here/emu/setup"
EMU_LOGS=$(mktemp -d)
export EMU_LOGS
trap 'rm -rf "$EMU_LOGS"' EXIT
root=${ROCM_ROOT:-/opt/sid}
for test in test_miopen_ops test_miopen_conv $(cd "$root/opt/rocm-emu" && ls -d test_* | grep -v miopen); do # long ones first
    for arch in ${@:-gfx906 gfx90a gfx942 gfx1100 gfx1201}; do
        echo "$arch $test"
        case $test in test_kernels | test_expressions) echo "$arch $test -O0" ;; esac
    done
done | xargs -P "$jobs" -L 1 sh "$0" --one
if [ -s "$EMU_LOGS/failures" ]; then
    cat "$EMU_LOGS/failures"
    exit 1
fi
echo "emulator: all passed"
