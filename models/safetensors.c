/* safetensors.c: weights from one safetensors file or several. */
#include <stdlib.h>
#include <string.h>
#include "error.h"
#include "shards.h"
#include "weights.h"

/* ---- the source: tensors are numbered through all files ---- */

typedef struct {
    char *path;
    wk_safetensors *file;
    int64_t first; /* number of its first tensor */
} part;

typedef struct {
    wm_source base;
    part *parts;
    int n;
} files;

static const part *part_of(const files *f, int64_t i)
{
    int p = f->n - 1;
    while (p > 0 && f->parts[p].first > i)
        p--;
    return &f->parts[p];
}

static int64_t find(const wm_source *s, const char *name)
{
    const files *f = (const files *)s;
    for (int p = 0; p < f->n; p++) {
        int64_t i = wk_safetensors_find(f->parts[p].file, name);
        if (i >= 0)
            return f->parts[p].first + i;
    }
    return -1;
}

static const char *where(const wm_source *s, int64_t i) { return part_of((const files *)s, i)->path; }

static wk_tensor *tensor(wm_source *s, int64_t i)
{
    const part *p = part_of((const files *)s, i);
    return wk_safetensors_tensor(p->file, i - p->first);
}

static void close_files(wm_source *s)
{
    files *f = (files *)s;
    for (int i = 0; i < f->n; i++) {
        wk_safetensors_close(f->parts[i].file);
        free(f->parts[i].path);
    }
    free(f->parts);
    free(f);
}

static bool open_part(files *f, const char *path)
{
    part *p = &f->parts[f->n++];
    *p = (part){.path = strdup(path), .first = f->base.count};
    if (!p->path)
        return wm_fail(WK_ERR_MEMORY, "%s: out of memory", path), false;
    p->file = wk_safetensors_open(path);
    if (!p->file)
        return false;
    f->base.count += wk_safetensors_count(p->file);
    return true;
}

wm_source *wm_safetensors_source(int n, char *const *paths)
{
    files *f = calloc(1, sizeof *f);
    part *parts = calloc((size_t)n, sizeof *parts);
    if (!f || !parts) {
        wm_fail(WK_ERR_MEMORY, "%s: out of memory", paths[0]);
        free(f);
        free(parts);
        return NULL;
    }
    *f = (files){.base = {0, find, where, tensor, wm_pages_copied, close_files, NULL}, .parts = parts};
    for (int i = 0; i < n; i++) {
        if (!open_part(f, paths[i])) {
            close_files(&f->base);
            return NULL;
        }
    }
    return &f->base;
}

wm_weights *wm_weights_open(const char *path, wk_device *device, const wm_progress *progress)
{
    wm_shards l;
    wm_source *source = wm_shards_find(&l, path) ? wm_safetensors_source(l.n, l.paths) : NULL;
    wm_shards_free(&l);
    return wm_weights_over(path, source, device, progress);
}
