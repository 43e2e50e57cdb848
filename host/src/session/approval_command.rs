//! `/approve` and `/refuse`: a person's answer to what a run asks, in the session in which it asks.

use super::command::CommandContext;
use crate::drive::{AlwaysScope, CardReply, CardReplyError, DriveError};

/// Cards that are listed.
const SHOWN: u32 = 20;

impl CommandContext<'_> {
    /// Answers a card of this session, or of a subagent of it; without a number, shows those that wait.
    pub(super) async fn approval(&self, accepts: bool, words: &[String]) -> Result<String, DriveError> {
        let store = &self.drive.store;
        let session = self.session.clone();
        let mut within = store.read(move |view| view.session_tree(&session)).await?;
        within.push(self.session.clone());
        let Some((number, rest)) = words.split_first() else {
            let waiting = store.read(|view| view.approvals(None, false, None, SHOWN)).await?;
            let here = waiting.iter().filter(|approval| within.contains(&approval.session));
            let here: Vec<_> = here.map(|approval| approval.card.question(approval.id)).collect();
            return Ok(if here.is_empty() {
                "Nothing is waiting for your approval here.".to_owned()
            } else {
                here.join("\n\n")
            });
        };
        if !self.by_person {
            return Ok(
                "A person answers approvals: in the page, the terminal, a channel or with `kiso approval`.".to_owned()
            );
        }
        let usage =
            || Ok("Write /approve NUMBER, /approve NUMBER 1 2, /approve NUMBER always, or /refuse NUMBER.".to_owned());
        let Ok(id) = number.trim_start_matches('#').parse() else { return usage() };
        let always = rest.iter().any(|word| word == "always");
        let effects = rest.iter().filter(|word| *word != "always");
        let effects = effects.flat_map(|word| word.split(',')).filter(|word| !word.is_empty());
        let Ok(effects) = effects.map(str::parse).collect::<Result<Vec<usize>, _>>() else { return usage() };
        if !accepts && !rest.is_empty() {
            return usage();
        }
        let accepted = match accepts {
            true => (!effects.is_empty()).then_some(effects),
            false => Some(Vec::new()),
        };
        let reply = CardReply { accepted, always: always.then_some(AlwaysScope::Session), by: "message".to_owned() };
        Ok(match self.drive.answer_card(id, Some(within), reply).await {
            Ok(answer) if answer.accepted.is_empty() => format!("Refused approval {id}."),
            Ok(answer) => {
                let numbers: Vec<_> = answer.accepted.iter().map(ToString::to_string).collect();
                let always = if always { ", and the same for the rest of this session" } else { "" };
                format!("Approved {} of approval {id}{always}.", numbers.join(", "))
            }
            Err(CardReplyError::Store(error)) => return Err(error.into()),
            Err(error) => format!("Nothing was changed: {error}."),
        })
    }
}
