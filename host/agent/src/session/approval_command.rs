//! `/approve` and `/refuse`: a person's answer to a run's question, in the session of the question.

use super::command::CommandContext;
use crate::drive::{AlwaysScope, CardReply, CardReplyError, DriveError};

/// Maximum number of listed cards.
const SHOWN: u32 = 20;

impl CommandContext<'_> {
    /// Answers a card of this session, or of one of its subagents; without a number, lists the pending ones.
    pub(super) async fn approval(&self, accepts: bool, words: &[String]) -> Result<String, DriveError> {
        let store = &self.drive.store;
        let session = self.session.clone();
        let mut within = store.read(move |view| view.session_tree(&session)).await?;
        within.push(self.session.clone());
        let Some((number, rest)) = words.split_first() else {
            let session = self.session.clone();
            let here = store.read(move |view| {
                let mut here = Vec::new();
                for approval in view.approvals(None, false, None, SHOWN)? {
                    if within.contains(&approval.session) || view.shows_approval(&session, approval.id)? {
                        here.push(approval.card.question(approval.id));
                    }
                }
                Ok(here)
            });
            let here = here.await?;
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
        if !accepts && rest.iter().any(|word| *word != "always") {
            return usage();
        }
        let accepted = match accepts {
            true => (!effects.is_empty()).then_some(effects),
            false => Some(Vec::new()),
        };
        let reply = CardReply { accepted, always: always.then_some(AlwaysScope::Session), by: "message".to_owned() };
        // A card that was shown here may be answered here, even if it comes from a hook whose replies this session gets.
        let here = self.session.clone();
        let is_shown = store.read(move |view| view.shows_approval(&here, id)).await?;
        Ok(match self.drive.answer_card(id, (!is_shown).then_some(within), reply).await {
            Ok(answer) if answer.accepted.is_empty() => {
                let always = if always { ", and its hosts for the rest of this session" } else { "" };
                format!("Refused approval {id}{always}.")
            }
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
