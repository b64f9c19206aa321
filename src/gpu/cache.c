/* cache.c: compiled kernels on disk, one file each: DIR/kernels/ARCH/NAME-KEY.
 *
 * A file is magic, sizes, a checksum, the key's text and the code. It is written beside its place and renamed, so that
 * a reader sees all of it or nothing, whoever else writes; one that is cut, damaged or of another key is taken for
 * missing. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>
#include "core/memory.h"
#include "runtime.h"

typedef struct {
    char magic[8];
    u64 key_bytes, code_bytes, sum;
} header;
static const char magic[8] = "WKCODE1";

static bool file_path(char *path, size_t room, const char *arch, const char *name, const wk_cache_key *key)
{
    char folder[512], plain[96];
    size_t n = 0;
    wk_cache_folder(folder, sizeof folder);
    for (const char *s = name; *s && n + 1 < sizeof plain; s++)
        plain[n++] = strchr("<>, ", *s) ? '-' : *s;
    plain[n] = 0;
    u64 h = wk_hash(WK_HASH_START, key->text, strlen(key->text));
    int length = snprintf(path, room, "%s/kernels/%s/%s%016llx", folder, arch, plain, (unsigned long long)h);
    return folder[0] && length > 0 && (size_t)length < room;
}

static void *read_checked(FILE *f, const wk_cache_key *key, size_t *bytes)
{
    header h;
    char text[sizeof key->text];
    size_t key_bytes = strlen(key->text);
    if (fread(&h, sizeof h, 1, f) != 1 || memcmp(h.magic, magic, sizeof magic) != 0 ||
        h.key_bytes != key_bytes || h.code_bytes == 0 || h.code_bytes > (u64)1 << 30 ||
        fread(text, 1, key_bytes, f) != key_bytes || memcmp(text, key->text, key_bytes) != 0)
        return NULL;
    *bytes = (size_t)h.code_bytes;
    void *code = wk_alloc(*bytes);
    if (code && fread(code, 1, *bytes, f) == *bytes && fgetc(f) == EOF &&
        wk_hash(wk_hash(0, text, key_bytes), code, *bytes) == h.sum)
        return code;
    wk_free(code);
    return NULL;
}

void *wk_cache_read(const char *arch, const char *name, const wk_cache_key *key, size_t *bytes)
{
    char path[900];
    FILE *f = file_path(path, sizeof path, arch, name, key) ? fopen(path, "rb") : NULL;
    if (!f)
        return NULL;
    void *code = read_checked(f, key, bytes);
    fclose(f);
    if (!code)
        wk_say("the cached kernel %s is damaged: it is made again", path);
    return code;
}

static bool write_all(FILE *f, const wk_cache_key *key, const void *code, size_t bytes)
{
    size_t key_bytes = strlen(key->text);
    header h = {.key_bytes = key_bytes,
                .code_bytes = bytes,
                .sum = wk_hash(wk_hash(0, key->text, key_bytes), code, bytes)};
    memcpy(h.magic, magic, sizeof magic);
    return fwrite(&h, sizeof h, 1, f) == 1 && fwrite(key->text, 1, key_bytes, f) == key_bytes &&
           fwrite(code, 1, bytes, f) == bytes;
}

void wk_cache_write(const char *arch, const char *name, const wk_cache_key *key, const void *code,
                    size_t bytes)
{
    char path[900], fresh[940];
    if (!file_path(path, sizeof path, arch, name, key))
        return;
    wk_make_folders(path);
    snprintf(fresh, sizeof fresh, "%s.XXXXXX", path);
    int fd = mkstemp(fresh);
    FILE *f = fd >= 0 ? fdopen(fd, "wb") : NULL;
    bool good = f && write_all(f, key, code, bytes);
    int why = errno;
    if (f && fclose(f) != 0)
        good = false;
    else if (!f && fd >= 0)
        close(fd);
    if (good && rename(fresh, path) == 0)
        return;
    if (fd >= 0)
        unlink(fresh);
    wk_say("the kernel %s is not kept in %s: %s", name, path, strerror(why));
}
