//! The workspace as the planner sees it: paths, sizes, and the columns of tables, read from the head of each file.
//!
//! Guests wrote these files. Links are never followed, opening never waits for a writer, and the work is bounded
//! however many entries there are and however long the files.

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

/// Files that are listed; the retrieval node shows fewer.
const MAX_FILES: usize = 500;
const MAX_DEPTH: usize = 6;
/// Directories that are read.
const MAX_DIRS: usize = 1_000;
/// Entries that are looked at, of any kind, in the whole workspace and in one directory of it.
const MAX_ENTRIES: usize = 20_000;
const MAX_IN_DIR: usize = 4_000;
/// Entries that are looked at in all, with those that are passed over by their labels.
const MAX_LOOKS: usize = 200_000;
/// Tables whose columns are read.
const MAX_TABLES: usize = 50;
/// Columns of all tables together; what comes after a table for which there is no more room is shown as a file.
const MAX_COLUMNS: usize = 5_000;
/// Bytes of a table that are read.
const HEAD_BYTES: usize = 64 << 10;
/// Characters of a column's name that are shown. Nobody can ask for a column that is called more than that, and whoever looks
/// for one reads all names.
const MAX_NAME: usize = 200;

/// The workspace itself, where it has a card.
const WORK: &str = "/work/";

/// The files of a workspace, those near its top first, and the directories that are Git repositories. Hidden files are left out: no
/// planner is shown them.
pub fn cards(work: &Dir) -> Vec<FileCard> {
    described(work, list(work, None))
}

/// The same of files that nobody but the user has written or named, or handed over, and of those whose label that of the message
/// covers. Nothing tells of the others, and they take no room from these: how many there are is for those outside to choose.
pub fn shown(work: &Dir, labels: &FileLabels, message: &Label) -> Vec<FileCard> {
    let admits = |label: &Label| label.is_shown_to_planners() || message.covers(label);
    described(work, list(work, Some(Admission { labels, admits: &admits }).filter(|of| !of.labels.is_empty())))
}

/// Which files are listed.
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

/// Bytes of a file that is shown to a model.
const MAX_SHOWN: u64 = 256 << 10;

/// The beginning of a text file at a path below `work`, no part of which may be a link; or why there is none.
pub fn read(work: &Dir, path: &str) -> Result<String, String> {
    let head = bytes(work, path, MAX_SHOWN)?;
    if head.contains(&0) {
        return Err(format!("not a text file ({} bytes or more)", head.len()));
    }
    Ok(String::from_utf8_lossy(&head).into_owned())
}

/// The first bytes of a file at such a path, at most `most`.
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

/// Of a file, of its name, and of the names of the directories above it.
pub fn label(work: &Dir, path: &str, labels: &FileLabels) -> Label {
    let path = path.trim().trim_start_matches("/work/").trim_start_matches("./");
    (*labels.of_entry(work, OsStr::new(path), false).label()).clone()
}

/// Whether nobody below the user has written a file, or named it or a directory above it.
pub fn is_trusted(work: &Dir, path: &str, labels: &FileLabels) -> bool {
    labels.is_empty() || label(work, path, labels).is_trusted()
}

/// The beginnings of these files at the top of a workspace, at most `bytes` of each, as far as they are text; each under its
/// name.
pub fn heads(work: &Dir, names: &[&str], bytes: u64) -> Vec<String> {
    let head = |name: &&str| {
        let file =
            open(work, name, OFlags::empty()).filter(|file| file.metadata().is_ok_and(|found| found.is_file()))?;
        let mut head = Vec::new();
        file.take(bytes + 1).read_to_end(&mut head).ok()?;
        let cut = head.len() as u64 > bytes;
        head.truncate(usize::try_from(bytes).unwrap_or(usize::MAX));
        let text = String::from_utf8_lossy(&head);
        // A character that the cut took apart.
        let text = if cut { text.trim_end_matches('\u{fffd}') } else { &text };
        let more = if cut { "\n[… the rest is left out …]" } else { "" };
        (!text.trim().is_empty()).then(|| format!("{name}:\n{}{more}", text.trim()))
    };
    names.iter().filter_map(head).collect()
}

/// Whether the entry at a path is one of those that are listed.
type Admits<'a> = &'a dyn Fn(&str) -> bool;

/// All files, or those that the labels let planners see, without their columns. They are read level by level, so that a deep or crowded
/// directory cannot hide those above it.
fn list(work: &Dir, admission: Option<Admission<'_>>) -> Vec<FileCard> {
    let is_named =
        |path: &str| admission.is_none_or(|of| (of.admits)(&of.labels.of_way(work, OsStr::new(path), false).label()));
    let is_admitted = |path: &str| admission.is_none_or(|of| (of.admits)(&label(work, path, of.labels)));
    let mut cards = Vec::new();
    let mut left = Left::new(MAX_ENTRIES);
    let mut dirs = 1;
    // Directories to be read: the path, empty or ending in a slash, and how deep it is.
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
            // What took the place of a file since it was listed is not one.
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
    /// Whether Git keeps a repository there.
    is_repository: bool,
    files: Vec<String>,
    dirs: Vec<String>,
}

/// How much more may be looked at in a workspace.
struct Left {
    /// Entries that are admitted.
    entries: usize,
    /// Entries, whoever they are of.
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
        // A directory that cannot be read further may repeat its error for ever.
        let Ok(entry) = entry else { break };
        // A name that is not UTF-8 cannot be written in a plan.
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
            // Some file systems do not tell kinds with the names.
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

/// Whether a regular file stands at a path, without a link on the way.
pub fn is_file(work: &Dir, path: &str) -> bool {
    let (parent, name) = path.rsplit_once('/').unwrap_or(("", path));
    inside(work, parent).is_some_and(|dir| dir.symlink_metadata(name).is_ok_and(|found| found.is_file()))
}

/// The first bytes of a file, and whether it has more.
fn head(work: &Dir, path: &str) -> Option<(Vec<u8>, bool)> {
    let (dir, name) = path.rsplit_once('/').unwrap_or(("", path));
    let file = open(&inside(work, dir)?, name, OFlags::empty())?;
    // A pipe or a device may have taken the place of the file since it was listed.
    if !file.metadata().ok()?.is_file() {
        return None;
    }
    let mut head = Vec::new();
    file.take(HEAD_BYTES as u64 + 1).read_to_end(&mut head).ok()?;
    let cut = head.len() > HEAD_BYTES;
    head.truncate(HEAD_BYTES);
    Some((head, cut))
}

/// The columns of a table, or none if its head does not read as one.
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

/// At most the first [`MAX_NAME`] characters of a name, on one line.
fn short_name(name: &str) -> String {
    let mut short: String = name.chars().take(MAX_NAME).map(|c| if c.is_control() { ' ' } else { c }).collect();
    if name.chars().nth(MAX_NAME).is_some() {
        short.push('…');
    }
    short
}

/// The directory at `path` below `work`, no part of which may be a link.
fn inside(work: &Dir, path: &str) -> Option<Dir> {
    let mut dir = work.try_clone().ok()?;
    for part in path.split('/').filter(|part| !part.is_empty()) {
        dir = Dir::from_std_file(open(&dir, part, OFlags::DIRECTORY)?);
    }
    Some(dir)
}

/// Opens an entry without following or waiting for it. `name` is one of a directory: it has no slash and is not `..`.
fn open(dir: &Dir, name: &str, flags: OFlags) -> Option<File> {
    let flags = flags | OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    openat(dir, name, flags, Mode::empty()).ok().map(File::from)
}
