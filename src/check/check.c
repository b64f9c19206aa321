/* check.c: the samples of an op against the reference. */
#include <stdarg.h>
#include <stdio.h>
#include "check.h"
#include "core/memory.h"
#include "core/scope.h"
#include "wick/ops.h"

/* ---- options ---- */

static wk_check_options options = {.allow = 1};

void wk_check_configure(const wk_check_options *o) { options = o ? *o : (wk_check_options){.allow = 1}; }

const wk_check_options *wk_check_configured(void) { return &options; }

void wk_check_fail(wk_check_result *r, const wk_call *call)
{
    wk_error_clear();
    if (r->failed++ == 0 && options.failed)
        options.failed(options.ctx, r, call);
}

/* ---- one sample ---- */

static void note(wk_check_result *r, const char *sample, wk_layout layout, const char *format, ...)
    __attribute__((format(printf, 4, 5)));
static void note(wk_check_result *r, const char *sample, wk_layout layout, const char *format, ...)
{
    if (r->message[0] && r->sample)
        return;
    va_list args;
    va_start(args, format);
    vsnprintf(r->message, sizeof r->message, format, args);
    va_end(args);
    r->sample = sample;
    r->layout = layout;
}

static bool has_impl(const wk_op *op, wk_device_kind kind, const char *name)
{
    for (int i = 0; i < WK_MAX_IMPLS && op->impls[kind][i]; i++) {
        if (strcmp(op->impls[kind][i]->name, name) == 0)
            return true;
    }
    return false;
}

/* What the result should be: the call in f64 by the reference; for integers, and for ops that make their values from
 * nothing (random numbers differ by dtype), the same call on the CPU with packed inputs. */
static wk_status reference(const wk_sample *s, const wk_op *op, wk_dtype dtype, wk_sample *want)
{
    if (wk_is_float(dtype) && wk_op_inputs(op) > 0) {
        WK_TRY(wk_sample_as_f64(s, want));
    } else {
        *want = *s;
        want->call.params = want->params;
        want->call.device = wk_cpu();
        memset(want->call.out, 0, sizeof want->call.out);
        for (int i = 0; i < WK_MAX_IN; i++) {
            const wk_tensor *host = s->in[i] ? wk_to(s->in[i], wk_cpu()) : NULL;
            want->call.in[i] = host ? wk_tensor_packed(host) : NULL;
        }
        for (int i = 0; i < s->call.n_tail; i++)
            want->tail[i] = wk_copy(wk_to(s->tail[i], wk_cpu()));
        want->call.tail = (const wk_tensor *const *)want->tail;
    }
    wk_force_impl(has_impl(op, WK_KIND_CPU, "ref") ? "ref" : NULL);
    wk_status status = wk_pending() ? wk_error_status() : wk_call_run(&want->call);
    if (status == WK_ERR_UNSUPPORTED) { /* a reference that does not take this call */
        wk_error_clear();
        wk_force_impl(NULL);
        status = wk_call_run(&want->call);
    }
    wk_force_impl(NULL);
    return status;
}

/* How far g may be off, on its device. */
static double allowed(const wk_tensor *g)
{
    bool cpu = g->storage->device->kind == WK_KIND_CPU;
    return options.allow * (cpu ? wk_tolerance(g->dtype) : wk_tolerance_gpu(g->dtype));
}

/* Compares every output; false, noted, when one is off. */
static bool outputs_agree(const wk_sample *got, const wk_sample *want, const char *text, wk_layout layout,
                          wk_check_result *r)
{
    const wk_op *op = got->call.op;
    int n = wk_op_outputs(op), tails = got->call.tail_out ? got->call.n_tail : 0;
    for (int i = 0; i < n + tails; i++) {
        const wk_tensor *g = i < n ? got->call.out[i] : got->call.tail_out[i - n];
        const wk_tensor *w = i < n ? want->call.out[i] : want->call.tail_out[i - n];
        const char *name = i < n ? op->out[i].name : "d(tail)";
        wk_comparison c;
        if (i < n && op->out[i].flags & WK_OPAQUE)
            continue;
        if (!g || !w) {
            if (g || w)
                note(r, text, layout, "%s: %s made it", name, g ? "only the device" : "only the reference");
            if (g || w)
                return false;
            continue;
        }
        if (wk_compare(g, w, &c) != WK_OK) {
            note(r, text, layout, "%s: %s", name, wk_error());
            return false;
        }
        double tolerance = allowed(g);
        double ratio = c.worst == 0 ? 0 : tolerance ? c.worst / tolerance : INFINITY;
        r->worst = ratio > r->worst ? ratio : r->worst;
        if (ratio > 1) {
            note(r, text, layout, "%s[%lld]: got %.9g, expected %.9g", name, (long long)c.place, c.got,
                 c.want);
            return false;
        }
    }
    return true;
}

static unsigned optional_outputs(const wk_op *op)
{
    unsigned set = 0;
    for (int i = 0; i < wk_op_outputs(op); i++)
        set |= op->out[i].flags & WK_OPTIONAL ? 1u << i : 0;
    return set;
}

