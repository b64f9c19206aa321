/* sample.c: calls as text, and tensors to go with them. */
#include <stdio.h>
#include <stdlib.h>
#include "ops/quant.h"
#include "sample.h"
#include "wick/ops.h"

const char *wk_layout_name(wk_layout layout)
{
    static const char *const names[] = {"packed", "transposed", "narrowed", "broadcast"};
    return names[layout];
}

/* ---- values ---- */

/* Well mixed bits from a counter (the finaliser of a 64-bit hash). */
static uint64_t mix(uint64_t x)
{
    x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9u;
    x = (x ^ (x >> 27)) * 0x94D049BB133111EBu;
    return x ^ (x >> 31);
}

enum { MAX_LISTED = 64 };

typedef struct {
    double lo, hi;
    bool special;
    const wk_qformat_info *blocks; /* u8: blocks of this format, with weights of the order of 1 */
    int listed;                    /* > 0: these values, again and again */
    double list[MAX_LISTED];
} range;

/* A byte of blocks: any, but for the scales. */
static double block_byte(const wk_qformat_info *q, uint64_t seed, int64_t i)
{
    int64_t block = i / q->bytes, at = i % q->bytes;
    for (int s = 0; s < 2; s++) {
        if (q->scale_at[s] < 0 || (at != q->scale_at[s] && at != q->scale_at[s] + 1))
            continue;
        uint64_t u = mix(seed ^ (uint64_t)(2 * block + s));
        double size = (1 + (double)(u >> 11) * 0x1p-53) / q->largest[s];
        return wk_f32_to_f16((float)(u & 1 ? size : -size)) >> (at - q->scale_at[s]) * 8 & 255;
    }
    return (double)(mix(seed + (uint64_t)i * 0x9E3779B97F4A7C15u) >> 56);
}

static double value_at(const range *r, wk_dtype dtype, uint64_t seed, int64_t i)
{
    static const double special[] = {NAN, INFINITY, -INFINITY, 0.0, -0.0, 1.0};
    double u = (double)(mix(seed + (uint64_t)i * 0x9E3779B97F4A7C15u) >> 11) * 0x1p-53;
    if (r->blocks)
        return block_byte(r->blocks, seed, i);
    if (r->special)
        return special[i % 6];
    if (r->listed)
        return r->list[i % r->listed];
    double v = r->lo + u * (r->hi - r->lo);
    return wk_is_float(dtype) ? v : floor(v);
}

static range default_range(wk_dtype dtype)
{
    if (wk_is_float(dtype))
        return (range){.lo = -2, .hi = 2};
    return wk_dtypes[dtype].is_signed ? (range){.lo = -8, .hi = 8} : (range){.lo = 0, .hi = 8};
}

/* ---- one tensor: "T[2,3]:0..4" ---- */

typedef struct {
    wk_dtype dtype;
    bool follows; /* T or S: its dtype is the sample's */
    int rank;
    int64_t shape[WK_MAX_RANK];
    range values;
} tensor_text;

static bool read_dtype(const char *text, size_t n, wk_dtype sample, tensor_text *t)
{
    char name[8];
    if (n == 0 || n >= sizeof name)
        return false;
    memcpy(name, text, n);
    name[n] = 0;
    t->follows = strcmp(name, "T") == 0 || strcmp(name, "S") == 0;
    t->dtype = name[0] == 'T' ? sample : name[0] == 'S' ? wk_stat_dtype(sample) : wk_dtype_parse(name);
    return t->dtype != WK_DTYPE_COUNT;
}

/* "0,3,7" */
static bool read_list(const char *text, range *r)
{
    for (r->listed = 0; *text && r->listed < MAX_LISTED;) {
        char *end;
        r->list[r->listed++] = strtod(text, &end);
        if (end == text || (*end && *end != ','))
            return false;
        text = *end ? end + 1 : end;
    }
    return r->listed > 0 && !*text;
}

static bool read_range(const char *text, range *r)
{
    if (strcmp(text, "special") == 0) {
        r->special = true;
        return true;
    }
    for (int f = 0; f < WK_QFORMAT_COUNT; f++) {
        if (strcmp(text, wk_qformats[f].name) == 0) {
            r->blocks = &wk_qformats[f];
            return true;
        }
    }
    /* "0..4": a number would swallow the first of the dots. */
    char first[32], *end;
    const char *dots = strstr(text, "..");
    size_t n = dots ? (size_t)(dots - text) : 0;
    if (!dots)
        return read_list(text, r);
    if (n == 0 || n >= sizeof first)
        return false;
    memcpy(first, text, n);
    first[n] = 0;
    r->lo = strtod(first, &end);
    bool read = !*end;
    r->hi = strtod(dots + 2, &end);
    return read && end != dots + 2 && !*end;
}

