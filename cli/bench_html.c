/* bench_html.c: what was measured as one page: the chart, the table, nothing fetched. */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include "bench_report.h"
#include "wick/core.h"

static const char head[] =
    "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\n"
    "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
    "<title>wick bench</title>\n<style>\n"
    ":root { color-scheme: light dark; --ink: #1d2430; --soft: #667085; --line: #e3e6eb; --page: #fff;\n"
    "  --good: #2a78b8; --even: #8aa4b8; --bad: #c8553d; }\n"
    "@media (prefers-color-scheme: dark) { :root { --ink: #e6e9ee; --soft: #98a2b3; --line: #2f3642;\n"
    "  --page: #14181f; --good: #5aa9e6; --even: #6c8296; --bad: #e2795f; } }\n"
    "body { font: 14px/1.5 system-ui, sans-serif; color: var(--ink); background: var(--page);\n"
    "  max-width: 1000px; margin: 2rem auto; padding: 0 1rem; }\n"
    "h1 { font-size: 1.5rem; margin: 0; } p { color: var(--soft); margin: .3rem 0 1.2rem; }\n"
    "table { border-collapse: collapse; width: 100%; font-variant-numeric: tabular-nums; }\n"
    "th, td { padding: .2rem .6rem; border-bottom: 1px solid var(--line); text-align: right; }\n"
    "th { position: sticky; top: 0; background: var(--page); } "
    "th:first-child, td:first-child, th:last-child, td:last-child { text-align: left; }\n"
    "svg { width: 100%; height: auto; } svg text { fill: var(--ink); font: 11px system-ui, sans-serif; }\n"
    "svg .soft { fill: var(--soft); } svg line { stroke: var(--line); } svg line.one { stroke: var(--ink); "
    "}\n"
    ".good { fill: var(--good); } .even { fill: var(--even); } .bad { fill: var(--bad); }\n"
    "</style></head><body>\n";

/* What a bar shows: the ratio to the peer on a scale of doublings, or the share of the limit. */
typedef struct {
    bool ratios;
    double lo, hi; /* the ends of the scale: log2 of ratios, or shares */
} scale;

enum { LEFT = 250, WIDTH = 640, STEP = 17, TOP = 24, RIGHT = 60 };

static double value_of(const scale *s, const bench_row *r)
{
    double ratio = bench_ratio(r);
    return s->ratios ? (ratio > 0 ? log2(ratio) : NAN) : (r->share > 0 ? r->share : NAN);
}

static double place(const scale *s, double v)
{
    double at = (v - s->lo) / (s->hi - s->lo);
    return LEFT + WIDTH * (at < 0 ? 0 : at > 1 ? 1 : at);
}

static scale find_scale(const bench_row *rows, int count)
{
    scale s = {.hi = 1.1};
    for (int i = 0; i < count; i++)
        s.ratios |= bench_ratio(&rows[i]) > 0;
    if (!s.ratios)
        return s;
    s.lo = -1;
    s.hi = 1;
    for (int i = 0; i < count; i++) {
        double v = value_of(&s, &rows[i]);
        s.lo = v < s.lo ? floor(v) : s.lo;
        s.hi = v > s.hi ? ceil(v) : s.hi;
    }
    s.lo = s.lo < -4 ? -4 : s.lo;
    s.hi = s.hi > 6 ? 6 : s.hi;
    return s;
}

static void put_grid(FILE *f, const scale *s, int height)
{
    double step = s->ratios ? 1 : 0.25;
    for (double v = s->lo; v <= s->hi + 1e-9; v += step) {
        bool one = s->ratios ? v == 0 : v == 1;
        fprintf(f, "<line%s x1=\"%.1f\" x2=\"%.1f\" y1=\"%d\" y2=\"%d\"/>", one ? " class=\"one\"" : "",
                place(s, v), place(s, v), TOP - 6, height);
        fprintf(f, "<text class=\"soft\" text-anchor=\"middle\" x=\"%.1f\" y=\"%d\">", place(s, v), TOP - 10);
        if (s->ratios)
            fprintf(f, "%.3gx</text>\n", exp2(v));
        else
            fprintf(f, "%.0f %%</text>\n", 100 * v);
    }
}

