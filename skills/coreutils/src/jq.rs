//! `jq`, on the interpreter of jaq.

use std::cell::Cell;
use std::io::{self, Read, Write};

use jaq_all::data::{self, Runner};
use jaq_all::jaq_core::load::{self, parse::Def};
use jaq_all::jaq_core::{ValT, Vars};
use jaq_all::json::write::{self, Pp, Styles};
use jaq_all::json::{Num, Val, read};
use jaq_all::load::FileReportsDisp;
use lexopt::Arg::{Long, Short, Value};

use crate::cli::{self, Error};

const USAGE: &str = "Usage: jq [OPTION]... FILTER [FILE]...
       jq [OPTION]... -f FILE [FILE]...
Run FILTER on each JSON value of the files or of standard input.

  -r  -j  -a             strings without quotes, also without newlines, only ASCII
  -c  --tab  --indent N  on one line, indented with tabs or N blanks
  -n  -s  -R             no input, all inputs as one array, lines as strings
  -S  -C  -M             sorted keys, colors, no colors
  -e                     end with 1 if the last output is false or null, with 4 if there is none
  --arg NAME TEXT  --argjson NAME JSON  --slurpfile NAME FILE  --rawfile NAME FILE
  --args  --jsonargs     what is left are positional arguments
";

/// How deep values of an input may be nested: what the parser's stack has room for. jq has 10,000, and had 256.
const DEEPEST: usize = 1_000;

/// jq's exit codes for wrong use or input, an invalid filter, `-e` without output, and an error in a filter.
const WRONG: i32 = 2;
const NO_FILTER: i32 = 3;
const NO_OUTPUT: i32 = 4;
const FAILED: i32 = 5;

struct Options {
    raw: bool,
    join: bool,
    ascii: bool,
    null: bool,
    slurp: bool,
    lines: bool,
    exit_status: bool,
    pp: Pp,
    filter: Option<String>,
    files: Vec<String>,
    named: Vec<(String, Val)>,
    positional: Vec<Val>,
}

pub fn main(arguments: Vec<String>) -> i32 {
    cli::run(arguments, USAGE, WRONG, |parser| run(parse(parser)?))
}

