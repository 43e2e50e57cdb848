//! Memory across sessions: only for administrators, because it comes from all sessions.

use axum::Json;
use axum::extract::State;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::App;
use crate::auth::Who;
use crate::document::routes;
use crate::error::ApiError;
use crate::wire::{Body, Created, JsonResult, Page, Path, Query, page_size};
use kiso_base::clock::now_ms;
use kiso_base::compute;
use kiso_plan::limits::Usage;
use kiso_store::memory::{self, CoreError};
use kiso_store::secret::found;
use kiso_store::store::{Chunk, Fact, MAX_FACT_BYTES, NewFact, USER};

routes! {
    /// Core memory, and the passages of archival memory, newest first
    GET "/memory" Admin => show, 400 "A parameter is not valid, or there are both `q` and `before`";
    /// Change core memory by a JSON merge patch (RFC 7396)
    PATCH "/memory/core" Admin => change_core,
        200 "The new document", 400 "The body is not valid, or contains a secret";
    /// Forget a passage
    DELETE "/memory/{id}" Admin => forget, 404 "The passage does not exist";
    /// Learned facts, newest first
    GET "/facts" Admin => facts, 400 "A parameter is not valid, or there are both `q` and `before`";
    /// Add a fact
    POST "/facts" Admin => add_fact, 400 "The body is not valid, or contains a secret";
    /// Replace the text of a fact
    PUT "/facts/{id}" Admin => change_fact,
        200 "The fact has a new id",
        400 "The body is not valid, or contains a secret",
        404 "The fact does not exist";
    /// Forget a fact
    DELETE "/facts/{id}" Admin => forget_fact, 404 "The fact does not exist";
}

/// Maximum length in characters of a query.
const MAX_QUESTION: usize = 1_000;

/// Page of a listing, or a query.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct MemoryPart {
    /// A query: returns the best matches instead of the newest entries, on a single page; cannot be combined with `before`.
    #[schemars(length(max = MAX_QUESTION))]
    q: Option<String>,
    /// The `next` of the previous page.
    before: Option<i64>,
    /// Number of entries per page; 50 by default.
    #[schemars(range(min = 1, max = 500))]
    limit: Option<u32>,
}

/// Core memory, and a page of archival memory.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct MemoryPage {
    #[schemars(with = "Map<String, Value>")]
    core: Value,
    #[serde(flatten)]
    page: Page<Chunk>,
}

/// Core memory.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct CoreMemory {
    #[schemars(with = "Map<String, Value>")]
    core: Value,
}

/// A forgotten entry.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct Forgotten {
    /// Its id.
    forgotten: i64,
}

/// A known fact.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct FactId {
    id: i64,
}

impl MemoryPart {
    fn question(&self) -> Result<Option<String>, ApiError> {
        let Some(question) = &self.q else { return Ok(None) };
        if question.chars().count() > MAX_QUESTION {
            return Err(ApiError::bad_request(format!("`q` has more than {MAX_QUESTION} characters")));
        }
        if self.before.is_some() {
            return Err(ApiError::bad_request("what fits a question best has no pages: `before` goes without `q`"));
        }
        Ok(Some(question.clone()))
    }
}

pub(super) async fn show(_: Who, State(app): State<App>, Query(part): Query<MemoryPart>) -> JsonResult<MemoryPage> {
    let (limit, before) = (page_size(part.limit)?, part.before);
    let store = &app.0.drive.store;
    let core = memory::core(store).await?;
    let page = match part.question()? {
        Some(question) => {
            let drive = app.0.drive.newest();
            let meaning = drive.meaning(&question, &drive.keys_alone(), None, None, Usage::default()).await?;
            page(memory::search(store, &question, meaning, limit).await?, None, |chunk| chunk.id)
        }
        None => page(store.read(move |view| view.chunks_before(before, limit)).await?, Some(limit), |chunk| chunk.id),
    };
    Ok(Json(MemoryPage { core, page }))
}

pub(super) async fn forget(who: Who, State(app): State<App>, Path(id): Path<i64>) -> JsonResult<Forgotten> {
    if !app.0.drive.store.write(move |tx| tx.delete_chunk(id)).await? {
        return Err(ApiError::not_found(format!("there is no passage {id}")));
    }
    tracing::info!(id, by = who.name(), "a passage was forgotten");
    Ok(Json(Forgotten { forgotten: id }))
}

