/* tensors.c: making tensors, views, and who calls release when. */
#include "core/memory.h"
#include "values.h"

static wk_device *cpu;

/* ---- making ---- */

static void test_make(void)
{
    const float data[] = {1, 2, 3, 4, 5, 6};
    wk_tensor *t = wk_from_host(cpu, WK_F32, SHAPE(2, 3), data);
    CHECK(HOLDS(t, 1, 2, 3, 4, 5, 6));
    CHECK_EQ(wk_rank(t), 2);
    CHECK_EQ(wk_dim(t, 0), 2);
    CHECK_EQ(wk_dim(t, -1), 3);
    CHECK_EQ(wk_dim(t, 2), -1);
    CHECK_EQ(wk_dim(t, -3), -1);
    CHECK_EQ(wk_count(t), 6);
    CHECK_EQ(wk_shape(t)[1], 3);
    CHECK_EQ(wk_strides(t)[0], 3);
    CHECK_EQ(wk_dtype_of(t), WK_F32);
    CHECK(wk_device_of(t) == cpu);
    CHECK(wk_is_packed(t));
    CHECK_EQ((uintptr_t)wk_data(t) % 64, 0);
    wk_drop(t);

    t = wk_from_host(cpu, WK_F64, SCALAR, &(double){2.5});
    CHECK_EQ(wk_rank(t), 0);
    CHECK_EQ(wk_count(t), 1);
    CHECK(wk_item(t) == 2.5);
    wk_drop(t);
    t = wk_from_host(cpu, WK_I16, SHAPE(1, 2, 1, 2, 1, 2, 1, 2), (int16_t[16]){3, -4});
    CHECK_EQ(wk_rank(t), 8);
    CHECK_EQ(wk_count(t), 16);
    wk_drop(t);
    t = wk_from_host(cpu, WK_U8, SHAPE(3, 0, 2), NULL);
    CHECK(t && wk_count(t) == 0 && wk_is_packed(t));
    CHECK_EQ(wk_to_host(t, NULL), WK_OK);
    wk_drop(t);
    CHECK_FINE();
}

static void test_make_errors(void)
{
    const int64_t nine[] = {1, 1, 1, 1, 1, 1, 1, 1, 1}, huge = INT64_MAX / 16;
    CHECK_NULL(wk_empty(NULL, WK_F32, SHAPE(2)), WK_ERR_ARGUMENT, "empty: device");
    CHECK_NULL(wk_empty(cpu, WK_DTYPE_COUNT, SHAPE(2)), WK_ERR_DTYPE, "empty: dtype");
    CHECK_NULL(wk_empty(cpu, (wk_dtype)-1, SHAPE(2)), WK_ERR_DTYPE, "empty: dtype");
    CHECK_NULL(wk_empty(cpu, WK_F32, -1, nine), WK_ERR_SHAPE, "empty: rank");
    CHECK_NULL(wk_empty(cpu, WK_F32, 9, nine), WK_ERR_SHAPE, "empty: rank");
    CHECK_NULL(wk_empty(cpu, WK_F32, 1, NULL), WK_ERR_ARGUMENT, "empty: shape");
    CHECK_NULL(wk_empty(cpu, WK_F32, SHAPE(2, -1)), WK_ERR_SHAPE, "[2,-1]");
    CHECK_NULL(wk_empty(cpu, WK_F32, SHAPE(huge, huge)), WK_ERR_SHAPE, "empty: shape");
    CHECK_NULL(wk_empty(cpu, WK_F32, SHAPE(huge)), WK_ERR_MEMORY, "memory");
    CHECK_NULL(wk_from_host(cpu, WK_F32, SHAPE(2), NULL), WK_ERR_ARGUMENT, "from_host: data");
    CHECK_NULL(wk_from_host(NULL, WK_F32, SHAPE(2), nine), WK_ERR_ARGUMENT, "from_host: device");
    CHECK_NULL(wk_from_pointer(cpu, WK_F32, SHAPE(2), NULL, NULL, NULL, NULL), WK_ERR_ARGUMENT,
               "from_pointer: data");
    CHECK_NULL(wk_to(NULL, cpu), WK_ERR_ARGUMENT, "to: t");
    wk_tensor *t = counting(WK_F32, SHAPE(2));
    CHECK_NULL(wk_to(t, NULL), WK_ERR_ARGUMENT, "to: device");
    CHECK_FAILS(wk_to_host(NULL, &(float){0}), WK_ERR_ARGUMENT, "to_host: t");
    CHECK_FAILS(wk_to_host(t, NULL), WK_ERR_ARGUMENT, "to_host: data");
    CHECK(isnan(wk_item(t)));
    CHECK_FAILS(wk_error_status(), WK_ERR_SHAPE, "item: t");
    CHECK(isnan(wk_item(NULL)));
    CHECK_FAILS(wk_error_status(), WK_ERR_ARGUMENT, "item: t");
    wk_drop(t);
}

