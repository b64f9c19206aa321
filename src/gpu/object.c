/* object.c: registers, shared memory and spills from a code object: an ELF file. AMD's has them in a note, as a
 * MessagePack map; NVIDIA's in the sections that belong to the kernel. Nothing of the file is trusted. */
#include <elf.h>
#include <stdint.h>
#include <string.h>
#include "object.h"

enum { MACHINE_CUDA = 190, MACHINE_AMD = 224, NOTE_METADATA = 32 };

/* Bytes of the file, or of a part of it. */
typedef struct {
    const unsigned char *at;
    size_t left;
} span;

static bool part(span all, uint64_t offset, uint64_t bytes, span *p)
{
    if (offset > all.left || bytes > all.left - offset)
        return false;
    *p = (span){all.at + offset, (size_t)bytes};
    return true;
}

static bool take(span *s, void *to, size_t bytes)
{
    if (bytes > s->left)
        return false;
    if (to)
        memcpy(to, s->at, bytes);
    s->at += bytes;
    s->left -= bytes;
    return true;
}

/* ---- MessagePack ---- */

/* One value: a number, a text, or the head of an array or a map of `n` items that follow. */
typedef struct {
    enum { NUMBER, TEXT, ARRAY, MAP, OTHER } kind;
    uint64_t n;
    span text;
} value;

static bool take_number(span *s, int bytes, uint64_t *n)
{
    unsigned char b[8];
    *n = 0;
    if (!take(s, b, (size_t)bytes))
        return false;
    for (int i = 0; i < bytes; i++)
        *n = *n << 8 | b[i];
    return true;
}

static bool take_text(span *s, value *v)
{
    v->kind = TEXT;
    return part(*s, 0, v->n, &v->text) && take(s, NULL, (size_t)v->n);
}

static bool take_value(span *s, value *v)
{
    unsigned char b;
    *v = (value){.kind = OTHER};
    if (!take(s, &b, 1))
        return false;
    if (b < 0x80 || b >= 0xE0) { /* small numbers; negative ones do not occur where one is asked for */
        v->kind = NUMBER;
        v->n = b < 0x80 ? b : 0;
        return true;
    }
    if (b < 0xA0) {
        v->kind = b < 0x90 ? MAP : ARRAY;
        v->n = b & 15;
        return true;
    }
    if (b < 0xC0) {
        v->n = b & 31;
        return take_text(s, v);
    }
    switch (b) {
    case 0xC0: /* nil, false, true */
    case 0xC2:
    case 0xC3: return true;
    case 0xC4: /* bytes */
    case 0xC5:
    case 0xC6: return take_number(s, 1 << (b - 0xC4), &v->n) && take(s, NULL, (size_t)v->n);
    case 0xCA:
    case 0xCB: return take(s, NULL, b == 0xCA ? 4 : 8); /* floats */
    case 0xCC:
    case 0xCD:
    case 0xCE:
    case 0xCF: v->kind = NUMBER; return take_number(s, 1 << (b - 0xCC), &v->n);
    case 0xD0:
    case 0xD1:
    case 0xD2:
    case 0xD3: v->kind = NUMBER; return take_number(s, 1 << (b - 0xD0), &v->n);
    case 0xD9:
    case 0xDA:
    case 0xDB: return take_number(s, 1 << (b - 0xD9), &v->n) && take_text(s, v);
    case 0xDC:
    case 0xDD: v->kind = ARRAY; return take_number(s, b == 0xDC ? 2 : 4, &v->n);
    case 0xDE:
    case 0xDF: v->kind = MAP; return take_number(s, b == 0xDE ? 2 : 4, &v->n);
    default: return false;
    }
}

/* Passes over what the head v begins. */
static bool skip_items(span *s, const value *v, int depth)
{
    if (v->kind != ARRAY && v->kind != MAP)
        return true;
    if (depth > 16)
        return false;
    for (uint64_t i = 0; i < (v->kind == MAP ? 2 * v->n : v->n); i++) {
        value item;
        if (!take_value(s, &item) || !skip_items(s, &item, depth + 1))
            return false;
    }
    return true;
}

static bool is_text(const value *v, const char *text)
{
    return v->kind == TEXT && v->text.left == strlen(text) && memcmp(v->text.at, text, v->text.left) == 0;
}

/* ---- AMD ---- */

static bool kernel_facts(span *s, uint64_t pairs, wk_object_facts *f)
{
    const struct {
        const char *name;
        int *place;
    } known[] = {{".vgpr_count", &f->registers},
                 {".sgpr_count", &f->scalar_registers},
                 {".group_segment_fixed_size", &f->shared_bytes},
                 {".private_segment_fixed_size", &f->scratch_bytes},
                 {".vgpr_spill_count", &f->spills}};
    for (uint64_t i = 0; i < pairs; i++) {
        value key, v;
        if (!take_value(s, &key) || !take_value(s, &v))
            return false;
        for (size_t k = 0; k < sizeof known / sizeof *known; k++) {
            if (is_text(&key, known[k].name) && v.kind == NUMBER)
                *known[k].place = (int)v.n;
        }
        if (!skip_items(s, &v, 0))
            return false;
    }
    return true;
}

