/* bench.c: `wick bench`: how fast the ops are here. */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include "args.h"
#include "bench_cases.h"
#include "bench_gpu.h"
#include "bench_report.h"
#include "cli.h"
#include "progress.h"
#include "wick/ops.h"

static const char help[] =
    "usage: wick bench [--device D] [--filter TEXT] [--impl I] [--against FILE] [--seconds S] [--json]\n"
    "                  [--tune] [--large] [--html FILE] [--list]\n"
    "\n"
    "Measures ops at sizes of real models: time, GB/s, TFLOP/s, and the share of what this machine reaches "
    "in a plain\n"
    "copy of as many bytes (for cases that move memory) and in its best matrix product of the dtype (for "
    "cases that\n"
    "compute).\n"
    "\n"
    "  --device D      cpu, rocm:0, cuda:0 or auto (default)\n"
    "  --filter TEXT   only cases with this text in their name; may be given several times\n"
    "  --impl I        only implementations of this name\n"
    "  --tune          on a GPU, search for the fastest implementation of each case first; the choice is "
    "kept "
    "in\n"
    "                  tune.txt in the cache folder and used from then on, here and by every program\n"
    "  --large         on the CPU, arrays of a gigabyte, which no cache holds (takes 4 GB)\n"
    "  --against FILE  a peer's times, one JSON object a line with case and us; prints the ratio (above 1: "
    "wick is\n"
    "                  faster) and the geometric mean of the ratios\n"
    "  --seconds S     time for each case, 0.3 by default\n"
    "  --json          one JSON object a line on standard output: case, us, gbs, tflops, share and limit "
    "(copy or\n"
    "                  matmul), ratio, impl\n"
    "  --html FILE     a page with the chart and the table, that needs no other file\n"
    "  --list          the names of the cases\n"
    "\n"
    "Examples:\n"
    "  wick bench --filter matmul\n"
    "  wick bench --json > mine.jsonl\n"
    "  wick bench --against torch.jsonl --html bench.html\n";

enum { MAX_PEER = 512, MAX_ROWS = 512, MAX_TIMES = 1000, MAX_COPIES = 64 };

typedef struct {
    double bytes, gbs;
} copy_rate;

typedef struct {
    char name[80];
    double us;
} peer_case;

typedef struct {
    wk_device *device;
    arg_list filters;
    const char *against, *impl, *html;
    double seconds;
    bool json, list, tune, large;
    peer_case peers[MAX_PEER];
    int n_peers;
    copy_rate copies[MAX_COPIES];
    int n_copies;
    double bare_us[2];                    /* a bare launch, and a node of a graph of such; 0 until measured */
    double matmul_tflops[WK_DTYPE_COUNT]; /* the best matrix product; 0 until measured, -1: there is none */
    bench_row rows[MAX_ROWS];
    int n_rows;
} bench;

/* ---- measuring ---- */

static double now_us(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e6 + (double)t.tv_nsec * 1e-3;
}

typedef struct {
    wk_sample *sample;
    const bench_case *of;
} one_call;

static wk_status call(void *ctx)
{
    const one_call *o = ctx;
    wk_call c = o->sample->call;
    c.out[0] = o->of->how & BENCH_IN_PLACE ? o->sample->in[0] : NULL;
    for (int i = 0; i < (o->of->how & BENCH_FIRST_ALONE ? 1 : wk_op_outputs(c.op)); i++)
        c.want |= c.op->out[i].flags & WK_OPTIONAL ? 0 : 1u << i;
    return wk_call_run(&c);
}

/* One call, waited for; its outputs are gone afterwards. Microseconds, or -1 when it failed. */
static double run_once(bench *b, bench_run run, void *ctx)
{
    wk_scope_begin();
    double start = now_us();
    wk_status status = run(ctx);
    if (status == WK_OK)
        status = wk_sync(b->device);
    double us = now_us() - start;
    wk_scope_end();
    return status == WK_OK ? us : -1;
}

/* The median time of a call on the CPU, after which its outputs are gone. -1 with an error pending when it fails. */
static double measure_cpu(bench *b, bench_run run, void *ctx)
{
    static double times[MAX_TIMES];
    double us = run_once(b, run, ctx);
    for (int i = 0; i < 2 && us >= 0; i++) /* caches, pages, threads */
        us = run_once(b, run, ctx);
    int n = 0;
    double end = now_us() + b->seconds * 1e6;
    while (us >= 0 && n < MAX_TIMES && (n < 5 || now_us() < end))
        times[n++] = us = run_once(b, run, ctx);
    if (us < 0)
        return -1;
    qsort(times, (size_t)n, sizeof *times, bench_compare);
    return times[n / 2];
}

