/* pack.h: code objects built ahead, one file for each architecture: FOLDER/gfx90a.wkpack.
 *
 * A pack is a header, an index sorted by key, the keys' texts and the code objects. The key of an instance is what its
 * code depends on but for the compiler's version: a pack serves whoever has the same sources. */
#ifndef WK_GPU_PACK_H
#define WK_GPU_PACK_H

#include "runtime.h"

/* An instance's code out of the packs in $WICK_KERNELS and in the installation's share/wick/kernels, from wk_alloc; NULL
 * when there is none. A damaged pack is told to the log and passed over. */
void *wk_pack_read(const char *arch, const wk_cache_key *key, size_t *bytes);

typedef struct {
    wk_cache_key key;
    const void *code;
    size_t bytes;
} wk_pack_item;
/* Writes FOLDER/ARCH.wkpack, whole or not at all; the folder is made where it is missing. Sorts the items. */
wk_status wk_pack_write(const char *folder, const char *arch, wk_pack_item *items, int n);

/* Fails when no pack could be written there; makes the folder where it is missing. */
wk_status wk_pack_writable(const char *folder);

/* Reads every byte of a pack: fails when it is cut, changed or of another architecture. n: its instances; -1 when there
 * is no such file, which is no failure. */
wk_status wk_pack_check(const char *path, const char *arch, int *n);

/* The i-th folder packs are looked for in, the first one first; false past the last. One may be empty: "". */
bool wk_pack_folder(int i, char *folder, size_t room);

#endif
