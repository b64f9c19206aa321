#!/usr/bin/env python3
"""ffi.py: wick from Python through ctypes, without any package. Usage: ffi.py PATH/libwick.so"""
import ctypes as c
import sys

wick = c.CDLL(sys.argv[1])
for name in ("wk_device_open", "wk_from_host", "wk_softmax"):
    getattr(wick, name).restype = c.c_void_p
wick.wk_error.restype = c.c_char_p
F32 = 0

device = c.c_void_p(wick.wk_device_open(b"auto"))
shape = (c.c_int64 * 2)(2, 3)
data = (c.c_float * 6)(1, 2, 3, 1, 1, 1)
x = c.c_void_p(wick.wk_from_host(device, F32, 2, shape, data))
y = c.c_void_p(wick.wk_softmax(x, 0, None, 0))
out = (c.c_float * 6)()
if wick.wk_to_host(y, out) != 0:
    sys.exit(wick.wk_error().decode())
wick.wk_drop(y)
wick.wk_drop(x)
print(" ".join(f"{v:.4f}" for v in out))
assert abs(out[3] - 1 / 3) < 1e-6
