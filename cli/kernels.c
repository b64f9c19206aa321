/* kernels.c: `wick kernels`: GPU kernels built ahead, and what each of them needs. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "args.h"
#include "cli.h"
#include "gpu/pack.h"
#include "kernels_compile.h"

static const char help[] =
    "usage: wick kernels build [--arch A,B] [--out DIR] [--op NAME] [--jobs N]\n"
    "       wick kernels list [--arch A,B] [--op NAME] [--jobs N] [--json]\n"
    "\n"
    "GPU kernels are compiled when first needed, and kept. `build` compiles all that ops need on an "
    "architecture\n"
    "into one file, DIR/ARCH.wkpack, so that nothing is compiled later; `list` shows the registers, shared "
    "memory\n"
    "and occupancy of each. Neither needs a GPU: only the compiler, hipRTC for AMD or NVRTC for NVIDIA.\n"
    "\n"
    "  --arch A,B   architectures: gfx90a, gfx942, gfx1100, sm_80, sm_90, ...; default: those of the GPUs "
    "here\n"
    "  --out DIR    where packs go, default: $WICK_KERNELS, else the current folder\n"
    "  --op NAME    only what this op needs; may be given several times; a name ending in * stands for all "
    "that\n"
    "               begin so\n"
    "  --jobs N     processes that compile, default: as many as wick uses threads\n"
    "  --json       one JSON object a line for each kernel\n"
    "\n"
    "Packs are looked for in the folder $WICK_KERNELS and in the installation's share/wick/kernels, then in "
    "the\n"
    "user's cache; a pack serves the version of wick it was built by.\n"
    "\n"
    "In the list, scratch is memory in the place of registers, in bytes. Spills are registers (AMD) or the\n"
    "instructions that store and load them (NVIDIA): 0 in a good kernel. Scratch without spills is an\n"
    "array, which NVIDIA's sines have for huge numbers. Occupancy is waves on a SIMD (AMD) or blocks on a\n"
    "multiprocessor (NVIDIA), of the most there can be.\n"
    "\n"
    "Exit status: 0 when all is well; 1 when something failed, and for `list` when a kernel spills; 2 for\n"
    "wrong usage.\n"
    "\n"
    "Examples:\n"
    "  wick kernels build --arch gfx90a,gfx1100 --out /usr/share/wick/kernels\n"
    "  WICK_KERNELS=. wick check --device rocm:0\n"
    "  wick kernels list --arch sm_90 --op 'softmax*'\n"
    "  wick kernels list --arch gfx942 --json | jq -r 'select(.occupancy < 4).kernel'\n";

enum { MOST_ARCHS = 32 };

typedef struct {
    const wk_arch *archs[MOST_ARCHS];
    int n;
    arg_list ops;
    const char *out;
    long jobs;
    bool json;
} options;

/* ---- arguments ---- */

static int unknown_arch(const char *name)
{
    char known[400] = "";
    size_t at = 0;
    for (int i = 0; wk_arch_at(i); i++)
        at += (size_t)snprintf(known + at, sizeof known - at, "%s%s", i ? ", " : "", wk_arch_at(i)->name);
    return args_usage("kernels", "--arch: expected one of %s, got '%s'", known, name);
}

static int add_arch(options *o, const char *name)
{
    const wk_arch *arch = wk_arch_find(name);
    if (!arch)
        return unknown_arch(name);
    for (int i = 0; i < o->n; i++) {
        if (o->archs[i] == arch)
            return ARGS_GO;
    }
    if (o->n < MOST_ARCHS)
        o->archs[o->n++] = arch;
    return ARGS_GO;
}

/* "gfx90a,sm_90" */
static int add_archs(options *o, const char *text)
{
    int status = ARGS_GO;
    for (const char *at = text; status == ARGS_GO; at++) {
        char name[32];
        size_t n = strcspn(at, ",");
        snprintf(name, sizeof name, "%.*s", (int)n, at);
        status = add_arch(o, name);
        at += n;
        if (!*at)
            break;
    }
    return status;
}

static int archs_of_gpus(options *o)
{
    int status = ARGS_GO;
    for (int i = 0; wk_gpu_at(i) && status == ARGS_GO; i++)
        status = add_arch(o, wk_gpu_of(wk_gpu_at(i))->facts.arch);
    if (status == ARGS_GO && o->n == 0)
        return args_usage("kernels", "there is no GPU here: expected --arch");
    return status;
}

static int parse(options *o, int argc, char **argv)
{
    arg_list archs = {0};
    const char *jobs = NULL, *folder = getenv("WICK_KERNELS");
    *o = (options){.out = folder && *folder ? folder : ".", .jobs = wk_num_threads()};
    const arg_option known[] = {{"arch", .list = &archs}, {"out", .value = &o->out},  {"op", .list = &o->ops},
                                {"jobs", .value = &jobs}, {"json", .flag = &o->json}, {0}};
    int status = args_parse(help, known, &argc, argv);
    if (status != ARGS_GO)
        return status;
    bool build = argc > 1 && strcmp(argv[1], "build") == 0, list = argc > 1 && strcmp(argv[1], "list") == 0;
    if (!build && !list)
        return args_usage("kernels", "expected build or list, got '%s'", argc > 1 ? argv[1] : "nothing");
    if (argc > 2)
        return args_usage("kernels", "expected options only, got '%s'", argv[2]);
    if (build && o->json)
        return args_usage("kernels", "--json goes with list");
    if (jobs && !args_int("kernels", "jobs", jobs, 1, 1024, &o->jobs))
        return EXIT_USAGE;
    if (!args_ops("kernels", &o->ops))
        return EXIT_USAGE;
    for (int i = 0; i < archs.n && status == ARGS_GO; i++)
        status = add_archs(o, archs.items[i]);
    return status == ARGS_GO && archs.n == 0 ? archs_of_gpus(o) : status;
}

