/* run_bert.c: `wick run bert`: texts as vectors, and how near they are to each other. */
#include <stdio.h>
#include <stdlib.h>
#include "bert.h"
#include "error.h"
#include "progress.h"
#include "run_measure.h"

static const char help[] =
    "usage: wick run bert DIR --text TEXT ...\n"
    "       wick run bert --random NAME [--batch N] [--tokens N] [--seconds S]\n"
    "\n"
    "Makes a vector of each text (a sentence embedding of length 1) with a BERT or MiniLM model, and shows "
    "the cosines\n"
    "between them: near 1 for texts of the same meaning. DIR holds config.json, model.safetensors and "
    "tokenizer.json\n"
    "or vocab.txt, as Hugging Face lays them out.\n"
    "\n"
    "  --text T         a text; may be given several times\n"
    "  --random NAME    minilm or base with random weights: measures, and needs no files\n"
    "  --batch N        texts at a time when measuring; 1\n"
    "  --tokens N       of each of these texts; 128\n"
    "  --seconds S      to measure for; 2\n" RUN_OPTIONS_HELP "\n"
    "With --json all numbers of the vectors are given.\n"
    "\n"
    "Examples:\n"
    "  wick run bert all-MiniLM-L6-v2 --text \"A cat sits.\" --text \"A kitten is sitting.\" --text \"Stocks "
    "fell.\"\n"
    "  wick run bert all-MiniLM-L6-v2 --text hello --json | jq '.embeddings[0] | length'\n"
    "  wick run bert --random minilm --batch 32 --dtype f16 --device cuda:0\n";

typedef struct {
    run_options run;
    arg_list texts;
    const char *random, *batch, *tokens, *seconds;
    long n_batch, n_tokens;
    double n_seconds;
} options;

/* ---- Texts ---- */

static void print_json(const options *o, wk_text *t, const float *v, int64_t width)
{
    wk_text_add(t, "{\"device\":\"%s\",\"width\":%lld,\"embeddings\":[", wk_device_name(o->run.device),
                (long long)width);
    for (int i = 0; i < o->texts.n; i++)
        for (int64_t k = 0; k < width; k++)
            wk_text_add(t, "%s%.8g%s", k ? "," : i ? ",[" : "[", v[i * width + k], k + 1 == width ? "]" : "");
    wk_text_add(t, "],\"cosine\":[");
    for (int i = 0; i < o->texts.n; i++)
        for (int k = 0; k < o->texts.n; k++)
            wk_text_add(t, "%s%.6f%s",
                        k   ? ","
                        : i ? ",["
                            : "[",
                        wm_cosine(width, v + i * width, v + k * width), k + 1 == o->texts.n ? "]" : "");
    wk_text_add(t, "]}\n");
}

static void print_plain(const options *o, wk_text *t, const float *v, int64_t width)
{
    for (int i = 0; i < o->texts.n; i++) {
        wk_text_add(t, "%3d  %s\n     ", i + 1, o->texts.items[i]);
        for (int64_t k = 0; k < width && k < 6; k++)
            wk_text_add(t, "%s%.5f", k ? " " : "[", v[i * width + k]);
        wk_text_add(t, "%s, %lld numbers\n", width > 6 ? " ...]" : "]", (long long)width);
    }
    if (o->texts.n < 2)
        return;
    wk_text_add(t, "\ncosine");
    for (int i = 0; i < o->texts.n; i++)
        wk_text_add(t, " %7d", i + 1);
    for (int i = 0; i < o->texts.n; i++) {
        wk_text_add(t, "\n%6d", i + 1);
        for (int k = 0; k < o->texts.n; k++)
            wk_text_add(t, " %7.4f", wm_cosine(width, v + i * width, v + k * width));
    }
    wk_text_add(t, "\n");
}

static int show_texts(const options *o, const wm_bert *m)
{
    int64_t width = wm_bert_width(m);
    float *v = malloc((size_t)(o->texts.n * width) * sizeof *v);
    wk_text t = {0};
    if (!v)
        wm_fail(WK_ERR_MEMORY, "not enough memory for %d vectors", o->texts.n);
    if (!v || !wm_bert_embed(m, o->texts.n, o->texts.items, v)) {
        free(v);
        return run_error();
    }
    if (o->run.json)
        print_json(o, &t, v, width);
    else
        print_plain(o, &t, v, width);
    free(v);
    return args_print(&t);
}

/* ---- Measuring ---- */

typedef struct {
    const wm_bert *m;
    const wk_tensor *ids;
} pass_ctx;

static bool pass(void *ctx)
{
    const pass_ctx *p = ctx;
    wk_tensor *y = wm_bert_run(p->m, p->ids, NULL);
    wk_drop(y);
    return y != NULL;
}

static int measure(const options *o, const wm_bert *m)
{
    char what[64];
    int64_t shape[] = {o->n_batch, o->n_tokens};
    snprintf(what, sizeof what, "bert %s, %ld tokens", o->random, o->n_tokens);
    wk_scope_begin();
    wk_tensor *ids = wk_rand(o->run.device, WK_F32, 2, shape, 0, 30000, 3, 0);
    ids = ids ? wk_cast(ids, WK_I32) : NULL;
    int status =
        ids ? run_measure(&o->run, what, o->n_batch, o->n_seconds, pass, &(pass_ctx){m, ids}) : run_error();
    wk_scope_end();
    return status;
}

static bool numbers(const char *command, options *o)
{
    return args_int(command, "batch", o->batch, 1, 65536, &o->n_batch) &&
           args_int(command, "tokens", o->tokens, 1, 512, &o->n_tokens) &&
           run_seconds(command, o->seconds, &o->n_seconds);
}

static wm_bert *open_model(const options *o, const char *folder)
{
    wm_bert_config c;
    if (!o->random)
        return wm_bert_load(folder, o->run.device, o->run.dtype, &run_progress);
    return wm_bert_named_config(o->random, &c) ? wm_bert_random(&c, o->run.device, o->run.dtype, 1) : NULL;
}

int run_bert(int argc, char **argv)
{
    options o = {.batch = "1", .tokens = "128", .seconds = "2"};
    const arg_option list[] = {RUN_OPTIONS(o.run),
                               {"text", .list = &o.texts},
                               {"random", .value = &o.random},
                               {"batch", .value = &o.batch},
                               {"tokens", .value = &o.tokens},
                               {"seconds", .value = &o.seconds},
                               {0}};
    int status = args_parse(help, list, &argc, argv);
    if (status != ARGS_GO)
        return status;
    if (!numbers(argv[0], &o))
        return EXIT_USAGE;
    if (argc != (o.random ? 1 : 2))
        return args_usage(argv[0], o.random ? "--random needs no folder" : "expected a model's folder");
    if (!o.random && o.texts.n == 0)
        return args_usage(argv[0], "expected --text");
    status = run_begin(argv[0], &o.run);
    if (status != ARGS_GO)
        return status;
    o.run.dtype = o.run.dtype == WK_DTYPE_COUNT ? WK_F32 : o.run.dtype;
    wm_bert *m = open_model(&o, argv[1]);
    progress_clear();
    status = !m ? run_error() : o.random ? measure(&o, m) : show_texts(&o, m);
    wm_bert_free(m);
    return status;
}
