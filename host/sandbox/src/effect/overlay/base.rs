//! The state of a folder's file when its change began in the upper layer. A file that somebody else has changed since is never
//! overwritten.

use crate::effect::undo::SessionPath;
use rustix::fs::Stat;
use serde::{Deserialize, Serialize};
use std::collections::HashMap;
use std::fs::{File, OpenOptions};
use std::io::{self, BufRead, BufReader, Write};
use std::path::{Path, PathBuf};

/// A state of an entry of the folder, to detect later changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct FileState {
    inode: u64,
    bytes: u64,
    /// Nanoseconds since 1970. The change time of the attributes is left out: a move that was taken back changes it.
    modified: i64,
    mode: u32,
}

impl FileState {
    // The types differ between systems.
    #[allow(clippy::useless_conversion, clippy::unnecessary_cast)]
    pub(super) fn from_stat(stat: &Stat) -> Self {
        let nanoseconds = |seconds: i64, rest: i64| seconds.wrapping_mul(1_000_000_000).wrapping_add(rest);
        Self {
            inode: stat.st_ino as u64,
            bytes: u64::try_from(stat.st_size).unwrap_or(0),
            modified: nanoseconds(stat.st_mtime as i64, stat.st_mtime_nsec as i64),
            mode: u32::from(stat.st_mode),
        }
    }

    /// Whether the attributes show no change. A directory's own times change with the names in it.
    pub(super) fn is_same(&self, other: &Self) -> bool {
        const KIND: u32 = 0o170_000;
        const DIRECTORY: u32 = 0o040_000;
        if self.mode & KIND == DIRECTORY {
            return self.mode & KIND == other.mode & KIND && self.inode == other.inode;
        }
        self == other
    }
}

#[derive(Debug, Serialize, Deserialize)]
struct BaseLine {
    path: SessionPath,
    /// `None` if the entry did not exist.
    state: Option<FileState>,
}

/// The states, by path below the folder. The newest applies.
#[derive(Debug)]
pub(super) struct Bases {
    path: PathBuf,
    states: HashMap<SessionPath, Option<FileState>>,
    file: Option<File>,
}

impl Bases {
    /// Reads the file, which may be missing. A line that a crash cut off is left out.
    pub(super) fn open(path: &Path) -> io::Result<Self> {
        let mut states = HashMap::new();
        match File::open(path) {
            Ok(file) => {
                for line in BufReader::new(file).split(b'\n') {
                    if let Ok(line) = serde_json::from_slice::<BaseLine>(&line?) {
                        states.insert(line.path, line.state);
                    }
                }
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(error),
        }
        Ok(Self { path: path.to_owned(), states, file: None })
    }

    pub(super) fn get(&self, path: &Path) -> Option<Option<FileState>> {
        self.states.get(&SessionPath::new(path)).copied()
    }

    /// All known states below a directory.
    pub(super) fn below(&self, dir: &Path) -> Vec<(PathBuf, Option<FileState>)> {
        let below = self.states.iter().filter(|(path, _)| path.as_path().starts_with(dir) && path.as_path() != dir);
        below.map(|(path, state)| (path.as_path().to_owned(), *state)).collect()
    }

    pub(super) fn set(&mut self, path: &Path, state: Option<FileState>) -> io::Result<()> {
        let path = SessionPath::new(path);
        if self.states.get(&path) == Some(&state) {
            return Ok(());
        }
        let line = BaseLine { path, state };
        let mut text = serde_json::to_vec(&line)?;
        text.push(b'\n');
        let file = match &mut self.file {
            Some(file) => file,
            none => none.insert(OpenOptions::new().append(true).create(true).open(&self.path)?),
        };
        file.write_all(&text)?;
        self.states.insert(line.path, line.state);
        Ok(())
    }

    /// Forgets all of them.
    pub(super) fn clear(&mut self) -> io::Result<()> {
        self.states.clear();
        self.file = None;
        match std::fs::remove_file(&self.path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
            _ => Ok(()),
        }
    }
}
