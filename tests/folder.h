/* folder.h: a folder of a test's own, which goes with the program however it ends but by a signal. */
#ifndef WK_TESTS_FOLDER_H
#define WK_TESTS_FOLDER_H

#include <ftw.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

static char test_folder_path[PATH_MAX];
static pid_t test_folder_owner;

static int test_remove(const char *path, const struct stat *facts, int kind, struct FTW *place)
{
    (void)facts, (void)kind, (void)place;
    return remove(path);
}

static void test_folder_remove(void)
{
    if (getpid() == test_folder_owner) /* and not in a child */
        nftw(test_folder_path, test_remove, 8, FTW_DEPTH | FTW_PHYS);
}

/* The path of a new folder under $TMPDIR or /tmp; once in a program. Without one the program ends. */
static const char *test_folder(const char *name)
{
    const char *base = getenv("TMPDIR");
    snprintf(test_folder_path, sizeof test_folder_path, "%s/wick-%s-XXXXXX", base ? base : "/tmp", name);
    if (!mkdtemp(test_folder_path)) {
        perror(test_folder_path);
        exit(1);
    }
    test_folder_owner = getpid();
    atexit(test_folder_remove);
    return test_folder_path;
}

#endif
