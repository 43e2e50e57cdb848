//! Cards with choices: what the owner's chat offers, the choice made there, and the outcome shown.
//!
//! ```text
//!  card ─▶ deliver ─▶ a letter with choices ─▶ a press ─▶ the owner's? ─▶ ticked: other choices in the same letter
//!                                                                     └─▶ accepted, refused ─▶ the card's answer
//!  answered anywhere, expired, withdrawn ─▶ the letter shows it, and offers nothing any more
//! ```
//!
//! A choice contains all that it stands for, including the ticked numbers, so its effect is the one shown with it, however
//! late or often it arrives. The sender's identity decides whether it is the owner's choice, so ids of choices need not be
//! secret.

use std::fmt::Write;

use super::ComponentChannel;
use super::receive::Again;
use kiso_agent::drive::{AlwaysScope, CardReply};
use kiso_base::clock::now_ms;
use kiso_sandbox::skill::channel::{ChannelTrouble, Choice, Message};
use kiso_store::store::{ApprovalLine, ApprovalState, ChannelOffer, ChannelSender, SenderStanding};

/// Offers handled between two polls, and attempts before one is left unchanged.
const OFFERS: u32 = 20;
const MAX_ATTEMPTS: u32 = 20;

/// Minimum milliseconds between two attempts, and how many are added with each attempt.
const PAUSE_MS: i64 = 2_000;

/// Maximum bytes of a label, as `wit/channel` says.
const MAX_LABEL: usize = 60;

/// The meaning of a choice.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Chosen {
    /// Accept the ticked effects, or all if none is ticked.
    Accept,
    Refuse,
    /// Allow all hosts for the rest of the session.
    AllowHosts,
    RefuseHosts,
    /// Only change the ticks.
    Tick,
}

/// Numbers of effects, as bits.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Ticks(u32);

impl Ticks {
    fn has(self, number: usize) -> bool {
        self.0 & 1 << (number - 1) != 0
    }

    fn with_turned(self, number: usize) -> Ticks {
        Ticks(self.0 ^ 1 << (number - 1))
    }

    fn numbers(self, of: usize) -> Vec<usize> {
        (1..=of).filter(|number| self.has(*number)).collect()
    }
}

/// Returns the choices that the owner has for a card.
pub(super) fn choices(card: &ApprovalLine, ticks: Ticks) -> Vec<Choice> {
    let (id, all) = (card.id, card.card.effects.len());
    let numbers = ticks.numbers(all);
    let (label, command) = match numbers.as_slice() {
        [] if all == 1 => ("Accept".to_owned(), format!("/approve {id}")),
        [] => ("Accept all".to_owned(), format!("/approve {id}")),
        some => {
            let list = |between| some.iter().map(ToString::to_string).collect::<Vec<_>>().join(between);
            let label = format!("Accept {}", list(", "));
            let short = format!("Accept {} of {all}", some.len());
            (if label.len() <= 20 { label } else { short }, format!("/approve {id} {}", list(" ")))
        }
    };
    let command = Some(command).filter(|command| command.len() <= MAX_LABEL);
    let mut choices = vec![
        Choice { id: format!("{id}.accept.{:x}", ticks.0), label, command },
        Choice { id: format!("{id}.refuse"), label: "Refuse".to_owned(), command: Some(format!("/refuse {id}")) },
    ];
    // A question about hosts alone can also be answered for the rest of the session.
    if card.card.is_about_hosts() {
        let choice = |word: &str, label: &str, command: String| Choice {
            id: format!("{id}.{word}"),
            label: label.to_owned(),
            command: Some(command),
        };
        if card.card.can_last() {
            choices.push(choice("allow-hosts", "Always here", format!("/approve {id} always")));
        }
        choices.push(choice("refuse-hosts", "Never here", format!("/refuse {id} always")));
    }
    if all > 1 {
        choices.extend((1..=all).map(|number| {
            let mark = if ticks.has(number) { '☑' } else { '☐' };
            let id = format!("{id}.tick.{:x}", ticks.with_turned(number).0);
            Choice { id, label: format!("{mark} {number}"), command: None }
        }));
    }
    choices
}

