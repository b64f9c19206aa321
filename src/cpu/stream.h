/* stream.h: stores that go past the cache.
 *
 * An ordinary store first reads the line it writes to. For an output that will not stay in the cache that
 * is a third of the traffic of a copy, spent on bytes that are overwritten at once. A non-temporal store
 * spares it as long as whole lines are written without a pause. Where there is none it is an ordinary one.
 * Such stores are not ordered with others; the pool completes them before a region ends (core/pool.c). */
#ifndef WK_CPU_STREAM_H
#define WK_CPU_STREAM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#if defined(__SSE2__)
#include <immintrin.h>
#endif

#define WK_LINE 64 /* bytes of a cache line */

/* Asks for what a loop that has come to p will read so many bytes further; behind the end of a tensor it does no harm. One
 * line at a time: the processor has room for a few dozen, and waits when it is asked for a block's at once. */
static inline void wk_ask(const void *p, int64_t bytes)
{
    __builtin_prefetch((const void *)((uintptr_t)p + (uintptr_t)bytes), 0, 3);
}

static inline void wk_ask_lines(const void *p, size_t size, int64_t bytes)
{
    for (size_t at = 0; at < size; at += WK_LINE)
        wk_ask((const char *)p + at, bytes);
}

/* One line; dst is aligned to it. */
static inline void wk_stream_line(unsigned char *dst, const unsigned char *src)
{
#if defined(__AVX512F__)
    _mm512_stream_si512((void *)dst, _mm512_loadu_si512(src));
#elif defined(__AVX__)
    for (size_t i = 0; i < WK_LINE; i += 32)
        _mm256_stream_si256((__m256i *)(dst + i), _mm256_loadu_si256((const __m256i *)(src + i)));
#elif defined(__SSE2__)
    for (size_t i = 0; i < WK_LINE; i += 16)
        _mm_stream_si128((__m128i *)(dst + i), _mm_loadu_si128((const __m128i *)(src + i)));
#else
    memcpy(dst, src, WK_LINE);
#endif
}

/* 16 bytes, past the cache if so wanted; dst is aligned to them then, and the rest of its line follows at once. */
static inline void wk_put_piece(void *dst, const void *src, bool stream)
{
#if defined(__SSE2__)
    if (stream) {
        _mm_stream_si128(dst, _mm_loadu_si128(src));
        return;
    }
#endif
    (void)stream;
    memcpy(dst, src, 16);
}

/* Any number of bytes; those outside whole lines are stored the ordinary way. Asks for the source `ahead` bytes further, where
 * that is not 0. */
static inline void wk_stream_copy(unsigned char *dst, const unsigned char *src, size_t bytes, int64_t ahead)
{
    size_t head = -(uintptr_t)dst % WK_LINE;
    if (head > bytes)
        head = bytes;
    if (head > 0)
        memcpy(dst, src, head);
    size_t i = head;
    for (; i + WK_LINE <= bytes; i += WK_LINE) {
        if (ahead)
            wk_ask(src + i, ahead);
        wk_stream_line(dst + i, src + i);
    }
    if (i < bytes)
        memcpy(dst + i, src + i, bytes - i);
}

#endif
