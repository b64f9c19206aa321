/* replay.c: a call as files and words, so that `wick op` can run it again. */
#include <stdio.h>
#include "core/memory.h"
#include "replay.h"
#include "wick/index.h"
#include "wick/io.h"
#include "wick/matmul.h"

/* ---- inputs ---- */

enum { NAME = 64, PARTS = 4 /* tensors that one input may become */ };

typedef struct {
    int n;
    char (*texts)[NAME];
    const char **names;
    wk_tensor **tensors;
} file_content;

static wk_status add(file_content *f, const char *name, const char *suffix, wk_tensor *t)
{
    if (!t)
        return wk_error_status();
    snprintf(f->texts[f->n], NAME, "%s%s", name, suffix);
    f->names[f->n] = f->texts[f->n];
    f->tensors[f->n++] = t;
    return WK_OK;
}

static wk_status add_numbers(file_content *f, const char *name, const char *suffix, int n, const int64_t *v)
{
    return add(f, name, suffix, wk_from_host(wk_cpu(), WK_I64, 1, (int64_t[]){n}, v));
}

/* A view that is not simply packed goes with all of its storage: the layout may be what makes the call fail. */
static wk_status add_input(file_content *f, const char *name, const wk_tensor *t)
{
    if (!t)
        return WK_OK;
    if (wk_is_packed(t))
        return add(f, name, "", wk_as_strided(t, t->rank, t->shape, t->strides, 0));
    int64_t total = (int64_t)(t->storage->bytes / wk_bytes(t->dtype)), one = 1;
    WK_TRY(add(f, name, "", wk_as_strided(t, 1, &total, &one, -t->offset)));
    WK_TRY(add_numbers(f, name, ".shape", t->rank, t->shape));
    WK_TRY(add_numbers(f, name, ".strides", t->rank, t->strides));
    return add_numbers(f, name, ".offset", 1, &t->offset);
}

static wk_status save(const wk_call *c, const char *path, file_content *f)
{
    char buf[NAME - 8];
    for (int i = 0; i < wk_op_inputs(c->op); i++) {
        if (!(c->op->in[i].flags & WK_TAIL))
            WK_TRY(add_input(f, c->op->in[i].name, c->in[i]));
    }
    for (int i = 0; i < c->n_tail; i++)
        WK_TRY(add_input(f, c->op->tail_name(c->params, i, buf, sizeof buf), c->tail[i]));
    return f->n > 0 ? wk_safetensors_save(path, f->n, f->names, f->tensors) : WK_OK;
}

wk_status wk_replay_save(const wk_call *c, const char *path, bool *any)
{
    size_t room = (size_t)(WK_MAX_IN + c->n_tail) * PARTS;
    file_content f = {.texts = wk_alloc(room * sizeof *f.texts),
                      .names = wk_alloc(room * sizeof *f.names),
                      .tensors = wk_alloc(room * sizeof *f.tensors)};
    wk_scope_begin();
    wk_status status = f.texts && f.names && f.tensors
                           ? save(c, path, &f)
                           : wk_fail(WK_ERR_MEMORY, "%s: out of memory", c->op->name);
    *any = f.n > 0;
    wk_scope_end();
    wk_free(f.tensors);
    wk_free(f.names);
    wk_free(f.texts);
    return status;
}

/* ---- parameters ---- */

static void put_number(wk_text *text, const wk_param *p, const char *field)
{
    double f;
    int64_t i;
    memcpy(&f, field, sizeof f);
    memcpy(&i, field, sizeof i);
    if (p->type == WK_P_FLOAT || p->type == WK_P_FLOATS)
        wk_text_add(text, "%.17g", f);
    else
        wk_text_add(text, "%lld", (long long)i);
}

static void put_scalar(wk_text *text, const wk_scalar *s)
{
    if (s->f == (double)s->i)
        wk_text_add(text, "%lld", (long long)s->i);
    else
        wk_text_add(text, "%.17g", s->f);
}

static void put_choice(wk_text *text, const char *choices, int64_t i)
{
    for (; i > 0 && strchr(choices, '|'); i--)
        choices = strchr(choices, '|') + 1;
    wk_text_add(text, "%.*s", (int)strcspn(choices, "|"), choices);
}

