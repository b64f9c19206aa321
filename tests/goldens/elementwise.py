"""elementwise.py: references of the elementwise ops."""
import math
from fractions import Fraction

import numpy as np
import torch
import torch.nn.functional as F

from golden import FLOATS, INTS, OPS, SIGNED_INTS, gradient, limits, load, op, store

# ---- one tensor ----

PLAIN = "x=T[5,7]:{}"
EDGES = "x=T[16]:{nan,inf,-inf,0,-0.0,0.5,-0.5,1.5,-1.5,2.5,-2.5,3,-3,6,-6,1}"
# -inf * 0 is what PyTorch computes there: nobody documents it.
EDGES_NO_INF = EDGES.replace("-inf", "-7")
WIDE = "x=T[10]:{20,-20,90,-90,1000,-1000,30000,-30000,0.001,-0.001}"
# Where a derivative jumps it is PyTorch's.
KINKS = "x=T[14]:{0,0.5,-0.5,1,-1,1.5,-1.5,2.5,-2.5,3,-3,6,-6,20}"
POSITIVE = "x=T[7]:{0.001,0.5,1,2,20,1000,30000}"


def away_from_zero(x):
    return torch.sign(x) * torch.floor(torch.abs(x) + 0.5)


def unary(name, f, lo_hi="-3..3", edges=EDGES, kinks=KINKS, ints=()):
    wide = int_cases = []
    if kinks == KINKS:
        wide = [WIDE]
    if ints:
        int_cases = ["x=T[3,5]", "x=T[6]:{min,max,0,1,-1,2}"]
    op(name, [PLAIN.format(lo_hi), edges] + wide, ints=ints, int_cases=int_cases)(lambda i, p: f(i.x))
    gradient(name, ["x"], cases=[PLAIN.format(lo_hi), kinks])


unary("neg", torch.neg, ints=SIGNED_INTS)
unary("abs", torch.abs, ints=SIGNED_INTS)
unary("sign", torch.sign, ints=SIGNED_INTS)
unary("exp", torch.exp)
unary("log", torch.log, "0.05..9", kinks=POSITIVE)
unary("sqrt", torch.sqrt, "0.05..9", kinks=POSITIVE)
unary("rsqrt", torch.rsqrt, "0.05..9", kinks=POSITIVE)
unary("sqr", torch.square)
unary("recip", torch.reciprocal, "0.2..5", kinks=POSITIVE)
unary("sin", torch.sin)
unary("cos", torch.cos)
unary("tanh", torch.tanh)
unary("erf", torch.erf)
unary("floor", torch.floor)
unary("ceil", torch.ceil)
unary("round", away_from_zero)
unary("relu", F.relu)
unary("silu", F.silu, edges=EDGES_NO_INF)
unary("sigmoid", torch.sigmoid)
unary("gelu", lambda x: F.gelu(x, approximate="tanh"), edges=EDGES_NO_INF)
unary("gelu_erf", F.gelu, edges=EDGES_NO_INF)
unary("softplus", F.softplus)
unary("mish", F.mish, edges=EDGES_NO_INF)
unary("hard_swish", F.hardswish, edges=EDGES_NO_INF)
unary("hard_sigmoid", lambda x: F.relu6(x + 3) / 6)  # PyTorch's own slope has 1/6 in f32
unary("relu6", F.relu6)


@op("leaky_relu", ["x=T[5,7]", EDGES + " slope=0.2"])
def leaky_relu(i, p):
    return F.leaky_relu(i.x, 0.01 if p.slope is None else p.slope)


@op("elu", ["x=T[5,7]", EDGES + " alpha=0.5"])
def elu(i, p):
    return F.elu(i.x, 1 if p.alpha is None else p.alpha)


@op("clamp", ["x=T[5,7] min=-1 max=1", EDGES + " min=-0.5", EDGES + " max=2.5", EDGES + " min=1 max=-2"], ints=INTS,
    int_cases=["x=T[3,5] min=1 max=4", "x=T[5]:{min,max,0,1,5} min=2", "x=T[5]:{min,max,0,1,5} max=3",
               "x=T[5]:{min,max,0,1,5} min=5 max=3", "x=T[5]:{min,max,0,1,5} min=9223372036854775807",
               "x=T[5]:{min,max,0,1,5} max=-9223372036854775807"])
def clamp(i, p):
    lo, hi = p.min, p.max
    if i.dtype in INTS:  # an end outside of the dtype is the dtype's
        ends = limits(i.dtype)
        lo, hi = (None if v is None else max(int(ends.min), min(int(ends.max), v)) for v in (lo, hi))
    return torch.clamp(i.x, lo, hi)


@op("power", ["x=T[3,5]:0.1..4 alpha=1 beta=0.5 gamma=2", "x=T[7]:0.1..4 alpha=0.5 beta=1 gamma=-0.5",
              "x=T[7] alpha=0.25 beta=-1 gamma=3"])
