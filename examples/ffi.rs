// ffi.rs: wick from Rust through plain FFI, without any crate. Build: rustc ffi.rs -L PATH -l wick
use std::ffi::{c_char, c_int, c_void, CStr};

#[link(name = "wick")]
extern "C" {
    fn wk_device_open(name: *const c_char) -> *mut c_void;
    fn wk_from_host(device: *mut c_void, dtype: c_int, rank: c_int, shape: *const i64, data: *const c_void) -> *mut c_void;
    fn wk_softmax(x: *const c_void, n: c_int, dims: *const i64, mode: c_int) -> *mut c_void;
    fn wk_to_host(t: *const c_void, data: *mut c_void) -> c_int;
    fn wk_drop(t: *mut c_void);
    fn wk_error() -> *const c_char;
}

const F32: c_int = 0;

fn main() {
    let shape = [2i64, 3];
    let data = [1f32, 2.0, 3.0, 1.0, 1.0, 1.0];
    let mut out = [0f32; 6];
    // Safe: shape and data outlive the calls, and out has room for the six elements of y.
    let status = unsafe {
        let device = wk_device_open(c"auto".as_ptr());
        let x = wk_from_host(device, F32, 2, shape.as_ptr(), data.as_ptr().cast());
        let y = wk_softmax(x, 0, std::ptr::null(), 0);
        let status = wk_to_host(y, out.as_mut_ptr().cast());
        wk_drop(y);
        wk_drop(x);
        status
    };
    if status != 0 {
        eprintln!("{}", unsafe { CStr::from_ptr(wk_error()) }.to_string_lossy());
        std::process::exit(1);
    }
    println!("{}", out.map(|v| format!("{v:.4}")).join(" "));
    assert!((out[3] - 1.0 / 3.0).abs() < 1e-6);
}
