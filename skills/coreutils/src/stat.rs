//! `stat`. WASI knows size, kind and times of a file, and the host its permissions; owner and numbers are the same for all.

use std::fs::{FileType, Metadata};
use std::path::Path;
use std::time::SystemTime;

use lexopt::Arg::{Long, Short, Value};

use crate::cli;
use crate::find::printf::{civil_from_days, mode};

const USAGE: &str = "Usage: stat [-L] [-c FORMAT | --printf FORMAT] FILE...
Print what is known of files.

  %n name  %N quoted name  %s size  %F kind  %y %x %z time  %Y %X %Z time in seconds  %a %A permissions
  %b blocks  %B block size  %h links  %U %G %u %g owner  %i number  %d device  %m mount point
  --printf takes \\n and the like and adds no newline. The owner is the same for all files here.
";

pub fn main(arguments: Vec<String>) -> i32 {
    cli::run(arguments, USAGE, 1, |mut parser| {
        let (mut format, mut escapes, mut follow, mut terse) = (None, false, false, false);
        let mut files = Vec::new();
        while let Some(argument) = parser.next()? {
            match argument {
                Short('c') | Long("format") => (format, escapes) = (Some(cli::value(&mut parser)?), false),
                Long("printf") => (format, escapes) = (Some(cli::value(&mut parser)?), true),
                Short('L') | Long("dereference") => follow = true,
                Short('t') | Long("terse") => terse = true,
                Value(file) => files.push(file.to_string_lossy().into_owned()),
                other => return Err(other.unexpected().into()),
            }
        }
        if files.is_empty() {
            return Err("missing operand".into());
        }
        if terse {
            format = Some("%n %s %b %f %u %g %d %i %h 0 0 %X %Y %Z 0 4096".into());
        }
        let mut code = 0;
        for file in files {
            let meta = if follow { std::fs::metadata(&file) } else { std::fs::symlink_metadata(&file) };
            match meta {
                Ok(meta) => match &format {
                    Some(format) if escapes => print!("{}", fill(&unescape(format), &file, &meta)),
                    Some(format) => println!("{}", fill(format, &file, &meta)),
                    None => print!("{}", fill(DEFAULT, &file, &meta)),
                },
                Err(e) => {
                    eprintln!("stat: cannot stat '{file}': {}", cli::reason(&e));
                    code = 1;
                }
            }
        }
        Ok(code)
    })
}

const DEFAULT: &str = "  File: %N
  Size: %-10s\tBlocks: %-10b IO Block: 4096   %F
Device: %d\tInode: %-11i Links: %h
Access: (0%a/%A)  Uid: ( %u/    %U)   Gid: ( %g/    %G)
Access: %x
Modify: %y
Change: %z
 Birth: -
";

fn fill(format: &str, file: &str, meta: &Metadata) -> String {
    let mut out = String::new();
    let mut chars = format.chars();
    while let Some(c) = chars.next() {
        if c != '%' {
            out.push(c);
            continue;
        }
        let mut flags = String::new();
        let letter = loop {
            match chars.next() {
                Some(c) if "-0#+ .123456789".contains(c) => flags.push(c),
                letter => break letter,
            }
        };
        let Some(letter) = letter else {
            out.push('%');
            break;
        };
        let text = field(letter, file, meta);
        let width = flags.trim_start_matches(['-', '0', '#', '+', ' ']).parse().unwrap_or(0);
        if flags.starts_with('-') {
            out.push_str(&format!("{text:<width$}"));
        } else if flags.starts_with('0') {
            out.push_str(&format!("{text:0>width$}"));
        } else {
            out.push_str(&format!("{text:>width$}"));
        }
    }
    out
}

