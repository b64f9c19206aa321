"""copies.py: references of the ops that move elements without computing."""
import torch
import torch.nn.functional as F

from golden import FLOATS, INTS, limits, op

SPECIAL = "x=T[6]:{nan,inf,-inf,0,-0.0,1}"


@op("copy", ["x=T[3,5]", "x=T[]", "x=T[0,3]", SPECIAL], ints=INTS,
    int_cases=["x=T[3,5]", "x=T[]", "x=T[0,3]", "x=T[3]:{min,max,1}"])
def copy(i, p):
    return i.x.clone()


@op("copy2d", ["x=T[4,5] dst=T[3,6] rows=2 cols=3 src_stride=5 dst_stride=6 src_offset=6 dst_offset=1",
               "x=T[12] dst=T[20] rows=4 cols=2 src_stride=3 dst_stride=5 src_offset=0 dst_offset=3",
               "x=T[3] dst=T[4] rows=0 cols=3 src_stride=3 dst_stride=4 src_offset=0 dst_offset=0"], ints=INTS)
def copy2d(i, p):
    y = i.dst.clone()
    size = (p.rows, p.cols)
    torch.as_strided(y, size, (p.dst_stride, 1), p.dst_offset).copy_(
        torch.as_strided(i.x, size, (p.src_stride, 1), p.src_offset))
    return y


def tensors(i):
    return [i[f"t{n}"] for n in range(len(i.dtypes))]


@op("cat", ["t0=T[2,3] t1=T[4,3] dim=0", "t0=T[2,3,2] t1=T[2,1,2] t2=T[2,0,2] t3=T[2,2,2] dim=-2", "t0=T[3] dim=0"],
    ints=INTS)
def cat(i, p):
    return torch.cat(tensors(i), p.dim)


@op("stack", ["t0=T[2,3] t1=T[2,3] t2=T[2,3] dim=1", "t0=T[2,3] t1=T[2,3] dim=-1", "t0=T[] t1=T[] dim=0"], ints=INTS)
def stack(i, p):
    return torch.stack(tensors(i), p.dim)


@op("pad", ["x=T[3,4] dim=0 left=1 right=2", "x=T[3,4] dim=-1 left=2 right=0 mode=same",
            "x=T[2,5,3] dim=1 left=3 right=4 mode=reflect", "x=T[4] dim=0 left=0 right=0 mode=zeros"], ints=INTS)
def pad(i, p):
    mode = {"zeros": "constant", "same": "replicate", "reflect": "reflect"}[p.mode or "zeros"]
    x = i.x.transpose(p.dim, -1)
    flat = x.reshape(1, -1, x.shape[-1])
    if flat.dtype != torch.float64 and mode != "constant":  # PyTorch pads integers with zeros only
        at = F.pad(torch.arange(x.shape[-1], dtype=torch.float64)[None, None], (p.left, p.right), mode)
        return x[..., at[0, 0].long()].transpose(p.dim, -1).contiguous()
    y = F.pad(flat, (p.left, p.right), mode)
    return y.reshape(list(x.shape[:-1]) + [-1]).transpose(p.dim, -1).contiguous()


@op("flip", ["x=T[5] dims=0", "x=T[2,3,4] dims=0,2", "x=T[3,2] dims=-1"], ints=INTS)
def flip(i, p):
    return torch.flip(i.x, [p.dims] if isinstance(p.dims, int) else p.dims)


@op("slice_assign", ["x=T[4,5] src=T[2,3] start=1,2", "x=T[7] src=T[2] start=5", "x=T[2,3] src=T[2,0] start=0,3"],
    ints=INTS)
def slice_assign(i, p):
    y = i.x.clone()
    start = [p.start] if isinstance(p.start, int) else p.start
    y[tuple(slice(s, s + n) for s, n in zip(start, i.src.shape))] = i.src
    return y


# The dtype under test is that of the result.
ONE_HOT = ["ids=i64[6]:{0,2,-1,1,3,max} depth=4 dtype=T", "ids=u8[2,3]:{0,2,1,255,1,0} depth=3 on=2 off=1 dtype=T",
           "ids=i32[3]:{0,2147483647,1} depth=2 on=5 dtype=T", "ids=u32[2]:{1,4294967295} depth=2 off=3 dtype=T"]


@op("one_hot", ONE_HOT, ints=INTS,
    int_cases=ONE_HOT + ["ids=i64[2]:{1,0} depth=2 on=9007199254740993 off=9223372036854775806 dtype=T"])
def one_hot(i, p):
    ids = torch.where(i.ids == int(limits(i.dtypes["ids"]).max), -1, i.ids)
    hit = F.one_hot(torch.where(ids < 0, p.depth, ids), p.depth + 1)[..., :p.depth]
    on, off = 1 if p.on is None else p.on, 0 if p.off is None else p.off
    y = torch.where(hit != 0, on, off)
    return y.to(torch.float64 if i.dtype in FLOATS else torch.int64)


for name, f in [("tril", torch.tril), ("triu", torch.triu)]:
    op(name, ["x=T[4,5]", "x=T[2,3,3] diagonal=1", "x=T[4,3] diagonal=-2"], ints=INTS)(
        lambda i, p, f=f: f(i.x, p.diagonal or 0))
