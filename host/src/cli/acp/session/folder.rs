//! The editor's project: a prompt's changes are shown as one difference, and applied to the project if a person agrees.

use std::io::Read;

use serde_json::{Value, json};

use super::{AcpSession, stopped};
use kiso_agent::drive::{FolderFailure, FolderView};
use kiso_base::home::{PROJECT, SessionName};
use kiso_base::rpc::{self, RequestId, RpcError};
use kiso_sandbox::effect::overlay::{EntryKind, EntryLook, FolderChange, FolderSelection, ListedChange};

/// Maximum bytes of a file whose text is shown.
const MAX_TEXT: u64 = 64 << 10;

/// Maximum files shown at once.
const MAX_SHOWN: usize = 50;

/// The end of a prompt, delayed until a person has answered.
#[derive(Debug)]
pub(super) struct HeldEnd {
    /// The id of the request for permission.
    request: String,
    prompt: RequestId,
    reason: &'static str,
}

impl HeldEnd {
    pub(super) fn is_of(&self, request: &str) -> bool {
        self.request == request
    }

    /// Returns the response that ends the prompt.
    pub(super) fn ended(&self) -> Value {
        stopped(&self.prompt, self.reason)
    }

    pub(super) fn cancelled(&self) -> Value {
        stopped(&self.prompt, "cancelled")
    }
}

impl AcpSession {
    /// Ends a prompt, or first asks whether its changes are applied to the project.
    pub(super) async fn end(&mut self, prompt: RequestId, reason: &'static str) {
        let number = self.next_id();
        let request = format!("{}/{number}", self.session);
        let asked = match self.project.as_ref().is_some_and(|project| project.write) {
            true => self.question(&request).await,
            false => Ok(None),
        };
        match asked {
            Ok(Some(question)) => {
                self.send(question).await;
                self.held = Some(HeldEnd { request, prompt, reason });
            }
            Ok(None) => self.send(stopped(&prompt, reason)).await,
            Err(error) => self.send(rpc::refusal(Some(&prompt), RpcError::internal(&error))).await,
        }
    }

    async fn question(&self, request: &str) -> Result<Option<Value>, FolderFailure> {
        let folders = match self.drive.folders(&self.session, Some(PROJECT)).await {
            Err(FolderFailure::NoFolder { .. } | FolderFailure::OtherFolder { .. }) => return Ok(None),
            folders => folders?,
        };
        let view = folders.iter().next().filter(|view| !view.difference.changes.is_empty());
        Ok(view.map(|view| question(request, &self.session, view)))
    }

    /// Handles a person's answer. Only an explicit yes applies the changes; otherwise they wait.
    pub(super) async fn answer_changes(&mut self, held: HeldEnd, result: Result<Value, RpcError>) {
        let outcome = result.map(|result| result["outcome"].clone()).unwrap_or_default();
        let option = outcome["optionId"].as_str().filter(|_| outcome["outcome"] == "selected");
        let done = match option {
            Some("accept") => self.apply_changes(true).await,
            Some("discard") => self.apply_changes(false).await,
            _ => Ok(()),
        };
        match done {
            Ok(()) => self.send(held.ended()).await,
            Err(error) => {
                self.write(&format!("\n\nThe changes were not brought into the project: {error}\n")).await;
                self.send(held.ended()).await;
            }
        }
    }

    /// The editor has gone, so nobody can review changes to the project. Waiting changes are kept.
    pub(super) async fn close_project(&self) {
        if self.project.is_none() {
            return;
        }
        let closed = match self.drive.folders(&self.session, Some(PROJECT)).await {
            Ok(folders) => folders.iter().try_for_each(|view| self.drive.close_folder(&self.session, view)),
            Err(error) => Err(error),
        };
        if let Err(error) = closed {
            tracing::info!("the project stays open in the session {}: {error}", self.session);
        }
    }

