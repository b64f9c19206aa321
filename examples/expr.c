/* expr.c: gelu(a*b + c)*d as one op: every tensor is read once, and nothing but the result is written. */
#include <math.h>
#include <stdio.h>
#include <wick/wick.h>

int main(void)
{
    const float a[] = {1, 2, 3, 4, 5, 6}, b[] = {0.5f, -0.5f, 0.25f}, c[] = {0.1f}, d[] = {2, 3};
    float fused[6], apart[6];
    wk_device *device = wk_device_open("auto");
    wk_expr *e = wk_expr_compile("gelu(a*b + c)*d"); /* kept by the program, run as often as it likes */
    wk_scope_begin();
    const wk_tensor *in[] = {/* in the order of their names: a, b, c, d */
                             wk_from_host(device, WK_F32, 2, (int64_t[]){2, 3}, a),
                             wk_from_host(device, WK_F32, 1, (int64_t[]){3}, b),
                             wk_from_host(device, WK_F32, 0, NULL, c),
                             wk_from_host(device, WK_F32, 2, (int64_t[]){2, 1}, d)};
    wk_status status = wk_to_host(wk_expr_run(e, in, wk_expr_inputs(e)), fused);
    if (status == WK_OK) /* the same by four ops */
        status = wk_to_host(wk_mul(wk_gelu(wk_add(wk_mul(in[0], in[1]), in[2])), in[3]), apart);
    wk_scope_end();
    wk_expr_drop(e);
    for (int i = 0; i < 6 && status == WK_OK; i++) {
        printf("%s%.4f", i ? " " : "", fused[i]);
        if (fabsf(fused[i] - apart[i]) > 1e-5f)
            return 1;
    }
    printf("\n");
    if (status != WK_OK)
        fprintf(stderr, "%s\n", wk_error());
    return status != WK_OK;
}
