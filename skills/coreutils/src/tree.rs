//! `tree`: directories as a drawing.

use std::io::{self, Write};
use std::path::Path;

use lexopt::Arg::{Long, Short, Value};

use crate::cli;
use crate::glob;

const USAGE: &str =
    "Usage: tree [-a] [-d] [-f] [-i] [-s] [-L LEVEL] [-I GLOB] [-P GLOB] [--dirsfirst] [--noreport] [DIRECTORY]...
Draw what is in directories.
";

#[derive(Default)]
struct Options {
    all: bool,
    directories: bool,
    full: bool,
    flat: bool,
    sizes: bool,
    first: bool,
    level: usize,
    without: Vec<String>,
    only: Vec<String>,
}

#[derive(Default)]
struct Counts {
    directories: usize,
    files: usize,
}

pub fn main(arguments: Vec<String>) -> i32 {
    cli::run(arguments, USAGE, 1, |mut parser| {
        let mut options = Options { level: usize::MAX, ..Options::default() };
        let (mut roots, mut report) = (Vec::new(), true);
        let globs = |text: String| text.split('|').map(String::from).collect::<Vec<_>>();
        while let Some(argument) = parser.next()? {
            match argument {
                Short('a') => options.all = true,
                Short('d') => options.directories = true,
                Short('f') => options.full = true,
                Short('i') => options.flat = true,
                Short('s') => options.sizes = true,
                Short('L') => options.level = cli::number(&mut parser)?,
                Short('I') => options.without.extend(globs(cli::value(&mut parser)?)),
                Short('P') => options.only.extend(globs(cli::value(&mut parser)?)),
                Short('n' | 'C' | 'F') => {}
                Long("dirsfirst") => options.first = true,
                Long("noreport") => report = false,
                Long("charset") => drop(parser.value()?),
                Value(root) => roots.push(root.to_string_lossy().into_owned()),
                other => return Err(other.unexpected().into()),
            }
        }
        if roots.is_empty() {
            roots.push(".".into());
        }
        let (mut counts, mut code) = (Counts::default(), 0);
        let mut out = io::stdout().lock();
        for root in &roots {
            if !Path::new(root).is_dir() {
                writeln!(out, "{root}  [error opening dir]")?;
                code = 2;
                continue;
            }
            writeln!(out, "{root}")?;
            counts.directories += 1;
            draw(&options, Path::new(root), "", 1, &mut counts, &mut out)?;
        }
        if report {
            let plural =
                |count: usize, one: &str, many: &str| format!("{count} {}", if count == 1 { one } else { many });
            write!(out, "\n{}", plural(counts.directories, "directory", "directories"))?;
            if !options.directories {
                write!(out, ", {}", plural(counts.files, "file", "files"))?;
            }
            writeln!(out)?;
        }
        Ok(code)
    })
}

fn draw(
    options: &Options,
    directory: &Path,
    indent: &str,
    level: usize,
    counts: &mut Counts,
    out: &mut impl Write,
) -> io::Result<()> {
    if level > options.level {
        return Ok(());
    }
    let mut entries = Vec::new();
    for entry in std::fs::read_dir(directory)? {
        let entry = entry?;
        let name = entry.file_name().to_string_lossy().into_owned();
        let is_directory = entry.file_type()?.is_dir();
        let fits = |globs: &[String]| globs.iter().any(|pattern| glob::fits(pattern, &name, false));
        let hidden = name.starts_with('.') && !options.all;
        let unwanted = !is_directory && (options.directories || !(options.only.is_empty() || fits(&options.only)));
        if !hidden && !unwanted && !fits(&options.without) {
            entries.push((!(options.first && is_directory), name, entry.path(), is_directory));
        }
    }
    entries.sort();
    let last = entries.len().saturating_sub(1);
    for (at, (_, name, path, is_directory)) in entries.into_iter().enumerate() {
        let (branch, below) = if at == last { ("└── ", "    ") } else { ("├── ", "│\u{a0}\u{a0} ") };
        if !options.flat {
            write!(out, "{indent}{branch}")?;
        }
        let meta = std::fs::symlink_metadata(&path)?;
        if options.sizes {
            write!(out, "[{:11}]  ", meta.len())?;
        }
        if options.full {
            write!(out, "{}", path.display())?
        } else {
            write!(out, "{name}")?
        }
        if meta.is_symlink() {
            write!(out, " -> {}", std::fs::read_link(&path)?.display())?;
        }
        writeln!(out)?;
        if is_directory {
            counts.directories += 1;
            draw(options, &path, &format!("{indent}{below}"), level + 1, counts, out)?;
        } else {
            counts.files += 1;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn trees_are_drawn() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::create_dir(dir.path().join("b")).unwrap();
        for name in ["a.txt", "b/c.txt", ".hidden"] {
            std::fs::write(dir.path().join(name), "").unwrap();
        }
        let mut out = Vec::new();
        let options = Options { level: usize::MAX, ..Options::default() };
        let mut counts = Counts::default();
        draw(&options, dir.path(), "", 1, &mut counts, &mut out).unwrap();
        assert_eq!(String::from_utf8(out).unwrap(), "├── a.txt\n└── b\n    └── c.txt\n");
        assert_eq!((counts.directories, counts.files), (1, 2));
    }
}
