//! `ls` and its kin, on those of uutils, which print bytes on WASI where GNU's print blocks of 1 KiB.

use crate::table::Arguments;

pub fn main(arguments: Arguments, run: fn(Arguments) -> i32) -> i32 {
    let arguments: Vec<_> = arguments.collect();
    #[cfg(target_os = "wasi")]
    match shown(arguments.iter().skip(1).map(|argument| argument.to_string_lossy())) {
        Shown::Total => command::rewrite_lines(|line| with_total(&String::from_utf8_lossy(line)).into_bytes()),
        Shown::Sizes => command::rewrite_lines(|line| with_sizes(&String::from_utf8_lossy(line)).into_bytes()),
        Shown::Nothing => {}
    }
    run(arguments.into_iter())
}

/// `ls -l` under another name.
pub fn vdir(arguments: Arguments) -> i32 {
    #[cfg(target_os = "wasi")]
    command::rewrite_lines(|line| with_total(&String::from_utf8_lossy(line)).into_bytes());
    uu_vdir::uumain(arguments)
}

/// Which numbers of blocks a listing shows.
#[cfg(any(test, target_os = "wasi"))]
#[derive(Debug, PartialEq, Eq)]
enum Shown {
    Nothing,
    /// In its first line.
    Total,
    /// There, and before each name.
    Sizes,
}

#[cfg(any(test, target_os = "wasi"))]
fn shown<'a>(arguments: impl Iterator<Item = std::borrow::Cow<'a, str>>) -> Shown {
    let (mut long, mut sizes, mut other_units) = (false, false, false);
    for argument in arguments.take_while(|argument| argument != "--") {
        match argument.strip_prefix("--") {
            Some("size") => sizes = true,
            Some(name) => {
                long |= matches!(name, "format=long" | "format=verbose" | "full-time");
                other_units |= ["human", "si", "block", "inode"].iter().any(|begin| name.starts_with(begin));
            }
            None if argument.starts_with('-') => {
                sizes |= argument.contains('s');
                long |= argument.contains(['l', 'g', 'n', 'o']);
                other_units |= argument.contains(['h', 'i']);
            }
            None => {}
        }
    }
    match (long, sizes) {
        _ if other_units => Shown::Nothing,
        (_, true) => Shown::Sizes,
        (true, false) => Shown::Total,
        (false, false) => Shown::Nothing,
    }
}

/// Blocks of 1 KiB that hold these bytes, as a disk with blocks of 4 KiB has them.
#[cfg(any(test, target_os = "wasi"))]
fn blocks(bytes: u64) -> u64 {
    bytes.div_ceil(4_096) * 4
}

#[cfg(any(test, target_os = "wasi"))]
fn with_total(line: &str) -> String {
    match line.strip_prefix("total ").and_then(|bytes| bytes.parse().ok()) {
        Some(bytes) => format!("total {}", blocks(bytes)),
        None => line.to_owned(),
    }
}

#[cfg(any(test, target_os = "wasi"))]
fn with_sizes(line: &str) -> String {
    let trimmed = line.trim_start();
    match trimmed.split_once(' ').and_then(|(bytes, rest)| Some((bytes.parse().ok()?, rest))) {
        Some((bytes, rest)) => format!("{} {rest}", blocks(bytes)),
        None => with_total(line),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_become_blocks() {
        assert_eq!(
            (with_total("total 12288"), with_total("total 1"), with_total("total a")),
            ("total 12".into(), "total 4".into(), "total a".into())
        );
        assert_eq!(
            (with_sizes("  10 a b"), with_sizes("5000 c"), with_sizes("total 0")),
            ("4 a b".into(), "8 c".into(), "total 0".into())
        );
        assert_eq!(with_sizes("name"), "name");
    }

    #[test]
    fn only_blocks_of_a_kibibyte_are_shown_so() {
        let of = |line: &str| shown(line.split(' ').map(Into::into));
        assert_eq!((of("-l"), of("-la x"), of("--full-time")), (Shown::Total, Shown::Total, Shown::Total));
        assert_eq!((of("-s"), of("--size"), of("-ls a")), (Shown::Sizes, Shown::Sizes, Shown::Sizes));
        assert_eq!(
            (of("-lh"), of("a -- -l"), of("-1"), of("-l --block-size=M")),
            (Shown::Nothing, Shown::Nothing, Shown::Nothing, Shown::Nothing)
        );
    }
}
