//! `skill_list`, `skill_read`: the installed skills, and the documentation of one: of a component, or the text of an Agent Skill.

use std::fmt::Write as _;

use serde_json::{Value, json};

use super::{Tool, ToolFault, number, page, text, tool};
use kiso_plan::label::Label;
use kiso_sandbox::skill::{AgentSkill, InstalledSkill, SkillError, Skills};

pub(super) const CATEGORY: &str = "skills";
const LIST: &str = "skill_list";
pub(super) const READ: &str = "skill_read";

/// Maximum number of listed skills.
const MAX_LISTED: usize = 200;

pub(super) fn tools() -> Vec<Tool> {
    vec![
        tool(LIST, CATEGORY, "List the skills.", json!({}), &[]),
        tool(
            READ,
            CATEGORY,
            "Read a skill before you use it: an Agent Skill's instructions or one of its files; another one's arguments and examples.",
            json!({
                "skill": { "type": "string", "minLength": 1, "maxLength": 200 },
                "file": { "type": "string", "minLength": 1, "maxLength": 255, "description": "such as references/forms.md" },
                "offset": { "type": "integer", "minimum": 0, "default": 0 },
                "limit": { "type": "integer", "minimum": 1, "maximum": 100_000, "default": 20_000 },
            }),
            &["skill"],
        ),
    ]
}

/// Runs either tool. Both read files of the home, of which at most this number of tokens is shown. The result has the label of
/// what was read, even if it is an error.
pub(super) fn call(skills: &Skills, name: &str, args: &Value, tokens: usize) -> (Result<String, ToolFault>, Label) {
    if name == LIST {
        return (Ok(list(skills)), Label::session());
    }
    let wanted = text(args, "skill").trim().trim_start_matches('@');
    let fault = |error: SkillError| ToolFault::new(error.to_string());
    match skills.agent_skill(wanted) {
        Ok(Some(skill)) => {
            let whole = match text(args, "file") {
                "" => activated(skills, &skill),
                file => skills.agent_file(&skill, file.trim_start_matches("./")),
            };
            let paged = whole.map(|whole| page(&whole, number(args, "offset"), number(args, "limit"), tokens));
            (paged.map_err(fault), skills.agent_skill_label(skill.name.as_str()))
        }
        Ok(None) => (component(skills, wanted, args), Label::session()),
        Err(error) => (Err(fault(error)), Label::session()),
    }
}

/// Returns the documentation of a callable skill.
fn component(skills: &Skills, wanted: &str, args: &Value) -> Result<String, ToolFault> {
    if args.get("file").is_some() {
        return Err(
            ToolFault::new(format!("{wanted} is no Agent Skill, so it has no files to read")).hint("leave `file` out")
        );
    }
    // A tool of a skill may also be given by its name for models.
    let skill =
        skills.find(wanted).or_else(|error| skills.find_tool(wanted).map(|(skill, _)| skill).map_err(|_| error));
    let skill = skill.map_err(|error| ToolFault::new(error.to_string()).hint("skill_list shows the skills"))?;
    document(skills, &skill)
}

/// Returns the text of an Agent Skill, after the host's own text about it.
fn activated(skills: &Skills, skill: &AgentSkill) -> Result<String, SkillError> {
    let mut text =
        format!("Agent Skill {}, in its publisher's words; its folder is {}, read-only.", skill.name, skill.place());
    let beside: Vec<&str> =
        skill.files.iter().map(|file| file.path.as_str()).filter(|path| *path != "SKILL.md").collect();
    if !beside.is_empty() {
        let shown = beside.iter().take(MAX_LISTED).copied().collect::<Vec<_>>().join(", ");
        let _ = write!(text, "\nFiles beside it: {shown}");
    }
    if let Some(needs) = &skill.compatibility {
        let _ = write!(text, "\nIt says that it needs: {needs}");
    }
    Ok(format!("{text}\n\n{}", skills.instructions(skill)?))
}

fn list(skills: &Skills) -> String {
    let (mut lines, mut more) = (Vec::new(), 0);
    for skill in skills.list() {
        if lines.len() == MAX_LISTED {
            more += 1;
            continue;
        }
        lines.push(match skill {
            Ok(skill) => {
                let manifest = &skill.manifest;
                format!("{} ({}): {}", manifest.name, manifest.category, manifest.summary)
            }
            Err(error) => format!("{} cannot be used: {}", error.skill, error.message),
        });
    }
    for skill in skills.told_agent_skills() {
        match lines.len() {
            MAX_LISTED => more += 1,
            _ => lines.push(format!("{} (Agent Skill): {}", skill.name, skill.description)),
        }
    }
    if more > 0 {
        lines.push(format!("and {more} more"));
    }
    if lines.is_empty() { "No skill is installed.".to_owned() } else { lines.join("\n") }
}

fn document(skills: &Skills, skill: &InstalledSkill) -> Result<String, ToolFault> {
    let fault = |error: SkillError| ToolFault::new(error.to_string());
    let (manifest, allowed) = (&skill.manifest, skills.allowed(skill).map_err(fault)?);
    let mut page =
        format!("# {} {} ({})\n\n{}\n", manifest.name, manifest.version, manifest.category, manifest.summary);
    if !manifest.description.is_empty() && manifest.description != manifest.summary {
        let _ = write!(page, "\n{}\n", manifest.description);
    }
    for tool in &skill.tools {
        let _ = write!(page, "\n## {}\n\nArguments: {}\n", tool.name, tool.args.schema());
    }
    if !manifest.examples.is_empty() {
        let _ = write!(page, "\n## Examples\n");
        for example in &manifest.examples {
            let _ = write!(page, "\n- {example}");
        }
        page.push('\n');
    }
    let _ = write!(
        page,
        "\n## What it may do\n\n- workspace: {}\n- memory: {} MiB, time: {} s",
        allowed.workspace, allowed.memory_mib, allowed.timeout_s
    );
    for (need, _) in &allowed.http {
        let _ = write!(page, "\n- reach {} ({})", need.host, need.methods.join(", "));
    }
    for secret in manifest.env.keys().chain(&manifest.secrets) {
        let _ = write!(page, "\n- secret {secret}");
    }
    let missing = skills.missing(skill, &skills.grant(skill).map_err(fault)?);
    if !missing.is_empty() {
        let _ = write!(page, "\n\nIt asks for more, which an administrator did not grant:\n{missing}");
    }
    Ok(page)
}
