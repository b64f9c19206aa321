/* file.h: whole files in memory, and paths in a model's folder. */
#ifndef WM_FILE_H
#define WM_FILE_H

#include <stdbool.h>
#include <stddef.h>

/* The bytes of a file, by a private memory map: what is written into them stays in this process. */
typedef struct {
    void *data; /* NULL for an empty file */
    size_t size;
} wm_map;

/* Maps a regular file; false with an error that names it. */
bool wm_map_open(wm_map *m, const char *path);
void wm_map_close(wm_map *m);

/* "folder/name" into a new string, which is given back with free; NULL with an error. */
char *wm_path(const char *folder, const char *name);
bool wm_is_folder(const char *path);
bool wm_file_exists(const char *path);

#endif
