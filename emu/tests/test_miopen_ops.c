/* test_miopen_ops.c - MIOpen operations other than convolution, against naive CPU loops.
 * With arguments, runs only the cases named. */
#include "miopen_common.h"

static const float one = 1, zero = 0;
#define COUNT(a) (sizeof(a) / sizeof *(a))

/* ---- pooling ------------------------------------------------------------------------------------------------ */
static void pooling(void)
{
    static const struct {
        miopenPoolingMode_t mode;
        const char *name;
    } modes[] = {{miopenPoolingMax, "max"},
                 {miopenPoolingAverage, "average"},
                 {miopenPoolingAverageInclusive, "average inclusive"}};
    enum { N = 2, C = 3, H = 9, W = 11, WIN = 3, PAD = 1, STRIDE = 2, OH = 5, OW = 6 };
    size_t nx = N * C * H * W, ny = N * C * OH * OW;
    miopenTensorDescriptor_t xd = tensor4(miopenFloat, N, C, H, W), yd = tensor4(miopenFloat, N, C, OH, OW);
    float *x = rnd_floats(nx), *dy = rnd_floats(ny);
    void *gx = to_device(x, bytes4(nx)), *gdy = to_device(dy, bytes4(ny));
    for (size_t m = 0; m < COUNT(modes); m++) {
        char fwd[64], bwd[64];
        snprintf(fwd, sizeof fwd, "pooling %s forward", modes[m].name);
        snprintf(bwd, sizeof bwd, "pooling %s backward", modes[m].name);
        float *y = calloc(ny, 4), *dx = calloc(nx, 4);
        for (int p = 0; p < N * C; p++)
            for (int oy = 0; oy < OH; oy++)
                for (int ox = 0; ox < OW; ox++) {
                    int o = (p * OH + oy) * OW + ox, best = -1, n = 0;
                    double sum = 0;
                    for (int pass = 0; pass < 2; pass++)
                        for (int r = 0; r < WIN; r++)
                            for (int s = 0; s < WIN; s++) {
                                int iy = oy * STRIDE - PAD + r, ix = ox * STRIDE - PAD + s;
                                if (iy < 0 || iy >= H || ix < 0 || ix >= W)
                                    continue;
                                int i = (p * H + iy) * W + ix;
                                if (!pass) {
                                    if (best < 0 || x[i] > x[best])
                                        best = i;
                                    sum += x[i], n++;
                                } else if (modes[m].mode != miopenPoolingMax)
                                    dx[i] += dy[o] / (float)(modes[m].mode == miopenPoolingAverage ? n : WIN * WIN);
                            }
                    if (modes[m].mode == miopenPoolingMax)
                        y[o] = x[best], dx[best] += dy[o];
                    else
                        y[o] = (float)(sum / (modes[m].mode == miopenPoolingAverage ? n : WIN * WIN));
                }
        miopenPoolingDescriptor_t pd;
        size_t ws = 0;
        case_name = fwd;
        begin();
        TRY(miopenCreatePoolingDescriptor(&pd));
        TRY(miopenSet2dPoolingDescriptor(pd, modes[m].mode, WIN, WIN, PAD, PAD, STRIDE, STRIDE));
        TRY(miopenPoolingGetWorkSpaceSizeV2(pd, yd, &ws));
        void *gy = device_alloc(bytes4(ny)), *gdx = device_alloc(bytes4(nx)), *work = device_alloc(ws);
        TRY(miopenPoolingForward(handle, pd, &one, xd, gx, &zero, yd, gy, true, work, ws));
        TRY(hipDeviceSynchronize());
        report_error(fwd, max_error(to_host(gy, bytes4(ny)), y, ny), 1e-6);
        case_name = bwd;
        begin();
        TRY(miopenPoolingBackward(handle, pd, &one, yd, gy, yd, gdy, xd, gx, &zero, xd, gdx, work));
        TRY(hipDeviceSynchronize());
        report_error(bwd, max_error(to_host(gdx, bytes4(nx)), dx, nx), 1e-6);
    }
}

