/* bench_cases.h: what `wick bench` measures. */
#ifndef WICK_CLI_BENCH_CASES_H
#define WICK_CLI_BENCH_CASES_H

#include "check/sample.h"

/* In place: output 0 is input 0. First alone: without the other outputs, which peers do not make either. Any order: last bits
 * may differ from run to run (wk_set_deterministic). Fast: what lies between products may be rounded
 * (wk_set_matmul_precision). */
enum { BENCH_PLAIN = 0, BENCH_IN_PLACE = 1, BENCH_FIRST_ALONE = 2, BENCH_ANY_ORDER = 4, BENCH_FAST = 8 };

/* A case is an op on a sample (see sample.h) in one dtype. Bytes count each input and each output once, flops a
 * multiply-add as two; what is 0 is not reported. Names, sizes and counts are those of the peers' scripts. */
typedef struct {
    const char *name, *op, *sample;
    wk_dtype dtype;
    double bytes, flops;
    wk_layout layout;
    int how; /* of these, added up */
} bench_case;

/* The cases for a device, ended by one without a name. Large ones are the CPU's alone: the usual ones of a
 * GPU are larger than its caches. */
const bench_case *bench_cases(wk_device_kind kind, bool large);
const bench_case *bench_cases_gpu(void);

#endif
