/* run_llama.c: `wick run llama`: text from Llama, Mistral and Qwen models. */
#include <stdio.h>
#include "run.h"

static const char help[] = "usage: wick run llama DIR --prompt TEXT\n\n" RUN_OPTIONS_HELP;

int run_llama(int argc, char **argv)
{
    run_options o = {0};
    const arg_option options[] = {RUN_OPTIONS(o), {0}};
    int status = args_parse(help, options, &argc, argv);
    if (status == ARGS_GO)
        status = run_begin(argv[0], &o);
    return status == ARGS_GO ? args_usage(argv[0], "not there yet") : status;
}
