/* alloc.c: every allocation of every op fails once. The call has to fail with WK_ERR_MEMORY and the op's name,
 * leave nothing behind, and give the same result when it is made again. Arguments: only these ops. */
#include <limits.h>
#include <pthread.h>
#include "core/memory.h"
#include "outputs.h"
#include "values.h"

/* ---- ops ---- */

typedef struct {
    const wk_op *op;
    const char *text;
    wk_dtype dtype;
    wk_layout layout;
    char *bits; /* of the right result */
    size_t bytes;
} subject;

static bool fine(const subject *s, bool ok, long n, const char *what)
{
    return test_check(ok, s->op->name, 0, "%s %s (%s), allocation %ld: %s; %s: '%s'", wk_dtype_name(s->dtype),
                      s->text, wk_layout_name(s->layout), n, what, wk_status_name(wk_error_status()),
                      wk_error());
}

/* One call with its n-th allocation (and so many after it) failing. False when there was no n-th. */
static bool fail_once(sample_call *c, const subject *s, long n, long burst)
{
    wk_scope_begin();
    long live = wk_alloc_live();
    wk_alloc_fail_at(n, burst);
    wk_status status = sample_run(c);
    bool injected = wk_alloc_count() >= n;
    wk_alloc_fail_at(0, 0);
    if (status == WK_OK) {
        fine(s, sample_same_bits(c, s->bits, s->bytes), n, "another result");
        fine(s, !wk_pending(), n, "an error is pending after success");
    } else {
        bool told = status == WK_ERR_MEMORY && wk_error_status() == status && strstr(wk_error(), s->op->name);
        fine(s, told && injected, n, "expected WK_ERR_MEMORY and the op's name");
        for (int i = 0; i < SAMPLE_OUTPUTS; i++) {
            if (sample_output(c, i))
                fine(s, false, n, "an output is left after the failure");
        }
        fine(s, wk_alloc_live() == live, n, "a leak");
    }
    wk_error_clear();
    wk_scope_end();
    return injected;
}

static void fail_each(sample_call *c, subject *s)
{
    wk_scope_begin();
    if (!fine(s, sample_run(c) == WK_OK, 0, "the sample fails")) {
        wk_error_clear();
        wk_scope_end();
        return;
    }
    s->bits = sample_bits(c, &s->bytes);
    wk_scope_end();
    long live = wk_alloc_live(), n = 1;
    while (fail_once(c, s, n, 1) && fail_once(c, s, n, LONG_MAX / 2) && n < 500)
        n++;
    fine(s, n > 1 && n < 500, n, "expected some allocations, not too many");
    fine(s, wk_alloc_live() == live, n, "a leak");
    free(s->bits);
}

static void check_sample(const wk_op *op, const char *text, wk_dtype dtype, wk_layout layout)
{
    static sample_call c;
    if (!wk_sample_has_layout(text, layout))
        return;
    subject s = {.op = op, .text = text, .dtype = dtype, .layout = layout};
    wk_scope_begin();
    if (fine(&s, sample_begin(&c, op, text, dtype, layout) == WK_OK, 0, "the sample does not read"))
        fail_each(&c, &s);
    wk_error_clear();
    wk_scope_end();
}

/* The first dtype the op takes, and one that goes another way: the last of them. */
static void check_op(const wk_op *op)
{
    int first = 0, last = WK_DTYPE_COUNT - 1;
    while (first < WK_DTYPE_COUNT - 1 && !(op->dtypes >> first & 1))
        first++;
    if (op->dtypes & WK_SET(WK_BF16))
        last = WK_BF16;
    while (last > first && !(op->dtypes >> last & 1))
        last--;
    for (const char *const *text = op->samples; text && *text; text++) {
        for (int d = first; d <= last; d += last > first ? last - first : 1) {
            check_sample(op, *text, (wk_dtype)d, WK_LAYOUT_PACKED);
            check_sample(op, *text, (wk_dtype)d, WK_LAYOUT_NARROWED);
        }
    }
}

/* ---- the core ---- */

static wk_tensor *shared; /* [3, 4], packed */