static bool read_tensor(const char *text, wk_dtype sample, tensor_text *t)
{
    const char *open = strchr(text, '[');
    if (!open || !read_dtype(text, (size_t)(open - text), sample, t))
        return false;
    const char *at = open + 1;
    t->rank = 0;
    while (*at && *at != ']' && t->rank < WK_MAX_RANK) {
        char *end;
        t->shape[t->rank++] = strtoll(at, &end, 10);
        at = *end == ',' ? end + 1 : end;
    }
    if (*at != ']')
        return false;
    t->values = default_range(t->dtype);
    return at[1] == 0 || (at[1] == ':' && read_range(at + 2, &t->values));
}

/* Values repeat after so many (a prime): gigabytes for a benchmark are not drawn one by one. */
enum { PERIOD = 4194301 };

/* The text's tensor, packed, on the CPU. */
static wk_tensor *packed_tensor(const tensor_text *t, uint64_t seed)
{
    wk_tensor *x = wk_empty(wk_cpu(), t->dtype, t->rank, t->shape);
    size_t bytes = wk_bytes(t->dtype);
    range r = t->values;
    if (r.special && !wk_is_float(t->dtype))
        r = default_range(t->dtype);
    int64_t period = r.blocks ? PERIOD / r.blocks->bytes * r.blocks->bytes : PERIOD;
    int64_t count = x ? wk_count(x) : 0, drawn = count < period ? count : period;
    for (int64_t i = 0; i < drawn; i++)
        wk_store_f64(t->dtype, (char *)wk_ptr(x) + (size_t)i * bytes, value_at(&r, t->dtype, seed, i));
    for (int64_t i = drawn; i < count; i += period) {
        int64_t n = count - i < period ? count - i : period;
        memcpy((char *)wk_ptr(x) + (size_t)i * bytes, wk_ptr(x), (size_t)n * bytes);
    }
    return x;
}

/* ---- layouts ---- */

static wk_tensor *narrowed(const wk_tensor *x)
{
    int64_t shape[WK_MAX_RANK];
    for (int d = 0; d < x->rank; d++)
        shape[d] = x->shape[d] + 2;
    /* What lies around the view must not leak into a result: NaN, or a value that stands out. */
    wk_tensor *v = wk_fill(wk_cpu(), x->dtype, x->rank, shape, wk_is_float(x->dtype) ? NAN : 113);
    for (int d = 0; v && d < x->rank; d++)
        v = wk_narrow(v, d, 1, x->shape[d]);
    return v && wk_copy_into(v, x) == WK_OK ? v : NULL;
}

/* x (packed) with the layout, on the CPU. */
static wk_tensor *lay_out(wk_tensor *x, wk_layout layout, bool may_repeat)
{
    wk_tensor *v = x;
    if (layout == WK_LAYOUT_TRANSPOSED && x->rank >= 2)
        v = wk_transpose(wk_copy(wk_transpose(x, -2, -1)), -2, -1);
    else if (layout == WK_LAYOUT_NARROWED && x->rank >= 1)
        v = narrowed(x);
    else if (layout == WK_LAYOUT_BROADCAST && may_repeat && x->rank >= 1 && x->shape[0] > 1)
        v = wk_broadcast(wk_narrow(x, 0, 0, 1), x->rank, x->shape);
    return v;
}

/* A view like v on another device: the whole storage goes over, so that the layout is kept. */
static wk_tensor *on_device(wk_tensor *v, wk_device *device)
{
    if (!v || v->storage->device == device)
        return v;
    int64_t total = (int64_t)(v->storage->bytes / wk_bytes(v->dtype));
    wk_tensor *base = wk_from_host(device, v->dtype, 1, &total, v->storage->data);
    return base ? wk_as_strided(base, v->rank, v->shape, v->strides, v->offset) : NULL;
}

/* ---- the call ---- */

enum { MAX_WORDS = 64, MAX_TEXT = 1024 };

typedef struct {
    char text[MAX_TEXT];
    char *names[MAX_WORDS], *values[MAX_WORDS]; /* name=value, in order */
    int n;
} words;

/* Cuts the text into words; *expect is what follows "! ", inside text itself. */
static wk_status cut(const char *text, words *w, const char **expect)
{
    *expect = NULL;
    w->n = 0;
    if (strlen(text) >= sizeof w->text)
        return wk_fail(WK_ERR_INTERNAL, "sample too long: %.60s", text);
    strcpy(w->text, text);
    for (char *save = NULL, *word = strtok_r(w->text, " ", &save); word; word = strtok_r(NULL, " ", &save)) {
        if (strcmp(word, "!") == 0) {
            *expect = text + (strchr(text, '!') - text) + 2;
            return WK_OK;
        }
        char *equals = strchr(word, '=');
        if (!equals || w->n == MAX_WORDS)
            return wk_fail(WK_ERR_INTERNAL, "sample: expected name=value, got '%s'", word);
        *equals = 0;
        w->names[w->n] = word;
        w->values[w->n++] = equals + 1;
    }
    return WK_OK;
}

