/* check.c: `wick check`: every op on a device against the reference. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include "check/check.h"
#include "verify/deny.h"
#include "verify/replay.h"
#include "args.h"
#include "cli.h"
#include "progress.h"

static const char help[] =
    "usage: wick check [--device D] [--op NAME] [--impl I] [--dtype T] [--quick] [--save DIR]\n"
    "                  [--tolerance F] [--deny] [--json] [--report FILE]\n"
    "\n"
    "Runs the samples of every op on a device, in every dtype and layout it takes, and compares the results "
    "with\n"
    "a reference in f64; runs calls that must fail; compares gradients with finite differences.\n"
    "\n"
    "  --device D     cpu, rocm:0, cuda:0 or auto (default)\n"
    "  --op NAME      only this op; may be given several times; a name ending in * stands for all that begin "
    "so\n"
    "  --impl I       only implementations of this name\n"
    "  --dtype T      only this dtype\n"
    "  --quick        the first sample of each op only, packed and transposed; no error samples\n"
    "  --save DIR     the inputs of failing calls go there as safetensors files, and each failure ends in "
    "the\n"
    "                 `wick op` command that runs the call again\n"
    "  --tolerance F  allow F times the usual error\n"
    "  --deny         a vendor's implementation that is wrong goes on this machine's deny-list (deny.txt in "
    "the "
    "cache\n"
    "                 folder), which every program that uses wick honours\n"
    "  --json         one JSON object a line on standard output: op, impl, dtype, passed, failed, refused, "
    "worst\n"
    "  --report FILE  all of it with the machine's facts as one JSON document, to send along\n"
    "\n"
    "Worst is the largest error in units of what is allowed: 1 is the limit. With WICK_PRECISION=fast GPUs "
    "are allowed\n"
    "what that lets them round: twice the error of f16 for f32, and of f16 and bf16 twice their own. Exit "
    "status: 0 when\n"
    "all is right, 1 when something is not, 2 for wrong usage.\n"
    "\n"
    "Examples:\n"
    "  wick check\n"
    "  wick check --device rocm:0 --op conv2d\n"
    "  wick check --op 'rope*' --dtype bf16\n"
    "  wick check --save failing\n";

typedef struct {
    wk_device *device;
    arg_list ops;
    const char *impl, *save;
    bool quick, deny;
    wk_dtype dtype; /* WK_DTYPE_COUNT: all */
    double tolerance;
    wk_text command; /* that runs the last failure again; empty without --save */
    bool json;
    const char *report;
    FILE *report_file;
    long passed, failed, refused;
    bool first; /* of the report's array */
} options;

/* ---- output ---- */

/* Text inside a JSON string. */
static void put_escaped(FILE *f, const char *s)
{
    for (; *s; s++) {
        if (*s == '"' || *s == '\\')
            fprintf(f, "\\%c", *s);
        else if ((unsigned char)*s < 0x20)
            fprintf(f, "\\u%04x", *s);
        else
            fputc(*s, f);
    }
}

static void put_json(FILE *f, const options *o, const wk_check_result *r, const char *what)
{
    fprintf(f, "{\"op\": \"%s\", \"check\": \"%s\", \"impl\": \"%s\", \"dtype\": \"%s\", ", r->op->name, what,
            r->impl, wk_dtype_name(r->dtype));
    fprintf(f, "\"passed\": %d, \"failed\": %d, \"refused\": %d, \"worst\": ", r->passed, r->failed,
            r->refused);
    fprintf(f, isfinite(r->worst) ? "%.4g" : "null", r->worst);
    if (r->message[0]) {
        fprintf(f, ", \"message\": \"");
        put_escaped(f, r->message);
        fprintf(f, "\"");
    }
    if (r->sample) {
        fprintf(f, ", \"sample\": \"");
        put_escaped(f, r->sample);
        fprintf(f, "\", \"layout\": \"%s\"", wk_layout_name(r->layout));
    }
    if (r->failed && o->command.data) {
        fprintf(f, ", \"command\": \"");
        put_escaped(f, o->command.data);
        fprintf(f, "\"");
    }
    fprintf(f, "}");
}

static void put_failure(const options *o, const wk_check_result *r, const char *what)
{
    progress_clear();
    printf("FAIL %s %s %s %s: %s\n", r->op->name, what, r->impl, wk_dtype_name(r->dtype), r->message);
    printf("     sample: %s (%s)\n", r->sample, wk_layout_name(r->layout));
    if (o->command.data)
        printf("     again:  %s\n", o->command.data);
    else
        printf("     again:  wick check --device %s --op %s%s%s --dtype %s; with --save DIR the `wick op` "
               "command\n",
               wk_device_name(o->device), r->op->name, r->impl[0] ? " --impl " : "", r->impl,
               wk_dtype_name(r->dtype));
}

