//! Evaluates the expression of `find` for one file, and runs its actions.

use std::io::{self, StdoutLock, Write};
use std::path::Path;
use std::time::SystemTime;

use command::process::{self, Input};
use walkdir::DirEntry;

use super::parse::{Expression, Permissions};
use super::printf;
use crate::cli::{self, Error};
use crate::glob;

/// How many bytes of paths `-exec … +` collects, as GNU's find does at most.
const LONGEST: usize = 128 << 10;

pub struct State {
    pub prune: bool,
    pub quit: bool,
    failed: bool,
    now: SystemTime,
    out: StdoutLock<'static>,
}

impl State {
    pub fn new(now: SystemTime) -> State {
        State { prune: false, quit: false, failed: false, now, out: io::stdout().lock() }
    }

    /// Reports what went wrong with one file. The search goes on.
    pub fn fail(&mut self, message: &str) {
        self.failed = true;
        eprintln!("find: {message}");
    }

    pub fn visit(&mut self, expression: &Expression, entry: &DirEntry, root: &str) -> Result<bool, Error> {
        let path = entry.path();
        let shown = path.to_string_lossy();
        Ok(match expression {
            Expression::And(a, b) => self.visit(a, entry, root)? && !self.quit && self.visit(b, entry, root)?,
            Expression::Or(a, b) => self.visit(a, entry, root)? || (!self.quit && self.visit(b, entry, root)?),
            Expression::Then(a, b) => {
                self.visit(a, entry, root)?;
                !self.quit && self.visit(b, entry, root)?
            }
            Expression::Not(inner) => !self.visit(inner, entry, root)?,
            Expression::Constant(value) => *value,
            Expression::Name { glob, ignore_case } => {
                let name = shown.trim_end_matches('/').rsplit('/').next().unwrap_or_default();
                glob::fits(glob, if name.is_empty() { "/" } else { name }, *ignore_case)
            }
            Expression::Path { glob, ignore_case } => glob::fits(glob, &shown, *ignore_case),
            Expression::LinkName { glob, ignore_case } => {
                std::fs::read_link(path).is_ok_and(|target| glob::fits(glob, &target.to_string_lossy(), *ignore_case))
            }
            Expression::Regex(regex) => regex.is_match(&shown),
            Expression::Type(kinds) => kinds.contains(crate::stat::kind_letter(entry.file_type())),
            Expression::OtherType(kinds) => {
                let found = if entry.path_is_symlink() == entry.file_type().is_symlink() {
                    std::fs::metadata(path).or_else(|_| path.symlink_metadata())
                } else {
                    path.symlink_metadata()
                };
                found.is_ok_and(|found| kinds.contains(crate::stat::kind_letter(found.file_type())))
            }
            Expression::Size { amount, unit } => amount.takes(size(entry).div_ceil(*unit)),
            Expression::Empty => match entry.file_type() {
                kind if kind.is_dir() => std::fs::read_dir(path).is_ok_and(|mut entries| entries.next().is_none()),
                kind => kind.is_file() && size(entry) == 0,
            },
            Expression::Age { amount, unit } => {
                let age = modified(entry).map(|time| self.now.duration_since(time).unwrap_or_default().as_secs());
                // Minutes round up and days down, as GNU's find does.
                age.is_some_and(|age| amount.takes(if *unit == 60 { age.div_ceil(60) } else { age / unit }))
            }
            Expression::Newer(than) => modified(entry).is_some_and(|time| time > *than),
            Expression::Permissions(wanted) => {
                let mode = printf::mode(path, entry.file_type());
                match wanted {
                    Permissions::Exactly(bits) => mode == *bits,
                    Permissions::All(bits) => mode & bits == *bits,
                    Permissions::Any(bits) => *bits == 0 || mode & bits != 0,
                }
            }
            Expression::Executable => printf::mode(path, entry.file_type()) & 0o111 != 0,
            Expression::SameFile(other) => std::fs::canonicalize(path).is_ok_and(|path| path == *other),
            Expression::Print => self.print(&shown, b"\n")?,
            Expression::Print0 => self.print(&shown, b"\0")?,
            Expression::Printf(parts) => {
                printf::print(parts, entry, root, &mut self.out)?;
                true
            }
            Expression::PrintTo(file) => {
                writeln!(file.borrow_mut(), "{shown}")?;
                true
            }
            Expression::List => {
                const FORMAT: &str = "%9i %6k %M %3n %-8u %-8g %8s %Tb %Td %TR %p\\n";
                printf::print(&printf::parse(FORMAT)?, entry, root, &mut self.out)?;
                true
            }
            Expression::Delete => self.delete(entry, &shown),
            Expression::Prune => {
                self.prune = true;
                true
            }
            Expression::Quit => {
                self.quit = true;
                true
            }
            Expression::Exec { argv, in_directory } => self.exec(argv, path, *in_directory),
            Expression::ExecMany { argv, paths } => {
                let mut paths = paths.borrow_mut();
                paths.push(shown.into_owned());
                if paths.iter().map(|path| path.len() + 1).sum::<usize>() > LONGEST {
                    let paths = std::mem::take(&mut *paths);
                    self.exec_many(argv, paths);
                }
                true
            }
        })
    }

