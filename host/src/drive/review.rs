//! The review of a task, performed: the reviewer is asked, with the whole transcript of an action as far as its context has
//! room.

use super::DriveError;
use super::run_context::RunContext;
use crate::graph::label::Label;
use crate::graph::run::Run;
use crate::graph::step::{ReviewAsk, StepResult};
use crate::graph::verdict::Verdict;
use crate::llm::{Request, Role};
use crate::node::{self, reviewer};
use crate::scratchpad;

impl RunContext<'_> {
    pub(super) async fn review(&mut self, run: &Run, ask: &ReviewAsk) -> Result<StepResult, DriveError> {
        let system = self.drive.system_prompt(Role::Reviewer)?;
        let mut request = reviewer::request(&system, run, ask, &self.boundary);
        if !ask.transcript.is_empty() && !self.fits(&request) {
            // A scratchpad that is full must not end the run.
            let mark = match self.put_transcript_away(ask, &run.label()).await {
                Ok(key) => scratchpad::mark(&key),
                Err(error) => format!("[{error}]"),
            };
            let transcript = ask.transcript.iter().cloned().chain([mark]).collect();
            request = reviewer::request(&system, run, &ReviewAsk { transcript, ..ask.clone() }, &self.boundary);
        }
        Ok(match self.complete(run, request, &mut |_: &str| {}).await? {
            Ok(completion) => {
                let reviewed = reviewer::read(&completion, &self.drive.tools, &run.spec().limits);
                self.answered(reviewer::again(&reviewed));
                reviewed
            }
            Err(none) => none.result(),
        })
    }

    /// Whether a prompt stands whole in the context of its model.
    fn fits(&self, request: &Request) -> bool {
        let settings = self.drive.models.settings(request.role);
        let max_tokens = settings.answer(request.max_tokens);
        node::fits(&Request { max_tokens, ..request.clone() }, settings.context_budget)
    }

    /// Archives what the reviewer's context has no room for, once for each task, and returns the key.
    async fn put_transcript_away(&mut self, ask: &ReviewAsk, label: &Label) -> Result<String, DriveError> {
        if let Some((task, key)) = &self.transcript
            && *task == ask.task
        {
            return Ok(key.clone());
        }
        let key = self.put_away("context", ask.transcript.join("\n\n"), label).await?;
        self.transcript = Some((ask.task, key.clone()));
        Ok(key)
    }

    /// What a reviewer learned counts at once, for the plan that may follow.
    pub(super) fn learn(&mut self, reviewed: &StepResult) {
        if let StepResult::Reviewed { verdict: Verdict { learn: Some(fact), .. }, .. } = reviewed {
            let facts = &mut self.earlier.facts;
            if facts.iter().all(|known| !known.eq_ignore_ascii_case(fact)) {
                facts.insert(0, fact.clone());
            }
        }
    }
}
