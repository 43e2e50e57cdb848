//! Examples of docs/clients.md, and the official clients that they use.

use crate::harness::{missing_tool, root};
use std::path::PathBuf;
use std::process::Command;
use std::sync::OnceLock;

/// The official clients that a test folder's `fetch.sh` fetches, once for all tests.
pub(crate) struct OfficialClients {
    folder: &'static str,
    report: OnceLock<String>,
}

impl OfficialClients {
    pub(crate) const fn new(folder: &'static str) -> OfficialClients {
        OfficialClients { folder, report: OnceLock::new() }
    }

    /// The directory of a client. Returns `None`, with a message that names it `what`, if it is not available.
    pub(crate) fn dir(&self, name: &str, what: &str) -> Option<PathBuf> {
        let report = self.report.get_or_init(|| {
            let (script, out) = (format!("tests/{}/fetch.sh", self.folder), format!("target/{}", self.folder));
            let output = Command::new("sh").arg(root().join(script)).arg(root().join(out)).output();
            let Ok(output) = output else { return "there is no sh".to_owned() };
            assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
            String::from_utf8(output.stdout).expect("it prints UTF-8")
        });
        if let Some(dir) = report.lines().find_map(|line| line.strip_prefix(&format!("READY {name} "))) {
            return Some(dir.into());
        }
        missing_tool(what, report);
        None
    }
}

/// The part of the page under this heading.
pub(crate) fn section(heading: &str) -> String {
    let page = std::fs::read_to_string(root().join("docs/clients.md")).unwrap();
    let rest = page.split(&format!("\n## {heading}\n")).nth(1).unwrap_or_else(|| panic!("there is no {heading}"));
    rest.split("\n## ").next().unwrap_or_default().to_owned()
}

/// The contents of the fenced blocks of a text.
pub(crate) fn blocks<'t>(text: &'t str, fence: &str) -> Vec<&'t str> {
    text.split(&format!("```{fence}\n")).skip(1).filter_map(|rest| rest.split("```").next()).collect()
}
