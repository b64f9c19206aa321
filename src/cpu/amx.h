/* amx.h: the processor's tile registers: eight of 16 rows by 64 bytes, of which one instruction multiplies two as
 * matrices of bf16. Numbers of tiles are constants.
 *
 * With WK_SOFT_TILES the same in plain C: for tests on processors that have none. */
#ifndef WK_CPU_AMX_H
#define WK_CPU_AMX_H

#include <stdint.h>
#include <string.h>
#include "core/dtype.h"

enum { AMX_ROWS = 16, AMX_ROW_BYTES = 64 };

#ifndef WK_SOFT_TILES

typedef struct {
    uint8_t palette, start_row, zero[14];
    uint16_t row_bytes[16];
    uint8_t rows[16];
} amx_config;

/* All tiles at their full size. */
static inline void amx_begin(void)
{
    amx_config config = {.palette = 1};
    for (int i = 0; i < 8; i++) {
        config.row_bytes[i] = AMX_ROW_BYTES;
        config.rows[i] = AMX_ROWS;
    }
    __asm__ volatile("ldtilecfg %0" ::"m"(config));
}

static inline void amx_end(void) { __asm__ volatile("tilerelease"); }

#define AMX_ZERO(t) __asm__ volatile("tilezero %%tmm" #t ::)
/* Rows are stride bytes apart. */
#define AMX_LOAD(t, p, stride) \
    __asm__ volatile("tileloadd (%0,%1,1), %%tmm" #t ::"r"((const void *)(p)), "r"((int64_t)(stride)) \
                     : "memory")
#define AMX_STORE(t, p, stride) \
    __asm__ volatile("tilestored %%tmm" #t ", (%0,%1,1)" ::"r"((void *)(p)), "r"((int64_t)(stride)) \
                     : "memory")
/* c[i][j] += the sum over p of a[i][2p] * b[p][2j] + a[i][2p + 1] * b[p][2j + 1]; c of f32, a and b of bf16. */
#define AMX_MULADD(c, a, b) __asm__ volatile("tdpbf16ps %%tmm" #b ", %%tmm" #a ", %%tmm" #c ::)

#else

#include <float.h>

typedef union {
    float f32[AMX_ROWS][AMX_ROW_BYTES / 4];
    uint16_t bf16[AMX_ROWS][AMX_ROW_BYTES / 2];
} amx_tile;

static _Thread_local amx_tile amx_tiles[8];

static inline void amx_begin(void) { memset(amx_tiles, 0, sizeof amx_tiles); }
static inline void amx_end(void) { memset(amx_tiles, 0xff, sizeof amx_tiles); /* NaN */ }

static inline void amx_load(int t, const void *p, int64_t stride)
{
    for (int i = 0; i < AMX_ROWS; i++)
        memcpy(amx_tiles[t].f32[i], (const char *)p + i * stride, AMX_ROW_BYTES);
}

static inline void amx_store(int t, void *p, int64_t stride)
{
    for (int i = 0; i < AMX_ROWS; i++)
        memcpy((char *)p + i * stride, amx_tiles[t].f32[i], AMX_ROW_BYTES);
}

/* As the registers do, which take what is subnormal for zero, and make it zero. */
static inline float amx_flush(float x) { return x > -FLT_MIN && x < FLT_MIN ? 0 : x; }
static inline float amx_value(uint16_t bits) { return amx_flush(wk_bf16_to_f32(bits)); }

static inline void amx_muladd(int c, int a, int b)
{
    for (int i = 0; i < AMX_ROWS; i++)
        for (int p = 0; p < AMX_ROWS; p++)
            for (int j = 0; j < 2 * AMX_ROWS; j++) {
                float *sum = &amx_tiles[c].f32[i][j / 2];
                *sum = amx_flush(*sum + amx_flush(amx_value(amx_tiles[a].bf16[i][2 * p + j % 2]) *
                                                  amx_value(amx_tiles[b].bf16[p][j])));
            }
}

#define AMX_ZERO(t) memset(&amx_tiles[t], 0, sizeof amx_tiles[t])
#define AMX_LOAD(t, p, stride) amx_load(t, p, stride)
#define AMX_STORE(t, p, stride) amx_store(t, p, stride)
#define AMX_MULADD(c, a, b) amx_muladd(c, a, b)

#endif
#endif
