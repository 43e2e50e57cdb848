//! The sandbox without the command line: one home with the test guests, shared by the tests of a process.

use crate::harness::{KISO, guest, root};
use kiso_base::config::Config;
use kiso_base::home::{Home, SessionName};
use kiso_sandbox::skill::{CallEnd, Caller, GrantChoice, Limit, Quiet, SkillError, Skills};
use kiso_store::secret::Secrets;
use kiso_store::store::Store;
use serde_json::{Value, json};
use std::path::PathBuf;
use std::sync::Arc;
use tempfile::TempDir;
use tokio::sync::OnceCell;

/// A home with limits low enough to be reached quickly, and high enough that each mode reaches its own.
pub(crate) struct Lab {
    pub skills: Skills,
    pub home: Home,
    /// The directory with the home and a file that nobody may touch.
    outside: TempDir,
}

const CONFIG: &str = "
[engine]
host_calls = 200_000
max_files = 4_000
";

const CANARY: &str = "nobody may read or change this";

impl Lab {
    /// The lab of this process.
    pub(crate) async fn get() -> &'static Self {
        static LAB: OnceCell<Lab> = OnceCell::const_new();
        LAB.get_or_init(Self::build).await
    }

    async fn build() -> Self {
        let outside = TempDir::new().expect("there is room");
        std::fs::write(outside.path().join("canary"), CANARY).expect("there is room");
        let home = Home::open(&outside.path().join("home")).expect("a new home");
        std::fs::write(home.config_path(), CONFIG).expect("the home can be written");
        let config = Config::load(&home).expect("the configuration is right");
        let store = Store::open(&home.store_path()).expect("a new store");
        let skills = Skills::with_compiler(home.clone(), config, store, Arc::new(Quiet), KISO.into());
        let lab = Self { skills, home, outside };
        for name in ["echo", "hostile"] {
            lab.add(guest(name), None, None).await.expect("a guest is installed");
        }
        for manifest in ["read-only", "no-work", "short"] {
            let manifest = root().join(format!("tests/guests/hostile/manifests/{manifest}.toml"));
            lab.add(guest("hostile"), Some(manifest), None).await.expect("a guest is installed");
        }
        lab
    }

    /// Installs a file with all requested permissions.
    pub(crate) async fn add(
        &self,
        file: PathBuf,
        manifest: Option<PathBuf>,
        name: Option<&str>,
    ) -> Result<(), SkillError> {
        // Tests run at the same time; installations run one after the other.
        static TURN: tokio::sync::Mutex<()> = tokio::sync::Mutex::const_new(());
        let _turn = TURN.lock().await;
        let candidate = self.skills.examine(&file, manifest.as_deref(), name)?;
        self.skills.install(candidate, GrantChoice::All).await.map(|_| ())
    }

    /// Calls a tool in its own session, and checks afterwards that the host still works and nothing outside the workspace
    /// changed.
    pub(crate) async fn call(&self, tool: &str, session: &str, args: Value) -> CallEnd {
        let ended = self.call_only(tool, session, args).await;
        let echo = self.call_only("echo", "still-serving", json!({ "text": "here" })).await;
        assert_eq!(echo.result.expect("the host serves the next call").text, "here");
        self.assert_untouched(session);
        ended
    }

    pub(crate) async fn call_only(&self, tool: &str, session: &str, args: Value) -> CallEnd {
        let session = SessionName::parse(session).expect("a plain name");
        let secrets = Secrets::default();
        self.skills.call(tool, &args, Caller::by_hand(&session, &secrets)).await
    }

    fn assert_untouched(&self, session: &str) {
        let canary = std::fs::read_to_string(self.outside.path().join("canary")).expect("it is there");
        assert_eq!(canary, CANARY);
        let names = |dir: PathBuf| {
            let entries = std::fs::read_dir(dir).into_iter().flatten().flatten();
            let mut names: Vec<_> = entries.map(|e| e.file_name().to_string_lossy().into_owned()).collect();
            names.sort();
            names
        };
        assert_eq!(names(self.outside.path().to_owned()), ["canary", "home"]);
        let beside_work = names(self.home.path().join("sessions").join(session));
        assert!(beside_work.iter().all(|n| n == "work" || n == "lock"), "{beside_work:?}");
        let known = [
            "cache",
            "config.toml",
            "agent-skills",
            "grants",
            "install.lock",
            "calls",
            "jobs",
            "key",
            "packages",
            "roles",
            "sessions",
            "skills",
            "skills.lock",
            "store.db",
            "store.db-shm",
            "store.db-wal",
        ];
        let found = names(self.home.path().to_owned());
        assert!(found.iter().all(|n| known.contains(&n.as_str()) || n.starts_with('.')), "{found:?}");
    }
}

/// The error of a call that must fail.
#[track_caller]
pub(crate) fn error(ended: CallEnd) -> SkillError {
    match ended.result {
        Ok(answer) => panic!("it answered: {}", answer.text),
        Err(error) => error,
    }
}

/// Asserts that a limit ended the call, and that the error names limit, value and setting.
#[track_caller]
pub(crate) fn assert_limit(ended: CallEnd, limit: Limit) {
    let error = error(ended);
    let hit = error.limit.clone().unwrap_or_else(|| panic!("no limit but: {error}"));
    assert_eq!(hit.limit, limit, "{error}");
    assert!(error.message.contains(&hit.value) && error.message.contains(&hit.setting), "{error}");
}
