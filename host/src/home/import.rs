//! Copies a user's file into a workspace (`--file`).

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read};
use std::os::unix::fs::{FileTypeExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use cap_std::ambient_authority;
use cap_std::fs::{Dir, OpenOptions as CapOpenOptions, OpenOptionsExt as _};

use super::{Home, HomeError, SessionName, TEMP, temp_name};

/// A file that now stands in the workspace.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ImportedFile {
    /// Its name, which is its path under `/work`.
    pub name: String,
    pub bytes: u64,
    /// Whether something of that name was there before.
    pub replaced: bool,
}

/// Why a file was not taken. The workspace is then as it was.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ImportError {
    #[error("{} does not exist: check the path given with --file", path.display())]
    Missing { path: PathBuf },
    #[error("{} is {kind}, and --file takes regular files only{}", path.display(), advice(kind))]
    NotAFile { path: PathBuf, kind: &'static str },
    #[error("{} may not be read: permission denied", path.display())]
    Denied { path: PathBuf },
    #[error("{} cannot be used as a file name in the workspace: {rule}; rename the file", path.display())]
    Name { path: PathBuf, rule: &'static str },
    #[error(
        "{} has {} of at most {} MiB: give a smaller file, or raise limits.file_mib in config.toml",
        path.display(), mib(*bytes), max_bytes / (1 << 20)
    )]
    TooLarge { path: PathBuf, bytes: u64, max_bytes: u64 },
    #[error("{} would replace the directory {name} of the workspace: rename the file", path.display())]
    Occupied { path: PathBuf, name: String },
    #[error("failed to copy {}: {error}", path.display())]
    Io { path: PathBuf, error: io::Error },
    /// The workspace could not be written (disk full, read-only, …).
    #[error(transparent)]
    Home(#[from] HomeError),
}

fn advice(kind: &str) -> &'static str {
    if kind == "a directory" { ": give its files one by one" } else { "" }
}

fn mib(bytes: u64) -> String {
    format!("{:.1}", bytes as f64 / f64::from(1 << 20))
}

impl Home {
    /// Copies the regular file `source` into the session's workspace under its own name, replacing what has that name.
    ///
    /// The copy grows outside the workspace and is moved in when it is whole, so no task sees half of it, a link that a
    /// guest left under that name is replaced and not followed, and on failure nothing stays.
    pub fn import_file(
        &self,
        session: &SessionName,
        source: &Path,
        max_bytes: u64,
    ) -> Result<ImportedFile, ImportError> {
        let (mut from, found_bytes) = open_regular(source)?;
        let name = file_name(source)?;
        let too_large = |bytes| ImportError::TooLarge { path: source.to_path_buf(), bytes, max_bytes };
        if found_bytes > max_bytes {
            return Err(too_large(found_bytes));
        }
        self.create_session(session)?;
        let dir = self.session_dir(session);
        let outside = Dir::open_ambient_dir(&dir, ambient_authority())
            .map_err(|error| HomeError::from_io(&dir, "open", error))?;
        let work = self.open_work(session)?;

        let target = self.work_dir(session).join(name);
        let unwritable = |error| HomeError::from_io(&target, "write", error);
        let temp = Unfinished { dir: &outside, name: temp_name() };
        let mut to = outside
            .open_with(&temp.name, CapOpenOptions::new().write(true).create_new(true).mode(0o600))
            .map_err(unwritable)?
            .into_std();
        // The file may grow while it is read, and files of /proc say that they are empty.
        let bytes = copy(&mut from, &mut to, max_bytes + 1).map_err(|failed| match failed {
            CopyError::Read(error) => ImportError::Io { path: source.to_path_buf(), error },
            CopyError::Write(error) => unwritable(error).into(),
        })?;
        if bytes > max_bytes {
            return Err(too_large(bytes));
        }
        to.sync_all().map_err(unwritable)?;

        let there = work.symlink_metadata(name);
        if there.as_ref().is_ok_and(|there| there.is_dir()) {
            return Err(ImportError::Occupied { path: source.to_path_buf(), name: name.to_owned() });
        }
        outside.rename(&temp.name, &work, name).map_err(unwritable)?;
        Ok(ImportedFile { name: name.to_owned(), bytes, replaced: there.is_ok() })
    }
}

