/* dispatch.c: from a call record to the implementation that runs it. */
#include <stdarg.h>
#include <stdio.h>
#include <time.h>
#include "families.h"
#include "scope.h"
#include "tune/choices.h"
#include "tune/search.h"
#include "verify/deny.h"
#include "verify/verify.h"
#include "wick/ops.h"

static _Thread_local const char *last_impl = "";
static _Thread_local char forced[32];
static _Thread_local int depth; /* implementations this thread is inside of */
static _Atomic(wk_trace_fn) trace_fn;
static _Atomic(void *) trace_ctx;

const char *wk_last_impl(void) { return last_impl; }

wk_status wk_force_impl(const char *name)
{
    if (name && strlen(name) >= sizeof forced)
        return wk_fail(WK_ERR_ARGUMENT, "force_impl: name: expected fewer than %zu letters", sizeof forced);
    snprintf(forced, sizeof forced, "%s", name ? name : "");
    return WK_OK;
}

const char *wk_forced_impl(void) { return forced; }

void wk_set_trace(wk_trace_fn fn, void *ctx)
{
    atomic_store(&trace_ctx, ctx);
    atomic_store(&trace_fn, fn);
}

/* ---- what front ends use ---- */

wk_status wk_call_fail(const wk_call *c, wk_status status, const char *argument, const char *format, ...)
{
    char text[400];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    return wk_fail(status, "%s: %s: %s", c->op->name, argument, text);
}

void wk_call_out(wk_call *c, int i, wk_dtype dtype, int rank, const int64_t *shape)
{
    c->spec[i].dtype = dtype;
    c->spec[i].rank = rank;
    if (rank > 0)
        memcpy(c->spec[i].shape, shape, (size_t)rank * sizeof *shape);
}

void wk_call_out_like(wk_call *c, int i, const wk_tensor *t)
{
    wk_call_out(c, i, t->dtype, t->rank, t->shape);
}

wk_status wk_call_rank(const wk_call *c, int i, int lo, int hi)
{
    int rank = c->in[i]->rank;
    if (rank >= lo && rank <= hi)
        return WK_OK;
    char range[32];
    snprintf(range, sizeof range, lo == hi ? "%d" : "%d to %d", lo, hi);
    wk_shape_text text;
    return wk_call_fail(c, WK_ERR_SHAPE, c->op->in[i].name, "expected rank %s, got %d, shape %s", range, rank,
                        wk_shape_str(&text, rank, c->in[i]->shape));
}

wk_status wk_call_shape(const wk_call *c, int i, int rank, const int64_t *shape)
{
    const wk_tensor *t = c->in[i];
    if (wk_shape_equal(t->rank, t->shape, rank, shape))
        return WK_OK;
    wk_shape_text want, got;
    return wk_call_fail(c, WK_ERR_SHAPE, c->op->in[i].name, "expected shape %s, got %s",
                        wk_shape_str(&want, rank, shape), wk_shape_str(&got, t->rank, t->shape));
}

wk_status wk_call_same_shape(const wk_call *c, int i, int as)
{
    return wk_call_shape(c, i, c->in[as]->rank, c->in[as]->shape);
}

wk_status wk_call_dim(const wk_call *c, const char *name, int64_t dim, int rank, int *out)
{
    *out = wk_shape_dim(rank, dim);
    return *out >= 0 ? WK_OK
                     : wk_call_fail(c, WK_ERR_PARAM, name, "expected %d to %d, got %lld", -rank, rank - 1,
                                    (long long)dim);
}

/* ---- inputs against slots ---- */

/* "f32, f16, bf16 or f64" */
static const char *set_names(unsigned set, char *buf, size_t room)
{
    size_t at = 0;
    buf[0] = 0;
    for (int d = 0; d < WK_DTYPE_COUNT; d++) {
        if (!(set >> d & 1))
            continue;
        unsigned after = set >> (d + 1);
        at += (size_t)snprintf(buf + at, at < room ? room - at : 0, "%s%s", wk_dtypes[d].name,
                               !after                  ? ""
                               : (after & (after - 1)) ? ", "
                                                       : " or ");
    }
    return buf;
}

