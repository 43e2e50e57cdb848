//! The log of one run in the store, without secrets.
//!
//! A message is stored before it is known whether it contains a secret that no pattern finds. Until a model has checked it, the
//! message and the first events are sealed with the home's key, so that nothing is in plain text; then they are replaced by
//! versions without secrets.
//!
//! Appended events are stored by [`Log::commit`]. With paid models, each event is committed, so that no answer is paid for twice.
//! If all models are built in, a step without an effect can be repeated at no cost: its event is committed together with the next
//! effect or the reply. The start of a run is stored before the run is read, so that a run that crashes its process is detected.

mod batch;
mod entry;
mod result;
mod task;

use self::batch::Batch;
use self::entry::{Entry, Projection};
use self::result::{looked_at, may_change_files};
use self::task::{row, state};
use super::clean::clean_title;
use super::{DriveError, SPEC, subagent};
use crate::node::output;
use kiso_base::clock::now_ms;
use kiso_base::config::Context;
use kiso_base::home::SessionName;
use kiso_base::json;
use kiso_base::role::Role;
use kiso_graph::outcome::{Ending, Outcome};
use kiso_graph::run::{Run, RunSpec};
use kiso_graph::step::{Event, StepResult};
use kiso_plan::effort::Effort;
use kiso_plan::plan::CallerScope;
use kiso_sandbox::effect::member::FleetMember;
use kiso_store::scratchpad;
use kiso_store::secret::Secrets;
use kiso_store::secret::vault::{Vault, is_sealed};
use kiso_store::store::{
    BegunRun, DueKind, LabelledRow, MAX_FACT_BYTES, MessageRole, Prompt, RunId, RunStatus, Store, StoreError, TaskRow,
    Tx, UsageLine,
};
use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

pub use kiso_store::secret::vault::SEALED_RUN;

/// The messages of a run.
#[derive(Debug)]
pub(super) enum Messages {
    /// A given message, without the secrets that were found in it.
    Given { text: String, caller: CallerScope },
    /// The waiting messages of the session, which are already sealed.
    Waiting,
}

/// Replaces a message that cannot be read.
const CLOSED: &str = "(a message that was sealed with another key)";

/// Delays before a commit is retried: a longer problem with a disk or a lock needs a person.
const AGAIN: [Duration; 4] =
    [Duration::from_millis(50), Duration::from_millis(250), Duration::from_secs(1), Duration::from_secs(3)];

/// Sealed events by number, and prompts.
#[derive(Debug, Default)]
struct Sealed {
    events: Vec<(u32, String)>,
    prompts: Vec<Prompt>,
}

impl Sealed {
    /// Returns the keys of the scratchpad entries with large inputs.
    fn archived(&self) -> Vec<String> {
        let events = self.events.iter().filter_map(|(_, body)| serde_json::from_str::<Event>(body).ok());
        let keys = events.filter_map(|event| match event.result {
            StepResult::Admitted { archived, .. } => archived,
            _ => None,
        });
        keys.collect()
    }
}

pub(super) struct Log {
    pub store: Store,
    pub vault: Vault,
    pub session: SessionName,
    pub id: RunId,
    pub seq: u32,
    /// The sealed content in plain text; `None` when nothing is sealed any more.
    sealed: Option<Sealed>,
    /// The last stored row of each task.
    tasks: HashMap<u32, TaskRow>,
    /// Events that are not stored yet.
    batch: Batch,
    /// In a fleet: the session's files are stored for the other members before a commit records the step that changed them.
    pub member: Option<Arc<dyn FleetMember>>,
    /// Whether the files may have changed since they were last stored.
    files_changed: bool,
}

