//! The workspace for the planner: paths, sizes, and the columns of tables, read from the head of each file.
//!
//! Guests wrote these files. So links are never followed, opening never blocks, and the work is bounded however many entries
//! there are and however long the files.

mod form;
mod made;

#[cfg(test)]
mod tests;

pub use self::made::PublicFiles;

use cap_std::fs::Dir;
use kiso_plan::label::Label;
use kiso_plan::prompt::{Column, ColumnKind, FileCard};
use kiso_sandbox::effect::files::FileLabels;
use rustix::fs::{Mode, OFlags, openat};
use std::collections::VecDeque;
use std::ffi::OsStr;
use std::fs::File;
use std::io::Read;

/// Maximum number of listed files; the retrieval node shows fewer.
const MAX_FILES: usize = 500;
const MAX_DEPTH: usize = 6;
/// Maximum number of directories that are read.
const MAX_DIRS: usize = 1_000;
/// Maximum number of entries of any kind that are read, in the whole workspace and in one directory.
const MAX_ENTRIES: usize = 20_000;
const MAX_IN_DIR: usize = 4_000;
/// Maximum number of examined entries, including those that are skipped because of their labels.
const MAX_LOOKS: usize = 200_000;
/// Maximum number of tables whose columns are read.
const MAX_TABLES: usize = 50;
/// Maximum number of columns of all tables; a table above the limit is shown as a plain file.
const MAX_COLUMNS: usize = 5_000;
/// Number of bytes of a table that are read.
const HEAD_BYTES: usize = 64 << 10;
/// Maximum number of characters of a column's name that are shown. Longer names cannot be used in requests anyway.
const MAX_NAME: usize = 200;

/// The workspace itself, if it has a card.
const WORK: &str = "/work/";

/// Returns the files of a workspace, those near its top first, and the directories that are Git repositories. Hidden files are
/// left out, because planners never see them.
pub fn cards(work: &Dir) -> Vec<FileCard> {
    described(work, list(work, None))
}

/// The same, only for files that the user has written or named, or attached, and for those whose label the message's label
/// covers. The others are not mentioned and use no space, because outsiders could choose their number.
pub fn shown(work: &Dir, labels: &FileLabels, message: &Label) -> Vec<FileCard> {
    let admits = |label: &Label| label.is_shown_to_planners() || message.covers(label);
    described(work, list(work, Some(Admission { labels, admits: &admits }).filter(|of| !of.labels.is_empty())))
}

/// Filter for listed files.
#[derive(Clone, Copy)]
struct Admission<'a> {
    labels: &'a FileLabels,
    admits: &'a dyn Fn(&Label) -> bool,
}

fn described(work: &Dir, mut cards: Vec<FileCard>) -> Vec<FileCard> {
    let tables = cards.iter_mut().filter(|card| table::is_table(&card.path));
    let mut left = MAX_COLUMNS;
    for card in tables.take(MAX_TABLES) {
        let Some((head, cut)) = head(work, &card.path) else { continue };
        let columns = columns(&card.path, head.clone(), cut);
        let Some(rest) = left.checked_sub(columns.as_ref().map_or(0, Vec::len)) else { continue };
        card.notes = columns.as_ref().map(|columns| form::notes(&card.path, &head, cut, columns)).unwrap_or_default();
        (card.columns, left) = (columns, rest);
    }
    cards
}

/// Maximum size in bytes of a file that is shown to a model.
const MAX_SHOWN: u64 = 256 << 10;

/// Returns the beginning of a text file at a path below `work`, no part of which may be a link; or an error.
pub fn read(work: &Dir, path: &str) -> Result<String, String> {
    let head = bytes(work, path, MAX_SHOWN)?;
    if head.contains(&0) {
        return Err(format!("not a text file ({} bytes or more)", head.len()));
    }
    Ok(String::from_utf8_lossy(&head).into_owned())
}

/// Returns the first bytes of a file at such a path, at most `most`.
pub fn bytes(work: &Dir, path: &str, most: u64) -> Result<Vec<u8>, String> {
    let mut head = Vec::new();
    open_file(work, path)?.take(most).read_to_end(&mut head).map_err(|error| error.to_string())?;
    Ok(head)
}