static void put_bar(FILE *f, const scale *s, const bench_row *r, int y)
{
    double v = value_of(s, r), zero = place(s, 0), end = place(s, v);
    double good = s->ratios ? 0 : 0.85, even = s->ratios ? log2(0.95) : 0.7;
    const char *class = v >= good ? "good" : v >= even ? "even" : "bad";
    fprintf(f, "<text text-anchor=\"end\" x=\"%d\" y=\"%d\">%s</text>", LEFT - 8, y + 11, r->name);
    fprintf(f, "<rect class=\"%s\" rx=\"2\" x=\"%.1f\" y=\"%d\" width=\"%.1f\" height=\"%d\"/>", class,
            fmin(zero, end), y, fmax(fabs(end - zero), 1.5), STEP - 5);
    fprintf(f, "<text class=\"soft\" x=\"%.1f\" y=\"%d\">", fmax(zero, end) + 5, y + 11);
    if (s->ratios)
        fprintf(f, "%.2f</text>\n", exp2(v));
    else
        fprintf(f, "%.0f %%</text>\n", 100 * v);
}

static void put_chart(FILE *f, const bench_row *rows, int count)
{
    scale s = find_scale(rows, count);
    int bars = 0, y = TOP;
    for (int i = 0; i < count; i++)
        bars += !isnan(value_of(&s, &rows[i]));
    int height = TOP + bars * STEP;
    if (bars == 0)
        return;
    fprintf(f, "<h2>%s</h2>\n<svg viewBox=\"0 0 %d %d\" role=\"img\">\n",
            s.ratios ? "Times faster than the peer" : "Share of the measured limit", LEFT + WIDTH + RIGHT,
            height + 8);
    put_grid(f, &s, height);
    for (int i = 0; i < count; i++) {
        if (isnan(value_of(&s, &rows[i])))
            continue;
        put_bar(f, &s, &rows[i], y);
        y += STEP;
    }
    fprintf(f, "</svg>\n");
}

/* A number where there is one. */
static void put_cell(FILE *f, const char *format, double v)
{
    fprintf(f, "<td>");
    if (v > 0)
        fprintf(f, format, v);
    fprintf(f, "</td>");
}

static void put_table(FILE *f, const bench_row *rows, int count)
{
    fprintf(f, "<h2>All cases</h2>\n<table><thead><tr><th>case</th><th>&micro;s</th><th>GB/s</th>"
               "<th>TFLOP/s</th><th>of the limit</th><th>peer &micro;s</th><th>ratio</th>"
               "<th>implementation</th></tr></thead>\n<tbody>\n");
    for (int i = 0; i < count; i++) {
        const bench_row *r = &rows[i];
        fprintf(f, "<tr><td>%s</td>", r->name);
        put_cell(f, "%.2f", r->us);
        put_cell(f, "%.1f", r->gbs);
        put_cell(f, "%.3f", r->tflops);
        put_cell(f, r->memory ? "%.0f %% of a copy" : "%.0f %% of matmul", 100 * r->share);
        put_cell(f, "%.2f", r->peer_us);
        put_cell(f, "%.2f", bench_ratio(r));
        fprintf(f, "<td>%s</td></tr>\n", r->impl);
    }
    fprintf(f, "</tbody></table>\n");
}

/* Text of others (a device's name, a path) between tags. */
static void put_text(FILE *f, const char *text)
{
    for (; *text; text++) {
        const char *entity = *text == '<' ? "&lt;" : *text == '>' ? "&gt;" : *text == '&' ? "&amp;" : NULL;
        if (entity)
            fputs(entity, f);
        else
            fputc(*text, f);
    }
}

bool bench_html(const char *path, const char *device, const char *peer, const bench_row *rows, int count)
{
    char date[32] = "";
    int n;
    time_t now = time(NULL);
    struct tm day;
    double mean = bench_mean(rows, count, &n);
    FILE *f = fopen(path, "w");
    if (f) {
        if (gmtime_r(&now, &day))
            strftime(date, sizeof date, "%Y-%m-%d", &day);
        fprintf(f, "%s<h1>wick bench</h1>\n<p>wick %s on ", head, wk_version());
        put_text(f, device);
        fprintf(f,
                ", %s. The limits were measured in the same run: a copy of as many bytes, the best matrix "
                "product.",
                date);
        if (n > 0) {
            fprintf(f, "<br>Against ");
            put_text(f, peer);
            fprintf(f, ": geometric mean of %d ratios %.2f.", n, mean);
        }
        fprintf(f, "</p>\n");
        put_chart(f, rows, count);
        put_table(f, rows, count);
        fprintf(f, "</body></html>\n");
    }
    bool good = f && !ferror(f);
    if (f && fclose(f) != 0)
        good = false;
    if (!good)
        fprintf(stderr, "wick bench: --html: %s: %s\n", path, strerror(errno));
    return good;
}
