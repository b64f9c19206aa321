/* ops_choice.h: which implementation a device would use for each op and dtype, and why not the others. */
#ifndef WK_CLI_OPS_CHOICE_H
#define WK_CLI_OPS_CHOICE_H

#include "core/op.h"
#include "io/json.h"

/* A set of dtypes in few words: "float", "f32,f16". */
void add_dtypes(wk_text *t, unsigned set);

/* Lines for one op, asked with its first sample: dtypes that are treated alike share one. */
void add_choice(wk_text *t, wk_device *device, const wk_op *op);
/* The same as JSON objects, one a dtype, with `before` in front of the first and commas in between. Returns how many
 * there are. */
int json_choice(wk_text *t, wk_device *device, const wk_op *op, const char *before);

#endif
