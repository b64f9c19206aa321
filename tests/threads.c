/* threads.c: many threads at once: one device, shared tensors, scopes and errors of their own, the pool, fork.
 * Clean under the thread sanitizer. */
#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>
#include "core/memory.h"
#include "core/pool.h"
#include "values.h"

#if defined(__SANITIZE_THREAD__)
#define UNDER_TSAN 1
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define UNDER_TSAN 1
#endif
#endif
#ifndef UNDER_TSAN
#define UNDER_TSAN 0
#endif

enum { THREADS = 8, ROUNDS = UNDER_TSAN ? 20 : 100 };

/* Runs fn(number) on THREADS threads. */
static void on_threads(void *(*fn)(void *))
{
    pthread_t threads[THREADS];
    int started = 0;
    while (started < THREADS && pthread_create(&threads[started], NULL, fn, (void *)(intptr_t)started) == 0)
        started++;
    CHECK_EQ(started, THREADS);
    while (started > 0)
        pthread_join(threads[--started], NULL);
}

/* ---- ops on shared tensors ---- */

enum { ROWS = 70, INNER = 90, COLS = 50 };
static wk_tensor *x, *w, *bias; /* [ROWS, INNER], [INNER, COLS], [COLS] */
static float want[ROWS * COLS];
static atomic_long traced;

/* softmax((x . w + bias)), through views, several ops and a reduction. NULL with an error. */
static wk_tensor *compute(void)
{
    wk_scope_begin();
    wk_tensor *t = wk_copy(wk_transpose(wk_transpose(w, 0, 1), 0, 1));
    wk_tensor *y = wk_softmax(wk_add(wk_matmul(x, t), bias), 0, NULL, WK_SOFTMAX_ACCURATE);
    wk_sum(y, 1, (int64_t[]){0}, 1);
    return wk_scope_end_keep(y);
}

static bool computes_right(void)
{
    float got[ROWS * COLS];
    wk_tensor *y = compute();
    bool right = y && wk_to_host(y, got) == WK_OK && memcmp(got, want, sizeof got) == 0;
    wk_drop(y);
    return right;
}

static void *use_ops(void *number)
{
    int64_t me = (intptr_t)number, wrong_size = 1000 + me;
    for (int i = 0; i < ROUNDS; i++) {
        CHECK(computes_right());
        if (i % 5 == me % 5) { /* an error of this thread's, which the others do not see */
            char mine[32];
            snprintf(mine, sizeof mine, "[%lld]", (long long)wrong_size);
            wk_tensor *bad =
                wk_add(x, wk_reshape(wk_fill(wk_cpu(), WK_F32, 1, &wrong_size, 0), 1, &wrong_size));
            CHECK(bad == NULL && wk_error_status() == WK_ERR_SHAPE && strstr(wk_error(), mine));
            CHECK(!computes_right());
            wk_error_clear();
        }
        wk_tensor *view = wk_retain(x), *part = wk_narrow(view, 0, me, 2);
        wk_drop(view);
        CHECK_EQ(wk_count(part), 2 * INNER);
        wk_drop(part);
    }
    return NULL;
}

/* What the failing additions above make before they fail belongs to a scope. */
static void *use_ops_in_scope(void *number)
{
    wk_scope_begin();
    use_ops(number);
    wk_scope_end();
    return NULL;
}

static void count_op(void *ctx, const char *op, const char *impl, double microseconds)
{
    CHECK(ctx == &traced && op[0] && impl[0] && microseconds >= 0);
    atomic_fetch_add(&traced, 1);
}

static void *change_threads(void *stop)
{
    static const int numbers[] = {1, 4, 2, 7, 3, 0};
    for (int i = 0; !atomic_load((atomic_bool *)stop); i++) {
        wk_set_num_threads(numbers[i % 6]);
        usleep(200);
    }
    return NULL;
}

static void test_ops(void)
{
    wk_set_trace(count_op, &traced);
    on_threads(use_ops_in_scope);
    wk_set_trace(NULL, NULL);
    CHECK(traced >= THREADS * ROUNDS * 5);
    pthread_t changer;
    atomic_bool stop = false;
    CHECK_EQ(pthread_create(&changer, NULL, change_threads, &stop), 0);
    on_threads(use_ops_in_scope);
    atomic_store(&stop, true);
    pthread_join(changer, NULL);
    wk_set_num_threads(4);
}

/* ---- a tensor handed from one thread's scope to another ---- */

static struct {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    wk_tensor *tensor;
} handed = {.lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER};

