//! Copies a user's file or folder into a workspace (`--file`).

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read};
use std::os::unix::fs::{FileTypeExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::workspace::{FileError, FilePath, Incoming, attached_label};
use kiso_base::home::{Home, SessionName};
use kiso_sandbox::skill::LimitHit;
use kiso_sandbox::skill::Quota;

/// Maximum number of files in a folder: as many as a workspace lists.
const MAX_FILES: usize = 20_000;

/// Maximum number of directory levels below `/work`.
const MAX_FOLDERS: usize = 15;

/// A file or folder that was copied into the workspace.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LocalFile {
    /// Its name, which is its path under `/work`.
    pub name: String,
    pub bytes: u64,
    /// Whether an entry of that name existed before.
    pub replaced: bool,
    /// The files in a folder.
    pub folder: Option<LocalFolder>,
}

/// The extent of a copied folder.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LocalFolder {
    pub files: usize,
    /// Links, pipes, sockets and devices, which are not copied.
    pub left_out: usize,
}

/// Why a file was not copied. The workspace is unchanged, except for the earlier files of a folder.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LocalFileError {
    #[error("{} does not exist: check the path given with --file", path.display())]
    Missing { path: PathBuf },
    #[error("{} is {kind}, and --file takes regular files and folders only", path.display())]
    NotAFile { path: PathBuf, kind: &'static str },
    #[error("{} has more than {MAX_FILES} files: give a part of it, or pack it into an archive", path.display())]
    TooMany { path: PathBuf },
    #[error("{} holds kiso's home, whose keys do not belong into a workspace: give another folder", path.display())]
    Home { path: PathBuf },
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
    #[error(
        "{} does not fit, and nothing of it was copied: {hit}; delete files that you no longer need, or raise the limit",
        path.display()
    )]
    Full { path: PathBuf, hit: LimitHit },
    #[error("failed to copy {}: {error}", path.display())]
    Io { path: PathBuf, error: io::Error },
    /// The workspace could not be written (disk full, read-only, …).
    #[error("failed to copy {}: {error}", path.display())]
    Workspace { path: PathBuf, error: FileError },
}

fn mib(bytes: u64) -> String {
    format!("{:.1}", bytes as f64 / f64::from(1 << 20))
}

/// Copies the regular file or the folder `source` into the session's workspace under its own name. A file replaces an entry of
/// the same name; the files of a folder are added to existing ones. The space is charged to `quota`. The caller holds the
/// session's lock.
pub fn copy_in(
    home: &Home,
    session: &SessionName,
    source: &Path,
    max_bytes: u64,
    quota: Arc<Quota>,
) -> Result<LocalFile, LocalFileError> {
    if !fs::metadata(source).is_ok_and(|found| found.is_dir()) {
        let name = file_name(source)?;
        let (bytes, replaced) = copy_file(home, session, source, name, max_bytes, quota)?;
        return Ok(LocalFile { name: name.to_owned(), bytes, replaced, folder: None });
    }
    let io = |error| LocalFileError::Io { path: source.to_path_buf(), error };
    // `.` has a name, too.
    let place = source.canonicalize().map_err(io)?;
    if home.path().canonicalize().is_ok_and(|home| home.starts_with(&place)) {
        return Err(LocalFileError::Home { path: source.to_path_buf() });
    }
    let name = file_name(&place)?;
    let mut found = FolderFiles::default();
    found.add(&place, name, 0)?;
    let replaced = home.open_work(session).is_ok_and(|work| work.symlink_metadata(name).is_ok());
    let mut bytes = 0;
    for (file, path) in &found.files {
        bytes += copy_file(home, session, file, path, max_bytes, quota.clone())?.0;
    }
    let folder = LocalFolder { files: found.files.len(), left_out: found.left_out };
    Ok(LocalFile { name: name.to_owned(), bytes, replaced, folder: Some(folder) })
}

/// The files below a folder, by name, each with its path in the workspace.
#[derive(Debug, Default)]
struct FolderFiles {
    files: Vec<(PathBuf, String)>,
    left_out: usize,
}

