/* replay.h: a call as files and words, so that `wick op` can run it again. */
#ifndef WK_CHECK_REPLAY_H
#define WK_CHECK_REPLAY_H

#include "core/op.h"
#include "io/json.h"

/* Writes the call's inputs to a safetensors file, views as `wick op` reads them (x with x.shape, x.strides and
 * x.offset). *any is false, and there is no file, when the call has none. */
wk_status wk_replay_save(const wk_call *c, const char *path, bool *any);

/* Adds " name=value" for every parameter that is not at its default. */
void wk_replay_params(wk_text *text, const wk_op *op, const void *params);

/* The same from the text of a sample, also of one that does not read: T stands for dtype. */
void wk_replay_words(wk_text *text, const char *sample, wk_dtype dtype);

/* Adds a blank and a word as the shell reads it. */
void wk_replay_word(wk_text *text, const char *word);

/* The command that runs a call again; in is NULL where it has no inputs, impl "" for the usual choice. */
void wk_replay_command(wk_text *text, const wk_call *c, const char *in, const char *out, const char *impl);

#endif
