/* ops.c: `wick ops`: the op table as text and as JSON. */
#include <stdio.h>
#include <string.h>
#include "core/op.h"
#include "args.h"
#include "cli.h"
#include "ops_choice.h"

static const char help[] =
    "usage: wick ops [NAME ...] [--json | --names] [--device D]\n"
    "\n"
    "Lists the ops: name, dtypes, implementations of each kind of device (the first that takes a call runs "
    "it),\n"
    "inputs, parameters with their defaults, outputs. What is in [] is optional; a parameter without a "
    "default\n"
    "has to be given. With NAMEs only those, and all about each.\n"
    "\n"
    "  --device D  instead, for a device that is here (cpu, rocm:0, cuda:0, auto): which implementation each "
    "op\n"
    "              and dtype uses, which come next, and why the others are refused. Asked with the op's "
    "first\n"
    "              sample: other shapes may be treated otherwise, and where a vendor's library takes another "
    "of the\n"
    "              samples that is said\n"
    "  --json      one array of objects: name, summary, dtypes, inputs, params, outputs, impls, samples, "
    "errors;\n"
    "              with --device: op, dtype, device, uses, impls with the reason of each refusal\n"
    "  --names     the names alone\n"
    "\n"
    "Examples:\n"
    "  wick ops\n"
    "  wick ops conv2d\n"
    "  wick ops conv2d softmax --device rocm:0\n"
    "  wick ops --json | jq -r '.[] | select(.dtypes | index(\"u8\")) | .name'\n";

static const char *const kinds[WK_KIND_COUNT] = {"cpu", "rocm", "cuda"};
static const char *const types[] = {
    [WK_P_INT] = "int",     [WK_P_BOOL] = "bool", [WK_P_FLOAT] = "float",   [WK_P_SCALAR] = "number",
    [WK_P_INTS] = "ints",   [WK_P_LIST] = "list", [WK_P_FLOATS] = "floats", [WK_P_ENUM] = "enum",
    [WK_P_DTYPE] = "dtype", [WK_P_TEXT] = "text"};

/* ---- as text ---- */

static void add_impls(wk_text *t, const wk_op *op, wk_device_kind kind)
{
    for (int i = 0; i < WK_MAX_IMPLS && op->impls[kind][i]; i++)
        wk_text_add(t, "%s%s", i ? "," : "", op->impls[kind][i]->name);
    if (!op->impls[kind][0])
        wk_text_add(t, "-");
}

/* An output that `wick op` makes always is not called optional: only C callers may leave it out. */
static bool is_optional(const wk_slot *s) { return (s->flags & (WK_OPTIONAL | WK_SKIP)) == WK_OPTIONAL; }

static void add_slots(wk_text *t, const wk_slot *slots, int n)
{
    for (int i = 0; i < n; i++) {
        bool optional = is_optional(&slots[i]);
        wk_text_add(t, "%s%s%s%s%s", i ? ", " : "", optional ? "[" : "", slots[i].name, optional ? "]" : "",
                    slots[i].flags & WK_TAIL ? " ..." : "");
    }
}

/* "x, weight, [bias] -> y" */
static void add_signature(wk_text *t, const wk_op *op)
{
    add_slots(t, op->in, wk_op_inputs(op));
    wk_text_add(t, "%s-> ", wk_op_inputs(op) ? " " : "");
    add_slots(t, op->out, wk_op_outputs(op));
}

static void add_params(wk_text *t, const wk_op *op)
{
    for (const wk_param *p = op->params; p && p->name; p++) {
        wk_text_add(t, "%s%s%s%s", p > op->params ? " " : "", p->name, p->fallback ? "=" : "",
                    p->fallback ? p->fallback : "");
    }
}

/* Kinds of device that have an implementation of any op. */
static bool kind_is_there(wk_device_kind kind)
{
    for (int i = 0; i < wk_op_count(); i++) {
        if (wk_op_at(i)->impls[kind][0])
            return true;
    }
    return false;
}

enum { COLUMNS = 4 + WK_KIND_COUNT };

/* The fields of a line; an op's, or the headings where op is NULL. Returns how many there are. */
static int fields(const wk_op *op, wk_text *field)
{
    int n = 0;
    wk_text_add(&field[n++], "%s", op ? op->name : "OP");
    if (op)
        add_dtypes(&field[n++], op->dtypes);
    else
        wk_text_add(&field[n++], "DTYPES");
    for (int k = 0; k < WK_KIND_COUNT; k++) {
        if (!kind_is_there((wk_device_kind)k))
            continue;
        if (op)
            add_impls(&field[n++], op, (wk_device_kind)k);
        else
            wk_text_add(&field[n++], "%s", kinds[k]);
    }
    if (!op) {
        wk_text_add(&field[n++], "INPUTS -> OUTPUTS");
        wk_text_add(&field[n++], "PARAMETERS");
        return n;
    }
    add_signature(&field[n++], op);
    add_params(&field[n++], op);
    return n;
}

