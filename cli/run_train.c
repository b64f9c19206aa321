/* run_train.c: `wick run train`: small models trained from scratch on data that is made here. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include "error.h"
#include "progress.h"
#include "run.h"
#include "train.h"

static const char help[] =
    "usage: wick run train cnn|ctc [--steps N] [--svg FILE]\n"
    "\n"
    "Trains a small model from scratch, with wick's gradients and AdamW, on digits that it draws itself:\n"
    "  cnn   a LeNet: which digit is drawn?\n"
    "  ctc   a bidirectional LSTM with CTC: which digits does a line show, without being told where they "
    "are?\n"
    "Says the loss and the share of errors (wrong digits; wrong, missing or extra digits) on data not seen "
    "before.\n"
    "\n"
    "  --steps N    400 for cnn, 1000 for ctc\n"
    "  --batch N    digits or lines a step; 32\n"
    "  --lr X       of AdamW; 0.002 for cnn, 0.008 for ctc\n"
    "  --seed N     of weights and data; 1\n"
    "  --svg FILE   the curve of loss and errors\n" RUN_DEVICE_HELP RUN_JSON_HELP "\n"
    "Examples:\n"
    "  wick run train cnn --svg loss.svg\n"
    "  wick run train ctc --steps 200 --device rocm:0\n";

enum { MOST_STEPS = 100000, EVERY = 10 };

typedef struct {
    run_options run;
    const char *steps, *batch, *lr, *seed, *svg;
    long n_steps, n_batch, n_seed;
    double rate;
} options;

/* A model, its data and what is wrong of a batch's results. */
typedef struct task {
    const char *name, *title;
    long steps;
    double rate;
    bool (*init)(wm_params *params, wk_device *device, int64_t seed);
    /* A fresh batch through the model, gradients left in params; the loss, negative with an error. errors counts what
     * is wrong, of total. */
    double (*step)(const options *o, wm_params *params, uint64_t *random, long *errors, long *total);
} task;

/* ---- cnn ---- */

static long wrong_digits(const float *logits, const int32_t *labels, long n)
{
    long wrong = 0;
    for (long i = 0; i < n; i++) {
        int best = 0;
        for (int k = 1; k < 10; k++)
            best = logits[10 * i + k] > logits[10 * i + best] ? k : best;
        wrong += best != labels[i];
    }
    return wrong;
}

static double cnn_step(const options *o, wm_params *params, uint64_t *random, long *errors, long *total)
{
    enum { N = WM_DIGIT_SIZE };
    long b = o->n_batch;
    float *pixels = malloc((size_t)b * N * N * sizeof *pixels), *out = malloc((size_t)b * 10 * sizeof *out);
    int32_t *labels = malloc((size_t)b * sizeof *labels);
    double loss = -1;
    for (long i = 0; pixels && out && labels && i < b; i++)
        labels[i] = wm_draw_digit(random, pixels + i * N * N);
    if (pixels && out && labels) {
        wk_tensor *x = wk_from_host(o->run.device, WK_F32, 4, (int64_t[]){b, 1, N, N}, pixels), *logits;
        wk_tensor *y =
            wm_cnn_loss(params, x, wk_from_host(o->run.device, WK_I32, 1, (int64_t[]){b}, labels), &logits);
        if (y && wk_to_host(logits, out) == WK_OK) {
            loss = wk_item(y);
            *errors = wrong_digits(out, labels, b);
            *total = b;
        }
    }
    free(pixels);
    free(out);
    free(labels);
    return loss;
}

/* ---- ctc ---- */

/* The classes of a line by the best of each column, without repeats and blanks; returns how many. */
static int read_line(const float *logits, int64_t stride, int width, int32_t *out)
{
    int n = 0, before = 0;
    for (int t = 0; t < width; t++) {
        int best = 0;
        for (int k = 1; k < WM_CTC_CLASSES; k++)
            best = logits[t * stride + k] > logits[t * stride + best] ? k : best;
        if (best && best != before)
            out[n++] = best;
        before = best;
    }
    return n;
}

