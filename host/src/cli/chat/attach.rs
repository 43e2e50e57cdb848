//! Files that a line names: a path that was pasted or dropped, as the whole line or as `@path` in it.
//!
//! Terminals paste a path quoted, with escaped spaces, or as a `file:` address.

use kiso_agent::session::command::SlashCommand;
use percent_encoding::percent_decode_str;
use std::ops::Range;
use std::path::{Path, PathBuf};

/// Files of one message.
pub(super) const MAX_FILES: usize = 16;

/// A path in a line.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct PathMention {
    /// The bytes of the line that name it, with the `@`.
    pub place: Range<usize>,
    pub path: PathBuf,
}

/// Files that a line names.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum LinePaths {
    /// The line has nothing but paths.
    Whole(Vec<PathBuf>),
    Within(Vec<PathMention>),
}

/// Finds the files that a line names. Command lines, commands and text of several lines, which may come from elsewhere, name none.
pub(super) fn find(line: &str, is_file: impl Fn(&Path) -> bool) -> LinePaths {
    let text = line.trim();
    let is_command = text.starts_with('$') || SlashCommand::parse(text).is_some();
    if text.is_empty() || is_command || text.contains('\n') {
        return LinePaths::Within(Vec::new());
    }
    let existing = |word: &str| resolved(word).filter(|path| is_file(path));
    // Some terminals paste a path as it is, spaces and all.
    if let Some(path) = existing(text) {
        return LinePaths::Whole(vec![path]);
    }
    let whole: Option<Vec<_>> = words(text).map(|word| existing(&word)).collect();
    if let Some(paths) = whole.filter(|paths| paths.len() <= MAX_FILES) {
        return LinePaths::Whole(paths);
    }
    LinePaths::Within(mentions(line, existing))
}

fn mentions(line: &str, existing: impl Fn(&str) -> Option<PathBuf>) -> Vec<PathMention> {
    let mut found: Vec<PathMention> = Vec::new();
    for (at, _) in line.match_indices('@') {
        let begins =
            line[..at].chars().next_back().is_none_or(|before| before.is_whitespace() || "([\"'".contains(before));
        let is_inside = found.last().is_some_and(|last| at < last.place.end);
        if !begins || is_inside || found.len() == MAX_FILES {
            continue;
        }
        let (word, length) = word(&line[at + 1..]);
        // A full stop ends the sentence, or belongs to the name.
        let trimmed = word.trim_end_matches(['.', ',', ';', ':', '!', '?', ')', ']', '"', '\'']);
        let cut = word.len() - trimmed.len();
        let named = existing(&word).map(|path| (path, length));
        let named = named.or_else(|| Some((existing(trimmed)?, length.checked_sub(cut)?)));
        found.extend(named.map(|(path, length)| PathMention { place: at..at + 1 + length, path }));
    }
    found
}

/// The path that a word means; `None` for a word that is a name of something else.
fn resolved(word: &str) -> Option<PathBuf> {
    if let Some(rest) = word.strip_prefix("file://") {
        let path = rest.strip_prefix("localhost").unwrap_or(rest);
        return path.starts_with('/').then(|| percent_decode_str(path).decode_utf8_lossy().into_owned().into());
    }
    if let Some(rest) = word.strip_prefix("~/") {
        return Some(Path::new(&std::env::var_os("HOME")?).join(rest));
    }
    // `@chart` is a skill.
    word.contains(['/', '.']).then(|| PathBuf::from(word))
}

/// The words of a line, as a shell splits it.
fn words(text: &str) -> impl Iterator<Item = String> {
    let mut rest = text;
    std::iter::from_fn(move || {
        rest = rest.trim_start();
        let (next, length) = word(rest);
        rest = &rest[length..];
        (length > 0).then_some(next)
    })
}

/// The word that a text begins with, and the bytes that it takes there.
fn word(text: &str) -> (String, usize) {
    let (mut value, mut quote, mut chars) = (String::new(), None, text.char_indices());
    while let Some((at, c)) = chars.next() {
        match (c, quote) {
            (c, Some(open)) if c == open => quote = None,
            ('\'' | '"', None) => quote = Some(c),
            ('\\', None | Some('"')) => value.extend(chars.next().map(|(_, escaped)| escaped)),
            (c, None) if c.is_whitespace() => return (value, at),
            (c, _) => value.push(c),
        }
    }
    // A quotation mark without another one is an apostrophe.
    match quote {
        None => (value, text.len()),
        Some(_) => {
            let end = text.find(char::is_whitespace).unwrap_or(text.len());
            (text[..end].to_owned(), end)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FILES: [&str; 5] = ["/a/rent.pdf", "/a/my photo.jpg", "notes.md", "/a/it's.txt", "/etc"];

    fn found(line: &str) -> LinePaths {
        find(line, |path| FILES.iter().any(|known| Path::new(known) == path))
    }

    #[test]
    fn a_line_that_is_a_path_is_a_file() {
        for (line, paths) in [
            ("/a/rent.pdf", vec!["/a/rent.pdf"]),
            (" '/a/rent.pdf' ", vec!["/a/rent.pdf"]),
            ("/a/my\\ photo.jpg", vec!["/a/my photo.jpg"]),
            ("\"/a/my photo.jpg\"", vec!["/a/my photo.jpg"]),
            ("/a/my photo.jpg", vec!["/a/my photo.jpg"]),
            ("/a/it's.txt", vec!["/a/it's.txt"]),
            ("file:///a/my%20photo.jpg", vec!["/a/my photo.jpg"]),
            ("'/a/my photo.jpg' /a/rent.pdf", vec!["/a/my photo.jpg", "/a/rent.pdf"]),
            ("notes.md", vec!["notes.md"]),
        ] {
            let paths = paths.into_iter().map(PathBuf::from).collect();
            assert_eq!(found(line), LinePaths::Whole(paths), "{line}");
        }
    }

    #[test]
    fn a_line_names_files_with_an_at_sign() {
        for (line, named) in [
            ("what is in @/a/rent.pdf?", vec!["@/a/rent.pdf"]),
            ("@'/a/my photo.jpg' and (@/a/rent.pdf).", vec!["@'/a/my photo.jpg'", "@/a/rent.pdf"]),
            ("see @/a/my\\ photo.jpg, please", vec!["@/a/my\\ photo.jpg"]),
            ("read @notes.md", vec!["@notes.md"]),
            ("read /a/rent.pdf", vec![]),
            ("draw it with @chart, me@notes.md", vec![]),
            ("@/a/none.pdf and /a/rent.pdf", vec![]),
            ("$ cat @/a/rent.pdf", vec![]),
            ("/model @notes.md", vec![]),
            ("/model @/a/rent.pdf", vec![]),
            ("pasted\n@/a/rent.pdf", vec![]),
            ("", vec![]),
        ] {
            let LinePaths::Within(files) = found(line) else { panic!("{line}") };
            assert_eq!(files.iter().map(|file| &line[file.place.clone()]).collect::<Vec<_>>(), named, "{line}");
        }
    }
}
