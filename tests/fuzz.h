/* fuzz.h: what the fuzz targets share. A target defines LLVMFuzzerTestOneInput, as libFuzzer wants it, and
 *     static const fuzz_input fuzz_seeds[]        inputs to begin with, ended by an empty one
 *     static const char *const fuzz_words[]       pieces of the format, ended by NULL
 * and includes this. Built with FUZZ_MAIN it is a plain program with a small mutator that gives the same inputs
 * on every run:
 *     fuzz_json 3s            for three seconds
 *     fuzz_json 50000 [SEED]  so many inputs */
#ifndef WK_TESTS_FUZZ_H
#define WK_TESTS_FUZZ_H

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

typedef struct {
    const char *data;
    size_t size;
} fuzz_input;

#define FUZZ_TEXT(text) \
    { \
        text, sizeof(text) - 1 \
    }

/* What the input means, for who has to find out why it fails; "" where the target says nothing. */
static char fuzz_note[1000];

/* What must hold for every input; says what does not and stops, for the fuzzer to see. */
#define FUZZ_NEED(condition) \
    do { \
        if (!(condition)) { \
            fprintf(stderr, "%s:%d: failed: %s; %s\n", __FILE__, __LINE__, #condition, fuzz_note); \
            abort(); \
        } \
    } while (0)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Inputs that were taken; counted by the targets. A fuzzer that only ever meets refusals looks at little. */
static long fuzz_accepted;

#ifdef FUZZ_MAIN

static const fuzz_input fuzz_seeds[];
static const char *const fuzz_words[];

enum { FUZZ_ROOM = 4096, FUZZ_POOL = 64 };

typedef struct {
    uint64_t random;
    size_t size;
    uint8_t data[2 * FUZZ_ROOM];
    struct {
        size_t size;
        uint8_t data[FUZZ_ROOM];
    } pool[FUZZ_POOL]; /* inputs to begin with: the seeds, and mutants of them */
    int pooled, seeds;
} fuzz_state;

static uint64_t fuzz_below(fuzz_state *s, uint64_t n)
{
    s->random ^= s->random << 13;
    s->random ^= s->random >> 7;
    s->random ^= s->random << 17;
    return n ? (s->random >> 11) % n : 0;
}

/* Puts bytes in at a place, over what is there or in between. */
static void fuzz_put(fuzz_state *s, size_t at, const void *bytes, size_t n, bool over)
{
    if (s->size + n > FUZZ_ROOM)
        return;
    if (!over)
        memmove(s->data + at + n, s->data + at, s->size - at);
    memcpy(s->data + at, bytes, n);
    s->size = over ? (at + n > s->size ? at + n : s->size) : s->size + n;
}

static void fuzz_put_number(fuzz_state *s, size_t at)
{
    static const char *const texts[] = {"0",
                                        "-1",
                                        "1",
                                        "8",
                                        "255",
                                        "4294967296",
                                        "9223372036854775807",
                                        "-9223372036854775808",
                                        "18446744073709551616",
                                        "1e99"};
    static const uint64_t words[] = {0, 1, 8, 255, 0x7FFFFFFF, 0xFFFFFFFF, INT64_MAX, UINT64_MAX, 100000000};
    uint64_t word = words[fuzz_below(s, sizeof words / sizeof *words)];
    const char *text = texts[fuzz_below(s, sizeof texts / sizeof *texts)];
    if (fuzz_below(s, 2))
        fuzz_put(s, at, &word, (size_t)1 << fuzz_below(s, 4), true);
    else
        fuzz_put(s, at, text, strlen(text), fuzz_below(s, 2));
}

static void fuzz_mutate(fuzz_state *s)
{
    /* Often near the front: what comes first decides the most. */
    size_t at = fuzz_below(s, fuzz_below(s, 3) || s->size < 4 ? s->size + 1 : 4),
           n = fuzz_below(s, 1 + (s->size - at < 32 ? s->size - at : 32));
    uint8_t piece[32];
    int words = 0;
    while (fuzz_words[words])
        words++;
    switch (fuzz_below(s, 8)) {
    case 0:
        if (at < s->size)
            s->data[at] ^= (uint8_t)(1u << fuzz_below(s, 8));
        break;
    case 1:
        piece[0] = (uint8_t)fuzz_below(s, 256);
        fuzz_put(s, at, piece, 1, fuzz_below(s, 2));
        break;
    case 2: fuzz_put_number(s, at); break;
    case 3: /* take a piece out */
        memmove(s->data + at, s->data + at + n, s->size - at - n);
        s->size -= n;
        break;
    case 4: /* a piece again somewhere else */
        memcpy(piece, s->data + at, n);
        fuzz_put(s, fuzz_below(s, s->size + 1), piece, n, fuzz_below(s, 2));
        break;
    case 5: s->size = at; break;
    default:
        if (words) {
            const char *word = fuzz_words[fuzz_below(s, (uint64_t)words)];
            fuzz_put(s, at, word, strlen(word), fuzz_below(s, 4) == 0);
        }
    }
}

static void fuzz_keep(fuzz_state *s, const void *data, size_t size)
{
    int to =
        s->pooled < FUZZ_POOL ? s->pooled++ : s->seeds + (int)fuzz_below(s, (uint64_t)(FUZZ_POOL - s->seeds));
    s->pool[to].size = size;
    memcpy(s->pool[to].data, data, size);
}

/* A mutant of a seed or of one that was kept: one that was taken, or now and then any. */
static void fuzz_next(fuzz_state *s)
{
    int from = (int)fuzz_below(s, (uint64_t)(fuzz_below(s, 2) ? s->seeds : s->pooled));
    long accepted = fuzz_accepted;
    s->size = s->pool[from].size;
    memcpy(s->data, s->pool[from].data, s->size);
    for (uint64_t n = 1 + fuzz_below(s, 4); n > 0; n--)
        fuzz_mutate(s);
    uint8_t *exact = malloc(s->size + !s->size); /* of its size: a sanitizer sees a byte too far */
    FUZZ_NEED(exact);
    memcpy(exact, s->data, s->size);
    LLVMFuzzerTestOneInput(exact, s->size);
    if (fuzz_accepted > accepted || fuzz_below(s, 64) == 0)
        fuzz_keep(s, exact, s->size);
    free(exact);
}

/* Says what the input was before the program ends as it would have. */
static void fuzz_crash(int number)
{
    ssize_t n = write(STDERR_FILENO, fuzz_note, strlen(fuzz_note)) + write(STDERR_FILENO, "\n", 1);
    signal(number, n < 0 ? SIG_IGN : SIG_DFL);
    raise(number);
}

int main(int argc, char **argv)
{
    static fuzz_state s;
    char *end;
    double limit = argc > 1 ? strtod(argv[1], &end) : 20000;
    bool seconds = argc > 1 && *end == 's';
    long count = 0;
    struct timespec start, now;
    clock_gettime(CLOCK_MONOTONIC, &start);
    signal(SIGFPE, fuzz_crash);
    signal(SIGSEGV, fuzz_crash);
    s.random = 0x9E3779B97F4A7C15u ^ (argc > 2 ? strtoull(argv[2], NULL, 10) << 20 : 0);
    for (; fuzz_seeds[s.seeds].data; s.seeds++) {
        fuzz_keep(&s, fuzz_seeds[s.seeds].data, fuzz_seeds[s.seeds].size);
        LLVMFuzzerTestOneInput(s.pool[s.seeds].data, s.pool[s.seeds].size);
    }
    for (double used = 0; used < limit; count++) {
        fuzz_next(&s);
        clock_gettime(CLOCK_MONOTONIC, &now);
        used = seconds ? (double)(now.tv_sec - start.tv_sec) + (double)(now.tv_nsec - start.tv_nsec) * 1e-9
                       : (double)count + 1;
    }
    printf("%ld inputs were good ones\n%ld passed, 0 failed\n", fuzz_accepted, count);
    return 0;
}

#endif
#endif
