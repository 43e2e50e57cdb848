//! State that calls of one answer may share. Two calls that share something keep their order if one of them changes it.

use super::builtin::Builtins;
use super::editor::{self, FileCall};
use super::{EXEC, Tools};
use kiso_base::json;
use kiso_plan::call::ToolCall;
use kiso_sandbox::skill::manifest::Workspace;
use serde_json::Value;

/// The files of the session.
const WORKSPACE: u8 = 1;
const SCRATCHPAD: u8 = 2;
const MEMORY: u8 = 4;
const SCHEDULE: u8 = 8;
const SUBAGENTS: u8 = 16;

/// The state that a call reads, and the state that it changes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct SharedUse {
    reads: u8,
    changes: u8,
}

impl SharedUse {
    const fn reading(what: u8) -> Self {
        Self { reads: what, changes: 0 }
    }

    const fn changing(what: u8) -> Self {
        Self { reads: 0, changes: what }
    }

    /// Returns whether one of the two changes something that the other reads or changes.
    pub fn conflicts_with(self, other: Self) -> bool {
        self.changes & (other.reads | other.changes) != 0 || self.reads & other.changes != 0
    }
}

impl Tools {
    /// Returns the shared state that a call reads and changes.
    pub fn shared_use(&self, call: &ToolCall) -> SharedUse {
        let mut shared = self.use_of_tool(call);
        // A text of the scratchpad as an argument, or as a file that a command line reads.
        if call.args.contains("ref:") || call.args.contains("/tmp/ref/") {
            shared.reads |= SCRATCHPAD;
        }
        shared
    }

    fn use_of_tool(&self, call: &ToolCall) -> SharedUse {
        if call.name == EXEC {
            return SharedUse::changing(WORKSPACE);
        }
        let args: Value = json::parse(call.args.trim().as_bytes()).unwrap_or_default();
        if editor::has(&call.name) {
            return match FileCall::parse(&call.name, &args) {
                Ok(call) if call.only_reads() => SharedUse::reading(WORKSPACE),
                Ok(_) => SharedUse::changing(WORKSPACE),
                Err(_) => SharedUse::default(),
            };
        }
        if let Some((category, changes)) = self.builtins.changes(&call.name, &args) {
            let what = match category {
                "scratchpad" => SCRATCHPAD,
                "memory" => MEMORY,
                "schedule" => SCHEDULE,
                "subagents" => SUBAGENTS,
                _ => return SharedUse::default(),
            };
            return if changes { SharedUse::changing(what) } else { SharedUse::reading(what) };
        }
        let index = self.index();
        let tool = index.tool(&call.name);
        if index.outside.contains_key(tool) {
            return SharedUse::default();
        }
        match self.skills.find_tool(tool).map(|(skill, _)| skill.manifest.needs.workspace) {
            Ok(Workspace::Write) => SharedUse::changing(WORKSPACE),
            Ok(Workspace::Read) => SharedUse::reading(WORKSPACE),
            Ok(Workspace::None) | Err(_) => SharedUse::default(),
        }
    }
}

impl Builtins {
    /// Returns the category of a built-in tool, and whether a call of it changes its state.
    fn changes(&self, name: &str, args: &Value) -> Option<(&'static str, bool)> {
        let category = self.category(name)?;
        let saves = args.get("action").and_then(Value::as_str) == Some("save");
        let reading = ["_list", "_search", "_read", "_get", "_status"].iter().any(|end| name.ends_with(end));
        Some((category, if category == name { saves } else { !reading }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_changed_is_a_conflict() {
        let (read, change) = (SharedUse::reading(WORKSPACE), SharedUse::changing(WORKSPACE));
        assert!(!read.conflicts_with(read) && read.conflicts_with(change) && change.conflicts_with(read));
        assert!(change.conflicts_with(change) && !change.conflicts_with(SharedUse::changing(SCHEDULE)));
    }
}
