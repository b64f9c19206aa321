/* cudnn_graph.c: graphs of operations for cuDNN, and the engines that run them. */
#include <stdio.h>
#include "cudnn_plan.h"
#include "wick/index.h"

/* ---- descriptors ---- */

void wk_cudnn_words(char *words, size_t room)
{
    words[0] = 0;
    wk_cudnn.cudnnGetLastErrorString(words, room - 1);
    words[room - 1] = 0;
    words[strcspn(words, "\n")] = 0;
}

bool wk_cudnn_ok(wk_cudnn_plan *p, cudnnStatus_t status, const char *what)
{
    char words[160];
    if (p->status != CUDNN_STATUS_SUCCESS)
        return false;
    if (status == CUDNN_STATUS_SUCCESS)
        return true;
    p->status = status;
    wk_cudnn_words(words, sizeof words);
    snprintf(p->trouble, sizeof p->trouble, "%s: %s%s%s", what, wk_cudnn.cudnnGetErrorString(status),
             words[0] ? ": " : "", words);
    return false;
}

void wk_cudnn_give_up(wk_cudnn_plan *p, const char *why)
{
    if (p->status != CUDNN_STATUS_SUCCESS)
        return;
    p->status = CUDNN_STATUS_NOT_SUPPORTED;
    snprintf(p->trouble, sizeof p->trouble, "%s", why);
}

cudnnBackendDescriptor_t wk_cudnn_new(wk_cudnn_plan *p, cudnnBackendDescriptorType_t type, const char *what)
{
    cudnnBackendDescriptor_t d = NULL;
    if (p->n_made == WK_CUDNN_DESCRIPTORS) {
        wk_cudnn_give_up(p, "too many descriptors");
        return NULL;
    }
    if (p->status == CUDNN_STATUS_SUCCESS &&
        wk_cudnn_ok(p, wk_cudnn.cudnnBackendCreateDescriptor(type, &d), what))
        p->made[p->n_made++] = d;
    return d;
}

void wk_cudnn_set(wk_cudnn_plan *p, cudnnBackendDescriptor_t d, cudnnBackendAttributeName_t name,
                  cudnnBackendAttributeType_t type, int64_t n, const void *values)
{
    char what[32];
    if (p->status != CUDNN_STATUS_SUCCESS)
        return;
    cudnnStatus_t status = wk_cudnn.cudnnBackendSetAttribute(d, name, type, n, values);
    if (status == CUDNN_STATUS_SUCCESS)
        return;
    snprintf(what, sizeof what, "attribute %d", (int)name);
    wk_cudnn_ok(p, status, what);
}

void wk_cudnn_set_descriptor(wk_cudnn_plan *p, cudnnBackendDescriptor_t d, cudnnBackendAttributeName_t name,
                             cudnnBackendDescriptor_t value)
{
    wk_cudnn_set(p, d, name, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &value);
}

void wk_cudnn_finish(wk_cudnn_plan *p, cudnnBackendDescriptor_t d, const char *what)
{
    if (p->status == CUDNN_STATUS_SUCCESS)
        wk_cudnn_ok(p, wk_cudnn.cudnnBackendFinalize(d), what);
}

void wk_cudnn_add(wk_cudnn_plan *p, cudnnBackendDescriptor_t op, const char *what)
{
    wk_cudnn_finish(p, op, what);
    if (p->n_ops < WK_CUDNN_OPS)
        p->ops[p->n_ops++] = op;
    else
        wk_cudnn_give_up(p, "too many operations");
}

