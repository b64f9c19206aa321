/* kernels_compile.c: the kernels of an architecture, planned and compiled. */
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include "check/check.h"
#include "core/memory.h"
#include "gpu/runtime.h"
#include "kernels_compile.h"
#include "progress.h"

/* ---- planning ---- */

int kernels_plan(const wk_arch *arch, const arg_list *ops, kernel_set *set)
{
    wk_device *device = wk_plan_open(arch);
    *set = (kernel_set){.arch = arch};
    if (!device)
        return args_error();
    for (int i = 0; i < wk_op_count(); i++) {
        const wk_op *op = wk_op_at(i);
        wk_check_result r;
        if (!args_op_selected(ops, op->name))
            continue;
        progress_show(i, wk_op_count(), op->name);
        wk_check_plan(device, op, &r);
        if (r.failed == 0)
            continue;
        progress_clear();
        fprintf(stderr, "wick kernels: planning %s: %s (%s)\n", op->name, r.message, r.sample);
        return EXIT_FAILED;
    }
    progress_clear();
    set->wanted = wk_plan_wanted(device, &set->n);
    set->codes = set->wanted ? calloc((size_t)set->n + 1, sizeof *set->codes) : NULL;
    if (set->wanted && !set->codes)
        wk_fail(WK_ERR_MEMORY, "out of memory for %d kernels", set->n);
    return set->codes ? ARGS_GO : args_error();
}

void kernels_free(kernel_set *set)
{
    for (int i = 0; set->codes && i < set->n; i++)
        free(set->codes[i].code);
    free(set->codes);
    wk_free(set->wanted);
}

/* ---- compiling ---- */

enum { MOST_JOBS = 64 };

/* What the processes share. */
typedef struct {
    atomic_int next, done;
    atomic_bool stop; /* after a failure */
} counters;

/* In the file of a process, in front of the code, or of the message when it failed. */
typedef struct {
    int place, failed;
    size_t bytes;
} record;

static bool put_record(FILE *f, int place, bool failed, const void *data, size_t bytes)
{
    record r = {place, failed, bytes};
    return fwrite(&r, sizeof r, 1, f) == 1 && fwrite(data, 1, bytes, f) == bytes;
}

/* Compiles what no other process has taken yet. */
static void work(const kernel_set *set, counters *shared, FILE *f)
{
    const wk_arch *arch = set->arch;
    for (int i; !atomic_load(&shared->stop) && (i = atomic_fetch_add(&shared->next, 1)) < set->n;) {
        void *code;
        size_t bytes;
        wk_status status = wk_kernel_code(arch->kind, arch->name, arch->wave, set->wanted[i].kernel,
                                          set->wanted[i].instance, &code, &bytes);
        bool good = status == WK_OK;
        if (!put_record(f, i, !good, good ? code : wk_error(), good ? bytes : strlen(wk_error())) || !good)
            atomic_store(&shared->stop, true);
        if (good)
            wk_free(code);
        wk_error_clear();
        atomic_fetch_add(&shared->done, 1);
    }
    fflush(f);
}

/* Takes the codes out of a process's file; false after saying what failed. */
static bool collect(kernel_set *set, FILE *f)
{
    record r;
    rewind(f);
    while (fread(&r, sizeof r, 1, f) == 1) {
        char *data = malloc(r.bytes + 1);
        bool whole = data && fread(data, 1, r.bytes, f) == r.bytes;
        if (whole && !r.failed) {
            set->codes[r.place].code = data;
            set->codes[r.place].bytes = r.bytes;
            continue;
        }
        if (whole) {
            data[r.bytes] = 0;
            fprintf(stderr, "wick kernels: %s: %s\n", set->arch->name, data);
        }
        free(data);
        return false;
    }
    return true;
}

/* Shows the progress until all processes have ended. */
static void wait_for(const kernel_set *set, counters *shared, const pid_t *pids, int n)
{
    for (int left = n; left > 0;) {
        left = 0;
        for (int i = 0; i < n; i++) {
            int status;
            pid_t got = pids[i] > 0 ? waitpid(pids[i], &status, WNOHANG) : -1;
            left += got == 0;
        }
        progress_show(atomic_load(&shared->done), set->n, set->arch->name);
        if (left)
            nanosleep(&(struct timespec){.tv_nsec = 50000000}, NULL);
    }
    progress_clear();
}

/* A process for each job with a file to write to. What no process could be made for is done here. */
static void run_jobs(const kernel_set *set, counters *shared, FILE **files, int jobs)
{
    pid_t pids[MOST_JOBS];
    int n = 0;
    fflush(stdout);
    for (; jobs > 1 && n < jobs; n++) {
        pids[n] = fork();
        if (pids[n] < 0)
            break;
        if (pids[n] == 0) {
            work(set, shared, files[n]);
            _exit(0);
        }
    }
    if (n == 0)
        work(set, shared, files[0]);
    wait_for(set, shared, pids, n);
}

static bool all_there(const kernel_set *set)
{
    for (int i = 0; i < set->n; i++) {
        wk_kernel_name name;
        if (set->codes[i].code)
            continue;
        wk_kernel_name_of(set->wanted[i].kernel, set->wanted[i].instance, &name);
        fprintf(stderr, "wick kernels: %s: the process that compiled %s ended too early\n", set->arch->name,
                name.text);
        return false;
    }
    return true;
}

int kernels_compile(kernel_set *set, int jobs)
{
    FILE *files[MOST_JOBS];
    int n = 0;
    jobs = jobs > MOST_JOBS ? MOST_JOBS : jobs > set->n ? set->n : jobs;
    jobs = jobs > 0 ? jobs : 1;
    counters *shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    while (n < jobs && (files[n] = tmpfile()))
        n++;
    bool good = n > 0 && shared != MAP_FAILED;
    if (!good)
        perror("wick kernels: a temporary file");
    if (good) {
        run_jobs(set, shared, files, n);
        for (int i = 0; i < n && good; i++)
            good = collect(set, files[i]);
        good = good && all_there(set);
    }
    for (int i = 0; i < n; i++)
        fclose(files[i]);
    if (shared != MAP_FAILED)
        munmap(shared, sizeof *shared);
    return good ? ARGS_GO : EXIT_FAILED;
}
