//! The home: the directory that holds everything kiso keeps.
//!
//! ```text
//! config.toml           written by hand             key                   32 random bytes, 0600
//! store.db              everything that changes     roles/NAME.md         overrides of the built-in prompts
//! skills/NAME/          an installed skill          grants/NAME.toml      what it was allowed
//! agent-skills/         Agent Skills, seen by tasks as /skills
//! mcp/NAME/             what an MCP server outside the sandbox may write to
//! cache/DIGEST.cwasm    compiled code               sessions/ID/work/     a session's workspace, seen by tasks as /work
//! packages/NAME/        files of a package           jobs/N, calls/N       locked while a run, or a call of a model, is under way
//! skills.lock           what is installed            trusted-keys          publishers whose signatures count
//! kiso.sock             SOUL.md, IDENTITY.md, AGENTS.md: who kiso is, written by hand
//! ```
//!
//! It is created on first use and private to its owner. Any number of processes may open it at once. A [`HomeLock`] protects
//! actions that only one of them may do at a time.
//!
//! Guests may leave anything in `sessions/ID/work`, symbolic links included, so the host accesses that directory through
//! [`Home::open_work`] never by joining paths.

mod agent_skills;
mod credential;
mod error;
mod folder;
mod jobs;
mod lock;
mod name;
mod removal;
mod scratch;
mod server;
mod session;
mod shared;
mod text;
mod tree;

pub use error::HomeError;
pub use folder::{FolderRefusal, MAX_FOLDERS, PROJECT, SHARED, SessionFolder, check_folder_path, default_folder_path};
pub use lock::HomeLock;
pub use name::{NameError, SessionName, SkillName};
pub use removal::{Leftover, MovedSession};
pub use text::{TextError, read_text};

use std::fmt;
use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use ring::rand::{SecureRandom, SystemRandom};
use rustix::fs::Access;

/// Texts by the owner of a home or workspace: who kiso is, how it speaks and which rules it follows.
pub const GUIDANCE: [&str; 3] = ["SOUL.md", "IDENTITY.md", "AGENTS.md"];

/// Files that a home may contain, besides [`FOLDERS`], before it has a key. `lost+found` is at the root of a file system.
const FILES: [&str; 15] = [
    GUIDANCE[0],
    GUIDANCE[1],
    GUIDANCE[2],
    "config.toml",
    "key",
    "store.db",
    "store.db-wal",
    "store.db-shm",
    "install.lock",
    "skills.lock",
    "trusted-keys",
    "daemon.lock",
    "kiso.sock",
    "mcp",
    "lost+found",
];
const FOLDERS: [&str; 7] = ["roles", "skills", "agent-skills", "grants", "cache", "packages", "sessions"];

/// Part of the names of files that `kiso restore` has moved aside.
pub const KEPT: &str = ".before-restore-";

/// Permission bits of everybody but the owner.
const OTHERS: u32 = 0o077;

/// An opened home. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Home(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    /// Absolute and free of links, so it does not depend on the process's current directory.
    root: PathBuf,
    key: HomeKey,
    workspaces: session::KnownWorkspaces,
    spares: scratch::SpareScratches,
}

/// The key of a home. It authenticates compiled code and encrypts secrets in the store.
#[derive(Clone, PartialEq, Eq)]
pub struct HomeKey([u8; 32]);

impl HomeKey {
    pub fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }
}

impl fmt::Debug for HomeKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("HomeKey(…)")
    }
}

impl Home {
    /// Returns the directory to open: the one given with `--home` or `KISO_HOME` if not empty, otherwise `~/.kiso`.
    pub fn locate(given: Option<&Path>) -> Result<PathBuf, HomeError> {
        if let Some(given) = given.filter(|given| !given.as_os_str().is_empty()) {
            return Ok(given.to_path_buf());
        }
        match std::env::home_dir().filter(|dir| !dir.as_os_str().is_empty()) {
            Some(dir) => Ok(dir.join(".kiso")),
            None => Err(HomeError::Unknown),
        }
    }