static void test_null(void)
{
    CHECK(wk_retain(NULL) == NULL);
    wk_drop(NULL);
    CHECK_EQ(wk_dtype_of(NULL), WK_DTYPE_COUNT);
    CHECK_EQ(wk_rank(NULL), -1);
    CHECK_EQ(wk_dim(NULL, 0), -1);
    CHECK_EQ(wk_count(NULL), 0);
    CHECK_EQ(wk_is_packed(NULL), 0);
    CHECK_EQ(wk_storage_version(NULL), 0);
    CHECK(!wk_shape(NULL) && !wk_strides(NULL) && !wk_data(NULL) && !wk_device_of(NULL));
    CHECK_FINE();
    CHECK_NULL(wk_reshape(NULL, SHAPE(1)), WK_ERR_ARGUMENT, "reshape");
    CHECK_NULL(wk_transpose(NULL, 0, 1), WK_ERR_ARGUMENT, "transpose: t");
    CHECK_NULL(wk_permute(NULL, (int[]){0}), WK_ERR_ARGUMENT, "permute: t");
    CHECK_NULL(wk_narrow(NULL, 0, 0, 1), WK_ERR_ARGUMENT, "narrow: t");
    CHECK_NULL(wk_broadcast(NULL, SHAPE(1)), WK_ERR_ARGUMENT, "broadcast: t");
    CHECK_NULL(wk_squeeze(NULL, 0), WK_ERR_ARGUMENT, "squeeze: t");
    CHECK_NULL(wk_unsqueeze(NULL, 0), WK_ERR_ARGUMENT, "unsqueeze: t");
    CHECK_NULL(wk_flatten(NULL, 0, 0), WK_ERR_ARGUMENT, "flatten: t");
    CHECK_NULL(wk_as_strided(NULL, SHAPE(1), (int64_t[]){1}, 0), WK_ERR_ARGUMENT, "as_strided: t");
    CHECK_NULL(wk_copy(NULL), WK_ERR_ARGUMENT, "copy: x");
    CHECK_FAILS(wk_copy_into(NULL, NULL), WK_ERR_ARGUMENT, "dst");
    CHECK_FAILS(wk_fill_into(NULL, 1), WK_ERR_ARGUMENT, "dst");
}

/* ---- memory of the caller's ---- */

static void count_call(void *ctx) { ++*(int *)ctx; }

