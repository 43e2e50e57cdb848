//! The command line of `rg`.

use lexopt::Arg::{Long, Short, Value};

use crate::cli::{self, Error};

/// The output for each file.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    Lines,
    Count,
    CountMatches,
    With,
    Without,
    Quiet,
    /// The files that would be searched.
    Files,
    Types,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Case {
    Sensitive,
    Ignored,
    /// Ignored unless the pattern has a capital letter.
    Smart,
}

pub struct Options {
    pub mode: Mode,
    pub patterns: Vec<String>,
    pub paths: Vec<String>,
    pub case: Case,
    pub fixed: bool,
    pub words: bool,
    pub lines: bool,
    pub invert: bool,
    pub multiline: bool,
    pub dot_all: bool,
    pub only_matching: bool,
    pub replacement: Option<String>,
    pub line_numbers: bool,
    pub column: bool,
    pub byte_offset: bool,
    pub heading: bool,
    pub trim: bool,
    pub with_name: Option<bool>,
    pub zero: bool,
    pub include_zero: bool,
    pub max_count: Option<u64>,
    pub max_columns: Option<u64>,
    pub max_depth: Option<usize>,
    pub before: usize,
    pub after: usize,
    pub passthru: bool,
    pub separator: Option<String>,
    pub hidden: bool,
    pub ignore: bool,
    /// `.gitignore` counts in a git repository only.
    pub needs_git: bool,
    pub follow: bool,
    pub text: bool,
    pub messages: bool,
    pub vimgrep: bool,
    /// Each with whether case is ignored.
    pub globs: Vec<(String, bool)>,
    pub types: Vec<String>,
    pub types_not: Vec<String>,
}

