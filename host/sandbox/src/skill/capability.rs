//! The capabilities of skills: one file for each, and one list of them.
//!
//! A file contains everything about its capability: the interfaces that components import for it, the host's functions behind
//! them, its needs in a manifest, its grants and how they are reduced and shown, its limits, its line in `kiso doctor` and its
//! row in the documentation. Everything else is made from the list: the linker, the allowed imports, manifest and grant files,
//! the questions before an installation, `kiso skill grant`, and the state of a call. An import that is in no `IMPORTS` is
//! refused before anything of the component is compiled.
//!
//! CONTRIBUTING.md says how one is added.

mod ask;
mod basics;
mod files;
mod http;
mod kv;
mod list;
mod log;
mod progress;
mod publish;
mod secrets;

pub use self::ask::{AskEffective, AskGrant};
pub use self::files::Workspace;
pub(super) use self::http::{ChannelHost, add_host};
pub(crate) use self::http::{HttpGate, HttpRules, OpenNetwork, RefusedRequest, TellRefused};
pub(super) use self::list::{Doc, SkillAccess};
pub use self::list::{Flag, FlagValues};

use self::basics::Basics;
use self::files::WorkspaceFiles;
use self::http::OutgoingHttp;
use self::kv::Kv;
use self::log::TraceLog;
use self::progress::Progress;
use self::publish::Publish;
use self::secrets::ReadableSecrets;
use super::error::SkillError;
use super::input::CallInput;
use super::usage::{self, CapabilityUse, GrantUse};
use super::wit::ImportSpec;
use super::wit::since_v0_1::kiso::skill::types::Failure;
use super::workspace::DetachedFiles;
use crate::engine::limits::HitCell;
use kiso_plan::code::ErrorCode;
use kiso_store::store::{SkillUse, StoreError};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value, json};
use std::collections::BTreeSet;
use std::fmt::Debug;
use toml::Spanned;
use wasmtime::component::Linker;
use wasmtime_wasi::{WasiCtxBuilder, WasiView};
use wasmtime_wasi_http::WasiHttpView;

list::capabilities! {
    /// Capabilities that an administrator grants. The name is the key in a manifest's `[kiso.skill.needs]` and in the grant's
    /// file.
    granted {
        http: OutgoingHttp,
        // Declared in `[kiso.skill]` and `[kiso.skill.env]`, with the other secrets of a call.
        #[serde(skip)]
        secrets: ReadableSecrets,
        workspace: WorkspaceFiles,
    }
    /// Capabilities that every skill has.
    open {
        basics: Basics,
        kv: Kv,
        log: TraceLog,
        progress: Progress,
        publish: Publish,
    }
}

/// One capability. Its value is the state of one call, and its host functions see nothing else.
pub trait Capability: Sized + Send + 'static {
    /// The interfaces that components import for it, with their versions.
    const IMPORTS: &'static [ImportSpec];
    /// The text about it in the documentation.
    const DOC: Doc;
    /// The access of one call; `()` if every skill has full access.
    type Allowed: Clone + Default + Debug;

    /// Defines its functions, once per engine. `state` returns its value in the state of a call.
    fn link<T: GuestState>(linker: &mut Linker<T>, state: fn(&mut T) -> &mut Self) -> wasmtime::Result<()>;

    /// Defines its functions of WASI 0.3, once per engine that has them. They are views of those of [`Capability::link`].
    fn link_wasi_0_3<T: GuestState>(_: &mut Linker<T>) -> wasmtime::Result<()> {
        Ok(())
    }

    /// Makes its value for one call, before the component is instantiated. Must not wait for anything.
    fn prepare(call: &CallInput<'_>, allowed: &Self::Allowed, hit: &HitCell) -> Result<Self, SkillError>;

    /// Adds its part of WASI: a directory, a variable. Called once per call, after all are prepared.
    fn show(&self, _: &mut WasiCtxBuilder) -> Result<(), String> {
        Ok(())
    }

    /// Returns the use that the guest made of it. Called at the end of each call, also after an error.
    fn used(&self) -> CapabilityUse {
        CapabilityUse::default()
    }

    /// Returns its line for `kiso doctor`: the parts that this machine has, or why it cannot work here. `None` if it needs
    /// nothing.
    fn check() -> Option<Result<String, String>> {
        None
    }
}

/// A capability that a manifest asks for and an administrator grants. A skill has nothing of it by default.
pub trait Grantable: Capability {
    /// The value in a manifest, with its position there.
    type Toml: DeserializeOwned + Default;
    /// The same, checked.
    type Need: Clone + Default + PartialEq + Debug;
    /// The value in the grant's file; the default grants nothing.
    type Grant: Clone + Default + PartialEq + Debug + Serialize + DeserializeOwned;

