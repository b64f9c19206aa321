/* llama_session.c: texts on their way: the KV cache, prompts, and steps of one token, recorded as a graph on GPUs. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "error.h"
#include "llama_layers.h"

/* A prompt goes through the layers in pieces, so that what lies between them stays small; a recorded step looks at a
 * multiple of BUCKET keys, so that it serves for that many tokens. */
enum { PIECE = 2048, BUCKET = 256 };

struct wm_llama_session {
    wm_llama *model;
    int64_t batch, capacity;
    int64_t *length; /* tokens of each text */
    uint32_t
        *last_best; /* what wm_llama_best gave last: the device's next tokens, unless others are put there */
    bool has_best;
    wk_tensor **keys, **values, *cos, *sin;
    /* A step's own: tokens u32 [batch] and positions u32 [batch, 1, 1, 1] on the device, the numbers of the keys, and
     * those plus the window. */
    wk_tensor *ids, *position, *numbers, *window_numbers;
    bool placed; /* positions on the device are those of length */
    wk_graph *graph;
    int64_t graph_keys, eager_keys; /* keys that the graph and the last eager step looked at */
    wk_tensor *logits, *best;
    wm_llama_watch watch;
    void *watch_ctx;
};

/* ---- rotary angles ---- */

/* Llama 3 stretches long waves, leaves short ones, and goes from one to the other in between. */
static double scaled_frequency(const wm_rope *r, int64_t i, double f)
{
    if (r->kind == WM_ROPE_FACTORS)
        return f / r->factors[i];
    if (r->kind == WM_ROPE_LINEAR)
        return f / r->factor;
    if (r->kind == WM_ROPE_PLAIN)
        return f;
    double length = 2 * M_PI / f, low = r->original_context / r->low_freq,
           high = r->original_context / r->high_freq;
    if (length < high)
        return f;
    if (length > low)
        return f / r->factor;
    double smooth = (r->original_context / length - r->low_freq) / (r->high_freq - r->low_freq);
    return (1 - smooth) * f / r->factor + smooth * f;
}

/* Angles are the f32 product of position and frequency, as the reference has them. */
static bool make_angles(wm_llama_session *s)
{
    const wm_llama_config *c = &s->model->config;
    int64_t half = c->head_dim / 2, shape[] = {s->capacity, half};
    size_t n = (size_t)s->capacity * (size_t)half;
    float *cosines = malloc(n * sizeof *cosines), *sines = malloc(n * sizeof *sines);
    for (int64_t i = 0; cosines && sines && i < half; i++) {
        float f =
            (float)scaled_frequency(&c->rope, i, pow(c->rope.theta, -(double)(2 * i) / (double)c->head_dim));
        for (int64_t t = 0; t < s->capacity; t++) {
            float angle = (float)t * f;
            cosines[t * half + i] = cosf(angle);
            sines[t * half + i] = sinf(angle);
        }
    }
    if (cosines && sines) {
        wk_scope_begin();
        s->cos =
            wk_retain(wk_cast(wk_from_host(s->model->device, WK_F32, 2, shape, cosines), s->model->dtype));
        s->sin = wk_retain(wk_cast(wk_from_host(s->model->device, WK_F32, 2, shape, sines), s->model->dtype));
        wk_scope_end();
    }
    free(cosines);
    free(sines);
    return s->cos && s->sin;
}

/* ---- begin and end ---- */

static bool make_caches(wm_llama_session *s)
{
    const wm_llama_config *c = &s->model->config;
    int64_t shape[] = {s->batch, c->kv_heads, s->capacity, c->head_dim};
    s->keys = calloc((size_t)c->layers, sizeof *s->keys);
    s->values = calloc((size_t)c->layers, sizeof *s->values);
    s->length = calloc((size_t)s->batch, sizeof *s->length);
    s->last_best = calloc((size_t)s->batch, sizeof *s->last_best);
    if (!s->keys || !s->values || !s->length || !s->last_best)
        return false;
    for (int64_t i = 0; i < c->layers; i++) { /* zeros: a masked value must not be a NaN */
        s->keys[i] = wk_fill(s->model->device, s->model->dtype, 4, shape, 0);
        s->values[i] = wk_fill(s->model->device, s->model->dtype, 4, shape, 0);
    }
    return wk_error_status() == WK_OK;
}

