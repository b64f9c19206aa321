/* ops_choice.c: which implementation a device would use for each op and dtype, and why not the others. */
#include "ops_choice.h"
#include <stdio.h>
#include <string.h>
#include "check/check.h"
#include "wick/ops.h"

enum { ROOM = 160 };

void add_dtypes(wk_text *t, unsigned set)
{
    static const struct {
        unsigned set;
        const char *name;
    } known[] = {{WK_ALL, "all"}, {WK_FLOATS, "float"}, {WK_SIGNED, "signed"}, {WK_INTS, "integer"}};
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        if (set == known[i].set) {
            wk_text_add(t, "%s", known[i].name);
            return;
        }
    }
    for (int d = 0, n = 0; d < WK_DTYPE_COUNT; d++) {
        if (set >> d & 1)
            wk_text_add(t, "%s%s", n++ ? "," : "", wk_dtype_name((wk_dtype)d));
    }
}

/* What each implementation says to one call. */
typedef struct {
    int n;
    const char *name[WK_MAX_IMPLS];
    char refused[WK_MAX_IMPLS][ROOM]; /* "": it takes the call */
    const char *uses;                 /* NULL: none does */
} choice;

/* Whether the sample can be called at all in this dtype; then `refused` gets each implementation's answer. */
static bool ask_sample(wk_device *device, const wk_op *op, wk_dtype dtype, const char *sample,
                       char refused[WK_MAX_IMPLS][ROOM])
{
    const wk_impl *const *list = op->impls[device->kind];
    wk_sample s;
    wk_scope_begin();
    bool good = wk_sample_make(op, sample, dtype, WK_LAYOUT_PACKED, 1, device, &s) == WK_OK &&
                wk_call_check(&s.call) == WK_OK;
    for (int i = 0; good && i < WK_MAX_IMPLS && list[i]; i++) {
        const char *reason = wk_call_refusal(&s.call, list[i]);
        snprintf(refused[i], ROOM, "%s", reason ? reason : "");
    }
    wk_error_clear();
    wk_scope_end();
    return good;
}

/* Of a vendor's implementation that refuses the first sample: whether it takes another one. */
static bool takes_other(wk_device *device, const wk_op *op, wk_dtype dtype, int impl)
{
    char refused[WK_MAX_IMPLS][ROOM];
    for (int i = 1; op->samples[i]; i++) {
        if (ask_sample(device, op, dtype, op->samples[i], refused) && !refused[impl][0])
            return true;
    }
    return false;
}

/* False, with the error cleared, where the op has no sample of this dtype. */
static bool ask(wk_device *device, const wk_op *op, wk_dtype dtype, choice *c)
{
    const wk_impl *const *list = op->impls[device->kind];
    *c = (choice){0};
    if (!wk_check_takes(op, dtype) || !op->samples || !op->samples[0] ||
        !ask_sample(device, op, dtype, op->samples[0], c->refused))
        return false;
    for (; c->n < WK_MAX_IMPLS && list[c->n]; c->n++) {
        char reason[ROOM];
        const char *name = list[c->n]->name;
        c->name[c->n] = name;
        snprintf(reason, ROOM, "%s", c->refused[c->n]);
        c->uses = c->uses || reason[0] ? c->uses : name;
        if (reason[0] && wk_impl_is_vendor(name) && takes_other(device, op, dtype, c->n))
            snprintf(c->refused[c->n], ROOM, "%.140s (it takes others)", reason);
    }
    return true;
}

static bool alike(const choice *a, const choice *b)
{
    bool same = a->n == b->n && a->uses == b->uses;
    for (int i = 0; same && i < a->n; i++)
        same = strcmp(a->refused[i], b->refused[i]) == 0;
    return same;
}

/* "miopen     then kernel", "kernel     miopen: expected f32, f16 or bf16" */
static void add_line(wk_text *t, const wk_op *op, unsigned dtypes, const choice *c)
{
    const char *between = "";
    wk_text names = {0};
    add_dtypes(&names, dtypes);
    wk_text_add(t, "%-28s %-16s %-8s ", op->name, names.data ? names.data : "?", c->uses ? c->uses : "-");
    wk_text_free(&names);
    for (int i = 0; i < c->n; i++) {
        if (c->name[i] == c->uses)
            continue;
        if (c->refused[i][0])
            wk_text_add(t, "%s%s: %s", between, c->name[i], c->refused[i]);
        else
            wk_text_add(t, "%sthen %s", between, c->name[i]);
        between = "; ";
    }
    while (t->size && t->data[t->size - 1] == ' ')
        t->size--;
    wk_text_add(t, "\n");
}

void add_choice(wk_text *t, wk_device *device, const wk_op *op)
{
    choice last, now;
    unsigned dtypes = 0;
    for (int d = 0; d < WK_DTYPE_COUNT; d++) {
        if (!ask(device, op, (wk_dtype)d, &now))
            continue;
        if (dtypes && !alike(&last, &now)) {
            add_line(t, op, dtypes, &last);
            dtypes = 0;
        }
        dtypes |= WK_SET(d);
        last = now;
    }
    if (dtypes)
        add_line(t, op, dtypes, &last);
}

int json_choice(wk_text *t, wk_device *device, const wk_op *op, const char *before)
{
    choice c;
    int n = 0;
    for (int d = 0; d < WK_DTYPE_COUNT; d++) {
        if (!ask(device, op, (wk_dtype)d, &c))
            continue;
        wk_text_add(t, "%s{\"op\":\"%s\",\"dtype\":\"%s\",\"device\":\"%s\",\"uses\":", n++ ? ",\n" : before,
                    op->name, wk_dtype_name((wk_dtype)d), wk_device_name(device));
        wk_text_add(t, c.uses ? "\"%s\"" : "null%s", c.uses ? c.uses : "");
        wk_text_add(t, ",\"impls\":[");
        for (int i = 0; i < c.n; i++) {
            wk_text_add(t, "%s{\"name\":\"%s\",\"refused\":", i ? "," : "", c.name[i]);
            if (c.refused[i][0])
                wk_text_string(t, c.refused[i]);
            else
                wk_text_add(t, "null");
            wk_text_add(t, "}");
        }
        wk_text_add(t, "]}");
    }
    return n;
}
