/* run_measure.h: how long a model takes for a batch: for the models that do one thing in one pass. */
#ifndef WK_CLI_RUN_MEASURE_H
#define WK_CLI_RUN_MEASURE_H

#include "run.h"

/* Seconds to measure for, from text: 0 to 3600, fractions too; false after saying what is wrong. */
bool run_seconds(const char *command, const char *text, double *seconds);

/* One pass over a batch; false with the models' error. */
typedef bool (*run_pass)(void *ctx);

/* Passes for some seconds after a few to warm up, and says what came out: milliseconds a batch (the median of several
 * stretches) and items a second. what names the model, batch the items of a pass. Returns the status to exit with. */
int run_measure(const run_options *o, const char *what, int64_t batch, double seconds, run_pass pass,
                void *ctx);

#endif