/* ---- activation ----------------------------------------------------------------------------------------------- */
static double act(miopenActivationMode_t m, double x)
{
    switch (m) {
    case miopenActivationLOGISTIC: return 1 / (1 + exp(-x));
    case miopenActivationTANH: return tanh(x);
    case miopenActivationRELU: return x > 0 ? x : 0;
    case miopenActivationSOFTRELU: return log1p(exp(x));
    case miopenActivationABS: return fabs(x);
    case miopenActivationLEAKYRELU: return x > 0 ? x : 0.1 * x;
    case miopenActivationELU: return x > 0 ? x : 0.1 * expm1(x);
    default: return x;
    }
}
static void activation(void)
{
    static const struct {
        miopenActivationMode_t mode;
        const char *name;
    } modes[] = {{miopenActivationRELU, "relu"}, {miopenActivationLOGISTIC, "logistic"},
                 {miopenActivationTANH, "tanh"}, {miopenActivationSOFTRELU, "softrelu"},
                 {miopenActivationABS, "abs"},   {miopenActivationLEAKYRELU, "leaky relu"},
                 {miopenActivationELU, "elu"}};
    enum { N = 3 * 5 * 7 * 9 };
    miopenTensorDescriptor_t d = tensor4(miopenFloat, 3, 5, 7, 9);
    float *x = rnd_floats(N), *dy = rnd_floats(N), *want = malloc(N * 4);
    for (int i = 0; i < N; i++)
        x[i] *= 4;
    void *gx = to_device(x, N * 4), *gdy = to_device(dy, N * 4), *gy = device_alloc(N * 4), *gdx = device_alloc(N * 4);
    for (size_t m = 0; m < COUNT(modes); m++) {
        char name[64];
        snprintf(name, sizeof name, "activation %s forward", modes[m].name);
        case_name = name;
        begin();
        miopenActivationDescriptor_t a;
        double alpha = modes[m].mode == miopenActivationTANH ? 1 : 0.1, beta = 1;
        TRY(miopenCreateActivationDescriptor(&a));
        TRY(miopenSetActivationDescriptor(a, modes[m].mode, alpha, beta, 1));
        TRY(miopenActivationForward(handle, a, &one, d, gx, &zero, d, gy));
        TRY(hipDeviceSynchronize());
        for (int i = 0; i < N; i++)
            want[i] = (float)act(modes[m].mode, x[i]);
        report_error(name, max_error(to_host(gy, N * 4), want, N), 2e-6);
        snprintf(name, sizeof name, "activation %s backward", modes[m].name);
        begin();
        TRY(miopenActivationBackward(handle, a, &one, d, gy, d, gdy, d, gx, &zero, d, gdx));
        TRY(hipDeviceSynchronize());
        for (int i = 0; i < N; i++) {
            double h = 1e-5;
            want[i] = (float)(dy[i] * (act(modes[m].mode, x[i] + h) - act(modes[m].mode, x[i] - h)) / (2 * h));
        }
        report_error(name, max_error(to_host(gdx, N * 4), want, N), 1e-4);
    }
}

/* ---- softmax ----------------------------------------------------------------------------------------------------- */
static void softmax(void)
{
    enum { N = 3, C = 10, H = 4, W = 5, HW = H * W, ALL = N * C * HW };
    static const struct {
        miopenSoftmaxAlgorithm_t algo;
        miopenSoftmaxMode_t mode;
        const char *name;
    } kinds[] = {{MIOPEN_SOFTMAX_FAST, MIOPEN_SOFTMAX_MODE_CHANNEL, "fast, channel"},
                 {MIOPEN_SOFTMAX_ACCURATE, MIOPEN_SOFTMAX_MODE_CHANNEL, "accurate, channel"},
                 {MIOPEN_SOFTMAX_ACCURATE, MIOPEN_SOFTMAX_MODE_INSTANCE, "accurate, instance"},
                 {MIOPEN_SOFTMAX_LOG, MIOPEN_SOFTMAX_MODE_CHANNEL, "log, channel"}};
    miopenTensorDescriptor_t d = tensor4(miopenFloat, N, C, H, W);
    float *x = rnd_floats(ALL), *dy = rnd_floats(ALL), *y = malloc(ALL * 4), *dx = malloc(ALL * 4);
    void *gx = to_device(x, ALL * 4), *gdy = to_device(dy, ALL * 4), *gy = device_alloc(ALL * 4),
         *gdx = device_alloc(ALL * 4);
    for (size_t k = 0; k < COUNT(kinds); k++) {
        bool inst = kinds[k].mode == MIOPEN_SOFTMAX_MODE_INSTANCE, lg = kinds[k].algo == MIOPEN_SOFTMAX_LOG;
        int groups = inst ? N : N * HW, len = inst ? C * HW : C, step = inst ? 1 : HW;
        for (int g = 0; g < groups; g++) {
            int at = inst ? g * C * HW : g / HW * C * HW + g % HW;
            double z = 0, dot = 0, sum = 0;
            for (int i = 0; i < len; i++)
                z += exp(x[at + i * step]);
            for (int i = 0; i < len; i++) {
                int j = at + i * step;
                double p = exp(x[j]) / z;
                y[j] = (float)(lg ? log(p) : p);
                dot += p * dy[j], sum += dy[j];
            }
            for (int i = 0; i < len; i++) {
                int j = at + i * step;
                double p = exp(x[j]) / z;
                dx[j] = (float)(lg ? dy[j] - p * sum : p * (dy[j] - dot));
            }
        }
        char name[64];
        snprintf(name, sizeof name, "softmax v2 forward (%s)", kinds[k].name);
        case_name = name;
        begin();
        TRY(miopenSoftmaxForward_V2(handle, &one, d, gx, &zero, d, gy, kinds[k].algo, kinds[k].mode));
        TRY(hipDeviceSynchronize());
        report_error(name, max_error(to_host(gy, ALL * 4), y, ALL), 1e-6);
        snprintf(name, sizeof name, "softmax v2 backward (%s)", kinds[k].name);
        begin();
        TRY(miopenSoftmaxBackward_V2(handle, &one, d, gy, d, gdy, &zero, d, gdx, kinds[k].algo, kinds[k].mode));
        TRY(hipDeviceSynchronize());
        report_error(name, max_error(to_host(gdx, ALL * 4), dx, ALL), 1e-5);
    }
}