def power(i, p):
    return torch.pow(p.alpha + p.beta * i.x, p.gamma)


@op("powf", ["x=T[3,5]:0.1..4 e=2.5", "x=T[6]:{-2,-0.5,0,0.5,1,nan} e=3", "x=T[6]:{-2,0,0.5,1,inf,4} e=0",
             "x=T[5]:{0.25,1,2,9,-1} e=-1.5"])
def powf(i, p):
    return torch.pow(i.x, p.e)


def as_dtype(value, dtype):
    """A number converted to the dtype: floats are rounded, integers cut."""
    return float(load(store(np.float64(value), dtype), dtype)) if dtype in FLOATS else int(value)


@op("affine", ["x=T[5,7] mul=2 add=1", "x=T[9] mul=-0.3 add=0.7"], ints=INTS,
    int_cases=["x=T[3,5] mul=3 add=2", "x=T[5]:{min,max,0,1,7} mul=5 add=100", "x=T[4]:0..8 mul=2.75 add=1.5"])
def affine(i, p):
    return i.x * as_dtype(p.mul, i.dtype) + as_dtype(p.add, i.dtype)


gradient("leaky_relu", ["x"], cases=["x=T[5,7]", KINKS + " slope=0.2"])
gradient("elu", ["x"], cases=["x=T[5,7]", KINKS + " alpha=0.5"])
gradient("clamp", ["x"], cases=["x=T[5,7] min=-1 max=1", KINKS + " min=-0.5", KINKS + " max=2.5",
                                KINKS + " min=1 max=-1"])
gradient("power", ["x"], cases=OPS["power"].cases["f32"] + ["x=T[3]:{0,1,-2} alpha=0 beta=1 gamma=0"])
gradient("powf", ["x"], cases=["x=T[3,5]:0.1..4 e=2.5", "x=T[5]:{-2,-0.5,0,0.5,1} e=3", "x=T[4]:{-2,0,0.5,1} e=0",
                               "x=T[4]:{0.25,1,2,9} e=-1.5"])
gradient("affine", ["x"])

# ---- two tensors ----

SHAPES = ["a=T[4,5] b=T[4,5]", "a=T[3,1,5] b=T[2,1]", "a=T[7] b=T[]"]
SPECIAL = "a=T[9]:{nan,inf,-inf,inf,0,-0.0,nan,2,3} b=T[9]:{1,1,2,-inf,0,0,nan,nan,3}"
INT_EDGES = "a=T[6]:{min,max,min,max,7,0} b=T[6]:{1,1,max,max,3,5}"


def binary(name, f, cases, ints=(), int_cases=(), slopes=SHAPES):
    op(name, cases, ints=ints, int_cases=list(int_cases))(lambda i, p: f(i.a, i.b))
    gradient(name, ["a", "b"], cases=slopes)


