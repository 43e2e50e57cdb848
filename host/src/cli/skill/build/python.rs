//! `kiso skill build` for Python: runs componentize-py, and installs it into the project if it is missing.

use super::made::Inputs;
use super::{WORLD, cannot_write, prepared_out, run};
use crate::cli::{Exit, Failure};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// The version that `requirements.txt` of a new project names.
const COMPONENTIZE_PY: &str = "componentize-py==0.25.1";

/// Where the app for componentize-py is written, in the project.
const APP_DIR: &str = "target/py";

/// A component contains only the Python modules that were imported when it was made: it has no files of the standard library
/// at run time. So the app imports the whole standard library, and then the project's `skill`.
const APP: &str = include_str!("standard_library.py");

pub(super) fn python(dir: &Path) -> Result<PathBuf, Failure> {
    let out = prepared_out(dir, "skill-py.wasm")?;
    let tool = componentize_py(dir)?;
    let app = dir.join(APP_DIR).join("kiso_app.py");
    let written = std::fs::create_dir_all(dir.join(APP_DIR)).and_then(|()| std::fs::write(&app, APP));
    written.map_err(|e| cannot_write(&app, &e))?;
    let made_of = inputs(dir, &tool).map_err(|e| Failure::new(Exit::Failed, format!("{}: {e}", dir.display())))?;
    if made_of.made(&out) {
        return Ok(out);
    }
    let mut componentize = Command::new(tool);
    componentize
        .args(["-q", "-d", "wit", "-w", WORLD, "componentize", "-p", ".", "-p", APP_DIR])
        .args(["kiso_app", "-o", "target/skill-py.wasm"])
        .current_dir(dir);
    if let Ok(venv) = dir.join(".venv").canonicalize() {
        // Makes the packages of the project available.
        componentize.env("VIRTUAL_ENV", venv);
    }
    run(&mut componentize, &format!("`.venv/bin/pip install {COMPONENTIZE_PY}` in the project installs it"))?;
    made_of.note(&out);
    Ok(out)
}

/// Returns all inputs of a component: the project, its packages, and the tool.
fn inputs(dir: &Path, tool: &Path) -> std::io::Result<Inputs> {
    let mut inputs = Inputs::default();
    inputs.add("tool", tool.as_os_str().as_encoded_bytes()).add("app", APP.as_bytes());
    inputs.tree(dir, |name| {
        name.starts_with('.') || name == "target" || name == "__pycache__" || name.ends_with(".wasm")
    })?;
    inputs.stamps(&dir.join(".venv/lib"))?;
    Ok(inputs)
}

/// Returns the tool: from the project's `.venv`, or from the path; if there is neither, creates a `.venv` with the packages
/// in `requirements.txt`.
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
