//! The command line of `grep`.

use std::path::Path;

use lexopt::Arg::{Long, Short, Value};

use crate::cli::{self, Error};
use crate::glob;

#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Syntax {
    Basic,
    Extended,
    Fixed,
    Perl,
}

pub struct Options {
    pub syntax: Syntax,
    pub patterns: Vec<String>,
    pub files: Vec<String>,
    pub ignore_case: bool,
    pub invert: bool,
    pub words: bool,
    pub lines: bool,
    pub count: bool,
    /// `-l` and `-L`: names of the files that have (`true`) or do not have such a line.
    pub names: Option<bool>,
    pub only_matching: bool,
    pub quiet: bool,
    pub no_messages: bool,
    pub line_numbers: bool,
    pub byte_offset: bool,
    pub with_name: Option<bool>,
    pub zero_after_name: bool,
    pub zero: bool,
    pub text: bool,
    /// Files with a NUL count as having no such line.
    pub skip_binary: bool,
    pub max_count: Option<u64>,
    pub before: usize,
    pub after: usize,
    pub recursive: bool,
    pub follow: bool,
    pub include: Vec<String>,
    pub exclude: Vec<String>,
    pub exclude_dir: Vec<String>,
    pub color: bool,
    pub label: String,
}

impl Options {
    /// Whether lines are written, and not counts or names.
    pub fn shows_lines(&self) -> bool {
        !self.count && self.names.is_none() && !self.quiet
    }

    /// Whether a file of a tree is searched.
    pub fn takes(&self, path: &Path) -> bool {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let fits = |glob: &String| glob::fits(glob, &name, false);
        (self.include.is_empty() || self.include.iter().any(fits)) && !self.exclude.iter().any(fits)
    }
}

pub fn parse(mut parser: lexopt::Parser) -> Result<Options, Error> {
    let mut options = Options {
        syntax: match parser.bin_name() {
            Some(name) if name.ends_with("egrep") => Syntax::Extended,
            Some(name) if name.ends_with("fgrep") => Syntax::Fixed,
            _ => Syntax::Basic,
        },
        patterns: Vec::new(),
        files: Vec::new(),
        ignore_case: false,
        invert: false,
        words: false,
        lines: false,
        count: false,
        names: None,
        only_matching: false,
        quiet: false,
        no_messages: false,
        line_numbers: false,
        byte_offset: false,
        with_name: None,
        zero_after_name: false,
        zero: false,
        text: false,
        skip_binary: false,
        max_count: None,
        before: 0,
        after: 0,
        recursive: false,
        follow: false,
        include: Vec::new(),
        exclude: Vec::new(),
        exclude_dir: Vec::new(),
        color: false,
        label: "(standard input)".into(),
    };
    let mut given = false;
    // `-12` are two options to the parser and one number to grep.
    let mut digits = String::new();
    while let Some(argument) = parser.next()? {
        if let Short(digit @ '0'..='9') = argument {
            digits.push(digit);
            (options.before, options.after) = (digits.parse()?, digits.parse()?);
            continue;
        }
        digits.clear();
        match argument {
            Short('E') | Long("extended-regexp") => options.syntax = Syntax::Extended,
            Short('F') | Long("fixed-strings") => options.syntax = Syntax::Fixed,
            Short('G') | Long("basic-regexp") => options.syntax = Syntax::Basic,
            Short('P') | Long("perl-regexp") => options.syntax = Syntax::Perl,
            Short('e') | Long("regexp") => {
                given = true;
                let text = cli::value(&mut parser)?;
                options.patterns.extend(text.split('\n').map(String::from));
            }
            Short('f') | Long("file") => {
                given = true;
                let text = String::from_utf8_lossy(&cli::read(&cli::value(&mut parser)?)?).into_owned();
                options.patterns.extend(text.lines().map(String::from));
            }
            Short('i' | 'y') | Long("ignore-case") => options.ignore_case = true,
            Long("no-ignore-case") => options.ignore_case = false,
            Short('v') | Long("invert-match") => options.invert = true,
            Short('w') | Long("word-regexp") => options.words = true,
            Short('x') | Long("line-regexp") => options.lines = true,
            Short('c') | Long("count") => options.count = true,
            Short('l') | Long("files-with-matches") => options.names = Some(true),
            Short('L') | Long("files-without-match") => options.names = Some(false),
            Short('o') | Long("only-matching") => options.only_matching = true,
            Short('q') | Long("quiet" | "silent") => options.quiet = true,
            Short('s') | Long("no-messages") => options.no_messages = true,
            Short('n') | Long("line-number") => options.line_numbers = true,
            Short('b') | Long("byte-offset") => options.byte_offset = true,
            Short('H') | Long("with-filename") => options.with_name = Some(true),
            Short('h') | Long("no-filename") => options.with_name = Some(false),
            Short('Z') | Long("null") => options.zero_after_name = true,
            Short('z') | Long("null-data") => options.zero = true,
            Short('a') | Long("text") => options.text = true,
            Short('I') => options.skip_binary = true,
            Long("binary-files") => match cli::value(&mut parser)?.as_str() {
                "text" => options.text = true,
                "without-match" => options.skip_binary = true,
                "binary" => {}
                other => return Err(format!("unknown binary-files type '{other}'").into()),
            },
            Short('m') | Long("max-count") => options.max_count = Some(cli::number(&mut parser)?),
            Short('A') | Long("after-context") => options.after = cli::number(&mut parser)?,
            Short('B') | Long("before-context") => options.before = cli::number(&mut parser)?,
            Short('C') | Long("context") => {
                options.before = cli::number(&mut parser)?;
                options.after = options.before;
            }
            Short('r') | Long("recursive") => options.recursive = true,
            Short('R') | Long("dereference-recursive") => {
                options.recursive = true;
                options.follow = true;
            }
            Short('d') | Long("directories") => match cli::value(&mut parser)?.as_str() {
                "recurse" => options.recursive = true,
                "skip" => options.no_messages = true,
                _ => {}
            },
            Long("include") => options.include.push(cli::value(&mut parser)?),
            Long("exclude") => options.exclude.push(cli::value(&mut parser)?),
            Long("exclude-dir") => {
                options.exclude_dir.push(cli::value(&mut parser)?.trim_end_matches('/').to_owned());
            }
            Long("color" | "colour") => {
                let when = parser.optional_value().map(|when| when.to_string_lossy().into_owned());
                options.color = match when.as_deref() {
                    Some("always" | "yes" | "force") => true,
                    None | Some("auto" | "tty" | "if-tty" | "never" | "no" | "none") => false,
                    Some(_) => return Err("invalid argument of --color: always, never or auto".into()),
                };
            }
            Long("label") => options.label = cli::value(&mut parser)?,
            Long("line-buffered") | Short('U' | 'u') | Long("binary" | "no-messages-at-all") => {}
            Value(operand) => {
                let operand = operand.to_string_lossy().into_owned();
                options.files.push(operand);
            }
            other => return Err(other.unexpected().into()),
        }
    }
    if !given {
        if options.files.is_empty() {
            return Err("no pattern was given (usage: grep [OPTION]... PATTERNS [FILE]...)".into());
        }
        let text = options.files.remove(0);
        options.patterns.extend(text.split('\n').map(String::from));
    }
    Ok(options)
}
