/* op.h: the op table and the call record.
 *
 * An op is one record: its inputs, parameters and outputs by name, the dtypes it takes, a function that checks
 * a call and works out the outputs, and samples of good and of bad calls. From this one record come dispatch,
 * `wick op`, `wick ops`, `wick check`, the gradient checks and the tests.
 *
 * The life of a call:
 *     wk_softmax(x, ...)       src/ops/softmax.c: fills a wk_call and hands it to wk_call_run
 *     check_slots              dispatch.c: inputs there, one device, dtypes as the slots say
 *     op->infer                src/ops/softmax.c: shapes and parameters; what the outputs will be
 *     impl->refuse, impl->run  src/cpu/softmax.c, src/gpu/..., in the order of preference */
#ifndef WK_CORE_OP_H
#define WK_CORE_OP_H

#include <stddef.h>
#include "tensor.h"

/* ---- Dtypes an op or a slot takes, as a set ---- */

#define WK_SET(d) (1u << (d))
enum {
    WK_FLOATS = WK_SET(WK_F32) | WK_SET(WK_F16) | WK_SET(WK_BF16) | WK_SET(WK_F64),
    WK_INTS = WK_SET(WK_U8) | WK_SET(WK_U32) | WK_SET(WK_I64) | WK_SET(WK_I32) | WK_SET(WK_I16),
    WK_ALL = WK_FLOATS | WK_INTS,
    WK_SIGNED = WK_FLOATS | WK_SET(WK_I64) | WK_SET(WK_I32) | WK_SET(WK_I16),
    WK_IDS = WK_SET(WK_U8) | WK_SET(WK_U32) | WK_SET(WK_I32) | WK_SET(WK_I64),
    WK_CONDS = WK_SET(WK_U8) | WK_SET(WK_U32) | WK_SET(WK_I64),
};

/* ---- Inputs and outputs ---- */

enum {
    WK_MAX_IN = 10,
    WK_MAX_OUT = 8,
    WK_OPTIONAL = 1, /* input: may be NULL; output: an extra one, made when asked for */
    WK_STAT = 2,     /* f32 for f32, f16 and bf16 data, f64 for f64 */
    WK_ANY = 4,      /* any dtype: infer looks */
    /* Output: a C caller may leave it out (a gradient that nobody needs). With WK_OPTIONAL: `wick op` makes it always,
     * benchmarks do not, checks do both. */
    WK_SKIP = 16,
    WK_OPAQUE = 32, /* output: bytes for another op, in the implementation's own order */
    WK_TAIL = 8,    /* the last input slot: any number of tensors, named by op->tail_name */
    WK_UPDATE = 32, /* input: the op changes a part of it; of all inputs only this one may be the output */
};

/* The dtype of a slot: the call's (dtypes = 0, no flag), one of a set, or by flag. */
typedef struct {
    const char *name;
    unsigned flags;
    unsigned dtypes;
} wk_slot;

/* ---- Parameters: named fields of the op's parameter struct ---- */

typedef enum {
    WK_P_INT,    /* int64_t */
    WK_P_BOOL,   /* int64_t, 0 or 1 */
    WK_P_FLOAT,  /* double */
    WK_P_SCALAR, /* wk_scalar: exact for both kinds of dtype */
    WK_P_INTS,   /* int64_t[count]; one number stands for all */
    WK_P_LIST,   /* wk_list */
    WK_P_FLOATS, /* double[count]; one number stands for all */
    WK_P_ENUM,   /* int64_t: the place in choices, "accurate|fast|log" */
    WK_P_DTYPE,  /* wk_dtype as int64_t */
    WK_P_TEXT,   /* char[count] */
} wk_param_type;

#define WK_ABSENT INT64_MIN

typedef struct {
    int64_t n, v[WK_MAX_RANK];
} wk_list;

typedef struct {
    double f;
    int64_t i; /* f saturated, or the integer itself */
} wk_scalar;

typedef struct {
    const char *name;
    wk_param_type type;
    unsigned offset; /* in the parameter struct */
    /* What an absent one means, as text; NULL: it must be given. Where the call's other arguments say it, a word for
     * people ("kernel_size"): the field's numbers are then WK_ABSENT, or NaN. */
    const char *fallback;
    const char *choices; /* of an enum */
    int count;           /* of INTS, FLOATS and TEXT */
} wk_param;

/* The parameters of a record: WK_PARAM_LIST({"dim", ...}, {...}), at most 32; a list ends where the name is NULL. */
#define WK_PARAM_LIST(...) \
    (const wk_param[]) \
    { \
        __VA_ARGS__, { 0 } \
    }

/* ---- The record of an op ---- */

typedef struct wk_call wk_call;
typedef struct wk_op wk_op;

typedef struct {
    const char *op, *name;
    wk_status (*run)(wk_call *);
    /* Why this implementation does not take the call, NULL when it does. NULL itself: it takes everything. */
    const char *(*refuse)(const wk_call *);
    const void *data; /* what run needs to know beyond the call, where one function serves several ops */
} wk_impl;

/* Implementations that are a vendor's library's; the others are wick's own. */
#define WK_VENDOR_IMPLS "rocblas, miopen, cublas or cudnn"
bool wk_impl_is_vendor(const char *name);

enum { WK_MAX_IMPLS = 4, WK_PARAMS_BYTES = 512 /* the most a parameter struct has */ };

