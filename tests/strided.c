/* strided.c: copies between any two layouts, against a copy element by element: permuted, broadcast, padded and offset
 * views of rank 0 to 8, small and large enough for every way through the copy engine. Nothing beside the view may
 * change. */
#include <stdlib.h>
#include "test.h"
#include "wick/ops.h"

enum { CASES = 6000, ROOM = 1 << 18, GUARD = 64 };

typedef struct {
    int64_t strides[WK_MAX_RANK], reach; /* elements from the first to the last, both counted */
} layout;

static uint64_t state = 1;

/* 0 to n - 1. */
static int64_t pick(int64_t n)
{
    state = state * 6364136223846793005u + 1442695040888963407u;
    return (int64_t)((state >> 33) % (uint64_t)n);
}

static int pick_shape(int64_t *shape, int64_t most)
{
    static const int64_t sizes[] = {4, 20, 300};
    int rank = (int)pick(WK_MAX_RANK + 1);
    int64_t size = sizes[pick(3)], count = 1;
    for (int d = 0; d < rank; d++) {
        shape[d] = pick(60) == 0 ? 0 : 1 + pick(size);
        if (count * shape[d] > most)
            shape[d] = 1 + pick(2);
        count *= shape[d] ? shape[d] : 1;
    }
    return rank;
}

/* Strides for the dims in some order, with gaps between rows now and then; some dims broadcast where that may be. */
static layout pick_layout(int rank, const int64_t *shape, bool may_broadcast)
{
    layout l = {.reach = 1};
    int order[WK_MAX_RANK];
    int64_t step = pick(4) ? 1 : 1 + pick(3);
    bool gaps = pick(3) == 0, broadcast = may_broadcast && pick(3) == 0, permuted = pick(3) != 0;
    for (int d = 0; d < rank; d++)
        order[d] = d;
    for (int d = rank - 1; d > 0 && permuted; d--) {
        int64_t other = pick(d + 1);
        int t = order[d];
        order[d] = order[other];
        order[other] = t;
    }
    for (int i = rank - 1; i >= 0; i--) {
        int d = order[i];
        if (broadcast && pick(3) == 0)
            continue;
        l.strides[d] = step;
        l.reach += (shape[d] > 1 ? shape[d] - 1 : 0) * step;
        step *= shape[d] > 1 ? shape[d] : 1;
        step += gaps ? pick(4) : 0;
    }
    return l;
}

static void copy_slowly(int rank, const int64_t *shape, size_t bytes, const char *src, const layout *from,
                        char *dst, const layout *to)
{
    int64_t count = 1;
    for (int d = 0; d < rank; d++)
        count *= shape[d];
    for (int64_t i = 0; i < count; i++) {
        int64_t rest = i, s = 0, t = 0;
        for (int d = rank - 1; d >= 0; d--) {
            s += rest % shape[d] * from->strides[d];
            t += rest % shape[d] * to->strides[d];
            rest /= shape[d];
        }
        memcpy(dst + t * (int64_t)bytes, src + s * (int64_t)bytes, bytes);
    }
}

/* One copy; buffers hold the layouts' reach and GUARD elements more. */
static void check_copy(wk_dtype dtype, int rank, const int64_t *shape, const layout *from, const layout *to,
                       char *src, char *dst, char *want)
{
    size_t bytes = wk_dtype_size(dtype), area = ((size_t)to->reach + GUARD) * bytes;
    int64_t offset = pick(GUARD);
    memset(dst, 0xA5, area);
    memset(want, 0xA5, area);
    copy_slowly(rank, shape, bytes, src, from, want + offset * (int64_t)bytes, to);
    wk_device *cpu = wk_device_open("cpu");
    wk_scope_begin();
    wk_tensor *x = wk_from_pointer(cpu, dtype, rank, shape, from->strides, src, NULL, NULL);
    wk_tensor *y =
        wk_from_pointer(cpu, dtype, rank, shape, to->strides, dst + offset * (int64_t)bytes, NULL, NULL);
    CHECK_EQ(wk_copy_into(y, x), WK_OK);
    wk_scope_end();
    char text[400];
    int at = snprintf(text, sizeof text, "%s", wk_dtype_name(dtype));
    for (int d = 0; d < rank; d++)
        at += snprintf(text + at, sizeof text - (size_t)at, " %lld:%lld>%lld", (long long)shape[d],
                       (long long)from->strides[d], (long long)to->strides[d]);
    test_check(memcmp(dst, want, area) == 0, __FILE__, __LINE__, "%s (size:stride>stride): another result",
               text);
}

static void check_many(int cases, int64_t room, int64_t most)
{
    static const wk_dtype dtypes[] = {WK_U8, WK_BF16, WK_F32, WK_I64};
    char *memory[3];
    for (int i = 0; i < 3; i++)
        memory[i] = malloc((size_t)(room + GUARD) * 8);
    for (int64_t i = 0; memory[0] && i < (room + GUARD) * 8; i++)
        memory[0][i] = (char)pick(256);
    for (int i = 0; i < cases && memory[0] && memory[1] && memory[2]; i++) {
        int64_t shape[WK_MAX_RANK] = {0};
        int rank = pick_shape(shape, most);
        layout from = pick_layout(rank, shape, true), to = pick_layout(rank, shape, false);
        if (from.reach <= room && to.reach <= room)
            check_copy(dtypes[pick(4)], rank, shape, &from, &to, memory[0], memory[1], memory[2]);
    }
    for (int i = 0; i < 3; i++)
        free(memory[i]);
}

/* Past the size from which results are streamed past the cache, with odd edges. */
static void check_large(void)
{
    static const struct {
        int rank;
        int64_t shape[3], from[3];
    } cases[] = {{2, {3001, 1203, 0}, {1, 3001, 0}},
                 {3, {37, 301, 407}, {1, 37 * 407, 37}},
                 {3, {301, 37, 407}, {407, 301 * 407, 1}},
                 {2, {2048, 2048, 0}, {1, 2048, 0}}};
    enum { MOST = 37 * 301 * 407 };
    char *memory[3];
    for (int i = 0; i < 3; i++)
        memory[i] = malloc(((size_t)MOST + GUARD) * 8);
    for (int64_t i = 0; memory[0] && i < (int64_t)MOST * 8; i++)
        memory[0][i] = (char)pick(256);
    for (size_t i = 0; i < sizeof cases / sizeof *cases && memory[0] && memory[1] && memory[2]; i++) {
        layout from = {.reach = MOST}, to = {.reach = 1};
        for (int d = cases[i].rank - 1; d >= 0; d--) {
            from.strides[d] = cases[i].from[d];
            to.strides[d] = to.reach;
            to.reach *= cases[i].shape[d];
        }
        check_copy(WK_F32, cases[i].rank, cases[i].shape, &from, &to, memory[0], memory[1], memory[2]);
        check_copy(WK_F64, cases[i].rank, cases[i].shape, &from, &to, memory[0], memory[1], memory[2]);
    }
    for (int i = 0; i < 3; i++)
        free(memory[i]);
}

int main(void)
{
    check_many(CASES, 1 << 14, 1 << 12);
    check_many(CASES / 10, ROOM, ROOM / 2);
    check_large();
    return test_end();
}
