/* bpe.c: byte-pair encoding. Of all neighbours that may be merged the pair with the best rank goes first, of equal ones the
 * leftmost; a heap has them in that order, and what has changed meanwhile is passed over when it comes up. */
#include "bpe.h"
#include <stdlib.h>
#include <string.h>

typedef struct {
    const char *text; /* NULL: no such token */
    size_t size;
} entry;

typedef struct {
    uint64_t pair; /* left and right; EMPTY: none */
    uint32_t rank, token;
} merge;

/* A neighbour that may be merged: rank in the high bits, place in the low ones. */
typedef struct {
    uint64_t *items;
    size_t n, room;
} heap;

struct wm_bpe {
    entry *tokens;
    size_t n_tokens, room_tokens;
    uint32_t *by_text; /* open addressing; WM_NO_TOKEN: empty */
    size_t text_slots, texts;
    merge *merges;
    size_t merge_slots, n_merges;
    heap heap;
    uint32_t *next, *before; /* neighbours of the tokens that are being merged */
    size_t room_links;
};

static const uint64_t EMPTY = UINT64_MAX;

wm_bpe *wm_bpe_new(void) { return calloc(1, sizeof(wm_bpe)); }

void wm_bpe_free(wm_bpe *b)
{
    if (!b)
        return;
    for (size_t i = 0; i < b->n_tokens; i++)
        free((char *)b->tokens[i].text);
    free(b->tokens);
    free(b->by_text);
    free(b->merges);
    free(b->heap.items);
    free(b->next);
    free(b->before);
    free(b);
}

/* ---- the vocabulary ---- */

static uint64_t hash_bytes(const char *p, size_t n)
{
    uint64_t h = 0xcbf29ce484222325u;
    for (size_t i = 0; i < n; i++)
        h = (h ^ (unsigned char)p[i]) * 0x100000001b3u;
    return h ^ h >> 29;
}

static size_t text_slot(const wm_bpe *b, const char *text, size_t size)
{
    size_t mask = b->text_slots - 1, i = hash_bytes(text, size) & mask;
    for (; b->by_text[i] != WM_NO_TOKEN; i = (i + 1) & mask) {
        const entry *e = &b->tokens[b->by_text[i]];
        if (e->size == size && memcmp(e->text, text, size) == 0)
            break;
    }
    return i;
}

static bool grow_texts(wm_bpe *b)
{
    size_t slots = b->text_slots ? b->text_slots * 2 : 1024, old_slots = b->text_slots;
    uint32_t *old = b->by_text, *table = malloc(slots * sizeof *table);
    if (!table)
        return false;
    memset(table, 0xFF, slots * sizeof *table);
    b->by_text = table;
    b->text_slots = slots;
    for (size_t i = 0; i < old_slots; i++) {
        if (old[i] != WM_NO_TOKEN)
            table[text_slot(b, b->tokens[old[i]].text, b->tokens[old[i]].size)] = old[i];
    }
    free(old);
    return true;
}

static bool grow_tokens(wm_bpe *b, uint32_t id)
{
    if (id >= b->room_tokens) {
        size_t room = id + (size_t)id / 2 + 1024;
        entry *tokens = realloc(b->tokens, room * sizeof *tokens);
        if (!tokens)
            return false;
        memset(tokens + b->room_tokens, 0, (room - b->room_tokens) * sizeof *tokens);
        b->tokens = tokens;
        b->room_tokens = room;
    }
    b->n_tokens = id >= b->n_tokens ? (size_t)id + 1 : b->n_tokens;
    return true;
}

bool wm_bpe_add_token(wm_bpe *b, uint32_t id, const char *text, size_t size)
{
    if (!grow_tokens(b, id) || (b->texts * 2 >= b->text_slots && !grow_texts(b)))
        return false;
    if (b->tokens[id].text)
        return true; /* the first one stays */
    char *copy = malloc(size + 1);
    if (!copy)
        return false;
    memcpy(copy, text, size);
    copy[size] = 0;
    b->tokens[id] = (entry){copy, size};
    size_t slot = text_slot(b, text, size);
    if (b->by_text[slot] == WM_NO_TOKEN) {
        b->by_text[slot] = id;
        b->texts++;
    }
    return true;
}

uint32_t wm_bpe_find(const wm_bpe *b, const char *text, size_t size)
{
    return b->text_slots ? b->by_text[text_slot(b, text, size)] : (uint32_t)WM_NO_TOKEN;
}

uint32_t wm_bpe_size(const wm_bpe *b) { return (uint32_t)b->n_tokens; }

const char *wm_bpe_text(const wm_bpe *b, uint32_t id, size_t *size)
{
    if (id >= b->n_tokens)
        return NULL;
    *size = b->tokens[id].size;
    return b->tokens[id].text;
}

/* ---- merges ---- */

static merge *merge_slot(const wm_bpe *b, uint64_t pair)
{
    uint64_t h = pair * 0x9E3779B97F4A7C15u;
    size_t mask = b->merge_slots - 1, i = (h ^ h >> 32) & mask;
    while (b->merges[i].pair != EMPTY && b->merges[i].pair != pair)
        i = (i + 1) & mask;
    return &b->merges[i];
}