impl FolderFiles {
    fn add(&mut self, folder: &Path, path: &str, depth: usize) -> Result<(), LocalFileError> {
        let io = |error| LocalFileError::Io { path: folder.to_path_buf(), error };
        if depth > MAX_FOLDERS {
            return Err(LocalFileError::Name { path: folder.to_path_buf(), rule: "it is in more than 15 folders" });
        }
        let entries = fs::read_dir(folder).map_err(|error| match error.kind() {
            io::ErrorKind::PermissionDenied => LocalFileError::Denied { path: folder.to_path_buf() },
            _ => io(error),
        })?;
        let mut entries = entries.collect::<Result<Vec<_>, _>>().map_err(io)?;
        entries.sort_by_key(fs::DirEntry::file_name);
        for entry in entries {
            let (kind, place) = (entry.file_type().map_err(io)?, entry.path());
            if !kind.is_dir() && !kind.is_file() {
                self.left_out += 1;
                continue;
            }
            let path = format!("{path}/{}", file_name(&place)?);
            if kind.is_dir() {
                self.add(&place, &path, depth + 1)?;
            } else if self.files.len() < MAX_FILES {
                self.files.push((place, path));
            } else {
                return Err(LocalFileError::TooMany { path: folder.to_path_buf() });
            }
        }
        Ok(())
    }
}

/// Copies one file to a path of the workspace; returns its size, and whether an entry existed before.
///
/// The copy is written outside of the workspace and moved in when it is complete. So no task sees half of it, a link that a guest
/// left under that name is replaced and not followed, and a failure leaves nothing.
fn copy_file(
    home: &Home,
    session: &SessionName,
    source: &Path,
    name: &str,
    max_bytes: u64,
    quota: Arc<Quota>,
) -> Result<(u64, bool), LocalFileError> {
    let (mut from, found_bytes) = open_regular(source)?;
    let path = || source.to_path_buf();
    if found_bytes > max_bytes {
        return Err(LocalFileError::TooLarge { path: path(), bytes: found_bytes, max_bytes });
    }
    let failed = |error| match error {
        FileError::Full(hit) => LocalFileError::Full { path: path(), hit },
        FileError::Directory { .. } => LocalFileError::Occupied { path: path(), name: name.to_owned() },
        error => LocalFileError::Workspace { path: path(), error },
    };
    let mut incoming = Incoming::begin_locked(home, session, quota).map_err(failed)?;
    let (mut buffer, mut bytes) = (vec![0; 1 << 18], 0);
    loop {
        let read = match from.read(&mut buffer) {
            Ok(0) => break,
            Ok(read) => read,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(LocalFileError::Io { path: path(), error }),
        };
        // The file may grow while it is read, and files of /proc report a size of zero.
        bytes += read as u64;
        if bytes > max_bytes {
            return Err(LocalFileError::TooLarge { path: path(), bytes, max_bytes });
        }
        incoming.write(&buffer[..read]).map_err(failed)?;
    }
    let replaced = home.open_work(session).is_ok_and(|work| work.symlink_metadata(name).is_ok());
    let at = FilePath::of_name(name);
    incoming.finish(&at, true, attached_label(&at)).map_err(failed)?;
    Ok((bytes, replaced))
}

fn open_regular(path: &Path) -> Result<(File, u64), LocalFileError> {
    let failed = |error: io::Error| match error.kind() {
        io::ErrorKind::NotFound | io::ErrorKind::NotADirectory => LocalFileError::Missing { path: path.to_path_buf() },
        io::ErrorKind::PermissionDenied => LocalFileError::Denied { path: path.to_path_buf() },
        _ => LocalFileError::Io { path: path.to_path_buf(), error },
    };
    // Checked before it is opened, because opening a device can have effects, and again after that, because the name can refer to
    // another file by then. Without O_NONBLOCK, opening a pipe without a writer would block.
    refuse_others(path, &fs::metadata(path).map_err(failed)?)?;
    let nonblocking = rustix::fs::OFlags::NONBLOCK.bits() as i32;
    let file = OpenOptions::new().read(true).custom_flags(nonblocking).open(path).map_err(failed)?;
    let found = file.metadata().map_err(failed)?;
    refuse_others(path, &found)?;
    Ok((file, found.len()))
}

