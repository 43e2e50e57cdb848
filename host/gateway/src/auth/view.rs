//! Who a caller is, as they are told.

use schemars::JsonSchema;
use serde::Serialize;

use super::{Via, Who};
use crate::App;
use kiso_base::clock::now_ms;
use kiso_store::store::{StoreError, TokenScope};

/// Who a caller is.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct LoginView {
    /// Name of the token, also of the one that the browser logged in with; null without one.
    name: Option<String>,
    scope: TokenScope,
    via: Way,
    /// Of kiso.
    version: &'static str,
    /// The daemon's clock, in milliseconds since 1970 (UTC).
    now_ms: i64,
    /// The last event that there was: `GET /events?after=` it misses nothing that comes after this answer.
    last_event_id: i64,
}

/// By what a caller is known.
#[derive(Debug, Clone, Copy, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum Way {
    /// A browser that is logged in.
    Page,
    Token,
    /// A program of the same machine, while there is no token.
    Machine,
}

impl LoginView {
    pub(crate) async fn of(who: &Who, app: &App) -> Result<LoginView, StoreError> {
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
