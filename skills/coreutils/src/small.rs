//! `rev`, `tac` and `strings`; and `cp`, whose options for what WASI does not have are taken away before uutils sees them.
//! (`tac` of uutils maps files into memory, which WASI cannot.)

use std::io::{self, BufRead, BufReader, Write};

use lexopt::Arg::{Long, Short, Value};

use crate::cli;

pub fn rev(arguments: Vec<String>) -> i32 {
    cli::run(arguments, "Usage: rev [FILE]...\nReverse each line.\n", 1, |mut parser| {
        let mut files = Vec::new();
        while let Some(argument) = parser.next()? {
            match argument {
                Value(file) => files.push(file.to_string_lossy().into_owned()),
                other => return Err(other.unexpected().into()),
            }
        }
        let mut out = io::stdout().lock();
        for file in cli::files_or_stdin(files) {
            let mut reader = BufReader::new(cli::open(&file).map_err(cli::with_path(&file))?);
            let mut line = Vec::new();
            while reader.read_until(b'\n', &mut line)? > 0 {
                let newline = line.pop_if(|byte| *byte == b'\n').is_some();
                let reversed: String = String::from_utf8_lossy(&line).chars().rev().collect();
                out.write_all(reversed.as_bytes())?;
                if newline {
                    out.write_all(b"\n")?;
                }
                line.clear();
            }
        }
        Ok(0)
    })
}

const TAC: &str = "Usage: tac [-b] [-s TEXT] [FILE]...
Print files with their last line first.
";

pub fn tac(arguments: Vec<String>) -> i32 {
    cli::run(arguments, TAC, 1, |mut parser| {
        let (mut separator, mut before) = ("\n".to_owned(), false);
        let mut files = Vec::new();
        while let Some(argument) = parser.next()? {
            match argument {
                Short('s') | Long("separator") => separator = cli::value(&mut parser)?,
                Short('b') | Long("before") => before = true,
                Value(file) => files.push(file.to_string_lossy().into_owned()),
                other => return Err(other.unexpected().into()),
            }
        }
        let mut out = io::stdout().lock();
        for file in cli::files_or_stdin(files) {
            for record in backwards(&cli::read(&file)?, separator.as_bytes(), before) {
                out.write_all(record)?;
            }
        }
        Ok(0)
    })
}

/// The records, each with its separator behind or before it, the last one first.
fn backwards<'a>(bytes: &'a [u8], separator: &[u8], before: bool) -> Vec<&'a [u8]> {
    let separator = if separator.is_empty() { b"\0" } else { separator };
    let mut records = Vec::new();
    let mut end = bytes.len();
    for at in memchr::memmem::rfind_iter(bytes, separator) {
        let cut = if before { at } else { at + separator.len() };
        if cut < end {
            records.push(&bytes[cut..end]);
            end = cut;
        }
    }
    records.push(&bytes[..end]);
    records
}

/// `comm` of uutils, which ends in a crash where both files are standard input.
pub fn comm(arguments: crate::table::Arguments) -> i32 {
    let arguments: Vec<_> = arguments.collect();
    if arguments.iter().filter(|argument| *argument == "-").count() > 1 {
        eprintln!("comm: both files cannot be standard input");
        return 1;
    }
    uu_comm::uumain(arguments.into_iter())
}

/// `cp` of uutils. Copies have no owner, times or holes to keep here, and asking for them fails; permissions are kept in any case.
pub fn cp(arguments: crate::table::Arguments) -> i32 {
    let arguments: Vec<_> = arguments.map(|argument| argument.to_string_lossy().into_owned()).collect();
    #[cfg(target_os = "wasi")]
    command::copies_keep_permissions(preserves(&arguments));
    uu_cp::uumain(plain_copy(arguments.into_iter()).into_iter().map(Into::into))
}

/// Whether an existing file gets the permissions of the file that is copied over it.
#[cfg(any(test, target_os = "wasi"))]
fn preserves(arguments: &[String]) -> bool {
    let options = arguments.iter().skip(1).take_while(|argument| *argument != "--");
    options.into_iter().any(|option| match option.strip_prefix("--") {
        Some(long) => {
            long == "archive"
                || long.strip_prefix("preserve").is_some_and(|kept| {
                    kept.is_empty() || kept.split(['=', ',']).any(|kind| matches!(kind, "mode" | "all"))
                })
        }
        None => option.starts_with('-') && option.contains(['p', 'a']) && !option.contains(['t', 'S']),
    })
}

