/* gpu.c: what only devices with queues have: streams, events, graphs, errors that only the data shows, memory under a
 * limit, several threads. Runs on every GPU here; where there is none only what the CPU makes of it. */
#include <math.h>
#include <pthread.h>
#include <stdlib.h>
#include "test.h"
#include "wick/wick.h"

enum { N = 1000 };

static wk_tensor *numbers(wk_device *d, float first)
{
    float x[N];
    for (int i = 0; i < N; i++)
        x[i] = first + (float)i;
    return wk_from_host(d, WK_F32, 1, (int64_t[]){N}, x);
}

/* t holds first + i * step. */
static void check_numbers(const wk_tensor *t, float first, float step)
{
    float y[N] = {0};
    int bad = -1;
    CHECK(t && wk_to_host(t, y) == WK_OK);
    for (int i = 0; i < N && bad < 0; i++)
        bad = y[i] == first + (float)i * step ? -1 : i;
    test_check(bad < 0, __FILE__, __LINE__, "element %d: got %g, expected %g", bad,
               bad < 0 ? 0 : (double)y[bad], (double)(first + (float)bad * step));
}

/* Work on two streams that hand a tensor back and forth. */
static void streams(wk_device *d)
{
    wk_scope_begin();
    wk_stream *a = wk_stream_new(d), *b = wk_stream_new(d);
    CHECK(a && b);
    wk_tensor *x = numbers(d, 0), *one = numbers(d, 1);
    for (int round = 0; round < 5; round++) {
        CHECK(wk_stream_push(a) == WK_OK);
        x = wk_add(x, one);
        wk_stream_pop(a);
        CHECK(wk_stream_push(b) == WK_OK);
        x = wk_sub(x, one);
        wk_stream_pop(b);
    }
    check_numbers(x, 0, 1);
    CHECK(wk_stream_sync(a) == WK_OK && wk_stream_sync(b) == WK_OK);
    wk_stream_drop(a);
    wk_stream_drop(b);
    check_numbers(wk_add(x, one), 1, 2);
    wk_scope_end();
    CHECK(wk_sync(d) == WK_OK);
    CHECK_STR(wk_error(), "");
}

/* Products on streams that come and go: a library's handle must follow. */
static void products(wk_device *d)
{
    float unit[9] = {1, 0, 0, 0, 1, 0, 0, 0, 1}, x[9] = {1, 2, 3, 4, 5, 6, 7, 8, 9}, y[9];
    for (int round = 0; round < 4; round++) {
        wk_scope_begin();
        wk_stream *s = wk_stream_new(d), *other = round & 1 ? wk_stream_new(d) : NULL;
        wk_tensor *a = wk_from_host(d, WK_F32, 2, (int64_t[]){3, 3}, x);
        wk_tensor *b = wk_from_host(d, WK_F32, 2, (int64_t[]){3, 3}, unit);
        CHECK(wk_stream_push(s) == WK_OK);
        wk_tensor *c = wk_matmul(wk_matmul(a, b), b);
        CHECK(wk_to_host(c, y) == WK_OK && memcmp(x, y, sizeof x) == 0);
        wk_stream_pop(s);
        wk_stream_drop(s);
        wk_stream_drop(other);
        CHECK(wk_to_host(wk_matmul(c, b), y) == WK_OK && memcmp(x, y, sizeof x) == 0);
        wk_scope_end();
    }
}

