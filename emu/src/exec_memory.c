/* exec_memory.c - vector memory: flat, global, scratch, buffer and LDS instructions.
 *
 * A device address is a host address.  Before every access the region table is asked whether the
 * bytes belong to a live allocation; when not, the launch fails with the lane and the address. */
#include "exec_atomic.h"
#include "profile.h"

typedef unsigned long long ull;

bool region_hit_slow(Wave *w, uintptr_t addr, size_t n)
{
    int i = 1;
    Region r;
    while (i < 4 && !(addr >= w->hit[i].lo && addr + n <= w->hit[i].hi))
        i++;
    if (i < 4)
        r.lo = w->hit[i].lo, r.hi = w->hit[i].hi;
    else if (!region_find(addr, &r) || addr + n > r.hi)
        return false;
    else
        i = 3;
    memmove(&w->hit[1], &w->hit[0], (size_t)i * sizeof w->hit[0]);
    w->hit[0].lo = r.lo;
    w->hit[0].hi = r.hi;
    return true;
}

/* aux of loads and stores: size in bytes, and what to do with it */
enum { M_BYTES = 0x1f, M_SEXT = 0x20, M_D16 = 0x40, M_HI = 0x80 };

/* ---- where an address leads ------------------------------------------------------------------------------ */
static uint8_t *global_ptr(Wave *w, const Inst *in, int l, uint64_t addr, unsigned n, const char *what)
{
    if (likely(region_hit(w, addr, n)) || !emu_cfg.check) {
        if (unlikely(w->prof))
            profile_global(w->prof, addr, n, what[0]);
        return (uint8_t *)(uintptr_t)addr;
    }
    Region r;
    ull a = addr;
    if (region_find(addr, &r))
        wave_fault(w, in, true, "lane %d: %s of %u bytes at 0x%llx runs past the end of an allocation of %llu bytes", l,
                   what, n, a, (ull)(r.hi - r.lo));
    else if (region_below(addr, &r) && addr - r.hi < 1 << 20)
        wave_fault(w, in, true,
                   "lane %d: %s of %u bytes at 0x%llx, %llu bytes after the end of an allocation of %llu bytes", l,
                   what, n, a, a - (ull)r.hi, (ull)(r.hi - r.lo));
    else
        wave_fault(w, in, true, "lane %d: %s of %u bytes at 0x%llx, in no allocation%s", l, what, n, a,
                   a < 4096 ? " (null; device malloc ends here too, it is not supported)" : "");
    return NULL;
}

/* Two waves use a byte between the same two barriers and one of them writes it: a race, unless both are
 * atomic.  Lanes of one wave run in step and cannot race here. */
static void lds_race(Wave *w, const Inst *in, int l, uint32_t addr, unsigned n, const char *what)
{
    const Group *g = w->grp;
    uint8_t me = (uint8_t)w->index;
    bool write = what[0] != 'r', atomic = what[0] == 'a';
    for (LdsShadow *s = g->shadow + addr, *end = s + n; s < end; s++) {
        if (s->write_epoch == g->epoch && s->writer != me && !(atomic && s->atomic)) {
            wave_fault(w, in, false, "race: lane %d does an LDS %s at 0x%x, written by wave %d since the last barrier",
                       l, what, addr, s->writer);
            return;
        }
        if (write && s->read_epoch == g->epoch && s->reader != me) {
            wave_fault(w, in, false,
                       "race: lane %d does an LDS %s at 0x%x, read by another wave since the last barrier", l, what,
                       addr);
            return;
        }
        if (write) {
            s->write_epoch = g->epoch;
            s->writer = me;
            s->atomic = atomic;
        } else {
            s->reader = s->read_epoch == g->epoch && s->reader != me ? MANY_WAVES : me;
            s->read_epoch = g->epoch;
        }
    }
}

/* Outside its LDS a wave reads zero and writes nothing; checked, it is a fault.  Except that Tensile clears
 * registers by reading far outside on purpose, which only the strict check objects to. */
static uint8_t *lds_ptr(Wave *w, const Inst *in, int l, uint32_t addr, unsigned n, const char *what)
{
    if (likely((uint64_t)addr + n <= w->grp->lds_size)) {
        if (unlikely(w->grp->shadow))
            lds_race(w, in, l, addr, n, what);
        if (unlikely(w->prof))
            profile_lds(w->prof, l, addr, n, what[0]);
        return w->grp->lds + addr;
    }
    bool deliberate = what[0] == 'r' && addr >= 65536 && addr < 0x80000000u;
    if (emu_cfg.check >= (deliberate ? 2 : 1))
        wave_fault(w, in, true, "lane %d: LDS %s of %u bytes at 0x%x, the group has 0x%x", l, what, n, addr,
                   w->grp->lds_size);
    return NULL;
}

/* Scratch is interleaved: dword i of lane l sits at (64 i + l) * 4. */
static uint8_t *scratch_ptr(Wave *w, const Inst *in, int l, uint64_t off, const char *what)
{
    if (likely(off < w->scratch_lane))
        return w->scratch + (off & ~(uint64_t)3) * LANES + (unsigned)l * 4 + (off & 3);
    wave_fault(w, in, true, "lane %d: scratch %s at offset 0x%llx, the kernel has 0x%x bytes a lane", l, what, (ull)off,
               w->scratch_lane);
    return NULL;
}

/* ---- one lane's data between memory and registers ---------------------------------------------------------- */
static inline uint32_t ld32(const uint8_t *p)
{
    uint32_t v;
    memcpy(&v, p, 4);
    return v;
}
static inline uint32_t ld16(const uint8_t *p)
{
    uint16_t v;
    memcpy(&v, p, 2);
    return v;
}

