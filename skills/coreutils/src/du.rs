//! `du`: how much a tree holds, in blocks of 4 KiB as most file systems count.

use std::collections::{BTreeMap, HashSet};
use std::io;
use std::path::Path;

use lexopt::Arg::{Long, Short, Value};
use rustix::fs::{FileType, Stat, lstat, stat};

use crate::cli::{self, Error};

const USAGE: &str = "Usage: du [OPTION]... [FILE]...
Print how much space files take. WASI does not know the blocks of a file, so sizes are rounded up to 4 KiB.
A file with several names counts once.

  -s  -a  -c  -S    only the operands, files too, a total, directories without those below
  -l                a file with several names counts under each of them
  -d NUM            down to this depth
  -h  -b  -k  -m  -B SIZE  --apparent-size  --si
  --exclude=GLOB    without such files
";

const BLOCK: u64 = 4096;

#[derive(Default)]
struct Options {
    summarize: bool,
    all: bool,
    total: bool,
    separate: bool,
    depth: usize,
    apparent: bool,
    follow: bool,
    follow_operands: bool,
    unit: u64,
    human: Option<f64>,
    exclude: Vec<String>,
    count_links: bool,
}

/// The totals so far.
#[derive(Default)]
struct Counted {
    /// Files with several names, by device and number.
    linked: HashSet<(u64, u64)>,
    code: i32,
}

pub fn main(arguments: Vec<String>) -> i32 {
    cli::run(arguments, USAGE, 1, |mut parser| {
        let mut options = Options { depth: usize::MAX, unit: 1024, ..Options::default() };
        let mut files = Vec::new();
        while let Some(argument) = parser.next()? {
            match argument {
                Short('s') | Long("summarize") => options.summarize = true,
                Short('a') | Long("all") => options.all = true,
                Short('c') | Long("total") => options.total = true,
                Short('S') | Long("separate-dirs") => options.separate = true,
                Short('d') | Long("max-depth") => options.depth = cli::number(&mut parser)?,
                Short('h') | Long("human-readable") => options.human = Some(1024.0),
                Long("si") => options.human = Some(1000.0),
                Short('b') | Long("bytes") => (options.apparent, options.unit) = (true, 1),
                Long("apparent-size") => options.apparent = true,
                Short('k') => options.unit = 1 << 10,
                Short('m') => options.unit = 1 << 20,
                Short('B') | Long("block-size") => options.unit = unit(&cli::value(&mut parser)?)?,
                Long("exclude") => options.exclude.push(cli::value(&mut parser)?),
                Short('L') | Long("dereference") => (options.follow, options.follow_operands) = (true, true),
                Short('D' | 'H') | Long("dereference-args") => options.follow_operands = true,
                Short('P') | Long("no-dereference") => (options.follow, options.follow_operands) = (false, false),
                Short('l') | Long("count-links") => options.count_links = true,
                // There is one file system.
                Short('x') | Long("one-file-system") => {}
                Value(file) => files.push(file.to_string_lossy().into_owned()),
                other => return Err(other.unexpected().into()),
            }
        }
        if files.is_empty() {
            files.push(".".into());
        }
        let (mut total, mut counted) = (0, Counted::default());
        for file in &files {
            match look(Path::new(file), options.follow_operands) {
                Ok(found) if counted.is_new(&options, &found) => {
                    total += measure(&options, Path::new(file), &found, 0, &mut counted);
                }
                Ok(_) => {}
                Err(e) => {
                    eprintln!("du: cannot access '{file}': {}", cli::reason(&e));
                    counted.code = 1;
                }
            }
        }
        if options.total {
            println!("{}\ttotal", options.show(total));
        }
        Ok(counted.code)
    })
}

/// Directories in one another in which links are followed: some lead back.
const MAX_FOLLOWED: usize = 32;

/// The attributes of the target of a path, or of the link itself where it is not followed or leads nowhere.
fn look(path: &Path, follow: bool) -> io::Result<Stat> {
    match follow.then(|| stat(path)) {
        Some(Ok(found)) => Ok(found),
        _ => Ok(lstat(path)?),
    }
}

fn kind(found: &Stat) -> FileType {
    FileType::from_raw_mode(found.st_mode)
}

// Of other widths on other systems.
#[allow(clippy::unnecessary_cast, clippy::useless_conversion)]
impl Counted {
    /// Whether it was not counted under another name.
    fn is_new(&mut self, options: &Options, found: &Stat) -> bool {
        let is_linked = kind(found) == FileType::RegularFile && found.st_nlink > 1;
        options.count_links || !is_linked || self.linked.insert((found.st_dev as u64, found.st_ino as u64))
    }
}

