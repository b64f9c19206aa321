/* run_resnet.c: `wick run resnet`: what is in a picture. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include "error.h"
#include "image.h"
#include "progress.h"
#include "resnet.h"
#include "run_measure.h"

static const char help[] =
    "usage: wick run resnet FILE --image FILE.png|.jpg ...\n"
    "       wick run resnet --random DEPTH [--batch N] [--seconds S]\n"
    "\n"
    "Says what is in pictures: the five best of a ResNet's classes with their probabilities. FILE is a "
    "safetensors\n"
    "file with weights under torchvision's names; depth, width and classes are what they say. Pictures are "
    "PNG or\n"
    "JPEG; the shorter side becomes 256 pixels and the middle 224 x 224 are looked at.\n"
    "\n"
    "  --image F          a picture; may be given several times, all go in one batch\n"
    "  --top N            so many classes instead of five\n"
    "  --keep-batch-norm  batch norms as ops of their own instead of folded into the convolutions\n"
    "  --random DEPTH     18, 34, 50, 101 or 152 with random weights: measures, and needs no files\n"
    "  --batch N          pictures at a time when measuring; 1\n"
    "  --seconds S        to measure for; 2\n" RUN_OPTIONS_HELP "\n"
    "Examples:\n"
    "  wick run resnet resnet50.safetensors --image cat.jpg\n"
    "  wick run resnet resnet18.safetensors --image a.png --image b.jpg --json | jq "
    "'.images[].classes[0].name'\n"
    "  wick run resnet --random 50 --batch 64 --dtype f16 --device cuda:0\n";

enum { RESIZE = 256, CROP = 224, PIXELS = 3 * CROP * CROP };

typedef struct {
    run_options run;
    arg_list images;
    const char *top, *random, *batch, *seconds;
    bool keep_batch_norm;
    long n_top, depth, n_batch;
    double n_seconds;
} options;

/* ---- Pictures ---- */

static bool prepare(const char *path, float *out)
{
    wm_image image;
    if (!wm_image_read(&image, path))
        return false;
    bool ok = wm_image_prepare(&image, RESIZE, CROP, out);
    wm_image_free(&image);
    return ok;
}

/* Logits of all pictures, rows of `classes`; NULL with the models' error. */
static float *classify(const options *o, const wm_resnet *m, int64_t classes)
{
    int64_t n = o->images.n;
    float *pixels = malloc((size_t)n * PIXELS * sizeof *pixels),
          *logits = malloc((size_t)(n * classes) * sizeof *logits);
    bool ok = pixels && logits;
    if (!ok)
        wm_fail(WK_ERR_MEMORY, "not enough memory for %lld pictures", (long long)n);
    for (int i = 0; ok && i < n; i++)
        ok = prepare(o->images.items[i], pixels + (size_t)i * PIXELS);
    if (ok) {
        wk_scope_begin();
        wk_tensor *x = wk_from_host(o->run.device, WK_F32, 4, (int64_t[]){n, 3, CROP, CROP}, pixels);
        wk_tensor *y = wm_resnet_run(m, x ? wk_cast(x, o->run.dtype) : NULL);
        ok = y && wk_to_host(y, logits) == WK_OK;
        wk_scope_end();
    }
    free(pixels);
    if (ok)
        return logits;
    free(logits);
    return NULL;
}

/* The best class that is worse than the one before (or equal and behind it): a few from many, in order. */
static int64_t next_best(const float *x, int64_t n, int64_t before)
{
    int64_t best = -1;
    for (int64_t i = 0; i < n; i++) {
        bool left = before < 0 || x[i] < x[before] || (x[i] == x[before] && i > before);
        if (left && (best < 0 || x[i] > x[best]))
            best = i;
    }
    return best;
}