static void test_from_pointer(void)
{
    float data[12];
    int released = 0;
    for (int i = 0; i < 12; i++)
        data[i] = (float)i;
    wk_tensor *t = wk_from_pointer(cpu, WK_F32, SHAPE(3, 2), (int64_t[]){4, 1}, data, count_call, &released);
    CHECK(HOLDS(t, 0, 1, 4, 5, 8, 9));
    CHECK(wk_data(t) == data && !wk_is_packed(t));
    wk_tensor *view = wk_narrow(t, 0, 1, 1), *copy = wk_copy(t), *more = wk_retain(t);
    wk_drop(t);
    wk_drop(more);
    CHECK_EQ(released, 0); /* the view still needs it */
    CHECK(HOLDS(view, 4, 5));
    wk_drop(view);
    CHECK_EQ(released, 1);
    CHECK(HOLDS(copy, 0, 1, 4, 5, 8, 9));
    wk_drop(copy);
    CHECK_EQ(released, 1);

    /* Packed without strides, written through, released by a scope; an empty one needs no memory. */
    wk_scope_begin();
    t = wk_from_pointer(cpu, WK_F32, SHAPE(2, 2), NULL, data, count_call, &released);
    CHECK(wk_is_packed(t));
    CHECK_EQ(wk_fill_into(t, 7), WK_OK);
    CHECK(data[0] == 7 && data[3] == 7 && data[4] == 4);
    CHECK(wk_from_pointer(cpu, WK_F32, SHAPE(0), NULL, NULL, count_call, &released) != NULL);
    CHECK(wk_from_pointer(cpu, WK_F32, SHAPE(2), NULL, data, NULL, NULL) != NULL);
    CHECK_EQ(released, 1);
    wk_scope_end();
    CHECK_EQ(released, 3);
    CHECK_FINE();
}

static void test_from_pointer_errors(void)
{
    float data[4] = {0};
    int released = 0;
    const int64_t far = INT64_MAX / 4;
    CHECK_NULL(wk_from_pointer(NULL, WK_F32, SHAPE(2), NULL, data, count_call, &released), WK_ERR_ARGUMENT,
               "device");
    CHECK_NULL(wk_from_pointer(cpu, WK_F32, SHAPE(-2), NULL, data, count_call, &released), WK_ERR_SHAPE,
               "shape");
    CHECK_NULL(wk_from_pointer(cpu, WK_F32, SHAPE(2), (int64_t[]){-1}, data, count_call, &released),
               WK_ERR_SHAPE, "strides");
    CHECK_NULL(wk_from_pointer(cpu, WK_F32, SHAPE(9, 9), (int64_t[]){far, far}, data, count_call, &released),
               WK_ERR_SHAPE, "strides");
    CHECK_NULL(wk_from_pointer(cpu, WK_F32, SHAPE(2), NULL, NULL, count_call, &released), WK_ERR_ARGUMENT,
               "data");
    CHECK_NULL(wk_from_pointer(cpu, WK_F32, SHAPE(2), NULL, (char *)data + 2, count_call, &released),
               WK_ERR_ARGUMENT, "aligned");
    CHECK_NULL(wk_empty(NULL, WK_F32, SHAPE(2)), WK_ERR_ARGUMENT, "device");
    long live = wk_alloc_live();
    wk_tensor *t = NULL;
    for (int n = 1; !t && n < 10; n++) { /* out of memory at each of its allocations */
        wk_alloc_fail_at(n, 1);
        t = wk_from_pointer(cpu, WK_F32, SHAPE(2), NULL, data, count_call, &released);
        wk_alloc_fail_at(0, 0);
        CHECK(t || wk_error_status() == WK_ERR_MEMORY);
        CHECK(t || wk_alloc_live() == live);
        CHECK_EQ(released, 0);
        wk_error_clear();
    }
    wk_empty(NULL, WK_F32, SHAPE(2)); /* while an error is pending */
    CHECK(wk_from_pointer(cpu, WK_F32, SHAPE(2), NULL, data, count_call, &released) == NULL);
    wk_error_clear();
    CHECK_EQ(released, 0);
    wk_drop(t);
    CHECK_EQ(released, 1);
}

/* ---- views ---- */

