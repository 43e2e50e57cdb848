//! `message_search`, `message_read`: messages of all segments. A user's model sees its own conversation with its subagents; an
//! administrator's sees all.

use serde_json::{Value, json};

use super::{CallContext, Tool, ToolFault, number, page, text, tool};
use kiso_base::clock::minute;
use kiso_base::home::SessionName;
use kiso_plan::plan::CallerScope;
use kiso_store::secret::vault::is_sealed;
use kiso_store::store::{LabelledRow, Message, Search, Store, StoreError, View};

pub(super) const CATEGORY: &str = "memory";
pub(super) const SEARCH: &str = "message_search";
pub(super) const READ: &str = "message_read";

/// Maximum number of messages in a search result.
const MAX_HITS: usize = 50;

/// Number of characters of a message in search results, from slightly before the first match.
const SHOWN: usize = 600;
const BEFORE: usize = 120;

pub(super) fn tools() -> Vec<Tool> {
    vec![
        tool(
            SEARCH,
            CATEGORY,
            "Search all messages word by word, also those that are no longer in context.",
            json!({
                "query": { "type": "string", "minLength": 1, "maxLength": 400, "description": "words, or #tag" },
                "session": { "type": "string", "maxLength": 64, "description": "only there; self is this one" },
                "limit": { "type": "integer", "minimum": 1, "maximum": MAX_HITS, "default": 8 },
            }),
            &["query"],
        ),
        tool(
            READ,
            CATEGORY,
            "Read a message that a search found.",
            json!({
                "message": { "type": "integer", "minimum": 1 },
                "offset": { "type": "integer", "minimum": 0, "default": 0 },
                "limit": { "type": "integer", "minimum": 1, "maximum": 100_000, "default": 6_000 },
            }),
            &["message"],
        ),
    ]
}

pub(super) async fn call(store: &Store, name: &str, args: &Value, at: &CallContext) -> Result<String, ToolFault> {
    if name == SEARCH {
        let session = match args.get("session").and_then(Value::as_str) {
            Some(session) => Some(at.addressed(store, session).await?),
            None => None,
        };
        let found = find(store, text(args, "query"), session, at, number(args, "limit")).await?;
        if found.is_empty() {
            return Ok("No message has these words.".to_owned());
        }
        return Ok(found.join("\n---\n"));
    }
    let id = i64::try_from(number(args, "message")).unwrap_or(i64::MAX);
    let here = at.clone();
    let read = store.read(move |view| {
        let Some((session, message)) = view.message(id)? else { return Ok(None) };
        let visible = visible(view, &here)?.is_none_or(|sessions| sessions.contains(&session));
        let label = view.label(LabelledRow::Message, id)?;
        Ok((visible && !is_sealed(&message.text)).then_some((session, message, label)))
    });
    let (session, message, label) = read.await?.ok_or_else(|| {
        ToolFault::new(format!("there is no message {id} that can be read here"))
            .hint("message_search gives the numbers of messages")
    })?;
    at.read.join(&label);
    let body = page(&message.text, number(args, "offset"), number(args, "limit"), at.result_tokens);
    Ok(format!("{}\n{body}", heading(&session, &message)))
}

/// Returns the best matching messages, each with a part of its text, without those of the current run. Messages that no model has
/// checked for secrets are left out.
pub(super) async fn find(
    store: &Store,
    query: &str,
    session: Option<SessionName>,
    at: &CallContext,
    limit: usize,
) -> Result<Vec<String>, StoreError> {
    let Some(search) = Search::parse(query) else { return Ok(Vec::new()) };
    let (here, most) = (at.clone(), u32::try_from(limit.min(MAX_HITS)).unwrap_or_default());
    let read = store.read(move |view| {
        let sessions = match session {
            // Access to the named session was already checked.
            Some(session) => Some(vec![session]),
            None => visible(view, &here)?,
        };
        let found = view.find_messages(&search, sessions.as_deref(), here.run.as_ref(), most)?;
        for (_, message) in &found {
            here.read.join(&view.label(LabelledRow::Message, message.id)?);
        }
        let line = |(session, message): (SessionName, Message)| {
            format!("{}\n{}", heading(&session, &message), part(&message.text, search.first_in(&message.text)))
        };
        Ok(found.into_iter().map(line).collect())
    });
    read.await
}

/// Returns the sessions whose messages may be seen; `None` for all.
fn visible(view: &View<'_>, at: &CallContext) -> Result<Option<Vec<SessionName>>, StoreError> {
    if at.caller == CallerScope::Admin {
        return Ok(None);
    }
    let line = view.line_of(&at.session)?;
    Ok(Some(view.session_tree(line.last().unwrap_or(&at.session))?))
}

fn heading(session: &SessionName, message: &Message) -> String {
    format!("message {}, {}, session {session}, {}:", message.id, message.role.as_str(), minute(message.at_ms))
}

/// Returns the text from slightly before `at`.
fn part(text: &str, at: Option<usize>) -> String {
    let before = text[..at.unwrap_or_default()].chars().count().saturating_sub(BEFORE);
    let shown: String = text.chars().skip(before).take(SHOWN).collect();
    let more = if before + shown.chars().count() < text.chars().count() { " […]" } else { "" };
    format!("{}{}{more}", if before > 0 { "[…] " } else { "" }, shown.trim())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_message_is_shown_around_its_words() {
        assert_eq!(part("short", None), "short");
        let long = format!("{}needle{}", "é ".repeat(500), " b".repeat(500));
        let shown = part(&long, long.find("needle"));
        assert!(shown.starts_with("[…] é") && shown.contains("needle b") && shown.ends_with("b […]"), "{shown}");
        assert!(shown.chars().count() <= SHOWN + 9);
    }
}
