/* fuzz_op.c: calls of every op that any bytes choose and change: one of the op's samples, in a dtype and layout, with
 * parameters and inputs replaced. Whatever comes, a call either gives its outputs or fails with a message that begins
 * with the op's name; nothing leaks, nothing is read or written outside of the tensors (which the address sanitizer
 * sees). */
#include <stdarg.h>
#include "check/sample.h"
#include "core/memory.h"
#include "fuzz.h"

typedef struct {
    const uint8_t *at, *end;
} bytes;

static unsigned next(bytes *b) { return b->at < b->end ? *b->at++ : 0; }

enum { MAX_ELEMENTS = 4096 };

/* A tensor of up to 4096 elements: packed, or any view on them that fits. */
static wk_tensor *any_tensor(bytes *b, unsigned dtypes)
{
    static const int64_t sizes[] = {1, 2, 3, 4, 0, 5, 7, 16};
    static char data[MAX_ELEMENTS * 8];
    int64_t shape[WK_MAX_RANK], strides[WK_MAX_RANK];
    unsigned kind = next(b);
    wk_dtype dtype = (wk_dtype)(next(b) % WK_DTYPE_COUNT);
    while (kind % 16 && !(dtypes >> dtype & 1)) /* mostly one that the op takes */
        dtype = (wk_dtype)((dtype + 1) % WK_DTYPE_COUNT);
    int rank = (int)(next(b) % 6);
    rank = rank == 5 ? WK_MAX_RANK : rank;
    for (int i = 0; i < rank; i++) {
        shape[i] = sizes[next(b) % 8];
        strides[i] = (int64_t)(next(b) % 16);
    }
    if (wk_shape_count(rank, shape) > MAX_ELEMENTS)
        rank = 1;
    for (size_t i = 0; i < 64; i++)
        data[next(b) * 128 + i] = (char)next(b);
    if (kind & 32)
        return wk_from_host(wk_cpu(), dtype, rank, shape, data);
    wk_tensor *flat = wk_from_host(wk_cpu(), dtype, 1, (int64_t[]){256}, data);
    wk_tensor *view = wk_as_strided(flat, rank, shape, strides, (int64_t)(kind & 7));
    if (view)
        return view;
    wk_error_clear();
    return flat;
}

static const char *any_text(bytes *b, const wk_param *p, char *buf, size_t room)
{
    static const char *const texts[] = {"0",
                                        "1",
                                        "2",
                                        "-1",
                                        "3",
                                        "1,2",
                                        "0,1",
                                        "2,2,2",
                                        "0.5",
                                        "all",
                                        "f16",
                                        "i64",
                                        "",
                                        "nan",
                                        "inf",
                                        "-9223372036854775808",
                                        "9223372036854775807",
                                        "4294967296",
                                        "1000000007",
                                        "1,1,1,1,1,1,1,1",
                                        "-3,5",
                                        "1e300",
                                        ",",
                                        "x"};
    unsigned i = next(b);
    if (p->type != WK_P_ENUM || i % 4 == 0)
        return texts[i % (sizeof texts / sizeof *texts)];
    const char *choice = p->choices;
    for (unsigned n = next(b) % 8; n > 0 && strchr(choice, '|'); n--)
        choice = strchr(choice, '|') + 1;
    snprintf(buf, room, "%.*s", (int)strcspn(choice, "|"), choice);
    return buf;
}

/* Adds to what is said about the call when it fails. */
__attribute__((format(printf, 1, 2))) static void note(const char *format, ...)
{
    size_t at = strlen(fuzz_note);
    va_list args;
    va_start(args, format);
    vsnprintf(fuzz_note + at, sizeof fuzz_note - at, format, args);
    va_end(args);
}

/* Changes one parameter in four. */
static wk_status change_params(bytes *b, const wk_op *op, wk_sample *s)
{
    for (const wk_param *p = op->params; p && p->name; p++) {
        char buf[64];
        if (next(b) % 4 != 3)
            continue;
        const char *text = any_text(b, p, buf, sizeof buf);
        note(" %s=%s", p->name, text);
        WK_TRY(wk_params_parse(op, s->params, p->name, text, &s->seen));
    }
    return WK_OK;
}

/* Another tensor or none in place of one input in eight. */
static const wk_tensor *change_input(bytes *b, const wk_op *op, const wk_slot *slot, const wk_tensor *t)
{
    unsigned set = slot->dtypes ? slot->dtypes : slot->flags & WK_ANY ? WK_ALL : op->dtypes;
    unsigned kind = next(b);
    if (kind % 8 != 7)
        return t;
    wk_shape_text text;
    t = kind & 64 ? NULL : any_tensor(b, set);
    note(" %s=%s%s", slot->name, t ? wk_dtype_name(t->dtype) : "none",
         t ? wk_shape_str(&text, t->rank, t->shape) : "");
    return t;
}

