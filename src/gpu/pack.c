/* pack.c: packs of code objects, read and written. */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>
#include "core/memory.h"
#include "pack.h"

static const char magic[8] = "WKPACK1";
enum { MOST_ITEMS = 1 << 20 };

typedef struct {
    char magic[8], arch[24];
    u64 count, texts; /* instances; bytes of the keys' texts */
    u64 sum;          /* of the header up to here, the index and the texts */
} header;

typedef struct {
    u64 hash, text;         /* of the key; where its text begins among the texts */
    u64 offset, bytes, sum; /* of the code, in the file */
} item;

static u64 hash_key(const char *text) { return wk_hash(WK_HASH_START, text, strlen(text)); }

/* ---- reading ---- */

typedef struct pack {
    struct pack *next;
    char arch[24];
    int fd;
    u64 count;
    item *items;
    char *texts; /* behind the items */
} pack;

/* NULL, or why the file is no pack of the architecture. */
static const char *read_index(pack *p, u64 file_bytes)
{
    header h;
    if (pread(p->fd, &h, sizeof h, 0) != (ssize_t)sizeof h || memcmp(h.magic, magic, sizeof magic) != 0)
        return "no pack of kernels";
    if (memchr(h.arch, 0, sizeof h.arch) == NULL || strcmp(h.arch, p->arch) != 0)
        return "of another architecture";
    if (h.count > MOST_ITEMS || h.texts > (u64)MOST_ITEMS * sizeof(wk_cache_key))
        return "damaged";
    size_t bytes = (size_t)(h.count * sizeof(item) + h.texts);
    if (sizeof h + bytes > file_bytes)
        return "cut short";
    if (!(p->items = wk_alloc(bytes + 1)))
        return "too large for the memory";
    p->texts = (char *)(p->items + h.count);
    p->count = h.count;
    if (pread(p->fd, p->items, bytes, sizeof h) != (ssize_t)bytes)
        return "cut short";
    p->texts[h.texts] = 0;
    if (wk_hash(wk_hash(0, &h, offsetof(header, sum)), p->items, bytes) != h.sum)
        return "damaged";
    for (u64 i = 0; i < h.count; i++) {
        const item *it = &p->items[i];
        if (it->text > h.texts || it->offset > file_bytes || it->bytes > file_bytes - it->offset)
            return "cut short";
    }
    return NULL;
}

static void close_pack(pack *p)
{
    if (p->fd >= 0)
        close(p->fd);
    wk_free(p->items);
    wk_free(p);
}

/* NULL with *why set when it cannot be read; without when there is no such file. */
static pack *open_pack(const char *path, const char *arch, const char **why)
{
    struct stat st;
    pack *p = wk_alloc(sizeof *p);
    *why = "out of memory";
    if (!p)
        return NULL;
    *p = (pack){.fd = open(path, O_RDONLY | O_CLOEXEC)};
    snprintf(p->arch, sizeof p->arch, "%s", arch);
    if (p->fd < 0)
        *why = errno == ENOENT || errno == ENOTDIR ? NULL : strerror(errno);
    else
        *why = fstat(p->fd, &st) == 0 && S_ISREG(st.st_mode) ? read_index(p, (u64)st.st_size) : "no file";
    if (p->fd >= 0 && !*why)
        return p;
    close_pack(p);
    return NULL;
}

static const item *find_item(const pack *p, const wk_cache_key *key)
{
    u64 hash = hash_key(key->text), low = 0, high = p->count;
    while (low < high) {
        u64 middle = low + (high - low) / 2;
        if (p->items[middle].hash < hash)
            low = middle + 1;
        else
            high = middle;
    }
    for (; low < p->count && p->items[low].hash == hash; low++) {
        if (strcmp(p->texts + p->items[low].text, key->text) == 0)
            return &p->items[low];
    }
    return NULL;
}

/* NULL when the code cannot be read or is not what was written. */
static void *read_code(const pack *p, const item *it)
{
    void *code = wk_alloc((size_t)it->bytes + 1);
    if (code && pread(p->fd, code, (size_t)it->bytes, (off_t)it->offset) == (ssize_t)it->bytes &&
        wk_hash(0, code, (size_t)it->bytes) == it->sum)
        return code;
    wk_free(code);
    return NULL;
}

wk_status wk_pack_check(const char *path, const char *arch, int *n)
{
    const char *why;
    pack *p = open_pack(path, arch, &why);
    *n = -1;
    if (!p)
        return why ? wk_fail(WK_ERR_FORMAT, "%s: expected a pack for %s: it is %s", path, arch, why) : WK_OK;
    wk_status status = WK_OK;
    for (u64 i = 0; i < p->count && status == WK_OK; i++) {
        void *code = read_code(p, &p->items[i]);
        if (!code)
            status = wk_fail(WK_ERR_FORMAT, "%s: kernel %d is damaged", path, (int)i);
        wk_free(code);
    }
    *n = (int)p->count;
    close_pack(p);
    return status;
}

/* ---- the packs of this process ---- */

/* PREFIX/share/wick/kernels, PREFIX from where the library or the program lies: PREFIX/lib/libwick.so, PREFIX/bin/wick. */
static void beside_library(char *folder, size_t room)
{
    Dl_info info;
    folder[0] = 0;
    if (!dladdr((const void *)magic, &info) || !info.dli_fname)
        return;
    char *path = realpath(info.dli_fname, NULL);
    for (int up = 0; path && up < 2; up++) {
        char *slash = strrchr(path, '/');
        if (slash)
            *slash = 0;
    }
    if (path)
        snprintf(folder, room, "%s/share/wick/kernels", path);
    free(path);
}

