//! `rg`: searches trees with the libraries that ripgrep is made of.

mod options;

use std::io::{self, Write};
use std::path::Path;

use command::process;
use grep_printer::{StandardBuilder, SummaryBuilder, SummaryKind};
use grep_regex::{RegexMatcher, RegexMatcherBuilder};
use grep_searcher::{BinaryDetection, MmapChoice, Searcher, SearcherBuilder};
use ignore::overrides::OverrideBuilder;
use ignore::types::TypesBuilder;
use ignore::{Walk, WalkBuilder};

use crate::cli::{self, Error};
use options::{Case, Mode, Options};

const USAGE: &str = "Usage: rg [OPTION]... PATTERN [PATH]...
       rg [OPTION]... --files [PATH]...
Search files and trees for lines that match a regular expression. Hidden files, binary files and those that .ignore or, in a
git repository, .gitignore names are left out. Without PATH it is standard input, or this directory if there is none.

  -i -S -s -F -w -x -v     ignore case (-S: unless PATTERN has capitals), fixed text, words, lines, invert
  -e PATTERN  -f FILE  -U  the patterns; matches over several lines
  -n -N --column -b -H -I  line numbers or none, column, byte offset, with or without file name
  -c -l -o -q -m NUM       count, files with matches, only what matches, nothing, so many in a file
  --count-matches  --files-without-match  --heading  --trim  --vimgrep  -r TEXT  -M NUM  -0
  -A NUM  -B NUM  -C NUM  --passthru
  -g GLOB  --iglob GLOB    only such files, or with ! none of them
  -t TYPE  -T TYPE  --type-list
  -.  --no-ignore  -u -uu -uuu  -L  -d NUM  -a    hidden files too, all files, follow links, depth, binary as text
";

/// The exit code when something could not be searched.
const FAILED: i32 = 2;

pub fn main(arguments: Vec<String>) -> i32 {
    cli::run(arguments, USAGE, FAILED, |parser| run(&options::parse(parser)?))
}

fn run(options: &Options) -> cli::Outcome {
    if options.mode == Mode::Types {
        let mut types = TypesBuilder::new();
        let mut out = io::stdout().lock();
        for definition in types.add_defaults().definitions() {
            writeln!(out, "{}: {}", definition.name(), definition.globs().join(", "))?;
        }
        return Ok(0);
    }
    // A file that is named is taken as it is, and a single one needs no name in front.
    let from_input = options.paths.is_empty() && options.mode != Mode::Files && process::has_input();
    let paths: Vec<&str> = match options.paths.is_empty() {
        true if from_input => vec!["-"],
        true => vec!["./"],
        false => options.paths.iter().map(String::as_str).collect(),
    };
    let one_file = matches!(paths.as_slice(), [path] if *path == "-" || Path::new(path).is_file());
    let mut search = Search {
        options,
        matcher: matcher(options)?,
        with_name: options.with_name.unwrap_or(!one_file),
        found: false,
        failed: false,
        out: io::stdout().lock(),
        written: false,
    };
    for path in paths {
        if path == "-" {
            search.file(Path::new("-"), true);
            continue;
        }
        if let Err(e) = std::fs::symlink_metadata(path) {
            search.complain(&format!("{path}: {}", cli::reason(&e)));
            continue;
        }
        for entry in walk(options, path)? {
            let entry = match entry {
                Ok(entry) => entry,
                Err(e) => {
                    search.complain(&e);
                    continue;
                }
            };
            // Skips entries that are not files. A link counts as a file if it is followed or is an operand.
            let is_file = entry.file_type().is_some_and(|kind| kind.is_file());
            let named = entry.depth() == 0;
            if !(is_file || named && entry.path().is_file()) {
                continue;
            }
            let shown = if options.paths.is_empty() {
                entry.path().strip_prefix("./").unwrap_or(entry.path())
            } else {
                entry.path()
            };
            if options.mode == Mode::Files {
                let end = if options.zero { '\0' } else { '\n' };
                write!(search.out, "{}{end}", shown.display())?;
                search.found = true;
            } else {
                search.file(shown, named);
            }
            if search.found && options.mode == Mode::Quiet {
                return Ok(0);
            }
        }
    }
    search.out.flush()?;
    Ok(match (search.failed, search.found) {
        (true, _) => FAILED,
        (false, found) => i32::from(!found),
    })
}

struct Search<'a> {
    options: &'a Options,
    matcher: RegexMatcher,
    with_name: bool,
    found: bool,
    failed: bool,
    out: io::StdoutLock<'a>,
    /// Whether lines of another file stand above.
    written: bool,
}

