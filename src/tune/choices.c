/* choices.c: what searches have found: in memory for dispatch, and in the cache folder as tune.txt.
 *
 * One choice a line, in words: the GPU's architecture, op, dtype, the call's key, implementation, variant, time in
 * microseconds, versions of wick and of the library, then the shapes for those who read it, and a checksum:
 *
 *     gfx90a conv2d f32 5f0d3c1b9a88e274 miopen 91 103.2 0.1.0 3.4.0 x=[8,64,56,56] weight=[64,64,3,3] ~9c3e41d7
 *
 * A line is appended by one write, so that processes do not mix theirs; of two for the same key the later one counts.
 * One that is damaged, or of another version of wick, is passed over. */
#include "choices.h"
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
#include "core/folder.h"
#include "core/memory.h"
#include "wick/index.h"
#include "wick/matmul.h"

enum { PLACES = 1 << 13, MOST = PLACES / 2, LINE = 512, FILE_MOST = 4 << 20, OPS = 512 };

typedef struct {
    uint64_t key; /* 0: a free place */
    wk_choice choice;
    char library[24];
} entry;

static entry *table; /* open addressing; made with the first entry */
static int count;
static atomic_bool has_choices[OPS]; /* by the op's number: most ops have none, and need not be looked up */
static pthread_rwlock_t lock = PTHREAD_RWLOCK_INITIALIZER;
static pthread_once_t once = PTHREAD_ONCE_INIT;

/* ---- keys ---- */

static uint64_t mix(uint64_t h, const void *data, size_t n)
{
    const unsigned char *p = data;
    for (size_t i = 0; i < n; i++)
        h = (h ^ p[i]) * 0x100000001b3;
    return h;
}

static uint64_t mix_text(uint64_t h, const char *text) { return mix(h, text, strlen(text) + 1); }

static uint64_t mix_tensor(uint64_t h, const wk_tensor *t)
{
    int64_t head[3] = {t ? (int)t->dtype : -1, t ? t->rank : 0, t ? wk_is_packed(t) : 0};
    h = mix(h, head, sizeof head);
    if (t && t->rank > 0)
        h = mix(h, t->shape, (size_t)t->rank * sizeof *t->shape);
    return t && !head[2] ? mix(h, t->strides, (size_t)t->rank * sizeof *t->strides) : h;
}

static uint64_t mix_params(uint64_t h, const wk_call *c)
{
    for (const wk_param *p = c->op->params; p && p->name; p++) {
        const char *field = (const char *)c->params + p->offset;
        if (p->type == WK_P_LIST) {
            const wk_list *list = (const wk_list *)field;
            h = mix(h, list, sizeof list->n + (size_t)list->n * sizeof *list->v);
        } else {
            h = mix(h, field, wk_param_bytes(p));
        }
    }
    return h;
}

/* What the user allows: a library lists other algorithms then, by the same numbers. */
static uint64_t mix_settings(uint64_t h)
{
    unsigned char settings = (wk_matmul_precision() == WK_PRECISION_FAST) << 1 | !wk_deterministic();
    return settings ? mix(h, &settings, 1) : h;
}

/* Never 0. */
static uint64_t key_of(const wk_call *c)
{
    const wk_device_table *t = c->device->table;
    uint64_t h = mix_text(mix_text(0xcbf29ce484222325, t->arch(c->device)), c->op->name);
    unsigned outputs = 0;
    for (int i = 0; i < WK_MAX_OUT; i++)
        outputs |= c->out[i] ? 1u << i : 0;
    h = mix(h, &outputs, sizeof outputs);
    h = mix_settings(mix_params(h, c));
    for (int i = 0; i < wk_op_inputs(c->op); i++)
        h = mix_tensor(h, c->in[i]);
    for (int i = 0; i < c->n_tail; i++)
        h = mix_tensor(h, c->tail[i]);
    return h ? h : 1;
}

/* ---- in memory ---- */

/* The key's place, or the free one where it goes. */
static entry *place_of(uint64_t key)
{
    size_t i = (size_t)(key ^ key >> 32) % PLACES;
    while (table[i].key && table[i].key != key)
        i = (i + 1) % PLACES;
    return &table[i];
}

static void add(const wk_op *op, const entry *e)
{
    pthread_rwlock_wrlock(&lock);
    if (!table && (table = wk_alloc(PLACES * sizeof *table)))
        memset(table, 0, PLACES * sizeof *table);
    entry *place = table ? place_of(e->key) : NULL;
    if (place && (place->key || count < MOST)) {
        count += !place->key;
        *place = *e;
        if (op->number < OPS)
            atomic_store(&has_choices[op->number], true);
    }
    pthread_rwlock_unlock(&lock);
}