/// Opens a file at such a path for reading.
pub fn open_file(work: &Dir, path: &str) -> Result<File, String> {
    let path = path.trim().trim_start_matches("/work/").trim_start_matches("./");
    if path.is_empty() || path.split('/').any(|part| matches!(part, "" | "." | "..")) {
        return Err("is not a path below /work".to_owned());
    }
    let (dir, name) = path.rsplit_once('/').unwrap_or(("", path));
    let file = inside(work, dir).and_then(|dir| open(&dir, name, OFlags::empty()));
    let file = file.filter(|file| file.metadata().is_ok_and(|found| found.is_file()));
    file.ok_or_else(|| "there is no such file".to_owned())
}

/// Returns the joined label of a file, of its name, and of the names of the directories above it.
pub fn label(work: &Dir, path: &str, labels: &FileLabels) -> Label {
    let path = path.trim().trim_start_matches("/work/").trim_start_matches("./");
    (*labels.of_entry(work, OsStr::new(path), false).label()).clone()
}

/// Returns whether only the user has written a file, and named it and the directories above it.
pub fn is_trusted(work: &Dir, path: &str, labels: &FileLabels) -> bool {
    labels.is_empty() || label(work, path, labels).is_trusted()
}

/// Returns the beginnings of these text files at the top of a workspace, at most `bytes` of each; each under its name.
pub fn heads(work: &Dir, names: &[&str], bytes: u64) -> Vec<String> {
    let head = |name: &&str| {
        let file =
            open(work, name, OFlags::empty()).filter(|file| file.metadata().is_ok_and(|found| found.is_file()))?;
        let mut head = Vec::new();
        file.take(bytes + 1).read_to_end(&mut head).ok()?;
        let cut = head.len() as u64 > bytes;
        head.truncate(usize::try_from(bytes).unwrap_or(usize::MAX));
        let text = String::from_utf8_lossy(&head);
        // A character that was cut in two.
        let text = if cut { text.trim_end_matches('\u{fffd}') } else { &text };
        let more = if cut { "\n[… the rest is left out …]" } else { "" };
        (!text.trim().is_empty()).then(|| format!("{name}:\n{}{more}", text.trim()))
    };
    names.iter().filter_map(head).collect()
}

/// Returns whether the entry at a path is listed.
type Admits<'a> = &'a dyn Fn(&str) -> bool;

/// Returns all files, or those that planners may see by their labels, without their columns. Directories are read level by level,
/// so that a deep or crowded one cannot hide those above it.
fn list(work: &Dir, admission: Option<Admission<'_>>) -> Vec<FileCard> {
    let is_named =
        |path: &str| admission.is_none_or(|of| (of.admits)(&of.labels.of_way(work, OsStr::new(path), false).label()));
    let is_admitted = |path: &str| admission.is_none_or(|of| (of.admits)(&label(work, path, of.labels)));
    let mut cards = Vec::new();
    let mut left = Left::new(MAX_ENTRIES);
    let mut dirs = 1;
    // Directories to read: the path, empty or with a final slash, and its depth.
    let mut queue = VecDeque::from([(String::new(), 0)]);
    while let Some((prefix, depth)) = queue.pop_front() {
        let Some(dir) = inside(work, &prefix) else { continue };
        let found = entries(&dir, &prefix, &mut left, &is_named);
        if found.is_repository {
            let path = if prefix.is_empty() { WORK.to_owned() } else { prefix.clone() };
            cards.push(FileCard { path, notes: vec!["git repository".to_owned()], ..FileCard::default() });
        }
        for name in found.files {
            if cards.len() >= MAX_FILES {
                return cards;
            }
            // An entry that was replaced since the listing is no longer a file.
            let (meta, path) = (dir.symlink_metadata(&name).ok().filter(|m| m.is_file()), format!("{prefix}{name}"));
            if let Some(meta) = meta.filter(|_| is_admitted(&path)) {
                cards.push(FileCard { path, bytes: meta.len(), ..FileCard::default() });
            }
        }
        for name in found.dirs {
            if depth < MAX_DEPTH && dirs < MAX_DIRS {
                dirs += 1;
                queue.push_back((format!("{prefix}{name}/"), depth + 1));
            }
        }
    }
    cards
}

/// The names in one directory, sorted.
#[derive(Debug, Default)]
struct Entries {
    /// Whether it contains a Git repository.
    is_repository: bool,
    files: Vec<String>,
    dirs: Vec<String>,
}

