//! Logging a browser in to the page, and out of it.

use axum::Json;
use axum::extract::State;
use axum::http::request::Parts;
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::clock::now_ms;
use crate::gateway::App;
use crate::gateway::auth::browser::{self, Sender, Shown};
use crate::gateway::auth::{self, Via, WRONG_TOKEN, Who, Wrong};
use crate::gateway::error::ApiError;
use crate::gateway::wire::{Body, Made};
use crate::store::{LoginId, StoreError, Tx};

const WRONG_CODE: Wrong = ("the link was already used, or is older than five minutes", "run `kiso open` for a new one");

/// `POST /login`: one of them. Has no `Debug`, since both are secrets.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Credentials {
    token: Option<String>,
    code: Option<String>,
}

/// `POST /login`: who the browser is from now on, as `GET /me` says it, and the cookie that shows it.
pub async fn log_in(
    State(app): State<App>,
    asked: Parts,
    Body(given): Body<Credentials>,
) -> Result<Response, ApiError> {
    if browser::sender(&asked.headers, &asked.uri) == Sender::Foreign {
        return Err(auth::foreign());
    }
    let port = app.0.address.port();
    // A browser has one login: the one that it had ends with the new one.
    let before = match browser::shown(&asked.headers, port) {
        Shown::Value(value) => Some(LoginId::of(value)),
        Shown::Nothing | Shown::Unclear => None,
    };
    let made = match given {
        Credentials { token: Some(token), code: None } => {
            by_token(&app, token, before).await?.ok_or_else(|| auth::wrong(&app, &asked.extensions, WRONG_TOKEN))?
        }
        Credentials { token: None, code: Some(code) } => {
            by_code(&app, code, before).await?.ok_or_else(|| auth::wrong(&app, &asked.extensions, WRONG_CODE))?
        }
        _ => return Err(ApiError::bad_request("either `token` or `code` must be given")),
    };
    let id = LoginId::of(&made);
    let login = app.0.drive.store.read(move |view| view.login(id, now_ms())).await?;
    let login = login.ok_or_else(|| auth::wrong(&app, &asked.extensions, WRONG_TOKEN))?;
    let who = auth::who_of(&app, login);
    tracing::info!(by = who.name(), scope = who.scope.as_str(), "a browser is logged in");
    let mut response = Json(shape(&who)).into_response();
    if let Some(cookie) = browser::keep(&asked.headers, port, &made) {
        response.headers_mut().insert(header::SET_COOKIE, cookie);
    }
    Ok(response)
}

// Both look on a reader first: who guesses must not keep the writer busy.

async fn by_token(app: &App, text: String, before: Option<LoginId>) -> Result<Option<String>, StoreError> {
    let store = &app.0.drive.store;
    let Some(token) = store.read(move |view| view.token_of(&text)).await? else { return Ok(None) };
    store.write(move |tx| instead_of(before, tx, |tx| tx.log_in_by_token(&token.handle, now_ms()))).await
}

async fn by_code(app: &App, code: String, before: Option<LoginId>) -> Result<Option<String>, StoreError> {
    let (store, looked_for) = (&app.0.drive.store, code.clone());
    if !store.read(move |view| view.has_login_code(&looked_for, now_ms())).await? {
        return Ok(None);
    }
    store.write(move |tx| instead_of(before, tx, |tx| tx.log_in_by_code(&code, now_ms()))).await
}

fn instead_of(
    before: Option<LoginId>,
    tx: &Tx<'_>,
    log_in: impl Fn(&Tx<'_>) -> Result<Option<String>, StoreError>,
) -> Result<Option<String>, StoreError> {
    let made = log_in(tx)?;
    if let (Some(_), Some(before)) = (&made, before) {
        tx.log_out(before)?;
    }
    Ok(made)
}

/// `POST /logout`: the login is void when this is answered.
pub async fn log_out(who: Who, State(app): State<App>, headers: HeaderMap) -> Result<Response, ApiError> {
    let Via::Page { login } = who.via else {
        let message = "only a browser that is logged in to the page can be logged out";
        return Err(ApiError::bad_request(message).hint("`kiso token revoke NAME` takes a token away"));
    };
    app.0.drive.store.write(move |tx| tx.log_out(login)).await?;
    tracing::info!(by = who.name(), "a browser is logged out");
    let mut response = StatusCode::NO_CONTENT.into_response();
    if let Some(cookie) = browser::forget(&headers, app.0.address.port()) {
        response.headers_mut().insert(header::SET_COOKIE, cookie);
    }
    Ok(response)
}

/// `GET /me`
pub async fn me(who: Who) -> Made<Value> {
    Ok(Json(shape(&who)))
}

fn shape(who: &Who) -> Value {
    let via = match who.via {
        Via::Machine => "machine",
        Via::Token { .. } => "token",
        Via::Page { .. } => "page",
    };
    json!({
        "name": who.token,
        "scope": who.scope.as_str(),
        "via": via,
        "version": env!("CARGO_PKG_VERSION"),
        "now_ms": now_ms(),
    })
}