static inline uint32_t narrow_load(uint32_t old, uint32_t v, uint32_t aux)
{
    if (aux & M_SEXT)
        v = (aux & M_BYTES) == 1 ? (uint32_t)(int8_t)v : (uint32_t)(int16_t)v;
    if (!(aux & M_D16))
        return v;
    v &= 0xffff;
    if (emu_cfg.ecc)
        old = 0;
    return aux & M_HI ? (old & 0xffff) | v << 16 : (old & 0xffff0000u) | v;
}
static inline void lane_load(Wave *w, unsigned reg, int l, const uint8_t *p, uint32_t aux)
{
    unsigned n = aux & M_BYTES;
    if (n >= 4)
        for (unsigned k = 0; k < n / 4; k++)
            w->v[reg + k][l] = ld32(p + 4 * k);
    else
        w->v[reg][l] = narrow_load(w->v[reg][l], n == 1 ? *p : ld16(p), aux);
}
static inline void lane_store(Wave *w, unsigned reg, int l, uint8_t *p, uint32_t aux)
{
    unsigned n = aux & M_BYTES;
    if (n >= 4)
        for (unsigned k = 0; k < n / 4; k++)
            memcpy(p + 4 * k, &w->v[reg + k][l], 4);
    else {
        uint32_t v = w->v[reg][l];
        if (aux & M_HI)
            v >>= 16;
        memcpy(p, &v, n);
    }
}

/* scratch: dword by dword, as it is interleaved */
static bool scratch_access(Wave *w, const Inst *in, unsigned reg, int l, uint64_t off, uint32_t aux, bool store)
{
    unsigned n = aux & M_BYTES;
    if (unlikely(w->prof))
        profile_scratch(w->prof, n);
    for (unsigned k = 0; k < n; k += 4, off += 4) {
        unsigned part = n < 4 ? n : 4;
        uint32_t sub = n < 4 ? aux : 4;
        if ((off & 3) + part > 4) { /* crosses a dword: byte by byte */
            for (unsigned b = 0; b < part; b++) {
                uint8_t *p = scratch_ptr(w, in, l, off + b, store ? "write" : "read"),
                        *v = (uint8_t *)&w->v[reg + k / 4][l] + b;
                if (!p)
                    return false;
                if (store)
                    *p = *v;
                else
                    *v = *p;
            }
            continue;
        }
        uint8_t *p = scratch_ptr(w, in, l, off, store ? "write" : "read");
        if (!p)
            return false;
        if (store)
            lane_store(w, reg + k / 4, l, p, sub);
        else
            lane_load(w, reg + k / 4, l, p, sub);
    }
    return true;
}

/* ---- flat and global ------------------------------------------------------------------------------------------- */
/* address of each lane from a VGPR pair, or SGPR base plus 32-bit VGPR offset */
static void addresses(Wave *w, const Inst *in, const Opnd *va, const Opnd *sa, uint64_t *addr)
{
    uint64_t off = (uint64_t)(int64_t)in->offset;
    if (sa && sa->kind == K_SGPR) {
        uint64_t base = sget64(w, sa) + off;
        const uint32_t *v = w->v[va->reg];
        FOR_LANES (l)
            addr[l] = base + v[l];
    } else {
        const uint32_t *lo = w->v[va->reg], *hi = w->v[va->reg + 1];
        FOR_LANES (l)
            addr[l] = (lo[l] | (uint64_t)hi[l] << 32) + off;
    }
}

/* Do all bytes that the active lanes want lie in one allocation? Then no lane has to be asked. */
static bool wave_in_region(Wave *w, const uint64_t *addr, uint64_t exec, unsigned n)
{
    if (unlikely(w->prof || !exec))
        return false;
    uint64_t lo = addr[__builtin_ctzll(exec)], hi = lo, one[LANES];
    memcpy(one, addr, sizeof one);
    blend64(one, lo, ~exec);
    FOR_LANES (l) {
        lo = one[l] < lo ? one[l] : lo;
        hi = one[l] > hi ? one[l] : hi;
    }
    return hi + n > hi && region_hit(w, lo, hi - lo + n);
}
/* Lanes 0 to k - 1 are active and their n bytes follow each other: k, otherwise 0 */
static unsigned in_a_row(const uint64_t *addr, uint64_t exec, unsigned n)
{
    if (exec & (exec + 1))
        return 0;
    unsigned k = (unsigned)__builtin_popcountll(exec);
    uint64_t apart = 0;
    for (unsigned l = 0; l < k; l++)
        apart |= addr[l] - addr[0] - (uint64_t)l * n;
    return apart ? 0 : k;
}

/* Four lanes with 16 bytes each: four loads and four stores instead of sixteen. */
static inline void load_four(Wave *w, unsigned reg, int l, const uint64_t *addr)
{
    typedef uint32_t V __attribute__((vector_size(16)));
    V x[4], y[4];
    for (int i = 0; i < 4; i++)
        memcpy(&x[i], (const void *)addr[l + i], 16);
    for (int i = 0; i < 2; i++) {
        y[i] = __builtin_shuffle(x[i], x[i + 2], (V){0, 4, 1, 5});
        y[i + 2] = __builtin_shuffle(x[i], x[i + 2], (V){2, 6, 3, 7});
    }
    for (int i = 0; i < 2; i++) {
        V lo = __builtin_shuffle(y[2 * i], y[2 * i + 1], (V){0, 4, 1, 5});
        V hi = __builtin_shuffle(y[2 * i], y[2 * i + 1], (V){2, 6, 3, 7});
        memcpy(&w->v[reg + 2 * (unsigned)i][l], &lo, 16);
        memcpy(&w->v[reg + 2 * (unsigned)i + 1][l], &hi, 16);
    }
}

