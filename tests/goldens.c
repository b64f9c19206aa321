/* goldens.c: every implementation the CPU has for every op against PyTorch's numbers.
 *
 *     test_goldens [OP]
 *
 * at the instruction-set level that WICK_ISA names (the best one without it).
 * tests/goldens/make.py made them and says what the files hold. An op of the table without goldens in each of its
 * dtypes is a failure too. */
#include <dirent.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include "check/check.h"
#include "core/host.h"
#include "io/json.h"
#include "wick/io.h"

enum { MAX_OPS = 512, NAME = 160, CALL = 1000 };

static int passed, failed;
static unsigned covered[MAX_OPS]; /* of the ops in the order of the table: the dtypes that were run */

/* What they give is random. */
static const char without[] = " rand randn dropout ";

/* What only moves elements, or computes so little that it is rounded once: not the last bit may differ. */
static const char exact[] =
    " abs add argmax argmin argsort cast cat ceil clamp copy copy2d div fill flip floor gather "
    "global_max_pool2d index_select max max_pool1d max_pool2d maximum min minimum mul neg one_hot pad relu "
    "relu6 "
    "round scatter sign slice_assign sort sqrt stack sub topk tril triu upsample_nearest1d "
    "upsample_nearest2d where ";

static bool listed(const char *list, const char *name)
{
    char word[NAME];
    snprintf(word, sizeof word, " %s ", name);
    return strstr(list, word) != NULL;
}

/* ---- a case ---- */

typedef struct {
    const wk_safetensors *file;
    const char *name; /* the tensors are NAME.in.* and NAME.out.* */
    const char *call; /* "OP param=value ..." */
} golden;

/* A call made from a case. */
typedef struct {
    wk_call call;
    _Alignas(16) char params[WK_PARAMS_BYTES];
    const wk_tensor *tail[WK_SAMPLE_TAIL];
    wk_tensor *tail_out[WK_SAMPLE_TAIL];
    int taken; /* tensors of the case that are inputs of the op */
} made_call;

__attribute__((format(printf, 4, 5))) static void count(const golden *g, const char *impl, bool right,
                                                        const char *format, ...)
{
    *(right ? &passed : &failed) += 1;
    if (right)
        return;
    va_list args;
    va_start(args, format);
    printf("%s [%s] ", g->name, impl);
    vprintf(format, args);
    printf("  (%s)\n", g->call);
    va_end(args);
}

static const wk_tensor *tensor_of(const golden *g, const char *kind, const char *name)
{
    char full[2 * NAME];
    snprintf(full, sizeof full, "%s.%s.%s", g->name, kind, name);
    int64_t i = wk_safetensors_find(g->file, full);
    return i >= 0 ? wk_safetensors_tensor(g->file, i) : NULL;
}

static const char *op_name(const golden *g, char *buf)
{
    snprintf(buf, NAME, "%.*s", (int)strcspn(g->call, " "), g->call);
    return buf;
}

static wk_status read_params(const golden *g, const wk_op *op, char *params)
{
    char text[CALL], *save;
    unsigned seen = 0;
    wk_params_defaults(op, params);
    snprintf(text, sizeof text, "%s", g->call);
    strtok_r(text, " ", &save);
    for (char *word; (word = strtok_r(NULL, " ", &save));) {
        char *equals = strchr(word, '=');
        if (!equals)
            return wk_fail(WK_ERR_FORMAT, "expected name=value, got '%s'", word);
        *equals = 0;
        WK_TRY(wk_params_parse(op, params, word, equals + 1, &seen));
    }
    return wk_params_complete(op, seen);
}

static const wk_tensor *take(const golden *g, made_call *m, const char *name)
{
    const wk_tensor *t = tensor_of(g, "in", name);
    m->taken += t != NULL;
    return t;
}

static wk_status make_call(const golden *g, const wk_op *op, made_call *m)
{
    memset(m, 0, sizeof *m);
    m->call = (wk_call){.op = op, .params = m->params, .device = wk_cpu(), .want = ~0u, .tail = m->tail};
    WK_TRY(read_params(g, op, m->params));
    for (int i = 0; i < wk_op_inputs(op); i++) {
        if (!(op->in[i].flags & WK_TAIL))
            m->call.in[i] = take(g, m, op->in[i].name);
    }
    for (int i = 0; op->tail_name && i < WK_SAMPLE_TAIL; i++) {
        char buf[NAME];
        const char *name = op->tail_name(m->params, i, buf, sizeof buf);
        m->tail[i] = name ? take(g, m, name) : NULL;
        if (!m->tail[i])
            break;
        m->call.n_tail = i + 1;
    }
    size_t n = strlen(op->name);
    if (op->tail_gives || (op->tail_name && n > 9 && strcmp(op->name + n - 9, "_backward") == 0))
        m->call.tail_out = m->tail_out;
    return wk_error_status();
}

static bool has_impl(const wk_op *op, const char *name)
{
    for (int i = 0; i < WK_MAX_IMPLS && op->impls[WK_KIND_CPU][i]; i++) {
        if (strcmp(op->impls[WK_KIND_CPU][i]->name, name) == 0)
            return true;
    }
    return false;
}

