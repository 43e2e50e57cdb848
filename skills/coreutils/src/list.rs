//! `ls` and its kin, on those of uutils, which print bytes on WASI where GNU's print blocks of 1 KiB, and the same permissions for all.

use crate::table::Arguments;

pub fn main(arguments: Arguments, run: fn(Arguments) -> i32) -> i32 {
    let arguments: Vec<_> = arguments.collect();
    #[cfg(target_os = "wasi")]
    rewrite::start(Shown::parse(arguments.iter().skip(1).map(|argument| argument.to_string_lossy().into_owned())));
    run(arguments.into_iter())
}

/// `ls -l` under another name.
pub fn vdir(arguments: Arguments) -> i32 {
    let arguments: Vec<_> = arguments.collect();
    #[cfg(target_os = "wasi")]
    {
        let given = arguments.iter().skip(1).map(|argument| argument.to_string_lossy().into_owned());
        rewrite::start(Shown::parse(std::iter::once("-l".to_owned()).chain(given)));
    }
    uu_vdir::uumain(arguments.into_iter())
}

/// Parts of a listing that uutils prints otherwise.
#[cfg(any(test, target_os = "wasi"))]
#[derive(Debug, Default, Clone, PartialEq, Eq)]
struct Shown {
    /// Permissions, and a number of blocks in the first line.
    long: bool,
    /// A number of blocks before each name.
    sizes: bool,
    /// Numbers are not those of blocks of 1 KiB.
    other_units: bool,
    /// The directory of the next lines: at first the only operand, which no line names.
    dir: std::path::PathBuf,
}

#[cfg(any(test, target_os = "wasi"))]
impl Shown {
    fn parse(arguments: impl Iterator<Item = String>) -> Self {
        let mut shown = Self::default();
        let (mut ended, mut operands, mut itself) = (false, Vec::new(), false);
        for argument in arguments {
            match argument.strip_prefix("--") {
                _ if ended => operands.push(argument),
                Some("") => ended = true,
                Some("size") => shown.sizes = true,
                Some("directory") => itself = true,
                Some(name) => {
                    shown.long |= matches!(name, "format=long" | "format=verbose" | "full-time");
                    shown.other_units |= ["human", "si", "block", "inode"].iter().any(|begin| name.starts_with(begin));
                }
                None if argument.starts_with('-') && argument != "-" => {
                    shown.sizes |= argument.contains('s');
                    shown.long |= argument.contains(['l', 'g', 'n', 'o']);
                    shown.other_units |= argument.contains(['h', 'i']);
                    itself |= argument.contains('d');
                }
                None => operands.push(argument),
            }
        }
        if let ([one], false) = (operands.as_slice(), itself)
            && std::path::Path::new(one).is_dir()
        {
            shown.dir = one.into();
        }
        shown
    }

    /// A line as GNU's prints it.
    fn line(&mut self, line: &str) -> String {
        let blocks_of = |bytes: &str| bytes.parse().ok().map(blocks);
        if let Some(dir) = line.strip_suffix(':').filter(|dir| std::path::Path::new(dir).is_dir()) {
            self.dir = dir.into();
            return line.to_owned();
        }
        if let Some(bytes) = line.strip_prefix("total ") {
            return match blocks_of(bytes).filter(|_| !self.other_units && (self.long || self.sizes)) {
                Some(blocks) => format!("total {blocks}"),
                None => line.to_owned(),
            };
        }
        let (size, rest) = match line.trim_start().split_once(' ').filter(|_| self.sizes) {
            Some((bytes, rest)) => match blocks_of(bytes).filter(|_| !self.other_units) {
                Some(blocks) => (format!("{blocks} "), rest),
                None => (format!("{} ", &line[..line.len() - rest.len() - 1]), rest),
            },
            None => (String::new(), line),
        };
        let permissions = if self.long { self.permissions(rest) } else { None };
        match permissions {
            Some(letters) => format!("{size}{}{letters}{}", &rest[..1], &rest[1 + letters.len()..]),
            None => format!("{size}{rest}"),
        }
    }

