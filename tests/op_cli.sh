#!/bin/sh
# op_cli.sh: tests of `wick op` from the shell: files in, files out, exit status, messages.
# usage: op_cli.sh PATH/TO/wick
wick=$1
. "$(dirname "$0")/counting.sh"
cd "$folder" || exit 1

# A safetensors file: name, header, data as printf's escapes.
file() {
    n=${#2}
    printf "\\$(printf %o $((n % 256)))\\$(printf %o $((n / 256)))\\0\\0\\0\\0\\0\\0" >"$1"
    printf '%s' "$2" >>"$1"
    printf "$3" >>"$1"
}

# Runs `wick op` with the arguments behind the expected status and message; a failed one leaves no file y.
run() {
    want=$1 word=$2
    shift 2
    "$wick" op "$@" >out 2>err
    got=$?
    check "wick op $*: exit status $got, expected $want" test "$got" -eq "$want"
    if [ "$want" -ne 0 ]; then
        check "wick op $*: message without '$word'" grep -q -e "$word" err
        check "wick op $*: one line" test "$(wc -l <err)" -eq 1
        check "wick op $*: no output file" test ! -e y
    else
        check "wick op $*: silence" test ! -s err -a ! -s out
    fi
}

# The data of y, which holds outputs of 4 bytes an element: type for od, then the numbers.
holds() {
    type=$1
    shift
    n=$(od -An -t u8 -N 8 y | tr -d ' ')
    check "y holds $*, got $(od -An -v -t "$type" -j $((8 + n)) y | xargs)" \
        test "$(od -An -v -t "$type" -j $((8 + n)) y | xargs)" = "$*"
    rm -f y
}

f1='\0\0\200\077' f2='\0\0\0\100' f3='\0\0\100\100' f4='\0\0\200\100' # 1 2 3 4 as f32
x22='"dtype":"F32","shape":[2,2],"data_offsets":[0,16]'
file x "{\"x\":{$x22}}" "$f1$f2$f3$f4"
file empty '{}' ''
file ab '{"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]},"b":{"dtype":"F32","shape":[],"data_offsets":[8,12]}}' \
    "$f1$f2$f3"

run 0 '' sum x y dims=0
holds f4 4 6
run 0 '' dims=1 sum --device cpu x y
holds f4 3 7
run 0 '' --device=cpu --impl=simd sum x y keepdim=1 --threads 1
holds f4 10
run 0 '' add ab y
holds f4 4 5
run 0 '' max x y dims=1 outputs=all
check 'optional outputs' grep -q '"indices":{"dtype":"U32"' y
run 0 '' max x y dims=1 outputs=y,indices
check 'an output by its name' grep -q '"indices":{"dtype":"U32"' y
run 0 '' max x y dims=1 outputs=none
check 'no optional outputs' sh -c '! grep -q indices y'
rm -f y
run 0 '' max x y dims=1
check 'no optional outputs' sh -c '! grep -q indices y'
rm -f y
file plane '{"x":{"dtype":"F32","shape":[1,2,2],"data_offsets":[0,16]}}' "$f1$f4$f3$f2"
run 0 '' max_pool2d plane y kernel_size=2 # its indices are no optional ones
check 'indices of max pooling' grep -q '"indices":{"dtype":"U32"' y
rm -f y
run 0 '' avg_pool2d plane y kernel_size=2 stride=kernel_size # a default may be given by its word
holds f4 2.5
file plane4 '{"x":{"dtype":"F32","shape":[1,1,2,2],"data_offsets":[0,16]}}' "$f1$f4$f3$f2"
run 0 '' upsample_nearest2d plane4 y size=1 scale=by_size
holds f4 1

# Views: the transpose by strides, a column by an offset, one outside the data.
one='\1\0\0\0\0\0\0\0' two='\2\0\0\0\0\0\0\0'
view() {
    file "$1" "{\"x\":{$x22},\"x.shape\":{\"dtype\":\"I64\",\"shape\":[2],\"data_offsets\":[16,32]},\"x.strides\":\
{\"dtype\":\"I64\",\"shape\":[2],\"data_offsets\":[32,48]},\"x.offset\":{\"dtype\":\"I64\",\"shape\":[1],\
\"data_offsets\":[48,56]}}" "$f1$f2$f3$f4$2"
}
view t "$two$two$one$two\\0\\0\\0\\0\\0\\0\\0\\0"
run 0 '' copy t y
holds f4 1 3 2 4
view c "$two$one$two$one$one"
run 0 '' copy c y
holds f4 2 4
view far "$two$two$two$two$one"
run 1 'copy: x: .*storage' copy far y
view negative "$two$two$one\\377\\377\\377\\377\\377\\377\\377\\377$one"
run 1 'copy: x: ' copy negative y
file lonely '{"x.shape":{"dtype":"I64","shape":[0],"data_offsets":[0,0]}}' ''
run 1 'copy: x.shape: no such input' copy lonely y

# Errors name the op, the argument and what was expected.
run 1 'sum: .*nothere: .*No such file' sum nothere y
run 1 'nosuch: no such op' nosuch x y
run 1 'sum: dims: expected' sum x y dims=7
run 1 'sum: dims: expected' sum x y dims=a
run 1 'sum: speed: no such parameter, expected dims, keepdim' sum x y speed=9
run 1 'sum: dim: expected once' sum x y dims=0 dim=1
run 1 'avg_pool2d: stride: expected' avg_pool2d plane y kernel_size=2 stride=kernel
run 1 'sum: outputs: expected all' sum x y outputs=some
run 1 'max: outputs: expected all' max x y dims=1 outputs=indices,
run 1 'sum: x: expected a tensor' sum - y
run 1 'sum: x: expected a tensor' sum empty y
run 1 'add: x: no such input, expected a, b' add x y
run 1 'argmax: dim: required' argmax x y
run 1 'tpu:0' sum x y --device tpu:0
run 1 'sum: .*No such file' sum x nowhere/y
printf 'junk' >junk
run 1 'sum: .*junk: byte 4: truncated' sum junk y
run 3 'sum: nosuch: no implementation of that name' sum x y --impl nosuch
export WICK_WITHOUT=simd
run 1 'sum: cpu: no implementation is left: see WICK_WITHOUT' sum x y --device cpu
unset WICK_WITHOUT
cp x y
run 1 'sum: dims' sum x y dims=7 # an earlier result does not stay behind
cp x both
"$wick" op sum both both dims=7 2>err
check 'a failed call keeps its input' cmp -s x both
"$wick" op sum both both dims=0 2>err
check 'an input can be the output' grep -q '"y":' both

# Any number of inputs: t0, t1, ...
file many '{"t0":{"dtype":"F32","shape":[1],"data_offsets":[0,4]},"t1":{"dtype":"F32","shape":[2],"data_offsets":[4,12]}}' \
    "$f3$f1$f2"
run 0 '' cat many y dim=0
holds f4 3 1 2
file hole '{"t0":{"dtype":"F32","shape":[1],"data_offsets":[0,4]},"t2":{"dtype":"F32","shape":[1],"data_offsets":[4,8]}}' \
    "$f3$f1"
run 1 'cat: t2: no such input, expected t1' cat hole y dim=0
run 0 '' fill - y shape=2 dtype=f32 value=3
holds f4 3 3
run 1 'fill: shape: .*less than 2^60 elements' fill - y shape=99999999999,99999999999 dtype=f32 value=1
run 1 'rnn: weight_ih_l0: expected a tensor' rnn x y hidden=2

# Wrong usage.
run 2 'expected NAME IN OUT' sum x
run 2 'expected NAME IN OUT' sum x y z
run 2 'no option' sum x y --nothing
run 2 'a?b' sum x y 'a
b'
run 2 'expected a value' sum x y --device
run 2 'threads: expected' sum x y --threads many
run 2 'goes without' --batch lines sum

# Batches.
printf '# sums\n\nsum x y dims=0\nsum x "y 2" dims=1 --device cpu\n' >lines
run 0 '' --batch lines
holds f4 4 6
check 'a name with a space' test -s 'y 2'
printf 'sum x y1\nsum x y dims=9\nsum x\nsum x y3\n' >lines
"$wick" op --batch lines 2>err
check 'a batch with failures: exit status' test $? -eq 1
check 'a batch goes on' test -s y1 -a -s y3 -a ! -e y
check 'a batch names the line' grep -q 'lines:2: sum: dims: expected' err
check 'a batch says what is wrong with the line' grep -q 'lines:3: expected NAME IN OUT' err
"$wick" op --batch - --impl nosuch <lines 2>err
check 'options for the whole batch' grep -q -e '-:1: sum: nosuch: ' err
run 1 'No such file' --batch nothere

# The other commands and the help.
for command in info ops op check bench kernels; do
    check "wick $command --help" sh -c "'$wick' $command --help | grep -q '^usage: wick $command'"
    check "wick $command --help: examples" sh -c "'$wick' $command --help | grep -q '^Examples:'"
done
run 0 '' max x y dims=1 outputs=all --impl "$("$wick" op --help | sed -n 's/.*wick op max .*--impl //p')" # the help's example
rm -f y
check 'wick --help' sh -c "'$wick' --help | grep -q 'usage: wick COMMAND'"
check 'wick --version' sh -c "'$wick' --version | grep -q '^wick [0-9]'"
check 'wick ops' sh -c "'$wick' ops | grep -q '^softmax '"
check 'wick ops NAME' sh -c "'$wick' ops softmax | grep -q 'accurate|fast|log, default accurate'"
check 'wick ops: a default by its word' sh -c "'$wick' ops max_pool2d | grep -q 'stride  *ints, default kernel_size$'"
check 'wick ops --names' sh -c "'$wick' ops --names | grep -qx softmax"
check 'wick ops --json' sh -c "'$wick' ops --json | grep -q '\"name\":\"softmax\"'"
check 'wick info' sh -c "'$wick' info | grep -q '^  cpu '"
check 'wick info --json' sh -c "'$wick' info --json | grep -q '\"name\":\"cpu\"'"
"$wick" 2>err
check 'no command: exit status 2' test $? -eq 2
"$wick" nosuch 2>err
check 'no such command: exit status 2' test $? -eq 2
"$wick" ops nosuch 2>err
check 'no such op: exit status 1' test $? -eq 1
if [ -w /dev/full ]; then
    "$wick" ops >/dev/full 2>err
    check 'a full disk: exit status 1' test $? -eq 1
fi

summary
