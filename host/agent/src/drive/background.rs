//! What is done after the reply: titles, summaries, facts and memory. Nobody waits for it,
//! and what fails is tried again later.

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

/// Pieces of work that one call takes up; what is left is done by the next.
const BATCH: u32 = 16;

/// Milliseconds until a piece of work that failed is tried again, for each attempt so far.
const RETRY_MS: i64 = 60_000;

/// Milliseconds until work is due again that a limit of its session or of the day did not allow. The day may end, and the
/// limit may be raised.
const PUT_OFF_MS: i64 = 60 * 60_000;

/// Milliseconds for which a piece of work is taken. Longer than a call takes, its attempts and fallbacks included; after a crash
/// the piece waits that long.
const LEASE_MS: i64 = 15 * 60_000;

/// Messages at the end of a session that stay out of its summary: the window shows them.
const KEPT: u32 = 10;

/// Messages that one call takes into a summary.
const MAX_MESSAGES: u32 = 60;

/// Calls for one summary. More messages than these take in wait for the next reply.
const MAX_CALLS: usize = 4;

/// Archived sources that a summary names: the last ones. Each takes a few tokens of every prompt.
const MAX_SOURCES: usize = 12;

/// Older messages that one turn takes into the index.
const INDEXED: u32 = 500;

/// Known facts that are shown with a turn that may correct them, the surest first.
const MAX_KNOWN: usize = 40;

/// Confidence of a fact that the user stated, and of one that takes the place of another, in per cent.
const STATED: u8 = 90;
const CORRECTED: u8 = 70;

/// Tokens of messages that one call takes into a summary.
const MAX_TOKENS: usize = 8_000;

