//! `kiso skill remove`.

use super::open;
use crate::cli::{Exit, Failure, Shared};
use kiso_base::home::SkillName;
use serde_json::json;

#[derive(Debug, clap::Args)]
pub(crate) struct RemoveArgs {
    /// The skill
    name: String,
}

impl RemoveArgs {
    pub(crate) fn execute(&self, shared: &Shared) -> Result<Exit, Failure> {
        let (opened, _) = open(shared)?;
        let name = SkillName::parse(&self.name)?;
        opened.skills.remove(&name)?;
        if shared.json {
            outln!("{}", json!({ "type": "removed", "skill": name.as_str() }));
        } else {
            outln!("removed {name} and its grant");
        }
        Ok(Exit::Done)
    }
}
