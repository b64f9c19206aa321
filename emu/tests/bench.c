/* bench.c - how fast the emulator is: calls a second, and wave-instructions a second in a few usual kernels, in
 * processor time.  Not a test.  Instructions are counted in a first run of the program, with ROCM_EMU_PROFILE. */
#include "rtc.h"
#include <sys/wait.h>
#include <unistd.h>

static const char *source =
    "#define K extern \"C\" __global__ __launch_bounds__(256) void\n"
    "K empty() {}\n"
    "K add(const float *x, const float *y, float *z, int n) {\n"
    "  int i = blockIdx.x * 256 + threadIdx.x; if (i < n) z[i] = x[i] + y[i]; }\n"
    "K strided(const float *x, const float *y, float *z, int n) {\n" /* any layout: indices from divisions */
    "  int i = blockIdx.x * 256 + threadIdx.x; if (i >= n) return;\n"
    "  int a = i % 100, b = i / 100 % 100, c = i / 10000; z[i] = x[(a * 100 + b) * 100 + c] + y[i]; }\n"
    "K map(const _Float16 *x, const float *y, float *z, int n) {\n"
    "  int i = blockIdx.x * 256 + threadIdx.x; if (i < n) z[i] = tanhf((float)x[i]) * expf(y[i]); }\n"
    "K rows(const float *x, const float *y, float *z, int n) {\n" /* softmax of a row */
    "  __shared__ float part[16]; float s = 0; const float *r = x + (size_t)blockIdx.x * n;\n"
    "  for (int i = threadIdx.x; i < n; i += 256) s += expf(r[i]);\n"
    "  for (int o = warpSize / 2; o; o /= 2) s += __shfl_xor(s, o);\n"
    "  if (threadIdx.x % warpSize == 0) part[threadIdx.x / warpSize] = s;\n"
    "  __syncthreads(); s = 0; for (int i = 0; i < 256 / warpSize; i++) s += part[i];\n"
    "  for (int i = threadIdx.x; i < n; i += 256) z[(size_t)blockIdx.x * n + i] = expf(r[i]) / s; }\n"
    "K gemm(const float *x, const float *y, float *z, int n) {\n" /* 64 x 64 of z, 4 x 4 a work-item */
    "  __shared__ float a[16][68], b[16][64]; float c[4][4] = {}; int t = threadIdx.x, i = t / 16 * 4, j = t % 16 * "
    "4;\n"
    "  int i0 = blockIdx.y * 64, j0 = blockIdx.x * 64;\n"
    "  for (int k0 = 0; k0 < n; k0 += 16) {\n"
    "    for (int e = t; e < 1024; e += 256) a[e % 16][e / 16] = x[(i0 + e / 16) * n + k0 + e % 16],\n"
    "      b[e / 64][e % 64] = y[(k0 + e / 64) * n + j0 + e % 64];\n"
    "    __syncthreads();\n"
    "    for (int k = 0; k < 16; k++) for (int u = 0; u < 4; u++) for (int v = 0; v < 4; v++) c[u][v] += a[k][i + u] * "
    "b[k][j + v];\n"
    "    __syncthreads(); }\n"
    "  for (int u = 0; u < 4; u++) for (int v = 0; v < 4; v++) z[(i0 + i + u) * n + j0 + j + v] = c[u][v]; }\n";
static const struct {
    const char *name;
    unsigned grid[2];
    int n, times;
} kernels[] = {{"add", {3907, 1}, 1000000, 20},
               {"strided", {3907, 1}, 1000000, 15},
               {"map", {3907, 1}, 1000000, 10},
               {"rows", {1000, 1}, 1000, 10},
               {"gemm", {4, 4}, 256, 20}};
enum { KERNELS = sizeof kernels / sizeof *kernels };