static double measure_gpu(bench *b, const bench_case *k, wk_sample *s)
{
    one_call one = {s, k};
    if (b->tune && !b->impl) {
        wk_tune(WK_TUNE(.again = 1, .seconds = 5));
        run_once(b, call, &one);
        wk_tune(NULL);
    }
    wk_force_impl(b->impl);
    bool graph = strcmp(k->name, "graph_replay.add1024") == 0;
    double us;
    if (graph || strcmp(k->name, "eager_overhead.add1024") == 0) {
        double both[2];
        us = bench_tiny(b->device, now_us, graph, call, &one, both) ? both[0] : -1;
        b->bare_us[graph] = us < 0 ? 0 : both[1];
    } else {
        us = bench_events(b->device, b->seconds, call, &one);
    }
    wk_force_impl(NULL);
    return us;
}

/* The median time of a case; -1 with an error pending when it cannot run. */
static double measure_sample(bench *b, const bench_case *k)
{
    wk_sample s;
    const wk_op *op = wk_op_find(k->op);
    if (!op) {
        fprintf(stderr, "wick bench: %s: no op %s\n", k->name, k->op);
        return -1;
    }
    if (wk_sample_make(op, k->sample, k->dtype, k->layout, 1, b->device, &s) != WK_OK)
        return -1;
    if (b->device->kind != WK_KIND_CPU)
        return measure_gpu(b, k, &s);
    wk_force_impl(b->impl);
    double us = measure_cpu(b, call, &(one_call){&s, k});
    wk_force_impl(NULL);
    return us;
}

static double measure(bench *b, const bench_case *k)
{
    int fixed = wk_deterministic();
    wk_precision precision = wk_matmul_precision();
    if (k->how & BENCH_ANY_ORDER)
        wk_set_deterministic(0);
    if (k->how & BENCH_FAST)
        wk_set_matmul_precision(WK_PRECISION_FAST);
    double us = measure_sample(b, k);
    wk_set_matmul_precision(precision);
    wk_set_deterministic(fixed);
    return us;
}

/* ---- peers ---- */

/* Lines like {"case": "add.f32", "us": 12.3, ...}; others are passed over. */
static bool read_peers(bench *b)
{
    FILE *f = fopen(b->against, "r");
    char line[512];
    if (!f) {
        fprintf(stderr, "wick bench: cannot read %s\n", b->against);
        return false;
    }
    while (b->n_peers < MAX_PEER && fgets(line, sizeof line, f)) {
        peer_case *p = &b->peers[b->n_peers];
        const char *name = strstr(line, "\"case\": \""), *us = strstr(line, "\"us\": ");
        if (name && us && sscanf(name + 9, "%79[^\"]", p->name) == 1 && sscanf(us + 6, "%lf", &p->us) == 1)
            b->n_peers++;
    }
    fclose(f);
    return true;
}

static double peer_us(const bench *b, const char *name)
{
    for (int i = 0; i < b->n_peers; i++) {
        if (strcmp(b->peers[i].name, name) == 0)
            return b->peers[i].us;
    }
    return 0;
}

/* ---- limits: measured in this very run, when a case needs them ---- */

static double measure_case(bench *b, const bench_case *k)
{
    wk_scope_begin();
    double us = measure(b, k);
    wk_scope_end();
    wk_error_clear();
    return us;
}

static wk_status copy_call(void *x) { return wk_copy(x) ? WK_OK : wk_error_status(); }

/* What a case that moves so many bytes is held against: a copy of as many. Little is copied at another rate than much. */
static double copy_limit(bench *b, double bytes)
{
    for (int i = 0; i < b->n_copies; i++) {
        if (b->copies[i].bytes == bytes)
            return b->copies[i].gbs;
    }
    int64_t count = (int64_t)(bytes / 2);
    wk_scope_begin();
    wk_tensor *x = wk_fill(b->device, WK_U8, 1, &count, 1);
    double us = -1;
    if (x)
        us = b->device->kind == WK_KIND_CPU ? measure_cpu(b, copy_call, x)
                                            : bench_events(b->device, b->seconds, copy_call, x);
    wk_scope_end();
    wk_error_clear();
    double gbs = us > 0 ? bytes / us * 1e-3 : 0;
    if (b->n_copies < MAX_COPIES)
        b->copies[b->n_copies++] = (copy_rate){bytes, gbs};
    return gbs;
}

static double matmul_limit(bench *b, wk_dtype dtype)
{
    double *limit = &b->matmul_tflops[dtype];
    const bench_case *found = NULL;
    for (const bench_case *k = bench_cases(b->device->kind, b->large); k->name && *limit == 0; k++) {
        bool product = strcmp(k->op, "matmul") == 0 && k->dtype == dtype && k->flops > 1e9;
        found = product && (!found || k->flops > found->flops) ? k : found;
    }
    if (*limit == 0)
        *limit = found ? found->flops / measure_case(b, found) * 1e-6 : -1;
    return *limit;
}

