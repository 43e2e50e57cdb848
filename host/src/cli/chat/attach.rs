//! Files named in a line: a path that was pasted or dropped, as the whole line or as `@path` in it.
//!
//! Terminals paste a path quoted, with escaped spaces, or as a `file:` address.

use crate::cli::show::printable_line;
use kiso_agent::session::command::SlashCommand;
use percent_encoding::percent_decode_str;
use std::ops::Range;
use std::path::{Path, PathBuf};

/// Maximum files of one message.
pub(super) const MAX_FILES: usize = 16;

/// Maximum warnings about words of one message.
const MAX_DOUBTS: usize = 3;

/// Marks that end a sentence, or belong to the name before them.
const ENDS: [char; 10] = ['.', ',', ';', ':', '!', '?', ')', ']', '"', '\''];

/// Directories of the sandbox, which a message may begin with.
const SANDBOX: [&str; 5] = ["/work", "/shared", "/skills", "/project", "/tmp"];

/// A path in a line.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct PathMention {
    /// The range of the mention in the line, with the `@`.
    pub place: Range<usize>,
    pub path: PathBuf,
}

/// The files named in a line.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum LinePaths {
    /// The line contains only paths.
    Whole(Vec<PathBuf>),
    Within(Vec<PathMention>),
}

/// Finds the files named in a line. Command lines, commands and text of several lines, which may be pasted, name none.
pub(super) fn find(line: &str, is_file: impl Fn(&Path) -> bool) -> LinePaths {
    let text = line.trim();
    let is_command = text.starts_with('$') || SlashCommand::parse(text).is_some();
    if text.is_empty() || is_command || text.contains('\n') {
        return LinePaths::Within(Vec::new());
    }
    let existing = |word: &str| resolved(word).filter(|path| is_file(path));
    // Some terminals paste a path unquoted, even with spaces.
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
        let trimmed = word.trim_end_matches(ENDS);
        let cut = word.len() - trimmed.len();
        let named = existing(&word).map(|path| (path, length));
        let named = named.or_else(|| Some((existing(trimmed)?, length.checked_sub(cut)?)));
        found.extend(named.map(|(path, length)| PathMention { place: at..at + 1 + length, path }));
    }
    found
}

/// Returns a warning for each word that looks like a command or a file and is neither, because it is sent as text.
pub(super) fn find_doubts(line: &str, is_there: impl Fn(&Path) -> bool) -> Vec<String> {
    let text = line.trim();
    if text.starts_with('$') || text.contains('\n') || SlashCommand::parse(text).is_some() {
        return Vec::new();
    }
    let mut doubts = Vec::new();
    let first = text.split_whitespace().next().unwrap_or_default();
    let is_name = |name: &str| name.starts_with(|c: char| c.is_ascii_alphabetic()) && !name.contains(['/', '.']);
    if first.strip_prefix('/').is_some_and(is_name) && !SANDBOX.contains(&first) && !is_there(Path::new(first)) {
        doubts.push(format!(
            "{} is not a command, so this is sent as a message; /help lists the commands",
            printable_line(first)
        ));
    }
    for word in words_after_at(text) {
        let named = word.trim_end_matches(ENDS);
        let is_missing = |word: &str| resolved(word).is_some_and(|path| !is_there(&path));
        if is_missing(&word) && is_missing(named) {
            doubts.push(format!("there is no file {}, so @{0} is sent as text", printable_line(named)));
        }
    }
    doubts.truncate(MAX_DOUBTS);
    doubts
}

/// Returns the words that follow an `@`.
fn words_after_at(line: &str) -> impl Iterator<Item = String> {
    line.match_indices('@').filter_map(move |(at, _)| {
        let before = line[..at].chars().next_back();
        let begins = before.is_none_or(|before| before.is_whitespace() || "([\"'".contains(before));
        begins.then(|| word(&line[at + 1..]).0)
    })
}

/// Returns the path that a word means; `None` if the word does not look like a path.
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

/// Splits a line into words, as a shell does.
fn words(text: &str) -> impl Iterator<Item = String> {
    let mut rest = text;
    std::iter::from_fn(move || {
        rest = rest.trim_start();
        let (next, length) = word(rest);
        rest = &rest[length..];
        (length > 0).then_some(next)
    })
}

/// Returns the first word of a text, and its length there in bytes.
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
    // A single quotation mark is an apostrophe.
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
    #[test]
    fn words_that_look_like_a_command_or_a_file_are_reported() {
        let doubts = |line: &str| find_doubts(line, |path| FILES.iter().any(|known| Path::new(known) == path));
        assert_eq!(
            doubts("/attach photo"),
            ["/attach is not a command, so this is sent as a message; /help lists the commands"]
        );
        assert_eq!(doubts("what is in @none.pdf?"), ["there is no file none.pdf, so @none.pdf is sent as text"]);
        assert_eq!(doubts("@a.b @c.d @e.f @g.h").len(), MAX_DOUBTS);
        for line in [
            "/etc is full",
            "/work has what?",
            "/model x",
            "/none/such.pdf",
            "$ cat @none.pdf",
            "with @chart and me@none.pdf",
            "read @notes.md, and @/a/rent.pdf.",
            "pasted\n@none.pdf",
            "",
        ] {
            assert_eq!(doubts(line), [""; 0], "{line}");
        }
    }
}
