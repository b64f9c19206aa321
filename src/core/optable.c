/* optable.c: all ops in one table, and the implementations each device has for them. */
#include <pthread.h>
#include <stdlib.h>
#include "families.h"
#include "gpu/families.h"
#include "host.h"
#include "op.h"

static wk_op *const families[] = {
#define FAMILY(name) wk_ops_##name,
    WK_FAMILIES(FAMILY)
#undef FAMILY
};

enum { FAMILIES = sizeof families / sizeof *families, MAX_OPS = 512 };

static wk_op *table[MAX_OPS];   /* in the order of the families */
static wk_op *by_name[MAX_OPS]; /* the same, sorted */
static int op_count;

/* What the records' impls point to: zeros of the library that take no place in its file. */
static const wk_impl *impls[MAX_OPS][WK_KIND_COUNT][WK_MAX_IMPLS];

static int compare_names(const void *a, const void *b)
{
    return strcmp((*(wk_op *const *)a)->name, (*(wk_op *const *)b)->name);
}

static wk_op *find(const char *name)
{
    wk_op key = {.name = name}, *p = &key;
    wk_op **found = bsearch(&p, by_name, (size_t)op_count, sizeof p, compare_names);
    return found ? *found : NULL;
}

/* WICK_WITHOUT=NAME,NAME: implementations of these names are not there for this process. */
static bool left_out(const char *name)
{
    const char *list = getenv("WICK_WITHOUT");
    size_t n = strlen(name);
    for (const char *at = list; at && (at = strstr(at, name)); at += n) {
        bool starts = at == list || at[-1] == ',', ends = at[n] == ',' || !at[n];
        if (starts && ends)
            return true;
    }
    return false;
}

/* Appends a backend's implementations to the ops they name, in the order they are listed. */
static void add_impls(wk_device_kind kind, const wk_impl *impl)
{
    for (; impl->op; impl++) {
        wk_op *op = left_out(impl->name) ? NULL : find(impl->op);
        for (int i = 0; op && i < WK_MAX_IMPLS; i++) {
            if (!op->impls[kind][i]) {
                op->impls[kind][i] = impl;
                break;
            }
        }
    }
}

static const wk_impl *const *cpu_families(void)
{
#if WK_LEVELS > 1
    static const wk_impl *const *const levels[] = {wk_cpu_families_base, wk_cpu_families_avx2,
                                                   wk_cpu_families_avx512};
    return levels[wk_host_level()];
#else
    return wk_cpu_families_base;
#endif
}

static int count_slots(const wk_slot *slots, int most)
{
    int n = 0;
    while (n < most && slots[n].name)
        n++;
    return n;
}

static void build(void)
{
    for (int f = 0; f < FAMILIES; f++) {
        for (wk_op *op = families[f]; op->name && op_count < MAX_OPS; op++) {
            op->number = op_count;
            op->impls = impls[op_count];
            op->n_in = count_slots(op->in, WK_MAX_IN);
            op->n_out = count_slots(op->out, WK_MAX_OUT);
            table[op_count++] = op;
        }
    }
    memcpy(by_name, table, sizeof table);
    qsort(by_name, (size_t)op_count, sizeof *by_name, compare_names);
    for (const wk_impl *const *family = cpu_families(); *family; family++)
        add_impls(WK_KIND_CPU, *family);
    for (const wk_impl *const *family = wk_ref_families; *family; family++)
        add_impls(WK_KIND_CPU, *family);
    add_impls(WK_KIND_ROCM, wk_rocm_impls_matmul);
    add_impls(WK_KIND_CUDA, wk_cuda_impls_matmul);
#define X(name) add_impls(WK_KIND_ROCM, wk_rocm_impls_##name);
    WK_MIOPEN_FIRST(X)
#undef X
#define X(name) add_impls(WK_KIND_CUDA, wk_cuda_impls_##name);
    WK_CUDNN_FIRST(X)
#undef X
    for (const wk_impl *const *family = wk_gpu_families; *family; family++) {
        add_impls(WK_KIND_ROCM, *family);
        add_impls(WK_KIND_CUDA, *family);
    }
    for (const wk_impl *const *family = wk_composed_families; *family; family++) {
        for (int kind = 0; kind < WK_KIND_COUNT; kind++)
            add_impls((wk_device_kind)kind, *family);
    }
#define X(name) add_impls(WK_KIND_ROCM, wk_rocm_impls_##name);
    WK_MIOPEN_BEHIND(X)
#undef X
#define X(name) add_impls(WK_KIND_CUDA, wk_cuda_impls_##name);
    WK_CUDNN_BEHIND(X)
#undef X
}

void wk_ops_init(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, build);
}

const wk_op *wk_op_find(const char *name)
{
    wk_ops_init();
    return name ? find(name) : NULL;
}

int wk_op_count(void)
{
    wk_ops_init();
    return op_count;
}

const wk_op *wk_op_at(int i)
{
    wk_ops_init();
    return i >= 0 && i < op_count ? table[i] : NULL;
}

bool wk_impl_is_vendor(const char *name)
{
    static const char *const vendors[] = {"rocblas", "miopen", "cublas", "cudnn"};
    for (size_t i = 0; i < sizeof vendors / sizeof *vendors; i++) {
        if (strcmp(name, vendors[i]) == 0)
            return true;
    }
    return false;
}

/* Before the table is built, and for the few ops without any, they are counted. */
int wk_op_inputs(const wk_op *op) { return op->n_in ? op->n_in : count_slots(op->in, WK_MAX_IN); }
int wk_op_outputs(const wk_op *op) { return op->n_out ? op->n_out : count_slots(op->out, WK_MAX_OUT); }