static void test_reshape(void)
{
    wk_scope_begin();
    wk_tensor *t = counting(WK_F32, SHAPE(4, 6));
    wk_tensor *v = wk_reshape(t, SHAPE(2, -1, 3));
    CHECK(has_shape(v, SHAPE(2, 4, 3)) && wk_data(v) == wk_data(t) &&
          same_elements(wk_flatten(v, 0, -1), wk_flatten(t, 0, 1)));
    CHECK(has_shape(wk_reshape(t, SHAPE(-1)), SHAPE(24)));
    CHECK(has_shape(wk_reshape(t, SHAPE(24, 1, -1)), SHAPE(24, 1, 1)));
    wk_tensor *one = wk_reshape(counting(WK_F32, SHAPE(1, 1)), SCALAR);
    CHECK(has_shape(one, SCALAR) && wk_item(one) == 0);
    CHECK(has_shape(wk_reshape(one, SHAPE(1, 1, 1, 1, 1, 1, 1, 1)), SHAPE(1, 1, 1, 1, 1, 1, 1, 1)));
    CHECK(has_shape(wk_reshape(counting(WK_F32, SHAPE(0, 3)), SHAPE(5, -1)), SHAPE(5, 0)));
    CHECK(has_shape(wk_reshape(counting(WK_F32, SHAPE(0, 3)), SHAPE(2, 0, 7)), SHAPE(2, 0, 7)));

    /* Rows with a gap split but do not join; a transposed tensor joins nothing and is copied. */
    wk_tensor *gap = wk_narrow(t, 1, 1, 4), *turned = wk_transpose(t, 0, 1);
    v = wk_reshape(gap, SHAPE(2, 2, 2, 2));
    CHECK(v->storage == t->storage && same_elements(v, gap));
    v = wk_reshape(gap, SHAPE(16));
    CHECK(v->storage != t->storage && same_elements(v, gap));
    v = wk_reshape(turned, SHAPE(3, 2, 2, 2));
    CHECK(v->storage == t->storage && same_elements(v, turned));
    v = wk_reshape(turned, SHAPE(24));
    CHECK(v->storage != t->storage && same_elements(v, turned) && wk_is_packed(v));
    v = wk_reshape(wk_broadcast(wk_narrow(t, 0, 1, 1), SHAPE(5, 4, 6)), SHAPE(20, 6));
    CHECK(v->storage == t->storage && HOLDS(wk_narrow(v, 0, 19, 1), 6, 7, 8, 9, 10, 11));
    CHECK_FINE();

    CHECK_NULL(wk_reshape(t, SHAPE(5, 5)), WK_ERR_SHAPE, "24 elements");
    CHECK_NULL(wk_reshape(t, SHAPE(-1, -1)), WK_ERR_SHAPE, "reshape: shape");
    CHECK_NULL(wk_reshape(t, SHAPE(-1, 5)), WK_ERR_SHAPE, "reshape: shape");
    CHECK_NULL(wk_reshape(t, SHAPE(-2, -12)), WK_ERR_SHAPE, "reshape: shape");
    CHECK_NULL(wk_reshape(t, SHAPE(0, -1)), WK_ERR_SHAPE, "reshape: shape");
    CHECK_NULL(wk_reshape(counting(WK_F32, SHAPE(0)), SHAPE(0, -1)), WK_ERR_SHAPE, "reshape: shape");
    CHECK_NULL(wk_reshape(t, SHAPE(INT64_MAX, INT64_MAX, 24)), WK_ERR_SHAPE, "reshape: shape");
    CHECK_NULL(wk_reshape(t, 9, (int64_t[9]){24, 1, 1, 1, 1, 1, 1, 1, 1}), WK_ERR_ARGUMENT, "rank");
    CHECK_NULL(wk_reshape(t, -1, NULL), WK_ERR_ARGUMENT, "rank");
    CHECK_NULL(wk_reshape(t, 2, NULL), WK_ERR_ARGUMENT, "reshape");
    wk_scope_end();
}

