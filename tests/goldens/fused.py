"""fused.py: references of the ops that do several things in one pass, and of expressions."""
import math

import torch
import torch.nn.functional as F

from attention import turn
from golden import gradient, limits, op
from loss import adamw_step, sgd_step

# ---- an activation at the end ----


def activate(x, p):
    a = {"leaky_relu": 0.01, "clamp": -math.inf}.get(p.act, 1.0) if p.alpha is None else p.alpha
    b = math.inf if p.beta is None else p.beta
    return {
        "none": lambda: x, "relu": lambda: F.relu(x), "gelu": lambda: F.gelu(x, approximate="tanh"),
        "gelu_erf": lambda: F.gelu(x), "silu": lambda: F.silu(x), "sigmoid": lambda: torch.sigmoid(x),
        "tanh": lambda: torch.tanh(x), "softplus": lambda: torch.logaddexp(x, torch.zeros_like(x)),
        "leaky_relu": lambda: F.leaky_relu(x, a), "elu": lambda: F.elu(x, a), "clamp": lambda: x.clamp(a, b),
        "relu6": lambda: F.relu6(x), "hard_swish": lambda: F.hardswish(x), "hard_sigmoid": lambda: F.hardsigmoid(x),
        "mish": lambda: F.mish(x), "abs": lambda: x.abs()}[p.act or "none"]()


def plus(x, z):
    return x if z is None else x + z


def along(bias, x, dim):
    shape = [1] * x.dim()
    shape[dim] = -1
    return bias.reshape(shape)


ACTS = ["none", "relu", "gelu", "gelu_erf", "silu", "sigmoid", "tanh", "softplus", "leaky_relu", "elu", "clamp",
        "relu6", "hard_swish", "hard_sigmoid", "mish", "abs"]


@op("bias_act", [f"x=T[3,4]:-4..7 bias=T[4] act={a}" for a in ACTS] + [
    "x=T[2,3,2] bias=T[3] z=T[2,3,2] dim=1 act=gelu", "x=T[5] z=T[5] act=leaky_relu alpha=0.2", "x=T[] act=elu alpha=0.5",
    "x=T[2,3] bias=T[3] act=clamp alpha=-0.5 beta=0.75", "x=T[0,3] bias=T[3] act=relu"])
def bias_act(i, p):
    x = i.x if i.bias is None else i.x + along(i.bias, i.x, -1 if p.dim is None else p.dim)
    return activate(plus(x, i.z), p)


gradient("bias_act", ["x", "bias"], cases=[
    "x=T[3,4] bias=T[4] act=gelu", "x=T[2,3,2] bias=T[3] z=T[2,3,2] dim=1 act=silu", "x=T[3,4] bias=T[4]",
    "x=T[5] z=T[5] act=tanh", "x=T[3,4] bias=T[4] act=leaky_relu alpha=0.2"])


def gate_and_up(i):
    return (i.gate, i.up) if i.up is not None else i.gate.chunk(2, -1)


@op("silu_mul", ["gate=T[3,4] up=T[3,4]", "gate=T[3,6]", "gate=T[2,2,4]", "gate=T[0,4]"])
def silu_mul(i, p):
    gate, up = gate_and_up(i)
    return F.silu(gate) * up


gradient("silu_mul", ["gate", "up"])


@op("linear_act", ["x=T[3,5] weight=T[4,5] bias=T[4] z=T[3,4] act=gelu", "x=T[2,3,5] weight=T[4,5] act=tanh",
                   "x=T[5] weight=T[3,5] bias=T[3]", "x=T[3,0] weight=T[2,0] z=T[3,2] act=relu"])
def linear_act(i, p):
    return activate(plus(F.linear(i.x, i.weight, i.bias), i.z), p)


def convolve(i, p):
    def two(v, absent):
        return absent if v is None else v
    return F.conv2d(i.x, i.weight, i.bias, two(p.stride, 1), two(p.padding, 0), two(p.dilation, 1), p.groups or 1)


@op("conv2d_bias_act", ["x=T[2,3,5,4] weight=T[4,3,3,3] bias=T[4] z=T[2,4,5,4] padding=1 act=relu",
                        "x=T[1,4,5,6] weight=T[6,2,3,2] groups=2 stride=2,1 padding=1,0 act=silu",
                        "x=T[1,8,4,4] weight=T[16,8,1,1] bias=T[16] act=leaky_relu alpha=0.2",
                        "x=T[1,3,5,5] weight=T[3,1,3,3] groups=3 dilation=2 bias=T[3] act=clamp alpha=-1 beta=2"])
def conv2d_bias_act(i, p):
    return activate(plus(convolve(i, p), i.z), p)


@op("conv2d_bn_act", [
    "x=T[2,3,5,4] weight=T[4,3,3,3] mean=S[4] var=S[4]:0.5..2 padding=1 act=relu",
    "x=T[1,4,5,5] weight=T[4,1,3,3] bias=T[4] bn_weight=S[4] bn_bias=S[4] mean=S[4] var=S[4]:0.5..2 groups=4 eps=0.01 "
    "act=silu"])