    /// The options of `kiso skill grant` for it.
    const FLAGS: &'static [Flag];
    /// The imports by which a component without a manifest can be granted [`Grantable::implied`].
    const IMPLIED_BY: &'static [&'static str] = &[];

    /// Checks the value in a manifest, which declares these secrets. An error is a byte of the manifest and a message.
    fn check_need(written: Self::Toml, declared: &[&str]) -> Result<Self::Need, (usize, String)>;

    /// Checks the value in a grant's file.
    fn check_grant(grant: &Self::Grant) -> Result<(), String>;

    /// The need of a component that has no manifest and imports [`Grantable::IMPLIED_BY`].
    fn implied() -> Self::Need {
        Self::Need::default()
    }

    /// A need as a line of a manifest's `[kiso.skill.needs]`; empty without a need.
    fn to_toml(need: &Self::Need) -> String;

    /// The grant that covers a need; empty if every skill gets as much.
    fn asked(need: &Self::Need) -> Self::Grant;

    /// The part of `asked` that `granted` does not cover.
    fn beyond(asked: &Self::Grant, granted: &Self::Grant) -> Self::Grant;

    /// The part of `asked` that `other` does not contain in the same form.
    fn without(asked: &Self::Grant, other: &Self::Grant) -> Self::Grant;

    /// The overlap of both: never more than the manifest asks for, nor than was granted.
    fn allow(need: &Self::Need, granted: &Self::Grant) -> Self::Allowed;

    /// The part of a grant that would have been enough for the recorded calls; never more than the grant. By default the whole
    /// grant, for capabilities that cannot tell.
    fn least(granted: &Self::Grant, _need: &Self::Need, _used: &CapabilityUse) -> Self::Grant {
        granted.clone()
    }

    /// Adds `name` to a grant of the skill. Returns an error if the manifest does not ask for it.
    fn add(grant: &mut Self::Grant, need: &Self::Need, name: &str, skill: &str) -> Result<(), String>;

    /// Adds the values of [`Grantable::FLAGS`].
    fn add_chosen(grant: &mut Self::Grant, need: &Self::Need, chosen: &FlagValues, skill: &str) -> Result<(), String> {
        let names = Self::FLAGS.iter().flat_map(|flag| chosen.values(flag.name));
        names.into_iter().try_for_each(|name| Self::add(grant, need, name, skill))
    }

    /// The permissions of a grant, each a line that completes "It asks to".
    fn lines(grant: &Self::Grant) -> Vec<String>;

    /// The permissions of a call, for `kiso skill info`, one per line.
    fn summary(allowed: &Self::Allowed) -> Vec<String>;

    /// The same for `kiso doctor`, without the access that every skill gets.
    fn access(allowed: &Self::Allowed) -> Vec<String> {
        Self::summary(allowed)
    }

    /// The same for programs: docs/json.md, `kiso skill info`.
    fn allowed_json(allowed: &Self::Allowed) -> Value;

    /// A grant for programs: docs/api.md. `key` is that of the list.
    fn grant_json(key: &str, grant: &Self::Grant, into: &mut Map<String, Value>);

    /// A need for programs, also if every skill gets as much.
    fn need_json(key: &str, need: &Self::Need, into: &mut Map<String, Value>) {
        Self::grant_json(key, &Self::asked(need), into);
    }
}

/// A capability that is granted by name, such as a secret. Most capabilities need nothing else.
pub trait GrantByName: Capability<Allowed = BTreeSet<String>> {
    /// The option of `kiso skill grant` for it, with a value.
    const FLAG: Flag;

    /// Returns an error if a name in a manifest or a grant is not valid.
    fn check_name(name: &str) -> Result<(), String>;

    /// Whether `wide` includes `narrow`.
    fn covers(wide: &str, narrow: &str) -> bool {
        wide == narrow
    }

    /// The permission that a name gives to a skill, as a line that completes "It asks to".
    fn line(name: &str) -> String;

    /// The reason why a grant of this name to the skill would have no effect.
    fn not_asked(name: &str, skill: &str) -> String;

    /// The names that would have been enough for the recorded calls; by default all, for capabilities that cannot tell.
    fn least_names(granted: &BTreeSet<String>, _used: &CapabilityUse) -> BTreeSet<String> {
        granted.clone()
    }

    /// The names of a grant for programs.
    #[expect(clippy::expect_used, reason = "it is a list")]
    fn names_json(key: &str, names: &BTreeSet<String>, into: &mut Map<String, Value>) {
        if names.is_empty() {
            return;
        }
        let shown = names.iter().map(|name| json!({ "capability": key, "name": name, "text": Self::line(name) }));
        let others = into.entry("others").or_insert_with(|| json!([]));
        others.as_array_mut().expect("it is a list").extend(shown);
    }
}

impl<N: GrantByName> Grantable for N {
    type Toml = Vec<Spanned<String>>;
    type Need = BTreeSet<String>;
    type Grant = BTreeSet<String>;

    const FLAGS: &'static [Flag] = &[N::FLAG];

    fn check_need(written: Self::Toml, _: &[&str]) -> Result<Self::Need, (usize, String)> {
        let checked = written.into_iter().map(|name| {
            N::check_name(name.get_ref()).map_err(|message| (name.span().start, message))?;
            Ok(name.into_inner())
        });
        checked.collect()
    }

    fn check_grant(grant: &Self::Grant) -> Result<(), String> {
        grant.iter().try_for_each(|name| N::check_name(name))
    }

    fn to_toml(_: &Self::Need) -> String {
        // No import implies it.
        String::new()
    }

