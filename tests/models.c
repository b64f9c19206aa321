/* models.c: the tiny language models of tests/models against what PyTorch gave: hidden states layer by layer, logits and
 * generated tokens. usage: test_models [DEVICE [NAME...]] */
#include <math.h>
#include <stdlib.h>
#include "error.h"
#include "generate.h"
#include "test.h"

static const char *const names[] = {"llama3",   "llama2",    "mistral",   "qwen2",     "qwen3",
                                    "gguf-f16", "gguf-q4_0", "gguf-q8_0", "gguf-q4_k", "gguf-q6_k"};
enum { MAX_IDS = 64, MAX_VOCAB = 512 };

/* One model and what is known about it. */
typedef struct {
    const char *name;
    wk_device *device;
    char path[600];
    wk_safetensors *reference;
    uint32_t ids[MAX_IDS], generated[MAX_IDS];
    int64_t n, new;
    wm_llama *model;
    double tolerance; /* of the largest value */
} subject;

/* ---- comparing ---- */

static const float *reference_floats(const subject *t, const char *name, int64_t *count)
{
    wk_tensor *x = wk_safetensors_get(t->reference, name);
    *count = x ? wk_count(x) : 0;
    return x ? wk_data(x) : NULL;
}

static int64_t read_ids(const subject *t, const char *name, uint32_t *out)
{
    wk_tensor *x = wk_safetensors_get(t->reference, name);
    const int64_t *ids = x ? wk_data(x) : NULL;
    int64_t n = x ? wk_count(x) : 0;
    for (int64_t i = 0; i < n && i < MAX_IDS; i++)
        out[i] = (uint32_t)ids[i];
    return n;
}

/* The largest difference of n values, NaN if one is. */
static double worst_difference(const float *got, const float *want, int64_t n)
{
    double worst = 0;
    for (int64_t i = 0; i < n; i++) {
        double off = fabs((double)got[i] - want[i]);
        worst = off > worst || isnan(off) ? off : worst;
    }
    return worst;
}

/* Values from `from` on of a reference, each within the tolerance times the largest. */
static void compare(const subject *t, const char *name, const wk_tensor *got_tensor, int64_t from)
{
    int64_t count, n = wk_count(got_tensor);
    const float *want = reference_floats(t, name, &count);
    float *got = malloc((size_t)n * sizeof *got);
    wk_tensor *x = wk_cast(got_tensor, WK_F32);
    if (!want || from + n > count || wk_to_host(x, got) != WK_OK) {
        test_check(false, __FILE__, __LINE__, "%s: %s: not there, or of another size", t->name, name);
    } else {
        double worst = worst_difference(got, want + from, n);
        double most = 0;
        for (int64_t i = 0; i < count; i++) {
            double size = fabs(want[i]);
            most = size > most ? size : most; /* fmax of fabs breaks gcc 12 for Arm */
        }
        test_check(worst <= t->tolerance * most, __FILE__, __LINE__, "%s: %s on %s: off by %g, allowed %g",
                   t->name, name, wk_device_name(t->device), worst, t->tolerance * most);
    }
    free(got);
}

static void watch(void *ctx, int64_t layer, const wk_tensor *hidden)
{
    char name[32];
    snprintf(name, sizeof name, "hidden.%lld", (long long)layer);
    wk_scope_begin();
    compare(ctx, name, hidden, 0);
    wk_scope_end();
}

/* ---- what is checked ---- */

/* A whole prompt at once: every layer and all logits. */
static void check_prompt(subject *t)
{
    wm_llama_session *s = wm_llama_start(t->model, 1, t->n);
    wk_scope_begin();
    wm_llama_set_watch(s, watch, t);
    wk_tensor *logits = wm_llama_prompt(s, 0, t->ids, t->n, true);
    if (CHECK(logits != NULL))
        compare(t, "logits", logits, 0);
    wk_scope_end();
    wm_llama_end(s);
}

/* A part of the prompt, then the rest token by token: the same logits. Text 1 goes ahead, to have another length. */
static void check_steps(subject *t, int64_t batch, int64_t first)
{
    int64_t vocab = wm_llama_config_of(t->model)->vocab;
    wm_llama_session *s = wm_llama_start(t->model, batch, t->n + 3);
    wk_scope_begin();
    for (int64_t row = 0; row < batch; row++)
        CHECK(wm_llama_prompt(s, row, t->ids, first + 3 * (row & 1), false) != NULL);
    for (int64_t i = first; i + 3 < t->n; i++) {
        uint32_t ids[8];
        for (int64_t row = 0; row < batch; row++)
            ids[row] = t->ids[i + 3 * (row & 1)];
        wk_scope_begin();
        if (CHECK(wm_llama_step(s, ids))) {
            for (int64_t row = 0; row < batch; row++)
                compare(t, "logits", wk_narrow(wm_llama_logits(s), 0, row, 1), (i + 3 * (row & 1)) * vocab);
        }
        wk_scope_end();
    }
    wk_scope_end();
    wm_llama_end(s);
}

typedef struct {
    uint32_t ids[8][MAX_IDS];
    int64_t n[8];
} collected;