/* Each makes something and gives it back; false when it could not. */
static bool make_empty(void)
{
    wk_tensor *t = wk_empty(wk_cpu(), WK_F32, SHAPE(3));
    wk_drop(t);
    return t != NULL;
}
static bool make_from_host(void)
{
    wk_tensor *t = wk_from_host(wk_cpu(), WK_F32, SHAPE(1), &(float){1});
    wk_drop(t);
    return t != NULL;
}
static bool make_view(void)
{
    wk_tensor *t = wk_transpose(shared, 0, 1);
    wk_drop(t);
    return t != NULL;
}
static bool make_moved(void)
{
    wk_tensor *t = wk_to(shared, wk_cpu());
    wk_drop(t);
    return t != NULL;
}
static bool make_reshaped_copy(void)
{
    wk_tensor *v = wk_transpose(shared, 0, 1), *t = v ? wk_reshape(v, SHAPE(12)) : NULL;
    wk_drop(v);
    wk_drop(t);
    return t != NULL;
}
static bool read_strided(void)
{
    float data[12];
    wk_tensor *v = wk_transpose(shared, 0, 1);
    bool done = v && wk_to_host(v, data) == WK_OK && data[1] == 4;
    wk_drop(v);
    return done;
}
static bool read_item(void)
{
    wk_tensor *v = wk_as_strided(shared, SCALAR, NULL, 5);
    double d = v ? wk_item(v) : NAN;
    wk_drop(v);
    return d == 5;
}
static bool write_strided(void)
{
    wk_tensor *v = wk_transpose(shared, 0, 1);
    bool done = v && wk_copy_into(v, v) == WK_OK && wk_copy_into(shared, shared) == WK_OK;
    wk_drop(v);
    return done;
}
static bool run_in_scope(void)
{
    wk_scope_begin();
    wk_tensor *t = wk_softmax(wk_neg(wk_add(shared, shared)), 0, NULL, WK_SOFTMAX_ACCURATE);
    t = wk_scope_end_keep(t);
    wk_drop(t);
    return t != NULL;
}
static bool run_scopes(void)
{
    wk_scope_begin();
    wk_scope_begin();
    wk_tensor *t = wk_relu(shared);
    wk_scope_end();
    wk_scope_end();
    return t != NULL;
}

static bool (*const calls[])(void) = {make_empty,         make_from_host, make_view, make_moved,
                                      make_reshaped_copy, read_strided,   read_item, write_strided,
                                      run_in_scope,       run_scopes};
enum { CALLS = sizeof calls / sizeof *calls };

typedef struct {
    int call;
    long n;
    bool more; /* there was an n-th allocation */
} attempt;

static void try_call(attempt *a)
{
    long live = wk_alloc_live();
    wk_alloc_fail_at(a->n, 1);
    bool done = calls[a->call]();
    a->more = wk_alloc_count() >= a->n;
    wk_alloc_fail_at(0, 0);
    test_check(done ? !a->more : wk_error_status() == WK_ERR_MEMORY, __FILE__, __LINE__,
               "call %d, allocation %ld: %s, %s", a->call, a->n, done ? "done" : "failed", wk_error());
    wk_error_clear();
    long before = wk_alloc_live(); /* the scope arrays of a new thread may be there now */
    test_check(calls[a->call](), __FILE__, __LINE__, "call %d does not work after allocation %ld failed: %s",
               a->call, a->n, wk_error());
    wk_error_clear();
    test_check(before - live <= 2 && wk_alloc_live() - live <= 2, __FILE__, __LINE__, "call %d: a leak",
               a->call);
}

static void *on_thread(void *a)
{
    try_call(a);
    return NULL;
}

/* On this thread, and on new ones, whose first call has more to allocate. */
static void check_core(bool new_threads)
{
    for (int i = 0; i < CALLS; i++) {
        long live = wk_alloc_live();
        attempt a = {i, 1, true};
        for (; a.more && a.n < 100; a.n++) {
            pthread_t thread;
            if (!new_threads)
                try_call(&a);
            else if (CHECK(pthread_create(&thread, NULL, on_thread, &a) == 0))
                pthread_join(thread, NULL);
        }
        CHECK(a.n > 2 && a.n < 100);
        CHECK_EQ(wk_alloc_live(), live);
    }
}

int main(int argc, char **argv)
{
    wk_set_num_threads(1); /* failures are counted on the calling thread */
    shared = counting(WK_F32, SHAPE(3, 4));
    wk_scope_begin();
    wk_relu(shared); /* this thread's scope arrays */
    wk_scope_end();
    if (argc <= 1) {
        check_core(false);
        check_core(true);
    }
    for (int i = 0; i < wk_op_count(); i++) {
        bool chosen = argc <= 1;
        for (int k = 1; k < argc; k++)
            chosen |= strcmp(argv[k], wk_op_at(i)->name) == 0;
        if (chosen)
            check_op(wk_op_at(i));
    }
    wk_drop(shared);
    return test_end();
}
