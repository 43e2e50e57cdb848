//! `xxd` and `hexdump`.

use std::io::{self, Write};

use lexopt::Arg::{Long, Short, Value};

use crate::cli::{self, Error};

const USAGE: &str = "Usage: xxd [-p] [-r] [-u] [-i] [-b] [-c COLUMNS] [-g GROUP] [-l LENGTH] [-s OFFSET] [FILE]
Print a file in hexadecimal, or with -r make bytes of it.
";

pub fn main(arguments: Vec<String>) -> i32 {
    // xxd knows some options of several letters with one dash.
    let arguments = arguments.into_iter().map(|a| if a == "-ps" || a == "-plain" { "-p".into() } else { a }).collect();
    cli::run(arguments, USAGE, 2, |mut parser| {
        let (mut plain, mut reverse, mut upper, mut include, mut binary) = (false, false, false, false, false);
        let (mut columns, mut group, mut length, mut skip) = (None, None, usize::MAX, 0);
        let mut files = Vec::new();
        while let Some(argument) = parser.next()? {
            match argument {
                Short('p') => plain = true,
                Short('r') => reverse = true,
                Short('u') => upper = true,
                Short('i') => include = true,
                Short('b') => binary = true,
                Short('c') => columns = Some(cli::number::<usize>(&mut parser)?.max(1)),
                Short('g') => group = Some(cli::number::<usize>(&mut parser)?),
                Short('l') => length = number(&cli::value(&mut parser)?)?,
                Short('s') => skip = number(&cli::value(&mut parser)?)?,
                Value(file) => files.push(file.to_string_lossy().into_owned()),
                other => return Err(other.unexpected().into()),
            }
        }
        let file = files.first().cloned().unwrap_or_else(|| "-".into());
        let bytes = cli::read(&file)?;
        let mut out: Box<dyn Write> = match files.get(1) {
            Some(path) => Box::new(std::fs::File::create(path).map_err(cli::with_path(path))?),
            None => Box::new(io::stdout().lock()),
        };
        if reverse {
            out.write_all(&unhex(&String::from_utf8_lossy(&bytes), plain))?;
            return Ok(0);
        }
        let bytes = &bytes[skip.min(bytes.len())..];
        let bytes = &bytes[..length.min(bytes.len())];
        let hex = |byte: u8| if upper { format!("{byte:02X}") } else { format!("{byte:02x}") };
        if plain {
            for line in bytes.chunks(columns.unwrap_or(30)) {
                writeln!(out, "{}", line.iter().map(|byte| hex(*byte)).collect::<String>())?;
            }
        } else if include {
            writeln!(out, "{}", source(&file, bytes, columns.unwrap_or(12)))?;
        } else {
            let columns = columns.unwrap_or(if binary { 6 } else { 16 });
            let group = match group.unwrap_or(if binary { 1 } else { 2 }) {
                0 => columns,
                group => group,
            };
            let cell = |byte: u8| if binary { format!("{byte:08b}") } else { hex(byte) };
            let width = columns * cell(0).len() + columns.div_ceil(group) - 1;
            for (row, line) in bytes.chunks(columns).enumerate() {
                let cells: Vec<String> =
                    line.chunks(group).map(|part| part.iter().map(|byte| cell(*byte)).collect()).collect();
                writeln!(out, "{:08x}: {:width$}  {}", skip + row * columns, cells.join(" "), text(line))?;
            }
        }
        Ok(0)
    })
}

fn number(text: &str) -> Result<usize, Error> {
    let parsed = match text.strip_prefix("0x") {
        Some(hex) => usize::from_str_radix(hex, 16),
        None => text.parse(),
    };
    parsed.map_err(|_| format!("invalid number '{text}'").into())
}

fn text(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| if matches!(byte, 32..127) { char::from(*byte) } else { '.' }).collect()
}

fn source(file: &str, bytes: &[u8], columns: usize) -> String {
    let lines: Vec<String> = bytes
        .chunks(columns)
        .map(|line| format!("  {}", line.iter().map(|byte| format!("0x{byte:02x}")).collect::<Vec<_>>().join(", ")))
        .collect();
    if file == "-" {
        return lines.join(",\n");
    }
    let name: String = file.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '_' }).collect();
    let length = bytes.len();
    format!("unsigned char {name}[] = {{\n{}\n}};\nunsigned int {name}_len = {length};", lines.join(",\n"))
}

