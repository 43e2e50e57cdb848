//! What can be typed into a message, for clients that complete it.

use axum::Json;
use axum::extract::State;
use serde_json::{Value, json};

use crate::gateway::App;
use crate::gateway::auth::Who;
use crate::gateway::error::ApiError;
use crate::gateway::wire::Made;
use crate::session::command::listed;
use crate::skill::Skills;

/// `GET /input`: pills, tags, commands, models and skills, as they are now.
pub async fn show(who: Who, State(app): State<App>) -> Made<Value> {
    let drive = app.0.drive.now();
    let config = app.0.drive.config_now();
    let tools = drive.tools.clone();
    // Records of skills are read from the disk.
    let read = tokio::task::spawn_blocking(move || (tools.by_category(), skills(tools.skills())));
    let (categories, skills) = read.await.map_err(|panic| ApiError::internal(&panic))?;
    // Those that count in this caller's messages.
    let pills = super::pills::of(&app).of(who.caller()).await?.into_iter();
    let pills: Vec<_> = pills
        .map(|pill| json!({ "name": pill.name, "description": pill.description, "effort": pill.effort.name() }))
        .collect();
    let tags: Vec<_> = categories.into_iter().map(|(name, tools)| json!({ "name": name, "skills": tools })).collect();
    let commands = listed(&config).into_iter();
    let commands: Vec<_> = commands
        .map(|(name, args, summary)| json!({ "name": name, "args": args.trim(), "summary": summary }))
        .collect();
    Ok(Json(json!({
        "pills": pills, "tags": tags, "commands": commands, "models": config.model_strings(), "skills": skills,
    })))
}

/// What can be called by name. A damaged skill is not among them.
fn skills(skills: &Skills) -> Vec<Value> {
    let mut shown = Vec::new();
    for skill in skills.list().into_iter().flatten() {
        for tool in &skill.tools {
            let args = tool.args.schema()["properties"].as_object().map(|args| args.keys().collect::<Vec<_>>());
            let (name, summary) = (&tool.name, &skill.manifest.summary);
            shown.push(json!({
                "name": name, "skill": skill.name().as_str(), "summary": summary, "args": args.unwrap_or_default(),
            }));
        }
    }
    shown
}
