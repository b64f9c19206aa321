/* exports.c: what libwick.so shows. `test_exports LIBRARY HEADER...`: exactly the functions that the headers declare,
 * among them wk_NAME for every op NAME, and not much of a file. */
#include <ctype.h>
#include <elf.h>
#include <stdlib.h>
#include "core/op.h"
#include "test.h"

enum { MAX_NAMES = 4096, MAX_NAME = 80, MAX_LIBRARY = 3000000 };

typedef struct {
    char names[MAX_NAMES][MAX_NAME];
    int n;
} name_set;
static name_set exported, declared;

static bool has(const name_set *set, const char *name)
{
    for (int i = 0; i < set->n; i++) {
        if (strcmp(set->names[i], name) == 0)
            return true;
    }
    return false;
}

static void add(name_set *set, const char *name, size_t length)
{
    if (!CHECK(set->n < MAX_NAMES && length < MAX_NAME))
        return;
    memcpy(set->names[set->n], name, length);
    set->names[set->n][length] = 0;
    set->n += !has(set, set->names[set->n]);
}

/* The whole file with a 0 behind it; NULL when it cannot be read. */
static char *read_all(const char *path, size_t *bytes)
{
    FILE *f = fopen(path, "rb");
    char *text = NULL;
    *bytes = 0;
    if (f && fseek(f, 0, SEEK_END) == 0) {
        *bytes = (size_t)ftell(f);
        rewind(f);
        text = calloc(1, *bytes + 1);
        if (text && fread(text, 1, *bytes, f) != *bytes) {
            free(text);
            text = NULL;
        }
    }
    if (f)
        fclose(f);
    test_check(text != NULL, path, 0, "cannot be read");
    return text;
}

/* ---- the library: symbols that others can bind to, and the bytes that are loaded (what strip leaves) ---- */

static void read_symbols(const char *file, const Elf64_Shdr *sections, const Elf64_Shdr *table)
{
    const char *names = file + sections[table->sh_link].sh_offset;
    const Elf64_Sym *symbols = (const Elf64_Sym *)(file + table->sh_offset);
    for (size_t i = 0; i < table->sh_size / sizeof *symbols; i++) {
        int binding = ELF64_ST_BIND(symbols[i].st_info);
        if (symbols[i].st_shndx != SHN_UNDEF && (binding == STB_GLOBAL || binding == STB_WEAK))
            add(&exported, names + symbols[i].st_name, strlen(names + symbols[i].st_name));
    }
}

static void read_library(const char *path)
{
    size_t bytes, loaded = 0;
    char *file = read_all(path, &bytes);
    const Elf64_Ehdr *header = (const Elf64_Ehdr *)file;
    if (!file)
        return;
    if (CHECK(bytes > sizeof *header && memcmp(file, ELFMAG, SELFMAG) == 0 && file[EI_CLASS] == ELFCLASS64)) {
        const Elf64_Shdr *sections = (const Elf64_Shdr *)(file + header->e_shoff);
        const Elf64_Phdr *segments = (const Elf64_Phdr *)(file + header->e_phoff);
        for (int i = 0; i < header->e_shnum; i++) {
            if (sections[i].sh_type == SHT_DYNSYM)
                read_symbols(file, sections, &sections[i]);
        }
        for (int i = 0; i < header->e_phnum; i++) {
            size_t end = segments[i].p_offset + segments[i].p_filesz;
            loaded = end > loaded ? end : loaded;
        }
    }
    free(file);
    printf("%zu bytes loaded, %d symbols: ", loaded, exported.n);
    test_check(loaded > 0 && loaded < MAX_LIBRARY, path, 0, "%zu bytes, expected less than %d", loaded,
               MAX_LIBRARY);
}

/* ---- headers: every wk_name followed by "(" outside of comments ---- */

static void blank_comments(char *text)
{
    char *at = text;
    while ((at = strstr(at, "/*"))) {
        char *end = strstr(at + 2, "*/");
        size_t n = end ? (size_t)(end + 2 - at) : strlen(at);
        memset(at, ' ', n);
    }
}

static void read_header(const char *path)
{
    size_t bytes;
    char *text = read_all(path, &bytes);
    if (!text)
        return;
    blank_comments(text);
    for (char *at = text; (at = strstr(at, "wk_"));) {
        size_t n = strspn(at, "abcdefghijklmnopqrstuvwxyz0123456789_");
        bool word = at == text || !(isalnum((unsigned char)at[-1]) || at[-1] == '_');
        if (word && at[n] == '(')
            add(&declared, at, n);
        at += n;
    }
    free(text);
}

int main(int argc, char **argv)
{
    if (!CHECK(argc > 2))
        return test_end();
    read_library(argv[1]);
    for (int i = 2; i < argc; i++)
        read_header(argv[i]);
    for (int i = 0; i < declared.n; i++)
        test_check(has(&exported, declared.names[i]), declared.names[i], 0, "declared, not exported");
    for (int i = 0; i < exported.n; i++)
        test_check(has(&declared, exported.names[i]), exported.names[i], 0, "exported, not declared");
    for (int i = 0; i < wk_op_count(); i++) {
        char name[MAX_NAME];
        snprintf(name, sizeof name, "wk_%s", wk_op_at(i)->name);
        if (strcmp(name, "wk_expr") == 0) /* of an expression that is compiled first */
            snprintf(name, sizeof name, "wk_expr_run");
        test_check(has(&exported, name), name, 0, "an op without a function");
    }
    return test_end();
}