fn plain_copy(arguments: impl Iterator<Item = String>) -> Vec<String> {
    let mut plain = Vec::new();
    let mut options = true;
    for argument in arguments {
        options &= argument != "--";
        match argument.as_str() {
            "--archive" if options => plain.extend(["-R".to_owned(), "-P".to_owned()]),
            text if options && (text.starts_with("--preserve") || text.starts_with("--no-preserve")) => {}
            // Files have no holes here, whatever is asked for.
            text if options && ["--sparse=", "--reflink"].iter().any(|taken| text.starts_with(taken)) => {}
            text if options && text.starts_with('-') && !text.starts_with("--") && !text.contains(['t', 'S']) => {
                let letters = text.replace('p', "").replace('a', "RP").replace('d', "P");
                if letters != "-" || text == "-" {
                    plain.push(letters);
                }
            }
            _ => plain.push(argument),
        }
    }
    plain
}

const STRINGS: &str = "Usage: strings [-a] [-n NUM] [-t d|o|x] [-f] [FILE]...
Print the sequences of at least NUM (4) printable characters.
";

pub fn strings(arguments: Vec<String>) -> i32 {
    cli::run(arguments, STRINGS, 1, |mut parser| {
        let (mut least, mut radix, mut name) = (4, None, false);
        let mut files = Vec::new();
        while let Some(argument) = parser.next()? {
            match argument {
                Short('a') | Long("all") => {}
                Short('n') | Long("bytes") => least = cli::number(&mut parser)?,
                Short('t') | Long("radix") => radix = cli::value(&mut parser)?.chars().next(),
                Short('f') | Long("print-file-name") => name = true,
                Value(file) => files.push(file.to_string_lossy().into_owned()),
                other => return Err(other.unexpected().into()),
            }
        }
        let mut out = io::stdout().lock();
        for file in cli::files_or_stdin(files) {
            for (offset, text) in runs(&cli::read(&file)?, least) {
                if name {
                    write!(out, "{file}: ")?;
                }
                match radix {
                    Some('d') => write!(out, "{offset:7} ")?,
                    Some('o') => write!(out, "{offset:7o} ")?,
                    Some('x') => write!(out, "{offset:7x} ")?,
                    _ => {}
                }
                writeln!(out, "{text}")?;
            }
        }
        Ok(0)
    })
}

fn runs(bytes: &[u8], least: usize) -> Vec<(usize, String)> {
    let printable = |byte: &u8| matches!(byte, b'\t' | 32..127);
    let mut found = Vec::new();
    let mut at = 0;
    for part in bytes.split(|byte| !printable(byte)) {
        if part.len() >= least.max(1) {
            found.push((at, String::from_utf8_lossy(part).into_owned()));
        }
        at += part.len() + 1;
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_runs_are_found() {
        let found = runs(b"\0abcd\x01ab\0\0hello world\n", 4);
        assert_eq!(found, [(1, "abcd".to_owned()), (10, "hello world".to_owned())]);
    }

    #[test]
    fn records_go_backwards() {
        assert_eq!(backwards(b"a\nb\nc\n", b"\n", false).concat(), b"c\nb\na\n");
        assert_eq!(backwards(b"a\nb", b"\n", false).concat(), b"ba\n");
        assert_eq!(backwards(b"a,b,c", b",", true).concat(), b",c,ba");
        assert_eq!(backwards(b"", b"\n", false).concat(), b"");
    }

    #[test]
    fn copies_keep_only_permissions() {
        let plain = |arguments: &[&str]| plain_copy(arguments.iter().map(|a| a.to_string())).join(" ");
        assert_eq!(plain(&["cp", "-a", "x", "y"]), "cp -RP x y");
        assert_eq!(plain(&["cp", "-p", "--preserve=mode", "x", "y"]), "cp x y");
        assert_eq!(plain(&["cp", "-rp", "--", "-p", "y"]), "cp -r -- -p y");
        let keeps = |line: &str| preserves(&line.split(' ').map(str::to_owned).collect::<Vec<_>>());
        assert_eq!(["cp -p x y", "cp -a x y", "cp --preserve=mode x y"].map(keeps), [true; 3]);
        assert_eq!(["cp x y", "cp -- -p y", "cp --preserve=timestamps x y"].map(keeps), [false; 3]);
    }
}
