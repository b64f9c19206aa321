/* fuzz_op.c: calls of every op with tensors and parameters out of any bytes. Whatever comes, a call either gives
 * its outputs or fails with a message that begins with the op's name; nothing leaks, nothing is read or written
 * outside of the tensors (which the address sanitizer sees). */
#include "core/memory.h"
#include "core/op.h"
#include "core/scope.h"
#include "fuzz.h"

typedef struct {
    const uint8_t *at, *end;
} bytes;

static unsigned next(bytes *b) { return b->at < b->end ? *b->at++ : 0; }

enum { MAX_ELEMENTS = 4096, MAX_TAIL = 3 };

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

static wk_status any_params(bytes *b, const wk_op *op, void *params)
{
    unsigned seen = 0;
    wk_params_defaults(op, params);
    for (int i = 0; i < WK_MAX_PARAMS && op->params[i].name; i++) {
        const wk_param *p = &op->params[i];
        char buf[64];
        if (next(b) % 2 || !p->fallback)
            WK_TRY(wk_params_parse(op, params, p->name, any_text(b, p, buf, sizeof buf), &seen));
    }
    return wk_params_complete(op, seen);
}

/* One in eight goes missing; the second and later ones are often like the first, so that more calls are good. */
static const wk_tensor *any_input(bytes *b, const wk_op *op, const wk_slot *slot, const wk_tensor *first)
{
    unsigned kind = next(b);
    unsigned set = slot->dtypes ? slot->dtypes : slot->flags & WK_ANY ? WK_ALL : op->dtypes;
    if (kind % 8 == 7)
        return NULL;
    if (first && !slot->dtypes && kind % 4 != 3)
        return kind & 16 ? first
                         : wk_from_host(wk_cpu(), first->dtype, first->rank, first->shape, (double[4096]){0});
    return any_tensor(b, set);
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

static void take_inputs(bytes *b, wk_call *c, const wk_tensor **tail, wk_tensor **tail_out)
{
    const wk_op *op = c->op;
    for (int i = 0; i < wk_op_inputs(op); i++) {
        if (!(op->in[i].flags & WK_TAIL)) {
            c->in[i] = any_input(b, op, &op->in[i], i ? c->in[0] : NULL);
            continue;
        }
        c->n_tail = (int)(next(b) % (MAX_TAIL + 1));
        for (int k = 0; k < c->n_tail; k++)
            tail[k] = any_input(b, op, &op->in[i], k ? tail[0] : c->in[0]);
        c->tail_out = next(b) % 2 ? tail_out : NULL;
    }
}

static void call_op(bytes *b)
{
    const wk_op *op = wk_op_at((int)((next(b) * 256 + next(b)) % (unsigned)wk_op_count()));
    _Alignas(16) char params[WK_PARAMS_BYTES];
    const wk_tensor *tail[MAX_TAIL] = {0};
    wk_tensor *tail_out[MAX_TAIL] = {0};
    wk_call c = {.op = op, .params = params, .device = wk_cpu(), .want = next(b), .tail = tail};
    take_inputs(b, &c, tail, tail_out);
    wk_status status = any_params(b, op, params);
    if (status == WK_OK)
        status = wk_call_run(&c);
    if (status == WK_OK)
        look_at(&c);
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
    FUZZ_TEXT("\0\1abcdefghijklmnopqrstuvwxyz0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ"),
    FUZZ_TEXT("\0\x20\xff\0\x21\0\2\3\4\5\1\2\3\4\5\6\7\x08\x09\x21\0\2\3\3\3\1\1\1\1\1\1\1\1\1\1\1\1"),
    FUZZ_TEXT("\0\x60\0\0\0\0\x20\0\2\3\3\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0"),
    {0}};
static const char *const fuzz_words[] = {"\x01\x02\x03\x04", "\x20\x20\x20\x20", "\x7f\xff\x7f\xff",
                                         "abcdefgh", NULL};
#endif
