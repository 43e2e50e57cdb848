use crate::Failure;
use std::io::ErrorKind;
use std::path::{Component, Path, PathBuf};

/// The workspace's place in the sandbox.
const WORK: &str = "/work";

/// The absolute path of a file that a user named: "a.csv", "/work/a.csv" and "work/a.csv" are one file unless a
/// directory `work` lies in the workspace.
///
/// A path that leads out of `/work` by `..` fails with code "denied"; the host would refuse it too, with less to say.
pub fn resolve(path: &str) -> Result<PathBuf, Failure> {
    let named = Path::new(path.trim());
    let relative = named.strip_prefix(WORK).unwrap_or(named);
    let relative = relative.strip_prefix("/").unwrap_or(relative);
    let mut depth = 0i32;
    for part in relative.components() {
        match part {
            Component::Normal(_) => depth += 1,
            Component::ParentDir => depth -= 1,
            _ => {}
        }
        if depth < 0 {
            return Err(Failure::new("denied", format!("{path}: only files of the workspace can be reached")));
        }
    }
    let full = Path::new(WORK).join(relative);
    match relative.strip_prefix("work") {
        Ok(inner) if !full.exists() && depth > 1 => Ok(Path::new(WORK).join(inner)),
        _ => Ok(full),
    }
}

/// Reads a text file of the workspace. A byte order mark is dropped.
///
/// Fails with code "not-found" (naming the files that are there), "not-text" or "failed".
pub fn read(path: &str) -> Result<String, Failure> {
    let text = String::from_utf8(read_bytes(path)?).map_err(|e| {
        Failure::new("not-text", format!("{path} is not UTF-8 text (byte {})", e.utf8_error().valid_up_to()))
    })?;
    Ok(match text.strip_prefix('\u{feff}') {
        Some(rest) => rest.to_owned(),
        None => text,
    })
}

/// Reads a file of the workspace, with the errors of [`read`].
pub fn read_bytes(path: &str) -> Result<Vec<u8>, Failure> {
    let full = resolve(path)?;
    std::fs::read(&full).map_err(|e| match e.kind() {
        ErrorKind::NotFound => {
            let there = files_beside(&full);
            let there = if there.is_empty() { "no file yet".to_owned() } else { there.join(", ") };
            Failure::new("not-found", format!("{path} is not in the workspace; there is {there}"))
        }
        ErrorKind::IsADirectory => Failure::new("not-found", format!("{path} is a directory, not a file")),
        _ => Failure::new("failed", format!("cannot read {path}: {e}")),
    })
}

/// Writes a file of the workspace, making the directories that lead to it. Returns its path under `/work`.
pub fn write(path: &str, bytes: impl AsRef<[u8]>) -> Result<String, Failure> {
    let full = resolve(path)?;
    let failed = |e: std::io::Error| match e.kind() {
        ErrorKind::PermissionDenied | ErrorKind::ReadOnlyFilesystem => {
            Failure::new("denied", format!("{path}: this skill may not write to the workspace"))
        }
        _ => Failure::new("failed", format!("cannot write {path}: {e}")),
    };
    if let Some(parent) = full.parent() {
        std::fs::create_dir_all(parent).map_err(failed)?;
    }
    std::fs::write(&full, bytes).map_err(failed)?;
    let relative = full.strip_prefix(WORK).unwrap_or(&full);
    Ok(relative.to_string_lossy().into_owned())
}

/// Up to ten names in the directory of a file that was not found, so that the error can help.
fn files_beside(path: &Path) -> Vec<String> {
    let parent = path.parent().unwrap_or(Path::new(WORK));
    let Ok(entries) = std::fs::read_dir(parent) else { return Vec::new() };
    let mut names: Vec<String> =
        entries.take(1_000).flatten().map(|e| e.file_name().to_string_lossy().into_owned()).collect();
    // The directory for published files is there from the start; by itself it does not count as a new file.
    if names == ["pub"] {
        names.clear();
    }
    names.sort();
    names.truncate(10);
    names
}
