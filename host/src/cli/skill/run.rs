//! `kiso skill run`: a tool of a component, or a script of an Agent Skill.

use super::{open, print_ended};
use crate::cli::show::{Show, printable};
use crate::cli::{Exit, Failure, Opened, Shared, block_on, environment_secrets, pairs, session, shell};
use kiso_base::home::SessionName;
use kiso_base::json;
use kiso_plan::plan::CallerScope;
use kiso_sandbox::effect::network::Network;
use kiso_sandbox::skill::{AgentSkill, Caller, from_words};
use serde_json::{Value, json};
use std::path::PathBuf;

#[derive(Debug, clap::Args)]
pub(crate) struct CallArgs {
    /// The skill, or SKILL.FUNCTION for one of several functions
    name: String,
    /// Arguments. For an Agent Skill: one of its scripts and the script's arguments (after -- if they are options), or
    /// nothing to read its instructions
    #[arg(value_name = "KEY=VALUE")]
    words: Vec<String>,
    /// All arguments as one JSON object
    #[arg(long, conflicts_with = "words", value_name = "JSON")]
    args: Option<String>,
    /// The session whose /work it sees; created if it does not exist
    #[arg(long, short, value_name = "NAME")]
    session: Option<String>,
    /// Copy this file or folder into the session's /work first; repeat for several
    #[arg(long, short, value_name = "PATH")]
    file: Vec<PathBuf>,
}

impl CallArgs {
    pub(crate) fn execute(&self, shared: &Shared) -> Result<Exit, Failure> {
        let session = session(self.session.as_deref())?;
        let (opened, show) = open(shared)?;
        if let Some(skill) = opened.skills.agent_skill(&self.name)? {
            return self.run_script(&opened, &skill, &session, &show, shared.json);
        }
        let (skill, tool) = opened.skills.find_tool(&self.name)?;
        let args = arguments(self.args.as_deref(), &self.words, skill.tools[tool].args.schema())?;
        let _lock = opened.home.lock_session(&session)?;
        opened.copy_in(&session, &self.file, &show)?;
        show.busy(&self.name);
        let secrets = environment_secrets();
        let ended = block_on(async {
            let network = Network::by_hand(&opened.store, &opened.config, &session, CallerScope::Admin).await?;
            let caller = Caller { network: Some(&network), ..Caller::by_hand(&session, &secrets) };
            Ok::<_, Failure>(opened.skills.call(&self.name, &args, caller).await)
        })??;
        print_ended(ended, &self.name, &session, &opened.home.work_dir(&session), &show, shared.json)
    }
}

impl CallArgs {
    /// Runs a script of an Agent Skill in the session, like a command line: with the session's permissions and nothing else.
    fn run_script(
        &self,
        opened: &Opened,
        skill: &AgentSkill,
        session: &SessionName,
        show: &Show,
        json: bool,
    ) -> Result<Exit, Failure> {
        if self.args.is_some() {
            return Err(Failure::new(
                Exit::Usage,
                format!("{} is an Agent Skill, whose scripts take words, not --args", skill.name),
            ));
        }
        let Some((script, words)) = self.words.split_first() else {
            let text = opened.skills.instructions(skill)?;
            match json {
                true => outln!(
                    "{}",
                    json!({ "type": "instructions", "skill": skill.name, "place": skill.place(), "text": text })
                ),
                false => outln!("{}", printable(&text)),
            }
            return Ok(Exit::Done);
        };
        let file = skill.script(script).ok_or_else(|| {
            let all = skill.files.iter().map(|file| file.path.as_str()).filter(|path| *path != "SKILL.md");
            let all = all.collect::<Vec<_>>().join(", ");
            let all =
                if all.is_empty() { "it has no files beside its SKILL.md".to_owned() } else { format!("it has {all}") };
            Failure::new(Exit::Usage, format!("{} has no script {script:?}; {all}", skill.name))
        })?;
        let source = format!("{} \"$@\"", start_of(&format!("{}/{}", skill.place(), file.path)));
        let _lock = opened.home.lock_session(session)?;
        opened.copy_in(session, &self.file, show)?;
        shell::run_once(opened, session, &source, words.to_vec(), json)
    }
}

/// Returns the command that starts a script, by its file extension; other scripts are started by their first line.
fn start_of(path: &str) -> String {
    let by = match path.rsplit_once('.').map(|(_, ending)| ending) {
        Some("sh" | "bash") => "sh ",
        Some("js" | "mjs" | "cjs") => "js ",
        Some("py") => "python3 ",
        _ => "",
    };
    format!("{by}'{}'", path.replace('\'', "'\\''"))
}

/// Returns the arguments of a command line: JSON, or words converted by the schema.
pub(super) fn arguments(json: Option<&str>, words: &[String], schema: &Value) -> Result<Value, Failure> {
    match json {
        Some(text) => {
            json::parse(text.as_bytes()).map_err(|e| Failure::new(Exit::Usage, format!("--args is not JSON: {e}")))
        }
        None => Ok(from_words(schema, &pairs(words)?)),
    }
}
