#!/bin/sh
# kernels_cli.sh: `wick kernels` from the shell: exit status and messages; packs where there is a compiler.
# usage: kernels_cli.sh PATH/TO/wick
wick=$1
passed=0 failed=0 skipped=0
folder=$(mktemp -d) || exit 1
trap 'rm -rf "$folder"' EXIT
export WICK_CACHE="$folder/cache" WICK_KERNELS="$folder/packs" WICK_DEVICES=cpu

# Runs `wick kernels` with the arguments behind the expected status and a word of the output.
run() {
    want=$1 word=$2
    shift 2
    "$wick" kernels "$@" >"$folder/out" 2>&1
    got=$?
    if [ "$got" -eq "$want" ] && grep -q -e "$word" "$folder/out"; then
        passed=$((passed + 1))
    else
        failed=$((failed + 1))
        echo "failed: wick kernels $*: exit status $got, expected $want with '$word':" >&2
        tail -n 3 "$folder/out" >&2
    fi
}

run 0 'wick kernels build' --help
run 2 'expected build or list'
run 2 "got 'make'" make
run 2 "got 'gfx91'" list --arch gfx90a,gfx91
run 2 'no GPU here' list
run 2 'no op' list --arch sm_90 --op nothing_like_it
run 2 'goes with list' build --arch sm_90 --json
run 2 'jobs' build --arch sm_90 --jobs 0
run 1 'folder to write to' build --arch sm_90 --op tril --out /proc/nowhere
mkdir "$folder/packs"
echo 'not a pack, but long enough to have a header, were it one; so many words, so little code' >"$folder/packs/sm_90.wkpack"
run 1 'no pack of kernels' list --arch sm_90 --op tril
rm "$folder/packs/sm_90.wkpack"

for arch in gfx90a sm_90; do
    if ! "$wick" kernels build --arch $arch --op tril >"$folder/out" 2>&1 && grep -q 'not found; it comes with' "$folder/out"; then
        skipped=$((skipped + 1))
        continue
    fi
    run 0 "$arch.wkpack: [0-9]* kernels" build --arch $arch --op tril --jobs 2
    rm -rf "$folder/cache"
    run 0 'kernels, 0 that spill' list --arch $arch --op tril
    run 0 '"kernel":"triangle<u8,16,0>"' list --arch $arch --op tril --json
    [ -e "$folder/cache" ] && { failed=$((failed + 1)); echo "failed: $arch: compiled what the pack has" >&2; }
    head -c -1 "$folder/packs/$arch.wkpack" >"$folder/cut" && mv "$folder/cut" "$folder/packs/$arch.wkpack"
    run 1 'cut short' list --arch $arch --op tril
    # The kernels of var would spill on sm_80; an array in memory, which sines have, is no spill.
    [ $arch = sm_90 ] && run 0 'sm_80: [0-9]* kernels, 0 that spill' list --arch sm_80 --op var --op sin
done

echo "$passed passed, $failed failed, $skipped skipped"
[ "$failed" -eq 0 ]
