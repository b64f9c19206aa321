/* cli.h: the commands of the wick tool, and what they share. Each takes its own name as argv[0] and returns the
 * exit status: 0 fine, 1 failed, 2 wrong usage, 3 refused by a forced implementation. */
#ifndef WICK_CLI_H
#define WICK_CLI_H

#include <stdbool.h>

int cmd_check(int argc, char **argv);
int cmd_bench(int argc, char **argv);

/* True when argv[*i] is the option; its value ("--op X" or "--op=X") goes to *value and *i moves on to it. A missing
 * value reads as "". */
bool option_value(int argc, char **argv, int *i, const char *name, const char **value);

/* True when --help or -h is among the arguments. */
bool wants_help(int argc, char **argv);

/* Says that a command does not know the argument, and returns 2. */
int usage_error(const char *command, const char *argument);

#endif
