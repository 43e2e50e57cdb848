//! Installs a file as a skill: parse, check imports, ask for grants, compile, self-test.

mod apart;
mod derived;
mod package;
mod question;
mod signing;

pub use self::package::{PackageCandidate, PackageOrigin};

use self::apart::ScratchDir;
use self::signing::statement;
use super::digest::Digest;
use super::error::SkillError;
use super::fetched::FetchedFile;
use super::grant::{EffectiveGrant, Grant, RequestedGrant};
use super::input::Keep;
use super::installed::{InstallRecord, InstalledSkill, MANIFEST, Provenance, RECORD, WASM, check_effects, tools};
use super::instance::{self, CallEnd, EntryPoint};
use super::loader::{self, ParsedComponent, Shape};
use super::manifest::{MAX_MANIFEST, Manifest, Workspace};
use super::placing::{exchange, not_locked};
use super::publisher::SignatureCheck;
use super::source::{self, Identity};
use super::surface_change::SurfaceChange;
use super::{Caller, Skills, surface};
use kiso_base::home::SkillName;
use kiso_plan::code::{Blame, ErrorCode};
use kiso_store::secret::Secrets;
use serde_json::{Value, json};
use std::fs;
use std::io::Read;
use std::path::Path;
use std::sync::Arc;

/// A file that was read and checked, but not compiled and not installed.
#[derive(Debug)]
pub struct InstallCandidate {
    parsed: ParsedComponent,
    manifest: Manifest,
    /// Text that is stored; empty where the manifest was derived.
    manifest_text: String,
    /// Whether the file brought no manifest.
    pub derived: bool,
    /// Its needs beyond what every skill gets and beyond the grant of the installed version.
    pub beyond: RequestedGrant,
    /// The version that it replaces.
    pub replaces: Option<String>,
    /// The reason why it may come from somebody else than the installed version. The installed version's grant is not kept then,
    /// and [`InstallCandidate::beyond`] contains all needs of this one.
    pub doubt: Option<String>,
    /// The changes in the text for models and in the checks, compared with the version that it replaces.
    pub change: SurfaceChange,
    /// The part of [`InstallCandidate::beyond`] that was granted to the version that it replaces.
    pub granted_before: RequestedGrant,
    /// The source that identifies the skill: where the file comes from, or the earlier source of the same publisher.
    source: Option<String>,
    /// Where the file came from, and who signed it.
    provenance: Provenance,
    /// The reason why an existing signature does not count.
    pub signature_warning: Option<String>,
    /// The digest and version that were installed when the file was examined.
    seen: Option<(String, String)>,
    /// Its access to the workspace without a grant: not more than the version before had, which was less than this one asks for.
    kept: Option<Workspace>,
}

impl InstallCandidate {
    pub fn name(&self) -> &SkillName {
        &self.manifest.name
    }

    pub fn manifest(&self) -> &Manifest {
        &self.manifest
    }

    /// Where the file came from, and who signed it.
    pub fn provenance(&self) -> &Provenance {
        &self.provenance
    }
}

/// The digest and version of an installed skill, to find out whether it changed while a person decided.
fn seen(installed: &InstalledSkill) -> (String, String) {
    (installed.identity().digest.to_owned(), installed.manifest.version.clone())
}

/// The way in which a file came here.
#[derive(Debug, Clone, Copy)]
enum Origin<'a> {
    File,
    Upload,
    /// From a registry, an address, or an index.
    Fetched(&'a FetchedFile),
    /// The component of a package.
    Package(&'a PackageOrigin),
}

/// The access to grant to a skill.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum GrantChoice {
    /// Everything.
    All,
    /// Only the access that every skill gets; an existing grant is taken back.
    Basic,
    /// Nothing at all, not even `/work`; an existing grant is taken back.
    None,
    /// The existing grant file; nothing if there is an [`InstallCandidate::doubt`].
    Keep,
    /// The same, by a person who was shown the changes.
    KeepShown,
}

impl Skills {
    /// Reads a file and describes it and its needs. Compiles nothing and changes nothing.
    pub fn examine(
        &self,
        file: &Path,
        manifest: Option<&Path>,
        name: Option<&str>,
    ) -> Result<InstallCandidate, SkillError> {
        self.examine_from(Origin::File, file, manifest, name)
    }

    /// The same for a file that a client sent, which exists only for a moment.
    pub fn examine_upload(&self, file: &Path, name: Option<&str>) -> Result<InstallCandidate, SkillError> {
        self.examine_from(Origin::Upload, file, None, name)
    }

