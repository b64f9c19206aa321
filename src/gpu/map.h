/* map.h: elementwise ops on the GPU. A formula (a struct f_NAME in the family's .hip file) does the arithmetic, the
 * engine walks any layout. */
#ifndef WK_GPU_MAP_H
#define WK_GPU_MAP_H

#include "gpu.h"
#include "kernels/map.h"

typedef struct {
    const wk_kernel *kernel;         /* WK_MAP_KERNEL of the family's file */
    const char *formula;             /* "f_exp" */
    const wk_tensor *in[WK_MAP_MAX]; /* each of the output's shape, or broadcast to it */
    int n_in;
    wk_tensor *out; /* packed */
    double f[3];    /* numbers for the formula, in both kinds */
    i64 n[3];
    int slot; /* of the input an error of the data is about */
} wk_gpu_map;

#define WK_MAP_KERNEL(family) \
    { \
        .file = family, .name = "map", .args = "map_args", .threads = 256, .formula = true, .types = 4, \
        .ints = 3 \
    }

wk_status wk_gpu_map_run(const wk_call *c, const wk_gpu_map *m);

/* ---- for engines like this one ---- */

enum { WK_WALK_INPUTS = 8 };
typedef struct {
    int rank;
    int64_t shape[WK_MAX_RANK], strides[WK_WALK_INPUTS][WK_MAX_RANK]; /* neighbouring dimensions joined */
    bool packed;                                                      /* every input packed or one element */
} wk_map_walk;

/* How n inputs are walked in the order of out. */
void wk_map_plan(const wk_tensor *const *in, int n, const wk_tensor *out, wk_map_walk *w);
/* Elements a thread takes at once: 16 bytes of the widest dtype, where every address allows it. */
int wk_map_width(const wk_tensor *const *in, int n, const wk_tensor *out, const wk_map_walk *w);
/* A large input walked across its memory order (a transposed matrix) is cheaper to copy first, through tiles in shared
 * memory, than to gather. */
bool wk_map_better_packed(const wk_tensor *t);

/* Strides of t as seen in the shape of out: 0 for the dimensions it is broadcast over. */
void wk_broadcast_strides(const wk_tensor *t, const wk_tensor *out, int64_t *strides);

#endif
