/* vision.c: images, BERT's tokenizer, ResNet and BERT against what Pillow, tokenizers, torchvision and transformers gave
 * (tests/models/vision.py). Models run on the device that is named, the CPU without one.
 *     test_vision [DEVICE]                        the tiny models of tests/models
 *     test_vision DEVICE minilm FOLDER            MiniLM's real weights
 *     test_vision DEVICE resnet FILE EXPECT       any ResNet's */
#include <math.h>
#include <stdlib.h>
#include <unistd.h>
#include <wick/wick.h>
#include "bert.h"
#include "error.h"
#include "image.h"
#include "resnet.h"
#include "test.h"
#include "unicode.h"
#include "wordpiece.h"
#include "unicode.h"
#include "wordpiece_text.h"

static wk_device *device;

static char *in_models(const char *name)
{
    static char path[4][1000];
    static int i;
    i = (i + 1) % 4;
    snprintf(path[i], sizeof path[i], "%s/%s", MODELS, name);
    return path[i];
}

static wk_safetensors *open_expected(const char *path)
{
    wk_safetensors *f = wk_safetensors_open(path);
    if (!f) {
        fprintf(stderr, "%s\n", wk_error());
        exit(1);
    }
    return f;
}

/* A tensor of the file, which lives as long as the program's scope. */
static wk_tensor *expected(const wk_safetensors *f, const char *name)
{
    wk_tensor *t = wk_safetensors_get(f, name);
    test_check(t != NULL, __FILE__, __LINE__, "%s", wk_error());
    return t;
}

/* The largest difference, as a part of the largest number that is expected; infinity where shapes or NaNs differ. */
static double difference(const wk_tensor *got, const wk_tensor *want)
{
    int64_t n = got ? wk_count(got) : -1;
    double most = 1e-30, worst = 0;
    if (n < 0 || n != wk_count(want))
        return INFINITY;
    float *a = malloc((size_t)n * sizeof *a);
    wk_scope_begin();
    wk_status status = wk_to_host(wk_cast(got, WK_F32), a);
    wk_scope_end();
    const float *b = wk_data(want);
    for (int64_t i = 0; i < n && status == WK_OK; i++) {
        most = fmax(most, fabs((double)b[i]));
        double d = fabs((double)a[i] - b[i]);
        worst = d >= 0 ? fmax(worst, d) : INFINITY;
    }
    free(a);
    return status == WK_OK ? worst / most : INFINITY;
}

/* ---- Images ---- */

static void check_image(const wk_safetensors *f, int64_t i)
{
    char name[200];
    wk_tensor *file = wk_safetensors_tensor(f, i);
    snprintf(name, sizeof name, "%s.rgb", wk_safetensors_name(f, i));
    wk_tensor *want = expected(f, name);
    wm_image image;
    bool ok = wm_image_decode(&image, wk_safetensors_name(f, i), wk_data(file), (size_t)wk_count(file));
    test_check(ok, __FILE__, __LINE__, "%s", wm_error());
    wm_error_clear();
    if (ok) {
        test_check(image.height == wk_dim(want, 0) && image.width == wk_dim(want, 1) &&
                       !memcmp(image.rgb, wk_data(want), (size_t)wk_count(want)),
                   __FILE__, __LINE__, "%s: other pixels", name);
        wm_image_free(&image);
    }
    /* Cut short anywhere it is refused, and says where. */
    for (int64_t cut = 0; cut < wk_count(file); cut += 1 + wk_count(file) / 60)
        if (wm_image_decode(&image, "cut", wk_data(file), (size_t)cut) || !strstr(wm_error(), "cut: byte ")) {
            test_check(false, __FILE__, __LINE__, "%s: taken with %lld bytes, or: %s", name, (long long)cut,
                       wm_error());
            wm_image_free(&image);
        } else {
            wm_error_clear();
        }
}