    /// The permissions of what a line is about. Its name is what stands behind the time, which takes one word to three.
    fn permissions(&self, line: &str) -> Option<String> {
        let kind = line.chars().next().filter(|kind| matches!(kind, '-' | 'd' | 'l'))?;
        line.get(1..10).filter(|shown| shown.bytes().all(|c| b"rwx-".contains(&c)))?;
        let behind = line.match_indices(' ').map(|(at, _)| line[at + 1..].split(" -> ").next().unwrap_or_default());
        let mut names = behind.filter(|name| !name.is_empty() && !name.starts_with(' ')).skip(3);
        let bits = names.find_map(|name| {
            let name = name.trim_end_matches(['*', '@', '|', '=']);
            command::permissions::get(&self.dir.join(name), kind != 'l').ok()
        });
        bits.map(crate::stat::letters)
    }
}

/// Blocks of 1 KiB that hold these bytes, as a disk with blocks of 4 KiB has them.
#[cfg(any(test, target_os = "wasi"))]
fn blocks(bytes: u64) -> u64 {
    bytes.div_ceil(4_096) * 4
}

#[cfg(target_os = "wasi")]
mod rewrite {
    use super::Shown;
    use std::cell::RefCell;

    thread_local! {
        static SHOWN: RefCell<Shown> = RefCell::default();
    }

    pub fn start(shown: Shown) {
        if shown.long || shown.sizes {
            SHOWN.set(shown);
            command::rewrite_lines(|line| match std::str::from_utf8(line) {
                Ok(line) => SHOWN.with_borrow_mut(|shown| shown.line(line)).into_bytes(),
                Err(_) => line.to_owned(),
            });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(line: &str) -> Shown {
        Shown::parse(line.split(' ').map(str::to_owned))
    }

    #[test]
    fn bytes_become_blocks() {
        let shown = |options: &str, line: &str| parse(options).line(line);
        assert_eq!(
            [shown("-l", "total 12288"), shown("-s", "total 1"), shown("-l", "total a"), shown("-lh", "total 12288")],
            ["total 12", "total 4", "total a", "total 12288"]
        );
        assert_eq!([shown("-s", "  10 a b"), shown("-s", "5000 c")], ["4 a b", "8 c"]);
        assert_eq!([shown("-s", "name"), shown("-sh", "  10 a"), shown("-1", "10 a")], ["name", "  10 a", "10 a"]);
    }

    #[test]
    fn only_blocks_of_a_kibibyte_are_shown_so() {
        let shown = |line: &str| (parse(line).long, parse(line).sizes, parse(line).other_units);
        assert_eq!([shown("-l"), shown("-la x"), shown("--full-time")], [(true, false, false); 3]);
        assert_eq!(
            [shown("-s"), shown("--size"), shown("a -- -l")],
            [(false, true, false), (false, true, false), (false, false, false)]
        );
        assert_eq!([shown("-lh"), shown("-l --block-size=M")], [(true, false, true); 2]);
    }

    #[test]
    fn permissions_are_those_of_the_file() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("a b");
        std::fs::write(&file, "x").unwrap();
        command::permissions::set(&file, 0o740).unwrap();
        let mut shown = parse(&format!("-l {}", dir.path().display()));
        let long = |name: &str| format!("-r-xr-xr-x 1 kiso kiso 1 Jan  2 10:00 {name}");
        assert_eq!(shown.line(&long("a b")), "-rwxr----- 1 kiso kiso 1 Jan  2 10:00 a b");
        assert_eq!(shown.line(&long("none")), long("none"));
        let mut shown = parse("-lR");
        let header = format!("{}:", dir.path().display());
        assert_eq!(shown.line(&header), header);
        assert_eq!(shown.line("-r-xr-xr-x 1 1 2024-01-01 10:00 a b"), "-rwxr----- 1 1 2024-01-01 10:00 a b");
    }
}