/* ---- batch normalisation -------------------------------------------------------------------------------------------- */
static void batchnorm(void)
{
    enum { N = 4, C = 5, H = 6, W = 7, HW = H * W, ALL = N * C * HW };
    for (int spatial = 1; spatial >= 0; spatial--) {
        miopenBatchNormMode_t mode = spatial ? miopenBNSpatial : miopenBNPerActivation;
        const char *what = spatial ? "spatial" : "per activation";
        int params = spatial ? C : C * HW, count = spatial ? N * HW : N;
        double eps = 1e-5;
        char name[80];
        miopenTensorDescriptor_t d = tensor4(miopenFloat, N, C, H, W), bd;
        CHECK(miopenCreateTensorDescriptor(&bd));
        CHECK(miopenDeriveBNTensorDescriptor(bd, d, mode));
        float *x = rnd_floats(ALL), *dy = rnd_floats(ALL), *scale = rnd_floats((size_t)params),
              *bias = rnd_floats((size_t)params), *rm = rnd_floats((size_t)params), *rv = rnd_floats((size_t)params),
              *y = malloc(ALL * 4), *dx = malloc(ALL * 4);
        float *inf = malloc(ALL * 4), *ds = malloc((size_t)params * 4), *db = malloc((size_t)params * 4),
              *nrm = malloc((size_t)params * 4), *nrv = malloc((size_t)params * 4);
        for (int i = 0; i < params; i++)
            rv[i] = fabsf(rv[i]) + 0.5f;
#define P(n, c, i) (((n)*C + (c)) * HW + (i))
        for (int p = 0; p < params; p++) {
            double m = 0, v = 0, sdy = 0, sdyx = 0;
            int c = spatial ? p : p / HW, i0 = spatial ? 0 : p % HW, i1 = spatial ? HW : i0 + 1;
            for (int n = 0; n < N; n++)
                for (int i = i0; i < i1; i++)
                    m += x[P(n, c, i)];
            m /= count;
            for (int n = 0; n < N; n++)
                for (int i = i0; i < i1; i++)
                    v += (x[P(n, c, i)] - m) * (x[P(n, c, i)] - m);
            v /= count;
            double inv = 1 / sqrt(v + eps);
            for (int n = 0; n < N; n++)
                for (int i = i0; i < i1; i++) {
                    int at = P(n, c, i);
                    double xh = (x[at] - m) * inv;
                    y[at] = (float)(scale[p] * xh + bias[p]);
                    inf[at] = (float)(scale[p] * (x[at] - rm[p]) / sqrt(rv[p] + eps) + bias[p]);
                    sdy += dy[at], sdyx += dy[at] * xh;
                }
            ds[p] = (float)sdyx, db[p] = (float)sdy;
            nrm[p] = (float)(0.9 * rm[p] + 0.1 * m);
            nrv[p] = (float)(0.9 * rv[p] + 0.1 * v * count / (count - 1));
            for (int n = 0; n < N; n++)
                for (int i = i0; i < i1; i++) {
                    int at = P(n, c, i);
                    dx[at] = (float)(scale[p] * inv / count * (count * dy[at] - sdy - (x[at] - m) * inv * sdyx));
                }
        }
        size_t pb = bytes4((size_t)params);
        void *gx = to_device(x, ALL * 4), *gdy = to_device(dy, ALL * 4), *gs = to_device(scale, pb),
             *gb = to_device(bias, pb), *grm = to_device(rm, pb), *grv = to_device(rv, pb), *gy = device_alloc(ALL * 4),
             *gdx = device_alloc(ALL * 4), *gm = device_alloc(pb), *gi = device_alloc(pb), *gds = device_alloc(pb),
             *gdb = device_alloc(pb);
        float a = 1, b = 0;
        snprintf(name, sizeof name, "batchnorm inference (%s)", what);
        case_name = name;
        begin();
        TRY(miopenBatchNormalizationForwardInference(handle, mode, &a, &b, d, gx, d, gy, bd, gs, gb, grm, grv, eps));
        TRY(hipDeviceSynchronize());
        report_error(name, max_error(to_host(gy, ALL * 4), inf, ALL), 1e-5);
        snprintf(name, sizeof name, "batchnorm training forward (%s)", what);
        begin();
        TRY(miopenBatchNormalizationForwardTraining(handle, mode, &a, &b, d, gx, d, gy, bd, gs, gb, 0.1, grm, grv, eps,
                                                    gm, gi));
        TRY(hipDeviceSynchronize());
        report_error(name,
                     max_error(to_host(gy, ALL * 4), y, ALL) + max_error(to_host(grm, pb), nrm, (size_t)params) +
                         max_error(to_host(grv, pb), nrv, (size_t)params),
                     2e-5);
        snprintf(name, sizeof name, "batchnorm backward (%s)", what);
        begin();
        TRY(miopenBatchNormalizationBackward(handle, mode, &a, &b, &a, &b, d, gx, d, gdy, d, gdx, bd, gs, gds, gdb, eps,
                                             gm, gi));
        TRY(hipDeviceSynchronize());
        report_error(name,
                     max_error(to_host(gdx, ALL * 4), dx, ALL) + max_error(to_host(gds, pb), ds, (size_t)params) +
                         max_error(to_host(gdb, pb), db, (size_t)params),
                     1e-4);
    }
}

