//! Packages: commands that are fetched by digest, such as Python. `kiso skill add`, `update` and `sync` install them.

use super::package_build;
use super::question::{choose, confirm};
use crate::cli::show::{Show, printable_line};
use crate::cli::{Exit, Failure, Opened, block_on};
use kiso_plan::report::size;
use kiso_sandbox::exec::refuse_commands;
use kiso_sandbox::package::{self, Package, PackageContent, PackageError, PackageFolder, StartedInterpreter};
use kiso_sandbox::skill::{GrantChoice, InstallCandidate, InstalledSkill, PackageOrigin};
use serde_json::json;
use std::io::Read;
use std::path::{Path, PathBuf};

/// Maximum files of a package.
const MAX_SOURCES: usize = 8;

/// Maximum files of a directory that are read for a package.
const MAX_FILES: usize = 32;

/// Returns the package of kiso that has this name, or a command of this name.
pub(super) fn known(name: &str) -> Option<&'static PackageFolder> {
    let with_command = || package::bundled().iter().find(|folder| folder.package.has_command(name));
    package::find(name).or_else(with_command)
}

/// Options for installing a package.
pub(super) struct PackageInstall<'a> {
    /// Files, addresses and directories of `kiso skill mirror` to use instead of the publishers'.
    pub from: &'a [String],
    /// If not set, a package of kiso gets everything that it asks for; for any other, a person is asked.
    pub grant: Option<GrantChoice>,
    pub json: bool,
}

