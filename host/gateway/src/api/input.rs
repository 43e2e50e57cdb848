//! Input of a message, for clients with completion.

use axum::Json;
use axum::extract::State;
use schemars::JsonSchema;
use serde::Serialize;

use crate::App;
use crate::auth::Who;
use crate::document::routes;
use crate::error::ApiError;
use crate::wire::JsonResult;
use kiso_agent::session::command::listed;
use kiso_plan::effort::Effort;
use kiso_sandbox::skill::Skills;

routes! {
    /// Available input of a message: pills, tags, commands, models and skills
    GET "/input" Chat => show, 200 "The current state";
}

/// Available input of a message.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct Input {
    pills: Vec<InputPill>,
    tags: Vec<InputTag>,
    commands: Vec<InputCommand>,
    models: Vec<String>,
    skills: Vec<InputSkill>,
}

#[derive(Debug, Serialize, JsonSchema)]
struct InputPill {
    name: String,
    description: String,
    effort: Effort,
}

/// A category of tools.
#[derive(Debug, Serialize, JsonSchema)]
struct InputTag {
    name: String,
    skills: Vec<String>,
}

#[derive(Debug, Serialize, JsonSchema)]
struct InputCommand {
    name: String,
    args: String,
    summary: String,
}

/// A callable skill.
#[derive(Debug, Serialize, JsonSchema)]
struct InputSkill {
    name: String,
    skill: String,
    summary: String,
    /// Names of the arguments.
    args: Vec<String>,
}

pub(super) async fn show(who: Who, State(app): State<App>) -> JsonResult<Input> {
    let drive = app.0.drive.newest();
    let config = app.0.drive.newest_config();
    let tools = drive.tools.clone();
    // Reads the records of skills from disk.
    let read = tokio::task::spawn_blocking(move || (tools.by_category(), skills(tools.skills())));
    let (categories, skills) = read.await.map_err(|panic| ApiError::internal(&panic))?;
    // Only pills that work in this caller's messages.
    let pills = super::pills::get_pills(&app).for_caller(who.caller()).await?.into_iter();
    let pills = pills.map(|pill| InputPill { name: pill.name, description: pill.description, effort: pill.effort });
    let tags = categories.into_iter().map(|(name, skills)| InputTag { name, skills });
    let commands = listed(&config).into_iter().map(|(name, args, summary)| InputCommand {
        name: name.to_owned(),
        args: args.trim().to_owned(),
        summary: summary.to_owned(),
    });
    Ok(Json(Input {
        pills: pills.collect(),
        tags: tags.collect(),
        commands: commands.collect(),
        models: config.model_strings().into_iter().map(str::to_owned).collect(),
        skills,
    }))
}

/// Returns the callable skills, without damaged ones.
fn skills(skills: &Skills) -> Vec<InputSkill> {
    let mut shown = Vec::new();
    for skill in skills.list().into_iter().flatten() {
        for tool in &skill.tools {
            let args = tool.args.schema()["properties"].as_object();
            shown.push(InputSkill {
                name: tool.name.clone(),
                skill: skill.name().to_string(),
                summary: skill.manifest.summary.clone(),
                args: args.into_iter().flat_map(|args| args.keys().cloned()).collect(),
            });
        }
    }
    let agent_skills = skills.agent_skills().into_iter().flatten();
    shown.extend(agent_skills.map(|skill| InputSkill {
        name: skill.name.to_string(),
        skill: skill.name.to_string(),
        summary: skill.description.clone(),
        args: Vec::new(),
    }));
    shown
}
