"""golden.py: what the families' modules share: dtypes and rounding, cases as text, gradients, the file.

A case is a call as text, as in the op table's samples: "x=T[2,3]:0.1..4 dim=1". A word with a shape is a tensor:
T is the dtype under test, S its statistics dtype (f32, or f64 for f64). What may follow the shape:
  :lo..hi       numbers in that range, integers without hi
  :{1,nan,max}  these; min and max are those of an integer dtype
  :distinct     no two the same
  :q4_0         u8: random blocks of that format
Every other word is a parameter; the value T is the name of the dtype. The word "alone" in a gradient's case
leaves out the forward's outputs, where these are optional.

A reference is a function of a call's inputs and parameters: i.x is the tensor x in f64 (integers: int64) or None,
p.dim the parameter dim or None. It gives a dict of outputs, or one tensor, the output y.
"""
import inspect
import json
import zlib

import numpy as np
import torch

torch.set_num_threads(1)
FLOATS = ["f32", "f16", "bf16", "f64"]
INTS = ["u8", "u32", "i64", "i32", "i16"]
SIGNED_INTS = ["i64", "i32", "i16"]
STORED = {"f32": np.float32, "f16": np.float16, "bf16": np.uint16, "f64": np.float64,
          "u8": np.uint8, "u32": np.uint32, "i64": np.int64, "i32": np.int32, "i16": np.int16}
OPS = {}


# ---- dtypes ----

def stat_dtype(dtype):
    return "f64" if dtype == "f64" else "f32"


def limits(dtype):
    return np.iinfo(STORED[dtype])


def to_bf16(x):
    """The bits of x rounded to bf16, once, to nearest even."""
    x = np.asarray(x)
    with np.errstate(invalid="ignore", over="ignore"):
        # A multiple of the last place; bf16 has 8 bits and its smallest normal number is 2^-126.
        _, e = np.frexp(np.where(np.isfinite(x), x, 0))
        place = np.ldexp(np.ones_like(x), np.maximum(e, -125) - 8)
        y = np.where(np.isfinite(x), np.rint(x / place) * place, x).astype(np.float32)
        y = np.where(np.abs(y) > 3.3895313892515355e38, np.copysign(np.inf, y), y).astype(np.float32)
    bits = (y.view(np.uint32) >> 16).astype(np.uint16)
    return np.where(np.isnan(y), np.uint16(0x7FC0), bits).astype(np.uint16)


def store(values, dtype):
    """A tensor, or an array, as the file has it: rounded once, integers wrapped."""
    x = values.detach().numpy() if isinstance(values, torch.Tensor) else np.asarray(values)
    if dtype == "bf16":
        x = x if x.dtype.kind == "f" else x.astype(np.longdouble)
        return to_bf16(x)
    with np.errstate(over="ignore", invalid="ignore"):
        return np.ascontiguousarray(x).astype(STORED[dtype]).reshape(x.shape)


def load(stored, dtype):
    """What the file has, for computing."""
    if dtype == "bf16":
        stored = (stored.astype(np.uint32) << 16).view(np.float32)
    return torch.from_numpy(np.array(stored, np.float64 if dtype in FLOATS else np.int64))


# ---- cases as text ----

class Call(dict):
    """A dict whose members are attributes, None where there is no such member."""

    def __getattr__(self, name):
        return self.get(name)


class Inputs(Call):
    """Tensors by name, for computing. Beside them: dtype, that under test, and dtypes, of each tensor."""

    def __init__(self, dtype):
        object.__setattr__(self, "dtype", dtype)
        object.__setattr__(self, "dtypes", {})
        object.__setattr__(self, "stored", {})

    def put(self, name, stored, dtype):
        self.stored[name] = stored
        self.dtypes[name] = dtype
        self[name] = load(stored, dtype)


def number(text):
    try:
        return int(text)
    except ValueError:
        try:
            return float(text)
        except ValueError:
            return text


def read_params(words, dtype):
    """Numbers as numbers, lists as lists, texts as they are."""
    p = Call()
    for name, text in words:
        text = dtype if text == "T" else text
        if "," in text:
            p[name] = [number(t) for t in text.split(",")]
        elif text == "":
            p[name] = []
        else:
            p[name] = number(text)
    return p


