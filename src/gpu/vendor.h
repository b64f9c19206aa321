/* vendor.h: what MIOpen and cuDNN have in common: the keys of calls, what was set up for them, workspaces. */
#ifndef WK_GPU_VENDOR_H
#define WK_GPU_VENDOR_H

#include "core/op.h"

/* All that a plan depends on, as numbers. */
enum { WK_KEY = 64 };
typedef struct {
    int n; /* more than WK_KEY: it did not fit */
    int64_t v[WK_KEY];
} wk_key;

void wk_key_add(wk_key *k, int64_t value);
/* Numbers that are not whole, by their bits. */
void wk_key_real(wk_key *k, double value);
void wk_key_shape(wk_key *k, int rank, const int64_t *shape);

/* The beginning of a library's plan, by which a keeper knows it. */
typedef struct {
    wk_key key;
    uint64_t used; /* the last of the keeper's calls that did */
} wk_kept;

/* What a stream keeps. A plan's place is at its hash or a few behind; where all of these are taken the one that was
 * not used for longest goes. */
enum { WK_KEEPER_PLACES = 512 };
typedef struct {
    uint64_t calls;
    wk_kept *places[WK_KEEPER_PLACES];
} wk_keeper;

/* The plan for a key; NULL where there is none yet. *place is where it is, or goes after what is there. */
wk_kept *wk_keeper_find(wk_keeper *k, const wk_key *key, wk_kept ***place);

/* What holds for every op of a library that counts in int and takes no empty tensors: why it does not take the call, in
 * its words; NULL when it may. */
typedef struct {
    const char *dtype, *empty;
} wk_vendor_words;
const char *wk_vendor_refuse(const wk_call *c, unsigned dtypes, const wk_vendor_words *words);

/* Lengths and strides of a packed tensor, as such a library wants them. */
void wk_vendor_packed(int rank, const int64_t *shape, int *lengths, int *steps);

/* Bytes that belong to the call. One that does not fit is no error: the next implementation needs none
 * (WK_ERR_UNSUPPORTED). */
wk_status wk_vendor_workspace(const wk_call *c, const char *library, size_t bytes, void **workspace);

#endif
