/* llama.c: a text continued by a model of the Llama family. usage: llama FOLDER TEXT */
#include <stdio.h>
#include <string.h>
#include <wick/wick.h>
#include "error.h"
#include "llama.h"
#include "tokenizer.h"

enum { NEW_TOKENS = 32 };

/* Takes the likeliest token each time and prints it; the loop that generate.h has, with sampling and several texts. */
static void run(wm_llama *model, const wm_tokenizer *tokenizer, const wm_ids *ids)
{
    wm_llama_session *session = wm_llama_start(model, 1, (int64_t)ids->n + NEW_TOKENS);
    wm_decoder *decoder = wm_decoder_new(tokenizer);
    uint32_t next = 0;
    wk_scope_begin();
    if (session && decoder)
        wk_to_host(wk_argmax(wm_llama_prompt(session, 0, ids->ids, (int64_t)ids->n, false), -1, 0), &next);
    for (int i = 0; i < NEW_TOKENS && wm_error_status() == WK_OK; i++) {
        fputs(wm_decode(decoder, next), stdout);
        if (i + 1 < NEW_TOKENS && wm_llama_step(session, &next))
            wm_llama_best(session, &next);
    }
    wk_scope_end();
    printf("\n");
    wm_decoder_free(decoder);
    wm_llama_end(session);
}

int main(int argc, char **argv)
{
    if (argc != 3) {
        fprintf(stderr, "usage: llama FOLDER TEXT\n");
        return 2;
    }
    wm_ids ids = {0};
    wk_device *device = wk_device_open("auto");
    wm_tokenizer *tokenizer = wm_tokenizer_open(argv[1]);
    wm_llama *model = tokenizer ? wm_llama_load(argv[1], device, WK_DTYPE_COUNT, NULL) : NULL;
    if (model && wm_encode(tokenizer, argv[2], strlen(argv[2]), true, &ids))
        run(model, tokenizer, &ids);
    int status = wm_error_status() != WK_OK;
    if (status)
        fprintf(stderr, "%s\n", wm_error());
    wm_ids_free(&ids);
    wm_llama_free(model);
    wm_tokenizer_close(tokenizer);
    return status;
}