def listed(text, dtype):
    special = {} if dtype in FLOATS else {"min": int(limits(dtype).min), "max": int(limits(dtype).max)}
    values = [special[v] if v in special else number(v) for v in text.split(",")]
    return np.array(values, np.float64 if dtype in FLOATS else object)


def tensor_values(dtype, shape, how, rng):
    """The numbers a word of a case asks for, stored."""
    count = int(np.prod(shape))
    lowest = 0 if dtype in ("u8", "u32") else -8
    if how.startswith("{"):
        values = listed(how[1:-1], dtype)
        assert values.size == count, f"{values.size} values for {shape}"
    elif how.startswith("q"):
        from gguf_models import TYPES, random_blocks
        values = random_blocks(rng, count // TYPES[how][2], how, 1.0)
    elif how == "distinct":
        values = rng.permutation(count) + lowest
        if dtype in FLOATS:
            values = (values - count // 2) * 0.125
    elif dtype in FLOATS:
        lo, hi = [float(t) for t in how.split("..")] if how else (-2.0, 2.0)
        values = rng.uniform(lo, hi, count)
    else:
        lo, hi = [int(t) for t in how.split("..")] if how else (lowest, 8)
        values = rng.integers(lo, hi, count)
    values = values.reshape(shape)
    if values.dtype == object:
        values = values.astype(np.int64)
    return store(values, dtype)


def cut(text):
    """The case's tensors as (name, dtype, shape, how) and its parameters as (name, text)."""
    tensors, params = [], []
    for word in text.split():
        if word == "alone":
            continue
        name, value = word.split("=", 1)
        if "[" not in value:
            params.append((name, value))
            continue
        dtype, rest = value.split("[", 1)
        shape, how = rest.split("]", 1)
        tensors.append((name, dtype, [int(n) for n in shape.split(",") if n], how[1:]))
    return tensors, params


def make_inputs(op, number_of_case, tensors, dtype):
    i = Inputs(dtype)
    for name, as_dtype, shape, how in tensors:
        rng = np.random.default_rng(zlib.crc32(f"{op} {number_of_case} {name}".encode()))
        as_dtype = {"T": dtype, "S": stat_dtype(dtype)}.get(as_dtype, as_dtype)
        i.put(name, tensor_values(as_dtype, shape, how, rng), as_dtype)
    return i


# ---- ops ----

class Op:
    def __init__(self, name, family, ref, cases, int_cases, ints, out):
        self.name, self.family, self.ref, self.out = name, family, ref, out
        self.cases = {d: cases for d in FLOATS} | {d: int_cases for d in ints}

    def outputs(self, i, p):
        """The reference's results; by name."""
        y = self.ref(i, p)
        return y if isinstance(y, dict) else {"y": y}

    def out_dtype(self, name, i, p):
        dtype = self.out.get(name, "T")
        dtype = dtype(i, p) if callable(dtype) else dtype
        return {"T": i.dtype, "S": stat_dtype(i.dtype)}.get(dtype, dtype)

    def prepare(self, n, text, dtype):
        tensors, words = cut(text)
        return make_inputs(self.name, n, tensors, dtype), words

    def build(self):
        """(case, call, tensors by name with their dtypes) for every case and dtype."""
        for dtype, cases in self.cases.items():
            for n, text in enumerate(cases):
                case = f"{self.name}.{n}.{dtype}"
                i, words = self.prepare(n, text, dtype)
                p = read_params(words, dtype)
                made = self.outputs(i, p)
                tensors = {f"{case}.in.{k}": (i.stored[k], d) for k, d in i.dtypes.items()}
                for name, y in made.items():
                    as_dtype = self.out_dtype(name, i, p)
                    tensors[f"{case}.out.{name}"] = (store(y, as_dtype), as_dtype)
                call = " ".join([self.name] + [f"{k}={dtype if v == 'T' else v}" for k, v in words])
                yield case, call, tensors


class Gradient(Op):
    """A backward op: its calls follow from the forward's."""

    def __init__(self, name, family, forward, wrt, cases, formula, grads, give, drop, sizes, out, ints):
        super().__init__(name, family, formula, cases, cases, ints, out)
        self.forward, self.wrt, self.grads = forward, wrt, grads
        self.give, self.drop, self.sizes = give, drop, sizes

    def prepare(self, n, text, dtype):
        i, words = super().prepare(n, text, dtype)
        made = self.forward.outputs(i, read_params(words, dtype))
        words = words + [(k, ",".join(map(str, i[x].shape))) for k, x in self.sizes.items()]
        p = read_params(words, dtype)
        for name in self.give if "alone" not in text.split() else []:
            as_dtype = self.forward.out_dtype(name, i, p)
            i.put(name, store(made[name], as_dtype), as_dtype)
        for name in self.grads:
            if f"d{name}" not in i and name in made:
                rng = np.random.default_rng(zlib.crc32(f"{self.name} {n} d{name}".encode()))
                i.put(f"d{name}", tensor_values(dtype, list(made[name].shape), "", rng), dtype)
        return i, words

    def outputs(self, i, p):
        slopes = self.by_autograd(i, p)
        for name in self.drop:
            i.pop(name, None)
            i.dtypes.pop(name, None)
        if not self.ref:
            return slopes
        y = self.ref(i, p)
        if i.dtype == "f64":
            for name in y:
                torch.testing.assert_close(y[name], slopes[name], rtol=1e-9, atol=1e-10, equal_nan=True)
        return y

    def by_autograd(self, i, p):
        given = [name for name in (self.wrt(i) if callable(self.wrt) else self.wrt) if name in i]
        leaves = Inputs(i.dtype)
        leaves.update(i)
        leaves.dtypes.update(i.dtypes)
        for name in given:
            leaves[name] = i[name].double().requires_grad_()
        made = self.forward.outputs(leaves, p)
        pairs = [(made[name], i[f"d{name}"]) for name in self.grads if name in made and made[name].requires_grad]
        slopes = torch.autograd.grad([y for y, _ in pairs], [leaves[n] for n in given],
                                     [dy.double() for _, dy in pairs],
                                     allow_unused=True) if pairs else [None] * len(given)
        return {f"d{n}": torch.zeros_like(i[n]) if g is None else g.to(i[n].dtype) for n, g in zip(given, slopes)}


def family_of_caller():
    return inspect.getmodule(inspect.stack()[2][0]).__name__


def op(name, cases, ints=(), int_cases=None, out=None):
    """Registers the function below as the reference of an op on all floats, and on these integer dtypes too.
    out: the dtype of outputs other than T, or a function of (i, p) that says it."""
    family = family_of_caller()

    def register(ref):
        OPS[name] = Op(name, family, ref, cases, cases if int_cases is None else int_cases, ints, out or {})
        return ref
    return register


def gradient(of, wrt, cases=None, name=None, formula=None, grads=("y",), give=(), drop=(), sizes=None, out=None,
             ints=()):
    """Registers the gradient of an op with respect to its inputs wrt, by autograd, on all floats and these integers.
    cases: the forward's where not given. grads: outputs whose d is an input. give: outputs the gradient takes.
    drop: inputs it does not take. sizes: parameters that are the shape of an input. formula: the gradient from
    what it is given, where that is rounded (y, saved statistics); in f64 it must agree with autograd."""
    forward = OPS[of]
    name = name or of + "_backward"
    OPS[name] = Gradient(name, family_of_caller(), forward, wrt, cases or forward.cases["f32"], formula, grads,
                         give, drop, sizes or {}, out or {}, ints)


# ---- the file ----

def write(path, cases):
    """Writes the cases as a safetensors file; returns its size."""
    header = {"__metadata__": {case: call for case, call, _ in cases}}
    tensors = {name: t for _, _, made in cases for name, t in made.items()}
    at, data = 0, []
    # Wide dtypes first: so every tensor lies aligned without gaps.
    for name, (array, dtype) in sorted(tensors.items(), key=lambda t: -t[1][0].itemsize):
        header[name] = {"dtype": dtype.upper(), "shape": list(array.shape), "data_offsets": [at, at + array.nbytes]}
        at += array.nbytes
        data.append(array.astype(array.dtype.newbyteorder("<")).tobytes())
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as f:
        f.write(len(text).to_bytes(8, "little") + text + b"".join(data))
    return 8 + len(text) + at
