//! MCP servers that are components: any `wasi:cli/command` that speaks the protocol on its standard streams.
//!
//! A server runs with the limits of a skill. It gets the hosts and variables that `config.toml` names, and nothing of a session:
//! no files, no kept values, no secrets.

use super::capability::{Capabilities, is_offered};
use super::command_entry::CommandEntry;
use super::entry::entry;
use super::error::SkillError;
use super::grant::{EffectiveGrant, Grant};
use super::guest_stop::GuestStop;
use super::input::{CallInput, DeclaredSecrets, Keep};
use super::instance::{EntryPoint, context, limited};
use super::loader::{self, Shape};
use super::manifest::Manifest;
use super::surface::brief;
use super::{Skills, channel};
use crate::engine::limits::{Budget, HitCell, Limit};
use crate::engine::output::OutputBuffer;
use futures_util::future::BoxFuture;
use kiso_base::home::{SessionName, SkillName};
use kiso_plan::code::{Blame, ErrorCode};
use kiso_store::secret::{SecretValue, Secrets};
use serde_json::Value;
use std::path::PathBuf;
use std::time::SystemTime;
use tokio::sync::Mutex;
use wasmtime::component::Component;
use wasmtime_wasi::cli::{StdinStream, StdoutStream};
use wasmtime_wasi::{I32Exit, WasiCtx};

/// An administrator's settings for a server that is a component.
#[derive(Debug, Clone)]
pub struct ServerGrant {
    pub path: PathBuf,
    /// Hosts that it may send requests to.
    pub hosts: Vec<String>,
    /// Whether these may have private addresses.
    pub allow_private: bool,
    pub env: Vec<(String, SecretValue)>,
    pub memory_mib: u64,
    pub timeout_s: u64,
}

/// Identifies a version of a file.
pub type FileStamp = (SystemTime, u64);

/// A component that is started as a server, possibly several times.
pub struct ServerComponent {
    skills: Skills,
    /// The name in errors and limits.
    name: SkillName,
    grant: ServerGrant,
    loaded: Mutex<Option<(FileStamp, CommandEntry)>>,
}

impl std::fmt::Debug for ServerComponent {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ServerComponent").field("path", &self.grant.path).finish_non_exhaustive()
    }
}

impl Skills {
    /// Makes a server that is loaded at its first start.
    #[expect(clippy::expect_used, reason = "the name follows the rules")]
    pub fn server(&self, grant: ServerGrant) -> ServerComponent {
        let name = SkillName::parse("mcp-server").expect("the name follows the rules");
        ServerComponent { skills: self.clone(), name, grant, loaded: Mutex::default() }
    }
}

impl ServerComponent {
    /// The present version of the file; `None` if it is missing.
    pub fn stamp(&self) -> Option<FileStamp> {
        let metadata = std::fs::metadata(&self.grant.path).ok()?;
        Some((metadata.modified().ok()?, metadata.len()))
    }

    /// Compiles the component, unless that was done.
    pub async fn load(&self) -> Result<(), SkillError> {
        self.loaded().await.map(drop)
    }

    /// Runs it until it ends, which is always an error: its answers go through the streams. Dropping the future ends it.
    pub async fn run<I, O>(&self, stdin: I, stdout: O) -> SkillError
    where
        I: StdinStream + 'static,
        O: StdoutStream + 'static,
    {
        // The type of the future is not visible outside, as in `instance::call`.
        let attempt: BoxFuture<'_, _> = Box::pin(self.attempt(stdin, stdout));
        let ended = attempt.await.err();
        ended.unwrap_or_else(|| SkillError::new(self.name.as_str(), Blame::Skill, ErrorCode::Exit, "it ended"))
    }

