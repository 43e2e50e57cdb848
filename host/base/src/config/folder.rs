//! `[folders]`: folders of this machine that can be opened by name, also from the page.

use super::Config;
use super::fields::{NAME_RULE, TableFields, is_name};
use super::key::{Effect, Kind, NamedTable, ValueError, keys};
use crate::home::{FolderRefusal, Home, HomeError, PROJECT, SessionFolder, SessionName, check_folder_path};
use kiso_plan::plan::CallerScope;
use serde::{Serialize, Serializer};
use std::borrow::Cow;
use std::path::{Path, PathBuf};
use toml::Spanned;
use toml::de::DeValue;

/// A folder of this machine that can be opened by name.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct FolderSettings {
    pub name: String,
    /// Its path on this machine.
    pub path: PathBuf,
    /// Whether only an administrator may open it, and only an administrator's runs see it.
    #[serde(rename = "role", serialize_with = "role")]
    pub admin_only: bool,
    /// Whether tasks can change the session's copy of it, and a person can accept the changes.
    #[serde(rename = "mode", serialize_with = "mode")]
    pub write: bool,
    /// Whether it may be the home directory, or contain keys.
    pub force: bool,
}

/// The word in `config.toml`.
fn role<S: Serializer>(admin_only: &bool, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(if *admin_only { "admin" } else { "user" })
}

/// The word in `config.toml`.
fn mode<S: Serializer>(write: &bool, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(if *write { "write" } else { "read" })
}

/// How the commented file of a fresh home shows folders.
const EXAMPLE: &str = "
# Folders that can be opened in a conversation from the page, or by name. They change only when somebody accepts the difference.
# [folders.photos]
# path = \"~/Pictures\"
# role = \"user\"
# mode = \"read\"
";

/// The keys and the documentation of these tables.
#[rustfmt::skip]
pub(super) const TABLE: NamedTable = NamedTable {
    name: "folders",
    heading: "[folders.NAME]",
    doc: "Folders that can be opened in a session from the page, or by name; see docs/folders.md. They change only when somebody accepts the difference. A name has up to 32 letters, digits, - or _.",
    example: EXAMPLE,
    after: "exec",
    effect: Effect::NextRun,
    id: "name",
    keys: &keys(Effect::NextRun, [
        ("path", Kind::Path, "Folder on this machine; `~/` is your home directory."),
        ("role", Kind::Word("admin", &["admin", "user"]), "Who can open it, and whose runs see it: administrators, or everyone."),
        ("mode", Kind::Word("write", &["write", "read"]), "Whether tasks can change the session's copy of it, or only read it."),
        ("force", Kind::Bool(false), "Whether it may be your home directory, or a directory that holds keys."),
    ]),
};

/// Folders that are open for deliveries have paths below this one.
const DELIVERIES: &str = "/deliveries";

/// Characters of an unknown name that a message repeats at most.
const MAX_SHOWN: usize = 64;

/// The rule for the path of a folder, for messages.
const PATH_RULE: &str = "must be an absolute path of this machine, or begin with ~/";

/// Reads one table.
pub(super) fn read<'a>(
    name: &'a Spanned<Cow<'a, str>>,
    value: &'a Spanned<DeValue<'a>>,
) -> Result<FolderSettings, Vec<ValueError>> {
    let known = name.get_ref().as_ref();
    if !is_name(known) {
        return Err(vec![(name.span(), format!("[folders.{known:?}]: a folder's name has {NAME_RULE}"))]);
    }
    // If another folder is open, its path is made of its name.
    if let Err(refusal) = check_folder_path(&format!("/{known}")) {
        return Err(vec![(name.span(), format!("[folders.{known}]: choose another name: {refusal}"))]);
    }
    let mut fields = TableFields::new(&TABLE, format!("folders.{known}"), name.span(), value)?;
    let path = fields.checked("path", absolute);
    if !fields.has("path") {
        fields.missing("path", PATH_RULE);
    }
    let admin_only = fields.one_of("role", &[("admin", true), ("user", false)]).unwrap_or(true);
    let write = fields.one_of("mode", &[("write", true), ("read", false)]).unwrap_or(true);
    let force = fields.bool("force");
    fields.finish(|_| None)?;
    let Some(path) = path else { return Err(Vec::new()) };
    Ok(FolderSettings { name: known.to_owned(), path, admin_only, write, force })
}

