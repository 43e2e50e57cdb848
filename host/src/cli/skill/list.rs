//! `kiso skill list`.

use super::open;
use crate::cli::show::printable_line;
use crate::cli::{Exit, Failure, Shared};
use serde_json::json;

#[derive(Debug, clap::Args)]
pub struct List {}

impl List {
    pub fn execute(&self, shared: &Shared) -> Result<Exit, Failure> {
        let (opened, _) = open(shared)?;
        let mut exit = Exit::Done;
        for skill in opened.skills.list() {
            let skill = match skill {
                Ok(skill) => skill,
                Err(error) => {
                    exit = Exit::Failed;
                    Failure::from(error).print(shared.json);
                    continue;
                }
            };
            let manifest = &skill.manifest;
            let origin = skill.origin();
            if shared.json {
                let tools: Vec<&str> = skill.tools.iter().map(|t| t.name.as_str()).collect();
                let object = json!({
                    "type": "skill", "skill": manifest.name.as_str(), "version": manifest.version, "origin": origin,
                    "shape": skill.shape, "category": manifest.category, "summary": manifest.summary, "tools": tools,
                });
                outln!("{object}");
            } else {
                let (version, summary) = (printable_line(&manifest.version), printable_line(&manifest.summary));
                outln!("{:16} {version:10} {origin:10} {summary}", manifest.name.as_str());
            }
        }
        Ok(exit)
    }
}
