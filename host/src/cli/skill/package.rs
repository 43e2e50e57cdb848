//! Packages: commands that are fetched by digest, such as Python. `kiso skill add`, `update` and `sync` install them.

use super::installing::GrantAnswer;
use crate::cli::show::{Show, printable_line};
use crate::cli::{Exit, Failure, Opened, block_on};
use kiso_plan::report::size;
use kiso_sandbox::package::{self, Package, PackageContent, PackageError, PackageFolder, StartedInterpreter};
use kiso_sandbox::skill::{GrantChoice, InstallCandidate, InstalledSkill};
use serde_json::json;
use std::io::Read;
use std::path::{Path, PathBuf};

/// No package has more files than this.
const MAX_SOURCES: usize = 8;

/// The package of kiso that has this name, or a command of this name.
pub(super) fn known(name: &str) -> Option<&'static PackageFolder> {
    let with_command = || package::bundled().iter().find(|folder| folder.package.has_command(name));
    package::find(name).or_else(with_command)
}

/// How a package is installed.
pub(super) struct PackageInstall<'a> {
    /// Files and addresses to take it from instead of the publishers'.
    pub from: &'a [String],
    /// Everything that it asks for, if nothing is said.
    pub grant: Option<GrantAnswer>,
}

/// Installs a package of kiso and prints what was done.
pub(super) fn add(
    opened: &Opened,
    show: &Show,
    folder: &PackageFolder,
    how: &PackageInstall<'_>,
    as_json: bool,
) -> Result<Exit, Failure> {
    let fetched = install(opened, show, folder, how)?;
    let (package, name) = (&*folder.package, folder.package.name.as_str());
    if as_json {
        let skill = opened.skills.find(name)?;
        let object = json!({
            "type": "loaded", "skill": name, "version": package.version, "shape": skill.shape, "wrapped": skill.wrapped,
            "digest": skill.digest(), "tools": [], "commands": package.spec.commands, "fetched": fetched,
        });
        outln!("{object}");
    } else if fetched {
        let commands = package.spec.commands.join(", ");
        outln!("installed {name} {}: {commands} in every command line", package.version);
    } else {
        outln!("{name} {} is installed already", package.version);
    }
    Ok(Exit::Done)
}

/// Fetches a package of kiso, checks its digest, runs its tests, and installs its commands. Returns whether it was fetched: one that is
/// installed in this version, with its files, is left alone.
pub(super) fn install(
    opened: &Opened,
    show: &Show,
    folder: &PackageFolder,
    how: &PackageInstall<'_>,
) -> Result<bool, Failure> {
    let (package, name) = (&*folder.package, folder.package.name.as_str());
    let there = opened.skills.installed_package(package);
    if opened.skills.find(name).is_ok_and(|skill| skill.source() != Some(&package.source())) {
        let message =
            format!("another skill has the name {name}; `kiso skill remove {name}` makes room for the package");
        return Err(Failure::new(Exit::Policy, message));
    }
    let is_current = |skill: &InstalledSkill| skill.package().is_some_and(|there| there.version == package.version);
    let fetched = !there.as_deref().is_some_and(is_current);
    let unwritten = |error| Failure::new(Exit::Failed, format!("its files cannot be written: {error}"));
    let fetched = fetched || package.lacks_files(&opened.home);
    if fetched {
        may_compile(opened, package)?;
        let sources = fetch_all(show, package, how.from)?;
        show.busy(&format!("checking {}", package.name));
        let unfit = |error: PackageError| Failure::new(Exit::Policy, error.to_string());
        let unpacked = folder.unpack(&sources).map_err(unfit)?;
        folder.write(&opened.home, &unpacked).map_err(unwritten)?;
        if let Err(failure) = start_and_install(opened, show, folder, &unpacked, how.grant) {
            show.rest();
            // An installed one of this version lacked its files before.
            folder.remove_files(&opened.home);
            return Err(failure);
        }
        if let Some(old) = there.filter(|old| old.name().as_str() != name) {
            opened.skills.remove(old.name())?;
        }
        folder.remove_other_files(&opened.home).map_err(unwritten)?;
    }
    show.rest();
    Ok(fetched)
}

