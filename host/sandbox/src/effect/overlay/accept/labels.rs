//! The labels of shared files while an acceptance changes them: each is recorded before its file can be seen, and an undo
//! restores the old ones.

use super::super::Overlay;
use super::super::difference::FolderChange;
use super::super::lower::DIRECTORY;
use super::step::{AcceptStep, staged_name};
use crate::effect::files::{EntryChange, FileLabels};
use crate::effect::label::LabelId;
use crate::effect::undo::SessionPath;
use kiso_plan::label::Label;
use rustix::fs::{AtFlags, Mode, openat, statat};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::io;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The labels of one path.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct PathLabels {
    path: SessionPath,
    /// The labels of the entry: the label of its file, and the label of everybody who replaced earlier entries.
    before: [Label; 2],
    after: Label,
}

/// The labels of all paths of an acceptance.
#[derive(Debug)]
pub(super) struct StageLabels {
    labels: Arc<FileLabels>,
    paths: BTreeMap<PathBuf, PathLabels>,
}

impl Overlay {
    /// The labels of the paths of these changes, before and after. Only shared files have labels.
    pub(super) fn path_labels(&self, chosen: &[&FolderChange]) -> Vec<PathLabels> {
        let Some((labels, mark)) = self.shared_labels() else { return Vec::new() };
        let mut after: BTreeMap<&Path, LabelId> = BTreeMap::new();
        for change in chosen {
            let label = LabelId::from_label(&change.label).join(mark);
            for path in [Some(change.path.as_path()), change.moved_from()].into_iter().flatten() {
                let known = after.entry(path).or_default();
                *known = known.join(label);
            }
        }
        let entry = |(path, after): (&Path, LabelId)| {
            let (parent, name) = (path.parent().unwrap_or(Path::new("")), path.file_name().unwrap_or_default());
            let before = self.lower.open_dir(parent).map(|dir| labels.entry_labels(dir, name)).unwrap_or_default();
            let before = before.map(|label| (*label.label()).clone());
            PathLabels { path: SessionPath::new(path), before, after: (*after.label()).clone() }
        };
        after.into_iter().map(entry).collect()
    }

    /// Gives the staged files the labels of their content.
    pub(super) fn label_staged(&self, stage: &Path, steps: &[AcceptStep], paths: &[PathLabels]) -> io::Result<()> {
        let Some(labels) = self.stage_labels(paths) else { return Ok(()) };
        let stage = rustix::fs::open(stage, DIRECTORY, Mode::empty())?;
        for step in steps {
            let AcceptStep::Put { path, new, .. } = step else { continue };
            let (name, label) = (staged_name(*new), labels.after(path));
            let found = statat(&stage, &name, AtFlags::SYMLINK_NOFOLLOW)?;
            // A second name of a file with a label does not remove the label.
            match found.st_nlink {
                1 => labels.labels.made_at(&stage, &name, label)?,
                _ => labels.labels.writing_at(&stage, &name, label)?,
            }
        }
        Ok(())
    }

    pub(super) fn stage_labels(&self, paths: &[PathLabels]) -> Option<StageLabels> {
        let labels = self.shared_labels()?.0.clone();
        let paths = paths.iter().map(|labels| (labels.path.as_path().to_owned(), labels.clone())).collect();
        Some(StageLabels { labels, paths })
    }
}

impl StageLabels {
    fn after(&self, path: &SessionPath) -> LabelId {
        self.paths.get(path.as_path()).map_or(LabelId::default(), |labels| LabelId::from_label(&labels.after))
    }

    /// Records that a step is about to change an entry.
    pub(super) fn changing(&self, step: &AcceptStep, (dir, name): (&OwnedFd, &OsStr)) -> io::Result<EntryChange> {
        match step {
            AcceptStep::TakeOut { from: path, .. } | AcceptStep::Remove { path, .. } => {
                self.labels.unnaming(dir, name, self.after(path))
            }
            AcceptStep::Place { path, .. } | AcceptStep::MakeDir { path, .. } => {
                self.labels.naming(dir, name, self.after(path))
            }
            AcceptStep::Put { path, before: None, .. } => self.labels.naming(dir, name, self.after(path)),
            AcceptStep::Put { path, .. } => self.labels.replacing(dir, name, self.after(path)),
        }
    }

    /// Records that a directory was made.
    pub(super) fn made_dir(&self, path: &SessionPath, (dir, name): (&OwnedFd, &OsStr)) -> io::Result<()> {
        let made: OwnedFd = openat(dir, name, DIRECTORY, Mode::empty())?;
        self.labels.made(&made, self.after(path))
    }

    /// Records that an entry has its state before a step again.
    pub(super) fn put_back(&self, path: &SessionPath, (dir, name): (&OwnedFd, &OsStr)) -> io::Result<()> {
        let Some(labels) = self.paths.get(path.as_path()) else { return Ok(()) };
        let [way, displaced] = &labels.before;
        self.labels.put_back_entry(dir, name, [LabelId::from_label(way), LabelId::from_label(displaced)])
    }
}
