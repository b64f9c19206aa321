/* deny.c: the deny-list, kept in the cache folder as deny.txt.
 *
 * One entry a line, five words: op, implementation, dtype, GPU architecture, version of the library; * stands for any,
 * and so do words left out at the end. From # on a line is a comment.
 *
 *     conv2d miopen bf16 gfx90a 3.4.0    # wrong for 1x1 with stride 2
 *     ctc_loss cudnn
 *
 * Only vendors' implementations can be denied: behind them there is always one of wick's own. */
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include "core/error.h"
#include "core/folder.h"
#include "deny.h"

enum { OP, IMPL, DTYPE, ARCH, VERSION, WORDS, MAX_ENTRIES = 256, WORD = 48 };

typedef struct {
    char word[WORDS][WORD];
} entry;

static entry list[MAX_ENTRIES];
static atomic_int count; /* entries below it do not change any more */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_once_t once = PTHREAD_ONCE_INIT;

/* NULL, or what is wrong with the line; words = 0 where it holds nothing. */
static const char *parse(const char *line, entry *e, int *words)
{
    size_t end = strcspn(line, "#\r\n");
    *words = 0;
    for (int w = 0; w < WORDS; w++)
        snprintf(e->word[w], WORD, "*");
    for (size_t at = strspn(line, " \t"); at < end; at += strspn(line + at, " \t")) {
        size_t n = strcspn(line + at, " \t#\r\n");
        if (*words == WORDS || n >= WORD)
            return "expected at most five words: op, implementation, dtype, architecture, version";
        memcpy(e->word[*words], line + at, n);
        e->word[(*words)++][n] = 0;
        at += n;
    }
    if (*words == 0)
        return NULL;
    if (strcmp(e->word[OP], "*") != 0 && !wk_op_find(e->word[OP]))
        return "expected the name of an op or *";
    return wk_impl_is_vendor(e->word[IMPL]) ? NULL : "expected a vendor's implementation: " WK_VENDOR_IMPLS;
}

static wk_status add(const entry *e)
{
    pthread_mutex_lock(&lock);
    int n = atomic_load(&count);
    if (n < MAX_ENTRIES) {
        list[n] = *e;
        atomic_store(&count, n + 1);
    }
    pthread_mutex_unlock(&lock);
    return n < MAX_ENTRIES ? WK_OK
                           : wk_fail(WK_ERR_ARGUMENT, "deny: expected at most %d entries", MAX_ENTRIES);
}

bool wk_deny_path(char *path, size_t room)
{
    char folder[512];
    int n = wk_cache_folder(folder, sizeof folder) ? snprintf(path, room, "%s/deny.txt", folder) : -1;
    return n > 0 && (size_t)n < room;
}

/* A line that does not read costs itself, not the list. */
static void read_file(void)
{
    char path[600], line[512];
    entry e;
    int words, number = 0;
    FILE *f = wk_deny_path(path, sizeof path) ? fopen(path, "r") : NULL;
    while (f && fgets(line, sizeof line, f)) {
        const char *wrong = parse(line, &e, &words);
        number++;
        if (wrong)
            wk_say("%s:%d: %s; the line is passed over", path, number, wrong);
        else if (words > 0 && add(&e) != WK_OK)
            break;
    }
    if (f)
        fclose(f);
    wk_error_clear();
}

/* What the last two words of an entry stand for on a device; "" where it has none. */
static const char *arch_of(const wk_device *d) { return d->table->arch ? d->table->arch(d) : ""; }

static const char *version_of(const wk_device *d, const char *impl)
{
    return d->table->library ? d->table->library(d, impl) : "";
}

static bool covers(const entry *e, int word, const char *value)
{
    return strcmp(e->word[word], "*") == 0 || strcmp(e->word[word], value) == 0;
}

bool wk_denied(const wk_call *c, const wk_impl *impl)
{
    pthread_once(&once, read_file);
    int n = atomic_load_explicit(&count, memory_order_acquire);
    if (n == 0 || !wk_impl_is_vendor(impl->name))
        return false;
    const char *arch = arch_of(c->device), *version = version_of(c->device, impl->name);
    for (int i = 0; i < n; i++) {
        if (covers(&list[i], OP, c->op->name) && covers(&list[i], IMPL, impl->name) &&
            covers(&list[i], DTYPE, wk_dtype_name(c->dtype)) && covers(&list[i], ARCH, arch) &&
            covers(&list[i], VERSION, version))
            return true;
    }
    return false;
}

void wk_deny_entry(char line[WK_DENY_LINE], const wk_device *device, const char *op, const char *impl,
                   wk_dtype dtype)
{
    const char *arch = arch_of(device), *version = version_of(device, impl);
    snprintf(line, WK_DENY_LINE, "%s %s %s %s %s", op, impl, wk_dtype_name(dtype), *arch ? arch : "*",
             *version ? version : "*");
}

wk_status wk_deny(const char *text)
{
    entry e;
    int words = 0;
    pthread_once(&once, read_file);
    const char *wrong = text ? parse(text, &e, &words) : "expected a text, got NULL";
    if (!wrong && words == 0)
        wrong = "expected an op and an implementation, got nothing";
    return wrong ? wk_fail(WK_ERR_ARGUMENT, "deny: '%.100s': %s", text ? text : "", wrong) : add(&e);
}

wk_status wk_deny_keep(const char *text)
{
    char path[600];
    WK_TRY(wk_deny(text));
    if (!wk_deny_path(path, sizeof path))
        return wk_fail(WK_ERR_IO, "deny: no cache folder: set WICK_CACHE");
    wk_make_folders(path);
    FILE *f = fopen(path, "a+");
    bool good = f != NULL;
    if (f && fseek(f, -1, SEEK_END) == 0 && fgetc(f) != '\n')
        good = fputc('\n', f) != EOF; /* the last line was written by hand */
    good = good && fprintf(f, "%s\n", text) >= 0;
    good = f && fclose(f) == 0 && good;
    return good ? WK_OK : wk_fail(WK_ERR_IO, "deny: %.400s: %s", path, strerror(errno));
}