struct wk_op {
    const char *name, *summary;
    int number;      /* its place in the table; filled when that is built */
    int n_in, n_out; /* slots that have a name; filled then too: wk_op_inputs and wk_op_outputs */
    unsigned dtypes; /* of the call: that of the first slot with neither set nor flag */
    wk_slot in[WK_MAX_IN], out[WK_MAX_OUT];
    const wk_param *params; /* a WK_PARAM_LIST; NULL where there are none */
    wk_status (*infer)(wk_call *);
    bool any_output; /* implementations write given outputs of any layout, not only packed ones */
    /* The name of tail input i into buf, or NULL when there are no more of them; see WK_TAIL. */
    const char *(*tail_name)(const void *params, int i, char *buf, size_t room);
    /* Set where the op changes tensors of the tail: whether it gives tail input i anew. (Gradients give one of each.) */
    bool (*tail_gives)(const void *params, int i);
    /* By convention NAME_backward is the gradient: its inputs carry the names of NAME's inputs and outputs, its
     * outputs those of the inputs with a d in front. */
    const char *const *samples; /* calls that must be right, see sample.h; NULL-terminated */
    const char *const *errors;  /* calls that must fail, with a word of the message */
    /* Implementations by device kind, best first: impls[kind][0], ...; there when the table is built. */
    const wk_impl *(*impls)[WK_MAX_IMPLS];
};

/* ---- A call ---- */

struct wk_call {
    const wk_op *op;
    const void *params; /* the op's parameter struct */
    const wk_tensor *in[WK_MAX_IN];
    const wk_tensor *const *tail; /* inputs of the tail slot */
    int n_tail;
    unsigned want;              /* bit i: output i, if it may be left out, is asked for */
    wk_tensor *out[WK_MAX_OUT]; /* given: written into (the _into forms); else made */
    /* For ops with an output per tail input, n_tail places; NULL when not asked for. What is there is written into: it
     * is the input itself, packed. */
    wk_tensor **tail_out;
    /* Filled on the way: */
    wk_dtype dtype; /* of the first slot with neither set nor flag */
    wk_device *device;
    wk_spec spec[WK_MAX_OUT];
    const wk_impl *impl; /* the one that runs */
    uint64_t variant;    /* and which of its ways, where a search has found one; 0: its usual one */
};

/* Runs the call: on success c->out holds what was asked for, owned by the innermost scope. On failure nothing
 * is made and the reason is pending. */
wk_status wk_call_run(wk_call *c);
/* The same, returning output 0. */
wk_tensor *wk_call_run1(wk_call *c);
/* The same for several outputs: each goes to its place (NULL on failure); a place that is NULL is not wanted. */
wk_status wk_call_run_into(wk_call *c, wk_tensor **const *places, int n);

/* The first part of wk_call_run: fails for a bad call, else fills dtype, device and spec. */
wk_status wk_call_check(wk_call *c);
/* Why the implementation would not run a call that is checked; NULL when it would. */
const char *wk_call_refusal(const wk_call *c, const wk_impl *impl);
/* What this thread's calls are forced to; "" for the usual choice. */
const char *wk_forced_impl(void);

/* The implementation that a call with its dtype and device filled in would get; NULL, with the reason, when none takes
 * it. */
const wk_impl *wk_call_pick(const wk_call *c, const char **reason);

/* An op by name; NULL when there is none. */
const wk_op *wk_op_find(const char *name);
/* Ops in the order of the table. */
int wk_op_count(void);
const wk_op *wk_op_at(int i);
/* Slots used, by the names that are there. */
int wk_op_inputs(const wk_op *op);
int wk_op_outputs(const wk_op *op);

/* A parameter struct with every fallback set, zero elsewhere. */
void wk_params_defaults(const wk_op *op, void *params);
/* Sets one parameter from text; records an error and returns its status when it does not read. */
wk_status wk_params_parse(const wk_op *op, void *params, const char *name, const char *text, unsigned *seen);
/* Fails for a parameter without fallback that is not in seen. */
wk_status wk_params_complete(const wk_op *op, unsigned seen);
/* Public options to a parameter struct of the same fields: a field that is all zero gets its fallback. */
void wk_params_from_options(const wk_op *op, void *params, const void *options, size_t size);

/* strtod with a decimal point, whatever the locale of the process says. */
double wk_read_double(const char *text, char **end);

/* Bytes of a parameter's field. */
size_t wk_param_bytes(const wk_param *p);

/* The parameters of a call, typed. */
#define WK_PARAMS(c, type) ((const type *)(c)->params)

/* ---- What front ends use ---- */

/* "conv2d: weight: ..." : fails with the op's name and the argument's in front. */
wk_status wk_call_fail(const wk_call *c, wk_status status, const char *argument, const char *format, ...)
    __attribute__((format(printf, 4, 5)));
/* Says what output i will be. */
void wk_call_out(wk_call *c, int i, wk_dtype dtype, int rank, const int64_t *shape);
void wk_call_out_like(wk_call *c, int i, const wk_tensor *t);
/* Checks of the usual kinds; i is the input's slot. */
wk_status wk_call_rank(const wk_call *c, int i, int lo, int hi);
wk_status wk_call_shape(const wk_call *c, int i, int rank, const int64_t *shape);
wk_status wk_call_same_shape(const wk_call *c, int i, int as);
/* A dim parameter as one of [0, rank). */
wk_status wk_call_dim(const wk_call *c, const char *name, int64_t dim, int rank, int *out);
/* Fails unless the condition holds. */
#define WK_NEED(condition, ...) \
    do { \
        if (!(condition)) \
            return wk_call_fail(__VA_ARGS__); \
    } while (0)

/* The dtype that statistics of this data have (WK_STAT). */
static inline wk_dtype wk_stat_dtype(wk_dtype d) { return d == WK_F64 ? WK_F64 : WK_F32; }
/* A number as the dtype's compute kinds see it. */
static inline wk_scalar wk_scalar_of(double v) { return (wk_scalar){v, wk_saturate(v, -0x1p63, 0x1p63)}; }

#endif
