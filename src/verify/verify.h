/* verify.h: vendors' results against wick's own kernels while a program runs (WICK_VERIFY, wk_set_verify). */
#ifndef WK_VERIFY_VERIFY_H
#define WK_VERIFY_VERIFY_H

#include "core/op.h"

/* True when results are to be verified, the call's implementation is a vendor's, and it is not itself part of a
 * verification. */
bool wk_verify_wanted(const wk_call *c);

/* Runs the call by wick's own kernel, then by `run`, and compares: WK_ERR_DEVICE, with the command that repeats the
 * call, where they differ. */
wk_status wk_verify_run(wk_call *c, wk_status (*run)(wk_call *));

#endif