/* Adds a line of the table to t; where t is NULL it only widens the columns. */
static void table_line(wk_text *t, const wk_op *op, int *width)
{
    wk_text field[COLUMNS] = {{0}};
    int n = fields(op, field);
    for (int i = 0; i < n; i++) {
        const char *text = field[i].data ? field[i].data : "";
        if (t && i < n - 1)
            wk_text_add(t, "%-*s  ", width[i], text);
        else if (t)
            wk_text_add(t, "%s", text);
        else if ((int)field[i].size > width[i])
            width[i] = (int)field[i].size;
        if (t)
            t->failed |= field[i].failed;
        wk_text_free(&field[i]);
    }
    while (t && t->size && t->data[t->size - 1] == ' ')
        t->size--;
    if (t)
        wk_text_add(t, "\n");
}

static void add_table(wk_text *t)
{
    int width[COLUMNS] = {0};
    for (int add = 0; add < 2; add++) {
        table_line(add ? t : NULL, NULL, width);
        for (int i = 0; i < wk_op_count(); i++)
            table_line(add ? t : NULL, wk_op_at(i), width);
    }
}

/* ---- one op in full ---- */

static unsigned slot_dtypes(const wk_op *op, const wk_slot *s)
{
    unsigned stat = WK_SET(WK_F32) | WK_SET(WK_F64);
    return s->dtypes ? s->dtypes : s->flags & WK_ANY ? WK_ALL : s->flags & WK_STAT ? stat : op->dtypes;
}

static void describe_slots(wk_text *t, const wk_op *op, const wk_slot *slots, int n, const char *title)
{
    for (int i = 0; i < n; i++) {
        bool input = slots == op->in;
        wk_text_add(t, input ? "%-8s %-16s " : "%-8s %s", i ? "" : title, slots[i].name);
        if (input)
            add_dtypes(t, slot_dtypes(op, &slots[i]));
        wk_text_add(t, "%s%s\n", is_optional(&slots[i]) ? " (optional)" : "",
                    slots[i].flags & WK_TAIL ? " (any number)" : "");
    }
}

static void describe_params(wk_text *t, const wk_op *op)
{
    for (const wk_param *p = op->params; p && p->name; p++) {
        wk_text_add(t, "%-8s %-16s %s", p > op->params ? "" : "params", p->name,
                    p->choices ? p->choices : types[p->type]);
        if (p->fallback)
            wk_text_add(t, ", default %s\n", p->fallback);
        else
            wk_text_add(t, ", required\n");
    }
}

static void describe(wk_text *t, const wk_op *op)
{
    wk_text_add(t, "%s: %s\n", op->name, op->summary ? op->summary : "");
    describe_slots(t, op, op->in, wk_op_inputs(op), "inputs");
    describe_slots(t, op, op->out, wk_op_outputs(op), "outputs");
    describe_params(t, op);
    for (int k = 0; k < WK_KIND_COUNT; k++) {
        if (!op->impls[k][0])
            continue;
        wk_text_add(t, "%-8s ", kinds[k]);
        add_impls(t, op, (wk_device_kind)k);
        wk_text_add(t, "\n");
    }
    for (int i = 0; op->samples && op->samples[i]; i++)
        wk_text_add(t, "%-8s %s\n", i ? "" : "samples", op->samples[i]);
}

/* ---- as JSON ---- */

static void json_dtypes(wk_text *t, unsigned set)
{
    wk_text_add(t, "[");
    for (int d = 0, n = 0; d < WK_DTYPE_COUNT; d++) {
        if (set >> d & 1)
            wk_text_add(t, "%s\"%s\"", n++ ? "," : "", wk_dtype_name((wk_dtype)d));
    }
    wk_text_add(t, "]");
}

static void json_slots(wk_text *t, const wk_op *op, const wk_slot *slots, int n)
{
    wk_text_add(t, "[");
    for (int i = 0; i < n; i++) {
        unsigned flags = slots[i].flags;
        wk_text_add(t, "%s{\"name\":", i ? "," : "");
        wk_text_string(t, slots[i].name);
        wk_text_add(t, ",\"optional\":%s", is_optional(&slots[i]) ? "true" : "false");
        if (flags & WK_TAIL)
            wk_text_add(t, ",\"many\":true");
        if (slots == op->in) {
            wk_text_add(t, ",\"dtypes\":");
            json_dtypes(t, slot_dtypes(op, &slots[i]));
        }
        wk_text_add(t, "}");
    }
    wk_text_add(t, "]");
}

static void json_choices(wk_text *t, const char *choices)
{
    wk_text_add(t, ",\"choices\":[");
    for (const char *c = choices; c && *c;) {
        size_t n = strcspn(c, "|");
        wk_text_add(t, "%s\"%.*s\"", c == choices ? "" : ",", (int)n, c);
        c += n + (c[n] != 0);
    }
    wk_text_add(t, "]");
}

