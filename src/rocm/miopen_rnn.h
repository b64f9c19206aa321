/* miopen_rnn.h: what the files of recurrent layers by MIOpen share. */
#ifndef WK_ROCM_MIOPEN_RNN_H
#define WK_ROCM_MIOPEN_RNN_H

#include "core/op.h"

/* A call of rnn, or of its gradient, as calls of single layers with dropout between them. */
wk_status wk_miopen_rnn_layers(const wk_call *c);
wk_status wk_miopen_rnn_layers_backward(const wk_call *c);

#endif