/* 256 + 1 + 1 is a bf16, 256 + 1 is not and would be rounded down: bias, residual and activation see the sum itself. */
static void rounded_once(wk_device *d)
{
    const float x[] = {256, 1, 256, 1, -256, -1}, ones[] = {1, 1, 1, 1, 1, 1};
    const wk_activation acts[] = {WK_ACT_NONE, WK_ACT_RELU};
    for (int k = 0; k < 6; k++) {
        float y[6] = {0};
        int addend = k / 2; /* bias, z, both */
        wk_scope_begin();
        wk_tensor *tx = wk_cast(wk_from_host(d, WK_F32, 2, (int64_t[]){3, 2}, x), WK_BF16);
        wk_tensor *one = wk_cast(wk_from_host(d, WK_F32, 2, (int64_t[]){3, 2}, ones), WK_BF16);
        wk_tensor *bias = wk_reshape(wk_narrow(one, 0, 0, 1), 1, (int64_t[]){2});
        wk_tensor *t = wk_linear_act(tx, wk_narrow(one, 0, 0, 2), addend == 1 ? NULL : bias,
                                     addend == 0 ? NULL : one, (wk_act){acts[k % 2], 0, 0});
        CHECK(wk_to_host(wk_cast(t, WK_F32), y) == WK_OK);
        for (int i = 0; i < 6; i++) {
            float sum = i < 4 ? 258 : -256; /* 259 lies between 258 and 260 and goes to the even 260 */
            if (addend == 2)
                sum = i < 4 ? 260 : -255;
            float want = acts[k % 2] == WK_ACT_RELU && sum < 0 ? 0 : sum;
            test_check(y[i] == want, __FILE__, __LINE__, "addend %d, act %d: got %g, expected %g", addend,
                       k % 2, (double)y[i], (double)want);
        }
        wk_scope_end();
    }
}

static void events(wk_device *d)
{
    wk_event *from = wk_event_new(d), *to = wk_event_new(d);
    wk_scope_begin();
    wk_tensor *x = numbers(d, 1);
    CHECK(wk_event_record(from) == WK_OK);
    x = wk_add(x, x);
    CHECK(wk_event_record(to) == WK_OK && wk_event_wait(to) == WK_OK && wk_event_sync(to) == WK_OK);
    CHECK(wk_event_ms(from, to) >= 0);
    check_numbers(x, 2, 2);
    wk_scope_end();
    wk_event_drop(from);
    wk_event_drop(to);
    wk_event_drop(NULL);
}

/* y = (x + x) * x, recorded once, replayed with new inputs; temporaries in between are freed while recording. */
static void graph(wk_device *d)
{
    wk_scope_begin();
    wk_tensor *x = numbers(d, 0);
    CHECK(wk_graph_begin(d) == WK_OK);
    wk_tensor *y = wk_add(wk_add(x, x), wk_sub(x, wk_mul(x, wk_sub(x, x))));
    CHECK_ERROR(wk_sync(d) != WK_OK, WK_ERR_ARGUMENT, "captured");
    wk_graph *g = wk_graph_end(d);
    CHECK(g != NULL);
    CHECK_STR(wk_error(), "");
    for (int round = 1; g && round < 4; round++) {
        wk_tensor *noise = wk_mul(x, x); /* must not get memory of the graph's */
        CHECK(wk_copy_into(x, numbers(d, (float)round)) == WK_OK);
        CHECK(wk_graph_launch(g) == WK_OK);
        wk_drop(noise);
        check_numbers(y, 3 * (float)round, 3);
    }
    wk_graph_drop(g);
    wk_graph_drop(NULL);
    wk_scope_end();
    CHECK_ERROR(wk_graph_end(d) == NULL, WK_ERR_ARGUMENT, "no graph");
}

/* A graph is first launched on another stream than the one that its input comes from. What is made and dropped again is memory that
 * is there later: asking the system for some would wait for all streams. */
static void graph_elsewhere(wk_device *d)
{
    wk_stream *first = wk_stream_new(d), *second = wk_stream_new(d);
    wk_scope_begin();
    wk_tensor *one = numbers(d, 1);
    CHECK(wk_stream_push(first) == WK_OK);
    wk_drop(wk_add(one, one));
    wk_stream_pop(first);
    CHECK(wk_graph_begin(d) == WK_OK);
    wk_drop(wk_add(one, one));
    CHECK(wk_stream_push(first) == WK_OK);
    wk_tensor *x = wk_add(one, one);
    wk_stream_pop(first);
    wk_tensor *y = wk_add(x, one);
    wk_graph *g = wk_graph_end(d);
    CHECK(g && wk_stream_push(second) == WK_OK && wk_graph_launch(g) == WK_OK);
    check_numbers(y, 3, 3);
    wk_stream_pop(second);
    wk_graph_drop(g);
    wk_scope_end();
    wk_stream_drop(first);
    wk_stream_drop(second);
}