/// Installs a package and prints the result.
pub(super) fn add(
    opened: &Opened,
    show: &Show,
    folder: &PackageFolder,
    origin: &PackageOrigin,
    how: &PackageInstall<'_>,
) -> Result<Exit, Failure> {
    let fetched = install(opened, show, folder, origin, how)?;
    let (package, name) = (&*folder.package, folder.package.name.as_str());
    if how.json {
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

/// Fetches a package, checks its digest, runs its tests, and installs its commands. Returns whether it was fetched: a
/// package that is already installed in this version, with its files, is not changed.
pub(super) fn install(
    opened: &Opened,
    show: &Show,
    folder: &PackageFolder,
    origin: &PackageOrigin,
    how: &PackageInstall<'_>,
) -> Result<bool, Failure> {
    let (package, name) = (&*folder.package, folder.package.name.as_str());
    let there = match origin.is_of_kiso() {
        true => opened.skills.installed_package(package),
        false => opened.skills.find(name).ok(),
    };
    if !origin.is_of_kiso() {
        if let Some(why) = refuse_commands(&opened.skills, package) {
            return Err(Failure::new(Exit::Policy, format!("{why}; nothing was installed")));
        }
    } else if opened.skills.find(name).is_ok_and(|skill| skill.source() != Some(&package.source())) {
        let message =
            format!("another skill has the name {name}; `kiso skill remove {name}` makes room for the package");
        return Err(Failure::new(Exit::Policy, message));
    }
    let is_current = |skill: &InstalledSkill| skill.package().is_some_and(|there| there.version == package.version);
    let digest = |skill: &InstalledSkill| skill.provenance().and_then(|provenance| provenance.file_digest.clone());
    let current = there.as_deref().filter(|skill| is_current(skill));
    if current.is_some_and(|skill| !origin.is_of_kiso() && digest(skill) != origin.provenance.file_digest) {
        // The directory of its files is named after the version.
        let message = format!(
            "{name} {} is installed with other contents; give it another version, or `kiso skill remove {name}` first",
            package.version
        );
        return Err(Failure::new(Exit::Policy, message));
    }
    let fetched = current.is_none();
    let unwritten = |error| Failure::new(Exit::Failed, format!("its files cannot be written: {error}"));
    let fetched = fetched || package.lacks_files(&opened.home);
    if fetched {
        may_compile(opened, package)?;
        if !origin.is_of_kiso() {
            introduce(folder, origin, how, show)?;
        }
        let sources = fetch_all(show, package, how.from)?;
        show.busy(&format!("checking {}", package.name));
        let unfit = |error: PackageError| Failure::new(Exit::Policy, error.to_string());
        let mut unpacked = folder.unpack(&sources).map_err(unfit)?;
        if let Some(build) = &package.spec.build {
            show.busy(&format!("building {}", package.name));
            unpacked = package_build::run(opened, folder, build, &unpacked)?;
        }
        folder.write(&opened.home, &unpacked).map_err(unwritten)?;
        if let Err(failure) = start_and_install(opened, show, (folder, origin), &unpacked, how) {
            show.rest();
            // An earlier installation of this version had no files, so none are lost here.
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

/// Shows another publisher's package. If nobody vouches for it, asks before anything is fetched.
fn introduce(
    folder: &PackageFolder,
    origin: &PackageOrigin,
    how: &PackageInstall<'_>,
    show: &Show,
) -> Result<(), Failure> {
    let package = &folder.package;
    if let Some(warning) = &origin.warning {
        show.line(&printable_line(&format!("warning: {warning}")));
    }
    let about = format!(
        "{} {} ({}, {} to fetch) adds the commands {}",
        package.name,
        package.version,
        package.spec.licence,
        size(package.fetched_bytes()),
        package.spec.commands.join(", ")
    );
    if origin.is_vouched || how.grant.is_some() {
        show.line(&printable_line(&about));
        return Ok(());
    }
    let place = origin.source.strip_prefix("file:").unwrap_or(&origin.source);
    confirm(&format!("{about}.\nIt comes from {place}, and no key that is trusted here has signed it.\n"), how.json)
}

/// Refuses a package that could not be compiled, before anything is fetched.
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

/// Returns the bytes of the files that contain the package: those that `--from` names, or else the publishers'.
pub(super) fn fetch_all(show: &Show, package: &Package, from: &[String]) -> Result<Vec<Vec<u8>>, Failure> {
    if let [dir] = from
        && Path::new(dir).is_dir()
    {
        let own = Path::new(dir).join(&package.name);
        return files_of(if own.is_dir() { &own } else { Path::new(dir) }, package);
    }
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

/// Returns the bytes of one file or address. `expected` is the size of a publisher's file.
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

/// Returns the bytes of all files in a directory that may belong to the package.
pub(super) fn files_of(dir: &Path, package: &Package) -> Result<Vec<Vec<u8>>, Failure> {
    let failed = |error: std::io::Error| Failure::new(Exit::Usage, format!("cannot read {}: {error}", dir.display()));
    let mut files = Vec::new();
    for entry in std::fs::read_dir(dir).map_err(failed)? {
        let path = entry.map_err(failed)?.path();
        if path.metadata().is_ok_and(|found| found.is_file() && found.len() <= package.most_fetched()) {
            files.push(path);
        }
    }
    if files.len() > MAX_FILES {
        let message = format!("{} has more than {MAX_FILES} files; name the package's with --from", dir.display());
        return Err(Failure::new(Exit::Usage, message));
    }
    files.sort();
    files.iter().map(|file| read(file, package)).collect()
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
    (folder, origin): (&PackageFolder, &PackageOrigin),
    unpacked: &PackageContent,
    how: &PackageInstall<'_>,
) -> Result<(), Failure> {
    let unfit = |error: PackageError| Failure::new(Exit::Policy, error.to_string());
    let Some(interpreter) = &folder.package.spec.interpreter else {
        return install_component(opened, show, (folder, origin), &unpacked.component, how);
    };
    let printed = record(opened, show, (folder, origin), interpreter, unpacked)?;
    let started = folder.started(unpacked, interpreter, &printed).map_err(unfit)?;
    install_component(opened, show, (folder, origin), &started, how)
}

/// Starts the interpreter, and returns its output, which is its own memory.
fn record(
    opened: &Opened,
    show: &Show,
    (folder, origin): (&PackageFolder, &PackageOrigin),
    interpreter: &StartedInterpreter,
    unpacked: &PackageContent,
) -> Result<Vec<u8>, Failure> {
    let unfit = |error: PackageError| Failure::new(Exit::Policy, error.to_string());
    let recorder = examine(opened, folder, origin, &folder.recorder(unpacked).map_err(unfit)?)?;
    let mut env = Vec::new();
    folder.package.start(&mut Vec::new(), &mut env, "/tmp");
    show.busy(&format!("starting {}", folder.package.name));
    let printed = run_apart(opened, folder, &recorder, interpreter.record.clone(), env);
    opened.skills.forget_code(&recorder);
    printed
}

/// Runs a program of the package with the package's files, without access to the home. Returns its output.
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
        // A directory that is empty except for the device that every guest can open. A kept interpreter knows its
        // directories by number, so this is not added to it.
        mounts.push((folder.package.empty_dir(&opened.home).map_err(unread)?, "/dev".to_owned()));
    }
    Ok(block_on(opened.skills.run_apart(program, argv, env, mounts))??)
}

/// Runs the package's tests, and installs the component, which compiles and lists it.
fn install_component(
    opened: &Opened,
    show: &Show,
    (folder, origin): (&PackageFolder, &PackageOrigin),
    component: &[u8],
    how: &PackageInstall<'_>,
) -> Result<(), Failure> {
    let candidate = examine(opened, folder, origin, component)?;
    for test in &folder.package.spec.tests {
        show.busy(&format!("testing {}", folder.package.name));
        let (mut argv, mut env) = (test.words.clone(), Vec::new());
        folder.package.start(&mut argv, &mut env, "/tmp");
        let printed = run_apart(opened, folder, &candidate, argv, env)?;
        let printed = String::from_utf8_lossy(&printed);
        if printed.trim() != test.prints.trim() {
            opened.skills.forget_code(&candidate);
            let (line, printed) = (test.words.join(" "), printable_line(printed.trim()));
            let message = format!(
                "its test `{line}` printed {printed:.200?}, and must print {:?}; nothing was installed",
                test.prints.trim()
            );
            return Err(Failure::new(Exit::Failed, message));
        }
    }
    let choice = match (origin.is_of_kiso(), how.grant) {
        (true, grant) => grant.unwrap_or(GrantChoice::All),
        (false, grant) => {
            show.rest();
            choose(&candidate, grant, show, how.json)?
        }
    };
    block_on(opened.skills.install(candidate, choice))??;
    Ok(())
}

fn examine(
    opened: &Opened,
    folder: &PackageFolder,
    origin: &PackageOrigin,
    component: &[u8],
) -> Result<InstallCandidate, Failure> {
    let dir = TempDir(opened.home.temp_path());
    std::fs::create_dir(&dir.0)
        .map_err(|error| Failure::new(Exit::Failed, format!("failed to make a directory: {error}")))?;
    let (wasm, manifest) = (dir.0.join("skill.wasm"), dir.0.join("kiso.toml"));
    opened.home.write_atomic(&wasm, component)?;
    opened.home.write_atomic(&manifest, folder.manifest.as_bytes())?;
    Ok(opened.skills.examine_package(&wasm, &manifest, origin)?)
}

/// A directory that is removed when it is dropped.
struct TempDir(PathBuf);

impl Drop for TempDir {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}