/* Memory of the active lanes, which was checked, to registers and back. */
static void load_lanes(Wave *w, unsigned reg, const uint64_t *addr, uint64_t exec, uint32_t aux)
{
    unsigned row;
    if (aux == 4 && (row = in_a_row(addr, exec, 4))) {
        memcpy(w->v[reg], (const void *)addr[0], 4 * row);
        return;
    }
    if (aux == 4)
        while (exec) {
            int l = take_lane(&exec);
            w->v[reg][l] = ld32((const uint8_t *)addr[l]);
        }
    if (aux == 16)
        for (int l = 0; l < LANES; l += 4)
            if ((exec >> l & 15) == 15) {
                load_four(w, reg, l, addr);
                exec &= ~((uint64_t)15 << l);
            }
    while (exec) {
        int l = take_lane(&exec);
        lane_load(w, reg, l, (const uint8_t *)addr[l], aux);
    }
}
static void store_lanes(Wave *w, unsigned reg, const uint64_t *addr, uint64_t exec, uint32_t aux)
{
    unsigned row;
    if (aux == 4 && (row = in_a_row(addr, exec, 4))) {
        memcpy((void *)addr[0], w->v[reg], 4 * row);
        return;
    }
    while (exec) { /* in order: where lanes meet, the last one wins */
        int l = take_lane(&exec);
        lane_store(w, reg, l, (uint8_t *)addr[l], aux);
    }
}

static void global_load(Wave *w, const Inst *in)
{
    uint64_t addr[LANES], exec = EXEC(w);
    uint32_t aux = in->def->aux;
    unsigned n = aux & M_BYTES, reg = in->op[0].reg;
    addresses(w, in, &in->op[1], in->nops > 2 ? &in->op[2] : NULL, addr);
    if (likely(wave_in_region(w, addr, exec, n))) {
        load_lanes(w, reg, addr, exec, aux);
        return;
    }
    while (exec) {
        int l = take_lane(&exec);
        const uint8_t *p = global_ptr(w, in, l, addr[l], n, "read");
        if (!p)
            return;
        lane_load(w, reg, l, p, aux);
    }
}
/* straight to LDS: lane l's dword lands at M0 + offset + 4 l */
static uint8_t *lds_slot(Wave *w, const Inst *in, int l)
{
    return lds_ptr(w, in, l, (w->s[S_M0] & 0xffff) + (uint32_t)in->offset + 4 * (uint32_t)l, 4, "write");
}
static void global_load_lds(Wave *w, const Inst *in)
{
    uint64_t addr[LANES], exec = EXEC(w);
    uint32_t aux = in->def->aux;
    unsigned n = aux & M_BYTES;
    addresses(w, in, &in->op[0], in->nops > 1 ? &in->op[1] : NULL, addr);
    while (exec) {
        int l = take_lane(&exec);
        const uint8_t *p = global_ptr(w, in, l, addr[l], n, "read");
        uint8_t *d = p ? lds_slot(w, in, l) : NULL;
        if (!p)
            return;
        uint32_t v = n == 4 ? ld32(p) : narrow_load(0, n == 1 ? *p : ld16(p), aux);
        if (d)
            memcpy(d, &v, 4);
    }
}
static void global_store(Wave *w, const Inst *in)
{
    uint64_t addr[LANES], exec = EXEC(w);
    uint32_t aux = in->def->aux;
    unsigned n = aux & M_BYTES, reg = in->op[1].reg;
    addresses(w, in, &in->op[0], in->nops > 2 ? &in->op[2] : NULL, addr);
    if (likely(wave_in_region(w, addr, exec, n))) {
        store_lanes(w, reg, addr, exec, aux);
        return;
    }
    while (exec) {
        int l = take_lane(&exec);
        uint8_t *p = global_ptr(w, in, l, addr[l], n, "write");
        if (!p)
            return;
        lane_store(w, reg, l, p, aux);
    }
}
static void flat_access(Wave *w, const Inst *in, unsigned reg, const Opnd *va, bool store)
{
    uint64_t addr[LANES], exec = EXEC(w);
    uint32_t aux = in->def->aux;
    unsigned n = aux & M_BYTES;
    addresses(w, in, va, NULL, addr);
    while (exec) {
        int l = take_lane(&exec);
        uint32_t hi = (uint32_t)(addr[l] >> 32);
        uint8_t *p;
        if (unlikely(hi == PRIVATE_HI)) {
            if (!scratch_access(w, in, reg, l, (uint32_t)addr[l], aux, store))
                return;
            continue;
        }
        if (unlikely(hi == SHARED_HI)) {
            p = lds_ptr(w, in, l, (uint32_t)addr[l], n, store ? "write" : "read");
            static const uint8_t zero[16];
            if (!p) {
                if (!store)
                    lane_load(w, reg, l, zero, aux);
                continue;
            }
        } else if (!(p = global_ptr(w, in, l, addr[l], n, store ? "write" : "read")))
            return;
        if (store)
            lane_store(w, reg, l, p, aux);
        else
            lane_load(w, reg, l, p, aux);
    }
}
static void flat_load(Wave *w, const Inst *in) { flat_access(w, in, in->op[0].reg, &in->op[1], false); }
static void flat_store(Wave *w, const Inst *in) { flat_access(w, in, in->op[1].reg, &in->op[0], true); }

