"""loss.py: references of the losses, the optimizer steps, and dropout's gradient."""
import torch
import torch.nn.functional as F

from golden import limits, op

# ---- losses: each gives its gradient too ----


def with_slope(f, x, name="y"):
    x = x.clone().requires_grad_()
    y = f(x)
    y.sum().backward()
    return {name: y, "dx": x.grad}


def class_loss(f):
    def ref(i, p):
        pad = int(limits(i.dtypes["target"]).max)
        return with_slope(lambda x: f(x, i.target, ignore_index=pad, reduction=p.reduction or "mean"), i.x)
    return ref


CLASSES = ["x=T[4,5] target=i64[4]:0..5", "x=T[3,4] target=u8[3]:{3,0,255} reduction=none",
           "x=T[3,4] target=i32[3]:0..4 reduction=sum", "x=T[3,4] target=u32[3]:{1,4294967295,2} reduction=mean",
           "x=T[2,3]:-40..40 target=i64[2]:0..3 reduction=none",
           "x=T[0,3] target=i64[0] reduction=sum", "x=T[0,3] target=i64[0]"]
op("cross_entropy", CLASSES)(class_loss(F.cross_entropy))
op("nll_loss", [c.replace("T[4,5]", "T[4,5]:-3..-0.1") for c in CLASSES])(class_loss(F.nll_loss))

PAIRS = ["x=T[3,4] target=T[3,4]", "x=T[5] target=T[5] reduction=sum", "x=T[2,3] target=T[2,3] reduction=none",
         "x=T[0] target=T[0]", "x=T[] target=T[]"]


@op("mse_loss", PAIRS)
def mse_loss(i, p):
    return with_slope(lambda x: F.mse_loss(x, i.target, reduction=p.reduction or "mean"), i.x)


@op("bce_with_logits", ["x=T[3,4] target=T[3,4]:0..1", "x=T[5]:-80..80 target=T[5]:0..1 reduction=sum",
                        "x=T[2,3] target=T[2,3]:{0,1,1,0,0.5,1} reduction=none"])
def bce_with_logits(i, p):
    return with_slope(lambda x: F.binary_cross_entropy_with_logits(x, i.target, reduction=p.reduction or "mean"), i.x)


@op("huber_loss", PAIRS + ["x=T[6]:{0,1,2,-3,0.5,-0.5} target=T[6]:{0,0,0,0,0,0} delta=0.5 reduction=none"])
def huber_loss(i, p):
    return with_slope(lambda x: F.huber_loss(x, i.target, p.reduction or "mean", 1.0 if p.delta is None else p.delta),
                      i.x)


@op("ctc_loss", [
    "x=T[7,3,5] labels=i32[3,3]:{1,2,2,3,4,0,1,1,0} input_lengths=i32[3]:{7,5,6} label_lengths=i32[3]:{3,2,1} logits=1",
    "x=T[6,2,4]:-4..-0.5 labels=i32[2,2]:{0,1,2,2} input_lengths=i64[2]:{6,6} label_lengths=i64[2]:{2,2} blank=3",
    "x=T[4,2,3] labels=i32[2,3]:{1,2,1,1,1,1} input_lengths=i32[2]:{4,4} label_lengths=i32[2]:{0,3} logits=1 "
    "zero_infinity=1",
    "x=T[3,2,3] labels=i32[2,2]:{1,1,1,2} input_lengths=i32[2]:{2,3} label_lengths=i32[2]:{2,2} logits=1"])
def ctc_loss(i, p):
    def loss(x):
        x = x.log_softmax(-1) if p.logits else x
        return F.ctc_loss(x, i.labels, i.input_lengths, i.label_lengths, p.blank or 0, "none", bool(p.zero_infinity))
    made = with_slope(loss, i.x, "loss")
    if torch.isinf(made["loss"]).any():
        del made["dx"]  # the slope of infinity
    return made


# ---- optimizer steps ----


def step(kind, i, state, **options):
    param = i.param.clone().requires_grad_()
    param.grad = i.grad
    optimizer = kind([param], **options)
    if state:
        optimizer.state[param].update(state)
    optimizer.step()
    return param.detach(), optimizer.state[param]


@op("sgd_step", ["param=T[3,4] grad=T[3,4] lr=0.1", "param=T[7] grad=T[7] momentum=T[7] lr=0.05 momentum=0.9 "
                 "weight_decay=0.1", "param=T[5] grad=T[5] momentum=S[5] lr=0.05 momentum=0.8"],
    out={"momentum": lambda i, p: i.dtypes["momentum"]})
def sgd_step(i, p):
    state = {} if i.momentum is None else {"momentum_buffer": i.momentum.clone()}
    param, state = step(torch.optim.SGD, i, state, lr=p.lr, momentum=p.momentum or 0, weight_decay=p.weight_decay or 0)
    made = {"param": param}
    if i.momentum is not None:
        made["momentum"] = state["momentum_buffer"]
    return made


@op("adamw_step", [
    "param=T[3,4] grad=T[3,4] m=T[3,4] v=T[3,4]:0.1..1 lr=0.01 beta1=0.9 beta2=0.99 eps=1e-8 weight_decay=0.1 step=3",
    "param=T[5] grad=T[5] m=S[5] v=S[5]:0..0.5 lr=0.1 beta1=0.8 beta2=0.95 eps=1e-6 weight_decay=0 step=1"],
    out={name: lambda i, p, name=name: i.dtypes[name] for name in ("m", "v")})
def adamw_step(i, p):
    state = {"step": torch.tensor(float(p.step - 1)), "exp_avg": i.m.clone(), "exp_avg_sq": i.v.clone()}
    param, state = step(torch.optim.AdamW, i, state, lr=p.lr, betas=(p.beta1, p.beta2), eps=p.eps,
                        weight_decay=p.weight_decay)
    return {"param": param, "m": state["exp_avg"], "v": state["exp_avg_sq"]}


# ---- dropout's gradient, by a mask that is given ----


@op("dropout_backward", ["dy=T[3,5] mask=u8[3,5]:0..2 p=0.25 seed=1"])
def dropout_backward(i, p):
    return {"dx": i.dy * i.mask / (1 - p.p)}