impl Log {
    /// Starts a run; `None` if no message waits for one.
    pub(super) async fn begin(
        store: &Store,
        vault: &Vault,
        session: &SessionName,
        messages: Messages,
        spec: impl FnOnce(&BegunRun, Vec<String>) -> RunSpec + Send + 'static,
        is_apart: impl Fn(&str) -> bool + Send + 'static,
        boot: Option<String>,
    ) -> Result<Option<(Log, RunSpec)>, DriveError> {
        let (name, sealer) = (session.clone(), vault.clone());
        let begun = store.write(move |tx| {
            let broken = |error: kiso_store::secret::VaultError| StoreError::corrupt(error.to_string());
            let is_apart = |text: &str| sealer.open_text(SEALED_RUN, text).is_ok_and(|text| is_apart(&text));
            let begun = match messages {
                Messages::Given { text, caller } => {
                    let kept = sealer.seal_text(SEALED_RUN, &text).map_err(broken)?;
                    Some(tx.begin_run(&name, kept, caller, now_ms())?)
                }
                Messages::Waiting => tx.begin_queued_apart(&name, now_ms(), &is_apart)?,
            };
            let Some(begun) = begun else { return Ok(None) };
            tx.set_boot(&begun.run, boot.as_deref())?;
            // A message that this key cannot open must not block all later ones.
            let open = |text: &String| match sealer.open_text(SEALED_RUN, text) {
                Ok(text) => text.into_owned(),
                Err(_) => CLOSED.to_owned(),
            };
            let spec = spec(&begun, begun.texts.iter().map(open).collect());
            let body = kiso_base::json::text(&spec);
            let kept = sealer.seal_text(SEALED_RUN, &body).map_err(broken)?;
            tx.append_event(&begun.run, 0, now_ms(), SPEC, &kept)?;
            // The ledger of the previous run does not apply to this one.
            tx.scratchpad_delete(&name, scratchpad::LEDGER)?;
            Ok(Some((begun.run, spec, body)))
        });
        Ok(begun.await?.map(|(id, spec, body)| (Log::new(store, vault, session, id, body), spec)))
    }

    fn new(store: &Store, vault: &Vault, session: &SessionName, id: RunId, spec: String) -> Log {
        Log {
            store: store.clone(),
            vault: vault.clone(),
            session: session.clone(),
            id,
            seq: 0,
            sealed: Some(Sealed { events: vec![(0, spec)], prompts: Vec::new() }),
            tasks: HashMap::new(),
            batch: Batch::default(),
            member: None,
            files_changed: true,
        }
    }

    /// Loads the log of an interrupted run, with its spec and its events.
    pub(super) async fn load(
        store: &Store,
        vault: &Vault,
        session: &SessionName,
        id: &RunId,
    ) -> Result<(Log, RunSpec, Vec<Event>), DriveError> {
        let run = id.clone();
        let read = store.read(move |view| Ok((view.events(&run)?, view.tasks_of(&run)?, view.prompts(&run)?)));
        let (rows, tasks, prompts) = read.await?;
        let mut sealed = Sealed::default();
        let (mut spec, mut events, mut seq) = (None, Vec::new(), 0);
        for row in rows {
            let body = vault.open_text(SEALED_RUN, &row.body)?.into_owned();
            seq = row.seq;
            match row.kind.as_str() {
                SPEC => spec = Some(serde_json::from_str(&body)?),
                _ => events.push(serde_json::from_str(&body)?),
            }
            if is_sealed(&row.body) {
                sealed.events.push((row.seq, body));
            }
        }
        for mut prompt in prompts.into_iter().filter(|prompt| is_sealed(&prompt.text)) {
            prompt.text = vault.open_text(SEALED_RUN, &prompt.text)?.into_owned();
            sealed.prompts.push(prompt);
        }
        let spec = spec.ok_or_else(|| DriveError::NotResumable("it has no first event".to_owned()))?;
        let log = Log {
            store: store.clone(),
            vault: vault.clone(),
            session: session.clone(),
            id: id.clone(),
            seq,
            sealed: (!sealed.events.is_empty()).then_some(sealed),
            tasks: tasks.into_iter().map(|row| (row.id, row)).collect(),
            batch: Batch::default(),
            member: None,
            files_changed: true,
        };
        Ok((log, spec, events))
    }