static bool make_state(wm_llama_session *s)
{
    wk_device *d = s->model->device;
    double n = (double)s->capacity, window = (double)s->model->config.window;
    s->ids = wk_fill(d, WK_U32, 1, &s->batch, 0);
    s->position = wk_fill(d, WK_U32, 4, (int64_t[]){s->batch, 1, 1, 1}, 0);
    s->numbers = wk_arange(d, WK_U32, 0, n, 1);
    s->window_numbers = wk_arange(d, WK_U32, window, n + window, 1);
    return wk_error_status() == WK_OK;
}

wm_llama_session *wm_llama_start(wm_llama *m, int64_t batch, int64_t capacity)
{
    const int64_t most = 1 << 24;
    if (wm_error_status() != WK_OK)
        return NULL;
    if (batch < 1 || batch > 65536 || capacity < 1 || capacity > most) {
        wm_fail(WK_ERR_ARGUMENT, "llama: expected 1 to 65536 texts of 1 to %lld tokens, got %lld of %lld",
                (long long)most, (long long)batch, (long long)capacity);
        return NULL;
    }
    wm_llama_session *s = calloc(1, sizeof *s);
    if (s) {
        *s = (wm_llama_session){.model = m, .batch = batch, .capacity = capacity};
        if (make_caches(s) && make_angles(s) && make_state(s))
            return s;
    }
    wm_fail(WK_ERR_MEMORY, "llama: a cache for %lld texts of %lld tokens: out of memory", (long long)batch,
            (long long)capacity);
    wm_llama_end(s);
    return NULL;
}

void wm_llama_end(wm_llama_session *s)
{
    if (!s)
        return;
    wk_graph_drop(s->graph);
    for (int64_t i = 0; s->keys && s->values && i < s->model->config.layers; i++) {
        wk_drop(s->keys[i]);
        wk_drop(s->values[i]);
    }
    wk_tensor *rest[] = {s->cos,    s->sin, s->ids, s->position, s->numbers, s->window_numbers,
                         s->logits, s->best};
    for (size_t i = 0; i < sizeof rest / sizeof *rest; i++)
        wk_drop(rest[i]);
    free(s->keys);
    free(s->values);
    free(s->length);
    free(s->last_best);
    free(s);
}

int64_t wm_llama_length(const wm_llama_session *s, int64_t row) { return s ? s->length[row] : 0; }

void wm_llama_set_watch(wm_llama_session *s, wm_llama_watch watch, void *ctx)
{
    if (s) {
        s->watch = watch;
        s->watch_ctx = ctx;
    }
}

/* ---- prompts ---- */

static bool check_ids(const wm_llama_session *s, const uint32_t *ids, int64_t n)
{
    for (int64_t i = 0; i < n; i++) {
        if (ids[i] >= s->model->config.vocab)
            return wm_fail(WK_ERR_INDEX, "llama: token %u is outside of the model's vocabulary of %lld",
                           ids[i], (long long)s->model->config.vocab),
                   false;
    }
    return true;
}

static bool check_room(const wm_llama_session *s, int64_t row, int64_t n)
{
    if (s->length[row] + n <= s->capacity)
        return true;
    wm_fail(WK_ERR_ARGUMENT, "llama: text %lld: no room for %lld tokens behind %lld, the cache has %lld",
            (long long)row, (long long)n, (long long)s->length[row], (long long)s->capacity);
    return false;
}

static wm_pass pass_of(const wm_llama_session *s, int64_t row, int64_t rows, int64_t n, int64_t seen)
{
    return (wm_pass){.model = s->model,
                     .keys = s->keys,
                     .values = s->values,
                     .row = row,
                     .rows = rows,
                     .n = n,
                     .seen = seen};
}

/* Tokens right behind those that are there, n for each of the texts, which are all as long. */
static wk_tensor *run_behind(const wm_llama_session *s, int64_t row, int64_t rows, const uint32_t *ids,
                             int64_t n)
{
    int64_t at = s->length[row], count = rows * n;
    wm_pass p = pass_of(s, row, rows, n, at + n);
    p.cos = wk_narrow(s->cos, 0, at, n);
    p.sin = wk_narrow(s->sin, 0, at, n);
    p.watch = s->watch;
    p.watch_ctx = s->watch_ctx;
    return wm_llama_run(&p, wk_from_host(s->model->device, WK_U32, 1, &count, ids));
}

