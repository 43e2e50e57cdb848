//! Token estimates that are corrected by the counts of providers.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use super::{Answer, Request, ToolSpec, Turn, schema};
use kiso_plan::estimate::tokens;

/// How much one answer changes the ratio.
const WEIGHT: f64 = 0.2;

/// Limits of the ratio: a provider that counts wrongly, or in other units, must not make windows much too small or too large.
const LEAST: f64 = 0.5;
const MOST: f64 = 2.0;

/// Requests with fewer estimated tokens are ignored, because they mainly show the provider's overhead.
const TOO_SHORT: usize = 64;

/// The ratio of each model's tokens to the estimate of [`tokens`].
#[derive(Debug, Default)]
pub struct Estimator {
    /// By `provider:model`; limited to models of `config.toml`.
    ratios: Mutex<HashMap<String, f64>>,
}

impl Estimator {
    /// Converts an estimate of [`tokens`] to the count of the model's provider.
    pub fn counted(&self, model: &str, estimated: usize) -> usize {
        (estimated as f64 * self.ratio(model)).ceil() as usize
    }

    /// Converts a count of the model's provider to an estimate of [`tokens`].
    pub fn estimated(&self, model: &str, counted: usize) -> usize {
        (counted as f64 / self.ratio(model)).floor() as usize
    }

    /// The factor for an estimate: 1 until the model has answered, then 0.5 to 2.
    pub fn ratio(&self, model: &str) -> f64 {
        self.ratios.lock().unwrap_or_else(PoisonError::into_inner).get(model).copied().unwrap_or(1.0)
    }

    /// Learns from a prompt: `estimated` is that of [`request_tokens`], `counted` that of the provider.
    pub fn learn(&self, model: &str, estimated: usize, counted: u64) {
        if estimated < TOO_SHORT || counted == 0 {
            return;
        }
        let seen = (counted as f64 / estimated as f64).clamp(LEAST, MOST);
        let mut ratios = self.ratios.lock().unwrap_or_else(PoisonError::into_inner);
        let ratio = ratios.entry(model.to_owned()).or_insert(1.0);
        *ratio = (*ratio * (1.0 - WEIGHT) + seen * WEIGHT).clamp(LEAST, MOST);
    }
}

/// Estimates the tokens of the form of an answer: providers count a schema as a part of the prompt.
pub fn answer_tokens(answer: &Answer) -> usize {
    match answer {
        Answer::Text => 0,
        Answer::Json(schema) => tokens(&schema.to_string()),
    }
}

/// Estimates the tokens of a whole request.
pub fn request_tokens(request: &Request) -> usize {
    let turns = request.turns.iter().map(turn_tokens);
    let tools = request.tools.iter().map(tool_tokens);
    let words = tokens(&request.system) + tokens(&request.user);
    words + turns.sum::<usize>() + tools.sum::<usize>() + answer_tokens(&request.answer)
}

/// Estimates the tokens of a tool in the form that models see.
pub fn tool_tokens(tool: &ToolSpec) -> usize {
    tokens(&tool.name) + tokens(&tool.description) + tokens(&schema::shown(&tool.parameters).to_string())
}

/// Estimates the tokens of a turn, including its calls.
pub fn turn_tokens(turn: &Turn) -> usize {
    match turn {
        Turn::Assistant { text, calls } => {
            tokens(text) + calls.iter().map(|call| tokens(&call.name) + tokens(&call.args)).sum::<usize>()
        }
        Turn::Tool { name, text, .. } => tokens(name) + tokens(text),
        Turn::User(text) | Turn::Note(text) => tokens(text),
        Turn::Pictures(images) => images.iter().map(|image| image.picture.tokens()).sum(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use kiso_base::role::Role;
    use kiso_plan::call::ToolCall;
    use proptest::prelude::*;

    #[test]
    fn the_ratio_of_a_model_comes_near_to_what_its_provider_counts() {
        let estimator = Estimator::default();
        assert_eq!((estimator.counted("a:b", 1_000), estimator.estimated("a:b", 1_000)), (1_000, 1_000));
        estimator.learn("a:b", 1_000, 1_500);
        assert_eq!(estimator.counted("a:b", 1_000), 1_100);
        for _ in 0..40 {
            estimator.learn("a:b", 1_000, 1_500);
        }
        assert_eq!((estimator.counted("a:b", 1_000), estimator.estimated("a:b", 1_501)), (1_500, 1_000));
        assert_eq!((estimator.counted("a:other", 1_000), estimator.estimated("a:other", 1_000)), (1_000, 1_000));
    }

    #[test]
    fn short_requests_and_missing_counts_teach_nothing() {
        let estimator = Estimator::default();
        estimator.learn("a:b", 63, 400);
        estimator.learn("a:b", 1_000, 0);
        assert_eq!(estimator.ratio("a:b"), 1.0);
    }

    #[test]
    fn everything_that_is_sent_counts() {
        let mut request = Request::new(Role::Actor, "abcd".to_owned(), "abcd".to_owned());
        assert_eq!(request_tokens(&request), 2);
        let call = ToolCall::new("1", "exec", "{\"a\"}");
        request.turns = vec![
            Turn::Assistant { text: "abcd".to_owned(), calls: vec![call] },
            Turn::Tool { id: "1".to_owned(), name: "exec".to_owned(), text: "abcd".to_owned() },
            Turn::Note("abcd".to_owned()),
        ];
        assert_eq!(request_tokens(&request), 2 + 4 + 2 + 1);
        let parameters = serde_json::json!({});
        request.tools = vec![ToolSpec { name: "exec".to_owned(), description: "abcd".to_owned(), parameters }];
        assert_eq!(request_tokens(&request), 9 + 3);
        request.answer = Answer::Json(serde_json::json!({ "type": "object" }).into());
        assert_eq!(request_tokens(&request), 9 + 3 + 5);
    }

    proptest! {
        #[test]
        fn the_ratio_stays_within_its_bounds(seen in prop::collection::vec((0usize..100_000, any::<u64>()), 0..40)) {
            let estimator = Estimator::default();
            for (estimated, counted) in seen {
                estimator.learn("m", estimated, counted);
                prop_assert!((LEAST..=MOST).contains(&estimator.ratio("m")));
            }
        }
    }
}
