//! The rights of a caller, in the form for the planner: only the differences between administrators and users.

use super::run_context::RunContext;
use crate::tool::builtin::SAVE_TO_FOLDER;
use kiso_base::config::Mount;
use kiso_base::home::{SHARED, SessionFolder};
use kiso_graph::run::Run;
use kiso_plan::plan::CallerScope;

/// Returns whether the tasks of a run see the files that all sessions share: not if its message is from somebody outside.
pub(super) fn sees_shared(run: &Run) -> bool {
    run.spec().label.is_shown_to_planners()
}

impl RunContext<'_> {
    /// Returns the line about the caller of this run.
    pub(super) fn rights(&self, run: &Run) -> String {
        // Folders that cannot be read are reported when a command line needs them.
        let config = &self.drive.config;
        let folders = config.visible_folders(&self.drive.home, &self.session, self.caller).unwrap_or_default();
        let mut rights = rights(self.caller, &self.drive.config.mounts, &folders, sees_shared(run));
        let open = config.folders.iter().filter(|folder| folder.write && folder.is_open_to(self.caller));
        let names: Vec<&str> = open.map(|folder| folder.name.as_str()).collect();
        if !names.is_empty() {
            rights.push_str(&format!("; {SAVE_TO_FOLDER} saves in the folders {}", names.join(", ")));
        }
        rights
    }
}

fn rights(caller: CallerScope, mounts: &[Mount], folders: &[SessionFolder], sees_shared: bool) -> String {
    let is_admin = caller == CallerScope::Admin;
    let mut seen: Vec<(&str, bool)> = mounts
        .iter()
        .filter(|mount| is_admin || !mount.admin_only)
        .map(|mount| (mount.at.as_str(), mount.write))
        .collect();
    seen.extend(folders.iter().map(|folder| (folder.at.as_str(), folder.write)));
    let may = match caller {
        CallerScope::Admin => "admin: every schedule, pill, session",
        CallerScope::User => "user: no schedule or pill of an administrator, no other session",
    };
    let mut folders: Vec<_> =
        seen.into_iter().map(|(at, write)| format!("{at}{}", if write { "" } else { " (read-only)" })).collect();
    if sees_shared {
        folders.push(format!("{SHARED} (files and lists of all conversations)"));
    }
    match folders.is_empty() {
        true => may.to_owned(),
        false => format!("{may}; command lines also see {}", folders.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Rule: "Tells it the caller's role so it plans appropriate tasks."
    #[test]
    fn the_planner_is_told_what_differs_between_callers() {
        let mount = |at: &str, write, admin_only| Mount { at: at.to_owned(), path: "/srv/x".into(), write, admin_only };
        let folder = |write| {
            let (at, path) = ("/project".to_owned(), "/home/me/x".into());
            [SessionFolder { at, path, write, secrets: false, entry: None, deliveries: false, opened_ms: 0 }]
        };
        let mounts = [mount("/books", false, true), mount("/scans", true, false)];
        assert_eq!(
            rights(CallerScope::Admin, &mounts, &folder(true), false),
            "admin: every schedule, pill, session; command lines also see /books (read-only), /scans, /project"
        );
        let user = "user: no schedule or pill of an administrator, no other session";
        assert_eq!(rights(CallerScope::User, &mounts, &[], false), format!("{user}; command lines also see /scans"));
        assert_eq!(
            rights(CallerScope::User, &mounts, &folder(false), false),
            format!("{user}; command lines also see /scans, /project (read-only)")
        );
        assert_eq!(rights(CallerScope::User, &mounts[..1], &[], false), user);
        assert!(rights(CallerScope::User, &mounts[..1], &[], true).contains("also see /shared (files and lists"));
    }
}