static void check_prepare(const wk_safetensors *f, const char *name)
{
    enum { RESIZE = 48, CROP = 40 };
    char full[200];
    static float out[3 * CROP * CROP];
    snprintf(full, sizeof full, "%s.expect", name);
    wk_tensor *pixels = expected(f, name), *want = expected(f, full);
    wm_image image = {(int)wk_dim(pixels, 1), (int)wk_dim(pixels, 0), wk_data(pixels)};
    CHECK(wm_image_prepare(&image, RESIZE, CROP, out));
    const float *w = wk_data(want);
    float worst = 0;
    for (int64_t i = 0; i < wk_count(want); i++)
        worst = fmaxf(worst, fabsf(out[i] - w[i]));
    test_check(worst < 1e-6f, __FILE__, __LINE__, "%s: %g away", name, (double)worst);
}

static void test_images(void)
{
    wk_safetensors *f = open_expected(in_models("images.safetensors"));
    for (int64_t i = 0; i < wk_safetensors_count(f); i++) {
        const char *name = wk_safetensors_name(f, i), *end = strrchr(name, '.');
        if (end && (!strcmp(end, ".png") || !strcmp(end, ".jpg")))
            check_image(f, i);
    }
    check_prepare(f, "prepare.wide");
    check_prepare(f, "prepare.tall");
    check_prepare(f, "prepare.up");
    wm_image image;
    CHECK(!wm_image_decode(&image, "note.txt", "just some text", 14));
    CHECK_STR(wm_error(), "note.txt: byte 0: neither a PNG nor a JPEG file");
    wm_error_clear();
    CHECK(!wm_image_read(&image, "/no/such.png") && strstr(wm_error(), "/no/such.png"));
    wm_error_clear();
    wk_safetensors_close(f);
}

/* ---- The tokenizer ---- */

static uint32_t fnv(uint32_t hash, const void *data, size_t size)
{
    for (const unsigned char *p = data; size > 0; size--, p++)
        hash = (hash ^ *p) * 16777619u;
    return hash;
}

/* What cleaning makes of every code point there is, as one sum for each set of rules. */
static void check_letters(const uint32_t *sums)
{
    for (int rules = 0; rules < 4; rules++) {
        uint32_t hash = 2166136261u, out[8];
        for (uint32_t c = 1; c < 0x110000; c++) {
            if (c >= 0xD800 && c < 0xE000)
                continue;
            int n = wm_text_plain(&(wm_text_rules){true, true, rules >> 1, rules & 1}, c, out);
            for (int i = 0; i < n; i++) {
                char text[4];
                hash = fnv(hash, text, (size_t)wm_utf8_put(out[i], text));
            }
        }
        test_check(hash == sums[rules], __FILE__, __LINE__, "letters, rules %d: another sum", rules);
    }
    uint32_t hash = 2166136261u;
    for (uint32_t c = 1; c < 0x110000; c++) { /* "a" c "a": one word, two, or three */
        uint8_t words = wm_is_space(c) ? 2 : wm_is_punctuation(c) ? 3 : 1;
        if (c < 0xD800 || c >= 0xE000)
            hash = fnv(hash, &words, 1);
    }
    test_check(hash == sums[4], __FILE__, __LINE__, "punctuation and spaces: another sum");
}

static void check_long(const wm_wordpiece *t, const char *texts, const int32_t *sizes, int64_t n,
                       const uint32_t *want)
{
    char *joined = malloc(2 * (size_t)want[0]);
    size_t size = 0, once;
    for (int64_t i = 0; i < n; texts += sizes[i++]) {
        memcpy(joined + size, texts, (size_t)sizes[i]);
        size += (size_t)sizes[i];
        joined[size++] = ' ';
    }
    for (once = --size; size + once <= want[0]; size += once)
        memcpy(joined + size, joined, once);
    wm_ids ids = {0};
    CHECK_EQ(size, want[0]);
    CHECK(size > 100000 && wm_wordpiece_encode(t, joined, size, 0, &ids));
    CHECK_EQ(ids.n, want[1]);
    CHECK_EQ(fnv(2166136261u, ids.ids, ids.n * sizeof *ids.ids), want[2]);
    wm_ids_free(&ids);
    free(joined);
}