fn absolute(path: &str) -> Result<PathBuf, &'static str> {
    let user = || std::env::var_os("HOME").map(PathBuf::from).filter(|user| user.is_absolute());
    match path.strip_prefix('~') {
        Some(below) if below.is_empty() || below.starts_with('/') => {
            let user = user().ok_or("begins with ~/, but HOME is not set; write the whole path")?;
            Ok(user.join(below.trim_start_matches('/')))
        }
        _ if Path::new(path).is_absolute() => Ok(PathBuf::from(path)),
        _ => Err(PATH_RULE),
    }
}

impl FolderSettings {
    pub fn is_open_to(&self, caller: CallerScope) -> bool {
        !self.admin_only || caller == CallerScope::Admin
    }

    /// Whether its path leads to `path`, which must be a real path without links.
    pub fn leads_to(&self, path: &Path) -> bool {
        self.path.canonicalize().is_ok_and(|real| real == path)
    }
}

impl Config {
    /// Returns the folder of this name, if the caller may open it.
    pub fn folder_for(&self, caller: CallerScope, name: &str) -> Option<&FolderSettings> {
        self.folders.iter().find(|folder| folder.name == name && folder.is_open_to(caller))
    }

    /// Opens a folder of `[folders]` in a session, for a caller who may open it. Without `at`, its path is `/project` if that is
    /// free, otherwise made of its name. A folder that is already open keeps its path.
    pub fn open_listed_folder(
        &self,
        home: &Home,
        session: &SessionName,
        (caller, name): (CallerScope, &str),
        at: Option<&str>,
    ) -> Result<SessionFolder, FolderRefusal> {
        let unlisted = || FolderRefusal::Unlisted(name.chars().take(MAX_SHOWN).collect());
        let entry = self.folder_for(caller, name).ok_or_else(unlisted)?;
        let is_mounted = |at: &str| self.mounts.iter().any(|mount| mount.at == at);
        let open = home.folders(session)?;
        let by_name = format!("/{name}");
        let here = open
            .iter()
            .filter(|folder| !folder.deliveries)
            .find(|folder| folder.path.as_path() == entry.path || entry.leads_to(&folder.path));
        let at = match (at, here) {
            (Some(at), _) => at,
            (None, Some(folder)) => &folder.at,
            (None, None) if is_mounted(PROJECT) || open.iter().any(|folder| folder.at == PROJECT) => &by_name,
            (None, None) => PROJECT,
        };
        if is_mounted(at) {
            let why = "[exec.mounts] in config.toml has this path already";
            return Err(FolderRefusal::Path { at: at.to_owned(), why });
        }
        let mut folder = SessionFolder::new(home, &entry.path, at, entry.force)?;
        if let Some(own) = here.filter(|here| caller == CallerScope::Admin && here.entry.is_none() && here.at == at) {
            return Ok(own.clone());
        }
        folder.write = entry.write;
        folder.entry = Some(name.to_owned());
        home.open_folder(session, folder.clone())?;
        Ok(folder)
    }

