#!/bin/sh
# rocm.sh: `wick check` of the ROCm device on emulated AMD GPUs, two passes at a time. Needs root; see emu/README.md.
# usage: rocm.sh BUILD [JOBS [PASS...]]
#
# Every pass checks each memory access against allocations. The quick ones check LDS to the byte, and so leave out rocBLAS, some of
# whose kernels read beyond what they have (hardware gives 0 there). On top of that:
#   races    waves that share LDS without a barrier between them. In full on gfx1100: with 32 lanes a group has twice the
#            waves, and nothing that 64 lanes in step would hide stays hidden.
#   lazy     queued work runs only when something waits for it. In full on gfx90a: the host's side is the same for all.
# Without `lazy` work runs at once, so that a fault is reported by the call that made it. The quick passes (one sample an op) have
# the one that the full pass left out, and the machine code of the other architectures.
#   miopen   what MIOpen gives, a part of it: it compiles most kernels anew for each shape, a reduction for up to a minute. The other
#            passes do without MIOpen. All of it: emu/run build/wick check --device rocm:0 --impl miopen
#   wide     kernels in their form for 2^31 elements and more, which no sample has.
#   calls    what the second call of each op asks of HIP and MIOpen (tests/second_call.c) instead of `wick check`.
#   faults   what may go wrong with MIOpen (tests/miopen.sh) instead of `wick check`.
#   streams  the test of streams, events, graphs and threads (tests/gpu.c) instead of `wick check`.
#   models   the tiny models (tests/models.c, vision.c, train.c), language models with steps recorded as graphs; the build is inside the source tree.
# The kernels compiled stay in WICK_CACHE, by default a folder in the chroot.
set -e
here=$(cd "$(dirname "$0")/.." && pwd)
passes='gfx90a-streams-lazy gfx1100-streams gfx90a-models-lazy gfx1100-models gfx90a-full-lazy gfx1100-full-races gfx942-quick-races-lazy gfx1201-quick-races-lazy gfx90a-quick-races gfx1100-quick-lazy-wide gfx90a-miopen-lazy gfx90a-calls gfx90a-faults'
# Of each family, and of each way that MIOpen has to make its kernels.
miopen='--op conv1d --op conv2d* --op conv3d* --op softmax* --op avg_pool2d* --op max_pool2d* --op leaky_relu* --op relu*
    --op batch_norm_* --op lrn* --op layer_norm --op rms_norm* --op group_norm --op dropout*
    --op rnn* --op ctc_loss --op sdpa* --op rope_i* --op batch_norm_act'

