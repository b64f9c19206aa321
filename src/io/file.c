/* file.c: memory-mapped input, and output that appears whole or not at all. */
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include "../core/memory.h"
#include "file.h"

#if __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "the files that wick reads and writes are little-endian, as its tensors are"
#endif

static wk_status fail_io(const char *call, const char *path, const char *what, int error)
{
    return wk_fail(WK_ERR_IO, "%s: %.240s: %s: %s", call, path, what, strerror(error));
}

wk_status wk_fail_format(const char *call, const char *path, uint64_t at, const char *format, ...)
{
    char text[256];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    return wk_fail(WK_ERR_FORMAT, "%s: %.160s: byte %llu: %s", call, path, (unsigned long long)at, text);
}

/* ---- reading ---- */

wk_map *wk_map_over(const char *call, void *data, size_t bytes, void (*release)(void *), void *ctx)
{
    wk_map *m = wk_alloc(sizeof *m);
    if (m)
        *m = (wk_map){.refs = 1, .data = data, .bytes = bytes, .release = release, .ctx = ctx};
    else
        wk_fail(WK_ERR_MEMORY, "%s: out of memory", call);
    return m;
}

void wk_map_retain(wk_map *m) { atomic_fetch_add(&m->refs, 1); }

void wk_map_drop(void *map)
{
    wk_map *m = map;
    if (!m || atomic_fetch_sub(&m->refs, 1) != 1)
        return;
    if (m->mapped && m->bytes)
        munmap(m->data, m->bytes);
    if (m->release)
        m->release(m->ctx);
    wk_free(m);
}

/* Private and writable: an op may write into such a tensor, and the file stays as it is. */
static wk_map *map_fd(const char *call, const char *path, int fd)
{
    struct stat info;
    if (fstat(fd, &info) != 0) {
        fail_io(call, path, "cannot look at it", errno);
        return NULL;
    }
    if (!S_ISREG(info.st_mode)) {
        wk_fail(WK_ERR_IO, "%s: %.240s: expected a regular file, got a %s", call, path,
                S_ISDIR(info.st_mode) ? "directory" : "device or pipe");
        return NULL;
    }
    wk_map *m = wk_map_over(call, NULL, (size_t)info.st_size, NULL, NULL);
    if (!m || m->bytes == 0)
        return m;
    void *data = mmap(NULL, m->bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_NORESERVE, fd, 0);
    if (data == MAP_FAILED) {
        fail_io(call, path, "cannot map it", errno);
        wk_map_drop(m);
        return NULL;
    }
    m->data = data;
    m->mapped = true;
    return m;
}

wk_map *wk_map_open(const char *call, const char *path)
{
    if (wk_pending())
        return NULL;
    if (!path) {
        wk_fail(WK_ERR_ARGUMENT, "%s: path: expected a file name, got NULL", call);
        return NULL;
    }
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK); /* a pipe must not make it wait */
    if (fd < 0) {
        fail_io(call, path, "cannot open it", errno);
        return NULL;
    }
    wk_map *m = map_fd(call, path, fd);
    close(fd);
    return m;
}

wk_tensor *wk_map_tensor(wk_map *m, size_t at, wk_dtype dtype, int rank, const int64_t *shape)
{
    char *data = m->data + at;
    if ((uintptr_t)data % wk_bytes(dtype) != 0)
        return wk_from_host(wk_cpu(), dtype, rank, shape, data);
    wk_tensor *t = wk_from_pointer(wk_cpu(), dtype, rank, shape, NULL, data, wk_map_drop, m);
    if (t)
        wk_map_retain(m);
    return t;
}

/* ---- writing ---- */

static wk_status writer_no_memory(const wk_writer *w)
{
    return wk_fail(WK_ERR_MEMORY, "%s: out of memory", w->call);
}

