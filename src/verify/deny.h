/* deny.h: what vendors' implementations dispatch leaves alone on this machine. */
#ifndef WK_VERIFY_DENY_H
#define WK_VERIFY_DENY_H

#include "core/op.h"

/* True when an entry of the list covers the call by this implementation. */
bool wk_denied(const wk_call *c, const wk_impl *impl);

enum { WK_DENY_LINE = 200 };

/* The entry for just this op, implementation and dtype on this device with this version of the library. */
void wk_deny_entry(char line[WK_DENY_LINE], const wk_device *device, const char *op, const char *impl,
                   wk_dtype dtype);

/* Where the list is kept; false when there is no cache folder. */
bool wk_deny_path(char *path, size_t room);
/* Adds an entry for this process (wk_deny) and to the file, for all that come. */
wk_status wk_deny_keep(const char *entry);

#endif
