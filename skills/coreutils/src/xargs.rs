//! `xargs`: command lines from input.

use std::collections::VecDeque;
use std::io::Read;

use command::process::{self, Input, Process};
use lexopt::Arg::{Long, Short, Value};

use crate::cli::{self, Error};

const USAGE: &str = "Usage: xargs [OPTION]... [COMMAND [INITIAL-ARGUMENT]...]
Run COMMAND (echo) with arguments from standard input.

  -0          arguments end with NUL          -d CHAR   arguments end with CHAR
  -n NUM      at most NUM arguments a line    -L NUM    at most NUM input lines a line
  -I TEXT     one line each, in the place of TEXT
  -P NUM      at most NUM at a time (0: all)  -s NUM    at most NUM bytes a line
  -r          nothing if there is no input    -t        say what is run
  -a FILE     read FILE instead of standard input
  -E TEXT     the end of input                -x        end if a line does not fit
";

/// The longest command line, arguments and their separators; what GNU's takes by default.
const LONGEST: usize = 128 << 10;

struct Options {
    separator: Option<u8>,
    per_line: Option<usize>,
    lines: Option<usize>,
    replace: Option<String>,
    at_once: usize,
    longest: usize,
    skip_empty: bool,
    trace: bool,
    end: Option<String>,
    file: Option<String>,
    argv: Vec<String>,
}

pub fn main(arguments: Vec<String>) -> i32 {
    cli::run(arguments, USAGE, 1, |mut parser| {
        let options = parse(&mut parser)?;
        let mut bytes = Vec::new();
        match &options.file {
            Some(path) => bytes = cli::read(path)?,
            None => {
                std::io::stdin().lock().read_to_end(&mut bytes)?;
            }
        }
        let commands = commands(&options, &String::from_utf8_lossy(&bytes))?;
        Ok(run(&options, commands))
    })
}

fn parse(parser: &mut lexopt::Parser) -> Result<Options, Error> {
    let mut options = Options {
        separator: None,
        per_line: None,
        lines: None,
        replace: None,
        at_once: 1,
        longest: LONGEST,
        skip_empty: false,
        trace: false,
        end: None,
        file: None,
        argv: Vec::new(),
    };
    while let Some(argument) = parser.next()? {
        match argument {
            Short('0') | Long("null") => options.separator = Some(0),
            Short('d') | Long("delimiter") => options.separator = Some(delimiter(&cli::value(parser)?)?),
            Short('n') | Long("max-args") => options.per_line = Some(positive(parser)?),
            Short('L') | Long("max-lines") => options.lines = Some(positive(parser)?),
            Short('I') | Long("replace") => options.replace = Some(cli::value(parser)?),
            Short('i') => options.replace = Some("{}".into()),
            Short('P') | Long("max-procs") => options.at_once = cli::number(parser)?,
            Short('s') | Long("max-chars") => options.longest = positive(parser)?,
            Short('r') | Long("no-run-if-empty") => options.skip_empty = true,
            Short('t') | Long("verbose") => options.trace = true,
            Short('E') | Long("eof") => options.end = Some(cli::value(parser)?),
            Short('a') | Long("arg-file") => options.file = Some(cli::value(parser)?),
            Short('x' | 'o') | Long("exit" | "open-tty") => {}
            Value(name) => {
                options.argv.push(name.to_string_lossy().into_owned());
                options.argv.extend(parser.raw_args()?.map(|a| a.to_string_lossy().into_owned()));
            }
            other => return Err(other.unexpected().into()),
        }
    }
    if options.argv.is_empty() {
        options.argv.push("echo".into());
    }
    Ok(options)
}

fn positive(parser: &mut lexopt::Parser) -> Result<usize, Error> {
    match cli::number(parser)? {
        0 => Err("the number must be at least 1".into()),
        number => Ok(number),
    }
}

