/* safetensors.c: weights from one safetensors file or several, and which files those are. */
#include <dirent.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "config.h"
#include "error.h"
#include "file.h"
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

/* ---- which files ---- */

enum { MAX_FILES = 512 };

typedef struct {
    char *paths[MAX_FILES];
    int n;
} path_list;

static bool add_path(path_list *l, const char *folder, const char *name)
{
    char *path = wm_path(folder, name);
    if (!path)
        return false;
    for (int i = 0; i < l->n; i++) {
        if (strcmp(l->paths[i], path) == 0) {
            free(path);
            return true;
        }
    }
    if (l->n == MAX_FILES) {
        free(path);
        return wm_fail(WK_ERR_FORMAT, "%s: more than %d files of weights", folder, MAX_FILES), false;
    }
    l->paths[l->n++] = path;
    return true;
}

/* {"weight_map": {"NAME": "FILE", ...}} */
static bool read_index(path_list *l, const char *folder, const char *name)
{
    wm_config *c = wm_config_open(folder, name);
    wk_json j;
    wk_json_raw key, raw;
    char file[256];
    if (!c)
        return false;
    bool fine = wm_config_find(c, "weight_map", &j) && wk_json_enter(&j, '{');
    while (fine && wk_json_more(&j)) {
        fine = wk_json_key(&j, &key) && wk_json_string(&j, &raw) && raw.size < sizeof file;
        if (fine)
            wk_json_unescape(raw, file);
        if (fine && (strchr(file, '/') || !add_path(l, folder, file)))
            fine = false;
    }
    if (!fine || l->n == 0)
        wm_fail(WK_ERR_FORMAT, "%s: weight_map: expected the names of files for the names of tensors",
                wm_config_path(c));
    wm_config_close(c);
    return wm_error_status() == WK_OK;
}

static int by_text(const void *a, const void *b) { return strcmp(*(char *const *)a, *(char *const *)b); }

static bool list_folder(path_list *l, const char *folder)
{
    static const char begin[] = "model", end[] = ".safetensors";
    DIR *d = opendir(folder);
    bool fine = d != NULL;
    for (struct dirent *e; fine && (e = readdir(d));) {
        size_t n = strlen(e->d_name);
        if (n >= sizeof begin + sizeof end - 2 && strncmp(e->d_name, begin, sizeof begin - 1) == 0 &&
            strcmp(e->d_name + n - (sizeof end - 1), end) == 0)
            fine = add_path(l, folder, e->d_name);
    }
    if (d)
        closedir(d);
    if (l->n == 0)
        wm_fail(WK_ERR_IO,
                "%s: expected model.safetensors, model.safetensors.index.json or model*.safetensors", folder);
    qsort(l->paths, (size_t)l->n, sizeof *l->paths, by_text);
    return wm_error_status() == WK_OK;
}

static bool find_files(path_list *l, const char *folder)
{
    static const char single[] = "model.safetensors", index[] = "model.safetensors.index.json";
    char *first = wm_path(folder, single), *second = wm_path(folder, index);
    bool fine = first && second;
    if (fine && wm_file_exists(first))
        fine = add_path(l, folder, single);
    else if (fine && wm_file_exists(second))
        fine = read_index(l, folder, index);
    else if (fine)
        fine = list_folder(l, folder);
    free(first);
    free(second);
    return fine;
}

static void free_paths(path_list *l)
{
    for (int i = 0; i < l->n; i++)
        free(l->paths[i]);
}

void wm_weights_ask(const char *path)
{
    const off_t first = 512 << 20;
    path_list l = {.n = 0};
    if (wm_is_folder(path))
        find_files(&l, path);
    int file = open(l.n ? l.paths[0] : path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    if (file >= 0) {
        posix_fadvise(file, 0, first, POSIX_FADV_WILLNEED);
        close(file);
    }
    free_paths(&l);
    wm_error_clear(); /* loading will find it again */
}

wm_weights *wm_weights_open(const char *path, wk_device *device, const wm_progress *progress)
{
    path_list l = {.n = 0};
    wm_source *source = NULL;
    if (!wm_is_folder(path))
        source = wm_safetensors_source(1, (char *[]){(char *)path});
    else if (find_files(&l, path))
        source = wm_safetensors_source(l.n, l.paths);
    free_paths(&l);
    return wm_weights_over(path, source, device, progress);
}
