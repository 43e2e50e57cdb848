//! `kiso skill build`: runs the language's build tool, and puts the manifest into the file.

mod javascript;
mod made;
mod python;

use javascript::javascript;
use python::python;

use super::pack::write_packed;
use crate::cli::show::printable_line;
use crate::cli::{Exit, Failure, Shared};
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

#[derive(Debug, clap::Args)]
pub(crate) struct BuildArgs {
    /// The project
    #[arg(default_value = ".")]
    dir: PathBuf,
}

impl BuildArgs {
    pub(crate) fn execute(&self, shared: &Shared) -> Result<Exit, Failure> {
        let built = build(&self.dir)?;
        if shared.json {
            outln!("{}", json!({ "type": "built", "file": built }));
        } else {
            outln!("built {}", printable_line(&built.display().to_string()));
        }
        Ok(Exit::Done)
    }
}

/// The world of skills in languages other than Rust.
const WORLD: &str = "kiso:skill/sandbox";

/// Builds the project in `dir` and returns the packed file, DIR/NAME.wasm.
pub(super) fn build(dir: &Path) -> Result<PathBuf, Failure> {
    let manifest = dir.join("kiso.toml");
    if !manifest.exists() {
        let message = format!(
            "{} is not a skill project: there is no kiso.toml; `kiso skill new NAME` writes one",
            dir.display()
        );
        return Err(Failure::new(Exit::Usage, message));
    }
    let wasm = if dir.join("Cargo.toml").exists() {
        rust(dir)?
    } else if dir.join("skill.py").exists() {
        python(dir)?
    } else if ["package.json", "skill.js", "skill.ts"].iter().any(|file| dir.join(file).exists()) {
        javascript(dir)?
    } else {
        let message = format!("{}: found no Cargo.toml, package.json or skill.py to build", dir.display());
        return Err(Failure::new(Exit::Usage, message));
    };
    let packed = dir.join("target").join("packed.wasm");
    std::fs::create_dir_all(dir.join("target"))
        .map_err(|e| Failure::new(Exit::Failed, format!("cannot write {}: {e}", packed.display())))?;
    let name = write_packed(&wasm, &manifest, &packed)?;
    let out = dir.join(format!("{name}.wasm"));
    std::fs::rename(&packed, &out)
        .map_err(|e| Failure::new(Exit::Failed, format!("cannot write {}: {e}", out.display())))?;
    Ok(out)
}

fn rust(dir: &Path) -> Result<PathBuf, Failure> {
    const TARGET: &str = "wasm32-wasip2";
    let mut cargo = Command::new("cargo");
    cargo.args(["build", "--release", "--target", TARGET, "--message-format", "json-render-diagnostics"]);
    if let Some(home) = cargo_home() {
        // A panic names its source file. For a package, that is a file below this directory, whose path differs between
        // machines.
        let flag = json!([format!("--remap-path-prefix={}=/cargo", home.display())]);
        cargo.args(["--config", &format!("target.{TARGET}.rustflags={flag}")]);
    }
    let output = cargo.current_dir(dir).stdin(Stdio::null()).stderr(Stdio::inherit()).output();
    let output = output.map_err(|e| not_started("cargo", "cargo comes with Rust, from https://rustup.rs", &e))?;
    if !output.status.success() {
        let message =
            format!("cargo failed ({}); if the target is missing, run: rustup target add {TARGET}", output.status);
        return Err(Failure::new(Exit::Failed, message));
    }
    let made = String::from_utf8_lossy(&output.stdout).lines().filter_map(component_of).next_back();
    made.ok_or_else(|| {
        let message = "cargo produced no .wasm file; the crate must be a cdylib or a program";
        Failure::new(Exit::Failed, format!("{}: {message}", dir.display()))
    })
}

fn cargo_home() -> Option<PathBuf> {
    std::env::var_os("CARGO_HOME")
        .map(PathBuf::from)
        .or_else(|| Some(PathBuf::from(std::env::var_os("HOME")?).join(".cargo")))
}

/// Returns the component that a message of cargo reports.
fn component_of(message: &str) -> Option<PathBuf> {
    let message: Value = serde_json::from_str(message).ok()?;
    let files = message["filenames"].as_array()?.iter().filter_map(Value::as_str);
    files.filter(|file| file.ends_with(".wasm")).map(PathBuf::from).next_back()
}

fn prepared_out(dir: &Path, name: &str) -> Result<PathBuf, Failure> {
    let target = dir.join("target");
    std::fs::create_dir_all(&target)
        .map_err(|e| Failure::new(Exit::Failed, format!("cannot make {}: {e}", target.display())))?;
    Ok(target.join(name))
}

fn cannot_write(path: &Path, error: &std::io::Error) -> Failure {
    Failure::new(Exit::Failed, format!("cannot write {}: {error}", path.display()))
}

/// Runs a tool with its output on standard error.
fn run(command: &mut Command, how_to_get: &str) -> Result<(), Failure> {
    /// The exit code of `env` in a script's first line if the interpreter is missing.
    const NOT_FOUND: i32 = 127;
    let name = command.get_program().to_string_lossy().into_owned();
    let status = command.stdin(Stdio::null()).stdout(std::io::stderr()).status();
    let status = status.map_err(|e| not_started(&name, how_to_get, &e))?;
    match status.code() {
        Some(0) => Ok(()),
        Some(NOT_FOUND) => Err(Failure::new(Exit::Failed, format!("{name} could not be started; {how_to_get}"))),
        _ => Err(Failure::new(Exit::Failed, format!("{name} failed ({status})"))),
    }
}

fn not_started(name: &str, how_to_get: &str, error: &std::io::Error) -> Failure {
    match error.kind() {
        std::io::ErrorKind::NotFound => Failure::new(Exit::Usage, format!("{name} was not found; {how_to_get}")),
        _ => Failure::new(Exit::Failed, format!("{name} could not be started: {error}")),
    }
}