/* The place in the call of the input of that name; NULL when the op has none. */
static wk_tensor **place_of(const wk_op *op, wk_sample *s, const char *name)
{
    for (int i = 0; i < wk_op_inputs(op); i++) {
        if (!(op->in[i].flags & WK_TAIL) && strcmp(op->in[i].name, name) == 0)
            return &s->in[i];
    }
    for (int i = 0; op->tail_name && i < WK_SAMPLE_TAIL; i++) {
        char buf[48];
        const char *tail = op->tail_name(s->params, i, buf, sizeof buf);
        if (tail && strcmp(tail, name) == 0) {
            if (s->call.n_tail <= i)
                s->call.n_tail = i + 1;
            return &s->tail[i];
        }
    }
    return NULL;
}

static void point_call(wk_sample *s)
{
    s->call.params = s->params;
    for (int i = 0; i < WK_MAX_IN; i++)
        s->call.in[i] = s->in[i];
    s->call.tail = (const wk_tensor *const *)s->tail;
}

wk_status wk_sample_make(const wk_op *op, const char *text, wk_dtype dtype, wk_layout layout, uint64_t seed,
                         wk_device *device, wk_sample *s)
{
    words w;
    memset(s, 0, sizeof *s);
    s->call.op = op;
    s->call.device = device;
    wk_params_defaults(op, s->params);
    WK_TRY(cut(text, &w, &s->expect));
    for (int i = 0; i < w.n; i++) {
        const char *value = strcmp(w.values[i], "T") == 0 ? wk_dtype_name(dtype) : w.values[i];
        if (!strchr(value, '['))
            WK_TRY(wk_params_parse(op, s->params, w.names[i], value, &s->seen));
    }
    WK_TRY(wk_params_complete(op, s->seen));
    for (int i = 0; i < w.n; i++) {
        tensor_text t;
        if (!strchr(w.values[i], '['))
            continue;
        wk_tensor **place = place_of(op, s, w.names[i]);
        if (!place || !read_tensor(w.values[i], dtype, &t))
            return wk_fail(WK_ERR_INTERNAL, "%s: sample: cannot read '%s=%s'", op->name, w.names[i],
                           w.values[i]);
        wk_tensor *x = packed_tensor(&t, mix(seed + (uint64_t)i));
        *place = on_device(x ? lay_out(x, layout, t.follows) : NULL, device);
        if (!*place)
            return wk_error_status();
    }
    point_call(s);
    return WK_OK;
}

void wk_sample_want_all(wk_sample *s, wk_tensor **tail_out)
{
    s->call.want = ~0u;
    size_t n = strlen(s->call.op->name);
    bool backward = n > 9 && strcmp(s->call.op->name + n - 9, "_backward") == 0;
    if (s->call.op->tail_gives || (s->call.op->tail_name && backward))
        s->call.tail_out = tail_out;
}

bool wk_sample_has_layout(const char *text, wk_layout layout)
{
    words w;
    const char *expect;
    if (layout == WK_LAYOUT_PACKED)
        return true;
    if (cut(text, &w, &expect) != WK_OK)
        return false;
    for (int i = 0; i < w.n; i++) {
        tensor_text t;
        if (!strchr(w.values[i], '[') || !read_tensor(w.values[i], WK_F32, &t) || t.rank == 0)
            continue;
        if (layout == WK_LAYOUT_NARROWED || (layout == WK_LAYOUT_TRANSPOSED && t.rank > 1) ||
            (layout == WK_LAYOUT_BROADCAST && t.follows && t.shape[0] > 1))
            return true;
    }
    return false;
}

/* ---- f64 ---- */

static wk_status widen(const wk_slot *slot, wk_dtype dtype, const wk_tensor *from, wk_tensor **to)
{
    if (!from)
        return WK_OK;
    /* A slot of any dtype (a mask, an optimizer's state) follows where it holds what T or S stand for. */
    bool stands = wk_is_float(dtype) && (from->dtype == dtype || from->dtype == wk_stat_dtype(dtype));
    bool follows = slot->flags & WK_ANY ? stands : !slot->dtypes;
    wk_tensor *host = wk_to(from, wk_cpu());
    *to = host && follows ? wk_cast(host, WK_F64) : host;
    return *to ? WK_OK : wk_error_status();
}

wk_status wk_sample_as_f64(const wk_sample *s, wk_sample *wide)
{
    const wk_op *op = s->call.op;
    *wide = *s;
    memset(wide->call.out, 0, sizeof wide->call.out);
    wide->call.device = wk_cpu();
    for (int i = 0; i < wk_op_inputs(op); i++)
        WK_TRY(widen(&op->in[i], s->call.dtype, s->in[i], &wide->in[i]));
    for (int i = 0; i < s->call.n_tail; i++)
        WK_TRY(widen(&op->in[wk_op_inputs(op) - 1], s->call.dtype, s->tail[i], &wide->tail[i]));
    point_call(wide);
    return WK_OK;
}
