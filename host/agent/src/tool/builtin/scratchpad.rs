//! `scratchpad`: lists, reads, searches and saves the archived texts of a session.

use serde_json::{Value, json};

use super::{CallContext, Tool, ToolFault, lines_within, number, page, text, tool};
use kiso_base::clock::now_ms;
use kiso_plan::code::ErrorCode;
use kiso_store::scratchpad::{MAX_KEY, check_key, is_hosts, near, parse_ref, save, search};
use kiso_store::store::{Store, StoreError};

pub(super) const CATEGORY: &str = "scratchpad";
pub(super) const SCRATCHPAD: &str = "scratchpad";
/// The argument that names an entry.
pub(super) const KEY: &str = "key";

/// Maximum number of lines in a search result.
const MAX_LINES: usize = 20;

pub(super) fn tools() -> Vec<Tool> {
    vec![tool(
        SCRATCHPAD,
        CATEGORY,
        "Texts put aside under keys: list, read or search them, or save one. ref:KEY as an argument elsewhere stands for the text.",
        json!({
            "action": { "type": "string", "enum": ["list", "read", "search", "save"] },
            KEY: { "type": "string", "minLength": 1, "maxLength": MAX_KEY + 4, "description": "for read and save" },
            "text": { "type": "string", "minLength": 1, "description": "for search and save" },
            "offset": { "type": "integer", "minimum": 0, "default": 0 },
            "limit": { "type": "integer", "minimum": 1, "maximum": 100_000, "default": 6_000 },
        }),
        &["action"],
    )]
}

pub(super) async fn call(store: &Store, args: &Value, at: &CallContext) -> Result<String, ToolFault> {
    let session = at.session.clone();
    match text(args, "action") {
        "save" => {
            let key = key(args)?;
            if is_hosts(&key) {
                let fault = ToolFault::new(format!("ref:{key} is written by kiso alone"));
                return Err(fault.hint("save it under another key, such as notes"));
            }
            let (content, name) = (require(args, "text", "save")?.to_owned(), key.clone());
            let bytes = content.len();
            save(store, &session, &key, content, &at.written(), now_ms()).await.map_err(|error| match error {
                StoreError::Quota { .. } => {
                    ToolFault::from(error).hint("save less, or under the key of an entry that is no longer needed")
                }
                error => error.into(),
            })?;
            Ok(format!("Saved {bytes} bytes as ref:{name}."))
        }
        "read" => {
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
                    .hint("action list shows what there is")
            })?;
            Ok(page(&found, number(args, "offset"), number(args, "limit"), at.result_tokens))
        }
        "list" => {
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
            let wanted = require(args, "text", "search")?.to_owned();
            let label = at.read.clone();
            let hits = store.read(move |view| {
                label.join(&view.refs_label(&session)?);
                search(view, &session, &wanted, MAX_LINES)
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
    let given = require(args, KEY, text(args, "action"))?.trim();
    let key = parse_ref(given).unwrap_or(given);
    check_key(key).map_err(|why| ToolFault::new(format!("{given:?} is not a key: {why}")))?;
    Ok(key.to_owned())
}

/// Returns an argument that only some actions need.
fn require<'a>(args: &'a Value, name: &str, action: &str) -> Result<&'a str, ToolFault> {
    args.get(name).and_then(Value::as_str).ok_or_else(|| ToolFault {
        code: ErrorCode::BadArgs,
        ..ToolFault::new(format!("{name}: action {action} needs it"))
    })
}
