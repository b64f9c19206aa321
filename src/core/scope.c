/* scope.c: who owns the tensors that ops make. A thread's scopes are one stack of tensors and one of marks. */
#include <pthread.h>
#include "memory.h"
#include "tensor.h"
#include "scope.h"

static _Thread_local struct {
    wk_tensor **tensors; /* NULL where one was dropped early */
    long *marks;         /* where each open scope begins */
    long count, room, depth, mark_room;
    long missed; /* scopes that could not be opened for want of memory: their ends must not end another */
} stack;

/* Grows an array to hold one more; false when there is no memory. */
static bool grow(void **array, long count, long *room, size_t item)
{
    if (count < *room)
        return true;
    long bigger = *room ? 2 * *room : 64;
    void *p = wk_realloc(*array, (size_t)bigger * item);
    if (!p)
        return false;
    *array = p;
    *room = bigger;
    return true;
}

/* The two arrays stay for the next scope and go when their thread ends. */
static pthread_key_t thread_end;

static void free_arrays(void *unused)
{
    (void)unused;
    wk_free(stack.tensors);
    wk_free(stack.marks);
}

static void make_key(void) { pthread_key_create(&thread_end, free_arrays); }

bool wk_scope_open(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    if (!stack.marks) {
        pthread_once(&once, make_key);
        pthread_setspecific(thread_end, &stack);
    }
    if (stack.missed || !grow((void **)&stack.marks, stack.depth, &stack.mark_room, sizeof *stack.marks))
        return false;
    stack.marks[stack.depth++] = stack.count;
    return true;
}

void wk_scope_begin(void)
{
    if (!wk_scope_open()) {
        stack.missed++;
        wk_fail(WK_ERR_MEMORY, "scope_begin: out of memory");
    }
}

bool wk_scope_add(wk_tensor *t)
{
    t->scope_slot = -1;
    if (stack.depth == 0)
        return true;
    if (!grow((void **)&stack.tensors, stack.count, &stack.room, sizeof(wk_tensor *)))
        return false;
    t->scope_slot = stack.count;
    stack.tensors[stack.count++] = t;
    return true;
}

void wk_scope_remove(wk_tensor *t)
{
    if (t->scope_slot >= 0 && t->scope_slot < stack.count && stack.tensors[t->scope_slot] == t)
        stack.tensors[t->scope_slot] = NULL;
    t->scope_slot = -1;
}

void wk_scope_keep(wk_tensor *t)
{
    if (!t || stack.depth == 0 || stack.missed || t->scope_slot < stack.marks[stack.depth - 1] ||
        t->scope_slot >= stack.count || stack.tensors[t->scope_slot] != t)
        return;
    /* What is below the mark is the outer scope's: swap t to the mark and move that up. */
    long from = t->scope_slot, to = stack.marks[stack.depth - 1]++;
    wk_tensor *other = stack.tensors[to];
    stack.tensors[from] = other;
    if (other)
        other->scope_slot = from;
    stack.tensors[to] = t;
    t->scope_slot = to;
}

void wk_scope_end(void)
{
    if (stack.missed) {
        stack.missed--;
        return;
    }
    if (stack.depth == 0)
        return;
    long begin = stack.marks[--stack.depth];
    while (stack.count > begin) {
        wk_tensor *t = stack.tensors[--stack.count];
        if (t) {
            t->scope_slot = -1;
            wk_drop(t);
        }
    }
    while (stack.depth == 0 && stack.count > 0) { /* kept, and no scope left: the caller's */
        wk_tensor *t = stack.tensors[--stack.count];
        if (t)
            t->scope_slot = -1;
    }
}

wk_tensor *wk_scope_end_keep(wk_tensor *x)
{
    wk_scope_keep(x);
    wk_scope_end();
    return x;
}
