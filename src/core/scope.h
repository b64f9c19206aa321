/* scope.h: the part of scopes that tensors and dispatch use. */
#ifndef WK_CORE_SCOPE_H
#define WK_CORE_SCOPE_H

#include <stdbool.h>
#include "wick/core.h"

/* Opens a scope; false, and nothing to end, when memory is short. */
bool wk_scope_open(void);
/* Hands a new tensor to the innermost scope, if there is one; false when memory is short. */
bool wk_scope_add(wk_tensor *t);
/* Hands a tensor of the innermost scope to the next one out; needs no memory. */
void wk_scope_keep(wk_tensor *t);
/* Takes a tensor out of its scope. */
void wk_scope_remove(wk_tensor *t);

#endif
