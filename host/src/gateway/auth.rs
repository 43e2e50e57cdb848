//! Who asks, and what they may.

use std::net::{IpAddr, Ipv4Addr};

use axum::extract::{FromRequestParts, Request, State};
use axum::http::request::Parts;
use axum::http::{HeaderMap, StatusCode, Uri, header};
use axum::middleware::Next;
use axum::response::Response;

use super::App;
use super::error::ApiError;
use crate::clock::now_ms;
use crate::graph::plan::Caller;
use crate::store::{StoreError, Token, TokenScope};

/// Who may ask for a route.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Access {
    /// Everybody.
    Open,
    /// Who may chat.
    Chat,
    /// Administrators.
    Admin,
}

/// Who asks. Handlers get it as an argument.
#[derive(Debug, Clone)]
pub struct Who {
    /// Name of the token; `None` for a program of this machine where no token exists.
    pub token: Option<String>,
    /// What tells the token from another one of that name.
    pub handle: Option<String>,
    pub scope: TokenScope,
}

/// Whether the listener can only be reached from this machine.
#[derive(Debug, Clone, Copy)]
pub struct Local(pub bool);

/// Where a request comes from.
#[derive(Debug, Clone, Copy)]
pub struct Peer(pub IpAddr);

impl Who {
    pub fn caller(&self) -> Caller {
        match self.scope {
            TokenScope::Admin => Caller::Admin,
            TokenScope::Chat => Caller::User,
        }
    }

    /// For the log.
    pub fn name(&self) -> &str {
        self.token.as_deref().unwrap_or("this machine")
    }
}

/// Lets a request through that has a valid token, or needs none: where no token exists, programs of this machine may
/// chat. A page of another site is none of them, whatever browser it runs in.
pub async fn authenticate(
    State((app, access)): State<(App, Access)>,
    mut request: Request,
    next: Next,
) -> Result<Response, ApiError> {
    let local = request.extensions().get::<Local>().is_some_and(|local| local.0);
    let peer = request.extensions().get::<Peer>().map_or(Ipv4Addr::UNSPECIFIED.into(), |peer| peer.0);
    let who = who(&app, request.headers(), request.uri(), local, peer).await?;
    if access == Access::Admin && who.scope != TokenScope::Admin {
        let message = "only administrators may do that";
        return Err(ApiError::new(StatusCode::FORBIDDEN, "forbidden", message)
            .hint("`kiso token add NAME --scope admin` makes a token that may; gateway.admins can say which count"));
    }
    request.extensions_mut().insert(who);
    Ok(next.run(request).await)
}

async fn who(app: &App, headers: &HeaderMap, uri: &Uri, local: bool, peer: IpAddr) -> Result<Who, ApiError> {
    let refused = |message: &str| ApiError::new(StatusCode::UNAUTHORIZED, "unauthorized", message);
    let store = &app.0.drive.store;
    if headers.contains_key(header::AUTHORIZATION) {
        // Read anew for each request, so that a token that was revoked is one no more.
        let token = match bearer(headers) {
            Some(given) => store.read(move |view| view.token_of(&given)).await?,
            None => None,
        };
        let Some(token) = token else {
            if app.0.failures.count(peer, now_ms()) {
                let message = "too many wrong tokens came from this address";
                return Err(ApiError::new(StatusCode::TOO_MANY_REQUESTS, "too_many_failures", message));
            }
            return Err(refused("the token is not valid").hint("`kiso token list` shows which there are"));
        };
        let scope = scope_of(&app.0.drive.config_now().gateway.admins, &token);
        return Ok(Who { token: Some(token.name), handle: Some(token.handle), scope });
    }
    let needs =
        || refused("a token is needed").hint("`kiso token add NAME` prints one; send it as `Authorization: Bearer …`");
    if !local || store.read(|view| view.has_tokens()).await? || is_of_a_page(headers, uri) {
        return Err(needs());
    }
    Ok(Who { token: None, handle: None, scope: TokenScope::Chat })
}

/// Whether who asked may still have what they asked for: the token was not revoked, or, where none was needed, none exists.
pub async fn still_may(app: &App, who: &Who) -> Result<bool, StoreError> {
    let handle = who.handle.clone();
    let read = app.0.drive.store.read(move |view| match handle {
        Some(handle) => view.has_token(&handle),
        None => Ok(!view.has_tokens()?),
    });
    read.await
}

