#!/bin/sh
# run_cli.sh: `wick run` from outside: what it prints, and what it says about folders that are not what they have to be.
# usage: run_cli.sh WICK MODELS
wick=$1 models=$2
. "$(dirname "$0")/counting.sh"

# broken NAME: a fresh copy of a model to be broken, at $folder/m.
broken() {
    rm -rf "$folder/m"
    cp -r "$models/$1" "$folder/m"
    chmod -R u+w "$folder/m"
}

# edit FILE SED: changes a file of the copy.
edit() { sed -i "$2" "$folder/m/$1"; }

# ---- what it prints ----

run() { "$wick" run llama "$models/llama3" --device cpu --prompt 'The wick' --tokens 8 "$@" >"$folder/out" 2>"$folder/err"; }
run && cp "$folder/out" "$folder/first"
check "a text" [ -s "$folder/first" ]
check "times on standard error" grep -q 'tokens, .* a second' "$folder/err"
run --repeat 2
check "the same text again" cmp -s "$folder/out" "$folder/first"
run --json
check "JSON with tokens" grep -q '"tokens":\[[0-9]*,.*"first_token_ms":' "$folder/out"
run --prompt "It's" --prompt "12345 candles"
check "three texts" [ "$(grep -c '^== [123]: ' "$folder/out")" = 3 ]
run --temperature 1 --top-k 40 --top-p 0.9 --seed 1 && cp "$folder/out" "$folder/drawn"
run --temperature 1 --top-k 40 --top-p 0.9 --seed 1
check "the same seed, the same text" cmp -s "$folder/out" "$folder/drawn"
printf 'The wick' | "$wick" run llama "$models/llama3" --device cpu --prompt - --tokens 8 >"$folder/out" 2>"$folder/err"
check "a prompt from standard input" cmp -s "$folder/out" "$folder/first"
"$wick" run llama --random tiny --device cpu --prompt-tokens 20 --tokens 4 --json >"$folder/out" 2>"$folder/err"
check "random weights" grep -q '"prompt_tokens":20,"new_tokens":4' "$folder/out"
"$wick" run llama "$models/gguf-q4_0/model.gguf" --device cpu --prompt-tokens 9 --tokens 4 --ignore-eos --json >"$folder/out" 2>"$folder/err"
check "a prompt of so many tokens" grep -q '"prompt_tokens":9,"new_tokens":4' "$folder/out"

# Ctrl-C ends it in time, with its own status. (A shell's background job has SIGINT ignored; env --default-signal undoes that.)
if env --default-signal=INT true 2>/dev/null; then
    env --default-signal=INT "$wick" run llama --random tiny --device cpu --prompt-tokens 4 --tokens 60000 >"$folder/out" 2>"$folder/err" &
    sleep 0.5
    kill -INT $!
    wait $!
    check "Ctrl-C: status $?, expected 130" [ $? = 130 ]
    check "Ctrl-C is said" grep -q interrupted "$folder/err"
fi

# ---- usage ----

fails 2 "no model 'gpt'" gpt
fails 2 'expected --prompt' llama "$models/llama3"
fails 2 'expected --prompt' llama "$models/llama3" --prompt A --prompt-tokens 9
fails 2 'expected one folder' llama --prompt x
fails 2 'f32, f16 or bf16' llama "$models/llama3" --prompt x --dtype i32
fails 2 'from 0 to 1' llama "$models/llama3" --prompt x --top-p 1.5
fails 1 'nosuch:0' llama "$models/llama3" --prompt x --device nosuch:0
fails 1 "8b, 1b or tiny, got '9t'" llama --random 9t

# ---- folders that are not what they have to be: the message names file and tensor or key ----