/* {"amdhsa.kernels": [{".vgpr_count": 12, ...}], ...} */
static bool metadata_facts(span s, wk_object_facts *f)
{
    value top, key, v;
    if (!take_value(&s, &top) || top.kind != MAP)
        return false;
    for (uint64_t i = 0; i < top.n; i++) {
        if (!take_value(&s, &key) || !take_value(&s, &v))
            return false;
        if (is_text(&key, "amdhsa.kernels") && v.kind == ARRAY && v.n > 0)
            return take_value(&s, &v) && v.kind == MAP && kernel_facts(&s, v.n, f);
        if (!skip_items(&s, &v, 0))
            return false;
    }
    return false;
}

static bool notes_facts(span notes, wk_object_facts *f)
{
    Elf64_Nhdr note;
    while (take(&notes, &note, sizeof note)) {
        uint64_t name = ((uint64_t)note.n_namesz + 3) & ~(uint64_t)3, text = note.n_descsz;
        span metadata;
        if (!part(notes, name, text, &metadata))
            return false;
        if (note.n_type == NOTE_METADATA)
            return metadata_facts(metadata, f);
        if (!take(&notes, NULL, (size_t)name) || !take(&notes, NULL, (size_t)((text + 3) & ~(uint64_t)3)))
            return false;
    }
    return false;
}

static bool amd_facts(span file, const Elf64_Ehdr *e, wk_object_facts *f)
{
    for (int i = 0; i < e->e_phnum; i++) {
        Elf64_Phdr p;
        span at, notes;
        if (!part(file, e->e_phoff + (uint64_t)i * sizeof p, sizeof p, &at) || !take(&at, &p, sizeof p))
            return false;
        if (p.p_type == PT_NOTE && part(file, p.p_offset, p.p_filesz, &notes) && notes_facts(notes, f))
            return true;
    }
    return false;
}

/* ---- NVIDIA ---- */

/* Attributes of .nv.info: a form, a kind and either two bytes or a size and that many bytes. */
enum { FORM_SIZED = 4, KIND_FRAME = 0x11, KIND_REGISTERS = 0x2F, KIND_MARKS = 0x55, RESERVED = 1024 };

/* Marks of instructions: what it is, and where it stands. Spills are told from arrays by them: both are in the frame. */
static int count_spills(span marks)
{
    enum { SPILL = 1 };
    uint32_t mark[2];
    int n = 0;
    while (take(&marks, mark, sizeof mark))
        n += mark[0] == SPILL;
    return n;
}

static void info_facts(span s, wk_object_facts *f)
{
    unsigned char head[2];
    uint16_t size;
    while (take(&s, head, 2) && take(&s, &size, 2)) {
        span value;
        uint32_t words[2]; /* of which function, and how much */
        if (head[0] != FORM_SIZED)
            continue;
        if (!part(s, 0, size, &value) || !take(&s, NULL, size))
            return;
        if (head[1] == KIND_MARKS)
            f->spills += count_spills(value);
        if (!take(&value, words, sizeof words))
            continue;
        if (head[1] == KIND_FRAME && (int)words[1] > f->scratch_bytes)
            f->scratch_bytes = (int)words[1];
        if (head[1] == KIND_REGISTERS && (int)words[1] > f->registers)
            f->registers = (int)words[1];
    }
}

static bool take_section(span file, const Elf64_Ehdr *e, int i, Elf64_Shdr *s)
{
    span at;
    return part(file, e->e_shoff + (uint64_t)i * sizeof *s, sizeof *s, &at) && take(&at, s, sizeof *s);
}

static bool begins(span names, uint64_t at, const char *with)
{
    size_t n = strlen(with);
    return at < names.left && names.left - at > n && memcmp(names.at + at, with, n) == 0;
}

static bool cuda_facts(span file, const Elf64_Ehdr *e, wk_object_facts *f)
{
    Elf64_Shdr s;
    span names, body;
    bool code = false, reserved = false;
    if (!take_section(file, e, e->e_shstrndx, &s) || !part(file, s.sh_offset, s.sh_size, &names))
        return false;
    for (int i = 0; i < e->e_shnum; i++) {
        if (!take_section(file, e, i, &s))
            return false;
        if (begins(names, s.sh_name, ".text."))
            code = true;
        else if (begins(names, s.sh_name, ".nv.shared.reserved."))
            reserved = true;
        else if (begins(names, s.sh_name, ".nv.shared.") && (int)s.sh_size > f->shared_bytes)
            f->shared_bytes = (int)s.sh_size; /* the section has no bytes in the file */
        else if (begins(names, s.sh_name, ".nv.info") && part(file, s.sh_offset, s.sh_size, &body))
            info_facts(body, f);
    }
    if (reserved &&
        f->shared_bytes >= RESERVED) /* from sm_90 on the kernel's section begins with the system's part */
        f->shared_bytes -= RESERVED;
    return code && f->registers > 0;
}

bool wk_object_facts_of(const void *code, size_t bytes, wk_object_facts *facts)
{
    span file = {code, bytes}, rest = file;
    Elf64_Ehdr e;
    *facts = (wk_object_facts){0};
    if (!take(&rest, &e, sizeof e) || memcmp(e.e_ident, ELFMAG, SELFMAG) != 0 ||
        e.e_ident[EI_CLASS] != ELFCLASS64)
        return false;
    if (e.e_machine == MACHINE_AMD)
        return amd_facts(file, &e, facts);
    return e.e_machine == MACHINE_CUDA && cuda_facts(file, &e, facts);
}
