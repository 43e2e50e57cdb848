//! A message for its owner, with the outcome of its run.

use super::trouble::RunTrouble;
use super::wire::{Message, Reply, VersionRun, open_message};
use kiso_agent::node::output;
use kiso_base::home::SessionName;
use kiso_graph::outcome::Outcome;
use kiso_plan::block::Block;
use kiso_store::secret::Vault;
use kiso_store::store::{self, MessageRole, StoreError, View};

/// Returns the message of [`open_message`] with the data of its reply.
pub fn whole_message(
    view: &View<'_>,
    vault: &Vault,
    session: SessionName,
    message: store::Message,
) -> Result<Message, StoreError> {
    let run = message.run.clone().filter(|_| message.role == MessageRole::Assistant);
    let is_asked = message.role == MessageRole::User;
    let mut message = open_message(vault, session, message);
    message.replaced = view.is_replaced(message.id)?;
    if is_asked {
        message.versions = view.versions(message.id)?;
        message.version_runs = version_runs(view, vault, &message.versions)?;
    }
    if message.role == MessageRole::Assistant {
        message.approval = view.approval_number_in_message(message.id)?;
    }
    let Some((status, Some(outcome))) = run.map(|run| view.ending(&run)).transpose()?.flatten() else {
        return Ok(message);
    };
    // An outcome that an older version wrote may have another format.
    let Ok(outcome) = serde_json::from_str::<Outcome>(&outcome) else { return Ok(message) };
    let shown = output::reply(&outcome);
    // A run that continued with further messages has given other replies before.
    if message.text != shown {
        return Ok(message);
    }
    let without_list = output::without_list(&outcome);
    let trouble = RunTrouble::from_ending(&outcome.ending);
    let Outcome { reply, files, mut blocks, thought_ms, .. } = outcome;
    if blocks.is_empty() {
        // The files are separate data, so the text does not list them.
        let text = without_list.or_else(|| (reply != shown).then_some(reply));
        blocks.extend(text.map(|text| Block::Text { text }));
    }
    let thought_ms = Some(thought_ms).filter(|millis| *millis > 0);
    message.reply = Some(Reply { status, blocks, files, thought_ms, trouble });
    Ok(message)
}

/// Returns the run of each version, and the number of its wording. A turn with several messages has the text of all of them.
fn version_runs(view: &View<'_>, vault: &Vault, versions: &[i64]) -> Result<Vec<VersionRun>, StoreError> {
    let mut wordings: Vec<Vec<String>> = Vec::new();
    let mut runs = Vec::with_capacity(versions.len());
    for id in versions {
        // A version that was deleted in the meantime has no text to compare.
        let Some((session, first)) = view.message(*id)? else { continue };
        let run = first.run.clone();
        let mut asked = run.as_ref().map(|run| view.messages_of_run(run)).transpose()?.unwrap_or_else(|| vec![first]);
        asked.retain(|message| message.role == MessageRole::User);
        let texts = asked.into_iter().map(|message| open_message(vault, session.clone(), message).text).collect();
        let wording = wordings.iter().position(|known| *known == texts).unwrap_or_else(|| {
            wordings.push(texts);
            wordings.len() - 1
        });
        runs.push(VersionRun { message: *id, run, wording });
    }
    Ok(runs)
}
