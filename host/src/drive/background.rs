//! What is done after the reply: titles, summaries, facts and memory. Nobody waits for it,
//! and what fails is tried again later.

use super::clean::clean;
use super::spent::Meter;
use super::window::chat;
use super::{DriveError, RunExecutor, boundary};
use crate::clock::now_ms;
use crate::graph::label::Label;
use crate::graph::limits::Usage;
use crate::graph::run::{Run, RunSpec};
use crate::graph::step::Call;
use crate::home::SessionName;
use crate::llm::prompt::ChatMessage;
use crate::llm::reflex;
use crate::llm::{LlmError, Model, Priority, Request, Role};
use crate::memory;
use crate::node::{self, summarizer, titler};
use crate::scratchpad;
use crate::secret::Secrets;
use crate::secret::vault::is_sealed;
use crate::store::{Due, DueKind, LabelledRow, Message, MessageRole, NewFact, StoreError, Summary, UsageLine};

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

/// Messages that one summary takes in.
const MAX_MESSAGES: u32 = 60;

/// Archived sources that a summary names: the last ones. Each takes a few tokens of every prompt.
const MAX_SOURCES: usize = 12;

/// Older messages that one turn takes into the index.
const INDEXED: u32 = 500;

/// Tokens of messages that one summary takes in; the rest waits for the next.
const MAX_TOKENS: usize = 8_000;

impl RunExecutor {
    /// Does background work that is due, that of `session` first. Returns how many pieces were done. Each piece is taken
    /// before it is done, so that nobody else does it, too; one that could not be done is tried again later.
    pub async fn background(&self, session: Option<&SessionName>) -> Result<usize, DriveError> {
        let (mut own, mut done) = (session.cloned(), 0);
        for _ in 0..BATCH {
            let Some(work) = self.claim(&mut own).await? else { break };
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

    /// Takes the next piece: of the session in `own` while it has any, then of all.
    async fn claim(&self, own: &mut Option<SessionName>) -> Result<Option<Due>, DriveError> {
        let (now, of) = (now_ms(), own.clone());
        if !self.store.peek(move |view| view.is_work_due(now)).await? {
            return Ok(None);
        }
        let claimed = self.store.write(move |tx| tx.claim_work(now, now + LEASE_MS, of.as_ref())).await?;
        if claimed.is_some() || own.take().is_none() {
            return Ok(claimed);
        }
        Ok(self.store.write(move |tx| tx.claim_work(now, now + LEASE_MS, None)).await?)
    }

    async fn do_work(&self, work: &Due) -> Result<(), DriveError> {
        match work.kind {
            DueKind::Title => self.title(work).await,
            DueKind::Summary => self.summarize(work).await,
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
        let session = work.session.clone();
        self.store.write(move |tx| tx.set_title(&session, &title, false)).await?;
        Ok(())
    }

    /// After the messages since the last summary have become more than `summarize_threshold`.
    async fn summarize(&self, work: &Due) -> Result<(), DriveError> {
        let threshold = u32::try_from(self.config.context.summarize_threshold).unwrap_or(u32::MAX);
        let session = work.session.clone();
        let read = self.store.read(move |view| {
            let waiting = view.count_unsummarized(&session, threshold.saturating_add(1))?;
            let messages = view.messages_to_summarize(&session, KEPT.min(threshold / 2), MAX_MESSAGES)?;
            Ok((waiting, view.segment_start(&session)?, view.summary(&session)?, messages))
        });
        // The segment that this is about: a `/new` that comes meanwhile begins another one, which it does not touch.
        let (waiting, segment, old, mut messages) = read.await?;
        if waiting <= threshold || messages.is_empty() {
            return Ok(());
        }
        let mut tokens = 0;
        let fit = messages.iter().take_while(|message| {
            tokens += crate::context::tokens(&message.text);
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
        if !text.is_empty() {
            let (session, summary) = (work.session.clone(), Summary { text, to, sources });
            let write = self.store.write(move |tx| match tx.set_summary(&session, segment, &summary)? {
                true => {
                    tx.set_summary_label(&session, &label)?;
                    memory::keep_summary(tx, &session, old.as_deref(), &summary.text, &label, now_ms())
                }
                false => Ok(()),
            });
            write.await?;
        }
        Ok(())
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

    /// After the facts have become more than `knowledge_max_facts`.
    async fn consolidate(&self, work: &Due) -> Result<(), DriveError> {
        let max = u32::try_from(self.config.context.knowledge_max_facts).unwrap_or(u32::MAX);
        let facts = self.store.read(move |view| match view.count_facts(max.saturating_add(1))? > max {
            true => view.trusted_facts(u32::MAX),
            false => Ok(Vec::new()),
        });
        let mut facts = facts.await?;
        if facts.is_empty() {
            return Ok(());
        }
        facts.sort_by_key(|fact| fact.id);
        let mut tokens = 0;
        let fit = facts.iter().take_while(|fact| {
            tokens += crate::context::tokens(&fact.text);
            tokens <= MAX_TOKENS
        });
        let fit = fit.count();
        facts.truncate(fit);
        let boundary = boundary();
        let texts: Vec<_> = facts.iter().map(|fact| fact.text.clone()).collect();
        let request = summarizer::facts(&self.system_prompt(Role::Summarizer)?, texts, &boundary);
        let answer = self.ask(work, request, &boundary).await?;
        let Some(fewer) = summarizer::read_facts(&answer, facts.len()) else {
            return Ok(());
        };
        let confidence = facts.iter().map(|fact| fact.confidence).max().unwrap_or_default();
        let new =
            fewer.into_iter().map(|text| NewFact { text, source: "summarizer".to_owned(), session: None, confidence });
        let (new, old): (Vec<_>, Vec<_>) = (new.collect(), facts.iter().map(|fact| fact.id).collect());
        if !self.store.write(move |tx| tx.replace_facts(&old, &new, now_ms())).await? {
            tracing::debug!("facts were consolidated by somebody else meanwhile");
        }
        Ok(())
    }

    async fn remember(&self, work: &Due) -> Result<(), DriveError> {
        let Some(run) = work.run.clone() else { return Ok(()) };
        let read = self.store.peek(move |view| view.messages_of_run(&run));
        let turn = read.await?;
        let said = |role| move |message: &&Message| message.role == role && !is_sealed(&message.text);
        let messages: Vec<_> = turn.iter().filter(said(MessageRole::User)).map(|m| m.text.as_str()).collect();
        let reply = turn.iter().rfind(said(MessageRole::Assistant)).map_or("", |reply| reply.text.as_str());
        let ids: Vec<_> = turn.iter().map(|message| message.id).collect();
        let label = self.label_of(ids).await?;
        let secrets = self.with_session(&work.session, Secrets::default()).await?;
        let (message, reply) = (secrets.redact(&messages.join("\n\n")), secrets.redact(reply));
        memory::ingest_turn(&self.store, &work.session, &message, &reply, &label, now_ms()).await?;
        Ok(())
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