/* Counts a result and writes it where it is wanted. */
static void take(options *o, const wk_check_result *r, const char *what)
{
    if (r->passed + r->failed + r->refused == 0)
        return;
    o->passed += r->passed;
    o->failed += r->failed;
    o->refused += r->refused;
    if (o->json) {
        put_json(stdout, o, r, what);
        printf("\n");
    } else if (r->failed) {
        put_failure(o, r, what);
    }
    if (o->report_file) {
        fprintf(o->report_file, o->first ? "\n  " : ",\n  ");
        put_json(o->report_file, o, r, what);
        o->first = false;
    }
    wk_text_free(&o->command);
    o->command = (wk_text){0};
}

/* ---- failing calls as `wick op` commands ---- */

/* Saves the failing call and keeps the command that runs it. */
static void save_failure(void *ctx, const wk_check_result *r, const wk_call *call)
{
    options *o = ctx;
    char in[1024], out[1024];
    bool any = false;
    const char *kind = r->impl[0] ? r->impl : strncmp(r->message, "gradient:", 9) == 0 ? "gradient" : "error";
    snprintf(in, sizeof in, "%s/%s.%s.%s.in.safetensors", o->save, r->op->name, kind,
             wk_dtype_name(r->dtype));
    snprintf(out, sizeof out, "%s/%s.%s.%s.out.safetensors", o->save, r->op->name, kind,
             wk_dtype_name(r->dtype));
    if (call && wk_replay_save(call, in, &any) != WK_OK) {
        progress_clear();
        args_error();
        return;
    }
    if (call) {
        wk_replay_command(&o->command, call, any ? in : NULL, out, r->impl);
        return;
    }
    wk_text_add(&o->command, "wick op %s -", r->op->name);
    wk_replay_word(&o->command, out);
    wk_replay_words(&o->command, r->sample, r->dtype);
    wk_text_add(&o->command, " outputs=all --device %s%s%s", wk_device_name(o->device),
                r->impl[0] ? " --impl " : "", r->impl);
}

static int start_saving(options *o)
{
    if (o->save && mkdir(o->save, 0777) != 0 && errno != EEXIST) {
        wk_fail(WK_ERR_IO, "check: --save: %.400s: %s", o->save, strerror(errno));
        return args_error();
    }
    wk_check_configure(
        &(wk_check_options){.allow = o->tolerance, .failed = o->save ? save_failure : NULL, .ctx = o});
    return ARGS_GO;
}

/* ---- running ---- */

/* What a vendor's library gets wrong here is left to the next implementation from now on. */
static void deny(const options *o, const wk_check_result *r)
{
    char entry[WK_DENY_LINE];
    if (!o->deny || !r->failed || !wk_impl_is_vendor(r->impl))
        return;
    wk_deny_entry(entry, o->device, r->op->name, r->impl, r->dtype);
    progress_clear();
    if (wk_deny_keep(entry) != WK_OK)
        args_error();
    else
        fprintf(stderr, "wick check: denied from now on: %s\n", entry);
}

/* One line for an implementation of an op: its worst error in each dtype. */
static void check_impl(options *o, const wk_op *op, const char *impl)
{
    char line[400];
    int at = snprintf(line, sizeof line, "%-28s %-8s", op->name, impl);
    bool failed = false;
    for (int d = 0; d < WK_DTYPE_COUNT; d++) {
        wk_check_result r;
        if (!wk_check_takes(op, (wk_dtype)d) || (o->dtype != WK_DTYPE_COUNT && (int)o->dtype != d))
            continue;
        wk_check_run(o->device, op, impl, (wk_dtype)d, o->quick, &r);
        take(o, &r, "values");
        deny(o, &r);
        failed |= r.failed > 0;
        const char *word = r.failed ? "FAIL" : r.passed ? "" : "refused";
        at += snprintf(line + at, sizeof line - (size_t)at, word[0] ? " %s %s" : " %s%s %.2g",
                       wk_dtype_name((wk_dtype)d), word, r.worst);
    }
    if (!o->json) {
        progress_clear();
        printf("%s %s\n", failed ? "FAIL" : "ok  ", line);
    }
}

