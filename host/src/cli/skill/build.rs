//! `kiso skill build`: the language's own tool, then the manifest inside the file.

use super::pack::write_packed;
use crate::cli::show::printable_line;
use crate::cli::{Exit, Failure, Shared};
use serde_json::json;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

#[derive(Debug, clap::Args)]
pub struct Build {
    /// The project
    #[arg(default_value = ".")]
    dir: PathBuf,
}

impl Build {
    pub fn execute(&self, shared: &Shared) -> Result<Exit, Failure> {
        let built = build(&self.dir)?;
        if shared.json {
            outln!("{}", json!({ "type": "built", "file": built }));
        } else {
            outln!("built {}", printable_line(&built.display().to_string()));
        }
        Ok(Exit::Done)
    }
}

/// The world that skills of other languages are built for.
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
    } else if dir.join("skill.js").exists() {
        javascript(dir)?
    } else if dir.join("skill.py").exists() {
        python(dir)?
    } else {
        let message = format!("{}: found no Cargo.toml, skill.js or skill.py to build", dir.display());
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
    cargo.args(["build", "--release", "--target", TARGET, "--target-dir", "target"]).current_dir(dir);
    run(&mut cargo, "cargo comes with Rust, from https://rustup.rs").map_err(|mut failure| {
        failure.message.push_str(&format!("; if the target is missing, run: rustup target add {TARGET}"));
        failure
    })?;
    let release = dir.join("target").join(TARGET).join("release");
    let entries = std::fs::read_dir(&release).into_iter().flatten().flatten();
    let newest = entries
        .filter(|e| e.path().extension().is_some_and(|x| x == "wasm"))
        .max_by_key(|e| e.metadata().and_then(|m| m.modified()).ok());
    newest.map(|e| e.path()).ok_or_else(|| {
        Failure::new(
            Exit::Failed,
            format!("cargo produced no .wasm file in {}; the crate must be a cdylib or a program", release.display()),
        )
    })
}

fn javascript(dir: &Path) -> Result<PathBuf, Failure> {
    let out = prepared_out(dir, "skill-js.wasm")?;
    let local = dir.join("node_modules/.bin/componentize-qjs");
    if !local.exists() {
        if !dir.join("package.json").exists() {
            return Err(Failure::new(
                Exit::Usage,
                format!("{}: there is no package.json beside skill.js", dir.display()),
            ));
        }
        let mut npm = Command::new("npm");
        npm.args(["install", "--no-audit", "--no-fund"]).current_dir(dir);
        run(&mut npm, "npm comes with Node.js: install the package nodejs or see https://nodejs.org")?;
    }
    let mut componentize = Command::new("node_modules/.bin/componentize-qjs");
    let args = ["--sync", "--js", "skill.js", "--wit", "wit", "--world", WORLD, "--output", "target/skill-js.wasm"];
    componentize.args(args).current_dir(dir);
    run(&mut componentize, "run `npm install` in the project")?;
    Ok(out)
}

/// The version that `requirements.txt` of a new project names.
const COMPONENTIZE_PY: &str = "componentize-py==0.25.1";

/// Where the app that is componentized is written, in the project.
const APP_DIR: &str = "target/py";

/// What the component has of Python is what was imported when it was made: there are no files of the standard library where
/// it runs. So the app imports all of that, and then the project's `skill`.
const APP: &str = include_str!("build/standard_library.py");

fn python(dir: &Path) -> Result<PathBuf, Failure> {
    let out = prepared_out(dir, "skill-py.wasm")?;
    let tool = componentize_py(dir)?;
    let app = dir.join(APP_DIR).join("kiso_app.py");
    let written = std::fs::create_dir_all(dir.join(APP_DIR)).and_then(|()| std::fs::write(&app, APP));
    written.map_err(|e| Failure::new(Exit::Failed, format!("cannot write {}: {e}", app.display())))?;
    let mut componentize = Command::new(tool);
    componentize
        .args(["-q", "-d", "wit", "-w", WORLD, "componentize", "-p", ".", "-p", APP_DIR])
        .args(["kiso_app", "-o", "target/skill-py.wasm"])
        .current_dir(dir);
    if let Ok(venv) = dir.join(".venv").canonicalize() {
        // Packages of the project.
        componentize.env("VIRTUAL_ENV", venv);
    }
    run(&mut componentize, &format!("`.venv/bin/pip install {COMPONENTIZE_PY}` in the project installs it"))?;
    Ok(out)
}

/// The tool: of the project's `.venv`, or the one on the path; where there is neither, the project gets a `.venv` with what its
/// `requirements.txt` names.
fn componentize_py(dir: &Path) -> Result<PathBuf, Failure> {
    const IN_VENV: &str = ".venv/bin/componentize-py";
    if dir.join(IN_VENV).exists() {
        return Ok(PathBuf::from(IN_VENV));
    }
    let on_path = Command::new("componentize-py").arg("--version").stdout(Stdio::null()).stderr(Stdio::null()).status();
    if on_path.is_ok_and(|status| status.success()) {
        return Ok(PathBuf::from("componentize-py"));
    }
    if !dir.join(".venv/bin/pip").exists() {
        let mut venv = Command::new("python3");
        venv.args(["-m", "venv", ".venv"]).current_dir(dir);
        run(&mut venv, "install Python 3 with its module venv (Debian: python3-venv)")?;
    }
    let mut pip = Command::new(".venv/bin/pip");
    pip.args(["install", "--quiet", "--disable-pip-version-check", COMPONENTIZE_PY]).current_dir(dir);
    if dir.join("requirements.txt").exists() {
        pip.args(["-r", "requirements.txt"]);
    }
    run(&mut pip, "delete .venv and try again")?;
    Ok(PathBuf::from(IN_VENV))
}

fn prepared_out(dir: &Path, name: &str) -> Result<PathBuf, Failure> {
    let target = dir.join("target");
    std::fs::create_dir_all(&target)
        .map_err(|e| Failure::new(Exit::Failed, format!("cannot make {}: {e}", target.display())))?;
    Ok(target.join(name))
}

/// Runs a tool with its output on standard error.
fn run(command: &mut Command, how_to_get: &str) -> Result<(), Failure> {
    let name = command.get_program().to_string_lossy().into_owned();
    let status = command.stdin(Stdio::null()).stdout(std::io::stderr()).status().map_err(|e| match e.kind() {
        std::io::ErrorKind::NotFound => Failure::new(Exit::Usage, format!("{name} was not found; {how_to_get}")),
        _ => Failure::new(Exit::Failed, format!("{name} could not be started: {e}")),
    })?;
    if status.success() { Ok(()) } else { Err(Failure::new(Exit::Failed, format!("{name} failed ({status})"))) }
}
