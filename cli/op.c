/* op.c: `wick op`: one op on files, or a batch of such calls. */
#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>
#include "core/op.h"
#include "wick/io.h"
#include "args.h"
#include "cli.h"

static const char help[] =
    "usage: wick op NAME IN OUT [PARAM=VALUE ...] [--device D] [--impl I] [--threads N]\n"
    "       wick op --batch FILE [--device D] [--impl I] [--threads N]\n"
    "\n"
    "Runs the op NAME (see `wick ops`) on the tensors of the safetensors file IN, which carry the names of "
    "the\n"
    "op's inputs, and writes its outputs to the safetensors file OUT. IN may be - for an op without inputs.\n"
    "\n"
    "  PARAM=VALUE    a parameter; lists are 2,2\n"
    "  outputs=LIST   all: the optional outputs too; none, or names: of those that a call may leave out only "
    "these\n"
    "  --device D     cpu, rocm:0, cuda:0, ... or auto, the best one; the default is auto\n"
    "  --impl I       only this implementation may run\n"
    "  --threads N    threads of the CPU; 0, the default, is all of them\n"
    "  --batch FILE   one line of such arguments a line, in one process; - is the standard input, lines "
    "that\n"
    "                 begin with # are left out, 'quotes' keep spaces\n"
    "\n"
    "A tensor x with x.shape, x.strides (i64, one a dim) and x.offset (i64, one element) beside it is that "
    "view\n"
    "on the flat data of x.\n"
    "\n"
    "Exit status: 0; 1 on an error, with one line that says what was expected, and no file OUT; 2 for wrong\n"
    "usage; 3 when --impl names an implementation that does not take the call.\n"
    "\n"
    "Examples:\n"
    "  wick op softmax x.safetensors y.safetensors dim=-1\n"
    "  wick op conv2d in.safetensors out.safetensors stride=2 padding=1,1 --device rocm:0\n"
    "  wick op max x.safetensors y.safetensors dims=1 outputs=all --impl simd\n"
    "  wick op expr in.safetensors out.safetensors text='gelu(a*b + c)*d'\n";

/* ---- the command line ---- */

typedef struct {
    const char *op, *in, *out, *device, *impl;
    char **params; /* "name=value" */
    int n_params;
} request;

/* name=value, the name of letters, digits and _: a path with a = in it can be written with its folder. */
static bool is_param(const char *arg)
{
    size_t n = 0;
    while (isalnum((unsigned char)arg[n]) || arg[n] == '_')
        n++;
    return n > 0 && arg[n] == '=';
}

/* Fills the request from the arguments that are left; parameters are moved to the front of argv. */
static int read_request(request *r, int argc, char **argv)
{
    const char **places[] = {&r->op, &r->in, &r->out};
    int files = 0, params = 0;
    for (int i = 1; i < argc; i++) {
        if (is_param(argv[i]))
            argv[params++] = argv[i];
        else if (files < 3)
            *places[files++] = argv[i];
        else
            return args_usage("op", "expected NAME IN OUT, got '%s' as well", argv[i]);
    }
    if (files < 3)
        return args_usage("op", "expected NAME IN OUT, got %d of them", files);
    r->params = argv;
    r->n_params = params;
    return ARGS_GO;
}

/* ---- inputs ---- */

typedef struct {
    const request *request;
    const wk_op *op;
    union {
        int64_t align;
        char bytes[WK_PARAMS_BYTES];
    } params;
    unsigned outputs;     /* bits of those that a call may leave out */
    wk_safetensors *file; /* NULL for - */
    bool *used;           /* tensors of the file that the op has taken */
    wk_device *device;
    wk_call call;
    const wk_tensor **tail;
    wk_tensor **tail_out;
} job;

static wk_status no_memory(const job *j) { return wk_fail(WK_ERR_MEMORY, "%s: out of memory", j->op->name); }

/* The pending error again, with the op and the argument in front in place of the call that failed. */
static wk_status fail_as(const job *j, const char *argument)
{
    char message[512];
    wk_status status = wk_error_status();
    const char *colon = strstr(wk_error(), ": ");
    snprintf(message, sizeof message, "%s", colon ? colon + 2 : wk_error());
    wk_error_clear();
    return wk_fail(status, "%s: %s: %s", j->op->name, argument, message);
}

/* The tensor of that name, marked as used; NULL when there is none (and nothing is pending). */
static wk_tensor *take(job *j, const char *name)
{
    int64_t i = wk_safetensors_find(j->file, name);
    if (i < 0)
        return NULL;
    j->used[i] = true;
    return wk_safetensors_tensor(j->file, i);
}

