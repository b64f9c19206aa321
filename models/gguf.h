/* gguf.h: models in GGUF files: one file with the weights, quantised or not, what the model looks like and its tokenizer. */
#ifndef WM_GGUF_H
#define WM_GGUF_H

#include "llama.h"
#include "tokenizer.h"

/* Whether a path is that of such a file, by its name. */
bool wm_is_gguf(const char *path);

/* What the file says of a Llama-like model; false with an error that names file and key. */
bool wm_gguf_read_config(const char *path, wm_llama_config *c);
/* Its tensors under the names of Hugging Face, with the rows of queries and keys in the order they have there. */
wm_source *wm_gguf_source(const char *path);
/* Its tokenizer; NULL with an error. */
wm_tokenizer *wm_gguf_tokenizer(const char *path);

#endif
