/* args.c: options and messages as every command has them. */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "core/error.h"
#include "args.h"

static const char *source; /* of the arguments, where that is not the command line */

void args_where(const char *where) { source = where; }

int args_usage(const char *command, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    fprintf(stderr, "wick %s: %s%s", command, source ? source : "", source ? ": " : "");
    vfprintf(stderr, format, args);
    fprintf(stderr, "; see `wick %s --help`\n", command);
    va_end(args);
    return EXIT_USAGE;
}

void args_line(const char *message)
{
    char line[1200];
    snprintf(line, sizeof line, "wick: %s%s%s", source ? source : "", source ? ": " : "", message);
    for (char *p = line; *p; p++) {
        if ((unsigned char)*p < ' ') /* a name out of a file may hold anything; the message is one line */
            *p = '?';
    }
    fprintf(stderr, "%s\n", line);
}

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
