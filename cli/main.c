/* main.c: the wick tool: picks the command. */
#include <stdio.h>
#include <string.h>
#include "cli.h"
#include "wick/wick.h"

static const struct {
    const char *name, *summary;
    int (*run)(int argc, char **argv);
} commands[] = {
    {"check", "prove that a device computes right", cmd_check},
    {"bench", "measure how fast it is", cmd_bench},
};

enum { COMMANDS = sizeof commands / sizeof *commands };

static void put_help(FILE *f)
{
    fprintf(f,
            "usage: wick COMMAND [arguments]\n\nwick %s: neural-network ops on AMD GPUs, NVIDIA GPUs and the "
            "CPU.\n\n",
            wk_version());
    for (int i = 0; i < COMMANDS; i++)
        fprintf(f, "  %-8s %s\n", commands[i].name, commands[i].summary);
    fprintf(f, "\n`wick COMMAND --help` tells more, with examples.\n");
}

int main(int argc, char **argv)
{
    const char *name = argc > 1 ? argv[1] : "";
    if (strcmp(name, "--help") == 0 || strcmp(name, "-h") == 0 || strcmp(name, "help") == 0) {
        put_help(stdout);
        return 0;
    }
    if (strcmp(name, "--version") == 0) {
        printf("wick %s\n", wk_version());
        return 0;
    }
    for (int i = 0; i < COMMANDS; i++) {
        if (strcmp(name, commands[i].name) == 0)
            return commands[i].run(argc - 1, argv + 1);
    }
    if (*name)
        fprintf(stderr, "wick: no command '%s'\n", name);
    put_help(stderr);
    return 2;
}