/* ---- LRN -------------------------------------------------------------------------------------------------------------- */
static void lrn(void)
{
    enum { N = 2, C = 8, H = 5, W = 6, HW = H * W, ALL = N * C * HW, WIN = 5 };
    double alpha = 0.5, beta = 0.75, k = 2;
    miopenTensorDescriptor_t d = tensor4(miopenFloat, N, C, H, W);
    miopenLRNDescriptor_t l;
    float *x = rnd_floats(ALL), *want = malloc(ALL * 4);
    void *gx = to_device(x, ALL * 4), *gy = device_alloc(ALL * 4);
    case_name = "LRN cross-channel forward";
    for (int n = 0; n < N; n++)
        for (int c = 0; c < C; c++)
            for (int i = 0; i < HW; i++) {
                double s = 0;
                for (int q = c - WIN / 2; q <= c + WIN / 2; q++)
                    if (q >= 0 && q < C)
                        s += (double)x[P(n, q, i)] * x[P(n, q, i)];
                want[P(n, c, i)] = (float)(x[P(n, c, i)] * pow(k + alpha / WIN * s, -beta));
            }
    begin();
    size_t ws = 0;
    TRY(miopenCreateLRNDescriptor(&l));
    TRY(miopenSetLRNDescriptor(l, miopenLRNCrossChannel, WIN, alpha, beta, k));
    TRY(miopenLRNGetWorkSpaceSize(d, &ws));
    void *work = device_alloc(ws);
    TRY(miopenLRNForward(handle, l, &one, d, gx, &zero, d, gy, true, work));
    TRY(hipDeviceSynchronize());
    report_error(case_name, max_error(to_host(gy, ALL * 4), want, ALL), 1e-5);
}