/// Prints a file or a directory and what is below, and returns what it holds.
fn measure(options: &Options, path: &Path, found: &Stat, depth: usize, counted: &mut Counted) -> u64 {
    let mut size = options.size(found);
    let mut below = 0;
    let is_dir = kind(found) == FileType::Directory;
    if is_dir {
        let entries: Result<BTreeMap<_, _>, _> =
            std::fs::read_dir(path).and_then(|entries| entries.map(|e| e.map(|e| (e.file_name(), e.path()))).collect());
        match entries {
            Ok(entries) => {
                for (name, path) in entries {
                    let name = name.to_string_lossy();
                    let excluded = options.exclude.iter().any(|glob| crate::glob::fits(glob, &name, false));
                    if !excluded
                        && let Ok(found) = look(&path, options.follow && depth < MAX_FOLLOWED)
                        && counted.is_new(options, &found)
                    {
                        let part = measure(options, &path, &found, depth + 1, counted);
                        let is_dir = kind(&found) == FileType::Directory;
                        if options.separate && is_dir { below += part } else { size += part }
                    }
                }
            }
            Err(e) => {
                eprintln!("du: cannot read directory '{}': {}", path.display(), cli::reason(&e));
                counted.code = 1;
            }
        }
    }
    let shown = depth == 0 || (!options.summarize && depth <= options.depth && (is_dir || options.all));
    if shown {
        println!("{}\t{}", options.show(size), path.display());
    }
    size + below
}

impl Options {
    fn size(&self, found: &Stat) -> u64 {
        let bytes = u64::try_from(found.st_size).unwrap_or(0);
        match kind(found) {
            _ if self.apparent => bytes,
            // Where a link leads is kept beside its name.
            FileType::Symlink => 0,
            FileType::Directory => bytes.max(BLOCK).next_multiple_of(BLOCK),
            _ => bytes.next_multiple_of(BLOCK),
        }
    }

    fn show(&self, size: u64) -> String {
        match self.human {
            Some(base) => human(size, base),
            None => size.div_ceil(self.unit).to_string(),
        }
    }
}

/// Three digits and a letter, rounded up.
pub fn human(size: u64, base: f64) -> String {
    let mut value = size as f64;
    let mut letters = ["", "K", "M", "G", "T", "P"].into_iter();
    let mut letter = letters.next().unwrap_or_default();
    // A value that would be rounded up to the next unit is written in that unit.
    while value.ceil() >= base {
        let Some(next) = letters.next() else { break };
        value /= base;
        letter = next;
    }
    let tenths = (value * 10.0).ceil() / 10.0;
    if letter.is_empty() || tenths >= 10.0 {
        format!("{}{letter}", value.ceil())
    } else {
        format!("{tenths:.1}{letter}")
    }
}

pub fn unit(text: &str) -> Result<u64, Error> {
    let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let factor = match &text[digits.len()..] {
        "" => 1,
        "K" | "k" | "KiB" => 1 << 10,
        "M" | "MiB" => 1 << 20,
        "G" | "GiB" => 1 << 30,
        "KB" | "kB" => 1000,
        "MB" => 1_000_000,
        _ => return Err(format!("invalid block size '{text}'").into()),
    };
    let number: u64 = if digits.is_empty() { 1 } else { digits.parse()? };
    match number * factor {
        0 => Err(format!("invalid block size '{text}'").into()),
        unit => Ok(unit),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_with_several_names_counts_once() {
        let temp = tempfile::tempdir().unwrap();
        let path = |name: &str| temp.path().join(name);
        std::fs::write(path("a"), "x").unwrap();
        std::fs::write(path("b"), "x").unwrap();
        std::fs::hard_link(path("a"), path("c")).unwrap();
        let is_new = |counted: &mut Counted, options: &Options, name: &str| {
            counted.is_new(options, &look(&path(name), false).unwrap())
        };
        let mut options = Options { unit: 1024, ..Options::default() };
        let mut counted = Counted::default();
        let found = ["a", "b", "c", "b"].map(|name| is_new(&mut counted, &options, name));
        assert_eq!(found, [true, true, false, true]);
        options.count_links = true;
        assert!(is_new(&mut counted, &options, "c"));
    }

    #[test]
    fn sizes_are_readable() {
        for (size, text) in [
            (0, "0"),
            (1023, "1023"),
            (4096, "4.0K"),
            (12_289, "13K"),
            (1_572_864, "1.5M"),
            ((1 << 30) - 20_480, "1.0G"),
        ] {
            assert_eq!(human(size, 1024.0), text);
        }
        assert_eq!(unit("4K").unwrap(), 4096);
        assert!(unit("0").is_err());
        assert!(unit("x").is_err());
    }
}
