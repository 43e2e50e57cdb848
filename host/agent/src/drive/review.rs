//! Reviewing a task: the reviewer gets the transcript of an action, as much of it as its context allows.

use super::DriveError;
use super::run_context::RunContext;
use super::window::KnownFact;
use crate::context;
use crate::node::reviewer::Reviewing;
use crate::node::{self, retrieval, reviewer};
use crate::tool::files;
use kiso_base::clock::now_ms;
use kiso_base::compute;
use kiso_base::role::Role;
use kiso_graph::lane::TranscriptTurn;
use kiso_graph::run::Run;
use kiso_graph::step::{ReviewAsk, StepResult};
use kiso_llm::Request;
use kiso_plan::label::Label;
use kiso_plan::prompt::{Piece, TABLE};
use kiso_plan::verdict::Verdict;
use kiso_sandbox::effect::files::FileLabels;
use kiso_store::memory::with_day;
use kiso_store::scratchpad;

/// Maximum number of files that a reviewer can read before it decides about a task.
const MAX_LOOKS: usize = 1;

impl RunContext<'_> {
    pub(super) async fn review(&mut self, run: &Run, ask: &ReviewAsk) -> Result<StepResult, DriveError> {
        let system = self.drive.system_prompt(Role::Reviewer)?;
        let mut ask = ReviewAsk { transcript: self.whole_transcript(&ask.transcript).await?, ..ask.clone() };
        let listed = retrieval::environment(self.files(run).await?);
        let mut request = reviewer::request(&system, run, &ask, &listed, None, &self.boundary);
        if !ask.transcript.is_empty() && !self.fits(&request) {
            // A full scratchpad must not end the run.
            let mark = match self.put_transcript_away(&ask, &run.label()).await {
                Ok(key) => scratchpad::mark(&key),
                Err(error) => format!("[{error}]"),
            };
            ask.transcript.push(TranscriptTurn { text: mark, archived: None });
            request = reviewer::request(&system, run, &ask, &listed, None, &self.boundary);
        }
        let (mut looks, mut usage) = (0, Default::default());
        loop {
            let completion = match self.complete(run, request, &mut |_: &str| {}).await? {
                Ok(completion) => completion,
                Err(none) => return Ok(none.result()),
            };
            match reviewer::read(&completion, &self.drive.tools, &run.spec().limits, looks < MAX_LOOKS) {
                Reviewing::Look { path, answer, call } => {
                    looks += 1;
                    usage += call.usage;
                    self.answered(Some(answer));
                    let content = self.look(&path).await;
                    request = reviewer::request(&system, run, &ask, &listed, Some(content), &self.boundary);
                }
                Reviewing::Decided(mut reviewed) => {
                    self.answered(reviewer::again(&reviewed));
                    if let StepResult::Reviewed { read, call, .. } | StepResult::Unreviewed { read, call, .. } =
                        &mut *reviewed
                    {
                        read.join(&self.looked_at);
                        call.usage += usage;
                    }
                    return Ok(*reviewed);
                }
            }
        }
    }

    /// Returns a file of the workspace for the reviewer. Its label is kept, because the conversation with the reviewer continues
    /// for the whole run.
    async fn look(&mut self, path: &str) -> String {
        let cap = TABLE.iter().find(|row| row.piece == Piece::LookedAt).map_or(0, |row| row.cap);
        let (home, session, name) = (self.drive.home.clone(), self.session.clone(), path.to_owned());
        let read = compute::run("reading a file for the reviewer", move || {
            let work = home.open_work(&session).ok()?;
            let label = files::label(&work, &name, &FileLabels::of_session(&home, &session));
            Some((files::read(&work, &name), label))
        });
        let (found, label) = match read.await {
            Ok(Some((found, label))) => (found, label),
            Ok(None) => (Err("the workspace cannot be opened".to_owned()), Label::default()),
            Err(overdue) => (Err(overdue.to_string()), Label::default()),
        };
        self.looked_at.join(&label);
        match found {
            Ok(text) => format!("{path}:\n{}", context::fit_text(&self.secrets.redact(&text), cap)),
            Err(why) => format!("{path}: {why}"),
        }
    }

    /// Returns the transcript with the original turns in place of their summaries.
    async fn whole_transcript(&self, transcript: &[TranscriptTurn]) -> Result<Vec<TranscriptTurn>, DriveError> {
        let mut whole = Vec::with_capacity(transcript.len());
        for turn in transcript {
            let source = match &turn.archived {
                Some(key) => {
                    let (session, key) = (self.session.clone(), key.clone());
                    self.drive.store.read(move |view| view.scratchpad_get(&session, &key)).await?
                }
                None => None,
            };
            whole.push(source.map_or_else(|| turn.clone(), |text| TranscriptTurn { text, archived: None }));
        }
        Ok(whole)
    }

    /// Returns whether a prompt fits completely into the context of its model.
    fn fits(&self, request: &Request) -> bool {
        let settings = self.drive.models.settings(request.role);
        let max_tokens = settings.answer(request.role, request.max_tokens);
        node::fits(&Request { max_tokens, ..request.clone() }, settings.context_budget)
    }

    /// Archives the transcript that does not fit into the reviewer's context, once per task, and returns the key.
    async fn put_transcript_away(&mut self, ask: &ReviewAsk, label: &Label) -> Result<String, DriveError> {
        if let Some((task, key)) = &self.transcript
            && *task == ask.task
        {
            return Ok(key.clone());
        }
        let texts: Vec<&str> = ask.transcript.iter().map(|turn| turn.text.as_str()).collect();
        let key = self.put_away("context", texts.join("\n\n"), label).await?;
        self.transcript = Some((ask.task, key.clone()));
        Ok(key)
    }

    /// A fact that a reviewer learned applies at once, for the plan that may follow.
    pub(super) fn learn(&mut self, reviewed: &StepResult) {
        if let StepResult::Reviewed { verdict: Verdict { learn: Some(fact), .. }, .. } = reviewed {
            let facts = &mut self.earlier.facts;
            let line = with_day(fact, now_ms());
            let says_so = |known: &KnownFact| known.text().eq_ignore_ascii_case(fact);
            if !facts.iter().any(says_so) {
                facts.insert(0, KnownFact { line, is_stated: false });
            }
        }
    }
}