static void put_value(wk_text *text, const wk_param *p, const char *field)
{
    const wk_list *list = (const wk_list *)field;
    int n = p->type == WK_P_LIST                             ? (int)list->n
            : p->type == WK_P_INTS || p->type == WK_P_FLOATS ? p->count
                                                             : 1;
    const char *numbers = p->type == WK_P_LIST ? (const char *)list->v : field;
    if (p->type == WK_P_SCALAR) {
        put_scalar(text, (const wk_scalar *)field);
    } else if (p->type == WK_P_ENUM) {
        put_choice(text, p->choices, *(const int64_t *)field);
    } else if (p->type == WK_P_DTYPE) {
        wk_text_add(text, "%s", wk_dtype_name((wk_dtype) * (const int64_t *)field));
    } else if (p->type == WK_P_TEXT) {
        wk_text_add(text, "'%s'", field);
    } else {
        for (int i = 0; i < n; i++) {
            wk_text_add(text, i ? "," : "");
            put_number(text, p, numbers + 8 * i);
        }
    }
}

void wk_replay_params(wk_text *text, const wk_op *op, const void *params)
{
    _Alignas(16) char defaults[WK_PARAMS_BYTES];
    wk_params_defaults(op, defaults);
    for (const wk_param *p = op->params; p && p->name; p++) {
        const char *field = (const char *)params + p->offset;
        if (p->fallback && memcmp(field, defaults + p->offset, wk_param_bytes(p)) == 0)
            continue;
        wk_text_add(text, " %s=", p->name);
        put_value(text, p, field);
    }
}

void wk_replay_words(wk_text *text, const char *sample, wk_dtype dtype)
{
    while (*sample && *sample != '!') {
        size_t n = strcspn(sample, " "), name = strcspn(sample, "=");
        bool tensor = memchr(sample, '[', n) != NULL;
        if (n > 0 && !tensor && n == name + 2 && sample[name + 1] == 'T')
            wk_text_add(text, " %.*s=%s", (int)name, sample, wk_dtype_name(dtype));
        else if (n > 0 && strncmp(sample, "text=", 5) == 0)
            wk_text_add(text, " text='%.*s'", (int)n - 5, sample + 5);
        else if (n > 0 && !tensor)
            wk_text_add(text, " %.*s", (int)n, sample);
        sample += n + (sample[n] == ' ');
    }
}

/* ---- the command ---- */

void wk_replay_word(wk_text *text, const char *word)
{
    static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-+=.,/:@%";
    if (*word && !word[strspn(word, plain)]) {
        wk_text_add(text, " %s", word);
        return;
    }
    wk_text_add(text, " '");
    for (; *word; word++)
        wk_text_add(text, *word == '\'' ? "'\\''" : "%c", *word);
    wk_text_add(text, "'");
}

/* Which outputs, where it is not those that `wick op` makes by itself. */
static void put_outputs(wk_text *text, const wk_call *c)
{
    unsigned usual = 0, all = 0, asked = c->want;
    for (int i = 0; i < wk_op_outputs(c->op); i++) {
        unsigned flags = c->op->out[i].flags;
        usual |= flags & WK_SKIP ? 1u << i : 0;
        all |= flags & (WK_SKIP | WK_OPTIONAL) ? 1u << i : 0;
        asked |= c->out[i] ? 1u << i : 0;
    }
    asked &= all;
    if (asked == usual)
        return;
    wk_text_add(text, " outputs=%s", asked == all ? "all" : asked ? "" : "none");
    for (int i = 0, n = 0; asked != all && i < wk_op_outputs(c->op); i++) {
        if (asked >> i & 1)
            wk_text_add(text, "%s%s", n++ ? "," : "", c->op->out[i].name);
    }
}

void wk_replay_command(wk_text *text, const wk_call *c, const char *in, const char *out, const char *impl)
{
    if (c->device->kind != WK_KIND_CPU && !wk_deterministic())
        wk_text_add(text, "WICK_DETERMINISTIC=0 ");
    if (c->device->kind != WK_KIND_CPU && wk_matmul_precision() == WK_PRECISION_FAST)
        wk_text_add(text, "WICK_PRECISION=fast ");
    wk_text_add(text, "wick op %s", c->op->name);
    wk_replay_word(text, in ? in : "-");
    wk_replay_word(text, out);
    wk_replay_params(text, c->op, c->params);
    put_outputs(text, c);
    wk_text_add(text, " --device %s%s%s", c->device->name, impl[0] ? " --impl " : "", impl);
}
