//! Standard output and standard error: all output of this program, except the log and the line editor. If the reader goes
//! away (`kiso … | head -1`), the program ends quietly; work that must be finished continues without a reader
//! ([`outlive_reader`]).
//!
//! As a last defence, only kiso's own colours have an effect on a terminal ([`backstop`]), and in JSON every character with
//! an effect is written as `\u202e`.

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

/// Like `eprint!`, but a closed standard error loses the text and does not end the program.
macro_rules! err {
    ($($arg:tt)*) => { $crate::cli::out::write_error(format_args!($($arg)*)) };
}

/// Like `eprintln!`, but a closed standard error loses the text and does not end the program.
macro_rules! errln {
    () => { $crate::cli::out::write_error(format_args!("\n")) };
    ($($arg:tt)*) => { $crate::cli::out::write_error(format_args!("{}\n", format_args!($($arg)*))) };
}

/// Whether standard output has one JSON object per line.
static JSON: AtomicBool = AtomicBool::new(false);

/// Makes standard output JSON from now on.
pub(super) fn is_json() {
    JSON.store(true, Ordering::Relaxed);
}

/// The reaction to a standard output that cannot be written.
static READER: AtomicU8 = AtomicU8::new(NEEDED);

/// The program ends.
const NEEDED: u8 = 0;
/// The program continues.
const OUTLIVED: u8 = 1;
/// The program has continued after the reader went away.
const GONE: u8 = 2;
/// The program has continued after output was lost that somebody needs.
const LOST: u8 = 3;

/// From now on, a closed or full standard output loses the text and does not end the program: an interrupted run would be
/// resumed by the next command.
pub(super) fn outlive_reader() {
    READER.store(OUTLIVED, Ordering::Relaxed);
}

/// Returns whether needed output was lost: the disk is full, rather than the reader gone.
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

/// Prints JSON on standard error, without characters that have an effect on a terminal.
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

/// Turns off the terminal's marks around pasted text.
pub(super) fn end_of_paste() {
    let mut stdout = std::io::stdout().lock();
    let _ = stdout.write_all(b"\x1b[?2004l\n").and_then(|()| stdout.flush());
}

/// Returns equivalent JSON without active characters. JSON escapes the first 32 characters itself; the other active ones
/// only occur in strings, and each is one unit of UTF-16.
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