static void print_picture(const options *o, wk_text *t, const char *path, const float *x, int64_t n)
{
    double sum = 0;
    int64_t best = next_best(x, n, -1), top = best;
    for (int64_t i = 0; i < n; i++)
        sum += exp((double)x[i] - x[top]);
    if (o->run.json) {
        wk_text_add(t, "{\"file\":");
        wk_text_string(t, path);
        wk_text_add(t, ",\"classes\":[");
    } else {
        wk_text_add(t, "%s\n", path);
    }
    for (long i = 0; i < o->n_top && best >= 0; i++, best = next_best(x, n, best)) {
        const char *name = n == 1000 ? wm_imagenet_name(best) : NULL;
        double p = exp((double)x[best] - x[top]) / sum;
        if (o->run.json) {
            wk_text_add(t, "%s{\"class\":%lld,\"name\":", i ? "," : "", (long long)best);
            wk_text_string(t, name ? name : "");
            wk_text_add(t, ",\"probability\":%.6g,\"logit\":%.6g}", p, x[best]);
        } else {
            wk_text_add(t, "  %6.2f %%  %4lld  %s\n", 100 * p, (long long)best, name ? name : "");
        }
    }
    if (o->run.json)
        wk_text_add(t, "]}");
}

static int show_pictures(const options *o, const wm_resnet *m)
{
    int64_t classes = wm_resnet_classes(m);
    float *logits = classify(o, m, classes);
    wk_text t = {0};
    if (!logits)
        return run_error();
    if (o->run.json)
        wk_text_add(&t, "{\"model\":\"resnet%d\",\"device\":\"%s\",\"images\":[", wm_resnet_depth(m),
                    wk_device_name(o->run.device));
    for (int i = 0; i < o->images.n; i++) {
        if (o->run.json && i)
            wk_text_add(&t, ",");
        print_picture(o, &t, o->images.items[i], logits + i * classes, classes);
    }
    if (o->run.json)
        wk_text_add(&t, "]}\n");
    free(logits);
    return args_print(&t);
}

/* ---- Measuring ---- */

typedef struct {
    const wm_resnet *m;
    const wk_tensor *x;
} pass_ctx;

static bool pass(void *ctx)
{
    const pass_ctx *p = ctx;
    wk_tensor *y = wm_resnet_run(p->m, p->x);
    wk_drop(y);
    return y != NULL;
}

static int measure(const options *o, const wm_resnet *m)
{
    char what[32];
    snprintf(what, sizeof what, "resnet%d", wm_resnet_depth(m));
    wk_tensor *x =
        wk_randn(o->run.device, o->run.dtype, 4, (int64_t[]){o->n_batch, 3, CROP, CROP}, 0, 1, 7, 0);
    int status =
        x ? run_measure(&o->run, what, o->n_batch, o->n_seconds, pass, &(pass_ctx){m, x}) : run_error();
    wk_drop(x);
    return status;
}

static bool numbers(const char *command, options *o)
{
    return args_int(command, "top", o->top, 1, 1000, &o->n_top) &&
           args_int(command, "random", o->random ? o->random : "18", 18, 152, &o->depth) &&
           args_int(command, "batch", o->batch, 1, 65536, &o->n_batch) &&
           run_seconds(command, o->seconds, &o->n_seconds);
}

int run_resnet(int argc, char **argv)
{
    options o = {.top = "5", .batch = "1", .seconds = "2"};
    const arg_option list[] = {RUN_OPTIONS(o.run),
                               {"image", .list = &o.images},
                               {"top", .value = &o.top},
                               {"random", .value = &o.random},
                               {"batch", .value = &o.batch},
                               {"seconds", .value = &o.seconds},
                               {"keep-batch-norm", .flag = &o.keep_batch_norm},
                               {0}};
    int status = args_parse(help, list, &argc, argv);
    if (status != ARGS_GO)
        return status;
    if (!numbers(argv[0], &o))
        return EXIT_USAGE;
    if (argc != (o.random ? 1 : 2))
        return args_usage(argv[0], o.random ? "--random needs no file" : "expected a file of weights");
    if (!o.random && o.images.n == 0)
        return args_usage(argv[0], "expected --image");
    status = run_begin(argv[0], &o.run);
    if (status != ARGS_GO)
        return status;
    o.run.dtype = o.run.dtype == WK_DTYPE_COUNT ? WK_F32 : o.run.dtype;
    wm_resnet_options how = {o.run.dtype, o.keep_batch_norm};
    wm_resnet *m = o.random ? wm_resnet_random((int)o.depth, o.run.device, &how, 1)
                            : wm_resnet_load(argv[1], o.run.device, &how, &run_progress);
    progress_clear();
    status = !m ? run_error() : o.random ? measure(&o, m) : show_pictures(&o, m);
    wm_resnet_free(m);
    return status;
}