    /// Runs what `-exec … +` collected and returns the exit code.
    pub fn finish(mut self, expression: &Expression) -> Result<i32, Error> {
        self.run_collected(expression);
        self.out.flush()?;
        Ok(i32::from(self.failed))
    }

    fn run_collected(&mut self, expression: &Expression) {
        match expression {
            Expression::And(a, b) | Expression::Or(a, b) | Expression::Then(a, b) => {
                self.run_collected(a);
                self.run_collected(b);
            }
            Expression::Not(inner) => self.run_collected(inner),
            Expression::ExecMany { argv, paths } => {
                let paths = paths.take();
                if !paths.is_empty() {
                    self.exec_many(argv, paths);
                }
            }
            _ => {}
        }
    }

    fn print(&mut self, path: &str, end: &[u8]) -> io::Result<bool> {
        self.out.write_all(path.as_bytes())?;
        self.out.write_all(end)?;
        Ok(true)
    }

    fn delete(&mut self, entry: &DirEntry, shown: &str) -> bool {
        if shown == "." {
            return true;
        }
        let path = entry.path();
        let done = if entry.file_type().is_dir() { std::fs::remove_dir(path) } else { std::fs::remove_file(path) };
        match done {
            Ok(()) => true,
            Err(e) => {
                self.fail(&format!("cannot delete \u{2018}{shown}\u{2019}: {}", cli::reason(&e)));
                false
            }
        }
    }

    fn exec(&mut self, argv: &[String], path: &Path, in_directory: bool) -> bool {
        let shown = match (in_directory, path.file_name()) {
            (true, Some(name)) => format!("./{}", name.to_string_lossy()),
            _ => path.to_string_lossy().into_owned(),
        };
        let argv: Vec<String> = argv.iter().map(|argument| argument.replace("{}", &shown)).collect();
        let home = std::env::current_dir();
        if in_directory && let Some(parent) = path.parent().filter(|parent| !parent.as_os_str().is_empty()) {
            let _ = std::env::set_current_dir(parent);
        }
        let code = self.run(&argv);
        if in_directory && let Ok(home) = home {
            let _ = std::env::set_current_dir(home);
        }
        code == Some(0)
    }

    fn exec_many(&mut self, argv: &[String], paths: Vec<String>) {
        let argv: Vec<String> = argv.iter().cloned().chain(paths).collect();
        if self.run(&argv).is_none_or(|code| code != 0) {
            self.failed = true;
        }
    }

    fn run(&mut self, argv: &[String]) -> Option<i32> {
        let _ = self.out.flush();
        match process::start(argv, process::environment(), Input::Inherited) {
            Ok(process) => Some(process.wait()),
            Err(refused) => {
                self.fail(&refused.message);
                None
            }
        }
    }
}

fn size(entry: &DirEntry) -> u64 {
    entry.metadata().map_or(0, |meta| meta.len())
}

fn modified(entry: &DirEntry) -> Option<SystemTime> {
    entry.metadata().ok()?.modified().ok()
}
