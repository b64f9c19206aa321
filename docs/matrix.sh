#!/bin/sh
# matrix.sh: prints docs/support.md from the op table. usage: matrix.sh PATH/TO/wick
cat <<'TEXT'
# Support matrix

Made by `sh docs/matrix.sh build/wick`. An op takes the dtypes of its line on every device. Implementations stand in the order they
are tried: `simd` is the fast one on the CPU, `ref` the plain reference in f64 beside it; `kernel` is wick's own on GPUs, behind the
vendors' libraries where these serve the op.

TEXT
echo '| op | dtypes | CPU | ROCm | CUDA |'
echo '|---|---|---|---|---|'
"$1" ops | awk 'NR > 1 { for (i = 3; i <= 5; i++) gsub(",", ", ", $i)
    print "| `" $1 "` | " $2 " | " $3 " | " $4 " | " $5 " |" }'
