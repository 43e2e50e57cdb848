//! The supported versions of interfaces, and the bindings to `kiso:skill`, one module for each version.
//!
//! A version contains only new and changed parts; the other parts are imported from the version before. So one component and one
//! linker can contain two versions.

pub(super) mod channel;
pub(super) mod draft;
pub(super) mod since_v0_1;

use self::since_v0_1::kiso::skill::types::{Call, Failure, Reply};
use std::fmt;
use wasmtime::Store;
use wasmtime::component::InstancePre;

/// The package of kiso's own interfaces.
pub(super) const SKILL: &str = "kiso:skill";

/// A version of a package.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Version {
    /// The version in messages for people.
    name: &'static str,
    /// The beginning of compatible versions. A draft is only compatible with itself.
    compatible: Option<&'static str>,
}

/// `wit/since_v0_1`, which does not change any more.
pub(super) const V0_1: Version = Version { name: "0.1", compatible: Some("0.1.") };

/// `wit/draft`, which may change at any time. Only builds from source for development load it: [`loads_drafts`].
pub(super) const DRAFT: Version = Version { name: "0.2.0-draft", compatible: None };

/// WASI, which wasmtime implements.
pub(super) const WASI: Version = Version { name: "0.2", compatible: Some("0.2.") };

/// The version of WASI with asynchronous functions.
pub(super) const WASI_0_3: Version = Version { name: "0.3", compatible: Some("0.3.") };

/// The versions of `kiso:skill`, oldest first.
pub(super) const VERSIONS: [Version; 2] = [V0_1, DRAFT];

impl Version {
    /// Whether the version behind an `@` is this one or compatible with it.
    pub fn takes(&self, version: &str) -> bool {
        // A candidate of a release is compatible with nothing.
        let follows = |begins| version.starts_with(begins) && !version.contains('-');
        self.compatible.map_or(version == self.name, follows)
    }

    pub const fn is_draft(&self) -> bool {
        self.compatible.is_none()
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name)
    }
}

/// Whether this build loads components for a draft. Releases do not: a component for a draft breaks with the next draft.
pub(super) const fn loads_drafts() -> bool {
    cfg!(debug_assertions)
}

/// An interface that components may import.
#[derive(Debug, Clone, Copy)]
pub struct ImportSpec {
    /// Without its version, such as "kiso:skill/kv".
    pub interface: &'static str,
    pub version: Version,
    /// The name of its package or world in an error.
    pub world: &'static str,
}

impl ImportSpec {
    /// An interface of `kiso:skill`.
    pub const fn skill(interface: &'static str, version: Version) -> Self {
        Self { interface, version, world: SKILL }
    }

    /// An interface of WASI, in one of its worlds.
    pub const fn wasi(interface: &'static str, world: &'static str) -> Self {
        Self { interface, version: WASI, world }
    }

    /// An interface of WASI 0.3, in one of its worlds.
    pub const fn wasi_0_3(interface: &'static str, world: &'static str) -> Self {
        Self { interface, version: WASI_0_3, world }
    }
}

/// The version of an interface of `kiso:skill` in a name, such as "kiso:skill/skill@0.1.0"; `None` for another interface or an
/// unknown version.
pub(super) fn version_of(name: &str, interface: &str) -> Option<Version> {
    let version = name.strip_prefix(SKILL)?.strip_prefix('/')?.strip_prefix(interface)?.strip_prefix('@')?;
    VERSIONS.into_iter().find(|known| known.takes(version))
}

/// Whether an interface is one of WASI 0.3.
pub(super) fn is_wasi_0_3(name: &str) -> bool {
    name.starts_with("wasi:") && name.split_once('@').is_some_and(|(_, version)| WASI_0_3.takes(version))
}

/// The version of WASI whose `wasi:cli/run` an export is.
pub(super) fn run_version(name: &str) -> Option<Version> {
    let version = name.strip_prefix("wasi:cli/run@")?;
    [WASI, WASI_0_3].into_iter().find(|known| known.takes(version))
}

/// A component that exports `skill.run`, in one of the versions; `T` is the state of a call.
pub(super) enum SkillPre<T: 'static> {
    V0_1(since_v0_1::SandboxWithHttpPre<T>),
    Draft(draft::SandboxPre<T>),
}

impl<T: 'static> Clone for SkillPre<T> {
    fn clone(&self) -> Self {
        match self {
            Self::V0_1(pre) => Self::V0_1(pre.clone()),
            Self::Draft(pre) => Self::Draft(pre.clone()),
        }
    }
}

impl<T: Send + 'static> SkillPre<T> {
    pub(super) fn new(version: Version, pre: InstancePre<T>) -> wasmtime::Result<Self> {
        match version {
            DRAFT => draft::SandboxPre::new(pre).map(Self::Draft),
            _ => since_v0_1::SandboxWithHttpPre::new(pre).map(Self::V0_1),
        }
    }

    pub(super) fn instance_pre(&self) -> &InstancePre<T> {
        match self {
            Self::V0_1(pre) => pre.instance_pre(),
            Self::Draft(pre) => pre.instance_pre(),
        }
    }

    /// Instantiates it and calls it. The inner error is the guest's.
    pub(super) async fn call(&self, store: &mut Store<T>, call: &Call) -> wasmtime::Result<Result<Reply, Failure>> {
        match self {
            Self::V0_1(pre) => {
                let instance = pre.instantiate_async(&mut *store).await?;
                instance.kiso_skill_skill().call_run(store, call).await
            }
            Self::Draft(pre) => {
                let instance = pre.instantiate_async(&mut *store).await?;
                instance.kiso_skill0_2_0_draft_skill().call_run(store, call).await
            }
        }
    }
}
