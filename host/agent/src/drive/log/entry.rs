//! The changes of one event in the store: the log itself, and data derived from it, in one transaction.

use super::SEALED_RUN;
use kiso_base::home::SessionName;
use kiso_plan::approval::Card;
use kiso_plan::label::Label;
use kiso_plan::tags::Tags;
use kiso_store::scratchpad;
use kiso_store::secret::Secrets;
use kiso_store::secret::vault::{Vault, VaultError, is_sealed};
use kiso_store::store::{LabelledRow, MessageRole, NewFact, Prompt, RunId, StoreError, TaskRow, Tx, UsageLine};

/// Confidence in percent of a fact that a reviewer learned.
const LEARNED: u8 = 70;

/// Opens sealed text, and removes the secrets that are known by now.
pub(super) struct Opener<'a> {
    pub vault: &'a Vault,
    pub secrets: &'a Secrets,
}

impl Opener<'_> {
    fn open(&self, text: &str) -> Result<String, VaultError> {
        Ok(self.secrets.redact(&self.vault.open_text(SEALED_RUN, text)?))
    }
}

/// An event in its stored form, with the entries to rewrite when the log is opened.
pub(super) struct Entry {
    pub seq: u32,
    pub at_ms: i64,
    pub kind: &'static str,
    pub body: String,
    pub prompts: Vec<Prompt>,
    /// Whether it is in plain text.
    pub clear: bool,
    /// Whether it opens everything that is sealed in the store.
    pub opens: bool,
    pub rewrite: Vec<(u32, String)>,
    /// Keys of the scratchpad entries to open.
    pub archived: Vec<String>,
}

impl Entry {
    pub(super) fn commit(
        &self,
        tx: &Tx<'_>,
        id: &RunId,
        session: &SessionName,
        opener: &Opener<'_>,
    ) -> Result<(), StoreError> {
        tx.append_event(id, self.seq, self.at_ms, self.kind, &self.body)?;
        for (seq, body) in &self.rewrite {
            tx.replace_event(id, *seq, body)?;
        }
        let of_run = if self.opens { tx.messages_of_run(id)? } else { Vec::new() };
        for message in of_run.into_iter().filter(|message| is_sealed(&message.text)) {
            // Text that another key sealed stays sealed: that key may be found again.
            let Ok(text) = opener.open(&message.text) else { continue };
            tx.replace_message(message.id, &text)?;
        }
        for key in &self.archived {
            if let Some(sealed) = tx.scratchpad_get(session, key)? {
                let text = opener.open(&sealed).map_err(|error| StoreError::corrupt(error.to_string()))?;
                tx.scratchpad_put(session, key, &text, false, self.at_ms)?;
            }
        }
        self.prompts.iter().try_for_each(|prompt| match self.clear {
            true => tx.put_prompt_in_pieces(id, prompt),
            false => tx.put_prompt(id, prompt),
        })
    }
}

/// The changes of an event outside of the log, without secrets.
pub(super) struct Projection {
    pub seq: u32,
    pub at_ms: i64,
    pub tasks: Vec<TaskRow>,
    pub usage: Vec<UsageLine>,
    pub learned: Option<String>,
    pub ledger: Option<String>,
    /// The reply of a turn that continues.
    pub delivered: Option<String>,
    pub is_tagged: bool,
    pub notifies: bool,
    /// The question to a person.
    pub asks: Option<Card>,
    /// Messages that become the run's.
    pub taken: Vec<i64>,
    /// Label of the run's current text.
    pub label: Label,
}

impl Projection {
    pub(super) fn commit(
        &self,
        tx: &Tx<'_>,
        id: &RunId,
        session: &SessionName,
        opener: &Opener<'_>,
    ) -> Result<(), StoreError> {
        if self.notifies {
            tx.tell_webhooks_of_notification(id, self.seq, &self.label, self.at_ms)?;
        }
        if self.is_tagged {
            for message in tx.messages_of_run(id)?.iter().filter(|message| message.role == MessageRole::User) {
                // Each message has its own tags, by which it is found.
                let Ok(text) = opener.vault.open_text(SEALED_RUN, &message.text) else { continue };
                let tags: Vec<_> = Tags::from_text(&text).names.iter().map(|tag| opener.secrets.redact(tag)).collect();
                tx.set_tags(message.id, &tags)?;
            }
        }
        tx.put_tasks(id, &self.tasks)?;
        for line in &self.usage {
            tx.add_usage(session, Some(id), line)?;
        }
        if let Some(text) = self.learned.clone() {
            let (source, session) = ("reviewer".to_owned(), Some(session.clone()));
            let known = tx.has_fact(&text)?;
            // The time of the turn, so that the fact is removed together with the turn if another version replaces it.
            let at_ms = tx.messages_of_run(id)?.first().map_or(self.at_ms, |message| message.at_ms);
            let added = tx.add_fact(&NewFact { text, source, session, confidence: LEARNED }, at_ms);
            // An existing fact with the same text keeps its label.
            if let (Ok(id), false) = (&added, known) {
                tx.set_label(LabelledRow::Fact, *id, &self.label)?;
            }
            left_out(added)?;
        }
        if let Some(ledger) = &self.ledger {
            left_out(tx.scratchpad_put(session, scratchpad::LEDGER, ledger, false, self.at_ms))?;
            tx.set_ref_label(session, scratchpad::LEDGER, &self.label)?;
        }
        if let Some(reply) = &self.delivered {
            let message = tx.add_message(session, MessageRole::Assistant, reply, self.at_ms, Some(id))?;
            tx.set_label(LabelledRow::Message, message, &self.label)?;
        }
        if let Some(card) = &self.asks {
            let number = tx.ask_approval(id, self.seq, card, self.at_ms)?;
            let text = card.question(number);
            let shown = tx.add_message(session, MessageRole::Assistant, &text, self.at_ms, Some(id))?;
            tx.set_label(LabelledRow::Message, shown, &self.label)?;
            let elsewhere = tx.inject(id, &text, &self.label, self.at_ms)?;
            [shown].into_iter().chain(elsewhere).try_for_each(|message| tx.show_approval(message, number))?;
        }
        for message in &self.taken {
            tx.take_message(id, *message)?;
        }
        Ok(())
    }
}

/// Ignores a lack of space for optional data: the event is committed without it.
fn left_out<T>(written: Result<T, StoreError>) -> Result<(), StoreError> {
    match written {
        Err(StoreError::Quota { what, max }) => {
            tracing::warn!("something was not kept: {what} (at most {max})");
            Ok(())
        }
        written => written.map(drop),
    }
}
