//! One request of a login and its answer, within limits. Redirects are not followed.

use std::net::IpAddr;
use std::time::Duration;

use bytes::Bytes;
use http::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, USER_AGENT};
use http::{HeaderValue, Method, Request, Uri};
use http_body_util::BodyExt;
use serde_json::Value;
use tokio::time::{Instant, timeout_at};

use super::super::shown;
use super::OauthError;
use kiso_base::net::pool::{self, SendError};

/// Maximum size of an answer in KiB. Metadata of large providers have about ten.
const MAX_KIB: usize = 128;

/// Addresses and time limits of a login.
#[derive(Debug, Clone, Copy)]
pub(super) struct LoginReach {
    /// Whether the server is on this machine: only then may an authorization server be on this machine or use http.
    pub local: bool,
    /// Time limit in seconds of each request.
    pub timeout_s: u64,
}

/// The body of a request.
pub(super) enum FetchBody {
    Nothing,
    Json(Value),
    /// A form, with the value of `Authorization`.
    Form(String, Option<HeaderValue>),
}

pub(super) struct FetchAnswer {
    pub status: u16,
    /// Null if it is not JSON.
    pub body: Value,
}

/// Returns whether an address means this machine, by its spelling.
pub(super) fn is_loopback(uri: &Uri) -> bool {
    let host = uri.host().unwrap_or_default().trim_end_matches('.').to_ascii_lowercase();
    match host.trim_matches(['[', ']']).parse::<IpAddr>() {
        Ok(ip) => ip.to_canonical().is_loopback() || ip.is_unspecified(),
        Err(_) => host == "localhost" || host.ends_with(".localhost"),
    }
}

impl LoginReach {
    /// Checks an address that a server named.
    pub(super) fn address(self, text: &str) -> Result<Uri, OauthError> {
        let wrong = |why| OauthError::Address(shown(text), why);
        if text.len() > 2_000 || text.contains('#') {
            return Err(wrong("it is too long, or has a #"));
        }
        let uri: Uri = text.parse().map_err(|_| wrong("it is not an address"))?;
        if uri.authority().is_none_or(|authority| authority.as_str().contains('@')) {
            return Err(wrong("it names no host, or a user"));
        }
        match uri.scheme_str() {
            Some("https") if !is_loopback(&uri) || self.local => Ok(uri),
            Some("http") if is_loopback(&uri) && self.local => Ok(uri),
            Some("https") => Err(wrong("it is on this machine, and the server is not")),
            _ => Err(wrong("it must begin with https://")),
        }
    }

    pub(super) async fn send(self, uri: &Uri, what: FetchBody) -> Result<FetchAnswer, OauthError> {
        let place = shown(uri.authority().map_or("", |authority| authority.as_str()));
        let (mut parts, ()) = Request::new(()).into_parts();
        let (method, kind, body) = match what {
            FetchBody::Nothing => (Method::GET, None, String::new()),
            FetchBody::Json(value) => (Method::POST, Some("application/json"), value.to_string()),
            FetchBody::Form(form, authorization) => {
                parts.headers.extend(authorization.map(|value| (AUTHORIZATION, value)));
                (Method::POST, Some("application/x-www-form-urlencoded"), form)
            }
        };
        (parts.method, parts.uri) = (method, uri.clone());
        parts.headers.extend(kind.map(|kind| (CONTENT_TYPE, HeaderValue::from_static(kind))));
        parts.headers.insert(ACCEPT, HeaderValue::from_static("application/json"));
        parts.headers.insert(USER_AGENT, HeaderValue::from_static(concat!("kiso/", env!("CARGO_PKG_VERSION"))));
        let total = Duration::from_secs(self.timeout_s);
        let end = Instant::now() + total;
        let late = || OauthError::Timeout(place.clone(), self.timeout_s);
        let sent = pool::send_once(&parts, &Bytes::from(body), total, total, end).await;
        let (response, _) = sent.map_err(|error| match error {
            SendError::Http { message, .. } => OauthError::Unreachable(place.clone(), shown(&message)),
            SendError::Connect | SendError::FirstToken | SendError::Total => late(),
        })?;
        let (head, mut body) = response.into_parts();
        if head.status.is_redirection() {
            return Err(OauthError::Redirect(place));
        }
        let mut bytes = Vec::new();
        loop {
            if end <= Instant::now() {
                return Err(late());
            }
            match timeout_at(end, body.frame()).await.map_err(|_| late())? {
                None => break,
                Some(Err(error)) => return Err(OauthError::Unreachable(place, shown(&pool::chain(&error)))),
                Some(Ok(frame)) => bytes.extend_from_slice(&frame.into_data().unwrap_or_default()),
            }
            if bytes.len() > MAX_KIB << 10 {
                return Err(OauthError::TooLarge(place, MAX_KIB));
            }
        }
        let body = kiso_base::json::parse(&bytes).ok();
        Ok(FetchAnswer { status: head.status.as_u16(), body: body.unwrap_or_default() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_server_of_this_machine_may_send_to_this_machine() {
        let [local, remote] = [true, false].map(|local| LoginReach { local, timeout_s: 1 });
        for (text, from_here, from_elsewhere) in [
            ("https://login.example/a", true, true),
            ("http://login.example/a", false, false),
            ("http://127.0.0.1:8000/a", true, false),
            ("https://127.0.0.2/a", true, false),
            ("https://0.0.0.0/a", true, false),
            ("https://[::1]/a", true, false),
            ("https://[::ffff:127.0.0.1]/a", true, false),
            ("https://LOCALHOST./a", true, false),
            ("https://a.localhost/a", true, false),
            ("https://me@login.example/a", false, false),
            ("https://login.example/#a", false, false),
        ] {
            assert_eq!(local.address(text).is_ok(), from_here, "{text}");
            assert_eq!(remote.address(text).is_ok(), from_elsewhere, "{text}");
        }
    }
}