    /// The same for a fetched file.
    pub fn examine_fetched(&self, fetched: &FetchedFile, name: Option<&str>) -> Result<InstallCandidate, SkillError> {
        self.examine_from(Origin::Fetched(fetched), &fetched.file, None, name)
    }

    /// The same for the component of a package, whose origin identifies it.
    pub fn examine_package(
        &self,
        file: &Path,
        manifest: &Path,
        origin: &PackageOrigin,
    ) -> Result<InstallCandidate, SkillError> {
        self.examine_from(Origin::Package(origin), file, Some(manifest), None)
    }

    fn examine_from(
        &self,
        origin: Origin<'_>,
        file: &Path,
        manifest: Option<&Path>,
        name: Option<&str>,
    ) -> Result<InstallCandidate, SkillError> {
        let shown = file.display().to_string();
        let refuse = |code: ErrorCode, message: String| SkillError::new(&shown, Blame::Caller, code, message);
        let bytes = loader::read_file(file).map_err(|m| refuse(ErrorCode::NotFound, m))?;
        let parsed = loader::parse(&bytes).map_err(|e| refuse(ErrorCode::BadComponent, e.to_string()))?;

        let (source, text) = match manifest {
            Some(path) => {
                let text = read_manifest(path)
                    .map_err(|e| refuse(ErrorCode::NotFound, format!("cannot read {}: {e}", path.display())))?;
                (path.display().to_string(), Some(text))
            }
            None => match &parsed.manifest {
                Some(text) => (format!("{shown} (section kiso.toml)"), Some(text.clone())),
                None => {
                    let beside = file.with_file_name(MANIFEST);
                    (beside.display().to_string(), read_manifest(&beside).ok())
                }
            },
        };
        let derived = text.is_none();
        let mut manifest = match &text {
            Some(text) => Manifest::parse(&source, text).map_err(|e| refuse(ErrorCode::BadManifest, e.to_string()))?,
            None => derived::manifest(file, name, &parsed).map_err(|m| refuse(ErrorCode::BadManifest, m))?,
        };
        if manifest.package.is_some() && !matches!(origin, Origin::Package(_)) {
            let message = format!(
                "{source}: a manifest with [kiso.package] belongs to a package, which `kiso skill add` installs from its folder"
            );
            return Err(refuse(ErrorCode::BadManifest, message));
        }
        let statement = statement(file, &bytes, text.as_deref(), &manifest, &parsed);
        if let Some(name) = name {
            let old = std::mem::replace(
                &mut manifest.name,
                SkillName::parse(name).map_err(|e| refuse(ErrorCode::BadArgs, e.to_string()))?,
            );
            // Its only tool has the skill's own name.
            if parsed.shape != Shape::Functions
                && let Some(effect) = manifest.effects.remove(old.as_str())
            {
                manifest.effects.insert(manifest.name.to_string(), effect);
            }
        }
        if parsed.shape == Shape::Functions && !derived && manifest.args["properties"] != json!({}) {
            let message =
                "a component of plain functions takes its arguments from their types; delete [kiso.skill.args]";
            return Err(refuse(ErrorCode::BadManifest, message.to_owned()));
        }
        let name = manifest.name.clone();
        if self.bundled(&name).is_some() {
            let message = format!("`{name}` is a bundled skill; give this one another name with --name");
            return Err(refuse(ErrorCode::NameTaken, message));
        }
        if self.home().agent_skill_record(&name).exists() {
            let message = format!("`{name}` is an installed Agent Skill; give this one another name with --name");
            return Err(refuse(ErrorCode::NameTaken, message));
        }
        // The tools of plain functions are known only after compiling, so they are checked again then.
        let tools = [(name.to_string(), &manifest.args)];
        surface::check(&manifest, &tools).map_err(|m| refuse(ErrorCode::BadManifest, m))?;
        if parsed.shape != Shape::Functions {
            let tool = (name.to_string(), name.to_string(), manifest.args.clone());
            check_effects(&manifest, &[tool]).map_err(|m| refuse(ErrorCode::BadManifest, format!("{source}: {m}")))?;
        }
        self.within_limits(&manifest).map_err(|m| refuse(ErrorCode::BadManifest, format!("{source}: {m}")))?;
        let old = self.read_installed(&name)?;
        let signed = match origin {
            Origin::Upload => SignatureCheck::default(),
            Origin::Package(origin) => package::signature(origin),
            Origin::File => self.signed_beside(file, &statement)?,
            Origin::Fetched(fetched) => match &fetched.signature {
                Some(text) => self.signed(text, &statement)?,
                None => SignatureCheck::default(),
            },
        };
        let pinned = old.as_ref().and_then(InstalledSkill::signer);
        // The digest of a package of kiso identifies it, so it needs no signature.
        if !matches!(origin, Origin::Package(origin) if origin.is_of_kiso()) {
            self.check_publisher(name.as_str(), pinned, &signed)?;
        }
        let same_publisher = pinned.is_some();
        let granted =
            Grant::load(self.home(), &name).map_err(|e| SkillError::host(name.as_str(), e))?.unwrap_or_default();
        // A grant without its skill belonged to another skill of the same name.
        let granted = if old.is_some() { granted } else { Grant::default() };
        let digest = Digest::compute(&parsed.wasm);
        let source = match origin {
            Origin::Upload => source::of_upload(&digest),
            Origin::Package(origin) => origin.source.clone(),
            Origin::Fetched(fetched) => fetched.source.clone(),
            Origin::File => {
                source::of_file(file).map_err(|e| refuse(ErrorCode::NotFound, format!("cannot read it: {e}")))?
            }
        };
        let digest = digest.to_string();
        let doubt = old.as_ref().and_then(|old| {
            let source = if same_publisher { old.source() } else { Some(source.as_str()) };
            let new = Identity { version: &manifest.version, digest: &digest, source };
            source::doubt(name.as_str(), old.identity(), new)
        });
        let all = RequestedGrant::from_manifest(&manifest, &self.config().engine);
        let mut beyond = all.beyond(&granted);
        let mut granted_before = RequestedGrant::default();
        if doubt.is_some() {
            granted_before = all.without(&beyond);
            beyond = all;
        }
        if let Some(old) = &old {
            // Every skill gets the workspace as it asks, but a skill that only read before must not write without a question.
            beyond.0.workspace = Some(manifest.needs.workspace).filter(|new| *new > old.manifest.needs.workspace);
        }
        let had =
            |old: &Manifest| granted.workspace.map_or(old.needs.workspace, |granted| granted.min(old.needs.workspace));
        let kept = match &old {
            // Another publisher's skill does not inherit the grant.
            Some(old) if derived && doubt.is_some() => Some(had(&old.manifest).min(Workspace::Read)),
            Some(old) => Some(had(&old.manifest)),
            // A component without a manifest did not ask for write access, so it does not get it.
            None if derived => Some(Workspace::Read),
            None => None,
        };
        let kept = kept.filter(|had| *had < manifest.needs.workspace);
        if derived {
            // Without a manifest, the grant may cover everything that the component imports.
            beyond = RequestedGrant::default();
        }
        let seen = old.as_ref().map(seen);
        let location = match origin {
            Origin::Fetched(fetched) => fetched.location.clone(),
            Origin::Package(origin) => origin.provenance.location.clone().unwrap_or_else(|| source.clone()),
            Origin::File | Origin::Upload => source.clone(),
        };
        // The derived component differs from home to home.
        let file_digest = match origin {
            Origin::Package(origin) => origin.provenance.file_digest.clone().unwrap_or(statement.digest),
            _ => statement.digest,
        };
        let provenance = Provenance { location: Some(location), file_digest: Some(file_digest), signer: signed.by };
        // The same file, or one signed by the same key, may come from another place: the source stays.
        let source = old
            .as_ref()
            .filter(|old| old.identity().digest == digest || same_publisher)
            .map_or(Some(source), |old| old.source().map(str::to_owned));
        let change = old.as_ref().map(|old| question::change(old, &manifest, parsed.shape)).unwrap_or_default();
        let replaces = old.map(|old| old.manifest.version);
        let manifest_text = text.unwrap_or_default();
        Ok(InstallCandidate {
            parsed,
            manifest,
            manifest_text,
            derived,
            beyond,
            replaces,
            doubt,
            change,
            granted_before,
            source,
            provenance,
            signature_warning: signed.warning,
            seen,
            kept,
        })
    }