/* ---- the file ---- */

bool wk_choices_path(char *path, size_t room)
{
    char folder[512];
    int n = wk_cache_folder(folder, sizeof folder) ? snprintf(path, room, "%s/tune.txt", folder) : -1;
    return n > 0 && (size_t)n < room;
}

/* False for a line that is damaged or not for this wick. */
static bool parse(const char *line, entry *e, const wk_op **op)
{
    char name[64], version[32];
    unsigned long long key, variant;
    unsigned sum;
    const char *end = strrchr(line, '~');
    if (!end || sscanf(end, "~%8x", &sum) != 1 || (unsigned)mix(0, line, (size_t)(end - line)) != sum)
        return false;
    memset(e, 0, sizeof *e);
    if (sscanf(line, "%*23s %63s %*7s %16llx %15s %llu %*s %31s %23s", name, &key, e->choice.impl, &variant,
               version, e->library) != 6 ||
        strcmp(version, wk_version()) != 0 || key == 0)
        return false;
    e->key = key;
    e->choice.variant = variant;
    *op = wk_op_find(name);
    return *op != NULL;
}

static void read_file(void)
{
    char path[600], line[LINE + 2];
    entry e;
    const wk_op *op;
    FILE *f = wk_choices_path(path, sizeof path) ? fopen(path, "r") : NULL;
    while (f && fgets(line, sizeof line, f)) {
        if (parse(line, &e, &op))
            add(op, &e);
    }
    if (f)
        fclose(f);
}

/* " x=[8,64] weight=[64,64]", as far as it fits. */
static size_t put_shapes(const wk_call *c, char *text, size_t room)
{
    size_t at = 0;
    wk_shape_text shape;
    text[0] = 0;
    for (int i = 0; i < wk_op_inputs(c->op); i++) {
        if (!c->in[i])
            continue;
        int n = snprintf(text + at, room - at, " %s=%s", c->op->in[i].name,
                         wk_shape_str(&shape, c->in[i]->rank, c->in[i]->shape));
        if (n < 0 || (size_t)n >= room - at)
            break;
        at += (size_t)n;
    }
    text[at] = 0;
    return at;
}

static bool append(const char *line, size_t n)
{
    char path[600];
    if (!wk_choices_path(path, sizeof path))
        return false;
    wk_make_folders(path);
    int f = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
    if (f < 0)
        return false;
    if (lseek(f, 0, SEEK_END) > FILE_MOST && ftruncate(f, 0) != 0) /* years of searches: it begins anew */
        n = 0;
    bool good = n > 0 && write(f, line, n) == (ssize_t)n;
    return close(f) == 0 && good;
}

/* ---- for dispatch and search ---- */

bool wk_choice_find(const wk_call *c, wk_choice *choice)
{
    const wk_device_table *t = c->device->table;
    if (!t->arch || c->op->number >= OPS)
        return false;
    pthread_once(&once, read_file);
    if (!atomic_load_explicit(&has_choices[c->op->number], memory_order_relaxed))
        return false;
    uint64_t key = key_of(c);
    pthread_rwlock_rdlock(&lock);
    entry e = *place_of(key);
    pthread_rwlock_unlock(&lock);
    const char *library = t->library(c->device, e.choice.impl);
    if (!e.key || (library[0] && strcmp(e.library, "-") != 0 && strcmp(library, e.library) != 0))
        return false;
    *choice = e.choice;
    return true;
}

void wk_choice_keep(const wk_call *c, const wk_choice *choice, double us)
{
    const wk_device_table *t = c->device->table;
    const char *library = t->library(c->device, choice->impl);
    char line[LINE];
    entry e = {.key = key_of(c), .choice = *choice};
    snprintf(e.library, sizeof e.library, "%s", library[0] ? library : "-");
    pthread_once(&once, read_file);
    add(c->op, &e);
    int n = snprintf(line, sizeof line - 200, "%s %s %s %016llx %s %llu %.1f %s %s", t->arch(c->device),
                     c->op->name, wk_dtype_name(c->dtype), (unsigned long long)e.key, choice->impl,
                     (unsigned long long)choice->variant, us, wk_version(), e.library);
    size_t at = (size_t)n + put_shapes(c, line + n, sizeof line - (size_t)n - 16);
    line[at++] = ' ';
    at += (size_t)snprintf(line + at, sizeof line - at, "~%08x\n", (unsigned)mix(0, line, at));
    if (!append(line, at))
        wk_say("tune: %s: the choice is not kept: %s", c->op->name, strerror(errno));
}