static double cpu_ms(void)
{
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec * 1e3 + (double)t.tv_nsec * 1e-6;
}
static void launch(hipFunction_t f, unsigned gx, unsigned gy, void **args)
{
    CHECK(hipModuleLaunchKernel(f, gx, gy, 1, 256, 1, 1, 0, NULL, args, NULL));
}

static void calls(hipModule_t m)
{
    hipFunction_t f = function(m, "empty"), add = function(m, "add");
    void *x = device_alloc(4096), *p;
    int n = 256, count = 20000;
    double t = cpu_ms();
    for (int i = 0; i < count; i++)
        launch(f, 1, 1, NULL);
    printf("%-44s %9.0f /s\n", "empty kernel, one group", count / (cpu_ms() - t) * 1e3);
    t = cpu_ms();
    for (int i = 0; i < count; i++)
        launch(f, 4, 1, NULL);
    printf("%-44s %9.0f /s\n", "empty kernel, four groups", count / (cpu_ms() - t) * 1e3);
    t = cpu_ms();
    for (int i = 0; i < count; i++)
        launch(add, 1, 1, (void *[]){&x, &x, &x, &n});
    printf("%-44s %9.0f /s\n", "add, one group", count / (cpu_ms() - t) * 1e3);
    t = cpu_ms();
    for (int i = 0; i < count; i++) {
        CHECK(hipMalloc(&p, 1000));
        CHECK(hipFree(p));
    }
    printf("%-44s %9.0f /s\n", "hipMalloc and hipFree of 1000 bytes", count / (cpu_ms() - t) * 1e3);
    count = 500;
    t = cpu_ms();
    for (int i = 0; i < count; i++) {
        CHECK(hipMalloc(&p, 4 << 20));
        CHECK(hipFree(p));
    }
    printf("%-44s %9.0f /s\n", "hipMalloc and hipFree of 4 MB", count / (cpu_ms() - t) * 1e3);
}

int main(int argc, char **argv)
{
    bool counting = getenv("ROCM_EMU_PROFILE");
    double insts[KERNELS] = {0};
    if (!counting) {
        char file[64], line[4096];
        int status;
        snprintf(file, sizeof file, "/tmp/rocm-emu-bench-%d", (int)getpid());
        if (!fork()) {
            setenv("ROCM_EMU_PROFILE", file, 1);
            execv("/proc/self/exe", argv);
            _exit(2);
        }
        wait(&status);
        FILE *f = fopen(file, "r");
        while (f && fgets(line, sizeof line, f))
            for (int i = 0; i < KERNELS; i++) {
                char find[64];
                snprintf(find, sizeof find, "{\"kernel\": \"%s\"", kernels[i].name);
                if (strstr(line, find))
                    insts[i] = atof(strstr(line, "\"total\": ") + 9);
            }
        if (f)
            fclose(f);
        unlink(file);
    }
    hipModule_t m = compile(source);
    size_t bytes = 4 << 20;
    float *h = rnd_floats(bytes / 4);
    void *x = to_device(h, bytes), *y = to_device(h, bytes), *z = device_alloc(bytes);
    if (!counting && argc < 2)
        calls(m);
    for (int i = 0; i < KERNELS; i++) {
        if (argc > 1 && strcmp(argv[1], kernels[i].name))
            continue;
        hipFunction_t f = function(m, kernels[i].name);
        int n = kernels[i].n, times = counting ? 1 : argc > 2 ? atoi(argv[2]) : kernels[i].times;
        void *args[] = {&x, &y, &z, &n};
        launch(f, 1, 1, args); /* decodes; counted with the rest */
        double best = INFINITY;
        for (int k = 0; k < times; k++) {
            double t = cpu_ms();
            launch(f, kernels[i].grid[0], kernels[i].grid[1], args);
            CHECK(hipDeviceSynchronize());
            t = cpu_ms() - t;
            best = t < best ? t : best;
        }
        if (!counting)
            printf("%-44s %9.2f ms %7.1f M wave-instructions/s\n", kernels[i].name, best, insts[i] / best * 1e-3);
    }
    return 0;
}