static void test_tokens(void)
{
    wk_safetensors *f = open_expected(in_models("tokens.safetensors"));
    wm_wordpiece *t = wm_wordpiece_open(in_models("bert"));
    const char *text = wk_data(expected(f, "texts"));
    wk_tensor *sizes = expected(f, "text_sizes");
    const int32_t *size = wk_data(sizes), *id = wk_data(expected(f, "ids")),
                  *count = wk_data(expected(f, "id_counts"));
    wm_ids ids = {0};
    CHECK(t != NULL);
    for (int64_t i = 0; t && i < wk_count(sizes); i++) {
        bool ok = wm_wordpiece_encode(t, text, (size_t)size[i], 0, &ids);
        test_check(ok && ids.n == (size_t)count[i] && !memcmp(ids.ids, id, ids.n * sizeof *id), __FILE__,
                   __LINE__, "text %lld: other tokens: %.*s", (long long)i, size[i], text);
        text += size[i];
        id += count[i];
    }
    if (t) {
        CHECK(wm_wordpiece_encode(t, "a b c d e f", 11, 5, &ids) && ids.n == 5);
        CHECK_EQ(ids.ids[4], wm_wordpiece_find(t, "[SEP]"));
        CHECK(wm_wordpiece_encode(t, "\xFF\xC0\x80 a", 5, 0, &ids) &&
              ids.n == 3); /* bytes that are no text */
        check_long(t, wk_data(expected(f, "texts")), size, wk_count(sizes), wk_data(expected(f, "long")));
    }
    check_letters(wk_data(expected(f, "sums")));
    wm_ids_free(&ids);
    wm_wordpiece_close(t);
    wk_safetensors_close(f);
}

/* ---- ResNet ---- */

typedef struct {
    const wk_safetensors *f;
    const char *what;
    double limit;
    int seen;
} watcher;

static void see(void *ctx, const char *name, const wk_tensor *y)
{
    watcher *w = ctx;
    double d = difference(y, expected(w->f, name));
    w->seen++;
    test_check(d < w->limit, __FILE__, __LINE__, "%s: %s: %g away, at most %g", w->what, name, d, w->limit);
}

static const struct {
    wk_dtype dtype;
    double limit;
} precisions[] = {{WK_F32, 1e-5}, {WK_F16, 1e-2}, {WK_BF16, 6e-2}};

static void check_resnet(const char *weights, const char *expect)
{
    wk_safetensors *f = open_expected(expect);
    for (size_t p = 0; p < sizeof precisions / sizeof *precisions; p++)
        for (int keep = 0; keep < 2; keep++) {
            wk_dtype dtype = precisions[p].dtype;
            char what[300];
            snprintf(what, sizeof what, "%s, %s, %s", weights, wk_dtype_name(dtype),
                     keep ? "kept" : "folded");
            watcher w = {f, what, precisions[p].limit, 0};
            wm_resnet *m = wm_resnet_load(weights, device, &(wm_resnet_options){dtype, keep}, NULL);
            test_check(m != NULL, __FILE__, __LINE__, "%s: %s", what, wm_error());
            if (m) {
                wm_resnet_set_watch(m, see, &w);
                wk_scope_begin();
                wk_tensor *x = wk_cast(wk_to(expected(f, "x"), device), dtype);
                CHECK(wm_resnet_run(m, x) != NULL);
                wk_scope_end();
                CHECK(w.seen >= 7);
            }
            wm_resnet_free(m);
        }
    wk_safetensors_close(f);
}

/* ---- BERT ---- */

static void see_hidden(void *ctx, int64_t layer, const wk_tensor *y)
{
    const watcher *w = ctx;
    char name[40];
    snprintf(name, sizeof name, "hidden.%lld", (long long)layer);
    wk_scope_begin();
    wk_tensor *mask =
        wk_cast(wk_unsqueeze(wk_to(expected(w->f, "mask"), device), 2), WK_F32); /* the rest is anything */
    wk_tensor *got = wk_mul(wk_cast(y, WK_F32), mask);
    wk_tensor *want = wk_mul(expected(w->f, name), wk_to(mask, wk_device_open("cpu")));
    see(&(watcher){w->f, w->what, w->limit, 0}, name, y);
    double d = difference(got, want);
    test_check(d < w->limit, __FILE__, __LINE__, "%s: %s: %g away", w->what, name, d);
    wk_scope_end();
}

