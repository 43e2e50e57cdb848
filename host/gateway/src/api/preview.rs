//! Previews of workspace files that a browser cannot show by itself: pages and text of documents. The sandbox creates them.

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
    /// A page of a PDF file of the workspace, or a picture in a format that browsers do not show, rendered in the sandbox. The header `x-kiso-pages` has the number of pages
    GET "/sessions/{session}/pages/{*path}" Chat => page,
        200 "The page, as PNG or JPEG",
        404 "The file does not exist",
        422 "The file has no such page, cannot be rendered, or exceeds the limits of a command",
        503 "Too many previews are being made";
    /// Text of a document of the workspace: PDF, Office, OpenDocument, EPUB, mails, and other formats that the skill `document` reads
    GET "/sessions/{session}/text/{*path}" Chat => text,
        404 "The file does not exist",
        422 "The file cannot be read, or exceeds the limits of a command",
        503 "Too many previews are being made";
}

/// Maximum number of concurrent previews. Each may use as much memory as a command.
const MOST_AT_ONCE: usize = 2;

/// Maximum time that a request waits for its turn.
const PATIENCE: Duration = Duration::from_secs(20);

/// The highest page number.
const LAST_PAGE: u64 = 100_000;

const PAGES: HeaderName = HeaderName::from_static("x-kiso-pages");

static PLACES: Semaphore = Semaphore::const_new(MOST_AT_ONCE);

/// Selects a page.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct PageQuery {
    /// Page number, counted from 1; the first page by default.
    #[schemars(range(min = 1, max = LAST_PAGE))]
    page: Option<u64>,
}

/// The text of a document.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct DocumentText {
    /// File format, such as "XLSX".
    kind: String,
    /// Pages, slides or sheets.
    parts: Vec<PreviewPart>,
    /// Whether the text is truncated (150,000 characters, 500 parts). Absent if it is not.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    cut: bool,
}

/// A part of a document.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "DocumentPart")]
pub(super) struct PreviewPart {
    /// Label such as "Page 3" or "Sheet sales"; empty if there is only one part.
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
    // The renderer runs in the sandbox, so the media type that it reports is not trusted.
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

/// Waits for a place. A missing file takes none.
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