/* lean: without the outputs that a call has to ask for, which may take another way. */
static void check_sample(wk_device *device, const wk_op *op, const char *impl, wk_dtype dtype,
                         const char *text, wk_layout layout, bool lean, wk_check_result *r)
{
    wk_sample got, want;
    wk_tensor *got_tail[WK_SAMPLE_TAIL] = {0}, *want_tail[WK_SAMPLE_TAIL] = {0};
    wk_scope_begin();
    wk_status status = wk_sample_make(op, text, dtype, layout, 1, device, &got);
    bool made = status == WK_OK;
    wk_sample_want_all(&got, got_tail);
    if (lean)
        got.call.want &= ~optional_outputs(op);
    if (made) {
        wk_force_impl(impl);
        status = wk_call_run(&got.call);
        wk_force_impl(NULL);
    }
    if (status == WK_ERR_UNSUPPORTED) {
        r->refused++;
        if (!r->message[0])
            snprintf(r->message, sizeof r->message, "%s", wk_error());
    } else if (status != WK_OK) {
        note(r, text, layout, "%s", wk_error());
        wk_check_fail(r, made ? &got.call : NULL);
    } else {
        wk_sample source = got;
        if (source.call.tail_out)
            source.call.tail_out = want_tail;
        bool right = reference(&source, op, dtype, &want) == WK_OK;
        if (!right)
            note(r, text, layout, "reference: %s", wk_error());
        right = right && outputs_agree(&got, &want, text, layout, r);
        if (right)
            r->passed++;
        else
            wk_check_fail(r, &got.call);
    }
    wk_error_clear();
    wk_scope_end();
}

bool wk_check_takes(const wk_op *op, wk_dtype dtype) { return op->dtypes >> dtype & 1; }

void wk_check_run(wk_device *device, const wk_op *op, const char *impl, wk_dtype dtype, bool quick,
                  wk_check_result *r)
{
    *r = (wk_check_result){.op = op, .impl = impl, .dtype = dtype};
    for (const char *const *text = op->samples; text && *text && !(quick && text > op->samples); text++) {
        for (int layout = 0; layout < (quick ? WK_LAYOUT_TRANSPOSED + 1 : WK_LAYOUT_COUNT); layout++) {
            if (wk_sample_has_layout(*text, (wk_layout)layout))
                check_sample(device, op, impl, dtype, *text, (wk_layout)layout, false, r);
        }
        if (optional_outputs(op))
            check_sample(device, op, impl, dtype, *text, WK_LAYOUT_PACKED, true, r);
    }
}

/* ---- planning ---- */

static void plan_sample(wk_device *device, const char *impl, const char *text, wk_layout layout,
                        wk_check_result *r)
{
    wk_sample s;
    wk_tensor *tail[WK_SAMPLE_TAIL] = {0};
    wk_scope_begin();
    wk_status status = wk_sample_make(r->op, text, r->dtype, layout, 1, device, &s);
    wk_sample_want_all(&s, tail);
    if (status == WK_OK) {
        wk_force_impl(impl);
        status = wk_call_run(&s.call);
        wk_force_impl(NULL);
    }
    for (int i = 0; i < WK_MAX_IN && status == WK_OK; i++) { /* a check looks at the inputs on the host */
        if (s.in[i] && !wk_to(s.in[i], wk_cpu()))
            status = wk_error_status();
    }
    if (status == WK_OK) {
        r->passed++;
    } else if (status == WK_ERR_UNSUPPORTED) {
        r->refused++;
    } else {
        note(r, text, layout, "%s", wk_error());
        r->failed++;
    }
    wk_error_clear();
    wk_scope_end();
}

int wk_check_plan(wk_device *device, const wk_op *op, wk_check_result *r)
{
    const wk_impl *const *impls = op->impls[device->kind];
    *r = (wk_check_result){.op = op, .impl = ""};
    for (int d = 0; d < WK_DTYPE_COUNT; d++) {
        r->dtype = (wk_dtype)d;
        for (int i = 0; wk_check_takes(op, r->dtype) && i < WK_MAX_IMPLS && impls[i]; i++) {
            for (const char *const *text = op->samples; text && *text; text++) {
                for (int layout = 0; layout < WK_LAYOUT_COUNT; layout++) {
                    if (wk_sample_has_layout(*text, (wk_layout)layout))
                        plan_sample(device, impls[i]->name, *text, (wk_layout)layout, r);
                }
            }
        }
    }
    return r->passed;
}

/* ---- error samples ---- */

void wk_check_errors(wk_device *device, const wk_op *op, wk_check_result *r)
{
    *r = (wk_check_result){.op = op, .impl = "", .dtype = WK_F32};
    while (r->dtype < WK_DTYPE_COUNT && !wk_check_takes(op, r->dtype))
        r->dtype++;
    for (const char *const *text = op->errors; text && *text; text++) {
        wk_sample s;
        wk_scope_begin();
        wk_status status = wk_sample_make(op, *text, r->dtype, WK_LAYOUT_PACKED, 1, device, &s);
        bool made = status == WK_OK;
        s.call.want = ~0u;
        if (made)
            status = wk_call_run(&s.call);
        if (status == WK_OK)
            status = wk_sync(device);
        bool right = status != WK_OK && status != WK_ERR_INTERNAL && s.expect &&
                     strstr(wk_error(), s.expect) && strstr(wk_error(), op->name);
        if (!right)
            note(r, *text, WK_LAYOUT_PACKED, "expected an error with '%s', got %s: '%s'",
                 s.expect ? s.expect : "?", wk_status_name(status), wk_error());
        if (right)
            r->passed++;
        else
            wk_check_fail(r, made ? &s.call : NULL);
        wk_error_clear();
        wk_scope_end();
    }
}