    /// Opens the home at `path`, and creates whatever is missing, including the directory itself.
    ///
    /// Refuses a path that cannot be a home: a file, a directory of another user, a directory with other files in it, one that
    /// cannot be written, and one whose key is damaged or readable by others.
    pub fn open(path: &Path) -> Result<Home, HomeError> {
        make_root(path)?;
        let root = path.canonicalize().map_err(|error| HomeError::from_io(path, "find", error))?;
        claim(&root)?;
        for folder in FOLDERS {
            private_dir(&root.join(folder))?;
        }
        let key = credential::key_or(&root, read_or_make_key)?;
        Ok(Home(Arc::new(Inner { root, key, workspaces: Default::default(), spares: Default::default() })))
    }

    /// The home's directory, absolute.
    pub fn path(&self) -> &Path {
        &self.0.root
    }

    /// Whether a path contains the home or is inside of it, after resolving links.
    pub fn overlaps(&self, path: &Path) -> bool {
        let path = path.canonicalize().unwrap_or_else(|_| path.to_owned());
        self.path().starts_with(&path) || path.starts_with(self.path())
    }

    pub fn key(&self) -> &HomeKey {
        &self.0.key
    }

    pub fn config_path(&self) -> PathBuf {
        self.path().join("config.toml")
    }

    pub fn store_path(&self) -> PathBuf {
        self.path().join("store.db")
    }

    pub fn socket_path(&self) -> PathBuf {
        self.path().join("kiso.sock")
    }

    pub fn roles_dir(&self) -> PathBuf {
        self.path().join("roles")
    }

    pub fn cache_dir(&self) -> PathBuf {
        self.path().join("cache")
    }

    /// The files that a package's commands see besides the workspace.
    pub fn package_dir(&self, package: &str) -> PathBuf {
        self.path().join("packages").join(package)
    }

    /// Contains one directory per installed skill.
    pub fn skills_dir(&self) -> PathBuf {
        self.path().join("skills")
    }

    pub fn skill_dir(&self, skill: &SkillName) -> PathBuf {
        self.skills_dir().join(skill.as_str())
    }

    pub fn grant_path(&self, skill: &SkillName) -> PathBuf {
        self.path().join("grants").join(format!("{skill}.toml"))
    }

