//! `kiso self`: detects how kiso was installed, verifies its files, and updates or removes them.
//!
//! Only files unpacked by `install.sh` are changed here. All others belong to a package manager, so kiso prints its command
//! and changes nothing.

mod files;

use self::files::{FileDifference, InstalledFile, listed, recorded};
use super::{Exit, Failure, Shared};
use clap::Subcommand;
use serde_json::json;
use std::path::{Path, PathBuf};
use std::process::Command;

#[derive(Debug, Subcommand)]
pub(super) enum InstallationCommand {
    /// Show how kiso was installed, and verify its files
    Check,
    /// Update kiso to the newest version, or print the command that does
    Update,
    /// Remove kiso's files, or print the command that does; homes are kept
    Uninstall(UninstallArgs),
}

#[derive(Debug, clap::Args)]
pub(super) struct UninstallArgs {
    /// Remove the files; without it, they are only listed
    #[arg(long)]
    yes: bool,
}

/// How the program was installed.
#[derive(Debug, PartialEq, Eq)]
enum Way {
    /// `install.sh`, or an archive that was unpacked by hand.
    Archive { prefix: PathBuf },
    /// A Debian package.
    Debian,
    /// A wheel, in the environment that has this record.
    Wheel { record: PathBuf },
    /// Installed by `cargo install`.
    Cargo,
    /// Built or copied by hand.
    Copied,
}

/// Digests of all files of the archive, relative to the prefix.
const SUMS: &str = "share/kiso/SHA256SUMS";
/// The address that `install.sh` downloaded it from, and the script itself, relative to the prefix.
const FROM: &str = "share/kiso/from";
const SCRIPT: &str = "share/kiso/install.sh";

impl Way {
    fn detect(program: &Path) -> Self {
        let Some(prefix) = program.parent().and_then(Path::parent) else { return Self::Copied };
        if prefix.join(SUMS).is_file() {
            return Self::Archive { prefix: prefix.to_owned() };
        }
        let lists = |file: &Path, line: &str| {
            std::fs::read_to_string(file).is_ok_and(|text| text.lines().any(|l| l.trim_start().starts_with(line)))
        };
        if lists(Path::new("/var/lib/dpkg/info/kiso.list"), &program.to_string_lossy()) {
            return Self::Debian;
        }
        if let Some(record) = wheel_record(prefix) {
            return Self::Wheel { record };
        }
        if lists(&prefix.join(".crates.toml"), "\"kiso ") {
            return Self::Cargo;
        }
        Self::Copied
    }

    /// Returns a word for `--json`.
    fn name(&self) -> &'static str {
        match self {
            Self::Archive { .. } => "archive",
            Self::Debian => "deb",
            Self::Wheel { .. } => "wheel",
            Self::Cargo => "cargo",
            Self::Copied => "copied",
        }
    }

    fn describe(&self) -> &'static str {
        match self {
            Self::Archive { .. } => "installed from an archive",
            Self::Debian => "installed as a Debian package",
            Self::Wheel { .. } => "installed as a Python wheel",
            Self::Cargo => "installed by cargo",
            Self::Copied => "built or copied here; nothing says what its files were",
        }
    }

    /// Returns the commands that update and remove it.
    fn commands(&self) -> (&'static str, &'static str) {
        match self {
            Self::Archive { .. } => ("kiso self update", "kiso self uninstall --yes"),
            Self::Debian => ("sudo apt install ./kiso_VERSION_ARCH.deb", "sudo apt remove kiso"),
            Self::Wheel { .. } => ("pipx upgrade kiso", "pipx uninstall kiso"),
            Self::Cargo => ("cargo install --locked --path host, in a newer checkout", "cargo uninstall kiso"),
            Self::Copied => ("install.sh of the release", "rm, with its path"),
        }
    }

    /// Returns the installed files, if they are known.
    fn files(&self) -> Result<Option<Vec<InstalledFile>>, String> {
        match self {
            Self::Archive { prefix } => listed(prefix, &prefix.join(SUMS)).map(Some),
            Self::Wheel { record } => recorded(record).map(Some),
            Self::Debian | Self::Cargo | Self::Copied => Ok(None),
        }
    }
}

/// Returns the record of the wheel of this name and version in a Python environment.
fn wheel_record(prefix: &Path) -> Option<PathBuf> {
    let info = format!("kiso-{}.dist-info", env!("CARGO_PKG_VERSION"));
    let below = |dir: &Path| {
        let versions = std::fs::read_dir(dir).into_iter().flatten().flatten();
        let mut records = versions.flat_map(|version| {
            ["site-packages", "dist-packages"].map(|packages| version.path().join(packages).join(&info).join("RECORD"))
        });
        records.find(|record| record.is_file())
    };
    below(&prefix.join("lib"))
}

impl InstallationCommand {
    pub(super) fn execute(&self, shared: &Shared) -> Result<Exit, Failure> {
        let program = std::env::current_exe().and_then(std::fs::canonicalize);
        let program = program.map_err(|e| failed(format!("kiso cannot find its own binary: {e}")))?;
        let way = Way::detect(&program);
        match self {
            Self::Check => check(&program, &way, shared),
            Self::Update => update(&way),
            Self::Uninstall(args) => args.execute(&way, shared),
        }
    }
}