/* Where the file really is: behind a symbolic link that is the link's target, which rename would replace. */
static wk_status find_target(wk_writer *w, bool *direct)
{
    struct stat info;
    *direct = stat(w->path, &info) == 0 && !S_ISREG(info.st_mode);
    char *real = realpath(w->path, NULL);
    const char *target = real ? real : w->path;
    w->target = wk_alloc(strlen(target) + 1);
    if (w->target)
        strcpy(w->target, target);
    free(real);
    return w->target ? WK_OK : writer_no_memory(w);
}

/* A name that no one else uses: O_EXCL says so. Mode 0666 leaves the permissions to the umask. */
static wk_status make_temporary(wk_writer *w)
{
    static atomic_uint counter;
    size_t room = strlen(w->target) + 32;
    w->temporary = wk_alloc(room);
    if (!w->temporary)
        return writer_no_memory(w);
    do {
        snprintf(w->temporary, room, "%s.%ld.%u.tmp", w->target, (long)getpid(),
                 atomic_fetch_add(&counter, 1));
        w->fd = open(w->temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    } while (w->fd < 0 && errno == EEXIST);
    if (w->fd >= 0)
        return WK_OK;
    int error = errno;
    wk_free(w->temporary);
    w->temporary = NULL;
    return fail_io(w->call, w->path, "cannot make a file there", error);
}

static wk_status open_target(wk_writer *w)
{
    bool direct;
    WK_TRY(find_target(w, &direct));
    if (!direct)
        return make_temporary(w);
    w->fd = open(w->target, O_WRONLY | O_CLOEXEC);
    return w->fd >= 0 ? WK_OK : fail_io(w->call, w->path, "cannot open it for writing", errno);
}

wk_status wk_writer_open(wk_writer *w, const char *call, const char *path)
{
    *w = (wk_writer){.call = call, .path = path, .fd = -1};
    if (wk_pending())
        return wk_error_status();
    if (!path)
        return wk_fail(WK_ERR_ARGUMENT, "%s: path: expected a file name, got NULL", call);
    wk_status status = open_target(w);
    return status == WK_OK ? WK_OK : wk_writer_close(w, status);
}

wk_status wk_writer_write(wk_writer *w, const void *data, size_t bytes)
{
    const char *at = data;
    while (bytes > 0) {
        ssize_t n = write(w->fd, at, bytes < 1u << 30 ? bytes : 1u << 30);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return fail_io(w->call, w->path, "cannot write", errno);
        at += n;
        bytes -= (size_t)n;
    }
    return WK_OK;
}

static wk_status write_packed(wk_writer *w, const wk_tensor *p, size_t bytes)
{
    if (p->storage->device->kind == WK_KIND_CPU)
        return wk_writer_write(w, wk_ptr(p), bytes);
    void *host = wk_block_alloc(bytes);
    if (!host)
        return writer_no_memory(w);
    wk_status status = wk_to_host(p, host);
    if (status == WK_OK)
        status = wk_writer_write(w, host, bytes);
    wk_block_free(host, bytes);
    return status;
}

wk_status wk_writer_tensor(wk_writer *w, const wk_tensor *t)
{
    if (wk_count(t) == 0)
        return WK_OK;
    wk_scope_begin();
    const wk_tensor *p = wk_pending() ? NULL : wk_tensor_packed(t);
    wk_status status = wk_error_status();
    if (p)
        status = write_packed(w, p, (size_t)wk_count(p) * wk_bytes(p->dtype));
    wk_scope_end();
    return status;
}

wk_status wk_writer_close(wk_writer *w, wk_status status)
{
    if (w->fd >= 0 && close(w->fd) != 0 && status == WK_OK)
        status = fail_io(w->call, w->path, "cannot write", errno);
    if (w->temporary && status == WK_OK && rename(w->temporary, w->target) != 0)
        status = fail_io(w->call, w->path, "cannot replace it", errno);
    if (w->temporary && status != WK_OK)
        unlink(w->temporary);
    wk_free(w->temporary);
    wk_free(w->target);
    *w = (wk_writer){.fd = -1};
    return status;
}
