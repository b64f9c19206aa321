/* cudnn_plan.h: how ops run by cuDNN: a handle for each stream, and what was set up for a call kept for the next like
 * it.
 *
 * Where cuDNN wants a graph of operations (convolution, attention), a family builds it with the functions below; the
 * heuristics then name engines, those that keep wick's promises (true f32, the same bits every time) are tried in the
 * order they come, and the first that works is kept. */
#ifndef WK_CUDA_CUDNN_PLAN_H
#define WK_CUDA_CUDNN_PLAN_H

#include "cuda_libs.h"
#include "cudnn.h"
#include "gpu/gpu.h"
#include "gpu/vendor.h"

/* The functions, by their own names: wk_cudnn.cudnnBackendFinalize(...). */
#define X(result, name, arguments) result(*name) arguments;
typedef struct {
    WK_CUDNN_CALLS(X)
    WK_CUDNN_LAYER_CALLS(X)
} wk_cudnn_calls;
#undef X
extern wk_cudnn_calls wk_cudnn;

/* Loads the library, once; false when it is not to be had. */
bool wk_cudnn_load(void);

enum { WK_CUDNN_DESCRIPTORS = 160, WK_CUDNN_CONFIGS = 32, WK_CUDNN_OPS = 40, WK_CUDNN_TENSORS = 8 };

/* What was set up for a kind of call. */
typedef struct wk_cudnn_plan {
    wk_kept kept;                                        /* first */
    cudnnBackendDescriptor_t made[WK_CUDNN_DESCRIPTORS]; /* all there are, to be destroyed with the plan */
    int n_made;
    cudnnBackendDescriptor_t ops[WK_CUDNN_OPS];
    int n_ops;
    cudnnBackendDescriptor_t configs[WK_CUDNN_CONFIGS]; /* engines that would do, best guess first */
    int n_configs;
    cudnnBackendDescriptor_t execution;
    int config; /* the one of them it runs */
    int64_t next_id;
    cudnnTensorDescriptor_t tensor[WK_CUDNN_TENSORS]; /* of ops that are no graphs */
    void *op;                                         /* descriptors of the family's own; freed by */
    void (*destroy)(struct wk_cudnn_plan *);
    size_t workspace;     /* bytes that run gets */
    cudnnStatus_t status; /* of the set-up: kept too, so that a refusal is asked for once */
    char trouble[240];    /* which step failed, and the library's words */
} wk_cudnn_plan;

/* One call by cuDNN. `set_up` fills a plan, only when there is none yet for the key; `run` queues the work. Both get
 * `data` and run one at a time on a stream. */
typedef struct {
    const wk_call *call;
    wk_key key; /* all that the plan depends on beside op and dtype */
    void (*set_up)(cudnnHandle_t, wk_cudnn_plan *, const void *data);
    cudnnStatus_t (*run)(cudnnHandle_t, const wk_cudnn_plan *, void *workspace, const void *data);
    const void *data;
} wk_cudnn_call;

/* WK_ERR_UNSUPPORTED when cuDNN has nothing for the call; the next implementation may take it. */
wk_status wk_cudnn_run(wk_cudnn_call *d);

/* A second queue for parts of a call that may overlap: made when it is first asked for, and kept with s. Who uses it
 * orders it (wk_stream_follow) after s before, and s after it at the end. */
wk_status wk_cudnn_beside(wk_stream *s, wk_stream **beside);

/* Launches recorded for the next calls at the same places: all the memory that they use. */
enum { WK_CUDNN_PLACES = 16, WK_CUDNN_RECORDINGS = 4 };
typedef struct {
    void *places[WK_CUDNN_PLACES];
    void *exec; /* the graph; NULL: none yet */
    int seen;   /* calls at these places */
    uint64_t last;
} wk_cudnn_recording;
typedef struct {
    wk_cudnn_recording kept[WK_CUDNN_RECORDINGS];
    const wk_driver *driver;
    uint64_t calls;
    int patience; /* so many calls more before one is recorded */
    bool failed;  /* it cannot be recorded */
} wk_cudnn_replay;
/* Runs `queue`, which does nothing but call cuDNN on the handle's stream, or replays what it did; see cudnn_replay.c. */
typedef cudnnStatus_t wk_cudnn_queue(cudnnHandle_t, const void *data);
cudnnStatus_t wk_cudnn_replayed(cudnnHandle_t h, wk_cudnn_replay *r, const wk_call *c,
                                void *const places[WK_CUDNN_PLACES], wk_cudnn_queue *queue, const void *data);
void wk_cudnn_replay_free(wk_cudnn_replay *r);

/* Why cuDNN cannot take the call, whatever the op: the library is missing, a dtype out of the set, an empty tensor, a
 * size beyond an int. NULL when it can. */
const char *wk_cudnn_refuse(const wk_call *c, unsigned dtypes);

cudnnDataType_t wk_cudnn_dtype(wk_dtype dtype);
/* The dtype that sums are made in. */
static inline cudnnDataType_t wk_cudnn_compute(wk_dtype dtype)
{
    return dtype == WK_F64 ? CUDNN_DATA_DOUBLE : CUDNN_DATA_FLOAT;
}

/* Makes tensor i of the plan for an op that is no graph, packed; sizes below 2^31. */
void wk_cudnn_packed(wk_cudnn_plan *p, int i, wk_dtype dtype, int rank, const int64_t *shape);

/* alpha or beta for tensors of this dtype. */
static inline const void *wk_cudnn_factor(wk_dtype dtype, bool one)
{
    static const float f[] = {0, 1};
    static const double d[] = {0, 1};
    return dtype == WK_F64 ? (const void *)&d[one] : (const void *)&f[one];
}

