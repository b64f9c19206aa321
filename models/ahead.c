/* ahead.c: threads that bring a model's files in piece by piece, in order.
 *
 * Each waits for its piece before it takes the next: some megabytes on their way keep a disk as busy as it can be, and a
 * longer queue would only keep others waiting in it, the device's own libraries above all. */
#include "ahead.h"
#include <fcntl.h>
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>
#include "error.h"
#include "shards.h"

enum { READERS = 3, PIECE = 4 << 20 };

struct wm_ahead {
    wm_shards files;
    pthread_mutex_t lock;
    pthread_t readers[READERS];
    int running;
    /* under the lock: the next piece */
    int file, fd;
    off_t at, size;
    int64_t left; /* what may still be asked for */
};

/* More than half of memory would drive out pages that wait for their turn. */
static int64_t most_bytes(void) { return (int64_t)sysconf(_SC_PHYS_PAGES) * sysconf(_SC_PAGESIZE) / 2; }

/* Opens the next file that can be; false behind the last. */
static bool open_next(wm_ahead *a)
{
    struct stat s;
    if (a->fd >= 0)
        close(a->fd);
    a->fd = -1;
    a->at = a->size = 0;
    if (a->file == a->files.n)
        return false;
    a->fd = open(a->files.paths[a->file++], O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    if (a->fd >= 0 && fstat(a->fd, &s) == 0 && S_ISREG(s.st_mode))
        a->size = s.st_size;
    return true;
}

/* The next piece's file, which is the caller's, and where it begins; -1 when there is none left. */
static int take_piece(wm_ahead *a, off_t *at)
{
    int fd = -1;
    pthread_mutex_lock(&a->lock);
    while (a->at >= a->size && open_next(a))
        ;
    if (a->at < a->size && a->left > 0)
        fd = fcntl(a->fd, F_DUPFD_CLOEXEC, 0);
    *at = a->at;
    a->at += PIECE;
    a->left -= PIECE;
    pthread_mutex_unlock(&a->lock);
    return fd;
}

/* Asks for all its pages at once, which costs nothing where they are there already, and waits for the last of each
 * megabyte. */
static void bring_in(int fd, off_t at)
{
    char byte;
    const off_t step = 1 << 20, end = at + PIECE;
    posix_fadvise(fd, at, PIECE, POSIX_FADV_WILLNEED);
    while (at < end && pread(fd, &byte, 1, at + step - 1) == 1)
        at += step;
}

static void *read_pieces(void *data)
{
    wm_ahead *a = data;
    off_t at;
    for (int fd; (fd = take_piece(a, &at)) >= 0; close(fd))
        bring_in(fd, at);
    return NULL;
}

wm_ahead *wm_ahead_start(const char *path)
{
    wm_ahead *a = calloc(1, sizeof *a);
    if (!a)
        return NULL;
    a->fd = -1;
    a->left = most_bytes();
    pthread_mutex_init(&a->lock, NULL);
    wm_shards_find(&a->files, path);
    wm_error_clear(); /* loading will find it again */
    while (a->running < READERS && pthread_create(&a->readers[a->running], NULL, read_pieces, a) == 0)
        a->running++;
    return a;
}

void wm_ahead_stop(wm_ahead *a)
{
    if (!a)
        return;
    pthread_mutex_lock(&a->lock);
    a->left = 0;
    pthread_mutex_unlock(&a->lock);
    for (int i = 0; i < a->running; i++)
        pthread_join(a->readers[i], NULL);
    if (a->fd >= 0)
        close(a->fd);
    pthread_mutex_destroy(&a->lock);
    wm_shards_free(&a->files);
    free(a);
}
