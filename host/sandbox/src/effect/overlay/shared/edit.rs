//! Changes to the shared files by a person, not by a task.

use super::super::Overlay;
use super::super::accept::AcceptError;
use super::super::lower::{is_dir, stat_at};
use super::super::mark::LayerMark;
use super::super::raise::fill;
use super::{ShareError, SharedChanges};
use crate::effect::label::LabelId;
use crate::effect::undo::{Transaction, is_of_layer};
use kiso_base::home::{Home, SessionName};
use rustix::fs::{Mode, OFlags, openat, symlinkat};
use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::path::{Component, Path, PathBuf};

/// A change to the shared files. Paths are below `/shared`.
#[derive(Debug)]
pub enum SharedEdit {
    /// Puts a copy of a file there, with the directories around it.
    Put { file: File, path: PathBuf, replaces: bool },
    /// Deletes a file, or a directory with everything in it.
    Remove { path: PathBuf },
}

/// Directories around a file.
const MAX_LEVELS: usize = 15;

/// The longest path, in bytes.
const MAX_PATH: usize = 1_024;

/// The reason why a file does not replace another one.
const EXISTS: &str = "it is there already";

impl SharedEdit {
    fn path(&self) -> &Path {
        match self {
            Self::Put { path, .. } | Self::Remove { path } => path,
        }
    }

    /// Checks a path below `/shared` that somebody outside names.
    pub fn check_path(path: &Path) -> Result<(), ShareError> {
        let wrong = |why| Err(ShareError::Path { path: path.display().to_string(), why });
        let is_plain = |part: Component<'_>| matches!(part, Component::Normal(name) if !is_of_layer(name));
        if path.as_os_str().is_empty() || !path.components().all(is_plain) {
            return wrong("give a path below /shared, such as lists/shopping.txt");
        }
        if path.components().count() > MAX_LEVELS + 1 || path.as_os_str().len() > MAX_PATH {
            return wrong("it is too long");
        }
        match path.to_str().is_some_and(|path| !path.contains(char::is_control)) {
            true => Ok(()),
            false => wrong("it has characters that a file name here cannot have"),
        }
    }
}

impl Overlay {
    /// Makes a change in the name of a session, whose lock the caller holds. `author` is the label of its author.
    pub fn edit_shared(
        home: &Home,
        session: &SessionName,
        edit: &SharedEdit,
        (author, work): (LabelId, Option<&Transaction>),
        limit_mib: u64,
    ) -> Result<SharedChanges, ShareError> {
        SharedEdit::check_path(edit.path())?;
        Self::drop_unshared(home, session).map_err(AcceptError::from)?;
        let overlay = Self::open_shared(home, session).map_err(AcceptError::from)?;
        // Held until the change is accepted.
        let _lock = overlay.lock_shared().map_err(AcceptError::from)?;
        match edit {
            SharedEdit::Put { file, path, replaces } => overlay.put(file, path, *replaces)?,
            SharedEdit::Remove { path } => overlay.mark_deleted(path)?,
        }
        overlay.share_as(session, author, work, limit_mib)
    }

    /// Puts a copy of a file there under this name, or with a number if the name is taken. Returns the name. Changes of a running
    /// task of the session are shared at the same time.
    pub fn add_shared(
        home: &Home,
        session: &SessionName,
        (file, name): (&File, &str),
        (author, work): (LabelId, Option<&Transaction>),
        limit_mib: u64,
    ) -> Result<String, ShareError> {
        SharedEdit::check_path(Path::new(name))?;
        let overlay = Self::open_shared(home, session).map_err(AcceptError::from)?;
        let _lock = overlay.lock_shared().map_err(AcceptError::from)?;
        let free = overlay.free_number(name).map_err(AcceptError::from)?;
        overlay.put(file, Path::new(&free), false)?;
        overlay.share_as(session, author, work, limit_mib)?;
        Ok(free)
    }

    fn put(&self, file: &File, path: &Path, replaces: bool) -> Result<(), ShareError> {
        let taken = |why| Err(ShareError::Taken { path: path.display().to_string(), why });
        let mut above = PathBuf::new();
        for part in path.parent().into_iter().flatten() {
            above.push(part);
            if self.stat(&above)?.is_some_and(|found| !is_dir(&found)) {
                return taken("a file is in the place of one of its directories");
            }
        }
        let before = self.stat(path)?;
        match &before {
            Some(found) if is_dir(found) => return taken("it is a directory"),
            Some(_) if !replaces => return taken(EXISTS),
            _ => {}
        }
        let copy = || -> io::Result<()> {
            let dir = self.upper_path().join(path.parent().unwrap_or(Path::new("")));
            std::fs::create_dir_all(&dir)?;
            self.remember(path, before.as_ref())?;
            let to = std::fs::OpenOptions::new().write(true).create_new(true).open(self.upper_path().join(path))?;
            fill(file, &to)
        };
        Ok(copy().map_err(AcceptError::from)?)
    }

    fn mark_deleted(&self, path: &Path) -> Result<(), ShareError> {
        let found = self.stat(path)?;
        let Some(found) = found else {
            return Err(ShareError::Missing { path: path.display().to_string() });
        };
        let mark = || -> io::Result<()> {
            self.remember(path, Some(&found))?;
            let mut pending = if is_dir(&found) { vec![path.to_owned()] } else { Vec::new() };
            while let Some(dir) = pending.pop() {
                let opened = self.lower.open_dir(&dir)?;
                for entry in rustix::fs::Dir::read_from(&opened)? {
                    let entry = entry?;
                    let name = std::ffi::OsStr::from_bytes(entry.file_name().to_bytes());
                    let Some(found) = stat_at(&opened, name)?.filter(|_| !matches!(name.as_bytes(), b"." | b".."))
                    else {
                        continue;
                    };
                    let path = dir.join(name);
                    self.remember(&path, Some(&found))?;
                    if is_dir(&found) {
                        pending.push(path);
                    }
                }
            }
            let parent = path.parent().unwrap_or(Path::new(""));
            std::fs::create_dir_all(self.upper_path().join(parent))?;
            let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
            let dir: OwnedFd = openat(
                &self.upper,
                if parent.as_os_str().is_empty() { Path::new(".") } else { parent },
                flags,
                Mode::empty(),
            )?;
            Ok(symlinkat(LayerMark::Deleted.target(), dir, path.file_name().unwrap_or_default())?)
        };
        Ok(mark().map_err(AcceptError::from)?)
    }

    fn stat(&self, path: &Path) -> Result<Option<rustix::fs::Stat>, ShareError> {
        Ok(self.lower.stat(path).map_err(AcceptError::from)?)
    }
}