/// The token of the one header that may have it.
fn bearer(headers: &HeaderMap) -> Option<String> {
    let mut given = headers.get_all(header::AUTHORIZATION).iter();
    let (Some(one), None) = (given.next(), given.next()) else { return None };
    let (scheme, token) = one.to_str().ok()?.split_once(' ')?;
    scheme.eq_ignore_ascii_case("bearer").then(|| token.trim().to_owned())
}

/// What a token may: where `gateway.admins` names some, only those of the scope admin that it names are administrators.
fn scope_of(admins: &[String], token: &Token) -> TokenScope {
    let listed = admins.is_empty() || admins.contains(&token.name);
    if token.scope == TokenScope::Admin && listed { TokenScope::Admin } else { TokenScope::Chat }
}

/// Whether the request may have been made by a page that the user's browser shows: such a page reaches this machine's
/// ports, also under names of its own.
fn is_of_a_page(headers: &HeaderMap, uri: &Uri) -> bool {
    let foreign = headers.get("sec-fetch-site").is_some_and(|site| site != "same-origin" && site != "none");
    let host = headers.get(header::HOST).and_then(|host| host.to_str().ok()).unwrap_or_default();
    let named = is_own_name(host) && uri.authority().is_none_or(|authority| is_own_name(authority.as_str()));
    headers.contains_key(header::ORIGIN) || foreign || !named
}

/// Whether this machine is called so, by itself: a name that somebody else's server may resolve is none of these.
fn is_own_name(host: &str) -> bool {
    let (name, port) = match host.rsplit_once(':') {
        Some((name, port)) if port.bytes().all(|b| b.is_ascii_digit()) => (name, port),
        _ => (host, ""),
    };
    let name = name.to_ascii_lowercase();
    port.len() <= 5 && matches!(name.as_str(), "localhost" | "127.0.0.1" | "[::1]")
}

impl<S: Sync> FromRequestParts<S> for Who {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Who, ApiError> {
        parts
            .extensions
            .get::<Who>()
            .cloned()
            .ok_or_else(|| ApiError::new(StatusCode::UNAUTHORIZED, "unauthorized", "the request was not authenticated"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_names_of_this_machine_are_its_own() {
        for own in ["localhost", "LOCALHOST:8333", "127.0.0.1:1", "127.0.0.1", "[::1]", "[::1]:8333"] {
            assert!(is_own_name(own), "{own}");
        }
        for other in [
            "",
            "evil.example",
            "evil.example:8333",
            "localhost.evil.example",
            "127.0.0.1.evil.example:80",
            "127.0.0.1:80@evil.example",
            "0.0.0.0:8333",
            "[::1",
            "localhost:123456",
        ] {
            assert!(!is_own_name(other), "{other}");
        }
    }

    #[test]
    fn administrators_are_those_that_are_named() {
        let token = |name: &str, scope| Token { name: name.to_owned(), handle: String::new(), scope, created_ms: 0 };
        let admins = ["root".to_owned(), "phone".to_owned()];
        assert_eq!(scope_of(&[], &token("any", TokenScope::Admin)), TokenScope::Admin);
        assert_eq!(scope_of(&[], &token("any", TokenScope::Chat)), TokenScope::Chat);
        assert_eq!(scope_of(&admins, &token("root", TokenScope::Admin)), TokenScope::Admin);
        assert_eq!(scope_of(&admins, &token("any", TokenScope::Admin)), TokenScope::Chat);
        // A name alone makes nobody an administrator.
        assert_eq!(scope_of(&admins, &token("phone", TokenScope::Chat)), TokenScope::Chat);
    }

    #[test]
    fn a_token_stands_in_one_header() {
        let headers = |values: &[&str]| {
            let mut headers = HeaderMap::new();
            values.iter().for_each(|value| {
                headers.append(header::AUTHORIZATION, value.parse().unwrap());
            });
            headers
        };
        assert_eq!(bearer(&headers(&["Bearer  a "])), Some("a".to_owned()));
        assert_eq!(bearer(&headers(&["bearer a"])), Some("a".to_owned()));
        for wrong in [&["Basic a"][..], &["Bearer"], &["Bearer a", "Bearer b"]] {
            assert_eq!(bearer(&headers(wrong)), None, "{wrong:?}");
        }
    }
}
