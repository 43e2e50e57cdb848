//! `sort`. (That of uutils starts threads to check, to merge and to sort what does not fit into memory, and WASI has none.)
//!
//! Lines are read into a buffer (`run`). When it is full it is sorted and written to a temporary file; at the end the files
//! are merged. `key` says which part of a line is compared, `compare` how.

mod compare;
mod key;
mod run;

use lexopt::Arg::{Long, Short, Value};

use crate::cli::{self, Error};
use compare::Order;
use key::Key;

const USAGE: &str = "Usage: sort [OPTION]... [FILE]...
Print the sorted lines of all files.

  -b  -d  -f  -i       ignore leading blanks, all but blanks and alphanumeric, case, what is not printable
  -n  -g  -h  -M  -V   compare numbers, floating point numbers, 2K and 1G, months, versions
  -R  -r               shuffle, but group equal keys; the other way round
  -k FROM[,TO]  -t C   the part of the line to compare: FIELD[.CHARACTER][bdfginhMRrV]; fields are separated by C
  -s  -u  -z           keep the order of equal lines, only the first of them; lines end with NUL
  -c  -C  -m           check only, silently; merge files that are sorted
  -o FILE              write to FILE, which may be one of those read
  -S SIZE  -T DIR      memory to use, directory for what exceeds it
  --files0-from=FILE
";

/// The memory of a task is bounded, and what a component once had it keeps.
const BUFFER: usize = 48 << 20;

/// The exit code of failures other than disorder.
const FAILED: i32 = 2;

struct Options {
    order: Order,
    reverse: bool,
    stable: bool,
    unique: bool,
    end: u8,
    check: Option<Check>,
    merge: bool,
    output: Option<String>,
    buffer: usize,
    directory: String,
    files: Vec<String>,
}

#[derive(Clone, Copy, PartialEq)]
enum Check {
    Aloud,
    Silent,
}

pub fn main(arguments: Vec<String>) -> i32 {
    cli::run(arguments, USAGE, FAILED, |parser| run::run(&parse(parser)?))
}

fn parse(mut parser: lexopt::Parser) -> Result<Options, Error> {
    let mut options = Options {
        order: Order::default(),
        reverse: false,
        stable: false,
        unique: false,
        end: b'\n',
        check: None,
        merge: false,
        output: None,
        buffer: BUFFER,
        directory: std::env::var("TMPDIR").unwrap_or_else(|_| "/tmp".into()),
        files: Vec::new(),
    };
    let mut global = Key::default();
    let mut keys = Vec::new();
    while let Some(argument) = parser.next()? {
        match argument {
            Short('k') | Long("key") => keys.push(Key::parse(&cli::value(&mut parser)?)?),
            Short('t') | Long("field-separator") => {
                options.order.separator = Some(separator(&cli::value(&mut parser)?)?)
            }
            Short('s') | Long("stable") => options.stable = true,
            Short('u') | Long("unique") => options.unique = true,
            Short('z') | Long("zero-terminated") => options.end = 0,
            Short('m') | Long("merge") => options.merge = true,
            Short('c') => options.check = Some(Check::Aloud),
            Short('C') => options.check = Some(Check::Silent),
            Long("check") => {
                let how = parser.optional_value().map(|how| how.to_string_lossy().into_owned());
                options.check = Some(match how.as_deref() {
                    None | Some("diagnose-first") => Check::Aloud,
                    Some("quiet" | "silent") => Check::Silent,
                    Some(other) => return Err(format!("invalid argument '{other}' for '--check'").into()),
                });
            }
            Short('o') | Long("output") => options.output = Some(cli::value(&mut parser)?),
            Short('S') | Long("buffer-size") => options.buffer = size(&cli::value(&mut parser)?)?,
            Short('T') | Long("temporary-directory") => options.directory = cli::value(&mut parser)?,
            Long("random-source") => options.order.seed_with(&cli::read(&cli::value(&mut parser)?)?),
            Long("parallel" | "batch-size" | "compress-program") => drop(cli::value(&mut parser)?),
            Long("files0-from") => {
                let names = cli::read(&cli::value(&mut parser)?)?;
                let names = names.split(|byte| *byte == 0).filter(|name| !name.is_empty());
                options.files.extend(names.map(|name| String::from_utf8_lossy(name).into_owned()));
            }
            Long("sort") => {
                let name = cli::value(&mut parser)?;
                let letter = match name.as_str() {
                    "general-numeric" => 'g',
                    "human-numeric" => 'h',
                    "month" => 'M',
                    "numeric" => 'n',
                    "random" => 'R',
                    "version" => 'V',
                    _ => return Err(format!("invalid argument '{name}' for '--sort'").into()),
                };
                global.option(letter);
            }
            Long(name) => {
                let letter = match name {
                    "ignore-leading-blanks" => 'b',
                    "dictionary-order" => 'd',
                    "ignore-case" => 'f',
                    "general-numeric-sort" => 'g',
                    "human-numeric-sort" => 'h',
                    "ignore-nonprinting" => 'i',
                    "month-sort" => 'M',
                    "numeric-sort" => 'n',
                    "random-sort" => 'R',
                    "reverse" => 'r',
                    "version-sort" => 'V',
                    _ => return Err(Long(name).unexpected().into()),
                };
                global.option(letter);
            }
            Short(letter) if global.option(letter) => {}
            Value(file) => options.files.push(file.to_string_lossy().into_owned()),
            other => return Err(other.unexpected().into()),
        }
    }
    options.reverse = global.reverse;
    options.order.set_keys(global, keys)?;
    options.files = cli::files_or_stdin(options.files);
    match (options.check, options.files.get(1)) {
        (Some(_), Some(extra)) => Err(format!("extra operand '{extra}' not allowed with -c").into()),
        _ => Ok(options),
    }
}

