/* file.h: files as the readers and writers see them: memory that is shared and counted, and a file that
 * appears whole or not at all. */
#ifndef WK_IO_FILE_H
#define WK_IO_FILE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include "../core/error.h"
#include "../core/tensor.h"

/* ---- Reading ---- */

/* The bytes of a file, held by its reader and by every tensor over it. */
typedef struct {
    atomic_long refs;
    char *data;
    size_t bytes;
    void (*release)(void *ctx); /* of memory that is the caller's; NULL with mapped: a mapping of ours */
    void *ctx;
    bool mapped;
} wk_map;

/* Maps a regular file; NULL with an error. call is the function's name, for messages. */
wk_map *wk_map_open(const char *call, const char *path);
/* Wraps memory of the caller's; release is called when the last reference goes, unless it is taken off. */
wk_map *wk_map_over(const char *call, void *data, size_t bytes, void (*release)(void *), void *ctx);
void wk_map_retain(wk_map *m);
void wk_map_drop(void *m);

/* A packed CPU tensor at that byte of the map, holding a reference; a copy where the address is not aligned. */
wk_tensor *wk_map_tensor(wk_map *m, size_t at, wk_dtype dtype, int rank, const int64_t *shape);

/* "call: path: byte 17: reason", WK_ERR_FORMAT. */
wk_status wk_fail_format(const char *call, const char *path, uint64_t at, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

/* ---- Writing: into a temporary file beside the target, which takes its place in the end ---- */

typedef struct {
    const char *call, *path;
    char *target, *temporary; /* temporary is NULL where the target is a device or a pipe: written directly */
    int fd;
} wk_writer;

wk_status wk_writer_open(wk_writer *w, const char *call, const char *path);
wk_status wk_writer_write(wk_writer *w, const void *data, size_t bytes);
/* The elements of a tensor, packed. */
wk_status wk_writer_tensor(wk_writer *w, const wk_tensor *t);
/* Ends the writing: with WK_OK the file takes its place, otherwise it goes. Returns the status, or what went
 * wrong here. */
wk_status wk_writer_close(wk_writer *w, wk_status status);

#endif