/* A bad index is found by the kernel and told at the next synchronisation, with the op's name; then all is well. */
static void late_errors(wk_device *d)
{
    int32_t zeros[4] = {1, 0, 2, 3};
    wk_scope_begin();
    wk_tensor *x = wk_from_host(d, WK_I32, 1, (int64_t[]){4}, zeros);
    CHECK(wk_div(x, x) != NULL || wk_error_status() == WK_ERR_INDEX);
    CHECK_ERROR(wk_error_status() != WK_OK || wk_sync(d) != WK_OK, WK_ERR_INDEX, "div");
    CHECK(wk_sync(d) == WK_OK);
    wk_scope_end();
}

/* Elements of f16 beside the same in f32: a hundredth of the largest apart at most. */
static void check_close(const char *what, const wk_tensor *got, const wk_tensor *want, int64_t queries)
{
    int64_t n = want ? wk_count(want) : 0;
    float *x = malloc((size_t)n * 4 + 4), *y = malloc((size_t)n * 4 + 4), worst = 0, most = 0;
    bool have = wk_to_host(wk_cast(got, WK_F32), x) == WK_OK && wk_to_host(want, y) == WK_OK;
    for (int64_t i = 0; have && i < n; i++) {
        most = fmaxf(most, fabsf(y[i]));
        worst = fmaxf(worst, isfinite(x[i]) ? fabsf(x[i] - y[i]) : INFINITY);
    }
    test_check(have && worst <= most / 100, __FILE__, __LINE__, "sdpa of %d queries, %s: off by %g of %g",
               (int)queries, what, (double)worst, (double)most);
    free(x);
    free(y);
}

/* The first key is above four thousand others, whose weights are together a tenth of all, and each below the least normal number of f16. */
static void small_weights(wk_device *d, int64_t s)
{
    enum { T = 4096, D = 64 };
    int64_t q[] = {1, 1, s, D}, k[] = {1, 1, T, D};
    wk_scope_begin();
    wk_device *const devices[] = {d, wk_device_open("cpu")};
    wk_tensor *y[2], *dq[2], *dk[2], *dv[2];
    for (int i = 0; i < 2; i++) {
        wk_tensor *in[4], *lse = NULL, *mask = wk_fill(devices[i], WK_F32, 1, (int64_t[]){T}, -10.5);
        for (int m = 0; m < 4; m++) { /* q, k, v, dy */
            in[m] =
                wk_cast(wk_randn(devices[i], WK_F32, 4, m % 3 ? k : q, m == 2, 0.5, (uint64_t)m, 0), WK_F16);
            in[m] = i ? wk_cast(in[m], WK_F32) : in[m];
        }
        CHECK(wk_fill_into(wk_narrow(mask, 0, 0, 1), 0) == WK_OK);
        y[i] = wk_sdpa(in[0], in[1], in[2], mask, NULL, &lse);
        CHECK(wk_sdpa_backward(in[0], in[1], in[2], y[i], lse, in[3], mask, NULL, &dq[i], &dk[i], &dv[i]) ==
              WK_OK);
    }
    check_close("y", y[0], y[1], s);
    check_close("dq", dq[0], dq[1], s);
    check_close("dk", wk_narrow(dk[0], 2, 1, T - 1), wk_narrow(dk[1], 2, 1, T - 1), s);
    check_close("dv", wk_narrow(dv[0], 2, 1, T - 1), wk_narrow(dv[1], 2, 1, T - 1), s);
    wk_scope_end();
}

