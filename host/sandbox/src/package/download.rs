//! Fetches a file with a known digest over HTTP. The bytes are used only when the file is complete.

use bytes::Bytes;
use http::header::{CONTENT_LENGTH, LOCATION, USER_AGENT};
use http::{HeaderValue, Method, Request, Uri};
use http_body_util::BodyExt;
use kiso_base::net::pool::{self, SendError};
use std::time::Duration;
use tokio::time::{Instant, timeout, timeout_at};

/// Timeout for a connection, the head of a response, and each further piece.
const CONNECT: Duration = Duration::from_secs(20);
const HEAD: Duration = Duration::from_secs(60);
const PIECE: Duration = Duration::from_secs(60);
/// Timeout for the whole download: some lines are slow.
const TOTAL: Duration = Duration::from_secs(3600);

/// Publishers redirect from one address to another, and rarely twice.
const MAX_REDIRECTS: usize = 5;

/// A download that failed.
#[derive(Debug, thiserror::Error)]
#[error("{url} cannot be fetched: {why}")]
pub struct DownloadError {
    url: String,
    why: String,
}

/// Fetches a file of at most `max` bytes. Calls `progress` with the bytes so far, and the total if the server sends it.
pub async fn download(
    url: &str,
    max: u64,
    mut progress: impl FnMut(u64, Option<u64>),
) -> Result<Vec<u8>, DownloadError> {
    let end = Instant::now() + TOTAL;
    let mut uri = checked(url, None).map_err(|why| DownloadError { url: url.to_owned(), why })?;
    let failed = |why: String| DownloadError { url: url.to_owned(), why };
    for _ in 0..=MAX_REDIRECTS {
        let agent = HeaderValue::from_static(concat!("kiso/", env!("CARGO_PKG_VERSION")));
        let request = Request::builder().method(Method::GET).uri(uri.clone()).header(USER_AGENT, agent);
        let (parts, ()) = request.body(()).map_err(|e| failed(e.to_string()))?.into_parts();
        let sent = pool::send(&parts, &Bytes::new(), CONNECT, HEAD, end).await;
        let (response, _) = sent.map_err(|error| failed(unsent(&error)))?;
        let status = response.status();
        if status.is_redirection() {
            let to = response.headers().get(LOCATION).and_then(|to| to.to_str().ok());
            let to = to.ok_or_else(|| failed(format!("it answered {status} without an address")))?;
            uri = checked(to, Some(&uri)).map_err(failed)?;
            continue;
        }
        if !status.is_success() {
            return Err(failed(format!("it answered {status}")));
        }
        let length = response.headers().get(CONTENT_LENGTH);
        let length = length.and_then(|length| length.to_str().ok()?.parse::<u64>().ok());
        let too_large = || failed(format!("it has more than {max} bytes, so it is something else"));
        if length.is_some_and(|length| length > max) {
            return Err(too_large());
        }
        let (mut body, mut bytes) = (response.into_body(), Vec::new());
        loop {
            let frame = timeout_at(end, timeout(PIECE, body.frame())).await;
            let Ok(Ok(frame)) = frame else { return Err(failed("nothing more came in time".to_owned())) };
            let Some(frame) = frame else { break };
            let frame = frame.map_err(|e| failed(format!("it ended in the middle: {}", pool::chain(&e))))?;
            let Ok(data) = frame.into_data() else { continue };
            if (bytes.len() + data.len()) as u64 > max {
                return Err(too_large());
            }
            bytes.extend_from_slice(&data);
            progress(bytes.len() as u64, length);
        }
        return Ok(bytes);
    }
    Err(failed(format!("it was sent on more than {MAX_REDIRECTS} times")))
}

/// The address to ask: `https`, or `http` where the first address was that already.
fn checked(to: &str, from: Option<&Uri>) -> Result<Uri, String> {
    let wrong = || format!("`{to}` is not an address with https:// or http://");
    let uri: Uri = match from {
        Some(from) if to.starts_with('/') && !to.starts_with("//") => {
            let mut parts = from.clone().into_parts();
            parts.path_and_query = Some(to.parse().map_err(|_| wrong())?);
            Uri::from_parts(parts).map_err(|_| wrong())?
        }
        _ => to.parse().map_err(|_| wrong())?,
    };
    match (uri.scheme_str(), from.and_then(Uri::scheme_str)) {
        _ if uri.authority().is_none_or(|authority| authority.as_str().contains('@')) => Err(wrong()),
        (Some("https"), _) | (Some("http"), None | Some("http")) => Ok(uri),
        (Some("http"), _) => Err(format!("it sends from https to {to}")),
        _ => Err(wrong()),
    }
}

fn unsent(error: &SendError) -> String {
    match error {
        SendError::Connect => format!("no connection within {} seconds", CONNECT.as_secs()),
        SendError::FirstToken | SendError::Total => "no answer in time".to_owned(),
        SendError::Http { message, .. } => message.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_that_are_followed() {
        let table = [
            ("https://a.example/x", None, Some("https://a.example/x")),
            ("http://127.0.0.1:9/x", None, Some("http://127.0.0.1:9/x")),
            ("/y?z", Some("https://a.example/x"), Some("https://a.example/y?z")),
            ("https://b.example/y", Some("http://a.example/x"), Some("https://b.example/y")),
            ("http://b.example/y", Some("https://a.example/x"), None),
            ("file:///etc/passwd", None, None),
            ("https://user:word@a.example/", None, None),
            ("x.wasm", None, None),
        ];
        for (to, from, expected) in table {
            let from = from.map(|from| from.parse().unwrap());
            let got = checked(to, from.as_ref()).ok().map(|uri| uri.to_string());
            assert_eq!(got.as_deref(), expected, "{to}");
        }
    }
}
