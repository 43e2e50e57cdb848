//! Code that every bundled command shares: how it starts, how its output leaves, how it ends, and how it starts others.
//!
//! WASI has no working directory, no exit codes but 0 and 1, and no SIGPIPE, and the utilities that kiso takes from
//! others expect all three. So the C functions that they end in are replaced here: `_Exit` passes codes of 0 to 255
//! (`exit`), and `write` and `read` of the standard streams go through one large buffer and end the command with 141 when
//! nobody reads any more (`stdio`); a few functions learn of `/` and of `/dev` (`paths`). The binary's build script
//! names the functions to the linker.

#[cfg(target_os = "wasi")]
mod exit;
#[cfg(target_os = "wasi")]
mod paths;
#[cfg(target_os = "wasi")]
mod rename;
#[cfg(target_os = "wasi")]
mod stdio;

pub mod permissions;
pub mod process;

#[rustfmt::skip]
mod bindings;

pub use bindings::kiso::exec::spawn;
#[cfg(target_os = "wasi")]
pub use paths::copies_keep_permissions;
#[cfg(target_os = "wasi")]
pub use stdio::{flush, rewrite_lines};

/// The exit code that a shell reports for a command that died of SIGPIPE.
pub const NOBODY_READS: i32 = 141;

/// The exit code that a shell reports for a command that died of SIGABRT.
pub const CRASHED: i32 = 134;

/// Prepares the process: goes to the directory that the host names in `PWD`, and makes a panic readable.
pub fn start() {
    std::panic::set_hook(Box::new(report_panic));
    let Some(directory) = std::env::var_os("PWD") else { return };
    if let Err(e) = std::env::set_current_dir(&directory) {
        eprintln!("cannot go to {}: {e}", directory.display());
        std::process::exit(CRASHED);
    }
}

/// Reports a panic in words for the user; the panic's own text is for developers of the command.
fn report_panic(panic: &std::panic::PanicHookInfo) {
    let message = panic.payload_as_str().unwrap_or_default();
    let name = std::env::args().next().unwrap_or_default();
    // `println!` panics when it cannot write, which is how a command learns that a full disk or a closed file is its output.
    if let Some((_, reason)) = message.split_once("failed printing to stdout: ") {
        eprintln!("{name}: write error: {reason}");
        end(1);
    }
    let (words, code) = in_words(message);
    eprintln!("{name}: {words}");
    end(code)
}

/// Rust has a panic where C's libraries return an error: for a text that would not fit into memory, and for a number that
/// says how wide another is to be written. Everything else is a mistake in the command.
fn in_words(message: &str) -> (&'static str, i32) {
    if message.contains("Formatting argument out of range") || message.contains("formatting width too large") {
        ("a width or precision is too large", 1)
    } else if message.contains("capacity overflow") || message.contains("OutOfMemory") {
        ("memory exhausted", 1)
    } else if message.contains("PosOverflow") || message.contains("NegOverflow") {
        ("a number is too large", 1)
    } else {
        ("crashed: it cannot do this; the mistake is in the command", CRASHED)
    }
}

/// Ends at once, without flushing what a panic may have left half written or locked.
fn end(code: i32) -> ! {
    #[cfg(target_os = "wasi")]
    exit::now(code);
    #[cfg(not(target_os = "wasi"))]
    std::process::exit(code)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_word_of_rust_is_said() {
        for (message, code) in [
            ("Formatting argument out of range", 1),
            ("capacity overflow", 1),
            ("called `Result::unwrap()` on an `Err` value: ParseIntError { kind: PosOverflow }", 1),
            ("called `Option::unwrap()` on a `None` value", CRASHED),
            ("index out of bounds: the len is 3 but the index is 5", CRASHED),
            ("", CRASHED),
        ] {
            let (words, ended) = in_words(message);
            assert_eq!(ended, code, "{message}");
            assert!(!words.contains('`') && !words.contains("panic") && !words.contains("overflow"), "{words}");
        }
    }
}
