//! The folders of this machine that a session has open. Tasks see each at its own path, and change only a copy of its contents.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use serde::{Deserialize, Serialize};

use super::{Home, HomeError, SessionName};

/// The default path of the first folder for tasks.
pub const PROJECT: &str = "/project";

/// The path of the files that all sessions share, for tasks.
pub const SHARED: &str = "/shared";

/// Maximum open folders of a session.
pub const MAX_FOLDERS: usize = 8;

/// A folder that a session has open.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SessionFolder {
    /// Its path for tasks, such as `/project`.
    pub at: String,
    /// Its path on this machine, without links.
    pub path: PathBuf,
    /// Whether tasks can change it, in the session's own copy. Otherwise it is read-only.
    pub write: bool,
    /// Whether tasks can read files with credentials, such as `.env`. Otherwise they only see their names.
    #[serde(default)]
    pub secrets: bool,
    /// The name of its entry in `[folders]`, if it was opened through one. Users who are not administrators see only such
    /// folders.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub entry: Option<String>,
    /// Whether it only receives files: no run sees it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub deliveries: bool,
    /// Milliseconds since 1970.
    pub opened_ms: u64,
}

/// Why a folder cannot be opened.
#[derive(Debug, thiserror::Error)]
pub enum FolderRefusal {
    #[error("{} is not a directory", .0.display())]
    Missing(PathBuf),
    #[error("{} cannot be opened as a folder: {why}", path.display())]
    Protected { path: PathBuf, why: &'static str },
    /// It can be opened with a confirmation.
    #[error("{} {why}; to open it anyway, add --force", path.display())]
    Sensitive { path: PathBuf, why: &'static str },
    #[error("{at} cannot be the path of a folder: {why}")]
    Path { at: String, why: &'static str },
    #[error("[folders] in config.toml lists no folder {0:?} that you may open")]
    Unlisted(String),
    #[error("the folder {0} is for reading only")]
    ReadOnly(String),
    #[error("a session can have {MAX_FOLDERS} folders open; close one with `kiso diff --close`")]
    TooMany,
    #[error(transparent)]
    Home(#[from] HomeError),
}

impl FolderRefusal {
    /// Returns the reason alone, for places where it is confirmed without a command-line option.
    pub fn without_advice(&self) -> String {
        match self {
            Self::Sensitive { path, why } => format!("{} {why}", path.display()),
            other => other.to_string(),
        }
    }
}

/// Paths that kiso uses itself, with everything below them.
const OWN: [&str; 11] =
    ["/deliveries", "/work", "/tmp", "/skills", "/shared", "/dev", "/bin", "/usr", "/etc", "/proc", "/sys"];

/// Directories below the home directory that contain keys or a browser's data.
const SENSITIVE: [&str; 13] = [
    ".ssh",
    ".gnupg",
    ".aws",
    ".kube",
    ".docker",
    ".password-store",
    ".mozilla",
    ".config/google-chrome",
    ".config/chromium",
    ".local/share/keyrings",
    "Library/Keychains",
    "Library/Application Support/Google/Chrome",
    "Library/Application Support/Firefox",
];

/// Maximum bytes of a folder's path for tasks.
const MAX_AT: usize = 200;

impl SessionFolder {
    /// Checks a directory of this machine and returns it as a folder. `is_confirmed` allows the home directory and others that
    /// contain keys, but never `/` or kiso's home.
    pub fn new(home: &Home, path: &Path, at: &str, is_confirmed: bool) -> Result<Self, FolderRefusal> {
        let real = path.canonicalize().ok().filter(|real| real.is_dir());
        let path = real.ok_or_else(|| FolderRefusal::Missing(path.to_owned()))?;
        if path == Path::new("/") {
            return Err(FolderRefusal::Protected { path, why: "it is the whole machine" });
        }
        if home.overlaps(&path) {
            return Err(FolderRefusal::Protected { path, why: "it holds kiso's own home, or is in it" });
        }
        if let Some(why) = sensitive(&path).filter(|_| !is_confirmed) {
            return Err(FolderRefusal::Sensitive { path, why });
        }
        check_folder_path(at)?;
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let opened_ms = u64::try_from(now.as_millis()).unwrap_or(u64::MAX);
        Ok(Self { at: at.to_owned(), path, write: true, secrets: false, entry: None, deliveries: false, opened_ms })
    }
}

/// Returns why a directory needs a confirmation, if it does.
fn sensitive(path: &Path) -> Option<&'static str> {
    let user = std::env::var_os("HOME").map(PathBuf::from).and_then(|user| user.canonicalize().ok());
    if user.as_deref().is_some_and(|user| user.starts_with(path)) {
        return Some("is your home directory, or contains it");
    }
    let is_below = |dir: &&str| {
        let names: Vec<_> = Path::new(dir).iter().collect();
        path.iter().collect::<Vec<_>>().windows(names.len()).any(|part| part == names.as_slice())
    };
    SENSITIVE.iter().any(is_below).then_some("holds keys, or the data of a browser")
}

/// Returns the default path of the folder of this number, counted from 0: the first is the project, others keep their own names.
pub fn default_folder_path(number: usize, dir: &Path) -> String {
    let name = dir.canonicalize().ok().and_then(|dir| Some(dir.file_name()?.to_str()?.to_owned()));
    match name.map(|name| format!("/{name}")).filter(|at| number > 0 && check_folder_path(at).is_ok()) {
        Some(at) => at,
        None if number > 0 => format!("{PROJECT}{}", number + 1),
        None => PROJECT.to_owned(),
    }
}

/// Checks whether a folder may have this path for tasks.
pub fn check_folder_path(at: &str) -> Result<(), FolderRefusal> {
    let refused = |why| Err(FolderRefusal::Path { at: at.to_owned(), why });
    let Some(below) = at.strip_prefix('/').filter(|below| !below.is_empty()) else {
        return refused("it must begin with a slash and have a name");
    };
    let is_name = |name: &str| !matches!(name, "" | "." | "..") && !name.contains(['\0', '\\', '\n']);
    if at.len() > MAX_AT || !below.split('/').all(is_name) {
        return refused("use plain names with a slash between them");
    }
    let is_own = |own: &str| at.strip_prefix(own).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'));
    match OWN.iter().any(|own| is_own(own)) {
        true => refused("kiso uses this path itself"),
        false => Ok(()),
    }
}

impl Home {
    /// Returns the open folders of a session, in the order in which they were opened.
    pub fn folders(&self, session: &SessionName) -> Result<Vec<SessionFolder>, HomeError> {
        let path = self.folders_path(session);
        let read = match fs::read(&path) {
            Ok(bytes) => serde_json::from_slice(&bytes).map_err(io::Error::from),
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(error) => Err(error),
        };
        read.map_err(|error| HomeError::from_io(&path, "read", error))
    }

    /// Opens a folder in a session, replacing one with the same path for tasks. It takes effect with the next command line.
    pub fn open_folder(&self, session: &SessionName, folder: SessionFolder) -> Result<(), FolderRefusal> {
        let mut folders = self.folders(session)?;
        let overlaps = |other: &SessionFolder| {
            other.at != folder.at && (below(&other.at, &folder.at) || below(&folder.at, &other.at))
        };
        if folders.iter().any(overlaps) {
            return Err(FolderRefusal::Path { at: folder.at, why: "another folder is open above or below it" });
        }
        let is_full = folders.len() >= MAX_FOLDERS;
        match folders.iter_mut().find(|other| other.at == folder.at) {
            // Users would see what an administrator's runs have written there.
            Some(other) if other.path == folder.path && other.entry.is_none() && folder.entry.is_some() => {
                let why = "an administrator has opened this folder in the session already";
                return Err(FolderRefusal::Path { at: folder.at, why });
            }
            Some(other) if other.path == folder.path => {
                // Files with credentials that are visible to administrators stay hidden from users.
                let secrets = folder.secrets || (other.secrets && folder.entry.is_none());
                (other.write, other.secrets, other.entry) = (folder.write, secrets, folder.entry);
            }
            Some(_) if self.has_changes(session, &folder.at) => {
                let why =
                    "another folder is open there, and has changes; accept or discard them first with `kiso diff`";
                return Err(FolderRefusal::Path { at: folder.at, why });
            }
            Some(other) => *other = folder,
            None if is_full => return Err(FolderRefusal::TooMany),
            None => folders.push(folder),
        }
        self.create_session(session)?;
        Ok(self.write_folders(session, &folders)?)
    }

    /// Closes a folder. The caller handles its pending changes.
    pub fn close_folder(&self, session: &SessionName, at: &str) -> Result<(), HomeError> {
        let mut folders = self.folders(session)?;
        folders.retain(|folder| folder.at != at);
        self.write_folders(session, &folders)?;
        let dir = self.folder_dir(session, at);
        match self.remove_tree(&dir) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(HomeError::from_io(&dir, "remove", error)),
            _ => Ok(()),
        }
    }

    /// The directory of a session that holds the changes to a folder.
    pub fn folder_dir(&self, session: &SessionName, at: &str) -> PathBuf {
        match at {
            // No change is pending here after a task has ended; undo uses the accepted changes.
            SHARED => self.session_dir(session).join("shared"),
            _ => self.session_dir(session).join("folders").join(folder_key(at)),
        }
    }

    fn has_changes(&self, session: &SessionName, at: &str) -> bool {
        let upper = self.folder_dir(session, at).join("upper");
        fs::read_dir(upper).is_ok_and(|mut entries| entries.next().is_some())
    }

    fn write_folders(&self, session: &SessionName, folders: &[SessionFolder]) -> Result<(), HomeError> {
        let path = self.folders_path(session);
        let text = serde_json::to_vec(folders).map_err(|error| HomeError::from_io(&path, "write", error.into()))?;
        self.write_atomic(&path, &text)
    }

    /// Outside of the workspace, where tasks cannot write.
    fn folders_path(&self, session: &SessionName) -> PathBuf {
        self.session_dir(session).join("folders.json")
    }
}

fn below(at: &str, other: &str) -> bool {
    at.strip_prefix(other).is_some_and(|rest| rest.starts_with('/'))
}

/// Encodes a folder's path as a file name.
fn folder_key(at: &str) -> String {
    at.trim_start_matches('/').replace('%', "%25").replace('/', "%2F")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_that_are_kisos_own_are_refused() {
        for (at, is_allowed) in [
            ("/project", true),
            ("/app", true),
            ("/srv/data", true),
            ("/workshop", true),
            ("/work", false),
            ("/work/x", false),
            ("/tmp", false),
            ("/usr/lib", false),
            ("/", false),
            ("app", false),
            ("/a//b", false),
            ("/a/../b", false),
        ] {
            assert_eq!(check_folder_path(at).is_ok(), is_allowed, "{at}");
        }
    }

    #[test]
    fn a_folder_is_opened_once_and_stays_until_it_is_closed() {
        let temp = tempfile::tempdir().unwrap();
        let home = Home::open(&temp.path().join("home")).unwrap();
        let session = SessionName::parse("s").unwrap();
        let (a, b) = (temp.path().join("a"), temp.path().join("b"));
        fs::create_dir(&a).unwrap();
        fs::create_dir(&b).unwrap();
        assert!(home.folders(&session).unwrap().is_empty());
        home.open_folder(&session, SessionFolder::new(&home, &a, PROJECT, false).unwrap()).unwrap();
        home.open_folder(&session, SessionFolder::new(&home, &a, PROJECT, false).unwrap()).unwrap();
        home.open_folder(&session, SessionFolder::new(&home, &b, "/app", false).unwrap()).unwrap();
        let below = home.open_folder(&session, SessionFolder::new(&home, &b, "/app/x", false).unwrap());
        assert!(below.unwrap_err().to_string().contains("above or below"));
        fs::create_dir_all(home.folder_dir(&session, PROJECT).join("upper/x")).unwrap();
        let other = home.open_folder(&session, SessionFolder::new(&home, &b, PROJECT, false).unwrap());
        assert!(other.unwrap_err().to_string().contains("has changes"));
        let at: Vec<_> = home.folders(&session).unwrap().into_iter().map(|folder| folder.at).collect();
        assert_eq!(at, [PROJECT, "/app"]);
        home.close_folder(&session, PROJECT).unwrap();
        assert_eq!(home.folders(&session).unwrap().len(), 1);
        assert!(!home.folder_dir(&session, PROJECT).exists());
    }

    #[test]
    fn the_home_and_directories_of_keys_are_protected() {
        let temp = tempfile::tempdir().unwrap();
        let home = Home::open(&temp.path().join("home")).unwrap();
        let keys = temp.path().join("x/.ssh/old");
        fs::create_dir_all(&keys).unwrap();
        let refused = |path: &Path, force| SessionFolder::new(&home, path, PROJECT, force).unwrap_err().to_string();
        assert!(refused(temp.path(), true).contains("kiso's own home"));
        assert!(refused(Path::new("/"), true).contains("the whole machine"));
        assert!(refused(&temp.path().join("none"), true).contains("is not a directory"));
        assert!(refused(&keys, false).contains("--force"));
        assert!(SessionFolder::new(&home, &keys, PROJECT, true).is_ok());
    }
}
