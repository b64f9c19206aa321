/* train.h: training from scratch with wick's backward ops: parameters with AdamW's state, two small models, the curve of
 * what they learn.
 *
 *     wm_cnn_init(&params, device, seed);
 *     for (...) {
 *         wk_scope_begin();
 *         loss = wk_item(wm_cnn_loss(&params, x, labels, NULL));    leaves the gradients in params
 *         wm_params_update(&params, 0.002);
 *         wk_scope_end();
 *     }
 *     wm_params_free(&params); */
#ifndef WM_TRAIN_H
#define WM_TRAIN_H

#include <stdbool.h>
#include <wick/wick.h>
#include "digits.h"

enum { WM_MAX_PARAMS = 12 };

typedef struct {
    const char *name;
    wk_tensor *value, *m, *v; /* the parameter and AdamW's averages */
    wk_tensor *grad;          /* of the last loss, in the scope that it was computed in */
} wm_param;

typedef struct {
    wm_param p[WM_MAX_PARAMS];
    int n;
    int64_t step;
} wm_params;

/* A parameter of uniform numbers from -limit to limit, which depend on the seed. False with an error. */
bool wm_params_add(wm_params *params, const char *name, wk_device *device, int rank, const int64_t *shape,
                   double limit, int64_t seed);
/* One step of AdamW from the gradients. */
bool wm_params_update(wm_params *params, double lr);
void wm_params_free(wm_params *params);

/* ---- A LeNet: which digit is drawn ----
 * conv 5x5 to 8, relu, pool 2; conv 5x5 to 16, relu, pool 2; linear to 64, relu; linear to 10. */
bool wm_cnn_init(wm_params *params, wk_device *device, int64_t seed);
/* The mean cross entropy of images x [b, 1, 20, 20] and labels [b] (i32), and its gradient for every parameter. logits
 * [b, 10] where that is not NULL. All belong to the scope. NULL with an error. */
wk_tensor *wm_cnn_loss(wm_params *params, const wk_tensor *x, const wk_tensor *labels, wk_tensor **logits);

/* ---- An LSTM with CTC: which digits a line shows, without being told where they are ----
 * A bidirectional LSTM over the columns, 40 in each direction; linear to 11: the blank and the digits. */
enum { WM_CTC_HIDDEN = 40, WM_CTC_CLASSES = 11 };
bool wm_ctc_init(wm_params *params, wk_device *device, int64_t seed);
/* Lines x [t, b, 12] of which widths [b] columns count; labels [b, WM_LINE_DIGITS] are digits + 1, of which counts [b]
 * count (all i32). The mean loss, and its gradient for every parameter; logits [t, b, 11] where that is not NULL. */
typedef struct {
    wk_tensor *x, *widths, *labels, *counts;
} wm_ctc_batch;
wk_tensor *wm_ctc_batch_loss(wm_params *params, const wm_ctc_batch *batch, wk_tensor **logits);

/* ---- The curve ---- */

/* Writes loss and error (a share, 0 to 1) of n steps, `every` steps apart, as an SVG picture. False with an error. */
bool wm_curve_write(const char *path, const char *title, int n, int every, const double *loss,
                    const double *error);

#endif
