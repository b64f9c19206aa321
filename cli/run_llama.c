/* run_llama.c: `wick run llama`: text from Llama, Mistral and Qwen models. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include "ahead.h"
#include "error.h"
#include "generate.h"
#include "progress.h"
#include "run.h"
#include "tokenizer.h"

static const char help[] =
    "usage: wick run llama DIR|FILE.gguf --prompt TEXT [--prompt TEXT ...] [options]\n"
    "       wick run llama DIR|FILE.gguf --prompt-tokens N [options]\n"
    "       wick run llama --random SIZE [--prompt-tokens N] [options]\n"
    "\n"
    "Continues texts with a model of the Llama family: Llama 2 and 3, Mistral, Qwen2, Qwen3. DIR has "
    "config.json,\n"
    "model.safetensors (or several with their index) and tokenizer.json, as Hugging Face lays them out; a "
    "GGUF file "
    "has\n"
    "all of it, with weights in F16, Q8_0, Q4_0, Q4_K or Q6_K, which stay so in memory. The "
    "text\n"
    "goes to standard output as it comes; several prompts are run together and printed at the end. Times go "
    "to\n"
    "standard error. Ctrl-C ends the text.\n"
    "\n"
    "  --prompt TEXT       the beginning, `-` reads it from standard input; up to 64 of them\n"
    "  --tokens N          new tokens at most, for each text (default 128)\n"
    "  --temperature F     0, the default, takes the likeliest token each time; 1 draws by the model's odds\n"
    "  --top-k N           draw from the N likeliest\n"
    "  --top-p F           draw from the likeliest that together reach F\n"
    "  --seed N            of the drawing (default 0): the same seed gives the same text\n"
    "  --ignore-eos        go on behind a token that ends the text\n"
    "  --random SIZE       8b, 1b or tiny: a model of that shape with random weights, to measure\n"
    "  --prompt-tokens N   a prompt of N tokens, to measure (default 2048)\n"
    "  --repeat N          run N times; the last is reported (default 1)\n" RUN_OPTIONS_HELP "\n"
    "Examples:\n"
    "  wick run llama Llama-3.2-1B --prompt 'The wick of a candle'\n"
    "  wick run llama Llama-3.2-1B-Q4_0.gguf --prompt 'The wick of a candle'\n"
    "  wick run llama Qwen3-0.6B --prompt - --temperature 0.7 --top-p 0.9 --seed 1 <question.txt\n"
    "  wick run llama --random 8b --device cuda:0 --dtype bf16 --repeat 2 --json\n";

typedef struct {
    run_options base;
    const char *tokens, *temperature, *top_k, *top_p, *seed, *size, *prompt_tokens, *repeat;
    arg_list prompts;
    bool ignore_eos;
} options;

/* A text on its way. */
typedef struct {
    char *prompt; /* NULL where it is made up */
    wm_ids ids, made;
    wm_decoder *decoder;
    wk_text text;
} text;

typedef struct {
    const options *o;
    wm_ahead *ahead; /* reads the files meanwhile */
    wm_generate_options how;
    long prompt_tokens, repeat;
    wm_llama *model;
    wm_tokenizer *tokenizer; /* NULL where the prompt is made up */
    text texts[ARGS_LIST];
    int n;
    bool stream; /* print as it comes */
    double load_seconds;
    wm_generate_stats stats;
} job;

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

/* ---- options ---- */

static bool read_number(const char *command, const char *name, const char *value, double lo, double hi,
                        double *v)
{
    char *end;
    if (!value)
        return true;
    *v = strtod(value, &end);
    if (end != value && !*end && *v >= lo && *v <= hi)
        return true;
    args_usage(command, "--%s: expected a number from %g to %g, got '%s'", name, lo, hi, value);
    return false;
}

static bool read_count(const char *command, const char *name, const char *value, long lo, long hi, int64_t *v)
{
    long n;
    if (!value)
        return true;
    if (!args_int(command, name, value, lo, hi, &n))
        return false;
    *v = n;
    return true;
}

static bool read_options(const char *command, const options *o, job *j)
{
    wm_sampling *s = &j->how.sampling;
    int64_t prompt_tokens = 2048, repeat = 1;
    j->how = (wm_generate_options){.most = 128, .ignore_stops = o->ignore_eos, .sampling = {.top_p = 1}};
    bool fine = read_count(command, "tokens", o->tokens, 1, 1 << 24, &j->how.most) &&
                read_number(command, "temperature", o->temperature, 0, 100, &s->temperature) &&
                read_count(command, "top-k", o->top_k, 0, 1 << 24, &s->top_k) &&
                read_number(command, "top-p", o->top_p, 0, 1, &s->top_p) &&
                read_count(command, "seed", o->seed, 0, INT32_MAX, &s->seed) &&
                read_count(command, "prompt-tokens", o->prompt_tokens, 1, 1 << 20, &prompt_tokens) &&
                read_count(command, "repeat", o->repeat, 1, 1000, &repeat);
    j->prompt_tokens = (long)prompt_tokens;
    j->repeat = (long)repeat;
    return fine;
}

