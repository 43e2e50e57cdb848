//! Applies `allowed-tools` of Agent Skills. They only exclude tools and never add any.

use super::{EXEC, builtin, editor};
use kiso_sandbox::skill::{AgentSkill, wire_name};
use std::sync::Arc;

/// Names in skills for other clients that correspond to command lines and the tools for files.
const BY_COMMAND: [&str; 14] = [
    "bash",
    "shell",
    "execute",
    "run",
    "read",
    "write",
    "edit",
    "multiedit",
    "notebookedit",
    "grep",
    "glob",
    "ls",
    "terminal",
    "code",
];

/// Names for other purposes, with the corresponding category or tool.
const OTHERS: [(&str, &str); 3] = [("webfetch", "fetch"), ("websearch", "search"), ("task", "subagents")];

/// Returns whether a tool is allowed, by its name for models, and its category. A skill without `allowed-tools` excludes nothing;
/// with several skills, a tool is allowed if one of them allows it.
pub fn allows(in_use: &[Arc<AgentSkill>], tool: &str, category: &str) -> bool {
    if in_use.is_empty() || category == builtin::SCRATCHPAD || tool == builtin::SKILL_READ {
        return true;
    }
    in_use.iter().any(|skill| match &skill.allowed_tools {
        None => true,
        Some(words) => words.iter().any(|word| names(word, tool, category)),
    })
}

/// Returns whether a word of `allowed-tools` names a tool. A pattern after it, as in `Bash(git:*)`, concerns approvals of other
/// clients and is ignored; command lines run in the sandbox anyway.
fn names(word: &str, tool: &str, category: &str) -> bool {
    let word = word.split('(').next().unwrap_or_default().trim();
    let lower = word.to_ascii_lowercase();
    if BY_COMMAND.contains(&lower.as_str()) {
        return tool == EXEC || editor::has(tool);
    }
    if let Some((_, here)) = OTHERS.iter().find(|(theirs, _)| *theirs == lower) {
        return tool == *here || category == *here;
    }
    let outside = word.strip_prefix("mcp__").unwrap_or(word);
    let wire = wire_name(outside);
    // `calc` names all tools of that skill.
    wire == tool || tool.strip_prefix(wire.as_str()).is_some_and(|rest| rest.starts_with("__")) || word == category
}

#[cfg(test)]
mod tests {
    use super::*;
    use kiso_base::home::SkillName;
    use kiso_sandbox::skill::Provenance;

    fn skill(tools: Option<&[&str]>) -> Arc<AgentSkill> {
        Arc::new(AgentSkill {
            name: SkillName::parse("x").unwrap(),
            description: "d".to_owned(),
            license: None,
            compatibility: None,
            metadata: Vec::new(),
            allowed_tools: tools.map(|tools| tools.iter().map(|tool| (*tool).to_owned()).collect()),
            by_name_only: false,
            digest: String::new(),
            source: String::new(),
            provenance: Provenance::default(),
            warnings: Vec::new(),
            files: Vec::new(),
        })
    }

    #[test]
    fn only_what_is_named_is_left() {
        let some = [skill(Some(&["Bash(git:*)", "WebFetch", "mcp__files__read", "calc", "data"]))];
        for (tool, category, left) in [
            ("exec", "shell", true),
            ("fetch", "web", true),
            ("search", "web", false),
            ("files__read", "files", true),
            ("files__write", "files", false),
            ("calc__add", "maths", true),
            ("data", "data", true),
            ("chart", "chart", false),
            ("memory_save", "memory", false),
            ("file_write", "shell", true),
            ("scratchpad", "scratchpad", true),
            ("skill_read", "skills", true),
        ] {
            assert_eq!(allows(&some, tool, category), left, "{tool}");
        }
        let nothing = [skill(Some(&[]))];
        assert!(!allows(&nothing, "exec", "shell") && allows(&nothing, "skill_read", "skills"));
        assert!(allows(&[], "exec", "shell") && allows(&[skill(None)], "exec", "shell"));
        // Each needs its own.
        assert!(allows(&[skill(Some(&[])), skill(Some(&["Read"]))], "exec", "shell"));
    }
}
