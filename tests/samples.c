/* samples.c: the op table is whole, and every op does what its samples say, on the CPU, at the instruction-set
 * level that WICK_ISA names (the best one without it). Arguments: only these ops. */
#include <stdlib.h>
#include "check/check.h"
#include "core/families.h"
#include "core/host.h"
#include "test.h"

/* Counts a result's samples. */
static void count(const wk_check_result *r, const char *what)
{
    atomic_fetch_add(&test_passed, r->passed);
    if (r->failed == 0)
        return;
    atomic_fetch_add(&test_failed, r->failed - 1);
    test_check(false, r->op->name, 0, "%s %s %s: %s; sample %s (%s)", what, r->impl, wk_dtype_name(r->dtype),
               r->message, r->sample ? r->sample : "?", wk_layout_name(r->layout));
}

/* ---- records ---- */

static void check_params(const wk_op *op)
{
    _Alignas(16) char params[WK_PARAMS_BYTES];
    unsigned seen = 0;
    wk_params_defaults(op, params);
    for (const wk_param *p = op->params; p && p->name; p++) {
        test_check(p - op->params < 32, op->name, 0, "%s: beyond the bits of seen", p->name);
        test_check(p->offset + wk_param_bytes(p) <= WK_PARAMS_BYTES, op->name, 0, "%s: outside of %d bytes",
                   p->name, WK_PARAMS_BYTES);
        test_check((p->type == WK_P_ENUM) == (p->choices != NULL), op->name, 0, "%s: choices", p->name);
        bool counted = p->type == WK_P_INTS || p->type == WK_P_FLOATS || p->type == WK_P_TEXT;
        test_check(counted == (p->count > 0), op->name, 0, "%s: count", p->name);
        if (p->fallback)
            test_check(wk_params_parse(op, params, p->name, p->fallback, &seen) == WK_OK, op->name, 0,
                       "%s: fallback '%s': %s", p->name, p->fallback, wk_error());
        wk_error_clear();
    }
}

static void check_record(const wk_op *op)
{
    test_check(op->summary && op->summary[0], op->name, 0, "no summary");
    test_check(op->samples && op->samples[0], op->name, 0, "no samples");
    test_check(op->errors && op->errors[0], op->name, 0, "no error samples");
    test_check(op->dtypes != 0 && (op->dtypes & ~(unsigned)WK_ALL) == 0, op->name, 0, "dtypes");
    test_check(op->infer && (wk_op_outputs(op) > 0 || op->tail_gives), op->name, 0, "no infer or no output");
    test_check(op->impls[WK_KIND_CPU][0] != NULL, op->name, 0, "nothing implements it on the CPU");
    test_check(wk_op_find(op->name) == op, op->name, 0, "two ops of this name");
    for (int i = 0; i < wk_op_inputs(op); i++)
        test_check(!(op->in[i].flags & WK_TAIL) || (op->tail_name && i == wk_op_inputs(op) - 1), op->name, 0,
                   "%s: a tail is the last slot and has tail_name", op->in[i].name);
    check_params(op);
}

/* Implementations of ops that are not there would be left out of the table in silence. */
static void check_impls(const wk_impl *const *families)
{
    for (; *families; families++) {
        for (const wk_impl *impl = *families; impl->op; impl++)
            test_check(wk_op_find(impl->op) && impl->name && impl->run, impl->op, 0, "implements no op");
    }
}

/* ---- samples ---- */

/* References are the same code at every level: once is enough. */
static bool worth_checking(const char *impl)
{
    const char *level = getenv("WICK_ISA");
    return !level || strcmp(level, "base") == 0 || strcmp(impl, "ref") != 0;
}

static void check_op(wk_device *device, const wk_op *op)
{
    wk_check_result r;
    const wk_impl *const *impls = op->impls[WK_KIND_CPU];
    int passed = 0;
    for (int i = 0; i < WK_MAX_IMPLS && impls[i]; i++) {
        for (int d = 0; d < WK_DTYPE_COUNT; d++) {
            if (!wk_check_takes(op, (wk_dtype)d) || !worth_checking(impls[i]->name))
                continue;
            wk_check_run(device, op, impls[i]->name, (wk_dtype)d, false, &r);
            count(&r, "values");
            passed += r.passed;
        }
    }
    test_check(passed > 0, op->name, 0, "no sample was right");
    wk_check_errors(device, op, &r);
    count(&r, "errors");
    wk_check_gradient(device, op, &r);
    count(&r, "gradient");
    char backward[80];
    snprintf(backward, sizeof backward, "%s_backward", op->name);
    if (wk_op_find(backward))
        test_check(r.passed + r.failed > 0, op->name, 0, "no gradient was compared");
}

static bool chosen(const char *name, int argc, char **argv)
{
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], name) == 0)
            return true;
    }
    return argc <= 1;
}

int main(int argc, char **argv)
{
    wk_device *device = wk_device_open("cpu");
    const char *level = getenv("WICK_ISA");
    if (level && strcmp(level, wk_isa_level_name(wk_host_level())) != 0) {
        char why[80];
        snprintf(why, sizeof why, "%s: not on this machine, or not in this build", level);
        SKIP(why);
        return test_end();
    }
    int ops = 0;
    check_impls(wk_cpu_families_base);
    check_impls(wk_ref_families);
    for (int i = 0; i < wk_op_count(); i++) {
        const wk_op *op = wk_op_at(i);
        if (!chosen(op->name, argc, argv))
            continue;
        ops++;
        check_record(op);
        check_op(device, op);
    }
    CHECK(ops > 0);
    printf("%d ops, %s: ", ops, wk_isa_level_name(wk_host_level()));
    return test_end();
}
