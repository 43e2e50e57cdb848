//! `memory_search`, `memory_save`, `memory_core_get`, `memory_core_update`.

use serde_json::{Value, json};

use super::{CallContext, Tool, ToolFault, messages, number, text, tool};
use kiso_base::clock::now_ms;
use kiso_plan::label::Label;
use kiso_store::memory::{self, CoreError, MAX_HITS, MAX_TEXT};
use kiso_store::store::{LabelledRow, Store, StoreError};

pub(super) use super::messages::CATEGORY;
pub(super) const SAVE: &str = "memory_save";
pub(super) const CORE_UPDATE: &str = "memory_core_update";
pub(super) const SEARCH: &str = "memory_search";
/// The argument with the query.
pub(super) const QUERY: &str = "query";
pub(super) const CORE_GET: &str = "memory_core_get";

/// Number of messages that a search returns besides memory; `message_search` returns more.
const MESSAGES: usize = 4;

pub(super) fn tools() -> Vec<Tool> {
    vec![
        tool(
            SEARCH,
            CATEGORY,
            "Search what is remembered: facts, saved passages, summaries, older messages.",
            json!({
                QUERY: { "type": "string", "minLength": 1, "maxLength": 1_000 },
                "limit": { "type": "integer", "minimum": 1, "maximum": MAX_HITS, "default": 8 },
            }),
            &["query"],
        ),
        tool(
            SAVE,
            CATEGORY,
            "Remember for later conversations what stays true: a text, or a document in /work with its pages.",
            json!({
                "text": { "type": "string", "minLength": 1, "maxLength": MAX_TEXT },
                "file": { "type": "string", "minLength": 1, "maxLength": 1_024 }
            }),
            &[],
        ),
        tool(CORE_GET, CATEGORY, "Read core memory, which is always in context, as JSON.", json!({}), &[]),
        tool(
            CORE_UPDATE,
            CATEGORY,
            "Change core memory by a JSON merge patch.",
            json!({ "patch": { "type": "object", "description": "such as {\"user\": {\"city\": \"Oslo\", \"zip\": null}}" } }),
            &["patch"],
        ),
    ]
}

pub(super) async fn call(store: &Store, name: &str, mut args: Value, at: &CallContext) -> Result<String, ToolFault> {
    match name {
        SEARCH => {
            let query = text(&args, QUERY).to_owned();
            let meaning =
                at.meanings.iter().find(|(question, _)| *question == query).map(|(_, meaning)| meaning.clone());
            let limit = u32::try_from(number(&args, "limit")).unwrap_or(MAX_HITS);
            let wanted = query.clone();
            let facts = store.read(move |view| view.find_facts(&wanted, limit)).await?;
            let chunks = memory::search(store, &query, meaning, limit).await?;
            let (of_facts, of_chunks): (Vec<_>, Vec<_>) =
                (facts.iter().map(|fact| fact.id).collect(), chunks.iter().map(|chunk| chunk.id).collect());
            at.read.join(&labels(store, of_facts, of_chunks).await?);
            let facts = facts.into_iter().map(|fact| format!("fact ({} %): {}", fact.confidence, fact.text));
            let chunks = chunks.into_iter().map(|chunk| format!("{}: {}", chunk.source, chunk.text));
            let said = messages::find(store, &query, None, at, number(&args, "limit").min(MESSAGES)).await?;
            let found: Vec<String> = facts.chain(chunks).chain(said).collect();
            if found.is_empty() {
                return Ok("No facts or passages have these words.".to_owned());
            }
            Ok(found.join("\n---\n"))
        }
        SAVE => {
            if text(&args, "text").trim().is_empty() {
                return Err(ToolFault::new("it takes a text, or the path of a file".to_owned()));
            }
            // No session: memory on request belongs to all sessions.
            let saved = memory::save(store, text(&args, "text"), SAVE, None, &at.written(), now_ms()).await.map_err(
                |error| match error {
                    StoreError::Quota { .. } => ToolFault::from(error).hint("save the parts that matter"),
                    error => error.into(),
                },
            )?;
            Ok(match saved.new {
                0 => "This is already remembered.".to_owned(),
                new => format!("Remembered, in {new} passages."),
            })
        }
        CORE_GET => {
            let document = memory::core(store).await?;
            at.read.join(&store.read(|view| view.core_label()).await?);
            Ok(format!("{document:#}"))
        }
        _ => {
            let patch = args.get_mut("patch").map(Value::take).unwrap_or_default();
            let label = at.written();
            // Before the change, so that its label is never better than its content.
            store.write(move |tx| tx.join_core_label(&label)).await?;
            let document = memory::update_core(store, patch, now_ms()).await.map_err(|error| match error {
                CoreError::Store(error) => ToolFault::from(error),
                error => ToolFault::new(error.to_string()),
            })?;
            Ok(format!("Core memory is now:\n{document:#}"))
        }
    }
}

/// Returns the label of search results.
async fn labels(store: &Store, facts: Vec<i64>, chunks: Vec<i64>) -> Result<Label, StoreError> {
    let read = store.read(move |view| {
        let mut label = Label::session();
        if view.has_labels()? {
            for id in facts {
                label.join(&view.label(LabelledRow::Fact, id)?);
            }
            for id in chunks {
                label.join(&view.label(LabelledRow::Passage, id)?);
            }
        }
        Ok(label)
    });
    read.await
}