/* The ways that cuDNN has for a call of the family, for wk_tune; see wk_gpu_variants. */
int wk_cudnn_conv_variants(const wk_call *c, size_t workspace, uint64_t *list, int room);
int wk_cudnn_attention_variants(uint64_t *list, int room);

/* ---- graphs ----
 * After a step that failed the others do nothing: the plan's status is looked at once, at the end. */

/* Notes a status; false when it is not a success. `what` says which step it was. */
bool wk_cudnn_ok(wk_cudnn_plan *p, cudnnStatus_t status, const char *what);
/* Notes that cuDNN will not do, for a reason of wick's. */
void wk_cudnn_give_up(wk_cudnn_plan *p, const char *why);
/* The library's words on what went wrong last, on one line; "" when it has none. */
void wk_cudnn_words(char *words, size_t room);

cudnnBackendDescriptor_t wk_cudnn_new(wk_cudnn_plan *p, cudnnBackendDescriptorType_t type, const char *what);
void wk_cudnn_set(wk_cudnn_plan *p, cudnnBackendDescriptor_t d, cudnnBackendAttributeName_t name,
                  cudnnBackendAttributeType_t type, int64_t n, const void *values);
void wk_cudnn_set_descriptor(wk_cudnn_plan *p, cudnnBackendDescriptor_t d, cudnnBackendAttributeName_t name,
                             cudnnBackendDescriptor_t value);
void wk_cudnn_finish(wk_cudnn_plan *p, cudnnBackendDescriptor_t d, const char *what);
/* Finishes an operation and adds it to the graph. */
void wk_cudnn_add(wk_cudnn_plan *p, cudnnBackendDescriptor_t op, const char *what);

/* A tensor, at a multiple of 16 bytes; strides in elements, packed where NULL. */
enum { WK_CUDNN_VIRTUAL = 1, WK_CUDNN_BY_VALUE = 2 };
typedef struct {
    int64_t id; /* by which a pointer is given at the run; 0: the next free one */
    cudnnDataType_t type;
    int rank;
    const int64_t *shape, *strides;
    int flags;
} wk_cudnn_tensor;
cudnnBackendDescriptor_t wk_cudnn_tensor_of(wk_cudnn_plan *p, const wk_cudnn_tensor *t);

/* One that is not in memory, packed. */
cudnnBackendDescriptor_t wk_cudnn_between(wk_cudnn_plan *p, cudnnDataType_t type, int rank,
                                          const int64_t *shape);

/* Adds y = mode(x, b), where t; b and t may be NULL. Returns y. */
typedef struct {
    cudnnPointwiseMode_t mode;
    cudnnDataType_t compute;
    cudnnBackendDescriptor_t x, b, t, y;
    int64_t axis; /* of GEN_INDEX */
} wk_cudnn_step;
cudnnBackendDescriptor_t wk_cudnn_pointwise(wk_cudnn_plan *p, const wk_cudnn_step *n);

/* A number for tensors of rank 4 that is given at the run. */
cudnnBackendDescriptor_t wk_cudnn_number(wk_cudnn_plan *p, int64_t id, cudnnDataType_t type);
/* Add y = x reduced to y's shape, y = a . b, and y = x with its last two dimensions exchanged; in f32. All return y. */
cudnnBackendDescriptor_t wk_cudnn_reduce(wk_cudnn_plan *p, cudnnReduceTensorOp_t how,
                                         cudnnBackendDescriptor_t x, cudnnBackendDescriptor_t y);
cudnnBackendDescriptor_t wk_cudnn_product(wk_cudnn_plan *p, cudnnBackendDescriptor_t a,
                                          cudnnBackendDescriptor_t b, cudnnBackendDescriptor_t y);
cudnnBackendDescriptor_t wk_cudnn_turn(wk_cudnn_plan *p, cudnnBackendDescriptor_t x,
                                       cudnnBackendDescriptor_t y);

/* The rules an engine has to keep beside being deterministic. */
typedef enum { WK_CUDNN_FFT_NONE, WK_CUDNN_FFT_TOO, WK_CUDNN_FFT_FIRST } wk_cudnn_fft;
typedef struct {
    bool
        true_f32; /* no tensor cores, which would round to tf32, nor Winograd's transforms, which lose digits */
    wk_cudnn_fft fft; /* Fourier transforms, which lose none: none, where they come, or before all others */
    int number;       /* the configuration to take, from 1 on; 0: the first that works */
} wk_cudnn_rules;
/* The graph is complete: asks for configurations, all there are. */
void wk_cudnn_list(cudnnHandle_t handle, wk_cudnn_plan *p, const wk_cudnn_rules *rules);
/* The same, until one works out. */
void wk_cudnn_choose(cudnnHandle_t handle, wk_cudnn_plan *p, const wk_cudnn_rules *rules);
/* The numerical notes of a configuration's engine, as bits; ~0 where they cannot be had. */
unsigned wk_cudnn_notes(cudnnBackendDescriptor_t config);
/* Lets go of all that the plan holds. */
void wk_cudnn_plan_clear(wk_cudnn_plan *p);
/* Makes configuration i the one that runs; false, with the plan as it was, where it does not work out. */
bool wk_cudnn_use(cudnnHandle_t handle, wk_cudnn_plan *p, int i);

/* Runs the plan's graph; pointers by id, of by-value tensors to host memory. */
cudnnStatus_t wk_cudnn_execute(cudnnHandle_t handle, const wk_cudnn_plan *p, void *workspace, int n,
                               const int64_t *ids, void *const *pointers);

#endif
