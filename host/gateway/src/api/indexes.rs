//! Skills in signed indexes: what could be installed.

use axum::Json;
use axum::extract::State;
use schemars::JsonSchema;
use serde::Deserialize;
use std::time::Duration;
use tokio::sync::Semaphore;

use crate::App;
use crate::auth::Who;
use crate::document::routes;
use crate::error::ApiError;
use crate::wire::{JsonResult, Query};
use kiso_sandbox::skill::IndexSearch;

routes! {
    /// Search the signed indexes of skills that `config.toml` names
    /// Each request reads the indexes again from their addresses. An index that is out of date, or whose signature is not valid, is left
    /// out, and `problems` gives the reason. `command` is a command line for the daemon's machine that installs the skill.
    GET "/indexed_skills" Admin => search;
}

/// Characters of a question.
const MAX_QUESTION: usize = 200;

/// Skills that one answer shows.
const MAX_SHOWN: usize = 100;

/// How long all indexes together may take.
const WITHIN: Duration = Duration::from_secs(20);

/// Searches at once; more wait. Each may hold an index in memory.
static PLACES: Semaphore = Semaphore::const_new(2);

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct IndexedSkillsQuery {
    /// Words that must all be in the name or the summary of a skill; all skills without any.
    #[schemars(length(max = MAX_QUESTION))]
    q: Option<String>,
}

pub(super) async fn search(
    _: Who,
    State(app): State<App>,
    Query(asked): Query<IndexedSkillsQuery>,
) -> JsonResult<IndexSearch> {
    let question = asked.q.unwrap_or_default();
    if question.chars().count() > MAX_QUESTION {
        return Err(ApiError::bad_request(format!("`q` has more than {MAX_QUESTION} characters")));
    }
    let words: Vec<String> = question.split_whitespace().map(str::to_owned).collect();
    let skills = app.0.drive.newest().tools.skills().clone();
    let _place = PLACES.acquire().await.map_err(|closed| ApiError::internal(&closed))?;
    Ok(Json(skills.index_search(&words, MAX_SHOWN, WITHIN).await?))
}
