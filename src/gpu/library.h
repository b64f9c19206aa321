/* library.h: shared libraries found at run time, and what to tell of them. */
#ifndef WK_GPU_LIBRARY_H
#define WK_GPU_LIBRARY_H

#include <stdbool.h>
#include <stddef.h>

/* One library a maker's side can use; the record is static, its state filled by wk_library_load. */
typedef struct wk_library {
    const char *name;           /* "libamdhip64" */
    const char *const *sonames; /* tried in this order */
    const char *variable;       /* environment variable with a path to take instead; may be NULL */
    const char *package;        /* who has it: "rocm-hip-runtime (AMD), libamdhip64-6 (Debian)" */
    struct wk_library *beside;  /* looked for first in the folder of that one; may be NULL */
    const char *const *folders; /* tried when the loader's own search fails: "$HOME/lib*"; may be NULL */
    void *handle;
    char path[512];    /* of the file found */
    char version[48];  /* filled by who knows how to ask */
    char trouble[512]; /* why it is not there */
    bool tried;
} wk_library;

/* Loads it, once; NULL with `trouble` set when it is not to be had. The caller holds the maker's lock. */
void *wk_library_load(wk_library *l);
/* Fills n function pointers from names; false with `trouble` set when one is missing. */
typedef struct {
    const char *name;
    void **place;
} wk_symbol;
bool wk_library_symbols(wk_library *l, const wk_symbol *symbols, size_t n);
/* The same for what only newer ones have: NULL where it is missing. */
void wk_library_newer_symbols(wk_library *l, const wk_symbol *symbols, size_t n);

/* Every library of both makers, for `wick info`; NULL-terminated. Loads those that were not needed yet. */
wk_library *const *wk_libraries(void);
/* The version of the library behind an implementation; "" before it is loaded. */
const char *wk_library_version(const char *impl);

/* The most bytes of temporary memory that one call of a library may use: WICK_WORKSPACE in MiB, else 1 GiB. */
size_t wk_workspace_most(void);

#endif
