/* args.h: options and messages as every command has them. */
#ifndef WK_CLI_ARGS_H
#define WK_CLI_ARGS_H

#include <stdbool.h>
#include "io/json.h"

enum { EXIT_OK = 0, EXIT_FAILED = 1, EXIT_USAGE = 2, EXIT_UNSUPPORTED = 3, ARGS_GO = -1 };

/* The values of an option that may be given several times. */
enum { ARGS_LIST = 64 };
typedef struct {
    const char *items[ARGS_LIST];
    int n;
} arg_list;

/* One of three kinds: --name TEXT into value, --name TEXT appended to list, the switch --name into flag. An array of
 * them ends with an empty one. */
typedef struct {
    const char *name;
    const char **value;
    bool *flag;
    arg_list *list;
} arg_option;

/* Takes the options out of argv, wherever they stand, and leaves the other arguments, argv[0], the command's name, among them, in
 * their order. `--name=TEXT` is fine too, and `--` ends the options. Returns ARGS_GO, or the status to exit
 * with: 0 after printing the help text (--help or -h), 2 after saying what is wrong. */
int args_parse(const char *help, const arg_option *options, int *argc, char **argv);

/* A whole number in [lo, hi]; false after saying what is wrong. */
bool args_int(const char *command, const char *option, const char *text, long lo, long hi, long *v);

/* Whether an op is one of those that --op names: by their names, or by beginnings with a star behind; all where none is. */
bool args_op_selected(const arg_list *ops, const char *name);
/* Whether each of them is the name of an op; false after saying which is not. */
bool args_ops(const char *command, const arg_list *ops);

/* Where the arguments come from, "FILE:LINE", put in front of messages from now on; NULL: the command line. */
void args_where(const char *where);

/* "wick COMMAND: text; see `wick COMMAND --help`" on stderr; returns 2. */
int args_usage(const char *command, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* "wick: message" on stderr, in one line whatever the message holds. */
void args_line(const char *message);
/* The library's pending error as one line on stderr, "wick: message", and clears it; returns 1. */
int args_error(void);

/* Prints a text on stdout and frees it; returns 0, or 1 when there was not enough memory for it. */
int args_print(wk_text *text);

#endif
