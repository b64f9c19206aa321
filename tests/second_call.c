/* second_call.c: the second call of every op with the same sizes sets nothing up: it allocates no memory, makes no
 * stream, event or descriptor, loads and compiles no kernel, searches for no algorithm.
 *
 * Counts the calls that wick and MIOpen make, by the libraries of vendor_shim.c: WICK_HIP_LIBRARY and
 * WICK_MIOPEN_LIBRARY name them, and LD_PRELOAD the first, so that MIOpen's own calls of HIP count too. */
#include <dlfcn.h>
#include <stdlib.h>
#include "check/check.h"
#include "test.h"
#include "wick/wick.h"

typedef struct {
    const char *name;
    long count;
} counted;

static const counted *const *tables[2]; /* of HIP and of MIOpen */

/* MIOpen is loaded when it is first needed. */
static void open_tables(void)
{
    static const char *const variables[] = {"WICK_HIP_LIBRARY", "WICK_MIOPEN_LIBRARY"};
    for (int i = 0; i < 2; i++) {
        if (tables[i])
            continue;
        const char *file = getenv(variables[i]);
        void *library = file ? dlopen(file, RTLD_NOW | RTLD_NOLOAD) : NULL;
        const counted *const *(*table)(void) = NULL;
        if (library)
            *(void **)&table = dlsym(library, "wk_shim_calls");
        tables[i] = table ? table() : NULL;
    }
}

/* What belongs to setting up, by the beginnings of names. What MIOpen does at every call is its own: a function of a loaded
 * module is looked up at each launch. */
static bool sets_up(const char *name)
{
    static const char *const starts[] = {
        "hipMalloc",       "hipExtMalloc",    "hipFree",       "hipHostMalloc",    "hipHostFree",
        "hipModuleLo",     "hipModuleUnload", "hipStreamCr",   "hipStreamDestroy", "hipEventCr",
        "hipEventDestroy", "miopenCreate",    "miopenDestroy", "miopenFind",       "miopenGet",
        "miopenInit",      "miopenSet",       "miopenLRNGet",
    };
    if (strncmp(name, "miopenSetOpArgs", 15) == 0) /* the pointers of a call */
        return false;
    for (size_t i = 0; i < sizeof starts / sizeof *starts; i++) {
        if (strncmp(name, starts[i], strlen(starts[i])) == 0)
            return true;
    }
    return strstr(name, "GetSolution") || strstr(name, "CompileSolution");
}

enum { MOST = 256 };

static void note_counts(long *counts)
{
    int n = 0;
    for (int i = 0; i < 2; i++) {
        for (const counted *const *c = tables[i]; c && *c && n < MOST; c++)
            counts[n++] = (*c)->count;
    }
}

/* MIOpen's gradient of attention makes events for its streams at every call. */
static bool is_its_own(const char *op, const char *impl, const char *name)
{
    return strcmp(op, "sdpa_backward") == 0 && strcmp(impl, "miopen") == 0 &&
           strncmp(name, "hipEvent", 8) == 0;
}

/* What was called since: " hipMalloc 2 miopenCreateTensorDescriptor 3". */
static const char *difference(const char *op, const char *impl, const long *before, char *text, size_t room)
{
    int n = 0;
    size_t at = 0;
    text[0] = 0;
    for (int i = 0; i < 2; i++) {
        for (const counted *const *c = tables[i]; c && *c && n < MOST; c++, n++) {
            if (sets_up((*c)->name) && !is_its_own(op, impl, (*c)->name) && (*c)->count != before[n] &&
                at < room)
                at += (size_t)snprintf(text + at, room - at, " %s %ld", (*c)->name, (*c)->count - before[n]);
        }
    }
    return text;
}

static wk_status run_once(wk_device *d, const wk_sample *s, wk_tensor **tail_out)
{
    wk_call call = s->call;
    wk_scope_begin();
    memset(tail_out, 0, WK_SAMPLE_TAIL * sizeof *tail_out); /* those of the call before are gone */
    wk_status status = wk_call_run(&call);
    if (status == WK_OK)
        status = wk_sync(d);
    wk_scope_end();
    return status;
}

/* False when the implementation does not take the sample. */
static bool try_sample(wk_device *d, const wk_op *op, const char *text, const char *impl)
{
    wk_sample s;
    wk_tensor *tail[WK_SAMPLE_TAIL] = {0};
    long before[MOST];
    char more[400];
    if (wk_sample_make(op, text, WK_F32, WK_LAYOUT_PACKED, 1, d, &s) != WK_OK)
        return false;
    wk_sample_want_all(&s, tail);
    wk_force_impl(impl);
    bool taken = run_once(d, &s, tail) == WK_OK;
    open_tables();
    if (taken) {
        note_counts(before);
        CHECK(run_once(d, &s, tail) == WK_OK);
        difference(op->name, impl, before, more, sizeof more);
        test_check(!more[0], __FILE__, __LINE__, "%s %s:%s", op->name, impl, more);
    }
    wk_force_impl(NULL);
    return taken;
}

/* By the first sample that it takes. */
static void try_op(wk_device *d, const wk_op *op, const char *impl)
{
    bool taken = false;
    for (const char *const *text = op->samples; *text && !taken; text++) {
        wk_scope_begin();
        taken = try_sample(d, op, *text, impl);
        wk_error_clear();
        wk_scope_end();
    }
}

/* DEVICE [START...]: ops whose names begin so, or all. */
int main(int argc, char **argv)
{
    const long none[MOST] = {0};
    char text[400];
    wk_device *d = argc > 1 ? wk_device_open(argv[1]) : NULL;
    if (!d)
        return TEST_SKIPPED;
    for (int i = 0; i < wk_op_count(); i++) {
        const wk_op *op = wk_op_at(i);
        const wk_impl *const *impls = op->impls[d->kind];
        bool chosen = argc < 3;
        for (int a = 2; a < argc; a++)
            chosen = chosen || strncmp(op->name, argv[a], strlen(argv[a])) == 0;
        for (int k = 0; chosen && k < WK_MAX_IMPLS && impls[k]; k++) {
            if (wk_check_takes(op, WK_F32))
                try_op(d, op, impls[k]->name);
        }
    }
    const char *all =
        difference("", "", none, text, sizeof text); /* nothing at all would mean that nothing was counted */
    CHECK(strstr(all, "hipMalloc") && (tables[1] || !getenv("WICK_MIOPEN_LIBRARY")));
    return test_end();
}