static wk_status check_dtype(const wk_call *c, const char *name, const wk_slot *slot, wk_dtype dtype)
{
    char buf[80];
    if (slot->flags & WK_ANY)
        return WK_OK;
    if (slot->dtypes && !(slot->dtypes >> dtype & 1))
        return wk_call_fail(c, WK_ERR_DTYPE, name, "expected dtype %s, got %s",
                            set_names(slot->dtypes, buf, sizeof buf), wk_dtype_name(dtype));
    if (slot->dtypes)
        return WK_OK;
    wk_dtype want = slot->flags & WK_STAT ? wk_stat_dtype(c->dtype) : c->dtype;
    if (dtype != want)
        return wk_call_fail(c, WK_ERR_DTYPE, name, "expected dtype %s, got %s", wk_dtype_name(want),
                            wk_dtype_name(dtype));
    return WK_OK;
}

static wk_status check_device(wk_call *c, const char *name, const wk_tensor *t)
{
    if (!c->device)
        c->device = t->storage->device;
    if (t->storage->device == c->device)
        return WK_OK;
    return wk_call_fail(c, WK_ERR_DEVICE, name, "expected a tensor on %s, got one on %s", c->device->name,
                        t->storage->device->name);
}

/* The call's dtype is that of the first input whose slot leaves it open. */
static wk_status find_dtype(wk_call *c)
{
    char buf[80];
    const wk_op *op = c->op;
    for (int i = 0; i < wk_op_inputs(op); i++) {
        const wk_slot *slot = &op->in[i];
        const wk_tensor *t = slot->flags & WK_TAIL ? (c->n_tail ? c->tail[0] : NULL) : c->in[i];
        if (slot->dtypes || slot->flags & (WK_STAT | WK_ANY) || !t)
            continue;
        c->dtype = t->dtype;
        if (op->dtypes >> t->dtype & 1)
            return WK_OK;
        return wk_call_fail(c, WK_ERR_DTYPE, slot->name, "expected dtype %s, got %s",
                            set_names(op->dtypes, buf, sizeof buf), wk_dtype_name(t->dtype));
    }
    return WK_OK;
}

static wk_status check_slots(wk_call *c)
{
    const wk_op *op = c->op;
    int n = wk_op_inputs(op);
    for (int i = 0; i < n; i++) {
        if (!c->in[i] && !(op->in[i].flags & (WK_OPTIONAL | WK_TAIL)))
            return wk_call_fail(c, WK_ERR_ARGUMENT, op->in[i].name, "expected a tensor, got none");
        /* Where a tail stands beside other inputs, or a parameter leaves it no names, infer knows what it lacks. */
        char buf[48];
        if (op->in[i].flags & WK_TAIL && n == 1 && c->n_tail == 0 &&
            op->tail_name(c->params, 0, buf, sizeof buf))
            return wk_call_fail(c, WK_ERR_ARGUMENT, op->in[i].name, "expected tensors, got none");
        if (c->in[i])
            WK_TRY(check_device(c, op->in[i].name, c->in[i]));
    }
    WK_TRY(find_dtype(c));
    for (int i = 0; i < n; i++) {
        if (c->in[i])
            WK_TRY(check_dtype(c, op->in[i].name, &op->in[i], c->in[i]->dtype));
    }
    for (int i = 0; i < c->n_tail; i++) {
        char buf[48];
        const char *name = op->tail_name(c->params, i, buf, sizeof buf);
        if (!c->tail[i])
            return wk_call_fail(c, WK_ERR_ARGUMENT, name ? name : "tail", "expected a tensor, got none");
        WK_TRY(check_device(c, name ? name : "tail", c->tail[i]));
        WK_TRY(check_dtype(c, name ? name : "tail", &op->in[n - 1], c->tail[i]->dtype));
    }
    return c->device ? WK_OK : wk_call_fail(c, WK_ERR_ARGUMENT, "device", "expected a device, got NULL");
}

/* ---- outputs ---- */

