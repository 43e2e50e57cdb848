//! Who asks, and what they may.

use axum::extract::{FromRequestParts, Request, State};
use axum::http::request::Parts;
use axum::http::{HeaderMap, StatusCode, header};
use axum::middleware::Next;
use axum::response::Response;

use super::App;
use super::error::ApiError;
use crate::graph::plan::Caller;
use crate::store::TokenScope;

/// Who asks. Handlers get it as an argument.
#[derive(Debug, Clone)]
pub struct Who {
    /// Of the token; `None` for a program of this machine where no token exists.
    pub token: Option<String>,
    pub scope: TokenScope,
}

/// Whether the listener can only be reached from this machine.
#[derive(Debug, Clone, Copy)]
pub struct Local(pub bool);

impl Who {
    pub fn caller(&self) -> Caller {
        match self.scope {
            TokenScope::Admin => Caller::Admin,
            TokenScope::Chat => Caller::User,
        }
    }
}

/// Lets a request through that has a valid token, or needs none: where no token exists, programs of this machine may
/// chat. A page of another site is none of them, whatever browser it runs in.
pub async fn authenticate(State(app): State<App>, mut request: Request, next: Next) -> Result<Response, ApiError> {
    let local = request.extensions().get::<Local>().is_some_and(|local| local.0);
    let who = who(&app, request.headers(), local).await?;
    request.extensions_mut().insert(who);
    Ok(next.run(request).await)
}

async fn who(app: &App, headers: &HeaderMap, local: bool) -> Result<Who, ApiError> {
    let refused = |message: &str| ApiError::new(StatusCode::UNAUTHORIZED, "unauthorized", message);
    let store = &app.0.drive.store;
    if let Some(given) = headers.get(header::AUTHORIZATION) {
        let wrong = || refused("the token is not valid").hint("`kiso token list` shows which there are");
        let given =
            given.to_str().ok().and_then(|text| text.strip_prefix("Bearer ")).ok_or_else(wrong)?.trim().to_owned();
        // Read anew for each request, so that a token that was revoked is one no more.
        let token = store.read(move |view| view.token_of(&given)).await?.ok_or_else(wrong)?;
        return Ok(Who { token: Some(token.name), scope: token.scope });
    }
    let needs =
        || refused("a token is needed").hint("`kiso token add NAME` prints one; send it as `Authorization: Bearer …`");
    if !local || !store.read(|view| Ok(view.tokens()?.is_empty())).await? {
        return Err(needs());
    }
    if is_of_a_page(headers) {
        return Err(needs());
    }
    Ok(Who { token: None, scope: TokenScope::Chat })
}

/// Whether the request may have been made by a page that the user's browser shows: such a page reaches this machine's
/// ports, also under names of its own.
fn is_of_a_page(headers: &HeaderMap) -> bool {
    let foreign = headers.get("sec-fetch-site").is_some_and(|site| site != "same-origin" && site != "none");
    let host = headers.get(header::HOST).and_then(|host| host.to_str().ok()).unwrap_or_default();
    let name = host.rsplit_once(':').map_or(host, |(name, _)| name);
    let named = matches!(name, "localhost" | "127.0.0.1" | "[::1]");
    headers.contains_key(header::ORIGIN) || foreign || !named
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