/* NAME.SUFFIX's numbers into v: their count, -1 when it is not there, -2 with an error. */
static int take_numbers(job *j, const char *name, const char *suffix, int64_t *v)
{
    char full[300];
    wk_shape_text text;
    snprintf(full, sizeof full, "%s.%s", name, suffix);
    const wk_tensor *t = take(j, full);
    if (!t)
        return wk_pending() ? -2 : -1;
    if (t->dtype != WK_I64 || t->rank > 1 || wk_count(t) > WK_MAX_RANK) {
        wk_fail(WK_ERR_ARGUMENT, "%s: %s: expected up to 8 numbers of i64, got %s%s", j->op->name, full,
                wk_dtype_name(t->dtype), wk_shape_str(&text, t->rank, t->shape));
        return -2;
    }
    return wk_to_host(t, v) == WK_OK ? (int)wk_count(t) : -2;
}

/* x as x.shape, x.strides and x.offset say, where they are there. */
static const wk_tensor *apply_view(job *j, const char *name, wk_tensor *t)
{
    int64_t shape[WK_MAX_RANK], strides[WK_MAX_RANK], offset[WK_MAX_RANK] = {0};
    int rank = take_numbers(j, name, "shape", shape), n = take_numbers(j, name, "strides", strides),
        offsets = take_numbers(j, name, "offset", offset);
    if (wk_pending())
        return NULL;
    if (rank < 0 && n < 0 && offsets < 0)
        return t;
    if (rank < 0 || n != rank || (offsets >= 0 && offsets != 1)) {
        wk_fail(WK_ERR_ARGUMENT,
                "%s: %s: expected %s.shape and %s.strides of one length and one number in %s.offset",
                j->op->name, name, name, name, name);
        return NULL;
    }
    const wk_tensor *view = wk_as_strided(t, rank, shape, strides, offset[0]);
    if (!view)
        fail_as(j, name);
    return view;
}

/* The input of that name on the device. The flat data go there before the view is made, so that the op gets
 * the layout that was asked for. */
static wk_status take_input(job *j, const char *name, const wk_tensor **out)
{
    wk_tensor *t = take(j, name);
    if (t)
        t = wk_to(t, j->device);
    *out = t ? apply_view(j, name, t) : NULL;
    return wk_error_status();
}

/* The tensors of the tail. Where their number is open (cat) they end at the first name that is not there; where the
 * parameters say how many there are (an LSTM's weights) a missing one goes in as NULL, for the op to name it. */
static wk_status take_tail(job *j)
{
    enum { FAR = 1 << 24 };
    char buf[80];
    const void *params = j->params.bytes;
    int64_t room = wk_safetensors_count(j->file) + 1;
    bool open = j->op->tail_name(params, FAR, buf, sizeof buf) != NULL;
    j->tail = calloc((size_t)room, sizeof *j->tail);
    j->tail_out = calloc((size_t)room, sizeof *j->tail_out);
    if (!j->tail || !j->tail_out)
        return no_memory(j);
    int n = 0;
    for (const char *name; n < room && (name = j->op->tail_name(params, n, buf, sizeof buf)); n++) {
        WK_TRY(take_input(j, name, &j->tail[n]));
        if (open && !j->tail[n])
            break;
    }
    j->call.tail = j->tail;
    j->call.n_tail = n;
    /* A gradient has an output for each tensor of the tail, and so have ops that change them. */
    size_t length = strlen(j->op->name);
    if (j->op->tail_gives || (length > 9 && strcmp(j->op->name + length - 9, "_backward") == 0))
        j->call.tail_out = j->tail_out;
    return WK_OK;
}

/* "x, weight, bias"; of a tail the one that would be next. */
static const char *input_names(const job *j, char *buf, size_t room)
{
    char tail[80];
    size_t at = 0;
    snprintf(buf, room, "none");
    for (int i = 0; i < wk_op_inputs(j->op) && at < room; i++) {
        const wk_slot *slot = &j->op->in[i];
        const char *name = slot->name;
        if (slot->flags & WK_TAIL)
            name = j->op->tail_name(j->params.bytes, j->call.n_tail, tail, sizeof tail);
        at += (size_t)snprintf(buf + at, room - at, "%s%s%s", i ? ", " : "", name ? name : slot->name,
                               slot->flags & WK_TAIL ? ", ..." : "");
    }
    return buf;
}

static wk_status take_inputs(job *j)
{
    int n = wk_op_inputs(j->op);
    char buf[80];
    for (int i = 0; i < n; i++) {
        if (j->op->in[i].flags & WK_TAIL)
            WK_TRY(take_tail(j));
        else
            WK_TRY(take_input(j, j->op->in[i].name, &j->call.in[i]));
    }
    if (j->op->tail_name && !j->op->tail_name(j->params.bytes, 0, buf, sizeof buf))
        return WK_OK; /* no tail at all: a parameter is wrong (layers=0), which the op says better */
    for (int64_t i = 0; i < wk_safetensors_count(j->file); i++) {
        char names[200];
        if (!j->used[i])
            return wk_fail(WK_ERR_ARGUMENT, "%s: %.80s: no such input, expected %s", j->op->name,
                           wk_safetensors_name(j->file, i), input_names(j, names, sizeof names));
    }
    return WK_OK;
}

