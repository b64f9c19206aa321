/* decode.c: tokens to text, one after the other; what comes out is valid UTF-8 at any time. */
#include <stdlib.h>
#include <string.h>
#include "error.h"
#include "tokenizer_int.h"
#include "unicode.h"

struct wm_decoder {
    const wm_tokenizer *t;
    char *out; /* of the last call */
    size_t n, room;
    char waiting[4]; /* the beginning of a letter */
    int n_waiting;
    bool begun; /* something has come out */
};

wm_decoder *wm_decoder_new(const wm_tokenizer *t)
{
    wm_decoder *d = calloc(1, sizeof *d);
    if (d)
        d->t = t;
    else
        wm_fail(WK_ERR_MEMORY, "%s: out of memory", t->path);
    return d;
}

void wm_decoder_free(wm_decoder *d)
{
    if (d)
        free(d->out);
    free(d);
}

static bool put(wm_decoder *d, const char *p, size_t n)
{
    if (d->n + n + 1 > d->room) {
        size_t room = (d->n + n + 1) * 2;
        char *out = realloc(d->out, room);
        if (!out)
            return false;
        d->out = out;
        d->room = room;
    }
    memcpy(d->out + d->n, p, n);
    d->n += n;
    return true;
}

static bool put_wrong(wm_decoder *d) { return put(d, "\xEF\xBF\xBD", 3); }

/* One byte more: letters that are complete come out, wrong ones as U+FFFD. */
static bool put_byte(wm_decoder *d, char byte)
{
    d->waiting[d->n_waiting++] = byte;
    while (d->n_waiting) {
        int n = wm_utf8_length(d->waiting, d->waiting + d->n_waiting);
        if (n == 0)
            return true;
        if (!(n > 0 ? put(d, d->waiting, (size_t)n) : put_wrong(d)))
            return false;
        int used = n > 0 ? n : -n;
        d->n_waiting -= used;
        memmove(d->waiting, d->waiting + used, (size_t)d->n_waiting);
    }
    return true;
}

static bool put_bytes(wm_decoder *d, const char *p, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if (!put_byte(d, p[i]))
            return false;
    }
    return true;
}

/* A beginning that nothing completes. */
static bool put_waiting(wm_decoder *d)
{
    bool fine = d->n_waiting == 0 || put_wrong(d);
    d->n_waiting = 0;
    return fine;
}

static const wm_added *find_added(const wm_tokenizer *t, uint32_t id)
{
    for (int i = 0; i < t->n_added; i++) {
        if (t->added[i].id == id)
            return &t->added[i];
    }
    return NULL;
}

/* SentencePiece's tokens: U+2581 is a space, <0x0A> is a byte. */
static bool put_piece(wm_decoder *d, uint32_t id, const char *text, size_t size)
{
    const size_t mark = sizeof WM_METASPACE - 1;
    unsigned byte = 0;
    if (d->t->byte_fallback && size == 6 && text[0] == '<') {
        while (byte < WM_BYTES && d->t->bytes[byte] != id)
            byte++;
        if (byte < WM_BYTES)
            return put_byte(d, (char)byte);
    }
    if (!put_waiting(d))
        return false;
    for (size_t i = 0; i < size;) {
        bool space = size - i >= mark && memcmp(text + i, WM_METASPACE, mark) == 0;
        if (!(space ? put(d, " ", 1) : put(d, text + i, 1)))
            return false;
        i += space ? mark : 1;
    }
    return true;
}

static const char *finish(wm_decoder *d, bool fine)
{
    if (!fine || !put(d, "", 0)) {
        wm_fail(WK_ERR_MEMORY, "%s: out of memory", d->t->path);
        return NULL;
    }
    d->out[d->n] = 0;
    size_t skip = d->t->strip_first && !d->begun && d->n && d->out[0] == ' ';
    d->begun |= d->n > 0;
    return d->out + skip;
}

const char *wm_decode(wm_decoder *d, uint32_t id)
{
    const wm_added *a = find_added(d->t, id);
    size_t size = 0;
    const char *text = a ? a->text : wm_bpe_text(d->t->bpe, id, &size);
    d->n = 0;
    if (!text || (a && a->special))
        return finish(d, true);
    if (a)
        size = strlen(text);
    return finish(d, d->t->byte_level ? put_bytes(d, text, size) : put_piece(d, id, text, size));
}

const char *wm_decode_end(wm_decoder *d)
{
    d->n = 0;
    const char *text = finish(d, put_waiting(d));
    d->begun = false;
    return text;
}