pub(super) async fn facts(_: Who, State(app): State<App>, Query(part): Query<MemoryPart>) -> JsonResult<Page<Fact>> {
    let (limit, before) = (page_size(part.limit)?, part.before);
    let store = &app.0.drive.store;
    let page = match part.question()? {
        Some(question) => page(store.read(move |view| view.find_facts(&question, limit)).await?, None, |fact| fact.id),
        None => page(store.read(move |view| view.facts_before(before, limit)).await?, Some(limit), |fact| fact.id),
    };
    Ok(Json(page))
}

/// A fact from a person.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "FactIn")]
pub(super) struct FactText {
    /// At most 2,000 bytes.
    #[schemars(length(max = MAX_FACT_BYTES), regex(pattern = r"\S"))]
    text: String,
}

/// Adding a known fact makes it as recent as a new one.
pub(super) async fn add_fact(
    who: Who,
    State(app): State<App>,
    Body(FactText { text }): Body<FactText>,
) -> Result<Created<FactId>, ApiError> {
    without_secret(&app, &text).await?;
    let fact = parse_fact(&text)?;
    let id = app.0.drive.store.write(move |tx| tx.add_fact(&fact, now_ms())).await?;
    tracing::info!(id, by = who.name(), "a fact was added");
    Ok(Created(FactId { id }))
}

/// The fact then counts as told by a person, with a new id.
pub(super) async fn change_fact(
    who: Who,
    State(app): State<App>,
    Path(id): Path<i64>,
    Body(FactText { text }): Body<FactText>,
) -> JsonResult<FactId> {
    without_secret(&app, &text).await?;
    let fact = parse_fact(&text)?;
    let write = app.0.drive.store.write(move |tx| {
        let known = tx.delete_fact(id)?;
        known.then(|| tx.add_fact(&fact, now_ms())).transpose()
    });
    let changed = write.await?.ok_or_else(|| ApiError::not_found(format!("there is no fact {id}")))?;
    tracing::info!(id, by = who.name(), "a fact was changed");
    Ok(Json(FactId { id: changed }))
}

/// `null` removes a member.
pub(super) async fn change_core(
    who: Who,
    State(app): State<App>,
    Body(patch): Body<Map<String, Value>>,
) -> JsonResult<CoreMemory> {
    let patch = Value::from(patch);
    without_secret(&app, &patch.to_string()).await?;
    let core = memory::update_core(&app.0.drive.store, patch, now_ms()).await.map_err(|error| match error {
        CoreError::Store(error) => error.into(),
        error => ApiError::bad_request(error.to_string()),
    })?;
    tracing::info!(by = who.name(), "core memory was changed");
    Ok(Json(CoreMemory { core }))
}

fn parse_fact(text: &str) -> Result<NewFact, ApiError> {
    let text = text.trim().to_owned();
    if text.is_empty() || text.len() > MAX_FACT_BYTES {
        return Err(ApiError::bad_request(format!("a fact has 1 to {MAX_FACT_BYTES} bytes")));
    }
    Ok(NewFact { text, source: USER.to_owned(), session: None, confidence: 100 })
}

/// Refuses text with secrets: memory is part of prompts, in plain text.
async fn without_secret(app: &App, text: &str) -> Result<(), ApiError> {
    let (text, keys) = (text.to_owned(), app.0.drive.keys_alone());
    let look = move || !found::extract(&text, &keys).1.is_empty() || keys.redact(&text) != text;
    let holds = compute::run("looking for secrets in what is to be remembered", look).await;
    match holds {
        Ok(false) => Ok(()),
        Ok(true) => Err(ApiError::bad_request("it contains a secret, and memory is told to models")
            .hint("`kiso secret set` keeps secrets")),
        Err(overdue) => Err(ApiError::bad_request(overdue.to_string())),
    }
}

pub(super) async fn forget_fact(who: Who, State(app): State<App>, Path(id): Path<i64>) -> JsonResult<Forgotten> {
    if !app.0.drive.store.write(move |tx| tx.delete_fact(id)).await? {
        return Err(ApiError::not_found(format!("there is no fact {id}")));
    }
    tracing::info!(id, by = who.name(), "a fact was forgotten");
    Ok(Json(Forgotten { forgotten: id }))
}

/// Returns the results; with `limit`, as a page that others may follow.
fn page<T>(items: Vec<T>, limit: Option<u32>, id: impl Fn(&T) -> i64) -> Page<T> {
    let full = limit.is_some_and(|limit| items.len() == limit as usize);
    let next = items.last().filter(|_| full).map(|last| id(last).to_string());
    Page { items, next }
}