bool wk_pack_folder(int i, char *folder, size_t room)
{
    const char *own = getenv("WICK_KERNELS");
    if (i == 0)
        snprintf(folder, room, "%s", own ? own : "");
    else if (i == 1)
        beside_library(folder, room);
    else
        snprintf(folder, room, "%s", WK_KERNELS_FOLDER);
    return i < 3;
}

static pack *load_packs(const char *arch)
{
    char folder[512], path[700];
    pack *list = NULL, **end = &list;
    for (int i = 0; wk_pack_folder(i, folder, sizeof folder); i++) {
        const char *why;
        if (!folder[0])
            continue;
        snprintf(path, sizeof path, "%s/%s.wkpack", folder, arch);
        pack *p = open_pack(path, arch, &why);
        if (p) {
            *end = p;
            end = &p->next;
        } else if (why) {
            wk_say("%s is not used: it is %s", path, why);
        }
    }
    return list;
}

/* Those of an architecture, looked for once; they stay open. */
static pack *packs_of(const char *arch)
{
    enum { ARCHS = 16 };
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    static struct {
        char arch[24];
        pack *list;
    } loaded[ARCHS];
    pack *list = NULL;
    pthread_mutex_lock(&lock);
    int i = 0;
    while (i < ARCHS && loaded[i].arch[0] && strcmp(loaded[i].arch, arch) != 0)
        i++;
    if (i < ARCHS && !loaded[i].arch[0]) {
        snprintf(loaded[i].arch, sizeof loaded[i].arch, "%s", arch);
        loaded[i].list = load_packs(arch);
    }
    if (i < ARCHS)
        list = loaded[i].list;
    pthread_mutex_unlock(&lock);
    return list;
}

void *wk_pack_read(const char *arch, const wk_cache_key *key, size_t *bytes)
{
    for (const pack *p = packs_of(arch); p; p = p->next) {
        const item *it = find_item(p, key);
        void *code = it ? read_code(p, it) : NULL;
        if (code) {
            *bytes = (size_t)it->bytes;
            return code;
        }
        if (it)
            wk_say("a kernel in the pack for %s is damaged: it is not used", arch);
    }
    return NULL;
}

/* ---- writing ---- */

static int by_hash(const void *a, const void *b)
{
    u64 x = hash_key(((const wk_pack_item *)a)->key.text), y = hash_key(((const wk_pack_item *)b)->key.text);
    return x < y ? -1 : x > y;
}

/* The index with the texts behind it; NULL without memory. */
static char *make_index(const wk_pack_item *items, int n, u64 *bytes, u64 *texts)
{
    *texts = 0;
    for (int i = 0; i < n; i++)
        *texts += strlen(items[i].key.text) + 1;
    *bytes = (u64)n * sizeof(item) + *texts;
    char *index = wk_alloc((size_t)*bytes + 1);
    if (!index)
        return NULL;
    char *text = index + (size_t)n * sizeof(item);
    u64 offset = sizeof(header) + *bytes, at = 0;
    for (int i = 0; i < n; i++) {
        size_t length = strlen(items[i].key.text) + 1;
        item it = {hash_key(items[i].key.text), at, offset, items[i].bytes,
                   wk_hash(0, items[i].code, items[i].bytes)};
        memcpy(index + (size_t)i * sizeof it, &it, sizeof it);
        memcpy(text + at, items[i].key.text, length);
        at += length;
        offset += items[i].bytes;
    }
    return index;
}

static bool write_pack(FILE *f, const header *h, const char *index, u64 index_bytes,
                       const wk_pack_item *items)
{
    bool good = fwrite(h, sizeof *h, 1, f) == 1 && fwrite(index, 1, (size_t)index_bytes, f) == index_bytes;
    for (u64 i = 0; i < h->count && good; i++)
        good = fwrite(items[i].code, 1, items[i].bytes, f) == items[i].bytes;
    return good && fflush(f) == 0;
}

wk_status wk_pack_writable(const char *folder)
{
    char path[700];
    snprintf(path, sizeof path, "%s/", folder);
    wk_make_folders(path);
    return access(path, W_OK | X_OK) == 0
               ? WK_OK
               : wk_fail(WK_ERR_IO, "%s: expected a folder to write to: %s", folder, strerror(errno));
}

wk_status wk_pack_write(const char *folder, const char *arch, wk_pack_item *items, int n)
{
    char path[700], fresh[720];
    header h = {.count = (u64)n};
    u64 index_bytes;
    memcpy(h.magic, magic, sizeof magic);
    snprintf(h.arch, sizeof h.arch, "%s", arch);
    int length = snprintf(path, sizeof path, "%s/%s.wkpack", folder, arch);
    if (length < 0 || (size_t)length >= sizeof path)
        return wk_fail(WK_ERR_ARGUMENT, "%.60s...: expected a shorter path", folder);
    qsort(items, (size_t)n, sizeof *items, by_hash);
    char *index = make_index(items, n, &index_bytes, &h.texts);
    if (!index)
        return wk_fail(WK_ERR_MEMORY, "%s: out of memory", path);
    h.sum = wk_hash(wk_hash(0, &h, offsetof(header, sum)), index, (size_t)index_bytes);
    wk_make_folders(path);
    snprintf(fresh, sizeof fresh, "%s.XXXXXX", path);
    int fd = mkstemp(fresh);
    FILE *f = fd >= 0 ? fdopen(fd, "wb") : NULL;
    bool good = f && write_pack(f, &h, index, index_bytes, items) && fchmod(fd, 0644) == 0;
    int why = errno;
    if (f && fclose(f) != 0)
        good = false;
    else if (!f && fd >= 0)
        close(fd);
    wk_free(index);
    if (good && rename(fresh, path) == 0)
        return WK_OK;
    if (fd >= 0)
        unlink(fresh);
    return wk_fail(WK_ERR_IO, "%s: cannot be written: %s", path, strerror(why));
}
