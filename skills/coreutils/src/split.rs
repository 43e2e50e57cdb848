//! `split`, on that of uutils: `--filter`, which that takes and forgets under WASI, and `-n l/N`, which it counts otherwise than GNU's.

use std::ffi::OsString;
use std::io::{self, Read, Write};
use std::path::Path;

use command::process;
use lexopt::Arg::{Long, Short, Value};

use crate::cli::{self, Error};
use crate::table::Arguments;

#[derive(Default)]
struct Options {
    filter: Option<String>,
    /// Of `-n l/N`.
    chunks: Option<u64>,
    /// The generated end of the parts' names, before the additional suffix.
    suffix: Suffix,
    additional: String,
    elide: bool,
    operands: Vec<String>,
    /// The arguments that mean something to uutils alone.
    others: bool,
}

#[derive(Clone, Copy, Default)]
struct Suffix {
    digits: Digits,
    first: u64,
    length: Option<usize>,
}

#[derive(Clone, Copy, Default, PartialEq)]
enum Digits {
    #[default]
    Letters,
    Decimal,
    Hexadecimal,
}

pub fn main(arguments: Arguments) -> i32 {
    let all: Vec<OsString> = arguments.collect();
    let has_filter = all.iter().any(|argument| argument.to_string_lossy().starts_with("--filter"));
    let done = match parse(&all) {
        Ok(options) => match (&options.filter, options.chunks) {
            (None, Some(chunks)) if !options.others => by_lines(&options, chunks),
            (Some(filter), _) => filtered(&all, &options, filter),
            _ => Ok(uu_split::uumain(all.into_iter())),
        },
        // uutils knows its options better, but would forget a filter.
        Err(_) if !has_filter => Ok(uu_split::uumain(all.into_iter())),
        Err(error) => Err(error),
    };
    done.unwrap_or_else(|error| {
        eprintln!("split: {error}");
        1
    })
}

fn parse(all: &[OsString]) -> Result<Options, Error> {
    let mut options = Options::default();
    let mut parser = lexopt::Parser::from_iter(all);
    while let Some(argument) = parser.next()? {
        let first = |parser: &mut lexopt::Parser, radix| {
            let text = parser.optional_value().map(|text| text.to_string_lossy().into_owned());
            text.map_or(Ok(0), |text| u64::from_str_radix(&text, radix).map_err(|_| format!("{text}: invalid start")))
        };
        match argument {
            Long("filter") => options.filter = Some(cli::value(&mut parser)?),
            Short('n') | Long("number") => {
                let value = cli::value(&mut parser)?;
                match value.strip_prefix("l/").map(str::parse) {
                    Some(Ok(chunks)) if chunks > 0 => options.chunks = Some(chunks),
                    _ => options.others = true,
                }
            }
            Short('a') | Long("suffix-length") => options.suffix.length = Some(cli::number(&mut parser)?),
            Short('d') => options.suffix.digits = Digits::Decimal,
            Short('x') => options.suffix.digits = Digits::Hexadecimal,
            Long("numeric-suffixes") => {
                options.suffix.digits = Digits::Decimal;
                options.suffix.first = first(&mut parser, 10)?;
            }
            Long("hex-suffixes") => {
                options.suffix.digits = Digits::Hexadecimal;
                options.suffix.first = first(&mut parser, 16)?;
            }
            Long("additional-suffix") => options.additional = cli::value(&mut parser)?,
            Short('e') | Long("elide-empty-files") => options.elide = true,
            Short('b' | 'C' | 'l' | 't') | Long("bytes" | "line-bytes" | "lines" | "separator") => {
                cli::value(&mut parser)?;
                options.others = true;
            }
            Value(operand) => options.operands.push(operand.to_string_lossy().into_owned()),
            _ => options.others = true,
        }
    }
    Ok(options)
}

/// A line is in the chunk in which its first byte is.
fn by_lines(options: &Options, chunks: u64) -> Result<i32, Error> {
    let input = options.operands.first().map_or("-", String::as_str);
    let prefix = options.operands.get(1).map_or("x", String::as_str);
    let bytes = cli::read(input)?;
    let whole = bytes.len() as u64;
    let (mut from, mut part) = (0, 0);
    for chunk in 1..=chunks {
        let end = usize::try_from(if chunk == chunks { whole } else { whole / chunks * chunk }).unwrap_or(bytes.len());
        let behind = end.saturating_sub(1).max(from);
        let to = match bytes[behind.min(bytes.len())..].iter().position(|byte| *byte == b'\n') {
            _ if end <= from => from,
            Some(at) => behind + at + 1,
            None => bytes.len(),
        };
        let lines = &bytes[from..to];
        from = to;
        if lines.is_empty() && options.elide {
            continue;
        }
        let name = format!("{prefix}{}{}", options.suffix.name(part, chunks)?, options.additional);
        std::fs::write(&name, lines).map_err(cli::with_path(&name))?;
        part += 1;
    }
    Ok(0)
}

impl Suffix {
    /// Returns the suffix of a part, long enough for this many parts.
    fn name(self, part: u64, parts: u64) -> Result<String, Error> {
        let (base, letters): (u64, &[u8]) = match self.digits {
            Digits::Letters => (26, b"abcdefghijklmnopqrstuvwxyz"),
            Digits::Decimal => (10, b"0123456789"),
            Digits::Hexadecimal => (16, b"0123456789abcdef"),
        };
        let mut needed = 1;
        let mut rest = self.first.saturating_add(parts).saturating_sub(1) / base;
        while rest > 0 {
            (needed, rest) = (needed + 1, rest / base);
        }
        let length = self.length.filter(|length| *length > 0).unwrap_or(needed.max(2));
        if length < needed {
            return Err("output file suffixes exhausted".into());
        }
        let mut suffix = vec![letters[0]; length];
        let mut rest = self.first.saturating_add(part);
        for place in suffix.iter_mut().rev() {
            *place = letters[(rest % base) as usize];
            rest /= base;
        }
        Ok(String::from_utf8(suffix)?)
    }
}

