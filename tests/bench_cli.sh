#!/bin/sh
# bench_cli.sh: `wick bench`: what it prints, writes and refuses. How fast the ops are is not looked at.
# usage: bench_cli.sh PATH/TO/wick
PATH=$(dirname "$1"):$PATH
. "$(dirname "$0")/counting.sh"
cd "$folder" || exit 1

fast='--device cpu --seconds 0 --filter rope.f32 --filter matmul.b16'
check 'the list has the cases' sh -c 'wick bench --device cpu --list | grep -qx rope.f32'
check 'those past the caches too' sh -c 'wick bench --device cpu --large --list | grep -qx add.large.bf16'
printf '%s\n' '{"torch": "x"}' '{"case": "rope.f32", "us": 1000000.0}' 'no JSON' >peer.jsonl
wick bench $fast --json --against peer.jsonl >out.jsonl
check 'JSON: exit status 0' test $? -eq 0
check 'JSON: one line a case' test "$(wc -l <out.jsonl)" -eq "$(wick bench $fast --list | wc -l)"
check 'JSON: the fields of a memory case' \
    grep -Eq '"case": "rope.f32", "us": [0-9.]+, "gbs": .*"share": .*"limit": "copy", "ratio": .*"impl": "simd"' out.jsonl
check 'JSON: no ratio where the peer has none' sh -c '! grep matmul out.jsonl | grep -q ratio'
wick bench $fast --against peer.jsonl --html page.html >out
check 'text: the mean of the one ratio' grep -q 'geometric mean of 1 ratios' out
check 'the page is whole' grep -q '</html>' page.html
check 'the page has chart and table' sh -c 'grep -q "<rect class=.good" page.html && grep -q "<td>rope.f32" page.html'
check 'the page fetches nothing' sh -c '! grep -Eq "https?:|src=|@import" page.html'
wick bench $fast --html no/such/folder/page.html >out 2>err
check 'a page that cannot be written: exit status 1' test $? -eq 1
check 'a page that cannot be written: says so' grep -q 'no/such/folder/page.html' err
wick bench --device cpu --filter no.such.case 2>err
check 'no case of that name: exit status 2' test $? -eq 2
wick bench --device cpu --against no.such.file 2>err
check 'no such peer: exit status 1' test $? -eq 1
wick ops add --device cpu >out
check 'ops --device names the implementation' grep -Eq '^add +all +simd' out
wick ops conv2d --device cpu --json >out
check 'ops --device --json' grep -q '"op":"conv2d","dtype":"bf16","device":"cpu","uses":"simd"' out
wick ops add --device cpu:7 2>err
check 'ops: no such device: exit status 1' test $? -eq 1

summary
