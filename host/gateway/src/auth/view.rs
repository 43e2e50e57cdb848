//! The caller, as shown to the caller.

use schemars::JsonSchema;
use serde::Serialize;

use super::{Via, Who};
use crate::App;
use kiso_base::clock::now_ms;
use kiso_store::store::{StoreError, TokenScope};

/// The caller.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct LoginView {
    /// Name of the token, or of the token with which the browser was logged in; null without a token.
    name: Option<String>,
    scope: TokenScope,
    via: Way,
    /// Version of kiso.
    version: &'static str,
    /// The daemon's clock, in milliseconds since 1970 (UTC).
    now_ms: i64,
    /// Id of the last event: `GET /events?after=` with this id misses no event after this response.
    last_event_id: i64,
}

/// How the caller was authenticated.
#[derive(Debug, Clone, Copy, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum Way {
    /// A logged-in browser.
    Page,
    Token,
    /// A program of the same machine, while no token exists.
    Machine,
}

impl LoginView {
    pub(crate) async fn new(who: &Who, app: &App) -> Result<LoginView, StoreError> {
        let via = match who.via {
            Via::Machine => Way::Machine,
            Via::Token { .. } => Way::Token,
            Via::Page { .. } => Way::Page,
        };
        Ok(LoginView {
            name: who.token.clone(),
            scope: who.scope,
            via,
            version: env!("CARGO_PKG_VERSION"),
            now_ms: now_ms(),
            last_event_id: app.0.drive.store.read(|view| view.feed_end()).await?,
        })
    }
}