/// Refuses what could not be compiled before anything of it is fetched.
fn may_compile(opened: &Opened, package: &Package) -> Result<(), Failure> {
    let (Some(needs), engine) = (package.spec.compile, &opened.config.engine) else { return Ok(()) };
    if needs.memory_mib <= engine.compile_memory_mib && needs.timeout_s <= engine.compile_timeout_s {
        return Ok(());
    }
    let message = format!(
        "compiling {} takes up to {} MiB of memory and {} seconds of processor time, and {} MiB and {} seconds are allowed here; \
         set\n\n[engine]\ncompile_memory_mib = {}\ncompile_timeout_s = {}\n\nin config.toml, and add it again; nothing was fetched",
        package.name,
        needs.memory_mib,
        needs.timeout_s,
        engine.compile_memory_mib,
        engine.compile_timeout_s,
        needs.memory_mib.max(engine.compile_memory_mib),
        needs.timeout_s.max(engine.compile_timeout_s),
    );
    Err(Failure::new(Exit::Policy, message))
}

/// The bytes of what is to contain the package: what `--from` names, or else what the publishers have.
fn fetch_all(show: &Show, package: &Package, from: &[String]) -> Result<Vec<Vec<u8>>, Failure> {
    let given = from.iter().map(|from| (from.as_str(), None));
    let published = package.addresses().into_iter().map(|(url, size)| (url, Some(size)));
    let places: Vec<_> = if from.is_empty() { published.collect() } else { given.collect() };
    if places.len() > MAX_SOURCES {
        return Err(Failure::new(Exit::Usage, format!("--from can be given {MAX_SOURCES} times")));
    }
    if places.iter().any(|(place, _)| place.contains("://")) {
        show.line(&format!(
            "fetching {} {} ({}, {})",
            package.name,
            package.version,
            size(package.fetched_bytes()),
            package.spec.licence
        ));
    }
    places.into_iter().map(|(place, expected)| fetch(show, package, place, expected)).collect()
}

/// The bytes of one file or address. How many are expected is known of a publisher's.
fn fetch(show: &Show, package: &Package, place: &str, expected: Option<u64>) -> Result<Vec<u8>, Failure> {
    if !place.contains("://") {
        return read(Path::new(place), package);
    }
    show.line(&show.dim(&printable_line(place)));
    let progress = |come: u64, length: Option<u64>| {
        let of = expected.or(length).map(|all| format!(" of {}", size(all))).unwrap_or_default();
        show.busy(&format!("fetched {}{of}", size(come)));
    };
    let fetched = block_on(package::download(place, package.most_fetched(), progress))?;
    fetched.map_err(|error| {
        show.rest();
        let (name, also) = (&package.name, &package.spec.component.also);
        let other = match package.addresses().len() {
            1 => format!("{also} contains it, too: `kiso skill add {name} --from FILE`"),
            _ => format!("{also} contain it, too: `kiso skill add {name} --from FILE --from FILE`"),
        };
        Failure::new(Exit::Failed, format!("{error}\nnothing was installed; {other}"))
    })
}

fn read(file: &Path, package: &Package) -> Result<Vec<u8>, Failure> {
    let failed = |why: String| Failure::new(Exit::Usage, format!("cannot read {}: {why}", file.display()));
    let max = package.most_fetched();
    let mut bytes = Vec::new();
    let opened = std::fs::File::open(file).map_err(|error| failed(error.to_string()))?;
    if opened.metadata().is_ok_and(|found| !found.is_file()) {
        return Err(failed("it is not a file".to_owned()));
    }
    opened.take(max + 1).read_to_end(&mut bytes).map_err(|error| failed(error.to_string()))?;
    if bytes.len() as u64 > max {
        return Err(failed(format!("it has more than {}, so it is not {}", size(max), package.name)));
    }
    Ok(bytes)
}