/* ---- LSTM ---------------------------------------------------------------------------------------------------------------- */
static double sigmoid(double x) { return 1 / (1 + exp(-x)); }
static void lstm(void)
{
    enum { T = 4, B = 3, IN = 5, HID = 6 };
    case_name = "LSTM forward inference";
    /* packed weights: W[4 HID][IN], R[4 HID][HID], two biases [4 HID]; gates in the order i f o g */
    size_t nw = 4 * HID * IN + 4 * HID * HID + 8 * HID;
    float *x = rnd_floats(T * B * IN), *w = rnd_floats(nw), *h0 = rnd_floats(B * HID), *c0 = rnd_floats(B * HID);
    float want[T * B * HID];
    double h[B][HID], c[B][HID];
    for (int b = 0; b < B; b++)
        for (int j = 0; j < HID; j++)
            h[b][j] = h0[b * HID + j], c[b][j] = c0[b * HID + j];
    for (int t = 0; t < T; t++)
        for (int b = 0; b < B; b++) {
            double g[4][HID];
            for (int q = 0; q < 4; q++)
                for (int j = 0; j < HID; j++) {
                    int row = q * HID + j;
                    double s = w[4 * HID * IN + 4 * HID * HID + row] + w[4 * HID * IN + 4 * HID * HID + 4 * HID + row];
                    for (int i = 0; i < IN; i++)
                        s += (double)w[row * IN + i] * x[(t * B + b) * IN + i];
                    for (int i = 0; i < HID; i++)
                        s += (double)w[4 * HID * IN + row * HID + i] * h[b][i];
                    g[q][j] = s;
                }
            for (int j = 0; j < HID; j++) {
                c[b][j] = sigmoid(g[1][j]) * c[b][j] + sigmoid(g[0][j]) * tanh(g[3][j]);
                h[b][j] = sigmoid(g[2][j]) * tanh(c[b][j]);
                want[(t * B + b) * HID + j] = (float)h[b][j];
            }
        }
    begin();
    miopenRNNDescriptor_t rd;
    miopenTensorDescriptor_t xd[T], yd[T], wd, hd = tensor_nd(miopenFloat, 3, (int[]){1, B, HID});
    for (int t = 0; t < T; t++)
        xd[t] = tensor_nd(miopenFloat, 2, (int[]){B, IN}), yd[t] = tensor_nd(miopenFloat, 2, (int[]){B, HID});
    TRY(miopenCreateRNNDescriptor(&rd));
    TRY(miopenSetRNNDescriptor(rd, HID, 1, miopenRNNlinear, miopenRNNunidirection, miopenLSTM, miopenRNNwithBias,
                               miopenRNNdefault, miopenFloat));
    size_t wbytes = 0, ws = 0;
    TRY(miopenGetRNNParamsSize(handle, rd, xd[0], &wbytes, miopenFloat));
    if (wbytes != bytes4(nw)) {
        report(case_name, false, "unexpected weight size");
        return;
    }
    CHECK(miopenCreateTensorDescriptor(&wd));
    TRY(miopenGetRNNParamsDescriptor(handle, rd, xd[0], wd, miopenFloat));
    TRY(miopenGetRNNWorkspaceSize(handle, rd, T, xd, &ws));
    void *gx = to_device(x, T * B * IN * 4), *gw = to_device(w, wbytes), *gh = to_device(h0, B * HID * 4),
         *gc = to_device(c0, B * HID * 4), *gy = device_alloc(sizeof want), *ghy = device_alloc(B * HID * 4),
         *gcy = device_alloc(B * HID * 4), *work = device_alloc(ws);
    TRY(miopenRNNForwardInference(handle, rd, T, xd, gx, hd, gh, hd, gc, wd, gw, yd, gy, hd, ghy, hd, gcy, work, ws));
    TRY(hipDeviceSynchronize());
    report_error(case_name, max_error(to_host(gy, sizeof want), want, T * B * HID), 1e-5);
}

/* ---- dropout --------------------------------------------------------------------------------------------------------------- */
static void dropout(void)
{
    enum { N = 4 * 8 * 16 * 16 };
    case_name = "dropout forward and backward";
    float p = 0.3f, *x = rnd_floats(N), *dy = rnd_floats(N);
    begin();
    miopenDropoutDescriptor_t dd;
    miopenTensorDescriptor_t d = tensor4(miopenFloat, 4, 8, 16, 16);
    size_t states = 0, reserve = 0;
    TRY(miopenCreateDropoutDescriptor(&dd));
    TRY(miopenDropoutGetStatesSize(handle, &states));
    void *gstates = device_alloc(states);
    TRY(miopenSetDropoutDescriptor(dd, handle, p, gstates, states, 1234, false, false, MIOPEN_RNG_PSEUDO_XORWOW));
    TRY(miopenDropoutGetReserveSpaceSize(d, &reserve));
    void *gx = to_device(x, N * 4), *gdy = to_device(dy, N * 4), *gy = device_alloc(N * 4), *gdx = device_alloc(N * 4),
         *gr = device_alloc(reserve);
    TRY(miopenDropoutForward(handle, dd, d, d, gx, d, gy, gr, reserve));
    TRY(miopenDropoutBackward(handle, dd, d, d, gdy, d, gdx, gr, reserve));
    TRY(hipDeviceSynchronize());
    float *y = to_host(gy, N * 4), *dx = to_host(gdx, N * 4);
    int kept = 0, bad = 0;
    for (int i = 0; i < N; i++) {
        bool keep = y[i] != 0;
        kept += keep;
        bad += keep && fabsf(y[i] - x[i] / (1 - p)) > 1e-5f;
        bad += fabsf(dx[i] - (keep ? dy[i] / (1 - p) : 0)) > 1e-5f;
    }
    char s[64];
    snprintf(s, sizeof s, "kept %.3f of the values, %d wrong", (double)kept / N, bad);
    report(case_name, !bad && fabs((double)kept / N - 0.7) < 0.02, s);
}