def conv2d_bn_act(i, p):
    eps = 1e-5 if p.eps is None else p.eps
    return activate(F.batch_norm(convolve(i, p), i.mean, i.var, i.bn_weight, i.bn_bias, False, 0, eps), p)


@op("batch_norm_act", [
    "x=T[2,3,2,2] mean=S[3] var=S[3]:0.5..2 act=relu",
    "x=T[2,3,4] weight=S[3] bias=S[3] mean=S[3] var=S[3]:0.5..2 z=T[2,3,4] eps=0.01 act=elu",
    "x=T[3,2,2] weight=S[2,2] bias=S[2,2] mean=S[2,2] var=S[2,2]:0.5..2 mode=per_activation act=tanh"])
def batch_norm_act(i, p):
    eps = 1e-5 if p.eps is None else p.eps
    if p.mode != "per_activation":
        y = F.batch_norm(i.x, i.mean, i.var, i.weight, i.bias, False, 0, eps)
    else:
        y = (i.x - i.mean) * torch.rsqrt(i.var + eps) * i.weight + i.bias
    return activate(plus(y, i.z), p)


# ---- a sum before a norm ----


def add_norm(norm):
    def ref(i, p):
        total = i.x + i.residual if i.residual is not None else i.sum
        return {"y": norm(total, i, 1e-5 if p.eps is None else p.eps), "sum": total}
    return ref


def add_cases(bias):
    return [f"x=T[3,5] residual=T[3,5] weight=T[5]{bias}", "x=T[2,2,7] residual=T[2,2,7] eps=0.01",
            "x=T[0,3] residual=T[0,3]"]


op("add_layer_norm", add_cases(" bias=T[5]"))(
    add_norm(lambda s, i, eps: F.layer_norm(s, s.shape[-1:], i.weight, i.bias, eps)))
op("add_rms_norm", add_cases(""))(add_norm(lambda s, i, eps: F.rms_norm(s, s.shape[-1:], i.weight, eps)))


@op("rms_norm_linear", [
    "x=T[3,5] residual=T[3,5] norm=T[5] weight=T[4,5]:-1..1 bias=T[4]", "x=T[1,16] norm=T[16] weight=T[3,16]:-1..1 eps=0.01",
    "x=T[1,8] residual=T[1,8] norm=T[8] weight=T[6,8]:-0.25..0.25 bias=T[6]:-0.5..0.5 gated=1",
    "x=T[2,2,4] norm=T[4] weight=T[4,4]:-0.25..0.25 gated=1"])
def rms_norm_linear(i, p):
    total = plus(i.x, i.residual)
    y = F.linear(F.rms_norm(total, total.shape[-1:], i.norm, 1e-5 if p.eps is None else p.eps), i.weight, i.bias)
    if p.gated:
        gate, up = y.chunk(2, -1)
        y = F.silu(gate) * up
    return {"y": y, "sum": total}


def add_backward(centred):
    def ref(i, p):
        s, weight = i.sum.clone().requires_grad_(), i.weight
        n = s.shape[-1]
        weight = torch.ones(n, dtype=torch.float64) if weight is None else weight.clone()
        bias = torch.zeros(n, dtype=torch.float64).requires_grad_()
        weight.requires_grad_()
        eps = 1e-5 if p.eps is None else p.eps
        y = F.layer_norm(s, (n,), weight, bias, eps) if centred else F.rms_norm(s, (n,), weight, eps) + 0 * bias
        y.backward(i.dy)
        made = {"dx": s.grad if i.dsum is None else s.grad + i.dsum, "dweight": weight.grad}
        return made | ({"dbias": bias.grad} if centred else {})
    return ref


BACKWARD = ["sum=T[3,5] dy=T[3,5] dsum=T[3,5] weight=T[5]", "sum=T[2,2,7] dy=T[2,2,7] eps=0.01"]
op("add_layer_norm_backward", BACKWARD)(add_backward(True))
op("add_rms_norm_backward", BACKWARD)(add_backward(False))

# ---- others ----


@op("rope_qk", ["q=T[2,3,4,6] k=T[2,1,4,6] cos=T[5,3] sin=T[5,3]",
                "q=T[1,2,3,8] k=T[1,2,3,8] cos=T[1,3,2] sin=T[1,3,2] layout=interleaved",
                "q=T[2,3,4,6] k=T[2,3,2,6] cos=T[3,3] sin=T[3,3] layout=thd"])
def rope_qk(i, p):
    pairs = "neighbours" if p.layout == "interleaved" else "halves"
    return {name: turn(i[name], i, pairs, 1 if p.layout == "thd" else 2) for name in ("q", "k")}


