//! `scratchpad_save`, `scratchpad_read`, `scratchpad_list`, `scratchpad_search`.

use serde_json::{Value, json};

use super::{CallContext, Tool, ToolFault, lines_within, number, page, text, tool};
use crate::clock::now_ms;
use crate::scratchpad::{MAX_KEY, check_key, is_hosts, near, parse_ref, save, search};
use crate::store::{Store, StoreError};

pub(super) const CATEGORY: &str = "scratchpad";
pub(super) const READ: &str = "scratchpad_read";
const SAVE: &str = "scratchpad_save";
pub(super) const LIST: &str = "scratchpad_list";
pub(super) const SEARCH: &str = "scratchpad_search";

pub(super) fn tools() -> Vec<Tool> {
    let key = json!({
        "type": "string", "minLength": 1, "maxLength": MAX_KEY + 4,
        "description": "key of the entry, with or without ref: before it",
    });
    vec![
        tool(
            SAVE,
            CATEGORY,
            "Save a text under a key in the session's scratchpad; an entry of the same key is replaced. Elsewhere ref:KEY stands for it.",
            json!({ "key": key, "text": { "type": "string", "minLength": 1, "description": "what to save" } }),
            &["key", "text"],
        ),
        tool(
            READ,
            CATEGORY,
            "Read an entry of the scratchpad, in parts if it is long.",
            json!({
                "key": key,
                "offset": { "type": "integer", "minimum": 0, "default": 0, "description": "character to begin at" },
                "limit": { "type": "integer", "minimum": 1, "maximum": 100_000, "default": 6_000, "description": "characters to read" },
            }),
            &["key"],
        ),
        tool(LIST, CATEGORY, "List the entries of the session's scratchpad, the newest first.", json!({}), &[]),
        tool(
            SEARCH,
            CATEGORY,
            "Find lines in the entries of the scratchpad that contain a text, without regard to case.",
            json!({
                "query": { "type": "string", "minLength": 1, "maxLength": 400, "description": "text to look for, literally" },
                "limit": { "type": "integer", "minimum": 1, "maximum": 100, "default": 20, "description": "most lines to give" },
            }),
            &["query"],
        ),
    ]
}

pub(super) async fn call(store: &Store, name: &str, args: &Value, at: &CallContext) -> Result<String, ToolFault> {
    let session = at.session.clone();
    match name {
        SAVE => {
            let key = key(args)?;
            if is_hosts(&key) {
                let fault = ToolFault::new(format!("ref:{key} is written by kiso alone"));
                return Err(fault.hint("save it under another key, such as notes"));
            }
            let (content, name) = (text(args, "text").to_owned(), key.clone());
            let bytes = content.len();
            save(store, &session, &key, content, &at.written(), now_ms()).await.map_err(|error| match error {
                StoreError::Quota { .. } => {
                    ToolFault::from(error).hint("save less, or under the key of an entry that is no longer needed")
                }
                error => error.into(),
            })?;
            Ok(format!("Saved {bytes} bytes as ref:{name}."))
        }
        READ => {
            let key = key(args)?;
            let (of, wanted, label) = (session.clone(), key.clone(), at.read.clone());
            let read = store.read(move |view| {
                let found = view.scratchpad_get(&of, &wanted)?;
                label.join(&view.ref_label(&of, &wanted)?);
                let known = if found.is_none() { view.scratchpad_list(&of)? } else { Vec::new() };
                Ok((found, known.into_iter().map(|entry| entry.key).collect::<Vec<_>>()))
            });
            let (found, known) = read.await?;
            let found = found.ok_or_else(|| {
                ToolFault::new(format!("there is no ref:{key} in the scratchpad{}", near(&key, &known)))
                    .hint("scratchpad_list shows what there is")
            })?;
            Ok(page(&found, number(args, "offset"), number(args, "limit"), at.result_tokens))
        }
        LIST => {
            let label = at.read.clone();
            let entries = store.read(move |view| {
                label.join(&view.refs_label(&session)?);
                view.scratchpad_list(&session)
            });
            let entries = entries.await?;
            if entries.is_empty() {
                return Ok("The scratchpad of this session is empty.".to_owned());
            }
            let lines =
                entries.iter().map(|entry| format!("ref:{} ({} bytes): {}", entry.key, entry.bytes, entry.head));
            Ok(lines_within(lines, at.result_tokens))
        }
        _ => {
            let (wanted, limit) = (text(args, "query").to_owned(), number(args, "limit"));
            let label = at.read.clone();
            let hits = store.read(move |view| {
                label.join(&view.refs_label(&session)?);
                search(view, &session, &wanted, limit)
            });
            let hits = hits.await?;
            if hits.is_empty() {
                return Ok("No line of the scratchpad contains that.".to_owned());
            }
            let lines = hits.iter().map(|hit| format!("ref:{} line {}: {}", hit.key, hit.line, hit.text));
            Ok(lines_within(lines, at.result_tokens))
        }
    }
}

fn key(args: &Value) -> Result<String, ToolFault> {
    let given = text(args, "key").trim();
    let key = parse_ref(given).unwrap_or(given);
    check_key(key).map_err(|why| ToolFault::new(format!("{given:?} is not a key: {why}")))?;
    Ok(key.to_owned())
}
