"""attention.py: references of attention and rotary embedding."""
import math

import torch
import torch.nn.functional as F

from golden import gradient, op

# ---- rope ----


def turn(x, i, pairs, t_dim):
    """Pairs of the first 2r elements of each head turned by their position's angle; the rest passes."""
    r = i.cos.shape[-1]
    cos, sin = (a[..., :x.shape[t_dim], :] for a in (i.cos, i.sin))
    if cos.dim() == 2:
        cos, sin = cos[None], sin[None]
    head_dim = 1 if t_dim == 2 else 2
    cos, sin = cos.unsqueeze(head_dim), sin.unsqueeze(head_dim)
    if pairs == "halves":
        a, b = x[..., :r], x[..., r:2 * r]
        turned = torch.cat([a * cos - b * sin, a * sin + b * cos], -1)
    else:
        a, b = x[..., 0:2 * r:2], x[..., 1:2 * r:2]
        turned = torch.stack([a * cos - b * sin, a * sin + b * cos], -1).flatten(-2)
    return torch.cat([turned, x[..., 2 * r:]], -1)


ROPE = ["x=T[2,3,4,6] cos=T[4,3] sin=T[4,3]", "x=T[2,1,3,4] cos=T[2,5,2] sin=T[2,5,2]",
        "x=T[1,2,3,7] cos=T[3,2] sin=T[3,2]"]
THD = ["x=T[2,4,3,6] cos=T[4,3] sin=T[4,3]", "x=T[2,3,1,4] cos=T[2,5,2] sin=T[2,5,2]",
       "x=T[1,3,2,7] cos=T[3,2] sin=T[3,2]"]
op("rope", ROPE)(lambda i, p: turn(i.x, i, "halves", 2))
op("rope_i", ROPE)(lambda i, p: turn(i.x, i, "neighbours", 2))
op("rope_thd", THD)(lambda i, p: turn(i.x, i, "halves", 1))
for name in ["rope", "rope_i", "rope_thd"]:
    gradient(name, ["x"], drop=["x"])

# ---- attention ----


def visible(s, t, p):
    """Which of t keys a query sees, [s, t]."""
    at = torch.arange(s)[:, None] + (t - s)
    key = torch.arange(t)[None]
    keep = torch.ones(s, t, dtype=torch.bool)
    if p.causal:
        keep &= key <= at
    if p.window:
        keep &= (at - p.window < key) & (key < at + p.window)
    return keep


def scores(q, k, i, p):
    """The scores, -inf where a key is not seen; and those before the soft cap."""
    scale = 1 / math.sqrt(q.shape[-1]) if p.scale is None else p.scale
    raw = scale * q @ k.transpose(-1, -2)
    s = p.softcap * torch.tanh(raw / p.softcap) if p.softcap else raw
    keep = visible(q.shape[-2], k.shape[-2], p)
    if i.mask is not None and i.dtypes["mask"] == "u8":
        keep = keep & (i.mask != 0)
    elif i.mask is not None:
        s = s + i.mask
    return torch.where(keep, s, -torch.inf), scale


