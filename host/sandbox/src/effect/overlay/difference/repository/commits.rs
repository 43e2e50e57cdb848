//! New commits: read from the loose objects that the session has and the folder does not have.

use super::refs::{RepositorySide, object_id};
use flate2::read::ZlibDecoder;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::io::Read;

/// Commits that are counted in one repository.
const MAX_COMMITS: u64 = 1_000;

/// Objects that are looked for in one repository: a commit can name any number of parents.
const MAX_LOOKUPS: usize = 20_000;

/// Bytes of a commit that are inflated: its parents and its subject are at the beginning.
const MAX_INFLATED: u64 = 64 << 10;

/// Bytes of an object's file that are read for that.
const MAX_DEFLATED: u64 = 256 << 10;

/// Characters of a subject that are shown.
const MAX_SUBJECT: usize = 100;

/// A commit that the folder does not have.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewCommit {
    pub id: String,
    /// The first line of its message.
    pub subject: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum CommitCount {
    Exact(u64),
    /// More are packed, or beyond the limit.
    AtLeast(u64),
    /// All are packed.
    Unknown,
}

/// The new commits of one branch.
#[derive(Debug, Clone, Copy)]
pub(super) struct BranchCommits {
    pub(super) count: CommitCount,
    /// Whether the branch's old commit is among the parents.
    pub(super) meets_old: bool,
}

/// Walks from the tips of branches to commits that the folder has.
pub(super) struct CommitWalk<'a> {
    folder: &'a RepositorySide<'a>,
    session: &'a RepositorySide<'a>,
    /// Whether new objects may be in packs, which are not read.
    has_new_packs: bool,
    /// Those that were read, with their parents.
    known: BTreeMap<String, Vec<String>>,
    pub(super) newest: Vec<NewCommit>,
    lookups: usize,
    is_exact: bool,
}

impl<'a> CommitWalk<'a> {
    pub(super) fn new(folder: &'a RepositorySide<'a>, session: &'a RepositorySide<'a>, has_new_packs: bool) -> Self {
        Self { folder, session, has_new_packs, known: BTreeMap::new(), newest: Vec::new(), lookups: 0, is_exact: true }
    }

    /// The new commits of all branches so far. `None` if they cannot be counted.
    pub(super) fn total(&self) -> Option<u64> {
        self.is_exact.then_some(self.known.len() as u64)
    }

    /// Counts the new commits of the branch with this tip.
    pub(super) fn count(&mut self, tip: &str, old: Option<&String>) -> BranchCommits {
        let (mut count, mut meets_old, mut is_exact) = (0, false, true);
        let (mut pending, mut seen) = (VecDeque::from([tip.to_owned()]), BTreeSet::new());
        while let Some(id) = pending.pop_front() {
            if Some(&id) == old {
                meets_old = true;
                continue;
            }
            if !seen.insert(id.clone()) {
                continue;
            }
            let parents = match self.known.get(&id) {
                Some(parents) => parents.clone(),
                None if self.known.len() as u64 >= MAX_COMMITS || self.lookups >= MAX_LOOKUPS => {
                    is_exact = false;
                    break;
                }
                None => match self.read(&id) {
                    Some(parents) => parents,
                    // The folder has it, or it is packed.
                    None => {
                        is_exact &= !self.has_new_packs || self.folder.open(&path(&id)).is_some();
                        continue;
                    }
                },
            };
            count += 1;
            pending.extend(parents);
        }
        self.is_exact &= is_exact;
        let count = match (is_exact, count) {
            (true, count) => CommitCount::Exact(count),
            (false, 0) => CommitCount::Unknown,
            (false, count) => CommitCount::AtLeast(count),
        };
        BranchCommits { count, meets_old }
    }

    /// Reads a commit that is new, and returns its parents.
    fn read(&mut self, id: &str) -> Option<Vec<String>> {
        self.lookups += 1;
        if self.folder.open(&path(id)).is_some() {
            return None;
        }
        let (parents, subject) = parse(self.session.open(&path(id))?)?;
        if self.newest.len() < super::MAX_LISTED {
            self.newest.push(NewCommit { id: id.to_owned(), subject });
        }
        self.known.insert(id.to_owned(), parents.clone());
        Some(parents)
    }
}

/// The path of a loose object.
fn path(id: &str) -> String {
    format!("objects/{}/{}", id.get(..2).unwrap_or_default(), id.get(2..).unwrap_or_default())
}

/// The parents and the subject of a loose commit. `None` for another object.
fn parse(file: impl Read) -> Option<(Vec<String>, String)> {
    let mut text = Vec::new();
    let mut inflated = ZlibDecoder::new(file.take(MAX_DEFLATED)).take(MAX_INFLATED);
    // A long commit is cut off.
    let _ = inflated.read_to_end(&mut text);
    let rest = text.strip_prefix(b"commit ")?;
    let start = rest.iter().position(|byte| *byte == 0)?;
    let text = String::from_utf8_lossy(&rest[start + 1..]);
    let (headers, message) = text.split_once("\n\n").unwrap_or((&text, ""));
    let parents = headers.lines().filter_map(|line| object_id(line.strip_prefix("parent ")?)).collect();
    let subject = message.lines().map(str::trim).find(|line| !line.is_empty()).unwrap_or_default();
    Some((parents, subject.chars().take(MAX_SUBJECT).collect()))
}
