//! `file`: what files are, by what they begin with.

mod magic;
mod text;

use std::fs::File;
use std::io::{self, Read, Write};

use lexopt::Arg::{Long, Short, Value};

use crate::cli;

const USAGE: &str = "Usage: file [OPTION]... FILE...
Say what files are, by their contents. `-` is standard input.

  -b                    without the name
  -i  --mime            as media type and character set
  --mime-type  --mime-encoding
  -L  -h                follow symbolic links, or not (as usual)
  -f FILE               the names are lines of FILE
  -F TEXT  -N           TEXT behind the name in place of `:`, do not align
  -0                    a NUL behind the name
  -E                    a file that cannot be read is an error
";

/// How much of a file is looked at.
const LOOK: u64 = 1 << 20;

/// The type of a file, in words and as a media type.
#[derive(Debug, PartialEq, Eq)]
struct Kind {
    words: String,
    mime: &'static str,
    charset: &'static str,
}

impl Kind {
    fn binary(words: impl Into<String>, mime: &'static str) -> Self {
        Kind { words: words.into(), mime, charset: "binary" }
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Form {
    Words,
    Mime,
    MimeType,
    Charset,
}

pub fn main(arguments: Vec<String>) -> i32 {
    cli::run(arguments, USAGE, 1, |mut parser| {
        let (mut brief, mut form, mut follow, mut aligned, mut strict, mut zero) =
            (false, Form::Words, false, true, false, false);
        let mut separator = ":".to_owned();
        let mut names = Vec::new();
        while let Some(argument) = parser.next()? {
            match argument {
                Short('b') | Long("brief") => brief = true,
                Short('i') | Long("mime") => form = Form::Mime,
                Long("mime-type") => form = Form::MimeType,
                Long("mime-encoding") => form = Form::Charset,
                Short('L') | Long("dereference") => follow = true,
                Short('h') | Long("no-dereference") => follow = false,
                Short('N') | Long("no-pad") => aligned = false,
                Short('F') | Long("separator") => separator = cli::value(&mut parser)?,
                Short('0') | Long("print0") => zero = true,
                Short('E') => strict = true,
                // It reads no devices, keeps no times and writes at once.
                Short('s' | 'p' | 'n' | 'k' | 'r')
                | Long("special-files" | "preserve-date" | "no-buffer" | "keep-going" | "raw") => {}
                Short('f') | Long("files-from") => {
                    let list = cli::read(&cli::value(&mut parser)?)?;
                    names.extend(String::from_utf8_lossy(&list).lines().map(String::from));
                }
                Value(name) => names.push(name.to_string_lossy().into_owned()),
                other => return Err(other.unexpected().into()),
            }
        }
        if names.is_empty() {
            return Err("a file is needed (see file --help)".into());
        }
        let widest = names.iter().map(|name| shown(name).chars().count()).max().unwrap_or_default();
        let mut out = io::stdout().lock();
        let mut code = 0;
        for name in &names {
            let words = match look(name, follow) {
                Ok(kind) => kind.show(form),
                Err(e) => {
                    code = i32::from(strict);
                    format!("cannot open `{name}' ({})", cli::reason(&e))
                }
            };
            if brief {
                writeln!(out, "{words}")?;
                continue;
            }
            let end = if zero { "\0" } else { "" };
            let padding = if aligned && !zero { widest - shown(name).chars().count() } else { 0 };
            writeln!(out, "{}{end}{separator}{:padding$} {words}", shown(name), "")?;
        }
        Ok(code)
    })
}

impl Kind {
    fn show(self, form: Form) -> String {
        match form {
            Form::Words => self.words,
            Form::Mime => format!("{}; charset={}", self.mime, self.charset),
            Form::MimeType => self.mime.to_owned(),
            Form::Charset => self.charset.to_owned(),
        }
    }
}

fn shown(name: &str) -> &str {
    if name == "-" { "/dev/stdin" } else { name }
}

fn look(name: &str, follow: bool) -> io::Result<Kind> {
    if name == "-" {
        return contents(io::stdin().lock());
    }
    let found = std::fs::symlink_metadata(name)?;
    if found.is_symlink() && !follow {
        let target = std::fs::read_link(name)?;
        let broken = if std::fs::metadata(name).is_err() { "broken symbolic link" } else { "symbolic link" };
        return Ok(Kind::binary(format!("{broken} to {}", target.display()), "inode/symlink"));
    }
    if std::fs::metadata(name)?.is_dir() {
        return Ok(Kind::binary("directory", "inode/directory"));
    }
    contents(File::open(name)?)
}

fn contents(input: impl Read) -> io::Result<Kind> {
    let mut bytes = Vec::new();
    input.take(LOOK).read_to_end(&mut bytes)?;
    Ok(classify(&bytes))
}

fn classify(bytes: &[u8]) -> Kind {
    if bytes.is_empty() {
        return Kind::binary("empty", "inode/x-empty");
    }
    let whole = (bytes.len() as u64) < LOOK;
    magic::kind(bytes)
        .or_else(|| text::kind(bytes, whole))
        .unwrap_or_else(|| Kind::binary("data", "application/octet-stream"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_by_their_first_bytes() {
        for (bytes, words, mime) in [
            (&b""[..], "empty", "inode/x-empty; charset=binary"),
            (b"\x00\x01\x02\xff", "data", "application/octet-stream; charset=binary"),
            (b"plain\n", "ASCII text", "text/plain; charset=us-ascii"),
            (b"no end", "ASCII text, with no line terminators", "text/plain; charset=us-ascii"),
            (b"a\r\nb\n", "ASCII text, with CRLF, LF line terminators", "text/plain; charset=us-ascii"),
            ("gr\u{fc}n\n".as_bytes(), "Unicode text, UTF-8 text", "text/plain; charset=utf-8"),
            (b"gr\xfcn\n", "ISO-8859 text", "text/plain; charset=iso-8859-1"),
            (b"\xff\xfeh\0\n\0", "Unicode text, UTF-16, little-endian text", "text/plain; charset=utf-16le"),
            (b"{\"a\": [1]}\n", "JSON text data", "application/json; charset=us-ascii"),
            (b"{\"a\": [1}\n", "ASCII text", "text/plain; charset=us-ascii"),
            (b"{}\n{}\n", "New Line Delimited JSON text data", "application/x-ndjson; charset=us-ascii"),
            (b"a,b\n1,2\n", "CSV text", "text/csv; charset=us-ascii"),
            (b"#!/bin/sh\n", "POSIX shell script, ASCII text executable", "text/x-shellscript; charset=us-ascii"),
            (b"%PDF-1.7\n%\xe2\xe3", "PDF document, version 1.7", "application/pdf; charset=binary"),
            (b"\x1f\x8b\x08\x00", "gzip compressed data", "application/gzip; charset=binary"),
            (
                b"\0asm\x01\0\0\0",
                "WebAssembly (wasm) binary module version 0x1 (MVP)",
                "application/wasm; charset=binary",
            ),
            (b"GIF89a\x02\0\x03\0\0", "GIF image data, version 89a, 2 x 3", "image/gif; charset=binary"),
            (
                b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\0\x10\0\0\0\x20\x08\x06\0\0\0",
                "PNG image data, 16 x 32, 8-bit/color RGBA, non-interlaced",
                "image/png; charset=binary",
            ),
        ] {
            assert_eq!(classify(bytes).show(Form::Words), words, "{bytes:?}");
            assert_eq!(classify(bytes).show(Form::Mime), mime, "{bytes:?}");
        }
    }

    #[test]
    fn cut_and_hostile_bytes_are_looked_at_without_harm() {
        for head in [&b"\x89PNG\r\n\x1a\n"[..], b"\x7fELF", b"PK\x03\x04", b"RIFF", b"\0asm", b"GIF8", b"BZh", b"%PDF-"]
        {
            for length in 0..=head.len() {
                assert!(!classify(&head[..length]).show(Form::Words).is_empty());
            }
        }
        let deep = "[".repeat(LOOK as usize - 1);
        assert_eq!(classify(deep.as_bytes()).mime, "text/plain");
    }
}