/* scratch_*: offset from a VGPR or an SGPR */
static void scratch_op(Wave *w, const Inst *in, unsigned reg, const Opnd *va, const Opnd *sa, bool store)
{
    uint64_t exec = EXEC(w);
    uint32_t base = (uint32_t)in->offset + (sa->kind == K_SGPR ? sget32(w, sa) : 0);
    while (exec) {
        int l = take_lane(&exec);
        uint32_t off = base + (va->kind == K_VGPR ? w->v[va->reg][l] : 0);
        if (!scratch_access(w, in, reg, l, off, in->def->aux, store))
            return;
    }
}
static void scratch_load(Wave *w, const Inst *in) { scratch_op(w, in, in->op[0].reg, &in->op[1], &in->op[2], false); }
static void scratch_store(Wave *w, const Inst *in) { scratch_op(w, in, in->op[1].reg, &in->op[0], &in->op[2], true); }

/* ---- buffers ------------------------------------------------------------------------------------------------------ */
typedef struct {
    uint64_t base, limit;
    uint32_t stride, soffset;
    bool tid;                    /* add_tid_enable: the scratch descriptor */
    const uint32_t *vidx, *voff; /* per-lane index and offset, or NULL */
} Buffer;

/* va, resource and soffset operands start at op[first] */
static bool buffer_setup(Wave *w, const Inst *in, int first, Buffer *b)
{
    const Opnd *va = &in->op[first];
    const uint32_t *rs = &w->s[in->op[first + 1].reg];
    b->base = rs[0] | (uint64_t)(rs[1] & 0xffff) << 32;
    b->stride = rs[1] >> 16 & 0x3fff;
    b->limit = b->stride ? (uint64_t)b->stride * rs[2] : rs[2];
    b->tid = rs[3] >> 23 & 1;
    b->soffset = sget32(w, &in->op[first + 2]);
    b->vidx = in->flags & IF_IDXEN ? w->v[va->reg] : NULL;
    b->voff = in->flags & IF_OFFEN ? w->v[va->reg + (in->flags & IF_IDXEN ? 1 : 0)] : NULL;
    if (rs[1] >> 31 && !b->tid) {
        wave_fault(w, in, false, "swizzled buffers are not supported");
        return false;
    }
    return true;
}
static inline uint64_t buffer_offset(const Buffer *b, const Inst *in, int l)
{
    return (uint64_t)(uint32_t)in->offset + (b->voff ? b->voff[l] : 0) +
           (b->vidx ? (uint64_t)b->vidx[l] * b->stride : 0);
}

static void buffer_access(Wave *w, const Inst *in, bool store)
{
    static const uint8_t zero[16];
    bool to_lds = in->flags & IF_LDS;
    uint64_t exec = EXEC(w);
    uint32_t aux = in->def->aux;
    unsigned n = aux & M_BYTES, reg = in->op[0].reg;
    Buffer b;
    if (!buffer_setup(w, in, to_lds ? 0 : 1, &b))
        return;
    while (exec) {
        int l = take_lane(&exec);
        uint64_t off = buffer_offset(&b, in, l);
        if (b.tid) { /* soffset counts bytes of the whole wave, interleaved */
            if (!scratch_access(w, in, reg, l, off + (b.base - (uintptr_t)w->scratch + b.soffset) / LANES, aux, store))
                return;
            continue;
        }
        uint64_t end = off + b.soffset + n;
        if (likely(end <= b.limit)) {
            uint8_t *p = global_ptr(w, in, l, b.base + off + b.soffset, n, store ? "write" : "read");
            if (!p)
                return;
            if (to_lds) {
                uint8_t *d = lds_slot(w, in, l);
                uint32_t v = n == 4 ? ld32(p) : narrow_load(0, n == 1 ? *p : ld16(p), aux);
                if (d)
                    memcpy(d, &v, 4);
            } else if (store)
                lane_store(w, reg, l, p, aux);
            else
                lane_load(w, reg, l, p, aux);
            continue;
        }
        /* out of range: dword by dword, reads give zero and writes are dropped */
        for (unsigned k = 0; k < n; k += 4) {
            unsigned part = n < 4 ? n : 4;
            uint8_t *p = (uint8_t *)zero;
            bool in_range = off + b.soffset + k + part <= b.limit;
            if (in_range && !(p = global_ptr(w, in, l, b.base + off + b.soffset + k, part, store ? "write" : "read")))
                return;
            if (store && in_range)
                lane_store(w, reg + k / 4, l, p, n < 4 ? aux : 4);
            else if (!store && !to_lds)
                lane_load(w, reg + k / 4, l, p, n < 4 ? aux : 4);
            else if (to_lds) {
                uint8_t *d = lds_slot(w, in, l);
                if (d)
                    memset(d, 0, 4);
            }
        }
    }
}
static void buffer_load(Wave *w, const Inst *in) { buffer_access(w, in, false); }
static void buffer_store(Wave *w, const Inst *in) { buffer_access(w, in, true); }

/* ---- atomics ----------------------------------------------------------------------------------------------------------- */
/* flat and global: [ret,] address, data [, saddr]; the compare value follows the new one */
static void global_atomic(Wave *w, const Inst *in)
{
    uint64_t addr[LANES], exec = EXEC(w);
    bool rtn = in->flags & IF_GLC;
    const Opnd *o = &in->op[rtn ? 1 : 0];
    uint32_t aux = in->def->aux;
    unsigned n = aux & A_X2 ? 8 : 4, data = o[1].reg;
    addresses(w, in, &o[0], in->nops > (rtn ? 3 : 2) ? &o[2] : NULL, addr);
    while (exec) {
        int l = take_lane(&exec);
        bool lds = addr[l] >> 32 == SHARED_HI;
        uint8_t *p =
            lds ? lds_ptr(w, in, l, (uint32_t)addr[l], n, "atomic") : global_ptr(w, in, l, addr[l], n, "atomic");
        if (!p)
            return;
        lane_atomic(w, l, p, aux, data, data + n / 4, in->op[0].reg, rtn);
    }
}
static void buffer_atomic(Wave *w, const Inst *in)
{
    uint64_t exec = EXEC(w);
    uint32_t aux = in->def->aux;
    unsigned n = aux & A_X2 ? 8 : 4, data = in->op[0].reg;
    Buffer b;
    if (!buffer_setup(w, in, 1, &b))
        return;
    while (exec) {
        int l = take_lane(&exec);
        uint64_t off = buffer_offset(&b, in, l) + b.soffset;
        if (off + n > b.limit)
            continue;
        uint8_t *p = global_ptr(w, in, l, b.base + off, n, "atomic");
        if (!p)
            return;
        lane_atomic(w, l, p, aux, data, data + n / 4, data, in->flags & IF_GLC);
    }
}