/* How many digits must be changed, put in or taken out to make one of the other. */
static long edits(const int32_t *a, int n, const int32_t *b, int m)
{
    long row[WM_LINE_WIDTH + 1];
    for (int k = 0; k <= m; k++)
        row[k] = k;
    for (int i = 1; i <= n; i++) {
        long corner = row[0];
        row[0] = i;
        for (int k = 1; k <= m; k++) {
            long change = corner + (a[i - 1] != b[k - 1]),
                 add = (row[k] < row[k - 1] ? row[k] : row[k - 1]) + 1;
            corner = row[k];
            row[k] = change < add ? change : add;
        }
    }
    return row[m];
}

typedef struct {
    float *x, *out;
    int32_t *labels, *widths, *counts;
} lines;

static bool draw_lines(lines *l, long b, uint64_t *random)
{
    size_t n = (size_t)b;
    *l = (lines){.x = malloc(n * WM_LINE_WIDTH * WM_LINE_HEIGHT * sizeof(float)),
                 .out = malloc(n * WM_LINE_WIDTH * WM_CTC_CLASSES * sizeof(float)),
                 .labels = calloc(n * WM_LINE_DIGITS, sizeof(int32_t)),
                 .widths = malloc(n * sizeof(int32_t)),
                 .counts = malloc(n * sizeof(int32_t))};
    if (!l->x || !l->out || !l->labels || !l->widths || !l->counts)
        return false;
    for (long i = 0; i < b; i++) {
        int32_t *labels = l->labels + i * WM_LINE_DIGITS;
        l->counts[i] =
            wm_draw_line(random, l->x + i * WM_LINE_HEIGHT, b * WM_LINE_HEIGHT, labels, &l->widths[i]);
        for (int k = 0; k < l->counts[i]; k++)
            labels[k]++; /* class 0 is the blank */
    }
    return true;
}

static double ctc_step(const options *o, wm_params *params, uint64_t *random, long *errors, long *total)
{
    long b = o->n_batch;
    wk_device *d = o->run.device;
    double loss = -1;
    lines l;
    if (draw_lines(&l, b, random)) {
        wk_tensor *logits = NULL;
        wm_ctc_batch batch = {wk_from_host(d, WK_F32, 3, (int64_t[]){WM_LINE_WIDTH, b, WM_LINE_HEIGHT}, l.x),
                              wk_from_host(d, WK_I32, 1, (int64_t[]){b}, l.widths),
                              wk_from_host(d, WK_I32, 2, (int64_t[]){b, WM_LINE_DIGITS}, l.labels),
                              wk_from_host(d, WK_I32, 1, (int64_t[]){b}, l.counts)};
        wk_tensor *y = wm_ctc_batch_loss(params, &batch, &logits);
        if (y && wk_to_host(logits, l.out) == WK_OK)
            loss = wk_item(y);
        *errors = *total = 0;
        for (long i = 0; loss >= 0 && i < b; i++) {
            int32_t read[WM_LINE_WIDTH];
            int n = read_line(l.out + i * WM_CTC_CLASSES, b * WM_CTC_CLASSES, l.widths[i], read);
            *errors += edits(read, n, l.labels + i * WM_LINE_DIGITS, l.counts[i]);
            *total += l.counts[i];
        }
    }
    free(l.x);
    free(l.out);
    free(l.labels);
    free(l.widths);
    free(l.counts);
    return loss;
}

/* ---- Training ---- */

static const task tasks[] = {
    {"cnn", "LeNet on drawn digits", 400, 0.002, wm_cnn_init, cnn_step},
    {"ctc", "LSTM with CTC on lines of drawn digits", 1000, 0.008, wm_ctc_init, ctc_step},
};

typedef struct {
    double loss[MOST_STEPS / EVERY + 1], error[MOST_STEPS / EVERY + 1]; /* means over EVERY steps */
    int n;
} curve;

/* False with an error, or after Ctrl-C. Each batch is fresh, so what it shows before the step is a test. */
static bool train(const options *o, const task *t, wm_params *params, curve *c)
{
    uint64_t random = (uint64_t)o->n_seed * 1000003;
    double loss = 0, error = 0;
    for (long i = 0; i < o->n_steps && !run_stopped(); i++) {
        long errors = 0, total = 1;
        wk_scope_begin();
        double now = t->step(o, params, &random, &errors, &total);
        bool ok = now >= 0 && wm_params_update(params, o->rate);
        wk_scope_end();
        if (!ok) {
            wm_fail(WK_ERR_MEMORY, "train %s: step %ld", t->name, i + 1);
            return false;
        }
        loss += now / EVERY;
        error += (double)errors / (double)total / EVERY;
        if ((i + 1) % EVERY == 0) {
            char text[64];
            snprintf(text, sizeof text, "loss %.4f, errors %.2f %%", loss, 100 * error);
            progress_show((int)i + 1, (int)o->n_steps, text);
            c->loss[c->n] = loss;
            c->error[c->n++] = error;
            loss = error = 0;
        }
    }
    progress_clear();
    return !run_stopped();
}

