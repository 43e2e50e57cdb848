//! The hunks of a changed text, which are accepted one by one.
//!
//! The numbers of hunks are valid in one list only, so a request to accept some names its list.

use super::accept::{AcceptError, Acceptance};
use super::difference::{EntryKind, EntryLook, FolderChange, FolderChangeKind, FolderDifference, FolderSelection};
use super::{Overlay, lower::stat_at};
use data_encoding::HEXLOWER;
use serde::{Deserialize, Serialize};
use similar::udiff::UnifiedHunkHeader;
use similar::{ChangeTag, DiffOp, TextDiff};
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

/// Bytes of a text whose lines are compared.
const MAX_HUNK_TEXT: u64 = 1 << 20;

/// The time for comparing lines. The rest counts as replaced.
const MAX_TIME: Duration = Duration::from_secs(5);

/// Unchanged lines around a change.
const CONTEXT: usize = 3;

/// Lists of hunks that are remembered for a folder.
const MAX_REMEMBERED: usize = 1_000;

/// The file of them, in the session's directory of the folder.
const LISTED: &str = "hunks";

/// The reason why hunks are not accepted. The folder is unchanged.
#[derive(Debug, thiserror::Error)]
pub enum HunkError {
    /// The request is invalid, whatever the file contains now.
    #[error("{0}")]
    Refused(String),
    #[error("{} has changed since its hunks were listed; list them again", .0.display())]
    Stale(PathBuf),
    #[error(transparent)]
    Accept(#[from] AcceptError),
}

/// Both sides of a text, compared.
#[derive(Debug)]
pub struct TextChange {
    pub hunks: Vec<TextHunk>,
    /// Names both texts and how they were compared.
    pub revision: String,
    before: String,
    after: String,
}

/// A run of changed lines.
#[derive(Debug)]
pub struct TextHunk {
    /// As in a unified diff, such as `@@ -1,4 +1,5 @@`.
    pub header: String,
    pub lines: Vec<HunkLine>,
    ops: Vec<DiffOp>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HunkLine {
    /// `+`, `-` or a space.
    pub sign: char,
    /// With its end, which the last line of a file may not have.
    pub text: String,
}

/// The lists of hunks that were shown last, by path: their revisions.
#[derive(Debug, Default, Serialize, Deserialize)]
struct ListedHunks(BTreeMap<String, String>);

impl TextChange {
    fn new(before: String, after: String) -> Self {
        let compared = TextDiff::configure().timeout(MAX_TIME).diff_lines(&before, &after);
        let mut hunks = Vec::new();
        let mut state = blake2b_simd::Params::new().hash_length(16).to_state();
        for text in [&before, &after] {
            state.update(&text.len().to_le_bytes()).update(text.as_bytes());
        }
        for ops in compared.grouped_ops(CONTEXT) {
            let lines = ops.iter().flat_map(|op| compared.iter_changes(op));
            let line = |change: similar::Change<&str>| HunkLine {
                sign: match change.tag() {
                    ChangeTag::Insert => '+',
                    ChangeTag::Delete => '-',
                    ChangeTag::Equal => ' ',
                },
                text: change.value().to_owned(),
            };
            let lines = lines.map(line).collect();
            state.update(format!("{ops:?}").as_bytes());
            hunks.push(TextHunk { header: UnifiedHunkHeader::new(&ops).to_string(), lines, ops });
        }
        drop(compared);
        Self { hunks, revision: HEXLOWER.encode(state.finalize().as_bytes()), before, after }
    }

    /// The folder's text with these hunks, by their numbers from 1.
    fn with(&self, numbers: &[usize]) -> String {
        let (old, new): (Vec<&str>, Vec<&str>) = (lines(&self.before), lines(&self.after));
        let (mut text, mut at) = (String::new(), 0);
        let chosen = self.hunks.iter().enumerate().filter(|(number, _)| numbers.contains(&(number + 1)));
        for op in chosen.flat_map(|(_, hunk)| &hunk.ops) {
            let (replaced, by) = (op.old_range(), op.new_range());
            text.extend(old[at..replaced.start].iter().copied());
            text.extend(new[by].iter().copied());
            at = replaced.end;
        }
        text.extend(old[at..].iter().copied());
        text
    }
}

/// The lines of a text with their ends, as they are compared.
fn lines(text: &str) -> Vec<&str> {
    TextDiff::from_lines(text, "").old_slices().to_vec()
}

impl Overlay {
    /// The hunks of a changed file. `None` if a side of it is not a short text, or keeps credentials.
    pub fn text_change(&self, change: &FolderChange) -> Option<TextChange> {
        if change.is_secret || change.moved_from().is_some() {
            return None;
        }
        let is_file = |look: Option<EntryLook>| look.is_some_and(|look| look.kind == EntryKind::File);
        let before = if is_file(change.before) { read(self.open_before(change))? } else { String::new() };
        let after = if is_file(change.after) { read(self.open_after(change))? } else { String::new() };
        (before != after).then(|| TextChange::new(before, after))
    }