/// Starts the package's interpreter, if it has one, and installs the component.
fn start_and_install(
    opened: &Opened,
    show: &Show,
    folder: &PackageFolder,
    unpacked: &PackageContent,
    grant: Option<GrantAnswer>,
) -> Result<(), Failure> {
    let unfit = |error: PackageError| Failure::new(Exit::Policy, error.to_string());
    let Some(interpreter) = &folder.package.spec.interpreter else {
        return install_component(opened, show, folder, &unpacked.component, grant);
    };
    let printed = record(opened, show, folder, interpreter, unpacked)?;
    let started = folder.started(unpacked, interpreter, &printed).map_err(unfit)?;
    install_component(opened, show, folder, &started, grant)
}

/// Starts the interpreter, and returns what it printed: itself.
fn record(
    opened: &Opened,
    show: &Show,
    folder: &PackageFolder,
    interpreter: &StartedInterpreter,
    unpacked: &PackageContent,
) -> Result<Vec<u8>, Failure> {
    let unfit = |error: PackageError| Failure::new(Exit::Policy, error.to_string());
    let recorder = examine(opened, folder, &folder.recorder(unpacked).map_err(unfit)?)?;
    let mut env = Vec::new();
    folder.package.start(&mut Vec::new(), &mut env, "/tmp");
    show.busy(&format!("starting {}", folder.package.name));
    run_apart(opened, folder, &recorder, interpreter.record.clone(), env)
}

/// Runs a program of the package with the package's files and nothing of the home, and returns its output.
fn run_apart(
    opened: &Opened,
    folder: &PackageFolder,
    program: &InstallCandidate,
    argv: Vec<String>,
    env: Vec<(String, String)>,
) -> Result<Vec<u8>, Failure> {
    let unread = |error| Failure::new(Exit::Failed, format!("its files cannot be read: {error}"));
    let mut mounts = folder.package.mounts(&opened.home).map_err(unread)?;
    if folder.package.spec.interpreter.is_none() {
        // Empty but for the device that every guest can open. A kept interpreter knows its directories by number.
        mounts.push((folder.package.empty_dir(&opened.home).map_err(unread)?, "/dev".to_owned()));
    }
    Ok(block_on(opened.skills.run_apart(program, argv, env, mounts))??)
}

/// Runs the package's tests, and hands the component to the skills, which compile it and list it.
fn install_component(
    opened: &Opened,
    show: &Show,
    folder: &PackageFolder,
    component: &[u8],
    grant: Option<GrantAnswer>,
) -> Result<(), Failure> {
    let candidate = examine(opened, folder, component)?;
    for test in &folder.package.spec.tests {
        show.busy(&format!("testing {}", folder.package.name));
        let (mut argv, mut env) = (test.words.clone(), Vec::new());
        folder.package.start(&mut argv, &mut env, "/tmp");
        let printed = run_apart(opened, folder, &candidate, argv, env)?;
        let printed = String::from_utf8_lossy(&printed);
        if printed.trim() != test.prints.trim() {
            let (line, printed) = (test.words.join(" "), printable_line(printed.trim()));
            let message = format!(
                "its test `{line}` printed {printed:.200?}, and must print {:?}; nothing was installed",
                test.prints.trim()
            );
            return Err(Failure::new(Exit::Failed, message));
        }
    }
    block_on(opened.skills.install(candidate, grant.map_or(GrantChoice::All, Into::into)))??;
    Ok(())
}

fn examine(opened: &Opened, folder: &PackageFolder, component: &[u8]) -> Result<InstallCandidate, Failure> {
    let dir = TempDir(opened.home.temp_path());
    std::fs::create_dir(&dir.0)
        .map_err(|error| Failure::new(Exit::Failed, format!("failed to make a directory: {error}")))?;
    let (wasm, manifest) = (dir.0.join("skill.wasm"), dir.0.join("kiso.toml"));
    opened.home.write_atomic(&wasm, component)?;
    opened.home.write_atomic(&manifest, folder.manifest.as_bytes())?;
    let (source, published) = (folder.package.source(), &folder.package.spec.component.sha256);
    Ok(opened.skills.examine_package(&wasm, &manifest, &source, published)?)
}

/// Removed when it goes out of scope.
struct TempDir(PathBuf);

impl Drop for TempDir {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}
