"""reduce.py: references of reductions, scans, sorting and softmax."""
import numpy as np
import torch

from golden import INTS, gradient, op


def dims_of(x, p, default=None):
    """The dims as a list of those counted from the front."""
    dims = p.dims if p.dims is not None else p.dim
    dims = default if dims is None else dims
    if dims is None or dims == "all" or x.dim() == 0:
        return list(range(x.dim()))
    return [d % x.dim() for d in ([dims] if isinstance(dims, int) else dims)]


def lines(x, dims):
    """x with the dims joined, as the last one."""
    rest = [d for d in range(x.dim()) if d not in dims]
    count = int(np.prod([x.shape[d] for d in dims])) if dims else 1
    return x.permute(rest + dims).reshape([x.shape[d] for d in rest] + [count])


def keep(y, i, p, dims):
    if not p.keepdim:
        return y
    return y.reshape([1 if d in dims else n for d, n in enumerate(i.x.shape)])


def reduction(name, f, cases, ints=(), int_cases=(), slopes=None):
    def ref(i, p):
        dims = dims_of(i.x, p)
        return keep(f(lines(i.x, dims), p), i, p, dims)
    op(name, cases, ints=ints, int_cases=list(int_cases))(ref)
    gradient(name, ["x"], cases=slopes or [c for c in cases if "nan" not in c])


SHAPES = ["x=T[4,5]", "x=T[3,4,5] dims=1 keepdim=1", "x=T[3,4,5] dims=0,-1", "x=T[]"]
NOTHING = "x=T[0,3] dims=0"
INT_SHAPES = SHAPES[1:] + ["x=T[3,2]:{min,max,max,3,100,7} dims=0"]
SPECIAL = "x=T[3,4]:{1,nan,2,3,inf,1,2,-1,inf,-inf,0,1} dims=1"

reduction("sum", lambda x, p: x.sum(-1), SHAPES + [NOTHING, SPECIAL], INTS, INT_SHAPES + [NOTHING], slopes=SHAPES)
reduction("mean", lambda x, p: x.mean(-1), SHAPES + [SPECIAL])
reduction("prod", lambda x, p: x.prod(-1), SHAPES + [NOTHING, SPECIAL], INTS, INT_SHAPES + [NOTHING],
          slopes=SHAPES + ["x=T[3,4]:{1,2,3,4,0,2,3,4,0,0,3,4} dims=1"])
reduction("norm1", lambda x, p: torch.linalg.vector_norm(x, 1, -1), SHAPES + [NOTHING, SPECIAL], slopes=SHAPES)
reduction("norm2", lambda x, p: torch.linalg.vector_norm(x, 2, -1), SHAPES + [NOTHING, SPECIAL],
          slopes=SHAPES + ["x=T[2,3]:{0,0,0,1,2,-2} dims=1"])
reduction("var", lambda x, p: x.var(-1, correction=0 if p.unbiased == 0 else 1),
          ["x=T[4,5] dims=0,1", "x=T[3,4,5] dims=1 keepdim=1 unbiased=0", "x=T[2,9]:100..101 dims=-1",
           "x=T[3,1] dims=1 unbiased=0"],
          slopes=["x=T[4,5] dims=0,1", "x=T[3,4,5] dims=1 keepdim=1 unbiased=0", "x=T[2,9]:4..5 dims=-1"])
reduction("log_sum_exp", lambda x, p: x.logsumexp(-1),
          ["x=T[4,5] dims=0,1", "x=T[3,4,5] dims=1 keepdim=1", "x=T[2,5]:-300..300 dims=1",
           "x=T[4,2]:{-inf,-inf,-inf,1,inf,1,nan,1} dims=1"],
          slopes=["x=T[4,5] dims=0,1", "x=T[3,4,5] dims=1 keepdim=1", "x=T[2,5]:-300..300 dims=1"])

# ---- extremes ----


def first_place(x, largest):
    """Where the largest (smallest) of each line is: NaN before numbers, the first of equals."""
    key = x if largest else -x
    if x.dtype == torch.float64:
        best = torch.where(torch.isnan(key), torch.inf, key).amax(-1, keepdim=True)
        hit = torch.where(torch.isnan(x).any(-1, keepdim=True), torch.isnan(x), key == best)
    else:
        hit = x == (x.amax(-1, keepdim=True) if largest else x.amin(-1, keepdim=True))
    return hit.to(torch.int64).argmax(-1)


EXTREMES = ["x=T[]", "x=T[4,5]:distinct", "x=T[3,4,5]:distinct dims=1 keepdim=1", "x=T[3,4,5]:distinct dims=0,-1"]
TIES = "x=T[3,5]:{1,3,2,3,1,0,0,0,0,0,-1,-3,2,-3,3} dim=1"
INT_TIES = "x=T[3,5]:{1,3,2,3,1,0,0,0,0,0,1,0,2,0,3} dim=1"
INT_LIMITS = "x=T[2,3]:{min,max,0,7,max,min} dim=1"


def extreme(name, largest, of, ints, int_cases):
    def ref(i, p):
        dims = dims_of(i.x, p)
        x = lines(of(i.x), dims)
        at = first_place(x, largest)
        # PyTorch's max over one dim gives its slope to that place, amax and max over several share it among equals.
        shared = name == "amax" or len(dims) > 1
        y = (x.amax(-1) if largest else x.amin(-1)) if shared else x.gather(-1, at[..., None])[..., 0]
        made = {"y": keep(y, i, p, dims)}
        if len(dims) == 1:
            made["indices"] = keep(at, i, p, dims)
        return made
    op(name, EXTREMES + [SPECIAL, TIES], ints=ints, int_cases=EXTREMES + int_cases, out={"indices": "u32"})(ref)
    gradient(name, ["x"], cases=EXTREMES + [TIES, "x=T[2,3]:{2,-1,2,-2,2,-2}"])


