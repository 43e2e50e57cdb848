//! What a caller may do, as the planner is told it: what differs between administrators and users, and nothing else.

use super::run_context::RunContext;
use kiso_base::config::Mount;
use kiso_base::home::PROJECT;
use kiso_plan::plan::CallerScope;

impl RunContext<'_> {
    /// The line for the caller of this run.
    pub(super) fn rights(&self) -> String {
        // A project that cannot be read is reported where a command line wants it.
        let project = self.drive.home.project(&self.session).ok().flatten().map(|project| project.write);
        rights(self.caller, &self.drive.config.mounts, project)
    }
}

/// `project` says whether command lines may change the session's project, if it has one.
fn rights(caller: CallerScope, mounts: &[Mount], project: Option<bool>) -> String {
    let is_admin = caller == CallerScope::Admin;
    let mut seen: Vec<(&str, bool)> = mounts
        .iter()
        .filter(|mount| is_admin || !mount.admin_only)
        .map(|mount| (mount.at.as_str(), mount.write))
        .collect();
    if let Some(write) = project.filter(|_| is_admin && mounts.iter().all(|mount| mount.at != PROJECT)) {
        seen.push((PROJECT, write));
    }
    let may = match caller {
        CallerScope::Admin => "admin: every schedule, pill, session",
        CallerScope::User => "user: no schedule or pill of an administrator, no other session",
    };
    let folders: Vec<_> =
        seen.into_iter().map(|(at, write)| format!("{at}{}", if write { "" } else { " (read-only)" })).collect();
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
        let mounts = [mount("/books", false, true), mount("/scans", true, false)];
        assert_eq!(
            rights(CallerScope::Admin, &mounts, Some(true)),
            "admin: every schedule, pill, session; command lines also see /books (read-only), /scans, /project"
        );
        let user = "user: no schedule or pill of an administrator, no other session";
        assert_eq!(rights(CallerScope::User, &mounts, Some(true)), format!("{user}; command lines also see /scans"));
        assert_eq!(rights(CallerScope::User, &mounts[..1], None), user);
        // What the administrator calls so is not hidden.
        let taken = [mount(PROJECT, false, false)];
        assert!(rights(CallerScope::Admin, &taken, Some(true)).ends_with("also see /project (read-only)"));
    }
}