/* The output of that name; NULL when the call made none. */
static const wk_tensor *output_of(const wk_call *c, const char *name)
{
    for (int i = 0; i < wk_op_outputs(c->op); i++) {
        if (strcmp(c->op->out[i].name, name) == 0)
            return c->out[i];
    }
    for (int i = 0; c->tail_out && i < c->n_tail; i++) {
        char buf[NAME];
        const char *tail = c->op->tail_name(c->params, i, buf, sizeof buf);
        if (tail && (c->op->tail_gives || name[0] == 'd') && strcmp(tail, name + !c->op->tail_gives) == 0)
            return c->tail_out[i];
    }
    return NULL;
}

/* What an RNN's gradient gets from the forward is wick's own: from a run of it. */
static wk_status add_reserve(const golden *g, const char *impl, made_call *m)
{
    const wk_op *op = m->call.op, *forward = wk_op_find("rnn");
    made_call f;
    if (strcmp(op->name, "rnn_backward") != 0 || !forward)
        return WK_OK;
    WK_TRY(make_call(g, forward, &f));
    wk_force_impl(has_impl(forward, impl) ? impl : NULL);
    WK_TRY(wk_call_run(&f.call));
    for (int i = 0; i < wk_op_inputs(op); i++) {
        if (strcmp(op->in[i].name, "reserve") == 0)
            m->call.in[i] = output_of(&f.call, "reserve");
    }
    return WK_OK;
}

/* ---- comparing ---- */

/* The first element that is not the same; -1 when there is none. */
static int64_t difference(const wk_tensor *got, const wk_tensor *want)
{
    size_t bytes = wk_bytes(got->dtype);
    const wk_tensor *packed = wk_tensor_packed(got);
    for (int64_t i = 0; i < wk_count(got); i++) {
        const char *a = (const char *)wk_ptr(packed) + (size_t)i * bytes,
                   *b = (const char *)wk_ptr(want) + (size_t)i * bytes;
        double x = wk_load_f64(got->dtype, a), y = wk_load_f64(want->dtype, b);
        if (wk_is_float(got->dtype) ? x != y && (x == x || y == y) : memcmp(a, b, bytes) != 0)
            return i;
    }
    return -1;
}

static void compare_output(const golden *g, const wk_call *c, const char *impl, const char *name,
                           const wk_tensor *got, const wk_tensor *want)
{
    wk_comparison r = {0};
    if (!got || got->dtype != want->dtype) {
        count(g, impl, false, "%s: got %s, expected %s", name, got ? wk_dtype_name(got->dtype) : "nothing",
              wk_dtype_name(want->dtype));
        return;
    }
    if (wk_compare(got, want, &r) != WK_OK) {
        count(g, impl, false, "%s: %s", name, wk_error());
        wk_error_clear();
        return;
    }
    bool to_the_bit = !wk_is_float(want->dtype) || listed(exact, c->op->name);
    int64_t place = to_the_bit ? difference(got, want) : r.worst > wk_tolerance(want->dtype) ? r.place : -1;
    double shown[2] = {r.got, r.want};
    if (place >= 0) {
        size_t at = (size_t)place * wk_bytes(want->dtype);
        shown[0] = wk_load_f64(got->dtype, (const char *)wk_ptr(wk_tensor_packed(got)) + at);
        shown[1] = wk_load_f64(want->dtype, (const char *)wk_ptr(want) + at);
    }
    count(g, impl, place < 0, "%s[%lld]: got %.17g, expected %.17g, error %.3g", name, (long long)place,
          shown[0], shown[1], r.worst);
}

/* The case's expected outputs against the call's; returns how many inputs the case has. */
static int compare_outputs(const golden *g, const wk_call *c, const char *impl)
{
    size_t n = strlen(g->name);
    int inputs = 0;
    for (int64_t i = 0; i < wk_safetensors_count(g->file); i++) {
        const char *name = wk_safetensors_name(g->file, i);
        if (strncmp(name, g->name, n) != 0)
            continue;
        inputs += strncmp(name + n, ".in.", 4) == 0;
        if (strncmp(name + n, ".out.", 5) == 0)
            compare_output(g, c, impl, name + n + 5, output_of(c, name + n + 5),
                           wk_safetensors_tensor(g->file, i));
    }
    return inputs;
}

/* ---- running ---- */

static void run_impl(const golden *g, const wk_op *op, const char *impl, unsigned *dtypes)
{
    made_call m;
    wk_scope_begin();
    wk_status status = make_call(g, op, &m);
    if (status == WK_OK)
        status = add_reserve(g, impl, &m);
    if (status == WK_OK) {
        wk_force_impl(impl);
        status = wk_call_run(&m.call);
    }
    wk_force_impl(NULL);
    if (status == WK_OK) {
        *dtypes |= WK_SET(m.call.dtype);
        int inputs = compare_outputs(g, &m.call, impl);
        if (inputs != m.taken)
            count(g, impl, false, "the op takes %d of the %d inputs", m.taken, inputs);
    } else if (status != WK_ERR_UNSUPPORTED || !op->impls[WK_KIND_CPU][1]) { /* the only one may not refuse */
        count(g, impl, false, "%s", wk_error());
    }
    wk_error_clear();
    wk_scope_end();
}