/* ---- the call ---- */

/* The outputs with one of these flags. */
static unsigned outputs_with(const wk_op *op, unsigned flags)
{
    unsigned set = 0;
    for (int i = 0; i < wk_op_outputs(op); i++)
        set |= op->out[i].flags & flags ? 1u << i : 0;
    return set;
}

/* all, none, or names with commas between them. */
static wk_status read_outputs(job *j, const char *text)
{
    bool all = strcmp(text, "all") == 0;
    j->outputs = all ? outputs_with(j->op, WK_SKIP | WK_OPTIONAL) : 0;
    if (all || strcmp(text, "none") == 0)
        return WK_OK;
    for (const char *at = text;; at++) {
        size_t n = strcspn(at, ",");
        int i = 0;
        while (i < wk_op_outputs(j->op) && (strncmp(j->op->out[i].name, at, n) != 0 || j->op->out[i].name[n]))
            i++;
        if (i == wk_op_outputs(j->op))
            return wk_fail(WK_ERR_PARAM, "%s: outputs: expected all, none or names of outputs, got '%.60s'",
                           j->op->name, text);
        j->outputs |= 1u << i;
        at += n;
        if (!*at)
            return WK_OK;
    }
}

static wk_status read_params(job *j)
{
    unsigned seen = 0;
    wk_params_defaults(j->op, j->params.bytes);
    j->outputs = outputs_with(j->op, WK_SKIP);
    for (int i = 0; i < j->request->n_params; i++) {
        char *text = j->request->params[i], *equals = strchr(text, '=');
        size_t n = (size_t)(equals - text);
        char name[64];
        snprintf(name, sizeof name, "%.*s", (int)(n < 63 ? n : 63), text);
        if (strcmp(name, "outputs") == 0) {
            WK_TRY(read_outputs(j, equals + 1));
            continue;
        }
        unsigned before = seen;
        WK_TRY(wk_params_parse(j->op, j->params.bytes, name, equals + 1, &seen));
        if (seen == before)
            return wk_fail(WK_ERR_PARAM, "%s: %s: expected once, got it twice", j->op->name, name);
    }
    return wk_params_complete(j->op, seen);
}

static wk_status open_input(job *j)
{
    if (strcmp(j->request->in, "-") == 0)
        return WK_OK;
    j->file = wk_safetensors_open(j->request->in);
    if (!j->file)
        return wk_error_status();
    j->used = calloc((size_t)wk_safetensors_count(j->file) + 1, sizeof *j->used);
    return j->used ? WK_OK : no_memory(j);
}

static wk_status run_call(job *j)
{
    wk_call *c = &j->call;
    c->op = j->op;
    c->params = j->params.bytes;
    c->device = j->device;
    c->want = j->outputs;
    WK_TRY(wk_force_impl(j->request->impl));
    wk_status status = wk_call_run(c);
    wk_force_impl(NULL);
    return status == WK_OK ? wk_sync(j->device) : status; /* a GPU reports a bad index only now */
}

static wk_status save_outputs(job *j)
{
    enum { NAME = 80 };
    int room = WK_MAX_OUT + j->call.n_tail, n = 0;
    const char **names = calloc((size_t)room, sizeof *names);
    wk_tensor **tensors = calloc((size_t)room, sizeof *tensors);
    char(*texts)[NAME] = calloc((size_t)room, sizeof *texts);
    wk_status status = names && tensors && texts ? WK_OK : no_memory(j);
    for (int i = 0; i < wk_op_outputs(j->op) && status == WK_OK; i++) {
        names[n] = j->op->out[i].name;
        tensors[n] = j->call.out[i];
        n += tensors[n] != NULL;
    }
    for (int i = 0; j->call.tail_out && i < j->call.n_tail && status == WK_OK; i++) {
        char buf[NAME - 1];
        if (!j->call.tail_out[i])
            continue;
        snprintf(texts[n], NAME, "%s%s", j->op->tail_gives ? "" : "d",
                 j->op->tail_name(j->params.bytes, i, buf, sizeof buf));
        names[n] = texts[n];
        tensors[n++] = j->call.tail_out[i];
    }
    if (status == WK_OK)
        status = wk_safetensors_save(j->request->out, n, names, tensors);
    free(texts);
    free(tensors);
    free(names);
    return status;
}

static wk_status run_job(job *j)
{
    WK_TRY(read_params(j));
    j->device = wk_device_open(j->request->device ? j->request->device : "auto");
    if (!j->device)
        return wk_error_status();
    WK_TRY(open_input(j));
    WK_TRY(take_inputs(j));
    WK_TRY(run_call(j));
    return save_outputs(j);
}

