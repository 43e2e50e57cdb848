//! `grep`, `egrep` and `fgrep`: GNU's options over the search of ripgrep's crates.

mod matcher;
mod options;
mod print;

use std::io::{self, BufRead, BufReader, Read};
use std::path::{Path, PathBuf};

use grep_searcher::{BinaryDetection, MmapChoice, Searcher, SearcherBuilder};

use crate::cli;
use crate::glob;
use matcher::AnyMatcher;
use options::Options;
use print::Printer;

const USAGE: &str = "Usage: grep [OPTION]... PATTERNS [FILE]...
Print the lines that match.

  -E -F -G -P            extended, fixed, basic, Perl-like expressions
  -e PATTERNS  -f FILE   the patterns
  -i  -w  -x  -v  -z     ignore case, whole words, whole lines, invert, lines end with NUL
  -c  -l  -L  -o  -q     count, files with, files without, only matching, quiet
  -n  -b  -H  -h  -Z     line number, byte offset, with or without file name, NUL after file name
  -m NUM  -A NUM  -B NUM  -C NUM  -NUM
  -r  -R  --include=GLOB  --exclude=GLOB  --exclude-dir=GLOB
  -a  -s  --label=NAME  --color[=always|never|auto]
";

/// Bytes at the start of a file that decide whether it is binary, as in GNU's grep.
const PEEK: usize = 32 << 10;

pub fn main(arguments: Vec<String>) -> i32 {
    cli::run(arguments, USAGE, 2, |parser| {
        let options = options::parse(parser)?;
        let matcher = matcher::build(&options)?;
        Ok(Search { searcher: searcher(&options), options, matcher, found: false, failed: false }.run())
    })
}

fn searcher(options: &Options) -> Searcher {
    let mut builder = SearcherBuilder::new();
    builder
        .invert_match(options.invert)
        .line_number(options.line_numbers)
        .bom_sniffing(false)
        .memory_map(MmapChoice::never())
        .binary_detection(BinaryDetection::none())
        .multi_line(false);
    if options.shows_lines() && !options.only_matching {
        builder.before_context(options.before).after_context(options.after);
    }
    builder.max_matches(options.max_count);
    if options.zero {
        builder.line_terminator(grep_matcher::LineTerminator::byte(0));
    }
    builder.build()
}

struct Search {
    searcher: Searcher,
    options: Options,
    matcher: AnyMatcher,
    found: bool,
    failed: bool,
}

impl Search {
    fn run(mut self) -> i32 {
        let mut files = std::mem::take(&mut self.options.files);
        let implied = files.is_empty();
        if implied {
            files.push(if self.options.recursive { "." } else { "-" }.into());
        }
        let several = files.len() > 1 || self.options.recursive;
        let with_name = self.options.with_name.unwrap_or(several);
        for file in files {
            if self.options.recursive && file != "-" {
                self.tree(&file, implied, with_name);
            } else {
                self.file(Path::new(&file), with_name);
            }
            if self.options.quiet && self.found {
                return 0;
            }
        }
        match (self.failed, self.found) {
            (true, _) => 2,
            (false, true) => 0,
            (false, false) => 1,
        }
    }

    fn tree(&mut self, root: &str, implied: bool, with_name: bool) {
        let options = &self.options;
        let mut entries = Vec::new();
        let walk = walkdir::WalkDir::new(root).follow_links(options.follow).follow_root_links(true).sort_by_file_name();
        let skipped = options.exclude_dir.clone();
        let walk = walk.into_iter().filter_entry(move |entry| {
            let name = entry.file_name().to_string_lossy();
            !(entry.file_type().is_dir()
                && entry.depth() > 0
                && skipped.iter().any(|glob| glob::fits(glob, &name, false)))
        });
        for entry in walk {
            match entry {
                Ok(entry) if entry.file_type().is_file() => {
                    let path = entry.into_path();
                    let path = if implied { path.strip_prefix(".").map(PathBuf::from).unwrap_or(path) } else { path };
                    entries.push(path);
                }
                Ok(_) => {}
                Err(e) => {
                    self.failed = true;
                    if !options.no_messages {
                        let path = e.path().unwrap_or(Path::new(root)).to_owned();
                        cli::complain("grep", path, &e.into());
                    }
                }
            }
        }
        for path in entries {
            if self.options.takes(&path) {
                self.file(&path, with_name);
                if self.options.quiet && self.found {
                    return;
                }
            }
        }
    }

    fn file(&mut self, path: &Path, with_name: bool) {
        let name = match path.to_str() {
            Some("-") => self.options.label.clone(),
            _ => path.to_string_lossy().into_owned(),
        };
        match self.search(path, &name, with_name) {
            Ok(found) => self.found |= found,
            Err(e) => {
                self.failed = true;
                if !self.options.no_messages {
                    cli::complain("grep", &name, &e);
                }
            }
        }
    }

    fn search(&mut self, path: &Path, name: &str, with_name: bool) -> io::Result<bool> {
        let mut reader = BufReader::with_capacity(PEEK, cli::open(&path.to_string_lossy())?);
        let binary = !self.options.text && !self.options.zero && reader.fill_buf()?.contains(&0);
        let mut printer = Printer::new(&self.options, &self.matcher, name, with_name, binary);
        // The searcher has a buffer of its own.
        let head = reader.buffer().to_vec();
        let reader = io::Cursor::new(head).chain(reader.into_inner());
        self.searcher.search_reader(&self.matcher, reader, &mut printer)?;
        printer.finish()
    }
}
