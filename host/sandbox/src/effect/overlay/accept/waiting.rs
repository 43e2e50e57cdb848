//! The changes of an acceptance in the form of the upper layer: kept while they are accepted, so that they can wait again after
//! an undo.
//!
//! The files keep their inodes, so that the runs that changed them can then be undone one by one.

use super::super::base::Bases;
use super::super::{BASES, Overlay};
use super::journal::{AcceptLog, AcceptRecord, AcceptState, append};
use super::print::LayerPrint;
use super::{ACCEPTED, AcceptError};
use data_encoding::HEXLOWER;
use ring::digest::{Context, SHA256};
use std::fs::{self, File};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::PoisonError;

/// Larger changes are not kept a second time beside the folder: they do not wait after an undo, and can only be accepted again.
const MAX_BYTES: u64 = 256 << 20;
const MAX_ENTRIES: u64 = 20_000;

impl Overlay {
    /// Whether the upper layer is small enough to be kept.
    pub(super) fn is_kept(&self) -> io::Result<bool> {
        let (mut bytes, mut entries) = (0_u64, 0_u64);
        let done = walk(&self.upper_path, Path::new(""), &mut |_, found| {
            (bytes, entries) = (bytes.saturating_add(found.len()), entries + 1);
            bytes <= MAX_BYTES && entries <= MAX_ENTRIES
        })?;
        Ok(done)
    }

    /// Moves everything from the upper layer to the directory that is kept for this acceptance. Completes a move that a crash cut
    /// off.
    pub(super) fn put_away(&self, id: u64) -> io::Result<()> {
        let layer = self.kept_layer(id);
        fs::create_dir_all(&layer)?;
        move_all(&self.upper_path, &layer)?;
        let bases = self.kept.join(BASES);
        if bases.exists() {
            fs::rename(bases, self.kept_bases(id))?;
        }
        self.bases.lock().unwrap_or_else(PoisonError::into_inner).clear()
    }

    /// An acceptance was undone in the folder. If no other changes wait, its changes wait again. Returns whether they do.
    pub(super) fn undone(&self, id: u64, log: &Path) -> io::Result<bool> {
        let waits = self.kept_layer(id).exists() && self.is_upper_empty()?;
        if waits {
            append(log, &[AcceptRecord::State(AcceptState::Returning)])?;
            self.bring_back(id, log)?;
        } else {
            append(log, &[AcceptRecord::State(AcceptState::Undone)])?;
        }
        Ok(waits)
    }

    /// Moves the kept changes of an acceptance to the upper layer. Completes a move that a crash cut off.
    pub(super) fn bring_back(&self, id: u64, log: &Path) -> io::Result<()> {
        let bases = self.kept_bases(id);
        if bases.exists() {
            fs::rename(bases, self.kept.join(BASES))?;
        }
        *self.bases.lock().unwrap_or_else(PoisonError::into_inner) = Bases::open(&self.kept.join(BASES))?;
        let layer = self.kept_layer(id);
        if layer.exists() {
            move_all(&layer, &self.upper_path)?;
            fs::remove_dir(layer)?;
        }
        let waiting = AcceptRecord::Waiting(self.layer_print()?);
        append(log, &[waiting, AcceptRecord::State(AcceptState::Undone)])
    }

    /// Whether the changes of an undone acceptance wait in the upper layer. Fails if others wait, too.
    pub(super) fn waits(&self, log: &AcceptLog) -> Result<bool, AcceptError> {
        let Some(print) = &log.waiting else { return Ok(false) };
        if self.is_upper_empty()? {
            return Ok(false);
        }
        match self.layer_print()? == *print {
            true => Ok(true),
            false => {
                let why =
                    "other changes wait in the folder since this was undone; look at them, and accept them instead";
                Err(AcceptError::Dependent(why.to_owned()))
            }
        }
    }

    /// Forgets acceptances that were undone and whose changes came back to the upper layer: the next acceptance includes them.
    pub(super) fn forget_waiting(&self) -> io::Result<()> {
        for id in self.accept_logs()? {
            if let Some(log) = AcceptLog::read(&self.accept_log(id))?
                && log.state == Some(AcceptState::Undone)
                && log.waiting.is_some()
            {
                self.forget(id, &log.header)?;
            }
        }
        Ok(())
    }