static void memory(wk_device *d)
{
    wk_memory_stats before, after;
    CHECK(wk_memory_trim(d) == WK_OK && wk_memory(d, &before) == WK_OK);
    CHECK_EQ(before.cached, 0);
    wk_scope_begin();
    wk_empty(d, WK_F32, 1, (int64_t[]){1 << 20});
    wk_scope_end();
    CHECK(wk_memory(d, &after) == WK_OK);
    CHECK_EQ(after.in_use, before.in_use);
    CHECK(wk_memory_limit(d, before.in_use + (1 << 20)) == WK_OK);
    CHECK_ERROR(wk_empty(d, WK_F32, 1, (int64_t[]){1 << 20}) == NULL, WK_ERR_MEMORY, "out of memory");
    CHECK(wk_memory_limit(d, 0) == WK_OK);
    CHECK_ERROR(wk_empty(d, WK_F64, 1, (int64_t[]){(int64_t)1 << 50}) == NULL, WK_ERR_MEMORY,
                "out of memory");
    check_numbers(numbers(d, 5), 5, 1);
}

static void *worker(void *device)
{
    for (int round = 0; round < 10; round++) {
        wk_scope_begin();
        wk_tensor *x = numbers(device, (float)round);
        check_numbers(wk_sub(wk_add(x, x), wk_mul(x, wk_sub(x, x))), 2 * (float)round, 2);
        wk_scope_end();
    }
    return NULL;
}

static void threads(wk_device *d)
{
    pthread_t t[4];
    for (int i = 0; i < 4; i++)
        pthread_create(&t[i], NULL, worker, d);
    for (int i = 0; i < 4; i++)
        pthread_join(t[i], NULL);
}

/* Larger than the pinned chunks that copies go through. */
static void big_copies(wk_device *d)
{
    int64_t n = (5 << 20) + 3;
    float *x = malloc((size_t)n * sizeof *x), *y = malloc((size_t)n * sizeof *y);
    for (int64_t i = 0; i < n; i++)
        x[i] = (float)(i % 8191);
    wk_tensor *t = wk_from_host(d, WK_F32, 1, &n, x);
    CHECK(wk_to_host(t, y) == WK_OK);
    CHECK(memcmp(x, y, (size_t)n * sizeof *x) == 0);
    wk_drop(t);
    free(x);
    free(y);
}

/* Sums where ids meet, along lines and of whole rows: the same bits every time, or close to them where any order is
 * allowed. The numbers differ so much in size that another order gives other bits. */
static void sums_by_ids(wk_device *d)
{
    enum { ROWS = 40, COLS = 1500, IDS = 2600 };
    static float src[ROWS * IDS], first[2][ROWS * COLS], again[ROWS * COLS];
    static int64_t ids[ROWS * IDS];
    uint32_t seed = 1;
    for (int i = 0; i < ROWS * IDS; i++) {
        seed = seed * 1664525 + 1013904223;
        ids[i] = (seed >> 8) % COLS;
        src[i] = (float)(seed >> 16 & 255) * 0.1f * (float)(1 << (seed >> 4 & 15));
    }
    wk_scope_begin();
    wk_tensor *x = wk_fill(d, WK_F32, 2, (int64_t[]){ROWS, COLS}, 0.1);
    wk_tensor *s = wk_from_host(d, WK_F32, 2, (int64_t[]){ROWS, IDS}, src);
    wk_tensor *i = wk_from_host(d, WK_I64, 2, (int64_t[]){ROWS, IDS}, ids);
    wk_tensor *row = wk_from_host(d, WK_I64, 1, (int64_t[]){IDS}, ids);
    for (int round = 0; round < 12; round++) {
        int way = round & 1, free_order = round >= 8;
        wk_set_deterministic(!free_order);
        wk_tensor *y = way ? wk_scatter_add(x, i, s, 1)
                           : wk_copy(wk_transpose(
                                 wk_index_add(wk_transpose(x, 0, 1), row, wk_transpose(s, 0, 1), 0), 0, 1));
        CHECK(wk_to_host(y, round < 2 ? first[way] : again) == WK_OK);
        bool good = round < 2 || free_order || memcmp(first[way], again, sizeof again) == 0;
        for (int k = 0; free_order && k < ROWS * COLS; k++)
            good = good && fabsf(again[k] - first[way][k]) <= 1e-5f * first[way][k];
        CHECK(good);
    }
    wk_set_deterministic(1);
    CHECK(wk_deterministic() == 1);
    wk_scope_end();
}

