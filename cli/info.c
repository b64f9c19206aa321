/* info.c: `wick info`: this machine as wick sees it. */
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include "core/device.h"
#include "core/host.h"
#include "gpu/gpu.h"
#include "gpu/library.h"
#include "args.h"
#include "cli.h"

static const char help[] =
    "usage: wick info [--json]\n"
    "\n"
    "Shows wick's version, the threads and the instruction-set level of the CPU, every device with its "
    "memory,\n"
    "and the GPU makers' libraries: where each was found, or what is missing and which package has it.\n"
    "The environment can lower the first two: WICK_THREADS=2, WICK_ISA=avx2.\n"
    "\n"
    "  --json   the same as one JSON object\n"
    "\n"
    "Examples:\n"
    "  wick info\n"
    "  wick info --json | jq -r '.devices[].name'\n";

typedef struct {
    uint64_t total, available; /* 0: not known */
} memory_size;

static memory_size host_memory(void)
{
    long page = sysconf(_SC_PAGESIZE), total = sysconf(_SC_PHYS_PAGES), free = sysconf(_SC_AVPHYS_PAGES);
    memory_size m = {total > 0 ? (uint64_t)total * (uint64_t)page : 0,
                     free > 0 ? (uint64_t)free * (uint64_t)page : 0};
    char line[128];
    FILE *f = fopen("/proc/meminfo", "r"); /* what can be had without swapping, caches counted */
    while (f && fgets(line, sizeof line, f)) {
        unsigned long long kilobytes;
        if (sscanf(line, "MemAvailable: %llu kB", &kilobytes) == 1)
            m.available = kilobytes * 1024;
    }
    if (f)
        fclose(f);
    return m;
}

static memory_size device_memory(const wk_device *d)
{
    if (d->kind == WK_KIND_CPU)
        return host_memory();
    wk_gpu *g = wk_gpu_of(d);
    size_t free = 0, total = 0;
    bool known = g->driver->enter(g->context) == 0 && g->driver->memory(&free, &total) == 0;
    return known ? (memory_size){total, free} : (memory_size){0, 0};
}

static void print_device(const wk_device *d)
{
    memory_size m = device_memory(d);
    printf("  %-8s %s\n", d->name, d->description);
    if (m.total)
        printf("           memory %.1f GiB, %.1f GiB available\n", (double)m.total / 0x1p30,
               (double)m.available / 0x1p30);
}

static void add_device(wk_text *t, const wk_device *d)
{
    memory_size m = device_memory(d);
    wk_text_add(t, "{\"name\":");
    wk_text_string(t, d->name);
    wk_text_add(t, ",\"description\":");
    wk_text_string(t, d->description);
    wk_text_add(t, ",\"memory\":{\"total\":%llu,\"available\":%llu}}", (unsigned long long)m.total,
                (unsigned long long)m.available);
}

/* Found where, which version; or what is the matter and who has it. */
static void print_library(const wk_library *l)
{
    if (l->handle)
        printf("  %-12s %s%s%s%s%s\n", l->name, l->version, l->version[0] ? ", " : "", l->path,
               l->trouble[0] ? ": " : "", l->trouble);
    else
        printf("  %-12s %s; in %s\n", l->name, l->trouble, l->package);
}

static void add_library(wk_text *t, const wk_library *l)
{
    wk_text_add(t, "{\"name\":\"%s\",\"found\":%s,\"version\":", l->name, l->handle ? "true" : "false");
    wk_text_string(t, l->version);
    wk_text_add(t, ",\"path\":");
    wk_text_string(t, l->path);
    wk_text_add(t, ",\"trouble\":");
    wk_text_string(t, l->trouble);
    wk_text_add(t, ",\"package\":");
    wk_text_string(t, l->package);
    wk_text_add(t, "}");
}

static void print_text(void)
{
    printf("wick %s\n\nthreads  %d\nisa      %s\n\ndevices\n", wk_version(), wk_num_threads(), wk_host_isa());
    for (int i = 0; i < wk_device_count(); i++)
        print_device(wk_device_open(wk_device_name_at(i)));
    printf("\nlibraries\n");
    for (wk_library *const *l = wk_libraries(); *l; l++)
        print_library(*l);
}

static int print_json(void)
{
    wk_text t = {0};
    wk_text_add(&t, "{\"version\":\"%s\",\"threads\":%d,\"isa\":\"%s\",\"amx\":%s,\"devices\":[",
                wk_version(), wk_num_threads(), wk_isa_level_name(wk_host_level()),
                wk_host_has_amx() ? "true" : "false");
    for (int i = 0; i < wk_device_count(); i++) {
        wk_text_add(&t, "%s", i ? "," : "");
        add_device(&t, wk_device_open(wk_device_name_at(i)));
    }
    wk_text_add(&t, "],\"libraries\":[");
    wk_library *const *libraries = wk_libraries();
    for (int i = 0; libraries[i]; i++) {
        wk_text_add(&t, "%s", i ? "," : "");
        add_library(&t, libraries[i]);
    }
    wk_text_add(&t, "]}\n");
    return args_print(&t);
}

int cmd_info(int argc, char **argv)
{
    bool json = false;
    const arg_option options[] = {{"json", .flag = &json}, {0}};
    int status = args_parse(help, options, &argc, argv);
    if (status != ARGS_GO)
        return status;
    if (argc > 1)
        return args_usage("info", "expected no argument, got '%s'", argv[1]);
    if (json)
        return print_json();
    print_text();
    return EXIT_OK;
}
