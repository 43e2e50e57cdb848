//! Previews of a workspace's files that a browser does not show by itself: pages of documents, and their text. The sandbox makes them.

use std::time::Duration;

use axum::Json;
use axum::body::Body;
use axum::extract::State;
use axum::http::{HeaderName, HeaderValue, StatusCode, header};
use axum::response::IntoResponse;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tokio::sync::{Semaphore, SemaphorePermit};
use tokio::time::timeout;

use super::workspace::blocking;
use crate::App;
use crate::auth::Who;
use crate::document::routes;
use crate::error::ApiError;
use crate::wire::{JsonResult, Path, Query, SentFile};
use kiso_agent::session::workspace::{self, FilePath};
use kiso_base::home::SessionName;
use kiso_plan::report::TaskError;
use kiso_sandbox::skill::Caller;

routes! {
    /// A page of a PDF file of the workspace, or a picture in a format that browsers do not show, drawn in the sandbox. The header
    /// `x-kiso-pages` says how many pages there are
    GET "/sessions/{session}/pages/{*path}" Chat => page,
        200 "The page, as PNG or JPEG",
        404 "The file does not exist",
        422 "The file has no such page, cannot be drawn, or takes more than a command may have",
        503 "Too many previews are being made";
    /// A document of the workspace in words: PDF, Office, OpenDocument, EPUB, mails, and others that the skill `document` reads
    GET "/sessions/{session}/text/{*path}" Chat => text,
        404 "The file does not exist",
        422 "The file cannot be read, or takes more than a command may have",
        503 "Too many previews are being made";
}

/// Previews that are made at the same time: each takes as much memory as a command may have.
const MOST_AT_ONCE: usize = 2;

/// How long a request waits for its turn.
const PATIENCE: Duration = Duration::from_secs(20);

/// The last page that can be asked for.
const LAST_PAGE: u64 = 100_000;

const PAGES: HeaderName = HeaderName::from_static("x-kiso-pages");

static PLACES: Semaphore = Semaphore::const_new(MOST_AT_ONCE);

/// Which page.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct PageQuery {
    /// Counted from 1; the first without it.
    #[schemars(range(min = 1, max = LAST_PAGE))]
    page: Option<u64>,
}

/// A document in words.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct DocumentText {
    /// The format, as in "XLSX".
    kind: String,
    /// Pages, slides or sheets.
    parts: Vec<PreviewPart>,
    /// Whether there is more than is shown (150,000 characters, 500 parts). Absent where there is not.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    cut: bool,
}

/// A part of a document.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "DocumentPart")]
pub(super) struct PreviewPart {
    /// As in "Page 3" or "Sheet sales"; empty where there is only one.
    label: String,
    /// Markdown.
    text: String,
}

pub(super) async fn page(
    who: Who,
    State(app): State<App>,
    Path((session, path)): Path<(SessionName, FilePath)>,
    Query(PageQuery { page }): Query<PageQuery>,
) -> Result<SentFile, ApiError> {
    let page = page.unwrap_or(1);
    if !(1..=LAST_PAGE).contains(&page) {
        return Err(ApiError::bad_request(format!("`page` is a number from 1 to {LAST_PAGE}")));
    }
    let _place = begin(&app, &session, &path).await?;
    let drive = app.0.drive.newest();
    let secrets = drive.secrets_with(&session, app.0.secrets.clone()).await?;
    let caller = Caller::by_hand(&session, &secrets);
    let drawn = drive.tools.page_preview(path.as_str(), page, who.caller(), &caller).await.map_err(refused)?;
    // The program that draws runs in the sandbox, and what it calls its answer is checked as a guest's word.
    let media_type = match drawn.media_type.as_str() {
        "image/png" => "image/png",
        "image/jpeg" => "image/jpeg",
        other => return Err(ApiError::internal(&format!("a page was drawn as {other:?}"))),
    };
    let mut response = Body::from(drawn.bytes).into_response();
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(media_type));
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("private, no-store"));
    headers.insert("cross-origin-resource-policy", HeaderValue::from_static("same-origin"));
    headers.insert(PAGES, HeaderValue::from(drawn.pages));
    Ok(SentFile(response))
}

pub(super) async fn text(
    who: Who,
    State(app): State<App>,
    Path((session, path)): Path<(SessionName, FilePath)>,
) -> JsonResult<DocumentText> {
    let _place = begin(&app, &session, &path).await?;
    let drive = app.0.drive.newest();
    let secrets = drive.secrets_with(&session, app.0.secrets.clone()).await?;
    let caller = Caller::by_hand(&session, &secrets);
    let read = drive.tools.document_preview(path.as_str(), who.caller(), &caller).await.map_err(refused)?;
    let parts = read.parts.into_iter().map(|part| PreviewPart { label: part.label, text: part.text });
    Ok(Json(DocumentText { kind: read.kind, parts: parts.collect(), cut: read.cut }))
}

/// Waits for a place. A file that does not exist takes none.
async fn begin(app: &App, session: &SessionName, path: &FilePath) -> Result<SemaphorePermit<'static>, ApiError> {
    let (home, of, at) = (app.0.drive.home.clone(), session.clone(), path.clone());
    blocking(move || workspace::open(&home, &of, &at).map(drop)).await?;
    match timeout(PATIENCE, PLACES.acquire()).await {
        Ok(Ok(place)) => Ok(place),
        _ => {
            let busy = ApiError::new(StatusCode::SERVICE_UNAVAILABLE, "busy", "too many previews are being made");
            Err(busy.hint("try again in a moment"))
        }
    }
}

fn refused(error: TaskError) -> ApiError {
    ApiError::new(StatusCode::UNPROCESSABLE_ENTITY, "no_preview", error.message).hint("download the file instead")
}