    /// Returns the directory that tasks with directories at these `places` see as `/`. All of them share it, since none can write
    /// to it.
    pub fn exec_root<'a>(&self, places: impl Iterator<Item = &'a str>) -> PathBuf {
        let mut context = ring::digest::Context::new(&ring::digest::SHA256);
        for place in places {
            context.update(place.as_bytes());
            context.update(b"\0");
        }
        let digest = data_encoding::HEXLOWER.encode(&context.finish().as_ref()[..8]);
        self.cache_dir().join(format!("root-{digest}"))
    }

    /// Removes a directory of the home and everything below it, however deeply a guest has nested it.
    pub fn remove_tree(&self, dir: &Path) -> io::Result<()> {
        debug_assert!(dir.starts_with(self.path()), "{} is not in the home", dir.display());
        tree::remove(dir)
    }

    /// Writes a file of the home (0600) atomically: after a crash, it has either the old or the new content.
    pub fn write_atomic(&self, path: &Path, bytes: &[u8]) -> Result<(), HomeError> {
        debug_assert!(path.starts_with(self.path()), "{} is not in the home", path.display());
        place(path, bytes, |temp| fs::rename(temp, path)).map_err(|error| HomeError::from_io(path, "write", error))
    }

    /// Returns an unused name for a temporary file of the home.
    pub fn temp_path(&self) -> PathBuf {
        self.path().join(temp_name())
    }

    /// Removes temporary files of processes that have ended, at the root and in the folders. Their names contain the process id.
    /// Returns the removed files.
    pub fn remove_unfinished(&self) -> Vec<PathBuf> {
        let dirs = FOLDERS.iter().filter(|folder| **folder != "sessions").map(|folder| self.path().join(folder));
        let entries =
            [self.path().to_owned()].into_iter().chain(dirs).filter_map(|dir| fs::read_dir(dir).ok()).flatten();
        let is_left = |name: &str| {
            let maker = name.strip_prefix(TEMP).and_then(|rest| rest.split('-').next()?.parse().ok());
            maker.is_some_and(|maker| !crate::system::is_running(maker))
        };
        let left =
            entries.flatten().filter(|entry| entry.file_name().to_str().is_some_and(is_left)).map(|entry| entry.path());
        let remove = |path: &PathBuf| match path.symlink_metadata() {
            Ok(found) if found.is_dir() => self.remove_tree(path).is_ok(),
            _ => fs::remove_file(path).is_ok(),
        };
        left.filter(remove).collect()
    }

    /// Writes the home's key (0600) to a file outside of the home, replacing an existing one.
    pub fn save_key(&self, path: &Path) -> io::Result<()> {
        place(path, self.key().as_bytes(), |temp| fs::rename(temp, path))
    }

    /// Replaces the home's key. Keeps the old one in a file, and returns its path. This handle still has the old key: open the
    /// home again.
    pub fn replace_key(&self, key: &[u8; 32], now_ms: i64) -> Result<PathBuf, HomeError> {
        let path = self.path().join("key");
        let kept = self.path().join(format!("key{KEPT}{now_ms}"));
        self.write_atomic(&kept, self.key().as_bytes())?;
        self.write_atomic(&path, key)?;
        Ok(kept)
    }

    /// Like [`Home::write_atomic`], but never replaces an existing file, even one that another process creates at this moment.
    /// Returns whether it wrote the file.
    pub fn write_new(&self, path: &Path, bytes: &[u8]) -> Result<bool, HomeError> {
        debug_assert!(path.starts_with(self.path()), "{} is not in the home", path.display());
        place_new(path, bytes).map_err(|error| HomeError::from_io(path, "write", error))
    }

    /// Held while skills are installed, updated or removed. Fails with [`HomeError::Busy`] if another process holds it.
    pub fn lock_install(&self) -> Result<HomeLock, HomeError> {
        lock::take(&self.path().join("install.lock"), "the skills of this home are being changed".to_owned())
    }

    /// Held by the daemon of this home. Fails with [`HomeError::Busy`], which names the process, if there is one.
    pub fn lock_daemon(&self) -> Result<HomeLock, HomeError> {
        lock::take(&self.path().join("daemon.lock"), "another kiso serves this home".to_owned())
    }

    /// Whether the last daemon of this home crashed: the system released its lock, but its pid is still in the file. Also true
    /// while a daemon runs.
    pub fn daemon_died(&self) -> bool {
        fs::metadata(self.path().join("daemon.lock")).is_ok_and(|found| found.len() > 0)
    }

    /// The process that serves this home, if any.
    pub fn daemon(&self) -> Result<Option<u32>, HomeError> {
        lock::holder(&self.path().join("daemon.lock"))
    }

    /// The port that this process listens on, once it does.
    pub fn daemon_port(&self) -> Result<Option<u16>, HomeError> {
        lock::port(&self.path().join("daemon.lock"))
    }

    /// Free bytes on the home's disk, for its owner.
    pub fn free_bytes(&self) -> io::Result<u64> {
        self.disk().map(|disk| disk.free)
    }

    /// The file system of the home.
    pub fn disk(&self) -> io::Result<Disk> {
        let stat = rustix::fs::statvfs(self.path())?;
        let bytes = |blocks: u64| blocks.saturating_mul(stat.f_frsize);
        Ok(Disk { free: bytes(stat.f_bavail), total: bytes(stat.f_blocks) })
    }

    /// Returns a warning if the space that guests must leave free is nearly used up: other programs have filled the disk.
    pub fn shortage(&self, reserve_mib: u64) -> Option<String> {
        let disk = self.disk().ok()?;
        let reserve = disk.reserve(reserve_mib);
        (disk.free < reserve / SHORTAGE).then(|| {
            let (free, reserve) = (kiso_plan::report::size(disk.free), kiso_plan::report::size(reserve));
            format!("only {free} are free where kiso's home is, of the {reserve} that limits.reserve_mib keeps for kiso itself")
        })
    }
}

