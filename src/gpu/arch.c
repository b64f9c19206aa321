/* arch.c: the table of architectures, and how many waves or blocks one of their units holds. */
#include <string.h>
#include "arch.h"

enum { KB = 1024 };

/* AMD: waves and registers are a SIMD's, LDS a compute unit's. The numbers are those of LLVM's AMDGPU back end. */
#define GCN(name_, units_, registers_, granule_, waves_) \
    { \
        name_, WK_KIND_ROCM, 64, units_, 64 * KB, waves_, 0, registers_, granule_, 4, 64 * KB \
    }
#define RDNA(name_, units_, registers_, granule_) \
    { \
        name_, WK_KIND_ROCM, 32, units_, 64 * KB, 16, 0, registers_, granule_, 2, 64 * KB \
    }
#define NVIDIA(name_, units_, block_kb, waves_, blocks_, unit_kb) \
    { \
        name_, WK_KIND_CUDA, 32, units_, block_kb *KB, waves_, blocks_, 65536, 256, 1, unit_kb *KB \
    }

static const wk_arch table[] = {
    GCN("gfx906", 60, 256, 4, 10),          GCN("gfx908", 120, 256, 4, 10),
    GCN("gfx90a", 104, 512, 8, 8),          GCN("gfx942", 304, 512, 8, 8),
    GCN("gfx950", 256, 512, 8, 8),          RDNA("gfx1030", 72, 1024, 16),
    RDNA("gfx1031", 40, 1024, 16),          RDNA("gfx1032", 32, 1024, 16),
    RDNA("gfx1100", 96, 1536, 24),          RDNA("gfx1101", 60, 1536, 24),
    RDNA("gfx1102", 32, 1024, 16),          RDNA("gfx1103", 12, 1024, 16),
    RDNA("gfx1150", 16, 1024, 16),          RDNA("gfx1151", 40, 1536, 24),
    RDNA("gfx1200", 32, 1536, 24),          RDNA("gfx1201", 64, 1536, 24),
    NVIDIA("sm_80", 108, 163, 64, 32, 164), NVIDIA("sm_86", 82, 99, 48, 16, 100),
    NVIDIA("sm_87", 16, 163, 48, 16, 164),  NVIDIA("sm_89", 128, 99, 48, 24, 100),
    NVIDIA("sm_90", 132, 227, 64, 32, 228), NVIDIA("sm_100", 148, 227, 64, 32, 228),
    NVIDIA("sm_120", 170, 99, 48, 24, 100),
};

const wk_arch *wk_arch_at(int i)
{
    return i >= 0 && i < (int)(sizeof table / sizeof *table) ? &table[i] : NULL;
}

const wk_arch *wk_arch_find(const char *name)
{
    for (int i = 0; wk_arch_at(i); i++) {
        if (strcmp(table[i].name, name) == 0)
            return &table[i];
    }
    return NULL;
}

static int least(int a, int b) { return a < b ? a : b; }
static int round_up(int n, int to) { return (n + to - 1) / to * to; }

static wk_occupancy amd_occupancy(const wk_arch *arch, const wk_object_facts *f, int block_waves)
{
    int waves = arch->waves;
    if (f->registers)
        waves = least(waves, arch->registers / round_up(f->registers, arch->granule));
    if (f->scalar_registers && arch->wave == 64) /* 800 to a SIMD; RDNA has enough for every wave */
        waves = least(waves, 800 / f->scalar_registers);
    if (f->shared_bytes) {
        int by_shared = arch->unit_shared_bytes / f->shared_bytes * block_waves / arch->simds;
        waves = least(waves, by_shared > 0 ? by_shared : 1);
    }
    return (wk_occupancy){waves, arch->waves};
}

static wk_occupancy nvidia_occupancy(const wk_arch *arch, const wk_object_facts *f, int block_waves)
{
    enum { RESERVED = KB }; /* of every block's shared memory, for the system; not before sm_80 */
    int blocks = least(arch->blocks, arch->waves / block_waves), most = blocks;
    if (f->registers)
        blocks = least(blocks, arch->registers / round_up(f->registers * 32, arch->granule) / block_waves);
    if (f->shared_bytes)
        blocks = least(blocks, arch->unit_shared_bytes / (f->shared_bytes + RESERVED));
    return (wk_occupancy){blocks, most};
}

wk_occupancy wk_occupancy_of(const wk_arch *arch, const wk_object_facts *facts, int threads)
{
    int block_waves = round_up(threads, arch->wave) / arch->wave;
    return (arch->kind == WK_KIND_ROCM ? amd_occupancy : nvidia_occupancy)(arch, facts, block_waves);
}