static wk_status check_given(const wk_call *c, int i)
{
    const wk_tensor *t = c->out[i];
    const wk_spec *s = &c->spec[i];
    wk_shape_text want, got;
    if (t->dtype != s->dtype || !wk_shape_equal(t->rank, t->shape, s->rank, s->shape))
        return wk_call_fail(c, t->dtype != s->dtype ? WK_ERR_DTYPE : WK_ERR_SHAPE, "dst",
                            "expected %s %s, got %s %s", wk_dtype_name(s->dtype),
                            wk_shape_str(&want, s->rank, s->shape), wk_dtype_name(t->dtype),
                            wk_shape_str(&got, t->rank, t->shape));
    if (t->storage->device != c->device)
        return wk_call_fail(c, WK_ERR_DEVICE, "dst", "expected a tensor on %s", c->device->name);
    for (int d = 0; d < t->rank; d++) {
        if (t->strides[d] == 0 && t->shape[d] > 1)
            return wk_call_fail(c, WK_ERR_SHAPE, "dst",
                                "expected no broadcast dimension, dim %d has stride 0", d);
    }
    return WK_OK;
}

static bool same_view(const wk_tensor *a, const wk_tensor *b)
{
    return wk_ptr(a) == wk_ptr(b) && a->dtype == b->dtype &&
           wk_shape_equal(a->rank, a->shape, b->rank, b->shape) &&
           memcmp(a->strides, b->strides, (size_t)a->rank * sizeof *a->strides) == 0;
}

/* A given output is written in place where that cannot disturb an input: it is packed, and an input it shares
 * memory with is the very same view, and the one that is updated where an op says so. */
static bool in_place_is_safe(const wk_call *c, const wk_tensor *given)
{
    unsigned updated = 0;
    if (!c->op->any_output && !wk_is_packed(given))
        return false;
    for (int i = 0; i < WK_MAX_IN; i++)
        updated |= c->op->in[i].flags & WK_UPDATE ? 1u << i : 0;
    for (int i = 0; i < WK_MAX_IN; i++) {
        const wk_tensor *t = c->in[i];
        bool may_be_same = !updated || updated >> i & 1;
        if (t && wk_tensor_overlap(t, given) && !(may_be_same && same_view(t, given)))
            return false;
    }
    for (int i = 0; i < c->n_tail; i++) {
        if (wk_tensor_overlap(c->tail[i], given))
            return false;
    }
    return true;
}

static wk_status make_outputs(wk_call *c)
{
    for (int i = 0; i < wk_op_outputs(c->op); i++) {
        bool skip = (c->op->out[i].flags & (WK_OPTIONAL | WK_SKIP)) && !(c->want >> i & 1);
        if (skip || c->out[i])
            continue;
        c->out[i] = wk_tensor_new(c->device, c->spec[i].dtype, c->spec[i].rank, c->spec[i].shape);
        if (!c->out[i])
            return wk_error_status();
    }
    for (int i = 0; c->tail_out && i < c->n_tail; i++) {
        bool given = c->op->tail_gives && (c->tail_out[i] || !c->op->tail_gives(c->params, i));
        if (given)
            continue;
        c->tail_out[i] = wk_tensor_new(c->device, c->tail[i]->dtype, c->tail[i]->rank, c->tail[i]->shape);
        if (!c->tail_out[i])
            return wk_error_status();
    }
    return WK_OK;
}

/* ---- choosing ---- */

const char *wk_call_refusal(const wk_call *c, const wk_impl *impl)
{
    const char *reason = impl->refuse ? impl->refuse(c) : NULL;
    return reason ? reason : wk_denied(c, impl) ? "it is on the deny-list" : NULL;
}

/* The first implementation that takes the call, of that name where one is given and not among those that were tried
 * (bits of places in the list); NULL, with the last reason, when none does. */
static const wk_impl *pick_named(const wk_call *c, unsigned tried, const char *name, const char **reason)
{
    const wk_impl *const *list = c->op->impls[c->device->kind];
    for (int i = 0; i < WK_MAX_IMPLS && list[i]; i++) {
        if (tried >> i & 1 || (name[0] && strcmp(name, list[i]->name) != 0))
            continue;
        *reason = wk_call_refusal(c, list[i]);
        if (!*reason)
            return list[i];
    }
    return NULL;
}

