//! Log in and log out of browsers.

use axum::Json;
use axum::extract::State;
use axum::http::request::Parts;
use axum::http::{HeaderMap, header};
use schemars::JsonSchema;
use serde::Deserialize;

use crate::App;
use crate::auth::browser::{self, Sender, SessionCookie};
use crate::auth::view::LoginView;
use crate::auth::{self, AuthProblem, Via, WRONG_TOKEN, Who};
use crate::document::routes;
use crate::error::ApiError;
use crate::wire::{Body, JsonResult, NoContent};
use kiso_base::clock::now_ms;
use kiso_store::store::{LoginId, StoreError, Tx};

routes! {
    /// Log a browser in, with a token or with the code of a link
    /// The response sets the login cookie.
    POST "/login" Open => log_in,
        200 "The browser is logged in",
        401 "The token is not valid, or the link was already used or is too old",
        403 "The request comes from another page",
        429 "Too many wrong tokens from this address; Retry-After says when to try again";
    /// Log the browser out
    /// Its event streams end.
    POST "/logout" Chat => log_out, 204 "The browser is logged out", 400 "The caller is not a browser that is logged in";
    /// The caller and their rights
    GET "/me" Chat => me;
}

const WRONG_CODE: AuthProblem =
    ("the link was already used, or is older than five minutes", "run `kiso open` for a new one");

/// A token or a code.
// Has no `Debug`, because both are secrets.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(extend("oneOf" = [
    { "required": ["token"], "properties": { "token": { "type": "string" }, "code": { "type": "null" } } },
    { "required": ["code"], "properties": { "code": { "type": "string" }, "token": { "type": "null" } } },
]))]
pub(super) struct Credentials {
    /// A token, as printed by `kiso token add`.
    token: Option<String>,
    /// The code after `#code=` in the link of `kiso open`.
    code: Option<String>,
}

pub(super) async fn log_in(
    State(app): State<App>,
    asked: Parts,
    Body(given): Body<Credentials>,
) -> Result<(HeaderMap, Json<LoginView>), ApiError> {
    if browser::sender(&asked.headers, &asked.uri) == Sender::Foreign {
        return Err(auth::foreign());
    }
    let port = app.0.address.port();
    // A browser has one login: the new one ends the previous one.
    let before = match browser::shown(&asked.headers, port) {
        SessionCookie::Value(value) => Some(LoginId::from_value(value)),
        SessionCookie::Nothing | SessionCookie::Unclear => None,
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
    let id = LoginId::from_value(&made);
    let login = app.0.drive.store.read(move |view| view.login(id, now_ms())).await?;
    let login = login.ok_or_else(|| auth::wrong(&app, &asked.extensions, WRONG_TOKEN))?;
    let who = auth::who_of(&app, login);
    tracing::info!(by = who.name(), scope = who.scope.as_str(), "a browser is logged in");
    let cookie = browser::keep(&asked.headers, port, &made).map(|cookie| (header::SET_COOKIE, cookie));
    Ok((cookie.into_iter().collect(), Json(LoginView::new(&who, &app).await?)))
}

// Both functions check with a reader first, so that guessing does not occupy the writer.

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

/// Responds after the login has become invalid.
pub(super) async fn log_out(
    who: Who,
    State(app): State<App>,
    headers: HeaderMap,
) -> Result<(HeaderMap, NoContent), ApiError> {
    let Via::Page { login } = who.via else {
        let message = "only a browser that is logged in to the page can be logged out";
        return Err(ApiError::bad_request(message).hint("`kiso token revoke NAME` takes a token away"));
    };
    app.0.drive.store.write(move |tx| tx.log_out(login)).await?;
    tracing::info!(by = who.name(), "a browser is logged out");
    let cookie = browser::forget(&headers, app.0.address.port()).map(|cookie| (header::SET_COOKIE, cookie));
    Ok((cookie.into_iter().collect(), NoContent))
}

pub(super) async fn me(who: Who, State(app): State<App>) -> JsonResult<LoginView> {
    Ok(Json(LoginView::new(&who, &app).await?))
}