fn parse(mut parser: lexopt::Parser) -> Result<Options, Error> {
    let mut options = Options {
        raw: false,
        join: false,
        ascii: false,
        null: false,
        slurp: false,
        lines: false,
        exit_status: false,
        pp: Pp { indent: Some("  ".into()), sort_keys: false, styles: Styles::default(), sep_space: true },
        filter: None,
        files: Vec::new(),
        named: Vec::new(),
        positional: Vec::new(),
    };
    // The kind of the operands: files, or arguments as text or as JSON.
    let mut operands = 'f';
    while let Some(argument) = parser.next()? {
        match argument {
            Short('r') | Long("raw-output") => options.raw = true,
            Short('j') | Long("join-output") => (options.raw, options.join) = (true, true),
            Short('a') | Long("ascii-output") => options.ascii = true,
            Short('c') | Long("compact-output") => (options.pp.indent, options.pp.sep_space) = (None, false),
            Long("tab") => options.pp.indent = Some("\t".into()),
            Long("indent") => match cli::number(&mut parser)? {
                0 => (options.pp.indent, options.pp.sep_space) = (None, false),
                width @ 1..=7 => options.pp.indent = Some(" ".repeat(width)),
                _ => return Err("Cannot indent more than 7 characters".into()),
            },
            Short('n') | Long("null-input") => options.null = true,
            Short('s') | Long("slurp") => options.slurp = true,
            Short('R') | Long("raw-input") => options.lines = true,
            Short('S') | Long("sort-keys") => options.pp.sort_keys = true,
            Short('C') | Long("color-output") => options.pp.styles = Styles::ansi(),
            Short('M') | Long("monochrome-output") => options.pp.styles = Styles::default(),
            Short('e') | Long("exit-status") => options.exit_status = true,
            Short('h') => return Err("use --help".into()),
            Long("unbuffered") => {}
            Long("arg") => {
                let name = cli::value(&mut parser)?;
                options.named.push((name, Val::utf8_str(cli::value(&mut parser)?)));
            }
            Long("argjson") => {
                let (name, text) = (cli::value(&mut parser)?, cli::value(&mut parser)?);
                let value = json(&text).map_err(|e| format!("Invalid JSON text passed to --argjson: {e}"))?;
                options.named.push((name, value));
            }
            Long("slurpfile") => {
                let (name, path) = (cli::value(&mut parser)?, cli::value(&mut parser)?);
                let bytes = cli::read(&path)?;
                if is_too_deep(&bytes) {
                    return Err(format!("{path}: {TOO_DEEP}").into());
                }
                let values: Result<Vec<Val>, _> = read::parse_many(&bytes).collect();
                options.named.push((name, values.map_err(|e| format!("{path}: {e}"))?.into_iter().collect()));
            }
            Long("rawfile") => {
                let (name, path) = (cli::value(&mut parser)?, cli::value(&mut parser)?);
                options.named.push((name, Val::utf8_str(cli::read(&path)?)));
            }
            Short('f') | Long("from-file") => {
                let text = cli::read(&cli::value(&mut parser)?)?;
                options.files.extend(options.filter.replace(String::from_utf8_lossy(&text).into_owned()));
            }
            Long("args") => operands = 'a',
            Long("jsonargs") => operands = 'j',
            Value(operand) => {
                let operand = operand.to_string_lossy().into_owned();
                match operands {
                    _ if options.filter.is_none() => options.filter = Some(operand),
                    'a' => options.positional.push(Val::utf8_str(operand)),
                    'j' => options.positional.push(json(&operand)?),
                    _ => options.files.push(operand),
                }
            }
            other => return Err(other.unexpected().into()),
        }
    }
    Ok(options)
}

/// The standard definitions, and what jaq lacks of those of jq or defines otherwise.
fn definitions() -> impl Iterator<Item = Def<&'static str>> {
    let own = load::parse(include_str!("jq/defs.jq"), |parser| parser.defs()).unwrap_or_default();
    jaq_all::defs().chain(own)
}

fn json(text: &str) -> Result<Val, Error> {
    if is_too_deep(text.as_bytes()) {
        return Err(TOO_DEEP.into());
    }
    Ok(read::parse_single(text.as_bytes()).map_err(|e| e.to_string())?)
}

fn object(entries: impl IntoIterator<Item = (String, Val)>) -> Val {
    Val::obj(entries.into_iter().map(|(name, value)| (Val::utf8_str(name), value)).collect())
}

