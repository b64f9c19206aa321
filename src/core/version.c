/* version.c: the version, from the numbers in core.h. */
#include "wick/core.h"

#define TEXT2(a) #a
#define TEXT(a) TEXT2(a)

const char *wk_version(void)
{
    return TEXT(WK_VERSION_MAJOR) "." TEXT(WK_VERSION_MINOR) "." TEXT(WK_VERSION_PATCH);
}
