/* run.h: what the models of `wick run` share: options, loading with progress, and a clean end on Ctrl-C. */
#ifndef WK_CLI_RUN_H
#define WK_CLI_RUN_H

#include "args.h"
#include "weights.h"

enum { EXIT_INTERRUPTED = 130 };

/* --device, --dtype and --json, as every model takes them. */
typedef struct {
    const char *device_name, *dtype_name;
    bool json;
    wk_device *device;
    wk_dtype dtype; /* WK_DTYPE_COUNT: not said */
} run_options;
#define RUN_OPTIONS(o) \
    {"device", .value = &(o).device_name}, {"dtype", .value = &(o).dtype_name}, { "json", .flag = &(o).json }
#define RUN_DEVICE_HELP "  --device D   auto (the default), cpu, rocm:0, cuda:0, ...\n"
#define RUN_JSON_HELP "  --json       the result as one JSON object\n"
#define RUN_OPTIONS_HELP \
    RUN_DEVICE_HELP "  --dtype T    f32, f16 or bf16: what weights are held and computed in\n" RUN_JSON_HELP

/* Opens the device, reads the dtype, catches Ctrl-C from here on. Returns ARGS_GO, or the status to exit with.
 * command is "run llama". */
int run_begin(const char *command, run_options *o);
/* Whether Ctrl-C was pressed: loops ask this and end. The second time it ends the program. */
bool run_stopped(void);
/* Shows the loading of weights; stops it after Ctrl-C. */
extern const wm_progress run_progress;
/* The models' pending error as one line on stderr, and clears it; returns 1, or 130 after Ctrl-C. */
int run_error(void);

/* ---- The models; argv[0] is "run NAME" ---- */
int run_llama(int argc, char **argv);
int run_bert(int argc, char **argv);
int run_resnet(int argc, char **argv);
int run_train(int argc, char **argv);

#endif
