//! Runs a program that is not installed, and returns its output.

use super::InstallCandidate;
use crate::effect::overlay::Overlays;
use crate::effect::sink::Permit;
use crate::engine::limits::{Budget, HitCell};
use crate::engine::output::OutputBuffer;
use crate::skill::as_command::{self, CommandStreams};
use crate::skill::concurrency::needs_concurrency;
use crate::skill::digest::Digest;
use crate::skill::error::SkillError;
use crate::skill::grant::{EffectiveGrant, Workspace};
use crate::skill::input::{CallInput, DeclaredSecrets, Keep};
use crate::skill::manifest::Manifest;
use crate::skill::placing::not_locked;
use crate::skill::workspace::SpaceUsage;
use crate::skill::{Skills, entry};
use kiso_base::home::{Home, PROJECT, SessionName};
use kiso_plan::code::{Blame, ErrorCode};
use kiso_store::secret::Secrets;
use serde_json::Value;
use std::fs;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

/// KiB of output, which this process holds in memory.
const MAX_PRINTED_KIB: u64 = 512 << 10;

/// Time for a program that runs once, when a package is added: an interpreter may import many libraries on a slow machine.
const MAX_TIME: Duration = Duration::from_secs(600);

impl Skills {
    /// Runs a file of the command shape in separate directories and without a grant, and returns its output. Its compiled code is
    /// kept for the next run, and for the installation; [`Skills::forget_code`] removes it.
    pub async fn run_apart(
        &self,
        candidate: &InstallCandidate,
        argv: Vec<String>,
        env: Vec<(String, String)>,
        support: Vec<(PathBuf, String)>,
    ) -> Result<Vec<u8>, SkillError> {
        let manifest = &candidate.manifest;
        let host_error = |e: &dyn std::fmt::Display| SkillError::host(manifest.name.as_str(), e);
        let _lock = self.home().lock_install().map_err(|e| not_locked(&manifest.name, &e))?;
        let component = self.compile(manifest, &candidate.parsed.wasm).await?;
        let sandbox = self.sandbox().map_err(|e| host_error(&e))?;
        let (entry, _) =
            entry::entry(sandbox, &component, candidate.parsed.shape).map_err(|m| self.unfit(manifest, m))?;
        let scratch = ScratchDir::new(self.home()).map_err(|e| host_error(&e))?;
        let names = ["work", "tmp", "skills", "shared", "project"];
        let [work, tmp, skills, shared, project] = names.map(|name| scratch.path.join(name));
        [&work, &tmp, &skills, &shared, &project]
            .into_iter()
            .try_for_each(fs::create_dir)
            .map_err(|e| host_error(&e))?;
        let (none, allowed) = (Secrets::default(), EffectiveGrant::new(manifest, None, &self.config().engine, true));
        let mut given = self.test_given(manifest, &allowed, work, &none);
        given.budget.output_kib = MAX_PRINTED_KIB;
        given.budget.timeout = MAX_TIME;
        let hit = HitCell::default();
        let [stdout, stderr] = [(); 2].map(|()| OutputBuffer::whole(given.budget.clone(), hit.clone()));
        let streams = CommandStreams {
            argv,
            env,
            cwd: "/tmp".to_owned(),
            tmp,
            support,
            skills: Some((skills, self.published_files())),
            folders: vec![(PROJECT.to_owned(), project, false)],
            shared: Some((shared, false)),
            overlays: Overlays::default(),
            requests: None,
            goes_on: true,
            unkept: None,
            stdin: std::io::empty(),
            stdout: stdout.clone(),
            stderr: stderr.clone(),
        };
        let ended = as_command::call(sandbox, &entry, given, &allowed, streams, true, &mut None).await;
        let ended = ended?;
        match ended.code {
            0 => Ok(stdout.take()),
            code => {
                let said = String::from_utf8_lossy(&stderr.take()).into_owned();
                let message = format!("it ended with exit code {code}: {}", said.trim_end());
                Err(SkillError::new(manifest.name.as_str(), Blame::Skill, ErrorCode::Failed, message))
            }
        }
    }

    /// Removes the compiled code of a file that is not going to be installed.
    pub fn forget_code(&self, candidate: &InstallCandidate) {
        if let Ok(sandbox) = self.sandbox() {
            let digest = Digest::compute(&candidate.parsed.wasm);
            sandbox.plain().code().forget(&digest);
            if needs_concurrency(&candidate.parsed.wasm)
                && let Ok(Some(pool)) = sandbox.concurrent()
            {
                pool.code().forget(&digest);
            }
        }
    }

    /// The input of a self-test, and of a program that is not installed: its manifest's memory and time, an empty workspace, and
    /// nothing else.
    #[expect(clippy::expect_used, reason = "the name follows the rules")]
    pub(super) fn test_given<'a>(
        &self,
        manifest: &Manifest,
        allowed: &EffectiveGrant,
        work: PathBuf,
        secrets: &'a Secrets,
    ) -> CallInput<'a> {
        CallInput {
            skill: manifest.name.clone(),
            tool: manifest.name.to_string(),
            args: Value::Null,
            session: SessionName::parse("self-test").expect("the name follows the rules"),
            locale: "en".to_owned(),
            budget: Budget::new(&self.config().engine, allowed.memory_mib, allowed.timeout_s),
            visible: allowed.workspace != Workspace::None,
            usage: Arc::new(SpaceUsage::new(vec![work.clone()], None)),
            work,
            transaction: None,
            permit: Permit::default(),
            labels: None,
            declared: DeclaredSecrets::default(),
            secrets,
            http: self.config().http.clone(),
            network: None,
            store: self.0.store.clone(),
            observer: self.observer().clone(),
            keep: Keep::Nothing,
        }
    }
}

/// A temporary directory of the home. A guest may have filled it.
pub(in crate::skill) struct ScratchDir {
    home: Home,
    pub path: PathBuf,
}

impl ScratchDir {
    pub(super) fn new(home: &Home) -> std::io::Result<Self> {
        let path = home.self_test_dir();
        home.remove_tree(&path)?;
        fs::create_dir_all(&path)?;
        Ok(Self { home: home.clone(), path })
    }
}

impl Drop for ScratchDir {
    fn drop(&mut self) {
        let _ = self.home.remove_tree(&self.path);
    }
}
