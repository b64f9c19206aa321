"""rnn.py: references of the recurrent ops."""
import torch
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from golden import gradient, op

GATES = {"lstm": 4, "gru": 3, "relu": 1, "tanh": 1}


def weight_names(layers, bidirectional, bias):
    kinds = ["weight_ih", "weight_hh"] + (["bias_ih", "bias_hh"] if bias else [])
    return [f"{kind}_l{layer}{end}" for layer in range(layers)
            for end in ([""] + (["_reverse"] if bidirectional else [])) for kind in kinds]


def case(mode, hidden, t=4, b=2, features=3, layers=1, bidirectional=0, bias=1, state=True, lengths=None):
    """A call as text, its tensors scaled so that gates do not saturate."""
    dirs, gates = 1 + bidirectional, GATES[mode] * hidden
    words = [f"x=T[{t},{b},{features}]"]
    states = ["h0"] + (["c0"] if mode == "lstm" else [])
    words += [f"{s}=T[{layers * dirs},{b},{hidden}]:-1..1" for s in states if state]
    words += [f"lengths=i32[{b}]:{{{lengths}}}"] if lengths else []
    for name in weight_names(layers, bidirectional, bias):
        inner = features if name.split("_")[2] == "l0" else dirs * hidden
        shape = {"weight_ih": f"{gates},{inner}", "weight_hh": f"{gates},{hidden}"}.get(name[:9], gates)
        words.append(f"{name}=T[{shape}]:-0.8..0.8")
    words += [f"mode={mode}", f"hidden={hidden}"]
    defaults = {"layers": 1, "bidirectional": 0, "bias": 1}
    given = {"layers": layers, "bidirectional": bidirectional, "bias": bias}
    return " ".join(words + [f"{k}={v}" for k, v in given.items() if v != defaults[k]])


CASES = [case("lstm", 3), case("gru", 3), case("relu", 4, state=False), case("tanh", 4, bias=0),
         case("lstm", 2, layers=2, bidirectional=1, state=False), case("gru", 2, layers=2, bidirectional=1),
         case("lstm", 3, b=3, bidirectional=1, lengths="4,1,3"), case("gru", 2, b=3, layers=2, lengths="2,4,3"),
         case("tanh", 3, b=2, bidirectional=1, lengths="3,4")]


def module(i, p):
    """PyTorch's, and its weights by name, taken from the inputs."""
    kind = {"lstm": torch.nn.LSTM, "gru": torch.nn.GRU}.get(p.mode, torch.nn.RNN)
    more = {"nonlinearity": p.mode} if kind is torch.nn.RNN else {}
    net = kind(i.x.shape[2], p.hidden, num_layers=p.layers or 1, bidirectional=bool(p.bidirectional),
               bias=p.bias != 0, dtype=torch.float64, **more)
    return net, {name: i[name] for name, _ in net.named_parameters()}


@op("rnn", CASES)
def rnn(i, p):
    net, weights = module(i, p)
    state = i.h0
    if p.mode == "lstm" and i.h0 is not None:
        state = (i.h0, i.c0)
    x = i.x if i.lengths is None else pack_padded_sequence(i.x, i.lengths, enforce_sorted=False)
    y, last = torch.func.functional_call(net, weights, (x,) if state is None else (x, state))
    if i.lengths is not None:
        y, _ = pad_packed_sequence(y, total_length=i.x.shape[0])
    if p.mode == "lstm":
        return {"y": y, "hn": last[0], "cn": last[1]}
    return {"y": y, "hn": last}


def inputs_with_slopes(i):
    return [name for name in i if name in ("x", "h0", "c0") or name.startswith(("weight_", "bias_"))]


# What the forward keeps in `reserve` is wick's own: the test takes it from a run of rnn. The last case goes without.
gradient("rnn", inputs_with_slopes, cases=[c + " training=1" for c in CASES] + [CASES[0]], grads=("y", "hn", "cn"),
         give=["y"])