    /// Compiles the candidate, runs its self-test, and lists it. An older version is not changed until the last step; an error
    /// leaves it as it was.
    pub async fn install(
        &self,
        candidate: InstallCandidate,
        choice: GrantChoice,
    ) -> Result<Arc<InstalledSkill>, SkillError> {
        let name = candidate.manifest.name.clone();
        let host_error = |e: &dyn std::fmt::Display| SkillError::host(name.as_str(), e);
        let _lock = self.home().lock_install().map_err(|e| not_locked(&name, &e))?;
        if self.read_installed(&name).ok().flatten().as_ref().map(seen) != candidate.seen {
            // The person decided about another version.
            let message = "it was installed or removed by somebody else meanwhile; nothing changed, try again";
            let busy = SkillError::new(name.as_str(), Blame::Host, ErrorCode::Busy, message);
            return Err(SkillError { retryable: true, ..busy });
        }

        let manifest = &candidate.manifest;
        let component = self.compile(manifest, &candidate.parsed.wasm).await?;
        let sandbox = self.sandbox().map_err(|e| host_error(&e))?;
        let (entry, found) =
            super::entry::entry(sandbox, &component, candidate.parsed.shape).map_err(|m| self.unfit(manifest, m))?;
        if let Some(test) = &candidate.parsed.self_test {
            self.self_test(manifest, &component, &entry, test).await?;
        }
        let found = match candidate.parsed.shape {
            Shape::Functions => found,
            _ => vec![(name.to_string(), manifest.args.clone())],
        };
        let named = tools(manifest, candidate.parsed.shape, found.clone()).map_err(|m| self.unfit(manifest, m))?;
        if choice == GrantChoice::Keep {
            self.check_change(&candidate, &named)?;
        }

        let basic = || Grant { workspace: candidate.kept, ..Grant::default() };
        let grant = match choice {
            GrantChoice::All => Some(Grant::all(manifest, &self.config().engine)),
            GrantChoice::None => Some(Grant::nothing()),
            GrantChoice::Basic => Some(basic()),
            GrantChoice::Keep | GrantChoice::KeepShown if candidate.replaces.is_none() || candidate.doubt.is_some() => {
                Some(basic())
            }
            // The older version may have asked for less, or may have had no manifest.
            GrantChoice::Keep | GrantChoice::KeepShown if candidate.kept.is_some() => {
                let granted = Grant::load(self.home(), &name).map_err(|e| host_error(&e))?.unwrap_or_default();
                Some(Grant { workspace: candidate.kept, ..granted })
            }
            GrantChoice::Keep | GrantChoice::KeepShown => None,
        };
        let record = InstallRecord {
            shape: candidate.parsed.shape,
            wrapped: candidate.parsed.wrapped,
            sdk: candidate.parsed.sdk.clone(),
            digest: Digest::compute(&candidate.parsed.wasm).to_string(),
            source: candidate.source.clone(),
            provenance: candidate.provenance.clone(),
            tools: found,
        };
        let text = if candidate.derived { derived::text(manifest) } else { candidate.manifest_text.clone() };
        // A smaller grant takes effect before the new code, a larger one after it.
        if candidate.doubt.is_some() {
            // It must never run with the grant of another publisher's skill.
            self.write_grant(&name, &basic())?;
        } else if choice != GrantChoice::All
            && let Some(grant) = &grant
        {
            self.write_grant(&name, grant)?;
        }
        self.place(&name, &candidate.parsed.wasm, &text, &record).map_err(|e| host_error(&e))?;
        if let Some(grant) = grant {
            self.write_grant(&name, &grant)?;
        }
        self.write_lock()?;
        let installed = self.read_installed(&name)?;
        installed.ok_or_else(|| host_error(&"the skill vanished while it was installed")).map(Arc::new)
    }

