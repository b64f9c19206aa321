/* options.c: reading the command line. */
#include <stdio.h>
#include <string.h>
#include "cli.h"

bool option_value(int argc, char **argv, int *i, const char *name, const char **value)
{
    size_t n = strlen(name);
    if (strncmp(argv[*i], name, n) != 0 || (argv[*i][n] && argv[*i][n] != '='))
        return false;
    if (argv[*i][n] == '=')
        *value = argv[*i] + n + 1;
    else
        *value = *i + 1 < argc ? argv[++*i] : "";
    return true;
}

bool wants_help(int argc, char **argv)
{
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--help") == 0 || strcmp(argv[i], "-h") == 0)
            return true;
    }
    return false;
}

int usage_error(const char *command, const char *argument)
{
    fprintf(stderr, "wick %s: unknown argument '%s'; `wick %s --help` lists what it takes\n", command,
            argument, command);
    return 2;
}
