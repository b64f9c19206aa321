/* folder.c: where wick keeps things between runs. */
#include "folder.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

size_t wk_cache_folder(char *path, size_t room)
{
    const char *own = getenv("WICK_CACHE"), *xdg = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");
    path[0] = 0;
    if (own && *own)
        snprintf(path, room, "%s", own);
    else if (xdg && *xdg)
        snprintf(path, room, "%s/wick", xdg);
    else if (home && *home)
        snprintf(path, room, "%s/.cache/wick", home);
    return strlen(path);
}

void wk_make_folders(char *path)
{
    for (char *s = path + 1; *s; s++) {
        if (*s == '/') {
            *s = 0;
            mkdir(path, 0777);
            *s = '/';
        }
    }
}