    /// Returns the folder of `[folders]` into which a caller puts files of a session. If the session does not have it open, opens
    /// it for deliveries only: runs do not see its contents.
    pub fn delivery_folder(
        &self,
        home: &Home,
        session: &SessionName,
        (caller, name): (CallerScope, &str),
    ) -> Result<SessionFolder, FolderRefusal> {
        let shown = || name.chars().take(MAX_SHOWN).collect();
        let entry = self.folder_for(caller, name).ok_or_else(|| FolderRefusal::Unlisted(shown()))?;
        if !entry.write {
            return Err(FolderRefusal::ReadOnly(shown()));
        }
        let is_it = |folder: &SessionFolder| folder.write && folder.entry.as_deref() == Some(name);
        let open = home.folders(session)?.into_iter().find(is_it);
        if let Some(folder) = open.and_then(|folder| self.accessible_folder(folder, caller)) {
            return Ok(folder);
        }
        let folder = SessionFolder::new(home, &entry.path, PROJECT, entry.force)?;
        // No other folder can have this path.
        let at = format!("{DELIVERIES}/{name}");
        let folder = SessionFolder { at, entry: Some(name.to_owned()), deliveries: true, ..folder };
        home.open_folder(session, folder.clone())?;
        Ok(folder)
    }

    /// Returns the open folders of a session as a run of this caller sees them. All code that shows folders to a run uses this.
    pub fn visible_folders(
        &self,
        home: &Home,
        session: &SessionName,
        caller: CallerScope,
    ) -> Result<Vec<SessionFolder>, HomeError> {
        let folders = home.folders(session)?;
        Ok(folders.into_iter().filter_map(|folder| self.visible_folder(folder, caller)).collect())
    }

    /// Returns a folder as a run of this caller sees it, if it does.
    fn visible_folder(&self, folder: SessionFolder, caller: CallerScope) -> Option<SessionFolder> {
        // It does not hide a mount at the same path.
        let is_mounted = self.mounts.iter().any(|mount| mount.at == folder.at);
        if is_mounted || folder.deliveries { None } else { self.accessible_folder(folder, caller) }
    }

