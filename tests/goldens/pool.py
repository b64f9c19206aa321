"""pool.py: references of pooling and resampling."""
import torch
import torch.nn.functional as F

from golden import INTS, gradient, op

# ---- pooling ----

ROWS = ["x=T[2,3,9]:distinct kernel_size=3", "x=T[1,2,8]:distinct kernel_size=3 stride=2 padding=1",
        "x=T[1,2,8]:distinct kernel_size=3 stride=2 ceil=1"]
PLANES = ["x=T[2,2,4,6]:distinct kernel_size=2", "x=T[1,2,5,7]:distinct kernel_size=3,2 stride=2,3 padding=1",
          "x=T[1,2,6,5]:distinct kernel_size=3 stride=2 padding=0,1 ceil=1"]
TIES = ["x=T[1,1,3,4]:{1,1,2,2,1,1,2,2,0,0,0,0} kernel_size=2 stride=1"]
NANS = ["x=T[1,1,3,4]:{1,nan,2,2,1,1,inf,2,-inf,-inf,0,nan} kernel_size=2 stride=1"]


def pooling(p):
    return {"kernel_size": p.kernel_size, "stride": p.stride, "padding": p.padding or 0, "ceil_mode": bool(p.ceil)}


def max_pool(name, f, cases, special):
    @op(name, cases + special, out={"indices": "u32"})
    def ref(i, p):
        y, at = f(i.x, return_indices=True, **pooling(p))
        return {"y": y, "indices": at}
    slopes = cases + special[:1]
    gradient(name, ["x"], cases=slopes + [c + " alone" for c in slopes[2:]], give=["indices"])


def avg_pool(name, f, cases):
    @op(name, cases)
    def ref(i, p):
        return f(i.x, count_include_pad=p.count_include_pad != 0, **pooling(p))
    gradient(name, ["x"])


max_pool("max_pool1d", F.max_pool1d, ROWS, ["x=T[1,1,7]:{1,1,2,2,0,0,0} kernel_size=3 stride=2",
                                            "x=T[1,1,7]:{1,nan,2,2,inf,-inf,-inf} kernel_size=2 stride=2"])
max_pool("max_pool2d", F.max_pool2d, PLANES, TIES + NANS)
avg_pool("avg_pool1d", F.avg_pool1d, ROWS + [ROWS[1] + " count_include_pad=0", ROWS[1] + " ceil=1"])
avg_pool("avg_pool2d", F.avg_pool2d, PLANES + [PLANES[1] + " count_include_pad=0",
                                               PLANES[2] + " count_include_pad=0", PLANES[1] + " ceil=1"])
op("global_max_pool2d", ["x=T[2,3,4,5]:distinct", "x=T[1,2,1,7]:distinct"])(
    lambda i, p: F.adaptive_max_pool2d(i.x, 1))
op("global_avg_pool2d", ["x=T[2,3,4,5]", "x=T[1,2,1,7]"])(lambda i, p: F.adaptive_avg_pool2d(i.x, 1))
gradient("global_max_pool2d", ["x"])
gradient("global_avg_pool2d", ["x"])

# ---- resampling ----


def sizes(i, p):
    """The sizes of the result, and the scale of each dim or None."""
    dims = i.x.dim() - 2
    scale = [p.scale] * dims if not isinstance(p.scale, list) else p.scale
    if p.size is None:
        return [int(n * s) for n, s in zip(i.x.shape[2:], scale)], scale
    return ([p.size] * dims if isinstance(p.size, int) else p.size), scale


def nearest(i, p):
    """By the formula: PyTorch's own divides by the scale where one is given."""
    y = i.x
    for d, out in enumerate(sizes(i, p)[0]):
        n = i.x.shape[2 + d]
        y = y.index_select(2 + d, torch.clamp(torch.arange(out) * n // out, max=n - 1))
    return y


@op("upsample_bilinear2d", ["x=T[1,2,3,4] size=5,9", "x=T[1,2,4,3] scale=2", "x=T[1,1,5,5] scale=1.5,2.7",
                            "x=T[1,2,4,5] size=7,8 align_corners=1", "x=T[1,1,5,5] size=8,9 scale=1.7,1.9",
                            "x=T[1,1,7,6] size=3,1", "x=T[1,1,4,4] size=1,3 align_corners=1"])
def upsample_bilinear2d(i, p):
    size, scale = sizes(i, p)
    return torch.ops.aten.upsample_bilinear2d(i.x, size, bool(p.align_corners), *scale)


op("upsample_nearest1d", ["x=T[2,3,5] size=8", "x=T[1,2,5] scale=2", "x=T[1,2,5] scale=1.5", "x=T[1,2,7] size=3"],
   ints=INTS)(nearest)
op("upsample_nearest2d", ["x=T[1,2,3,4] size=5,9", "x=T[2,1,3,2] scale=2", "x=T[1,1,5,5] scale=1.5,2.7",
                          "x=T[1,2,5,6] size=2,3"], ints=INTS)(nearest)
for name in ["upsample_nearest1d", "upsample_nearest2d", "upsample_bilinear2d"]:
    gradient(name, ["x"], drop=["x"], sizes={"input_size": "x"})