/// The bytes of a dump; of a plain one everything counts, else what stands between `:` and two blanks.
fn unhex(dump: &str, plain: bool) -> Vec<u8> {
    let mut digits = Vec::new();
    for line in dump.lines() {
        let part = if plain {
            line
        } else {
            let line = line.split_once(':').map_or("", |(_, rest)| rest);
            let line = line.strip_prefix(' ').unwrap_or(line);
            line.split("  ").next().unwrap_or(line)
        };
        digits.extend(part.chars().filter_map(|c| c.to_digit(16)));
    }
    digits.chunks_exact(2).map(|pair| (pair[0] << 4 | pair[1]) as u8).collect()
}

const HEXDUMP: &str = "Usage: hexdump [-C] [-n LENGTH] [-s OFFSET] [-v] [FILE]...
Print files in hexadecimal, as words of two bytes or with -C as bytes and text.
";

pub fn hexdump(arguments: Vec<String>) -> i32 {
    cli::run(arguments, HEXDUMP, 1, |mut parser| {
        let (mut canonical, mut length, mut skip, mut verbose) = (false, usize::MAX, 0, false);
        let mut files = Vec::new();
        while let Some(argument) = parser.next()? {
            match argument {
                Short('C') | Long("canonical") => canonical = true,
                Short('v') | Long("no-squeezing") => verbose = true,
                Short('x') => {}
                Short('n') | Long("length") => length = number(&cli::value(&mut parser)?)?,
                Short('s') | Long("skip") => skip = number(&cli::value(&mut parser)?)?,
                Value(file) => files.push(file.to_string_lossy().into_owned()),
                other => return Err(other.unexpected().into()),
            }
        }
        let mut bytes = Vec::new();
        for file in cli::files_or_stdin(files) {
            bytes.extend(cli::read(&file)?);
        }
        let bytes = &bytes[skip.min(bytes.len())..];
        let bytes = &bytes[..length.min(bytes.len())];
        io::stdout().lock().write_all(dump(bytes, skip, canonical, verbose).as_bytes())?;
        Ok(0)
    })
}

fn dump(bytes: &[u8], skip: usize, canonical: bool, verbose: bool) -> String {
    let mut out = String::new();
    let width = if canonical { 8 } else { 7 };
    let mut last: Option<&[u8]> = None;
    let mut squeezed = false;
    for (row, line) in bytes.chunks(16).enumerate() {
        if !verbose && last == Some(line) {
            if !squeezed {
                out.push_str("*\n");
            }
            squeezed = true;
            continue;
        }
        (last, squeezed) = (Some(line), false);
        out.push_str(&format!("{:0width$x}", skip + row * 16));
        if canonical {
            let cells: Vec<String> = line.iter().map(|byte| format!("{byte:02x}")).collect();
            let (left, right) = cells.split_at(cells.len().min(8));
            out.push_str(&format!("  {:23}  {:23}  |{}|", left.join(" "), right.join(" "), text(line)));
        } else {
            for pair in line.chunks(2) {
                let word = u16::from(pair[0]) | pair.get(1).map_or(0, |byte| u16::from(*byte) << 8);
                out.push_str(&format!(" {word:04x}"));
            }
            out.push_str(&"     ".repeat(8 - line.len().div_ceil(2)));
        }
        out.push('\n');
    }
    if !bytes.is_empty() {
        out.push_str(&format!("{:0width$x}\n", skip + bytes.len()));
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dumps_go_there_and_back() {
        assert_eq!(unhex("00000000: 6162 0a41                                ab.A", false), b"ab\nA");
        assert_eq!(unhex("61 62\n0a", true), b"ab\n");
    }

    #[test]
    fn canonical_dumps_squeeze() {
        let dumped = dump(&[0; 48], 0, true, false);
        assert_eq!(dumped.lines().count(), 3);
        assert!(dumped.ends_with("*\n00000030\n"));
        assert_eq!(dump(b"abc", 0, false, false), "0000000 6261 0063                              \n0000003\n");
    }
}
