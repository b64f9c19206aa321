/* run.c: `wick run MODEL ...`: finds the model and hands over; what the models share. */
#include "run.h"
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include "cli.h"
#include "error.h"
#include "progress.h"

static const struct {
    const char *name, *summary;
    int (*run)(int argc, char **argv);
} models[] = {
    {"run llama", "text from Llama, Mistral and Qwen models", run_llama},
    {"run bert", "texts as vectors, and how near they are: BERT, MiniLM", run_bert},
    {"run resnet", "what is in a picture: ResNet 18 to 152", run_resnet},
    {"run train", "a CNN or an LSTM trained from scratch on drawn digits", run_train},
};
enum { MODELS = sizeof models / sizeof *models, PREFIX = sizeof "run " - 1 };

static void print_help(void)
{
    printf("usage: wick run MODEL ...\n\nRuns a model from files as Hugging Face or torchvision lays them "
           "out.\n\n");
    for (int i = 0; i < MODELS; i++)
        printf("  %-8s %s\n", models[i].name + PREFIX, models[i].summary);
    printf("\n" RUN_OPTIONS_HELP "\n"
           "  wick run MODEL --help   what the model takes, with examples\n");
}

int cmd_run(int argc, char **argv)
{
    const char *name = argc > 1 ? argv[1] : "";
    for (int i = 0; i < MODELS; i++) {
        if (strcmp(name, models[i].name + PREFIX) == 0) {
            argv[1] = (char *)models[i].name;
            return models[i].run(argc - 1, argv + 1);
        }
    }
    if (strcmp(name, "--help") == 0 || strcmp(name, "-h") == 0) {
        print_help();
        return EXIT_OK;
    }
    return name[0] ? args_usage("run", "no model '%s'", name) : args_usage("run", "expected a model");
}

/* ---- Ctrl-C ---- */

static volatile sig_atomic_t stopped;

static void stop(int signal_number)
{
    (void)signal_number;
    stopped = 1;
}

/* The flag is all the handler sets; it is reset after the first time, so that a second Ctrl-C ends at once. */
static void catch_interrupt(void)
{
    struct sigaction action = {.sa_handler = stop, .sa_flags = (int)SA_RESETHAND};
    sigaction(SIGINT, &action, NULL);
}

bool run_stopped(void) { return stopped; }

/* ---- options, progress, errors ---- */

int run_begin(const char *command, run_options *o)
{
    o->dtype = o->dtype_name ? wk_dtype_parse(o->dtype_name) : WK_DTYPE_COUNT;
    if (o->dtype_name && o->dtype != WK_F32 && o->dtype != WK_F16 && o->dtype != WK_BF16)
        return args_usage(command, "--dtype: expected f32, f16 or bf16, got '%s'", o->dtype_name);
    o->device = wk_device_open(o->device_name ? o->device_name : "auto");
    if (!o->device)
        return args_error();
    catch_interrupt();
    return ARGS_GO;
}

static bool show(void *ctx, int64_t done, int64_t total, const char *name)
{
    (void)ctx;
    progress_show((int)done, (int)total, name);
    return !stopped;
}

const wm_progress run_progress = {show, NULL};

int run_error(void)
{
    progress_clear();
    if (stopped)
        fprintf(stderr, "wick: interrupted\n");
    else
        args_line(wm_error());
    wm_error_clear();
    return stopped ? EXIT_INTERRUPTED : EXIT_FAILED;
}
