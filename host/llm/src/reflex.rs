//! `reflex`: the built-in model, whose rules are a separate crate (`host/reflex`). Its only input is `Request::pieces`, the
//! fields that other models get as text.

use super::estimate::turn_tokens;
use super::{Completing, Completion, LlmError, Model, Request, Sink};
use kiso_base::compute;
use kiso_base::role::Role;
use kiso_plan::limits::Usage;
use kiso_plan::prompt::Pieces;

pub use kiso_reflex::{blocks, is_explicit};

/// The model's name in `config.toml`.
pub const NAME: &str = "reflex";

/// The built-in rule-based model.
#[derive(Debug, Clone, Copy, Default)]
pub struct Reflex;

impl Model for Reflex {
    fn name(&self) -> &str {
        NAME
    }

    fn sees(&self) -> Option<bool> {
        Some(false)
    }

    fn complete<'a>(&'a self, request: &'a Request, sink: &'a mut dyn Sink) -> Completing<'a> {
        Box::pin(async move {
            let (role, pieces) = (request.role, request.pieces.clone());
            let bytes = match role {
                // An explicit step is used unchanged; interpreting a sentence may take long.
                Role::Planner if !is_spelt_out(&pieces) => usize::MAX,
                _ => request.user.len() + 4 * request.turns.iter().map(turn_tokens).sum::<usize>(),
            };
            let work = move || answer(role, &pieces);
            let text = compute::run_on(bytes, "reading the message by the built-in rules", work).await;
            let text = text.map_err(|overdue| LlmError::Unavailable {
                model: NAME.to_owned(),
                message: overdue.to_string(),
                retryable: false,
                retry_after: None,
            })?;
            for line in text.split_inclusive('\n') {
                sink.text(line);
            }
            let usage = Usage {
                input_tokens: tokens(&request.system) + tokens(&request.user),
                output_tokens: tokens(&text),
                cached_tokens: 0,
                cost_micros: 0,
            };
            Ok(Completion { text, usage, model: NAME.to_owned(), ..Completion::default() })
        })
    }
}

/// Whether the message begins with a command line.
fn is_spelt_out(pieces: &Pieces) -> bool {
    pieces.new_message.as_deref().is_some_and(|message| message.trim_start().starts_with("$ "))
}

/// Returns the answer in the form that the role's prompt requires.
#[expect(clippy::expect_used, reason = "a plan has only string keys")]
fn answer(role: Role, pieces: &Pieces) -> String {
    match role {
        Role::Planner => {
            let plan = serde_json::to_string_pretty(&kiso_reflex::plan(pieces)).expect("a plan has only string keys");
            format!("<FINAL_PRD>\n{plan}\n</FINAL_PRD>")
        }
        Role::Reviewer => kiso_base::json::text(&kiso_reflex::review(pieces)),
        Role::Worker => kiso_reflex::reply(pieces),
        Role::Router => kiso_reflex::route(pieces),
        Role::Titler => kiso_reflex::title(pieces),
        Role::Summarizer => kiso_reflex::summarize(pieces),
        // A role without rules says so.
        _ => kiso_reflex::cannot(),
    }
}

/// Estimates tokens: four characters per token.
fn tokens(text: &str) -> u64 {
    text.chars().count().div_ceil(4) as u64
}

#[cfg(test)]
mod tests {
    use super::*;
    use kiso_plan::plan::Plan;
    use kiso_plan::report::{TaskReport, TaskStatus};

    #[tokio::test]
    async fn answers_as_a_model() {
        let request = |role, pieces| Request { pieces, ..Request::new(role, "12345678".to_owned(), "1234".to_owned()) };
        let said = Pieces { new_message: Some("$ true".to_owned()), ..Pieces::default() };
        let mut streamed = String::new();
        let completion = Reflex
            .complete(&request(Role::Planner, said.clone()), &mut |part: &str| streamed.push_str(part))
            .await
            .unwrap();
        assert_eq!(streamed, completion.text);
        assert_eq!(completion.usage.input_tokens, 3);
        assert_eq!(completion.usage.output_tokens, completion.text.chars().count().div_ceil(4) as u64);
        assert_eq!((completion.model.as_str(), Reflex.name()), ("reflex", "reflex"));
        let inner = completion.text.strip_prefix("<FINAL_PRD>").and_then(|t| t.strip_suffix("</FINAL_PRD>")).unwrap();
        let plan: Plan = serde_json::from_str(inner).unwrap();
        assert_eq!(plan, kiso_reflex::plan(&said));

        let ended = TaskReport::new(plan.tasks[0].clone(), TaskStatus::Done, "");
        let ended = TaskReport { exit_code: Some(0), ..ended };
        let review = Pieces { output: Some(ended), expect: Some("exit code 0".to_owned()), ..Pieces::default() };
        let completion = Reflex.complete(&request(Role::Reviewer, review), &mut |_: &str| {}).await.unwrap();
        assert_eq!(completion.text, r#"{"status":"ok"}"#);
    }
}
