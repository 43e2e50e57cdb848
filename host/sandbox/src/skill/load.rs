//! Loads a skill's file from the cache, or compiles it.

use super::compiler::CompileError;
use super::concurrency::needs_concurrency;
use super::digest::Digest;
use super::engine::{GuestPool, Sandbox};
use super::entry::entry;
use super::error::SkillError;
use super::instance::EntryPoint;
use super::manifest::Manifest;
use super::{ComponentLocation, InstalledSkill, Skills, cache, lock};
use crate::engine::limits::LimitHit;
use kiso_plan::code::{Blame, ErrorCode};
use std::sync::Arc;
use wasmtime::component::Component;

/// The reason why a component was not loaded.
#[derive(Debug)]
pub(super) enum NotLoaded {
    /// A limit ended its compilation.
    Limit(LimitHit),
    /// The component is invalid.
    Component(String),
    /// The cause is the machine.
    Host(String),
}

impl NotLoaded {
    /// Converts it to the error of the skill of this name.
    pub(super) fn into_skill_error(self, name: &str) -> SkillError {
        match self {
            Self::Limit(hit) => SkillError::limit(name, hit),
            Self::Component(message) => SkillError::new(name, Blame::Skill, ErrorCode::BadComponent, message),
            Self::Host(message) => SkillError::host(name, message),
        }
    }
}

impl From<CompileError> for NotLoaded {
    fn from(error: CompileError) -> Self {
        match error {
            CompileError::Limit(hit) => Self::Limit(hit),
            CompileError::Host { .. } => Self::Host(error.to_string()),
            CompileError::Invalid(_) | CompileError::Crashed { .. } => Self::Component(error.to_string()),
        }
    }
}

/// Runs work that must not block the threads of everything else.
async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, NotLoaded> + Send + 'static,
) -> Result<T, NotLoaded> {
    tokio::task::spawn_blocking(work).await.unwrap_or_else(|panic| Err(NotLoaded::Host(panic.to_string())))
}

impl Skills {
    /// Returns the compiled skill, ready to be instantiated. It is loaded once, however many calls wait for it.
    pub(super) async fn load(&self, skill: &Arc<InstalledSkill>) -> Result<EntryPoint, SkillError> {
        let key = match &skill.place {
            ComponentLocation::Binary(_) => skill.name().to_string(),
            ComponentLocation::Home { digest, .. } => digest.clone(),
        };
        let cell = lock(&self.0.loaded).entry(key).or_default().clone();
        let entry = cell.get_or_try_init(|| async {
            let loaded = self.load_now(skill).await;
            loaded.map_err(|error| error.into_skill_error(skill.name().as_str()).version(&skill.manifest.version))
        });
        entry.await.cloned()
    }

    async fn load_now(&self, skill: &Arc<InstalledSkill>) -> Result<EntryPoint, NotLoaded> {
        let (skills, of) = (self.clone(), skill.clone());
        let read = blocking(move || {
            let sandbox = skills.sandbox().map_err(|e| NotLoaded::Host(format!("{e:#}")))?;
            if let ComponentLocation::Binary(bundled) = &of.place
                && let Some(component) = cache::of_binary(sandbox.plain().engine(), bundled)
            {
                return Ok(Ok(component));
            }
            let wasm = of.wasm().map_err(|e| NotLoaded::Host(e.to_string()))?;
            if let ComponentLocation::Home { path, digest, .. } = &of.place
                && Digest::compute(&wasm).to_string() != *digest
            {
                let path = path.display();
                return Err(NotLoaded::Host(format!("{path} is not the file that was installed; add the skill again")));
            }
            Ok(Err(wasm))
        });
        let component = match read.await? {
            Ok(component) => component,
            Err(wasm) => self.component(skill.name().as_str(), wasm).await?,
        };
        let (skills, shape) = (self.clone(), skill.shape);
        blocking(move || {
            let sandbox = skills.sandbox().map_err(|e| NotLoaded::Host(format!("{e:#}")))?;
            entry(sandbox, &component, shape).map(|(entry, _)| entry).map_err(NotLoaded::Component)
        })
        .await
    }

    /// The compiled form of a component: from the cache, or from a compiler that ends when this future is dropped. `name` is the
    /// name in progress messages.
    pub(super) async fn component(&self, name: &str, wasm: Vec<u8>) -> Result<Component, NotLoaded> {
        let skills = self.clone();
        let read = blocking(move || {
            let sandbox = skills.sandbox().map_err(|e| NotLoaded::Host(format!("{e:#}")))?;
            let digest = Digest::compute(&wasm);
            if let Some(component) = sandbox.plain().code().read(&digest) {
                return Ok(Ok(component));
            }
            let pool = pool(sandbox, &wasm)?;
            match pool.is_concurrent().then(|| pool.code().read(&digest)).flatten() {
                Some(component) => Ok(Ok(component)),
                None => Ok(Err((pool.is_concurrent(), digest, wasm))),
            }
        });
        let (is_concurrent, digest, wasm) = match read.await? {
            Ok(component) => return Ok(component),
            Err(missing) => missing,
        };
        self.observer().compiling(name);
        tracing::debug!(%digest, "skill.compile");
        let compiler = &self.0.compiler;
        let waiting = |elapsed| self.observer().still_compiling(name, elapsed);
        let code = match is_concurrent {
            true => compiler.concurrent().compile(wasm, waiting).await?,
            false => compiler.compile(wasm, waiting).await?,
        };
        let skills = self.clone();
        blocking(move || {
            let sandbox = skills.sandbox().map_err(|e| NotLoaded::Host(format!("{e:#}")))?;
            let pool = match is_concurrent {
                true => concurrent(sandbox)?,
                false => sandbox.plain(),
            };
            pool.code().keep(&digest, code).map_err(|e| unusable(&format!("{e:#}")))
        })
        .await
    }

    /// [`Skills::component`], for a skill that is not installed yet.
    pub(super) async fn compile(&self, manifest: &Manifest, wasm: &[u8]) -> Result<Component, SkillError> {
        let name = manifest.name.as_str();
        let compiled = self.component(name, wasm.to_vec()).await;
        compiled.map_err(|error| error.into_skill_error(name).version(&manifest.version))
    }
}

/// The pool that a component needs.
fn pool<'a>(sandbox: &'a Sandbox, wasm: &[u8]) -> Result<&'a GuestPool, NotLoaded> {
    if needs_concurrency(wasm) { concurrent(sandbox) } else { Ok(sandbox.plain()) }
}

fn concurrent(sandbox: &Sandbox) -> Result<&GuestPool, NotLoaded> {
    let pool = sandbox.concurrent().map_err(|e| NotLoaded::Host(format!("{e:#}")))?;
    let off = "it is built for WASI 0.3, which wasi_0_3 = false in [engine] of config.toml turns off";
    pool.ok_or_else(|| NotLoaded::Component(off.to_owned()))
}

/// The error for code that this engine does not accept. Code that fits no slot of the pool can never be instantiated.
fn unusable(error: &str) -> NotLoaded {
    NotLoaded::Component(if error.contains("pooling allocator") {
        let settings = "[engine] max_memory_mib, table_elements, tables and instances in config.toml";
        format!("it needs more than any skill gets on this host ({settings}): {error}")
    } else {
        format!("it cannot be compiled: {error}")
    })
}
