/* library.c: shared libraries found at run time. */
#include <dlfcn.h>
#include <glob.h>
#include <link.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "library.h"

/* Never RTLD_GLOBAL: a process may hold other copies of these libraries. */
enum { HOW = RTLD_NOW | RTLD_LOCAL };

static bool take(wk_library *l, const char *file, int how)
{
    l->handle = dlopen(file, how);
    struct link_map *map = NULL;
    if (l->handle && dlinfo(l->handle, RTLD_DI_LINKMAP, &map) == 0 && map)
        snprintf(l->path, sizeof l->path, "%s", map->l_name);
    return l->handle != NULL;
}

static bool take_in(wk_library *l, const char *folder)
{
    char file[1400];
    for (const char *const *so = l->sonames; *so; so++) {
        snprintf(file, sizeof file, "%s/%s", folder, *so);
        if (take(l, file, HOW))
            return true;
    }
    return false;
}

/* Where the library it belongs to lies; false when that is not known. */
static bool folder_beside(const wk_library *l, char *path, size_t room)
{
    const char *end = l->beside && l->beside->handle ? strrchr(l->beside->path, '/') : NULL;
    if (end)
        snprintf(path, room, "%.*s", (int)(end - l->beside->path), l->beside->path);
    return end != NULL;
}

/* A folder of the list: a variable or @, the folder of the library it belongs to, may stand in front; wildcards may be
 * in it. */
static bool take_like(wk_library *l, const char *folder)
{
    char path[1300], name[32], beside[600];
    glob_t found = {0};
    bool taken = false;
    const char *slash = strchr(folder, '/'), *base = "";
    if (folder[0] == '@') {
        base = folder_beside(l, beside, sizeof beside) ? beside : NULL;
    } else if (folder[0] == '$') {
        snprintf(name, sizeof name, "%.*s", (int)(slash - folder - 1), folder + 1);
        base = getenv(name);
    }
    if (!base || !slash)
        return false;
    if (*base)
        folder = slash;
    snprintf(path, sizeof path, "%s%s", base, folder);
    if (glob(path, 0, NULL, &found) == 0) {
        for (size_t i = 0; !taken && i < found.gl_pathc; i++)
            taken = take_in(l, found.gl_pathv[i]);
    }
    globfree(&found);
    return taken;
}

/* The order: the user's wish; one the process holds already (a Python wheel brings its own); beside the library it
 * belongs to; the loader's search; the usual folders. */
static bool find(wk_library *l)
{
    const char *wish = l->variable ? getenv(l->variable) : NULL;
    if (wish && *wish)
        return take(l, wish, HOW);
    for (const char *const *so = l->sonames; *so; so++) {
        if (take(l, *so, HOW | RTLD_NOLOAD))
            return true;
    }
    char beside[600];
    if (folder_beside(l, beside, sizeof beside) && take_in(l, beside))
        return true;
    for (const char *const *so = l->sonames; *so; so++) {
        if (take(l, *so, HOW))
            return true;
    }
    for (const char *const *folder = l->folders; folder && *folder; folder++) {
        if (take_like(l, *folder))
            return true;
    }
    return false;
}

void *wk_library_load(wk_library *l)
{
    if (l->tried)
        return l->handle;
    l->tried = true;
    if (find(l))
        return l->handle;
    const char *why = dlerror(); /* of the last try: the file itself missing, or one it needs */
    bool absent = !why || strstr(why, "cannot open shared object file");
    snprintf(l->trouble, sizeof l->trouble, "%s", absent ? "not found" : why);
    return NULL;
}

bool wk_library_symbols(wk_library *l, const wk_symbol *symbols, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        *symbols[i].place = dlsym(l->handle, symbols[i].name);
        if (!*symbols[i].place) {
            snprintf(l->trouble, sizeof l->trouble, "too old: it lacks %s", symbols[i].name);
            return false;
        }
    }
    return true;
}

void wk_library_newer_symbols(wk_library *l, const wk_symbol *symbols, size_t n)
{
    for (size_t i = 0; i < n; i++)
        *symbols[i].place = dlsym(l->handle, symbols[i].name);
}

size_t wk_workspace_most(void)
{
    static atomic_size_t most = SIZE_MAX; /* not asked for yet */
    size_t bytes = atomic_load_explicit(&most, memory_order_relaxed);
    if (bytes == SIZE_MAX) {
        const char *text = getenv("WICK_WORKSPACE");
        char *end = NULL;
        unsigned long long mib = text ? strtoull(text, &end, 10) : 0;
        bool good = text && end != text && !*end && mib < 1 << 20;
        bytes = (size_t)(good ? mib : 1024) << 20;
        atomic_store(&most, bytes);
    }
    return bytes;
}
