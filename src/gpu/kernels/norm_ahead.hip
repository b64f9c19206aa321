/* norm_ahead.hip: layer and rms norm of rows of a cluster each, of which others are on their way. A block stays, with the weights
 * of its part of every row. It has two crews: one measures rows and tells the cluster, the other, some rows behind, hears from
 * it and writes. So there is always a crew that does not wait. */
#include "ahead.h"
#include "norm.hip"

#ifdef WK_NVIDIA
enum { RING = WK_AHEAD_LINES };
/* Between the turn that a block's measuring has come to and that which another block writes there are less than two rings: the
 * first has seen its own writers through with what was in the place of its row; they have heard from the other block then, which
 * had seen its own ones through in the same way. */
template <int BLOCKS> using norm_box = cluster_box<BLOCKS, 2 * RING, f64>;

/* The rows of a cluster, and the block's part of them. */
template <class T> struct cluster_rows {
    const norm_rows_args &a;
    u32 row, clusters, rows; /* the first one, and how far it is to the next; long rows are few */
    u32 first;               /* element of the block's part */

    MEMBER bool there(u32 turn) const { return row + turn * clusters < rows; }
    MEMBER i64 number(u32 turn) const { return row + turn * clusters; }
    /* NULL: there is no such row. */
    MEMBER const T *part(u32 turn) const
    {
        return there(turn) ? (const T *)a.x + number(turn) * a.x_step + first : (const T *)0;
    }
    /* Has the shared cache fetch the part of a row, of so many packs. */
    MEMBER void ask_for(u32 turn, u32 steps) const
    {
        if (there(turn))
            fetch_ahead(part(turn), steps * 16);
    }
    MEMBER T *result(u32 turn) const { return (T *)a.y + number(turn) * a.n + first; }
    /* The first element of a row; any where there is no such row. */
    MEMBER T start(u32 turn) const { return *((const T *)a.x + (there(turn) ? number(turn) : 0) * a.x_step); }
};

/* What the first crew has for the second, and waits for: rows' first elements, since in memory a result may lie in their place,
 * and gates of rows that are written. */
template <class T> struct norm_ring {
    u64 written[RING];
    acc<T> starts[RING];
};

/* What the block has of the row of a turn: its crew's sums, told to the cluster. */
template <int CENTRED, class T, int KEEP, int CREW, int BLOCKS>
DEVICE void norm_measure(const line_ring<T, KEEP, CREW, RING> &r, u32 turn, acc<T> start, f64 (*room)[2],
                         norm_ring<T> &ring, norm_box<BLOCKS> &box)
{
    const int WAVES = CREW / WAVE;
    f64 sums[2];
    sum_kept(CENTRED, r, start, sums);
    UNROLL
    for (int k = !CENTRED; k < 2; k++) {
        sums[k] = wave_reduce<op_sum>(sums[k]);
        if (lane_id() == 0)
            room[wave_id()][k] = sums[k];
    }
    crew_barrier<CREW>();
    if (wave_id() == 0) {
        UNROLL
        for (int k = !CENTRED; k < 2; k++)
            sums[k] = wave_reduce<op_sum, WAVES>(room[lane_id() % WAVES][k]);
        if (lane_id() == 0)
            ring.starts[turn % RING] = start;
        box.tell(turn, sums);
    }
}

/* The first crew. A thread of its last wave sends for rows: the first wave has more to do than the others. It asks for the row
 * behind them too, so that it comes from the cache then. */
template <int CENTRED, class T, int KEEP, int CREW, int BLOCKS>
DEVICE void norm_measure_rows(const cluster_rows<T> &rows, line_ring<T, KEEP, CREW, RING> &r, norm_ring<T> &ring,
                              norm_box<BLOCKS> &box)
{
    SHARED f64 room[2][CREW / WAVE][2];
    const u32 BEHIND = RING - 1; /* turns, of the other crew. One row on its way is enough: more get into each other's way */
    T next = rows.start(0);
    for (u32 turn = 0; rows.there(turn); turn++) {
        acc<T> start = get(next);
        next = rows.start(turn + 1); /* not looked at before it is needed */
        if (turn >= BEHIND && thread_id() == CREW - WAVE) {
            u32 gone = turn - BEHIND;
            gate_wait(&ring.written[gone % RING], gone / RING & 1);
            r.send_for(gone + RING, rows.part(gone + RING));
            rows.ask_for(gone + RING + 1, r.steps);
        }
        r.await(turn);
        r.pick_all(turn);
        norm_measure<CENTRED>(r, turn, start, room[turn & 1], ring, box);
    }
}

/* How the row of a turn is normalised, when all blocks have told. */
template <class T, int CENTRED, int BLOCKS>
DEVICE row_stats<acc<T>> norm_heard(const norm_rows_args &a, const norm_ring<T> &ring, u32 turn, norm_box<BLOCKS> &box)
{
    f64 sums[2] = {0, 0};
    const f64(*parts)[2] = box.heard(turn);
    UNROLL_BY_4 /* registers are short */
    for (int b = 0; b < BLOCKS; b++) {
        sums[0] += CENTRED ? parts[b][0] : 0;
        sums[1] += parts[b][1];
    }
    return stats_from<T>(a, CENTRED, ring.starts[turn % RING], sums);
}