/// Each part is what the shell's command reads, with the part's name in `$FILE`.
fn filtered(all: &[OsString], options: &Options, filter: &str) -> Result<i32, Error> {
    let dir = tempfile::tempdir_in("/tmp")?;
    let parts = dir.path().to_string_lossy().into_owned();
    let prefix = options.operands.get(1).map_or("x", String::as_str);
    let code = match options.chunks {
        Some(chunks) if !options.others => {
            let input = options.operands.first().map_or("-", String::as_str).to_owned();
            let operands = vec![input, format!("{parts}/")];
            let options = Options { operands, additional: options.additional.clone(), filter: None, ..*options };
            by_lines(&options, chunks)?
        }
        _ => uu_split::uumain(without_filter(all, options, &parts).into_iter()),
    };
    let mut names: Vec<_> =
        std::fs::read_dir(&parts)?.map(|entry| entry.map(|entry| entry.file_name())).collect::<Result<_, _>>()?;
    names.sort();
    for name in names.iter().filter(|_| code == 0) {
        let mut env = process::environment();
        env.retain(|(variable, _)| variable != "FILE");
        env.push(("FILE".to_owned(), format!("{prefix}{}", name.to_string_lossy())));
        let argv = ["sh", "-c", filter].map(str::to_owned);
        let (process, mut pipe) = process::start_writing(&argv, env).map_err(|refused| refused.message)?;
        let mut part = std::fs::File::open(Path::new(&parts).join(name))?;
        let fed = copy(&mut part, &mut pipe);
        drop(pipe);
        let code = process.wait();
        fed?;
        if code != 0 {
            return Err(
                format!("with FILE={prefix}{}, exit {code} from command: {filter}", name.to_string_lossy()).into()
            );
        }
    }
    Ok(code)
}

/// A filter that stops reading early has not failed.
fn copy(from: &mut impl Read, to: &mut impl Write) -> io::Result<()> {
    match io::copy(from, to) {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => Err(error),
        _ => Ok(()),
    }
}

/// The arguments for uutils, with the parts in a directory of their own. Operands may stand between options: they are left out where
/// they are, and put at the end.
fn without_filter(all: &[OsString], options: &Options, parts: &str) -> Vec<OsString> {
    let mut plain: Vec<OsString> = Vec::new();
    let mut operands = options.operands.iter().peekable();
    let mut arguments = all.iter();
    while let Some(argument) = arguments.next() {
        let text = argument.to_string_lossy();
        if text == "--filter" {
            arguments.next();
        } else if !plain.is_empty() && operands.peek().is_some_and(|operand| **operand == text) {
            operands.next();
        } else if text != "--" && !text.starts_with("--filter=") {
            plain.push(argument.clone());
        }
    }
    plain.push("--".into());
    plain.push(options.operands.first().map_or("-", String::as_str).into());
    plain.push(format!("{parts}/").into());
    plain
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(text: &str) -> Vec<OsString> {
        text.split(' ').map(Into::into).collect()
    }

    #[test]
    fn a_filter_is_kept_from_uutils() {
        for (given, plain) in [
            ("split -l 2 --filter=cat -", "split -l 2 -- - P/"),
            ("split -l 2 --filter cat f x.", "split -l 2 -- f P/"),
            ("split f --filter=cat -b 10 x.", "split -b 10 -- f P/"),
            ("split --filter=cat", "split -- - P/"),
        ] {
            let all = words(given);
            let options = parse(&all).unwrap();
            assert_eq!(options.filter.as_deref(), Some("cat"), "{given}");
            assert_eq!(without_filter(&all, &options, "P"), words(plain), "{given}");
        }
    }

    #[test]
    fn suffixes_are_as_long_as_they_must_be() {
        let of = |digits, part, parts| Suffix { digits, ..Suffix::default() }.name(part, parts).unwrap();
        assert_eq!((of(Digits::Letters, 27, 30).as_str(), of(Digits::Decimal, 7, 8).as_str()), ("bb", "07"));
        assert_eq!((of(Digits::Letters, 0, 677).as_str(), of(Digits::Hexadecimal, 255, 256).as_str()), ("aaa", "ff"));
        assert!(Suffix { length: Some(1), ..Suffix::default() }.name(0, 27).is_err());
    }

    #[test]
    fn a_line_is_where_it_begins() {
        let dir = tempfile::tempdir().unwrap();
        let path = |name: &str| dir.path().join(name).to_str().unwrap().to_owned();
        for (text, chunks, parts) in [
            ("1\n2\n3\n4\n5\n6\n7\n8\n9\n10\n", 2, &["1\n2\n3\n4\n5\n", "6\n7\n8\n9\n10\n"][..]),
            ("a\nlong line\nb\n", 3, &["a\nlong line\n", "", "b\n"]),
            ("one", 2, &["one", ""]),
            ("", 2, &["", ""]),
        ] {
            std::fs::write(path("f"), text).unwrap();
            let options = Options { operands: vec![path("f"), path("x")], ..Options::default() };
            by_lines(&options, chunks).unwrap();
            let names = ["xaa", "xab", "xac"].iter().take(parts.len());
            let found: Vec<_> = names.map(|name| std::fs::read_to_string(path(name)).unwrap()).collect();
            assert_eq!(found, parts, "{text:?} in {chunks}");
        }
    }
}