/// Removes what imports of killed processes left. Only for the holder of the session's lock.
pub(super) fn sweep(session_dir: &Path) {
    for entry in fs::read_dir(session_dir).into_iter().flatten().flatten() {
        if entry.file_name().to_string_lossy().starts_with(TEMP) {
            let _ = fs::remove_file(entry.path());
        }
    }
}

/// The copy while it is not yet in place; removes it unless it was moved away.
struct Unfinished<'a> {
    dir: &'a Dir,
    name: String,
}

impl Drop for Unfinished<'_> {
    fn drop(&mut self) {
        let _ = self.dir.remove_file(&self.name);
    }
}

fn open_regular(path: &Path) -> Result<(File, u64), ImportError> {
    let failed = |error: io::Error| match error.kind() {
        io::ErrorKind::NotFound | io::ErrorKind::NotADirectory => ImportError::Missing { path: path.to_path_buf() },
        io::ErrorKind::PermissionDenied => ImportError::Denied { path: path.to_path_buf() },
        _ => ImportError::Io { path: path.to_path_buf(), error },
    };
    // Looked at before it is opened, because opening a device can have effects; and again after it, because a name can
    // change its meaning in between. Without O_NONBLOCK a pipe that nobody writes would be waited for.
    refuse_others(path, &fs::metadata(path).map_err(failed)?)?;
    let nonblocking = rustix::fs::OFlags::NONBLOCK.bits() as i32;
    let file = OpenOptions::new().read(true).custom_flags(nonblocking).open(path).map_err(failed)?;
    let found = file.metadata().map_err(failed)?;
    refuse_others(path, &found)?;
    Ok((file, found.len()))
}

fn refuse_others(path: &Path, found: &fs::Metadata) -> Result<(), ImportError> {
    let kind = found.file_type();
    let kind = match () {
        () if kind.is_file() => return Ok(()),
        () if kind.is_dir() => "a directory",
        () if kind.is_fifo() => "a pipe",
        () if kind.is_socket() => "a socket",
        () => "a device",
    };
    Err(ImportError::NotAFile { path: path.to_path_buf(), kind })
}

fn file_name(path: &Path) -> Result<&str, ImportError> {
    let refuse = |rule| ImportError::Name { path: path.to_path_buf(), rule };
    let name = path.file_name().ok_or_else(|| refuse("it ends with no name"))?;
    let name = name.to_str().ok_or_else(|| refuse("it is not UTF-8"))?;
    if name.chars().any(char::is_control) {
        return Err(refuse("it contains control characters"));
    }
    Ok(name)
}

enum CopyError {
    Read(io::Error),
    Write(io::Error),
}

