/* bench_report.c: what was measured, as text and as JSON. */
#include "bench_report.h"
#include <math.h>
#include <stdio.h>

double bench_ratio(const bench_row *r) { return r->peer_us > 0 && r->us > 0 ? r->peer_us / r->us : 0; }

double bench_mean(const bench_row *rows, int count, int *n)
{
    double sum = 0;
    *n = 0;
    for (int i = 0; i < count; i++) {
        double ratio = bench_ratio(&rows[i]);
        if (ratio > 0) {
            sum += log(ratio);
            (*n)++;
        }
    }
    return *n ? exp(sum / *n) : 0;
}

void bench_text_head(bool ratios)
{
    printf("%-34s %11s %9s %9s %7s %-8s%s\n", "case", "us", "GB/s", "TFLOP/s", "limit", "impl",
           ratios ? "   ratio" : "");
}

void bench_text(const bench_row *r)
{
    char rate[16] = "", flops[16] = "", share[16] = "", ratio[16] = "";
    if (r->gbs > 0)
        snprintf(rate, sizeof rate, "%.2f", r->gbs);
    if (r->tflops > 0)
        snprintf(flops, sizeof flops, "%.3f", r->tflops);
    if (r->share > 0)
        snprintf(share, sizeof share, "%.0f%%", 100 * r->share);
    if (r->peer_us > 0)
        snprintf(ratio, sizeof ratio, "   %.2f", bench_ratio(r));
    printf("%-34s %11.1f %9s %9s %7s %-8s%s\n", r->name, r->us, rate, flops, share, r->impl, ratio);
}

void bench_json(const bench_row *r)
{
    printf("{\"case\": \"%s\", \"us\": %.3f", r->name, r->us);
    if (r->gbs > 0)
        printf(", \"gbs\": %.2f", r->gbs);
    if (r->tflops > 0)
        printf(", \"tflops\": %.4f", r->tflops);
    if (r->share > 0)
        printf(", \"share\": %.3f, \"limit\": \"%s\"", r->share, r->memory ? "copy" : "matmul");
    if (r->peer_us > 0)
        printf(", \"ratio\": %.3f", bench_ratio(r));
    if (r->impl[0])
        printf(", \"impl\": \"%s\"", r->impl);
    printf("}\n");
    fflush(stdout);
}
