/* shards.h: the files that a model's weights are in. */
#ifndef WM_SHARDS_H
#define WM_SHARDS_H

#include <stdbool.h>

enum { WM_SHARDS = 512 };

typedef struct {
    char *paths[WM_SHARDS];
    int n;
} wm_shards;

/* Of a folder model.safetensors, the files of model.safetensors.index.json, or model*.safetensors; of anything else the
 * path itself. False with an error that names what is wrong; wm_shards_free in any case. */
bool wm_shards_find(wm_shards *l, const char *path);
void wm_shards_free(wm_shards *l);

#endif
