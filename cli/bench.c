/* bench.c: `wick bench`: how fast the ops are here. */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include "args.h"
#include "bench_cases.h"
#include "bench_gpu.h"
#include "cli.h"
#include "progress.h"
#include "wick/ops.h"

static const char help[] =
    "usage: wick bench [--device D] [--filter TEXT] [--impl I] [--against FILE] [--seconds S] [--json] "
    "[--list]\n"
    "\n"
    "Measures ops at sizes of real models: time, GB/s, GFLOP/s, and the share of what this machine reaches "
    "in a plain\n"
    "copy (for cases that move memory) and in its best matrix product (for cases that compute).\n"
    "\n"
    "  --device D      cpu, rocm:0, cuda:0 or auto (default)\n"
    "  --filter TEXT   only cases with this text in their name; may be given several times\n"
    "  --impl I        only implementations of this name\n"
    "  --against FILE  a peer's times, one JSON object a line with case and us; prints the ratio (above 1: "
    "wick is\n"
    "                  faster) and the geometric mean of the ratios\n"
    "  --seconds S     time for each case, 0.3 by default\n"
    "  --json          one JSON object a line on standard output: case, us, gbs, tflops, impl; on GPUs "
    "share,\n"
    "                  of the rate of a copy of as many bytes\n"
    "  --list          the names of the cases\n"
    "\n"
    "  wick bench --filter matmul\n"
    "  wick bench --json > mine.jsonl\n"
    "  wick bench --against torch.jsonl\n";

enum { MAX_PEER = 512, MAX_TIMES = 1000 };

typedef struct {
    char name[80];
    double us;
} peer_case;

typedef struct {
    wk_device *device;
    arg_list filters;
    const char *against, *impl;
    double seconds;
    bool json, list;
    peer_case peers[MAX_PEER];
    int n_peers;
    double copy_gbs, matmul_gflops; /* the limits, 0 until measured */
    double log_sum;                 /* of the ratios */
    int ratios;
} bench;

/* ---- measuring ---- */

static double now_us(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e6 + (double)t.tv_nsec * 1e-3;
}