@op("rope_cache", [
    "q=T[2,1,3,8] k=T[2,1,2,8] v=T[2,1,2,8] cos=T[2,1,4] sin=T[2,1,4] keys=T[2,2,5,8] values=T[2,2,5,8] place=u32[2,1]:{4,0}",
    "q=T[1,2,2,6] k=T[1,2,1,6] v=T[1,2,1,4] cos=T[3,2] sin=T[3,2] keys=T[1,1,4,6] values=T[1,1,4,4] place=i64[1,2]:{3,1}",
    "q=T[2,1,1,4] k=T[2,1,1,4] v=T[2,1,1,4] cos=T[1,2] sin=T[1,2] keys=T[2,1,3,4] values=T[2,1,3,4] place=u8[2,1]:{255,2}"])
def rope_cache(i, p):
    keys, values, k = i["keys"].clone(), i["values"].clone(), turn(i.k, i, "halves", 1)
    pad = int(limits(i.dtypes["place"]).max)
    for b in range(i.q.shape[0]):
        for t in range(i.q.shape[1]):
            if int(i.place[b, t]) != pad:
                keys[b, :, int(i.place[b, t])] = k[b, t]
                values[b, :, int(i.place[b, t])] = i.v[b, t]
    return {"q": turn(i.q, i, "halves", 1), "keys": keys, "values": values}


@op("softmax_cross_entropy", ["x=T[4,5] target=i64[4]:0..5", "x=T[3,4] target=u8[3]:{3,0,255} reduction=none",
                              "x=T[2,3]:-40..40 target=i32[2]:0..3 reduction=sum"], out={"lse": "S"})
def softmax_cross_entropy(i, p):
    pad = int(limits(i.dtypes["target"]).max)
    x = i.x.clone().requires_grad_()
    y = F.cross_entropy(x, i.target, ignore_index=pad, reduction=p.reduction or "mean")
    y.sum().backward()
    return {"y": y, "dx": x.grad, "lse": torch.where(i.target == pad, 0.0, i.x.logsumexp(-1))}


def step_list(one, names):
    """Each parameter by itself, under names with its number."""
    def ref(i, p):
        made = {}
        for n in range(len(i.dtypes) // len(names)):
            step = type(i)(i.dtype)
            for name in names:
                if f"{name}{n}" in i:
                    step[name] = i[f"{name}{n}"]
            made |= {f"{k}{n}": v for k, v in one(step, p).items()}
        return made
    return ref


def same_dtype(names):
    return {f"{name}{n}": (lambda i, p, k=f"{name}{n}": i.dtypes[k]) for name in names for n in range(2)}


op("sgd_step_list", ["param0=T[3,4] grad0=T[3,4] param1=T[5] grad1=T[5] lr=0.1 weight_decay=0.2"])(
    step_list(sgd_step, ["param", "grad"]))
op("adamw_step_list", [
    "param0=T[3,4] grad0=T[3,4] m0=T[3,4] v0=T[3,4]:0.1..1 param1=T[5] grad1=T[5] m1=S[5] v1=S[5]:0..0.5 lr=0.01 beta1=0.9 "
    "beta2=0.99 eps=1e-8 weight_decay=0.1 step=3"], out=same_dtype(["m", "v"]))(
    step_list(adamw_step, ["param", "grad", "m", "v"]))

# ---- expressions: Python reads them too ----

FUNCTIONS = {
    "gelu": lambda x: F.gelu(x, approximate="tanh"), "gelu_erf": F.gelu, "silu": F.silu, "relu": F.relu, "exp": torch.exp,
    "tanh": torch.tanh, "sqrt": torch.sqrt, "sqr": torch.square, "minimum": torch.minimum, "maximum": torch.maximum,
    "where": lambda c, a, b: torch.where(c != 0, torch.as_tensor(a, dtype=torch.float64),
                                         torch.as_tensor(b, dtype=torch.float64)),
    "clamp": torch.clamp, "leaky_relu": F.leaky_relu, "elu": F.elu, "affine": lambda x, a, b: x * a + b, "powf": torch.pow,
    "inf": math.inf}


@op("expr", ["text=gelu(a*b+c)*d a=T[3,4] b=T[4] c=T[3,1] d=T[3,4]", "text=where(a<b,a,b*2)-0.5 a=T[3,4] b=T[4]",
             "text=where(m,x,-inf) m=u8[2,3]:0..2 x=T[2,3]", "text=-x/(1+sqr(x)) x=T[7]", "text=x x=T[0,3]",
             "text=clamp(x,-1,0.5)+leaky_relu(x,0.2)+elu(y,1)+affine(x,2,-1)+powf(y,1.5) x=T[5] y=T[5]:0.1..3",
             "text=minimum(silu(a),maximum(b,0.25*a))+exp(-sqrt(c)) a=T[2,3] b=T[2,3] c=T[3]:0..4"])
def expr(i, p):
    text = p.text if isinstance(p.text, str) else ",".join(map(str, p.text))
    return torch.as_tensor(eval(text, dict(FUNCTIONS), dict(i)), dtype=torch.float64).clone()
