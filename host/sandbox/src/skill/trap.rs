//! Explains the crash of a guest to people, without the words of the engine or of the guest's language.

mod exception;

use wasmtime::{ThrownException, Trap};

/// Explains a trap.
pub fn in_words(trap: Trap) -> &'static str {
    match trap {
        // Compilers put the stack of a guest below its data, so a stack that is too large reaches below the memory.
        Trap::StackOverflow | Trap::MemoryOutOfBounds => "it recursed too deeply, or reached beyond its memory",
        // A panic, an abort and a failed assertion end in this way.
        Trap::UnreachableCodeReached => "it gave up",
        Trap::IntegerOverflow | Trap::IntegerDivisionByZero | Trap::BadConversionToInteger => {
            "it calculated what has no result"
        }
        Trap::TableOutOfBounds | Trap::IndirectCallToNull | Trap::BadSignature => "it called a function that is none",
        _ => "it did what no program may do",
    }
}

/// The innermost cause in words. The outer ones are wasm frames.
pub fn reason(error: &wasmtime::Error) -> String {
    match error.downcast_ref::<Trap>() {
        Some(trap) => in_words(*trap).to_owned(),
        None if error.is::<ThrownException>() => "it threw an exception that it does not catch".to_owned(),
        None => error.root_cause().to_string(),
    }
}

/// Returns the guest's last words before a crash: an exception and where it was thrown, or the message of a panic in Rust,
/// without thread and place.
pub fn last_words(stderr: &str) -> String {
    match exception::find(stderr) {
        Some(exception) => exception,
        None => panic(stderr),
    }
}

fn panic(stderr: &str) -> String {
    let lines: Vec<&str> = stderr.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
    let panic = lines.iter().rposition(|line| line.starts_with("thread '") && line.contains(" panicked at "));
    let lines = &lines[panic.map_or(0, |at| at + 1)..];
    let of_guest = |line: &&&str| !line.starts_with("note: run with");
    let lines: Vec<&str> = lines.iter().filter(of_guest).copied().collect();
    let text = lines[lines.len().saturating_sub(3)..].join(" ");
    if text.starts_with("memory allocation of ") && text.ends_with(" failed") || text == "capacity overflow" {
        return "it had no memory left".to_owned();
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_is_its_message() {
        for (stderr, words) in [
            ("", ""),
            ("one\ntwo\nthree\nfour\n", "two three four"),
            (
                "\nthread '<unnamed>' (1) panicked at src/lib.rs:3:5:\nno such city\nnote: run with `RUST_BACKTRACE=1`\n",
                "no such city",
            ),
            ("before\nthread 'main' panicked at a.rs:1:1:\ncapacity overflow\n", "it had no memory left"),
            ("memory allocation of 1073741824 bytes failed\n", "it had no memory left"),
        ] {
            assert_eq!(last_words(stderr), words, "{stderr:?}");
        }
        for trap in [Trap::UnreachableCodeReached, Trap::MemoryOutOfBounds, Trap::NullReference] {
            assert!(!in_words(trap).contains("wasm") && !in_words(trap).contains("unreachable"));
        }
    }
}
