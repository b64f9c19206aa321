/* miopen_load.c: MIOpen found, its environment and its databases put in order, its functions. */
#include <dirent.h>
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>
#include "core/folder.h"
#include "dnn.h"

static const char *const sonames[] = {"libMIOpen.so.1", "libMIOpen.so", NULL};
static const char *const folders[] = {"/opt/rocm/lib", "/opt/rocm/lib64", NULL};
wk_library wk_lib_miopen = {.name = "libMIOpen",
                            .sonames = sonames,
                            .variable = "WICK_MIOPEN_LIBRARY",
                            .package = "miopen-hip (AMD's), libmiopen1 (Debian, Ubuntu)",
                            .beside = &wk_lib_hip,
                            .folders = folders};
wk_miopen_calls wk_miopen;
static bool loaded;

/* ---- its databases ---- */

/* A folder of this user's alone, made where it is not there. */
static bool own_folder(const char *path)
{
    struct stat st;
    mkdir(path, 0700);
    return lstat(path, &st) == 0 && S_ISDIR(st.st_mode) && st.st_uid == getuid() && !(st.st_mode & 022) &&
           access(path, W_OK) == 0;
}

/* In wick's cache, or in /tmp where that cannot be written; false when there is no place. */
static bool find_folder(char *path, size_t room)
{
    size_t n = wk_cache_folder(path, room - 32);
    if (n) {
        snprintf(path + n, room - n, "/miopen/");
        wk_make_folders(path);
        path[strlen(path) - 1] = 0;
        if (access(path, W_OK) == 0)
            return true;
    }
    snprintf(path, room, "/tmp/wick-miopen-%u", (unsigned)getuid());
    return own_folder(path);
}

/* Whether it begins as a database of SQLite does and is as long as that beginning says. */
static bool is_database(FILE *f)
{
    static const char magic[16] = "SQLite format 3";
    unsigned char head[32];
    struct stat st;
    if (fread(head, 1, sizeof head, f) != sizeof head || memcmp(head, magic, sizeof magic) != 0 ||
        fstat(fileno(f), &st) != 0)
        return false;
    uint64_t page = (uint64_t)head[16] << 8 | head[17]; /* 1 stands for 65536 */
    uint64_t pages =
        (uint64_t)head[28] << 24 | (uint64_t)head[29] << 16 | (uint64_t)head[30] << 8 | (uint64_t)head[31];
    page = page == 1 ? 65536 : page;
    return page >= 512 && (uint64_t)st.st_size >= pages * page && (uint64_t)st.st_size % page == 0;
}

static int note_row(void *good, int columns, char **values, char **names)
{
    (void)names;
    *(bool *)good = columns > 0 && values[0] && strcmp(values[0], "ok") == 0;
    return 0;
}

/* SQLite's own opinion, by the functions that MIOpen has loaded; true where there are none, or somebody writes. */
static bool passes_check(const char *file)
{
    enum { READ_ONLY = 1, CORRUPT = 11, NOT_A_DATABASE = 26 };
    int (*open_)(const char *, void **, int, const char *);
    int (*exec_)(void *, const char *, int (*)(void *, int, char **, char **), void *, char **);
    int (*close_)(void *);
    *(void **)&open_ = dlsym(wk_lib_miopen.handle, "sqlite3_open_v2");
    *(void **)&exec_ = dlsym(wk_lib_miopen.handle, "sqlite3_exec");
    *(void **)&close_ = dlsym(wk_lib_miopen.handle, "sqlite3_close");
    if (!open_ || !exec_ || !close_)
        return true;
    bool good = true;
    void *db = NULL;
    int code = open_(file, &db, READ_ONLY, NULL);
    if (code == 0)
        code = exec_(db, "PRAGMA quick_check(1)", note_row, &good, NULL);
    close_(db);
    return good && code != CORRUPT && code != NOT_A_DATABASE;
}

/* An empty one is new; one that is too large to be read at every start is taken as it is. */
static bool is_good(const char *file)
{
    enum { LARGE = 64 << 20 };
    FILE *f = fopen(file, "rb");
    if (!f)
        return true;
    bool good = fgetc(f) == EOF, empty = good;
    rewind(f);
    good = good || is_database(f);
    bool large = fseek(f, 0, SEEK_END) != 0 || ftell(f) > LARGE;
    fclose(f);
    return good && (empty || large || passes_check(file));
}

/* MIOpen gives up on a database that is damaged, and prints about it at every call: it goes. */
static void drop_damaged(const char *folder)
{
    char file[900];
    struct dirent *e;
    DIR *d = opendir(folder);
    while (d && (e = readdir(d))) {
        const char *dot = strrchr(e->d_name, '.');
        snprintf(file, sizeof file, "%s/%s", folder, e->d_name);
        if (dot && strcmp(dot, ".ukdb") == 0 && !is_good(file))
            unlink(file);
    }
    if (d)
        closedir(d);
}

/* ---- loading ---- */

/* MIOpen reads these when it is loaded: nothing on the terminal, and its databases and kernels beside wick's, in the
 * folder at path. What the user has set stays, and path empty. */
static bool set_environment(char *path, size_t room)
{
    static const char *const places[] = {"MIOPEN_USER_DB_PATH", "MIOPEN_CUSTOM_CACHE_DIR"};
    path[0] = 0;
    setenv("MIOPEN_LOG_LEVEL", "1", 0);
    if (getenv(places[0]) && getenv(places[1]))
        return true;
    if (!find_folder(path, room)) {
        snprintf(wk_lib_miopen.trouble, sizeof wk_lib_miopen.trouble, "no folder to keep its databases in");
        return false;
    }
    for (int i = 0; i < 2; i++)
        setenv(places[i], path, 0);
    return true;
}

/* Debian's MIOpen has no sources in assembly, tries these in fusions all the same, fails and prints. The variables are
 * read when they are first needed. */
static void avoid_missing(const wk_library *l)
{
    if (dlsym(l->handle, "MIOPEN_KERNEL_CONV_WINOGRAD_V30_3_1_FP32_F2X3_STRIDE1"))
        return;
    setenv("MIOPEN_DEBUG_AMD_FUSED_WINOGRAD", "0", 0);
    setenv("MIOPEN_DEBUG_AMD_WINOGRAD_RXS_F2X3_G1", "0", 0);
}

static void load_all(void)
{
#define X(result, name, arguments) {#name, (void **)&wk_miopen.name},
    static const wk_symbol symbols[] = {WK_MIOPEN_CALLS(X)}, newer[] = {WK_MIOPEN_BETA_CALLS(X)};
#undef X
    wk_library *l = &wk_lib_miopen;
    char path[600];
    size_t version[3] = {0};
    if (!set_environment(path, sizeof path) || !wk_library_load(l) ||
        !wk_library_symbols(l, symbols, sizeof symbols / sizeof *symbols))
        return;
    wk_library_newer_symbols(l, newer, sizeof newer / sizeof *newer);
    avoid_missing(l);
    if (path[0])
        drop_damaged(path);
    if (wk_miopen.miopenGetVersion(&version[0], &version[1], &version[2]) == miopenStatusSuccess)
        snprintf(l->version, sizeof l->version, "%zu.%zu.%zu", version[0], version[1], version[2]);
    loaded = true;
}

bool wk_miopen_load(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, load_all);
    return loaded;
}
