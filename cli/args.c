/* args.c: options and messages as every command has them. */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "core/error.h"
#include "core/op.h"
#include "args.h"

static const char *source; /* of the arguments, where that is not the command line */

void args_where(const char *where) { source = where; }

/* A name out of a file or of an argument may hold anything; the message is one line. */
static void print_line(const char *who, const char *message, const char *more)
{
    char line[1200];
    snprintf(line, sizeof line, "%s: %s%s%s%s", who, source ? source : "", source ? ": " : "", message, more);
    for (char *p = line; *p; p++) {
        if ((unsigned char)*p < ' ')
            *p = '?';
    }
    fprintf(stderr, "%s\n", line);
}

int args_usage(const char *command, const char *format, ...)
{
    char who[40], message[1000], more[80];
    va_list args;
    va_start(args, format);
    vsnprintf(message, sizeof message, format, args);
    va_end(args);
    snprintf(who, sizeof who, "wick %s", command);
    snprintf(more, sizeof more, "; see `wick %s --help`", command);
    print_line(who, message, more);
    return EXIT_USAGE;
}

void args_line(const char *message) { print_line("wick", message, ""); }

int args_error(void)
{
    args_line(wk_error());
    wk_error_clear();
    return EXIT_FAILED;
}

int args_print(wk_text *text)
{
    bool whole = !text->failed;
    if (whole && text->data)
        fputs(text->data, stdout);
    wk_text_free(text);
    if (whole)
        return EXIT_OK;
    wk_fail(WK_ERR_MEMORY, "out of memory");
    return args_error();
}

bool args_int(const char *command, const char *option, const char *text, long lo, long hi, long *v)
{
    char *end;
    errno = 0;
    *v = strtol(text, &end, 10);
    if (end != text && !*end && errno == 0 && *v >= lo && *v <= hi)
        return true;
    args_usage(command, "--%s: expected a number from %ld to %ld, got '%s'", option, lo, hi, text);
    return false;
}

static bool op_matches(const char *pattern, const char *name)
{
    size_t n = strlen(pattern);
    bool prefix = n > 0 && pattern[n - 1] == '*';
    return prefix ? strncmp(name, pattern, n - 1) == 0 : strcmp(name, pattern) == 0;
}

bool args_op_selected(const arg_list *ops, const char *name)
{
    bool found = ops->n == 0;
    for (int i = 0; i < ops->n && !found; i++)
        found = op_matches(ops->items[i], name);
    return found;
}

bool args_ops(const char *command, const arg_list *ops)
{
    for (int i = 0; i < ops->n; i++) {
        bool found = false;
        for (int k = 0; k < wk_op_count() && !found; k++)
            found = op_matches(ops->items[i], wk_op_at(k)->name);
        if (!found) {
            args_usage(command, "--op: no op '%s', `wick ops` lists them", ops->items[i]);
            return false;
        }
    }
    return true;
}

/* The option that an argument names, its length up to the end or the `=`; NULL when there is none. */
static const arg_option *find_option(const arg_option *options, const char *name, size_t length)
{
    for (; options->name; options++) {
        if (strlen(options->name) == length && memcmp(options->name, name, length) == 0)
            return options;
    }
    return NULL;
}

/* Takes argv[*i], an option, and its value where that is the next argument. */
static int take_option(const arg_option *options, int argc, char **argv, int *i)
{
    char *arg = argv[*i], *name = arg + 2;
    size_t length = strcspn(name, "=");
    const arg_option *o = strncmp(arg, "--", 2) == 0 ? find_option(options, name, length) : NULL;
    if (!o)
        return args_usage(argv[0], "no option '%s'", arg);
    if (o->flag) {
        *o->flag = true;
        return name[length] ? args_usage(argv[0], "--%s takes no value", o->name) : ARGS_GO;
    }
    if (!name[length] && *i + 1 == argc)
        return args_usage(argv[0], "--%s: expected a value", o->name);
    const char *value = name[length] ? name + length + 1 : argv[++*i];
    if (o->value)
        *o->value = value;
    else if (o->list->n == ARGS_LIST)
        return args_usage(argv[0], "--%s: expected at most %d of them", o->name, ARGS_LIST);
    else
        o->list->items[o->list->n++] = value;
    return ARGS_GO;
}

int args_parse(const char *help, const arg_option *options, int *argc, char **argv)
{
    int kept = 1;
    bool more = true;
    for (int i = 1; i < *argc; i++) {
        char *arg = argv[i];
        if (!more || arg[0] != '-' || !arg[1]) {
            argv[kept++] = arg;
        } else if (strcmp(arg, "--") == 0) {
            more = false;
        } else if (strcmp(arg, "--help") == 0 || strcmp(arg, "-h") == 0) {
            fputs(help, stdout);
            return EXIT_OK;
        } else {
            int status = take_option(options, *argc, argv, &i);
            if (status != ARGS_GO)
                return status;
        }
    }
    *argc = kept;
    return ARGS_GO;
}
