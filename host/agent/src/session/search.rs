//! Finds messages of sessions by words and tags, for the API, the terminal and `/search`.

use crate::drive::{DriveError, RunExecutor, SEALED_RUN};
use kiso_base::clock::minute;
use kiso_base::home::SessionName;
use kiso_store::secret::Vault;
use kiso_store::store::{Message, MessageRole, PAGE_BYTES, Search, StoreError, View};

/// Bytes of text that one call of [`find_messages`] reads; the next page continues from there.
const MAX_READ: usize = 64 << 20;

/// Maximum number of messages in the answer of `/search`.
const ANSWERED: usize = 10;

/// Characters of an excerpt, and of those the ones before the first word that was searched for.
const EXCERPT: usize = 160;
const BEFORE: usize = 40;

/// The part of a search to return.
#[derive(Debug)]
pub struct SearchPage<'a> {
    /// Only this session; `None` searches all.
    pub session: Option<&'a SessionName>,
    /// Only messages older than the one with this id.
    pub before: Option<i64>,
    pub limit: usize,
}

/// A message that matches, decrypted.
#[derive(Debug)]
pub struct FoundMessage {
    pub session: SessionName,
    pub message: Message,
}

/// Returns matching messages of the sessions that `may_read` permits, newest first, and the `before` of the next page if there may be
/// more. A page can be short, because it is limited in bytes, too.
pub fn find_messages(
    view: &View<'_>,
    vault: &Vault,
    search: &Search,
    page: &SearchPage<'_>,
    mut may_read: impl FnMut(&SessionName) -> Result<bool, StoreError>,
) -> Result<(Vec<FoundMessage>, Option<i64>), StoreError> {
    let (mut found, mut failed) = (Vec::new(), None);
    let (mut read, mut kept) = (0, 0);
    let next = view.messages_with(search, page.session, page.before, |candidate| {
        let text = message_text(vault, &candidate.message.text);
        read += text.len();
        let permitted = may_read(&candidate.session).unwrap_or_else(|error| {
            failed = Some(error);
            false
        });
        if permitted && search.fits(&candidate, &text) {
            kept += text.len();
            found.push(FoundMessage { session: candidate.session, message: Message { text, ..candidate.message } });
        }
        found.len() < page.limit && kept < PAGE_BYTES && read < MAX_READ && failed.is_none()
    })?;
    failed.map_or(Ok((found, next)), Err)
}

/// Decrypts the text of a message for its owner. If that fails, the result says so.
pub fn message_text(vault: &Vault, text: &str) -> String {
    match vault.open_text(SEALED_RUN, text) {
        Ok(text) => text.into_owned(),
        Err(_) => "(sealed with the key of another home)".to_owned(),
    }
}

/// Returns one line of a message around the first word that was searched for.
pub fn excerpt(search: &Search, text: &str) -> String {
    let begin = search.first_in(text).unwrap_or(0);
    let start = text[..begin].char_indices().rev().take(BEFORE).last().map_or(begin, |(at, _)| at);
    let cut = if start > 0 { "…" } else { "" };
    format!("{cut}{}", first_chars(&text[start..], EXCERPT))
}

/// Returns the beginning of a text on one line.
pub fn first_chars(text: &str, chars: usize) -> String {
    let end = text.char_indices().nth(chars).map(|(at, _)| at);
    let line = text[..end.unwrap_or(text.len())].split_whitespace().collect::<Vec<_>>().join(" ");
    if end.is_some() { format!("{line}…") } else { line }
}

/// Answers `/search WORDS` with the newest messages of this session: the answer can go to a channel whose readers may not see others.
pub(super) async fn answer(drive: &RunExecutor, session: &SessionName, words: &str) -> Result<String, DriveError> {
    let Some(search) = Search::parse(words) else {
        return Ok("`/search` takes words, or #tags, that a message of this session contains.".to_owned());
    };
    let (vault, session) = (drive.vault.clone(), session.clone());
    let read = drive.store.read(move |view| {
        let page = SearchPage { session: Some(&session), before: None, limit: ANSWERED };
        let (found, next) = find_messages(view, &vault, &search, &page, |_| Ok(true))?;
        let mut lines: Vec<_> = found.iter().map(|found| line(&search, &found.message)).collect();
        if lines.is_empty() {
            return Ok("No message of this session contains all of these words.".to_owned());
        }
        if next.is_some() {
            lines.push(format!("\n`kiso session search` shows older messages. These are the newest {}.", found.len()));
        }
        Ok(lines.join("\n"))
    });
    Ok(read.await?)
}

fn line(search: &Search, message: &Message) -> String {
    let who = match message.role {
        MessageRole::User => "you",
        MessageRole::Assistant => "kiso",
    };
    format!("- {}, {who}: {}", minute(message.at_ms), excerpt(search, &message.text))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_excerpt_is_one_line_around_the_word() {
        let search = Search::parse("tea").unwrap();
        assert_eq!(excerpt(&search, "Drink\n tea\tat four"), "Drink tea at four");
        let long = format!("{} tea {}", "é".repeat(100), "z".repeat(500));
        let found = excerpt(&search, &long);
        assert!(found.starts_with("…é") && found.ends_with("z…") && found.contains(" tea "), "{found}");
        assert_eq!(found.chars().count(), 1 + EXCERPT + 1);
        assert_eq!(excerpt(&search, ""), "");
    }
}