static int compare_doubles(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

typedef struct {
    wk_sample *sample;
    bool in_place;
} one_call;

static wk_status call(void *ctx)
{
    const one_call *o = ctx;
    wk_call c = o->sample->call;
    c.out[0] = o->in_place ? o->sample->in[0] : NULL;
    for (int i = 0; i < wk_op_outputs(c.op); i++)
        c.want |= c.op->out[i].flags & WK_OPTIONAL ? 0 : 1u << i;
    return wk_call_run(&c);
}

/* One call, waited for; its outputs are gone afterwards. Microseconds, or -1 when it failed. */
static double run_once(bench *b, wk_sample *s, bool in_place)
{
    wk_scope_begin();
    double start = now_us();
    wk_status status = call(&(one_call){s, in_place});
    if (status == WK_OK)
        status = wk_sync(b->device);
    double us = now_us() - start;
    wk_scope_end();
    return status == WK_OK ? us : -1;
}

static double measure_gpu(bench *b, const bench_case *k, wk_sample *s)
{
    one_call one = {s, k->in_place};
    wk_force_impl(b->impl);
    double us = strcmp(k->name, "eager_overhead.add1024") == 0
                    ? bench_chain(b->device, now_us, call, &one)
                    : bench_events(b->device, b->seconds, call, &one);
    wk_force_impl(NULL);
    return us;
}

/* The median time of a case; -1 with an error pending when it cannot run. */
static double measure(bench *b, const bench_case *k)
{
    static double times[MAX_TIMES];
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
    double us = run_once(b, &s, k->in_place);
    for (int i = 0; i < 2 && us >= 0; i++) /* caches, pages, threads */
        us = run_once(b, &s, k->in_place);
    int n = 0;
    double end = now_us() + b->seconds * 1e6;
    while (us >= 0 && n < MAX_TIMES && (n < 5 || now_us() < end))
        times[n++] = us = run_once(b, &s, k->in_place);
    wk_force_impl(NULL);
    if (us < 0)
        return -1;
    qsort(times, (size_t)n, sizeof *times, compare_doubles);
    return times[n / 2];
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

/* ---- output ---- */

static void put_header(const bench *b)
{
    printf("%-30s %11s %8s %9s %7s %-6s%s\n", "case", "us", "GB/s", "GFLOP/s", "limit", "impl",
           b->against ? "   ratio" : "");
}

/* What a case that moves so many bytes is held against. A GPU copies little at a lower rate. */
static double copy_limit(bench *b, double bytes)
{
    return b->device->kind == WK_KIND_CPU ? b->copy_gbs : bench_copy_rate(b->device, b->seconds, bytes);
}

static void put_text(bench *b, const bench_case *k, double us)
{
    const char *impl = wk_last_impl();
    double gbs = k->bytes / us * 1e-3, gflops = k->flops / us * 1e-3, peer = peer_us(b, k->name);
    char rate[16] = "", flops[16] = "", share[16] = "", ratio[16] = "";
    if (k->bytes > 0)
        snprintf(rate, sizeof rate, "%.2f", gbs);
    if (k->flops > 0)
        snprintf(flops, sizeof flops, "%.1f", gflops);
    if (k->bytes > 0 && b->copy_gbs > 0)
        snprintf(share, sizeof share, "%.0f%%", 100 * gbs / copy_limit(b, k->bytes));
    else if (k->flops > 0 && b->matmul_gflops > 0)
        snprintf(share, sizeof share, "%.0f%%", 100 * gflops / b->matmul_gflops);
    if (peer > 0) {
        snprintf(ratio, sizeof ratio, "   %.2f", peer / us);
        b->log_sum += log(peer / us);
        b->ratios++;
    }
    printf("%-30s %11.1f %8s %9s %7s %-6s%s\n", k->name, us, rate, flops, share, impl, ratio);
}

static void put_json(bench *b, const bench_case *k, double us)
{
    const char *impl = wk_last_impl();
    printf("{\"case\": \"%s\", \"us\": %.3f", k->name, us);
    if (k->bytes > 0)
        printf(", \"gbs\": %.2f", k->bytes / us * 1e-3);
    if (k->bytes > 0 && b->device->kind != WK_KIND_CPU)
        printf(", \"share\": %.3f", k->bytes / us * 1e-3 / copy_limit(b, k->bytes));
    if (k->flops > 0)
        printf(", \"tflops\": %.4f", k->flops / us * 1e-6);
    printf(", \"impl\": \"%s\"}\n", impl);
    fflush(stdout);
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

/* The two limits that shares are given against, measured in this very run. */
static void measure_limits(bench *b, const bench_case *cases)
{
    for (const bench_case *k = cases; k->name; k++) {
        bool copy = strcmp(k->name, "copy.f32") == 0,
             product = strcmp(k->op, "matmul") == 0 && k->flops > 1e9;
        if (!copy && !(product && k->dtype == WK_F32))
            continue;
        wk_scope_begin();
        double us = measure(b, k);
        wk_scope_end();
        wk_error_clear();
        if (us > 0)
            *(copy ? &b->copy_gbs : &b->matmul_gflops) = (copy ? k->bytes : k->flops) / us * 1e-3;
    }
}

/* What the driver itself needs for a launch, to hold the overhead of a tiny op against. */
static void put_bare_launch(bench *b)
{
    wk_scope_begin();
    double us = bench_bare_launch(b->device, now_us);
    if (us > 0 && b->json)
        printf("{\"case\": \"bare_launch\", \"us\": %.3f}\n", us);
    else if (us > 0)
        printf("%-30s %11.2f\n", "bare_launch", us);
    wk_error_clear();
    wk_scope_end();
}

static int run_cases(bench *b)
{
    const bench_case *cases = bench_cases(b->device->kind);
    int total = 0, done = 0, failed = 0;
    for (const bench_case *k = cases; k->name; k++)
        total += selected(b, k->name);
    if (total == 0) {
        fprintf(stderr, "wick bench: no case of that name; `wick bench --list` lists them\n");
        return 2;
    }
    if (!b->json && !b->list) {
        measure_limits(b, cases);
        put_header(b);
    }
    for (const bench_case *k = cases; k->name; k++) {
        if (!selected(b, k->name))
            continue;
        if (b->list) {
            printf("%s\n", k->name);
            continue;
        }
        progress_show(done++, total, k->name);
        wk_scope_begin();
        double us = measure(b, k);
        progress_clear();
        if (us < 0) {
            fprintf(stderr, "wick bench: %s: %s\n", k->name, wk_error());
            failed++;
        } else if (b->json) {
            put_json(b, k, us);
        } else {
            put_text(b, k, us);
        }
        wk_error_clear();
        wk_scope_end();
    }
    if (b->device->kind != WK_KIND_CPU && !b->list && selected(b, "bare_launch"))
        put_bare_launch(b);
    if (b->ratios > 0)
        printf("geometric mean of %d ratios: %.2f\n", b->ratios, exp(b->log_sum / b->ratios));
    return failed ? 1 : 0;
}

static int parse(bench *b, int argc, char **argv)
{
    const char *device = "auto", *seconds = "0.3";
    const arg_option known[] = {{"device", .value = &device},   {"filter", .list = &b->filters},
                                {"impl", .value = &b->impl},    {"against", .value = &b->against},
                                {"seconds", .value = &seconds}, {"json", .flag = &b->json},
                                {"list", .flag = &b->list},     {0}};
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
