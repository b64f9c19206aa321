/* search.c: wk_tune: times the implementations that take a call, and the ways each of them has, on the call's own
 * arguments. */
#include "search.h"
#include <math.h>
#include <stdio.h>
#include <time.h>
#include "choices.h"
#include "core/memory.h"
#include "core/scope.h"
#include "wick/stream.h"

enum { CANDIDATES = 32, BATCHES = 3, MOST_RUNS = 64 };

/* How much longer than the fastest a single run may take and still be measured: the first ones vary. */
static const double FINALIST = 1.5;

typedef struct {
    const wk_impl *impl;
    uint64_t variant;
    double us; /* 0: not measured, or it fails */
} candidate;

typedef struct {
    wk_call call; /* with outputs of its own */
    wk_status (*run)(wk_call *);
    wk_event *from, *to;
    double end; /* the time when the search has to stop */
    candidate all[CANDIDATES];
    int n, impls; /* the first so many are all that must be measured */
} search;

static _Thread_local wk_tune_options wanted;
static _Thread_local bool on, inside;

wk_status wk_tune(const wk_tune_options *options)
{
    wk_tune_options defaults = {.seconds = 1, .workspace = (uint64_t)256 << 20};
    on = options != NULL;
    wanted = defaults;
    if (!options)
        return WK_OK;
    wk_tune_options given = {0};
    memcpy(&given, options, options->size < sizeof given ? options->size : sizeof given);
    if (!(given.seconds >= 0)) {
        on = false;
        return wk_fail(WK_ERR_ARGUMENT, "tune: seconds: expected 0 or more, got %g", given.seconds);
    }
    wanted.seconds = given.seconds > 0 ? given.seconds : defaults.seconds;
    wanted.workspace = given.workspace ? given.workspace : defaults.workspace;
    wanted.again = given.again;
    return WK_OK;
}

bool wk_tune_wanted(const wk_call *c)
{
    const wk_device_table *t = c->device->table;
    wk_choice known;
    if (!on || inside || !t->arch || t->capturing(c->device) || !c->op->impls[c->device->kind][0])
        return false;
    for (int i = 0; i < WK_MAX_IN; i++) { /* trying would change it each time */
        if (c->op->in[i].flags & WK_UPDATE && c->in[i])
            return false;
    }
    return wanted.again || !wk_choice_find(c, &known);
}

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

/* ---- candidates ---- */

static void add(search *s, const wk_impl *impl, uint64_t variant)
{
    if (s->n < CANDIDATES)
        s->all[s->n++] = (candidate){.impl = impl, .variant = variant};
}

/* Every implementation as it is, in the order of preference, and then the other ways they have. */
static void list_candidates(search *s)
{
    wk_call *c = &s->call;
    const wk_impl *const *impls = c->op->impls[c->device->kind];
    for (int i = 0; i < WK_MAX_IMPLS && impls[i]; i++) {
        if (!wk_call_refusal(c, impls[i]))
            add(s, impls[i], 0);
    }
    s->impls = s->n;
    for (int i = 0; i < s->impls; i++) {
        uint64_t variants[CANDIDATES];
        c->impl = s->all[i].impl;
        int n = c->device->table->variants(c, (size_t)wanted.workspace, variants, CANDIDATES);
        for (int k = 0; k < n; k++)
            add(s, c->impl, variants[k]);
        wk_error_clear();
    }
}

/* ---- timing ---- */

/* Milliseconds for so many runs; negative when one fails. */
static double time_runs(search *s, int runs)
{
    wk_status status = wk_event_record(s->from);
    for (int i = 0; i < runs && status == WK_OK; i++) {
        if (!wk_scope_open()) /* temporaries go at once, as in a real call */
            return -1;
        status = s->run(&s->call);
        wk_scope_end();
    }
    if (status == WK_OK)
        status = wk_event_record(s->to);
    if (status == WK_OK)
        status = wk_event_sync(s->to);
    double ms = status == WK_OK ? wk_event_ms(s->from, s->to) : -1;
    wk_error_clear();
    return ms;
}

