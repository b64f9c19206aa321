/* replay.c: a call written as files and words, for `wick op`, is the same call: its parameters read back from the
 * text, its tensors, of every layout, from the file. */
#include <stdlib.h>
#include <unistd.h>
#include "verify/replay.h"
#include "check/sample.h"
#include "core/tensor.h"
#include "test.h"
#include "wick/io.h"

static char path[] = "/tmp/wick_replay_XXXXXX";

/* The words of the text, as parameters, give the same struct. */
static void check_params(const wk_op *op, const wk_sample *s, wk_text *text, const char *what)
{
    _Alignas(16) char params[WK_PARAMS_BYTES];
    unsigned seen = 0;
    wk_params_defaults(op, params);
    for (char *save = NULL, *word = text->data ? strtok_r(text->data, " ", &save) : NULL; word;
         word = strtok_r(NULL, " ", &save)) {
        char *equals = strchr(word, '=');
        if (!test_check(equals != NULL, op->name, 0, "%s: '%s'", what, word))
            return;
        *equals = 0;
        char *value = equals + 1, *last = value + strlen(value) - 1;
        if (*value == '\'' && last > value && *last == '\'') { /* for the shell */
            *last = 0;
            value++;
        }
        wk_params_parse(op, params, word, value, &seen);
    }
    wk_params_complete(op, seen);
    test_check(!wk_pending(), op->name, 0, "%s: %s", what, wk_error());
    test_check(memcmp(params, s->params, sizeof params) == 0, op->name, 0, "%s: other parameters", what);
    wk_error_clear();
}

/* name.suffix's numbers are these. */
static void check_numbers(wk_safetensors *file, const char *name, const char *suffix, int n,
                          const int64_t *want)
{
    char full[80];
    snprintf(full, sizeof full, "%s.%s", name, suffix);
    wk_tensor *t = wk_safetensors_get(file, full);
    test_check(t && t->dtype == WK_I64 && wk_count(t) == n &&
                   memcmp(wk_ptr(t), want, (size_t)n * sizeof *want) == 0,
               name, 0, "%s: %s", full, t ? "other numbers" : wk_error());
}

static void check_tensor(wk_safetensors *file, const char *name, const wk_tensor *want)
{
    wk_tensor *t = wk_safetensors_get(file, name);
    if (!test_check(t != NULL, name, 0, "%s", wk_error()))
        return;
    if (!wk_is_packed(want)) {
        check_numbers(file, name, "shape", want->rank, want->shape);
        check_numbers(file, name, "strides", want->rank, want->strides);
        check_numbers(file, name, "offset", 1, &want->offset);
        t = wk_as_strided(t, want->rank, want->shape, want->strides, want->offset);
    }
    size_t bytes = (size_t)wk_count(want) * wk_bytes(want->dtype);
    char *a = malloc(bytes + 1), *b = malloc(bytes + 1);
    bool same = t && a && b && t->dtype == want->dtype && wk_to_host(t, a) == WK_OK &&
                wk_to_host(want, b) == WK_OK && memcmp(a, b, bytes) == 0;
    test_check(same, name, 0, "other elements");
    free(a);
    free(b);
}

static void check_inputs(const wk_op *op, const wk_sample *s, const char *what)
{
    bool any = false;
    wk_status status = wk_replay_save(&s->call, path, &any);
    wk_safetensors *file = status == WK_OK && any ? wk_safetensors_open(path) : NULL;
    if (!test_check(status == WK_OK && (file || !any), op->name, 0, "%s: %s", what, wk_error()))
        return;
    for (int i = 0; file && i < wk_op_inputs(op); i++) {
        if (s->in[i])
            check_tensor(file, op->in[i].name, s->in[i]);
    }
    for (int i = 0; file && i < s->call.n_tail; i++) {
        char buf[48];
        check_tensor(file, op->tail_name(s->params, i, buf, sizeof buf), s->tail[i]);
    }
    wk_safetensors_close(file);
}

static void check_sample(const wk_op *op, const char *sample, wk_dtype dtype, wk_layout layout)
{
    static wk_sample s;
    wk_text text = {0};
    wk_scope_begin();
    if (wk_sample_make(op, sample, dtype, layout, 1, wk_cpu(), &s) == WK_OK) {
        wk_replay_params(&text, op, s.params);
        check_params(op, &s, &text, sample);
        wk_text_free(&text);
        text = (wk_text){0};
        wk_replay_words(&text, sample, dtype);
        check_params(op, &s, &text, sample);
        check_inputs(op, &s, sample);
    }
    wk_text_free(&text);
    wk_error_clear();
    wk_scope_end();
}

/* The outputs that a call asked for, and no others: an implementation may refuse one of them. */
static void check_outputs(const char *name, const char *sample, unsigned want, const char *expected)
{
    static wk_sample s;
    wk_text text = {0};
    const wk_op *op = wk_op_find(name);
    wk_scope_begin();
    if (CHECK(op && wk_sample_make(op, sample, WK_F32, WK_LAYOUT_PACKED, 1, wk_cpu(), &s) == WK_OK)) {
        s.call.want = want;
        s.call.device = wk_cpu();
        wk_replay_command(&text, &s.call, "in", "out", "");
        const char *got = text.data ? strstr(text.data, " outputs=") : NULL;
        test_check(got ? strncmp(got, expected, strlen(expected)) == 0 : !*expected, name, 0, "%s: '%s'",
                   expected, text.data ? text.data : "");
    }
    wk_text_free(&text);
    wk_scope_end();
}

static void test_outputs(void)
{
    const char *layer = "x=T[2,1,3] weight_ih_l0=T[8,3] weight_hh_l0=T[8,2] bias_ih_l0=T[8] bias_hh_l0=T[8] "
                        "hidden=2 training=1";
    check_outputs("add", "a=T[2] b=T[2]", 0, "");
    check_outputs("max", "x=T[2,3] dims=1", 0, "");
    check_outputs("max", "x=T[2,3] dims=1", 2, " outputs=all --device");
    check_outputs("rnn", layer, 1 + 2, "");
    check_outputs("rnn", layer, 1 + 2 + 4, " outputs=y,hn,cn --device");
    check_outputs("rnn", layer, 15, " outputs=all --device");
    check_outputs("rnn", layer, 0, " outputs=none --device");
}

int main(void)
{
    int fd = mkstemp(path);
    if (fd < 0 || close(fd) != 0)
        return TEST_SKIPPED;
    for (int i = 0; i < wk_op_count(); i++) {
        const wk_op *op = wk_op_at(i);
        wk_dtype dtype = WK_F32;
        while (dtype + 1 < WK_DTYPE_COUNT && !(op->dtypes >> dtype & 1))
            dtype++;
        for (const char *const *sample = op->samples; sample && *sample; sample++) {
            for (int layout = 0; layout < WK_LAYOUT_COUNT; layout++)
                check_sample(op, *sample, dtype, (wk_layout)layout);
        }
    }
    test_outputs();
    unlink(path);
    return test_end();
}