cudnnBackendDescriptor_t wk_cudnn_tensor_of(wk_cudnn_plan *p, const wk_cudnn_tensor *t)
{
    enum { FIRST_OWN_ID = 1000 };
    cudnnBackendDescriptor_t d = wk_cudnn_new(p, CUDNN_BACKEND_TENSOR_DESCRIPTOR, "a tensor");
    int64_t packed[WK_MAX_RANK], align = 16, id = t->id;
    const int64_t *strides = t->strides;
    bool yes = true;
    if (!strides) {
        wk_shape_strides(t->rank, t->shape, packed);
        strides = packed;
    }
    if (!id)
        id = FIRST_OWN_ID + p->next_id++;
    wk_cudnn_set(p, d, CUDNN_ATTR_TENSOR_DATA_TYPE, CUDNN_TYPE_DATA_TYPE, 1, &t->type);
    wk_cudnn_set(p, d, CUDNN_ATTR_TENSOR_DIMENSIONS, CUDNN_TYPE_INT64, t->rank, t->shape);
    wk_cudnn_set(p, d, CUDNN_ATTR_TENSOR_STRIDES, CUDNN_TYPE_INT64, t->rank, strides);
    wk_cudnn_set(p, d, CUDNN_ATTR_TENSOR_UNIQUE_ID, CUDNN_TYPE_INT64, 1, &id);
    wk_cudnn_set(p, d, CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, CUDNN_TYPE_INT64, 1, &align);
    if (t->flags & WK_CUDNN_VIRTUAL)
        wk_cudnn_set(p, d, CUDNN_ATTR_TENSOR_IS_VIRTUAL, CUDNN_TYPE_BOOLEAN, 1, &yes);
    if (t->flags & WK_CUDNN_BY_VALUE)
        wk_cudnn_set(p, d, CUDNN_ATTR_TENSOR_IS_BY_VALUE, CUDNN_TYPE_BOOLEAN, 1, &yes);
    wk_cudnn_finish(p, d, "a tensor");
    return d;
}

cudnnBackendDescriptor_t wk_cudnn_between(wk_cudnn_plan *p, cudnnDataType_t type, int rank,
                                          const int64_t *shape)
{
    wk_cudnn_tensor t = {.type = type, .rank = rank, .shape = shape, .flags = WK_CUDNN_VIRTUAL};
    return wk_cudnn_tensor_of(p, &t);
}

cudnnBackendDescriptor_t wk_cudnn_pointwise(wk_cudnn_plan *p, const wk_cudnn_step *n)
{
    cudnnBackendDescriptor_t d = wk_cudnn_new(p, CUDNN_BACKEND_POINTWISE_DESCRIPTOR, "an elementwise step");
    wk_cudnn_set(p, d, CUDNN_ATTR_POINTWISE_MODE, CUDNN_TYPE_POINTWISE_MODE, 1, &n->mode);
    wk_cudnn_set(p, d, CUDNN_ATTR_POINTWISE_MATH_PREC, CUDNN_TYPE_DATA_TYPE, 1, &n->compute);
    cudnnNanPropagation_t keep = CUDNN_PROPAGATE_NAN;
    if (n->mode == CUDNN_POINTWISE_RELU_FWD)
        wk_cudnn_set(p, d, CUDNN_ATTR_POINTWISE_NAN_PROPAGATION, CUDNN_TYPE_NAN_PROPOGATION, 1, &keep);
    if (n->axis)
        wk_cudnn_set(p, d, CUDNN_ATTR_POINTWISE_AXIS, CUDNN_TYPE_INT64, 1, &n->axis);
    wk_cudnn_finish(p, d, "an elementwise step");
    cudnnBackendDescriptor_t op =
        wk_cudnn_new(p, CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR, "an elementwise step");
    wk_cudnn_set_descriptor(p, op, CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR, d);
    wk_cudnn_set_descriptor(p, op, CUDNN_ATTR_OPERATION_POINTWISE_XDESC, n->x);
    if (n->b)
        wk_cudnn_set_descriptor(p, op, CUDNN_ATTR_OPERATION_POINTWISE_BDESC, n->b);
    if (n->t)
        wk_cudnn_set_descriptor(p, op, CUDNN_ATTR_OPERATION_POINTWISE_TDESC, n->t);
    wk_cudnn_set_descriptor(p, op, CUDNN_ATTR_OPERATION_POINTWISE_YDESC, n->y);
    wk_cudnn_add(p, op, "an elementwise step");
    return n->y;
}

cudnnBackendDescriptor_t wk_cudnn_number(wk_cudnn_plan *p, int64_t id, cudnnDataType_t type)
{
    static const int64_t ones[] = {1, 1, 1, 1};
    wk_cudnn_tensor t = {
        .id = id, .type = type, .rank = 4, .shape = ones, .strides = ones, .flags = WK_CUDNN_BY_VALUE};
    return wk_cudnn_tensor_of(p, &t);
}

