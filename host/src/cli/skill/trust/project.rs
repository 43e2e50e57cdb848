//! `kiso skill trust project`: the Agent Skills of a project.

use crate::cli::listing::typed;
use crate::cli::show::{Show, printable_line};
use crate::cli::{Exit, Failure};
use kiso_sandbox::skill::{ProjectSkill, ProjectSkillState, Skills};
use serde_json::json;
use std::io::{BufRead, IsTerminal};
use std::path::PathBuf;

#[derive(Debug, clap::Args)]
pub(crate) struct TrustProjectArgs {
    /// The project: a directory with .agents/skills or .claude/skills in it
    project: PathBuf,
    /// Trust them as they are now, without a question
    #[arg(long)]
    yes: bool,
}

impl TrustProjectArgs {
    pub(crate) fn execute(&self, skills: &Skills, show: &Show, as_json: bool) -> Result<Exit, Failure> {
        let found = skills.project_skills(&self.project)?;
        if found.is_empty() {
            let shown = self.project.display();
            let message = format!("no Agent Skill stands in {shown}/.agents/skills or {shown}/.claude/skills");
            return Err(Failure::new(Exit::Usage, message));
        }
        let open: Vec<&ProjectSkill> = found.iter().filter(|skill| skill.state.is_open()).collect();
        for skill in &found {
            match as_json {
                true => outln!("{}", typed("project_skill", &skill.shown(&self.project))),
                false => show.line(&line(skill)),
            }
        }
        if open.is_empty() {
            return Ok(Exit::Done);
        }
        if !self.yes {
            self.ask(as_json)?;
        }
        for skill in skills.trust_project(&self.project, &found)? {
            if as_json {
                outln!("{}", json!({ "type": "trusted_skill", "skill": skill.name, "digest": skill.digest }));
            } else {
                outln!("trusted {}  sha256 {}", skill.name, skill.digest);
            }
        }
        Ok(Exit::Done)
    }

    fn ask(&self, json: bool) -> Result<(), Failure> {
        if json || !std::io::stdin().is_terminal() {
            let message = "models follow the text of these skills, and their scripts run in command lines; nothing was trusted: read \
                           them, and add --yes";
            return Err(Failure::new(Exit::Policy, message));
        }
        err!("Models follow the text of these skills. Trust them as they are now? [y]es, [n]o: ");
        let mut answer = String::new();
        std::io::stdin().lock().read_line(&mut answer).ok();
        match answer.trim().to_lowercase().as_str() {
            "y" | "yes" => Ok(()),
            _ => Err(Failure::new(Exit::Policy, "nothing was trusted")),
        }
    }
}

fn line(skill: &ProjectSkill) -> String {
    let why = match &skill.state {
        ProjectSkillState::Refused(why) => format!(": {why}"),
        ProjectSkillState::Gone => ": it stands there no more, and is removed".to_owned(),
        _ => String::new(),
    };
    printable_line(&format!("{:8} {}  {}{why}", skill.state.word(), skill.name, skill.place))
}