/* ---- LDS ------------------------------------------------------------------------------------------------------------------ */
/* Do all active lanes stay inside the LDS, and is nobody watching? Then no lane has to be asked: where each one goes. */
static bool wave_in_lds(const Wave *w, const uint32_t *at, uint32_t off, uint64_t exec, unsigned n, uint64_t *addr)
{
    const Group *g = w->grp;
    uint32_t limit = g->lds_size - n, outside[LANES];
    if (unlikely(w->prof || g->shadow || g->lds_size < n))
        return false;
    FOR_LANES (l) {
        outside[l] = at[l] + off > limit;
        addr[l] = (uintptr_t)g->lds + (at[l] + off);
    }
    return !(lane_mask(outside) & exec);
}
static void ds_load(Wave *w, const Inst *in, unsigned reg, const uint32_t *at, uint32_t off, uint32_t aux)
{
    static const uint8_t zero[16];
    uint64_t exec = EXEC(w), addr[LANES];
    if (likely(wave_in_lds(w, at, off, exec, aux & M_BYTES, addr))) {
        load_lanes(w, reg, addr, exec, aux);
        return;
    }
    while (exec) {
        int l = take_lane(&exec);
        const uint8_t *p = lds_ptr(w, in, l, at[l] + off, aux & M_BYTES, "read");
        lane_load(w, reg, l, p ? p : zero, aux);
    }
}
static void ds_store(Wave *w, const Inst *in, unsigned reg, const uint32_t *at, uint32_t off, uint32_t aux)
{
    uint64_t exec = EXEC(w), addr[LANES];
    if (likely(wave_in_lds(w, at, off, exec, aux & M_BYTES, addr))) {
        store_lanes(w, reg, addr, exec, aux);
        return;
    }
    while (exec) {
        int l = take_lane(&exec);
        uint8_t *p = lds_ptr(w, in, l, at[l] + off, aux & M_BYTES, "write");
        if (p)
            lane_store(w, reg, l, p, aux);
    }
}
static void ds_read(Wave *w, const Inst *in)
{
    uint32_t at[LANES];
    memcpy(at, w->v[in->op[1].reg], sizeof at);
    ds_load(w, in, in->op[0].reg, at, (uint32_t)in->offset, in->def->aux);
}
static void ds_write(Wave *w, const Inst *in)
{
    ds_store(w, in, in->op[1].reg, w->v[in->op[0].reg], (uint32_t)in->offset, in->def->aux);
}
/* aux: element bytes, times 64 for the st64 forms in bits 8.. */
static void ds_read2(Wave *w, const Inst *in)
{
    unsigned n = in->def->aux & M_BYTES, unit = n * (in->def->aux >> 8), reg = in->op[0].reg;
    uint32_t at[LANES];
    memcpy(at, w->v[in->op[1].reg], sizeof at);
    ds_load(w, in, reg, at, in->offset0 * unit, n);
    ds_load(w, in, reg + n / 4, at, in->offset1 * unit, n);
}
static void ds_write2(Wave *w, const Inst *in)
{
    unsigned n = in->def->aux & M_BYTES, unit = n * (in->def->aux >> 8);
    const uint32_t *at = w->v[in->op[0].reg];
    ds_store(w, in, in->op[1].reg, at, in->offset0 * unit, n);
    ds_store(w, in, in->op[2].reg, at, in->offset1 * unit, n);
}
/* [ret,] address, data [, data2]; for cmpst the compare value comes first, for cmpstore the new one */
static void ds_atomic(Wave *w, const Inst *in)
{
    uint64_t exec = EXEC(w);
    uint32_t aux = in->def->aux;
    bool rtn = aux & A_RTN;
    const Opnd *o = &in->op[rtn ? 1 : 0];
    unsigned n = aux & A_X2 ? 8 : 4, data = o[1].reg, second = o[2].reg;
    if ((aux & 0xff) == A_CMPSWAP && !(aux & A_NEW_FIRST))
        data = o[2].reg, second = o[1].reg;
    uint32_t addr[LANES];
    memcpy(addr, w->v[o[0].reg], sizeof addr);
    while (exec) {
        int l = take_lane(&exec);
        uint8_t *p = lds_ptr(w, in, l, addr[l] + (uint32_t)in->offset, n, "atomic");
        if (p)
            lane_atomic(w, l, p, aux, data, second, in->op[0].reg, rtn);
    }
}
static void ds_bpermute(Wave *w, const Inst *in) /* pull: lane l takes the data of lane addr/4 */
{
    const uint32_t *a = w->v[in->op[1].reg], *d = w->v[in->op[2].reg];
    uint32_t r[LANES];
    uint64_t exec = EXEC(w);
    FOR_LANES (l) {
        uint32_t s = (a[l] + (uint32_t)in->offset) >> 2 & (uint32_t)(w->lanes - 1);
        r[l] = ACTIVE(exec, s) ? d[s] : 0;
    }
    blend32(w->v[in->op[0].reg], r, exec);
}
static void ds_permute(Wave *w, const Inst *in) /* push: the highest lane wins */
{
    const uint32_t *a = w->v[in->op[1].reg], *d = w->v[in->op[2].reg];
    uint32_t r[LANES] = {0};
    uint64_t exec = EXEC(w);
    FOR_LANES (l)
        if (ACTIVE(exec, l))
            r[(a[l] + (uint32_t)in->offset) >> 2 & (uint32_t)(w->lanes - 1)] = d[l];
    blend32(w->v[in->op[0].reg], r, exec);
}
static void ds_swizzle(Wave *w, const Inst *in)
{
    const uint32_t *d = w->v[in->op[1].reg];
    uint32_t r[LANES], off = in->raw[0] & 0xffff;
    uint64_t exec = EXEC(w);
    FOR_LANES (l) {
        int s;
        if (off & 0x8000)
            s = (l & ~3) | (int)(off >> 2 * (l & 3) & 3); /* quad permute */
        else
            s = (l & 32) | ((((l & 31) & (int)(off & 31)) | (int)(off >> 5 & 31)) ^ (int)(off >> 10 & 31));
        r[l] = ACTIVE(exec, s) ? d[s] : 0;
    }
    blend32(w->v[in->op[0].reg], r, exec);
}
static void nothing(Wave *w, const Inst *in) { (void)w, (void)in; }

