/* quant_row.hip: weights in blocks of few bits times one row of x, by NVIDIA's products of four bytes: x is made integers of 23 bits,
 * with a scale to 32 of them, which are three planes of bytes. Every sum of 32 products is exact.
 *
 * A lane takes a pair of runs of 32 weights, that every format has side by side; a wave two rows of weights, which come through
 * shared memory while the two before them are worked on. */
#define BEGINS_ITSELF
#include "act.h"
#include "quant.h"
#include "quant_format.h"

/* ---- products of four bytes ---- */

/* sum + the four bytes of q, signed or not, times those of x. */
template <bool Q_SIGNED, bool X_SIGNED> DEVICE i32 dot4(u32 q, u32 x, i32 sum)
{
    if (Q_SIGNED && X_SIGNED)
        asm("dp4a.s32.s32 %0, %1, %2, %0;" : "+r"(sum) : "r"(q), "r"(x));
    else if (Q_SIGNED)
        asm("dp4a.s32.u32 %0, %1, %2, %0;" : "+r"(sum) : "r"(q), "r"(x));
    else if (X_SIGNED)
        asm("dp4a.u32.s32 %0, %1, %2, %0;" : "+r"(sum) : "r"(q), "r"(x));
    else
        asm("dp4a.u32.u32 %0, %1, %2, %0;" : "+r"(sum) : "r"(q), "r"(x));
    return sum;
}

/* ---- x ---- */

/* 32 of x: x[i] = scale (65536 a + 256 b + c), where byte i of the planes is a (signed), b and c. */
struct alignas(16) run {
    u32 plane[3][8];
    i32 sum[2][3]; /* of each half: of the planes' bytes */
    f32 scale, all; /* all: the sum of x */
};
/* Two runs as a lane takes them; the padding lets lanes meet different banks. */
struct alignas(16) pair_of_runs {
    run of[2];
    u32 padding[4];
};

/* Where run i of pair p begins in x. */
template <int FORMAT> DEVICE int run_of(int p, int i)
{
    return FORMAT == 3 ? (p / 2 * 4 + p % 2 + 2 * i) * 32 : (p * 2 + i) * 32;
}

/* Four lanes make a run, eight of x each, and write it where `there` holds. False where there is an infinity or a NaN. */
template <class T> DEVICE bool make_run(const T *x, bool there, run *r)
{
    int part = (int)lane_id() % 4;
    f32 v[8], most = 0, all = 0;
    UNROLL
    for (int h = 0; h < 2; h++) {
        pack<T, 4> four = load<4>(x + part * 8 + h * 4);
        UNROLL
        for (int i = 0; i < 4; i++) {
            v[h * 4 + i] = get(four.v[i]);
            most = max_nan(most, m_fabs(v[h * 4 + i]));
            all += v[h * 4 + i];
        }
    }
    most = wave_reduce<op_max, 4>(most);
    all = wave_reduce<op_sum, 4>(all);
    /* 2^21 is the power of two below the largest: 22 bits and a sign. */
    i32 power = greater((i32)(bit_cast<u32>(most) >> 23 & 255) - 127, -100);
    f32 up = bit_cast<f32>((u32)(127 + 21 - power) << 23);
    i32 sum[3] = {};
    UNROLL
    for (int h = 0; h < 2; h++) {
        u32 word[3] = {};
        UNROLL
        for (int i = 0; i < 4; i++) {
            /* To the nearest, by the last bits of a large number; its own bits are taken off again. */
            i32 n = (i32)(bit_cast<u32>(m_fma(v[h * 4 + i], up, 12582912.0f)) - 0x4B400000u);
            i32 a = n >> 16, b = n >> 8 & 255, c = n & 255;
            word[0] |= (u32)(a & 255) << 8 * i;
            word[1] |= (u32)b << 8 * i;
            word[2] |= (u32)c << 8 * i;
            sum[0] += a;
            sum[1] += b;
            sum[2] += c;
        }
        UNROLL
        for (int p = 0; p < 3; p++)
            if (there)
                r->plane[p][part * 2 + h] = word[p];
    }
    UNROLL
    for (int p = 0; p < 3; p++) {
        sum[p] = wave_reduce<op_sum, 2>(sum[p]);
        if (there && part % 2 == 0)
            r->sum[part / 2][p] = sum[p];
    }
    if (there && part == 0) {
        r->scale = bit_cast<f32>((u32)(127 - 21 + power) << 23);
        r->all = all;
    }
    return most < infinity<f32>();
}

/* ---- weights ---- */

/* A pair of runs: words of weights, and the scales of both runs, each for both halves (q6_k has two). */
struct words {
    u32 q[2][8];
    f32 scale[2][2], min[2];
};

/* Four bytes that begin at an even place. */
DEVICE u32 word_even(const u32 *p, int odd) { return (u32)(((u64)p[1] << 32 | p[0]) >> 16 * odd); }