cudnnBackendDescriptor_t wk_cudnn_reduce(wk_cudnn_plan *p, cudnnReduceTensorOp_t how,
                                         cudnnBackendDescriptor_t x, cudnnBackendDescriptor_t y)
{
    cudnnDataType_t compute = CUDNN_DATA_FLOAT;
    cudnnBackendDescriptor_t d = wk_cudnn_new(p, CUDNN_BACKEND_REDUCTION_DESCRIPTOR, "a reduction");
    wk_cudnn_set(p, d, CUDNN_ATTR_REDUCTION_OPERATOR, CUDNN_TYPE_REDUCTION_OPERATOR_TYPE, 1, &how);
    wk_cudnn_set(p, d, CUDNN_ATTR_REDUCTION_COMP_TYPE, CUDNN_TYPE_DATA_TYPE, 1, &compute);
    wk_cudnn_finish(p, d, "a reduction");
    cudnnBackendDescriptor_t op =
        wk_cudnn_new(p, CUDNN_BACKEND_OPERATION_REDUCTION_DESCRIPTOR, "a reduction");
    wk_cudnn_set_descriptor(p, op, CUDNN_ATTR_OPERATION_REDUCTION_DESC, d);
    wk_cudnn_set_descriptor(p, op, CUDNN_ATTR_OPERATION_REDUCTION_XDESC, x);
    wk_cudnn_set_descriptor(p, op, CUDNN_ATTR_OPERATION_REDUCTION_YDESC, y);
    wk_cudnn_add(p, op, "a reduction");
    return y;
}

cudnnBackendDescriptor_t wk_cudnn_product(wk_cudnn_plan *p, cudnnBackendDescriptor_t a,
                                          cudnnBackendDescriptor_t b, cudnnBackendDescriptor_t y)
{
    cudnnDataType_t compute = CUDNN_DATA_FLOAT;
    cudnnBackendDescriptor_t d = wk_cudnn_new(p, CUDNN_BACKEND_MATMUL_DESCRIPTOR, "a product");
    wk_cudnn_set(p, d, CUDNN_ATTR_MATMUL_COMP_TYPE, CUDNN_TYPE_DATA_TYPE, 1, &compute);
    wk_cudnn_finish(p, d, "a product");
    cudnnBackendDescriptor_t op = wk_cudnn_new(p, CUDNN_BACKEND_OPERATION_MATMUL_DESCRIPTOR, "a product");
    wk_cudnn_set_descriptor(p, op, CUDNN_ATTR_OPERATION_MATMUL_ADESC, a);
    wk_cudnn_set_descriptor(p, op, CUDNN_ATTR_OPERATION_MATMUL_BDESC, b);
    wk_cudnn_set_descriptor(p, op, CUDNN_ATTR_OPERATION_MATMUL_CDESC, y);
    wk_cudnn_set_descriptor(p, op, CUDNN_ATTR_OPERATION_MATMUL_DESC, d);
    wk_cudnn_add(p, op, "a product");
    return y;
}

cudnnBackendDescriptor_t wk_cudnn_turn(wk_cudnn_plan *p, cudnnBackendDescriptor_t x,
                                       cudnnBackendDescriptor_t y)
{
    cudnnBackendDescriptor_t op = wk_cudnn_new(p, CUDNN_BACKEND_OPERATION_RESHAPE_DESCRIPTOR, "a turn");
    wk_cudnn_set_descriptor(p, op, CUDNN_ATTR_OPERATION_RESHAPE_XDESC, x);
    wk_cudnn_set_descriptor(p, op, CUDNN_ATTR_OPERATION_RESHAPE_YDESC, y);
    wk_cudnn_add(p, op, "a turn");
    return y;
}

/* ---- engines ---- */

unsigned wk_cudnn_notes(cudnnBackendDescriptor_t config)
{
    enum { MOST = 32 };
    cudnnBackendNumericalNote_t notes[MOST];
    cudnnBackendDescriptor_t engine = NULL;
    int64_t n = 0;
    unsigned set = 0;
    if (wk_cudnn.cudnnBackendCreateDescriptor(CUDNN_BACKEND_ENGINE_DESCRIPTOR, &engine) !=
        CUDNN_STATUS_SUCCESS)
        return ~0u;
    bool known =
        wk_cudnn.cudnnBackendGetAttribute(config, CUDNN_ATTR_ENGINECFG_ENGINE, CUDNN_TYPE_BACKEND_DESCRIPTOR,
                                          1, &n, &engine) == CUDNN_STATUS_SUCCESS &&
        wk_cudnn.cudnnBackendGetAttribute(engine, CUDNN_ATTR_ENGINE_NUMERICAL_NOTE, CUDNN_TYPE_NUMERICAL_NOTE,
                                          MOST, &n, notes) == CUDNN_STATUS_SUCCESS;
    for (int64_t i = 0; known && i < n && i < MOST; i++)
        set |= 1u << notes[i];
    wk_cudnn.cudnnBackendDestroyDescriptor(engine);
    return known ? set : ~0u;
}