/* ---- tables ------------------------------------------------------------------------------------------------------------------ */
#define LOADS(P, F) \
    {P "ubyte", "xxxx", F, 1}, {P "sbyte", "xxxx", F, 1 | M_SEXT}, {P "ushort", "xxxx", F, 2}, \
        {P "sshort", "xxxx", F, 2 | M_SEXT}, {P "dword", "xxxx", F, 4}, {P "dwordx2", "xxxx", F, 8}, \
        {P "dwordx3", "xxxx", F, 12}, {P "dwordx4", "xxxx", F, 16}, {P "ubyte_d16", "xxxx", F, 1 | M_D16}, \
        {P "ubyte_d16_hi", "xxxx", F, 1 | M_D16 | M_HI}, {P "sbyte_d16", "xxxx", F, 1 | M_SEXT | M_D16}, \
        {P "sbyte_d16_hi", "xxxx", F, 1 | M_SEXT | M_D16 | M_HI}, {P "short_d16", "xxxx", F, 2 | M_D16}, \
    { \
        P "short_d16_hi", "xxxx", F, 2 | M_D16 | M_HI \
    }
#define LOADS_LDS(P, F) \
    {P "ubyte", "xx", F, 1}, {P "sbyte", "xx", F, 1 | M_SEXT}, {P "ushort", "xx", F, 2}, \
        {P "sshort", "xx", F, 2 | M_SEXT}, \
    { \
        P "dword", "xx", F, 4 \
    }
#define STORES(P, F) \
    {P "byte", "xxxx", F, 1}, {P "short", "xxxx", F, 2}, {P "dword", "xxxx", F, 4}, {P "dwordx2", "xxxx", F, 8}, \
        {P "dwordx3", "xxxx", F, 12}, {P "dwordx4", "xxxx", F, 16}, {P "byte_d16_hi", "xxxx", F, 1 | M_HI}, \
    { \
        P "short_d16_hi", "xxxx", F, 2 | M_HI \
    }
#define ATOMIC(P, N, F, A) \
    {P N, "xxxxx", F, A}, { P N "_x2", "xxxxx", F, (A) | A_X2 }
#define ATOMICS(P, F) \
    ATOMIC(P, "swap", F, A_SWAP), ATOMIC(P, "cmpswap", F, A_CMPSWAP), ATOMIC(P, "add", F, A_ADD), \
        ATOMIC(P, "sub", F, A_SUB), ATOMIC(P, "smin", F, A_SMIN), ATOMIC(P, "umin", F, A_UMIN), \
        ATOMIC(P, "smax", F, A_SMAX), ATOMIC(P, "umax", F, A_UMAX), ATOMIC(P, "and", F, A_AND), \
        ATOMIC(P, "or", F, A_OR), ATOMIC(P, "xor", F, A_XOR), ATOMIC(P, "inc", F, A_INC), ATOMIC(P, "dec", F, A_DEC), \
        {P "add_f32", "xxxxx", F, A_FADD}, {P "add_f64", "xxxxx", F, A_FADD | A_X2}, \
        {P "min_f64", "xxxxx", F, A_FMIN | A_X2}, {P "max_f64", "xxxxx", F, A_FMAX | A_X2}, \
        {P "pk_add_bf16", "xxxxx", F, A_PKADD_BF16}, \
    { \
        P "pk_add_f16", "xxxxx", F, A_PKADD_F16 \
    }
#define DSA(N, T32, T64, A) \
    {"ds_" N "_" T32, "xxxx", ds_atomic, A}, {"ds_" N "_rtn_" T32, "xxxx", ds_atomic, (A) | A_RTN}, \
        {"ds_" N "_" T64, "xxxx", ds_atomic, (A) | A_X2}, \
    { \
        "ds_" N "_rtn_" T64, "xxxx", ds_atomic, (A) | A_X2 | A_RTN \
    }
/* the names of gfx11 */
#define LOADS11(P, F) \
    {P "u8", "xxxx", F, 1}, {P "i8", "xxxx", F, 1 | M_SEXT}, {P "u16", "xxxx", F, 2}, \
        {P "i16", "xxxx", F, 2 | M_SEXT}, {P "b32", "xxxx", F, 4}, {P "b64", "xxxx", F, 8}, {P "b96", "xxxx", F, 12}, \
        {P "b128", "xxxx", F, 16}, {P "d16_u8", "xxxx", F, 1 | M_D16}, {P "d16_hi_u8", "xxxx", F, 1 | M_D16 | M_HI}, \
        {P "d16_i8", "xxxx", F, 1 | M_SEXT | M_D16}, {P "d16_hi_i8", "xxxx", F, 1 | M_SEXT | M_D16 | M_HI}, \
        {P "d16_b16", "xxxx", F, 2 | M_D16}, \
    { \
        P "d16_hi_b16", "xxxx", F, 2 | M_D16 | M_HI \
    }