DEVICE void open_pair(const u8 *unit, int p, words *w, format_of<0>)
{
    const u32 *at = (const u32 *)(unit + p * 36);
    u32 v[9];
    UNROLL
    for (int i = 0; i < 9; i++)
        v[i] = at[i];
    UNROLL
    for (int i = 0; i < 4; i++) {
        u32 first = v[i] >> 16 | v[i + 1] << 16, second = v[i + 5];
        w->q[0][i] = first & 0x0F0F0F0F;
        w->q[0][i + 4] = first >> 4 & 0x0F0F0F0F;
        w->q[1][i] = second & 0x0F0F0F0F;
        w->q[1][i + 4] = second >> 4 & 0x0F0F0F0F;
    }
    w->scale[0][0] = from_f16({(unsigned short)v[0]});
    w->scale[1][0] = from_f16({(unsigned short)(v[4] >> 16)});
}
DEVICE void open_pair(const u8 *unit, int p, words *w, format_of<1>)
{
    const u32 *at = (const u32 *)(unit + p * 68);
    u32 v[9];
    UNROLL
    for (int i = 0; i < 9; i++)
        v[i] = at[i];
    UNROLL
    for (int i = 0; i < 8; i++) {
        w->q[0][i] = v[i] >> 16 | v[i + 1] << 16;
        w->q[1][i] = at[9 + i];
    }
    w->scale[0][0] = from_f16({(unsigned short)v[0]});
    w->scale[1][0] = from_f16({(unsigned short)(v[8] >> 16)});
}
DEVICE void open_pair(const u8 *unit, int p, words *w, format_of<2>)
{
    const u8 *block = unit + p / 4 * 144;
    UNROLL
    for (int i = 0; i < 8; i += 4) {
        pack<u32, 4> v = load<4>((const u32 *)(block + 16 + p % 4 * 32) + i);
        UNROLL
        for (int j = 0; j < 4; j++) {
            w->q[0][i + j] = v.v[j] & 0x0F0F0F0F;
            w->q[1][i + j] = v.v[j] >> 4 & 0x0F0F0F0F;
        }
    }
    eight e = format_of<2>::load(block, p % 4 * 8);
    UNROLL
    for (int i = 0; i < 2; i++) {
        w->scale[i][0] = e.scale[i];
        w->min[i] = e.min[i];
    }
}
DEVICE void open_pair(const u8 *unit, int p, words *w, format_of<3>)
{
    const u8 *block = unit + p / 4 * 210;
    int odd = p / 4 % 2, half = p / 2 % 2, run = p % 2;
    const u32 *low = (const u32 *)(block + half * 64 + run * 32 - 2 * odd), *high = (const u32 *)(block + 128 + half * 32 - 2 * odd);
    UNROLL
    for (int i = 0; i < 8; i++) {
        u32 l = word_even(low + i, odd), h = word_even(high + i, odd) >> 2 * run;
        w->q[0][i] = (l & 0x0F0F0F0F) | (h & 0x03030303) << 4;
        w->q[1][i] = (l >> 4 & 0x0F0F0F0F) | (h >> 4 & 0x03030303) << 4;
    }
    const u8 *scale = block + 192 + half * 8 + run * 2;
    f32 d = half_at(block + 208);
    UNROLL
    for (int i = 0; i < 2; i++)
        UNROLL
        for (int j = 0; j < 2; j++)
            w->scale[i][j] = d * byte_less<128>(scale[4 * i + j] ^ 128u, 0);
}

/* What run `of` of a pair adds to a row's sum. */
template <int FORMAT> DEVICE f32 add_run(const words &w, int of, const run &x, f32 sum)
{
    typedef format_of<FORMAT> F;
    const int HALVES = FORMAT == 3 ? 2 : 1, EACH = 8 / HALVES;
    const bool SIGNED = FORMAT == 1;
    UNROLL
    for (int h = 0; h < HALVES; h++) {
        i32 s[3];
        UNROLL
        for (int p = 0; p < 3; p++) {
            s[p] = 0;
            if (!SIGNED && F::OFFSET)
                s[p] = -F::OFFSET * (HALVES == 2 ? x.sum[h][p] : x.sum[0][p] + x.sum[1][p]);
        }
        UNROLL
        for (int i = h * EACH; i < (h + 1) * EACH; i++) {
            s[0] = dot4<SIGNED, true>(w.q[of][i], x.plane[0][i], s[0]);
            s[1] = dot4<SIGNED, false>(w.q[of][i], x.plane[1][i], s[1]);
            s[2] = dot4<SIGNED, false>(w.q[of][i], x.plane[2][i], s[2]);
        }
        f32 all = m_fma((f32)s[0], 65536.0f, m_fma((f32)s[1], 256.0f, (f32)s[2]));
        sum = m_fma(w.scale[of][h] * x.scale, all, sum);
    }
    return F::MIN ? m_fma(-w.min[of], x.all, sum) : sum;
}

/* ---- rows of weights ---- */

