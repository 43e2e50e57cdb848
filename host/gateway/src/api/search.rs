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
use crate::wire::{JsonResult, Message, Page, Query, open_message, page_size};
use kiso_base::home::SessionName;
use kiso_store::store::{PAGE_BYTES, Search};

routes! {
    /// Messages with all of these words and #tags, newest first
    /// The search uses an index; `next` leads to older messages, even if the page is not full.
    GET "/search" Chat => search;
}

/// Bytes of text that one request reads; the next page continues from there.
const MAX_READ: usize = 64 << 20;

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
    let of = asked.session;
    let (limit, before) = (page_size(asked.limit)? as usize, asked.before);
    if let Some(session) = &of {
        who.check_session(&app, session).await?;
    }
    let vault = app.0.drive.vault.clone();
    let read = app.0.drive.store.read(move |view| {
        let mut found = Vec::new();
        let (mut read, mut kept) = (0, 0);
        let (mut may_read, mut failed) = (HashMap::new(), None);
        let next = view.messages_with(&search, of.as_ref(), before, |candidate| {
            let message = open_message(&vault, candidate.session.clone(), candidate.message.clone());
            read += message.text.len();
            let known = may_read.get(&candidate.session).copied();
            let mine = known.map_or_else(|| who.may_read(view, &candidate.session), Ok).unwrap_or_else(|error| {
                failed = Some(error);
                false
            });
            may_read.insert(candidate.session.clone(), mine);
            if mine && search.fits(&candidate, &message.text) {
                kept += message.text.len();
                found.push(message);
            }
            found.len() < limit && kept < PAGE_BYTES && read < MAX_READ && failed.is_none()
        })?;
        failed.map_or(Ok((found, next)), Err)
    });
    let (items, next) = read.await?;
    Ok(Json(Page { items, next: next.map(|id| id.to_string()) }))
}