/// Like `io::copy` for at most `max` bytes, but tells which side failed.
fn copy(from: &mut File, to: &mut File, max: u64) -> Result<u64, CopyError> {
    let mut from = from.take(max);
    let mut buffer = vec![0; 1 << 18];
    let mut copied = 0;
    loop {
        let read = match from.read(&mut buffer) {
            Ok(0) => return Ok(copied),
            Ok(read) => read,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(CopyError::Read(error)),
        };
        io::Write::write_all(to, &buffer[..read]).map_err(CopyError::Write)?;
        copied += read as u64;
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::Temp;
    use super::*;
    use std::os::unix::fs::symlink;

    fn house() -> (Temp, Home, SessionName) {
        let temp = Temp::new();
        let home = Home::open(&temp.0.join("home")).unwrap();
        (temp, home, SessionName::parse("s").unwrap())
    }

    /// What stands in the session's directory besides the workspace.
    fn rest(home: &Home, session: &SessionName) -> Vec<String> {
        let entries = fs::read_dir(home.session_dir(session)).into_iter().flatten();
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).filter(|name| name != "work").collect()
    }

    #[test]
    fn a_file_arrives_whole_and_replaces_the_old_one() {
        let (temp, home, session) = house();
        let source = temp.0.join("rain data.csv");
        fs::write(&source, "a,b\n1,2\n").unwrap();
        let imported = home.import_file(&session, &source, 100).unwrap();
        assert_eq!(imported, ImportedFile { name: "rain data.csv".to_owned(), bytes: 8, replaced: false });
        fs::write(&source, "new").unwrap();
        assert!(home.import_file(&session, &source, 3).unwrap().replaced);
        assert_eq!(fs::read_to_string(home.work_dir(&session).join("rain data.csv")).unwrap(), "new");
        assert_eq!(rest(&home, &session), [""; 0]);
    }

    #[test]
    fn only_regular_files_are_taken() {
        let (temp, home, session) = house();
        let error = |path: &Path| home.import_file(&session, path, 100).unwrap_err().to_string();
        let gone = error(&temp.0.join("gone.csv"));
        assert!(gone.contains("gone.csv does not exist") && gone.contains("--file"), "{gone}");
        assert!(error(&temp.0).contains("is a directory, and --file takes regular files only: give its files"));
        assert!(error(&temp.0.join("..")).contains("is a directory"));
        assert!(error(Path::new("/dev/null")).contains("is a device"));
        #[cfg(target_os = "linux")]
        {
            let pipe = temp.0.join("pipe");
            rustix::fs::mknodat(rustix::fs::CWD, &pipe, rustix::fs::FileType::Fifo, 0o600.into(), 0).unwrap();
            assert!(error(&pipe).contains("is a pipe"));
        }
        let odd = temp.0.join("a\nb");
        fs::write(&odd, "x").unwrap();
        assert!(error(&odd).contains("control characters"));
    }

    #[test]
    fn a_file_over_the_limit_leaves_nothing() {
        let (temp, home, session) = house();
        let source = temp.0.join("big.bin");
        fs::write(&source, vec![7; 2 << 20]).unwrap();
        let error = home.import_file(&session, &source, 1 << 20).unwrap_err();
        assert!(error.to_string().contains("has 2.0 of at most 1 MiB"), "{error}");
        assert!(error.to_string().contains("limits.file_mib"), "{error}");
        // One that says it is empty and is not.
        let grown = home.import_file(&session, Path::new("/proc/self/status"), 10);
        if Path::new("/proc/self/status").exists() {
            assert!(matches!(grown, Err(ImportError::TooLarge { .. })));
        }
        assert_eq!(rest(&home, &session), [""; 0]);
        assert!(!home.work_dir(&session).join("big.bin").exists());
    }

    /// The attack: a guest leaves `report.csv` as a link to a file outside and waits for the user to import one of that name.
    #[test]
    fn a_link_in_the_workspace_is_replaced_and_never_followed() {
        let (temp, home, session) = house();
        home.create_session(&session).unwrap();
        let outside = temp.0.join("outside");
        fs::write(&outside, "precious").unwrap();
        symlink(&outside, home.work_dir(&session).join("report.csv")).unwrap();
        let source = temp.0.join("report.csv");
        fs::write(&source, "data").unwrap();
        home.import_file(&session, &source, 100).unwrap();
        assert_eq!(fs::read_to_string(&outside).unwrap(), "precious");
        assert!(home.work_dir(&session).join("report.csv").symlink_metadata().unwrap().is_file());
    }

    #[test]
    fn a_directory_is_not_replaced() {
        let (temp, home, session) = house();
        let source = temp.0.join("pub");
        fs::write(&source, "x").unwrap();
        let error = home.import_file(&session, &source, 100).unwrap_err();
        assert!(matches!(error, ImportError::Occupied { .. }), "{error}");
        assert_eq!(rest(&home, &session), [""; 0]);
    }

    #[test]
    fn leftovers_of_a_killed_process_go_with_the_next_lock() {
        let (_temp, home, session) = house();
        home.create_session(&session).unwrap();
        fs::write(home.session_dir(&session).join(".new-1-1"), "half").unwrap();
        let _lock = home.lock_session(&session).unwrap();
        assert_eq!(rest(&home, &session), ["lock"]);
    }
}