/// Sizes of a file system, in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Disk {
    /// Free for the owner of the home.
    pub free: u64,
    pub total: u64,
}

impl Disk {
    /// The part that guests leave free for kiso itself: `limits.reserve_mib`, at most a sixteenth of the disk.
    pub fn reserve(self, reserve_mib: u64) -> u64 {
        (reserve_mib << 20).min(self.total / 16)
    }
}

/// If less than this fraction of the reserve is free, kiso itself may soon be unable to write.
const SHORTAGE: u64 = 4;

/// With less free space than this, writes may fail.
pub const LOW_DISK: u64 = 256 << 20;

/// Creates the directory. Missing parents get the default permissions; the home itself is private.
fn make_root(path: &Path) -> Result<(), HomeError> {
    match fs::metadata(path) {
        Ok(found) if !found.is_dir() => return Err(HomeError::NotADirectory { path: path.to_path_buf() }),
        Ok(_) => return Ok(()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        Err(error) => return Err(HomeError::from_io(path, "open", error)),
    }
    if let Some(parent) = path.parent().filter(|parent| !parent.as_os_str().is_empty()) {
        fs::create_dir_all(parent).map_err(|error| HomeError::from_io(path, "create", error))?;
    }
    private_dir(path)
}

/// Checks that an existing directory can be used as a home, and makes it private.
fn claim(root: &Path) -> Result<(), HomeError> {
    let found = fs::metadata(root).map_err(|error| HomeError::from_io(root, "open", error))?;
    let me = rustix::process::geteuid().as_raw();
    if found.uid() != me {
        return Err(HomeError::Foreign { path: root.to_path_buf(), owner: found.uid(), me });
    }
    rustix::fs::access(root, Access::WRITE_OK | Access::EXEC_OK)
        .map_err(|error| HomeError::from_io(root, "write", error.into()))?;
    // Without a key, a home is recognized by its store: the owner may have moved a damaged key away.
    let is_home = ["key", credential::MARK].iter().any(|name| root.join(name).exists())
        || root.join("store.db").is_file() && root.join("sessions").is_dir();
    if !is_home {
        // A typing error in `--home` must not turn somebody's documents into a home and change their permissions.
        let entries = fs::read_dir(root).map_err(|error| HomeError::from_io(root, "read", error))?;
        for entry in entries {
            let name = entry.map_err(|error| HomeError::from_io(root, "read", error))?.file_name();
            let known = name.to_str().is_some_and(|name| {
                FILES.contains(&name) || FOLDERS.contains(&name) || name.starts_with(TEMP) || name.contains(KEPT)
            });
            if !known {
                return Err(HomeError::NotAHome {
                    path: root.to_path_buf(),
                    entry: name.to_string_lossy().into_owned(),
                });
            }
        }
    }
    if found.permissions().mode() & OTHERS != 0 {
        fs::set_permissions(root, fs::Permissions::from_mode(0o700))
            .map_err(|error| HomeError::from_io(root, "close to other users", error))?;
    }
    Ok(())
}

/// Creates a directory with mode 0700 if it is missing. Its parent must exist.
fn private_dir(path: &Path) -> Result<(), HomeError> {
    make_private_dir(path).map(drop)
}

/// Like [`private_dir`]; returns whether it created the directory.
fn make_private_dir(path: &Path) -> Result<bool, HomeError> {
    // Most exist already, and an attempt to create one would lock its parent.
    if path.is_dir() {
        return Ok(false);
    }
    match DirBuilder::new().mode(0o700).create(path) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists && path.is_dir() => Ok(false),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
            Err(HomeError::NotADirectory { path: path.to_path_buf() })
        }
        Err(error) => Err(HomeError::from_io(path, "create", error)),
        Ok(()) => Ok(true),
    }
}

/// Whether it is an empty directory.
fn is_empty_dir(path: &Path) -> bool {
    path.symlink_metadata().is_ok_and(|found| found.is_dir())
        && fs::read_dir(path).is_ok_and(|mut entries| entries.next().is_none())
}