def heads(x, n):
    """Keys or values for n query heads."""
    return x.repeat_interleave(n // x.shape[1], 1)


def attend(q, k, v, i, p):
    s, _ = scores(q, heads(k, q.shape[1]), i, p)
    lse = s.logsumexp(-1)
    weights = torch.where(torch.isinf(s), 0.0, torch.exp(s - torch.where(torch.isinf(lse), 0.0, lse)[..., None]))
    return {"y": weights @ heads(v, q.shape[1]), "lse": lse}


QKV = "q=T[2,2,3,4] k=T[2,2,5,4] v=T[2,2,5,3]"
SDPA = [QKV, QKV + " causal=1", "q=T[1,4,3,5] k=T[1,2,3,5] v=T[1,2,3,2] causal=1 scale=0.3",
        QKV + " softcap=1.5", "q=T[1,1,5,4] k=T[1,1,7,4] v=T[1,1,7,4] window=2",
        "q=T[1,1,5,4] k=T[1,1,7,4] v=T[1,1,7,4] window=3 causal=1", QKV + " mask=T[3,5]",
        QKV + " mask=u8[2,1,3,5]:{1,0,1,1,0,0,0,0,0,0,1,1,1,1,1,0,0,1,0,0,1,1,0,0,1,0,1,0,1,0} causal=1",
        QKV + " mask=f32[2,1,5] softcap=2 causal=1", "q=T[1,1,4,3] k=T[1,1,2,3] v=T[1,1,2,3] causal=1",
        "q=T[1,2,3,4] k=T[1,2,0,4] v=T[1,2,0,3]", "q=T[1,2,0,4] k=T[1,2,3,4] v=T[1,2,3,3]"]


@op("sdpa", SDPA, out={"lse": "S"})
def sdpa(i, p):
    made = attend(i.q, i.k, i.v, i, p)
    if not (p.softcap or p.window or i.mask is not None) and i.q.shape[2] == i.k.shape[2]:
        y = F.scaled_dot_product_attention(i.q, i.k, i.v, is_causal=bool(p.causal), scale=p.scale, enable_gqa=True)
        torch.testing.assert_close(y, made["y"], rtol=1e-9, atol=1e-9)
    return made


def group_sum(x, n):
    """Gradients of n heads from those of the query heads."""
    return x.reshape(x.shape[0], n, x.shape[1] // n, *x.shape[2:]).sum(2)


def sdpa_slope(i, p):
    """From y and lse, as the op gets them."""
    hq, hk = i.q.shape[1], i.k.shape[1]
    k, v = heads(i.k, hq), heads(i.v, hq)
    s, scale = scores(i.q, k, i, p)
    weights = torch.where(torch.isinf(s), 0.0, torch.exp(s - torch.where(torch.isinf(i.lse), 0.0, i.lse)[..., None]))
    ds = weights * (i.dy @ v.transpose(-1, -2) - (i.dy * i.y).sum(-1, keepdim=True))
    if p.softcap:
        ds = ds * (1 - torch.tanh(scale * i.q @ k.transpose(-1, -2) / p.softcap) ** 2)
    return {"dq": scale * ds @ k, "dk": group_sum(scale * ds.transpose(-1, -2) @ i.q, hk),
            "dv": group_sum(weights.transpose(-1, -2) @ i.dy, hk)}


gradient("sdpa", ["q", "k", "v"], formula=sdpa_slope, give=["y", "lse"])


@op("sdpa_varlen", [
    "q=T[7,2,4] k=T[9,2,4] v=T[9,2,3] cu_seqlens_q=u32[4]:{0,3,3,7} cu_seqlens_k=u32[4]:{0,4,5,9}",
    "q=T[6,4,3] k=T[8,2,3] v=T[8,2,3] cu_seqlens_q=i32[3]:{0,2,6} cu_seqlens_k=i32[3]:{0,3,8} causal=1 scale=0.4"])
def sdpa_varlen(i, p):
    parts = []
    for b in range(len(i.cu_seqlens_q) - 1):
        rows = slice(*i.cu_seqlens_q[b:b + 2].tolist())
        keys = slice(*i.cu_seqlens_k[b:b + 2].tolist())
        q, k, v = (x.transpose(0, 1)[None] for x in (i.q[rows], i.k[keys], i.v[keys]))
        parts.append(attend(q, k, v, i, p)["y"][0].transpose(0, 1))
    return torch.cat(parts)


def mha_weights(e):
    return (f"in_proj_weight=T[{3 * e},{e}] in_proj_bias=T[{3 * e}] out_proj_weight=T[{e},{e}] "
            f"out_proj_bias=T[{e}]")


@op("mha", [f"q=T[2,3,4] k=T[2,3,4] v=T[2,3,4] {mha_weights(4)} heads=2",
            f"q=T[1,4,6] k=T[1,4,6] v=T[1,4,6] {mha_weights(6)} heads=3 causal=1",
            f"q=T[2,2,4] k=T[2,5,4] v=T[2,5,4] {mha_weights(4)} mask=T[2,5] heads=2",
            f"q=T[1,2,4] k=T[1,3,4] v=T[1,3,4] {mha_weights(4)} "
            "mask=u8[1,2,2,3]:{1,0,1,1,1,0,1,1,1,0,0,1} heads=2"])
def mha(i, p):
    b, s, e = i.q.shape
    t = i.k.shape[1]
    mask = torch.where(visible(s, t, p), 0.0, -torch.inf).double()
    if i.mask is not None:
        mask = mask + (torch.where(i.mask != 0, 0.0, -torch.inf) if i.dtypes["mask"] == "u8" else i.mask)
    mask = mask.expand(b, p.heads, s, t).reshape(b * p.heads, s, t)
    y, _ = F.multi_head_attention_forward(
        i.q.transpose(0, 1), i.k.transpose(0, 1), i.v.transpose(0, 1), e, p.heads, i.in_proj_weight, i.in_proj_bias,
        None, None, False, 0.0, i.out_proj_weight, i.out_proj_bias, training=False, need_weights=False, attn_mask=mask)
    return y.transpose(0, 1)