fn delimiter(text: &str) -> Result<u8, Error> {
    match text.as_bytes() {
        [one] => Ok(*one),
        b"\\n" => Ok(b'\n'),
        b"\\t" => Ok(b'\t'),
        b"\\0" => Ok(0),
        b"\\r" => Ok(b'\r'),
        b"\\\\" => Ok(b'\\'),
        _ => Err(format!("the delimiter '{text}' is not one character").into()),
    }
}

/// An argument and whether its line of input ends after it.
struct Item {
    text: String,
    ends_line: bool,
}

fn commands(options: &Options, input: &str) -> Result<VecDeque<Vec<String>>, Error> {
    let items = match (options.separator, &options.replace) {
        (Some(separator), _) => separated(input, separator),
        (None, Some(_)) => lines(input)?,
        (None, None) => blanks(input, options.end.as_deref())?,
    };
    let mut commands = VecDeque::new();
    if let Some(place) = &options.replace {
        for item in items {
            commands.push_back(options.argv.iter().map(|argument| argument.replace(place, &item.text)).collect());
        }
        return Ok(commands);
    }
    let fixed: usize = options.argv.iter().map(|argument| argument.len() + 1).sum();
    let mut argv = options.argv.clone();
    let (mut length, mut lines) = (fixed, 0);
    for item in items {
        let more = item.text.len() + 1;
        if fixed + more > options.longest {
            return Err("argument line too long".into());
        }
        let taken = argv.len() - options.argv.len();
        let full = length + more > options.longest
            || options.per_line.is_some_and(|most| taken == most)
            || options.lines.is_some_and(|most| lines == most);
        if taken > 0 && full {
            commands.push_back(std::mem::replace(&mut argv, options.argv.clone()));
            (length, lines) = (fixed, 0);
        }
        length += more;
        lines += usize::from(item.ends_line);
        argv.push(item.text);
    }
    if argv.len() > options.argv.len() || (commands.is_empty() && !options.skip_empty) {
        commands.push_back(argv);
    }
    Ok(commands)
}

fn separated(input: &str, separator: u8) -> Vec<Item> {
    let separator = char::from(separator);
    let input = input.strip_suffix(separator).unwrap_or(input);
    if input.is_empty() {
        return Vec::new();
    }
    input.split(separator).map(|text| Item { text: text.into(), ends_line: true }).collect()
}

/// Whole lines without their leading blanks, quotes taken away.
fn lines(input: &str) -> Result<Vec<Item>, Error> {
    let mut items = Vec::new();
    for line in input.lines() {
        let line = line.trim_start_matches([' ', '\t']);
        if line.is_empty() {
            continue;
        }
        let mut text = String::new();
        let mut chars = line.chars();
        while let Some(c) = chars.next() {
            unquote(c, &mut chars, &mut text)?;
        }
        items.push(Item { text, ends_line: true });
    }
    Ok(items)
}

/// Takes a quoted text as a whole and a backslash as the mark of the next character.
fn unquote(c: char, chars: &mut std::str::Chars, text: &mut String) -> Result<(), Error> {
    match c {
        '\'' | '"' => loop {
            match chars.next() {
                Some(inner) if inner == c => return Ok(()),
                Some('\n') | None => {
                    let kind = if c == '"' { "double" } else { "single" };
                    return Err(format!(
                        "unmatched {kind} quote; by default quotes are special to xargs unless you use the -0 option"
                    )
                    .into());
                }
                Some(inner) => text.push(inner),
            }
        },
        '\\' => text.extend(chars.next()),
        c => text.push(c),
    }
    Ok(())
}

