//! Authentication of requests, and the rights of their callers.

pub(crate) mod browser;
pub(crate) mod own;
pub(crate) mod view;

use std::net::{IpAddr, Ipv4Addr};

use axum::extract::{FromRequestParts, Request, State};
use axum::http::request::Parts;
use axum::http::{Extensions, HeaderMap, HeaderValue, Method, StatusCode, header};
use axum::middleware::Next;
use axum::response::Response;

use self::browser::{Sender, SessionCookie};
use super::App;
use super::error::ApiError;
use kiso_base::clock::now_ms;
use kiso_plan::plan::CallerScope;
use kiso_store::store::{Login, LoginId, SessionOwner, StoreError, Token, TokenScope};

/// Access rule of a route.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Access {
    /// Everybody.
    Open,
    /// Callers who may chat.
    Chat,
    /// Administrators.
    Admin,
}

/// The caller of a request. Handlers get it as an argument.
#[derive(Debug, Clone)]
pub(crate) struct Who {
    /// Name of the token, or of the token with which the browser was logged in; `None` without a token.
    pub token: Option<String>,
    pub via: Via,
    pub scope: TokenScope,
    /// The caller's identity as the owner of sessions, if the caller may read only sessions that it created; `None` if it may
    /// read all.
    pub owner: Option<SessionOwner>,
}

/// How the caller was authenticated.
#[derive(Debug, Clone)]
pub(crate) enum Via {
    /// A program of this machine, while no token exists.
    Machine,
    /// A token; the handle distinguishes it from other tokens of the same name.
    Token { handle: String },
    /// A browser that is logged in to the page.
    Page { login: LoginId },
}

/// Address that a request comes from.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Peer(pub IpAddr);

/// Reason for a refusal, and a hint for the caller.
pub(crate) type AuthProblem = (&'static str, &'static str);

pub(crate) const WRONG_TOKEN: AuthProblem = ("the token is not valid", "`kiso token list` lists the tokens");

/// A login's time of last use is stored at most once in this interval, because it need not be exact.
const TOUCH_MS: i64 = 60 * 60_000;

impl Who {
    pub(crate) fn caller(&self) -> CallerScope {
        match self.scope {
            TokenScope::Admin => CallerScope::Admin,
            TokenScope::Chat => CallerScope::User,
        }
    }

    /// A name for the log.
    pub(crate) fn name(&self) -> &str {
        match (&self.token, &self.via) {
            (Some(token), _) => token,
            (None, Via::Page { .. }) => "the owner's browser",
            (None, _) => "this machine",
        }
    }
}

/// Passes a request on if it has a valid token or comes from a logged-in browser, or if it needs neither: while no token exists,
/// programs of this machine may chat. Pages of other sites are refused, whatever browser they run in.
pub(crate) async fn authenticate(
    State((app, access)): State<(App, Access)>,
    request: Request,
    next: Next,
) -> Result<Response, ApiError> {
    let (mut asked, body) = request.into_parts();
    let (who, renewed) = identify(&app, &asked).await?;
    if access == Access::Admin && who.scope != TokenScope::Admin {
        let message = "only administrators may do that";
        return Err(ApiError::new(StatusCode::FORBIDDEN, "forbidden", message)
            .hint("`kiso token add NAME --scope admin` makes a token that may; gateway.admins can say which count"));
    }
    own::check(&app, &who, &mut asked).await?;
    asked.extensions.insert(who);
    let mut response = next.run(Request::from_parts(asked, body)).await;
    if let Some(cookie) = renewed {
        response.headers_mut().entry(header::SET_COOKIE).or_insert(cookie);
    }
    Ok(response)
}