static bench_row *add_row(bench *b, const bench_case *k, double us, const char *impl)
{
    bench_row *r = &b->rows[b->n_rows < MAX_ROWS ? b->n_rows++ : MAX_ROWS - 1];
    *r = (bench_row){.us = us, .gbs = k->bytes / us * 1e-3, .tflops = k->flops / us * 1e-6};
    snprintf(r->name, sizeof r->name, "%s", k->name);
    snprintf(r->impl, sizeof r->impl, "%s", impl);
    r->memory = k->bytes > 0;
    double limit = r->memory ? copy_limit(b, k->bytes) : k->flops > 1e8 ? matmul_limit(b, k->dtype) : 0;
    r->share = limit > 0 ? (r->memory ? r->gbs : r->tflops) / limit : 0;
    r->peer_us = peer_us(b, k->name);
    return r;
}

static void put_row(const bench *b, const bench_row *r)
{
    if (b->json)
        bench_json(r);
    else
        bench_text(r);
}

/* ---- running ---- */

static bool selected(const bench *b, const char *name)
{
    for (int i = 0; i < b->filters.n; i++) {
        if (strstr(name, b->filters.items[i]))
            return true;
    }
    return b->filters.n == 0;
}

/* What the driver itself needs for a launch, or for a node of a graph, to hold the overhead of a tiny op against: measured by
 * turns with that, where that was measured. */
static void put_bare(bench *b, const char *name, bool graph)
{
    if (b->device->kind == WK_KIND_CPU || !selected(b, name))
        return;
    double us[2] = {0, b->bare_us[graph]};
    if (us[1] > 0 || bench_tiny(b->device, now_us, graph, NULL, NULL, us))
        put_row(b, add_row(b, &(bench_case){.name = name}, us[1], ""));
    wk_error_clear();
}

static bool run_case(bench *b, const bench_case *k)
{
    wk_scope_begin();
    double us = measure(b, k);
    char impl[16];
    snprintf(impl, sizeof impl, "%s", wk_last_impl());
    wk_scope_end(); /* before a limit is measured: the memory may be needed for that */
    if (us < 0) {
        progress_clear();
        fprintf(stderr, "wick bench: %s: %s\n", k->name, wk_error());
    } else {
        const bench_row *r = add_row(b, k, us, impl);
        progress_clear();
        put_row(b, r);
    }
    wk_error_clear();
    return us >= 0;
}

static int finish(bench *b, int failed)
{
    char device[200];
    int n;
    double mean = bench_mean(b->rows, b->n_rows, &n);
    if (n > 0 && !b->json)
        printf("geometric mean of %d ratios: %.2f\n", n, mean);
    snprintf(device, sizeof device, "%s, %s", wk_device_name(b->device), wk_device_description(b->device));
    if (b->html && !bench_html(b->html, device, b->against, b->rows, b->n_rows))
        return EXIT_FAILED;
    return failed ? EXIT_FAILED : EXIT_OK;
}

static int list_cases(const bench *b)
{
    for (const bench_case *k = bench_cases(b->device->kind, b->large); k->name; k++) {
        if (selected(b, k->name))
            printf("%s\n", k->name);
    }
    return EXIT_OK;
}

static int run_cases(bench *b)
{
    const bench_case *cases = bench_cases(b->device->kind, b->large);
    int total = 0, done = 0, failed = 0;
    for (const bench_case *k = cases; k->name; k++)
        total += selected(b, k->name);
    if (total == 0) {
        fprintf(stderr, "wick bench: no case of that name; `wick bench --list` lists them\n");
        return EXIT_USAGE;
    }
    if (b->list)
        return list_cases(b);
    if (!b->json)
        bench_text_head(b->against != NULL);
    for (const bench_case *k = cases; k->name; k++) {
        if (!selected(b, k->name))
            continue;
        progress_show(done++, total, k->name);
        failed += !run_case(b, k);
    }
    put_bare(b, "bare_launch", false);
    put_bare(b, "bare_graph_node", true);
    return finish(b, failed);
}

static int parse(bench *b, int argc, char **argv)
{
    const char *device = "auto", *seconds = "0.3";
    const arg_option known[] = {{"device", .value = &device},
                                {"filter", .list = &b->filters},
                                {"impl", .value = &b->impl},
                                {"against", .value = &b->against},
                                {"seconds", .value = &seconds},
                                {"json", .flag = &b->json},
                                {"html", .value = &b->html},
                                {"list", .flag = &b->list},
                                {"tune", .flag = &b->tune},
                                {"large", .flag = &b->large},
                                {0}};
    int status = args_parse(help, known, &argc, argv);
    if (status != ARGS_GO)
        return status;
    if (argc > 1)
        return args_usage("bench", "expected options only, got '%s'", argv[1]);
    char *end;
    b->seconds = strtod(seconds, &end);
    if (*end || !(b->seconds >= 0 && b->seconds < 3600))
        return args_usage("bench", "--seconds: expected a number from 0 to 3600, got '%s'", seconds);
    b->device = wk_device_open(device);
    if (!b->device)
        return args_error();
    return b->against && !read_peers(b) ? EXIT_FAILED : ARGS_GO;
}

int cmd_bench(int argc, char **argv)
{
    static bench b;
    int status = parse(&b, argc, argv);
    return status == ARGS_GO ? run_cases(&b) : status;
}
