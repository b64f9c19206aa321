/* weights.h: a model's weights by name: each on a device, in a dtype, of the shape the model expects.
 *
 * Files are memory-mapped. On the CPU a tensor of the wanted dtype is a view on its file, without a copy; otherwise it is
 * copied or converted, and its pages of the file are given back at once, so that loading holds little more than the
 * weights themselves. */
#ifndef WM_WEIGHTS_H
#define WM_WEIGHTS_H

#include <stdbool.h>
#include <wick/wick.h>

/* Where weights come from; safetensors is one source. Tensors are numbered from 0 to count - 1. */
typedef struct wm_source wm_source;
struct wm_source {
    int64_t count;
    /* The tensor of that name; -1, without an error, when there is none. */
    int64_t (*find)(const wm_source *s, const char *name);
    /* The file that tensor i is in, for messages. */
    const char *(*where)(const wm_source *s, int64_t i);
    /* Tensor i on the CPU, packed; the caller's. NULL with an error. */
    wk_tensor *(*tensor)(wm_source *s, int64_t i);
    /* A tensor of that source has been copied: what of it is cached may go, and what follows may come. */
    void (*copied)(wm_source *s, const wk_tensor *t);
    void (*close)(wm_source *s);
    /* How tensor i is quantised; WK_QFORMAT_COUNT: it is not. NULL: none is. */
    wk_qformat (*format)(const wm_source *s, int64_t i);
};

/* Told of each tensor as it is loaded; false stops the loading. */
typedef struct {
    bool (*show)(void *ctx, int64_t done, int64_t total, const char *name);
    void *ctx;
} wm_progress;

typedef struct wm_weights wm_weights;

/* Opens a safetensors file, or in a folder model.safetensors, the files of model.safetensors.index.json, or
 * model*.safetensors. progress may be NULL. NULL with an error that names the file. */
wm_weights *wm_weights_open(const char *path, wk_device *device, const wm_progress *progress);
/* Over a source, which is closed with it, on failure too; name is for messages. */
wm_weights *wm_weights_over(const char *name, wm_source *source, wk_device *device,
                            const wm_progress *progress);
/* Tensors taken from it stay valid. NULL is fine. */
void wm_weights_close(wm_weights *w);

bool wm_weights_has(const wm_weights *w, const char *name);
/* The size of a dim of a tensor, for what a config leaves open; -1, without an error, when there is none. */
int64_t wm_weights_dim(const wm_weights *w, const char *name, int dim);
/* The tensor on the device in that float dtype; the caller's (or the scope's). A size of -1 fits any. NULL with an error
 * that names file, tensor, and the shape expected and found. */
wk_tensor *wm_weights_get(wm_weights *w, const char *name, wk_dtype dtype, int rank, const int64_t *shape);
/* The same into a part of a larger tensor, of dst's shape and dtype. */
bool wm_weights_into(wm_weights *w, const char *name, wk_tensor *dst);

/* How a tensor is quantised; WK_QFORMAT_COUNT where it is not, or is not there. */
wk_qformat wm_weights_format(const wm_weights *w, const char *name);
/* A matrix [rows, columns] on the device: its blocks, as wk_qlinear takes them, where it is quantised, else floats of the
 * dtype. *format says which. */
wk_tensor *wm_weights_matrix(wm_weights *w, const char *name, wk_dtype dtype, int64_t rows, int64_t columns,
                             wk_qformat *format);

/* What a source over a memory map does when a tensor has been copied: its pages go (the file has them still), and later
 * ones are asked for. */
void wm_pages_copied(wm_source *s, const wk_tensor *t);

/* The source of safetensors files; paths are copied. NULL with an error. */
wm_source *wm_safetensors_source(int n, char *const *paths);

#endif