fn read_or_make_key(path: &Path) -> Result<HomeKey, HomeError> {
    let failed = |doing, error| HomeError::from_io(path, doing, error);
    let mut file = match open_file(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            let mut key = [0; 32];
            SystemRandom::new()
                .fill(&mut key)
                .map_err(|_| failed("make", io::Error::other("the system provides no random numbers")))?;
            // If two processes get here at once, one wins, and both read its key.
            place_new(path, &key).map_err(|error| failed("write", error))?;
            open_file(path)
        }
        opened => opened,
    }
    .map_err(|error| failed("open", error))?;
    let found = file.metadata().map_err(|error| failed("open", error))?;
    let mode = found.permissions().mode();
    if found.uid() != rustix::process::geteuid().as_raw() || mode & OTHERS != 0 {
        return Err(HomeError::KeyOpen { path: path.to_path_buf(), mode: mode & 0o777 });
    }
    let mut key = [0; 32];
    if !found.is_file() || found.len() != key.len() as u64 {
        return Err(HomeError::KeyDamaged { path: path.to_path_buf(), bytes: found.len() });
    }
    file.read_exact(&mut key).map_err(|error| failed("read", error))?;
    Ok(HomeKey(key))
}

/// Opens a regular file for reading. Anything else is an error: opening a named pipe would block, and a device has no end.
pub fn open_file(path: &Path) -> io::Result<File> {
    let file =
        OpenOptions::new().read(true).custom_flags(rustix::fs::OFlags::NONBLOCK.bits().cast_signed()).open(path)?;
    if file.metadata()?.is_file() { Ok(file) } else { Err(io::Error::other("it is not a file")) }
}

/// The prefix of temporary files.
const TEMP: &str = ".new-";

/// Returns a name for a temporary file. Other processes have other pids, and `create_new` detects the remaining conflicts.
pub fn temp_name() -> String {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    format!("{TEMP}{}-{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed))
}

fn place_new(path: &Path, bytes: &[u8]) -> io::Result<bool> {
    let mut wrote = true;
    place(path, bytes, |temp| {
        // Unlike a rename, a hard link never replaces.
        match fs::hard_link(temp, path) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => wrote = false,
            linked => linked?,
        }
        fs::remove_file(temp)
    })?;
    Ok(wrote)
}

