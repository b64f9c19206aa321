/* twos.inc.h: packed elements, two vectors of REAL at a time: one vector alone would wait for its own additions.
 *
 * ELEMENT is REAL, or bf16: then the vectors are the even and the odd elements. A word of memory holds one of each, and
 * they are floats but for a shift and a mask, so that nothing has to change lanes. */

#define LANES (WK_VEC_BYTES / (int)sizeof(REAL))
#define TWO (2 * LANES)

typedef REAL FN(vec) __attribute__((vector_size(WK_VEC_BYTES), aligned(sizeof(REAL)), may_alias));
typedef struct {
    FN(vec) a, b;
} FN(two);

/* Functions that a file does not use are no defect of it. */
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wunused-function"

/* Two vectors that lie one behind the other. */
static inline FN(two) FN(two_behind)(const REAL *x)
{
    return (FN(two)){*(const FN(vec) *)x, *(const FN(vec) *)(x + LANES)};
}

#ifdef ELEMENT_BF16
typedef uint32_t FN(words) __attribute__((vector_size(WK_VEC_BYTES)));

static inline FN(two) FN(two_at)(const ELEMENT *x)
{
    FN(words) w;
    memcpy(&w, x, sizeof w);
    return (FN(two)){(FN(vec))(w << 16), (FN(vec))(w & 0xFFFF0000)};
}

/* As wk_bf16_pair: for what was made of bf16 alone. Past the cache if so wanted, where wk_lines_past allows it. */
static inline void FN(two_put)(ELEMENT *y, FN(two) v, bool stream)
{
#if ELEMENT_WORDS
    wk_words_store(y, wk_words_of((wk_lanes)v.a, (wk_lanes)v.b), stream);
#else
    (void)stream;
    FN(words) a = (FN(words))v.a, b = (FN(words))v.b;
    a += 0x7FFF + ((a >> 16) & 1);
    b += 0x7FFF + ((b >> 16) & 1);
    a = (a >> 16) | (b & 0xFFFF0000);
    memcpy(y, &a, sizeof a);
#endif
}

/* As wk_words_near. */
static inline void FN(two_put_near)(ELEMENT *y, FN(two) v, bool stream)
{
#if ELEMENT_WORDS
    wk_words_store(y, wk_words_near((wk_lanes)v.a, (wk_lanes)v.b), stream);
#else
    (void)stream;
    FN(words) a = (FN(words))v.a + 0x8000, b = (FN(words))v.b + 0x8000;
    a = (a >> 16) | (b & 0xFFFF0000);
    memcpy(y, &a, sizeof a);
#endif
}

static inline REAL FN(one_at)(const ELEMENT *x) { return wk_bf16_to_f32(*x); }
static inline void FN(one_put)(ELEMENT *y, REAL v) { *y = wk_f32_to_bf16(v); }
#else
static inline FN(two) FN(two_at)(const ELEMENT *x) { return FN(two_behind)(x); }

static inline void FN(two_put)(ELEMENT *y, FN(two) v, bool stream)
{
#if WK_VEC_BYTES == WK_LINE
    if (stream) {
        _mm512_stream_si512((void *)y, (__m512i)v.a);
        _mm512_stream_si512((void *)(y + LANES), (__m512i)v.b);
        return;
    }
#endif
    (void)stream;
    *(FN(vec) *)y = v.a;
    *(FN(vec) *)(y + LANES) = v.b;
}

static inline void FN(two_put_near)(ELEMENT *y, FN(two) v, bool stream) { FN(two_put)(y, v, stream); }

static inline REAL FN(one_at)(const ELEMENT *x) { return *x; }
static inline void FN(one_put)(ELEMENT *y, REAL v) { *y = v; }
#endif

/* The sum of the lanes, pairwise: by halves, down to pieces of 16 bytes, which every level has. */
static inline REAL FN(vec_sum)(FN(vec) v)
{
    enum { N = 16 / sizeof(REAL) };
    typedef REAL piece __attribute__((vector_size(16)));
    piece p[WK_VEC_BYTES / 16];
    memcpy(p, &v, sizeof v);
#if WK_VEC_BYTES == 64
    p[0] = (p[0] + p[2]) + (p[1] + p[3]);
#elif WK_VEC_BYTES == 32
    p[0] += p[1];
#endif
    return N == 2 ? p[0][0] + p[0][1] : (p[0][0] + p[0][2 % N]) + (p[0][1] + p[0][3 % N]);
}

/* Elements of x from i on, each with that of `more` added, which may be NULL. */
static inline FN(two) FN(two_of)(const ELEMENT *x, const ELEMENT *more, int64_t i)
{
    FN(two) v = FN(two_at)(x + i);
    if (more) {
        FN(two) m = FN(two_at)(more + i);
        v.a += m.a;
        v.b += m.b;
    }
    return v;
}

static inline REAL FN(one_of)(const ELEMENT *x, const ELEMENT *more, int64_t i)
{
    return more ? FN(one_at)(x + i) + FN(one_at)(more + i) : FN(one_at)(x + i);
}

#pragma GCC diagnostic pop