    /// Calls a candidate without installing it, with everything that its manifest asks for: `kiso skill test`. Its values in `kv`
    /// are not kept.
    pub async fn try_out(
        &self,
        candidate: InstallCandidate,
        args: &Value,
        caller: Caller<'_>,
    ) -> Result<CallEnd, SkillError> {
        let InstallCandidate { parsed, manifest, .. } = candidate;
        let name = manifest.name.clone();
        let host_error = |e: &dyn std::fmt::Display| SkillError::host(name.as_str(), e);
        let component = self.compile(&manifest, &parsed.wasm).await?;
        let sandbox = self.sandbox().map_err(|e| host_error(&e))?;
        let (entry, found) =
            super::entry::entry(sandbox, &component, parsed.shape).map_err(|m| self.unfit(&manifest, m))?;
        let tools = tools(&manifest, parsed.shape, found).map_err(|m| self.unfit(&manifest, m))?;
        let tool = tools.first().ok_or_else(|| host_error(&"it has no tool"))?;
        let args = tool.args.check(args).map_err(|violations| SkillError::bad_args(name.as_str(), &violations))?;
        let engine = &self.config().engine;
        let allowed = EffectiveGrant::new(&manifest, Some(&Grant::all(&manifest, engine)), engine, true);
        let given = self.make_input(&manifest, &tool.inner, &allowed, args, &caller, Keep::Nothing)?;
        Ok(instance::call(sandbox, &entry, given, &allowed).await.redact(caller.secrets))
    }

