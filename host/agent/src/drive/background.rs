//! Background work after the reply: titles, summaries, facts and memory. Nobody waits for it, and failed work is retried later.

use super::clean::{clean, clean_title};
use super::spent::Meter;
use super::window::chat;
use super::{DriveError, RunExecutor, boundary};
use crate::node::summarizer::TurnFacts;
use crate::node::{self, summarizer, titler};
use kiso_base::clock::now_ms;
use kiso_base::home::SessionName;
use kiso_base::role::Role;
use kiso_graph::run::{Run, RunSpec};
use kiso_graph::step::Call;
use kiso_llm::reflex;
use kiso_llm::{LlmError, Model, Priority, Request};
use kiso_plan::label::Label;
use kiso_plan::limits::Usage;
use kiso_plan::prompt::ChatMessage;
use kiso_plan::{cues, prompt};
use kiso_store::memory;
use kiso_store::scratchpad;
use kiso_store::secret::Secrets;
use kiso_store::secret::vault::is_sealed;
use kiso_store::store::{
    Due, DueKind, Fact, LabelledRow, Mark, Message, MessageRole, NewFact, StoreError, Summary, USER, UsageLine,
};

/// Maximum number of pieces of work per call; the rest follows with the next.
const BATCH: u32 = 16;

/// Milliseconds before failed work is retried, multiplied by the number of attempts.
const RETRY_MS: i64 = 60_000;

/// Milliseconds before work that a limit of its session or of the day did not allow is due again: the day may end, or the limit
/// may be raised.
const PUT_OFF_MS: i64 = 60 * 60_000;

/// Milliseconds for which work is claimed. This is longer than a call with its retries and fallbacks; after a crash, the work
/// waits that long.
const LEASE_MS: i64 = 15 * 60_000;

/// Number of messages at the end of a session that are not summarized, because the window shows them.
const KEPT: u32 = 10;

/// Maximum number of messages per call for a summary.
const MAX_MESSAGES: u32 = 60;

/// Maximum number of calls for one summary. Further messages wait for the next reply.
const MAX_CALLS: usize = 4;

/// Maximum number of archived sources that a summary lists, newest first. Each takes a few tokens of every prompt.
const MAX_SOURCES: usize = 12;

/// Number of older messages that one turn adds to the index.
const INDEXED: u32 = 500;

/// Maximum number of known facts that are shown with a turn that may correct them, by confidence.
const MAX_KNOWN: usize = 40;

/// Confidence in percent of a fact that the user stated, and of one that replaces another.
const STATED: u8 = 90;
const CORRECTED: u8 = 70;

/// Maximum size in tokens of the messages per call for a summary.
const MAX_TOKENS: usize = 8_000;

/// The messages of a run's turn, without secrets.
struct TurnOfRun {
    /// The user's message.
    message: String,
    reply: String,
    message_label: Label,
    reply_label: Label,
    /// Time of the message, in milliseconds since 1970.
    at_ms: i64,
}

impl TurnOfRun {
    fn label(&self) -> Label {
        self.message_label.clone().joined(&self.reply_label)
    }

    fn text(&self) -> String {
        format!("{}\n\n{}", self.message, self.reply)
    }
}

impl RunExecutor {
    /// Performs due background work, for `session` alone or for all. Returns the number of completed pieces. Each piece is
    /// claimed first, so that nobody else does it, too; a failed one is retried later.
    pub async fn background(&self, session: Option<&SessionName>) -> Result<usize, DriveError> {
        let mut done = 0;
        for _ in 0..BATCH {
            let Some(work) = self.claim(session).await? else { break };
            let (id, now) = (work.id, now_ms());
            match self.do_work(&work).await {
                Ok(()) => {
                    self.store.write(move |tx| tx.finish_work(id)).await?;
                    done += 1;
                }
                Err(DriveError::OverLimit(limit)) => {
                    tracing::debug!(kind = work.kind.as_str(), limit = limit.limit, "background work is put off");
                    self.store.write(move |tx| tx.put_off_work(id, now + PUT_OFF_MS)).await?;
                }
                Err(error) => {
                    let later = now + RETRY_MS * i64::from(work.attempts + 1);
                    let again = self.store.write(move |tx| tx.retry_work(id, later)).await?;
                    tracing::debug!(kind = work.kind.as_str(), again, %error, "background work failed");
                }
            }
        }
        // For a store from before messages were indexed, if no daemon does this in the background.
        if !self.store.is_attended() {
            self.store.write(|tx| tx.index_messages(INDEXED)).await?;
        }
        // Last, so that new passages are included.
        Ok(done + self.embed_passages().await?)
    }

