//! Git repositories in a difference: everything below a `.git` directory is one change, which is accepted or discarded as a whole.

mod commits;
mod refs;

pub use self::commits::NewCommit;

use self::commits::{CommitCount, CommitWalk};
use self::refs::{Head, RepositoryRefs, RepositorySide};
use super::{FolderChange, FolderChangeKind};
use crate::effect::overlay::Overlay;
use crate::effect::overlay::lower::is_dir;
use crate::effect::overlay::walk::{SeenLabels, last};
use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

/// The directory of a repository.
const GIT: &str = ".git";

/// New commits that are listed.
const MAX_LISTED: usize = 10;

/// Parts of a summary that are spelled out.
const MAX_PARTS: usize = 8;

/// The changes of a repository.
#[derive(Debug, Clone)]
pub struct RepositoryChange {
    /// Its `.git` directory, below the folder.
    pub path: PathBuf,
    /// Commits that the folder does not have. `None` if they cannot be counted.
    pub commits: Option<u64>,
    /// The newest of them, a few.
    pub newest: Vec<NewCommit>,
    /// The changes of branches, tags and settings, each a few words.
    pub parts: Vec<String>,
    /// Entries below it that changed.
    pub files: usize,
    /// Whether text from outside decided on an entry of it, or is in one.
    pub is_marked: bool,
    /// The reason why it cannot be accepted, with the path of the entry.
    pub collision: Option<String>,
    /// Entries that git runs or obeys, such as hooks and settings, below the folder.
    pub settings: Vec<PathBuf>,
    /// Whether a person should read it before accepting it: settings changed, or a branch or tag is deleted or no longer has its
    /// commit.
    pub needs_review: bool,
}

/// The repository that a path is in: the first directory named `.git` on the way to it.
fn repository_of(path: &Path) -> Option<PathBuf> {
    let mut above = PathBuf::new();
    let mut parts = path.components().peekable();
    while let Some(part) = parts.next() {
        above.push(part);
        if part.as_os_str() == GIT && parts.peek().is_some() {
            return Some(above);
        }
    }
    None
}

/// Notes the repository of each change, and summarizes each repository.
pub(in crate::effect::overlay) fn find_repositories(
    overlay: &Overlay,
    changes: &mut [FolderChange],
) -> io::Result<Vec<RepositoryChange>> {
    let mut found: BTreeMap<PathBuf, Vec<usize>> = BTreeMap::new();
    for (number, change) in changes.iter().enumerate() {
        let repository = repository_of(&change.path).or_else(|| change.moved_from().and_then(repository_of));
        if let Some(repository) = repository {
            found.entry(repository).or_default().push(number);
        }
    }
    // A deleted repository is a plain deletion.
    found.retain(|path, _| is_directory(overlay, path));
    for (number, change) in changes.iter().enumerate() {
        if let Some(numbers) = found.get_mut(&change.path) {
            numbers.push(number);
        }
    }
    let mut repositories = Vec::new();
    for (path, numbers) in found {
        for number in &numbers {
            changes[*number].repository = Some(path.clone());
        }
        let parts: Vec<&FolderChange> = numbers.iter().map(|number| &changes[*number]).collect();
        repositories.push(summarize(overlay, path, &parts)?);
    }
    Ok(repositories)
}

fn is_directory(overlay: &Overlay, path: &Path) -> bool {
    let spot = overlay.walk(Path::new(""), path.as_os_str(), false, &mut SeenLabels::new(None));
    spot.is_ok_and(|spot| spot.entry.is_some_and(|(_, found)| found.is_dir()))
}

/// Returns the directory of the repository in the folder that this one extends or replaces, if there is one.
fn original(overlay: &Overlay, path: &Path) -> io::Result<Option<PathBuf>> {
    let spot = overlay.walk(Path::new(""), path.as_os_str(), false, &mut SeenLabels::new(None))?;
    let extended = match &spot.entry {
        Some((name, _)) => overlay.enter(&spot.dirs, name)?.and_then(|dir| dir.lower),
        None => None,
    };
    // A repository that replaced another one is compared with that.
    let natural = last(&spot.dirs)?.lower.as_ref().map(|above| above.join(GIT));
    let natural =
        natural.filter(|path| overlay.lower.stat(path).is_ok_and(|stat| stat.is_some_and(|stat| is_dir(&stat))));
    Ok(extended.or(natural))
}