/* The logits of a piece of a prompt; NULL without an error where they are not wanted. */
static wk_tensor *run_piece(wm_llama_session *s, int64_t row, const uint32_t *ids, int64_t n, bool all,
                            bool last)
{
    int64_t from = all ? 0 : n - 1, hidden = s->model->config.hidden;
    wk_scope_begin();
    wk_tensor *x = run_behind(s, row, 1, ids, n), *logits = NULL;
    if (x && (all || last)) {
        x = wk_reshape(wk_narrow(x, 1, from, n - from), 2, (int64_t[]){n - from, hidden});
        logits = wm_llama_head(s->model, x, NULL);
    }
    s->length[row] += n;
    return wk_scope_end_keep(logits);
}

/* Tokens that go through the layers at a time: as many as products want, but what lives between layers stays a small part of
 * the weights. */
static int64_t piece_of(const wm_llama *m)
{
    int64_t token = (3 * m->config.inner + 12 * m->config.hidden) * (int64_t)wk_dtype_size(m->dtype);
    int64_t fit = wm_llama_bytes(m, NULL) / 16 / token / BUCKET * BUCKET;
    return fit < BUCKET ? BUCKET : fit > PIECE ? PIECE : fit;
}

wk_tensor *wm_llama_prompt(wm_llama_session *s, int64_t row, const uint32_t *ids, int64_t n, bool all)
{
    if (!s || wm_error_status() != WK_OK)
        return NULL;
    if (row < 0 || row >= s->batch || n < 1 || (all && n > PIECE)) {
        wm_fail(WK_ERR_ARGUMENT,
                "llama: expected text 0 to %lld and a token at least%s, got text %lld with %lld tokens",
                (long long)s->batch - 1, all ? " (2048 at most for all logits)" : "", (long long)row,
                (long long)n);
        return NULL;
    }
    if (!check_ids(s, ids, n) || !check_room(s, row, n))
        return NULL;
    wk_tensor *logits = NULL;
    int64_t most = all ? PIECE : piece_of(s->model);
    s->placed = false;
    for (int64_t i = 0; i < n && wk_error_status() == WK_OK; i += most) {
        int64_t piece = n - i < most ? n - i : most;
        logits = run_piece(s, row, ids + i, piece, all, i + piece == n);
    }
    return logits;
}

/* ---- steps ---- */

/* Which keys count for each text: those up to its position, and not too far behind. */
static void make_masks(const wm_llama_session *s, wm_pass *p)
{
    const wm_llama_config *c = &s->model->config;
    p->mask = wk_le(wk_narrow(s->numbers, 0, 0, p->seen), s->position);
    if (c->window)
        p->window_mask = wk_mul(p->mask, wk_gt(wk_narrow(s->window_numbers, 0, 0, p->seen), s->position));
}

/* The step with everything that changes from one to the next on the device: what a graph can hold. */
static void run_step(wm_llama_session *s, int64_t seen)
{
    const wm_llama_config *c = &s->model->config;
    wm_pass p = pass_of(s, 0, s->batch, 1, seen);
    int64_t angles[] = {s->batch, 1, c->head_dim / 2};
    wk_tensor *flat = wk_reshape(s->position, 1, &s->batch);
    p.cos = wk_reshape(wk_index_select(s->cos, flat, 0), 3, angles);
    p.sin = wk_reshape(wk_index_select(s->sin, flat, 0), 3, angles);
    p.place = wk_reshape(s->position, 2, (int64_t[]){s->batch, 1});
    make_masks(s, &p);
    wk_tensor *best = NULL, *x = wm_llama_run(&p, s->ids);
    x = wk_reshape(x, 2, (int64_t[]){s->batch, c->hidden});
    wk_tensor *logits = wm_llama_head(s->model, x, &best);
    wk_copy_into(s->ids, best);
    wk_copy_into(s->position, wk_affine(s->position, 1, 1));
    wk_drop(s->logits);
    wk_drop(s->best);
    s->logits = wk_retain(logits);
    s->best = wk_retain(best);
}

