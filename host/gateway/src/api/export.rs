//! A session as lines of JSON.

use axum::extract::State;
use axum::http::{HeaderValue, header};
use axum::response::IntoResponse;
use futures_util::stream::unfold;

use super::sessions::no_session;
use crate::App;
use crate::auth::Who;
use crate::document::routes;
use crate::error::ApiError;
use crate::wire::{JsonLines, Path};
use kiso_agent::session::export::Export;
use kiso_base::home::SessionName;

routes! {
    /// A session as lines of JSON: the session, its messages, and its runs with tasks and usage
    GET "/sessions/{session}/export" Chat => export,
        200 "One object per line, each with its `type`: \"session\", \"message\", \"run\", \"task\", \"usage\", and \"end\" as the last",
        404 "The session does not exist";
}

/// Sends the export piece by piece, so that its size is not limited and a slow client does not block others.
pub(super) async fn export(
    _: Who,
    State(app): State<App>,
    Path(session): Path<SessionName>,
) -> Result<JsonLines, ApiError> {
    let of = session.clone();
    if !app.0.drive.store.read(move |view| view.has_session(&of)).await? {
        return Err(no_session(&session));
    }
    let disposition = format!("attachment; filename=\"{session}.jsonl\"");
    let secrets = app.0.drive.with_session(&session, app.0.secrets.clone()).await?;
    let lines = unfold(Some(Export::new(&session, secrets)), move |export| {
        let (store, vault) = (app.0.drive.store.clone(), app.0.drive.vault.clone());
        async move {
            let mut export = export?;
            let read = store.read(move |view| {
                let lines = export.next(view, &vault)?;
                Ok((lines, export))
            });
            match read.await {
                Ok((None, _)) => None,
                Ok((Some(lines), export)) => {
                    Some((Ok(lines.iter().map(|line| format!("{line}\n")).collect::<String>()), Some(export)))
                }
                // The response breaks off, so the client notices that it is incomplete.
                Err(error) => Some((Err(error), None)),
            }
        }
    });
    let mut response = axum::body::Body::from_stream(lines).into_response();
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/jsonl"));
    if let Ok(disposition) = HeaderValue::from_str(&disposition) {
        headers.insert(header::CONTENT_DISPOSITION, disposition);
    }
    Ok(JsonLines(response))
}