/// Writes a temporary file beside `path`, calls `put` to move it there, and syncs both to disk. Leaves nothing behind on failure.
fn place(path: &Path, bytes: &[u8], put: impl FnOnce(&Path) -> io::Result<()>) -> io::Result<()> {
    let dir = path.parent().ok_or(io::ErrorKind::InvalidInput)?;
    let (temp, mut file) = loop {
        let temp = dir.join(temp_name());
        match OpenOptions::new().write(true).create_new(true).mode(0o600).open(&temp) {
            // Left by a killed process with the same pid.
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            opened => break (temp, opened?),
        }
    };
    let done = file.write_all(bytes).and_then(|()| file.sync_all()).and_then(|()| put(&temp));
    if done.is_err() {
        let _ = fs::remove_file(&temp);
    }
    done?;
    File::open(dir)?.sync_all()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A directory that is removed when the test ends.
    pub(super) struct Temp(pub PathBuf);

    impl Temp {
        pub(super) fn new() -> Temp {
            let path = std::env::temp_dir().join(format!("kiso-home{}", temp_name()));
            fs::create_dir(&path).unwrap();
            Temp(path)
        }
    }

    impl Drop for Temp {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.0);
        }
    }

    fn mode(path: &Path) -> u32 {
        fs::metadata(path).unwrap().permissions().mode() & 0o777
    }

    #[test]
    fn a_fresh_home_is_private_and_opens_again_with_the_same_key() {
        let temp = Temp::new();
        let path = temp.0.join("deep/er/home");
        let home = Home::open(&path).unwrap();
        assert_eq!(mode(&path), 0o700);
        assert_eq!(mode(&path.join("key")), 0o600);
        assert_eq!(mode(&path.join("sessions")), 0o700);
        assert_ne!(home.key().as_bytes(), &[0; 32]);
        assert_eq!(Home::open(&path).unwrap().key(), home.key());
        assert_eq!(format!("{:?}", home.key()), "HomeKey(…)");
    }

    #[test]
    fn homes_opened_at_once_agree_on_the_key_and_leave_no_temporary_files() {
        let temp = Temp::new();
        let path = temp.0.join("home");
        let keys: Vec<HomeKey> = std::thread::scope(|scope| {
            let threads: Vec<_> = (0..8).map(|_| scope.spawn(|| Home::open(&path).unwrap().key().clone())).collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).collect()
        });
        assert!(keys.windows(2).all(|pair| pair[0] == pair[1]));
        let mut names: Vec<_> = fs::read_dir(&path).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        names.sort();
        assert_eq!(names, ["agent-skills", "cache", "grants", "key", "packages", "roles", "sessions", "skills"]);
    }

    #[test]
    fn refuses_what_is_no_home() {
        let temp = Temp::new();
        let file = temp.0.join("file");
        fs::write(&file, "x").unwrap();
        assert!(matches!(Home::open(&file), Err(HomeError::NotADirectory { .. })));
        assert!(matches!(Home::open(&file.join("below")), Err(HomeError::NotADirectory { .. })));

        let documents = temp.0.join("documents");
        fs::create_dir(&documents).unwrap();
        fs::write(documents.join("letter.txt"), "Dear").unwrap();
        fs::set_permissions(&documents, fs::Permissions::from_mode(0o755)).unwrap();
        let error = Home::open(&documents).unwrap_err();
        assert!(error.to_string().contains("letter.txt") && error.to_string().contains("--home"), "{error}");
        assert_eq!(mode(&documents), 0o755);
    }

    #[test]
    fn an_empty_directory_made_by_hand_becomes_private() {
        let temp = Temp::new();
        fs::set_permissions(&temp.0, fs::Permissions::from_mode(0o755)).unwrap();
        Home::open(&temp.0).unwrap();
        assert_eq!(mode(&temp.0), 0o700);
        // In an existing home, unknown files are ignored.
        fs::write(temp.0.join("notes.txt"), "x").unwrap();
        Home::open(&temp.0).unwrap();
    }

    #[test]
    fn a_directory_of_another_user_is_refused() {
        let temp = Temp::new();
        if std::os::unix::fs::chown(&temp.0, Some(12345), None).is_err() {
            return; // only root can give a directory away
        }
        let error = Home::open(&temp.0).unwrap_err();
        assert!(matches!(error, HomeError::Foreign { owner: 12345, .. }), "{error}");
    }

    #[test]
    fn a_key_that_is_damaged_or_open_to_others_is_refused() {
        let temp = Temp::new();
        Home::open(&temp.0).unwrap();
        let key = temp.0.join("key");
        fs::set_permissions(&key, fs::Permissions::from_mode(0o640)).unwrap();
        let error = Home::open(&temp.0).unwrap_err();
        assert!(error.to_string().contains("chmod 600"), "{error}");
        fs::set_permissions(&key, fs::Permissions::from_mode(0o600)).unwrap();
        fs::write(&key, "short").unwrap();
        let error = Home::open(&temp.0).unwrap_err();
        assert!(matches!(error, HomeError::KeyDamaged { bytes: 5, .. }), "{error}");
    }

    /// The error about a damaged key says to move it away. The directory must still be accepted as a home afterwards.
    #[test]
    fn a_home_whose_key_was_moved_away_is_one_whatever_else_is_in_it() {
        let temp = Temp::new();
        let path = temp.0.join("home");
        let old = Home::open(&path).unwrap().key().clone();
        fs::write(path.join("store.db"), "SQLite").unwrap();
        fs::create_dir_all(path.join("jobs/7")).unwrap();
        fs::write(path.join("key"), "short").unwrap();
        let error = Home::open(&path).unwrap_err().to_string();
        assert!(error.contains("put the right one back") && error.contains("move it away"), "{error}");
        fs::rename(path.join("key"), path.join("key.damaged")).unwrap();
        assert_ne!(*Home::open(&path).unwrap().key(), old, "it has a new one");
    }

    #[test]
    fn a_named_pipe_in_the_place_of_a_file_is_not_waited_for() {
        let temp = Temp::new();
        let home = Home::open(&temp.0.join("home")).unwrap();
        for path in [home.config_path(), home.path().join("key")] {
            let _ = fs::remove_file(&path);
            let status = std::process::Command::new("mkfifo").arg(&path).status().unwrap();
            assert!(status.success());
            assert!(open_file(&path).unwrap_err().to_string().contains("not a file"));
        }
        assert!(Home::open(home.path()).unwrap_err().to_string().contains("not a file"));
    }

    #[test]
    fn what_killed_processes_left_half_done_is_removed() {
        let temp = Temp::new();
        let home = Home::open(&temp.0.join("home")).unwrap();
        let mut gone = std::process::Command::new("true").spawn().unwrap();
        let pid = gone.id();
        gone.wait().unwrap();
        let left = [format!("{TEMP}{pid}-0"), format!("{TEMP}{pid}-0-wal"), format!("grants/{TEMP}{pid}-3")];
        let kept = [temp_name(), format!("{TEMP}notes"), "cache/x".to_owned()];
        for name in left.iter().chain(&kept) {
            fs::write(home.path().join(name), "x").unwrap();
        }
        fs::create_dir(home.path().join(format!("{TEMP}{pid}-9"))).unwrap();
        assert_eq!(home.remove_unfinished().len(), 4);
        assert!(left.iter().all(|name| !home.path().join(name).exists()));
        assert!(
            kept.iter().all(|name| home.path().join(name).exists()),
            "somebody is at work on it, or it is another kind of file"
        );
        assert!(home.remove_unfinished().is_empty());
    }

    #[test]
    fn what_the_system_refuses_is_told_with_the_way_out() {
        let text = |kind: io::ErrorKind| HomeError::from_io(Path::new("/h"), "write", kind.into()).to_string();
        let read_only = text(io::ErrorKind::ReadOnlyFilesystem);
        assert!(read_only.contains("/h cannot be written") && read_only.contains("--home or KISO_HOME"), "{read_only}");
        assert!(text(io::ErrorKind::StorageFull).contains("the disk is full"));
        assert!(text(io::ErrorKind::QuotaExceeded).contains("the disk is full"));
        assert!(text(io::ErrorKind::PermissionDenied).contains("permission denied"));
        assert_eq!(Home::locate(Some(Path::new("/x"))).unwrap(), Path::new("/x"));
    }

    #[test]
    fn a_file_is_replaced_whole_and_made_once() {
        let temp = Temp::new();
        let home = Home::open(&temp.0.join("home")).unwrap();
        let path = home.config_path();
        assert!(home.write_new(&path, b"one").unwrap());
        assert!(!home.write_new(&path, b"two").unwrap());
        assert_eq!(fs::read(&path).unwrap(), b"one");
        home.write_atomic(&path, b"three").unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"three");
        assert_eq!(mode(&path), 0o600);
        // A directory is in the way: the error leaves no temporary file behind.
        fs::create_dir(home.store_path()).unwrap();
        assert!(home.write_atomic(&home.store_path(), b"x").is_err());
        assert!(
            !fs::read_dir(home.path())
                .unwrap()
                .any(|entry| { entry.unwrap().file_name().to_string_lossy().starts_with(TEMP) })
        );
    }

    #[test]
    fn locks_exclude_and_name_the_holder() {
        let temp = Temp::new();
        let home = Home::open(&temp.0.join("home")).unwrap();
        let (one, two) = (SessionName::parse("one").unwrap(), SessionName::parse("two").unwrap());
        let lock = home.lock_session(&one).unwrap();
        let _other = home.lock_session(&two).unwrap();
        let error = home.lock_session(&one).unwrap_err();
        assert!(matches!(error, HomeError::Busy { pid: Some(pid), .. } if pid == std::process::id()), "{error}");
        assert!(error.to_string().contains("session one is in use"), "{error}");
        drop(lock);
        drop(home.lock_session(&one).unwrap());
        let _install = home.lock_install().unwrap();
        assert!(home.lock_install().is_err());
    }
}