/* Sums are made in f32 and operands are not rounded; results are the same on every run, unless the user does without. */
static bool keeps_rules(unsigned notes, const wk_cudnn_rules *rules)
{
    unsigned never = 1u << CUDNN_NUMERICAL_NOTE_DOWN_CONVERT_INPUTS |
                     1u << CUDNN_NUMERICAL_NOTE_REDUCED_PRECISION_REDUCTION;
    if (wk_deterministic())
        never |= 1u << CUDNN_NUMERICAL_NOTE_NONDETERMINISTIC;
    if (rules->true_f32)
        never |= 1u << CUDNN_NUMERICAL_NOTE_TENSOR_CORE | 1u << CUDNN_NUMERICAL_NOTE_WINOGRAD;
    if (rules->true_f32 && rules->fft == WK_CUDNN_FFT_NONE)
        never |= 1u << CUDNN_NUMERICAL_NOTE_FFT;
    return !(notes & never);
}

/* Adds what the heuristics of a mode name. A mode that does not know the graph adds nothing. */
static void ask(wk_cudnn_plan *p, cudnnBackendDescriptor_t graph, cudnnBackendHeurMode_t mode,
                const wk_cudnn_rules *rules)
{
    cudnnBackendDescriptor_t found[WK_CUDNN_CONFIGS] = {0}, heuristics = NULL;
    int64_t n = 0, made = 0;
    if (wk_cudnn.cudnnBackendCreateDescriptor(CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR, &heuristics) !=
        CUDNN_STATUS_SUCCESS)
        return;
    while (made < WK_CUDNN_CONFIGS &&
           wk_cudnn.cudnnBackendCreateDescriptor(CUDNN_BACKEND_ENGINECFG_DESCRIPTOR, &found[made]) ==
               CUDNN_STATUS_SUCCESS)
        made++;
    if (wk_cudnn.cudnnBackendSetAttribute(heuristics, CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH,
                                          CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &graph) != CUDNN_STATUS_SUCCESS ||
        wk_cudnn.cudnnBackendSetAttribute(heuristics, CUDNN_ATTR_ENGINEHEUR_MODE, CUDNN_TYPE_HEUR_MODE, 1,
                                          &mode) != CUDNN_STATUS_SUCCESS ||
        wk_cudnn.cudnnBackendFinalize(heuristics) != CUDNN_STATUS_SUCCESS ||
        wk_cudnn.cudnnBackendGetAttribute(heuristics, CUDNN_ATTR_ENGINEHEUR_RESULTS,
                                          CUDNN_TYPE_BACKEND_DESCRIPTOR, made, &n,
                                          found) != CUDNN_STATUS_SUCCESS)
        n = 0;
    for (int64_t i = 0; i < made; i++) {
        if (i < n && p->n_configs < WK_CUDNN_CONFIGS && keeps_rules(wk_cudnn_notes(found[i]), rules))
            p->configs[p->n_configs++] = found[i];
        else
            wk_cudnn.cudnnBackendDestroyDescriptor(found[i]);
    }
    wk_cudnn.cudnnBackendDestroyDescriptor(heuristics);
}

bool wk_cudnn_use(cudnnHandle_t handle, wk_cudnn_plan *p, int i)
{
    cudnnBackendDescriptor_t e = NULL;
    int64_t n = 0, bytes = 0;
    if (wk_cudnn.cudnnBackendCreateDescriptor(CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR, &e) !=
        CUDNN_STATUS_SUCCESS)
        return false;
    bool good = wk_cudnn.cudnnBackendSetAttribute(e, CUDNN_ATTR_EXECUTION_PLAN_HANDLE, CUDNN_TYPE_HANDLE, 1,
                                                  &handle) == CUDNN_STATUS_SUCCESS &&
                wk_cudnn.cudnnBackendSetAttribute(e, CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG,
                                                  CUDNN_TYPE_BACKEND_DESCRIPTOR, 1,
                                                  &p->configs[i]) == CUDNN_STATUS_SUCCESS &&
                wk_cudnn.cudnnBackendFinalize(e) == CUDNN_STATUS_SUCCESS &&
                wk_cudnn.cudnnBackendGetAttribute(e, CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE,
                                                  CUDNN_TYPE_INT64, 1, &n, &bytes) == CUDNN_STATUS_SUCCESS;
    if (!good || (size_t)bytes > wk_workspace_most()) {
        wk_cudnn.cudnnBackendDestroyDescriptor(e);
        return false;
    }
    if (p->execution)
        wk_cudnn.cudnnBackendDestroyDescriptor(p->execution);
    p->execution = e;
    p->config = i;
    p->workspace = bytes > 0 ? (size_t)bytes : 0;
    return true;
}

