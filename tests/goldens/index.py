"""index.py: references of the ops that ids lead. The largest value of an id dtype is padding."""
import torch

from golden import INTS, gradient, limits, op


def padding(i):
    return i.ids == int(limits(i.dtypes["ids"]).max)


GATHER = ["x=T[4,5] ids=i64[4,3]:0..5 dim=1", "x=T[3,4,2] ids=i32[2,5,2]:0..4 dim=-2",
          "x=T[5] ids=u8[4]:{0,255,4,4} dim=0", "x=T[3,2] ids=u32[2,2]:{2,4294967295,0,1} dim=0",
          "x=T[3] ids=i64[2]:{max,1} dim=0", "x=T[3,2] ids=i64[0,2] dim=0"]
SCATTER = ["x=T[4,5] ids=i64[4,3]:{0,2,2,1,0,4,3,3,3,4,1,0} src=T[4,3] dim=1",
           "x=T[3,4,2] ids=i32[2,5,2]:0..4 src=T[2,5,2] dim=1", "x=T[5] ids=u8[4]:{0,255,4,4} src=T[4] dim=0",
           "x=T[3,2] ids=u32[2,2]:{2,4294967295,0,1} src=T[2,2] dim=-2"]
SELECT = ["x=T[4,5] ids=i64[3]:{3,0,3} dim=0", "x=T[2,3,2] ids=i32[4]:{2,2147483647,0,1} dim=1",
          "x=T[5] ids=u8[3]:{4,255,1} dim=0", "x=T[3,2] ids=u32[2]:{4294967295,1} dim=-1",
          "x=T[3,2] ids=i64[0] dim=0"]
ADD = ["x=T[4,5] ids=i64[3]:{3,0,3} src=T[3,5] dim=0", "x=T[2,3,2] ids=i32[4]:{2,2147483647,0,2} src=T[2,4,2] dim=1",
       "x=T[5] ids=u8[3]:{4,255,4} src=T[3] dim=0", "x=T[3,2] ids=u32[2]:{4294967295,1} src=T[3,2] dim=-1",
       "x=T[3,2] ids=i64[0] src=T[0,2] dim=0"]


@op("gather", GATHER, ints=INTS)
def gather(i, p):
    y = torch.gather(i.x, p.dim, torch.where(padding(i), 0, i.ids))
    return torch.where(padding(i), torch.zeros_like(y), y)


@op("scatter_add", SCATTER, ints=INTS)
def scatter_add(i, p):
    src = torch.where(padding(i), torch.zeros_like(i.src), i.src)
    return torch.scatter_add(i.x, p.dim, torch.where(padding(i), 0, i.ids), src)


@op("scatter", SCATTER, ints=INTS)
def scatter(i, p):
    """One place along dim after the other, so that the last one wins."""
    y = i.x
    for n in range(i.ids.shape[p.dim]):
        ids, skip, src = (t.narrow(p.dim, n, 1) for t in (i.ids, padding(i), i.src))
        ids = torch.where(skip, 0, ids)
        y = torch.scatter(y, p.dim, ids, torch.where(skip, torch.gather(y, p.dim, ids), src))
    return y


@op("index_select", SELECT, ints=INTS)
def index_select(i, p):
    y = torch.index_select(i.x, p.dim, torch.where(padding(i), 0, i.ids))
    mask = along(padding(i), p.dim, y)
    return torch.where(mask, torch.zeros_like(y), y)


@op("index_add", ADD, ints=INTS)
def index_add(i, p):
    src = torch.where(along(padding(i), p.dim, i.src), torch.zeros_like(i.src), i.src)
    return torch.index_add(i.x, p.dim, torch.where(padding(i), 0, i.ids), src)


def along(line, dim, like):
    """A line laid along a dim of another tensor, to broadcast with it."""
    shape = [1] * like.dim()
    shape[dim] = -1
    return line.reshape(shape)


gradient("gather", ["x"], drop=["x"], sizes={"input_size": "x"}, ints=INTS)
gradient("index_select", ["x"], drop=["x"], sizes={"input_size": "x"}, ints=INTS)
for name in ["scatter", "scatter_add", "index_add"]:
    gradient(name, ["x", "src"], drop=["x", "src"], ints=INTS)