try() { fails 1 "$1" llama "$folder/m" --device cpu --prompt x; }
fails 1 'nowhere/tokenizer.json: No such file' llama "$folder/nowhere" --prompt x
broken llama3 && rm "$folder/m/config.json" && try 'config.json: No such file'
broken llama3 && echo '{"model_type": ' >"$folder/m/config.json" && try 'config.json: byte'
broken llama3 && edit config.json 's/"model_type": "llama"/"model_type": "mamba"/' && try "model_type: expected llama, mistral, qwen2 or qwen3, got 'mamba'"
broken llama3 && edit config.json 's/"hidden_act": "silu"/"hidden_act": "gelu"/' && try "hidden_act: expected silu, got 'gelu'"
broken llama3 && edit config.json '/"intermediate_size"/d' && try 'config.json: intermediate_size is missing'
broken llama3 && edit config.json 's/"hidden_size": 48/"hidden_size": "many"/' && try 'hidden_size: expected an integer'
broken llama3 && edit config.json 's/"num_key_value_heads": 2/"num_key_value_heads": 3/' && try 'multiple of num_key_value_heads (3)'
broken llama3 && edit config.json 's/"rope_type": "llama3"/"rope_type": "yarn"/' && try "rope_type default, linear or llama3, got 'yarn'"
broken llama3 && edit config.json 's/"intermediate_size": 80/"intermediate_size": 96/' &&
    try "model.safetensors: tensor 'model.layers.0.mlp.gate_proj.weight': expected shape \[96, 48\], got \[80, 48\]"
broken llama3 && edit config.json 's/"num_hidden_layers": 3/"num_hidden_layers": 4/' &&
    try "tensor 'model.layers.3.input_layernorm.weight' is missing"
broken llama3 && rm "$folder/m/model.safetensors" && try 'expected model.safetensors'
broken llama3 && head -c 60000 "$models/llama3/model.safetensors" >"$folder/m/model.safetensors" && try 'm/model.safetensors'
broken llama3 && head -c 100 "$models/llama3/model.safetensors" >"$folder/m/model.safetensors" && try 'm/model.safetensors'
broken llama3 && : >"$folder/m/model.safetensors" && try 'm/model.safetensors'
broken mistral && rm "$folder/m/model-00002-of-00003.safetensors" && try 'model-00002-of-00003.safetensors'
broken mistral && echo '{}' >"$folder/m/model.safetensors.index.json" && try 'index.json: weight_map'
broken mistral && rm "$folder/m/model.safetensors.index.json" && "$wick" run llama "$folder/m" --prompt x --tokens 1 >"$folder/out" 2>"$folder/err"
check "files without an index" [ $? = 0 ]
broken llama3 && edit tokenizer.json 's/"type":"BPE"/"type":"Unigram"/' && try "tokenizer.json: model: 'Unigram'"
broken qwen2 && edit tokenizer.json 's/"type":"NFC"/"type":"NFKC"/' && try "normalizer: 'NFKC'"
broken llama3 && edit tokenizer.json 's/{1,3}/{1,4}/' && try 'regular expression of GPT-2, Llama 3 or Qwen2'
broken llama3 && edit tokenizer.json 's/"id":400,/"id":9999,/' && try 'has 10000 tokens, the model.s vocabulary'
broken llama3 && head -c 5000 "$models/llama3/tokenizer.json" >"$folder/m/tokenizer.json" && try 'tokenizer.json: byte'

# ---- GGUF files ----

gguf() { # gguf WORD SED-COMMAND: the file changed that way
    sed "$2" "$models/gguf-q4_0/model.gguf" >"$folder/m.gguf"
    fails 1 "$1" llama "$folder/m.gguf" --device cpu --prompt x
}
"$wick" run llama "$models/gguf-q4_k/model.gguf" --device cpu --prompt x --tokens 2 >"$folder/out" 2>"$folder/err"
check "a GGUF file" [ $? = 0 ]
fails 1 'nowhere.gguf: cannot open it' llama "$folder/nowhere.gguf" --prompt x
head -c 30000 "$models/gguf-q4_0/model.gguf" >"$folder/m.gguf"
fails 1 "m.gguf: byte" llama "$folder/m.gguf" --prompt x
gguf 'begins with GGUF' 's/GGUF/GGML/'
gguf 'llama.block_count is missing' 's/llama\.block_count/llama.block_c0unt/'
gguf "k_proj.weight' is missing" 's/blk\.1\.attn_k\.weight/blk.9.attn_k.weight/'
gguf 'model: expected llama or gpt2' 's/ggml\.model/ggml.m0del/'

summary
