/* curve.c: a loss curve as an SVG picture. */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include "error.h"
#include "train.h"

enum { WIDTH = 720, HEIGHT = 400, LEFT = 64, RIGHT = 64, TOP = 48, BOTTOM = 48 };
static const char loss_colour[] = "#c2410c", error_colour[] = "#1d4ed8";

/* What lies on the axes: steps across; the loss by its logarithm on the left, the error on the right. */
typedef struct {
    int steps;
    double low, high; /* powers of ten */
} axes;

static double place_x(const axes *a, double step) { return LEFT + step / a->steps * (WIDTH - LEFT - RIGHT); }

static double place_y(double share) { return HEIGHT - BOTTOM - share * (HEIGHT - TOP - BOTTOM); }

static double loss_share(const axes *a, double loss)
{
    double v = log10(loss > 0 ? loss : 1e-9);
    v = (v - a->low) / (a->high - a->low);
    return v < 0 ? 0 : v > 1 ? 1 : v;
}

static axes find_axes(int n, int every, const double *loss)
{
    axes a = {n * every, 0, 0};
    for (int i = 0; i < n; i++)
        if (loss[i] > 0 && isfinite(loss[i])) {
            a.low = fmin(a.low, floor(log10(loss[i])));
            a.high = fmax(a.high, ceil(log10(loss[i])));
        }
    a.low = fmax(a.low, -6);
    a.high = a.high <= a.low ? a.low + 1 : a.high;
    return a;
}

static void draw_frame(FILE *f, const axes *a, const char *title)
{
    fprintf(
        f,
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %d %d\" width=\"%d\" height=\"%d\" "
        "font-family=\"sans-serif\" font-size=\"12\">\n<rect width=\"%d\" height=\"%d\" fill=\"white\"/>\n",
        WIDTH, HEIGHT, WIDTH, HEIGHT, WIDTH, HEIGHT);
    fprintf(f, "<text x=\"%d\" y=\"24\" font-size=\"15\">%s</text>\n", LEFT, title);
    for (double power = a->low; power <= a->high; power++) {
        double y = place_y((power - a->low) / (a->high - a->low));
        fprintf(f, "<path d=\"M%d %.1fH%d\" stroke=\"#ddd\"/>\n", LEFT, y, WIDTH - RIGHT);
        fprintf(f, "<text x=\"%d\" y=\"%.1f\" text-anchor=\"end\" fill=\"%s\">%g</text>\n", LEFT - 8, y + 4,
                loss_colour, pow(10, power));
    }
    for (int i = 0; i <= 4; i++) {
        fprintf(f, "<text x=\"%d\" y=\"%.1f\" fill=\"%s\">%d %%</text>\n", WIDTH - RIGHT + 8,
                place_y(i / 4.0) + 4, error_colour, 25 * i);
        fprintf(f, "<text x=\"%.1f\" y=\"%d\" text-anchor=\"middle\">%d</text>\n",
                place_x(a, a->steps * i / 4.0), HEIGHT - BOTTOM + 20, a->steps * i / 4);
    }
    fprintf(f, "<text x=\"%d\" y=\"%d\" text-anchor=\"middle\">steps</text>\n", WIDTH / 2, HEIGHT - 10);
    fprintf(f, "<text x=\"%d\" y=\"40\" fill=\"%s\">loss</text>\n", LEFT, loss_colour);
    fprintf(f, "<text x=\"%d\" y=\"40\" text-anchor=\"end\" fill=\"%s\">errors</text>\n", WIDTH - RIGHT,
            error_colour);
}

bool wm_curve_write(const char *path, const char *title, int n, int every, const double *loss,
                    const double *error)
{
    FILE *f = fopen(path, "w");
    if (!f) {
        wm_fail(WK_ERR_IO, "%s: %s", path, strerror(errno));
        return false;
    }
    axes a = find_axes(n, every, loss);
    draw_frame(f, &a, title);
    for (int which = 0; which < 2; which++) {
        fprintf(f, "<polyline fill=\"none\" stroke-width=\"1.5\" stroke=\"%s\" points=\"",
                which ? error_colour : loss_colour);
        for (int i = 0; i < n; i++)
            fprintf(f, "%s%.1f,%.1f", i ? " " : "", place_x(&a, (i + 1.0) * every),
                    place_y(which ? fmin(1, error[i]) : loss_share(&a, loss[i])));
        fprintf(f, "\"/>\n");
    }
    fprintf(f, "</svg>\n");
    bool ok = !ferror(f);
    ok = fclose(f) == 0 && ok;
    if (!ok)
        wm_fail(WK_ERR_IO, "%s: cannot be written", path);
    return ok;
}