static void json_params(wk_text *t, const wk_op *op)
{
    wk_text_add(t, "[");
    for (const wk_param *p = op->params; p && p->name; p++) {
        wk_text_add(t, "%s{\"name\":\"%s\",\"type\":\"%s\",\"default\":", p > op->params ? "," : "", p->name,
                    types[p->type]);
        if (p->fallback)
            wk_text_string(t, p->fallback);
        else
            wk_text_add(t, "null");
        if (p->type == WK_P_ENUM)
            json_choices(t, p->choices);
        if (p->type == WK_P_INTS || p->type == WK_P_FLOATS)
            wk_text_add(t, ",\"count\":%d", p->count);
        wk_text_add(t, "}");
    }
    wk_text_add(t, "]");
}

static void json_texts(wk_text *t, const char *const *texts)
{
    wk_text_add(t, "[");
    for (int i = 0; texts && texts[i]; i++) {
        wk_text_add(t, "%s", i ? "," : "");
        wk_text_string(t, texts[i]);
    }
    wk_text_add(t, "]");
}

static void json_impls(wk_text *t, const wk_op *op)
{
    wk_text_add(t, "{");
    for (int k = 0; k < WK_KIND_COUNT; k++) {
        wk_text_add(t, "%s\"%s\":[", k ? "," : "", kinds[k]);
        for (int i = 0; i < WK_MAX_IMPLS && op->impls[k][i]; i++)
            wk_text_add(t, "%s\"%s\"", i ? "," : "", op->impls[k][i]->name);
        wk_text_add(t, "]");
    }
    wk_text_add(t, "}");
}

static void json_op(wk_text *t, const wk_op *op)
{
    wk_text_add(t, "{\"name\":\"%s\",\"summary\":", op->name);
    wk_text_string(t, op->summary ? op->summary : "");
    wk_text_add(t, ",\"dtypes\":");
    json_dtypes(t, op->dtypes);
    wk_text_add(t, ",\n  \"inputs\":");
    json_slots(t, op, op->in, wk_op_inputs(op));
    wk_text_add(t, ",\n  \"params\":");
    json_params(t, op);
    wk_text_add(t, ",\n  \"outputs\":");
    json_slots(t, op, op->out, wk_op_outputs(op));
    wk_text_add(t, ",\n  \"impls\":");
    json_impls(t, op);
    wk_text_add(t, ",\n  \"samples\":");
    json_texts(t, op->samples);
    wk_text_add(t, ",\n  \"errors\":");
    json_texts(t, op->errors);
    wk_text_add(t, "}");
}

/* ---- the command ---- */

/* Whether an op is among those asked for: all of them when none is named. */
static bool asked_for(const wk_op *op, int argc, char **argv)
{
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], op->name) == 0)
            return true;
    }
    return argc == 1;
}

static void add_json(wk_text *t, int argc, char **argv)
{
    const char *before = "[\n";
    for (int i = 0; i < wk_op_count(); i++) {
        if (!asked_for(wk_op_at(i), argc, argv))
            continue;
        wk_text_add(t, "%s", before);
        json_op(t, wk_op_at(i));
        before = ",\n";
    }
    wk_text_add(t, "\n]\n");
}

static void add_chosen(wk_text *t, int argc, char **argv, bool names_only)
{
    for (int i = 0; i < wk_op_count(); i++) {
        const wk_op *op = wk_op_at(i);
        if (!asked_for(op, argc, argv))
            continue;
        if (names_only) {
            wk_text_add(t, "%s\n", op->name);
            continue;
        }
        wk_text_add(t, "%s", t->size ? "\n" : "");
        describe(t, op);
    }
}

/* `wick ops --device D` */
static int print_choices(const char *name, int argc, char **argv, bool json)
{
    wk_device *device = wk_device_open(name);
    wk_text t = {0};
    if (!device)
        return args_error();
    const char *before = "[\n";
    if (!json)
        wk_text_add(&t, "%-28s %-16s %-8s %s\n", "OP", "DTYPES", "USES", wk_device_name(device));
    for (int i = 0; i < wk_op_count(); i++) {
        if (!asked_for(wk_op_at(i), argc, argv))
            continue;
        if (!json)
            add_choice(&t, device, wk_op_at(i));
        else if (json_choice(&t, device, wk_op_at(i), before))
            before = ",\n";
    }
    if (json)
        wk_text_add(&t, "%s\n]\n", t.size ? "" : "[");
    return args_print(&t);
}

int cmd_ops(int argc, char **argv)
{
    bool json = false, names = false;
    const char *device = NULL;
    const arg_option options[] = {
        {"json", .flag = &json}, {"names", .flag = &names}, {"device", .value = &device}, {0}};
    int status = args_parse(help, options, &argc, argv);
    if (status != ARGS_GO)
        return status;
    for (int i = 1; i < argc; i++) {
        if (!wk_op_find(argv[i])) {
            wk_fail(WK_ERR_ARGUMENT, "ops: no op '%.60s'", argv[i]);
            return args_error();
        }
    }
    if (device)
        return print_choices(device, argc, argv, json);
    wk_text t = {0};
    if (json)
        add_json(&t, argc, argv);
    else if (argc == 1 && !names)
        add_table(&t);
    else
        add_chosen(&t, argc, argv, names);
    return args_print(&t);
}