impl Search<'_> {
    fn complain(&mut self, error: &dyn std::fmt::Display) {
        self.failed = true;
        if self.options.messages {
            eprintln!("rg: {error}");
        }
    }

    fn file(&mut self, path: &Path, named: bool) {
        match self.search(path, named) {
            Ok(found) => self.found |= found,
            Err(e) if e.kind() == io::ErrorKind::BrokenPipe => self.failed = true,
            Err(e) => self.complain(&format!("{}: {}", path.display(), cli::reason(&e))),
        }
    }

    fn search(&mut self, path: &Path, named: bool) -> io::Result<bool> {
        let input = cli::open(&path.to_string_lossy())?;
        let shown = if path == Path::new("-") { Path::new("<stdin>") } else { path };
        let mut searcher = searcher(self.options, named);
        let zero = self.options.zero.then_some(0);
        let kind = match self.options.mode {
            Mode::Count if self.options.only_matching => SummaryKind::CountMatches,
            Mode::Count => SummaryKind::Count,
            Mode::CountMatches => SummaryKind::CountMatches,
            Mode::With => SummaryKind::PathWithMatch,
            Mode::Without => SummaryKind::PathWithoutMatch,
            Mode::Quiet => SummaryKind::QuietWithMatch,
            Mode::Lines | Mode::Files | Mode::Types => return self.lines(&mut searcher, input, shown),
        };
        let mut builder = SummaryBuilder::new();
        builder.kind(kind).path(self.with_name).exclude_zero(!self.options.include_zero).path_terminator(zero);
        let mut printer = builder.build_no_color(&mut self.out);
        let mut sink = printer.sink_with_path(&self.matcher, shown);
        searcher.search_reader(&self.matcher, input, &mut sink)?;
        Ok(sink.has_match())
    }

    fn lines(&mut self, searcher: &mut Searcher, input: impl io::Read, shown: &Path) -> io::Result<bool> {
        let options = self.options;
        let has_context = options.before > 0 || options.after > 0;
        let between = match options.heading {
            true => Some(Vec::new()),
            false if has_context => options.separator.clone().map(String::into_bytes),
            false => None,
        };
        let mut builder = StandardBuilder::new();
        builder
            .heading(options.heading)
            .path(self.with_name)
            .only_matching(options.only_matching)
            .per_match(options.vimgrep)
            .per_match_one_line(true)
            .replacement(options.replacement.clone().map(String::into_bytes))
            .max_columns(options.max_columns.filter(|columns| *columns > 0))
            .column(options.column)
            .byte_offset(options.byte_offset)
            .trim_ascii(options.trim)
            .separator_context(options.separator.clone().map(String::into_bytes))
            // A printer knows of one file; what stands between two is written below.
            .separator_search(None)
            .path_terminator(options.zero.then_some(0));
        let mut lines = Separated { out: &mut self.out, between: between.filter(|_| self.written), written: false };
        let mut printer = builder.build_no_color(&mut lines);
        let mut sink = printer.sink_with_path(&self.matcher, shown);
        searcher.search_reader(&self.matcher, input, &mut sink)?;
        let found = sink.has_match();
        drop(printer);
        let written = lines.written;
        self.written |= written;
        Ok(found)
    }
}

/// Writes a line before what comes first.
struct Separated<W> {
    out: W,
    between: Option<Vec<u8>>,
    written: bool,
}

impl<W: Write> Write for Separated<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if let Some(mut line) = self.between.take_if(|_| !bytes.is_empty()) {
            line.push(b'\n');
            self.out.write_all(&line)?;
        }
        self.written |= !bytes.is_empty();
        self.out.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}

fn matcher(options: &Options) -> Result<RegexMatcher, Error> {
    let mut builder = RegexMatcherBuilder::new();
    builder
        .multi_line(true)
        .unicode(true)
        .octal(false)
        .fixed_strings(options.fixed)
        .whole_line(options.lines)
        .word(options.words && !options.lines)
        .case_smart(options.case == Case::Smart)
        .case_insensitive(options.case == Case::Ignored);
    if options.multiline {
        builder.dot_matches_new_line(options.dot_all);
    } else {
        builder.line_terminator(Some(b'\n'));
    }
    builder.build_many(&options.patterns).map_err(|e| {
        let message = e.to_string();
        let hint = if message.contains("look-around") || message.contains("backreferences") {
            " (`grep -P` has look-around and back-references)"
        } else if message.contains("\\n") {
            " (-U searches over several lines)"
        } else {
            ""
        };
        format!("{}{hint}", message.trim_end()).into()
    })
}

fn searcher(options: &Options, named: bool) -> Searcher {
    // A binary file that was found in a tree is left at its first NUL; one that was named is searched, and not printed.
    let binary = match (options.text, named) {
        (true, _) => BinaryDetection::none(),
        (false, true) => BinaryDetection::convert(0),
        (false, false) => BinaryDetection::quit(0),
    };
    let mut builder = SearcherBuilder::new();
    builder
        .invert_match(options.invert)
        .line_number(options.line_numbers || options.column)
        .multi_line(options.multiline)
        .memory_map(MmapChoice::never())
        .passthru(options.passthru)
        .max_matches(options.max_count)
        .binary_detection(binary);
    if !options.passthru {
        builder.before_context(options.before).after_context(options.after);
    }
    builder.build()
}

fn walk(options: &Options, path: &str) -> Result<Walk, Error> {
    let mut walk = WalkBuilder::new(path);
    walk.standard_filters(options.ignore)
        .hidden(!options.hidden)
        // Not that of the machine, of which nothing is here.
        .git_global(false)
        .require_git(options.needs_git)
        .follow_links(options.follow)
        .max_depth(options.max_depth)
        .sort_by_file_name(std::ffi::OsStr::cmp);
    if options.ignore {
        walk.add_custom_ignore_filename(".rgignore");
    }
    let mut overrides = OverrideBuilder::new(std::env::current_dir()?);
    for (glob, ignore_case) in &options.globs {
        overrides.case_insensitive(*ignore_case).map_err(|e| e.to_string())?;
        overrides.add(glob).map_err(|e| e.to_string())?;
    }
    walk.overrides(overrides.build().map_err(|e| e.to_string())?);
    let mut types = TypesBuilder::new();
    types.add_defaults();
    for name in &options.types {
        types.select(name);
    }
    for name in &options.types_not {
        types.negate(name);
    }
    let types = types.build().map_err(|e| format!("{e} (see rg --type-list)"))?;
    Ok(walk.types(types).build())
}
