/* library.c: shared libraries found at run time. */
#include <dlfcn.h>
#include <link.h>
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

static bool take_in(wk_library *l, const char *folder, size_t length)
{
    char file[700];
    for (const char *const *so = l->sonames; *so; so++) {
        snprintf(file, sizeof file, "%.*s/%s", (int)length, folder, *so);
        if (take(l, file, HOW))
            return true;
    }
    return false;
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
    const char *end = l->beside && l->beside->handle ? strrchr(l->beside->path, '/') : NULL;
    if (end && take_in(l, l->beside->path, (size_t)(end - l->beside->path)))
        return true;
    for (const char *const *so = l->sonames; *so; so++) {
        if (take(l, *so, HOW))
            return true;
    }
    for (const char *const *folder = l->folders; folder && *folder; folder++) {
        if (take_in(l, *folder, strlen(*folder)))
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