static bool collect(void *ctx, int64_t row, uint32_t id)
{
    collected *c = ctx;
    if (c->n[row] < MAX_IDS)
        c->ids[row][c->n[row]++] = id;
    return true;
}

/* Greedy tokens are the reference's, alone and beside a text of another length. */
static void check_generated(subject *t)
{
    collected alone = {0}, both = {0};
    wm_prompt prompts[] = {{t->ids, t->n}, {t->ids, 5}};
    wm_generate_options o = {.most = t->new, .token = collect, .ctx = &alone};
    wm_generate_stats stats;
    CHECK(wm_generate(t->model, 1, prompts, &o, &stats));
    CHECK_EQ(stats.new_tokens, t->new);
    o.ctx = &both;
    CHECK(wm_generate(t->model, 2, prompts, &o, NULL));
    for (int64_t i = 0; i < t->new; i++) {
        test_check(alone.ids[0][i] == t->generated[i] && both.ids[0][i] == t->generated[i], __FILE__,
                   __LINE__, "%s on %s: token %lld is %u alone and %u with others, expected %u", t->name,
                   wk_device_name(t->device), (long long)i, alone.ids[0][i], both.ids[0][i], t->generated[i]);
    }
}

/* The same seed gives the same text, another one another. */
static void check_sampled(subject *t)
{
    collected made[3] = {0};
    for (int i = 0; i < 3; i++) {
        wm_generate_options o = {
            .most = 16,
            .ignore_stops = true,
            .sampling = {.temperature = 1, .top_k = 50, .top_p = 0.95, .seed = i == 2 ? 8 : 7},
            .token = collect,
            .ctx = &made[i]};
        CHECK(wm_generate(t->model, 1, &(wm_prompt){t->ids, t->n}, &o, NULL));
        CHECK_EQ(made[i].n[0], 16);
    }
    CHECK(memcmp(&made[0], &made[1], sizeof made[0]) == 0);
    CHECK(memcmp(&made[0], &made[2], sizeof made[0]) != 0);
}

/* On the device nothing is held but weights, cache and little else. */
static void check_memory(subject *t)
{
    wk_memory_stats before, after;
    wk_memory(t->device, &before);
    wm_llama_free(t->model);
    t->model = NULL;
    wk_memory(t->device, &after);
    CHECK(after.in_use <= before.in_use);
}

static void check_dtype(subject *t, wk_dtype dtype, double tolerance)
{
    t->tolerance = tolerance;
    t->model = wm_llama_load(t->path, t->device, dtype, NULL);
    if (!test_check(t->model != NULL, __FILE__, __LINE__, "%s: %s", t->name, wm_error())) {
        wm_error_clear();
        return;
    }
    check_prompt(t);
    check_steps(t, 1, 11);
    check_steps(t, 3, 11);
    if (dtype == WK_F32)
        check_generated(t);
    if (dtype == WK_F32 && strcmp(wk_device_name(t->device), "cpu") == 0)
        check_sampled(t);
    check_memory(t);
    test_check(wm_error_status() == WK_OK, __FILE__, __LINE__, "%s in %s: %s", t->name, wk_dtype_name(dtype),
               wm_error());
    wm_error_clear();
}

static void check_model(const char *name, wk_device *device)
{
    subject t = {.name = name, .device = device};
    bool gguf = strncmp(name, "gguf-", 5) == 0;
    char path[600];
    snprintf(t.path, sizeof t.path, gguf ? "%s/%s/model.gguf" : "%s/%s", MODELS, name);
    snprintf(path, sizeof path, "%s/%s/reference.safetensors", MODELS, name);
    wk_scope_begin();
    t.reference = wk_safetensors_open(path);
    if (CHECK(t.reference != NULL)) {
        t.n = read_ids(&t, "ids", t.ids);
        t.new = read_ids(&t, "generated", t.generated);
        check_dtype(&t, WK_F32, 1e-4);
        check_dtype(&t, WK_F16, 1e-2);
        check_dtype(&t, WK_BF16, 8e-2); /* three bits fewer */
    }
    wk_safetensors_close(t.reference);
    wk_scope_end();
    CHECK_FINE();
}

/* ---- what needs no files ---- */

static void last_logits(wm_llama *m, const uint32_t *ids, int64_t n, int64_t first, float *out)
{
    wm_llama_session *s = wm_llama_start(m, 1, n);
    wk_scope_begin();
    if (first)
        CHECK(wm_llama_prompt(s, 0, ids, first, false) != NULL);
    wk_tensor *logits = wm_llama_prompt(s, 0, ids + first, n - first, false);
    CHECK(logits && wk_to_host(logits, out) == WK_OK);
    wk_scope_end();
    wm_llama_end(s);
}