if [ "${1:-}" = --one ]; then # one pass: its name, as above
    log=$ROCM_LOGS/$2 start=$(date +%s) status=0 quick='' check=1 race=0 lazy=0
    case $2 in *-quick*) quick='--quick --impl kernel' check=2 ;; esac
    case $2 in *-races*) race=1 ;; esac
    case $2 in *-lazy*) lazy=1 ;; esac
    case $2 in *-wide*) export WICK_WIDE_INDEX=1 ;; esac
    export ROCM_EMU_ARCH="${2%%-*}" ROCM_EMU_CHECK=$check ROCM_EMU_RACE=$race ROCM_EMU_LAZY=$lazy ROCM_EMU_THREADS=1
    export WICK_EXACT_ALLOC=1 # every tensor with its own bounds
    case $2 in
    *-faults*) ;;
    *-miopen* | *-calls*) export ROCM_EMU_CACHE="$WICK_CACHE/miopen" ;;
    *) export WICK_WITHOUT=miopen ;;
    esac
    case $2 in
    *-miopen*) (cd "$ROCM_BUILD" && "$here/emu/run" ./wick check --device rocm:0 --op sum --dtype f32 --quick --impl miopen &&
        "$here/emu/run" tests/test_tune rocm:0 &&
        "$here/emu/run" ./wick check --device rocm:0 --impl miopen $miopen) >"$log" 2>&1 || status=$? ;;
    *-calls*) (
        cd "$ROCM_BUILD"
        export WICK_EXACT_ALLOC=0 WICK_HIP_LIBRARY="$ROCM_BUILD/tests/libshim_hip.so"
        WICK_WITHOUT=miopen "$here/emu/run" env LD_PRELOAD="$WICK_HIP_LIBRARY" tests/test_second_call rocm:0 &&
            WICK_MIOPEN_LIBRARY="$ROCM_BUILD/tests/libshim_miopen.so" "$here/emu/run" env LD_PRELOAD="$WICK_HIP_LIBRARY" \
                tests/test_second_call rocm:0 conv softmax avg_pool2d max_pool2d leaky_relu relu batch_norm lrn layer_norm rms_norm group_norm dropout rnn sum ctc rope sdpa
    ) >"$log" 2>&1 || status=$? ;;
    *-faults*) sh "$here/tests/miopen.sh" "$here/emu/run" "$ROCM_BUILD" >"$log" 2>&1 || status=$? ;;
    *-streams*) (cd "$ROCM_BUILD" && WICK_EXACT_ALLOC=0 "$here/emu/run" tests/test_gpu) >"$log" 2>&1 || status=$? ;;
    *-models*) (cd "$here" && for test in models vision train; do
        WICK_EXACT_ALLOC=0 emu/run "$ROCM_BUILD/tests/test_$test" rocm:0 || exit
    done) >"$log" 2>&1 || status=$? ;;
    *) (cd "$ROCM_BUILD" && "$here/emu/run" ./wick check --device rocm:0 $quick) >"$log" 2>&1 || status=$? ;;
    esac
    time=$(($(date +%s) - start))
    if [ "$status" = 0 ]; then
        echo "$2: $(tail -n 1 "$log") ($time s)"
    else
        echo "$2: FAILED, status $status ($time s)" | tee -a "$ROCM_LOGS/failures"
        { grep -E 'FAIL|failed|rocm-emu:|wick:|error' "$log" || cat "$log"; } | head -n 40 >&2
    fi
    exit 0 # the others run on; failures are in the file
fi

[ $# -ge 1 ] || { echo "usage: rocm.sh BUILD [JOBS [PASS...]]; passes: $passes" >&2; exit 2; }
ROCM_BUILD=$(cd "$1" && pwd) jobs=${2:-2}
[ -x "$ROCM_BUILD/wick" ] || { echo "rocm.sh: no program $ROCM_BUILD/wick; run make" >&2; exit 1; }
shift "$(($# > 2 ? 2 : $#))"
NO_TESTS=1 "$here/emu/setup"
ROCM_LOGS=$(mktemp -d)
WICK_CACHE=${WICK_CACHE:-/var/tmp/wick-cache}
export ROCM_BUILD ROCM_LOGS WICK_CACHE
trap 'rm -rf "$ROCM_LOGS"' EXIT
mkdir -p "${ROCM_ROOT:-/opt/sid}$WICK_CACHE"

# A device that is not there is one clear line, not six failures.
if ! (cd "$ROCM_BUILD" && ROCM_EMU_ARCH=gfx90a "$here/emu/run" ./wick info) >"$ROCM_LOGS/info" 2>&1 || ! grep -q 'rocm:0' "$ROCM_LOGS/info"; then
    cat "$ROCM_LOGS/info" >&2
    echo "rocm.sh: wick finds no device rocm:0 on the emulator; this is what 'wick info' said there" >&2
    exit 1
fi
echo ${@:-$passes} | tr ' ' '\n' | xargs -P "$jobs" -n 1 sh "$0" --one
if [ -s "$ROCM_LOGS/failures" ]; then
    echo "rocm: $(wc -l <"$ROCM_LOGS/failures") of the passes failed"
    exit 1
fi
echo "rocm: all passes fine"
