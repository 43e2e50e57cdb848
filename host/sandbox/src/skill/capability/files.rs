//! `wasi:filesystem`: the session's workspace as `/work`, to read or to write, within its quota.
//!
//! [`workspace`] has the rules of the quota and of the paths.

use super::{Capability, Doc, Flag, FlagValues, Grantable, GuestState};
use crate::effect::label::LabelCell;
use crate::effect::overlay::Overlays;
use crate::effect::published::PublishedFiles;
use crate::engine::limits::{Budget, HitCell, Limit, LimitHit};
use crate::skill::error::SkillError;
use crate::skill::input::CallInput;
use crate::skill::usage::CapabilityUse;
use crate::skill::wit::ImportSpec;
use crate::skill::workspace::{
    self, ControlFile, DirId, DirectoryUse, Listings, Quota, READ, Root, Roots, RunningOperations, WRITE,
};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use wasmtime::component::Linker;
use wasmtime_wasi::{FsPerms, WasiCtxBuilder};

/// A skill's access to `/work`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Workspace {
    /// No access.
    None,
    /// It may read. This is the default of a manifest.
    #[default]
    Read,
    /// It may read and write.
    Write,
}

impl Workspace {
    /// The permissions in terms of WASI; `None` without access.
    pub fn permissions(self) -> Option<FsPerms> {
        match self {
            Self::None => None,
            Self::Read => Some(FsPerms::ReadOnly),
            Self::Write => Some(FsPerms::ReadWrite),
        }
    }
}

impl std::fmt::Display for Workspace {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::None => "none",
            Self::Read => "read",
            Self::Write => "write",
        })
    }
}

/// The files of one call.
#[derive(Debug)]
pub struct WorkspaceFiles {
    pub quota: Arc<Quota>,
    /// The directories that the guest sees.
    pub roots: Roots,
    /// The directories that it used.
    pub touched: Arc<Mutex<DirectoryUse>>,
    /// The label of everything that the call has read.
    pub label: LabelCell,
    /// The directory listings that are open.
    pub listings: Listings,
    /// The operations that are under way in a guest of WASI 0.3.
    pub operations: RunningOperations,
    /// Handles of directories that are outside of all folders.
    pub plain_dirs: HashSet<u32>,
    /// Whether its operations may block the thread that runs it.
    pub blocks: bool,
    /// The labels of Agent Skills' files, if it sees them.
    pub published: Option<PublishedFiles>,
    /// Folders of a person that it sees.
    pub overlays: Overlays,
    /// The file through which it requests commands, if it can.
    pub control: Option<ControlFile>,
    access: Workspace,
    work: PathBuf,
    budget: Budget,
    hit: HitCell,
}

impl WorkspaceFiles {
    /// Records that the limit of directories that are listed at once was reached.
    pub fn listings_hit(&self) -> LimitHit {
        self.hit.set(self.budget.hit(Limit::Listings))
    }

    /// The limits of the call, and where a limit that was reached is recorded.
    pub fn limits(&self) -> (&Budget, &HitCell) {
        (&self.budget, &self.hit)
    }

    /// Shows the guest a directory whose use is recorded.
    pub fn touches(&self, dir: &Path, at: &'static str) {
        self.touched.lock().unwrap_or_else(PoisonError::into_inner).root(dir, at);
    }

    /// The call's access to `/work`.
    pub fn permissions(&self) -> Option<FsPerms> {
        self.access.permissions()
    }
}

const WORLD: &str = "wasi:cli/imports";
const TYPES: &str = "wasi:filesystem/types";

impl Capability for WorkspaceFiles {
    const IMPORTS: &'static [ImportSpec] = &[
        ImportSpec::wasi("wasi:filesystem/preopens", WORLD),
        ImportSpec::wasi(TYPES, WORLD),
        ImportSpec::wasi_0_3("wasi:filesystem/preopens", WORLD),
        ImportSpec::wasi_0_3(TYPES, WORLD),
    ];
    const DOC: Doc = Doc {
        about: "see the session's workspace as `/work`, and write there",
        asked: "workspace = \"none\"`, `\"read\"` (default) or `\"write\"",
    };
    type Allowed = Workspace;

    fn link<T: GuestState>(linker: &mut Linker<T>, _: fn(&mut T) -> &mut Self) -> wasmtime::Result<()> {
        // Their state is accessed through `ChargedFiles`, as that of exec's processes is.
        workspace::add_to_linker(linker)
    }

    fn link_wasi_0_3<T: GuestState>(linker: &mut Linker<T>) -> wasmtime::Result<()> {
        workspace::add_wasi_0_3_to_linker(linker)
    }

    fn prepare(call: &CallInput<'_>, access: &Workspace, hit: &HitCell) -> Result<Self, SkillError> {
        let (mut roots, mut touched) = (Roots::new(), DirectoryUse::default());
        if *access != Workspace::None {
            let id = DirId::at(&call.work);
            let id = id.map_err(|e| SkillError::host(call.skill.as_str(), unusable(&call.work, &e)))?;
            roots.push(Root::new(id, "/work"));
            touched.root(&call.work, "/work");
        }
        let quota = Quota::new(call.budget.clone(), hit.clone(), call.usage.clone()).within(call.transaction.clone());
        let quota = match &call.labels {
            Some(labels) => quota.labelled(labels.clone()),
            None => quota,
        };
        Ok(Self {
            quota: Arc::new(quota),
            label: call.permit.read().clone(),
            roots,
            touched: Arc::new(Mutex::new(touched)),
            listings: Listings::default(),
            operations: RunningOperations::default(),
            plain_dirs: HashSet::new(),
            blocks: false,
            published: None,
            overlays: Overlays::default(),
            control: None,
            access: *access,
            work: call.work.clone(),
            budget: call.budget.clone(),
            hit: hit.clone(),
        })
    }

    fn show(&self, wasi: &mut WasiCtxBuilder) -> Result<(), String> {
        match self.permissions() {
            Some(perms) => {
                wasi.preopened_dir(&self.work, "/work", perms).map(|_| ()).map_err(|e| unusable(&self.work, &e))
            }
            None => Ok(()),
        }
    }

    fn used(&self) -> CapabilityUse {
        self.touched.lock().unwrap_or_else(PoisonError::into_inner).used().clone()
    }
}