    /// Claims the next piece of work, of this session or of any.
    async fn claim(&self, session: Option<&SessionName>) -> Result<Option<Due>, DriveError> {
        let (now, of) = (now_ms(), session.cloned());
        if !self.store.peek(move |view| view.is_work_due(now)).await? {
            return Ok(None);
        }
        Ok(self.store.write(move |tx| tx.claim_work(now, now + LEASE_MS, of.as_ref())).await?)
    }

    async fn do_work(&self, work: &Due) -> Result<(), DriveError> {
        match work.kind {
            DueKind::Title => self.title(work).await,
            DueKind::Summary => self.summarize(work).await,
            DueKind::Facts if work.run.is_some() => self.correct(work).await,
            DueKind::Facts => self.consolidate(work).await,
            DueKind::Memory => self.remember(work).await,
        }
    }

    async fn title(&self, work: &Due) -> Result<(), DriveError> {
        let session = work.session.clone();
        let read = self.store.read(move |view| Ok((view.title(&session)?, view.messages_after(&session, 0, 2)?)));
        let (title, mut exchange) = read.await?;
        // Messages that no model could check for secrets are not used for a title, which is stored in plain text.
        exchange.retain(|message| !is_sealed(&message.text));
        if title.is_some() || exchange.is_empty() {
            return Ok(());
        }
        let exchange = self.to_chat_messages(exchange).await?;
        let boundary = boundary();
        let request = titler::request(&self.system_prompt(Role::Titler)?, exchange, &boundary);
        let Some(title) = titler::read(&self.ask(work, request, &boundary).await?) else {
            return Ok(());
        };
        let (session, title) = (work.session.clone(), clean_title(&title, &Secrets::default()));
        self.store.write(move |tx| tx.set_title(&session, &title, false)).await?;
        Ok(())
    }

    /// Summarizes messages before they leave the window, and older messages when more than `summarize_threshold` have accumulated
    /// since the last summary.
    async fn summarize(&self, work: &Due) -> Result<(), DriveError> {
        let leaves = self.earlier(&work.session, None, false).await?.leaves;
        for _ in 0..MAX_CALLS {
            if !self.summarize_before(work, leaves).await? {
                break;
            }
        }
        Ok(())
    }

    /// Adds messages before the one with the id `leaves` to the summary, as many as one call can read. Returns false if none is
    /// left.
    async fn summarize_before(&self, work: &Due, leaves: i64) -> Result<bool, DriveError> {
        let threshold = u32::try_from(self.config.context.summarize_threshold).unwrap_or(u32::MAX);
        let session = work.session.clone();
        let read = self.store.read(move |view| {
            let waiting = view.count_unsummarized(&session, threshold.saturating_add(1))?;
            let before = match waiting > threshold {
                true => view.first_of_last(&session, KEPT.min(threshold / 2))?.max(leaves),
                false => leaves,
            };
            let messages = view.messages_to_summarize(&session, before, MAX_MESSAGES)?;
            Ok((view.branch_in_use(&session)?, view.segment_start(&session)?, view.summary(&session)?, messages))
        });
        // The summary is for this segment: a `/new` in the meantime starts another one, which is not affected.
        let (branch, segment, old, mut messages) = read.await?;
        if messages.is_empty() {
            return Ok(false);
        }
        let mut tokens = 0;
        let fit = messages.iter().take_while(|message| {
            tokens += kiso_plan::estimate::tokens(&message.text);
            tokens <= MAX_TOKENS
        });
        let fit = fit.count().max(1);
        messages.truncate(fit);
        let to = messages.last().map_or(0, |message| message.id);
        let mut label = self.label_of(messages.iter().map(|message| message.id).collect()).await?;
        if old.is_some() {
            let session = work.session.clone();
            label.join(&self.store.read(move |view| view.summary_label(&session)).await?);
        }
        // A summary may mention an unreadable message, because its existence is not secret.
        for message in messages.iter_mut().filter(|message| is_sealed(&message.text)) {
            message.text = "(a message that nobody could read)".to_owned();
        }
        let messages = self.to_chat_messages(messages).await?;
        let (old, mut sources) = old.map_or((None, Vec::new()), |old| (Some(old.text), old.sources));
        sources.extend(self.archive(work, &messages, to, &label).await?);
        sources.drain(..sources.len().saturating_sub(MAX_SOURCES));
        let boundary = boundary();
        let system = self.system_prompt(Role::Summarizer)?;
        let request = summarizer::messages(&system, old.clone(), messages, &boundary);
        let text = self.ask(work, request, &boundary).await?.trim().to_owned();
        if text.is_empty() {
            return Ok(false);
        }
        let (session, summary) = (work.session.clone(), Summary { text, to, sources });
        let write = self.store.write(move |tx| {
            // A new version of a turn has replaced the summarized messages in the meantime.
            let is_in_use = tx.branch_in_use(&session)? == branch;
            let set = is_in_use && tx.set_summary(&session, segment, &summary)?;
            if set {
                tx.set_summary_label(&session, &label)?;
                memory::keep_summary(tx, &session, old.as_deref(), &summary.text, &label, now_ms())?;
            }
            Ok(set)
        });
        Ok(write.await?)
    }