/* 16 bytes, of what the kernel does not read again. Here the compiler, left to itself, tears some of them apart. */
DEVICE void store_words(u32 *p, const pack<u32, 4> &w)
{
    asm volatile("st.global.v4.u32 [%0], {%1, %2, %3, %4};" ::"l"(p), "r"(w.v[0]), "r"(w.v[1]), "r"(w.v[2]),
                 "r"(w.v[3]));
}

/* The weights of a thread's part of every row. */
template <class T, int KEEP, int CREW, int CENTRED> struct row_weights {
    kept_line<T, KEEP, CREW> weight, bias; /* rms norm has no bias */
    MEMBER void fetch(const norm_rows_args &a, u32 first, u32 steps)
    {
        weight.steps = a.weight ? steps : 0;
        bias.steps = a.bias ? steps : 0;
        weight.fetch((const T *)a.weight + first, put<T>((acc<T>)1));
        if constexpr (CENTRED)
            bias.fetch((const T *)a.bias + first, put<T>((acc<T>)0));
    }
    /* Pack p of a row, normalised, to y; MEAN: it is taken off first. */
    template <bool MEAN>
    MEMBER void put_pack(const kept_line<T, KEEP, CREW> &r, int p, const row_stats<acc<T>> &s, T *y)
    {
        const int VEC = 16 / sizeof(T);
        pack<T, VEC> out;
        weight.forget(p);
        if constexpr (CENTRED)
            bias.forget(p);
        UNROLL
        for (int e = 0; e < VEC; e++) {
            acc<T> x = MEAN ? element(r, p, e) - s.mean : element(r, p, e);
            if constexpr (CENTRED)
                out.v[e] = put<T>((x * s.scale + s.shift) * element(weight, p, e) + element(bias, p, e));
            else
                out.v[e] = put<T>(x * s.scale * element(weight, p, e));
        }
        if (r.index(p) < r.steps)
            store_words((u32 *)y + (i64)r.index(p) * 4, bit_cast<pack<u32, 4>>(out));
    }
    template <bool MEAN>
    MEMBER void put_row(line_ring<T, KEEP, CREW, RING> &r, u32 turn, const row_stats<acc<T>> &s, T *y)
    {
        UNROLL
        for (int p = 0; p < KEEP; p++) {
            r.pick(turn, p);
            put_pack<MEAN>(r, p, s, y);
        }
    }
    /* The row of a turn, normalised, to y. The mean of 16-bit elements is taken off behind the product, unless bits would be
     * lost that the result has. */
    MEMBER void put_turn(line_ring<T, KEEP, CREW, RING> &r, u32 turn, row_stats<acc<T>> s, T *y)
    {
        if (CENTRED && !(sizeof(T) == 2 && m_fabs(s.mean) * s.scale < 64)) {
            put_row<true>(r, turn, s, y);
        } else {
            s.shift -= s.mean * s.scale;
            put_row<false>(r, turn, s, y);
        }
    }
};

/* The second crew. */
template <int CENTRED, class T, int KEEP, int CREW, int BLOCKS>
DEVICE void norm_write_rows(const cluster_rows<T> &rows, line_ring<T, KEEP, CREW, RING> &r, norm_ring<T> &ring,
                            norm_box<BLOCKS> &box)
{
    row_weights<T, KEEP, CREW, CENTRED> w;
    w.fetch(rows.a, rows.first, r.steps);
    for (u32 turn = 0; rows.there(turn); turn++) {
        row_stats<acc<T>> s = norm_heard<T, CENTRED>(rows.a, ring, turn, box);
        r.await(turn);
        w.put_turn(r, turn, s, rows.result(turn));
        wave_sync();
        if (lane_id() == 0)
            gate_arrive(&ring.written[turn % RING]);
    }
}

/* Blocks have up to PACKS packs of a row for each of their threads, and so each crew's threads have twice as many. */
template <class T, int PACKS, int THREADS, int CENTRED, int BLOCKS> DEVICE void norm_ahead(const norm_rows_args &a)
{
    const int CREW = THREADS / 2, KEEP = 2 * PACKS;
    SHARED norm_box<BLOCKS> box;
    SHARED norm_ring<T> ring;
    SHARED u64 come[RING];
    line_ring<T, KEEP, CREW, RING> r;
    const u32 LINE = 8; /* packs of a line of the cache, which has one block */
    u32 steps = (u32)a.n / r.VEC, part = ((steps - 1) / (BLOCKS * LINE) + 1) * LINE, at = block_id() % BLOCKS * part;
    cluster_rows<T> rows = {a, block_id() / BLOCKS, grid_blocks() / BLOCKS, (u32)a.rows, at * r.VEC};
    r.steps = lesser(steps - at, part); /* some: rows are long */
    r.fill_ends(put<T>((acc<T>)0));
    r.gates = come;
    if (thread_id() == 0) {
        UNROLL
        for (int i = 0; i < RING; i++) {
            gate_init(&come[i], 1);
            gate_init(&ring.written[i], CREW / WAVE);
        }
    }
    box.open();
    if (thread_id() == 0) {
        for (u32 i = 0; i < RING; i++)
            r.send_for(i, rows.part(i));
        rows.ask_for(RING, r.steps);
    }
    cluster_wait();
    if (thread_id() < CREW)
        norm_measure_rows<CENTRED>(rows, r, ring, box);
    else
        norm_write_rows<CENTRED>(rows, r, ring, box);
}
#endif