fn separator(text: &str) -> Result<u8, Error> {
    match text.as_bytes() {
        [byte] => Ok(*byte),
        b"\\0" => Ok(0),
        [] => Err("empty tab".into()),
        _ => Err(format!("multi-character tab '{text}'").into()),
    }
}

/// A size in KiB, or with a unit of its own. One that is too small still lets some lines be read at a time.
fn size(text: &str) -> Result<usize, Error> {
    let wrong = || format!("invalid --buffer-size argument '{text}'");
    let digits = text.len() - text.trim_start_matches(|c: char| c.is_ascii_digit()).len();
    let number: usize = text[..digits].parse().map_err(|_| wrong())?;
    let unit = match &text[digits..] {
        "" | "k" | "K" => 1 << 10,
        "b" => 1,
        "M" => 1 << 20,
        "G" | "T" | "P" | "E" => 1 << 30,
        // Of a memory that the command cannot see.
        "%" => return Ok(BUFFER),
        _ => return Err(wrong().into()),
    };
    Ok(number.saturating_mul(unit).clamp(64 << 10, BUFFER * 4))
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use std::io::Write;

    /// Sorts with a buffer of `buffer` bytes and returns the output and the code.
    pub fn sorted(arguments: &[&str], input: &[u8], buffer: usize) -> (Vec<u8>, i32) {
        let directory = tempfile::tempdir().unwrap();
        let (from, to) = (directory.path().join("in"), directory.path().join("out"));
        std::fs::File::create(&from).unwrap().write_all(input).unwrap();
        let mut options = parse(lexopt::Parser::from_args(arguments)).unwrap();
        options.files = vec![from.to_str().unwrap().to_owned()];
        options.output = Some(to.to_str().unwrap().to_owned());
        options.directory = directory.path().to_str().unwrap().to_owned();
        options.buffer = buffer;
        let code = run::run(&options).unwrap();
        (std::fs::read(&to).unwrap_or_default(), code)
    }

    #[track_caller]
    fn check(arguments: &[&str], input: &str, expected: &str) {
        for buffer in [BUFFER, 1] {
            let (output, code) = sorted(arguments, input.as_bytes(), buffer);
            assert_eq!((String::from_utf8(output).unwrap().as_str(), code), (expected, 0), "buffer {buffer}");
        }
    }

    #[test]
    fn whole_lines() {
        check(&[], "b\na\nB\n\nab", "\nB\na\nab\nb\n");
        check(&["-r"], "b\na\nc\n", "c\nb\na\n");
        check(&["-f"], "b\nA\na\nB\n", "A\na\nB\nb\n");
        check(&["-fs"], "b\na\nA\nB\n", "a\nA\nb\nB\n");
        check(&["-u"], "b\na\nb\na\n", "a\nb\n");
        check(&["-fu"], "b\na\nA\nB\n", "a\nb\n");
        check(&["-d"], "a-c\na b\nab\n", "a b\nab\na-c\n");
        check(&["-b"], "  b\n a\nc\n", " a\n  b\nc\n");
        check(&["-z"], "b\0a\n\0", "a\n\0b\0");
    }

    #[test]
    fn values() {
        check(&["-n"], "10\n9\n-1\nx\n1.5\n1.25\n", "-1\nx\n1.25\n1.5\n9\n10\n");
        check(&["-nr"], "10\n9\n-1\n", "10\n9\n-1\n");
        check(&["-n"], "9007199254740993\n9007199254740992\n", "9007199254740992\n9007199254740993\n");
        check(&["-n"], "-9007199254740992\n-9007199254740993\n", "-9007199254740993\n-9007199254740992\n");
        check(&["-nu"], "1.0\n1\n01\n2\n", "1.0\n2\n");
        check(&["-g"], "1e3\n5\nnan\n-inf\nx\n0x10\n", "x\nnan\n-inf\n5\n0x10\n1e3\n");
        check(&["-h"], "1M\n2K\n3\n1G\n-1K\n0K\n", "-1K\n0K\n3\n2K\n1M\n1G\n");
        check(&["-M"], "mar\nJAN\nx\ndecember\n", "x\nJAN\nmar\ndecember\n");
        check(&["-V"], "v1.10\nv1.9\nv1\nv1.9a\n", "v1\nv1.9\nv1.9a\nv1.10\n");
    }

    #[test]
    fn keys() {
        check(&["-k2"], "a 2\nb 1\n", "b 1\na 2\n");
        check(&["-k2,2n", "-k1,1r"], "a 2\nb 2\nc 10\n", "b 2\na 2\nc 10\n");
        check(&["-t,", "-k2,2nr"], "a,1\nb,3\nc,2\n", "b,3\nc,2\na,1\n");
        check(&["-t", ",", "-k", "3"], "a,,2\nb,,1\nc\n", "c\nb,,1\na,,2\n");
        check(&["-k1.2,1.2"], "az\nby\ncx\n", "cx\nby\naz\n");
        check(&["-k2b,2"], "x   b\ny a\n", "y a\nx   b\n");
        check(&["-k2,2"], "x   b\ny a\n", "x   b\ny a\n");
        check(&["-su", "-k1,1"], "a 2\na 1\nb 1\n", "a 2\nb 1\n");
        check(&["-n", "-k2"], "x 10\ny 9\n", "y 9\nx 10\n");
        for wrong in ["0", "x", "1,0", "1.0", "1q", "1,2q"] {
            assert!(parse(lexopt::Parser::from_args(["-k", wrong])).is_err(), "{wrong}");
        }
        assert!(parse(lexopt::Parser::from_args(["-n", "-g"])).is_err());
    }

    #[test]
    fn order_is_checked() {
        assert_eq!(sorted(&["-C"], b"a\nb\nb\n", BUFFER).1, 0);
        assert_eq!(sorted(&["-C"], b"a\nc\nb\n", BUFFER).1, 1);
        assert_eq!(sorted(&["-Cu"], b"a\nb\nb\n", BUFFER).1, 1);
        assert_eq!(sorted(&["-Cn"], b"9\n10\n", BUFFER).1, 0);
    }

    #[test]
    fn what_exceeds_the_buffer_is_merged() {
        let numbers: Vec<u32> = (0..50_000u32).map(|n| n.wrapping_mul(2_654_435_761) % 10_000).collect();
        let text: String = numbers.iter().map(|n| format!("{n}\n")).collect();
        let (many, _) = sorted(&["-n"], text.as_bytes(), 16 << 10);
        let (one, _) = sorted(&["-n"], text.as_bytes(), BUFFER);
        assert!(many == one);
        let mut expected = numbers;
        expected.sort_unstable();
        assert!(one == expected.iter().map(|n| format!("{n}\n")).collect::<String>().into_bytes());
    }

    #[test]
    fn shuffling_groups_what_is_equal() {
        let (output, _) = sorted(&["-R"], b"a\nb\na\nc\nb\n", BUFFER);
        let text = String::from_utf8(output).unwrap();
        assert!(text.contains("a\na\n") && text.contains("b\nb\n") && text.len() == 10);
    }
}
