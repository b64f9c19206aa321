# bash completion for wick: commands, options, ops and their parameters, devices.

_wick_devices() {
    echo auto
    "$1" info --json 2>/dev/null | grep -o '"name":"[^"]*"' | cut -d'"' -f4
}

# The parameters of an op as NAME=
_wick_params() {
    "$1" ops "$2" 2>/dev/null | awk '/^[a-z]/ { on = $1 == "params" } on { print $(/^params/ ? 2 : 1) "=" }'
    echo outputs=all
}

_wick() {
    local wick=${COMP_WORDS[0]} current=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD - 1]}
    local command=${COMP_WORDS[1]} words=
    COMPREPLY=()
    if [[ $COMP_CWORD -eq 1 ]]; then
        COMPREPLY=($(compgen -W 'info ops op check bench kernels run help --help --version' -- "$current"))
        return
    fi
    case $before in
    --device) words=$(_wick_devices "$wick") ;;
    --op) words=$("$wick" ops --names 2>/dev/null) ;;
    --dtype) words='f32 f16 bf16 f64 u8 u32 i64 i32 i16' ;;
    --impl) words='simd ref kernel composed rocblas miopen cublas cudnn' ;;
    --filter) words=$("$wick" bench --list 2>/dev/null) ;;
    --batch | --report | --against | --html | --image | --svg)
        COMPREPLY=($(compgen -f -- "$current"))
        return
        ;;
    --arch) words='gfx906 gfx908 gfx90a gfx942 gfx950 gfx1030 gfx1100 gfx1101 gfx1151 gfx1201 sm_80 sm_86 sm_89 sm_90 sm_100 sm_120' ;;
    --save | --out)
        COMPREPLY=($(compgen -d -- "$current"))
        return
        ;;
    --random)
        case ${COMP_WORDS[2]} in
        bert) words='minilm base' ;;
        resnet) words='18 34 50 101 152' ;;
        *) words='8b 1b tiny' ;;
        esac
        ;;
    --threads | --seconds | --tolerance | --jobs | --prompt | --tokens | --temperature | --top-k | --top-p | --seed | --prompt-tokens | --repeat | --text | --top | --steps | --lr) return ;;
    esac
    if [[ -n $words ]]; then
        COMPREPLY=($(compgen -W "$words" -- "$current"))
        return
    fi
    case $command in
    info) words='--json --help' ;;
    ops) words="$("$wick" ops --names 2>/dev/null) --json --names --device --help" ;;
    op)
        if [[ $current == -* ]]; then
            words='--device --impl --threads --batch --help'
        elif [[ $COMP_CWORD -eq 2 ]]; then
            words=$("$wick" ops --names 2>/dev/null)
        elif [[ $COMP_CWORD -le 4 || $current == */* ]]; then
            COMPREPLY=($(compgen -f -- "$current"))
        else
            words=$(_wick_params "$wick" "${COMP_WORDS[2]}")
        fi
        ;;
    check) words='--device --op --impl --dtype --quick --save --tolerance --deny --json --report --help' ;;
    bench) words='--device --filter --impl --tune --large --against --seconds --json --html --list --help' ;;
    kernels)
        words='--arch --out --op --jobs --json --help'
        [[ $COMP_CWORD -eq 2 ]] && words='build list --help'
        ;;
    run)
        if [[ $COMP_CWORD -eq 2 ]]; then
            words='llama bert resnet train --help'
        elif [[ $current == -* ]]; then
            case ${COMP_WORDS[2]} in
            bert) words='--device --dtype --json --text --random --batch --tokens --seconds --help' ;;
            resnet) words='--device --dtype --json --image --top --keep-batch-norm --random --batch --seconds --help' ;;
            train) words='--device --json --steps --batch --lr --seed --svg --help' ;;
            *) words='--device --dtype --json --prompt --tokens --temperature --top-k --top-p --seed --ignore-eos --random --prompt-tokens --repeat --help' ;;
            esac
        elif [[ ${COMP_WORDS[2]} == train && $COMP_CWORD -eq 3 ]]; then
            words='cnn ctc'
        else
            COMPREPLY=($(compgen -f -- "$current"))
        fi
        ;;
    help) words='info ops op check bench kernels run' ;;
    esac
    COMPREPLY+=($(compgen -W "$words" -- "$current"))
    [[ ${COMPREPLY[0]} == *= ]] && compopt -o nospace 2>/dev/null
}

complete -o filenames -F _wick wick