fn blanks(input: &str, end: Option<&str>) -> Result<Vec<Item>, Error> {
    let mut items: Vec<Item> = Vec::new();
    let mut chars = input.chars();
    let mut word: Option<String> = None;
    let mut blank = false;
    loop {
        let c = chars.next();
        match c {
            Some(c) if c != '\n' && c != ' ' && c != '\t' => {
                unquote(c, &mut chars, word.get_or_insert_default())?;
                blank = false;
                continue;
            }
            Some(' ' | '\t') => blank = true,
            _ => {}
        }
        if let Some(text) = word.take() {
            if Some(text.as_str()) == end {
                return Ok(items);
            }
            items.push(Item { text, ends_line: false });
        }
        // A blank at its end carries a line on.
        if c == Some('\n')
            && !blank
            && let Some(last) = items.last_mut()
        {
            last.ends_line = true;
        }
        if c == Some('\n') {
            blank = false;
        }
        if c.is_none() {
            return Ok(items);
        }
    }
}

fn run(options: &Options, mut commands: VecDeque<Vec<String>>) -> i32 {
    let at_once = if options.at_once == 0 { usize::MAX } else { options.at_once };
    // A command must not eat what is left of the input.
    let input = if options.file.is_some() { Input::Inherited } else { Input::Empty };
    let mut running: VecDeque<Process> = VecDeque::new();
    let mut code = 0;
    while !(commands.is_empty() && running.is_empty()) {
        if running.len() < at_once
            && let Some(argv) = commands.pop_front()
        {
            if options.trace {
                eprintln!("{}", argv.join(" "));
            }
            match process::start(&argv, process::environment(), input) {
                Ok(process) => running.push_back(process),
                Err(refused) => {
                    eprintln!("xargs: {}", refused.message);
                    code = refused.code;
                    commands.clear();
                }
            }
        } else if let Some(process) = running.pop_front() {
            match process.wait() {
                0 => {}
                255 => {
                    eprintln!("xargs: {}: exited with status 255; aborting", options.argv[0]);
                    code = 124;
                    commands.clear();
                }
                126 | 127 => {}
                ended if ended > 128 => code = 125,
                _ if code == 0 => code = 123,
                _ => {}
            }
        }
    }
    code
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(arguments: &[&str], input: &str, expected: &[&[&str]]) {
        let options = parse(&mut lexopt::Parser::from_args(arguments)).unwrap();
        let commands = commands(&options, input).unwrap();
        assert_eq!(commands, expected);
    }

    #[test]
    fn blanks_and_quotes_separate() {
        check(&[], "a 'b c'\n d\\ e", &[&["echo", "a", "b c", "d e"]]);
        check(&["rm"], "", &[&["rm"]]);
        check(&["-r", "rm"], "", &[]);
        check(&["-E", "x"], "a b x c", &[&["echo", "a", "b"]]);
    }

    #[test]
    fn lines_are_cut_by_count_and_length() {
        check(&["-n", "2"], "a b c", &[&["echo", "a", "b"], &["echo", "c"]]);
        check(&["-L1", "wc", "-l"], "a b\nc\n", &[&["wc", "-l", "a", "b"], &["wc", "-l", "c"]]);
        check(&["-L1"], "a \nb\nc", &[&["echo", "a", "b"], &["echo", "c"]]);
        check(&["-s", "9"], "aa bb", &[&["echo", "aa"], &["echo", "bb"]]);
    }

    #[test]
    fn separators_keep_everything_else() {
        check(&["-0"], "a b\0'c\0", &[&["echo", "a b", "'c"]]);
        check(&["-d", "\\n", "-n1"], "a b\nc", &[&["echo", "a b"], &["echo", "c"]]);
        check(&["-d,"], "a,,b", &[&["echo", "a", "", "b"]]);
    }

    #[test]
    fn a_placeholder_is_replaced_everywhere() {
        check(
            &["-I{}", "cp", "{}", "x/{}.bak"],
            "  a b\n\nc\n",
            &[&["cp", "a b", "x/a b.bak"], &["cp", "c", "x/c.bak"]],
        );
    }

    #[test]
    fn an_open_quote_is_an_error() {
        let options = parse(&mut lexopt::Parser::from_args([""; 0])).unwrap();
        assert!(commands(&options, "it's").is_err_and(|e| e.to_string().contains("single quote")));
    }
}