fn unusable(work: &std::path::Path, error: &dyn std::fmt::Display) -> String {
    format!("the workspace {} cannot be opened: {error}", work.display())
}

impl Grantable for WorkspaceFiles {
    type Toml = Workspace;
    type Need = Workspace;
    /// The administrator may grant less than the manifest asks for.
    type Grant = Option<Workspace>;

    const FLAGS: &'static [Flag] = &[
        Flag { name: "read", value: None, help: "Also read /work", requires: None, conflicts_with: Some("write") },
        Flag { name: "write", value: None, help: "Also read and write /work", requires: None, conflicts_with: None },
    ];
    const IMPLIED_BY: &'static [&'static str] = &[TYPES];

    fn check_need(written: Workspace, _: &[&str]) -> Result<Workspace, (usize, String)> {
        Ok(written)
    }

    fn check_grant(_: &Self::Grant) -> Result<(), String> {
        Ok(())
    }

    fn implied() -> Workspace {
        Workspace::Write
    }

    fn to_toml(need: &Workspace) -> String {
        format!("workspace = \"{need}\"\n")
    }

    fn asked(_: &Workspace) -> Self::Grant {
        None
    }

    fn beyond(asked: &Self::Grant, _: &Self::Grant) -> Self::Grant {
        *asked
    }

    fn without(asked: &Self::Grant, other: &Self::Grant) -> Self::Grant {
        asked.filter(|_| other.is_none())
    }

    fn allow(need: &Workspace, granted: &Self::Grant) -> Workspace {
        granted.map_or(*need, |granted| granted.min(*need))
    }

    fn least(granted: &Self::Grant, need: &Workspace, used: &CapabilityUse) -> Self::Grant {
        let allowed = Self::allow(need, granted);
        let did = match used {
            used if used.has(WRITE) => Workspace::Write,
            used if used.has_more() => return *granted,
            used if used.has(READ) => Workspace::Read,
            _ => Workspace::None,
        };
        if did < allowed { Some(did) } else { *granted }
    }

    fn add(grant: &mut Self::Grant, need: &Workspace, name: &str, skill: &str) -> Result<(), String> {
        let wanted = match name {
            "write" => Workspace::Write,
            "read" => Workspace::Read,
            "none" => Workspace::None,
            other => return Err(format!("`{other}` is no way to see /work; there are none, read and write")),
        };
        if wanted > *need {
            let verb = if wanted == Workspace::Write { "write to" } else { "see" };
            return Err(format!("{skill} does not ask to {verb} /work, so a grant of it would have no effect"));
        }
        *grant = Some(wanted);
        Ok(())
    }

    fn add_chosen(grant: &mut Self::Grant, need: &Workspace, chosen: &FlagValues, skill: &str) -> Result<(), String> {
        match ["write", "read"].into_iter().find(|flag| chosen.has(flag)) {
            Some(access) => Self::add(grant, need, access, skill),
            None => Ok(()),
        }
    }

    fn lines(grant: &Self::Grant) -> Vec<String> {
        grant.iter().map(|access| format!("{access} files in the session's workspace")).collect()
    }

    fn summary(allowed: &Workspace) -> Vec<String> {
        vec![format!("workspace: {allowed}")]
    }

    fn access(_: &Workspace) -> Vec<String> {
        // Every skill sees the workspace as its manifest asks.
        Vec::new()
    }

    fn allowed_json(allowed: &Workspace) -> Value {
        json!(allowed)
    }

    fn grant_json(key: &str, grant: &Self::Grant, into: &mut Map<String, Value>) {
        if let Some(access) = grant {
            into.insert(key.to_owned(), json!(access));
        }
    }

    fn need_json(key: &str, need: &Workspace, into: &mut Map<String, Value>) {
        into.insert(key.to_owned(), json!(need));
    }
}
