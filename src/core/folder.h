/* folder.h: where wick keeps things between runs. */
#ifndef WK_CORE_FOLDER_H
#define WK_CORE_FOLDER_H

#include <stddef.h>

/* WICK_CACHE, else the desktop's usual place, without a slash at its end; returns its length, 0 when there is none. */
size_t wk_cache_folder(char *path, size_t room);

/* mkdir -p of what comes before the last slash. */
void wk_make_folders(char *path);

#endif
