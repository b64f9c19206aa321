/* weights.c: a model's weights by name, from any source: found, checked, and brought to the device in a dtype. */
#include "weights.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include "error.h"

struct wm_weights {
    char *name;
    wm_source *source;
    wk_device *device;
    wm_progress progress;
    int64_t done;
    uintptr_t end; /* of the tensor that came last, in its file's map */
};

wm_weights *wm_weights_over(const char *name, wm_source *source, wk_device *device,
                            const wm_progress *progress)
{
    if (!source)
        return NULL;
    wm_weights *w = calloc(1, sizeof *w);
    char *copy = strdup(name);
    if (!w || !copy) {
        wm_fail(WK_ERR_MEMORY, "%s: out of memory", name);
        source->close(source);
        free(w);
        free(copy);
        return NULL;
    }
    *w = (wm_weights){.name = copy, .source = source, .device = device};
    if (progress)
        w->progress = *progress;
    return w;
}

void wm_weights_close(wm_weights *w)
{
    if (!w)
        return;
    w->source->close(w->source);
    free(w->name);
    free(w);
}

bool wm_weights_has(const wm_weights *w, const char *name) { return w->source->find(w->source, name) >= 0; }

int64_t wm_weights_dim(const wm_weights *w, const char *name, int dim)
{
    int64_t i = w->source->find(w->source, name);
    if (i < 0)
        return -1;
    wk_tensor *t = w->source->tensor(w->source, i);
    int64_t size = t ? wk_dim(t, dim) : -1;
    wk_drop(t);
    return size;
}

wk_qformat wm_weights_format(const wm_weights *w, const char *name)
{
    int64_t i = w->source->format ? w->source->find(w->source, name) : -1;
    return i < 0 ? WK_QFORMAT_COUNT : w->source->format(w->source, i);
}

/* ---- the file's pages ---- */

enum { PAGES_AHEAD = 1 << 30 };

/* What the kernel does with the whole pages from begin to end; of those behind the map's end nothing. */
static void advise(uintptr_t begin, uintptr_t end, int advice)
{
    uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
    begin = (begin + page - 1) / page * page;
    end = end / page * page;
    if (begin < end)
        madvise((void *)begin, end - begin, advice);
}

static uintptr_t end_of(const wk_tensor *t)
{
    return (uintptr_t)wk_data(t) + (uintptr_t)wk_count(t) * wk_dtype_size(wk_dtype_of(t));
}

/* Gives the tensor's pages back. What comes a while later in the file is asked for: the disk reads it while the device
 * gets what lies between. */
void wm_pages_copied(wm_source *s, const wk_tensor *t)
{
    (void)s;
    uintptr_t begin = (uintptr_t)wk_data(t), end = end_of(t);
    advise(begin, end, MADV_DONTNEED);
    advise(begin + PAGES_AHEAD, end + PAGES_AHEAD, MADV_WILLNEED);
}

/* Files are often in another order than models are (layer 10 before layer 2): after a jump nobody has asked the disk yet. */
static void ask_after_jump(wm_weights *w, const wk_tensor *t)
{
    const uintptr_t padding = 4096; /* GGUF aligns its tensors */
    uintptr_t begin = (uintptr_t)wk_data(t), end = end_of(t);
    if (begin - w->end > padding)
        advise(begin, end - begin < PAGES_AHEAD ? end : begin + PAGES_AHEAD, MADV_WILLNEED);
    w->end = end;
}

/* ---- checks ---- */

enum { SHAPE_TEXT = 160 };

static const char *shape_text(int rank, const int64_t *shape, char out[SHAPE_TEXT])
{
    int n = snprintf(out, SHAPE_TEXT, "[");
    for (int i = 0; i < rank && n < SHAPE_TEXT - 24; i++) {
        const char *comma = i ? ", " : "";
        n += shape[i] < 0 ? snprintf(out + n, (size_t)(SHAPE_TEXT - n), "%sany", comma)
                          : snprintf(out + n, (size_t)(SHAPE_TEXT - n), "%s%lld", comma, (long long)shape[i]);
    }
    snprintf(out + n, (size_t)(SHAPE_TEXT - n), "]");
    return out;
}

static bool shape_fits(const wk_tensor *t, int rank, const int64_t *shape)
{
    bool fits = wk_rank(t) == rank;
    for (int i = 0; fits && i < rank; i++)
        fits = shape[i] < 0 || shape[i] == wk_dim(t, i);
    return fits;
}

static bool is_float(wk_dtype d) { return d == WK_F32 || d == WK_F16 || d == WK_BF16 || d == WK_F64; }

static bool check_tensor(const char *file, const char *name, const wk_tensor *t, bool blocks, int rank,
                         const int64_t *shape)
{
    char want[SHAPE_TEXT], got[SHAPE_TEXT];
    if (!blocks && !is_float(wk_dtype_of(t)))
        wm_fail(WK_ERR_DTYPE, "%s: tensor '%s': expected a float dtype, got %s", file, name,
                wk_dtype_name(wk_dtype_of(t)));
    else if (!shape_fits(t, rank, shape))
        wm_fail(WK_ERR_SHAPE, "%s: tensor '%s': expected shape %s, got %s", file, name,
                shape_text(rank, shape, want), shape_text(wk_rank(t), wk_shape(t), got));
    else
        return true;
    return false;
}

