/* sample.h: the next token from logits. */
#ifndef WM_SAMPLE_H
#define WM_SAMPLE_H

#include <stdint.h>

/* temperature 0: the best one. Otherwise one by chance, from the top_k best (0: all), and of those from the fewest whose
 * probabilities reach top_p (1: all); in that order, as Hugging Face has it. */
typedef struct {
    double temperature, top_p;
    int64_t top_k, seed;
} wm_sampling;

/* The token for n logits; NaN counts as -infinity. `draw` is the number of the random number, from 0: the same seed and
 * draw give the same one. scratch has room for n. */
typedef struct {
    float score;
    uint32_t id;
} wm_candidate;
uint32_t wm_sample(const float *logits, int64_t n, const wm_sampling *how, int64_t draw,
                   wm_candidate *scratch);

#endif
