"""matmul.py: references of the matrix products."""
import torch
import torch.nn.functional as F

from golden import gradient, op


@op("matmul", ["a=T[4,5] b=T[5,3]", "a=T[5] b=T[5]", "a=T[2,3,4] b=T[4]", "a=T[4] b=T[2,4,3]",
               "a=T[2,1,3,4] b=T[2,4,2]", "a=T[3,0] b=T[0,2]", "a=T[7,19] b=T[19,9]",
               "a=T[0,3] b=T[3,2]", "a=T[2,2]:{1,inf,nan,0} b=T[2,2]:{0,1,2,-1}"])
def matmul(i, p):
    return torch.matmul(i.a, i.b)


gradient("matmul", ["a", "b"], cases=["a=T[4,5] b=T[5,3]", "a=T[5] b=T[5]", "a=T[2,3,4] b=T[4]", "a=T[4] b=T[2,4,3]",
                                      "a=T[2,1,3,4] b=T[2,4,2]"])

ACTS = {"none": lambda y: y, "relu": F.relu, "gelu": lambda y: F.gelu(y, approximate="tanh"), "gelu_erf": F.gelu,
        "silu": F.silu}


@op("linear", ["x=T[4,5] weight=T[3,5] bias=T[3]", "x=T[2,3,5] weight=T[4,5]", "x=T[5] weight=T[3,5] act=relu",
               "x=T[2,0] weight=T[3,0] bias=T[3]"] +
    [f"x=T[3,5] weight=T[4,5] bias=T[4] act={act}" for act in ("gelu", "gelu_erf", "silu")])
def linear(i, p):
    return ACTS[p.act or "none"](F.linear(i.x, i.weight, i.bias))


gradient("linear", ["x", "weight", "bias"], cases=["x=T[4,5] weight=T[3,5] bias=T[3]",
                                                   "x=T[2,3,5] weight=T[4,5] bias=T[4]",
                                                   "x=T[2,0,5] weight=T[4,5] bias=T[4]"], drop=["bias"])