    /// Deletes the kept changes of an acceptance.
    pub(super) fn forget_layer(&self, id: u64) -> io::Result<()> {
        let removed = [self.home.remove_tree(&self.kept_layer(id)), fs::remove_file(self.kept_bases(id))];
        removed.into_iter().try_for_each(|removed| match removed {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
            _ => Ok(()),
        })
    }

    fn is_upper_empty(&self) -> io::Result<bool> {
        Ok(fs::read_dir(&self.upper_path)?.next().is_none())
    }

    fn kept_layer(&self, id: u64) -> PathBuf {
        self.kept.join(ACCEPTED).join(format!("{id}.upper"))
    }

    fn kept_bases(&self, id: u64) -> PathBuf {
        self.kept.join(ACCEPTED).join(format!("{id}.bases"))
    }

    fn layer_print(&self) -> io::Result<LayerPrint> {
        let mut sum = Context::new(&SHA256);
        let mut part = |bytes: &[u8]| {
            sum.update(&(bytes.len() as u64).to_le_bytes());
            sum.update(bytes);
        };
        walk(&self.upper_path, Path::new(""), &mut |path, found| {
            part(path.as_os_str().as_bytes());
            part(&found.mode().to_le_bytes());
            if found.is_file() {
                [found.size(), found.mtime().cast_unsigned(), found.mtime_nsec().cast_unsigned()]
                    .iter()
                    .for_each(|number| part(&number.to_le_bytes()));
            } else if found.is_symlink() {
                let target = fs::read_link(self.upper_path.join(path)).unwrap_or_default();
                part(target.as_os_str().as_bytes());
            }
            true
        })?;
        Ok(LayerPrint(HEXLOWER.encode(sum.finish().as_ref())))
    }
}

/// Moves the entries of a directory into another one.
fn move_all(from: &Path, to: &Path) -> io::Result<()> {
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        fs::rename(entry.path(), to.join(entry.file_name()))?;
    }
    File::open(to)?.sync_all()?;
    File::open(from)?.sync_all()
}

/// Visits everything below a directory, in the order of the names, until the visitor has seen enough. Returns whether it has seen all.
fn walk(root: &Path, path: &Path, visit: &mut dyn FnMut(&Path, &fs::Metadata) -> bool) -> io::Result<bool> {
    let mut names: Vec<_> =
        fs::read_dir(root.join(path))?.map(|entry| Ok(entry?.file_name())).collect::<io::Result<_>>()?;
    names.sort();
    for name in names {
        let inner = path.join(name);
        let found = fs::symlink_metadata(root.join(&inner))?;
        if !visit(&inner, &found) || found.is_dir() && !walk(root, &inner, visit)? {
            return Ok(false);
        }
    }
    Ok(true)
}

#[cfg(test)]
mod tests {
    use super::super::super::FolderSelection;
    use super::super::super::tests::{Action, Numbers, Stage, in_overlay, plant, shown};
    use super::*;

    fn write(path: &str, text: &str) -> Action {
        Action::Write { path: path.to_owned(), text: text.to_owned(), empties: true, is_first: false }
    }