static bool grow_merges(wm_bpe *b)
{
    size_t slots = b->merge_slots ? b->merge_slots * 2 : 1024, old_slots = b->merge_slots;
    merge *old = b->merges, *table = malloc(slots * sizeof *table);
    if (!table)
        return false;
    memset(table, 0xFF, slots * sizeof *table);
    b->merges = table;
    b->merge_slots = slots;
    for (size_t i = 0; i < old_slots; i++) {
        if (old[i].pair != EMPTY)
            *merge_slot(b, old[i].pair) = old[i];
    }
    free(old);
    return true;
}

bool wm_bpe_add_ranked(wm_bpe *b, uint32_t left, uint32_t right, uint32_t token, uint32_t rank)
{
    uint64_t pair = (uint64_t)left << 32 | right;
    if (b->n_merges * 2 >= b->merge_slots && !grow_merges(b))
        return false;
    /* The last of equal pairs counts, as in the reference. */
    *merge_slot(b, pair) = (merge){pair, rank, token};
    b->n_merges++;
    return true;
}

bool wm_bpe_add_merge(wm_bpe *b, uint32_t left, uint32_t right, uint32_t token)
{
    return wm_bpe_add_ranked(b, left, right, token, (uint32_t)b->n_merges);
}

/* ---- lists and heaps ---- */

bool wm_ids_add(wm_ids *l, uint32_t id)
{
    if (l->n == l->room) {
        size_t room = l->room ? l->room * 2 : 256;
        uint32_t *ids = realloc(l->ids, room * sizeof *ids);
        if (!ids)
            return false;
        l->ids = ids;
        l->room = room;
    }
    l->ids[l->n++] = id;
    return true;
}

void wm_ids_free(wm_ids *l)
{
    free(l->ids);
    *l = (wm_ids){0};
}

static bool heap_add(heap *h, uint64_t item)
{
    if (h->n == h->room) {
        size_t room = h->room ? h->room * 2 : 256;
        uint64_t *items = realloc(h->items, room * sizeof *items);
        if (!items)
            return false;
        h->items = items;
        h->room = room;
    }
    size_t i = h->n++;
    for (; i > 0 && h->items[(i - 1) / 2] > item; i = (i - 1) / 2)
        h->items[i] = h->items[(i - 1) / 2];
    h->items[i] = item;
    return true;
}

static uint64_t heap_take(heap *h)
{
    uint64_t top = h->items[0], item = h->items[--h->n];
    size_t i = 0, child;
    while ((child = 2 * i + 1) < h->n) {
        child += child + 1 < h->n && h->items[child + 1] < h->items[child];
        if (h->items[child] >= item)
            break;
        h->items[i] = h->items[child];
        i = child;
    }
    h->items[i] = item;
    return top;
}

/* ---- merging ---- */

enum { NONE = UINT32_MAX }; /* no neighbour; as a token: merged into another */

static const merge *merge_at(const wm_bpe *b, const uint32_t *ids, uint32_t at)
{
    uint32_t right = at == NONE || ids[at] == NONE ? NONE : b->next[at];
    if (right == NONE || !b->merge_slots)
        return NULL;
    const merge *m = merge_slot(b, (uint64_t)ids[at] << 32 | ids[right]);
    return m->pair == EMPTY ? NULL : m;
}

static bool offer(wm_bpe *b, const uint32_t *ids, uint32_t at)
{
    const merge *m = merge_at(b, ids, at);
    return !m || heap_add(&b->heap, (uint64_t)m->rank << 32 | at);
}

static bool link_all(wm_bpe *b, size_t n)
{
    if (n > b->room_links) {
        uint32_t *next = realloc(b->next, n * sizeof *next);
        b->next = next ? next : b->next;
        uint32_t *before = realloc(b->before, n * sizeof *before);
        b->before = before ? before : b->before;
        if (!next || !before)
            return false;
        b->room_links = n;
    }
    for (size_t i = 0; i < n; i++) {
        b->before[i] = i ? (uint32_t)i - 1 : NONE;
        b->next[i] = i + 1 < n ? (uint32_t)i + 1 : NONE;
    }
    return true;
}

bool wm_bpe_merge(wm_bpe *b, wm_ids *l, size_t from)
{
    uint32_t *ids = l->ids + from;
    size_t n = l->n - from, kept = 0;
    if (n < 2)
        return true;
    if (n >= NONE || !link_all(b, n))
        return false;
    b->heap.n = 0;
    for (size_t i = 0; i + 1 < n; i++) {
        if (!offer(b, ids, (uint32_t)i))
            return false;
    }
    while (b->heap.n) {
        uint64_t top = heap_take(&b->heap);
        uint32_t at = (uint32_t)top;
        const merge *m = merge_at(b, ids, at);
        if (!m || m->rank != top >> 32)
            continue;
        uint32_t right = b->next[at], after = b->next[right];
        ids[at] = m->token;
        ids[right] = NONE;
        b->next[at] = after;
        if (after != NONE)
            b->before[after] = at;
        if (!offer(b, ids, at) || (b->before[at] != NONE && !offer(b, ids, b->before[at])))
            return false;
    }
    for (size_t i = 0; i < n; i++) {
        if (ids[i] != NONE)
            ids[kept++] = ids[i];
    }
    l->n = from + kept;
    return true;
}
