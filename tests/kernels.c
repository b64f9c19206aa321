/* kernels.c: planning devices, packs of code objects, and reading what a code object needs; all without a GPU. */
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>
#include "check/check.h"
#include "core/memory.h"
#include "folder.h"
#include "gpu/object.h"
#include "gpu/pack.h"
#include "gpu/plan.h"
#include "test.h"

#define SAY(condition, ...) test_check((condition), __FILE__, __LINE__, __VA_ARGS__)

/* ---- planning ---- */

static int plan_ops(const char *arch, const char *const *ops)
{
    wk_device *device = wk_plan_open(wk_arch_find(arch));
    int n = 0;
    SAY(device != NULL, "%s: %s", arch, wk_error());
    for (; device && *ops; ops++) {
        wk_check_result r;
        SAY(wk_check_plan(device, wk_op_find(*ops), &r) > 0, "%s on %s: nothing ran", *ops, arch);
        SAY(r.failed == 0, "%s on %s: %s", *ops, arch, r.message);
    }
    wk_wanted *wanted = device ? wk_plan_wanted(device, &n) : NULL;
    for (int i = 1; wanted && i < n; i++) {
        wk_kernel_name a, b;
        wk_kernel_name_of(wanted[i - 1].kernel, wanted[i - 1].instance, &a);
        wk_kernel_name_of(wanted[i].kernel, wanted[i].instance, &b);
        SAY(strcmp(wanted[i - 1].kernel->file, wanted[i].kernel->file) < 0 || strcmp(a.text, b.text) < 0,
            "%s stands before %s", a.text, b.text);
    }
    wk_free(wanted);
    return n;
}

static void test_plan(void)
{
    int one = plan_ops("gfx90a", (const char *const[]){"tril", NULL});
    int two = plan_ops("gfx90a", (const char *const[]){"tril", "triu", "index_add", NULL});
    SAY(one > 0, "tril needs no kernel");
    SAY(two > one, "index_add needs no kernel");
    SAY(plan_ops("sm_90", (const char *const[]){"tril", NULL}) == one, "tril differs between makers");
    SAY(wk_arch_find("gfx1") == NULL, "gfx1 is no architecture");
}

/* ---- packs ---- */

enum { ITEMS = 5 };
static const char *const codes[ITEMS] = {"first", "the second one", "3", "", "and the last of all of them"};

static void make_items(wk_pack_item *items)
{
    for (int i = 0; i < ITEMS; i++) {
        memset(&items[i], 0, sizeof items[i]);
        snprintf(items[i].key.text, sizeof items[i].key.text, "key %d of a kernel\n", i);
        items[i].code = codes[i];
        items[i].bytes = strlen(codes[i]);
    }
}

static long read_file(const char *path, char *data, size_t room)
{
    FILE *f = fopen(path, "rb");
    size_t n = f ? fread(data, 1, room, f) : 0;
    if (f)
        fclose(f);
    return (long)n;
}

static void write_file(const char *path, const char *data, size_t n)
{
    FILE *f = fopen(path, "wb");
    SAY(f && fwrite(data, 1, n, f) == n, "cannot write %s", path);
    if (f)
        fclose(f);
}

/* Every byte that changes, and every byte less, is found. */
static void test_damage(const char *path)
{
    char data[4096], changed[4096];
    long n = read_file(path, data, sizeof data);
    int count;
    SAY(n > 100 && n < (long)sizeof data, "%ld bytes in a pack", n);
    for (long i = 0; i < n; i++) {
        memcpy(changed, data, (size_t)n);
        changed[i] ^= 0x10;
        write_file(path, changed, (size_t)n);
        SAY(wk_pack_check(path, "gfx90a", &count) != WK_OK, "byte %ld changed and nobody saw it", i);
        wk_error_clear();
        write_file(path, data, (size_t)i);
        SAY(wk_pack_check(path, "gfx90a", &count) != WK_OK, "cut to %ld bytes and nobody saw it", i);
        wk_error_clear();
    }
    write_file(path, data, (size_t)n);
}

static void test_packs(const char *folder)
{
    wk_pack_item items[ITEMS];
    char path[600], deep[560];
    int count;
    snprintf(deep, sizeof deep, "%s/a/b", folder);
    snprintf(path, sizeof path, "%s/gfx90a.wkpack", deep);
    make_items(items);
    SAY(wk_pack_writable(deep) == WK_OK, "%s", wk_error());
    SAY(wk_pack_write(deep, "gfx90a", items, ITEMS) == WK_OK, "%s", wk_error());
    SAY(wk_pack_check(path, "gfx90a", &count) == WK_OK && count == ITEMS, "%s: %d", wk_error(), count);
    SAY(wk_pack_check(path, "sm_90", &count) == WK_ERR_FORMAT, "a pack of another architecture");
    SAY(strstr(wk_error(), "another architecture") != NULL, "%s", wk_error());
    wk_error_clear();
    SAY(wk_pack_check("/nonexistent/x.wkpack", "sm_90", &count) == WK_OK && count == -1, "no file at all");
    setenv("WICK_KERNELS", deep, 1);
    make_items(items);
    for (int i = 0; i < ITEMS; i++) {
        size_t bytes = 99;
        char *code = wk_pack_read("gfx90a", &items[i].key, &bytes);
        SAY(code && bytes == strlen(codes[i]) && memcmp(code, codes[i], bytes) == 0, "code %d", i);
        wk_free(code);
    }
    snprintf(items[0].key.text, sizeof items[0].key.text, "another key");
    SAY(wk_pack_read("gfx90a", &items[0].key, &(size_t){0}) == NULL, "a key that is not there");
    SAY(wk_pack_read("gfx1100", &items[1].key, &(size_t){0}) == NULL, "an architecture without a pack");
    test_damage(path);
    SAY(wk_pack_writable("/proc/nowhere") == WK_ERR_IO, "a folder nobody can write to");
    wk_error_clear();
    SAY(wk_pack_write("/proc/nowhere", "gfx90a", items, ITEMS) == WK_ERR_IO, "written to nowhere");
    wk_error_clear();
}