def divide(a, b):
    """Integers by way of Python's, which do not trap."""
    if a.dtype == torch.float64:
        return a / b
    a, b = np.broadcast_arrays(a.numpy(), b.numpy())
    q = [abs(int(x)) // abs(int(y)) * (1 if (x < 0) == (y < 0) else -1) for x, y in zip(a.flat, b.flat)]
    wrapped = [(v + 2**63) % 2**64 - 2**63 for v in q]
    return torch.tensor(wrapped, dtype=torch.int64).reshape(a.shape)


DIV_SHAPES = ["a=T[4,5] b=T[4,5]:1..5", "a=T[3,1,5] b=T[2,1]:1..5"]
binary("add", torch.add, SHAPES + [SPECIAL], INTS, SHAPES + [INT_EDGES])
binary("sub", torch.sub, SHAPES + [SPECIAL], INTS, SHAPES + [INT_EDGES])
binary("mul", torch.mul, SHAPES + [SPECIAL], INTS, SHAPES + [INT_EDGES])
binary("div", divide, DIV_SHAPES + [SPECIAL], INTS,
       DIV_SHAPES + ["a=T[6]:{min,max,min,max,7,0} b=T[6]:{-1,2,max,-1,3,5}"], DIV_SHAPES)
binary("minimum", torch.minimum, SHAPES + [SPECIAL], INTS, SHAPES + [INT_EDGES],
       SHAPES + ["a=T[4]:{1,2,3,-1} b=T[4]:{1,3,2,-1}"])
binary("maximum", torch.maximum, SHAPES + [SPECIAL], INTS, SHAPES + [INT_EDGES],
       SHAPES + ["a=T[4]:{1,2,3,-1} b=T[4]:{1,3,2,-1}"])
binary("pow", torch.pow,
       ["a=T[4,5]:0.1..3 b=T[4,5]", "a=T[3,1,5]:0.1..3 b=T[2,1]",
        "a=T[9]:{0,-2,-2,4,inf,nan,1,0.5,2} b=T[9]:{0,3,2,0.5,-1,0,nan,10,-10}"],
       slopes=["a=T[4,5]:0.1..3 b=T[4,5]", "a=T[3,1,5]:0.1..3 b=T[2,1]", "a=T[4]:{0,0,2,3} b=T[4]:{2,1,0,-1}"])

TIES = "a=T[3,4]:{1,2,3,4,1,2,3,4,1,2,3,4} b=T[4]:{2,2,4,3}"
for name in ["eq", "ne", "lt", "le", "gt", "ge"]:
    op(name, ["a=T[3,1,5] b=T[2,1]", TIES, SPECIAL], ints=INTS, int_cases=["a=T[3,1,5] b=T[2,1]", TIES, INT_EDGES],
       out={"y": "u8"})(lambda i, p, compare=getattr(torch, name): compare(i.a, i.b).to(torch.int64))

WHERE = ["cond=u8[4,5]:0..2 a=T[4,5] b=T[4,5]", "cond=i64[4,1]:-1..2 a=T[] b=T[5]", "cond=u32[7]:0..3 a=T[7] b=T[1]"]


@op("where", WHERE, ints=INTS)
def where(i, p):
    return torch.where(i.cond != 0, i.a, i.b)


gradient("where", ["a", "b"])

# ---- cast, fill, arange ----


def saturate(x, dtype):
    lo, hi = int(limits(dtype).min), int(limits(dtype).max)
    if math.isnan(x):
        return 0
    if math.isinf(x):
        return hi if x > 0 else lo
    return min(max(int(x), lo), hi)


FLOAT_CASTS = ("x=T[22]:{nan,inf,-inf,0,-0.0,0.9,-0.9,1.5,2.5,-2.5,255,256,-1,300,40000,-40000,65520,1e-7,"
               "1.00048828125,1.00390625,1.01171875,3e10}")
# Numbers that come out differently when they are rounded twice.
TWICE = {"f64": "x=f64[4]:{1.0004882812509095,1.00390625000001,16777217.000001,1.0000000596046448}",
         "f32": "x=f32[2]:{1.00048840045929,1.00390637}"}
INT_CASTS = "x=T[10]:{min,max,0,1,127,100,3,7,5,2}"


def cast_cases(dtype):
    edges = FLOAT_CASTS if dtype in FLOATS else INT_CASTS
    if dtype == "i64":
        edges = "x=T[9]:{min,max,0,-1,16777217,2147483648,-300,70000,1152921573326323713}"
    elif dtype in ("i32", "u32"):
        edges = "x=T[8]:{min,max,0,1,16777217,70000,300,2049}"
    edges = [edges] + ([TWICE[dtype]] if dtype in TWICE else [])
    return [f"{e} dtype={to}" for to in FLOATS + INTS for e in edges]


@op("cast", [], ints=INTS, int_cases=[], out={"y": lambda i, p: p.dtype})
def cast(i, p):
    if i.dtype in FLOATS and p.dtype in INTS:
        return np.array([saturate(float(x), p.dtype) for x in i.x.flatten()], np.int64).reshape(i.x.shape)
    if i.dtype in INTS and p.dtype in FLOATS:
        exact = i.x.numpy().astype(np.longdouble)
        if p.dtype == "f16":  # past 65504 + half a place it is infinite anyway
            return np.clip(exact, -70000, 70000).astype(np.float64)
        return exact
    return i.x


OPS["cast"].cases = {dtype: cast_cases(dtype) for dtype in FLOATS + INTS}


@op("fill", ["shape=3,4 dtype=T value=2.5", "shape=2 dtype=T value=nan", "shape=3 dtype=T value=-inf",
             "shape= dtype=T value=0.1"], ints=INTS, int_cases=["shape=3,4 dtype=T value=7", "shape= dtype=T value=1"])
def fill(i, p):
    shape = [p.shape] if isinstance(p.shape, int) else p.shape
    return torch.full(shape, p.value, dtype=torch.float64 if i.dtype in FLOATS else torch.int64)


@op("arange", ["start=0 stop=7 dtype=T", "start=1 stop=2 step=0.1 dtype=T", "start=3 stop=-2 step=-1.25 dtype=T",
               "start=2 stop=2 dtype=T"], ints=INTS,
    int_cases=["start=0 stop=7 dtype=T", "start=3 stop=20 step=4 dtype=T", "start=9 stop=0 step=-2 dtype=T",
               "start=9223372036854775800 stop=9223372036854775807 dtype=T",
               "start=-9223372036854775807 stop=-9223372036854775801 step=4 dtype=T"])
def arange(i, p):
    step = 1 if p.step is None else p.step
    count = max(0, int(np.ceil((Fraction(p.stop) - Fraction(p.start)) / Fraction(step))))
    return torch.tensor([p.start + n * step for n in range(count)],
                        dtype=torch.float64 if i.dtype in FLOATS else torch.int64)