fn run(options: Options) -> cli::Outcome {
    let Some(filter) = &options.filter else { return Err("a filter is needed (see jq --help)".into()) };
    let mut variables = options.named.clone();
    let named = object(options.named.iter().cloned());
    let positional = options.positional.iter().cloned().collect();
    variables.push(("ARGS".into(), object([("positional".into(), positional), ("named".into(), named.clone())])));
    variables.push(("__named__".into(), named));
    let env = std::env::vars().map(|(name, value)| (name, Val::utf8_str(value)));
    variables.push(("ENV".into(), object(env)));
    let (names, values): (Vec<String>, Vec<Val>) = variables.into_iter().unzip();
    let filter = match jaq_all::compile_with(filter, definitions(), data::base_funs(), &names) {
        Ok(filter) => filter,
        Err(reports) => {
            for report in &reports {
                eprint!("jq: {}", FileReportsDisp::new(report));
            }
            eprintln!("jq: {} compile error", reports.len());
            return Ok(NO_FILTER);
        }
    };
    let (bytes, mut code) = input(&options);
    // An error ends what the filter does with this input, and the next one follows.
    let (taken, failed) = (Cell::new(0), Cell::new(None));
    let inputs = Box::new(values_of(&options, &bytes).inspect(|_| taken.set(taken.get() + 1)));
    let inputs: Box<dyn Iterator<Item = Result<Val, String>>> = inputs;
    let runner = Runner { null_input: options.null, ..Runner::default() };
    let mut out = io::BufWriter::new(io::stdout().lock());
    let mut last = None;
    let name = options.files.last().map_or(Val::Null, |name| Val::utf8_str(name.clone()));
    let done = data::run(&runner, &filter, Vars::new(values), (&name, inputs), Stop::Input, |output| match output {
        _ if failed.get() == Some(taken.get()) => Ok(()),
        Ok(value) if let Some(key) = foreign_key(&value) => {
            out.flush().map_err(Stop::Output)?;
            eprintln!("jq: error: Cannot use {key} as an object key: keys must be strings");
            failed.set(Some(taken.get()));
            code = FAILED;
            Ok(())
        }
        Ok(value) => {
            last = Some(value.as_bool());
            print(&options, &value, &mut out).map_err(Stop::Output)
        }
        Err(error) => match error.get_err() {
            Ok(error) => {
                out.flush().map_err(Stop::Output)?;
                eprintln!("jq: error: {error}");
                failed.set(Some(taken.get()));
                code = FAILED;
                Ok(())
            }
            Err(error) => Err(Stop::Halt(error.get_halt().unwrap_or(FAILED))),
        },
    });
    out.flush()?;
    match done {
        Ok(()) => {}
        Err(Stop::Halt(halt)) => return Ok(halt),
        Err(Stop::Output(e)) => return Err(e.into()),
        Err(Stop::Input(message)) => {
            eprintln!("jq: error: cannot parse input: {message}");
            return Ok(WRONG);
        }
    }
    Ok(match (options.exit_status && code == 0, last) {
        (false, _) | (true, Some(true)) => code,
        (true, Some(false)) => 1,
        (true, None) => NO_OUTPUT,
    })
}

/// The reason why a run ends early.
enum Stop {
    Input(String),
    Output(io::Error),
    Halt(i32),
}

/// All files one after the other, and the code to end with if one cannot be read.
fn input(options: &Options) -> (Vec<u8>, i32) {
    let mut bytes = Vec::new();
    let mut code = 0;
    if options.null && options.files.is_empty() {
        // `input` may still ask for it.
        let _ = io::stdin().lock().read_to_end(&mut bytes);
        return (bytes, code);
    }
    for file in cli::files_or_stdin(options.files.clone()) {
        let start = bytes.len();
        if let Err(e) = cli::open(&file).and_then(|mut file| file.read_to_end(&mut bytes)) {
            eprintln!("jq: error: Could not open {file}: {}", cli::reason(&e));
            code = WRONG;
        }
        if bytes[start..].starts_with(BYTE_ORDER_MARK) {
            bytes.drain(start..start + BYTE_ORDER_MARK.len());
        }
    }
    (bytes, code)
}

fn values_of<'a>(options: &Options, bytes: &'a [u8]) -> Box<dyn Iterator<Item = Result<Val, String>> + 'a> {
    if options.lines {
        let text = String::from_utf8_lossy(bytes).into_owned();
        if options.slurp {
            return Box::new(std::iter::once(Ok(Val::utf8_str(text))));
        }
        let lines: Vec<String> = text.lines().map(String::from).collect();
        return Box::new(lines.into_iter().map(|line| Ok(Val::utf8_str(line))));
    }
    if is_too_deep(bytes) {
        return Box::new(std::iter::once(Err(TOO_DEEP.to_owned())));
    }
    let values = read::parse_many(bytes).map(|value| value.map_err(|e| e.to_string()));
    if options.slurp {
        return Box::new(std::iter::once(values.collect::<Result<Vec<Val>, _>>().map(|all| all.into_iter().collect())));
    }
    Box::new(values)
}

/// How many values a text holds, if that is all that it holds.
pub fn count(bytes: &[u8]) -> Option<usize> {
    if is_too_deep(bytes) {
        return None;
    }
    read::parse_many(bytes).try_fold(0, |count, value| value.ok().map(|_| count + 1))
}