fn summarize(overlay: &Overlay, path: PathBuf, changes: &[&FolderChange]) -> io::Result<RepositoryChange> {
    let before = original(overlay, &path)?;
    let (old, new) = (RepositorySide::Folder(overlay, before.clone()), RepositorySide::Session(overlay, path.clone()));
    let (before_refs, after_refs) = (RepositoryRefs::read(&old), RepositoryRefs::read(&new));
    let packs = path.join("objects/pack");
    let is_pack = |change: &FolderChange| {
        change.path.starts_with(&packs) && change.path.extension() == Some(OsStr::new("pack")) && change.after.is_some()
    };
    let mut walk = CommitWalk::new(&old, &new, changes.iter().any(|change| is_pack(change)));
    let mut parts = Vec::new();
    if before.is_none() {
        parts.push("new repository".to_owned());
    }
    let (ref_parts, loses_commits) = ref_parts(&before_refs, &after_refs, &mut walk);
    parts.extend(ref_parts);
    let deletes_ref = before_refs.all.keys().any(|name| !after_refs.all.contains_key(name));
    let settings: Vec<&&FolderChange> = changes.iter().filter(|change| is_setting(&path, change)).collect();
    parts.extend(settings.iter().map(|change| setting_part(&path, change)));
    if parts.is_empty() {
        parts.push(areas(&path, changes));
    }
    if parts.len() > MAX_PARTS {
        let more = parts.len() - MAX_PARTS;
        parts.truncate(MAX_PARTS);
        parts.push(format!("{more} more changes of branches and settings"));
    }
    let collision = changes.iter().find_map(|change| Some(format!("{} {}", change.path.display(), change.collision?)));
    Ok(RepositoryChange {
        commits: walk.total(),
        newest: walk.newest,
        parts,
        files: changes.len(),
        is_marked: changes.iter().any(|change| change.is_marked()),
        collision,
        needs_review: deletes_ref || loses_commits || !settings.is_empty(),
        settings: settings.iter().map(|change| change.path.clone()).collect(),
        path,
    })
}

/// The changes of branches and tags, and of the branch that is checked out. Also whether a branch or tag may no longer have its commit.
fn ref_parts(before: &RepositoryRefs, after: &RepositoryRefs, walk: &mut CommitWalk<'_>) -> (Vec<String>, bool) {
    let (mut parts, mut loses_commits) = (Vec::new(), false);
    let mut remotes = 0;
    let names: BTreeSet<&String> = before.all.keys().chain(after.all.keys()).collect();
    for name in names {
        let (old, new) = (before.all.get(name), after.all.get(name));
        if old == new {
            continue;
        }
        let (kind, short) = match name.strip_prefix("refs/").and_then(|name| name.split_once('/')) {
            Some(("heads", short)) => ("branch", short),
            Some(("tags", short)) => ("tag", short),
            Some(("remotes", _)) => {
                remotes += 1;
                continue;
            }
            _ => ("reference", name.as_str()),
        };
        let called = format!("{kind} {short}");
        parts.push(match (old, new) {
            (Some(_), None) => format!("{called} deleted"),
            (old, Some(new)) if kind == "branch" => {
                let (part, has_old) = commit_part(&format!("on {called}"), &called, (old, new), walk);
                loses_commits |= !has_old;
                part
            }
            (None, _) => format!("{called} added"),
            (Some(old), Some(new)) => {
                loses_commits = true;
                format!("{called} moved from {} to {}", short_id(old), short_id(new))
            }
        });
    }
    match (&before.head, &after.head) {
        (old, Head::Detached(new)) if !matches!(old, Head::Detached(old) if old == new) => {
            let old = match old {
                Head::Detached(old) => Some(old),
                Head::Branch(name) => before.all.get(name),
                Head::Unknown => None,
            };
            // The commits of branches were counted there.
            if !before.has(new) && !after.has(new) {
                parts.push(commit_part("on no branch", "HEAD", (old, new), walk).0);
            }
            parts.push(format!("{} checked out", short_id(new)));
        }
        (old, Head::Branch(name)) if !matches!(old, Head::Branch(old) if old == name) && *old != Head::Unknown => {
            let short = name.strip_prefix("refs/heads/").unwrap_or(name);
            parts.push(format!("branch {short} checked out"));
        }
        _ => {}
    }
    match remotes {
        0 => {}
        1 => parts.push("1 remote branch changed".to_owned()),
        count => parts.push(format!("{count} remote branches changed")),
    }
    (parts, loses_commits)
}

