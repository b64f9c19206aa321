# counting.sh: what the tests of the tool share, to be read in: checks that count, and a folder, $folder, that goes at the end.
passed=0 failed=0
folder=$(mktemp -d) || exit 1
trap 'rm -rf "$folder"' EXIT

check() { # what, then a command that has to succeed; $folder/err, where there is one, says more
    what=$1
    shift
    if "$@"; then
        passed=$((passed + 1))
    else
        failed=$((failed + 1))
        echo "failed: $what" >&2
        [ ! -s "$folder/err" ] || sed 's/^/    /' "$folder/err" >&2
    fi
}

# fails STATUS WORD ARGUMENTS...: `wick run` must end with the status and one line that has the word.
fails() {
    want=$1 word=$2
    shift 2
    "$wick" run "$@" >"$folder/out" 2>"$folder/err"
    got=$?
    check "$*: status $got, expected $want" [ "$got" = "$want" ]
    check "$*: expected '$word'" grep -q -- "$word" "$folder/err"
    check "$*: expected one line" [ "$(wc -l <"$folder/err")" = 1 ]
}

summary() { # the last line, and the status to end with
    echo "$passed passed, $failed failed"
    test "$failed" -eq 0
}