/* The texts of a file of expected things, as strings. */
static int read_texts(const wk_safetensors *f, char **texts, int most)
{
    const char *text = wk_data(expected(f, "texts"));
    wk_tensor *sizes = expected(f, "text_sizes");
    const int32_t *size = wk_data(sizes);
    int n = (int)wk_count(sizes);
    for (int i = 0; i < n && i < most; text += size[i++])
        texts[i] = strndup(text, (size_t)size[i]);
    return n < most ? n : most;
}

static void check_embed(const wm_bert *m, const wk_safetensors *f, const char *what, double limit)
{
    enum { MOST = 64 };
    char *texts[MOST];
    int n = read_texts(f, texts, MOST);
    int64_t width = wm_bert_width(m);
    float *v = malloc((size_t)(n * width) * sizeof *v);
    bool ok = wm_bert_embed(m, n, (const char *const *)texts, v);
    test_check(ok, __FILE__, __LINE__, "%s: %s", what, wm_error());
    if (ok) {
        wk_tensor *got = wk_from_host(wk_device_open("cpu"), WK_F32, 2, (int64_t[]){n, width}, v);
        double d = difference(got, expected(f, "embedding"));
        test_check(d < limit, __FILE__, __LINE__, "%s: embeddings %g away, at most %g", what, d, limit);
    }
    for (int i = 0; i < n; i++)
        free(texts[i]);
    free(v);
}

static void check_bert(const char *folder, const char *expect, bool layers)
{
    wk_safetensors *f = open_expected(expect);
    for (size_t p = 0; p < sizeof precisions / sizeof *precisions; p++) {
        char what[300];
        double limit = 2 * precisions[p].limit;
        snprintf(what, sizeof what, "%s, %s", folder, wk_dtype_name(precisions[p].dtype));
        watcher w = {f, what, limit, 0};
        wm_bert *m = wm_bert_load(folder, device, precisions[p].dtype, NULL);
        test_check(m != NULL, __FILE__, __LINE__, "%s: %s", what, wm_error());
        if (m && layers) {
            wm_bert_set_watch(m, see_hidden, &w);
            wk_scope_begin();
            wk_tensor *y =
                wm_bert_run(m, wk_to(expected(f, "ids"), device), wk_to(expected(f, "mask"), device));
            see(&w, "embedding", y);
            wk_scope_end();
            wm_bert_set_watch(m, NULL, NULL);
        }
        if (m)
            check_embed(m, f, what, limit);
        wm_error_clear();
        wm_bert_free(m);
    }
    wk_safetensors_close(f);
}

int main(int argc, char **argv)
{
    device = wk_device_open(argc > 1 ? argv[1] : "cpu");
    if (!device) {
        fprintf(stderr, "%s\n", wk_error());
        return TEST_SKIPPED;
    }
    wk_scope_begin();
    if (argc > 3 && !strcmp(argv[2], "minilm")) {
        check_bert(argv[3], in_models("minilm.expect.safetensors"), false);
    } else if (argc > 4 && !strcmp(argv[2], "resnet")) {
        check_resnet(argv[3], argv[4]);
    } else {
        if (argc < 2) {
            test_images();
            test_tokens();
        }
        check_resnet(in_models("resnet-basic.safetensors"), in_models("resnet-basic.expect.safetensors"));
        check_resnet(in_models("resnet-bottleneck.safetensors"),
                     in_models("resnet-bottleneck.expect.safetensors"));
        check_bert(in_models("bert"), in_models("bert.expect.safetensors"), true);
    }
    wk_scope_end();
    CHECK_FINE();
    return test_end();
}
