/* lrn.c: local response norm and its gradient.
 *
 * The work is cut into units that hold whole windows: for windows across channels all channels of some elements of a
 * sample, a row for each channel; for windows within the plane one plane. Windows then lie down the rows, and within
 * the plane across the columns too. */
#include <float.h>
#include "ops/norm.h"
#include "core/memory.h"
#include "core/pool.h"
#include "block.h"
#include "norm.h"

enum { COLUMNS = 256 };

typedef struct {
    wk_lrn_params o;
    double alpha;                /* over the elements of a window */
    const wk_tensor *x, *y, *dy; /* packed; y and dy in a gradient */
    wk_tensor *out;
    bool within;
    int64_t rows, cols;            /* of a unit */
    int64_t pitch, inner, samples; /* elements from row to row; of a channel; of a sample */
    size_t scratch;
} plan;

typedef struct {
    plan p;
    atomic_bool no_memory;
} job;

#include "real_f32.h"
#include "lrn.inc.h"
#include "real_f64.h"
#include "lrn.inc.h"

/* A unit: a plane, or up to COLUMNS elements of every channel of a sample. */
static void run_task(void *ctx, int64_t task)
{
    job *j = ctx;
    plan p = j->p; /* the last unit of a row of units has fewer columns */
    int64_t at = task * p.rows * p.cols;
    if (!p.within) {
        int64_t units = (p.inner + COLUMNS - 1) / COLUMNS, first = task % units * COLUMNS;
        at = task / units * p.samples + first;
        p.cols = p.inner - first < COLUMNS ? p.inner - first : COLUMNS;
    }
    void *buf = wk_scratch_alloc(p.scratch);
    if (!buf) {
        atomic_store(&j->no_memory, true);
        return;
    }
    if (p.x->dtype == WK_F64)
        p.dy ? lrn_grad_unit_f64(&p, at, buf) : lrn_unit_f64(&p, at, buf);
    else
        p.dy ? lrn_grad_unit_f32(&p, at, buf) : lrn_unit_f32(&p, at, buf);
    wk_scratch_free(buf, p.scratch);
}

static wk_status run(wk_call *c, job *j)
{
    plan *p = &j->p;
    const wk_tensor *x = c->in[0];
    int64_t count = wk_count(x), tasks;
    if (count == 0)
        return WK_OK;
    p->o = *WK_PARAMS(c, wk_lrn_params);
    p->within = p->o.mode == WK_LRN_WITHIN;
    p->alpha = p->o.alpha / (double)p->o.size / (p->within ? (double)p->o.size : 1);
    p->out = c->out[0];
    p->inner = wk_shape_count(x->rank - 2, x->shape + 2);
    p->samples = x->shape[1] * p->inner;
    if (p->within) {
        p->rows = x->shape[2];
        p->cols = p->pitch = x->shape[3];
        tasks = count / p->inner;
    } else {
        p->rows = x->shape[1];
        p->cols = p->inner < COLUMNS ? p->inner : COLUMNS;
        p->pitch = p->inner;
        tasks = x->shape[0] * ((p->inner + COLUMNS - 1) / COLUMNS);
    }
    p->scratch = (size_t)(p->rows * p->cols) * 5 * (wk_dtypes[c->dtype].compute == WK_COMPUTE_F64 ? 8 : 4);
    if (!(p->x = wk_tensor_packed(x)))
        return wk_error_status();
    wk_parallel_for(tasks, run_task, j);
    return j->no_memory ? wk_fail(WK_ERR_MEMORY, "out of memory: %zu bytes for a plane", p->scratch) : WK_OK;
}

wk_status WK_ISA(wk_lrn_forward)(wk_call *c)
{
    job j = {0};
    return run(c, &j);
}

wk_status WK_ISA(wk_lrn_backward)(wk_call *c)
{
    job j = {.p.y = wk_tensor_packed(c->in[1])};
    j.p.dy = j.p.y ? wk_tensor_packed(c->in[2]) : NULL;
    return j.p.dy ? run(c, &j) : wk_error_status();
}