/* No result is better than that of an earlier call; but an input that is to be overwritten stays. */
static void remove_stale(const request *r)
{
    struct stat in, out;
    if (lstat(r->out, &out) != 0 || !S_ISREG(out.st_mode))
        return;
    if (stat(r->in, &in) != 0 || in.st_ino != out.st_ino || in.st_dev != out.st_dev)
        unlink(r->out);
}

static int run_request(const request *r)
{
    job j = {.request = r, .op = wk_op_find(r->op)};
    wk_status status;
    wk_scope_begin();
    if (j.op) {
        status = run_job(&j);
        wk_error_context(j.op->name);
    } else {
        status = wk_fail(WK_ERR_ARGUMENT, "%.60s: no such op; `wick ops` lists them", r->op);
    }
    wk_scope_end();
    wk_safetensors_close(j.file);
    free(j.used);
    free(j.tail);
    free(j.tail_out);
    if (status == WK_OK)
        return EXIT_OK;
    remove_stale(r);
    args_error();
    return status == WK_ERR_UNSUPPORTED && r->impl ? EXIT_UNSUPPORTED : EXIT_FAILED;
}

/* ---- batches ---- */

/* Cuts a line into words in place, 'quotes' or "quotes" keeping spaces; returns their number, -1 when a quote
 * does not end. words has room for half the line's length and one more. */
static int split(char *line, char **words)
{
    int n = 0;
    char *p = line;
    for (;;) {
        while (isspace((unsigned char)*p))
            p++;
        if (!*p)
            return n;
        char *to = words[n++] = p, quote = 0;
        for (; *p && (quote || !isspace((unsigned char)*p)); p++) {
            if (quote ? *p == quote : *p == '\'' || *p == '"')
                quote = quote ? 0 : *p;
            else
                *to++ = *p;
        }
        if (quote)
            return -1;
        bool end = !*p;
        *to = 0;
        p += !end;
    }
}

/* One line: its words from words[1] on, words[0] is free. */
static int run_words(const request *defaults, int n, char **words)
{
    request r = *defaults;
    const arg_option options[] = {{"device", .value = &r.device}, {"impl", .value = &r.impl}, {0}};
    int argc = n + 1;
    words[0] = "op";
    if (n < 0)
        return args_usage("op", "a quote without end");
    int status = args_parse(help, options, &argc, words);
    if (status == ARGS_GO)
        status = read_request(&r, argc, words);
    return status == ARGS_GO ? run_request(&r) : EXIT_USAGE;
}

static int run_line(const request *defaults, char *line)
{
    char **words = calloc(strlen(line) / 2 + 3, sizeof *words);
    if (!words) {
        wk_fail(WK_ERR_MEMORY, "op: out of memory");
        return args_error();
    }
    int n = split(line, words + 1), status = EXIT_OK;
    if (n != 0 && !(n > 0 && words[1][0] == '#'))
        status = run_words(defaults, n, words);
    free(words);
    return status;
}

static int run_batch(const char *path, const request *defaults)
{
    FILE *f = strcmp(path, "-") == 0 ? stdin : fopen(path, "r");
    char *line = NULL;
    size_t room = 0;
    int status = EXIT_OK;
    for (long number = 1; f && getline(&line, &room, f) >= 0; number++) {
        char where[300];
        snprintf(where, sizeof where, "%.200s:%ld", path, number);
        args_where(where);
        if (run_line(defaults, line) != EXIT_OK)
            status = EXIT_FAILED;
        args_where(NULL);
    }
    if (!f || ferror(f)) {
        wk_fail(WK_ERR_IO, "op: --batch: %.240s: %s", path, strerror(errno));
        status = args_error();
    }
    free(line);
    if (f && f != stdin)
        fclose(f);
    return status;
}

int cmd_op(int argc, char **argv)
{
    request r = {0};
    const char *batch = NULL, *threads = NULL;
    long n = 0;
    const arg_option options[] = {{"device", .value = &r.device},
                                  {"impl", .value = &r.impl},
                                  {"threads", .value = &threads},
                                  {"batch", .value = &batch},
                                  {0}};
    int status = args_parse(help, options, &argc, argv);
    if (status != ARGS_GO)
        return status;
    if (threads && !args_int("op", "threads", threads, 0, 4096, &n))
        return EXIT_USAGE;
    if (threads)
        wk_set_num_threads((int)n);
    if (batch)
        return argc == 1 ? run_batch(batch, &r) : args_usage("op", "--batch FILE goes without '%s'", argv[1]);
    status = read_request(&r, argc, argv);
    return status == ARGS_GO ? run_request(&r) : status;
}