/// Returns the card's id, the choice, and the ticks: those shown with the choice, or those that it leads to.
fn parse(choice: &str) -> Option<(i64, Chosen, Ticks)> {
    let mut words = choice.split('.');
    let id = words.next()?.parse().ok()?;
    let chosen = match words.next()? {
        "accept" => Chosen::Accept,
        "refuse" => Chosen::Refuse,
        "allow-hosts" => Chosen::AllowHosts,
        "refuse-hosts" => Chosen::RefuseHosts,
        "tick" => Chosen::Tick,
        _ => return None,
    };
    let ticks = words.next().map_or(Some(0), |word| u32::from_str_radix(word, 16).ok())?;
    words.next().is_none().then_some((id, chosen, Ticks(ticks)))
}

/// Returns the outcome of a card as a sentence.
fn outcome(id: i64, card: Option<&ApprovalLine>) -> String {
    let mut said = format!("Approval {id}: ");
    let answer = card.filter(|card| card.state == ApprovalState::Answered).and_then(|card| card.answer.as_ref());
    let end = match (answer, card.map(|card| card.state)) {
        (Some(answer), _) => {
            let all = card.map_or(0, |card| card.card.effects.len());
            match answer.accepted.as_slice() {
                [] => said += "refused",
                some if some.len() == all => said += "accepted",
                some => {
                    let list: Vec<_> = some.iter().map(ToString::to_string).collect();
                    let _ = write!(said, "accepted {} of {all} ({})", some.len(), list.join(", "));
                }
            }
            if answer.by.is_empty() { ".".to_owned() } else { format!(", by {}.", answer.by) }
        }
        (None, Some(ApprovalState::Pending | ApprovalState::Expired)) => "nobody answered in time.".to_owned(),
        (None, _) => "not needed any more.".to_owned(),
    };
    said + &end
}

impl ComponentChannel {
    /// Carries out a choice, and answers it. A choice that is not valid or not the owner's changes nothing.
    pub(super) async fn choose(
        &self,
        message: &Message,
        choice: &str,
        sender: Option<&ChannelSender>,
    ) -> Result<(), Again> {
        // A stranger was never offered anything.
        let Some(sender) = sender.filter(|sender| sender.standing != SenderStanding::Waiting) else { return Ok(()) };
        let said = if !self.meter.admits(&sender.sender, self.settings.per_minute, now_ms()) {
            "There were too many messages in a minute: choose again later.".to_owned()
        } else if sender.standing != SenderStanding::Owner {
            "Only the owner of this kiso can choose.".to_owned()
        } else {
            self.choose_as_owner(choice, sender).await?
        };
        if self.rest().is_none() {
            // Services accept the answer for a few seconds only; the sent message shows the outcome as well.
            let answered = self.guest.answer(&sender.sender, &message.id, &said).await;
            answered.unwrap_or_else(|failure| self.heed(&failure));
        }
        Ok(())
    }