/// Identifies the caller. Also returns the renewed login cookie, if the browser must store a new one.
async fn identify(app: &App, asked: &Parts) -> Result<(Who, Option<HeaderValue>), ApiError> {
    let (headers, store) = (&asked.headers, &app.0.drive.store);
    if headers.contains_key(header::AUTHORIZATION) {
        // Tokens are read from the store for each request, so that a revoked token stops working at once.
        let token = match bearer(headers) {
            Some(given) => store.peek(move |view| view.token_of(&given)).await?,
            None => None,
        };
        let token = token.ok_or_else(|| wrong(app, &asked.extensions, WRONG_TOKEN))?;
        let scope = scope_of(&app.0.drive.newest_config().gateway.admins, &token);
        let owner = (scope == TokenScope::Chat).then(|| SessionOwner::from_token(&token.handle));
        return Ok((Who { token: Some(token.name), via: Via::Token { handle: token.handle }, scope, owner }, None));
    }
    match browser::shown(headers, app.0.address.port()) {
        SessionCookie::Value(value) => return of_browser(app, asked, value).await,
        SessionCookie::Unclear => {
            return Err(refused("the browser sends several login cookies, or one that is none of kiso's")
                .hint("delete the cookies of this address and log in again"));
        }
        SessionCookie::Nothing => {}
    }
    let needs = || {
        refused("a token is needed").hint(
            "`kiso token add NAME` prints one; send it as `Authorization: Bearer …`. `kiso open` logs a browser in",
        )
    };
    let is_local = super::is_local(&app.0.address) && is_of_a_program(&asked.extensions);
    if !is_local || store.peek(|view| view.has_tokens()).await? || browser::is_of_a_page(headers, &asked.uri) {
        return Err(needs());
    }
    // All programs of this machine look the same, so sessions cannot be assigned to one of them.
    Ok((Who { token: None, via: Via::Machine, scope: TokenScope::Chat, owner: None }, None))
}

/// Returns whether the caller is on this machine. Checking the listening address would not be enough, because a tunnel can
/// forward connections from other machines.
fn is_of_a_program(of: &Extensions) -> bool {
    of.get::<Peer>().is_some_and(|peer| peer.0.to_canonical().is_loopback())
}

/// Identifies the browser with this cookie. Requests that change something must come from kiso's page, and no request may come
/// from another page. An unknown cookie does not count as a guess, because browsers keep the cookies of ended logins.
async fn of_browser(app: &App, asked: &Parts, value: &str) -> Result<(Who, Option<HeaderValue>), ApiError> {
    let (headers, now, id) = (&asked.headers, now_ms(), LoginId::from_value(value));
    let sender = browser::sender(headers, &asked.uri);
    let allowed = match asked.method {
        Method::GET | Method::HEAD => sender != Sender::Foreign,
        _ => sender == Sender::Own && browser::says_page(headers),
    };
    if !allowed {
        return Err(foreign());
    }
    let Some(login) = app.0.drive.store.peek(move |view| view.login(id, now)).await? else {
        return Err(refused("this browser is no longer logged in").hint("log in again; `kiso open` prints a link"));
    };
    let renewed = match (0..TOUCH_MS).contains(&(now - login.used_ms)) {
        true => None,
        false => match app.0.drive.store.write(move |tx| tx.touch_login(id, now)).await {
            Ok(()) => browser::keep(headers, app.0.address.port(), value),
            Err(error) => {
                // Reading must work even if the disk is full.
                tracing::warn!("that a login was used is not written down: {error}");
                None
            }
        },
    };
    Ok((who_of(app, login), renewed))
}

/// Identifies the browser that requests the page's document. Returns `None` if another site led here, because the browser then
/// does not send the cookie.
pub(crate) async fn of_document(app: &App, asked: &Parts) -> Result<Option<Who>, StoreError> {
    let headers = &asked.headers;
    let SessionCookie::Value(value) = browser::shown(headers, app.0.address.port()) else { return Ok(None) };
    if headers.contains_key(header::AUTHORIZATION) || browser::sender(headers, &asked.uri) == Sender::Foreign {
        return Ok(None);
    }
    let (id, now) = (LoginId::from_value(value), now_ms());
    let login = app.0.drive.store.peek(move |view| view.login(id, now)).await?;
    Ok(login.map(|login| who_of(app, login)))
}

/// Converts a login to a caller.
pub(crate) fn who_of(app: &App, login: Login) -> Who {
    let Login { id, token, scope, .. } = login;
    let scope = match &token {
        Some(token) => scope.min(scope_of(&app.0.drive.newest_config().gateway.admins, token)),
        None => scope,
    };
    let owner = match (&token, scope) {
        (_, TokenScope::Admin) => None,
        (Some(token), TokenScope::Chat) => Some(SessionOwner::from_token(&token.handle)),
        (None, TokenScope::Chat) => Some(SessionOwner::from_login(id)),
    };
    Who { token: token.map(|token| token.name), via: Via::Page { login: id }, scope, owner }
}