    /// Archives complete messages before a summary replaces them, and returns the key. The summary is made even if the scratchpad
    /// is full, because the session's log contains everything.
    async fn archive(
        &self,
        work: &Due,
        messages: &[ChatMessage],
        to: i64,
        label: &Label,
    ) -> Result<Option<String>, DriveError> {
        let secrets = self.with_session(&work.session, Secrets::default()).await?;
        let lines: Vec<_> = messages.iter().map(|message| format!("{}: {}", message.from, message.text)).collect();
        let text = secrets.redact(&lines.join("\n\n"));
        match scratchpad::put_history_away(&self.store, &work.session, to, text, label, now_ms()).await {
            Ok(key) => Ok(Some(key)),
            Err(error @ StoreError::Quota { .. }) => {
                tracing::debug!(%error, "the source of a summary was not archived");
                Ok(None)
            }
            Err(error) => Err(error.into()),
        }
    }

    /// Merges facts when more than `knowledge_max_facts` mergeable ones have accumulated.
    async fn consolidate(&self, work: &Due) -> Result<(), DriveError> {
        let max = u32::try_from(self.config.context.knowledge_max_facts).unwrap_or(u32::MAX);
        let facts = self.store.read(move |view| match view.may_consolidate_facts(max)? {
            true => view.trusted_facts(u32::MAX),
            false => Ok(Vec::new()),
        });
        let mut facts = facts.await?;
        if facts.is_empty() {
            return Ok(());
        }
        let at = now_ms();
        facts.sort_by_key(|fact| (fact.at_ms, fact.id));
        let mut tokens = 0;
        let fit = facts.iter().take_while(|fact| {
            tokens += kiso_plan::estimate::tokens(&fact.text);
            tokens <= MAX_TOKENS
        });
        let fit = fit.count();
        facts.truncate(fit);
        let boundary = boundary();
        let texts: Vec<_> = facts.iter().map(|fact| fact.text.clone()).collect();
        let request = summarizer::facts(&self.system_prompt(Role::Summarizer)?, texts, &boundary);
        let answer = self.ask(work, request, &boundary).await?;
        let fewer = summarizer::read_facts(&answer, facts.len()).unwrap_or_default();
        let confidence = facts.iter().map(|fact| fact.confidence).max().unwrap_or_default();
        let new =
            fewer.into_iter().map(|text| NewFact { text, source: "summarizer".to_owned(), session: None, confidence });
        let (new, old): (Vec<_>, Vec<_>) = (new.collect(), facts.iter().map(|fact| fact.id).collect());
        let write = self.store.write(move |tx| {
            // Also if nothing could be merged, because a retry would have the same result.
            tx.mark(Mark::Consolidated, at)?;
            if !new.is_empty() && !tx.replace_facts(&old, &new)? {
                tracing::debug!("facts were consolidated by somebody else meanwhile");
            }
            Ok(())
        });
        Ok(write.await?)
    }