    async fn choose_as_owner(&self, choice: &str, sender: &ChannelSender) -> Result<String, Again> {
        let again = |error: &dyn std::fmt::Display| Again(error.to_string());
        let Some((id, chosen, ticks)) = parse(choice) else { return Ok("This is not offered any more.".to_owned()) };
        let own = self.settings.own_session();
        let found = self.drive.store.read(move |view| {
            let is_shown = view.shows_approval(&own, id)?;
            Ok(view.approval(id)?.filter(|_| is_shown))
        });
        let Some(card) = found.await.map_err(|error| again(&error))? else {
            return Ok(format!("There is no approval {id} here."));
        };
        if card.state != ApprovalState::Pending || card.card.expires_ms <= now_ms() {
            return Ok(outcome(id, Some(&card)));
        }
        let all = card.card.effects.len();
        let accepted = match chosen {
            Chosen::Refuse | Chosen::RefuseHosts => Some(Vec::new()),
            Chosen::AllowHosts => None,
            Chosen::Accept if ticks == Ticks::default() => None,
            Chosen::Accept if ticks.numbers(all).is_empty() => return Ok("This is not offered any more.".to_owned()),
            Chosen::Accept => Some(ticks.numbers(all)),
            Chosen::Tick => {
                return Ok(match self.change_offer(&card, sender, ticks).await? {
                    true => format!("{} of {all} ticked.", ticks.numbers(all).len()),
                    false => "The buttons could not be changed; press again.".to_owned(),
                });
            }
        };
        let lasts = matches!(chosen, Chosen::AllowHosts | Chosen::RefuseHosts) && card.card.is_about_hosts();
        let always = lasts.then_some(AlwaysScope::Session);
        let reply = CardReply { accepted, always, by: self.outbox_name.clone() };
        match self.drive.answer_card(id, None, reply).await {
            Ok(_) | Err(kiso_agent::drive::CardReplyError::Over { .. }) => {
                let now = self.drive.store.read(move |view| view.approval(id)).await.map_err(|error| again(&error))?;
                Ok(outcome(id, now.as_ref()))
            }
            Err(kiso_agent::drive::CardReplyError::Store(error)) => Err(again(&error)),
            Err(error) => Ok(format!("Nothing was changed: {error}.")),
        }
    }

    /// Offers the same card with other ticks. Returns whether they are shown anywhere.
    async fn change_offer(&self, card: &ApprovalLine, sender: &ChannelSender, ticks: Ticks) -> Result<bool, Again> {
        let (channel, recipient, id) = (self.settings.name.clone(), sender.sender.clone(), card.id);
        let letters = self.drive.store.read(move |view| view.offers_of_card(&channel, &recipient, id)).await;
        let mut is_shown = false;
        for letter in letters.map_err(|error| Again(error.to_string()))? {
            if self.rest().is_none() {
                match self.guest.offer(&sender.sender, &letter, None, &choices(card, ticks)).await {
                    Ok(()) => is_shown = true,
                    Err(failure) => self.heed(&failure),
                }
            }
        }
        Ok(is_shown)
    }