const TOO_DEEP: &str = "Exceeds depth limit for parsing";

fn is_too_deep(bytes: &[u8]) -> bool {
    let (mut depth, mut in_string, mut escaped) = (0_usize, false, false);
    bytes.iter().any(|byte| {
        match byte {
            _ if escaped => escaped = false,
            b'\\' if in_string => escaped = true,
            b'"' => in_string = !in_string,
            b'[' | b'{' if !in_string => depth += 1,
            b']' | b'}' if !in_string => depth = depth.saturating_sub(1),
            _ => {}
        }
        depth > DEEPEST
    })
}

/// Some editors write this at the start of a text file.
const BYTE_ORDER_MARK: &[u8] = "\u{feff}".as_bytes();

/// A key of an object that is not a string, which jaq takes and JSON does not.
fn foreign_key(value: &Val) -> Option<Val> {
    match value {
        Val::Arr(items) => items.iter().find_map(foreign_key),
        Val::Obj(entries) => {
            let is_text = |key: &Val| matches!(key, Val::TStr(_) | Val::BStr(_));
            entries.iter().find_map(|(key, value)| if is_text(key) { foreign_key(value) } else { Some(key.clone()) })
        }
        _ => None,
    }
}

/// The value with computed numbers as jq writes them: 2 instead of 2.0, and nothing that JSON cannot express.
fn plain(value: &Val) -> Val {
    match value {
        Val::Num(Num::Float(number)) if number.is_nan() => Val::Null,
        Val::Num(Num::Float(number)) => {
            let number = number.clamp(f64::MIN, f64::MAX);
            let text = if number != 0.0 && !(1e-5..1e17).contains(&number.abs()) {
                let text = format!("{number:e}");
                let (digits, power) = text.split_once('e').unwrap_or((&text, "0"));
                let (sign, power) = power.strip_prefix('-').map_or(('+', power), |power| ('-', power));
                format!("{digits}e{sign}{power:0>2}")
            } else {
                number.to_string()
            };
            Val::Num(Num::Dec(text.into()))
        }
        Val::Arr(items) => items.iter().map(plain).collect(),
        Val::Obj(entries) => Val::obj(entries.iter().map(|(key, value)| (key.clone(), plain(value))).collect()),
        other => other.clone(),
    }
}