fn refuse_others(path: &Path, found: &fs::Metadata) -> Result<(), LocalFileError> {
    let kind = found.file_type();
    let kind = match () {
        () if kind.is_file() => return Ok(()),
        () if kind.is_dir() => "a directory",
        () if kind.is_fifo() => "a pipe",
        () if kind.is_socket() => "a socket",
        () => "a device",
    };
    Err(LocalFileError::NotAFile { path: path.to_path_buf(), kind })
}

fn file_name(path: &Path) -> Result<&str, LocalFileError> {
    let refuse = |rule| LocalFileError::Name { path: path.to_path_buf(), rule };
    let name = path.file_name().ok_or_else(|| refuse("it ends with no name"))?;
    let name = name.to_str().ok_or_else(|| refuse("it is not UTF-8"))?;
    if name.chars().any(char::is_control) {
        return Err(refuse("it contains control characters"));
    }
    Ok(name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use kiso_base::config::Config;
    use kiso_sandbox::engine::limits::{Budget, HitCell};
    use kiso_sandbox::skill::{Quiet, Skills};
    use kiso_store::store::Store;
    use std::os::unix::fs::symlink;

    struct House {
        dir: tempfile::TempDir,
        home: Home,
        session: SessionName,
        skills: Skills,
    }

    impl House {
        fn new() -> House {
            let dir = tempfile::tempdir().unwrap();
            let home = Home::open(&dir.path().join("home")).unwrap();
            let store = Store::open(&home.store_path()).unwrap();
            let skills = Skills::new(home.clone(), Config::default(), store, Arc::new(Quiet));
            House { dir, home, session: SessionName::parse("s").unwrap(), skills }
        }

        fn copy(&self, source: &Path, max_bytes: u64) -> Result<LocalFile, LocalFileError> {
            let budget = Budget::upload(&Config::default().engine);
            let quota = self.skills.exec_quota(&self.session, &budget, HitCell::default(), None);
            copy_in(&self.home, &self.session, source, max_bytes, quota)
        }

        fn work(&self) -> PathBuf {
            self.home.work_dir(&self.session)
        }

        /// Returns the entries of the session's directory besides the workspace.
        fn rest(&self) -> Vec<String> {
            let entries = fs::read_dir(self.home.session_dir(&self.session)).into_iter().flatten();
            let names = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
            names.filter(|name| name != "work" && name != "labels").collect()
        }
    }

    #[test]
    fn a_file_arrives_whole_and_replaces_the_old_one() {
        let house = House::new();
        let dir = house.dir.path();
        let source = dir.join("rain data.csv");
        fs::write(&source, "a,b\n1,2\n").unwrap();
        let imported = house.copy(&source, 100).unwrap();
        assert_eq!(imported, LocalFile { name: "rain data.csv".to_owned(), bytes: 8, replaced: false, folder: None });
        fs::write(&source, "new").unwrap();
        assert!(house.copy(&source, 3).unwrap().replaced);
        assert_eq!(fs::read_to_string(house.work().join("rain data.csv")).unwrap(), "new");
        assert_eq!(house.rest(), [""; 0]);
    }

    #[test]
    fn only_regular_files_and_folders_are_taken() {
        let house = House::new();
        let dir = house.dir.path();
        let error = |path: &Path| house.copy(path, 100).unwrap_err().to_string();
        let gone = error(&dir.join("gone.csv"));
        assert!(gone.contains("gone.csv does not exist") && gone.contains("--file"), "{gone}");
        assert!(error(dir).contains("holds kiso's home"));
        assert!(error(&dir.join("home/..")).contains("holds kiso's home"));
        assert!(error(Path::new("/dev/null")).contains("is a device"));
        #[cfg(target_os = "linux")]
        {
            let pipe = dir.join("pipe");
            rustix::fs::mknodat(rustix::fs::CWD, &pipe, rustix::fs::FileType::Fifo, 0o600.into(), 0).unwrap();
            assert!(error(&pipe).contains("is a pipe"));
        }
        let odd = dir.join("a\nb");
        fs::write(&odd, "x").unwrap();
        assert!(error(&odd).contains("control characters"));
    }

    #[test]
    fn a_folder_arrives_with_what_is_below_it() {
        let house = House::new();
        let folder = house.dir.path().join("project");
        fs::create_dir_all(folder.join("src/deep")).unwrap();
        for (path, text) in [("a.txt", "1"), (".hidden", "22"), ("src/b c.txt", "333"), ("src/deep/d", "4444")] {
            fs::write(folder.join(path), text).unwrap();
        }
        symlink("/etc/passwd", folder.join("src/link")).unwrap();
        let copied = house.copy(&folder.join("src/.."), 100).unwrap();
        let holds = Some(LocalFolder { files: 4, left_out: 1 });
        assert_eq!(copied, LocalFile { name: "project".to_owned(), bytes: 10, replaced: false, folder: holds });
        let read = |path: &str| fs::read_to_string(house.work().join("project").join(path)).unwrap();
        assert_eq!(
            [read("a.txt"), read(".hidden"), read("src/b c.txt"), read("src/deep/d")],
            ["1", "22", "333", "4444"]
        );
        assert!(house.work().join("project/src/link").symlink_metadata().is_err());
        fs::write(folder.join("a.txt"), "new").unwrap();
        fs::write(house.work().join("project/own"), "stays").unwrap();
        assert!(house.copy(&folder, 100).unwrap().replaced);
        assert_eq!([read("a.txt"), read("own")], ["new", "stays"]);
        fs::write(folder.join("big"), "x".repeat(200)).unwrap();
        assert!(matches!(house.copy(&folder, 100).unwrap_err(), LocalFileError::TooLarge { .. }));
        fs::create_dir_all(folder.join("d/".repeat(16))).unwrap();
        assert!(house.copy(&folder, 1_000).unwrap_err().to_string().contains("more than 15 folders"));
        assert_eq!(house.rest(), [""; 0]);
    }

    #[test]
    fn a_file_over_the_limit_leaves_nothing() {
        let house = House::new();
        let dir = house.dir.path();
        let source = dir.join("big.bin");
        fs::write(&source, vec![7; 2 << 20]).unwrap();
        let error = house.copy(&source, 1 << 20).unwrap_err();
        assert!(error.to_string().contains("has 2.0 of at most 1 MiB"), "{error}");
        assert!(error.to_string().contains("limits.file_mib"), "{error}");
        // A file that reports a size of zero and is not empty.
        let grown = house.copy(Path::new("/proc/self/status"), 10);
        if Path::new("/proc/self/status").exists() {
            assert!(matches!(grown, Err(LocalFileError::TooLarge { .. })));
        }
        assert_eq!(house.rest(), [""; 0]);
        assert!(!house.work().join("big.bin").exists());
    }

    /// The attack: a guest leaves `report.csv` as a link to a file outside and waits for the user to import a file of that name.
    #[test]
    fn a_link_in_the_workspace_is_replaced_and_never_followed() {
        let house = House::new();
        let dir = house.dir.path();
        house.home.create_session(&house.session).unwrap();
        let outside = dir.join("outside");
        fs::write(&outside, "precious").unwrap();
        symlink(&outside, house.work().join("report.csv")).unwrap();
        let source = dir.join("report.csv");
        fs::write(&source, "data").unwrap();
        house.copy(&source, 100).unwrap();
        assert_eq!(fs::read_to_string(&outside).unwrap(), "precious");
        assert!(house.work().join("report.csv").symlink_metadata().unwrap().is_file());
    }

    #[test]
    fn a_directory_is_not_replaced() {
        let house = House::new();
        let dir = house.dir.path();
        let source = dir.join("pub");
        fs::write(&source, "x").unwrap();
        let error = house.copy(&source, 100).unwrap_err();
        assert!(matches!(error, LocalFileError::Occupied { .. }), "{error}");
        assert_eq!(house.rest(), [""; 0]);
    }
}
