/* errors.c: a chain of calls is checked once, at its end; the first mistake is the one that is told. */
#include <stdio.h>
#include <string.h>
#include <wick/wick.h>

int main(void)
{
    wk_device *cpu = wk_device_open("cpu");
    wk_scope_begin();
    wk_tensor *a = wk_fill(cpu, WK_F32, 2, (int64_t[]){2, 3}, 1);
    wk_tensor *b = wk_fill(cpu, WK_F32, 2, (int64_t[]){2, 4}, 1);
    wk_tensor *y = wk_relu(wk_add(wk_matmul(a, b), a)); /* matmul fails, the rest does nothing */
    printf("y is %s; %s: %s\n", y ? "there" : "NULL", wk_status_name(wk_error_status()), wk_error());
    int told = !y && wk_error_status() == WK_ERR_SHAPE && strstr(wk_error(), "matmul");
    wk_error_clear();
    wk_scope_end();
    return told ? 0 : 1;
}
