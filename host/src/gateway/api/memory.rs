//! What is remembered beyond sessions: for administrators, since it is of all of them.

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::clock::now_ms;
use crate::compute;
use crate::gateway::App;
use crate::gateway::auth::Who;
use crate::gateway::error::ApiError;
use crate::gateway::wire::{Body, Made, Page, Path, Query, page_size};
use crate::graph::limits::Usage;
use crate::home::SessionName;
use crate::memory::{self, CoreError};
use crate::secret::found;
use crate::store::{Chunk, Fact, MAX_FACT_BYTES, NewFact};

/// Characters of a question.
const MAX_QUESTION: usize = 1_000;

/// Which part of a listing, or what it is about.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Part {
    /// Those that fit this best, instead of the newest.
    q: Option<String>,
    before: Option<i64>,
    limit: Option<u32>,
}

/// A passage of archival memory.
#[derive(Debug, Serialize)]
pub struct Passage {
    id: i64,
    text: String,
    source: String,
    session: Option<SessionName>,
    at_ms: i64,
}

/// Something that was learned.
#[derive(Debug, Serialize)]
pub struct Learned {
    id: i64,
    text: String,
    source: String,
    session: Option<SessionName>,
    /// Percent.
    confidence: u8,
    at_ms: i64,
}

impl Part {
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

/// `GET /memory`: core memory, and passages, the newest first.
pub async fn show(_: Who, State(app): State<App>, Query(part): Query<Part>) -> Made<Value> {
    let (limit, before) = (page_size(part.limit)?, part.before);
    let store = &app.0.drive.store;
    let core = memory::core(store).await?;
    let page = match part.question()? {
        Some(question) => {
            let drive = app.0.drive.now();
            let meaning = drive.meaning(&question, &drive.keys_alone(), None, None, Usage::default()).await?;
            page(memory::search(store, &question, meaning, limit).await?, None)
        }
        None => page(store.read(move |view| view.chunks_before(before, limit)).await?, Some(limit)),
    };
    let Page { items, next } =
        page.map(|Chunk { id, text, source, session, at_ms }| (id, Passage { id, text, source, session, at_ms }));
    let mut made = json!({ "core": core, "items": items });
    if let Some(next) = next {
        made["next"] = next.into();
    }
    Ok(Json(made))
}

/// `DELETE /memory/{id}`: forgets a passage.
pub async fn forget(who: Who, State(app): State<App>, Path(id): Path<i64>) -> Made<Value> {
    if !app.0.drive.store.write(move |tx| tx.delete_chunk(id)).await? {
        return Err(ApiError::not_found(format!("there is no passage {id}")));
    }
    tracing::info!(id, by = who.name(), "a passage was forgotten");
    Ok(Json(json!({ "forgotten": id })))
}

/// `GET /facts`, the newest first.
pub async fn facts(_: Who, State(app): State<App>, Query(part): Query<Part>) -> Made<Page<Learned>> {
    let (limit, before) = (page_size(part.limit)?, part.before);
    let store = &app.0.drive.store;
    let page = match part.question()? {
        Some(question) => page(store.read(move |view| view.find_facts(&question, limit)).await?, None),
        None => page(store.read(move |view| view.facts_before(before, limit)).await?, Some(limit)),
    };
    Ok(Json(page.map(|Fact { id, text, source, session, confidence, at_ms }| {
        (id, Learned { id, text, source, session, confidence, at_ms })
    })))
}

/// What a person tells.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Telling {
    text: String,
}

/// `POST /facts`: adds a fact. One that is known already is as new as this one.
pub async fn add_fact(
    who: Who,
    State(app): State<App>,
    Body(Telling { text }): Body<Telling>,
) -> Result<(StatusCode, Json<Value>), ApiError> {
    without_secret(&app, &text).await?;
    let fact = told(&text)?;
    let id = app.0.drive.store.write(move |tx| tx.add_fact(&fact, now_ms())).await?;
    tracing::info!(id, by = who.name(), "a fact was added");
    Ok((StatusCode::CREATED, Json(json!({ "id": id }))))
}

/// `PUT /facts/{id}`: puts another text in its place. It is told by a person then, with a new id.
pub async fn change_fact(
    who: Who,
    State(app): State<App>,
    Path(id): Path<i64>,
    Body(Telling { text }): Body<Telling>,
) -> Made<Value> {
    without_secret(&app, &text).await?;
    let fact = told(&text)?;
    let write = app.0.drive.store.write(move |tx| {
        let known = tx.delete_fact(id)?;
        known.then(|| tx.add_fact(&fact, now_ms())).transpose()
    });
    let changed = write.await?.ok_or_else(|| ApiError::not_found(format!("there is no fact {id}")))?;
    tracing::info!(id, by = who.name(), "a fact was changed");
    Ok(Json(json!({ "id": changed })))
}

/// `PATCH /memory/core`: a JSON merge patch (RFC 7396) of core memory; `null` removes a member.
pub async fn change_core(who: Who, State(app): State<App>, Body(patch): Body<Value>) -> Made<Value> {
    without_secret(&app, &patch.to_string()).await?;
    let core = memory::update_core(&app.0.drive.store, patch, now_ms()).await.map_err(|error| match error {
        CoreError::Store(error) => error.into(),
        error => ApiError::bad_request(error.to_string()),
    })?;
    tracing::info!(by = who.name(), "core memory was changed");
    Ok(Json(json!({ "core": core })))
}

fn told(text: &str) -> Result<NewFact, ApiError> {
    let text = text.trim().to_owned();
    if text.is_empty() || text.len() > MAX_FACT_BYTES {
        return Err(ApiError::bad_request(format!("a fact has 1 to {MAX_FACT_BYTES} bytes")));
    }
    Ok(NewFact { text, source: "user".to_owned(), session: None, confidence: 100 })
}

/// What is remembered stands in prompts, in clear.
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

/// `DELETE /facts/{id}`
pub async fn forget_fact(who: Who, State(app): State<App>, Path(id): Path<i64>) -> Made<Value> {
    if !app.0.drive.store.write(move |tx| tx.delete_fact(id)).await? {
        return Err(ApiError::not_found(format!("there is no fact {id}")));
    }
    tracing::info!(id, by = who.name(), "a fact was forgotten");
    Ok(Json(json!({ "forgotten": id })))
}

/// What was found; `limit` where there may be more pages.
struct FoundPage<T> {
    items: Vec<T>,
    limit: Option<u32>,
}

fn page<T>(items: Vec<T>, limit: Option<u32>) -> FoundPage<T> {
    FoundPage { items, limit }
}

impl<T> FoundPage<T> {
    /// In the form in which it is sent, each with its id.
    fn map<U>(self, form: impl Fn(T) -> (i64, U)) -> Page<U> {
        let full = self.limit.is_some_and(|limit| self.items.len() == limit as usize);
        let mut last = None;
        let items = self.items.into_iter().map(|item| {
            let (id, item) = form(item);
            last = Some(id);
            item
        });
        let items = items.collect();
        Page { items, next: last.filter(|_| full).map(|id| id.to_string()) }
    }
}
