//! `chmod`.

use std::path::{Path, PathBuf};

use command::permissions;

use crate::cli::{self, Error};
use crate::stat::letters;

const USAGE: &str = "Usage: chmod [-Rfvc] MODE[,MODE]... FILE...
       chmod [-Rfvc] --reference=RFILE FILE...
Change who may read, write and run files. MODE is octal, such as 755, or [ugoa]*[-+=]([rwxX]*|[ugo]), such as u+x,go-r.
Files can always be read and written by you and are never written by others; a directory stays 755. Scripts run without x, too.

  -R  with all below directories  -v  say what was done  -c  say what was changed  -f  say less of what could not be
";

#[derive(Default)]
struct Options {
    recursive: bool,
    quiet: bool,
    verbose: bool,
    changes: bool,
    reference: Option<String>,
}

pub fn main(arguments: Vec<String>) -> i32 {
    cli::run(arguments, USAGE, 1, |mut parser| {
        let (mut options, mut words) = (Options::default(), Vec::new());
        let mut ended = false;
        // A mode may begin with a dash, as in `chmod -x FILE`.
        for word in parser.raw_args()? {
            let word = word.to_string_lossy().into_owned();
            if ended || !options.take(&word)? {
                ended |= word == "--";
                words.extend((word != "--").then_some(word));
            }
        }
        let mode = match &options.reference {
            Some(file) => Mode::Bits(permissions::get(Path::new(file), true).map_err(cli::with_path(file))?),
            None if words.is_empty() => return Err("a mode and a file are needed".into()),
            None => {
                let word = words.remove(0);
                Mode::parse(&word).ok_or_else(|| format!("invalid mode: '{word}'"))?
            }
        };
        if words.is_empty() {
            return Err("a file is needed after the mode".into());
        }
        let mut code = 0;
        for word in &words {
            for path in options.below(word) {
                if let Err(why) = options.change(&path, &mode) {
                    code = 1;
                    if !options.quiet {
                        eprintln!("chmod: {why}");
                    }
                }
            }
        }
        Ok(code)
    })
}

impl Options {
    /// Whether a word was an option.
    fn take(&mut self, word: &str) -> Result<bool, Error> {
        match word.strip_prefix('-') {
            Some("-recursive") => self.recursive = true,
            Some("-quiet" | "-silent") => self.quiet = true,
            Some("-verbose") => self.verbose = true,
            Some("-changes") => self.changes = true,
            Some("-preserve-root" | "-no-preserve-root") => {}
            Some(long) if long.starts_with("-reference=") => {
                self.reference = long.split_once('=').map(|(_, file)| file.into())
            }
            Some(long) if long.starts_with('-') && long != "-" => {
                return Err(format!("invalid option '-{long}'").into());
            }
            Some(letters) if !letters.is_empty() && letters.chars().all(|c| "Rfvc".contains(c)) => {
                self.recursive |= letters.contains('R');
                self.quiet |= letters.contains('f');
                self.verbose |= letters.contains('v');
                self.changes |= letters.contains('c');
            }
            _ => return Ok(false),
        }
        Ok(true)
    }

    /// Links below are left alone, as they are not followed.
    fn below(&self, word: &str) -> Vec<PathBuf> {
        if !self.recursive {
            return vec![word.into()];
        }
        let entries = walkdir::WalkDir::new(word).sort_by_file_name().into_iter();
        let paths =
            entries.filter(|entry| entry.as_ref().map_or(true, |entry| entry.depth() == 0 || !entry.path_is_symlink()));
        let paths = paths.map(|entry| match entry {
            Ok(entry) => entry.into_path(),
            Err(error) => error.path().map_or_else(|| word.into(), PathBuf::from),
        });
        paths.collect()
    }

    fn change(&self, path: &Path, mode: &Mode) -> Result<(), String> {
        let name = path.display();
        let found = path.symlink_metadata().map_err(|e| format!("cannot access '{name}': {}", cli::reason(&e)))?;
        let followed = path.metadata();
        if found.is_symlink() && followed.is_err() {
            return Err(format!("cannot operate on dangling symlink '{name}'"));
        }
        let failed = |e: std::io::Error| format!("changing permissions of '{name}': {}", cli::reason(&e));
        let before = permissions::get(path, true).map_err(failed)?;
        let is_dir = followed.is_ok_and(|found| found.is_dir());
        permissions::set(path, mode.applied(before, is_dir)).map_err(failed)?;
        if self.verbose || self.changes {
            let after = permissions::get(path, true).map_err(failed)?;
            let shown = |bits: u32| format!("{bits:04o} ({})", letters(bits));
            match before == after {
                false => println!("mode of '{name}' changed from {} to {}", shown(before), shown(after)),
                true if self.verbose => println!("mode of '{name}' retained as {}", shown(after)),
                true => {}
            }
        }
        Ok(())
    }
}

/// A change of permissions.
pub enum Mode {
    Bits(u32),
    Clauses(Vec<Clause>),
}