/* ---- loading ---- */

/* The tensor as it is in its file, checked; *from is its number. blocks: it is quantised, and to be. */
static wk_tensor *find_tensor(wm_weights *w, const char *name, bool blocks, int rank, const int64_t *shape,
                              int64_t *from)
{
    if (wm_error_status() != WK_OK)
        return NULL;
    *from = w->source->find(w->source, name);
    if (*from < 0) {
        wm_fail(WK_ERR_FORMAT, "%s: tensor '%s' is missing", w->name, name);
        return NULL;
    }
    if (w->progress.show && !w->progress.show(w->progress.ctx, ++w->done, w->source->count, name)) {
        wm_fail(WK_ERR_IO, "%s: loading was stopped", w->name);
        return NULL;
    }
    wk_tensor *t = w->source->tensor(w->source, *from);
    if (!t) {
        wm_fail(WK_ERR_IO, "%s: tensor '%s'", w->source->where(w->source, *from), name);
        return NULL;
    }
    if (check_tensor(w->source->where(w->source, *from), name, t, blocks, rank, shape))
        return t;
    wk_drop(t);
    return NULL;
}

/* The tensor on the device in the dtype, in the caller's scope; the narrower of both dtypes travels. */
static wk_tensor *bring(wm_weights *w, wk_tensor *t, wk_dtype dtype)
{
    bool there = wk_device_of(t) == w->device;
    if (!there && wk_dtype_size(dtype) < wk_dtype_size(wk_dtype_of(t)))
        t = wk_cast(t, dtype);
    if (t && !there)
        t = wk_from_host(w->device, wk_dtype_of(t), wk_rank(t), wk_shape(t), wk_data(t));
    return t && wk_dtype_of(t) != dtype ? wk_cast(t, dtype) : t;
}

/* t into dst, of the same shape, in pieces of rows: the source and what is on its way take little memory. */
static bool copy_rows(wm_weights *w, wk_tensor *t, wk_tensor *dst)
{
    const int64_t piece_bytes = 4 << 20;
    int64_t rows = wk_rank(t) > 1 ? wk_dim(t, 0) : 1,
            bytes = wk_count(t) * (int64_t)wk_dtype_size(wk_dtype_of(t));
    int64_t each = bytes > piece_bytes && rows > 1 ? rows * piece_bytes / bytes + 1 : rows;
    for (int64_t i = 0; i < rows && wk_error_status() == WK_OK; i += each) {
        int64_t n = rows - i < each ? rows - i : each;
        bool whole = n == rows;
        wk_scope_begin();
        wk_tensor *from = whole ? t : wk_narrow(t, 0, i, n), *to = whole ? dst : wk_narrow(dst, 0, i, n);
        if (from && to && wk_copy_into(to, bring(w, from, wk_dtype_of(dst))) == WK_OK)
            w->source->copied(w->source, from);
        wk_scope_end();
    }
    return wk_error_status() == WK_OK;
}

static wk_tensor *load(wm_weights *w, const char *name, bool blocks, wk_dtype dtype, int rank,
                       const int64_t *shape)
{
    int64_t from;
    wk_tensor *t = find_tensor(w, name, blocks, rank, shape, &from);
    if (!t || (wk_device_of(t) == w->device && wk_dtype_of(t) == dtype))
        return t;
    ask_after_jump(w, t);
    wk_tensor *x = wk_empty(w->device, dtype, wk_rank(t), wk_shape(t));
    if (!x || !copy_rows(w, t, x)) {
        wm_fail(WK_ERR_MEMORY, "%s: tensor '%s'", w->source->where(w->source, from), name);
        wk_drop(x);
        x = NULL;
    }
    wk_drop(t);
    return x;
}

wk_tensor *wm_weights_get(wm_weights *w, const char *name, wk_dtype dtype, int rank, const int64_t *shape)
{
    return load(w, name, false, dtype, rank, shape);
}

wk_tensor *wm_weights_matrix(wm_weights *w, const char *name, wk_dtype dtype, int64_t rows, int64_t columns,
                             wk_qformat *format)
{
    int64_t shape[] = {rows, columns};
    *format = wm_weights_format(w, name);
    if (*format == WK_QFORMAT_COUNT)
        return load(w, name, false, dtype, 2, shape);
    shape[1] = wk_qrow_bytes(*format, columns);
    if (shape[1] < 0) {
        wm_fail(WK_ERR_SHAPE,
                "%s: tensor '%s': expected %lld columns to be a multiple of %d, the block of %s", w->name,
                name, (long long)columns, wk_qformat_block(*format), wk_qformat_name(*format));
        return NULL;
    }
    return load(w, name, true, WK_U8, 2, shape);
}

bool wm_weights_into(wm_weights *w, const char *name, wk_tensor *dst)
{
    int64_t from;
    wk_tensor *t = find_tensor(w, name, false, wk_rank(dst), wk_shape(dst), &from);
    if (!t)
        return false;
    ask_after_jump(w, t);
    bool copied = copy_rows(w, t, dst);
    if (!copied)
        wm_fail(WK_ERR_MEMORY, "%s: tensor '%s'", w->source->where(w->source, from), name);
    wk_drop(t);
    return copied;
}