    fn listed(stage: &Stage, overlay: &Overlay) -> Vec<String> {
        let difference = overlay.difference(&stage.labels()).unwrap();
        assert!(difference.changes.iter().all(|change| change.collision.is_none()), "{:#?}", difference.changes);
        difference.changes.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn changes_wait_again_when_their_acceptance_is_undone() {
        let stage = Stage::new();
        for seed in 1..60 {
            let (mut numbers, name) = (Numbers(seed), format!("p{seed}"));
            let folder = stage.folder(&name);
            plant(&folder, &mut numbers);
            let before = shown(&folder);
            let overlay = stage.open(&name);
            for number in 0..14 {
                let _ = in_overlay(&overlay, &numbers.action(number));
            }
            let waiting = listed(&stage, &overlay);
            if waiting.is_empty() {
                continue;
            }
            let accept = |overlay: &Overlay| {
                let difference = overlay.difference(&stage.labels()).unwrap();
                overlay.accept(&difference, &FolderSelection::All).unwrap().number
            };
            let id = accept(&overlay);
            let after = shown(&folder);
            assert!(overlay.undo_acceptance(id, false).unwrap().waits);
            assert_eq!((shown(&folder), listed(&stage, &overlay)), (before.clone(), waiting.clone()), "program {seed}");
            let redone = overlay.redo_acceptance(id).unwrap();
            assert!(!redone.waits && listed(&stage, &overlay).is_empty(), "program {seed}");
            assert_eq!(shown(&folder), after, "program {seed}");

            // Cut off while the changes come back, with any number of them moved.
            let layer = overlay.kept_layer(id);
            let names: Vec<_> = fs::read_dir(&layer).unwrap().map(|entry| entry.unwrap().file_name()).collect();
            for count in 0..=names.len() {
                let overlay = stage.open(&name);
                overlay.undo_acceptance(id, false).unwrap();
                fs::create_dir(&layer).unwrap();
                for name in &names[count..] {
                    fs::rename(overlay.upper_path.join(name), layer.join(name)).unwrap();
                }
                if count == 0 {
                    let _ = fs::rename(overlay.kept.join(BASES), overlay.kept_bases(id));
                }
                append(&overlay.accept_log(id), &[AcceptRecord::State(AcceptState::Returning)]).unwrap();
                let overlay = stage.open(&name);
                let found = (shown(&folder), listed(&stage, &overlay));
                assert_eq!(found, (before.clone(), waiting.clone()), "program {seed}, {count}");
                overlay.redo_acceptance(id).unwrap();
            }
            // The waiting changes are accepted as usual, and then the first acceptance cannot be repeated.
            let overlay = stage.open(&name);
            overlay.undo_acceptance(id, false).unwrap();
            let second = accept(&overlay);
            assert_eq!(shown(&folder), after, "program {seed}");
            let known: Vec<_> = overlay.acceptances().unwrap().iter().map(|one| one.number).collect();
            assert_eq!(known, [second], "program {seed}");
        }
    }

    #[test]
    fn other_work_in_the_folder_is_not_mixed_with_what_was_undone() {
        let stage = Stage::new();
        let folder = stage.folder("project");
        fs::create_dir_all(&folder).unwrap();
        fs::write(folder.join("a"), "first").unwrap();
        let overlay = stage.open("project");
        let accept = |path: &str, text: &str| {
            in_overlay(&overlay, &write(path, text)).unwrap();
            let difference = overlay.difference(&stage.labels()).unwrap();
            overlay.accept(&difference, &FolderSelection::All).unwrap().number
        };
        let (first, second) = (accept("a", "second"), accept("a", "third"));
        // Both come back, the newer one first; the older one does not while the newer waits.
        assert!(overlay.undo_acceptance(second, false).unwrap().waits);
        assert_eq!(listed(&stage, &overlay), ["M  a  (6 B → 5 B)"]);
        assert!(!overlay.undo_acceptance(first, false).unwrap().waits);
        assert_eq!(fs::read_to_string(folder.join("a")).unwrap(), "first");
        overlay.redo_acceptance(first).unwrap();
        assert_eq!(fs::read_to_string(folder.join("a")).unwrap(), "second");
        overlay.redo_acceptance(second).unwrap();
        assert_eq!(fs::read_to_string(folder.join("a")).unwrap(), "third");

        overlay.undo_acceptance(second, false).unwrap();
        in_overlay(&overlay, &write("b", "new")).unwrap();
        let refused = overlay.redo_acceptance(second).unwrap_err();
        assert!(refused.to_string().contains("other changes wait in the folder"), "{refused}");
        assert_eq!(fs::read_to_string(folder.join("a")).unwrap(), "second");
        // Dropped changes can be accepted again as they were.
        let difference = overlay.difference(&stage.labels()).unwrap();
        overlay.discard(&difference, &FolderSelection::All).unwrap();
        overlay.redo_acceptance(second).unwrap();
        assert_eq!(fs::read_to_string(folder.join("a")).unwrap(), "third");
        overlay.sweep_acceptances(i64::MAX).unwrap();
        assert_eq!(fs::read_dir(overlay.kept.join(ACCEPTED)).unwrap().count(), 0);
    }
}