    async fn apply_changes(&self, accepts: bool) -> Result<(), FolderFailure> {
        let folders = self.drive.folders(&self.session, Some(PROJECT)).await?;
        for view in folders.iter().filter(|view| !view.difference.changes.is_empty()) {
            match accepts {
                true => self.drive.accept(&self.session, view, &FolderSelection::All)?.changes,
                false => self.drive.discard(&self.session, view, &FolderSelection::All)?,
            };
        }
        Ok(())
    }
}

fn question(request: &str, session: &SessionName, view: &FolderView) -> Value {
    let difference = &view.difference;
    let lines = difference.listed(&FolderSelection::All, true);
    let marked = difference.count_marked();
    let outside =
        if marked > 0 { format!(", {marked} decided by text from outside or with it") } else { String::new() };
    let title = match difference.count(&FolderSelection::All) {
        1 => format!("Apply 1 change to {}{outside}", view.folder.path.display()),
        count => format!("Apply {count} changes to {}{outside}", view.folder.path.display()),
    };
    let content = lines.iter().take(MAX_SHOWN).map(|line| match line {
        ListedChange::Change(change) => shown(view, change),
        line => words(&line.to_string()),
    });
    let more = lines.len().saturating_sub(MAX_SHOWN);
    let more = (more > 0).then(|| words(&format!("and {more} more; `kiso diff --session {session}` shows all")));
    let content: Vec<Value> = content.chain(more).collect();
    let path = |line: &ListedChange<'_>| match line {
        ListedChange::Change(change) => change.path.clone(),
        ListedChange::Repository(repository) => repository.path.clone(),
        ListedChange::Group(group) => group.dir.to_owned(),
    };
    let locations: Vec<Value> =
        lines.iter().take(MAX_SHOWN).map(|line| json!({ "path": view.folder.path.join(path(line)) })).collect();
    let params = json!({
        "sessionId": session,
        "toolCall": {
            "toolCallId": request, "title": title, "kind": "edit", "status": "pending",
            "content": content, "locations": locations,
        },
        "options": [
            { "optionId": "accept", "name": "Apply", "kind": "allow_once" },
            { "optionId": "wait", "name": "Not now", "kind": "reject_once" },
            { "optionId": "discard", "name": "Discard the changes", "kind": "reject_always" },
        ],
    });
    rpc::request(&RequestId::Text(request.to_owned()), "session/request_permission", params)
}

/// Returns a change for the editor: both texts, or a sentence.
fn shown(view: &FolderView, change: &FolderChange) -> Value {
    let text = |look: Option<EntryLook>, file: std::io::Result<std::fs::File>| {
        let Some(look) = look else { return Some(None) };
        if change.is_secret || look.kind != EntryKind::File || look.bytes > MAX_TEXT {
            return None;
        }
        let mut text = String::new();
        file.ok()?.take(MAX_TEXT).read_to_string(&mut text).ok()?;
        Some(Some(text))
    };
    let before = text(change.before, view.overlay.open_before(change));
    let after = text(change.after, view.overlay.open_after(change));
    match (before, after, change.moved_from()) {
        (Some(old), Some(Some(new)), None) => {
            json!({ "type": "diff", "path": view.folder.path.join(&change.path), "oldText": old, "newText": new })
        }
        _ => {
            let verb = match (&change.before, &change.after, change.moved_from()) {
                (_, _, Some(from)) => format!("moved from {}", from.display()),
                (_, None, _) if change.files > 1 => format!("deleted, with {} files", change.files),
                (_, None, _) => "deleted".to_owned(),
                (None, ..) => "added".to_owned(),
                _ => "changed".to_owned(),
            };
            let collision = change.collision.map(|collision| format!("; {collision}")).unwrap_or_default();
            let text = format!("{}: {verb}{collision}", change.path.display());
            words(&text)
        }
    }
}

fn words(text: &str) -> Value {
    json!({ "type": "content", "content": { "type": "text", "text": text } })
}