    /// Remembers a turn with lasting information: as a passage, and statements of the user as facts.
    async fn remember(&self, work: &Due) -> Result<(), DriveError> {
        let Some(turn) = self.turn_of(work).await? else { return Ok(()) };
        memory::ingest_turn(&self.store, &work.session, &turn.message, &turn.reply, &turn.label(), turn.at_ms).await?;
        if !turn.message_label.is_trusted() {
            return Ok(());
        }
        let (said, at_ms) = (turn.text(), turn.at_ms);
        let read = self.store.read(move |view| {
            let mut known = view.trusted_facts(u32::MAX)?;
            known.retain(|fact| fact.source == USER);
            known.truncate(MAX_KNOWN);
            known.extend(view.facts_about(&said, at_ms)?);
            Ok(known)
        });
        let known = read.await?;
        self.learn_from(work, turn, known, true).await
    }

    /// Deletes facts that a run has made outdated.
    async fn correct(&self, work: &Due) -> Result<(), DriveError> {
        let Some(turn) = self.turn_of(work).await? else { return Ok(()) };
        let (said, at_ms) = (turn.text(), turn.at_ms);
        let known = self.store.read(move |view| view.facts_about(&said, at_ms)).await?;
        match known.is_empty() || !turn.label().is_ordinary() {
            true => Ok(()),
            false => self.learn_from(work, turn, known, false).await,
        }
    }

    /// Extracts the facts of a turn, and the `known` facts that it makes outdated. Without a `statement` of the user, a new fact
    /// is only accepted as a replacement for one of these.
    async fn learn_from(
        &self,
        work: &Due,
        turn: TurnOfRun,
        mut known: Vec<Fact>,
        statement: bool,
    ) -> Result<(), DriveError> {
        known.truncate(MAX_KNOWN);
        known.sort_by_key(|fact| (fact.at_ms, fact.id));
        let lines = known.iter().map(|fact| memory::with_day(&fact.text, fact.at_ms)).collect();
        let message = prompt::strip_outside_text(&turn.message);
        let mut said = vec![chat(MessageRole::User, message)];
        // Text that others may have influenced does not change facts that the owner has stated.
        if turn.reply_label.is_ordinary() && !turn.reply.is_empty() {
            said.push(chat(MessageRole::Assistant, &turn.reply));
        }
        let boundary = boundary();
        let request = summarizer::turn(&self.system_prompt(Role::Summarizer)?, said, lines, &boundary);
        let answer = self.ask(work, request, &boundary).await?;
        let learned = match summarizer::read_turn(&answer, known.len()) {
            Some(learned) => learned,
            None if statement => TurnFacts { facts: cues::facts_in(message).collect(), outdated: Vec::new() },
            None => TurnFacts::default(),
        };
        let facts = learned.facts.into_iter().filter(|_| statement || !learned.outdated.is_empty());
        let (source, confidence) = if statement { (USER, STATED) } else { ("summarizer", CORRECTED) };
        let (session, at_ms) = (Some(work.session.clone()), turn.at_ms);
        let new = facts.map(|text| NewFact { text, source: source.to_owned(), session: session.clone(), confidence });
        let (new, old): (Vec<_>, Vec<_>) =
            (new.collect(), learned.outdated.into_iter().map(|place| known[place].id).collect());
        let run = work.run.clone();
        let write = self.store.write(move |tx| {
            // Another version has replaced the turn while the model was answering.
            if let Some(run) = &run
                && tx.is_run_replaced(run)?
            {
                return Ok(());
            }
            for id in &old {
                tx.delete_fact(*id)?;
            }
            new.iter().try_for_each(|fact| tx.add_fact(fact, at_ms).map(drop))
        });
        Ok(write.await?)
    }