    #[expect(clippy::expect_used, reason = "the name follows the rules")]
    async fn attempt<I, O>(&self, stdin: I, stdout: O) -> Result<(), SkillError>
    where
        I: StdinStream + 'static,
        O: StdoutStream + 'static,
    {
        let name = self.name.as_str();
        let pre = self.loaded().await?;
        let sandbox = self.skills.sandbox().map_err(|error| SkillError::host(name, error))?;
        let pool = sandbox.pool(pre.engine());
        let _slot = pool.enter().await;
        let (engine, none) = (&self.skills.config().engine, Secrets::default());
        let nothing = Manifest::derived(self.name.clone(), "server".to_owned(), Value::Null);
        let allowed = EffectiveGrant::new(&nothing, Some(&Grant::nothing()), engine, false);
        let session = SessionName::parse("mcp").expect("the name follows the rules");
        let given = CallInput {
            skill: self.name.clone(),
            tool: name.to_owned(),
            args: Value::Null,
            locale: "en".to_owned(),
            budget: Budget::server(engine, self.grant.memory_mib, self.grant.timeout_s),
            work: self.skills.home().work_dir(&session),
            visible: false,
            usage: self.skills.usage(&session),
            session,
            declared: DeclaredSecrets::default(),
            secrets: &none,
            http: self.skills.config().http.clone(),
            network: None,
            store: self.skills.0.store.clone(),
            observer: self.skills.observer().clone(),
            keep: Keep::Nothing,
            transaction: None,
            permit: Default::default(),
            labels: None,
        };
        let (budget, hit) = (given.budget.clone(), HitCell::default());
        let mut capabilities = Capabilities::prepare(&given, &allowed, &hit)?;
        capabilities.http.open_to(&self.grant.hosts, self.grant.allow_private, &given.http);
        let stderr = OutputBuffer::whole(budget.clone(), hit.clone());
        let mut wasi = WasiCtx::builder();
        wasi.stdin(stdin).stdout(stdout).stderr(stderr.clone());
        wasi.arg(self.grant.path.file_name().map_or_else(|| name.into(), |file| file.to_string_lossy()));
        for (variable, value) in &self.grant.env {
            wasi.env(variable, value.expose());
        }
        let mut store = limited(pool, context(given, capabilities, wasi, &hit)?);
        let ended = match tokio::time::timeout(budget.timeout, pre.run(&mut store)).await {
            Ok(ended) => ended,
            Err(_) => return Err(SkillError::limit(name, budget.hit(Limit::Time))),
        };
        if let Some(hit) = hit.get() {
            return Err(SkillError::limit(name, hit));
        }
        let said = self.redact(&String::from_utf8_lossy(&stderr.take()));
        let stop = match ended {
            Ok(Ok(())) => return Ok(()),
            Ok(Err(())) => GuestStop::Exit(1, String::new()),
            Err(error) => match error.downcast_ref::<I32Exit>() {
                Some(I32Exit(0)) => return Ok(()),
                Some(exit) => GuestStop::Exit(exit.0, String::new()),
                None => GuestStop::Trap(error),
            },
        };
        Err(stop.explain(name, &budget, &said))
    }

    /// Removes the values of its variables: its standard error goes to people and prompts.
    fn redact(&self, text: &str) -> String {
        let values = self.grant.env.iter().map(|(name, value)| (name, value.expose())).filter(|(_, v)| v.len() >= 8);
        values.fold(text.to_owned(), |text, (name, value)| text.replace(value, &format!("[secret {name}]")))
    }

    async fn loaded(&self) -> Result<CommandEntry, SkillError> {
        let mut loaded = self.loaded.lock().await;
        let stamp = self.stamp();
        if let (Some((known, pre)), Some(stamp)) = (loaded.as_ref(), stamp)
            && *known == stamp
        {
            return Ok(pre.clone());
        }
        let pre = self.load_now().await?;
        // A file that was replaced in between has another stamp.
        *loaded = stamp.map(|stamp| (stamp, pre.clone()));
        Ok(pre)
    }

    async fn load_now(&self) -> Result<CommandEntry, SkillError> {
        let name = self.name.as_str();
        let bad = |message: String| SkillError::new(name, Blame::Skill, ErrorCode::BadComponent, message);
        let path = self.grant.path.clone();
        let parsed = tokio::task::spawn_blocking(move || {
            let wasm = channel::read(&path)?;
            let shown = path.display();
            let parsed = loader::parse(&wasm).map_err(|error| format!("{shown}: {error}"))?;
            match parsed.shape {
                Shape::Command => Ok(parsed.wasm),
                other => Err(format!("{shown} is a {}, and a server is a wasi:cli/command", other.describe())),
            }
        });
        let wasm = parsed.await.map_err(|panic| SkillError::host(name, panic))?.map_err(bad)?;
        let sandbox = self.skills.sandbox().map_err(|error| SkillError::host(name, error))?;
        let component = self.skills.component(name, wasm).await.map_err(|error| error.of(name))?;
        imports_only_wasi(&component).map_err(bad)?;
        match entry(sandbox, &component, Shape::Command).map_err(bad)? {
            (EntryPoint::Command(pre), _) => Ok(pre),
            _ => Err(bad("it has no wasi:cli/run".to_owned())),
        }
    }
}

/// A skill may import more interfaces than a server gets.
fn imports_only_wasi(component: &Component) -> Result<(), String> {
    let ty = component.component_type();
    for (name, _) in ty.imports(component.engine()) {
        if !(name.starts_with("wasi:") && is_offered(name, false)) {
            return Err(format!("it imports {}, which an MCP server does not have", brief(name, 100)));
        }
    }
    Ok(())
}
