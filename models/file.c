/* file.c: whole files in memory, and paths in a model's folder. */
#include "file.h"
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include "error.h"

static bool map_fd(wm_map *m, const char *path, int fd)
{
    struct stat info;
    if (fstat(fd, &info) != 0)
        return wm_fail(WK_ERR_IO, "%s: %s", path, strerror(errno)), false;
    if (!S_ISREG(info.st_mode))
        return wm_fail(WK_ERR_IO, "%s: expected a regular file", path), false;
    *m = (wm_map){NULL, (size_t)info.st_size};
    if (m->size == 0)
        return true;
    void *data = mmap(NULL, m->size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_NORESERVE, fd, 0);
    if (data == MAP_FAILED)
        return wm_fail(WK_ERR_IO, "%s: cannot map it: %s", path, strerror(errno)), false;
    m->data = data;
    return true;
}

bool wm_map_open(wm_map *m, const char *path)
{
    *m = (wm_map){0};
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return wm_fail(WK_ERR_IO, "%s: %s", path, strerror(errno)), false;
    bool mapped = map_fd(m, path, fd);
    close(fd);
    return mapped;
}

void wm_map_close(wm_map *m)
{
    if (m->data)
        munmap(m->data, m->size);
    *m = (wm_map){0};
}

char *wm_path(const char *folder, const char *name)
{
    size_t room = strlen(folder) + strlen(name) + 2;
    char *path = malloc(room);
    if (path)
        snprintf(path, room, "%s/%s", folder, name);
    else
        wm_fail(WK_ERR_MEMORY, "%s: out of memory", folder);
    return path;
}

bool wm_is_folder(const char *path)
{
    struct stat info;
    return stat(path, &info) == 0 && S_ISDIR(info.st_mode);
}

bool wm_file_exists(const char *path) { return access(path, F_OK) == 0; }