/// One part of a symbolic mode, such as `go-w`.
pub struct Clause {
    /// The bits of those whom it names.
    who: u32,
    operator: u8,
    what: String,
}

impl Mode {
    /// `755`, `+x`, `u=rw,go-w`.
    pub fn parse(text: &str) -> Option<Self> {
        if !text.is_empty() && text.len() <= 5 && text.bytes().all(|c| (b'0'..=b'7').contains(&c)) {
            return u32::from_str_radix(text, 8).ok().map(|bits| Self::Bits(bits & 0o777));
        }
        let mut clauses = Vec::new();
        for part in text.split(',') {
            let rest = part.trim_start_matches(['u', 'g', 'o', 'a']);
            let named = &part[..part.len() - rest.len()];
            let who =
                named.chars().fold(0, |who, class| who | of_class(class)) | if named.is_empty() { 0o777 } else { 0 };
            let mut rest = rest.as_bytes();
            if rest.is_empty() {
                return None;
            }
            while let [operator @ (b'+' | b'-' | b'='), more @ ..] = rest {
                let length = more.iter().position(|c| b"+-=".contains(c)).unwrap_or(more.len());
                let what = std::str::from_utf8(&more[..length]).ok()?;
                let copies = matches!(what, "u" | "g" | "o");
                if !copies && !what.chars().all(|letter| "rwxXst".contains(letter)) {
                    return None;
                }
                clauses.push(Clause { who, operator: *operator, what: what.to_owned() });
                rest = &more[length..];
            }
            if !rest.is_empty() {
                return None;
            }
        }
        Some(Self::Clauses(clauses))
    }

    pub fn applied(&self, before: u32, is_dir: bool) -> u32 {
        match self {
            Self::Bits(bits) => *bits,
            Self::Clauses(clauses) => clauses.iter().fold(before, |bits, clause| clause.applied(bits, is_dir)),
        }
    }
}

impl Clause {
    fn applied(&self, before: u32, is_dir: bool) -> u32 {
        let copied = |shift: u32| (before >> shift & 7) * 0o111;
        let bits = match self.what.as_str() {
            "u" => copied(6),
            "g" => copied(3),
            "o" => copied(0),
            letters => letters.chars().fold(0, |bits, letter| {
                bits | match letter {
                    'r' => 0o444,
                    'w' => 0o222,
                    'x' => 0o111,
                    'X' if is_dir || before & 0o111 != 0 => 0o111,
                    _ => 0,
                }
            }),
        };
        let bits = bits & self.who;
        match self.operator {
            b'+' => before | bits,
            b'-' => before & !bits,
            _ => before & !self.who | bits,
        }
    }
}

fn of_class(class: char) -> u32 {
    match class {
        'u' => 0o700,
        'g' => 0o070,
        'o' => 0o007,
        _ => 0o777,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn modes() {
        for mode in ["755", "0644", "+x", "u+x", "a=r", "u=rw,go-w", "-x", "g=u", "u+x-w", "ugo=", "1777", "a+X"] {
            assert!(Mode::parse(mode).is_some(), "{mode}");
        }
        for mode in ["", "x", "888", "u", "+q", "755x", "u+x,", "file", "u+gx"] {
            assert!(Mode::parse(mode).is_none(), "{mode}");
        }
        let applied = |mode: &str, before| Mode::parse(mode).unwrap().applied(before, false);
        assert_eq!(
            [applied("+x", 0o644), applied("go-r", 0o644), applied("u=rwx,g=u,o=", 0o644), applied("a+X", 0o644)],
            [0o755, 0o600, 0o770, 0o644]
        );
        assert_eq!(
            [applied("u+x-w", 0o644), applied("=r", 0o755), applied("a+X", 0o744), applied("600", 0o755)],
            [0o544, 0o444, 0o755, 0o600]
        );
    }

    #[test]
    fn files_are_changed_and_directories_with_all_below() {
        let dir = tempfile::tempdir().unwrap();
        let path = |name: &str| dir.path().join(name).to_str().unwrap().to_owned();
        std::fs::create_dir(path("d")).unwrap();
        for name in ["a", "d/b"] {
            std::fs::write(path(name), "x").unwrap();
            permissions::set(Path::new(&path(name)), 0o644).unwrap();
        }
        let chmod = |words: &[&str]| main(["chmod"].iter().chain(words).map(|word| (*word).to_owned()).collect());
        let bits = |name: &str| permissions::get(Path::new(&path(name)), true).unwrap();
        assert_eq!((chmod(&["u+x", &path("a")]), bits("a")), (0, 0o744));
        assert_eq!((chmod(&["-R", "755", &path("d")]), bits("d/b")), (0, 0o755));
        assert_eq!((chmod(&["-x", &path("a")]), bits("a")), (0, 0o644));
        assert_eq!((chmod(&[&format!("--reference={}", path("d/b")), &path("a")]), bits("a")), (0, 0o755));
        assert_eq!((chmod(&["+x", &path("none")]), chmod(&["888", &path("a")]), chmod(&["+x"])), (1, 1, 1));
    }
}