static void *take_handed(void *unused)
{
    (void)unused;
    for (int i = 0; i < ROUNDS * 5; i++) {
        pthread_mutex_lock(&handed.lock);
        while (!handed.tensor)
            pthread_cond_wait(&handed.changed, &handed.lock);
        wk_tensor *t = handed.tensor;
        handed.tensor = NULL;
        pthread_cond_signal(&handed.changed);
        pthread_mutex_unlock(&handed.lock);
        CHECK(wk_item(t) == i); /* while the other thread's scope ends */
        wk_drop(t);
    }
    return NULL;
}

static void test_hand_over(void)
{
    pthread_t taker;
    CHECK_EQ(pthread_create(&taker, NULL, take_handed, NULL), 0);
    for (int i = 0; i < ROUNDS * 5; i++) {
        wk_scope_begin();
        wk_tensor *t = wk_fill(wk_cpu(), WK_F32, SCALAR, i);
        pthread_mutex_lock(&handed.lock);
        while (handed.tensor)
            pthread_cond_wait(&handed.changed, &handed.lock);
        handed.tensor = wk_retain(t);
        pthread_cond_signal(&handed.changed);
        pthread_mutex_unlock(&handed.lock);
        wk_scope_end();
    }
    pthread_join(taker, NULL);
    CHECK_FINE();
}

/* ---- the pool ---- */

enum { TASKS = 300 };
typedef struct {
    atomic_int done[TASKS], nested;
} job;

static void nested_task(void *ctx, int64_t task)
{
    (void)task;
    atomic_fetch_add(&((job *)ctx)->nested, 1);
}

static void job_task(void *ctx, int64_t task)
{
    job *j = ctx;
    atomic_fetch_add(&j->done[task], 1);
    if (task % 100 == 0)
        wk_parallel_for(10, nested_task, j);
}

static void run_job(int64_t tasks)
{
    job *j = calloc(1, sizeof *j);
    wk_parallel_for(tasks, job_task, j);
    int wrong = 0;
    for (int i = 0; i < TASKS; i++)
        wrong += j->done[i] != (i < tasks);
    CHECK_EQ(wrong, 0);
    CHECK_EQ(j->nested, (tasks + 99) / 100 * 10);
    free(j);
}

static void *use_pool(void *number)
{
    for (int i = 0; i < ROUNDS; i++) {
        run_job(TASKS);
        run_job((i + (intptr_t)number) % 4);
    }
    return NULL;
}

static void test_pool(void)
{
    run_job(0);
    run_job(1);
    run_job(TASKS);
    on_threads(use_pool);
    for (int i = 0; i < 5 * ROUNDS; i++) { /* workers come and go between regions */
        wk_set_num_threads(1 + i * 5 % 8);
        run_job(5);
        usleep(i % 3 * 20);
    }
    pthread_t changer;
    atomic_bool stop = false;
    CHECK_EQ(pthread_create(&changer, NULL, change_threads, &stop), 0);
    on_threads(use_pool);
    atomic_store(&stop, true);
    pthread_join(changer, NULL);
    wk_set_num_threads(4);
}

/* ---- fork ---- */

/* The child computes, with threads of its own, and says by its status whether that was right. */
static bool child_computes(void)
{
    pid_t child = fork();
    if (child == 0) {
        alarm(60);
        bool right = computes_right();
        run_job(TASKS);
        _exit(right && test_failed == 0 ? 0 : 1);
    }
    int status = -1;
    return child > 0 && waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

static void *compute_until(void *stop)
{
    while (!atomic_load((atomic_bool *)stop))
        CHECK(computes_right());
    return NULL;
}

static void test_fork(void)
{
    if (UNDER_TSAN) {
        SKIP("fork: the thread sanitizer does not follow it");
        return;
    }
    CHECK(child_computes());
    pthread_t busy[3];
    atomic_bool stop = false;
    for (int i = 0; i < 3; i++)
        CHECK_EQ(pthread_create(&busy[i], NULL, compute_until, &stop), 0);
    for (int i = 0; i < 30; i++)
        CHECK(child_computes());
    atomic_store(&stop, true);
    for (int i = 0; i < 3; i++)
        pthread_join(busy[i], NULL);
    CHECK(computes_right());
}

int main(void)
{
    wk_set_num_threads(4);
    wk_scope_begin();
    x = wk_affine(counting(WK_F32, SHAPE(ROWS, INNER)), 1e-4, -0.2);
    w = wk_sin(counting(WK_F32, SHAPE(INNER, COLS)));
    bias = wk_cos(counting(WK_F32, SHAPE(COLS)));
    wk_tensor *y = compute();
    CHECK_EQ(wk_to_host(y, want), WK_OK);
    wk_drop(y);
    long live = wk_alloc_live();
    test_ops();
    test_hand_over();
    test_pool();
    test_fork();
    CHECK_EQ(wk_alloc_live(), live);
    CHECK_FINE();
    wk_scope_end();
    return test_end();
}
