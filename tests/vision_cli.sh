#!/bin/sh
# vision_cli.sh: `wick run resnet`, `bert` and `train` from outside: what they print, that training converges, and what is said
# about files that are not what they have to be.
# usage: vision_cli.sh WICK MODELS
wick=$1 models=$2
. "$(dirname "$0")/counting.sh"

works() {
    "$wick" run "$@" >"$folder/out" 2>"$folder/err"
    check "$*: status $?" [ $? = 0 ]
}

# has WORD...: each is in what was printed.
has() { for word; do check "expected '$word' in: $(head -c 300 "$folder/out")" grep -q -- "$word" "$folder/out"; done; }

# picture NAME FILE: a picture out of images.safetensors, whose header says where each lies.
picture() {
    file=$models/images.safetensors
    size=$(od -An -t u8 -N 8 "$file" | tr -d ' ')
    place=$(head -c $((size + 8)) "$file" | tail -c "$size" | tr '}' '\n' | grep -F "\"$1\":" | sed 's/.*"data_offsets":\[\([0-9,]*\)\].*/\1/')
    tail -c +$((size + 9 + ${place%,*})) "$file" | head -c $((${place#*,} - ${place%,*})) >"$2"
}
picture photo.png "$folder/a.png"
picture 33x25-s2-p1-r0.jpg "$folder/b.jpg"
resnet=$models/resnet-basic.safetensors

# ---- what they print ----

works resnet "$resnet" --device cpu --image "$folder/a.png" --image "$folder/b.jpg"
has "^$folder/a.png" "^$folder/b.jpg" '%  *[0-9]'
check "two pictures of five classes" [ "$(grep -c '%' "$folder/out")" = 10 ]
cp "$folder/out" "$folder/first"
works resnet "$resnet" --device cpu --image "$folder/a.png" --image "$folder/b.jpg" --keep-batch-norm
check "the same with batch norms kept" cmp -s "$folder/out" "$folder/first"
works resnet "$resnet" --device cpu --image "$folder/a.png" --json --top 2
has '"model":"resnet12"' '"classes":\[{"class":[0-9]*,"name":"","probability":0'
works resnet --random 18 --device cpu --seconds 0
has 'resnet18, cpu, f32, batch 1: [0-9.]* ms'

works bert "$models/bert" --device cpu --text 'A cat sits.' --text 'A kitten is sitting.' --text ''
has '^  1  A cat sits.' '32 numbers' '^cosine' '^     1  1.0000'
works bert "$models/bert" --device cpu --dtype bf16 --text 'A cat sits.' --json
has '"width":32,"embeddings":\[\[' '"cosine":\[\[1.000000\]\]'
works bert --random minilm --tokens 16 --device cpu --seconds 0 --json
has '"model":"bert minilm, 16 tokens"' '"ms":[0-9.]*'

# ---- training: the loss falls, and little is read wrong in the end ----

last() { sed 's/.*"errors":\[\(.*\)\].*/\1/; s/.*,//' "$folder/out"; }
works train cnn --device cpu --steps 250 --svg "$folder/cnn.svg" --json
check "cnn: a share of $(last) errors, expected less than 0.05" awk "BEGIN { exit !($(last) < 0.05) }"
check "a curve" grep -q '<polyline' "$folder/cnn.svg"
works train ctc --device cpu --steps 800 --json
check "ctc: a share of $(last) errors, expected less than 0.1" awk "BEGIN { exit !($(last) < 0.1) }"
works train cnn --device cpu --steps 20
has 'LeNet on drawn digits on cpu: 20 steps'

# ---- usage ----

fails 2 'expected --image' resnet "$resnet"
fails 2 'expected a file of weights' resnet --image x.png
fails 2 ' --top: expected a number' resnet "$resnet" --image x.png --top 0
fails 1 'depth of 18, 34, 50, 101 or 152, got 19' resnet --random 19
fails 2 'expected --text' bert "$models/bert"
fails 1 "minilm or base, got 'huge'" bert --random huge
fails 2 'expected cnn or ctc' train gan
fails 2 '--lr: expected a number above 0' train cnn --lr fast
fails 2 '--lr: expected a number above 0' train cnn --lr 0.1x
fails 2 '--dtype: training is in f32' train cnn --dtype f16
check 'train offers no dtype' sh -c "! '$wick' run train --help | grep -q -e --dtype"
fails 1 'no/such/place.svg' train cnn --steps 10 --svg "$folder/no/such/place.svg"

# ---- files that are not what they have to be ----

picture_fails() { fails 1 "$1" resnet "$resnet" --device cpu --image "$2"; }
picture_fails 'nothing.png: No such file' "$folder/nothing.png"
picture_fails 'byte 0: neither a PNG nor a JPEG file' "$models/bert/config.json"
: >"$folder/empty.png" && picture_fails 'empty.png: byte 0' "$folder/empty.png"
head -c 900 "$folder/a.png" >"$folder/cut.png" && picture_fails 'cut.png: byte ' "$folder/cut.png"
head -c 300 "$folder/b.jpg" >"$folder/cut.jpg" && picture_fails 'cut.jpg: byte ' "$folder/cut.jpg"
cp "$folder/a.png" "$folder/flip.png" && printf x | dd of="$folder/flip.png" bs=1 seek=200 conv=notrunc 2>/dev/null
picture_fails 'checksum of a chunk is wrong' "$folder/flip.png"

weights_fail() { fails 1 "$1" resnet "$2" --device cpu --image "$folder/a.png"; }
weights_fail 'none.safetensors' "$folder/none.safetensors"
weights_fail 'a.png: ' "$folder/a.png"
weights_fail 'no ResNet: expected layer1.0.conv1.weight' "$models/bert/model.safetensors"
head -c 30000 "$resnet" >"$folder/cut.safetensors" && weights_fail 'cut.safetensors' "$folder/cut.safetensors"
sed 's/"fc.weight"/"fc.weighs"/' "$resnet" >"$folder/m.safetensors" && weights_fail "m.safetensors: tensor 'fc.weight' is missing" "$folder/m.safetensors"
sed 's/"layer2.0.bn1.running_var"/"layer2.0.bn1.running_vat"/' "$resnet" >"$folder/m.safetensors" &&
    weights_fail "tensor 'layer2.0.bn1.running_var' is missing" "$folder/m.safetensors"
sed 's/"layer3.0.downsample.0.weight"/"layer3.0.downsample.0.wright"/' "$resnet" >"$folder/m.safetensors" &&
    weights_fail 'layer3.0: its shape changes, but layer3.0.downsample.0.weight is missing' "$folder/m.safetensors"
sed 's/"conv1.weight":{"dtype":"F32","shape":\[6,3,7,7\]/"conv1.weight":{"dtype":"F32","shape":[6,7,3,7]/' "$resnet" >"$folder/m.safetensors" &&
    weights_fail "tensor 'conv1.weight': expected shape \[any, any, 7, 7\], got \[6, 7, 3, 7\]" "$folder/m.safetensors"

# broken: a fresh copy of the BERT to be broken, at $folder/m.
broken() {
    rm -rf "$folder/m"
    cp -r "$models/bert" "$folder/m"
    chmod -R u+w "$folder/m"
}
edit() { sed -i "$2" "$folder/m/$1"; }
try() { fails 1 "$1" bert "$folder/m" --device cpu --text x; }
fails 1 'nowhere/config.json: No such file' bert "$folder/nowhere" --text x
broken && rm "$folder/m/tokenizer.json" && try 'm/vocab.txt: No such file'
broken && rm "$folder/m/model.safetensors" && try 'expected model.safetensors'
broken && head -c 50000 "$models/bert/model.safetensors" >"$folder/m/model.safetensors" && try 'm/model.safetensors'
broken && edit config.json 's/"model_type": "bert"/"model_type": "roberta"/' && try "model_type: expected 'bert', got 'roberta'"
broken && edit config.json 's/"hidden_act": "gelu"/"hidden_act": "swish"/' && try "hidden_act: unknown activation 'swish'"
broken && edit config.json '/"num_hidden_layers"/d' && try 'config.json: num_hidden_layers is missing'
broken && edit config.json 's/"num_attention_heads": 4/"num_attention_heads": 5/' && try 'no multiple of num_attention_heads 5'
broken && edit config.json 's/"num_hidden_layers": 2/"num_hidden_layers": 3/' && try "tensor 'encoder.layer.2.attention.self.query.weight' is missing"
broken && edit config.json 's/"intermediate_size": 64/"intermediate_size": 65/' &&
    try "tensor 'encoder.layer.0.intermediate.dense.weight': expected shape \[65, 32\], got \[64, 32\]"
broken && edit config.json 's/"vocab_size": [0-9]*/"vocab_size": 100/' && try 'the tokenizer has [0-9]* tokens, the model 100'
broken && edit tokenizer.json 's/"BertNormalizer"/"NFKC"/' && try "normalizer.type: expected BertNormalizer, got 'NFKC'"
broken && edit tokenizer.json 's/"\[CLS\]":/"[CLX]":/' && try 'the vocabulary has no \[CLS\]'
broken && edit tokenizer.json 's/"type":"WordPiece"/"type":"BPE"/g' && try "model.type: expected WordPiece, got 'BPE'"
mkdir -p "$folder/m/1_Pooling" && broken && mkdir "$folder/m/1_Pooling" &&
    echo '{"pooling_mode_max_tokens": true}' >"$folder/m/1_Pooling/config.json" && try 'pooling_mode_max_tokens: only the mean and the first token'

summary
