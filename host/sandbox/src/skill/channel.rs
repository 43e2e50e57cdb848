//! Channels that are components (`wit/channel`): the access that one gets, and its calls.
//!
//! A channel gets a single host with its token, its own values, and a log. It is called like a skill, with the same limits, but
//! no model and no plan can call it, and its statements about senders give them no rights.

use super::cache;
use super::capability::{Capabilities, ChannelHost, is_offered};
use super::digest::Digest;
use super::error::SkillError;
use super::grant::{EffectiveGrant, Grant};
use super::guest_stop::GuestStop;
use super::input::{CallInput, DeclaredSecrets, Keep};
use super::installed::{BundledSkill, CHANNELS};
use super::instance::{context, limited};
use super::loader::MAX_WASM_BYTES;
use super::manifest::Manifest;
use super::source;
use super::surface::brief;
use super::wit::channel::{Messenger, MessengerPre, types};
use super::{Ctx, Skills};
use crate::engine::limits::{Budget, HitCell, Limit};
use futures_util::future::BoxFuture;
use kiso_base::config::ChannelSettings;
use kiso_base::home::{SessionName, SkillName};
use kiso_plan::code::{Blame, ErrorCode};
use kiso_store::secret::{SecretValue, Secrets};
use kiso_store::store::KvOwner;
use serde_json::Value;
use std::path::PathBuf;
use std::time::Duration;
use tokio::sync::OnceCell;
use wasmtime::Store as Instances;
use wasmtime::component::Component;
use wasmtime_wasi::WasiCtx;

pub use super::wit::channel::types::{Attachment, Batch, Choice, Config, File, Letter, Message};

/// MiB of memory and seconds that one call gets.
const MEMORY_MIB: u64 = 128;
const TIMEOUT_S: u64 = 60;

/// Characters of a component's error message that are kept.
const MAX_SAID: usize = 500;

/// The longest pause that a service can ask for.
const MAX_REST: Duration = Duration::from_secs(3_600);

/// The component of a channel.
#[derive(Debug, Clone)]
pub enum ChannelSource {
    Bundled(&'static BundledSkill),
    File(PathBuf),
}

impl ChannelSource {
    /// The names of the channels inside the binary.
    pub fn names() -> impl Iterator<Item = &'static str> {
        CHANNELS.iter().map(|bundled| bundled.name)
    }

    /// The source by its name in `config.toml`: that of a channel inside the binary, or the absolute path of a component.
    pub fn parse(name: &str) -> Option<ChannelSource> {
        if name.starts_with('/') && name.ends_with(".wasm") {
            return Some(Self::File(PathBuf::from(name)));
        }
        CHANNELS.iter().find(|bundled| bundled.name == name).map(Self::Bundled)
    }
}

/// A channel's component with its access.
pub struct ChannelComponent {
    skills: Skills,
    /// The name in errors and limits.
    name: SkillName,
    source: ChannelSource,
    config: Config,
    host: ChannelHost,
    /// The session of its values.
    session: SessionName,
    loaded: OnceCell<(MessengerPre<Ctx>, KvOwner)>,
}

impl std::fmt::Debug for ChannelComponent {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ChannelComponent").field("name", &self.name).finish_non_exhaustive()
    }
}

/// The kind of a channel's error.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ChannelTrouble {
    /// A later attempt may succeed.
    Passing,
    /// The token is missing, wrong or revoked.
    Unauthorized,
    /// The requested thing will never be available again.
    Gone,
    TooLarge,
}

/// The error of a call. The message has no secrets.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct ChannelFailure {
    pub trouble: ChannelTrouble,
    pub message: String,
    /// The pause that the service asks for.
    pub rest: Option<Duration>,
}