/* What is forced binds the caller's own ops; those that an implementation runs inside prefer it. */
static const wk_impl *pick(const wk_call *c, unsigned tried, const char **reason)
{
    const wk_impl *found = pick_named(c, tried, forced, reason);
    return found || !forced[0] || depth == 0 ? found : pick_named(c, tried, "", reason);
}

/* The one that a search has found for such calls, if it still takes them. */
static const wk_impl *pick_tuned(wk_call *c)
{
    const char *reason;
    wk_choice choice;
    if (forced[0] || !wk_choice_find(c, &choice))
        return NULL;
    c->variant = choice.variant;
    const wk_impl *found = pick_named(c, 0, choice.impl, &reason);
    if (!found)
        c->variant = 0;
    return found;
}

/* Why there is nothing to run, where no implementation says so itself. */
static const char *nothing_there(void)
{
    return forced[0] ? "no implementation of that name" : "no implementation is left: see WICK_WITHOUT";
}

const wk_impl *wk_call_pick(const wk_call *c, const char **reason)
{
    wk_call asked = *c;
    wk_ops_init();
    *reason = nothing_there();
    const wk_impl *tuned = pick_tuned(&asked);
    return tuned ? tuned : pick(c, 0, reason);
}

static wk_status run_nested(wk_call *c)
{
    depth++;
    wk_status status = c->impl->run(c);
    depth--;
    return status;
}

/* A vendor's library that has nothing for this call, or fails, leaves it to wick's kernel. */
static bool leaves_to_next(const wk_call *c, wk_status status)
{
    if (forced[0] && depth == 0)
        return false;
    return status == WK_ERR_UNSUPPORTED || (status == WK_ERR_DEVICE && wk_impl_is_vendor(c->impl->name));
}

static unsigned place_bit(const wk_call *c)
{
    const wk_impl *const *list = c->op->impls[c->device->kind];
    for (int i = 0; i < WK_MAX_IMPLS && list[i]; i++) {
        if (list[i] == c->impl)
            return 1u << i;
    }
    return 0;
}

/* Runs c->impl, or the next one that takes the call; none has written to an input. */
static wk_status run_or_next(wk_call *c)
{
    unsigned tried = 0;
    wk_status status = run_nested(c);
    while (leaves_to_next(c, status)) {
        const char *reason;
        tried |= place_bit(c);
        const wk_impl *next = pick(c, tried, &reason);
        if (!next)
            break;
        if (status == WK_ERR_DEVICE)
            wk_say("%s; %s takes over", wk_error(), next->name);
        wk_error_clear();
        c->impl = next;
        c->variant = 0;
        status = run_nested(c);
    }
    return status;
}

static wk_status run_impl(wk_call *c)
{
    const char *reason = nothing_there();
    wk_ops_init();
    if (depth == 0 && !forced[0] && wk_tune_wanted(c))
        wk_tune_search(c, run_nested);
    c->variant = 0;
    c->impl = pick_tuned(c);
    if (!c->impl)
        c->impl = pick(c, 0, &reason);
    if (!c->impl)
        return wk_call_fail(c, WK_ERR_UNSUPPORTED, forced[0] ? forced : c->device->name, "%s", reason);
    wk_trace_fn trace = atomic_load_explicit(&trace_fn, memory_order_relaxed);
    struct timespec t0 = {0}, t1;
    if (trace)
        clock_gettime(CLOCK_MONOTONIC, &t0);
    wk_status status = wk_verify_wanted(c) ? wk_verify_run(c, run_or_next) : run_or_next(c);
    last_impl = c->impl->name; /* said last: an implementation may run other ops on the way */
    if (trace) {
        clock_gettime(CLOCK_MONOTONIC, &t1);
        trace(atomic_load(&trace_ctx), c->op->name, c->impl->name,
              (double)(t1.tv_sec - t0.tv_sec) * 1e6 + (double)(t1.tv_nsec - t0.tv_nsec) * 1e-3);
    }
    return status;
}