static int report(const options *o, const task *t, const curve *c, double seconds)
{
    wk_text text = {0};
    int shown = c->n < 10 ? c->n : 10;
    if (o->run.json)
        wk_text_add(&text, "{\"model\":\"%s\",\"device\":\"%s\",\"steps\":%ld,\"seconds\":%.2f,\"loss\":[",
                    t->name, wk_device_name(o->run.device), o->n_steps, seconds);
    for (int i = 0; o->run.json && i < c->n; i++)
        wk_text_add(&text, "%s%.6g", i ? "," : "", c->loss[i]);
    if (o->run.json)
        wk_text_add(&text, "],\"errors\":[");
    for (int i = 0; o->run.json && i < c->n; i++)
        wk_text_add(&text, "%s%.6g", i ? "," : "", c->error[i]);
    if (o->run.json)
        wk_text_add(&text, "]}\n");
    for (int k = 1; !o->run.json && k <= shown; k++) {
        int i = c->n * k / shown - 1;
        wk_text_add(&text, "step %5d  loss %8.4f  errors %6.2f %%\n", (i + 1) * EVERY, c->loss[i],
                    100 * c->error[i]);
    }
    if (!o->run.json)
        wk_text_add(&text, "%s on %s: %ld steps in %.1f s\n", t->title, wk_device_name(o->run.device),
                    o->n_steps, seconds);
    return args_print(&text);
}

static int run_task(const options *o, const task *t)
{
    wm_params params = {0};
    curve *c = calloc(1, sizeof *c);
    struct timespec from, to;
    clock_gettime(CLOCK_MONOTONIC, &from);
    bool ok = c && t->init(&params, o->run.device, o->n_seed) && train(o, t, &params, c);
    clock_gettime(CLOCK_MONOTONIC, &to);
    wm_params_free(&params);
    ok = ok && (!o->svg || wm_curve_write(o->svg, t->title, c->n, EVERY, c->loss, c->error));
    int status =
        ok ? report(o, t, c, (double)(to.tv_sec - from.tv_sec) + (double)(to.tv_nsec - from.tv_nsec) * 1e-9)
           : run_error();
    free(c);
    return status;
}

int run_train(int argc, char **argv)
{
    options o = {.batch = "32", .seed = "1"};
    const arg_option list[] = {RUN_OPTIONS(o.run),
                               {"steps", .value = &o.steps},
                               {"batch", .value = &o.batch},
                               {"lr", .value = &o.lr},
                               {"seed", .value = &o.seed},
                               {"svg", .value = &o.svg},
                               {0}};
    const task *t = NULL;
    int status = args_parse(help, list, &argc, argv);
    if (status != ARGS_GO)
        return status;
    for (size_t i = 0; argc == 2 && i < sizeof tasks / sizeof *tasks; i++)
        if (!strcmp(argv[1], tasks[i].name))
            t = &tasks[i];
    if (!t)
        return args_usage(argv[0], "expected cnn or ctc");
    o.n_steps = t->steps;
    char *end = "";
    o.rate = o.lr ? strtod(o.lr, &end) : t->rate;
    if ((o.steps && !args_int(argv[0], "steps", o.steps, EVERY, MOST_STEPS, &o.n_steps)) ||
        !args_int(argv[0], "batch", o.batch, 1, 4096, &o.n_batch) ||
        !args_int(argv[0], "seed", o.seed, 0, 1000000000, &o.n_seed))
        return EXIT_USAGE;
    if (!(o.rate > 0) || *end || isinf(o.rate))
        return args_usage(argv[0], "--lr: expected a number above 0, got '%s'", o.lr);
    status = run_begin(argv[0], &o.run);
    if (status != ARGS_GO)
        return status;
    if (o.run.dtype != WK_DTYPE_COUNT && o.run.dtype != WK_F32)
        return args_usage(argv[0], "--dtype: training is in f32");
    return run_task(&o, t);
}
