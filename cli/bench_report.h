/* bench_report.h: what was measured, as text, JSON and a page. */
#ifndef WICK_CLI_BENCH_REPORT_H
#define WICK_CLI_BENCH_REPORT_H

#include <stdbool.h>

typedef struct {
    char name[80], impl[16];
    double us;
    double gbs, tflops; /* 0: the case is not counted in them */
    double share;       /* of the limit measured in the same run; 0: none */
    bool memory;        /* the limit is a copy of as many bytes, else the best matrix product of the dtype */
    double peer_us;     /* 0: the peer has no such case */
} bench_row;

/* How many times faster than the peer; 0 where there is none. */
double bench_ratio(const bench_row *r);
/* The geometric mean over the rows that have a ratio; *n says how many they are. */
double bench_mean(const bench_row *rows, int count, int *n);

void bench_text_head(bool ratios);
void bench_text(const bench_row *r);
void bench_json(const bench_row *r);
/* One page with chart and table that needs no other file; false, having said why, when it cannot be written. */
bool bench_html(const char *path, const char *device, const char *peer, const bench_row *rows, int count);

#endif