    /// Brings some hunks of a file into the folder, by their numbers from 1. The others still wait. `revision` names the list of
    /// the numbers. The caller has held the session's lock since the difference was made.
    pub fn accept_hunks(
        &self,
        difference: &FolderDifference,
        path: &Path,
        (numbers, revision): (&[usize], &str),
    ) -> Result<Acceptance, HunkError> {
        let refuse = |why: &str| HunkError::Refused(format!("{} {why}", path.display()));
        let mut of_path = difference.changes.iter().filter(|change| change.path == path);
        let change = match (of_path.next(), of_path.next()) {
            (Some(change), None) if change.kind == FolderChangeKind::Changed => change,
            (None, _) => return Err(refuse("has no change that waits")),
            _ => return Err(refuse("was not changed in place; only changed files have hunks")),
        };
        if change.repository.is_some() {
            return Err(refuse("belongs to a git repository, which is accepted as a whole"));
        }
        if change.lower.as_deref() != Some(path) {
            return Err(refuse("is in a directory that was moved; accept that first"));
        }
        let Some(text) = self.text_change(change) else {
            return Err(refuse("has no hunks: it is not a short text"));
        };
        if let Some(collision) = change.collision {
            return Err(AcceptError::Collision(vec![format!("{} {collision}", path.display())]).into());
        }
        if text.revision != revision {
            return Err(HunkError::Stale(path.to_owned()));
        }
        let count = text.hunks.len();
        if let Some(number) = numbers.iter().find(|number| !(1..=count).contains(number)) {
            return Err(refuse(&match count {
                1 => format!("has 1 hunk, not a hunk {number}"),
                count => format!("has {count} hunks, not a hunk {number}"),
            }));
        }
        if numbers.is_empty() {
            return Err(refuse("was named without the number of a hunk"));
        }
        let parent = self.lower.open_dir(path.parent().unwrap_or(Path::new(""))).map_err(AcceptError::from)?;
        let stat = stat_at(parent, path.file_name().unwrap_or_default()).map_err(AcceptError::from)?;
        if stat.is_none_or(|stat| stat.st_nlink > 1) {
            return Err(refuse("has several names in the folder, so it is accepted as a whole"));
        }
        let selection = FolderSelection::Exact([path.to_owned()].into());
        if (1..=count).all(|number| numbers.contains(&number)) {
            return Ok(self.accept(difference, &selection)?);
        }
        let mut partial = difference.clone();
        for other in partial.changes.iter_mut().filter(|other| other.path == path) {
            other.part = Some(Arc::from(text.with(numbers)));
        }
        Ok(self.accept(&partial, &selection)?)
    }

    /// Remembers that hunks were listed, so that their numbers can be used in another process.
    pub fn remember_hunks(&self, listed: &[(&Path, String)]) -> io::Result<()> {
        if listed.is_empty() {
            return Ok(());
        }
        let mut known = self.listed_hunks();
        for (path, revision) in listed {
            while known.0.len() >= MAX_REMEMBERED {
                known.0.pop_first();
            }
            known.0.insert(path.to_string_lossy().into_owned(), revision.clone());
        }
        std::fs::write(self.kept.join(LISTED), serde_json::to_vec(&known)?)
    }

    /// The revision of the list of hunks of a file that was remembered last.
    pub fn remembered_hunks(&self, path: &Path) -> Option<String> {
        self.listed_hunks().0.remove(&*path.to_string_lossy())
    }

    fn listed_hunks(&self) -> ListedHunks {
        let text = std::fs::read(self.kept.join(LISTED)).ok();
        text.and_then(|text| serde_json::from_slice(&text).ok()).unwrap_or_default()
    }
}

/// Reads a short text.
fn read(file: io::Result<File>) -> Option<String> {
    let mut text = Vec::new();
    file.ok()?.take(MAX_HUNK_TEXT + 1).read_to_end(&mut text).ok()?;
    let is_text = text.len() as u64 <= MAX_HUNK_TEXT && !text.contains(&0);
    String::from_utf8(text).ok().filter(|_| is_text)
}

#[cfg(test)]
mod tests;