/// A request to a component.
enum Request<'a> {
    Poll(Option<&'a str>),
    Fetch(&'a str),
    Send(&'a str, &'a Letter),
    Offer { recipient: &'a str, letter: &'a str, note: Option<&'a str>, choices: &'a [Choice] },
    Answer { recipient: &'a str, message: &'a str, text: &'a str },
    Typing(&'a str),
}

/// A component's response.
enum Answer {
    Batch(Batch),
    Content(Vec<u8>),
    Done,
}

impl Skills {
    /// Makes the component of a channel, which is loaded at its first call. `token` is sent only to the host of the channel's
    /// URL.
    pub fn channel(
        &self,
        source: ChannelSource,
        settings: &ChannelSettings,
        token: Option<SecretValue>,
    ) -> Result<ChannelComponent, String> {
        let (url, session) = (settings.url.clone(), settings.own_session());
        let has_token = token.is_some();
        let host = ChannelHost::new(&url, settings.allow_private, token, settings.token_in)?;
        let config = Config { name: settings.name.clone(), url, options: settings.pairs(), has_token };
        let name = match &source {
            ChannelSource::Bundled(bundled) => bundled.name.to_owned(),
            ChannelSource::File(_) => "channel".to_owned(),
        };
        let name = SkillName::parse(&name).map_err(|error| error.to_string())?;
        Ok(ChannelComponent { skills: self.clone(), name, source, config, host, session, loaded: OnceCell::new() })
    }
}

impl ChannelComponent {
    /// Compiles the component, so that the first message need not wait.
    pub async fn load(&self) -> Result<(), ChannelFailure> {
        self.loaded().await.map(drop).map_err(|error| self.passing(error.message))
    }

    pub async fn poll(&self, cursor: Option<&str>) -> Result<Batch, ChannelFailure> {
        match self.call(Request::Poll(cursor)).await? {
            Answer::Batch(batch) => Ok(batch),
            _ => unreachable!("a poll answers with a batch"),
        }
    }

    pub async fn fetch(&self, attachment: &str) -> Result<Vec<u8>, ChannelFailure> {
        match self.call(Request::Fetch(attachment)).await? {
            Answer::Content(content) => Ok(content),
            _ => unreachable!("a fetch answers with a file"),
        }
    }

    pub async fn send(&self, recipient: &str, letter: &Letter) -> Result<(), ChannelFailure> {
        self.call(Request::Send(recipient, letter)).await.map(drop)
    }

    /// Changes the choices in a sent letter.
    pub async fn offer(
        &self,
        recipient: &str,
        letter: &str,
        note: Option<&str>,
        choices: &[Choice],
    ) -> Result<(), ChannelFailure> {
        self.call(Request::Offer { recipient, letter, note, choices }).await.map(drop)
    }

    /// Tells the sender of a message the result of a choice in it.
    pub async fn answer(&self, recipient: &str, message: &str, text: &str) -> Result<(), ChannelFailure> {
        self.call(Request::Answer { recipient, message, text }).await.map(drop)
    }

    pub async fn typing(&self, recipient: &str) -> Result<(), ChannelFailure> {
        self.call(Request::Typing(recipient)).await.map(drop)
    }

    /// Returns a text without the token, which a service may repeat.
    pub fn redact(&self, text: &str) -> String {
        self.host.redact(text)
    }

    async fn call(&self, request: Request<'_>) -> Result<Answer, ChannelFailure> {
        // The type of the future is not visible outside, as in `instance::call`.
        let attempt: BoxFuture<'_, _> = Box::pin(self.attempt(request));
        match attempt.await.map_err(|error| self.passing(error.message))? {
            Ok(answer) => Ok(answer),
            Err(failure) => Err(self.failed(failure)),
        }
    }

    /// The outer error comes from the sandbox, the inner one from the component.
    async fn attempt(&self, request: Request<'_>) -> Result<Result<Answer, types::Failure>, SkillError> {
        let (pre, owner) = self.loaded().await?;
        let host_error = |error: &dyn std::fmt::Display| SkillError::host(self.name.as_str(), error);
        let sandbox = self.skills.sandbox().map_err(|error| host_error(&error))?;
        let pool = sandbox.pool(pre.engine());
        let _slot = pool.enter().await;
        let engine = &self.skills.config().engine;
        let none = Secrets::default();
        let nothing = Manifest::derived(self.name.clone(), "channel".to_owned(), Value::Null);
        let allowed = EffectiveGrant::new(&nothing, Some(&Grant::nothing()), engine, false);
        let given = CallInput {
            skill: self.name.clone(),
            tool: self.name.to_string(),
            args: Value::Null,
            session: self.session.clone(),
            locale: "en".to_owned(),
            budget: Budget::new(engine, MEMORY_MIB, TIMEOUT_S),
            work: self.skills.home().work_dir(&self.session),
            visible: false,
            usage: self.skills.usage(&self.session),
            transaction: None,
            permit: Default::default(),
            labels: None,
            declared: DeclaredSecrets::default(),
            secrets: &none,
            http: self.skills.config().http.clone(),
            network: None,
            store: self.skills.0.store.clone(),
            observer: self.skills.observer().clone(),
            keep: Keep::Disk(owner.clone()),
        };
        let (budget, hit) = (given.budget.clone(), HitCell::default());
        let mut capabilities = Capabilities::prepare(&given, &allowed, &hit)?;
        capabilities.http.reach(&self.host, &given.http);
        let ctx = context(given, capabilities, WasiCtx::builder(), &hit)?;
        let mut store = limited(pool, ctx);
        let run = async {
            let messenger = pre.instantiate_async(&mut store).await?;
            ask(&mut store, &messenger, &self.config, request).await
        };
        let result = match tokio::time::timeout(budget.timeout, run).await {
            Ok(result) => result,
            Err(_) => return Err(SkillError::limit(self.name.as_str(), budget.hit(Limit::Time))),
        };
        for line in store.data_mut().capabilities.log.take() {
            tracing::debug!(channel = self.config.name, "{}", self.redact(&line.message));
        }
        if let Some(hit) = hit.get() {
            return Err(SkillError::limit(self.name.as_str(), hit));
        }
        result.map_err(|trap| GuestStop::Trap(trap).explain(self.name.as_str(), &budget, ""))
    }

    async fn loaded(&self) -> Result<&(MessengerPre<Ctx>, KvOwner), SkillError> {
        self.loaded.get_or_try_init(|| self.load_now()).await
    }

    async fn load_now(&self) -> Result<(MessengerPre<Ctx>, KvOwner), SkillError> {
        let name = self.name.as_str();
        let bad = |message: String| SkillError::new(name, Blame::Skill, ErrorCode::BadComponent, message);
        let sandbox = self.skills.sandbox().map_err(|error| SkillError::host(name, error))?;
        let (component, from) = match &self.source {
            ChannelSource::Bundled(bundled) => {
                let component = match cache::of_binary(sandbox.plain().engine(), bundled) {
                    Some(component) => component,
                    None => {
                        let wasm = bundled.wasm.unpack();
                        self.skills.component(name, wasm).await.map_err(|error| error.of(name))?
                    }
                };
                (component, None)
            }
            ChannelSource::File(path) => {
                let wasm = read(path).map_err(bad)?;
                let digest = Digest::of(&wasm);
                let component = self.skills.component(name, wasm).await.map_err(|error| error.of(name))?;
                // Values belong to this file: another file does not see them.
                (component, Some(source::of_upload(&digest)))
            }
        };
        imports_what_channels_have(&component).map_err(bad)?;
        let linker = sandbox.pool(component.engine()).linker();
        let pre = linker.instantiate_pre(&component).and_then(MessengerPre::new);
        let pre = pre.map_err(|error| bad(format!("it is no channel of kiso:channel@0.1: {error}")))?;
        Ok((pre, KvOwner::new(&self.name, from.as_deref())))
    }

    fn passing(&self, message: String) -> ChannelFailure {
        ChannelFailure { trouble: ChannelTrouble::Passing, message: self.redact(&message), rest: None }
    }

    fn failed(&self, failure: types::Failure) -> ChannelFailure {
        let trouble = match failure.code.as_str() {
            "unauthorized" => ChannelTrouble::Unauthorized,
            "gone" => ChannelTrouble::Gone,
            "too-large" => ChannelTrouble::TooLarge,
            _ => ChannelTrouble::Passing,
        };
        let said = self.redact(&failure.message);
        let message = said.chars().map(|c| if c.is_control() { ' ' } else { c }).take(MAX_SAID).collect();
        let rest = failure.retry_after_s.map(|seconds| Duration::from_secs(seconds.into()).min(MAX_REST));
        ChannelFailure { trouble, message, rest }
    }
}

async fn ask(
    store: &mut Instances<Ctx>,
    messenger: &Messenger,
    config: &Config,
    request: Request<'_>,
) -> wasmtime::Result<Result<Answer, types::Failure>> {
    let channel = messenger.kiso_channel_channel();
    Ok(match request {
        Request::Poll(cursor) => channel.call_poll(store, config, cursor).await?.map(Answer::Batch),
        Request::Fetch(attachment) => channel.call_fetch(store, config, attachment).await?.map(Answer::Content),
        Request::Send(recipient, letter) => {
            channel.call_send(store, config, recipient, letter).await?.map(|()| Answer::Done)
        }
        Request::Offer { recipient, letter, note, choices } => {
            channel.call_offer(store, config, recipient, letter, note, choices).await?.map(|()| Answer::Done)
        }
        Request::Answer { recipient, message, text } => {
            channel.call_answer(store, config, recipient, message, text).await?.map(|()| Answer::Done)
        }
        Request::Typing(recipient) => channel.call_typing(store, config, recipient).await?.map(|()| Answer::Done),
    })
}

/// A skill may import more interfaces than a channel gets.
fn imports_what_channels_have(component: &Component) -> Result<(), String> {
    const OWN: [&str; 4] =
        ["kiso:channel/types@0.1.", "kiso:skill/types@0.1.", "kiso:skill/kv@0.1.", "kiso:skill/log@0.1."];
    let ty = component.component_type();
    for (name, _) in ty.imports(component.engine()) {
        let has = OWN.iter().any(|own| name.starts_with(own)) || name.starts_with("wasi:") && is_offered(name, false);
        if !has {
            return Err(format!("it imports {}, which a channel does not have", brief(name, 100)));
        }
    }
    Ok(())
}

/// A component of this machine, by its path.
pub(super) fn read(path: &std::path::Path) -> Result<Vec<u8>, String> {
    let shown = path.display();
    let metadata = std::fs::metadata(path).map_err(|error| format!("{shown} cannot be read: {error}"))?;
    if !metadata.is_file() || metadata.len() > MAX_WASM_BYTES {
        return Err(format!("{shown} is no file of at most {} MiB", MAX_WASM_BYTES >> 20));
    }
    std::fs::read(path).map_err(|error| format!("{shown} cannot be read: {error}"))
}
