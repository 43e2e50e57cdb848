//! `cmp`: where two files differ first, byte by byte.

use std::fs;
use std::io::{self, BufRead, BufReader, Read, Write};

use lexopt::Arg::{Long, Short, Value};

use crate::cli;

const USAGE: &str = "Usage: cmp [OPTION]... FILE1 [FILE2 [SKIP1 [SKIP2]]]
Compare two files byte by byte. Ends with 0 if they are the same, 1 if not, 2 if something went wrong.

  -s      say nothing          -l      all bytes that differ
  -n NUM  at most NUM bytes    -i NUM  without the first NUM bytes    -b  print the bytes
";

/// A file as it is read: neither is ever in memory as a whole, because some have no end.
type Bytes = BufReader<Box<dyn Read>>;

const BUFFER: usize = 64 << 10;

pub fn main(arguments: Vec<String>) -> i32 {
    cli::run(arguments, USAGE, 2, |mut parser| {
        let (mut silent, mut all, mut bytes) = (false, false, false);
        let (mut limit, mut skip) = (u64::MAX, [0_u64, 0]);
        let mut operands = Vec::new();
        while let Some(argument) = parser.next()? {
            match argument {
                Short('s') | Long("quiet" | "silent") => silent = true,
                Short('l') | Long("verbose") => all = true,
                Short('b') | Long("print-bytes") => bytes = true,
                Short('n') | Long("bytes") => limit = cli::number(&mut parser)?,
                Short('i') | Long("ignore-initial") => {
                    let text = cli::value(&mut parser)?;
                    let (a, b) = text.split_once(':').unwrap_or((&text, &text));
                    skip = [a.parse()?, b.parse()?];
                }
                Value(operand) => operands.push(operand.to_string_lossy().into_owned()),
                other => return Err(other.unexpected().into()),
            }
        }
        let left = operands.first().ok_or("missing operand")?.clone();
        let right = operands.get(1).cloned().unwrap_or_else(|| "-".into());
        for (index, operand) in operands.iter().skip(2).take(2).enumerate() {
            skip[index] = operand.parse()?;
        }
        let open = |path: &str, skip: u64| -> Result<Bytes, cli::Error> {
            let mut file = cli::open(path).map_err(cli::with_path(path))?;
            io::copy(&mut file.by_ref().take(skip), &mut io::sink()).map_err(cli::with_path(path))?;
            Ok(BufReader::with_capacity(BUFFER, Box::new(file.take(limit))))
        };
        let (mut a, mut b) = (open(&left, skip[0])?, open(&right, skip[1])?);
        let mut out = io::stdout().lock();
        let (mut at, mut line, mut code, mut ends_line) = (0_u64, 1_u64, 0, false);
        // As wide as the largest number that may come, where that is known before.
        let sizes = [(&left, skip[0]), (&right, skip[1])].map(|(path, skip)| match path.as_str() {
            "-" => u64::MAX,
            path => fs::metadata(path).map_or(u64::MAX, |about| about.len().saturating_sub(skip)),
        });
        let width = sizes[0].min(sizes[1]).min(limit).min(i64::MAX as u64).to_string().len();
        loop {
            let x = a.fill_buf().map_err(cli::with_path(&left))?;
            let y = b.fill_buf().map_err(cli::with_path(&right))?;
            let both = x.len().min(y.len());
            if both == 0 {
                if x.len() != y.len() {
                    if !silent {
                        out.flush()?;
                        let short = if x.is_empty() { &left } else { &right };
                        match at {
                            0 => eprintln!("cmp: EOF on {short} which is empty"),
                            _ if all => eprintln!("cmp: EOF on {short} after byte {at}"),
                            _ if ends_line => eprintln!("cmp: EOF on {short} after byte {at}, line {}", line - 1),
                            _ => eprintln!("cmp: EOF on {short} after byte {at}, in line {line}"),
                        }
                    }
                    return Ok(1);
                }
                return Ok(code);
            }
            for (x, y) in x[..both].iter().zip(&y[..both]) {
                at += 1;
                if x != y {
                    code = 1;
                    if silent {
                        return Ok(1);
                    }
                    if !all {
                        write!(out, "{left} {right} differ: char {at}, line {line}")?;
                        if bytes {
                            write!(out, " is {x:3o} {} {y:3o} {}", shown(*x), shown(*y))?;
                        }
                        writeln!(out)?;
                        return Ok(1);
                    }
                    writeln!(out, "{at:width$} {x:3o} {y:3o}")?;
                }
                ends_line = *x == b'\n';
                line += u64::from(ends_line);
            }
            a.consume(both);
            b.consume(both);
        }
    })
}

/// A byte as `cat -v` shows it.
fn shown(byte: u8) -> String {
    match byte {
        128.. => format!("M-{}", shown(byte - 128)),
        127 => "^?".into(),
        0..32 => format!("^{}", char::from(byte + 64)),
        _ => char::from(byte).to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::shown;

    #[test]
    fn bytes_are_shown_like_cat_does() {
        assert_eq!([b'a', 10, 127, 0xe9].map(shown), ["a", "^J", "^?", "M-i"]);
    }
}
