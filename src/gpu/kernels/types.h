/* types.h: what host and kernels both see: integer types, views and divisors. C on the host, C++ in kernels; every
 * struct has the same layout in both. */
#ifndef WK_KERNELS_TYPES_H
#define WK_KERNELS_TYPES_H

#ifdef __cplusplus
typedef long long i64;
typedef unsigned long long u64;
#else
#include <stdint.h>
typedef int64_t i64;
typedef uint64_t u64;
#endif
typedef int i32;
typedef short i16;
typedef unsigned char u8;
typedef unsigned int u32;

enum { WK_DIMS = 8 };

/* Division by a number that is known at launch, as a product and a shift: exact for dividends below 2^31. */
typedef struct {
    u32 d, magic, shift;
} wk_divisor;

/* Lines that a cluster which stays has in shared memory: one on its way, the others measured or written (kernels/ahead.h). */
enum { WK_AHEAD_LINES = 5 };

/* Where kernels leave an error that only the data shows (an index out of range). It lies in host memory that the
 * device writes; the next synchronisation reads it. Both words are written by one 16-byte store. */
typedef struct {
    u64 what;  /* 0: nothing; else the limit << 16 | the op's number << 4 | the input's slot + 1 */
    i64 value; /* the index found */
} wk_mailbox;

/* A mailbox with the op and the input that a kernel speaks for. */
typedef struct {
    wk_mailbox *mailbox;
    i32 op, slot;
} wk_report;

#endif
