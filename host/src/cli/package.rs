//! `kiso package`: commands that are fetched by digest, such as Python.

use super::show::{Show, printable_line};
use super::{Exit, Failure, Opened, Shared, block_on};
use clap::Subcommand;
use kiso_plan::report::size;
use kiso_sandbox::package::{self, Package, PackageContent, PackageError, PackageFolder, StartedInterpreter};
use kiso_sandbox::skill::{GrantChoice, InstallCandidate, InstalledSkill};
use serde_json::json;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// No package has more files than this.
const MAX_SOURCES: usize = 8;

#[derive(Debug, Subcommand)]
pub(super) enum PackageCommand {
    /// List the packages, and which are installed
    List,
    /// Fetch a package, check its digest, and install its commands
    Add {
        /// The package, such as python
        name: String,
        /// A file or an address to take it from instead of the publisher's: the component, or an archive that contains it; repeat for
        /// a package of several files
        #[arg(long, value_name = "FILE|URL")]
        from: Vec<String>,
    },
    /// Remove an installed package
    Remove {
        /// The package
        name: String,
    },
}

impl PackageCommand {
    pub(super) fn execute(&self, shared: &Shared) -> Result<Exit, Failure> {
        let show = Arc::new(Show::new(shared.json));
        let opened = Opened::new(shared, show.clone())?;
        match self {
            Self::List => list(&opened, shared.json),
            Self::Add { name, from } => add(&opened, &show, known(name)?, from, shared.json),
            Self::Remove { name } => remove(&opened, known(name)?, shared.json),
        }
    }
}

fn known(name: &str) -> Result<&'static PackageFolder, Failure> {
    let with_command = || package::bundled().iter().find(|folder| folder.package.has_command(name));
    package::find(name).or_else(with_command).ok_or_else(|| {
        let names: Vec<&str> = package::bundled().iter().map(|folder| folder.package.name.as_str()).collect();
        Failure::new(Exit::Usage, format!("there is no package `{name}`; there is {}", names.join(", ")))
    })
}

/// The skill that a package is here; none if it is not installed. One that an older kiso installed may have another name.
fn installed(opened: &Opened, package: &Package) -> Option<Arc<InstalledSkill>> {
    let source = package.source();
    let mut all: Vec<_> =
        opened.skills.list().into_iter().flatten().filter(|skill| skill.source() == Some(&source)).collect();
    all.sort_by_key(|skill| skill.name().as_str() != package.name);
    all.into_iter().next()
}

fn list(opened: &Opened, as_json: bool) -> Result<Exit, Failure> {
    for PackageFolder { package, summary, .. } in package::bundled() {
        let there = installed(opened, package);
        let version = there.as_ref().map(|skill| skill.manifest.version.as_str());
        if as_json {
            let object = json!({
                "type": "package", "name": package.name, "version": package.version, "installed": version,
                "commands": package.spec.commands, "summary": summary, "licence": package.spec.licence,
                "url": package.spec.component.url, "sha256": package.spec.component.sha256, "bytes": package.spec.component.size,
            });
            outln!("{object}");
            continue;
        }
        let state = match version {
            None => "not installed".to_owned(),
            Some(version) if version == package.version => "installed".to_owned(),
            Some(version) => {
                format!("{} is installed, and `kiso package add {}` replaces it", printable_line(version), package.name)
            }
        };
        outln!("{} {}  {state}  {}  {}", package.name, package.version, size(package.spec.component.size), summary);
    }
    Ok(Exit::Done)
}

fn add(opened: &Opened, show: &Show, folder: &PackageFolder, from: &[String], as_json: bool) -> Result<Exit, Failure> {
    let (package, name) = (&*folder.package, folder.package.name.as_str());
    let there = installed(opened, package);
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
        let sources = fetch_all(show, package, from)?;
        show.busy(&format!("checking {}", package.name));
        let unfit = |error: PackageError| Failure::new(Exit::Policy, error.to_string());
        let unpacked = folder.unpack(&sources).map_err(unfit)?;
        folder.write(&opened.home, &unpacked).map_err(unwritten)?;
        if let Err(failure) = start_and_install(opened, show, folder, &unpacked) {
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
    if as_json {
        let object = json!({
            "type": "package_added", "name": package.name, "version": package.version,
            "commands": package.spec.commands, "sha256": package.spec.component.sha256, "fetched": fetched,
        });
        outln!("{object}");
    } else if fetched {
        outln!(
            "installed {} {}: {} in every command line",
            package.name,
            package.version,
            package.spec.commands.join(", ")
        );
    } else {
        outln!("{} {} is installed already", package.name, package.version);
    }
    Ok(Exit::Done)
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
            size(package.addresses().iter().map(|(_, size)| size).sum()),
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
            1 => format!("{also} contains it, too: `kiso package add {name} --from FILE`"),
            _ => format!("{also} contain it, too: `kiso package add {name} --from FILE --from FILE`"),
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
) -> Result<(), Failure> {
    let unfit = |error: PackageError| Failure::new(Exit::Policy, error.to_string());
    let Some(interpreter) = &folder.package.spec.interpreter else {
        return install(opened, show, folder, &unpacked.component);
    };
    let printed = record(opened, show, folder, interpreter, unpacked)?;
    let started = folder.started(unpacked, interpreter, &printed).map_err(unfit)?;
    install(opened, show, folder, &started)
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
    let mounts = folder.package.mounts(&opened.home).map_err(unread)?;
    Ok(block_on(opened.skills.run_apart(program, argv, env, mounts))??)
}

/// Runs the package's tests, and hands the component to the skills, which compile it and list it.
fn install(opened: &Opened, show: &Show, folder: &PackageFolder, component: &[u8]) -> Result<(), Failure> {
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
    block_on(opened.skills.install(candidate, GrantChoice::All))??;
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

fn remove(opened: &Opened, folder: &PackageFolder, as_json: bool) -> Result<Exit, Failure> {
    let package = &*folder.package;
    let Some(skill) = installed(opened, package) else {
        return Err(Failure::new(Exit::Usage, format!("{} is not installed", package.name)));
    };
    opened.skills.remove(skill.name())?;
    let files = opened.home.package_dir(&package.name);
    if files.exists() {
        let removed = opened.home.remove_tree(&files);
        removed
            .map_err(|error| Failure::new(Exit::Failed, format!("failed to remove {}: {error}", files.display())))?;
    }
    match as_json {
        true => outln!("{}", json!({ "type": "package_removed", "name": package.name })),
        false => outln!("removed {}", package.name),
    }
    Ok(Exit::Done)
}