/* ---- CTC loss ---------------------------------------------------------------------------------------------------------------- */
enum { CT = 6, CN = 2, CC = 5 };
static const int ctc_labels[] = {1, 2, 2, 3, 1}, ctc_len[] = {3, 2}, ctc_in[] = {6, 5};
static double ctc_loss(const double *logit, int n) /* label 0 is the blank */
{
    int S = 2 * ctc_len[n] + 1, base = n ? ctc_len[0] : 0, ext[16];
    double a[16] = {0}, loss = 0;
    for (int s = 0; s < S; s++)
        ext[s] = s & 1 ? ctc_labels[base + s / 2] : 0;
    for (int t = 0; t < ctc_in[n]; t++) {
        double p[CC], z = 0, b[16] = {0}, sum = 0;
        for (int c = 0; c < CC; c++)
            z += p[c] = exp(logit[(t * CN + n) * CC + c]);
        for (int s = 0; s < S; s++) {
            if (!t)
                b[s] = s < 2;
            else {
                b[s] = a[s] + (s ? a[s - 1] : 0);
                if (s > 1 && ext[s] && ext[s] != ext[s - 2])
                    b[s] += a[s - 2];
            }
            b[s] *= p[ext[s]] / z;
            sum += b[s];
        }
        for (int s = 0; s < S; s++)
            a[s] = b[s] / sum;
        loss -= log(sum);
    }
    return loss - log(a[S - 1] + a[S - 2]);
}
static void ctc(void)
{
    case_name = "CTC loss and gradient";
    enum { ALL = CT * CN * CC };
    float *x = rnd_floats(ALL), want[ALL], wloss[CN];
    double xd[ALL];
    for (int i = 0; i < ALL; i++)
        xd[i] = x[i];
    for (int n = 0; n < CN; n++)
        wloss[n] = (float)ctc_loss(xd, n);
    for (int i = 0; i < ALL; i++) {
        int n = i / CC % CN;
        double h = 1e-5, keep = xd[i];
        xd[i] = keep + h;
        double up = ctc_loss(xd, n);
        xd[i] = keep - h;
        want[i] = (float)((up - ctc_loss(xd, n)) / (2 * h));
        xd[i] = keep;
    }
    begin();
    miopenCTCLossDescriptor_t cd;
    miopenTensorDescriptor_t d = tensor_nd(miopenFloat, 3, (int[]){CT, CN, CC});
    size_t ws = 0;
    TRY(miopenCreateCTCLossDescriptor(&cd));
    TRY(miopenSetCTCLossDescriptor(cd, miopenFloat, 0, true));
    TRY(miopenGetCTCLossWorkspaceSize(handle, d, d, ctc_labels, ctc_len, ctc_in, MIOPEN_CTC_LOSS_ALGO_DETERMINISTIC, cd,
                                      &ws));
    void *gx = to_device(x, sizeof want), *gl = device_alloc(sizeof wloss), *gg = device_alloc(sizeof want),
         *work = device_alloc(ws);
    CHECK(hipMemset(gg, 0, sizeof want));
    TRY(miopenCTCLoss(handle, d, gx, ctc_labels, ctc_len, ctc_in, gl, d, gg, MIOPEN_CTC_LOSS_ALGO_DETERMINISTIC, cd,
                      work, ws));
    TRY(hipDeviceSynchronize());
    double el = max_error(to_host(gl, sizeof wloss), wloss, CN), eg = max_error(to_host(gg, sizeof want), want, ALL);
    char s[80];
    snprintf(s, sizeof s, "loss error %.2e, gradient error %.2e", el, eg);
    report(case_name, el < 1e-4 && eg < 1e-3, s);
}

/* ---- reduction -------------------------------------------------------------------------------------------------------------------- */
static void reduce(void)
{
    static const struct {
        miopenReduceTensorOp_t op;
        const char *name;
    } ops[] = {{MIOPEN_REDUCE_TENSOR_ADD, "add"},
               {MIOPEN_REDUCE_TENSOR_MAX, "max"},
               {MIOPEN_REDUCE_TENSOR_AVG, "avg"},
               {MIOPEN_REDUCE_TENSOR_NORM2, "norm2"},
               {MIOPEN_REDUCE_TENSOR_MUL, "mul"}};
    enum { N = 4, C = 6, H = 5, W = 7, HW = H * W, ALL = N * C * HW };
    float *x = rnd_floats(ALL), want[C];
    for (int i = 0; i < ALL; i++)
        x[i] = 1 + 0.2f * x[i]; /* so that the product stays of order one */
    void *gx = to_device(x, ALL * 4), *gy = device_alloc(C * 4);
    miopenTensorDescriptor_t a = tensor4(miopenFloat, N, C, H, W), o = tensor4(miopenFloat, 1, C, 1, 1);
    for (size_t k = 0; k < COUNT(ops); k++) {
        char name[64];
        snprintf(name, sizeof name, "reduce tensor %s", ops[k].name);
        case_name = name;
        for (int c = 0; c < C; c++) {
            double s = ops[k].op == MIOPEN_REDUCE_TENSOR_MAX ? -1e30 : ops[k].op == MIOPEN_REDUCE_TENSOR_MUL;
            for (int n = 0; n < N; n++)
                for (int i = 0; i < HW; i++) {
                    double v = x[P(n, c, i)];
                    switch (ops[k].op) {
                    case MIOPEN_REDUCE_TENSOR_MAX: s = v > s ? v : s; break;
                    case MIOPEN_REDUCE_TENSOR_NORM2: s += v * v; break;
                    case MIOPEN_REDUCE_TENSOR_MUL: s *= v; break;
                    default: s += v; break;
                    }
                }
            want[c] = (float)(ops[k].op == MIOPEN_REDUCE_TENSOR_AVG     ? s / (N * HW)
                              : ops[k].op == MIOPEN_REDUCE_TENSOR_NORM2 ? sqrt(s)
                                                                        : s);
        }
        begin();
        miopenReduceTensorDescriptor_t rd;
        size_t ws = 0;
        TRY(miopenCreateReduceTensorDescriptor(&rd));
        TRY(miopenSetReduceTensorDescriptor(rd, ops[k].op, miopenFloat, MIOPEN_NOT_PROPAGATE_NAN,
                                            MIOPEN_REDUCE_TENSOR_NO_INDICES, MIOPEN_32BIT_INDICES));
        TRY(miopenGetReductionWorkspaceSize(handle, rd, a, o, &ws));
        void *work = device_alloc(ws);
        TRY(miopenReduceTensor(handle, rd, NULL, 0, work, ws, &one, a, gx, &zero, o, gy));
        TRY(hipDeviceSynchronize());
        report_error(name, max_error(to_host(gy, C * 4), want, C), 1e-5);
    }
}

