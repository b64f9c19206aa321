"""norm.py: references of the normalisations."""
import torch
import torch.nn.functional as F

from golden import gradient, op

STATS = {name: "S" for name in ("new_mean", "new_var", "save_mean", "save_invstd")}

# ---- batch norm ----


def stat_dims(x, mode):
    return [0] if mode == "per_activation" else [0] + list(range(2, x.dim()))


def spread(s, x, mode):
    """Statistics in a shape that broadcasts with x."""
    return s.reshape([1] + list(x.shape[1:])) if mode == "per_activation" else \
        s.reshape([1, -1] + [1] * (x.dim() - 2))


def normalise(x, i, p, mean, invstd):
    y = (x - spread(mean, x, p.mode)) * spread(invstd, x, p.mode)
    if i.weight is not None:
        y = y * spread(i.weight, x, p.mode)
    return y + spread(i.bias, x, p.mode) if i.bias is not None else y


def statistics(shape):
    return f"weight=S[{shape}] bias=S[{shape}] running_mean=S[{shape}] running_var=S[{shape}]:0.5..2"


TRAIN = [f"x=T[3,2,2,3] {statistics('2')}", f"x=T[2,3,5]:9..11 {statistics('3')} eps=0.01 momentum=0.3 mode=spatial",
         f"x=T[4,2,2,1] {statistics('2,2,1')} mode=per_activation", "x=T[3,2,2,2]"]


@op("batch_norm_train", TRAIN, out=STATS)
def batch_norm_train(i, p):
    eps, momentum = (1e-5 if p.eps is None else p.eps), (0.1 if p.momentum is None else p.momentum)
    dims = stat_dims(i.x, p.mode)
    mean, var = i.x.mean(dims), i.x.var(dims, correction=0)
    invstd = torch.rsqrt(var + eps)
    made = {"y": normalise(i.x, i, p, mean, invstd), "save_mean": mean, "save_invstd": invstd}
    if i.running_mean is not None:
        made["new_mean"] = (1 - momentum) * i.running_mean + momentum * mean
        made["new_var"] = (1 - momentum) * i.running_var + momentum * i.x.var(dims, correction=1)
        if p.mode != "per_activation" and not i.x.requires_grad:
            agree(i, made, eps, momentum)
    return made


def agree(i, made, eps, momentum):
    """The formulas above are PyTorch's batch_norm."""
    mean, var = i.running_mean.clone(), i.running_var.clone()
    y = F.batch_norm(i.x, mean, var, i.weight, i.bias, True, momentum, eps)
    for a, b in [(y, made["y"]), (mean, made["new_mean"]), (var, made["new_var"])]:
        torch.testing.assert_close(a, b, rtol=1e-9, atol=1e-9)


@op("batch_norm_infer",
    ["x=T[3,2,2,3] weight=S[2] bias=S[2] mean=S[2] var=S[2]:0.5..2 eps=1e-5", "x=T[2,3,5] mean=S[3] var=S[3]:0.5..2 "
     "eps=0.01 mode=spatial", "x=T[3,2,2,1] weight=S[2,2,1] bias=S[2,2,1] mean=S[2,2,1] var=S[2,2,1]:0.5..2 eps=1e-3 "
     "mode=per_activation"])
def batch_norm_infer(i, p):
    return normalise(i.x, i, p, i["mean"], torch.rsqrt(i["var"] + p.eps))


def batch_norm_slope(i, p):
    """From the saved statistics."""
    dims = stat_dims(i.x, p.mode)
    mean, invstd = spread(i.save_mean, i.x, p.mode), spread(i.save_invstd, i.x, p.mode)
    n = (i.x - mean) * invstd
    dbias, dweight = i.dy.sum(dims), (i.dy * n).sum(dims)
    g = i.dy if i.weight is None else i.dy * spread(i.weight, i.x, p.mode)
    dx = invstd * (g - g.mean(dims, keepdim=True) - n * (g * n).mean(dims, keepdim=True))
    return {"dx": dx, "dweight": dweight, "dbias": dbias}


def affine_stats(shape):
    return f"weight=S[{shape}] bias=S[{shape}]"


gradient("batch_norm_train", ["x", "weight", "bias"], name="batch_norm_backward", formula=batch_norm_slope,
         cases=[f"x=T[3,2,2,3] {affine_stats('2')}", f"x=T[2,3,5] {affine_stats('3')} mode=spatial",
                f"x=T[4,2,2,1] {affine_stats('2,2,1')} mode=per_activation"],
         give=["save_mean", "save_invstd"], drop=["bias"], out={"dweight": "S", "dbias": "S"})

# ---- along a line, in groups ----


def eps_of(p):
    return 1e-5 if p.eps is None else p.eps


@op("layer_norm", ["x=T[3,7] weight=T[7] bias=T[7]", "x=T[2,3,5] eps=0.1", "x=T[2,9]:20..21 weight=T[9] bias=T[9]",
                   "x=T[4]", "x=T[0,5] weight=T[5] bias=T[5]"])
def layer_norm(i, p):
    return F.layer_norm(i.x, i.x.shape[-1:], i.weight, i.bias, eps_of(p))


@op("rms_norm", ["x=T[3,7] weight=T[7]", "x=T[2,3,5] eps=0.1", "x=T[2,4]:{0,0,0,0,1,2,3,4}"])
def rms_norm(i, p):
    return F.rms_norm(i.x, i.x.shape[-1:], i.weight, eps_of(p))


@op("group_norm", ["x=T[2,4,3,2] weight=T[4] bias=T[4] groups=2", "x=T[2,6,3] groups=3 eps=0.1",
                   "x=T[2,3,5]:20..21 weight=T[3] bias=T[3] groups=1", "x=T[2,4] groups=2"])
def group_norm(i, p):
    return F.group_norm(i.x, p.groups, i.weight, i.bias, eps_of(p))


gradient("layer_norm", ["x", "weight", "bias"], cases=["x=T[3,7] weight=T[7] bias=T[7]",
                                                       "x=T[2,3,5] weight=T[5] bias=T[5] eps=0.1"], drop=["bias"])
gradient("rms_norm", ["x", "weight"], cases=["x=T[3,7] weight=T[7]", "x=T[2,3,5] weight=T[5] eps=0.1"])
gradient("group_norm", ["x", "weight", "bias"], cases=["x=T[2,4,3,2] weight=T[4] bias=T[4] groups=2",
                                                       "x=T[2,6,3] weight=T[6] bias=T[6] groups=3 eps=0.1"],
         drop=["bias"])

# ---- local response ----


@op("lrn", ["x=T[2,5,2,3] size=3 alpha=0.5 beta=0.75 k=1", "x=T[1,6,2,2] size=4 alpha=0.2 beta=0.5 k=2 mode=cross",
            "x=T[1,2,5,4] size=3 alpha=0.5 beta=0.75 k=1 mode=within",
            "x=T[1,2,4,5] size=2 alpha=0.3 beta=0.6 k=1.5 mode=within"])
def lrn(i, p):
    if p.mode != "within":
        return F.local_response_norm(i.x, p.size, p.alpha, p.beta, p.k)
    before, after = p.size // 2, (p.size - 1) // 2
    squares = F.pad(i.x * i.x, (before, after, before, after))
    return i.x / (p.k + p.alpha * F.avg_pool2d(squares, p.size, 1)) ** p.beta


gradient("lrn", ["x"], give=["y"])