/* UNIT weights of ROWS rows on their way to shared memory, while as many that came before are worked on. */
template <int FORMAT> struct rows_of {
    typedef format_of<FORMAT> F;
    static const int ROWS = WK_QUANT_ROW_ROWS, UNIT = WK_QUANT_ROW_UNIT(FORMAT), BYTES = UNIT / F::BLOCK * F::BYTES;
    static const int LINES = BYTES / 16, PAIRS = UNIT / 64;
    const quant_dot_args &a;
    u8 *room; /* the wave's */
    u32 end;  /* bytes of a row */
    u32 units, unit, stage;
    i64 row, last; /* the rows that come next are row and the one after it; those of the block end before last */
    int waves;

    MEMBER void ask()
    {
        UNROLL
        for (int r = 0; r < ROWS; r++) {
            const u8 *from = a.weight + (row + r) * a.pitch + (i64)unit * BYTES;
            u8 *to = room + (stage * ROWS + r) * BYTES;
            bool there = row + r < last;
            UNROLL
            for (int e = 0; e < (LINES + WAVE - 1) / WAVE; e++) {
                int line = e * WAVE + (int)lane_id();
                if (line < LINES)
                    copy_async(to + line * 16, from + line * 16, there && unit * BYTES + line * 16 < end);
            }
        }
        copies_group();
        stage ^= 1;
        if (++unit == units) {
            unit = 0;
            row += ROWS * waves;
        }
    }
};

/* Sums of the two rows over the pairs of a unit that is in shared memory. */
template <int FORMAT> DEVICE void add_unit(const u8 *unit, const pair_of_runs *x, int pairs, f32 *sum)
{
    typedef rows_of<FORMAT> R;
    for (int p = (int)lane_id(); p < pairs; p += WAVE) {
        words w[R::ROWS];
        UNROLL
        for (int r = 0; r < R::ROWS; r++)
            open_pair(unit + r * R::BYTES, p, &w[r], format_of<FORMAT>());
        UNROLL
        for (int i = 0; i < 2; i++) {
            run one = x[p].of[i];
            UNROLL
            for (int r = 0; r < R::ROWS; r++)
                sum[r] = add_run<FORMAT>(w[r], i, one, sum[r]);
        }
    }
}

template <class T> DEVICE void finish(const quant_dot_args &a, i64 row, f32 sum)
{
    sum = wave_reduce<op_sum>(sum);
    if (a.bias)
        sum += get(((const T *)a.bias)[row * a.bias_step]);
    if (lane_id() == 0)
        ((T *)a.y)[row] = put<T>(activate(a.act, sum));
}

/* Blocks share the rows evenly; a.split is not used. Shared memory: x, then two units of every wave. */
template <class T, int FORMAT> DEVICE void quant_row(const quant_dot_args &a)
{
    typedef rows_of<FORMAT> R;
    ROOM(bytes, 0);
    SHARED u32 has_odd;
    pair_of_runs *x = (pair_of_runs *)bytes;
    int pairs = (int)(a.k / 64), waves = (int)(block_size() / WAVE), wave = (int)wave_id();
    i64 groups = (a.n + R::ROWS - 1) / R::ROWS, blocks = grid_blocks();
    i64 first = groups * block_id() / blocks * R::ROWS, last = groups * (block_id() + 1) / blocks * R::ROWS;
    R rows = {a, bytes + pairs * sizeof(pair_of_runs) + wave * 2 * R::ROWS * R::BYTES,
              (u32)(a.k / R::F::BLOCK * R::F::BYTES), (u32)((a.k + R::UNIT - 1) / R::UNIT), 0, 0,
              first + wave * R::ROWS, lesser(last, a.n), waves};
    u32 ahead = lesser(rows.end, (u32)R::BYTES) / 16 * 16;
    if (lane_id() < R::ROWS && rows.row + lane_id() < rows.last && ahead)
        fetch_ahead(a.weight + (rows.row + lane_id()) * a.pitch, ahead);
    if (thread_id() == 0)
        has_odd = 0;
    wait_for_inputs();
    rows.ask();
    barrier();
    bool fine = true;
    for (int i = (int)thread_id() / 4; i < (pairs * 2 + WAVE / 4 - 1) / (WAVE / 4) * (WAVE / 4); i += (int)block_size() / 4) {
        int run = lesser(i, pairs * 2 - 1); /* whole waves come along */
        fine &= make_run((const T *)a.x + run_of<FORMAT>(run / 2, run % 2), i == run, &x[run / 2].of[run % 2]);
    }
    if (!fine)
        has_odd = 1;
    barrier();
    let_next_begin();
    bool plain = has_odd;
    for (i64 row = first + wave * R::ROWS; row < rows.last; row += R::ROWS * waves) {
        f32 sum[R::ROWS] = {};
        for (int p = 0; p < pairs; p += R::PAIRS) {
            u32 stage = rows.stage ^ 1; /* what was asked for last */
            rows.ask();
            copies_wait_but<1>();
            wave_sync();
            if (!plain)
                add_unit<FORMAT>(rows.room + stage * R::ROWS * R::BYTES, x + p, lesser(pairs - p, R::PAIRS), sum);
            wave_sync();
        }
        UNROLL
        for (int r = 0; r < R::ROWS; r++)
            if (row + r < rows.last) {
                if (plain)
                    sum[r] = plain_dot<FORMAT>(a.weight + (row + r) * a.pitch, (const T *)a.x, a.k, lane_id(), WAVE);
                finish<T>(a, row + r, sum[r]);
            }
    }
}