fn print(options: &Options, value: &Val, out: &mut impl Write) -> io::Result<()> {
    let value = &plain(value);
    match value {
        Val::TStr(text) | Val::BStr(text) if options.raw => out.write_all(text)?,
        value if options.ascii => {
            let mut text = Vec::new();
            write::write(&mut text, &options.pp, 0, value)?;
            for c in String::from_utf8_lossy(&text).chars() {
                if c.is_ascii() {
                    write!(out, "{c}")?;
                } else {
                    for unit in c.encode_utf16(&mut [0; 2]) {
                        write!(out, "\\u{unit:04x}")?;
                    }
                }
            }
        }
        value => write::write(out, &options.pp, 0, value)?,
    }
    if options.join { Ok(()) } else { out.write_all(b"\n") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(arguments: &[&str], input: &str, expected: &str) {
        let mut options = parse(lexopt::Parser::from_args(arguments)).unwrap();
        let filter = options.filter.take().unwrap();
        let filter = jaq_all::compile_with(&filter, definitions(), data::base_funs(), &[]).ok().unwrap();
        let runner = Runner { null_input: options.null, ..Runner::default() };
        let mut out = Vec::new();
        let inputs = values_of(&options, input.as_bytes());
        let done = data::run(&runner, &filter, Vars::new([]), (&Val::Null, inputs), Stop::Input, |value| {
            print(&options, &value.ok().unwrap(), &mut out).map_err(Stop::Output)
        });
        assert!(done.is_ok());
        assert_eq!(String::from_utf8(out).unwrap(), expected);
    }

    #[test]
    fn outputs_have_forms() {
        check(&["."], "{\"b\":[1,{}],\"a\":\"x\"}", "{\n  \"b\": [\n    1,\n    {}\n  ],\n  \"a\": \"x\"\n}\n");
        check(&["-cS", "."], "{\"b\":1.50,\"a\":\"é\"}", "{\"a\":\"é\",\"b\":1.50}\n");
        check(&["-r", ".[]"], "[\"a\\tb\",2]", "a\tb\n2\n");
        check(&["-j", ".[]"], "[\"a\",2]", "a2");
        check(&["-ac", "."], "\"é\"", "\"\\u00e9\"\n");
        check(&["--indent", "1", "."], "[1]", "[\n 1\n]\n");
    }

    #[test]
    fn definitions_are_those_of_jq() {
        check(&["-nr", "[1, \"a\\\"b\", null, true, 6 / 4, 6 / 3] | @csv"], "", "1,\"a\"\"b\",,true,1.5,2\n");
        check(&["-nr", "[\"a\\tb\\\\\", null, false] | @tsv"], "", "a\\tb\\\\\t\tfalse\n");
        check(&["-n", "2 | IN(1, 2), IN(3)"], "", "true\nfalse\n");
        check(&["-nc", "[{\"id\": 1}] | INDEX(.id)"], "", "{\"1\":{\"id\":1}}\n");
        check(&["-nc", "[\"a\", 1, null] | join(\"-\")"], "", "\"a-1-\"\n");
        check(
            &["-nc", "[{\"name\": \"a\", \"value\": 1}, {\"k\": 2, \"v\": 3}] | from_entries"],
            "",
            "{\"a\":1,\"2\":3}\n",
        );
        check(&["-c", "[tostream]"], "{\"a\":[1,{}]}", "[[[\"a\",0],1],[[\"a\",1],{}],[[\"a\",1]],[[\"a\"]]]\n");
        check(&["-c", "fromstream(tostream)"], "{\"a\":[1,{}]} 3", "{\"a\":[1,{}]}\n3\n");
        check(&["-nc", "setpath([\"a\", 1, \"b\"]; 1)"], "", "{\"a\":[null,{\"b\":1}]}\n");
        check(&["-nc", "[1, 2, 3, 4] | del(.[0, 2])"], "", "[2,4]\n");
        check(&["-nc", "{\"a\": 1} | del(.b.c), leaf_paths"], "", "{\"a\":1}\n[\"a\"]\n");
    }

    #[test]
    fn computed_numbers_are_plain() {
        check(&["-nc", "[6 / 3, 10 / 4, 1 / 3, 0.1 + 0.2]"], "", "[2,2.5,0.3333333333333333,0.30000000000000004]\n");
        check(
            &["-nc", "[nan, infinite, 10 / 1e7 / 10, 1e10 * 1e10]"],
            "",
            "[null,1.7976931348623157e+308,1e-07,1e+20]\n",
        );
        check(&["-c", "."], "[1.0,1.50,100000000000000000001]", "[1.0,1.50,100000000000000000001]\n");
    }

    #[test]
    fn inputs_have_a_depth() {
        let nested = |depth: usize| format!("{}1{}", "[".repeat(depth), "]".repeat(depth));
        assert!(!is_too_deep(nested(DEEPEST).as_bytes()));
        assert!(is_too_deep(nested(DEEPEST + 1).as_bytes()));
        assert!(!is_too_deep(format!("\"\\\"{}\" [1] {}", "[".repeat(5_000), nested(3)).as_bytes()));
        assert!(!is_too_deep("[1] {\"a\": []} ".repeat(5_000).as_bytes()));
    }

    #[test]
    fn inputs_have_forms() {
        check(&["-c", "-s", "."], "1 2\n3", "[1,2,3]\n");
        check(&["-c", "-n", "[inputs]"], "1 2", "[1,2]\n");
        check(&["-R", "."], "a b\nc", "\"a b\"\n\"c\"\n");
        check(&["-Rs", "."], "a\nb\n", "\"a\\nb\\n\"\n");
    }
}