/* On the CPU texts of one length need no mask and no places. */
static void run_plain_step(wm_llama_session *s, const uint32_t *ids)
{
    wk_tensor *best = NULL, *x = run_behind(s, 0, s->batch, ids, 1);
    x = wk_reshape(x, 2, (int64_t[]){s->batch, s->model->config.hidden});
    wk_tensor *logits = wm_llama_head(s->model, x, &best);
    wk_drop(s->logits);
    wk_drop(s->best);
    s->logits = wk_retain(logits);
    s->best = wk_retain(best);
}

/* Brings tokens and, after a prompt, positions to the device. */
static void place_texts(wm_llama_session *s, const uint32_t *ids)
{
    wk_device *d = s->model->device;
    int64_t shape[] = {s->batch, 1, 1, 1};
    bool there = s->has_best && memcmp(ids, s->last_best, (size_t)s->batch * sizeof *ids) == 0;
    if (!there) /* a step leaves its best tokens for the next one */
        wk_copy_into(s->ids, wk_from_host(d, WK_U32, 1, shape, ids));
    s->has_best = false;
    if (s->placed)
        return;
    uint32_t *positions = malloc((size_t)s->batch * sizeof *positions);
    for (int64_t i = 0; positions && i < s->batch; i++)
        positions[i] = (uint32_t)s->length[i];
    if (positions)
        s->placed = wk_copy_into(s->position, wk_from_host(d, WK_U32, 4, shape, positions)) == WK_OK;
    else
        wm_fail(WK_ERR_MEMORY, "llama: out of memory");
    free(positions);
}

/* The first step with so many keys runs as it is, which compiles what it needs; the second is recorded, and replayed from
 * then on. Where nothing can be recorded every step runs as it is. */
static void run_placed_step(wm_llama_session *s, int64_t seen)
{
    if (s->model->gpu && seen == s->eager_keys && seen != s->graph_keys) {
        wk_graph_drop(s->graph);
        s->graph = NULL;
        s->graph_keys = seen;
        if (wk_graph_begin(s->model->device) == WK_OK) {
            run_step(s, seen);
            s->graph = wk_graph_end(s->model->device);
        }
        if (!s->graph)
            wk_error_clear();
    }
    if (s->graph && seen == s->graph_keys) {
        wk_graph_launch(s->graph);
        return;
    }
    run_step(s, seen);
    s->eager_keys = seen;
}

static int64_t longest(const wm_llama_session *s, bool *equal)
{
    int64_t most = s->length[0];
    *equal = true;
    for (int64_t i = 1; i < s->batch; i++) {
        *equal &= s->length[i] == s->length[0];
        most = s->length[i] > most ? s->length[i] : most;
    }
    return most;
}

bool wm_llama_step(wm_llama_session *s, const uint32_t *ids)
{
    bool equal;
    if (!s || wm_error_status() != WK_OK || !check_ids(s, ids, s->batch))
        return false;
    int64_t seen = longest(s, &equal) + 1;
    for (int64_t i = 0; i < s->batch; i++) {
        if (!check_room(s, i, 1))
            return false;
    }
    wk_scope_begin();
    if (!s->model->gpu && equal) {
        run_plain_step(s, ids);
        s->placed = false;
    } else {
        if (s->model->gpu)
            seen = (seen + BUCKET - 1) / BUCKET * BUCKET;
        place_texts(s, ids);
        run_placed_step(s, seen < s->capacity ? seen : s->capacity);
    }
    wk_scope_end();
    for (int64_t i = 0; i < s->batch; i++)
        s->length[i]++;
    return wm_error_status() == WK_OK;
}

const wk_tensor *wm_llama_logits(const wm_llama_session *s) { return s ? s->logits : NULL; }

bool wm_llama_best(wm_llama_session *s, uint32_t *ids)
{
    if (!s || !s->best || wk_to_host(s->best, s->last_best) != WK_OK)
        return false;
    memcpy(ids, s->last_best, (size_t)s->batch * sizeof *ids);
    s->has_best = s->placed; /* a plain step on the CPU leaves nothing */
    return true;
}