/* ---- prompts ---- */

/* All of standard input; NULL with an error. */
static char *read_input(void)
{
    wk_text t = {0};
    char block[4096];
    size_t n;
    while ((n = fread(block, 1, sizeof block, stdin)) > 0)
        wk_text_add(&t, "%.*s", (int)n, block);
    if (!t.failed && !ferror(stdin) && t.data)
        return t.data;
    wm_fail(WK_ERR_IO, "--prompt -: standard input is empty or cannot be read");
    wk_text_free(&t);
    return NULL;
}

static bool encode_prompts(job *j)
{
    for (; j->n < j->o->prompts.n; j->n++) {
        text *t = &j->texts[j->n];
        const char *given = j->o->prompts.items[j->n];
        t->prompt = strcmp(given, "-") == 0 ? read_input() : strdup(given);
        t->decoder = wm_decoder_new(j->tokenizer);
        if (!t->prompt || !t->decoder ||
            !wm_encode(j->tokenizer, t->prompt, strlen(t->prompt), true, &t->ids))
            return wm_fail(WK_ERR_MEMORY, "out of memory"), false;
        if (t->ids.n == 0)
            return wm_fail(WK_ERR_ARGUMENT, "--prompt: expected a text, got an empty one"), false;
    }
    return true;
}

static bool make_prompt(job *j, int64_t vocab)
{
    j->n = 1;
    for (int64_t i = 0; i < j->prompt_tokens; i++) {
        if (!wm_ids_add(&j->texts[0].ids, (uint32_t)(i * 7919 % vocab)))
            return wm_fail(WK_ERR_MEMORY, "out of memory"), false;
    }
    return true;
}

/* ---- loading ---- */

static bool load_files(job *j, const char *folder)
{
    j->tokenizer = wm_tokenizer_open(folder);
    j->model =
        j->tokenizer ? wm_llama_load(folder, j->o->base.device, j->o->base.dtype, &run_progress) : NULL;
    progress_clear();
    if (!j->model)
        return false;
    int64_t vocab = wm_llama_config_of(j->model)->vocab, size = wm_tokenizer_size(j->tokenizer);
    if (size > vocab)
        return wm_fail(WK_ERR_FORMAT,
                       "%s: its tokenizer has %lld tokens, the model's vocabulary (vocab_size) %lld", folder,
                       (long long)size, (long long)vocab),
               false;
    if (j->o->prompts.n)
        return encode_prompts(j);
    wm_tokenizer_close(j->tokenizer); /* what comes of a made up prompt is no text */
    j->tokenizer = NULL;
    return make_prompt(j, vocab);
}

static bool load_random(job *j)
{
    wm_llama_config c;
    if (!wm_llama_named_config(j->o->size, &c))
        return false;
    j->model = wm_llama_random(&c, j->o->base.device, j->o->base.dtype, 1);
    j->how.ignore_stops = true;
    return j->model && make_prompt(j, c.vocab);
}

/* ---- running ---- */

static bool take_token(void *ctx, int64_t row, uint32_t id)
{
    job *j = ctx;
    text *t = &j->texts[row];
    const char *part = t->decoder ? wm_decode(t->decoder, id) : "";
    if (!part || !wm_ids_add(&t->made, id))
        return false;
    if (j->stream) {
        fputs(part, stdout);
        fflush(stdout);
    }
    wk_text_add(&t->text, "%s", part);
    return !run_stopped();
}

static void forget(text *t)
{
    t->made.n = 0;
    wk_text_free(&t->text);
    t->text = (wk_text){0};
}

static bool generate(job *j)
{
    wm_prompt prompts[ARGS_LIST];
    for (int i = 0; i < j->n; i++)
        prompts[i] = (wm_prompt){j->texts[i].ids.ids, (int64_t)j->texts[i].ids.n};
    j->how.token = take_token;
    j->how.ctx = j;
    for (long i = 0; i < j->repeat && !run_stopped(); i++) {
        j->stream = j->tokenizer && j->n == 1 && !j->o->base.json && i + 1 == j->repeat;
        for (int k = 0; k < j->n; k++)
            forget(&j->texts[k]);
        if (!wm_generate(j->model, j->n, prompts, &j->how, &j->stats))
            return false;
        for (int k = 0; k < j->n && j->tokenizer; k++) {
            const char *rest = wm_decode_end(j->texts[k].decoder);
            wk_text_add(&j->texts[k].text, "%s", rest ? rest : "");
            if (j->stream && rest)
                fputs(rest, stdout);
        }
    }
    return true;
}

/* ---- reporting ---- */

static double per_second(const job *j)
{
    int64_t decoded = j->stats.new_tokens - j->n; /* the first ones come with the prompts */
    return decoded > 0 && j->stats.decode_seconds > 0 ? (double)decoded / j->stats.decode_seconds : 0;
}