/* Reshapes of many layouts to many shapes hold the same elements in the same order, viewed or copied. */
static void test_reshape_all(void)
{
    static const int64_t shapes[][4] = {{2, 2, 3, 5},  {4, 15, 1, 1}, {60, 1, 1, 1},
                                        {1, 3, 4, 5},  {5, 3, 2, 2},  {12, 5, 1, 1},
                                        {1, 1, 30, 2}, {6, 1, 10, 1}, {3, 20, 1, 1}};
    static const int orders[][4] = {{0, 1, 2, 3}, {3, 2, 1, 0}, {1, 0, 2, 3}, {0, 1, 3, 2}, {2, 3, 0, 1}};
    enum { SHAPES = sizeof shapes / sizeof *shapes, ORDERS = sizeof orders / sizeof *orders };
    int wrong = 0, viewed = 0, copied = 0;
    for (int i = 0; i < SHAPES * SHAPES * ORDERS * 2; i++) {
        int from = i % SHAPES, to = i / SHAPES % SHAPES, order = i / (SHAPES * SHAPES) % ORDERS;
        wk_scope_begin();
        wk_tensor *t = wk_permute(counting(WK_I32, 4, shapes[from]), orders[order]);
        if (i >= SHAPES * SHAPES * ORDERS) /* with a stride of 0 */
            t = wk_broadcast(wk_narrow(t, 1, 0, 1), 4, wk_shape(t));
        wk_tensor *v = wk_reshape(t, 4, shapes[to]);
        *(v->storage == t->storage ? &viewed : &copied) += 1;
        wrong += !has_shape(v, 4, shapes[to]) || !same_elements(v, t);
        wk_scope_end();
    }
    CHECK_EQ(wrong, 0);
    CHECK(viewed > 100 && copied > 100);
    CHECK_FINE();
}

static void test_permute(void)
{
    wk_scope_begin();
    wk_tensor *t = counting(WK_I32, SHAPE(2, 3, 4));
    wk_tensor *v = wk_permute(t, (int[]){2, 0, -2});
    CHECK(has_shape(v, SHAPE(4, 2, 3)));
    double *e = elements(v);
    bool right = e != NULL;
    for (int i = 0; right && i < 24; i++) /* v[a][b][c] = t[b][c][a] */
        right = e[i] == i / 3 % 2 * 12 + i % 3 * 4 + i / 6;
    free(e);
    CHECK(right);
    v = wk_transpose(t, 0, -1);
    CHECK(has_shape(v, SHAPE(4, 3, 2)) && wk_strides(v)[0] == 1 && wk_strides(v)[2] == 12);
    CHECK(HOLDS(wk_narrow(v, 0, 1, 1), 1, 13, 5, 17, 9, 21));
    CHECK(same_elements(wk_transpose(t, 1, 1), t));
    CHECK(has_shape(wk_permute(wk_reshape(wk_narrow(wk_flatten(t, 0, -1), 0, 5, 1), SCALAR), NULL), SCALAR));
    CHECK_FINE();
    CHECK_NULL(wk_permute(t, (int[]){0, 0, 1}), WK_ERR_PARAM, "permute: dims");
    CHECK_NULL(wk_permute(t, (int[]){0, 1, 3}), WK_ERR_PARAM, "permute: dims");
    CHECK_NULL(wk_permute(t, NULL), WK_ERR_PARAM, "permute: dims");
    CHECK_NULL(wk_transpose(t, 0, 3), WK_ERR_PARAM, "transpose: dim");
    CHECK_NULL(wk_transpose(t, -4, 0), WK_ERR_PARAM, "transpose: dim");
    wk_scope_end();
}

static void test_narrow(void)
{
    wk_scope_begin();
    wk_tensor *t = counting(WK_U8, SHAPE(3, 4));
    CHECK(HOLDS(wk_narrow(t, 0, 1, 2), 4, 5, 6, 7, 8, 9, 10, 11));
    CHECK(HOLDS(wk_narrow(wk_narrow(t, -1, 1, 2), 0, 2, 1), 9, 10));
    CHECK(has_shape(wk_narrow(t, 1, 4, 0), SHAPE(3, 0)));
    CHECK(has_shape(wk_narrow(t, 0, 0, 3), SHAPE(3, 4)));
    CHECK_FINE();
    CHECK_NULL(wk_narrow(t, 1, 0, 5), WK_ERR_PARAM, "narrow: start and length");
    CHECK_NULL(wk_narrow(t, 1, -1, 2), WK_ERR_PARAM, "narrow");
    CHECK_NULL(wk_narrow(t, 1, 1, -1), WK_ERR_PARAM, "narrow");
    CHECK_NULL(wk_narrow(t, 1, 2, INT64_MAX), WK_ERR_PARAM, "narrow");
    CHECK_NULL(wk_narrow(t, 1, INT64_MAX, 1), WK_ERR_PARAM, "narrow");
    CHECK_NULL(wk_narrow(t, 2, 0, 1), WK_ERR_PARAM, "narrow: dim");
    wk_scope_end();
}

