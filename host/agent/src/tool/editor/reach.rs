//! The files that the tools can reach: those of the workspace, and of the session's open folders.

use super::look::LOOK;
use super::{EDIT, FileCall, READ, ReadPath, WRITE, failed, wrong};
use crate::tool::Tools;
use crate::tool::builtin::ToolFault;
use kiso_base::home::SHARED;
use kiso_plan::code::ErrorCode;
use kiso_plan::plan::{CallerScope, Task, TaskKind};
use kiso_plan::report::TaskReport;
use kiso_sandbox::skill::Caller;

/// Returns a path without `.`, `..` and double slashes. It may be relative to the session's first open folder, or to the
/// workspace.
pub(super) fn plain_path(path: &str) -> Result<String, ToolFault> {
    let shown: String = path.chars().take(200).collect();
    let mut names: Vec<&str> = Vec::new();
    for name in path.split('/') {
        match name {
            "" | "." => {}
            ".." if names.pop().is_none() && !path.starts_with('/') => {
                return Err(wrong(
                    format!("{shown:?} leads out of the working directory"),
                    "name the file from the working directory, or with its whole path",
                ));
            }
            ".." => {}
            name => names.push(name),
        }
    }
    if path.contains('\0') || path.ends_with('/') || names.is_empty() || path == WORK {
        return Err(wrong(format!("{shown:?} is not the path of a file"), "name a file, such as /work/notes.txt"));
    }
    let slash = if path.starts_with('/') { "/" } else { "" };
    Ok(format!("{slash}{}", names.join("/")))
}

/// Returns the absolute path of a file in one of the session's folders, or in its workspace.
fn in_reach(path: &str, folders: &[String], sees_shared: bool) -> Result<String, String> {
    let base = folders.first().map_or(WORK, String::as_str);
    if !path.starts_with('/') {
        return Ok(format!("{base}/{path}"));
    }
    let is_below = |dir: &str| path.strip_prefix(dir).is_some_and(|rest| rest.starts_with('/'));
    let places = || {
        let shared = sees_shared.then_some(SHARED);
        std::iter::once(WORK).chain(folders.iter().map(String::as_str)).chain(shared)
    };
    if places().any(is_below) {
        return Ok(path.to_owned());
    }
    let shown: String = path.chars().take(200).collect();
    let places = places().collect::<Vec<_>>().join(" and ");
    Err(format!("{shown:?} is outside of {places}; this tool works there only, and exec sees other directories"))
}

/// The path of the session's workspace for tasks.
const WORK: &str = "/work";

impl Tools {
    /// Returns the call with the absolute path of its file.
    pub(super) fn placed(
        &self,
        call: &FileCall,
        role: CallerScope,
        caller: &Caller<'_>,
    ) -> Result<FileCall, Box<TaskReport>> {
        let mut placed = call.clone();
        let (name, path) = match &mut placed {
            FileCall::Read { path: ReadPath::File(path), .. } => (READ, path),
            FileCall::Read { .. } => return Ok(placed),
            FileCall::Write { path, .. } => (WRITE, path),
            FileCall::Edit { path, .. } => (EDIT, path),
            FileCall::Look(view) => (LOOK, view.path_mut()),
            FileCall::Remember { path } => (WRITE, path),
        };
        // The same folders as for command lines.
        let folders = self.skills.config().visible_folders(self.skills.home(), caller.session, role);
        let folders = folders.unwrap_or_default();
        let folders: Vec<String> = folders.into_iter().map(|folder| folder.at).collect();
        match in_reach(path, &folders, caller.shared) {
            Ok(whole) => *path = whole,
            Err(why) => return Err(Box::new(failed(Task::new(TaskKind::Exec, name), ErrorCode::BadArgs, why))),
        }
        Ok(placed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_leads_into_the_workspace_or_a_folder_or_is_refused() {
        let folders = ["/project".to_owned(), "/app".to_owned()];
        let placed = |path: &str, folders: &[String]| in_reach(&plain_path(path).unwrap(), folders, false);
        for (path, whole, in_folder) in [
            ("a", "/work/a", "/project/a"),
            ("./a/../b/c", "/work/b/c", "/project/b/c"),
            ("/work/pub/x.svg", "/work/pub/x.svg", "/work/pub/x.svg"),
            ("//work//a", "/work/a", "/work/a"),
        ] {
            assert_eq!(placed(path, &[]).unwrap(), whole);
            assert_eq!(placed(path, &folders).unwrap(), in_folder);
        }
        assert_eq!(placed("/app/x", &folders).unwrap(), "/app/x");
        assert!(placed("/shared/list", &folders).is_err());
        assert_eq!(in_reach("/shared/list", &folders, true).unwrap(), "/shared/list");
        for path in ["/etc/passwd", "/work/../etc/x", "/tmp/ref/k", "/workshop/a", "/application/x"] {
            assert!(
                placed(path, &folders).unwrap_err().contains("is outside of /work and /project and /app"),
                "{path}"
            );
        }
        assert!(plain_path("../x").unwrap_err().message.contains("leads out of the working directory"));
        for path in ["", "/", "/work", "/work/", "a/", ".", "a\0b"] {
            assert!(plain_path(path).unwrap_err().message.contains("not the path of a file"), "{path:?}");
        }
    }
}