/* The first run may compile; the second says how long one takes. Microseconds; 0 when it fails. */
static double try_once(search *s, const candidate *k)
{
    s->call.impl = k->impl;
    s->call.variant = k->variant;
    double ms = time_runs(s, 1) < 0 ? 0 : time_runs(s, 1);
    return ms > 0 ? ms * 1e3 : 0;
}

/* The best of several batches that take about so many seconds together. */
static double measure(search *s, const candidate *k, double seconds)
{
    s->call.impl = k->impl;
    s->call.variant = k->variant;
    double runs = seconds * 1e6 / BATCHES / k->us, best = k->us;
    int batch = runs < 1 ? 1 : runs > MOST_RUNS ? MOST_RUNS : (int)runs;
    for (int i = 0; i < BATCHES && now() < s->end; i++) {
        double us = time_runs(s, batch) * 1e3 / batch;
        best = us > 0 && us < best ? us : best;
    }
    return best;
}

/* A later one has to be clearly faster than the one that would be taken anyway. */
static const candidate *fastest(const search *s)
{
    const candidate *best = NULL;
    for (const candidate *k = s->all; k < s->all + s->n; k++) {
        if (k->us > 0 && (!best || k->us < 0.97 * best->us))
            best = k;
    }
    return best;
}

/* All candidates get a try before any gets more, so that what an early one takes to compile or to measure is not lost to
 * those behind it; then those that may be the fastest share the time that is left. */
static void time_candidates(search *s)
{
    double within = INFINITY;
    bool final[CANDIDATES];
    int finalists = 0;
    for (int i = 0; i < s->n && (i < s->impls || now() < s->end); i++) {
        s->all[i].us = try_once(s, &s->all[i]);
        if (s->all[i].us > 0)
            within = fmin(within, FINALIST * s->all[i].us);
    }
    for (int i = 0; i < s->n; i++)
        finalists += final[i] = s->all[i].us > 0 && s->all[i].us <= within;
    for (int i = 0; i < s->n; i++) {
        double left = s->end - now();
        if (final[i] && left > 0)
            s->all[i].us = measure(s, &s->all[i], left / finalists--);
        wk_say("tune: %s: %s %llu: %.1f us", s->call.op->name, s->all[i].impl->name,
               (unsigned long long)s->all[i].variant, s->all[i].us);
    }
}

static void run_search(search *s)
{
    const wk_call *c = &s->call;
    list_candidates(s);
    s->end = now() + wanted.seconds;
    if (s->n > 1)
        time_candidates(s);
    const candidate *best = fastest(s);
    if (!best)
        return;
    wk_choice choice = {.variant = best->variant};
    snprintf(choice.impl, sizeof choice.impl, "%s", best->impl->name);
    wk_choice_keep(c, &choice, best->us);
}

/* ---- the call again, into outputs of its own ---- */

static bool make_outputs(const wk_call *c, wk_call *own)
{
    *own = *c;
    own->tail_out = NULL;
    for (int i = 0; i < WK_MAX_OUT; i++) {
        if (c->out[i])
            own->out[i] = wk_tensor_new(c->device, c->spec[i].dtype, c->spec[i].rank, c->spec[i].shape);
    }
    if (c->tail_out && !(own->tail_out = wk_alloc((size_t)c->n_tail * sizeof *own->tail_out)))
        return false;
    for (int i = 0; c->tail_out && i < c->n_tail; i++)
        own->tail_out[i] =
            c->tail_out[i] ? wk_tensor_new(c->device, c->tail[i]->dtype, c->tail[i]->rank, c->tail[i]->shape)
                           : NULL;
    return !wk_pending();
}

void wk_tune_search(const wk_call *c, wk_status (*run)(wk_call *))
{
    search s = {.run = run};
    if (!wk_scope_open())
        return;
    inside = true;
    s.from = wk_event_new(c->device);
    s.to = s.from ? wk_event_new(c->device) : NULL;
    if (s.to && make_outputs(c, &s.call))
        run_search(&s);
    wk_error_clear();
    wk_event_drop(s.to);
    wk_event_drop(s.from);
    if (c->tail_out)
        wk_free(s.call.tail_out);
    inside = false;
    wk_scope_end();
}
