/* generate.c: texts continued, token by token, several at a time. */
#include "generate.h"
#include <math.h>
#include <stdlib.h>
#include <time.h>
#include "error.h"

typedef struct {
    wm_llama *model;
    wm_llama_session *session;
    const wm_generate_options *o;
    int64_t rows, vocab, draw, open; /* open: texts that go on */
    uint32_t *ids;                   /* the last token of each */
    bool *ended;
    float *logits;         /* of one text, and what sampling needs */
    wm_candidate *scratch; /* both NULL where the best token is taken */
    wm_generate_stats stats;
} generation;

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static bool begin(generation *g, const wm_prompt *prompts)
{
    int64_t longest = 0;
    for (int64_t i = 0; i < g->rows; i++)
        longest = prompts[i].n > longest ? prompts[i].n : longest;
    if (g->rows < 1 || longest < 1 || g->o->most < 1)
        return wm_fail(WK_ERR_ARGUMENT, "generate: expected a prompt and a token to make"), false;
    bool sampled = g->o->sampling.temperature > 0;
    g->ids = calloc((size_t)g->rows, sizeof *g->ids);
    g->ended = calloc((size_t)g->rows, sizeof *g->ended);
    g->logits = sampled ? malloc((size_t)g->vocab * sizeof *g->logits) : NULL;
    g->scratch = sampled ? malloc((size_t)g->vocab * sizeof *g->scratch) : NULL;
    if (!g->ids || !g->ended || (sampled && (!g->logits || !g->scratch)))
        return wm_fail(WK_ERR_MEMORY, "generate: out of memory"), false;
    g->session = wm_llama_start(g->model, g->rows, longest + g->o->most);
    return g->session != NULL;
}

static void end(generation *g)
{
    wm_llama_end(g->session);
    free(g->ids);
    free(g->ended);
    free(g->logits);
    free(g->scratch);
}

/* The next token of a text from its row of logits. */
static bool sample_row(generation *g, const wk_tensor *logits, int64_t row, uint32_t *id)
{
    wk_scope_begin();
    bool got = wk_to_host(wk_narrow(logits, 0, row, 1), g->logits) == WK_OK;
    wk_scope_end();
    if (got)
        *id = wm_sample(g->logits, g->vocab, &g->o->sampling, g->draw++, g->scratch);
    return got;
}

/* Takes a new token into a text; false when the caller wants no more. */
static bool accept(generation *g, int64_t row)
{
    const wm_llama_config *c = wm_llama_config_of(g->model);
    uint32_t id = g->ids[row];
    for (int i = 0; i < c->n_stops && !g->o->ignore_stops; i++)
        g->ended[row] |= id == c->stops[i];
    g->stats.new_tokens++;
    if (g->ended[row]) {
        g->open--;
        return true;
    }
    return !g->o->token || g->o->token(g->o->ctx, row, id);
}

static bool run_prompt(generation *g, int64_t row, const wm_prompt *p)
{
    wk_scope_begin();
    wk_tensor *logits = wm_llama_prompt(g->session, row, p->ids, p->n, false);
    bool got = logits && (g->logits ? sample_row(g, logits, 0, &g->ids[row])
                                    : wk_to_host(wk_argmax(logits, -1, 0), &g->ids[row]) == WK_OK);
    wk_scope_end();
    g->stats.prompt_tokens += p->n;
    return got;
}

static bool step(generation *g)
{
    if (!wm_llama_step(g->session, g->ids))
        return false;
    if (!g->logits)
        return wm_llama_best(g->session, g->ids);
    for (int64_t row = 0; row < g->rows; row++) {
        if (!sample_row(g, wm_llama_logits(g->session), row, &g->ids[row]))
            return false;
    }
    return true;
}

/* Tells of the new tokens; false when there is nothing more to do. */
static bool accept_all(generation *g)
{
    for (int64_t row = 0; row < g->rows; row++) {
        if (!g->ended[row] && !accept(g, row))
            return false;
    }
    return g->open > 0;
}

static bool run(generation *g, const wm_prompt *prompts)
{
    double start = now();
    for (int64_t row = 0; row < g->rows; row++) {
        if (!run_prompt(g, row, &prompts[row]))
            return false;
    }
    double first = now();
    g->stats.prompt_seconds = first - start;
    for (int64_t n = 1; accept_all(g) && n < g->o->most; n++) {
        if (!step(g))
            return false;
    }
    g->stats.decode_seconds = now() - first;
    return true;
}

bool wm_generate(wm_llama *m, int64_t rows, const wm_prompt *prompts, const wm_generate_options *o,
                 wm_generate_stats *stats)
{
    generation g = {.model = m, .o = o, .rows = rows, .open = rows, .vocab = wm_llama_config_of(m)->vocab};
    bool fine = wm_error_status() == WK_OK && begin(&g, prompts) && run(&g, prompts);
    end(&g);
    if (stats)
        *stats = g.stats;
    return fine && wm_error_status() == WK_OK;
}