#define STORES11(P, F) \
    {P "b8", "xxxx", F, 1}, {P "b16", "xxxx", F, 2}, {P "b32", "xxxx", F, 4}, {P "b64", "xxxx", F, 8}, \
        {P "b96", "xxxx", F, 12}, {P "b128", "xxxx", F, 16}, {P "d16_hi_b8", "xxxx", F, 1 | M_HI}, \
    { \
        P "d16_hi_b16", "xxxx", F, 2 | M_HI \
    }
#define ATOMIC11(P, N, T, F, A) \
    {P N "_" T "32", "xxxxx", F, A}, { P N "_" T "64", "xxxxx", F, (A) | A_X2 }
#define ATOMICS11(P, F) \
    ATOMIC11(P, "swap", "b", F, A_SWAP), ATOMIC11(P, "cmpswap", "b", F, A_CMPSWAP), ATOMIC11(P, "add", "u", F, A_ADD), \
        ATOMIC11(P, "sub", "u", F, A_SUB), ATOMIC11(P, "min", "i", F, A_SMIN), ATOMIC11(P, "min", "u", F, A_UMIN), \
        ATOMIC11(P, "max", "i", F, A_SMAX), ATOMIC11(P, "max", "u", F, A_UMAX), ATOMIC11(P, "and", "b", F, A_AND), \
        ATOMIC11(P, "or", "b", F, A_OR), ATOMIC11(P, "xor", "b", F, A_XOR), ATOMIC11(P, "inc", "u", F, A_INC), \
        ATOMIC11(P, "dec", "u", F, A_DEC), {P "min_f32", "xxxxx", F, A_FMIN}, \
    { \
        P "max_f32", "xxxxx", F, A_FMAX \
    }
