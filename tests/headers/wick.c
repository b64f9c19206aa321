/* wick.c: the public header, alone and twice, in old C and in C++; nothing here runs. */
#include <wick/wick.h>
#include <wick/wick.h>

int main(void)
{
    wk_status status = WK_OK;
    wk_dtype dtype = WK_F32;
    wk_tensor *(*op)(const wk_tensor *) = wk_relu;
    return op && wk_version() && wk_status_name(status) && wk_dtype_size(dtype) == 4 ? 0 : 1;
}