/* A device has to have every op. */
static void put_missing(options *o, const wk_op *op)
{
    o->failed++;
    if (!o->json)
        printf("FAIL %s: no implementation on %s\n", op->name, wk_device_name(o->device));
}

static void check_op(options *o, const wk_op *op)
{
    wk_check_result r;
    const wk_impl *const *impls = op->impls[o->device->kind];
    for (int i = 0; i < WK_MAX_IMPLS && impls[i]; i++) {
        if (!o->impl || strcmp(o->impl, impls[i]->name) == 0)
            check_impl(o, op, impls[i]->name);
    }
    if (o->impl)
        return;
    if (!impls[0])
        put_missing(o, op);
    if (o->quick || !impls[0])
        return;
    wk_check_errors(o->device, op, &r);
    take(o, &r, "errors");
    if (o->device->kind == WK_KIND_CPU) { /* other devices' gradients are compared with the CPU's */
        wk_check_gradient(o->device, op, &r);
        take(o, &r, "gradient");
    }
}

static bool open_report(options *o)
{
    if (!o->report)
        return true;
    o->report_file = fopen(o->report, "w");
    if (!o->report_file) {
        fprintf(stderr, "wick check: cannot write %s\n", o->report);
        return false;
    }
    fprintf(o->report_file, "{\"wick\": \"%s\", \"device\": \"%s\", \"description\": \"", wk_version(),
            wk_device_name(o->device));
    put_escaped(o->report_file, wk_device_description(o->device));
    fprintf(o->report_file, "\", \"threads\": %d, \"results\": [", wk_num_threads());
    o->first = true;
    return true;
}

static bool close_report(options *o)
{
    if (!o->report_file)
        return true;
    fprintf(o->report_file, "\n], \"passed\": %ld, \"failed\": %ld, \"refused\": %ld}\n", o->passed,
            o->failed, o->refused);
    bool bad = ferror(o->report_file) != 0;
    if (fclose(o->report_file) != 0 || bad) {
        fprintf(stderr, "wick check: cannot write %s\n", o->report);
        return false;
    }
    return true;
}

static int parse(options *o, int argc, char **argv)
{
    const char *device = "auto", *dtype = NULL, *tolerance = "1";
    char *end;
    *o = (options){.dtype = WK_DTYPE_COUNT};
    const arg_option known[] = {{"device", .value = &device},
                                {"op", .list = &o->ops},
                                {"impl", .value = &o->impl},
                                {"dtype", .value = &dtype},
                                {"quick", .flag = &o->quick},
                                {"deny", .flag = &o->deny},
                                {"save", .value = &o->save},
                                {"tolerance", .value = &tolerance},
                                {"report", .value = &o->report},
                                {"json", .flag = &o->json},
                                {0}};
    int status = args_parse(help, known, &argc, argv);
    if (status != ARGS_GO)
        return status;
    if (argc > 1)
        return args_usage("check", "expected options only, got '%s'", argv[1]);
    if (dtype && (o->dtype = wk_dtype_parse(dtype)) == WK_DTYPE_COUNT)
        return args_usage("check", "--dtype: expected a dtype like f32, got '%s'", dtype);
    if (!args_ops("check", &o->ops))
        return EXIT_USAGE;
    o->tolerance = strtod(tolerance, &end);
    if (end == tolerance || *end || !(o->tolerance >= 0))
        return args_usage("check", "--tolerance: expected a number of 0 or more, got '%s'", tolerance);
    o->device = wk_device_open(device);
    return o->device ? start_saving(o) : args_error();
}

int cmd_check(int argc, char **argv)
{
    options o;
    int status = parse(&o, argc, argv);
    if (status != ARGS_GO)
        return status;
    if (!open_report(&o))
        return 1;
    for (int i = 0; i < wk_op_count(); i++) {
        const wk_op *op = wk_op_at(i);
        if (!args_op_selected(&o.ops, op->name))
            continue;
        if (!o.json)
            progress_show(i, wk_op_count(), op->name);
        check_op(&o, op);
    }
    progress_clear();
    bool reported = close_report(&o);
    if (!o.json)
        printf("%s: %ld passed, %ld failed, %ld refused\n", wk_device_name(o.device), o.passed, o.failed,
               o.refused);
    if (o.impl && o.passed + o.failed + o.refused == 0)
        fprintf(stderr, "wick check: --impl: no implementation '%s' of these ops on %s\n", o.impl,
                wk_device_name(o.device));
    return o.failed || !reported || o.passed == 0 ? 1 : 0;
}
