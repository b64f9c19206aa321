/* choices.h: what searches have found, kept in the cache folder as tune.txt. */
#ifndef WK_TUNE_CHOICES_H
#define WK_TUNE_CHOICES_H

#include "core/op.h"

/* The implementation for a kind of call, and which of its ways. */
typedef struct {
    char impl[16];
    uint64_t variant; /* 0: the one it takes by itself */
} wk_choice;

/* What is kept for calls like this one: the same op, dtype, parameters, shapes and layouts on the same kind of GPU. */
bool wk_choice_find(const wk_call *c, wk_choice *choice);
/* Keeps it, for this process and in the file; a file that cannot be written is told to the log. */
void wk_choice_keep(const wk_call *c, const wk_choice *choice, double us);

/* Where they are kept; false when there is no cache folder. */
bool wk_choices_path(char *path, size_t room);

#endif