/* ---- layer normalisation ------------------------------------------------------------------------------------------------------------ */
/* in miopen.h under MIOPEN_BETA_API, which is not valid C; the mode is an enum */
enum { MIOPEN_WEIGHT_BIAS = 1 };
miopenStatus_t miopenLayerNormForward(miopenHandle_t, int, const miopenTensorDescriptor_t, const void *,
                                      const miopenTensorDescriptor_t, const void *, const miopenTensorDescriptor_t,
                                      const void *, const float, const int32_t, const miopenTensorDescriptor_t, void *,
                                      const miopenTensorDescriptor_t, void *, const miopenTensorDescriptor_t, void *);
static void layernorm(void)
{
    enum { ROWS = 2 * 3 * 32, COLS = 64, ALL = ROWS * COLS };
    case_name = "layernorm forward";
    float *x = rnd_floats(ALL), *g = rnd_floats(COLS), *b = rnd_floats(COLS), *want = malloc(ALL * 4), eps = 1e-5f;
    for (int r = 0; r < ROWS; r++) {
        double m = 0, v = 0;
        for (int i = 0; i < COLS; i++)
            m += x[r * COLS + i];
        m /= COLS;
        for (int i = 0; i < COLS; i++)
            v += (x[r * COLS + i] - m) * (x[r * COLS + i] - m);
        for (int i = 0; i < COLS; i++)
            want[r * COLS + i] = (float)((x[r * COLS + i] - m) / sqrt(v / COLS + eps) * g[i] + b[i]);
    }
    begin();
    miopenTensorDescriptor_t d = tensor4(miopenFloat, 2, 3, 32, COLS), wd = tensor_nd(miopenFloat, 1, (int[]){COLS}),
                             md = tensor_nd(miopenFloat, 3, (int[]){2, 3, 32});
    void *gx = to_device(x, ALL * 4), *gg = to_device(g, COLS * 4), *gb = to_device(b, COLS * 4),
         *gy = device_alloc(ALL * 4), *gm = device_alloc(ROWS * 4), *gr = device_alloc(ROWS * 4);
    TRY(miopenLayerNormForward(handle, MIOPEN_WEIGHT_BIAS, d, gx, wd, gg, wd, gb, eps, 3, d, gy, md, gm, md, gr));
    TRY(hipDeviceSynchronize());
    report_error(case_name, max_error(to_host(gy, ALL * 4), want, ALL), 1e-5);
}

/* ---- element-wise tensor operation ---------------------------------------------------------------------------------------------------- */
static void optensor(void)
{
    enum { N = 2, C = 5, H = 6, W = 7, HW = H * W, ALL = N * C * HW };
    case_name = "op tensor: a x + b bias (broadcast)";
    float *x = rnd_floats(ALL), *b = rnd_floats(C), want[ALL], a1 = 2, a2 = 0.5f;
    for (int i = 0; i < ALL; i++)
        want[i] = a1 * x[i] + a2 * b[i / HW % C];
    begin();
    miopenTensorDescriptor_t d = tensor4(miopenFloat, N, C, H, W), bd = tensor4(miopenFloat, 1, C, 1, 1);
    void *gx = to_device(x, ALL * 4), *gb = to_device(b, C * 4), *gy = device_alloc(ALL * 4);
    TRY(miopenOpTensor(handle, miopenTensorOpAdd, &a1, d, gx, &a2, bd, gb, &zero, d, gy));
    TRY(hipDeviceSynchronize());
    report_error(case_name, max_error(to_host(gy, ALL * 4), want, ALL), 1e-6);
}