pub fn parse(mut parser: lexopt::Parser) -> Result<Options, Error> {
    let mut options = Options {
        mode: Mode::Lines,
        patterns: Vec::new(),
        paths: Vec::new(),
        case: Case::Sensitive,
        fixed: false,
        words: false,
        lines: false,
        invert: false,
        multiline: false,
        dot_all: false,
        only_matching: false,
        replacement: None,
        line_numbers: false,
        column: false,
        byte_offset: false,
        heading: false,
        trim: false,
        with_name: None,
        zero: false,
        include_zero: false,
        max_count: None,
        max_columns: None,
        max_depth: None,
        before: 0,
        after: 0,
        passthru: false,
        separator: Some("--".into()),
        hidden: false,
        ignore: true,
        needs_git: true,
        follow: false,
        text: false,
        messages: true,
        vimgrep: false,
        globs: Vec::new(),
        types: Vec::new(),
        types_not: Vec::new(),
    };
    let (mut given, mut unrestricted) = (false, 0);
    let mut words = Vec::new();
    while let Some(argument) = parser.next()? {
        match argument {
            Short('e') | Long("regexp") => {
                given = true;
                options.patterns.push(cli::value(&mut parser)?);
            }
            Short('f') | Long("file") => {
                given = true;
                let text = cli::read(&cli::value(&mut parser)?)?;
                options.patterns.extend(String::from_utf8_lossy(&text).lines().map(String::from));
            }
            Short('i') | Long("ignore-case") => options.case = Case::Ignored,
            Short('s') | Long("case-sensitive") => options.case = Case::Sensitive,
            Short('S') | Long("smart-case") => options.case = Case::Smart,
            Short('F') | Long("fixed-strings") => options.fixed = true,
            Short('w') | Long("word-regexp") => options.words = true,
            Short('x') | Long("line-regexp") => options.lines = true,
            Short('v') | Long("invert-match") => options.invert = true,
            Short('U') | Long("multiline") => options.multiline = true,
            Long("multiline-dotall") => options.dot_all = true,
            Short('o') | Long("only-matching") => options.only_matching = true,
            Short('r') | Long("replace") => options.replacement = Some(cli::value(&mut parser)?),
            Short('n') | Long("line-number") => options.line_numbers = true,
            Short('N') | Long("no-line-number") => options.line_numbers = false,
            Long("column") => (options.column, options.line_numbers) = (true, true),
            Short('b') | Long("byte-offset") => options.byte_offset = true,
            Long("heading") => options.heading = true,
            Long("no-heading") => options.heading = false,
            Short('p') | Long("pretty") => (options.heading, options.line_numbers) = (true, true),
            Long("vimgrep") => {
                (options.vimgrep, options.column, options.line_numbers) = (true, true, true);
                options.with_name = Some(true);
            }
            Long("trim") => options.trim = true,
            Short('H') | Long("with-filename") => options.with_name = Some(true),
            Short('I') | Long("no-filename") => options.with_name = Some(false),
            Short('0') | Long("null") => options.zero = true,
            Short('c') | Long("count") => options.mode = Mode::Count,
            Long("count-matches") => options.mode = Mode::CountMatches,
            Long("include-zero") => options.include_zero = true,
            Short('l') | Long("files-with-matches") => options.mode = Mode::With,
            Long("files-without-match") => options.mode = Mode::Without,
            Short('q') | Long("quiet") => options.mode = Mode::Quiet,
            Long("files") => options.mode = Mode::Files,
            Long("type-list") => options.mode = Mode::Types,
            Short('m') | Long("max-count") => options.max_count = Some(cli::number(&mut parser)?),
            Short('M') | Long("max-columns") => options.max_columns = Some(cli::number(&mut parser)?),
            Short('d') | Long("max-depth" | "maxdepth") => options.max_depth = Some(cli::number(&mut parser)?),
            Short('A') | Long("after-context") => options.after = cli::number(&mut parser)?,
            Short('B') | Long("before-context") => options.before = cli::number(&mut parser)?,
            Short('C') | Long("context") => {
                let lines = cli::number(&mut parser)?;
                (options.before, options.after) = (lines, lines);
            }
            Long("passthru" | "passthrough") => options.passthru = true,
            Long("context-separator") => options.separator = Some(cli::value(&mut parser)?),
            Long("no-context-separator") => options.separator = None,
            Short('.') | Long("hidden") => options.hidden = true,
            Long("no-hidden") => options.hidden = false,
            Long("no-ignore" | "no-ignore-vcs" | "no-ignore-dot" | "no-ignore-parent") => options.ignore = false,
            Long("no-require-git") => options.needs_git = false,
            Short('u') | Long("unrestricted") => unrestricted += 1,
            Short('L') | Long("follow") => options.follow = true,
            Short('a') | Long("text") => options.text = true,
            Long("no-messages") => options.messages = false,
            Short('g') | Long("glob") => options.globs.push((cli::value(&mut parser)?, false)),
            Long("iglob") => options.globs.push((cli::value(&mut parser)?, true)),
            Short('t') | Long("type") => options.types.push(cli::value(&mut parser)?),
            Short('T') | Long("type-not") => options.types_not.push(cli::value(&mut parser)?),
            // Output has no colors, there is one thread, and files come in the order of their names.
            Long("color" | "colors") => drop(cli::value(&mut parser)?),
            Long("sort") => match cli::value(&mut parser)?.as_str() {
                "none" | "path" => {}
                other => {
                    return Err(format!("--sort {other} is not here; files come in the order of their names").into());
                }
            },
            Short('j') | Long("threads") => drop(cli::value(&mut parser)?),
            Long("no-config" | "no-mmap" | "mmap" | "line-buffered" | "crlf" | "no-pcre2") => {}
            Short('P') | Long("pcre2") => {
                return Err("look-around and back-references are not in rg here; `grep -P` has them".into());
            }
            Long("json") => return Err("--json is not here; `rg -n --no-heading` prints file, line and text".into()),
            Short('z') | Long("search-zip") => return Err("-z is not here; use `zcat FILE | rg PATTERN`".into()),
            Value(word) => words.push(word.to_string_lossy().into_owned()),
            other => return Err(other.unexpected().into()),
        }
    }
    if unrestricted >= 1 {
        options.ignore = false;
    }
    options.hidden |= unrestricted >= 2;
    options.text |= unrestricted >= 3;
    let mut words = words.into_iter();
    if !given && !matches!(options.mode, Mode::Files | Mode::Types) {
        options.patterns.push(words.next().ok_or("a pattern is needed (see rg --help)")?);
    }
    options.paths = words.collect();
    Ok(options)
}