/* So many lines that a block gets several, whose ids meet in few or many places: whole numbers, whose sums are exact. */
static void sums_of_lines(wk_device *d)
{
    enum { ROWS = 300, COLS = 2000, IDS = 5000 };
    static float src[ROWS * IDS], got[ROWS * COLS], want[ROWS * COLS];
    static int64_t ids[ROWS * IDS];
    uint32_t seed = 3;
    for (int i = 0; i < ROWS * IDS; i++) {
        seed = seed * 1664525 + 1013904223;
        ids[i] = (seed >> 8) % (i / IDS % 3 ? COLS : 600);
        src[i] = (float)(seed >> 24);
        want[i / IDS * COLS + ids[i]] += src[i];
    }
    wk_scope_begin();
    wk_tensor *x = wk_fill(d, WK_F32, 2, (int64_t[]){ROWS, COLS}, 0);
    wk_tensor *s = wk_from_host(d, WK_F32, 2, (int64_t[]){ROWS, IDS}, src);
    wk_tensor *i = wk_from_host(d, WK_I64, 2, (int64_t[]){ROWS, IDS}, ids);
    CHECK(wk_to_host(wk_scatter_add(x, i, s, 1), got) == WK_OK);
    CHECK(memcmp(got, want, sizeof got) == 0);
    wk_scope_end();
}

/* Losses of rows do not depend on whether their gradients are wanted. */
static void check_losses(const wk_tensor *x, const wk_tensor *target)
{
    enum { MOST = 300 };
    float alone[MOST], beside[MOST];
    wk_tensor *dx;
    CHECK(wk_count(target) <= MOST);
    CHECK(wk_to_host(wk_cast(wk_cross_entropy(x, target, WK_REDUCE_NONE, NULL), WK_F32), alone) == WK_OK);
    CHECK(wk_to_host(wk_cast(wk_cross_entropy(x, target, WK_REDUCE_NONE, &dx), WK_F32), beside) == WK_OK);
    for (int64_t i = 0; i < wk_count(target); i++)
        CHECK(fabsf(alone[i] - beside[i]) <= 0.005f * fabsf(beside[i]));
}

/* What a row op gives for the first `cols` columns of x in `dtype`, as f32. */
static void run_rows(wk_device *d, int op, wk_dtype dtype, int64_t rows, int64_t cols, const float *x,
                     const float *w, float *y)
{
    wk_scope_begin();
    wk_tensor *t = wk_cast(wk_from_host(d, WK_F32, 2, (int64_t[]){rows, cols}, x), dtype), *dx = NULL;
    wk_tensor *weight = wk_cast(wk_from_host(d, WK_F32, 1, &cols, w), dtype), *result;
    wk_tensor *target = wk_arange(d, WK_I64, 0, (double)rows, 1);
    switch (op) {
    case 0: result = wk_layer_norm(t, weight, weight, 1e-5); break;
    case 1: result = wk_rms_norm(t, weight, 1e-5); break;
    case 2: result = wk_softmax(t, 1, (int64_t[]){1}, WK_SOFTMAX_ACCURATE); break;
    default: check_losses(t, target); result = wk_cross_entropy(t, target, WK_REDUCE_NONE, &dx) ? dx : NULL;
    }
    CHECK(wk_to_host(wk_cast(result, WK_F32), y) == WK_OK);
    wk_scope_end();
}

