//! Used and granted permissions of skills, and reducing a grant to what was used.

use axum::Json;
use axum::extract::State;
use schemars::JsonSchema;
use serde::Serialize;

use super::skills::blocking;
use crate::App;
use crate::auth::Who;
use crate::document::routes;
use crate::wire::{JsonResult, Path};
use kiso_base::home::SkillName;
use kiso_sandbox::skill::AuditView;

routes! {
    /// Permissions that a component has used, and the smallest grant that would have sufficed
    GET "/skills/{name}/audit" Admin => audit, 404 "The skill does not exist", 422 "The skill is damaged";
    /// Reduce the grant of a component to what it has used
    /// This never grants more.
    POST "/skills/{name}/tighten" Admin => tighten,
        200 "The permissions that were removed",
        400 "No call of the skill was recorded",
        404 "The skill does not exist";
}

/// The permissions that were removed from a skill.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct TightenedGrant {
    pub skill: SkillName,
    /// One line for each change, with "-" or "+" before it; empty if nothing was removed.
    pub changes: Vec<String>,
}

pub(super) async fn audit(_: Who, State(app): State<App>, Path(name): Path<String>) -> JsonResult<AuditView> {
    let skills = app.0.drive.newest().tools.skills().clone();
    Ok(Json(blocking(move || skills.audit(&*skills.find(&name)?)).await?))
}

pub(super) async fn tighten(who: Who, State(app): State<App>, Path(name): Path<String>) -> JsonResult<TightenedGrant> {
    let skills = app.0.drive.newest().tools.skills().clone();
    let tightened = blocking(move || {
        let skill = skills.find(&name)?;
        Ok(TightenedGrant { skill: skill.name().clone(), changes: skills.tighten(&skill)? })
    });
    let tightened = tightened.await?;
    tracing::info!(skill = %tightened.skill, by = who.name(), "a grant was tightened");
    Ok(Json(tightened))
}
