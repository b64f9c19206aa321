#!/bin/sh
# docs.sh: what the documents say is what the program does. usage: docs.sh BUILD
set -e
wick=$1/wick
failed=0
say() {
    echo "docs: $1" >&2
    failed=$((failed + 1))
}
# The support matrix of the README is generated.
sh docs/matrix.sh "$wick" | diff - docs/support.md >/dev/null || say "docs/support.md is out of date: sh docs/matrix.sh $wick > docs/support.md"
# Every wick call that the documents name is declared.
for name in $(grep -ohE '\bwk_[a-z0-9_]+' README.md docs/*.md | sort -u); do
    grep -rqE "\b$name\b" include || say "$name is named in the documents and declared nowhere"
done
# Every environment variable that the sources read is described.
for name in $(grep -rhoE 'getenv\("[A-Z_]+"' src cli | sed 's/getenv("//; s/"//' | sort -u); do
    grep -q "\`$name\`" docs/environment.md || say "$name is read and not described in docs/environment.md"
done
# The tables of gelu are generated.
if command -v python3 >/dev/null; then
    sed -n '/clang-format off/,/clang-format on/p' src/cpu/shares.h | sed '1d;$d' >"$1/shares.now"
    python3 tests/shares.py 2>/dev/null | cmp -s - "$1/shares.now" || say "the tables of src/cpu/shares.h are not those of tests/shares.py"
fi
[ $failed -eq 0 ] && echo "docs: fine"