    /// Returns the messages of the turn that this work concerns; `None` if they cannot be read.
    async fn turn_of(&self, work: &Due) -> Result<Option<TurnOfRun>, DriveError> {
        let Some(run) = work.run.clone() else { return Ok(None) };
        // Nothing is learned from a turn that another version has replaced in the meantime.
        let turn = self.store.peek(move |view| match view.is_run_replaced(&run)? {
            true => Ok(Vec::new()),
            false => view.messages_of_run(&run),
        });
        let turn = turn.await?;
        let said = |role| move |message: &&Message| message.role == role && !is_sealed(&message.text);
        let messages: Vec<_> = turn.iter().filter(said(MessageRole::User)).collect();
        let reply = turn.iter().rfind(said(MessageRole::Assistant));
        let Some(first) = messages.first() else { return Ok(None) };
        let message_label = self.label_of(messages.iter().map(|message| message.id).collect()).await?;
        let reply_label = self.label_of(reply.iter().map(|reply| reply.id).collect()).await?;
        let secrets = self.with_session(&work.session, Secrets::default()).await?;
        let texts: Vec<_> = messages.iter().map(|message| message.text.as_str()).collect();
        Ok(Some(TurnOfRun {
            message: secrets.redact(&texts.join("\n\n")),
            reply: secrets.redact(reply.map_or("", |reply| &reply.text)),
            message_label,
            reply_label,
            at_ms: first.at_ms,
        }))
    }

    /// Returns the joined label of these messages.
    async fn label_of(&self, messages: Vec<i64>) -> Result<Label, StoreError> {
        let read = self.store.read(move |view| {
            let mut label = Label::session();
            if view.has_labels()? {
                for id in messages {
                    label.join(&view.label(LabelledRow::Message, id)?);
                }
            }
            Ok(label)
        });
        read.await
    }

    /// Returns the title that the built-in rules give a session after its first run, and its usage; both are stored with the
    /// reply. `None` if a paid model is asked for the title later.
    pub(super) async fn first_title(
        &self,
        session: &SessionName,
        run: &Run,
        reply: &str,
    ) -> Result<Option<(String, UsageLine)>, DriveError> {
        let RunSpec { message, joined, policy, .. } = run.spec();
        // Only if the configured titler is built in, because a session's own model does not make titles. With several messages,
        // only the store knows which was the first.
        if !self.models.are_free()
            || self.config.model_of(Role::Titler.name()) != reflex::NAME
            || policy.subagent
            || !joined.is_empty()
            || message.contains("\n\n")
        {
            return Ok(None);
        }
        let exchange = vec![chat(MessageRole::User, message), chat(MessageRole::Assistant, reply)];
        let boundary = boundary();
        let request = titler::request(&self.system_prompt(Role::Titler)?, exchange, &boundary);
        let (answer, mut lines) = match self.answer(session, request, &boundary).await {
            // The work waits until the limit allows it.
            Err(DriveError::OverLimit(_)) => return Ok(None),
            answered => answered?,
        };
        Ok(answer.ok().and_then(|text| titler::read(&text)).zip(lines.pop()))
    }

    /// Calls a model for background work, accounted to its session and within its limits.
    async fn ask(&self, work: &Due, request: Request, boundary: &str) -> Result<String, DriveError> {
        let (answer, lines) = self.answer(&work.session, request, boundary).await?;
        let (session, run) = (work.session.clone(), work.run.clone());
        let write =
            self.store.write(move |tx| lines.iter().try_for_each(|line| tx.add_usage(&session, run.as_ref(), line)));
        write.await?;
        answer.map_err(|error| DriveError::Background(error.to_string()))
    }

    /// Returns the model's answer, and its usage records. Secrets that became known only later are in plain text in the messages,
    /// and are redacted here.
    async fn answer(
        &self,
        session: &SessionName,
        request: Request,
        boundary: &str,
    ) -> Result<(Result<String, LlmError>, Vec<UsageLine>), DriveError> {
        if let Some(limit) = self.over_limit(session, Usage::default()).await? {
            return Err(DriveError::OverLimit(limit));
        }
        let settings = self.models.settings(request.role);
        let max_tokens = settings.answer(request.role, request.max_tokens);
        let request = Request { priority: Priority::Background, max_tokens, ..request };
        let secrets = self.with_session(session, Secrets::default()).await?;
        let request = clean(&secrets, request, boundary)?;
        let request = node::fit(request, boundary, settings.context_budget);
        let meter = Meter::default();
        let answer = meter.wrap(self.models.for_role(request.role)).complete(&request, &mut |_: &str| {}).await;
        let answered = answer.as_ref().ok().map(|answer| Call { model: answer.model.clone(), usage: answer.usage });
        let line =
            |Call { model, usage }| UsageLine { at_ms: now_ms(), role: request.role.name().to_owned(), model, usage };
        let lines = answered.into_iter().chain(meter.take()).map(line).collect();
        Ok((answer.map(|completion| secrets.redact(&completion.text)), lines))
    }
}
