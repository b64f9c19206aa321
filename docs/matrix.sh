#!/bin/sh
# matrix.sh: prints docs/support.md from the op table. usage: matrix.sh PATH/TO/wick
cat <<'TEXT'
# Support matrix

Made by `sh docs/matrix.sh build/wick`. An op takes the dtypes of its line on every device that has an implementation; `simd` is
the fast one on the CPU, `ref` the plain reference in f64 beside it.

TEXT
echo '| op | dtypes | CPU |'
echo '|---|---|---|'
"$1" ops | awk 'NR > 1 { sub(",", ", ", $3); print "| `" $1 "` | " $2 " | " $3 " |" }'
