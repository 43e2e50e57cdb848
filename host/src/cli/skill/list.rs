//! `kiso skill list`.

use super::open;
use crate::cli::listing::typed;
use crate::cli::show::printable_line;
use crate::cli::{Exit, Failure, Shared};

#[derive(Debug, clap::Args)]
pub(crate) struct ListArgs {}

impl ListArgs {
    pub(crate) fn execute(&self, shared: &Shared) -> Result<Exit, Failure> {
        let (opened, show) = open(shared)?;
        let mut exit = Exit::Done;
        for skill in opened.skills.list() {
            if shared.json {
                outln!("{}", typed("skill", &opened.skills.line_of(&skill)));
            }
            match skill {
                Ok(_) if shared.json => {}
                Ok(skill) => {
                    let (name, manifest) = (skill.name().as_str(), &skill.manifest);
                    let (version, summary) = (printable_line(&manifest.version), printable_line(&manifest.summary));
                    outln!("{name:16} {version:10} {:10} {summary}", skill.origin().as_str());
                }
                Err(error) => {
                    exit = Exit::Failed;
                    if !shared.json {
                        Failure::from(error).print(false);
                    }
                }
            }
        }
        for skill in opened.skills.agent_skills() {
            match skill {
                Ok(skill) if shared.json => outln!("{}", typed("skill", &skill.line())),
                Ok(skill) => {
                    let (version, description) = (printable_line(skill.version()), printable_line(&skill.description));
                    outln!("{:16} {version:10} {:10} {description}", skill.name.as_str(), "agent");
                }
                Err(error) => {
                    exit = Exit::Failed;
                    Failure::from(error).print(shared.json);
                }
            }
        }
        // Agent Skills of mounted projects that wait for a decision.
        for mount in &opened.config.mounts {
            let Ok(found) = opened.skills.project_skills(&mount.path) else { continue };
            let open: Vec<_> = found.iter().filter(|skill| skill.state.is_open()).collect();
            if shared.json {
                open.iter().for_each(|skill| outln!("{}", typed("project_skill", &skill.shown(&mount.path))));
            } else if !open.is_empty() {
                let names: Vec<String> =
                    open.iter().map(|skill| format!("{} ({})", skill.name, skill.state.word())).collect();
                let path = mount.path.display();
                show.line(&printable_line(&format!(
                    "in {path}, and not trusted: {}; `kiso skill trust project {path}` looks at them",
                    names.join(", ")
                )));
            }
        }
        Ok(exit)
    }
}
