#!/bin/sh
# check_cli.sh: `wick check --save`: every failure gives a `wick op` command that works when pasted and shows the same
# wrong number. No error is allowed here, so that there are failures.
# usage: check_cli.sh PATH/TO/wick
PATH=$(dirname "$1"):$PATH
. "$(dirname "$0")/counting.sh"
cd "$folder" || exit 1

wick check --device cpu --op conv2d --op softmax --op rnn --op layer_norm --op matmul --tolerance 0 \
    --save 'a folder' >out
check 'failures: exit status 1' test $? -eq 1
sed -n 's/^ *again: *//p' out >commands
check 'there are failures' test "$(wc -l <commands)" -ge 10
check 'every failure has a command' test "$(grep -c '^wick op ' commands)" -eq "$(grep -c '^FAIL.*: ' out)"
while read -r command; do
    check "$command" sh -c "$command"
done <commands

# The number that softmax's failure shows is in the file that its command has written.
line=$(grep '^FAIL softmax values simd f32: y\[' out)
place=$(echo "$line" | sed 's/.*y\[\([0-9]*\)\].*/\1/')
got=$(echo "$line" | sed 's/.*got \([^,]*\),.*/\1/')
y='a folder/softmax.simd.f32.out.safetensors'
header=$(od -An -t u8 -N 8 "$y" | tr -d ' ')
found=$(od -An -t f4 -j $((8 + header + 4 * place)) -N 4 "$y" | tr -d ' ')
check "y[$place]: $found in the file, $got in the message" \
    awk "BEGIN { exit !($found - $got < 1e-7 && $got - $found < 1e-7) }"

wick check --device cpu --op softmax --dtype f32 --tolerance 0 >out
check 'without --save the way to a command' grep -q 'again: .*--save DIR' out
check '--json has the command' sh -c \
    "wick check --op softmax --dtype f32 --tolerance 0 --save s --json | grep -q '\"command\": \"wick op softmax s/'"
wick check --device cpu --op softmax --dtype f32 --save none >out
check 'no failures: exit status 0' test $? -eq 0
check 'no failures: no files' test -z "$(ls none)"
wick check --op softmax --save no/such/folder 2>err
check 'a folder that cannot be: exit status 1' test $? -eq 1
check 'a folder that cannot be: says so' grep -q 'check: --save: no/such/folder' err
wick check --op softmax --op nosuch 2>err >out
check 'one wrong name of two: exit status 2' test $? -eq 2
check 'one wrong name of two: named' grep -q "check: --op: no op 'nosuch'" err
wick check --device cpu --op softmax --impl nosuch 2>err >out
check 'no such implementation: exit status 1' test $? -eq 1
check 'no such implementation: named' grep -q "check: --impl: no implementation 'nosuch' of these ops on cpu" err
wick check --op softmax --tolerance -1 2>err
check 'a wrong tolerance: exit status 2' test $? -eq 2

# Implementations that the environment leaves out.
WICK_WITHOUT=ref,simd wick check --device cpu --op relu --quick >out
check 'an op without its implementation: exit status 1' test $? -eq 1
check 'an op without its implementation: says so' grep -q 'FAIL relu: no implementation' out
WICK_WITHOUT=sim,imd wick check --device cpu --op relu --quick >out
check 'only whole names count' test $? -eq 0

summary
