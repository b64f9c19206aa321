/* bert.c: how near texts are to each other, by a sentence encoder. usage: bert FOLDER TEXT TEXT... */
#include <stdio.h>
#include <stdlib.h>
#include <wick/wick.h>
#include "bert.h"
#include "error.h"

int main(int argc, char **argv)
{
    if (argc < 4) {
        fprintf(stderr, "usage: bert FOLDER TEXT TEXT...\n");
        return 2;
    }
    int n = argc - 2;
    wm_bert *model = wm_bert_load(argv[1], wk_device_open("auto"), WK_F32, NULL);
    int64_t width = model ? wm_bert_width(model) : 0;
    float *vectors = malloc((size_t)(n * width) * sizeof *vectors);
    if (model && vectors && wm_bert_embed(model, n, (const char *const *)argv + 2, vectors))
        for (int i = 1; i < n; i++)
            printf("%6.3f  %s\n", wm_cosine(width, vectors, vectors + i * width), argv[2 + i]);
    int status = wm_error_status() != WK_OK;
    if (status)
        fprintf(stderr, "%s\n", wm_error());
    free(vectors);
    wm_bert_free(model);
    return status;
}
