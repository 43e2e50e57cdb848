//! Search for messages by words and tags.

use std::collections::HashMap;

use axum::Json;
use axum::extract::State;
use schemars::JsonSchema;
use serde::Deserialize;

use crate::App;
use crate::auth::Who;
use crate::document::routes;
use crate::error::ApiError;
use crate::wire::{JsonResult, Message, Page, Query, page_size, plain_message};
use kiso_agent::session::search::{SearchPage, find_messages};
use kiso_base::home::SessionName;
use kiso_store::store::Search;

routes! {
    /// Messages with all of these words and #tags, newest first
    /// The search uses an index; `next` leads to older messages, even if the page is not full.
    GET "/search" Chat => search;
}

/// Maximum length in characters of a query.
const MAX_QUESTION: usize = 200;

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct SearchQuery {
    /// Words and `#tags` that a message must contain, all of them, in any order and case; a word may be a prefix.
    #[schemars(length(min = 1, max = MAX_QUESTION), regex(pattern = r"[\p{L}\p{N}]"))]
    q: String,
    /// Only in this session.
    session: Option<SessionName>,
    /// The `next` of the previous page.
    before: Option<i64>,
    /// Number of entries per page; 50 by default.
    #[schemars(range(min = 1, max = 500))]
    limit: Option<u32>,
}

pub(super) async fn search(
    who: Who,
    State(app): State<App>,
    Query(asked): Query<SearchQuery>,
) -> JsonResult<Page<Message>> {
    let search = Search::parse(&asked.q).filter(|_| asked.q.chars().count() <= MAX_QUESTION);
    let Some(search) = search else {
        return Err(ApiError::bad_request(format!("`q` needs a word, and has at most {MAX_QUESTION} characters")));
    };
    let (limit, before, session) = (page_size(asked.limit)? as usize, asked.before, asked.session);
    if let Some(session) = &session {
        who.check_session(&app, session).await?;
    }
    let vault = app.0.drive.vault.clone();
    let read = app.0.drive.store.read(move |view| {
        let page = SearchPage { session: session.as_ref(), before, limit };
        let mut known = HashMap::new();
        find_messages(view, &vault, &search, &page, |session| match known.get(session) {
            Some(permitted) => Ok(*permitted),
            None => {
                let permitted = who.may_read(view, session)?;
                known.insert(session.clone(), permitted);
                Ok(permitted)
            }
        })
    });
    let (found, next) = read.await?;
    let items = found.into_iter().map(|found| plain_message(found.session, found.message)).collect();
    Ok(Json(Page { items, next: next.map(|id| id.to_string()) }))
}