/// "3 commits on branch fix", or how the branch changed without one. Also whether its old commit is among the parents.
fn commit_part(
    on: &str,
    called: &str,
    (old, new): (Option<&String>, &String),
    walk: &mut CommitWalk<'_>,
) -> (String, bool) {
    let walked = walk.count(new, old);
    let has_old = old.is_none() || walked.meets_old;
    let commits = match walked.count {
        CommitCount::Exact(0) => {
            return match old {
                None => (format!("{called} added"), true),
                Some(old) => (format!("{called} moved from {} to {}", short_id(old), short_id(new)), has_old),
            };
        }
        CommitCount::Exact(1) => "1 commit".to_owned(),
        CommitCount::Exact(count) => format!("{count} commits"),
        CommitCount::AtLeast(count) => format!("at least {count} commits"),
        CommitCount::Unknown => "new commits".to_owned(),
    };
    let part = match old.filter(|_| !has_old && walked.count != CommitCount::Unknown) {
        Some(old) => format!("{commits} {on}, which was at {}", short_id(old)),
        None => format!("{commits} {on}"),
    };
    (part, has_old)
}

fn short_id(id: &str) -> &str {
    id.get(..7).unwrap_or(id)
}

/// Whether git runs or obeys the entry: hooks, settings, attributes, other places of objects. Everything that is not known to be
/// data counts.
fn is_setting(repository: &Path, change: &FolderChange) -> bool {
    let Ok(below) = change.path.strip_prefix(repository) else { return true };
    let look = change.after.or(change.before);
    let is_new_dir = change.kind == FolderChangeKind::Added && change.after.is_some_and(|after| after.is_dir());
    if is_new_dir || below.as_os_str().is_empty() {
        return false;
    }
    if look.is_some_and(|look| look.kind == super::EntryKind::Link) {
        return true;
    }
    !is_data(below)
}

/// Whether a path below a `.git` directory is known to hold commits, the names of them, or notes of git for itself.
fn is_data(below: &Path) -> bool {
    let names: Vec<&str> = below.iter().map(|name| name.to_str().unwrap_or_default()).collect();
    // Submodules have their repositories here.
    let names = match names.split_first() {
        Some((&"modules", rest)) => {
            let known = |name: &&str| matches!(*name, "objects" | "refs" | "logs" | "hooks" | "info");
            rest.iter().position(known).map_or(&rest[rest.len().saturating_sub(1)..], |at| &rest[at..])
        }
        _ => &names,
    };
    match names {
        ["objects", "info", name] => *name == "packs" || *name == "commit-graph",
        ["objects" | "refs" | "logs" | "rr-cache", ..] => true,
        ["info", name] => matches!(*name, "exclude" | "refs" | "sparse-checkout"),
        ["hooks", name] => name.ends_with(".sample"),
        [name] => matches!(
            *name,
            "HEAD"
                | "ORIG_HEAD"
                | "FETCH_HEAD"
                | "MERGE_HEAD"
                | "MERGE_MODE"
                | "MERGE_MSG"
                | "MERGE_RR"
                | "AUTO_MERGE"
                | "CHERRY_PICK_HEAD"
                | "REVERT_HEAD"
                | "COMMIT_EDITMSG"
                | "SQUASH_MSG"
                | "TAG_EDITMSG"
                | "packed-refs"
                | "index"
                | "index.lock"
                | "HEAD.lock"
                | "packed-refs.lock"
                | "shallow"
                | "description"
                | "gc.log"
                | "gc.pid"
        ),
        _ => false,
    }
}

fn setting_part(repository: &Path, change: &FolderChange) -> String {
    let below = change.path.strip_prefix(repository).unwrap_or(&change.path);
    let verb = match &change.kind {
        FolderChangeKind::Added => "added",
        FolderChangeKind::Changed => "changed",
        FolderChangeKind::Deleted => "deleted",
        FolderChangeKind::Moved(_) => "moved there",
    };
    format!("{} {verb}", below.display())
}

/// The first names below a repository that changed, if no branch changed.
fn areas(repository: &Path, changes: &[&FolderChange]) -> String {
    let below = changes.iter().filter_map(|change| change.path.strip_prefix(repository).ok()?.iter().next());
    let names: BTreeSet<String> = below.map(|name| name.to_string_lossy().into_owned()).collect();
    names.into_iter().collect::<Vec<_>>().join(", ")
}

impl RepositoryChange {
    /// The changes in a few words.
    pub fn summary(&self) -> String {
        let mut parts = self.parts.clone();
        if self.files > 1 {
            parts.push(format!("{} files", self.files));
        }
        parts.join("; ")
    }
}

impl fmt::Display for RepositoryChange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "G  {}  ({}", self.path.display(), self.summary())?;
        if self.is_marked {
            f.write_str("; decided by, or with, text from outside")?;
        }
        if let Some(collision) = &self.collision {
            write!(f, "; CANNOT BE ACCEPTED: {collision}")?;
        }
        f.write_str(")")
    }
}

#[cfg(test)]
mod tests;
