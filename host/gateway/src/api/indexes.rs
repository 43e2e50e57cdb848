//! Search for skills in the signed indexes.

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
    /// Each request downloads the indexes again. An index that is out of date, or whose signature is not valid, is left out, and
    /// `problems` gives the reason. `command` is a command line for the daemon's machine that installs the skill.
    GET "/indexed_skills" Admin => search;
}

/// Maximum length in characters of a query.
const MAX_QUESTION: usize = 200;

/// Maximum number of skills in a response.
const MAX_SHOWN: usize = 100;

/// Time limit for reading all indexes.
const WITHIN: Duration = Duration::from_secs(20);

/// Limits concurrent searches; others wait. Each may hold an index in memory.
static PLACES: Semaphore = Semaphore::const_new(2);

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct IndexedSkillsQuery {
    /// Words that the name or the summary of a skill must contain, all of them; without words, all skills match.
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
