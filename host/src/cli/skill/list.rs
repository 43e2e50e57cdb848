//! `kiso skill list`.

use super::open;
use crate::cli::listing::typed;
use crate::cli::show::printable_line;
use crate::cli::{Exit, Failure, Shared};

#[derive(Debug, clap::Args)]
pub struct ListArgs {}

impl ListArgs {
    pub fn execute(&self, shared: &Shared) -> Result<Exit, Failure> {
        let (opened, _) = open(shared)?;
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
        Ok(exit)
    }
}
