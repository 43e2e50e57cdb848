//! A session as lines of JSON, for other programs and for people who leave.

use axum::extract::State;
use axum::http::{HeaderValue, header};
use axum::response::{IntoResponse, Response};
use futures_util::stream::unfold;
use serde::Serialize;

use super::messages::{open_message, session};
use super::sessions::{no_session, shown};
use crate::gateway::App;
use crate::gateway::auth::Who;
use crate::gateway::error::ApiError;
use crate::gateway::wire::{Path, Run};
use crate::home::SessionName;
use crate::store::{RunId, StoreError};

/// Messages, or runs, that are read at once for an export.
const PART: u32 = 200;

/// Where an export stands.
enum Export {
    Session,
    Messages { after: i64 },
    Runs { before: Option<RunId> },
    Over,
}

/// `GET /sessions/{session}/export`: the session as lines of JSON, a line at a time, so that it may be as long as it likes.
pub async fn export(_: Who, State(app): State<App>, Path(name): Path<String>) -> Result<Response, ApiError> {
    let session = session(&name)?;
    let of = session.clone();
    if !app.0.drive.store.read(move |view| view.has_session(&of)).await? {
        return Err(no_session(&name));
    }
    let disposition = format!("attachment; filename=\"{session}.jsonl\"");
    let lines = unfold(Export::Session, move |at| {
        let (app, session) = (app.clone(), session.clone());
        async move {
            let (text, next) = match part_of(&app, &session, at).await {
                Ok(None) => return None,
                Ok(Some((lines, next))) => (Ok(lines), next),
                // The answer breaks off, and the client sees that it is not whole.
                Err(error) => (Err(error), Export::Over),
            };
            Some((text, next))
        }
    });
    let mut response = axum::body::Body::from_stream(lines).into_response();
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/jsonl"));
    if let Ok(disposition) = HeaderValue::from_str(&disposition) {
        headers.insert(header::CONTENT_DISPOSITION, disposition);
    }
    Ok(response)
}

/// The next lines of an export, and where it goes on.
async fn part_of(app: &App, session: &SessionName, at: Export) -> Result<Option<(String, Export)>, StoreError> {
    let (of, vault) = (session.clone(), app.0.drive.vault.clone());
    let read = app.0.drive.store.read(move |view| {
        Ok(match at {
            Export::Session => {
                let lines = view.session(&of)?.map(|session| line("session", &shown(session))).unwrap_or_default();
                Some((lines, Export::Messages { after: 0 }))
            }
            Export::Messages { after } => {
                let messages = view.messages_after(&of, after, PART)?;
                let next = messages.last().filter(|_| messages.len() == PART as usize).map(|last| last.id);
                let lines =
                    messages.into_iter().map(|message| line("message", &open_message(&vault, of.clone(), message)));
                let next = next.map_or(Export::Runs { before: None }, |after| Export::Messages { after });
                Some((lines.collect(), next))
            }
            Export::Runs { before } => {
                let runs = view.list_runs(Some(&of), before.as_ref(), PART)?;
                let next = runs.last().filter(|_| runs.len() == PART as usize).map(|last| last.id.clone());
                let lines = runs.into_iter().map(|run| line("run", &Run::of(run)));
                Some((lines.collect(), next.map_or(Export::Over, |id| Export::Runs { before: Some(id) })))
            }
            Export::Over => None,
        })
    });
    read.await
}

/// A line of an export.
fn line(kind: &str, shape: &impl Serialize) -> String {
    #[derive(Serialize)]
    struct Line<'a, T> {
        r#type: &'a str,
        #[serde(flatten)]
        shape: &'a T,
    }
    // Everything that is sent has a JSON form.
    serde_json::to_string(&Line { r#type: kind, shape }).unwrap_or_default() + "\n"
}
