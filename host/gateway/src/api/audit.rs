//! What skills have used of what they were granted, and granting them no more than that.

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
    /// What a component has used of its grant, and the least that would have done
    GET "/skills/{name}/audit" Admin => audit, 404 "The skill does not exist", 422 "The skill is damaged";
    /// Grant a component the least that would have done
    /// This never grants anything more.
    POST "/skills/{name}/tighten" Admin => tighten,
        200 "What it is allowed no more",
        400 "No call of it was recorded",
        404 "The skill does not exist";
}

/// What a skill is allowed no more, and what it is allowed instead.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct TightenedGrant {
    pub skill: SkillName,
    /// A line for each, with "-" or "+" before it; empty if nothing was taken away.
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