    /// Shows the outcome of decided cards in all letters that offered them.
    pub(super) async fn show_decided(&self) {
        let channel = self.settings.name.clone();
        let decided = self.drive.store.read(move |view| {
            let offers = view.offers_decided(&channel, now_ms(), OFFERS)?;
            let with_card = |offer: ChannelOffer| Ok((view.approval(offer.approval)?, offer));
            offers.into_iter().map(with_card).collect::<Result<Vec<_>, _>>()
        });
        for (card, offer) in decided.await.unwrap_or_default() {
            if self.rest().is_some() {
                return;
            }
            let note = outcome(offer.approval, card.as_ref());
            let shown = self.guest.offer(&offer.recipient, &offer.letter, Some(&note), &[]).await;
            let is_over = match shown {
                Ok(()) => true,
                Err(failure) => {
                    self.heed(&failure);
                    failure.trouble == ChannelTrouble::Gone || offer.attempts + 1 >= MAX_ATTEMPTS
                }
            };
            let (channel, due_ms) = (self.settings.name.clone(), now_ms() + PAUSE_MS * (i64::from(offer.attempts) + 1));
            let recorded = self.drive.store.write(move |tx| match is_over {
                true => tx.end_offer(&channel, &offer),
                false => tx.put_off_offer(&channel, &offer, due_ms),
            });
            if let Err(error) = recorded.await {
                tracing::warn!(channel = self.settings.name, "what became of a card could not be recorded: {error}");
                return;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use kiso_base::home::SessionName;
    use kiso_plan::approval::{CallEffect, Card, CardAnswer, MAX_EFFECTS, NETWORK};

    fn card(effects: usize) -> ApprovalLine {
        let effect = CallEffect::new("fetch", Vec::new(), &[], "{}");
        ApprovalLine {
            id: 12,
            run: "00000000000000".parse().unwrap(),
            session: SessionName::parse("s").unwrap(),
            state: ApprovalState::Pending,
            asked_ms: 0,
            card: Card { effects: vec![effect; effects], expires_ms: 1 },
            answer: None,
        }
    }

    #[test]
    fn a_choice_does_what_stood_on_it() {
        let shown = |effects, ticks| choices(&card(effects), Ticks(ticks));
        let labels = |choices: &[Choice]| choices.iter().map(|choice| choice.label.clone()).collect::<Vec<_>>();
        assert_eq!(labels(&shown(1, 0)), ["Accept", "Refuse"]);
        assert_eq!(labels(&shown(3, 0)), ["Accept all", "Refuse", "☐ 1", "☐ 2", "☐ 3"]);
        let some = shown(3, 0b101);
        assert_eq!(labels(&some), ["Accept 1, 3", "Refuse", "☑ 1", "☐ 2", "☑ 3"]);
        assert_eq!(some[0].command.as_deref(), Some("/approve 12 1 3"));
        let mut host = card(1);
        host.card.effects[0].tool = NETWORK.to_owned();
        let host = choices(&host, Ticks::default());
        assert_eq!(labels(&host), ["Accept", "Refuse", "Always here", "Never here"]);
        assert_eq!(parse(&host[2].id), Some((12, Chosen::AllowHosts, Ticks(0))));
        assert_eq!(parse(&host[3].id), Some((12, Chosen::RefuseHosts, Ticks(0))));
        assert_eq!(parse(&some[0].id), Some((12, Chosen::Accept, Ticks(0b101))));
        assert_eq!(parse(&some[1].id), Some((12, Chosen::Refuse, Ticks(0))));
        assert_eq!(parse(&some[3].id), Some((12, Chosen::Tick, Ticks(0b111))));
        assert_eq!(parse(&some[4].id), Some((12, Chosen::Tick, Ticks(0b001))));
        let most = choices(&ApprovalLine { id: i64::MAX, ..card(MAX_EFFECTS) }, Ticks((1 << MAX_EFFECTS) - 1));
        assert!(most.len() <= 30 && most.iter().all(|choice| choice.id.len() <= 40 && choice.label.len() <= MAX_LABEL));
        assert_eq!(most[0].label, format!("Accept {MAX_EFFECTS} of {MAX_EFFECTS}"));
    }

    #[test]
    fn what_was_never_offered_is_nothing() {
        for choice in
            ["", "12", "12.", "12.accept.g", "12.accept.1.2", "x.accept", "12.always", "/approve 12", "12.tick.-1"]
        {
            assert_eq!(parse(choice), None, "{choice}");
        }
    }

    #[test]
    fn what_became_of_a_card_is_a_sentence() {
        let answered = |accepted: &[usize]| {
            let answer =
                CardAnswer { accepted: accepted.to_vec(), expired: false, by: "channel.bot".to_owned(), always: None };
            outcome(12, Some(&ApprovalLine { state: ApprovalState::Answered, answer: Some(answer), ..card(2) }))
        };
        assert_eq!(answered(&[1, 2]), "Approval 12: accepted, by channel.bot.");
        assert_eq!(answered(&[2]), "Approval 12: accepted 1 of 2 (2), by channel.bot.");
        assert_eq!(answered(&[]), "Approval 12: refused, by channel.bot.");
        assert_eq!(outcome(12, Some(&card(1))), "Approval 12: nobody answered in time.");
        let withdrawn = ApprovalLine { state: ApprovalState::Withdrawn, ..card(1) };
        assert_eq!([outcome(12, Some(&withdrawn)), outcome(12, None)], ["Approval 12: not needed any more."; 2]);
    }
}