static void test_broadcast(void)
{
    wk_scope_begin();
    wk_tensor *t = counting(WK_F64, SHAPE(2, 1));
    wk_tensor *v = wk_broadcast(t, SHAPE(3, 2, 2));
    CHECK(HOLDS(v, 0, 0, 1, 1, 0, 0, 1, 1, 0, 0, 1, 1));
    CHECK(wk_strides(v)[0] == 0 && wk_strides(v)[2] == 0 && !wk_is_packed(v));
    CHECK(has_shape(wk_broadcast(t, SHAPE(2, 0)), SHAPE(2, 0)));
    CHECK(has_shape(wk_broadcast(wk_reshape(wk_narrow(t, 0, 0, 1), SCALAR), SCALAR), SCALAR));
    CHECK_FINE();
    CHECK_NULL(wk_broadcast(t, SHAPE(3, 2)), WK_ERR_SHAPE, "[2,1]");
    CHECK_NULL(wk_broadcast(t, SHAPE(2)), WK_ERR_SHAPE, "broadcast: shape");
    CHECK_NULL(wk_broadcast(t, SHAPE(2, -1)), WK_ERR_SHAPE, "broadcast: shape");
    CHECK_NULL(wk_broadcast(t, 9, (int64_t[9]){1, 1, 1, 1, 1, 1, 1, 2, 1}), WK_ERR_SHAPE, "broadcast: shape");
    CHECK_NULL(wk_broadcast(t, -1, NULL), WK_ERR_SHAPE, "broadcast: shape");
    CHECK_NULL(wk_broadcast(t, 2, NULL), WK_ERR_SHAPE, "broadcast: shape");
    CHECK_NULL(wk_broadcast(t, SHAPE(INT64_MAX, 2, INT64_MAX)), WK_ERR_SHAPE, "broadcast: shape");
    wk_scope_end();
}

static void test_squeeze(void)
{
    wk_scope_begin();
    wk_tensor *t = counting(WK_F32, SHAPE(2, 1, 3));
    CHECK(has_shape(wk_squeeze(t, 1), SHAPE(2, 3)) && wk_is_packed(wk_squeeze(t, -2)));
    CHECK(has_shape(wk_unsqueeze(t, 0), SHAPE(1, 2, 1, 3)));
    CHECK(has_shape(wk_unsqueeze(t, -1), SHAPE(2, 1, 3, 1)));
    CHECK(has_shape(wk_unsqueeze(wk_reshape(wk_narrow(wk_flatten(t, 0, 2), 0, 0, 1), SCALAR), 0), SHAPE(1)));
    CHECK(wk_is_packed(wk_unsqueeze(t, 1)) && same_elements(wk_unsqueeze(t, 1), t));
    CHECK(has_shape(wk_flatten(t, 0, 1), SHAPE(2, 3)));
    CHECK(has_shape(wk_flatten(t, 0, -1), SHAPE(6)));
    CHECK(has_shape(wk_flatten(wk_squeeze(wk_narrow(wk_flatten(t, 0, 2), 0, 0, 1), 0), 0, 0), SHAPE(1)));
    wk_tensor *full = counting(WK_F32, SHAPE(1, 1, 1, 1, 1, 1, 1, 2));
    CHECK_FINE();
    CHECK_NULL(wk_squeeze(t, 0), WK_ERR_SHAPE, "squeeze: dim");
    CHECK_NULL(wk_squeeze(t, 3), WK_ERR_PARAM, "squeeze: dim");
    CHECK_NULL(wk_unsqueeze(t, 4), WK_ERR_PARAM, "unsqueeze: dim");
    CHECK_NULL(wk_unsqueeze(t, -5), WK_ERR_PARAM, "unsqueeze: dim");
    CHECK_NULL(wk_unsqueeze(full, 0), WK_ERR_PARAM, "unsqueeze: dim");
    CHECK_NULL(wk_flatten(t, 2, 1), WK_ERR_PARAM, "flatten: dims");
    CHECK_NULL(wk_flatten(t, 0, 3), WK_ERR_PARAM, "flatten: dim");
    CHECK_NULL(wk_flatten(t, -4, 0), WK_ERR_PARAM, "flatten: dim");
    wk_scope_end();
}

