/* search.h: which implementation is the fastest for a call, found by trying. */
#ifndef WK_TUNE_SEARCH_H
#define WK_TUNE_SEARCH_H

#include "core/op.h"

/* True when wk_tune is on for this thread, the call has a choice and none was found for it yet. */
bool wk_tune_wanted(const wk_call *c);
/* Times all that take the call and keeps the choice. `run` runs c->impl. The call itself is not run: its outputs are
 * not touched. Failures along the way cost the candidate, or the search, and nothing else. */
void wk_tune_search(const wk_call *c, wk_status (*run)(wk_call *));

#endif