/* The order of work on several streams follows the order of the calls: said of all memory that the call uses. */
static wk_status order_streams(const wk_call *c, wk_status (*say)(wk_storage *))
{
    if (!say)
        return WK_OK;
    for (int i = 0; i < wk_op_inputs(c->op); i++) {
        if (c->in[i])
            WK_TRY(say(c->in[i]->storage));
    }
    for (int i = 0; i < wk_op_outputs(c->op); i++) {
        if (c->out[i])
            WK_TRY(say(c->out[i]->storage));
    }
    for (int i = 0; i < c->n_tail; i++)
        WK_TRY(say(c->tail[i]->storage));
    return WK_OK;
}

/* A packed output is made beside each given one that cannot be written in place, and copied over at the end. */
static wk_status run_with_outputs(wk_call *c)
{
    wk_tensor *given[WK_MAX_OUT] = {0};
    unsigned in_place = 0;
    for (int i = 0; i < wk_op_outputs(c->op); i++) {
        if (!c->out[i])
            continue;
        WK_TRY(check_given(c, i));
        if (in_place_is_safe(c, c->out[i])) {
            in_place |= 1u << i;
        } else {
            given[i] = c->out[i];
            c->out[i] = NULL;
        }
    }
    WK_TRY(make_outputs(c));
    WK_TRY(order_streams(c, c->device->table->use));
    WK_TRY(run_impl(c));
    WK_TRY(order_streams(c, c->device->table->used));
    const char *ran = last_impl;
    for (int i = 0; c->op->tail_gives && i < c->n_tail; i++) {
        if (c->tail_out && c->tail_out[i])
            atomic_fetch_add(&c->tail_out[i]->storage->version, 1);
    }
    for (int i = 0; i < wk_op_outputs(c->op); i++) {
        if (in_place >> i & 1)
            atomic_fetch_add(&c->out[i]->storage->version, 1);
        if (given[i]) { /* the copy counts as the write */
            WK_TRY(wk_copy_into(given[i], c->out[i]));
            c->out[i] = given[i];
        }
    }
    last_impl = ran;
    return WK_OK;
}

wk_status wk_call_check(wk_call *c)
{
    WK_TRY(check_slots(c));
    return c->op->infer(c);
}

static wk_status run_checked(wk_call *c)
{
    WK_TRY(wk_call_check(c));
    return run_with_outputs(c);
}

/* After a failure: what was made goes with the scope, so nobody may be left with its address. */
static wk_status forget_outputs(wk_call *c, wk_status status)
{
    memset(c->out, 0, sizeof c->out);
    for (int i = 0; c->tail_out && i < c->n_tail; i++)
        c->tail_out[i] = NULL;
    return status;
}

wk_status wk_call_run(wk_call *c)
{
    if (wk_pending())
        return forget_outputs(c, wk_error_status());
    if (!wk_scope_open())
        return forget_outputs(c, wk_fail(WK_ERR_MEMORY, "%s: out of memory", c->op->name));
    wk_status status = run_checked(c);
    if (status == WK_OK) {
        for (int i = 0; i < wk_op_outputs(c->op); i++)
            wk_scope_keep(c->out[i]);
        for (int i = 0; c->tail_out && i < c->n_tail; i++)
            wk_scope_keep(c->tail_out[i]);
    } else {
        wk_error_context(c->op->name);
        forget_outputs(c, status);
    }
    wk_scope_end();
    return status;
}

wk_tensor *wk_call_run1(wk_call *c) { return wk_call_run(c) == WK_OK ? c->out[0] : NULL; }

wk_status wk_call_run_into(wk_call *c, wk_tensor **const *places, int n)
{
    for (int i = 0; i < n; i++)
        c->want |= places[i] ? 1u << i : 0;
    wk_status status = wk_call_run(c);
    for (int i = 0; i < n; i++) {
        if (places[i])
            *places[i] = c->out[i];
    }
    return status;
}