    /// Returns a folder as this caller may use it. A folder that was opened by its path belongs to administrators. A folder that
    /// was opened through `[folders]` follows its current entry: it is not accessible if the entry was removed or leads to
    /// another directory.
    pub fn accessible_folder(&self, mut folder: SessionFolder, caller: CallerScope) -> Option<SessionFolder> {
        match &folder.entry {
            None => (caller == CallerScope::Admin).then_some(folder),
            Some(name) => {
                let entry = self.folder_for(caller, name).filter(|entry| entry.leads_to(&folder.path))?;
                folder.write &= entry.write;
                Some(folder)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::home::PROJECT;

    fn problems(text: &str) -> String {
        let problems = Config::parse(text.as_bytes()).unwrap_err();
        problems.iter().map(|problem| format!("{problem}\n")).collect()
    }

    #[test]
    fn a_folder_is_for_administrators_and_writable_unless_its_entry_says_otherwise() {
        let text = "[folders.photos]\npath = \"/srv/photos\"\n\
                    [folders.books]\npath = \"~/b\"\nrole = \"user\"\nmode = \"read\"\nforce = true\n";
        let config = Config::parse(text.as_bytes()).unwrap();
        let shown: Vec<_> =
            config.folders.iter().map(|one| (one.name.as_str(), one.admin_only, one.write, one.force)).collect();
        assert_eq!(shown, [("photos", true, true, false), ("books", false, false, true)]);
        let user = PathBuf::from(std::env::var_os("HOME").unwrap());
        assert_eq!(config.folders[1].path, user.join("b"));
        assert!(config.folder_for(CallerScope::User, "photos").is_none());
        assert!(config.folder_for(CallerScope::Admin, "photos").is_some());
        assert_eq!(Config::parse(config.effective(|_| true).as_bytes()).unwrap(), config);
    }

    #[test]
    fn mistakes_in_an_entry_are_reported_with_their_place() {
        for (text, part) in [
            ("[folders.\"a b\"]\npath = \"/srv\"\n", "1:10: [folders.\"a b\"]: a folder's name has 1 to 32 letters"),
            ("[folders.work]\npath = \"/srv\"\n", "1:10: [folders.work]: choose another name"),
            ("[folders.shared]\npath = \"/srv\"\n", "1:10: [folders.shared]: choose another name"),
            ("[folders.a]\npath = \"srv\"\n", "2:8: folders.a.path must be an absolute path of this machine"),
            ("[folders.a]\npath = \"~other/x\"\n", "2:8: folders.a.path must be an absolute path of this machine"),
            ("[folders.a]\nmode = \"read\"\n", "1:10: [folders.a] needs path"),
            ("[folders.a]\npath = \"/s\"\nmode = \"rw\"\n", "3:8: folders.a.mode must be \"write\" or \"read\""),
            (
                "[folders.a]\npath = \"/s\"\nroles = \"user\"\n",
                "did you mean role? Allowed here: force, mode, path, role",
            ),
            ("folders = 3\n", "[folders] must be a table"),
            ("[folders]\na = \"/srv\"\n", "[folders.a] must be a table, and this is a string"),
        ] {
            let shown = problems(text);
            assert!(shown.contains(part), "{text}: {shown}");
        }
    }

    #[test]
    fn what_a_run_sees_follows_the_entry() {
        let temp = tempfile::tempdir().unwrap();
        let home = Home::open(&temp.path().join("home")).unwrap();
        let session = SessionName::parse("s").unwrap();
        home.create_session(&session).unwrap();
        let dir = temp.path().join("photos");
        std::fs::create_dir(&dir).unwrap();
        let entry = |rest: &str| {
            let text = format!("[folders.photos]\npath = {:?}\n{rest}", dir.display().to_string());
            Config::parse(text.as_bytes()).unwrap()
        };
        let open = |entry: Option<&str>| {
            let folder = SessionFolder::new(&home, &dir, PROJECT, false).unwrap();
            home.close_folder(&session, PROJECT).unwrap();
            home.open_folder(&session, SessionFolder { entry: entry.map(str::to_owned), ..folder }).unwrap();
        };
        let seen = |config: &Config, caller| {
            let folders = config.visible_folders(&home, &session, caller).unwrap();
            folders.iter().map(|folder| folder.write).collect::<Vec<_>>()
        };
        let [admin, user] = [CallerScope::Admin, CallerScope::User];
        let shared = entry("role = \"user\"\n");
        // Opened by its path: an entry for the same directory does not share it with users.
        open(None);
        assert_eq!((seen(&shared, admin), seen(&shared, user)), (vec![true], vec![]));
        open(Some("photos"));
        assert_eq!((seen(&shared, admin), seen(&shared, user)), (vec![true], vec![true]));
        assert_eq!(seen(&entry("role = \"user\"\nmode = \"read\"\n"), user), [false]);
        assert_eq!((seen(&entry(""), admin), seen(&entry(""), user)), (vec![true], vec![]));
        assert_eq!(seen(&Config::default(), admin), Vec::<bool>::new());
        // The entry now leads to another directory.
        let other = temp.path().join("other");
        std::fs::rename(&dir, &other).unwrap();
        std::os::unix::fs::symlink(temp.path(), &dir).unwrap();
        assert_eq!(seen(&shared, user), Vec::<bool>::new());
        let mount = format!("[exec.mounts]\n\"{PROJECT}\" = \"/srv\"\n");
        open_again(&home, &session, &other);
        assert_eq!(seen(&Config::parse(mount.as_bytes()).unwrap(), admin), Vec::<bool>::new());
    }

    #[test]
    fn a_folder_is_opened_by_its_name_for_whoever_may() {
        let temp = tempfile::tempdir().unwrap();
        let home = Home::open(&temp.path().join("home")).unwrap();
        let session = SessionName::parse("s").unwrap();
        let entry = |name: &str, rest: &str| {
            let dir = temp.path().join(name);
            std::fs::create_dir_all(&dir).unwrap();
            format!("[folders.{name}]\npath = {:?}\n{rest}", dir.display().to_string())
        };
        let text = entry("own", "") + &entry("photos", "role = \"user\"\nmode = \"read\"\n");
        let config = Config::parse((text + "[folders.gone]\npath = \"/no/such/place\"\n").as_bytes()).unwrap();
        let [admin, user] = [CallerScope::Admin, CallerScope::User];
        let open = |caller, name| config.open_listed_folder(&home, &session, (caller, name), None);
        for (caller, name, why) in [
            (user, "own", "lists no folder \"own\" that you may open"),
            (admin, "none", "lists no folder \"none\" that you may open"),
            (admin, "../photos", "lists no folder"),
            (admin, "gone", "/no/such/place is not a directory"),
        ] {
            let refusal = open(caller, name).unwrap_err().to_string();
            assert!(refusal.contains(why), "{name}: {refusal}");
        }
        let photos = open(user, "photos").unwrap();
        assert_eq!((photos.at.as_str(), photos.write, photos.entry.as_deref()), (PROJECT, false, Some("photos")));
        assert_eq!(open(user, "photos").unwrap().at, PROJECT);
        assert_eq!(open(admin, "own").unwrap().at, "/own");
        assert_eq!(home.folders(&session).unwrap().len(), 2);
        // An administrator opened it with its files that contain credentials.
        home.close_folder(&session, PROJECT).unwrap();
        let dir = temp.path().join("photos");
        let own = SessionFolder { secrets: true, ..SessionFolder::new(&home, &dir, PROJECT, false).unwrap() };
        home.open_folder(&session, own.clone()).unwrap();
        let refusal = open(user, "photos").unwrap_err().to_string();
        assert!(refusal.contains("an administrator has opened this folder"), "{refusal}");
        assert_eq!(open(admin, "photos").unwrap(), own);
        assert!(config.visible_folders(&home, &session, user).unwrap().is_empty());
    }

    #[test]
    fn a_folder_that_files_are_put_into_is_not_seen() {
        let temp = tempfile::tempdir().unwrap();
        let home = Home::open(&temp.path().join("home")).unwrap();
        let session = SessionName::parse("s").unwrap();
        let dir = temp.path().join("a");
        std::fs::create_dir(&dir).unwrap();
        let path = dir.display().to_string();
        let text =
            format!("[folders.a]\npath = {path:?}\n[folders.b]\npath = {path:?}\nrole = \"user\"\nmode = \"read\"\n");
        let config = Config::parse(text.as_bytes()).unwrap();
        let [admin, user] = [CallerScope::Admin, CallerScope::User];
        let folder = |caller, name| config.delivery_folder(&home, &session, (caller, name));
        assert!(matches!(folder(user, "a"), Err(FolderRefusal::Unlisted(_))));
        assert!(matches!(folder(user, "b"), Err(FolderRefusal::ReadOnly(_))));
        let opened = folder(admin, "a").unwrap();
        assert_eq!(
            (opened.at.as_str(), opened.path.as_path()),
            ("/deliveries/a", dir.canonicalize().unwrap().as_path())
        );
        assert_eq!(folder(admin, "a").unwrap(), opened);
        assert!(config.visible_folders(&home, &session, admin).unwrap().is_empty());
        // A folder that is opened for work is not a delivery folder, even if files are put into it later.
        let project = config.open_listed_folder(&home, &session, (admin, "a"), None).unwrap();
        assert_eq!((project.at.as_str(), project.deliveries), (PROJECT, false));
        assert_eq!(config.visible_folders(&home, &session, admin).unwrap().len(), 1);
    }

    fn open_again(home: &Home, session: &SessionName, dir: &Path) {
        home.close_folder(session, PROJECT).unwrap();
        home.open_folder(session, SessionFolder::new(home, dir, PROJECT, false).unwrap()).unwrap();
    }
}