/* A prompt that goes through in several pieces, cut differently; and what a session refuses. */
static void check_pieces(wk_device *device)
{
    enum { N = 4500 };
    static uint32_t ids[N];
    static float whole[MAX_VOCAB], parts[MAX_VOCAB];
    wm_llama_config c;
    CHECK(wm_llama_named_config("tiny", &c));
    wm_llama *m = wm_llama_random(&c, device, WK_F32, 3);
    for (int i = 0; i < N; i++)
        ids[i] = (uint32_t)(i * 7919 % c.vocab);
    last_logits(m, ids, N, 0, whole);
    last_logits(m, ids, N, 1234, parts);
    for (int64_t i = 0; i < c.vocab; i++)
        test_check(fabsf(whole[i] - parts[i]) <= 1e-4f, __FILE__, __LINE__, "logit %lld: %g and %g",
                   (long long)i, whole[i], parts[i]);
    wm_llama_session *s = wm_llama_start(m, 1, 4);
    CHECK(wm_llama_prompt(s, 0, ids, 5, false) == NULL && strstr(wm_error(), "no room for 5 tokens"));
    wm_error_clear();
    CHECK(wm_llama_prompt(s, 0, (uint32_t[]){512}, 1, false) == NULL &&
          strstr(wm_error(), "token 512 is outside"));
    wm_error_clear();
    CHECK(wm_llama_prompt(s, 1, ids, 1, false) == NULL && strstr(wm_error(), "text 0 to 0"));
    wm_error_clear();
    wm_llama_end(s);
    CHECK(wm_llama_start(m, 0, 4) == NULL && strstr(wm_error(), "1 to 65536 texts"));
    wm_error_clear();
    wm_llama_free(m);
}

/* Steps over the border of what one recording sees (256 keys on a GPU) give what the whole prompt gives. */
static void check_buckets(wk_device *device)
{
    enum { FIRST = 251, N = 262 };
    static uint32_t ids[N];
    static float whole[MAX_VOCAB], stepped[MAX_VOCAB];
    wm_llama_config c;
    CHECK(wm_llama_named_config("tiny", &c));
    wm_llama *m = wm_llama_random(&c, device, WK_F32, 4);
    for (int i = 0; i < N; i++)
        ids[i] = (uint32_t)(i * 31 % c.vocab);
    last_logits(m, ids, N, 0, whole);
    wm_llama_session *s = wm_llama_start(m, 1, 600);
    wk_drop(wm_llama_prompt(s, 0, ids, FIRST, false));
    for (int i = FIRST; i < N; i++)
        CHECK(wm_llama_step(s, &ids[i]));
    CHECK(wk_to_host(wm_llama_logits(s), stepped) == WK_OK);
    for (int64_t i = 0; i < c.vocab; i++)
        test_check(fabsf(whole[i] - stepped[i]) <= 1e-4f, __FILE__, __LINE__, "logit %lld: %g and %g",
                   (long long)i, whole[i], stepped[i]);
    wm_llama_end(s);
    wm_llama_free(m);
}

/* Tokens come as often as their probabilities say, and none from outside of what top_k and top_p leave. */
static void check_sampling(void)
{
    enum { DRAWS = 20000, TOKENS = 6 };
    const float logits[TOKENS] = {logf(0.05f), logf(0.4f), NAN, logf(0.2f), logf(0.3f), logf(0.05f)};
    const struct {
        wm_sampling how;
        double expected[TOKENS];
    } cases[] = {
        {{.temperature = 0, .top_p = 1}, {0, 1, 0, 0, 0, 0}},
        {{.temperature = 1, .top_p = 1}, {.05, .4, 0, .2, .3, .05}},
        {{.temperature = 1, .top_p = 1, .top_k = 2}, {0, 4. / 7, 0, 0, 3. / 7, 0}},
        {{.temperature = 1, .top_p = .8, .seed = 5}, {0, 4. / 9, 0, 2. / 9, 3. / 9, 0}},
        {{.temperature = 1, .top_p = .5, .top_k = 3}, {0, 4. / 7, 0, 0, 3. / 7, 0}},
        {{.temperature = .5, .top_p = 1, .top_k = 2}, {0, .64, 0, 0, .36, 0}},
    };
    wm_candidate scratch[TOKENS];
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        double seen[TOKENS] = {0};
        for (int k = 0; k < DRAWS; k++)
            seen[wm_sample(logits, TOKENS, &cases[i].how, k, scratch)] += 1. / DRAWS;
        for (int t = 0; t < TOKENS; t++)
            test_check(cases[i].expected[t] == 0 ? seen[t] == 0
                                                 : fabs(seen[t] - cases[i].expected[t]) < 0.015,
                       __FILE__, __LINE__, "sampling %zu: token %d came with %.4f, expected %.4f", i, t,
                       seen[t], cases[i].expected[t]);
    }
}

int main(int argc, char **argv)
{
    wk_device *device = wk_device_open(argc > 1 ? argv[1] : "cpu");
    if (CHECK(device != NULL)) {
        for (int i = 2; i < argc; i++)
            check_model(argv[i], device);
        for (size_t i = 0; argc < 3 && i < sizeof names / sizeof *names; i++)
            check_model(names[i], device);
        check_buckets(device);
        if (strcmp(wk_device_name(device), "cpu") == 0) {
            check_pieces(device);
            check_sampling();
        }
    }
    return test_end();
}
