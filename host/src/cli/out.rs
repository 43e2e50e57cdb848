//! Standard output and standard error: the one way by which this program writes to either, but for the log and the line
//! editor. A reader that goes away (`kiso … | head -1`) is an end, not a crash; what must come to its own end goes on without
//! one ([`outlive_reader`]).
//!
//! Whatever was forgotten before: on a terminal, only kiso's own colours act ([`backstop`]), and in JSON every character
//! that a terminal would act on stands as `\u202e`.

use super::show::{backstop, is_active};
use std::fmt::{Arguments, Write as _};
use std::io::{ErrorKind, IsTerminal, Write};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicU8, Ordering};

/// Like `print!`, but ends the program quietly when nobody reads any more.
macro_rules! out {
    ($($arg:tt)*) => { $crate::cli::out::write(format_args!($($arg)*)) };
}

/// Like `println!`, but ends the program quietly when nobody reads any more.
macro_rules! outln {
    () => { $crate::cli::out::write(format_args!("\n")) };
    ($($arg:tt)*) => { $crate::cli::out::write(format_args!("{}\n", format_args!($($arg)*))) };
}

/// Like `eprint!`, but a standard error that is closed costs the words and not the program.
macro_rules! err {
    ($($arg:tt)*) => { $crate::cli::out::write_error(format_args!($($arg)*)) };
}

/// Like `eprintln!`, but a standard error that is closed costs the words and not the program.
macro_rules! errln {
    () => { $crate::cli::out::write_error(format_args!("\n")) };
    ($($arg:tt)*) => { $crate::cli::out::write_error(format_args!("{}\n", format_args!($($arg)*))) };
}

/// Whether standard output has one JSON object per line.
static JSON: AtomicBool = AtomicBool::new(false);

/// From here on, standard output is JSON.
pub(super) fn is_json() {
    JSON.store(true, Ordering::Relaxed);
}

/// What becomes of the program when its standard output takes no more.
static READER: AtomicU8 = AtomicU8::new(NEEDED);

/// It ends.
const NEEDED: u8 = 0;
/// It goes on.
const OUTLIVED: u8 = 1;
/// It has gone on since the reader went away.
const GONE: u8 = 2;
/// It has gone on since something could not be written that somebody waits for.
const LOST: u8 = 3;

/// From here on, a standard output that is closed or full costs the words and not the program: a run that is cut off there
/// would be taken up again by the next one.
pub(super) fn outlive_reader() {
    READER.store(OUTLIVED, Ordering::Relaxed);
}

/// Whether words were lost that somebody waits for: the disk is full, and not the reader gone.
pub(super) fn is_lost() -> bool {
    READER.load(Ordering::Relaxed) == LOST
}

pub(super) fn write(text: Arguments<'_>) {
    static TERMINAL: OnceLock<bool> = OnceLock::new();
    if matches!(READER.load(Ordering::Relaxed), GONE | LOST) {
        return;
    }
    let mut stdout = std::io::stdout().lock();
    let text = text.to_string();
    let text = match JSON.load(Ordering::Relaxed) {
        true => escaped(text),
        false if *TERMINAL.get_or_init(|| stdout.is_terminal()) => backstop(&text),
        false => text,
    };
    match stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush()) {
        Ok(()) => {}
        Err(error) => {
            let closed = error.kind() == ErrorKind::BrokenPipe;
            if !closed {
                errln!("error: cannot write to standard output: {error}");
            }
            match READER.load(Ordering::Relaxed) {
                NEEDED => std::process::exit(i32::from(!closed)),
                _ => READER.store(if closed { GONE } else { LOST }, Ordering::Relaxed),
            }
        }
    }
}

/// JSON on standard error, in which nothing acts on a terminal either.
pub(super) fn write_json_error(object: &serde_json::Value) {
    let _ = writeln!(std::io::stderr().lock(), "{}", escaped(object.to_string()));
}

pub(super) fn write_error(text: Arguments<'_>) {
    static TERMINAL: OnceLock<bool> = OnceLock::new();
    let mut stderr = std::io::stderr().lock();
    let text = text.to_string();
    let text = if *TERMINAL.get_or_init(|| stderr.is_terminal()) { backstop(&text) } else { text };
    let _ = stderr.write_all(text.as_bytes());
}

/// Tells the terminal that nobody reads the marks around pasted text any more.
pub(super) fn end_of_paste() {
    let mut stdout = std::io::stdout().lock();
    let _ = stdout.write_all(b"\x1b[?2004l\n").and_then(|()| stdout.flush());
}

/// JSON that says the same, in which nothing acts. It escapes the first 32 characters itself; the others that act stand in
/// strings alone, and each is one unit of UTF-16.
pub(super) fn escaped(json: String) -> String {
    let acts = |c: char| c != '\n' && is_active(c);
    if !json.contains(acts) {
        return json;
    }
    let mut clean = String::with_capacity(json.len());
    for c in json.chars() {
        match acts(c) {
            true => drop(write!(clean, "\\u{:04x}", u32::from(c))),
            false => clean.push(c),
        }
    }
    clean
}

#[cfg(test)]
mod tests {
    use super::escaped;

    #[test]
    fn json_says_the_same_and_does_not_act() {
        let value = serde_json::json!({ "\u{202e}a": "\u{1b}\u{9b}\u{7f}\u{2028}\u{2066}\n👍 שלום" });
        let json = escaped(value.to_string());
        assert_eq!(serde_json::from_str::<serde_json::Value>(&json).unwrap(), value);
        assert_eq!(json, r#"{"\u202ea":"\u001b\u009b\u007f\u2028\u2066\n👍 שלום"}"#);
    }
}
