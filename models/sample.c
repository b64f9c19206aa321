/* sample.c: the next token from logits: the best one, or one by chance out of the likely ones. */
#include "sample.h"
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <wick/wick.h>

/* The better score first, of equal ones the lower token. */
static bool before(wm_candidate a, wm_candidate b)
{
    return a.score > b.score || (a.score == b.score && a.id < b.id);
}

static int by_score(const void *a, const void *b)
{
    return before(*(const wm_candidate *)a, *(const wm_candidate *)b) ? -1 : 1;
}

static void swap(wm_candidate *a, wm_candidate *b)
{
    wm_candidate c = *a;
    *a = *b;
    *b = c;
}

/* Brings the k best of n to the front, in any order (Hoare's selection). */
static void select_best(wm_candidate *c, int64_t n, int64_t k)
{
    int64_t low = 0, high = n - 1;
    while (low < high) {
        wm_candidate pivot = c[low + (high - low) / 2];
        int64_t i = low, j = high;
        while (i <= j) {
            while (before(c[i], pivot))
                i++;
            while (before(pivot, c[j]))
                j--;
            if (i <= j)
                swap(&c[i++], &c[j--]);
        }
        if (k - 1 <= j)
            high = j;
        else if (k - 1 >= i)
            low = i;
        else
            return;
    }
}

/* Scores become probabilities, in the order they are in. */
static void softmax(wm_candidate *c, int64_t n, double temperature)
{
    double sum = 0;
    float top = -INFINITY;
    for (int64_t i = 0; i < n; i++)
        top = c[i].score > top ? c[i].score : top;
    for (int64_t i = 0; i < n; i++) {
        c[i].score = (float)exp(((double)c[i].score - top) / temperature);
        sum += c[i].score;
    }
    for (int64_t i = 0; i < n; i++)
        c[i].score = (float)(c[i].score / sum);
}

/* The fewest that reach p, at the front. Those under (1 - p) / n cannot be among them, all together they have less than
 * 1 - p: so only a few are sorted. */
static int64_t keep_nucleus(wm_candidate *c, int64_t n, double p)
{
    int64_t kept = 0, i = 0;
    double least = (1 - p) / (double)n, sum = 0;
    for (int64_t j = 0; j < n; j++) {
        if (c[j].score >= least)
            swap(&c[kept++], &c[j]);
    }
    qsort(c, (size_t)kept, sizeof *c, by_score);
    while (i < kept && sum < p)
        sum += c[i++].score;
    return i > 0 ? i : 1;
}

static double random_number(const wm_sampling *how, int64_t draw)
{
    int64_t one = 1;
    wk_scope_begin();
    wk_tensor *t = wk_rand(wk_device_open("cpu"), WK_F64, 1, &one, 0, 1, how->seed, draw);
    double u = t ? wk_item(t) : 0;
    wk_scope_end();
    return u;
}

static uint32_t pick_best(const float *logits, int64_t n)
{
    int64_t best = 0;
    for (int64_t i = 1; i < n; i++)
        best = logits[i] > logits[best] || isnan(logits[best]) ? i : best;
    return (uint32_t)best;
}

uint32_t wm_sample(const float *logits, int64_t n, const wm_sampling *how, int64_t draw, wm_candidate *c)
{
    if (!(how->temperature > 0))
        return pick_best(logits, n);
    for (int64_t i = 0; i < n; i++)
        c[i] = (wm_candidate){isnan(logits[i]) ? -INFINITY : logits[i], (uint32_t)i};
    if (how->top_k > 0 && how->top_k < n) {
        select_best(c, n, how->top_k);
        n = how->top_k;
        qsort(c, (size_t)n, sizeof *c, by_score);
    }
    softmax(c, n, how->temperature);
    if (how->top_p < 1)
        n = keep_nucleus(c, n, how->top_p);
    double sum = 0, u = random_number(how, draw);
    for (int64_t i = 0; i < n; i++)
        sum += c[i].score;
    for (int64_t i = 0; i < n; i++) {
        u -= c[i].score / sum;
        if (u < 0)
            return c[i].id;
    }
    return c[n - 1].id;
}
