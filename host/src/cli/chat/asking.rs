//! The card that a run of the conversation waits for, and the typed answers to it.

use super::talk::Activity;
use crate::cli::approval::numbers;
use kiso_base::home::SessionName;
use kiso_store::store::{ApprovalLine, Store, StoreError};

/// Maximum cards to search.
const LOOKED_AT: u32 = 100;

/// The card that a person at the terminal can answer: the oldest one waiting in the session.
#[derive(Debug, Default)]
pub(super) struct Asking(Option<ApprovalLine>);

impl Asking {
    /// Loads the waiting card.
    pub(super) async fn look(&mut self, store: &Store, session: &SessionName) -> Result<(), StoreError> {
        let session = session.clone();
        let waiting = store.read(move |view| {
            let mut first = None;
            for approval in view.approvals(Some(&session), false, None, LOOKED_AT)? {
                first = Some(approval);
            }
            if first.is_some() {
                return Ok(first);
            }
            for approval in view.approvals(None, false, None, LOOKED_AT)? {
                if view.shows_approval(&session, approval.id)? {
                    first = Some(approval);
                }
            }
            Ok(first)
        });
        self.0 = waiting.await?;
        Ok(())
    }

    pub(super) fn waits(&self) -> bool {
        self.0.is_some()
    }

    /// Returns whether it can be accepted for longer.
    fn lasts(&self) -> bool {
        self.0.as_ref().is_some_and(|card| card.card.can_last())
    }

    /// Returns the text above the prompt.
    pub(super) fn activity(&self) -> Option<Activity> {
        let card = self.0.as_ref()?;
        let some = if card.card.effects.len() > 1 { ", 1 3 some" } else { "" };
        let always = if self.lasts() { ", s accepts for this session" } else { "" };
        let never = if card.card.is_about_hosts() { ", d refuses for this session" } else { "" };
        let what = format!("approval {}: y accepts, n refuses{some}{always}{never}", card.id);
        Some(Activity { what, since_ms: card.asked_ms })
    }

    /// Returns the command for a typed line; `None` if the line is not an answer.
    pub(super) fn command(&self, line: &str) -> Option<String> {
        let card = self.0.as_ref()?;
        let id = card.id;
        Some(match line.trim().to_ascii_lowercase().as_str() {
            "y" | "yes" => format!("/approve {id}"),
            "n" | "no" => format!("/refuse {id}"),
            "s" if self.lasts() => format!("/approve {id} always"),
            // A refusal of hosts can be remembered; a refusal of a call cannot.
            "d" if card.card.is_about_hosts() => format!("/refuse {id} always"),
            text => {
                let chosen = numbers(text).filter(|chosen| !chosen.is_empty())?;
                if chosen.iter().any(|number| !(1..=card.card.effects.len()).contains(number)) {
                    return None;
                }
                let chosen: Vec<_> = chosen.iter().map(ToString::to_string).collect();
                format!("/approve {id} {}", chosen.join(" "))
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use kiso_plan::approval::{CallEffect, Card, NETWORK};
    use kiso_store::store::ApprovalState;

    fn asking(effects: usize) -> Asking {
        let effect = CallEffect::new("fetch", Vec::new(), &[], "{}");
        Asking(Some(ApprovalLine {
            id: 12,
            run: "00000000000000".parse().unwrap(),
            session: SessionName::parse("s").unwrap(),
            state: ApprovalState::Pending,
            asked_ms: 5,
            card: Card { effects: vec![effect; effects], expires_ms: 9 },
            answer: None,
        }))
    }

    #[test]
    fn only_an_answer_is_one() {
        let asking = asking(3);
        for (line, command) in [
            ("y", "/approve 12"),
            (" Yes ", "/approve 12"),
            ("n", "/refuse 12"),
            ("s", "/approve 12 always"),
            ("1,3", "/approve 12 1 3"),
            ("2 3", "/approve 12 2 3"),
        ] {
            assert_eq!(asking.command(line).as_deref(), Some(command), "{line}");
        }
        for line in ["", "yes please", "no, 12 of them", "4", "1 4", "0", "ok", "/refuse 12", "12"] {
            assert_eq!(asking.command(line), None, "{line}");
        }
        assert_eq!(Asking::default().command("y"), None, "nothing waits");
        let mut each_time = super::tests::asking(1);
        each_time.0.as_mut().unwrap().card.effects[0].because = vec!["its words are anybody's".to_owned()];
        assert_eq!(each_time.command("s"), None);
        assert!(!each_time.activity().unwrap().what.contains("session"));
        assert!(asking.activity().unwrap().what.contains("approval 12: y accepts"));
        assert_eq!(asking.command("d"), None, "a call of a skill");
        let mut host = super::tests::asking(1);
        host.0.as_mut().unwrap().card.effects[0].tool = NETWORK.to_owned();
        assert_eq!(host.command("d").as_deref(), Some("/refuse 12 always"));
        assert!(host.activity().unwrap().what.ends_with("d refuses for this session"));
    }
}