static void change_inputs(bytes *b, wk_call *c, const wk_tensor **tail, wk_tensor **tail_out)
{
    int n = wk_op_inputs(c->op);
    for (int i = 0; i < n; i++) {
        if (!(c->op->in[i].flags & WK_TAIL))
            c->in[i] = change_input(b, c->op, &c->op->in[i], c->in[i]);
    }
    for (int k = 0; k < c->n_tail; k++)
        tail[k] = change_input(b, c->op, &c->op->in[n - 1], c->tail[k]);
    c->tail = tail;
    size_t length = strlen(c->op->name);
    bool gradient = length > 9 && strcmp(c->op->name + length - 9, "_backward") == 0;
    c->tail_out = gradient && c->n_tail && next(b) % 2 ? tail_out : NULL;
}

static void look_at(const wk_call *c)
{
    for (int i = 0; i < wk_op_outputs(c->op); i++) {
        const wk_tensor *t = c->out[i];
        if (!t)
            continue;
        FUZZ_NEED(wk_is_packed(t) && t->dtype == c->spec[i].dtype);
        size_t n = (size_t)wk_count(t) * wk_bytes(t->dtype);
        const volatile unsigned char *p = wk_ptr(t);
        for (size_t k = 0; k < n; k += 61)
            (void)p[k];
    }
}

/* One of the op's samples; NULL when there is none. */
static const char *any_sample(bytes *b, const wk_op *op)
{
    unsigned n = 0;
    while (op->samples && op->samples[n])
        n++;
    return n ? op->samples[next(b) % n] : NULL;
}

static wk_status make_call(bytes *b, const wk_op *op, wk_sample *s)
{
    const char *text = any_sample(b, op);
    wk_dtype dtype = (wk_dtype)(next(b) % WK_DTYPE_COUNT);
    while (!(op->dtypes >> dtype & 1))
        dtype = (wk_dtype)((dtype + 1) % WK_DTYPE_COUNT);
    wk_layout layout = (wk_layout)(next(b) % WK_LAYOUT_COUNT);
    fuzz_note[0] = 0;
    note("%s %s, %s, %s, changed:", op->name, text, wk_dtype_name(dtype), wk_layout_name(layout));
    FUZZ_NEED(text && wk_sample_make(op, text, dtype, layout, next(b), wk_cpu(), s) == WK_OK);
    return change_params(b, op, s);
}

static void call_op(bytes *b)
{
    static wk_sample s;
    const wk_op *op = wk_op_at((int)((next(b) * 256 + next(b)) % (unsigned)wk_op_count()));
    const wk_tensor *tail[WK_SAMPLE_TAIL];
    wk_tensor *tail_out[WK_SAMPLE_TAIL] = {0};
    wk_status status = make_call(b, op, &s);
    if (status == WK_OK) {
        change_inputs(b, &s.call, tail, tail_out);
        s.call.want = next(b);
        status = wk_call_run(&s.call);
    }
    if (status == WK_OK)
        look_at(&s.call);
    FUZZ_NEED(status == wk_error_status() && status != WK_ERR_INTERNAL);
    FUZZ_NEED(status == WK_OK || strncmp(wk_error(), op->name, strlen(op->name)) == 0);
    fuzz_accepted += status == WK_OK;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static long live;
    bytes b = {data, data + size};
    if (!live) {
        wk_set_num_threads(1);
        wk_memory_limit(wk_cpu(), 64 << 20); /* a huge output is out of memory at once */
    }
    wk_scope_begin();
    call_op(&b);
    wk_error_clear();
    wk_scope_end();
    if (!live || wk_alloc_live() < live)
        live = wk_alloc_live();
    FUZZ_NEED(wk_alloc_live() <= live + 16); /* scopes and packing buffers stay for the next call */
    return 0;
}

#ifdef FUZZ_MAIN
static const fuzz_input fuzz_seeds[] = {
    FUZZ_TEXT("\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0"),
    FUZZ_TEXT("\0\0\0\0\0\0\7\0\0\x0f\x21\0\2\3\4\5\1\2\3\4\5\6\7\x08\x09\x21\0\2\3\3\3\1"),
    {0}};
static const char *const fuzz_words[] = {"\x07\x01", "\x07\x0f", "\x0f\x20\x01\x02",
                                         "\x4f",     "abcdefgh", NULL};
#endif