static cudnnBackendDescriptor_t finish_graph(cudnnHandle_t handle, wk_cudnn_plan *p)
{
    cudnnBackendDescriptor_t graph = wk_cudnn_new(p, CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR, "a graph");
    wk_cudnn_set(p, graph, CUDNN_ATTR_OPERATIONGRAPH_OPS, CUDNN_TYPE_BACKEND_DESCRIPTOR, p->n_ops, p->ops);
    wk_cudnn_set(p, graph, CUDNN_ATTR_OPERATIONGRAPH_HANDLE, CUDNN_TYPE_HANDLE, 1, &handle);
    wk_cudnn_finish(p, graph, "the graph");
    return graph;
}

static const cudnnBackendHeurMode_t modes[] = {CUDNN_HEUR_MODE_A, CUDNN_HEUR_MODE_FALLBACK};
enum { MODES = sizeof modes / sizeof *modes };

void wk_cudnn_list(cudnnHandle_t handle, wk_cudnn_plan *p, const wk_cudnn_rules *rules)
{
    cudnnBackendDescriptor_t graph = finish_graph(handle, p);
    for (int m = 0; p->status == CUDNN_STATUS_SUCCESS && m < MODES; m++)
        ask(p, graph, modes[m], rules);
}

/* The first one from `from` on, up to the last, that works; with transforms only, or any. */
static bool use_one(cudnnHandle_t handle, wk_cudnn_plan *p, int from, int number, bool fft)
{
    for (int i = from; i < p->n_configs; i++) {
        if ((number && i != number - 1) ||
            (fft && !(wk_cudnn_notes(p->configs[i]) >> CUDNN_NUMERICAL_NOTE_FFT & 1)))
            continue;
        if (wk_cudnn_use(handle, p, i))
            return true;
    }
    return false;
}

void wk_cudnn_choose(cudnnHandle_t handle, wk_cudnn_plan *p, const wk_cudnn_rules *rules)
{
    if (rules->fft == WK_CUDNN_FFT_FIRST && !rules->number) {
        wk_cudnn_list(handle, p, rules);
        if (use_one(handle, p, 0, 0, true) || use_one(handle, p, 0, 0, false))
            return;
        wk_cudnn_give_up(p, "it has no engine for this call");
        return;
    }
    cudnnBackendDescriptor_t graph = finish_graph(handle, p);
    for (int m = 0, tried = 0; p->status == CUDNN_STATUS_SUCCESS && m < MODES; m++) {
        ask(p, graph, modes[m], rules);
        if (use_one(handle, p, tried, rules->number, false))
            return;
        tried = p->n_configs;
    }
    wk_cudnn_give_up(p, "it has no engine for this call");
}

cudnnStatus_t wk_cudnn_execute(cudnnHandle_t handle, const wk_cudnn_plan *p, void *workspace, int n,
                               const int64_t *ids, void *const *pointers)
{
    cudnnBackendDescriptor_t pack = NULL;
    cudnnStatus_t status =
        wk_cudnn.cudnnBackendCreateDescriptor(CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR, &pack);
    if (status != CUDNN_STATUS_SUCCESS)
        return status;
    status =
        wk_cudnn.cudnnBackendSetAttribute(pack, CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS, CUDNN_TYPE_INT64, n, ids);
    if (status == CUDNN_STATUS_SUCCESS)
        status = wk_cudnn.cudnnBackendSetAttribute(pack, CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS,
                                                   CUDNN_TYPE_VOID_PTR, n, pointers);
    if (status == CUDNN_STATUS_SUCCESS)
        status = wk_cudnn.cudnnBackendSetAttribute(pack, CUDNN_ATTR_VARIANT_PACK_WORKSPACE,
                                                   CUDNN_TYPE_VOID_PTR, 1, &workspace);
    if (status == CUDNN_STATUS_SUCCESS)
        status = wk_cudnn.cudnnBackendFinalize(pack);
    if (status == CUDNN_STATUS_SUCCESS)
        status = wk_cudnn.cudnnBackendExecute(handle, p->execution, pack);
    wk_cudnn.cudnnBackendDestroyDescriptor(pack);
    return status;
}
