//! Reads a secret value: from a pipe, or key by key from a terminal without showing it.

use crate::cli::{Exit, Failure};
use kiso_store::secret::SecretValue;
use rustix::termios::{LocalModes, OptionalActions, Termios, tcgetattr, tcsetattr};
use std::io::{self, BufRead, IsTerminal, Read, Stdin};

/// Maximum bytes of a value, as in the vault.
const MAX_VALUE: usize = 16 << 10;

/// Returns the value without the line break at its end.
pub(super) fn read(name: &str) -> Result<SecretValue, Failure> {
    let stdin = io::stdin();
    let bytes = if stdin.is_terminal() { typed(&stdin, name)? } else { piped(&stdin)? };
    let text = String::from_utf8(bytes).map_err(|_| Failure::new(Exit::Usage, "the value is not UTF-8 text"))?;
    let value = SecretValue::new(text.strip_suffix('\n').unwrap_or(&text).trim_end_matches('\r').to_owned());
    match value.expose().len() {
        0 => Err(Failure::new(Exit::Usage, "the value is empty; nothing was changed")),
        1..=MAX_VALUE => Ok(value),
        _ => Err(Failure::new(Exit::Limit, format!("the value is longer than {MAX_VALUE} bytes"))),
    }
}

fn piped(stdin: &Stdin) -> Result<Vec<u8>, Failure> {
    let mut bytes = Vec::new();
    // Room for a line break, and for one byte that shows that the value is too long.
    let read = stdin.lock().take(MAX_VALUE as u64 + 3).read_to_end(&mut bytes);
    read.map_err(|error| Failure::new(Exit::Failed, format!("standard input cannot be read: {error}")))?;
    Ok(bytes)
}

fn typed(stdin: &Stdin, name: &str) -> Result<Vec<u8>, Failure> {
    let failed = |error: io::Error| Failure::new(Exit::Failed, format!("the terminal cannot be read: {error}"));
    err!("value of {name} (hidden): ");
    let typed = {
        let _silent = Silent::new(stdin).map_err(failed)?;
        keys(stdin.lock()).map_err(failed)?
    };
    errln!();
    typed.ok_or_else(|| Failure::new(Exit::Failed, "nothing changed"))
}

/// Returns the typed text up to Enter; `None` after Ctrl-C, and at the end of the input.
fn keys(input: impl BufRead) -> io::Result<Option<Vec<u8>>> {
    let mut line = Vec::new();
    for byte in input.bytes() {
        match byte? {
            b'\r' | b'\n' => return Ok(Some(line)),
            // Ctrl-C and Ctrl-D.
            3 | 4 => return Ok(None),
            // Ctrl-U.
            21 => line.clear(),
            8 | 127 => while line.pop().is_some_and(|byte| byte & 0xc0 == 0x80) {},
            byte if line.len() <= MAX_VALUE => line.push(byte),
            _ => {}
        }
    }
    Ok(None)
}

/// A terminal that shows no keys and delivers each at once. Ctrl-C is a key then, so that it cannot end the process and
/// leave the terminal without echo.
struct Silent<'a> {
    stdin: &'a Stdin,
    before: Termios,
}

impl<'a> Silent<'a> {
    fn new(stdin: &'a Stdin) -> io::Result<Silent<'a>> {
        let before = tcgetattr(stdin)?;
        let mut silent = before.clone();
        silent.local_modes -= LocalModes::ECHO | LocalModes::ICANON | LocalModes::ISIG;
        tcsetattr(stdin, OptionalActions::Flush, &silent)?;
        Ok(Silent { stdin, before })
    }
}

impl Drop for Silent<'_> {
    fn drop(&mut self) {
        let _ = tcsetattr(self.stdin, OptionalActions::Flush, &self.before);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_read_as_a_line_editor_reads_them() {
        let typed = |text: &str| keys(text.as_bytes()).unwrap().map(|bytes| String::from_utf8(bytes).unwrap());
        assert_eq!(typed("s3cret\rrest").as_deref(), Some("s3cret"));
        assert_eq!(typed("wrong\u{15}righté\u{7f}t\n").as_deref(), Some("rightt"));
        assert_eq!(typed("\u{7f}\n").as_deref(), Some(""));
        assert_eq!((typed("half\u{3}\n"), typed("half\u{4}"), typed("half")), (None, None, None));
    }
}
