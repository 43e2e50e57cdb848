//! Versions of a turn: the branch of one is put into use, and `/version` lists and switches those of the last turn.

use super::search::{first_chars, message_text};
use crate::drive::{DriveError, RunExecutor};
use kiso_base::clock::now_ms;
use kiso_base::home::SessionName;
use kiso_store::memory;
use kiso_store::secret::Vault;
use kiso_store::store::{BranchChange, MessageRole, NotReplaced, StoreError, Tx, View};

/// Characters of a message and of a reply in the list of versions.
const ASKED: usize = 60;
const REPLIED: usize = 100;

/// A version of a turn.
#[derive(Debug)]
struct TurnVersion {
    /// Its first message.
    message: i64,
    asked: String,
    /// Its last reply, if its run has given one.
    reply: Option<String>,
    is_in_use: bool,
}

/// Switches to the branch with this message.
pub async fn show_version(drive: &RunExecutor, message: i64) -> Result<Result<SessionName, NotReplaced>, StoreError> {
    let write = drive.store.write(move |tx| {
        let shown = tx.show_version(message)?;
        if let Ok((session, change)) = &shown {
            move_passages(tx, session, change)?;
        }
        Ok(shown)
    });
    Ok(write.await?.map(|(session, _)| session))
}

/// Keeps memory in line with the branch: it contains only the passages of the branch's summaries.
pub(super) fn move_passages(tx: &Tx<'_>, session: &SessionName, change: &BranchChange) -> Result<(), StoreError> {
    for text in &change.dropped {
        memory::forget_summary(tx, session, text)?;
    }
    for kept in &change.restored {
        memory::keep_summary(tx, session, None, &kept.text, &kept.label, now_ms())?;
    }
    Ok(())
}

/// Answers `/version` and `/version NUMBER`.
pub(super) async fn answer(drive: &RunExecutor, session: &SessionName, number: &str) -> Result<String, DriveError> {
    let (vault, of) = (drive.vault.clone(), session.clone());
    let versions = drive.store.read(move |view| versions(view, &vault, &of)).await?;
    if versions.is_empty() {
        return Ok("The last reply has only one version. `/retry` makes another.".to_owned());
    }
    if number.is_empty() {
        return Ok(list(&versions));
    }
    let chosen = number.parse().ok().and_then(|number: usize| versions.get(number.checked_sub(1)?));
    let Some(version) = chosen else {
        return Ok(format!("There is no version {number}.\n\n{}", list(&versions)));
    };
    Ok(match show_version(drive, version.message).await? {
        Ok(_) => {
            let reply = version.reply.as_deref().unwrap_or("It has no reply.");
            format!("The conversation continues from version {number}:\n\n{reply}")
        }
        Err(why) => format!("Nothing was switched: {why}."),
    })
}

fn list(versions: &[TurnVersion]) -> String {
    let lines = versions.iter().zip(1..).map(|(version, number)| {
        let in_use = if version.is_in_use { " (in use)" } else { "" };
        let reply = version.reply.as_deref().map_or_else(|| "no reply".to_owned(), |reply| first_chars(reply, REPLIED));
        format!("{number}. {}{in_use}: {reply}", first_chars(&version.asked, ASKED))
    });
    lines.chain(["\n`/version NUMBER` continues from another.".to_owned()]).collect::<Vec<_>>().join("\n")
}

/// Returns the versions of the session's last turn, oldest first; empty if there is only one.
fn versions(view: &View<'_>, vault: &Vault, session: &SessionName) -> Result<Vec<TurnVersion>, StoreError> {
    let Some(last) = view.last_asked(session)? else { return Ok(Vec::new()) };
    let turn = view.turn(last)?.ok();
    let first = turn.and_then(|turn| turn.asked.first().map(|message| message.id)).unwrap_or(last);
    let mut versions = Vec::new();
    for message in view.versions(first)? {
        let Some((_, asked)) = view.message(message)? else { continue };
        let mut replies = match &asked.run {
            Some(run) => view.messages_of_run(run)?,
            None => Vec::new(),
        };
        replies.retain(|message| message.role == MessageRole::Assistant);
        versions.push(TurnVersion {
            message,
            asked: message_text(vault, &asked.text),
            reply: replies.last().map(|reply| message_text(vault, &reply.text)),
            is_in_use: !view.is_replaced(message)?,
        });
    }
    Ok(versions)
}
