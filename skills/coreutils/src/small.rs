//! `rev` and `strings`.

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
            let mut reader = BufReader::new(cli::open(&file).map_err(cli::at(&file))?);
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
    use super::runs;

    #[test]
    fn long_runs_are_found() {
        let found = runs(b"\0abcd\x01ab\0\0hello world\n", 4);
        assert_eq!(found, [(1, "abcd".to_owned()), (10, "hello world".to_owned())]);
    }
}