    /// Appends an event with everything that follows from it: tasks, usage, learned facts, the ledger, and, if the turn
    /// continues, the messages `taking` with which it continues. It is stored by the next [`Log::commit`].
    pub(super) fn append(
        &mut self,
        event: &Event,
        run: &Run,
        secrets: &Secrets,
        asked: Vec<(Role, String)>,
        taking: Vec<i64>,
    ) -> Result<(), DriveError> {
        self.seq += 1;
        let at = now_ms();
        self.files_changed |= may_change_files(&event.result);
        let role = asked.last().map(|(role, _)| *role);
        let entry = self.seal(event, secrets, asked, at)?;
        let mut projection = self.project(event, run, secrets, role, at);
        if event.continues {
            projection.taken = taking;
        }
        if !entry.clear {
            // The task of the medium route contains the user's message. It is rewritten when it ends.
            for row in &mut projection.tasks {
                row.task = self.vault.seal_json(SEALED_RUN, &row.task)?;
            }
        }
        self.batch.add(entry, projection, secrets);
        Ok(())
    }

    /// Commits the appended events, in one transaction.
    pub(super) async fn commit(&mut self) -> Result<(), DriveError> {
        match self.batch.is_empty() {
            true => Ok(()),
            false => self.commit_with(&AGAIN, |_| Ok(())).await,
        }
    }

    /// Commits the appended events without retries, for a run that does not continue here.
    pub(super) async fn leave(&mut self) -> Result<(), DriveError> {
        match self.batch.is_empty() {
            true => Ok(()),
            false => self.commit_with(&[], |_| Ok(())).await,
        }
    }