static int print_json(const job *j)
{
    wk_text t = {0};
    wk_memory_stats memory = {0};
    int64_t per_token, bytes = wm_llama_bytes(j->model, &per_token);
    wk_text_add(&t, "{\"device\":\"%s\",\"dtype\":\"%s\",\"texts\":[", wk_device_name(j->o->base.device),
                wk_dtype_name(wm_llama_dtype(j->model)));
    for (int i = 0; i < j->n; i++) {
        wk_text_add(&t, "%s{\"prompt_tokens\":%zu,\"text\":", i ? "," : "", j->texts[i].ids.n);
        wk_text_string(&t, j->texts[i].text.data ? j->texts[i].text.data : "");
        wk_text_add(&t, ",\"tokens\":[");
        for (size_t k = 0; k < j->texts[i].made.n; k++)
            wk_text_add(&t, "%s%u", k ? "," : "", j->texts[i].made.ids[k]);
        wk_text_add(&t, "]}");
    }
    wk_text_add(&t, "],\"load_s\":%.3f,\"prompt_tokens\":%lld,\"new_tokens\":%lld,\"first_token_ms\":%.3f,",
                j->load_seconds, (long long)j->stats.prompt_tokens, (long long)j->stats.new_tokens,
                j->stats.prompt_seconds * 1e3);
    wk_text_add(&t, "\"tokens_per_s\":%.3f,\"weights_bytes\":%lld,\"weights_gb_per_s\":%.2f,", per_second(j),
                (long long)bytes, per_second(j) / j->n * (double)per_token * 1e-9);
    wk_memory(j->o->base.device, &memory);
    wk_text_add(&t, "\"peak_bytes\":%llu}\n", (unsigned long long)memory.peak);
    return args_print(&t);
}

static void print_texts(const job *j)
{
    for (int i = 0; i < j->n && j->tokenizer; i++) {
        if (!j->stream)
            printf("%s== %d: %s\n%s", i ? "\n" : "", i + 1, j->texts[i].prompt,
                   j->texts[i].text.data ? j->texts[i].text.data : "");
    }
    if (j->tokenizer)
        printf("\n");
    fflush(stdout);
    fprintf(stderr,
            "%s, %s: loaded in %.2f s; %lld prompt tokens, the first token after %.1f ms; %lld tokens, %.1f "
            "a second\n",
            wk_device_name(j->o->base.device), wk_dtype_name(wm_llama_dtype(j->model)), j->load_seconds,
            (long long)j->stats.prompt_tokens, j->stats.prompt_seconds * 1e3, (long long)j->stats.new_tokens,
            per_second(j));
}

static void clean(job *j)
{
    for (int i = 0; i < ARGS_LIST; i++) {
        free(j->texts[i].prompt);
        wm_ids_free(&j->texts[i].ids);
        wm_ids_free(&j->texts[i].made);
        wm_decoder_free(j->texts[i].decoder);
        wk_text_free(&j->texts[i].text);
    }
    wm_llama_free(j->model);
    wm_tokenizer_close(j->tokenizer);
    wm_ahead_stop(j->ahead);
}

static int run_job(job *j, const char *folder)
{
    double start = now();
    bool loaded = j->o->size ? load_random(j) : load_files(j, folder);
    j->load_seconds = now() - start;
    if (!loaded || !generate(j))
        return run_error();
    int status = EXIT_OK;
    if (j->o->base.json)
        status = print_json(j);
    else
        print_texts(j);
    return run_stopped() ? run_error() : status;
}

int run_llama(int argc, char **argv)
{
    options o = {0};
    const arg_option table[] = {RUN_OPTIONS(o.base),
                                {"prompt", .list = &o.prompts},
                                {"tokens", .value = &o.tokens},
                                {"temperature", .value = &o.temperature},
                                {"top-k", .value = &o.top_k},
                                {"top-p", .value = &o.top_p},
                                {"seed", .value = &o.seed},
                                {"ignore-eos", .flag = &o.ignore_eos},
                                {"random", .value = &o.size},
                                {"prompt-tokens", .value = &o.prompt_tokens},
                                {"repeat", .value = &o.repeat},
                                {0}};
    int status = args_parse(help, table, &argc, argv);
    if (status != ARGS_GO)
        return status;
    job *j = calloc(1, sizeof *j);
    if (!j)
        return EXIT_FAILED;
    j->o = &o;
    if (argc != (o.size ? 1 : 2))
        status = o.size ? args_usage(argv[0], "--random takes no folder")
                        : args_usage(argv[0], "expected one folder or GGUF file");
    else if (!o.size && (o.prompts.n == 0) == (o.prompt_tokens == NULL))
        status = args_usage(argv[0], "expected --prompt or --prompt-tokens");
    else if (!read_options(argv[0], &o, j))
        status = EXIT_USAGE;
    if (status == ARGS_GO && !o.size)
        j->ahead = wm_ahead_start(argv[1]);
    if (status == ARGS_GO)
        status = run_begin(argv[0], &o.base);
    if (status == ARGS_GO)
        status = run_job(j, argc > 1 ? argv[1] : NULL);
    clean(j);
    free(j);
    return status;
}
