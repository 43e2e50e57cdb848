//! Exit codes of 0 to 255, which `wasi:cli/exit` does not have.

use std::ffi::c_int;

/// Where `exit` of wasi-libc ends, and with it `std::process::exit` in any crate.
#[unsafe(no_mangle)]
extern "C" fn _Exit(code: c_int) -> ! {
    let code = if crate::stdio::flush() { code } else { code.max(1) };
    now(code)
}

/// The second name that wasi-libc gives to the same function.
#[unsafe(no_mangle)]
extern "C" fn _exit(code: c_int) -> ! {
    _Exit(code)
}

/// Like the system's `exit`, this keeps the lowest eight bits.
pub fn now(code: c_int) -> ! {
    crate::spawn::exit(code.to_le_bytes()[0]);
    unreachable!("the host ends the process")
}