extreme("min", False, lambda x: x, INTS, [INT_TIES, INT_LIMITS])
extreme("max", True, lambda x: x, INTS, [INT_TIES, INT_LIMITS])
extreme("amax", True, torch.abs, INTS, [TIES])

for name, largest in [("argmin", False), ("argmax", True)]:
    @op(name, ["x=T[4,5] dim=0", "x=T[3,4,5] dim=-2 keepdim=1", TIES, SPECIAL], ints=INTS,
        int_cases=["x=T[4,5] dim=0", "x=T[3,4,5] dim=-2 keepdim=1", INT_TIES, INT_LIMITS], out={"y": "u32"})
    def arg(i, p, largest=largest):
        dims = dims_of(i.x, p)
        return keep(first_place(lines(i.x, dims), largest), i, p, dims)

# ---- scan, sort ----


@op("cumsum", ["x=T[9] dim=0", "x=T[2,0] dim=1", "x=T[3,4,5] dim=1",
               "x=T[3,4]:{1,nan,2,3,inf,1,2,-1,inf,-inf,0,1} dim=-1"], ints=INTS,
    int_cases=["x=T[9] dim=0", "x=T[3,4,5] dim=1", "x=T[4]:{max,max,3,100} dim=0"])
def cumsum(i, p):
    return i.x.cumsum(p.dim)


gradient("cumsum", ["x"], cases=["x=T[9] dim=0", "x=T[3,4,5] dim=1"])

SORTS = ["x=T[11]", "x=T[3,0]", "x=T[]", "x=T[3,4,2] dim=1 descending=1", "x=T[2,7]:{3,1,2,3,1,2,0,5,5,4,4,3,3,5}",
         "x=T[2,7]:{3,1,2,3,1,2,0,5,5,4,4,3,3,5} descending=1"]
EXACT = "x=T[4]:{9223372036854775806,max,9007199254740993,9007199254740992}"  # alike in f64, if they are i64
NANS = "x=T[9]:{1,nan,-inf,3,nan,inf,-1,3,0}"


def order(x, dim, descending):
    """Stable, NaN last either way."""
    if x.dtype == torch.float64:
        worst = -torch.inf if descending else torch.inf
        by_value = torch.argsort(torch.where(torch.isnan(x), worst, x), dim=dim, descending=descending, stable=True)
        late = torch.isnan(x).gather(dim, by_value).to(torch.int64)
        return by_value.gather(dim, torch.argsort(late, dim=dim, stable=True))
    return torch.argsort(x, dim=dim, descending=descending, stable=True)


def dim_of(p):
    return -1 if p.dim is None else p.dim


@op("argsort", SORTS + [NANS, NANS + " descending=1"], ints=INTS, int_cases=SORTS + [EXACT],
    out={"y": "u32"})
def argsort(i, p):
    return order(i.x, dim_of(p), bool(p.descending))


@op("sort", SORTS + [NANS, NANS + " descending=1"], ints=INTS, int_cases=SORTS + [EXACT])
def sort(i, p):
    return i.x.gather(dim_of(p), order(i.x, dim_of(p), bool(p.descending)))


TOPS = ["x=T[9]:distinct k=4", "x=T[2,3]:distinct k=0", "x=T[3,4,2]:distinct k=2 dim=1", "x=T[2,3]:distinct k=3"]


@op("topk", TOPS, ints=INTS, int_cases=TOPS + [EXACT + " k=3"], out={"indices": "u32"})
def topk(i, p):
    y, at = torch.topk(i.x, p.k, dim_of(p))
    return {"y": y, "indices": at}


# ---- softmax ----


@op("softmax", ["x=T[4,5]", "x=T[3,4,5] dim=1 mode=log", "x=T[2,7] mode=fast", "x=T[2,2,3,2] dims=1,2,3",
                "x=T[2,3,4] dims=0,2 mode=log", "x=T[2,5]:-60..60", "x=T[2,3]:{-inf,1,2,nan,1,2}", "x=T[]",
                "x=T[3,0]", "x=T[0,3] mode=log"])
def softmax(i, p):
    dims = dims_of(i.x, p, -1)
    rest = [d for d in range(i.x.dim()) if d not in dims]
    x = lines(i.x, dims)
    y = torch.log_softmax(x, -1) if p.mode == "log" else torch.softmax(x, -1)
    back = np.argsort(rest + dims).tolist()
    return y.reshape([i.x.shape[d] for d in rest + dims]).permute(back).contiguous()


def softmax_slope(i, p):
    """From y, as the op gets it."""
    dims = dims_of(i.y, p, -1)
    if p.mode == "log":
        return {"dx": i.dy - torch.exp(i.y) * i.dy.sum(dims, keepdim=True)}
    return {"dx": i.y * (i.dy - (i.y * i.dy).sum(dims, keepdim=True))}


gradient("softmax", ["x"], cases=["x=T[4,5]", "x=T[3,4,5] dim=1 mode=log", "x=T[2,7] mode=fast",
                                  "x=T[2,2,3,2] dims=1,2,3", "x=T[2,3,4] dims=0,2 mode=log"],
         formula=softmax_slope, give=["y"], drop=["x"])
