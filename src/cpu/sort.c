/* sort.c: sorting and choosing (key, place) pairs: short arrays by merging, others by their digits. */
#include <stdbool.h>
#include <string.h>
#include "core/pool.h"
#include "sort.h"

enum { RADIX = 256, CHUNK = 1 << 16, CHUNKS = 16 };

static inline int64_t least(int64_t a, int64_t b) { return a < b ? a : b; }

#define PAIR wk_pair32
#define KEY(p) ((p) >> 32)
#define KEY_BITS 32
#define LESS(p, q) ((p) < (q))
#define FN(name) name##32
#include "sort.inc.h"

#define PAIR wk_pair64
#define KEY(p) ((p).key)
#define KEY_BITS 64
#define LESS(p, q) ((p).key < (q).key || ((p).key == (q).key && (p).place < (q).place))
#define FN(name) name##64
#include "sort.inc.h"
