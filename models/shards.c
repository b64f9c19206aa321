/* shards.c: the files that a model's weights are in. */
#include "shards.h"
#include <dirent.h>
#include <stdlib.h>
#include <string.h>
#include "config.h"
#include "error.h"
#include "file.h"

static bool add_path(wm_shards *l, const char *folder, const char *name)
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
    if (l->n == WM_SHARDS) {
        free(path);
        return wm_fail(WK_ERR_FORMAT, "%s: more than %d files of weights", folder, WM_SHARDS), false;
    }
    l->paths[l->n++] = path;
    return true;
}

/* {"weight_map": {"NAME": "FILE", ...}} */
static bool read_index(wm_shards *l, const char *folder, const char *name)
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

static bool list_folder(wm_shards *l, const char *folder)
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
    return wm_error_status() == WK_OK;
}

/* In the order of their names, which is the model's: an index begins with the last file, where lm_head is. */
static bool list_files(wm_shards *l, const char *folder)
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
    qsort(l->paths, (size_t)l->n, sizeof *l->paths, by_text);
    free(first);
    free(second);
    return fine;
}

bool wm_shards_find(wm_shards *l, const char *path)
{
    l->n = 0;
    if (wm_is_folder(path))
        return list_files(l, path);
    l->paths[0] = strdup(path);
    if (!l->paths[0])
        return wm_fail(WK_ERR_MEMORY, "%s: out of memory", path), false;
    l->n = 1;
    return true;
}

void wm_shards_free(wm_shards *l)
{
    for (int i = 0; i < l->n; i++)
        free(l->paths[i]);
    l->n = 0;
}
