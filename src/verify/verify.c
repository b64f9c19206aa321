/* verify.c: a vendor's result against that of wick's own kernel, call by call. */
#include "verify.h"
#include <stdio.h>
#include <stdlib.h>
#include "compare.h"
#include "core/folder.h"
#include "core/memory.h"
#include "deny.h"
#include "replay.h"
#include "wick/ops.h"

static atomic_int wanted = -1; /* -1: not asked the environment yet */
static _Thread_local bool inside;

void wk_set_verify(int on) { atomic_store(&wanted, on != 0); }

static bool is_on(void)
{
    int on = atomic_load_explicit(&wanted, memory_order_relaxed);
    if (on < 0) {
        const char *text = getenv("WICK_VERIFY");
        on = text && strcmp(text, "1") == 0;
        atomic_store(&wanted, on);
    }
    return on;
}

bool wk_verify_wanted(const wk_call *c)
{
    const wk_device_table *t = c->device->table;
    return is_on() && !inside && wk_impl_is_vendor(c->impl->name) &&
           !(t->capturing && t->capturing(c->device));
}

/* wick's own implementation; NULL when it does not take the call. */
static const wk_impl *own_impl(const wk_call *c)
{
    const wk_impl *const *list = c->op->impls[c->device->kind];
    for (int i = 0; i < WK_MAX_IMPLS && list[i]; i++) {
        if (!wk_impl_is_vendor(list[i]->name) && !(list[i]->refuse && list[i]->refuse(c)))
            return list[i];
    }
    return NULL;
}

/* The call again, into outputs of its own. */
static wk_status run_own(const wk_call *c, const wk_impl *impl, wk_call *own)
{
    char before[32];
    *own = *c;
    memset(own->out, 0, sizeof own->out);
    for (int i = 0; i < WK_MAX_OUT; i++)
        own->want |= c->out[i] ? 1u << i : 0;
    if (c->tail_out) {
        own->tail_out = wk_alloc((size_t)c->n_tail * sizeof *own->tail_out);
        if (!own->tail_out)
            return wk_fail(WK_ERR_MEMORY, "verify: out of memory");
        memset(own->tail_out, 0, (size_t)c->n_tail * sizeof *own->tail_out);
    }
    snprintf(before, sizeof before, "%s", wk_forced_impl());
    wk_force_impl(impl->name);
    inside = true;
    wk_status status = wk_call_run(own);
    inside = false;
    wk_force_impl(before);
    return status;
}

/* ---- telling ---- */

static wk_status tell(const wk_call *c, const wk_call *inputs, const char *output, const wk_comparison *r)
{
    char folder[512], in[800], out[800], entry[WK_DENY_LINE], lost[300] = "";
    bool any = false;
    wk_text command = {0};
    if (!wk_cache_folder(folder, sizeof folder))
        snprintf(folder, sizeof folder, ".");
    snprintf(in, sizeof in, "%s/verify/%s.%s.%s.in.safetensors", folder, c->op->name, c->impl->name,
             wk_dtype_name(c->dtype));
    snprintf(out, sizeof out, "%s/verify/%s.%s.%s.out.safetensors", folder, c->op->name, c->impl->name,
             wk_dtype_name(c->dtype));
    wk_make_folders(in);
    if (wk_replay_save(inputs, in, &any) != WK_OK) { /* the finding matters more than a full disk */
        snprintf(lost, sizeof lost, " (with its inputs, which could not be saved: %.200s)", wk_error());
        wk_error_clear();
    }
    wk_replay_command(&command, c, any ? in : NULL, out, c->impl->name);
    wk_deny_entry(entry, c->device, c->op->name, c->impl->name, c->dtype);
    wk_status status =
        wk_fail(WK_ERR_DEVICE,
                "%s: verify: %s gives %s[%lld] = %.9g, wick's own kernel %.9g; again: %s%s; to pass "
                "%s over here: wk_deny(\"%s\") or that line in deny.txt",
                c->op->name, c->impl->name, output, (long long)r->place, r->got, r->want,
                command.data ? command.data : "(out of memory)", lost, c->impl->name, entry);
    wk_text_free(&command);
    return status;
}

static wk_status compare(const wk_call *c, const wk_call *own, const wk_call *inputs)
{
    int n = wk_op_outputs(c->op), tails = c->tail_out ? c->n_tail : 0;
    for (int i = 0; i < n + tails; i++) {
        const wk_tensor *got = i < n ? c->out[i] : c->tail_out[i - n];
        const wk_tensor *want = i < n ? own->out[i] : own->tail_out[i - n];
        wk_comparison r;
        if (!got || !want || (i < n && c->op->out[i].flags & WK_OPAQUE))
            continue;
        WK_TRY(wk_compare(got, want, &r));
        if (r.worst > 2 * wk_tolerance_gpu(got->dtype)) /* each may be off by that */
            return tell(c, inputs, i < n ? c->op->out[i].name : "d(tail)", &r);
    }
    return WK_OK;
}

/* Inputs as they were: a copy of those the call may write over. */
static wk_status keep_inputs(const wk_call *c, wk_call *kept)
{
    *kept = *c;
    for (int i = 0; i < WK_MAX_IN; i++) {
        for (int o = 0; c->in[i] && o < WK_MAX_OUT; o++) {
            if (c->out[o] && wk_tensor_overlap(c->in[i], c->out[o]) && !(kept->in[i] = wk_copy(c->in[i])))
                return wk_error_status();
        }
    }
    return WK_OK;
}

wk_status wk_verify_run(wk_call *c, wk_status (*run)(wk_call *))
{
    wk_call own, kept;
    const wk_impl *impl = own_impl(c);
    if (!impl)
        return run(c);
    WK_TRY(keep_inputs(c, &kept));
    wk_status status = run_own(c, impl, &own);
    if (status == WK_OK)
        status = run(c);
    if (status == WK_OK && wk_impl_is_vendor(c->impl->name))
        status = compare(c, &own, &kept);
    if (own.tail_out != c->tail_out)
        wk_free(own.tail_out);
    return status;
}
