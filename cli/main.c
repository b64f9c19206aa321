/* main.c: `wick COMMAND ...`: finds the command and hands over. */
#include <stdio.h>
#include <string.h>
#include "wick/core.h"
#include "args.h"
#include "cli.h"

static const struct {
    const char *name, *summary;
    int (*run)(int argc, char **argv);
} commands[] = {
    {"info", "this machine: devices, memory, what wick found", cmd_info},
    {"ops", "the op table: dtypes, parameters, implementations", cmd_ops},
    {"op", "run one op on files", cmd_op},
    {"check", "prove that a device computes right", cmd_check},
    {"bench", "measure how fast it is", cmd_bench},
    {"kernels", "build the GPU kernels ahead; what they need", cmd_kernels},
    {"run", "run a model from its files", cmd_run},
};
enum { COMMANDS = sizeof commands / sizeof *commands };

static void print_help(void)
{
    printf("wick %s: neural-network ops on AMD GPUs, NVIDIA GPUs and the CPU\n\nusage: wick COMMAND ...\n\n",
           wk_version());
    for (int i = 0; i < COMMANDS; i++)
        printf("  %-8s %s\n", commands[i].name, commands[i].summary);
    printf("\n  wick COMMAND --help   what the command takes, with examples\n"
           "  wick --version        the version\n");
}

static int run_command(int argc, char **argv)
{
    for (int i = 0; i < COMMANDS; i++) {
        if (strcmp(argv[0], commands[i].name) == 0)
            return commands[i].run(argc, argv);
    }
    fprintf(stderr, "wick: no command '%s'; see `wick --help`\n", argv[0]);
    return EXIT_USAGE;
}

static int dispatch(int argc, char **argv)
{
    const char *first = argc > 1 ? argv[1] : NULL;
    if (!first) {
        fprintf(stderr, "wick: expected a command; see `wick --help`\n");
        return EXIT_USAGE;
    }
    if (strcmp(first, "--version") == 0) {
        printf("wick %s\n", wk_version());
        return EXIT_OK;
    }
    bool help = strcmp(first, "help") == 0;
    if (help && argc > 2)
        return run_command(2, (char *[]){argv[2], "--help", NULL});
    if (help || strcmp(first, "--help") == 0 || strcmp(first, "-h") == 0) {
        print_help();
        return EXIT_OK;
    }
    return run_command(argc - 1, argv + 1);
}

int main(int argc, char **argv)
{
    int status = dispatch(argc, argv);
    if (fflush(stdout) != 0 || ferror(stdout)) { /* a full disk must not look like success */
        perror("wick: stdout");
        return status ? status : EXIT_FAILED;
    }
    return status;
}
