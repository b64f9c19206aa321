/* host.c: the CPU as a device. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "device.h"
#include "error.h"
#include "host.h"
#include "memory.h"
#include "pool.h"

#if defined(__x86_64__) && defined(__linux__) && WK_LEVELS > 2
#include <cpuid.h>
#include <sys/syscall.h>
#include <unistd.h>
#define HAS_EXTENSIONS 1
#endif

wk_ahead_bytes wk_host_ahead = {4096, 4096};
static wk_isa_level host_level;
static bool host_amx, host_f16;

const char *wk_isa_level_name(wk_isa_level level)
{
    static const char *const names[] = {"base", "avx2", "avx512"};
    return names[level];
}

static wk_isa_level detect_level(void)
{
#if defined(__x86_64__) && WK_LEVELS > 1
    __builtin_cpu_init();
    /* The compiler's run-time check asks the kernel too (XGETBV), not the CPUID flags alone. */
    if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
        __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl"))
        return WK_LEVEL_AVX512;
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"))
        return WK_LEVEL_AVX2;
#endif
    return WK_LEVEL_BASE;
}

/* Bits of what the processor has beside the levels, of those named here. */
enum { EXTENSION_TILES_BF16 = 1 << 22, EXTENSION_F16 = 1 << 23, EXTENSION_TILES = 1 << 24 };
static unsigned extensions(void)
{
#ifdef HAS_EXTENSIONS
    unsigned a, b, c, d;
    return __get_cpuid_count(7, 0, &a, &b, &c, &d) ? d : 0;
#else
    return 0;
#endif
}

/* Linux gives out the memory that the tile registers need when a process asks for it. */
static bool ask_for_amx(void)
{
#ifdef HAS_EXTENSIONS
    enum { REQUEST_PERMISSION = 0x1023, TILE_DATA = 18 };
    return syscall(SYS_arch_prctl, REQUEST_PERMISSION, TILE_DATA) == 0;
#else
    return false;
#endif
}

/* As measured: AMD's cores read twice as fast as others, and have as long to wait. */
static wk_ahead_bytes detect_ahead(void)
{
#if defined(__x86_64__)
    __builtin_cpu_init();
    if (__builtin_cpu_is("amd"))
        return (wk_ahead_bytes){16384, 0};
#endif
    return (wk_ahead_bytes){4096, 4096};
}

bool wk_host_has_amx(void)
{
    wk_cpu();
    return host_amx;
}

bool wk_host_has_f16(void)
{
    wk_cpu();
    return host_f16;
}

static const char *isa_words(void) { return host_amx ? "avx512 with AMX" : wk_isa_level_name(host_level); }

const char *wk_host_isa(void)
{
    wk_cpu();
    return isa_words();
}

wk_isa_level wk_host_level(void)
{
    wk_cpu();
    return host_level;
}

static void *host_alloc(wk_device *d, size_t bytes, void **stream)
{
    (void)d, (void)stream;
    return wk_block_alloc(bytes);
}

static void host_free(wk_device *d, void *data, size_t bytes, void *stream)
{
    (void)d, (void)stream;
    wk_block_free(data, bytes);
}

static wk_status host_copy(wk_device *d, void *dst, const void *src, size_t bytes)
{
    (void)d;
    memcpy(dst, src, bytes);
    return WK_OK;
}

static wk_status host_sync(wk_device *d)
{
    (void)d;
    return WK_OK;
}

static void host_stats(const wk_device *d, wk_memory_stats *stats)
{
    (void)d;
    wk_block_stats(stats);
}

static void host_trim(wk_device *d)
{
    (void)d;
    wk_block_trim();
}

static void host_limit(wk_device *d, uint64_t bytes)
{
    (void)d;
    wk_block_limit(bytes);
}

static const wk_device_table host_table = {.alloc = host_alloc,
                                           .free = host_free,
                                           .upload = host_copy,
                                           .download = host_copy,
                                           .sync = host_sync,
                                           .stats = host_stats,
                                           .trim = host_trim,
                                           .limit = host_limit};
static wk_device host = {.kind = WK_KIND_CPU, .name = "cpu", .table = &host_table};

/* "AMD EPYC 9554" out of /proc/cpuinfo; "CPU" where that has none. */
static void model_name(char *name, size_t room)
{
    char line[256];
    snprintf(name, room, "CPU");
    FILE *f = fopen("/proc/cpuinfo", "r");
    while (f && fgets(line, sizeof line, f)) {
        char *colon = strchr(line, ':');
        if (colon && strncmp(line, "model name", 10) == 0) {
            colon[strcspn(colon, "\n")] = 0;
            snprintf(name, room, "%.60s", colon + 2);
            break;
        }
    }
    if (f)
        fclose(f);
}

static void start(void)
{
    char name[64];
    wk_block_handle_forks();
    model_name(name, sizeof name);
    host_level = detect_level();
    const char *wish = getenv("WICK_ISA");
    for (int l = 0; wish && l < (int)host_level; l++) {
        if (strcmp(wish, wk_isa_level_name((wk_isa_level)l)) == 0)
            host_level = (wk_isa_level)l;
    }
    unsigned has = !wish && host_level == WK_LEVEL_AVX512 ? extensions() : 0;
    host_f16 = has & EXTENSION_F16;
    wk_host_ahead = detect_ahead();
    host_amx = has & EXTENSION_TILES && has & EXTENSION_TILES_BF16 && ask_for_amx();
    snprintf(host.description, sizeof host.description, "%s, %d threads, %s", name, wk_pool_threads(),
             isa_words());
}

wk_device *wk_cpu(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, start);
    return &host;
}

void wk_set_num_threads(int threads) { wk_pool_set_threads(threads < 0 ? 0 : threads); }
int wk_num_threads(void) { return wk_pool_threads(); }
