//! The page: files for a browser, compiled into the program. `/` is its document; the others have an address with the digest of
//! all files, so that a browser can cache them forever and never mixes two versions.
//!
//! Everybody may read these files. The page requests its data with the cookie of [`super::auth`]. Only the login's data is
//! embedded in the document, so that the page need not wait for another response.

mod bundle;
mod files;
mod lean;
mod modules;

use std::sync::Arc;

use axum::body::Body;
use axum::extract::State;
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};

use self::files::{File, Files};
use super::App;
use super::auth::{self, view::LoginView};
use super::document::routes;
use super::error::ApiError;
use super::wire::{Html, PageFile, Path};

routes! {
    /// The document of the page
    GET "/" Open => index, 200 "The file, as gzip where the client accepts it";
    /// Another file of the page, which may be cached forever
    GET "/page/{digest}/{*file}" Open => file,
        200 "The file, as gzip where the client accepts it",
        404 "The file does not exist, or the digest is that of another version of the page";
}

/// Content security policy of the page: it may load and run only its own files. Text of a model or a skill can never become a
/// script, and no request goes to another machine. `blob:` is for files that the user has chosen and for pictures that the page
/// draws. The two trusted-types policies are the page's own and that of the Markdown sanitizer.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' blob: data:; \
    media-src 'self' blob:; connect-src 'self'; font-src 'self'; manifest-src 'self'; base-uri 'none'; form-action 'none'; \
    frame-ancestors 'none'; frame-src 'none'; object-src 'none'; require-trusted-types-for 'script'; \
    trusted-types dompurify kiso";

/// Permissions policy: the page gets only clipboard access for copying and full screen for videos, which browsers allow by
/// default.
const PERMISSIONS: &str = "accelerometer=(), autoplay=(), camera=(), display-capture=(), \
    encrypted-media=(), geolocation=(), gyroscope=(), hid=(), idle-detection=(), local-fonts=(), magnetometer=(), \
    microphone=(), midi=(), payment=(), picture-in-picture=(), publickey-credentials-get=(), screen-wake-lock=(), \
    serial=(), usb=(), window-management=(), xr-spatial-tracking=()";

/// Policy of the other files. They are scripts, styles and pictures of the document, which has its own policy; only a worker uses
/// the policy of its file. So this policy has what a worker needs, and makes a file that is opened directly harmless. It is short
/// because there are many files and the first load must stay small.
const POLICY_OF_FILES: &str = "default-src 'none'; script-src 'self'; frame-ancestors 'none'";

/// Headers of the document. [`super::form`] adds those of every response.
const OF_THE_DOCUMENT: [(HeaderName, &str); 3] = [
    (header::CONTENT_SECURITY_POLICY, POLICY),
    (HeaderName::from_static("permissions-policy"), PERMISSIONS),
    (HeaderName::from_static("cross-origin-opener-policy"), "same-origin"),
];

/// Headers of every other file.
const OF_FILES: [(HeaderName, &str); 2] =
    [(header::CONTENT_SECURITY_POLICY, POLICY_OF_FILES), (header::CACHE_CONTROL, FOR_GOOD)];

/// The browser must revalidate each time, so that it notices an update.
const LOOK_AGAIN: &str = "no-cache";

/// Must not be cached, because it contains the login.
const NOT_KEPT: &str = "no-store";

/// The address changes with the content.
const FOR_GOOD: &str = "public, max-age=31536000, immutable";

pub(crate) async fn index(State(app): State<App>, asked: Parts) -> Result<Html, ApiError> {
    let files = files()?;
    let (document, kept) = match logged_in(&app, &asked).await {
        Ok(Some(who)) => (files.index_for(&who), NOT_KEPT),
        Ok(None) => (files.index.clone(), LOOK_AGAIN),
        Err(error) => {
            // The page itself can show the problem.
            tracing::warn!("who is logged in cannot be read: {}", error.message);
            (files.index.clone(), NOT_KEPT)
        }
    };
    let mut response = send(document, &OF_THE_DOCUMENT, &asked.headers).await?;
    response.headers_mut().insert(header::CACHE_CONTROL, HeaderValue::from_static(kept));
    Ok(Html(response))
}

/// Returns the login of the browser that requests the document, as JSON.
async fn logged_in(app: &App, asked: &Parts) -> Result<Option<String>, ApiError> {
    let Some(who) = auth::of_document(app, asked).await? else { return Ok(None) };
    let who = serde_json::to_string(&LoginView::new(&who, app).await?);
    who.map(Some).map_err(|error| ApiError::internal(&error))
}

pub(crate) async fn file(Path((digest, name)): Path<(String, String)>, asked: HeaderMap) -> Result<PageFile, ApiError> {
    let files = files()?;
    if digest != files.digest {
        return Err(ApiError::not_found("that is of another version of the page").hint("load the page again"));
    }
    let file = files.get(&name).ok_or_else(|| ApiError::not_found(format!("the page has no file {name}")))?;
    Ok(PageFile(send(file, &OF_FILES, &asked).await?))
}

fn files() -> Result<Arc<Files>, ApiError> {
    Files::now().map_err(|error| ApiError::internal(&error))
}

async fn send(file: Arc<File>, more: &[(HeaderName, &'static str)], asked: &HeaderMap) -> Result<Response, ApiError> {
    let media_type = file.media_type;
    let (body, zipped) = match takes_gzip(asked) {
        // The first compression takes a moment.
        true => tokio::task::spawn_blocking(move || file.gzip()).await.map_err(|error| ApiError::internal(&error))?,
        false => (file.bytes.clone(), false),
    };
    let mut response = (StatusCode::OK, Body::from(body)).into_response();
    let headers = response.headers_mut();
    for (name, value) in more {
        headers.insert(name, HeaderValue::from_static(value));
    }
    headers.insert("cross-origin-resource-policy", HeaderValue::from_static("same-origin"));
    // A cache in between must not send one client the encoding that another one requested.
    headers.insert(header::VARY, HeaderValue::from_static("accept-encoding"));
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(media_type));
    if zipped {
        headers.insert(header::CONTENT_ENCODING, HeaderValue::from_static("gzip"));
    }
    Ok(response)
}

/// Returns whether the client accepts gzip with a weight other than 0 (RFC 9110, section 12.5.3).
fn takes_gzip(asked: &HeaderMap) -> bool {
    let lines = asked.get_all(header::ACCEPT_ENCODING).iter().filter_map(|line| line.to_str().ok());
    lines.flat_map(|line| line.split(',')).any(|item| {
        let (coding, weight) = item.split_once(';').unwrap_or((item, ""));
        let weight = weight.trim().strip_prefix("q=").map_or(Some(1.0), |weight| weight.parse::<f32>().ok());
        coding.trim().eq_ignore_ascii_case("gzip") && weight.is_some_and(|weight| weight > 0.0)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gzip_is_sent_to_who_takes_it() {
        let takes = |lines: &[&str]| {
            let mut headers = HeaderMap::new();
            lines.iter().for_each(|line| {
                headers.append(header::ACCEPT_ENCODING, line.parse().unwrap());
            });
            takes_gzip(&headers)
        };
        for yes in [&["gzip"][..], &["br, GZIP;q=0.5"], &["br", "deflate , gzip"], &["gzip; q=1.0"], &["gzip;x=1"]] {
            assert!(takes(yes), "{yes:?}");
        }
        for no in [&[][..], &[""], &["br"], &["gzip;q=0"], &["gzip; q=0.000"], &["xgzip"], &["gzip;q=x"], &["*"]] {
            assert!(!takes(no), "{no:?}");
        }
    }
}
