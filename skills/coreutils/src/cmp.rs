//! `cmp`: where two files differ first, byte by byte.

use lexopt::Arg::{Long, Short, Value};

use crate::cli;

const USAGE: &str = "Usage: cmp [OPTION]... FILE1 [FILE2 [SKIP1 [SKIP2]]]
Compare two files byte by byte. Ends with 0 if they are the same, 1 if not, 2 if something went wrong.

  -s      say nothing          -l      all bytes that differ
  -n NUM  at most NUM bytes    -i NUM  without the first NUM bytes    -b  print the bytes
";

pub fn main(arguments: Vec<String>) -> i32 {
    cli::run(arguments, USAGE, 2, |mut parser| {
        let (mut silent, mut all, mut bytes) = (false, false, false);
        let (mut limit, mut skip) = (usize::MAX, [0, 0]);
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
        let cut = |path: &str, skip: usize| -> Result<Vec<u8>, cli::Error> {
            let bytes = cli::read(path)?;
            let from = skip.min(bytes.len());
            Ok(bytes[from..bytes.len().min(from.saturating_add(limit))].to_vec())
        };
        let (a, b) = (cut(&left, skip[0])?, cut(&right, skip[1])?);
        let mut line = 1;
        let mut code = 0;
        for (at, (x, y)) in a.iter().zip(&b).enumerate() {
            if x != y {
                code = 1;
                if silent {
                    return Ok(1);
                }
                if !all {
                    print!("{left} {right} differ: char {}, line {line}", at + 1);
                    if bytes {
                        print!(" is {x:3o} {} {y:3o} {}", shown(*x), shown(*y));
                    }
                    println!();
                    return Ok(1);
                }
                println!("{:width$} {x:3o} {y:3o}", at + 1, width = a.len().min(b.len()).to_string().len());
            }
            line += usize::from(*x == b'\n');
        }
        if a.len() != b.len() {
            if !silent {
                let (short, length) = if a.len() < b.len() { (&left, a.len()) } else { (&right, b.len()) };
                match length {
                    0 => eprintln!("cmp: EOF on {short} which is empty"),
                    _ if all => eprintln!("cmp: EOF on {short} after byte {length}"),
                    _ if line > 1 && a[..length].ends_with(b"\n") => {
                        eprintln!("cmp: EOF on {short} after byte {length}, line {}", line - 1);
                    }
                    _ => eprintln!("cmp: EOF on {short} after byte {length}, in line {line}"),
                }
            }
            return Ok(1);
        }
        Ok(code)
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