/* Rows too long for registers of a few threads, and so many that a block gets several: more than samples may have. */
static void long_rows(wk_device *d)
{
    enum { ROWS = 300, COLS = 17008, MOST_COLS = 4 * COLS };
    static const struct {
        wk_dtype dtype;
        int64_t rows, cols;
        float allowed;
    } cases[] = {{WK_F32, 160, 17001, 1e-4f},
                 {WK_F32, ROWS, 17004, 1e-4f},
                 {WK_BF16, ROWS, COLS, 0.01f},
                 /* rows that clusters of blocks share, which NVIDIA has alone */
                 {WK_BF16, ROWS / 2, 2 * COLS - 8, 0.01f},
                 {WK_F32, ROWS / 4, MOST_COLS - 4, 1e-4f}};
    int n = 4 * (strncmp(wk_device_name(d), "cuda", 4) == 0 ? 5 : 3);
    static float x[ROWS * COLS], w[MOST_COLS], got[ROWS * COLS], want[ROWS * COLS];
    uint32_t seed = 7;
    for (int i = 0; i < ROWS * COLS; i++) {
        seed = seed * 1664525 + 1013904223;
        x[i] = 3 + (float)(seed >> 8 & 0xFFFF) * 0x1p-13f;
        w[i % MOST_COLS] = (float)(seed >> 24) * 0x1p-7f;
    }
    wk_device *cpu = wk_device_open("cpu");
    for (int i = 0; i < n; i++) {
        int op = i % 4;
        int64_t rows = cases[i / 4].rows, cols = cases[i / 4].cols;
        run_rows(d, op, cases[i / 4].dtype, rows, cols, x, w, got);
        run_rows(cpu, op, cases[i / 4].dtype, rows, cols, x, w, want);
        float worst = 0;
        for (int64_t k = 0; k < rows * cols; k++) {
            float error =
                fabsf(got[k] - want[k]) / (op < 2 ? 0.01f + fabsf(want[k]) : 1e-5f + fabsf(want[k]));
            worst = error > worst || error != error ? error : worst;
        }
        test_check(worst < cases[i / 4].allowed, __FILE__, __LINE__, "op %d of %d rows of %d: off by %g", op,
                   (int)rows, (int)cols, (double)worst);
    }
}

/* ---- layers, called again and again ---- */

enum { STEPS = 5, BATCH = 4, WIDE = 32, WEIGHTS = 4 };

/* x and the weights of a recurrent layer. */
typedef struct {
    wk_tensor *x, *weights[WEIGHTS];
} layer;

static wk_tensor *noise(wk_device *d, wk_dtype dtype, int rank, const int64_t *shape, unsigned seed)
{
    static float v[4 * WIDE * WIDE];
    for (size_t i = 0; i < sizeof v / sizeof *v; i++) {
        seed = seed * 1664525 + 1013904223;
        v[i] = (float)(seed >> 8) / (float)(1 << 25) - 0.25f;
    }
    return wk_cast(wk_from_host(d, WK_F32, rank, shape, v), dtype);
}

static layer layer_of(wk_device *d, wk_dtype dtype, int64_t gates, unsigned seed)
{
    layer l = {.x = noise(d, dtype, 3, (int64_t[]){STEPS, BATCH, WIDE}, seed)};
    for (int i = 0; i < WEIGHTS; i++)
        l.weights[i] =
            noise(d, dtype, i < 2 ? 2 : 1, (int64_t[]){gates * WIDE, WIDE}, seed + 1 + (unsigned)i);
    return l;
}

/* y, or the gradients of x and of the first weights, one behind the other. */
static void run_layer(const layer *l, wk_rnn_mode mode, bool backward, float *result)
{
    const wk_rnn_options *o = WK_RNN(.mode = mode, .hidden = WIDE);
    const wk_tensor *const *w = (const wk_tensor *const *)l->weights;
    wk_tensor *y = NULL, *dw[WEIGHTS] = {0};
    wk_scope_begin();
    if (backward) {
        CHECK(wk_rnn_backward(l->x, NULL, NULL, NULL, w, WEIGHTS, NULL, NULL, l->x, NULL, NULL, o, &y, NULL,
                              NULL, dw) == WK_OK);
        CHECK(wk_to_host(wk_cast(dw[0], WK_F32), result + STEPS * BATCH * WIDE) == WK_OK);
    } else {
        CHECK(wk_rnn(l->x, NULL, NULL, NULL, w, WEIGHTS, o, &y, NULL, NULL, NULL) == WK_OK);
    }
    CHECK(wk_to_host(wk_cast(y, WK_F32), result) == WK_OK);
    wk_scope_end();
}

