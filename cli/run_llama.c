/* run_llama.c: `wick run llama`: text from Llama, Mistral and Qwen models. */
#include <stdio.h>
#include <stdlib.h>
#include "error.h"
#include "generate.h"
#include "progress.h"
#include "run.h"

static const char help[] = "usage: wick run llama DIR --prompt TEXT\n\n" RUN_OPTIONS_HELP;

int run_llama(int argc, char **argv)
{
    run_options o = {0};
    const char *size = NULL, *plen="2048", *tok="128"; 
    const arg_option options[] = {RUN_OPTIONS(o), {"random",.value=&size},{"prompt-tokens",.value=&plen},{"tokens",.value=&tok},{0}};
    int status = args_parse(help, options, &argc, argv);
    if (status == ARGS_GO)
        status = run_begin(argv[0], &o);
    if (status != ARGS_GO) return status;
    wm_llama_config c;
    if (!wm_llama_named_config(size, &c)) return run_error();
    wm_llama *m = wm_llama_random(&c, o.device, o.dtype, 1);
    if (!m) return run_error();
    int64_t n = atol(plen); 
    uint32_t *ids = malloc((size_t)n*4);
    for (int64_t i=0;i<n;i++) ids[i]=(uint32_t)(i*7919%c.vocab);
    for (int rep=0;rep<3;rep++){
    wm_generate_stats st;
    if (!wm_generate(m,1,&(wm_prompt){ids,n},&(wm_generate_options){.most=atol(tok),.ignore_stops=true},&st)) return run_error();
    int64_t per; wm_llama_bytes(m,&per);
    double ms=st.decode_seconds/(st.new_tokens-1)*1e3;
    printf("prompt %lld in %.2f ms; %.3f ms a token, %.1f tok/s, %.1f GB/s of weights\n",(long long)n,st.prompt_seconds*1e3,ms,1e3/ms,per/ms*1e-6);
    }
    wk_memory_stats ms; wk_memory(o.device,&ms); printf("peak %.1f MB weights %.1f\n", ms.peak*1e-6, wm_llama_bytes(m,NULL)*1e-6);
    wm_llama_free(m); free(ids);
    return 0;
}