/* ---- multi-head attention ---------------------------------------------------------------------------------------------------------------- */
static void mha(void)
{
    enum { N = 2, HEADS = 2, S = 16, D = 8, ALL = N * HEADS * S * D };
    case_name = "MHA forward (find 2.0 problem)";
    float *q = rnd_floats(ALL), *k = rnd_floats(ALL), *v = rnd_floats(ALL), *want = malloc(ALL * 4),
          scale = 1 / sqrtf(D);
    for (int h = 0; h < N * HEADS; h++)
        for (int i = 0; i < S; i++) {
            double p[S], z = 0;
            for (int j = 0; j < S; j++) {
                double s = 0;
                for (int e = 0; e < D; e++)
                    s += (double)q[(h * S + i) * D + e] * k[(h * S + j) * D + e];
                z += p[j] = exp(s * scale);
            }
            for (int e = 0; e < D; e++) {
                double s = 0;
                for (int j = 0; j < S; j++)
                    s += p[j] / z * v[(h * S + j) * D + e];
                want[(h * S + i) * D + e] = (float)s;
            }
        }
    begin();
    miopenMhaDescriptor_t md;
    miopenProblem_t problem;
    miopenTensorDescriptor_t big = tensor_nd(miopenFloat, 4, (int[]){N, HEADS, S, D}),
                             row = tensor_nd(miopenFloat, 4, (int[]){N, HEADS, S, 1}),
                             single = tensor_nd(miopenFloat, 4, (int[]){1, 1, 1, 1}),
                             wide = tensor_nd(miopenInt64, 4, (int[]){1, 1, 1, 1});
    TRY(miopenCreateMhaDescriptor(&md));
    TRY(miopenSetMhaDescriptor(md, scale));
    TRY(miopenCreateMhaProblem(&problem, md, miopenProblemDirectionForward));
    float ones = 1, none = 0;
    int64_t nothing = 0;
    void *gone[16], *gnone = to_device(&none, 4), *gseed = to_device(&nothing, 8), *gout = device_alloc(ALL * 4);
    struct {
        miopenTensorArgumentId_t id;
        miopenTensorDescriptor_t d;
        void *p;
    } t[] = {{miopenTensorMhaK, big, to_device(k, ALL * 4)},
             {miopenTensorMhaQ, big, to_device(q, ALL * 4)},
             {miopenTensorMhaV, big, to_device(v, ALL * 4)},
             {miopenTensorMhaDescaleK, single, 0},
             {miopenTensorMhaDescaleQ, single, 0},
             {miopenTensorMhaDescaleV, single, 0},
             {miopenTensorMhaDescaleS, single, 0},
             {miopenTensorMhaScaleS, single, 0},
             {miopenTensorMhaScaleO, single, 0},
             {miopenTensorMhaDropoutProbability, single, gnone},
             {miopenTensorMhaDropoutSeed, wide, gseed},
             {miopenTensorMhaDropoutOffset, wide, gseed},
             {miopenTensorMhaO, big, gout},
             {miopenTensorMhaAmaxO, single, 0},
             {miopenTensorMhaAmaxS, single, 0},
             {miopenTensorMhaM, row, device_alloc(N * HEADS * S * 4)},
             {miopenTensorMhaZInv, row, device_alloc(N * HEADS * S * 4)}};
    miopenTensorArgument_t args[COUNT(t)];
    memset(args, 0, sizeof args);
    int n = 0;
    for (size_t i = 0; i < COUNT(t); i++) {
        if (!t[i].p)
            t[i].p = gone[n++] = to_device(&ones, 4);
        TRY(miopenSetProblemTensorDescriptor(problem, t[i].id, t[i].d));
        args[i].id = t[i].id;
        args[i].buffer = t[i].p;
    }
    (void)gone;
    miopenSolution_t sol[4];
    size_t found = 0, ws = 0;
    TRY(miopenFindSolutions(handle, problem, NULL, sol, &found, 4));
    if (!found) {
        report(case_name, false, "no solution");
        return;
    }
    TRY(miopenGetSolutionWorkspaceSize(sol[0], &ws));
    void *work = device_alloc(ws);
    TRY(miopenRunSolution(handle, sol[0], COUNT(args), args, work, ws));
    TRY(hipDeviceSynchronize());
    report_error(case_name, max_error(to_host(gout, ALL * 4), want, ALL), 1e-4);
}

static const Case cases[] = {
    {"pooling", pooling}, {"activation", activation}, {"softmax", softmax},   {"batchnorm", batchnorm},
    {"lrn", lrn},         {"lstm", lstm, true},       {"dropout", dropout},   {"ctc", ctc},
    {"reduce", reduce},   {"layernorm", layernorm},   {"optensor", optensor}, {"mha", mha, true}};
int main(int argc, char **argv) { return run_cases(cases, COUNT(cases), argc, argv); }