    /// Replaces the grant of a skill.
    pub fn write_grant(&self, name: &SkillName, grant: &Grant) -> Result<(), SkillError> {
        let path = self.home().grant_path(name);
        self.home().write_atomic(&path, grant.to_toml().as_bytes()).map_err(|e| SkillError::host(name.as_str(), e))
    }

    /// Checks that a manifest does not ask for more than the administrator allows any skill.
    fn within_limits(&self, manifest: &Manifest) -> Result<(), String> {
        let engine = &self.config().engine;
        let check = |asked: Option<u64>, max: u64, key: &str, setting: &str| match asked {
            Some(asked) if asked > max => Err(format!(
                "`{key}` = {asked}, and this host allows at most {max} ([engine] {setting} in config.toml)"
            )),
            _ => Ok(()),
        };
        check(manifest.needs.memory_mib, engine.max_memory_mib, "memory_mib", "max_memory_mib")?;
        check(manifest.needs.timeout_s, engine.max_timeout_s, "timeout_s", "max_timeout_s")
    }

    /// The error for a component that compiles but cannot be offered to models.
    fn unfit(&self, manifest: &Manifest, message: String) -> SkillError {
        SkillError::new(manifest.name.as_str(), Blame::Skill, ErrorCode::BadComponent, message)
            .version(&manifest.version)
    }

    async fn self_test(
        &self,
        manifest: &Manifest,
        component: &wasmtime::component::Component,
        entry: &EntryPoint,
        export: &str,
    ) -> Result<(), SkillError> {
        let EntryPoint::Skill(pre) = entry else { return Ok(()) };
        let find = || {
            let instance = component.get_export_index(None, export)?;
            component.get_export_index(Some(&instance), "run")
        };
        let missing = || {
            SkillError::new(
                manifest.name.as_str(),
                Blame::Skill,
                ErrorCode::BadComponent,
                "its self-test has no function run",
            )
        };
        let index = find().ok_or_else(missing)?;
        let scratch = ScratchDir::new(self.home()).map_err(|e| SkillError::host(manifest.name.as_str(), e))?;
        let test = EntryPoint::SelfTest { pre: pre.instance_pre().clone(), index };
        let (none, allowed) = (Secrets::default(), EffectiveGrant::new(manifest, None, &self.config().engine, true));
        let given = self.test_given(manifest, &allowed, scratch.path.clone(), &none);
        let sandbox = self.sandbox().map_err(|e| SkillError::host(manifest.name.as_str(), e))?;
        let ended = instance::call(sandbox, &test, given, &allowed).await;
        ended.result.map(|_| ()).map_err(|mut error| {
            error.message = format!("its self-test failed, so it was not installed: {}", error.message);
            error.version(&manifest.version)
        })
    }

    /// Puts the files into a new directory and exchanges it with the old one.
    fn place(&self, name: &SkillName, wasm: &[u8], manifest: &str, record: &InstallRecord) -> anyhow::Result<()> {
        let dir = self.home().skill_dir(name);
        let new = dir.with_file_name(format!(".{name}.new"));
        self.home().remove_tree(&new)?;
        fs::create_dir(&new)?;
        self.home().write_atomic(&new.join(WASM), wasm)?;
        self.home().write_atomic(&new.join(MANIFEST), manifest.as_bytes())?;
        self.home().write_atomic(&new.join(RECORD), &serde_json::to_vec_pretty(record)?)?;
        exchange(self.home(), &new, &dir)
    }
}

/// The text of a manifest, at most one byte longer than allowed: the parser reports the length.
fn read_manifest(path: &Path) -> std::io::Result<String> {
    let mut text = String::new();
    fs::File::open(path)?.take(MAX_MANIFEST as u64 + 1).read_to_string(&mut text)?;
    Ok(text)
}