    /// Commits the appended events together with `and`. Short obstacles are waited for: a command whose result is not stored
    /// would look interrupted. If an obstacle persists, nothing is lost: the next commit tries again.
    async fn commit_with(
        &mut self,
        waits: &[Duration],
        and: impl Fn(&Tx<'_>) -> Result<(), StoreError> + Send + Sync + 'static,
    ) -> Result<(), DriveError> {
        let tree = self.keep_files().await?;
        let work = Arc::new((std::mem::take(&mut self.batch), and));
        let mut waits = waits.iter();
        loop {
            let (work_of_try, id, session, vault) =
                (work.clone(), self.id.clone(), self.session.clone(), self.vault.clone());
            let written = self.store.write(move |tx| {
                let (batch, and) = &*work_of_try;
                batch.commit(tx, &id, &session, &vault)?;
                if let Some(root) = &tree {
                    tx.set_tree(&session, root)?;
                }
                and(tx)
            });
            let Err(error) = written.await else { return Ok(()) };
            match waits.next().filter(|_| error.may_pass()) {
                Some(wait) => {
                    tracing::warn!(run = %self.id, "what happened could not be written down; it is tried again: {error}");
                    tokio::time::sleep(*wait).await;
                }
                None => {
                    // The writer has released it before it responded.
                    self.batch = Arc::into_inner(work).map(|(batch, _)| batch).unwrap_or_default();
                    return Err(error.into());
                }
            }
        }
    }

    /// Stores the session's files for the other members of a fleet, if they may have changed; returns their name.
    async fn keep_files(&mut self) -> Result<Option<[u8; 32]>, DriveError> {
        let Some(member) = self.member.clone().filter(|_| self.files_changed) else { return Ok(None) };
        let session = self.session.clone();
        let kept = tokio::task::spawn_blocking(move || member.keep_files(&session)).await;
        let kept = kept.unwrap_or_else(|failed| Err(failed.to_string()));
        let root = kept.map_err(|why| StoreError::Fenced { why })?;
        self.files_changed = false;
        Ok(Some(root))
    }

    /// Returns the event and its prompts in their stored form: sealed until a model has checked the message, and then in plain
    /// text, together with everything that was sealed before.
    fn seal(
        &mut self,
        event: &Event,
        secrets: &Secrets,
        asked: Vec<(Role, String)>,
        at_ms: i64,
    ) -> Result<Entry, DriveError> {
        let prompts = (0..).zip(asked).map(|(nth, (role, text))| {
            let (role, text) = (role.name().to_owned(), secrets.redact(&text));
            Prompt { seq: self.seq, nth, role, text }
        });
        let mut prompts: Vec<_> = prompts.collect();
        let body = secrets.redact_to_json(event)?;
        // Everything that is committed must be readable. Inputs are limited when they arrive; this catches the rest.
        if json::is_deeper(body.as_bytes(), json::MAX_COMMITTED) {
            return Err(DriveError::NotResumable(format!(
                "the result of {} is nested too deeply",
                event.result.name()
            )));
        }
        // Newly arrived messages were not checked by a model yet.
        let closes = matches!(&event.result, StepResult::Finished { arrived, .. } if !arrived.is_empty());
        let opens = looked_at(event) && !closes;
        let clear = opens || self.sealed.is_none() && !closes;
        let (mut rewrite, mut archived) = (Vec::new(), Vec::new());
        let kept = if clear {
            if let Some(sealed) = self.sealed.take() {
                archived = sealed.archived();
                for (seq, body) in &sealed.events {
                    let document: serde_json::Value = serde_json::from_str(body)?;
                    rewrite.push((*seq, secrets.redact_to_json(&document)?));
                }
                let clean = |prompt: Prompt| Prompt { text: secrets.redact(&prompt.text), ..prompt };
                prompts.extend(sealed.prompts.into_iter().map(clean));
            }
            body
        } else {
            let kept = self.vault.seal_text(SEALED_RUN, &body)?;
            let sealed = self.sealed.get_or_insert_default();
            sealed.events.push((self.seq, body));
            for prompt in &mut prompts {
                let text = self.vault.seal_text(SEALED_RUN, &prompt.text)?;
                sealed.prompts.push(prompt.clone());
                prompt.text = text;
            }
            kept
        };
        let kind = event.result.name();
        Ok(Entry { seq: self.seq, at_ms, kind, body: kept, prompts, clear, opens, rewrite, archived })
    }

    /// Returns the changes of the event outside of the log.
    fn project(&mut self, event: &Event, run: &Run, secrets: &Secrets, role: Option<Role>, at: i64) -> Projection {
        let usage = event.calls().map(|call| UsageLine {
            at_ms: at,
            role: role.map_or("worker", Role::name).to_owned(),
            model: call.model.clone(),
            usage: call.usage,
        });
        Projection {
            seq: self.seq,
            at_ms: at,
            tasks: self.changed(run, secrets, at),
            usage: usage.collect(),
            learned: match &event.result {
                StepResult::Reviewed { verdict, .. } => verdict.learn.as_deref().map(|fact| clip(secrets.redact(fact))),
                _ => None,
            },
            ledger: matches!(event.result, StepResult::Called { .. }).then(|| secrets.redact(&run.ledger().text())),
            delivered: match &event.result {
                StepResult::Finished { reply, .. } if event.continues => Some(secrets.redact(reply)),
                _ => None,
            },
            is_tagged: matches!(&event.result, StepResult::Admitted { tags, .. } if !tags.is_empty()),
            notifies: event.notification().is_some(),
            asks: match &event.result {
                StepResult::ApprovalWanted { card } => secrets.redact_document(card.clone()).ok(),
                _ => None,
            },
            taken: Vec::new(),
            label: run.label(),
        }
    }

    /// Returns the rows of tasks that differ from the last stored ones.
    fn changed(&mut self, run: &Run, secrets: &Secrets, at: i64) -> Vec<TaskRow> {
        let mut changed = Vec::new();
        for (position, entry) in run.board().into_iter().enumerate() {
            let status = state(entry.state);
            let old = self.tasks.get(&entry.id);
            if old.is_some_and(|row| row.status == status) {
                continue;
            }
            let row = row(&entry, position, old, secrets, at);
            self.tasks.insert(entry.id, row.clone());
            changed.push(row);
        }
        changed
    }

    /// Stores the outcome and the reply, and schedules the background work, in one transaction with the events that are not
    /// stored yet. A session without a name gets the `title`, if there is one. With `window_is_full`, its messages are
    /// summarized.
    pub(super) async fn finish(
        &mut self,
        outcome: &Outcome,
        run: &Run,
        secrets: &Secrets,
        context: &Context,
        title: Option<(String, UsageLine)>,
        window_is_full: bool,
    ) -> Result<(), DriveError> {
        let status = match outcome.ending {
            Ending::Done => RunStatus::Done,
            Ending::Failed { .. } | Ending::LimitHit(_) => RunStatus::Failed,
            Ending::Cancelled => RunStatus::Cancelled,
        };
        let body = secrets.redact_to_json(outcome)?;
        let reply = secrets.redact(&output::reply(outcome));
        let (durable, subagent) = (run.durable(), run.spec().policy.subagent);
        let (told, label) = (subagent::is_told(outcome), run.label());
        // Only a run that did work, and read nothing from outside, can correct facts that were learned before.
        let worked = run.routing().is_some_and(|routing| routing.effort > Effort::Low) && label.is_ordinary();
        let worked = worked.then(|| secrets.redact(&format!("{}\n\n{reply}", run.spec().message)));
        let (id, session, context) = (self.id.clone(), self.session.clone(), context.clone());
        // Text that no model could check for secrets is not used for a title, which is stored in plain text.
        let title = title.filter(|_| self.sealed.is_none());
        let title = title.map(|(title, usage)| (clean_title(&title, secrets), usage));
        let finish = move |tx: &Tx<'_>| {
            let at = now_ms();
            tx.finish_run(&id, status, at, &body)?;
            let answer = tx.add_message(&session, MessageRole::Assistant, &reply, at, Some(&id))?;
            tx.set_label(LabelledRow::Message, answer, &label)?;
            match told {
                true => tx.inject_reply(&id, &reply, &label, at)?,
                false => tx.pass_over(&session, answer)?,
            }
            tx.finish_jobs(&id, answer)?;
            if let Some((title, usage)) = &title
                && !subagent
                && tx.set_title(&session, title, false)?
            {
                tx.add_usage(&session, None, usage)?;
            }
            if window_is_full || is_needed(tx, DueKind::Summary, &session, &context)? {
                tx.add_work(DueKind::Summary, &session, None, at)?;
            }
            // The work of a subagent is not a conversation: its session has a name, and nothing about people is learned from it.
            if subagent {
                return Ok(());
            }
            for kind in [DueKind::Title, DueKind::Facts] {
                if is_needed(tx, kind, &session, &context)? {
                    tx.add_work(kind, &session, None, at)?;
                }
            }
            if durable {
                tx.add_work(DueKind::Memory, &session, Some(&id), at)?;
            } else if let Some(said) = &worked
                && let Some(run) = tx.run(&id)?
                && !tx.facts_about(said, run.started_ms)?.is_empty()
            {
                tx.add_work(DueKind::Facts, &session, Some(&id), at)?;
            }
            Ok(())
        };
        self.commit_with(&AGAIN, finish).await
    }
}

/// Returns whether there is work to do. Recording, claiming and deleting useless work would cost three commits after nearly every
/// message.
fn is_needed(tx: &Tx<'_>, kind: DueKind, session: &SessionName, context: &Context) -> Result<bool, StoreError> {
    let bounded = |count: u64| u32::try_from(count).unwrap_or(u32::MAX);
    match kind {
        DueKind::Title => Ok(tx.title(session)?.is_none()),
        DueKind::Summary => {
            let most = bounded(context.summarize_threshold);
            Ok(tx.count_unsummarized(session, most.saturating_add(1))? > most)
        }
        DueKind::Facts => Ok(tx.may_consolidate_facts(bounded(context.knowledge_max_facts))?),
        DueKind::Memory => Ok(true),
    }
}

/// Shortens a fact to the maximum size of the store.
fn clip(fact: String) -> String {
    fact[..fact.floor_char_boundary(MAX_FACT_BYTES)].to_owned()
}
