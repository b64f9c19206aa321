"""conv.py: references of the convolutions."""
import torch.nn.functional as F

from golden import gradient, op

CASES = {
    "conv1d": ["x=T[2,3,9] weight=T[4,3,3] bias=T[4]",
               "x=T[2,4,10] weight=T[6,2,3] stride=2 padding=2 dilation=2 groups=2",
               "x=T[1,3,5] weight=T[6,1,2] bias=T[6] groups=3"],
    "conv2d": ["x=T[2,3,5,6] weight=T[4,3,3,3] bias=T[4] padding=1",
               "x=T[2,4,7,6] weight=T[4,2,3,2] stride=2,1 padding=1,0 dilation=1,2 groups=2",
               "x=T[1,3,5,5] weight=T[3,1,3,3] bias=T[3] groups=3 stride=2 padding=1",
               "x=T[2,3,3,4] weight=T[5,3,1,1] bias=T[5]", "x=T[0,3,4,4] weight=T[2,3,3,3] bias=T[2]"],
    "conv3d": ["x=T[1,2,4,4,5] weight=T[3,2,2,3,2] bias=T[3]",
               "x=T[2,2,4,3,4] weight=T[4,1,2,2,3] stride=2,1,1 padding=1,0,1 dilation=1,2,1 groups=2"],
    "conv_transpose1d": ["x=T[2,3,5] weight=T[3,4,3] bias=T[4]",
                         "x=T[2,4,5] weight=T[4,3,3] stride=2 padding=1 dilation=2 groups=2 output_padding=1"],
    "conv_transpose2d": ["x=T[2,3,3,4] weight=T[3,4,3,3] bias=T[4] padding=1",
                         "x=T[2,4,3,4] weight=T[4,3,3,2] stride=2,3 padding=1,0 dilation=1,2 groups=2 "
                         "output_padding=1,2",
                         "x=T[1,3,3,3] weight=T[3,1,2,2] bias=T[3] groups=3 stride=2"],
}


def conv(name, cases):
    f = getattr(F, name)

    @op(name, cases)
    def ref(i, p):
        options = {k: p[k] for k in ("stride", "padding", "dilation", "groups", "output_padding") if k in p}
        return f(i.x, i.weight, i.bias, **options)

    gradient(name, ["x"], name=name + "_backward_data", drop=["x", "bias"], sizes={"input_size": "x"})
    # With a bias in each case: its gradient is a result.
    biased = [c if "bias" in c else f"{c} bias=T[{outputs(c, 'transpose' in name)}]" for c in cases]
    gradient(name, ["weight", "bias"], name=name + "_backward_weight", cases=biased, drop=["weight", "bias"],
             sizes={"kernel_size": "weight"})


def outputs(case, transposed):
    """The number of output channels of a case."""
    weight = case.split("weight=T[")[1].split("]")[0].split(",")
    groups = case.split("groups=")[1].split()[0] if "groups=" in case else 1
    return int(weight[1]) * int(groups) if transposed else int(weight[0])


for name, cases in CASES.items():
    conv(name, cases)
