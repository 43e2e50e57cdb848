//! Explains to a person why a run failed: the reason and the next step.

use schemars::JsonSchema;
use serde::Serialize;

use kiso_graph::outcome::Ending;
use kiso_llm::trouble::ModelTrouble;
use kiso_plan::limits::LimitReached;

/// Why a run failed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[schemars(rename = "Trouble")]
pub struct RunTrouble {
    /// A stable identifier for programs: `limit`, `policy`, `needs_model`, `failed`, or a problem of the model, such as `no_key`.
    pub code: &'static str,
    pub title: String,
    /// The next step, as text.
    pub advice: String,
    pub remedy: Remedy,
}

/// The next step, as an action of a client.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(tag = "action", rename_all = "snake_case")]
pub enum Remedy {
    /// Send the message again.
    Retry,
    /// Connect a model, enter its key again, or choose another one.
    ConnectModel {
        /// `provider:model`, if it is known.
        model: Option<String>,
    },
    /// Change a setting of config.toml.
    ChangeSetting { setting: String },
    /// Begin a new conversation.
    NewChat,
    /// Show the rules for data that leaves the sandbox.
    ShowRules,
}

impl RunTrouble {
    /// Returns the trouble of a run with this ending; `None` if it is done or was stopped by its user.
    pub fn from_ending(ending: &Ending) -> Option<RunTrouble> {
        match ending {
            Ending::Done | Ending::Cancelled => None,
            Ending::LimitHit(limit) => Some(RunTrouble::from_limit(limit)),
            Ending::Failed { reason } => Some(RunTrouble::from_reason(reason)),
        }
    }

    fn from_limit(limit: &LimitReached) -> RunTrouble {
        let LimitReached { limit, value, setting, .. } = limit;
        if limit == "context_budget" {
            let trouble = ModelTrouble::TooLong;
            let advice = format!("Begin a new chat, or raise {setting} (now {value}) if the model takes more tokens.");
            let title = trouble.title().to_owned();
            return RunTrouble { code: trouble.code(), title, advice, remedy: Remedy::NewChat };
        }
        RunTrouble {
            code: "limit",
            title: format!("Stopped at the limit {limit} of {value}"),
            advice: format!("To allow more, raise {setting} in config.toml, then send the message again."),
            remedy: Remedy::ChangeSetting { setting: setting.clone() },
        }
    }

    fn from_reason(reason: &str) -> RunTrouble {
        if let Some((trouble, model)) = ModelTrouble::in_text(reason) {
            let model = Some(model.to_owned());
            let remedy = match trouble {
                ModelTrouble::NoKey
                | ModelTrouble::KeyRefused
                | ModelTrouble::NoCredit
                | ModelTrouble::NotFound
                | ModelTrouble::Refused => Remedy::ConnectModel { model },
                ModelTrouble::TooLong => Remedy::NewChat,
                _ => Remedy::Retry,
            };
            let (title, advice) = (trouble.title().to_owned(), trouble.remedy().to_owned());
            return RunTrouble { code: trouble.code(), title, advice, remedy };
        }
        // The text of the built-in model's error.
        if reason.contains("need a language model") {
            return RunTrouble {
                code: "needs_model",
                title: "The built-in rules do not understand this".to_owned(),
                advice: "Connect a language model to ask in your own words.".to_owned(),
                remedy: Remedy::ConnectModel { model: None },
            };
        }
        let lower = reason.to_lowercase();
        if ["is denied by", "the policy", "not allowed by", "was refused by"].iter().any(|words| lower.contains(words))
        {
            return RunTrouble {
                code: "policy",
                title: "Refused by a rule".to_owned(),
                advice: "A rule of this kiso, or an answer that you gave, forbids this step.".to_owned(),
                remedy: Remedy::ShowRules,
            };
        }
        RunTrouble {
            code: "failed",
            title: "This did not work".to_owned(),
            advice: "The steps show what was tried. Try again, or word the message differently.".to_owned(),
            remedy: Remedy::Retry,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn trouble(reason: &str) -> RunTrouble {
        RunTrouble::from_ending(&Ending::Failed { reason: reason.to_owned() }).unwrap()
    }

    #[test]
    fn each_ending_has_its_next_step() {
        let key = trouble("Planning failed: the model cloud:m cannot be called: KEY is not set");
        assert_eq!((key.code, &key.remedy), ("no_key", &Remedy::ConnectModel { model: Some("cloud:m".to_owned()) }));
        let busy = trouble("the model cloud:m did not answer: 429 Too Many Requests (3 attempts)");
        assert_eq!((busy.code, &busy.remedy), ("busy", &Remedy::Retry));
        let words = "Requests in free language need a language model (`kiso config preset` shows how to set one).";
        assert_eq!((trouble(words).code, trouble(words).remedy), ("needs_model", Remedy::ConnectModel { model: None }));
        let second = trouble("the model read a page, then the model cloud:m refused the request: 401 Unauthorized");
        assert_eq!(
            (second.code, &second.remedy),
            ("key_refused", &Remedy::ConnectModel { model: Some("cloud:m".to_owned()) })
        );
        let other = trouble("there is no sea.csv");
        assert_eq!((other.code, &other.remedy), ("failed", &Remedy::Retry));
        let limit = LimitReached::new("max_tokens_per_run", 1_000);
        let setting = limit.setting.clone();
        let limit = RunTrouble::from_ending(&Ending::LimitHit(limit)).unwrap();
        assert_eq!((limit.code, &limit.remedy), ("limit", &Remedy::ChangeSetting { setting }));
        let small =
            LimitReached { setting: "context.budget_tokens".to_owned(), ..LimitReached::new("context_budget", 4_000) };
        let small = RunTrouble::from_ending(&Ending::LimitHit(small)).unwrap();
        assert_eq!((small.code, &small.remedy), ("too_long", &Remedy::NewChat));
        assert!(small.advice.contains("raise context.budget_tokens (now 4000)"), "{}", small.advice);
        assert_eq!((RunTrouble::from_ending(&Ending::Done), RunTrouble::from_ending(&Ending::Cancelled)), (None, None));
    }
}