static void run_case(const golden *g, const char *only)
{
    char name[NAME];
    const wk_op *op = wk_op_find(op_name(g, name));
    if (only && strcmp(only, name) != 0)
        return;
    if (!op) {
        count(g, "", false, "no op '%s'", name);
        return;
    }
    unsigned *dtypes = NULL;
    for (int i = 0; i < wk_op_count(); i++)
        dtypes = wk_op_at(i) == op ? &covered[i] : dtypes;
    for (int i = 0; i < WK_MAX_IMPLS && op->impls[WK_KIND_CPU][i]; i++)
        run_impl(g, op, op->impls[WK_KIND_CPU][i]->name, dtypes);
}

/* Every case of the file: the metadata name them. */
static wk_status run_cases(const wk_safetensors *file, const char *data, size_t bytes, const char *only)
{
    wk_json_raw key, value;
    wk_json j = wk_json_start(data + 8, bytes - 8);
    wk_json_enter(&j, '{');
    while (wk_json_more(&j) && wk_json_key(&j, &key)) {
        if (!wk_json_equal(key, "__metadata__")) {
            wk_json_skip(&j);
            continue;
        }
        wk_json_enter(&j, '{');
        while (wk_json_more(&j) && wk_json_key(&j, &key) && wk_json_string(&j, &value)) {
            char name[NAME], call[CALL];
            if (key.size >= sizeof name || value.size >= sizeof call)
                return wk_fail(WK_ERR_FORMAT, "%.*s: a case too long", (int)key.size, key.text);
            wk_json_unescape(key, name);
            wk_json_unescape(value, call);
            run_case(&(golden){file, name, call}, only);
        }
        return WK_OK;
    }
    return wk_fail(WK_ERR_FORMAT, "no metadata: %s", j.reason ? j.reason : "they are missing");
}

/* The whole file; NULL when it cannot be read. */
static char *read_all(const char *path, size_t *bytes)
{
    FILE *f = fopen(path, "rb");
    char *data = NULL;
    if (f && fseek(f, 0, SEEK_END) == 0 && ftell(f) >= 8) {
        *bytes = (size_t)ftell(f);
        rewind(f);
        data = malloc(*bytes);
        if (data && fread(data, 1, *bytes, f) != *bytes) {
            free(data);
            data = NULL;
        }
    }
    if (f)
        fclose(f);
    return data;
}

static void run_file(const char *path, const char *only)
{
    size_t bytes = 0, header = 0;
    char *data = read_all(path, &bytes);
    wk_safetensors *file = data ? wk_safetensors_over(path, data, bytes, NULL, NULL) : NULL;
    for (int i = 7; file && i >= 0; i--)
        header = header << 8 | (unsigned char)data[i];
    if (!file || run_cases(file, data, 8 + header, only) != WK_OK) {
        printf("%s: %s\n", path, *wk_error() ? wk_error() : "cannot be read");
        failed++;
        wk_error_clear();
    }
    wk_safetensors_close(file);
    free(data);
}

static int is_golden(const struct dirent *d)
{
    const char *end = strrchr(d->d_name, '.');
    return end && strcmp(end, ".safetensors") == 0;
}

static int run_folder(const char *folder, const char *only)
{
    struct dirent **files;
    int n = scandir(folder, &files, is_golden, alphasort);
    for (int i = 0; i < n; i++) {
        char path[1024];
        snprintf(path, sizeof path, "%s/%s", folder, files[i]->d_name);
        run_file(path, only);
        free(files[i]);
    }
    if (n >= 0)
        free(files);
    return n;
}

/* ---- what has none ---- */

static void check_coverage(void)
{
    for (int i = 0; i < wk_op_count(); i++) {
        const wk_op *op = wk_op_at(i);
        unsigned missing = op->dtypes & ~covered[i];
        if (listed(without, op->name))
            continue;
        for (int d = 0; d < WK_DTYPE_COUNT; d++) {
            if (missing >> d & 1)
                printf("%s: no golden of %s\n", op->name, wk_dtype_name((wk_dtype)d));
        }
        *(missing ? &failed : &passed) += 1;
    }
}

int main(int argc, char **argv)
{
    const char *only = argc > 1 ? argv[1] : NULL, *level = getenv("WICK_ISA");
    if (level && strcmp(level, wk_isa_level_name(wk_host_level())) != 0) {
        printf("skipped: %s: not on this machine, or not in this build\n", level);
        return 77;
    }
    if (run_folder(GOLDENS, only) <= 0) {
        printf("%s: no goldens\n", GOLDENS);
        failed++;
    }
    if (!only)
        check_coverage();
    printf("%d passed, %d failed\n", passed, failed);
    return failed || !passed;
}