fn check(program: &Path, way: &Way, shared: &Shared) -> Result<Exit, Failure> {
    let (count, wrong) = match way {
        Way::Debian => (None, verified_by_dpkg()?),
        way => match way.files().map_err(failed)? {
            Some(files) => (Some(files.len()), files.iter().filter_map(InstalledFile::wrong).collect()),
            None => (None, Vec::new()),
        },
    };
    let (update, uninstall) = way.commands();
    if shared.json {
        let wrong: Vec<_> = wrong.iter().map(|w| json!({ "path": w.path, "why": w.why })).collect();
        let version = env!("CARGO_PKG_VERSION");
        let path = program.display().to_string();
        outln!(
            "{}",
            json!({ "type": "installation", "version": version, "path": path, "way": way.name(), "files": count, "wrong": wrong })
        );
    } else {
        outln!("kiso {} in {}: {}", env!("CARGO_PKG_VERSION"), program.display(), way.describe());
        for FileDifference { path, why } in &wrong {
            outln!("FAIL {}: {why}", path.display());
        }
        match (count, wrong.is_empty()) {
            (Some(count), true) => outln!("ok   {count} files are as they were installed"),
            (None, true) if *way == Way::Debian => outln!("ok   dpkg finds no changed file"),
            _ => {}
        }
        outln!("to update: {update}\nto remove: {uninstall}");
    }
    Ok(if wrong.is_empty() { Exit::Done } else { Exit::Failed })
}

/// dpkg has its own digests, and knows which files an administrator may change.
fn verified_by_dpkg() -> Result<Vec<FileDifference>, Failure> {
    let output = Command::new("dpkg").args(["--verify", "kiso"]).output();
    let output = output.map_err(|e| failed(format!("dpkg --verify kiso: {e}")))?;
    let lines = String::from_utf8_lossy(&output.stdout).into_owned();
    let of_line = |line: &str| {
        // "??5?????? c /etc/kiso/env": configuration files may be changed.
        let (marks, path) = line.split_once(' ')?;
        let path = path.trim_start();
        let why = if marks.starts_with("missing") { "missing" } else { "changed" };
        (!path.starts_with("c ")).then(|| FileDifference { path: PathBuf::from(path), why: why.to_owned() })
    };
    Ok(lines.lines().filter_map(of_line).collect())
}

fn update(way: &Way) -> Result<Exit, Failure> {
    let Way::Archive { prefix } = way else { return Err(not_ours(way, way.commands().0)) };
    let script = prefix.join(SCRIPT);
    let from = std::fs::read_to_string(prefix.join(FROM)).map_err(|e| {
        let file = prefix.join(FROM);
        failed(format!("{}: {e}; it was unpacked by hand, so unpack the newer archive over it", file.display()))
    })?;
    let mut install = Command::new("sh");
    install.arg(&script).arg("--prefix").arg(prefix).args(["--from", from.trim()]);
    let status = install.status().map_err(|e| failed(format!("{}: {e}", script.display())))?;
    Ok(if status.success() { Exit::Done } else { Exit::Failed })
}

impl UninstallArgs {
    fn execute(&self, way: &Way, shared: &Shared) -> Result<Exit, Failure> {
        let Way::Archive { prefix } = way else { return Err(not_ours(way, way.commands().1)) };
        let mut paths: Vec<PathBuf> =
            listed(prefix, &prefix.join(SUMS)).map_err(failed)?.into_iter().map(|file| file.path).collect();
        // The list is removed last: while it exists, another attempt can remove the remaining files.
        paths.extend([prefix.join(FROM), prefix.join(SUMS)]);
        for path in paths.iter().filter(|path| path.exists()) {
            if self.yes {
                std::fs::remove_file(path).map_err(|e| failed(format!("{}: {e}", path.display())))?;
            }
            match shared.json {
                true => {
                    outln!("{}", json!({ "type": "file", "path": path.display().to_string(), "removed": self.yes }))
                }
                false => outln!("{} {}", if self.yes { "removed" } else { "would remove" }, path.display()),
            }
        }
        if !self.yes {
            return Err(Failure::new(Exit::Usage, "nothing was removed; add --yes to remove these files"));
        }
        remove_empty(&prefix.join("share/kiso"), prefix);
        remove_empty(&prefix.join("share/doc/kiso"), prefix);
        if !shared.json {
            outln!("homes are kept; the default one is ~/.kiso");
        }
        Ok(Exit::Done)
    }
}

/// Removes a directory of kiso, and its parents that are then empty.
fn remove_empty(dir: &Path, prefix: &Path) {
    let mut dir = dir;
    while dir != prefix && std::fs::remove_dir(dir).is_ok() {
        let Some(above) = dir.parent() else { return };
        dir = above;
    }
}

fn not_ours(way: &Way, command: &str) -> Failure {
    failed(format!("this kiso was {}; use: {command}", way.describe()))
}

fn failed(message: impl Into<String>) -> Failure {
    Failure::new(Exit::Failed, message)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_put_it_there_is_read_from_what_lies_beside_it() {
        let dir = tempfile::tempdir().unwrap();
        let at = |prefix: &str| dir.path().join(prefix);
        let file = |path: &str, text: &str| {
            let path = at(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        };
        let way = |prefix: &str| Way::detect(&at(prefix).join("bin/kiso"));
        assert_eq!(way("none"), Way::Copied);
        file("cargo/.crates.toml", "[v1]\n\"other 1.0.0 (path)\" = [\"other\"]\n");
        assert_eq!(way("cargo"), Way::Copied, "cargo has installed something else here");
        file("cargo/.crates.toml", "[v1]\n\"kiso 0.1.0 (path+file:///a)\" = [\"kiso\"]\n");
        assert_eq!(way("cargo"), Way::Cargo);
        let record = concat!("venv/lib/python3.11/site-packages/kiso-", env!("CARGO_PKG_VERSION"), ".dist-info/RECORD");
        file(record, "");
        assert_eq!(way("venv"), Way::Wheel { record: at(record) });
        file("local/share/kiso/SHA256SUMS", "");
        assert_eq!(way("local"), Way::Archive { prefix: at("local") });
    }
}