/// What was said in a run, without secrets.
struct TurnOfRun {
    /// What the user wrote.
    message: String,
    reply: String,
    message_label: Label,
    reply_label: Label,
    /// When the user wrote it, in milliseconds since 1970.
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
    /// Does background work that is due, of `session` alone or of all. Returns how many pieces were done. Each piece is taken
    /// before it is done, so that nobody else does it, too; one that could not be done is tried again later.
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
        // A store from before messages were indexed, where no daemon does it in the background.
        if !self.store.is_attended() {
            self.store.write(|tx| tx.index_messages(INDEXED)).await?;
        }
        // Behind the rest: what was just remembered is among it.
        Ok(done + self.embed_passages().await?)
    }

    /// Takes the next piece, of this session or of any.
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
        // What no model could look at for secrets does not become a title, which stands in clear.
        exchange.retain(|message| !is_sealed(&message.text));
        if title.is_some() || exchange.is_empty() {
            return Ok(());
        }
        let exchange = self.said(exchange).await?;
        let boundary = boundary();
        let request = titler::request(&self.system_prompt(Role::Titler)?, exchange, &boundary);
        let Some(title) = titler::read(&self.ask(work, request, &boundary).await?) else {
            return Ok(());
        };
        let (session, title) = (work.session.clone(), clean_title(&title, &Secrets::default()));
        self.store.write(move |tx| tx.set_title(&session, &title, false)).await?;
        Ok(())
    }

    /// Summarizes what leaves the window, so that it is in the summary when it has left, and the older messages when those
    /// since the last summary have become more than `summarize_threshold`.
    async fn summarize(&self, work: &Due) -> Result<(), DriveError> {
        let leaves = self.earlier(&work.session, None, false).await?.leaves;
        for _ in 0..MAX_CALLS {
            if !self.summarize_before(work, leaves).await? {
                break;
            }
        }
        Ok(())
    }

    /// Takes messages before the one with the id `leaves` into the summary, as many as one call can read. False if none is left.
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
        // The segment that this is about: a `/new` that comes meanwhile begins another one, which it does not touch.
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
        // As for a title; that something was said is not a secret.
        for message in messages.iter_mut().filter(|message| is_sealed(&message.text)) {
            message.text = "(a message that nobody could read)".to_owned();
        }
        let messages = self.said(messages).await?;
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
            // A version of a turn that came meanwhile has replaced what it holds.
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

    /// Puts messages away whole before a summary takes their place, and returns the key. A
    /// scratchpad that is full is not a reason to do without the summary: the session's log has everything.
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

    /// After the facts that can be merged have become more than `knowledge_max_facts`.
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
            // Also where nothing could be merged: it would not be the next time.
            tx.mark(Mark::Consolidated, at)?;
            if !new.is_empty() && !tx.replace_facts(&old, &new)? {
                tracing::debug!("facts were consolidated by somebody else meanwhile");
            }
            Ok(())
        });
        Ok(write.await?)
    }

    /// Remembers a turn that says something lasting: as a passage, and, what the user stated, as facts.
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

    /// Drops facts that a run has made untrue.
    async fn correct(&self, work: &Due) -> Result<(), DriveError> {
        let Some(turn) = self.turn_of(work).await? else { return Ok(()) };
        let (said, at_ms) = (turn.text(), turn.at_ms);
        let known = self.store.read(move |view| view.facts_about(&said, at_ms)).await?;
        match known.is_empty() || !turn.label().is_ordinary() {
            true => Ok(()),
            false => self.learn_from(work, turn, known, false).await,
        }
    }

    /// Asks for the facts of a turn, and which of the `known` ones it makes outdated. Of a turn without a `statement` of the user, a
    /// new fact counts only in the place of one of these.
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
        let message = prompt::said(&turn.message);
        let mut said = vec![chat(MessageRole::User, message)];
        // What somebody else may have had a hand in does not change what the owner is known to have said.
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
            // Another version has replaced the turn while the model was asked.
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

    /// What was said in the run whose turn this work is about; `None` if nobody can read it.
    async fn turn_of(&self, work: &Due) -> Result<Option<TurnOfRun>, DriveError> {
        let Some(run) = work.run.clone() else { return Ok(None) };
        // Nothing is learned from a turn that another version has replaced meanwhile.
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

    /// The label of these messages together.
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

    /// The name that the built-in rules give a session after its first run, and what that is put down as: it goes with the
    /// reply. `None` where a model that is paid is asked for it later.
    pub(super) async fn first_title(
        &self,
        session: &SessionName,
        run: &Run,
        reply: &str,
    ) -> Result<Option<(String, UsageLine)>, DriveError> {
        let RunSpec { message, joined, policy, .. } = run.spec();
        // A session may have a model of its own; its name is the configured titler's to give, as it is behind the reply. Of several
        // messages, only the store knows which one was the first.
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
            // It waits until the limit allows it.
            Err(DriveError::OverLimit(_)) => return Ok(None),
            answered => answered?,
        };
        Ok(answer.ok().and_then(|text| titler::read(&text)).zip(lines.pop()))
    }

    /// A call that nobody waits for, accounted to its session and within its caps.
    async fn ask(&self, work: &Due, request: Request, boundary: &str) -> Result<String, DriveError> {
        let (answer, lines) = self.answer(&work.session, request, boundary).await?;
        let (session, run) = (work.session.clone(), work.run.clone());
        let write =
            self.store.write(move |tx| lines.iter().try_for_each(|line| tx.add_usage(&session, run.as_ref(), line)));
        write.await?;
        answer.map_err(|error| DriveError::Background(error.to_string()))
    }

    /// What the model says, and what is to be put down for it. What was said before it was known to be a secret stands in
    /// clear in the messages, and goes no further.
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
        let answer = meter.of(self.models.of(request.role)).complete(&request, &mut |_: &str| {}).await;
        let answered = answer.as_ref().ok().map(|answer| Call { model: answer.model.clone(), usage: answer.usage });
        let line =
            |Call { model, usage }| UsageLine { at_ms: now_ms(), role: request.role.name().to_owned(), model, usage };
        let lines = answered.into_iter().chain(meter.take()).map(line).collect();
        Ok((answer.map(|completion| secrets.redact(&completion.text)), lines))
    }
}