static void test_as_strided(void)
{
    wk_scope_begin();
    wk_tensor *t = counting(WK_F32, SHAPE(3, 4)), *part = wk_narrow(t, 0, 1, 2);
    CHECK(HOLDS(wk_as_strided(part, SHAPE(2, 2), (int64_t[]){1, 2}, -2), 2, 4, 3, 5));
    CHECK(HOLDS(wk_as_strided(t, SHAPE(3, 3), (int64_t[]){1, 1}, 7), 7, 8, 9, 8, 9, 10, 9, 10,
                11)); /* overlapping */
    CHECK(HOLDS(wk_as_strided(t, SCALAR, NULL, 11), 11));
    CHECK(has_shape(wk_as_strided(t, SHAPE(0, 9), (int64_t[]){1000, 1000}, 12), SHAPE(0, 9)));
    CHECK_FINE();
    const int64_t far = INT64_MAX / 2;
    CHECK_NULL(wk_as_strided(t, SHAPE(3), (int64_t[]){1}, 10), WK_ERR_SHAPE,
               "as_strided: strides and offset");
    CHECK_NULL(wk_as_strided(part, SHAPE(2), (int64_t[]){1}, -5), WK_ERR_SHAPE, "as_strided");
    CHECK_NULL(wk_as_strided(t, SHAPE(3), (int64_t[]){-1}, 4), WK_ERR_SHAPE, "as_strided");
    CHECK_NULL(wk_as_strided(t, SHAPE(3, 3), (int64_t[]){far, far}, 0), WK_ERR_SHAPE, "as_strided");
    CHECK_NULL(wk_as_strided(t, SHAPE(1), (int64_t[]){1}, INT64_MAX), WK_ERR_SHAPE, "as_strided");
    CHECK_NULL(wk_as_strided(t, SHAPE(1), (int64_t[]){1}, INT64_MIN), WK_ERR_SHAPE, "as_strided");
    CHECK_NULL(wk_as_strided(t, SHAPE(0), (int64_t[]){1}, 13), WK_ERR_SHAPE, "as_strided");
    CHECK_NULL(wk_as_strided(t, 1, NULL, (int64_t[]){1}, 0), WK_ERR_ARGUMENT, "as_strided: shape");
    CHECK_NULL(wk_as_strided(t, SHAPE(1), NULL, 0), WK_ERR_ARGUMENT, "as_strided: strides");
    wk_scope_end();
}

int main(void)
{
    cpu = wk_device_open("cpu");
    wk_scope_begin(); /* the thread's scope arrays, which stay */
    wk_drop(counting(WK_F32, SHAPE(1)));
    wk_scope_end();
    long live = wk_alloc_live();
    test_make();
    test_make_errors();
    test_null();
    test_from_pointer();
    test_from_pointer_errors();
    test_reshape();
    test_reshape_all();
    test_permute();
    test_narrow();
    test_broadcast();
    test_squeeze();
    test_as_strided();
    CHECK_EQ(wk_alloc_live(), live);
    return test_end();
}