fn field(letter: char, file: &str, meta: &Metadata) -> String {
    let kind = meta.file_type();
    let modified = meta.modified().unwrap_or(SystemTime::UNIX_EPOCH);
    match letter {
        'n' => file.to_owned(),
        'N' => match std::fs::read_link(file) {
            Ok(target) if kind.is_symlink() => format!("'{file}' -> '{}'", target.display()),
            _ => format!("'{file}'"),
        },
        's' => meta.len().to_string(),
        'F' => match kind {
            kind if kind.is_dir() => "directory".into(),
            kind if kind.is_symlink() => "symbolic link".into(),
            kind if kind.is_file() && meta.len() == 0 => "regular empty file".into(),
            _ => "regular file".into(),
        },
        'a' => format!("{:o}", mode(Path::new(file), kind)),
        'A' => mode_text(kind, mode(Path::new(file), kind)),
        'f' => format!("{:x}", mode(Path::new(file), kind) | kind_bits(kind)),
        'b' => meta.len().div_ceil(512).to_string(),
        'B' => "512".into(),
        'o' => "4096".into(),
        'h' => "1".into(),
        'u' | 'g' => "1000".into(),
        'U' | 'G' => "kiso".into(),
        'm' => "/work".into(),
        'x' | 'y' | 'z' => time(modified),
        'X' | 'Y' | 'Z' => seconds(modified).to_string(),
        'w' => "-".into(),
        '%' => "%".into(),
        'W' | 'i' | 'd' | 'D' | 't' | 'T' => "0".into(),
        other => format!("?{other}"),
    }
}

fn seconds(time: SystemTime) -> u64 {
    time.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default().as_secs()
}

fn time(time: SystemTime) -> String {
    let since = time.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    let all = since.as_secs() as i64;
    let (year, month, day) = civil_from_days(all / 86400);
    let (hour, minute, second) = (all / 3600 % 24, all / 60 % 60, all % 60);
    format!("{year}-{month:02}-{day:02} {hour:02}:{minute:02}:{second:02}.{:09} +0000", since.subsec_nanos())
}

fn unescape(format: &str) -> String {
    let mut out = String::new();
    let mut chars = format.chars();
    while let Some(c) = chars.next() {
        match c {
            '\\' => match chars.next() {
                Some('n') => out.push('\n'),
                Some('t') => out.push('\t'),
                Some('r') => out.push('\r'),
                Some('0') => out.push('\0'),
                Some(other) => out.push(other),
                None => out.push('\\'),
            },
            c => out.push(c),
        }
    }
    out
}

/// The letter of `find -type` and `ls -l`.
pub fn kind_letter(kind: FileType) -> char {
    if kind.is_dir() {
        'd'
    } else if kind.is_symlink() {
        'l'
    } else {
        'f'
    }
}

/// As C's `stat` has it beside the permissions.
fn kind_bits(kind: FileType) -> u32 {
    match kind_letter(kind) {
        'f' => 0o100_000,
        'd' => 0o40_000,
        _ => 0o120_000,
    }
}

/// Kind and permissions as `ls -l` writes them.
pub fn mode_text(kind: FileType, mode: u32) -> String {
    let kind = match kind_letter(kind) {
        'f' => '-',
        other => other,
    };
    format!("{kind}{}", letters(mode))
}

/// Permissions as `ls -l` writes them.
pub fn letters(mode: u32) -> String {
    (0..9).rev().map(|bit| if mode >> bit & 1 == 1 { ['x', 'w', 'r'][bit % 3] } else { '-' }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn formats_are_filled() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a");
        std::fs::write(&path, "12345").unwrap();
        command::permissions::set(&path, 0o640).unwrap();
        command::permissions::set(dir.path(), 0o755).unwrap();
        let (file, meta) = (path.to_str().unwrap(), std::fs::metadata(&path).unwrap());
        assert_eq!(
            fill("%s|%6s|%-6s|%06s|%%|%a %A %F", file, &meta),
            "5|     5|5     |000005|%|640 -rw-r----- regular file"
        );
        assert_eq!(fill("%n", file, &meta), file);
        let meta = std::fs::metadata(dir.path()).unwrap();
        assert_eq!(fill("%F %A", dir.path().to_str().unwrap(), &meta), "directory drwxr-xr-x");
    }

    #[test]
    fn times_are_utc() {
        let at = SystemTime::UNIX_EPOCH + std::time::Duration::from_millis(1_709_212_345_250);
        assert_eq!(time(at), "2024-02-29 13:12:25.250000000 +0000");
    }
}
