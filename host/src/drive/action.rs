//! The action loop, performed: the actor, its tools, the output guard and compression (seed 003, phase 4).

use super::perform::AtWork;
use super::voice::{Listener, Voice};
use super::{DriveError, boundary};
use crate::graph::lane::ToolCall;
use crate::graph::reflection::Status;
use crate::graph::run::Run;
use crate::graph::step::{ActAsk, Call, CompressAsk, StepResult, ToolResult};
use crate::graph::{estimate, summary};
use crate::llm::Role;
use crate::llm::prompt::ChatMessage;
use crate::node::{actor, summarizer};
use crate::scratchpad;
use crate::skill::Caller;

/// Tokens of text that one call of the summarizer is given; a longer text is summarized in parts first.
const CHUNK_TOKENS: usize = 6_000;

/// Parts of one compression. A lane of more than this was never in a context.
const MAX_CHUNKS: usize = 16;

impl AtWork<'_> {
    pub(super) async fn act(
        &self,
        run: &Run,
        ask: &ActAsk,
        listener: &mut dyn Listener,
    ) -> Result<StepResult, DriveError> {
        let boundary = boundary();
        let system = self.drive.system_prompt(Role::Actor)?;
        let request =
            actor::request(&system, &self.known(run), ask, self.drive.tools.specs(&ask.categories), &boundary);
        let completion = if ask.direct {
            let mut voice = Voice::new(Role::Actor, &self.secrets, listener);
            let completion = self.complete_by(run, request, actor::model_role(ask), &boundary, &mut voice).await?;
            voice.finish();
            completion
        } else {
            self.complete_by(run, request, actor::model_role(ask), &boundary, &mut |_: &str| {}).await?
        };
        Ok(match completion {
            Ok(completion) => match actor::read(completion) {
                // Redacted here and not only in the log: what is replayed must be what was done.
                StepResult::Acted { text, mut calls, call } => {
                    for wanted in &mut calls {
                        wanted.args = self.secrets.redact_json_text(&wanted.args);
                    }
                    StepResult::Acted { text: self.secrets.redact(&text), calls, call }
                }
                other => other,
            },
            Err(none) => none.result(),
        })
    }

    pub(super) async fn assess(&self, run: &Run, ask: &ActAsk) -> Result<StepResult, DriveError> {
        let boundary = boundary();
        let system = self.drive.system_prompt(Role::Actor)?;
        let request = actor::assessment(&system, &self.known(run), ask, &boundary);
        Ok(match self.complete_by(run, request, actor::model_role(ask), &boundary, &mut |_: &str| {}).await? {
            Ok(completion) => {
                let call = Call { model: completion.model, usage: completion.usage };
                StepResult::Assessed { text: self.secrets.redact(&completion.text), call }
            }
            Err(none) => none.result(),
        })
    }

    /// Runs the calls of one answer, at once where they do not share a workspace that one of them writes to.
    pub(super) async fn call_tools(&self, run: &Run, calls: &[ToolCall]) -> Result<StepResult, DriveError> {
        let categories = run.routing().map(|routing| routing.categories.clone()).unwrap_or_default();
        let allowed = self.drive.tools.specs(&categories);
        let at = self.at();
        let caller = || Caller { session: &self.session, locale: "en", secrets: &self.secrets };
        let running = calls.iter().map(|call| self.drive.tools.call_tool(call, &allowed, self.caller, caller(), &at));
        let mut results = futures_util::future::join_all(running).await;
        for result in &mut results {
            self.guard(result).await?;
        }
        Ok(StepResult::Called { results })
    }

    /// The output guard: a result that is too large is put away, and its preview takes its place.
    async fn guard(&self, result: &mut ToolResult) -> Result<(), DriveError> {
        result.text = self.secrets.redact(&result.text);
        result.hint = result.hint.as_deref().map(|hint| self.secrets.redact(hint));
        let limit = usize::try_from(self.drive.config.limits.tool_output_limit_tokens).unwrap_or(usize::MAX);
        if scratchpad::is_too_large(&result.text, limit) {
            match self.put_away("tool", result.text.clone()).await {
                Ok(key) => {
                    result.text = scratchpad::preview(&result.text, &key, limit);
                    result.archived = Some(key);
                }
                // A scratchpad that is full must not end the run: what fits is still worth something.
                Err(error) => {
                    result.text = format!("{}\n[{error}]", scratchpad::sandwich(&result.text, limit));
                    result.status = if result.status == Status::Ok { Status::Partial } else { result.status };
                }
            }
        }
        Ok(())
    }

    /// Archives the source, then summarizes it: in parts, then the parts as one (map and reduce).
    pub(super) async fn compress(&self, run: &Run, ask: &CompressAsk) -> Result<StepResult, DriveError> {
        let reference = self.put_away("context", ask.source.join("\n\n")).await?;
        let mut calls = Vec::new();
        let source = ask.source.iter().map(String::as_str);
        let chunks = summary::chunks(source, CHUNK_TOKENS, &estimate::tokens);
        let mut parts = Vec::new();
        for chunk in chunks.into_iter().take(MAX_CHUNKS) {
            match self.summarize(run, chunk, ask.tokens, &mut calls).await? {
                Some(part) => parts.push(part),
                None => return Ok(self.shortened(ask, reference, calls)),
            }
        }
        let whole = match parts.len() {
            1 => parts.pop(),
            _ => match summary::join(&parts) {
                Some(joined) if estimate::tokens(&joined) > ask.tokens => {
                    self.summarize(run, joined, ask.tokens, &mut calls).await?
                }
                joined => joined,
            },
        };
        Ok(match whole {
            Some(text) => {
                let summary = scratchpad::sandwich(&text, ask.tokens);
                StepResult::Compressed { reference, summary, calls }
            }
            None => self.shortened(ask, reference, calls),
        })
    }

    /// Without a summarizer, head and tail stand for the whole; the archive has the rest.
    fn shortened(&self, ask: &CompressAsk, reference: String, calls: Vec<Call>) -> StepResult {
        let summary = scratchpad::sandwich(&ask.source.join("\n\n"), ask.tokens);
        StepResult::Compressed { reference, summary, calls }
    }

    async fn summarize(
        &self,
        run: &Run,
        text: String,
        tokens: usize,
        calls: &mut Vec<Call>,
    ) -> Result<Option<String>, DriveError> {
        let boundary = boundary();
        let system = self.drive.system_prompt(Role::Summarizer)?;
        let message = ChatMessage { from: "transcript".to_owned(), text };
        let mut request = summarizer::messages(&system, None, vec![message], &boundary);
        request.max_tokens = request.max_tokens.min(u32::try_from(tokens).unwrap_or(u32::MAX));
        match self.complete(run, request, &boundary, &mut |_: &str| {}).await? {
            Ok(completion) => {
                calls.push(Call { model: completion.model, usage: completion.usage });
                let text = self.secrets.redact(completion.text.trim());
                Ok((!text.is_empty()).then_some(text))
            }
            Err(_) => Ok(None),
        }
    }
}