/// Remaining limits for a workspace.
struct Left {
    /// Listed entries.
    entries: usize,
    /// Examined entries.
    looks: usize,
}

impl Left {
    fn new(entries: usize) -> Self {
        Self { entries, looks: MAX_LOOKS }
    }
}

fn entries(dir: &Dir, prefix: &str, left: &mut Left, admits: Admits<'_>) -> Entries {
    let mut found = Entries::default();
    let Ok(entries) = dir.entries() else { return found };
    let mut room = MAX_IN_DIR.min(left.entries);
    for entry in entries {
        if room == 0 || left.looks == 0 {
            break;
        }
        left.looks -= 1;
        // A directory that cannot be read further may repeat its error forever.
        let Ok(entry) = entry else { break };
        // A plan cannot contain a name that is not UTF-8.
        let Ok(name) = entry.file_name().into_string() else { continue };
        if !admits(&format!("{prefix}{name}")) {
            continue;
        }
        room -= 1;
        left.entries -= 1;
        found.is_repository |= name == ".git";
        if name.starts_with('.') {
            continue;
        }
        let kind = match entry.file_type() {
            Ok(kind) if kind.is_dir() || kind.is_file() => kind,
            // Some file systems do not return the kind with the name.
            _ => match entry.metadata() {
                Ok(meta) => meta.file_type(),
                Err(_) => continue,
            },
        };
        if kind.is_dir() {
            found.dirs.push(name);
        } else if kind.is_file() {
            found.files.push(name);
        }
    }
    found.files.sort_unstable();
    found.dirs.sort_unstable();
    found
}

/// Returns whether there is a regular file at a path, without links on the way.
pub fn is_file(work: &Dir, path: &str) -> bool {
    let (parent, name) = path.rsplit_once('/').unwrap_or(("", path));
    inside(work, parent).is_some_and(|dir| dir.symlink_metadata(name).is_ok_and(|found| found.is_file()))
}

/// Returns the first bytes of a file, and whether there are more.
fn head(work: &Dir, path: &str) -> Option<(Vec<u8>, bool)> {
    let (dir, name) = path.rsplit_once('/').unwrap_or(("", path));
    let file = open(&inside(work, dir)?, name, OFlags::empty())?;
    // A pipe or a device may have replaced the file since the listing.
    if !file.metadata().ok()?.is_file() {
        return None;
    }
    let mut head = Vec::new();
    file.take(HEAD_BYTES as u64 + 1).read_to_end(&mut head).ok()?;
    let cut = head.len() > HEAD_BYTES;
    head.truncate(HEAD_BYTES);
    Some((head, cut))
}

/// Returns the columns of a table, or `None` if its head cannot be parsed.
fn columns(path: &str, head: Vec<u8>, cut: bool) -> Option<Vec<Column>> {
    let columns = table::columns(path, head, cut)?.into_iter().map(|(name, kind)| Column {
        name: short_name(&name),
        kind: match kind {
            table::Kind::Number | table::Kind::Integer => ColumnKind::Number,
            table::Kind::Date => ColumnKind::Date,
            table::Kind::Text => ColumnKind::Text,
        },
    });
    Some(columns.collect())
}

/// Returns at most the first [`MAX_NAME`] characters of a name, on one line.
fn short_name(name: &str) -> String {
    let mut short: String = name.chars().take(MAX_NAME).map(|c| if c.is_control() { ' ' } else { c }).collect();
    if name.chars().nth(MAX_NAME).is_some() {
        short.push('…');
    }
    short
}

/// Returns the directory at `path` below `work`, no part of which may be a link.
fn inside(work: &Dir, path: &str) -> Option<Dir> {
    let mut dir = work.try_clone().ok()?;
    for part in path.split('/').filter(|part| !part.is_empty()) {
        dir = Dir::from_std_file(open(&dir, part, OFlags::DIRECTORY)?);
    }
    Some(dir)
}

/// Opens an entry without following a link and without blocking. `name` is a plain name: it has no slash and is not `..`.
fn open(dir: &Dir, name: &str, flags: OFlags) -> Option<File> {
    let flags = flags | OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    openat(dir, name, flags, Mode::empty()).ok().map(File::from)
}
