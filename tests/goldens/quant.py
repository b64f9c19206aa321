"""quant.py: references of the ops on weights in blocks of few bits, by the formats' description."""
import sys

import numpy as np
import torch

from golden import op

sys.path.append(sys.path[0] + "/../models")
import gguf_models  # noqa: E402

gguf_models.REAL = np.float64


def weights(bytes_, p):
    """The numbers of a u8 tensor [.., bytes of a row]."""
    b = bytes_.numpy().astype(np.uint8)
    rows = gguf_models.READERS[p.format](b.reshape(-1, gguf_models.TYPES[p.format][2]))
    return torch.from_numpy(rows.reshape(*b.shape[:-1], -1))


def activate(y, act):
    if act in ("gelu", "gelu_erf"):
        return torch.nn.functional.gelu(y, approximate="tanh" if act == "gelu" else "none")
    return {None: lambda v: v, "relu": torch.relu, "silu": torch.nn.functional.silu}[act](y)


@op("qlinear", ["x=T[2,64] weight=u8[3,36]:q4_0 format=q4_0", "x=T[1,3,32] weight=u8[5,34]:q8_0 bias=T[5] format=q8_0 act=silu",
                "x=T[1,256] weight=u8[2,144]:q4_k format=q4_k act=gelu", "x=T[9,256] weight=u8[2,210]:q6_k format=q6_k act=relu",
                "x=T[1,288] weight=u8[2,162]:q4_0 bias=T[2] format=q4_0 act=gelu_erf"])
def qlinear(i, p):
    y = i.x @ weights(i.weight, p).T
    return activate(y if i.bias is None else y + i.bias, p.act)


@op("dequantize", ["weight=u8[2,18]:q4_0 format=q4_0 dtype=T", "weight=u8[34]:q8_0 format=q8_0 dtype=T",
                   "weight=u8[2,144]:q4_k format=q4_k dtype=T", "weight=u8[1,2,210]:q6_k format=q6_k dtype=T"])
def dequantize(i, p):
    return weights(i.weight, p)


@op("qembedding", ["weight=u8[3,18]:q4_0 ids=i64[2]:{2,0} format=q4_0 dtype=T", "weight=u8[3,34]:q8_0 ids=u8[2,2]:{1,255,0,2} format=q8_0 dtype=T",
                   "weight=u8[2,144]:q4_k ids=i32[1]:{1} format=q4_k dtype=T", "weight=u8[2,210]:q6_k ids=u32[]:{1} format=q6_k dtype=T"])
def qembedding(i, p):
    none = i.ids == {"i64": 2**63 - 1, "u8": 255, "i32": 2**31 - 1, "u32": 2**32 - 1}[i.dtypes["ids"]]
    y = weights(i.weight, p)[torch.where(none, 0, i.ids)]
    return torch.where(none[..., None], 0, y)
