//! Messages by their words and tags.

use axum::Json;
use axum::extract::State;
use serde::Deserialize;

use super::messages::{open_message, session};
use crate::gateway::App;
use crate::gateway::auth::Who;
use crate::gateway::error::ApiError;
use crate::gateway::wire::{Made, Message, Page, Query, page_size};
use crate::store::{PAGE_BYTES, Search};

/// Bytes of texts that one request reads; the next goes on behind them.
const MAX_READ: usize = 64 << 20;

/// Characters of a question.
const MAX_QUESTION: usize = 200;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SearchQuery {
    /// Words and `#tags` that a message must have, all of them, in any order and case; a word may be the beginning of one.
    q: String,
    /// Only in this session; without it, in all.
    session: Option<String>,
    before: Option<i64>,
    limit: Option<u32>,
}

/// `GET /search`, the newest first.
pub async fn search(_: Who, State(app): State<App>, Query(asked): Query<SearchQuery>) -> Made<Page<Message>> {
    let search = Search::of(&asked.q).filter(|_| asked.q.chars().count() <= MAX_QUESTION);
    let Some(search) = search else {
        return Err(ApiError::bad_request(format!("`q` needs a word, and has at most {MAX_QUESTION} characters")));
    };
    let of = asked.session.as_deref().map(session).transpose()?;
    let (limit, before) = (page_size(asked.limit)? as usize, asked.before);
    let vault = app.0.drive.vault.clone();
    let read = app.0.drive.store.read(move |view| {
        let mut found = Vec::new();
        let (mut read, mut kept) = (0, 0);
        let next = view.messages_with(&search, of.as_ref(), before, |candidate| {
            let message = open_message(&vault, candidate.session.clone(), candidate.message.clone());
            read += message.text.len();
            if search.fits(&candidate, &message.text) {
                kept += message.text.len();
                found.push(message);
            }
            found.len() < limit && kept < PAGE_BYTES && read < MAX_READ
        })?;
        Ok((found, next))
    });
    let (items, next) = read.await?;
    Ok(Json(Page { items, next: next.map(|id| id.to_string()) }))
}
