/* reload.c: libwick.so taken up and let go of by a program that loads it itself, as plugins are. `test_reload LIBRARY`:
 * wick's threads are there after dlclose, and so must their code be. */
#include <dlfcn.h>
#include "test.h"

enum { TIMES = 20, ELEMENTS = 300000 }; /* enough for several threads */

/* Loads the library, sums exponentials of ones by it, and lets it go. */
static void use_once(const char *path)
{
    void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!test_check(library != NULL, __FILE__, __LINE__, "%s: %s", path, library ? "" : dlerror()))
        return;
    wk_device *(*open)(const char *) = (wk_device * (*)(const char *)) dlsym(library, "wk_device_open");
    wk_tensor *(*fill)(wk_device *, wk_dtype, int, const int64_t *, double) =
        (wk_tensor * (*)(wk_device *, wk_dtype, int, const int64_t *, double)) dlsym(library, "wk_fill");
    wk_tensor *(*exp_of)(const wk_tensor *) = (wk_tensor * (*)(const wk_tensor *)) dlsym(library, "wk_exp");
    wk_status (*to_host)(const wk_tensor *, void *) =
        (wk_status(*)(const wk_tensor *, void *))dlsym(library, "wk_to_host");
    void (*drop)(wk_tensor *) = (void (*)(wk_tensor *))dlsym(library, "wk_drop");
    if (CHECK(open && fill && exp_of && to_host && drop)) {
        static float y[ELEMENTS];
        wk_tensor *ones = fill(open("cpu"), WK_F32, 1, (int64_t[]){ELEMENTS}, 1), *e = exp_of(ones);
        CHECK(e && to_host(e, y) == WK_OK && y[0] > 2.718f && y[ELEMENTS - 1] == y[0]);
        drop(e);
        drop(ones);
    }
    CHECK_EQ(dlclose(library), 0);
}

int main(int argc, char **argv)
{
    for (int i = 0; argc > 1 && i < TIMES; i++)
        use_once(argv[1]);
    return test_end();
}