/// Returns whether a stream may continue: the token was not revoked and lost no rights by a change of `gateway.admins`, the
/// browser is still logged in, or, for a caller without either, still no token exists.
pub(crate) async fn still_may(app: &App, who: &Who) -> Result<bool, StoreError> {
    if who.scope == TokenScope::Admin && !who.token.as_ref().is_none_or(|name| counts_as_admin(app, name)) {
        return Ok(false);
    }
    let via = who.via.clone();
    let read = app.0.drive.store.peek(move |view| match via {
        Via::Token { handle } => view.has_token(&handle),
        Via::Page { login } => Ok(view.login(login, now_ms())?.is_some()),
        Via::Machine => Ok(!view.has_tokens()?),
    });
    read.await
}

/// Returns whether `gateway.admins` allows a token of this name to have administrator rights.
fn counts_as_admin(app: &App, name: &String) -> bool {
    let admins = &app.0.drive.newest_config().gateway.admins;
    admins.is_empty() || admins.contains(name)
}

/// Returns the error for wrong credentials, and counts it against the caller's address.
pub(crate) fn wrong(app: &App, of: &Extensions, (message, hint): AuthProblem) -> ApiError {
    let peer = of.get::<Peer>().map_or(Ipv4Addr::UNSPECIFIED.into(), |peer| peer.0);
    if app.0.failures.count(peer, now_ms()) {
        let message = "too many wrong tokens from this address";
        return ApiError::new(StatusCode::TOO_MANY_REQUESTS, "too_many_failures", message);
    }
    refused(message).hint(hint)
}

/// The error for a request that does not come from the page, or does not have the page's header.
pub(crate) fn foreign() -> ApiError {
    let message = "the request does not come from kiso's own page";
    ApiError::new(StatusCode::FORBIDDEN, "forbidden", message)
        .hint("programs send a token; a proxy must pass Host, or Sec-Fetch-Site, and x-kiso-page on")
}

fn refused(message: &str) -> ApiError {
    ApiError::new(StatusCode::UNAUTHORIZED, "unauthorized", message)
}

/// Returns the token, if exactly one header contains one.
fn bearer(headers: &HeaderMap) -> Option<String> {
    let mut given = headers.get_all(header::AUTHORIZATION).iter();
    let (Some(one), None) = (given.next(), given.next()) else { return None };
    let (scheme, token) = one.to_str().ok()?.split_once(' ')?;
    scheme.eq_ignore_ascii_case("bearer").then(|| token.trim().to_owned())
}

/// Returns the scope of a token. If `gateway.admins` is not empty, only the admin tokens that it names are administrators.
fn scope_of(admins: &[String], token: &Token) -> TokenScope {
    let listed = admins.is_empty() || admins.contains(&token.name);
    if token.scope == TokenScope::Admin && listed { TokenScope::Admin } else { TokenScope::Chat }
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
    fn administrators_are_those_that_are_named() {
        let token = |name: &str, scope| Token { name: name.to_owned(), handle: String::new(), scope, created_ms: 0 };
        let admins = ["root".to_owned(), "phone".to_owned()];
        assert_eq!(scope_of(&[], &token("any", TokenScope::Admin)), TokenScope::Admin);
        assert_eq!(scope_of(&[], &token("any", TokenScope::Chat)), TokenScope::Chat);
        assert_eq!(scope_of(&admins, &token("root", TokenScope::Admin)), TokenScope::Admin);
        assert_eq!(scope_of(&admins, &token("any", TokenScope::Admin)), TokenScope::Chat);
        // Being listed does not make a chat token an administrator.
        assert_eq!(scope_of(&admins, &token("phone", TokenScope::Chat)), TokenScope::Chat);
    }

    #[test]
    fn who_comes_through_another_machine_is_where_the_client_is() {
        let of = |peer: Option<&str>| {
            let mut extensions = Extensions::new();
            if let Some(peer) = peer {
                extensions.insert(Peer(peer.parse().unwrap()));
            }
            is_of_a_program(&extensions)
        };
        assert!(of(Some("127.0.0.1")) && of(Some("::1")) && of(Some("::ffff:127.0.0.1")));
        assert!(!of(Some("10.0.0.9")) && !of(Some("::ffff:10.0.0.9")) && !of(Some("2001:db8::1")) && !of(None));
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