/* ---- code objects ---- */

/* A code object as AMD's compiler writes it, cut to what is read: an ELF head, one segment, one note. */
static size_t make_object(unsigned char *p)
{
    static const unsigned char metadata[] =
        "\x82\xAE"
        "amdhsa.version\x92\x01\x02\xAE"
        "amdhsa.kernels\x91\x85\xA5.name\xA9wk_kernel\xAB.vgpr_count\xCC\x80"
        "\xAB.sgpr_count\x30\xB9.group_segment_fixed_size\xCD\x10\x00"
        "\xBB.private_segment_fixed_size\x08";
    unsigned char head[64] = "\x7F"
                             "ELF\x02\x01\x01";
    unsigned char segment[56] = {4},
                  note[20] = {7, 0, 0, 0, sizeof metadata - 1, 0, 0, 0, 32, 0, 0, 0, 'A', 'M'};
    head[18] = 224; /* the machine */
    head[32] = 64;  /* where segments are described */
    head[56] = 1;   /* how many */
    segment[8] = 120;
    segment[32] = sizeof note + sizeof metadata - 1;
    memcpy(p, head, 64);
    memcpy(p + 64, segment, 56);
    memcpy(p + 120, note, sizeof note);
    memcpy(p + 120 + sizeof note, metadata, sizeof metadata - 1);
    return 120 + sizeof note + sizeof metadata - 1;
}

/* The same by NVIDIA's: names, the kernel's code and attributes: 64 registers, 48 bytes of memory, and three instructions
 * marked, of which two are for spilled registers. */
static size_t make_cubin(unsigned char *p)
{
    static const char names[] = "\0.text.k\0.nv.info.k";
    static const unsigned char info[] = "\x03\x1B\xFF\x00"
                                        "\x04\x2F\x08\x00\x01\x00\x00\x00\x40\x00\x00\x00"
                                        "\x04\x11\x08\x00\x01\x00\x00\x00\x30\x00\x00\x00"
                                        "\x04\x55\x18\x00\x01\x00\x00\x00\x10\x00\x00\x00\x02\x00\x00\x00"
                                        "\x20\x00\x00\x00\x01\x00\x00\x00\x30\x00\x00\x00";
    enum { SECTIONS = 3, NAMES = 64 + SECTIONS * 64, INFO = NAMES + sizeof names };
    unsigned char head[64] = "\x7F"
                             "ELF\x02\x01\x01";
    unsigned char sections[SECTIONS][64] = {{0}, {1}, {9}}; /* where their names are */
    head[18] = 190;                                         /* the machine */
    head[40] = 64;                                          /* where sections are described */
    head[60] = SECTIONS;
    sections[0][24] = NAMES & 255, sections[0][25] = NAMES >> 8, sections[0][32] = sizeof names;
    sections[2][24] = INFO & 255, sections[2][25] = INFO >> 8, sections[2][32] = sizeof info - 1;
    memcpy(p, head, 64);
    memcpy(p + 64, sections, sizeof sections);
    memcpy(p + NAMES, names, sizeof names);
    memcpy(p + INFO, info, sizeof info - 1);
    return INFO + sizeof info - 1;
}

/* Whatever is in an object, it is read within its bounds: for sanitizers to see. */
static void damage_object(const unsigned char *data, size_t n)
{
    unsigned char changed[512];
    wk_object_facts f;
    for (size_t i = 0; i < n; i++) {
        unsigned char *exact = malloc(i + 1);
        memcpy(exact, data, i);
        wk_object_facts_of(exact, i, &f);
        free(exact);
        for (int bit = 0; bit < 8; bit++) {
            memcpy(changed, data, n);
            changed[i] ^= (unsigned char)(1 << bit);
            wk_object_facts_of(changed, n, &f);
        }
    }
}

static void test_objects(void)
{
    unsigned char data[512];
    wk_object_facts f;
    size_t n = make_object(data);
    SAY(wk_object_facts_of(data, n, &f), "the object does not read");
    SAY(f.registers == 128 && f.scalar_registers == 48 && f.shared_bytes == 4096 && f.scratch_bytes == 8,
        "%d registers, %d scalar ones, %d shared, %d scratch", f.registers, f.scalar_registers,
        f.shared_bytes, f.scratch_bytes);
    wk_occupancy o = wk_occupancy_of(wk_arch_find("gfx90a"), &f, 256);
    SAY(o.now == 4 && o.most == 8, "%d of %d waves", o.now, o.most);
    damage_object(data, n);
    n = make_cubin(data);
    SAY(wk_object_facts_of(data, n, &f), "the cubin does not read");
    SAY(f.registers == 64 && f.scratch_bytes == 48 && f.spills == 2, "%d registers, %d scratch, %d spills",
        f.registers, f.scratch_bytes, f.spills);
    damage_object(data, n);
    SAY(!wk_object_facts_of("no code at all", 14, &f), "text read as code");
}

int main(void)
{
    test_objects();
    test_packs(test_folder("kernels"));
    test_plan();
    return test_end();
}
