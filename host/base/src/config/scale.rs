//! Limits that are derived from the context size of a model, unless the file sets them.

use super::{Config, ModelName};
use crate::role::Role;

/// The limits for a model with a certain context size.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Scale {
    /// Maximum rounds of tool calls in one task.
    pub rounds: u64,
    /// Maximum tokens of a tool's result.
    pub result_tokens: u64,
    /// Maximum tokens of an answer.
    pub output_tokens: u64,
    /// Maximum messages of a conversation in a prompt.
    pub window: u64,
}

/// The minimum context size of each step, in tokens. A smaller context has the first step.
const STEPS: [(u64, Scale); 4] = [
    (
        16_000,
        Scale {
            rounds: ROUNDS[0],
            result_tokens: RESULT_TOKENS[0],
            output_tokens: OUTPUT_TOKENS[0],
            window: WINDOW[0],
        },
    ),
    (
        LARGE_CONTEXT,
        Scale {
            rounds: ROUNDS[1],
            result_tokens: RESULT_TOKENS[1],
            output_tokens: OUTPUT_TOKENS[1],
            window: WINDOW[1],
        },
    ),
    (
        64_000,
        Scale {
            rounds: ROUNDS[2],
            result_tokens: RESULT_TOKENS[2],
            output_tokens: OUTPUT_TOKENS[2],
            window: WINDOW[2],
        },
    ),
    (
        128_000,
        Scale {
            rounds: ROUNDS[3],
            result_tokens: RESULT_TOKENS[3],
            output_tokens: OUTPUT_TOKENS[3],
            window: WINDOW[3],
        },
    ),
];

pub(super) const ROUNDS: [u64; 4] = [10, 20, 30, 50];
pub(super) const RESULT_TOKENS: [u64; 4] = [2_000, 3_000, 5_000, 8_000];
pub(super) const WINDOW: [u64; 4] = [20, 30, 40, 60];
const OUTPUT_TOKENS: [u64; 4] = [DEFAULT_MAX_OUTPUT, 6_000, 8_000, 16_000];

/// Maximum tokens of an answer of an unknown model: enough for a long plan.
pub const DEFAULT_MAX_OUTPUT: u64 = 4_096;

/// The context size in tokens from which a model can use the documented forms and limits.
pub const LARGE_CONTEXT: u64 = 32_000;

impl Scale {
    pub fn from_context(context_budget: u64) -> Self {
        let reached = STEPS.iter().rev().find(|(from, _)| context_budget >= *from);
        let (_, scale) = reached.unwrap_or(&STEPS[0]);
        // The prompt needs the rest of the context.
        Self { output_tokens: scale.output_tokens.min(context_budget / 4), ..*scale }
    }
}

impl Config {
    /// The context size of a model in tokens.
    pub fn context_of(&self, model: ModelName<'_>) -> u64 {
        self.settings_of(model).and_then(|said| said.context_budget).unwrap_or(self.context.budget_tokens)
    }

    /// The smallest context size among the models of a role. Built-in models read prompts of any size.
    pub fn context_of_role(&self, role: Role) -> u64 {
        let contexts = self.chain_of(role).filter(ModelName::is_remote).map(|model| self.context_of(model));
        contexts.min().unwrap_or(self.context.budget_tokens)
    }

    /// The models of a role, in the order in which they are asked.
    pub fn chain_of(&self, role: Role) -> impl Iterator<Item = ModelName<'_>> {
        let fallbacks = self.fallbacks_of(role.name()).iter().map(String::as_str);
        std::iter::once(self.model_of(role.name())).chain(fallbacks).filter_map(|name| self.named(name).ok())
    }

    /// Maximum tokens of a model's answer.
    pub fn max_output_of(&self, model: ModelName<'_>) -> u64 {
        let budget = self.context_of(model);
        let set = self.settings_of(model).and_then(|said| said.max_output_tokens);
        set.unwrap_or(Scale::from_context(budget).output_tokens).min(budget)
    }

    /// Maximum rounds of tool calls in one task, if the actor's model has this context size.
    pub fn rounds_at(&self, context_budget: u64) -> u64 {
        self.limits.max_tool_call_rounds.unwrap_or(Scale::from_context(context_budget).rounds)
    }

    /// Maximum tokens of a tool's result, if the actor's model has this context size.
    pub fn result_tokens_at(&self, context_budget: u64) -> u64 {
        self.limits.tool_output_limit_tokens.unwrap_or(Scale::from_context(context_budget).result_tokens)
    }

    /// Maximum messages of a conversation in a prompt, if the actor's model has this context size.
    pub fn window_at(&self, context_budget: u64) -> u64 {
        self.context.sliding_window.unwrap_or(Scale::from_context(context_budget).window)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_larger_context_has_larger_limits() {
        for (context, rounds, result_tokens, output_tokens, window) in [
            (1_000, 10, 2_000, 250, 20),
            (8_000, 10, 2_000, 2_000, 20),
            (16_000, 10, 2_000, 4_000, 20),
            (16_384, 10, 2_000, 4_096, 20),
            (31_999, 10, 2_000, 4_096, 20),
            (32_000, 20, 3_000, 6_000, 30),
            (64_000, 30, 5_000, 8_000, 40),
            (128_000, 50, 8_000, 16_000, 60),
            (10_000_000, 50, 8_000, 16_000, 60),
        ] {
            assert_eq!(
                Scale::from_context(context),
                Scale { rounds, result_tokens, output_tokens, window },
                "{context}"
            );
        }
    }

    #[test]
    fn what_the_file_sets_stays() {
        let provider = "[providers.lab]\nkind = \"openai\"\nbase_url = \"http://localhost\"\n";
        let config = |more: &str| Config::parse(format!("model = \"lab:m\"\n{more}\n{provider}").as_bytes()).unwrap();
        let context = |config: &Config| config.context_of_role(Role::Actor);
        let large = "[model_settings.\"lab:m\"]\ncontext_budget = 200_000\n";
        let of = config(large);
        assert_eq!((context(&of), of.max_output_of(of.named("lab:m").unwrap())), (200_000, 16_000));
        assert_eq!((of.rounds_at(200_000), of.result_tokens_at(200_000), of.window_at(200_000)), (50, 8_000, 60));
        let set = config(&format!(
            "[limits]\nmax_tool_call_rounds = 7\ntool_output_limit_tokens = 900\n[context]\nsliding_window = 8\n{large}max_output_tokens = 1_000\n"
        ));
        assert_eq!((set.rounds_at(200_000), set.result_tokens_at(200_000), set.window_at(200_000)), (7, 900, 8));
        assert_eq!(set.max_output_of(set.named("lab:m").unwrap()), 1_000);
        let small = config(&format!("[fallbacks]\nall = [\"lab:small\", \"reflex\"]\n{large}"));
        assert_eq!(context(&small), 16_000, "a fallback has to read the prompt, too");
        let rules = config(&format!("[fallbacks]\nall = [\"reflex\"]\n{large}"));
        assert_eq!(context(&rules), 200_000);
    }
}