/* ---- build ---- */

static int write_pack(const kernel_set *set, const char *folder)
{
    wk_pack_item *items = calloc((size_t)set->n + 1, sizeof *items);
    if (!items) {
        fprintf(stderr, "wick kernels: out of memory for %d kernels\n", set->n);
        return EXIT_FAILED;
    }
    size_t bytes = 0;
    for (int i = 0; i < set->n; i++) {
        wk_kernel_key(set->arch->name, set->arch->wave, set->wanted[i].kernel, set->wanted[i].instance,
                      &items[i].key);
        items[i].code = set->codes[i].code;
        items[i].bytes = set->codes[i].bytes;
        bytes += items[i].bytes;
    }
    wk_status status = wk_pack_write(folder, set->arch->name, items, set->n);
    free(items);
    if (status != WK_OK)
        return args_error();
    printf("%s/%s.wkpack: %d kernels, %.1f MiB\n", folder, set->arch->name, set->n, (double)bytes / 0x1p20);
    return ARGS_GO;
}

/* ---- list ---- */

/* A pack that is there but cannot be used is worth an error here: elsewhere kernels are compiled in its place. */
static int check_packs(const wk_arch *arch)
{
    char folder[512], path[700];
    for (int i = 0; wk_pack_folder(i, folder, sizeof folder); i++) {
        int n;
        snprintf(path, sizeof path, "%s/%s.wkpack", folder, arch->name);
        if (folder[0] && wk_pack_check(path, arch->name, &n) != WK_OK)
            return args_error();
    }
    return ARGS_GO;
}

static void put_kernel(const options *o, const kernel_set *set, int i, const wk_object_facts *f)
{
    wk_kernel_name name;
    const wk_kernel *k = set->wanted[i].kernel;
    wk_occupancy waves = wk_occupancy_of(set->arch, f, k->threads);
    wk_kernel_name_of(k, set->wanted[i].instance, &name);
    if (o->json)
        printf("{\"arch\":\"%s\",\"file\":\"%s\",\"kernel\":\"%s\",\"threads\":%d,\"registers\":%d,"
               "\"scalar_registers\":%d,\"shared_bytes\":%d,\"scratch_bytes\":%d,\"spills\":%d,"
               "\"occupancy\":%d,\"most\":%d,\"code_bytes\":%zu}\n",
               set->arch->name, k->file, name.text, k->threads, f->registers, f->scalar_registers,
               f->shared_bytes, f->scratch_bytes, f->spills, waves.now, waves.most, set->codes[i].bytes);
    else
        printf("%9d %7d %7d %8d %7d %6d/%-2d  %s\n", f->registers, f->scalar_registers, f->shared_bytes,
               f->scratch_bytes, f->spills, waves.now, waves.most, name.text);
}

/* AMD's compiler counts neither scalar registers that end in scratch nor arrays, which none of our kernels has there. */
static bool spills(const wk_arch *arch, const wk_object_facts *f)
{
    return f->spills > 0 || (arch->kind == WK_KIND_ROCM && f->scratch_bytes > 0);
}

static int list_set(const options *o, const kernel_set *set)
{
    int spilling = 0;
    if (!o->json)
        printf("%s\nregisters scalars  shared  scratch  spills occupancy  kernel\n", set->arch->name);
    for (int i = 0; i < set->n; i++) {
        wk_object_facts f;
        if (!wk_object_facts_of(set->codes[i].code, set->codes[i].bytes, &f)) {
            wk_kernel_name name;
            wk_kernel_name_of(set->wanted[i].kernel, set->wanted[i].instance, &name);
            fprintf(stderr, "wick kernels: %s: the code of %s does not read\n", set->arch->name, name.text);
            return EXIT_FAILED;
        }
        put_kernel(o, set, i, &f);
        spilling += spills(set->arch, &f);
    }
    if (!o->json)
        printf("%s: %d kernels, %d that spill\n", set->arch->name, set->n, spilling);
    return spilling ? EXIT_FAILED : ARGS_GO;
}

int cmd_kernels(int argc, char **argv)
{
    options o;
    int status = parse(&o, argc, argv), worst = EXIT_OK;
    if (status != ARGS_GO)
        return status;
    bool build = strcmp(argv[1], "build") == 0;
    if (build && wk_pack_writable(o.out) != WK_OK) /* rather now than when all is compiled */
        return args_error();
    for (int i = 0; i < o.n; i++) {
        kernel_set set = {0};
        status = build ? ARGS_GO : check_packs(o.archs[i]);
        if (status == ARGS_GO)
            status = kernels_plan(o.archs[i], &o.ops, &set);
        if (status == ARGS_GO)
            status = kernels_compile(&set, (int)o.jobs);
        if (status == ARGS_GO)
            status = build ? write_pack(&set, o.out) : list_set(&o, &set);
        kernels_free(&set);
        if (status != ARGS_GO)
            worst = status;
    }
    return worst;
}
