/* wick/ops.h: every op, by family.
 *
 * What holds for all of them:
 * - Inputs may have any layout: strided, broadcast, offset, empty. Outputs are packed and belong to the
 *   innermost scope of the thread, or to the caller when there is none.
 * - All tensors of a call are on one device, which runs it.
 * - A call that fails returns NULL (or a status other than WK_OK), makes nothing and records why: wk_error().
 * - f16 and bf16 compute in f32 and round once; f64 computes in f64; integers wrap.
 * - dim counts from the end when negative. A list of dims is a count and an array; count 0 means all of them.
 * - Functions with several results take a place for each; NULL means it is not wanted.
 * - A last argument `options` may be NULL: every default. WK_CONV(.stride = {2, 2}) and its like write one in
 *   place; a field that is zero means its default. */
#ifndef WICK_OPS_H
#define WICK_OPS_H

#include "elementwise.h"
#include "reduce.h"
#include "matmul.h"
#include "quant.h"
#include "copy.h"
#include "index.h"
#include "scan.h"
#include "softmax.h"
#include "rope.h"
#include "attention.h"
#include "rnn.h"
#include "random.h"
#include "loss.h"
#include "ctc.h"
#include "optim.h"
#include "conv.h"
#include "pool.h"
#include "resample.h"
#include "norm.h"
#include "act.h"
#include "expr.h"

#endif
