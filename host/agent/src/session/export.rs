//! Exports a session as objects, for other programs and for users who leave. docs/json.md describes them.

use serde_json::{Value, json};

use crate::drive::SEALED_RUN;
use kiso_base::home::SessionName;
use kiso_store::secret::Secrets;
use kiso_store::secret::found::extract;
use kiso_store::secret::vault::{Vault, is_sealed};
use kiso_store::store::{OldBranch, Placement, RunId, StoreError, View};

/// Number of messages that are in memory at once.
const MESSAGES: u32 = 128;

/// Members of the objects that contain text of a person or a model.
const WRITTEN: [&str; 4] = ["title", "summary", "text", "message"];

/// Number of runs that are in memory at once, each with its tasks and their output.
const RUNS: u32 = 16;

/// The progress of an export.
#[derive(Debug, Clone)]
pub struct Export {
    session: SessionName,
    /// Secrets to remove from texts that were stored before they were known to be secret.
    secrets: Secrets,
    at: ExportStage,
    messages: u64,
    runs: u64,
}

#[derive(Debug, Clone)]
enum ExportStage {
    Session,
    Messages {
        after: i64,
    },
    /// Only branches that begin at or before this message: later ones were added during the export.
    Branches {
        to: i64,
    },
    Runs {
        after: Option<RunId>,
    },
    End,
    Over,
}

impl Export {
    /// `secrets` are those of the environment and of the session.
    pub fn new(session: &SessionName, secrets: Secrets) -> Export {
        Export { session: session.clone(), secrets, at: ExportStage::Session, messages: 0, runs: 0 }
    }

    /// Returns the next objects; `None` after the last. The very last object has the type "end" and the counts, so that a
    /// truncated export can be recognized.
    pub fn next(&mut self, view: &View<'_>, vault: &Vault) -> Result<Option<Vec<Value>>, StoreError> {
        let mut lines = Vec::new();
        self.at = match &self.at {
            ExportStage::Session => {
                lines.push(self.head(view)?);
                ExportStage::Messages { after: 0 }
            }
            ExportStage::Messages { after } => {
                let page = view.messages_of_all_branches(&self.session, *after, MESSAGES)?;
                self.messages += page.len() as u64;
                let over = ExportStage::Branches { to: *after };
                let next = page.last().map_or(over, |(last, _)| ExportStage::Messages { after: last.id });
                lines.extend(page.into_iter().map(|(message, branch)| {
                    let mut line = json!({
                        "type": "message", "id": message.id, "role": message.role.as_str(), "at_ms": message.at_ms,
                        "run": message.run.map(|run| run.to_string()), "tags": message.tags,
                        "text": open(vault, &message.text),
                    });
                    // An import stores it in the same form.
                    if is_sealed(&message.text) {
                        line["sealed"] = true.into();
                    }
                    if branch > 0 {
                        line["branch"] = branch.into();
                    }
                    line
                }));
                next
            }
            ExportStage::Branches { to } => {
                let branches = view.branches(&self.session)?.into_iter().filter(|branch| branch.id <= *to);
                lines.extend(branches.map(|OldBranch { id, parent, first }| {
                    json!({ "type": "branch", "id": id, "parent": parent, "first": first })
                }));
                ExportStage::Runs { after: None }
            }
            ExportStage::Runs { after } => {
                let page = view.runs_after(&self.session, after.as_ref(), RUNS)?;
                self.runs += page.len() as u64;
                let next =
                    page.last().map_or(ExportStage::End, |last| ExportStage::Runs { after: Some(last.id.clone()) });
                for run in page {
                    let outcome: Option<Value> = run.outcome.and_then(|outcome| serde_json::from_str(&outcome).ok());
                    lines.push(json!({
                        "type": "run", "run": run.id.to_string(), "session": self.session, "status": run.status.as_str(),
                        "started_ms": run.started_ms, "ended_ms": run.ended_ms, "message": open(vault, &run.message),
                        "outcome": outcome,
                    }));
                    of_run(view, vault, &run.id, &mut lines)?;
                }
                next
            }
            ExportStage::End => {
                lines.push(json!({ "type": "end", "messages": self.messages, "runs": self.runs }));
                ExportStage::Over
            }
            ExportStage::Over => return Ok(None),
        };
        lines.into_iter().map(|line| self.cleaned(line)).collect::<Result<_, _>>().map(Some)
    }

    /// Removes secrets from an object, and anything that looks like a credential from text of people and models.
    fn cleaned(&self, mut line: Value) -> Result<Value, StoreError> {
        for member in WRITTEN {
            if let Some(text) = line.get(member).and_then(Value::as_str) {
                line[member] = extract(text, &self.secrets).0.into();
            }
        }
        self.secrets.redact_document(line).map_err(|error| StoreError::corrupt(error.to_string()))
    }

    fn head(&self, view: &View<'_>) -> Result<Value, StoreError> {
        let session = &self.session;
        let summary = view.summary(session)?;
        let segments = view.segments_of_all_branches(session)?.into_iter();
        let segments = segments.map(|(after, at_ms, branch)| match branch {
            0 => json!({ "after": after, "at_ms": at_ms }),
            _ => json!({ "after": after, "at_ms": at_ms, "branch": branch }),
        });
        let models = view.model_choice(session)?;
        // A session that was deleted in the meantime gets the default.
        let line = view.session(session)?;
        let placement = line.as_ref().map_or(Placement::Listed, |line| line.placement);
        let runs_on = line.and_then(|line| line.runs_on);
        let mut head = json!({
            "type": "session", "session": session, "title": view.title(session)?, "placement": placement,
            "runs_on": runs_on,
            "model": models.all, "role_models": models.roles,
            "summary": summary.as_ref().map(|summary| &summary.text),
            "summary_to": summary.as_ref().map(|summary| summary.to), "segments": segments.collect::<Vec<_>>(),
        });
        let branch = view.branch_in_use(session)?;
        if branch > 0 {
            head["branch"] = branch.into();
        }
        Ok(head)
    }
}

/// Opens text that is still sealed because no model has checked it for secrets.
fn open(vault: &Vault, text: &str) -> String {
    vault.open_text(SEALED_RUN, text).map_or_else(|error| format!("[{error}]"), |text| text.into_owned())
}

fn of_run(view: &View<'_>, vault: &Vault, run: &RunId, lines: &mut Vec<Value>) -> Result<(), StoreError> {
    for task in view.tasks_of(run)? {
        lines.push(json!({
            "type": "task", "run": run.to_string(), "id": task.id, "position": task.position, "kind": task.kind.name(),
            "label": task.label, "task": vault.open_json(SEALED_RUN, &task.task).unwrap_or_default(),
            "status": task.status.as_str(), "output": task.output, "error": task.error,
            "started_ms": task.started_ms, "ended_ms": task.ended_ms,
        }));
    }
    for line in view.usage_of(run)? {
        lines.push(json!({
            "type": "usage", "run": run.to_string(), "at_ms": line.at_ms, "role": line.role, "model": line.model,
            "input_tokens": line.usage.input_tokens, "output_tokens": line.usage.output_tokens,
            "cached_tokens": line.usage.cached_tokens, "cost_micros": line.usage.cost_micros,
        }));
    }
    Ok(())
}