    fn asked(need: &Self::Need) -> Self::Grant {
        need.clone()
    }

    fn beyond(asked: &Self::Grant, granted: &Self::Grant) -> Self::Grant {
        let covered = |name: &&String| granted.iter().any(|granted| N::covers(granted, name));
        asked.iter().filter(|name| !covered(name)).cloned().collect()
    }

    fn without(asked: &Self::Grant, other: &Self::Grant) -> Self::Grant {
        asked.difference(other).cloned().collect()
    }

    fn allow(need: &Self::Need, granted: &Self::Grant) -> Self::Allowed {
        let covered = |by: &BTreeSet<String>, name: &String| by.iter().any(|wide| N::covers(wide, name));
        // The narrower of the two applies.
        let asked = need.iter().filter(|name| covered(granted, name));
        asked.chain(granted.iter().filter(|name| covered(need, name))).cloned().collect()
    }

    fn least(granted: &Self::Grant, _: &Self::Need, used: &CapabilityUse) -> Self::Grant {
        N::least_names(granted, used)
    }

    fn add(grant: &mut Self::Grant, need: &Self::Need, name: &str, skill: &str) -> Result<(), String> {
        N::check_name(name)?;
        if !need.iter().any(|asked| N::covers(asked, name)) {
            return Err(N::not_asked(name, skill));
        }
        grant.insert(name.to_owned());
        Ok(())
    }

    fn lines(grant: &Self::Grant) -> Vec<String> {
        grant.iter().map(|name| N::line(name)).collect()
    }

    fn summary(allowed: &Self::Allowed) -> Vec<String> {
        Self::lines(allowed)
    }

    fn allowed_json(allowed: &Self::Allowed) -> Value {
        json!(allowed)
    }

    fn grant_json(key: &str, grant: &Self::Grant, into: &mut Map<String, Value>) {
        N::names_json(key, grant, into);
    }
}

/// The state of a call, as capabilities see it.
pub trait GuestState: WasiView + WasiHttpView + DetachedFiles + Send {
    fn capabilities(&mut self) -> &mut Capabilities;
}

/// A failure that the guest may handle.
fn failure(code: ErrorCode, message: impl Into<String>) -> Failure {
    Failure { code: code.as_str().to_owned(), message: message.into(), retryable: false }
}

/// The store's error, as a failure that the guest may handle.
fn refused(error: &StoreError) -> Failure {
    let code = match error {
        StoreError::Quota { .. } => ErrorCode::Quota,
        StoreError::BadKey { .. } => ErrorCode::BadArgs,
        _ => ErrorCode::Unavailable,
    };
    failure(code, error.to_string())
}

/// Whether an import is in the list, in a compatible version. `drafts`: also those that only a draft has.
pub(super) fn is_offered(import: &str, drafts: bool) -> bool {
    let (interface, version) = import.split_once('@').unwrap_or((import, ""));
    Capabilities::imports().any(|offer| {
        offer.interface == interface && offer.version.takes(version) && (drafts || !offer.version.is_draft())
    })
}

/// Returns a short list of the interfaces that components may import.
pub(super) fn offers() -> String {
    let finished = Capabilities::imports().filter(|offer| !offer.version.is_draft());
    let worlds: BTreeSet<String> = finished.map(|offer| format!("{}@{}", offer.world, offer.version)).collect();
    let mut worlds: Vec<_> = worlds.into_iter().collect();
    match worlds.pop() {
        Some(last) if !worlds.is_empty() => format!("{} and {last}", worlds.join(", ")),
        last => last.unwrap_or_default(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_in_the_list_is_offered() {
        for (import, drafts, offered) in [
            ("kiso:skill/kv@0.1.0", false, true),
            ("kiso:skill/kv@0.1.9", false, true),
            ("kiso:skill/kv@0.2.0", true, false),
            ("kiso:skill/kv", true, false),
            ("kiso:skill/shell@0.1.0", true, false),
            ("kiso:skill/log@0.2.0-draft", true, true),
            ("kiso:skill/log@0.2.0-draft", false, false),
            ("kiso:skill/log@0.2.0-draft.1", true, false),
            ("kiso:skill/kv@0.2.0-draft", true, false),
            ("wasi:http/types@0.2.12", false, true),
            ("wasi:http/incoming-handler@0.2.12", true, false),
            ("wasi:filesystem/types@0.3.0", false, true),
            ("wasi:filesystem/types@0.3.2", false, true),
            ("wasi:filesystem/types@0.3.0-rc-2026-01-06", true, false),
            ("wasi:filesystem/types@0.4.0", true, false),
            ("wasi:http/client@0.3.0", false, true),
            ("wasi:http/handler@0.3.0", true, false),
            ("wasi:io/streams@0.3.0", true, false),
        ] {
            assert_eq!(is_offered(import, drafts), offered, "{import}, drafts: {drafts}");
        }
        let offered = "kiso:skill@0.1, wasi:cli/imports@0.2, wasi:cli/imports@0.3, wasi:http/client@0.3 and wasi:http/outgoing-handler@0.2";
        assert_eq!(offers(), offered);
    }
}