/* A library may keep what it launched for the next call with the same memory: it must see the new numbers there, and give
 * the bits of a first call. */
static void layers_again(wk_device *d, wk_dtype dtype, wk_rnn_mode mode, bool backward)
{
    enum { ROOM = STEPS * BATCH * WIDE + 4 * WIDE * WIDE, PLACES = 6 };
    static float first[2][ROOM], again[ROOM];
    int64_t gates = mode == WK_LSTM ? 4 : 3;
    layer from[2], at[PLACES];
    wk_stream *streams[2] = {wk_stream_new(d), wk_stream_new(d)};
    wk_scope_begin();
    for (int k = 0; k < 2; k++) {
        from[k] = layer_of(d, dtype, gates, 1 + 10 * (unsigned)k);
        memset(first[k], 0, sizeof first[k]);
        CHECK(wk_stream_push(streams[k]) == WK_OK);
        run_layer(&from[k], mode, backward, first[k]);
        wk_stream_pop(streams[k]);
    }
    CHECK(memcmp(first[0], first[1], sizeof again) != 0);
    for (int i = 0; i < PLACES; i++)
        at[i] = layer_of(d, dtype, gates, 1);
    CHECK(wk_stream_push(streams[0]) == WK_OK);
    for (int round = 0; round < 8 * PLACES; round++) {
        const layer *l = &at[round / 4 % PLACES], *new = &from[round % 2];
        CHECK(wk_copy_into(l->x, new->x) == WK_OK);
        for (int i = 0; i < WEIGHTS; i++)
            CHECK(wk_copy_into(l->weights[i], new->weights[i]) == WK_OK);
        memset(again, 0, sizeof again);
        run_layer(l, mode, backward, again);
        test_check(memcmp(again, first[round % 2], sizeof again) == 0, __FILE__, __LINE__,
                   "dtype %d, mode %d, %s: other bits in round %d", dtype, mode,
                   backward ? "gradients" : "forward", round);
    }
    wk_stream_pop(streams[0]);
    wk_scope_end();
    wk_stream_drop(streams[0]);
    wk_stream_drop(streams[1]);
}

static void all_layers_again(wk_device *d)
{
    const wk_dtype dtypes[] = {WK_F32, WK_F16, WK_BF16};
    for (int i = 0; i < 12; i++)
        layers_again(d, dtypes[i % 3], i / 3 % 2 ? WK_GRU : WK_LSTM, i / 6);
}

int main(void)
{
    for (int i = 0; i < wk_device_count(); i++) {
        wk_device *d = wk_device_open(wk_device_name_at(i));
        bool gpu = strcmp(wk_device_name(d), "cpu") != 0;
        streams(d);
        products(d);
        rounded_once(d);
        events(d);
        late_errors(d);
        threads(d);
        big_copies(d);
        sums_by_ids(d);
        all_layers_again(d);
        if (gpu) {
            sums_of_lines(d);
            long_rows(d);
            graph(d);
            graph_elsewhere(d);
            small_weights(d, 1);
            small_weights(d, 48);
            memory(d);
        } else {
            CHECK_ERROR(wk_graph_begin(d) != WK_OK, WK_ERR_UNSUPPORTED, "expected a GPU");
        }
    }
    CHECK_ERROR(wk_device_open("cuda:99") == NULL, WK_ERR_DEVICE, "no device 'cuda:99'");
    CHECK_ERROR(wk_stream_new(NULL) == NULL, WK_ERR_ARGUMENT, "device");
    return test_end();
}