/* clang-format off */
const OpDef ops_memory[] = {
    LOADS11("global_load_", global_load), STORES11("global_store_", global_store), ATOMICS11("global_atomic_", global_atomic),
    LOADS11("flat_load_", flat_load), STORES11("flat_store_", flat_store), ATOMICS11("flat_atomic_", global_atomic),
    LOADS11("scratch_load_", scratch_load), STORES11("scratch_store_", scratch_store),
    LOADS11("buffer_load_", buffer_load), STORES11("buffer_store_", buffer_store), ATOMICS11("buffer_atomic_", buffer_atomic),
    {"global_inv", "", nothing, 0}, {"global_wb", "", nothing, 0}, {"global_wbinv", "", nothing, 0},
    {"global_atomic_min_num_f32", "xxxxx", global_atomic, A_FMIN}, {"global_atomic_max_num_f32", "xxxxx", global_atomic, A_FMAX},
    {"flat_atomic_min_num_f32", "xxxxx", global_atomic, A_FMIN}, {"flat_atomic_max_num_f32", "xxxxx", global_atomic, A_FMAX},
    {"buffer_atomic_min_num_f32", "xxxxx", buffer_atomic, A_FMIN}, {"buffer_atomic_max_num_f32", "xxxxx", buffer_atomic, A_FMAX},
    DSA("min_num", "f32", "f64", A_FMIN), DSA("max_num", "f32", "f64", A_FMAX),
    {"buffer_gl0_inv", "", nothing, 0}, {"buffer_gl1_inv", "", nothing, 0},
    {"ds_load_u8", "xx", ds_read, 1}, {"ds_load_i8", "xx", ds_read, 1 | M_SEXT}, {"ds_load_u16", "xx", ds_read, 2},
    {"ds_load_i16", "xx", ds_read, 2 | M_SEXT}, {"ds_load_b32", "xx", ds_read, 4}, {"ds_load_b64", "xx", ds_read, 8},
    {"ds_load_b96", "xx", ds_read, 12}, {"ds_load_b128", "xx", ds_read, 16}, {"ds_load_u8_d16", "xx", ds_read, 1 | M_D16},
    {"ds_load_u8_d16_hi", "xx", ds_read, 1 | M_D16 | M_HI}, {"ds_load_i8_d16", "xx", ds_read, 1 | M_SEXT | M_D16},
    {"ds_load_i8_d16_hi", "xx", ds_read, 1 | M_SEXT | M_D16 | M_HI}, {"ds_load_u16_d16", "xx", ds_read, 2 | M_D16},
    {"ds_load_u16_d16_hi", "xx", ds_read, 2 | M_D16 | M_HI},
    {"ds_store_b8", "xx", ds_write, 1}, {"ds_store_b16", "xx", ds_write, 2}, {"ds_store_b32", "xx", ds_write, 4},
    {"ds_store_b64", "xx", ds_write, 8}, {"ds_store_b96", "xx", ds_write, 12}, {"ds_store_b128", "xx", ds_write, 16},
    {"ds_store_b8_d16_hi", "xx", ds_write, 1 | M_HI}, {"ds_store_b16_d16_hi", "xx", ds_write, 2 | M_HI},
    {"ds_load_2addr_b32", "xx", ds_read2, 4 | 1 << 8}, {"ds_load_2addr_b64", "xx", ds_read2, 8 | 1 << 8},
    {"ds_load_2addr_stride64_b32", "xx", ds_read2, 4 | 64 << 8}, {"ds_load_2addr_stride64_b64", "xx", ds_read2, 8 | 64 << 8},
    {"ds_store_2addr_b32", "xxx", ds_write2, 4 | 1 << 8}, {"ds_store_2addr_b64", "xxx", ds_write2, 8 | 1 << 8},
    {"ds_store_2addr_stride64_b32", "xxx", ds_write2, 4 | 64 << 8}, {"ds_store_2addr_stride64_b64", "xxx", ds_write2, 8 | 64 << 8},
    DSA("cmpstore", "b32", "b64", A_CMPSWAP | A_NEW_FIRST),
    {"ds_storexchg_rtn_b32", "xxx", ds_atomic, A_SWAP | A_RTN}, {"ds_storexchg_rtn_b64", "xxx", ds_atomic, A_SWAP | A_RTN | A_X2},
    LOADS("global_load_", global_load), STORES("global_store_", global_store), ATOMICS("global_atomic_", global_atomic),
    LOADS("flat_load_", flat_load), STORES("flat_store_", flat_store), ATOMICS("flat_atomic_", global_atomic),
    LOADS("scratch_load_", scratch_load), STORES("scratch_store_", scratch_store),
    LOADS("buffer_load_", buffer_load), STORES("buffer_store_", buffer_store), ATOMICS("buffer_atomic_", buffer_atomic),
    LOADS_LDS("global_load_lds_", global_load_lds), {"buffer_inv", "", nothing, 0},
    {"buffer_wbinvl1", "", nothing, 0}, {"buffer_wbl2", "", nothing, 0}, {"buffer_invl2", "", nothing, 0}, {"buffer_wbinvl1_vol", "", nothing, 0},
    {"ds_read_u8", "xx", ds_read, 1}, {"ds_read_i8", "xx", ds_read, 1 | M_SEXT}, {"ds_read_u16", "xx", ds_read, 2},
    {"ds_read_i16", "xx", ds_read, 2 | M_SEXT}, {"ds_read_b32", "xx", ds_read, 4}, {"ds_read_b64", "xx", ds_read, 8},
    {"ds_read_b96", "xx", ds_read, 12}, {"ds_read_b128", "xx", ds_read, 16}, {"ds_read_u8_d16", "xx", ds_read, 1 | M_D16},
    {"ds_read_u8_d16_hi", "xx", ds_read, 1 | M_D16 | M_HI}, {"ds_read_i8_d16", "xx", ds_read, 1 | M_SEXT | M_D16},
    {"ds_read_i8_d16_hi", "xx", ds_read, 1 | M_SEXT | M_D16 | M_HI}, {"ds_read_u16_d16", "xx", ds_read, 2 | M_D16},
    {"ds_read_u16_d16_hi", "xx", ds_read, 2 | M_D16 | M_HI},
    {"ds_write_b8", "xx", ds_write, 1}, {"ds_write_b16", "xx", ds_write, 2}, {"ds_write_b32", "xx", ds_write, 4},
    {"ds_write_b64", "xx", ds_write, 8}, {"ds_write_b96", "xx", ds_write, 12}, {"ds_write_b128", "xx", ds_write, 16},
    {"ds_write_b8_d16_hi", "xx", ds_write, 1 | M_HI}, {"ds_write_b16_d16_hi", "xx", ds_write, 2 | M_HI},
    {"ds_read2_b32", "xx", ds_read2, 4 | 1 << 8}, {"ds_read2_b64", "xx", ds_read2, 8 | 1 << 8},
    {"ds_read2st64_b32", "xx", ds_read2, 4 | 64 << 8}, {"ds_read2st64_b64", "xx", ds_read2, 8 | 64 << 8},
    {"ds_write2_b32", "xxx", ds_write2, 4 | 1 << 8}, {"ds_write2_b64", "xxx", ds_write2, 8 | 1 << 8},
    {"ds_write2st64_b32", "xxx", ds_write2, 4 | 64 << 8}, {"ds_write2st64_b64", "xxx", ds_write2, 8 | 64 << 8},
    DSA("add", "u32", "u64", A_ADD), DSA("sub", "u32", "u64", A_SUB), DSA("rsub", "u32", "u64", A_RSUB), DSA("inc", "u32", "u64", A_INC),
    DSA("dec", "u32", "u64", A_DEC), DSA("min", "i32", "i64", A_SMIN), DSA("max", "i32", "i64", A_SMAX), DSA("min", "u32", "u64", A_UMIN),
    DSA("max", "u32", "u64", A_UMAX), DSA("and", "b32", "b64", A_AND), DSA("or", "b32", "b64", A_OR), DSA("xor", "b32", "b64", A_XOR),
    DSA("cmpst", "b32", "b64", A_CMPSWAP), DSA("mskor", "b32", "b64", A_MSKOR), DSA("add", "f32", "f64", A_FADD),
    DSA("min", "f32", "f64", A_FMIN), DSA("max", "f32", "f64", A_FMAX),
    {"ds_pk_add_f16", "xxx", ds_atomic, A_PKADD_F16}, {"ds_pk_add_rtn_f16", "xxx", ds_atomic, A_PKADD_F16 | A_RTN},
    {"ds_pk_add_bf16", "xxx", ds_atomic, A_PKADD_BF16}, {"ds_pk_add_rtn_bf16", "xxx", ds_atomic, A_PKADD_BF16 | A_RTN},
    {"ds_wrxchg_rtn_b32", "xxx", ds_atomic, A_SWAP | A_RTN}, {"ds_wrxchg_rtn_b64", "xxx", ds_atomic, A_SWAP | A_RTN | A_X2},
    {"ds_bpermute_b32", "xxx", ds_bpermute, 0}, {"ds_permute_b32", "xxx", ds_permute, 0}, {"ds_swizzle_b32", "xx", ds_swizzle, 0},
    {"ds_nop", "", nothing, 0},
    {NULL, NULL, NULL, 0}};
/* clang-format on */
