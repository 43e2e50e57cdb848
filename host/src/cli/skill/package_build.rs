//! Packages whose component is built on this machine, by command lines in the sandbox.

use crate::cli::{Exit, Failure, Opened, block_on};
use kiso_base::config::Config;
use kiso_base::home::{Home, SessionName};
use kiso_plan::network::NetworkRules;
use kiso_plan::plan::CallerScope;
use kiso_sandbox::effect::network::Network;
use kiso_sandbox::exec::{Channel, Exec, Line};
use kiso_sandbox::package::{PackageBuild, PackageContent, PackageError, PackageFolder};
use kiso_sandbox::skill::{Quiet, Skills};
use kiso_store::secret::Secrets;
use kiso_store::store::Store;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Maximum MiB and files of a build, including its inputs.
const MAX_MIB: u64 = 512;
const MAX_FILES: u64 = 20_000;

/// Runs the package's build over its unpacked files, in a temporary home. Returns the files it made.
pub(super) fn run(
    opened: &Opened,
    folder: &PackageFolder,
    build: &PackageBuild,
    unpacked: &PackageContent,
) -> Result<PackageContent, Failure> {
    let apart = TempHome::new(opened)?;
    let session = SessionName::parse("build").map_err(|error| Failure::new(Exit::Failed, error.to_string()))?;
    let work = apart.home.work_dir(&session);
    for (path, bytes) in folder.build_inputs(unpacked) {
        let file = work.join(path);
        std::fs::create_dir_all(file.parent().unwrap_or(&work)).map_err(failed)?;
        std::fs::write(file, bytes).map_err(failed)?;
    }
    let done = block_on(line(&apart, opened.config.clone(), &session, build))??;
    if let Some(why) = done {
        let name = &folder.package.name;
        return Err(Failure::new(Exit::Failed, format!("the build of {name} failed; nothing was installed\n{why}")));
    }
    let component = read(&work.join(&build.component))?;
    let mut built = BTreeMap::new();
    collect(&work.join(&build.tree), "", &mut built)?;
    let unfit = |error: PackageError| Failure::new(Exit::Policy, error.to_string());
    folder.take_built(build, component, built).map_err(unfit)
}

/// Runs the script. Returns the end of its output if it failed.
async fn line(
    apart: &TempHome,
    mut config: Config,
    session: &SessionName,
    build: &PackageBuild,
) -> Result<Option<String>, Failure> {
    config.exec.timeout_s = build.timeout_s;
    config.engine.workspace_mib = MAX_MIB;
    config.engine.max_files = MAX_FILES;
    config.exec.write_mib = MAX_MIB;
    config.mounts = Vec::new();
    let skills = Skills::new(apart.home.clone(), config.clone(), apart.store.clone(), Arc::new(Quiet));
    let exec = Exec::new(apart.home.clone(), config, skills);
    let scratch = exec.scratch(session)?;
    let source = format!("sh -e ./{}", build.script);
    let done = exec
        .run(Line {
            source: &source,
            session,
            role: CallerScope::Admin,
            shared: false,
            locale: "en",
            secrets: &Secrets::default(),
            stdin: Channel::Null,
            args: Vec::new(),
            state: Vec::new(),
            partial: false,
            outputs: None,
            watch: None,
            scratch: &scratch,
            transaction: None,
            accepted: None,
            permit: Default::default(),
            network: Network::new(NetworkRules::default(), CallerScope::Admin, false),
        })
        .await;
    let done = done?;
    let limit = done.limit.as_ref().map(|hit| format!("{hit}\n")).unwrap_or_default();
    let failed = done.code != 0 || done.limit.is_some();
    Ok(failed.then(|| format!("{limit}{}{}", done.stdout, done.stderr)))
}

/// Collects the files below a directory of the build, by their paths. A link is an error.
fn collect(dir: &Path, below: &str, built: &mut BTreeMap<String, Vec<u8>>) -> Result<(), Failure> {
    for entry in std::fs::read_dir(dir).map_err(failed)? {
        let entry = entry.map_err(failed)?;
        let name = entry.file_name().to_string_lossy().into_owned();
        let path = if below.is_empty() { name } else { format!("{below}/{name}") };
        match entry.file_type().map_err(failed)? {
            kind if kind.is_dir() => collect(&entry.path(), &path, built)?,
            kind if kind.is_file() => drop(built.insert(path, read(&entry.path())?)),
            _ => return Err(Failure::new(Exit::Policy, format!("{path} is not a file; nothing was installed"))),
        }
    }
    Ok(())
}

fn read(file: &Path) -> Result<Vec<u8>, Failure> {
    if !file.symlink_metadata().is_ok_and(|found| found.is_file()) {
        let message = format!("its build made no file {}; nothing was installed", file.display());
        return Err(Failure::new(Exit::Policy, message));
    }
    std::fs::read(file).map_err(failed)
}

fn failed(error: std::io::Error) -> Failure {
    Failure::new(Exit::Failed, format!("the package cannot be built: {error}; nothing was installed"))
}

/// An empty home that is removed when it is dropped.
struct TempHome {
    home: Home,
    store: Store,
    path: PathBuf,
}

impl TempHome {
    fn new(opened: &Opened) -> Result<Self, Failure> {
        let path = opened.home.temp_path();
        std::fs::create_dir(&path).map_err(failed)?;
        let home = Home::open(&path)?;
        let store = Store::open(&home.store_path())?;
        Ok(Self { home, store, path })
    }
}

impl Drop for TempHome {
    fn drop(&mut self) {
        self.store.close();
        let _ = std::fs::remove_dir_all(&self.path);
    }
}
