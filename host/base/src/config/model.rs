//! Model strings, and `[model_settings."provider:model"]`: properties of a model.
//!
//! ```toml
//! [model_settings."openai:gpt-5-mini"]
//! context_budget = 200_000
//! input_price = 0.25     # US dollars per million tokens
//! output_price = 2
//! ```

use super::Config;
use super::fields::TableFields;
use super::key::{Effect, Kind, NamedTable, ValueError, keys, words};
use super::provider::{AbilityUse, Provider, ProviderKind};
use crate::role::Role;
use kiso_plan::limits::Usage;
use serde::Serialize;
use std::borrow::Cow;
use toml::Spanned;
use toml::de::DeValue;

/// The model that a model string names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ModelName<'a> {
    /// The built-in rules.
    Reflex,
    /// A recorded file that is replayed.
    Scripted(&'a str),
    /// A model of a provider.
    Of(&'a Provider, &'a str),
}

impl ModelName<'_> {
    /// Whether a provider serves it. Built-in models read prompts of any size.
    pub fn is_remote(&self) -> bool {
        matches!(self, Self::Of(..))
    }
}

impl std::fmt::Display for ModelName<'_> {
    /// `provider:model`, even if the string has no provider.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Reflex => f.write_str("reflex"),
            Self::Scripted(file) => write!(f, "scripted:{file}"),
            Self::Of(provider, model) => write!(f, "{}:{model}", provider.name),
        }
    }
}

/// One `[model_settings."provider:model"]`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ModelSettings {
    /// `provider:model`.
    pub model: String,
    /// Tokens of prompt and answer together; if `None`, `context.budget_tokens`.
    pub context_budget: Option<u64>,
    /// Price of a million prompt tokens, in millionths of a US dollar. `None` if unknown.
    pub input_price: Option<u64>,
    /// The same for tokens in the provider's cache; if `None`, the price of other tokens.
    pub cached_input_price: Option<u64>,
    /// The same for a million tokens of the answer.
    pub output_price: Option<u64>,
    pub json_schema: AbilityUse,
    pub tool_calls: AbilityUse,
    /// Whether it accepts pictures.
    pub vision: AbilityUse,
    /// Whether it accepts recordings.
    pub audio: AbilityUse,
    /// Maximum tokens of an answer; if `None`, derived from its context.
    pub max_output_tokens: Option<u64>,
}

/// The words of `audio`. It cannot be probed: servers ignore audio without an error.
const AUDIO: [(&str, AbilityUse); 2] = [("no", AbilityUse::No), ("yes", AbilityUse::Yes)];

/// How the commented file of a fresh home shows model settings.
const EXAMPLE: &str = "
# Properties of a model: its context size, its prices in US dollars per million tokens (the caps on cost need them,
# unless the provider reports the cost), whether the provider enforces a JSON Schema, and whether the model calls
# tools and takes pictures (\"probe\", \"yes\" or \"no\").
# [model_settings.\"openai:gpt-5-mini\"]
# context_budget = 200_000
# input_price = 0.25
# output_price = 2.00
# json_schema = \"probe\"
# tool_calls = \"probe\"
# vision = \"probe\"
# audio = \"no\"
# max_output_tokens = 4_096
";

/// The keys and the documentation of these tables.
#[rustfmt::skip]
pub(super) const TABLE: NamedTable = NamedTable {
    name: "model_settings",
    heading: "[model_settings.\"PROVIDER:MODEL\"]",
    doc: "Properties of a single model.",
    example: EXAMPLE,
    after: "fallbacks",
    effect: Effect::NextRun,
    id: "model",
    keys: &keys(Effect::NextRun, [
        ("context_budget", Kind::Count(1_000, 10_000_000, "that of `[context] budget_tokens`"), "Tokens of prompt and answer together."),
        ("input_price", Kind::Dollars(10_000, "not known"), "US dollars for a million tokens of prompt. Caps on cost need it, unless the provider reports the cost of a call."),
        ("cached_input_price", Kind::Dollars(10_000, "that of `input_price`"), "The same for tokens of prompt that the provider had read before and kept."),
        ("output_price", Kind::Dollars(10_000, "not known"), "The same for a million tokens of answer."),
        ("json_schema", Kind::Word("probe", &words(AbilityUse::NAMES)), "Whether its provider enforces a JSON Schema; `probe` finds out with the first call."),
        ("tool_calls", Kind::Word("probe", &words(AbilityUse::NAMES)), "Whether the model calls tools in the format's own way. With `no`, it is asked for calls as JSON; `probe` does so after a refusal, and where a llama.cpp server says that its template has no tools."),
        ("vision", Kind::Word("probe", &words(AbilityUse::NAMES)), "Whether the model takes pictures. With `no`, the model of `[models] eyes` describes them for it, if that is another one; `probe` does so after a refusal."),
        ("audio", Kind::Word("no", &words(AUDIO)), "Whether the model takes recordings: WAV and MP3 of at most 1 MiB, over the interface `openai`. Others are written down by `[audio] transcription_model`."),
        ("max_output_tokens", Kind::Count(16, 1_000_000, "by its context: 4_096 to 16_000, or a quarter of a small one"), "Tokens of an answer, whatever a role requests."),
    ]),
};

/// Reads one table. [`Config::named`] checks later whether its provider exists.
pub(super) fn read<'a>(
    name: &'a Spanned<Cow<'a, str>>,
    value: &'a Spanned<DeValue<'a>>,
) -> Result<ModelSettings, Vec<ValueError>> {
    let text = name.get_ref().as_ref();
    let mut fields = TableFields::new(&TABLE, format!("model_settings.{text:?}"), name.span(), value)?;
    let settings = ModelSettings {
        model: text.to_owned(),
        context_budget: fields.count("context_budget"),
        input_price: fields.dollars("input_price"),
        cached_input_price: fields.dollars("cached_input_price"),
        output_price: fields.dollars("output_price"),
        json_schema: fields.one_of("json_schema", &AbilityUse::NAMES).unwrap_or_default(),
        tool_calls: fields.one_of("tool_calls", &AbilityUse::NAMES).unwrap_or_default(),
        vision: fields.one_of("vision", &AbilityUse::NAMES).unwrap_or_default(),
        audio: fields.one_of("audio", &AUDIO).unwrap_or(AbilityUse::No),
        max_output_tokens: fields.count("max_output_tokens"),
    };
    fields.finish(|_| None)?;
    Ok(settings)
}

impl Config {
    /// Returns the first choice of a role, as in the file: its own model, or the default.
    pub fn model_of(&self, role: &str) -> &str {
        Role::named(role).and_then(|role| self.models.of[role].as_deref()).unwrap_or(&self.model)
    }

    /// Sets or removes a role's own model.
    pub fn set_model_of(&mut self, role: &str, model: Option<String>) {
        if let Some(role) = Role::named(role) {
            self.models.of[role] = model;
        }
    }

    /// Returns the same configuration with one model for all roles, without fallbacks.
    pub fn with_model(&self, model: &str) -> Config {
        let mut config = self.clone();
        model.clone_into(&mut config.model);
        config.fallbacks = Default::default();
        Role::ALL.into_iter().for_each(|role| config.set_model_of(role.name(), None));
        config
    }

    /// Returns the fallbacks of a role, in order: its own list, or the one for all.
    pub fn fallbacks_of(&self, role: &str) -> &[String] {
        let own = Role::named(role).map(|role| &self.fallbacks.of[role]).filter(|own| !own.is_empty());
        own.unwrap_or(&self.fallbacks.all)
    }

    /// Returns the model strings in the file, each once: the default first, then those of roles, fallbacks and settings.
    pub fn model_strings(&self) -> Vec<&str> {
        let mut strings = vec![self.model.as_str()];
        let of_roles = Role::ALL.map(Role::name).into_iter().flat_map(|role| {
            std::iter::once(self.model_of(role)).chain(self.fallbacks_of(role).iter().map(String::as_str))
        });
        let of_roles = of_roles.chain(self.subagents.model.as_deref());
        for string in of_roles.chain(self.model_settings.iter().map(|settings| settings.model.as_str())) {
            if !strings.contains(&string) {
                strings.push(string);
            }
        }
        strings
    }

    /// Returns the model that a string names, or why there is none.
    pub fn named<'a>(&'a self, string: &'a str) -> Result<ModelName<'a>, String> {
        let known = || {
            let names: Vec<_> = self.providers.iter().map(|provider| provider.name.as_str()).collect();
            match names.as_slice() {
                [] => "there is no provider; `kiso config preset` prints one".to_owned(),
                names => format!("providers of this file: {}", names.join(", ")),
            }
        };
        match string.split_once(':') {
            None if string == "reflex" => Ok(ModelName::Reflex),
            Some(("scripted", "")) | Some((_, "")) => Err(format!("{string:?} names no model after its colon")),
            Some(("scripted", file)) => Ok(ModelName::Scripted(file)),
            None => match self.providers.first() {
                Some(first) => Ok(ModelName::Of(first, string)),
                None => Err(format!(
                    "{string:?} has no provider: it is neither \"reflex\" nor \"scripted:FILE\", and {}",
                    known()
                )),
            },
            Some((provider, model)) => match self.providers.iter().find(|known| known.name == provider) {
                Some(provider) => Ok(ModelName::Of(provider, model)),
                None => Err(format!("{string:?} needs [providers.{provider}]; {}", known())),
            },
        }
    }

    /// Returns the settings of a model.
    pub fn settings_of(&self, model: ModelName<'_>) -> Option<&ModelSettings> {
        self.model_settings.iter().find(|settings| self.named(&settings.model) == Ok(model))
    }
}

impl Config {
    /// Returns the cost of this usage in millionths of a US dollar. `None` if it is unknown: tokens were used, no cost was
    /// recorded, and a model of the file has no price.
    pub fn known_cost(&self, usage: Usage) -> Option<u64> {
        let priced = |string: &&str| match self.named(string) {
            Ok(ModelName::Reflex) => true,
            Ok(named) => self.settings_of(named).is_some_and(|settings| settings.input_price.is_some()),
            Err(_) => false,
        };
        let is_free = || usage.total() == 0 || self.model_strings().iter().all(priced);
        (usage.cost_micros > 0 || is_free()).then_some(usage.cost_micros)
    }
}

/// The keys that name models which do not chat, each with what its model returns.
const OTHERS: [((&str, &str), &str); 2] =
    [(("memory", "embedding_model"), "embeddings"), (("audio", "transcription_model"), "transcriptions")];

/// Returns why a key cannot name this model.
pub(super) fn unfit(path: &str, named: ModelName<'_>) -> Option<String> {
    let (_, gives) = OTHERS.iter().find(|(key, _)| path.split_once('.') == Some(*key))?;
    match named {
        ModelName::Of(provider, _) if provider.kind == ProviderKind::OpenAi => None,
        ModelName::Of(provider, _) => Some(format!(
            "[providers.{}] is of a kind that has no {gives}; name a model of one of the kind \"openai\"",
            provider.name
        )),
        other => Some(format!("\"{other}\" has no {gives}; name a model of a provider of the kind \"openai\"")),
    }
}

/// Whether a key contains model strings.
pub(super) fn holds_models(section: &str, name: &str) -> bool {
    matches!(section, "models" | "fallbacks")
        || matches!((section, name), ("", "model") | ("subagents", "model"))
        || OTHERS.iter().any(|(key, _)| *key == (section, name))
}

#[cfg(test)]
mod tests {
    use super::*;

    const PROVIDERS: &str = "[providers.openai]\nkind = \"openai\"\nbase_url = \"https://api.openai.com/v1\"\n\
                             [providers.local]\nkind = \"openai\"\nbase_url = \"http://localhost:11434/v1\"\n";

    fn config(text: &str) -> Config {
        Config::parse(format!("{text}\n{PROVIDERS}").as_bytes()).unwrap()
    }

    fn problems(text: &str) -> String {
        let problems = Config::parse(text.as_bytes()).unwrap_err();
        problems.iter().map(|problem| format!("{problem}\n")).collect()
    }

    #[test]
    fn every_role_has_its_model_and_its_fallbacks() {
        let mut text = "model = \"m\"\n[models]\n".to_owned();
        for role in Role::ALL.map(Role::name) {
            text += &format!("{role} = \"local:{role}\"\n");
        }
        text += "[fallbacks]\nall = [\"reflex\"]\n";
        for role in Role::ALL.map(Role::name) {
            text += &format!("{role} = [\"local:{role}-2\", \"reflex\"]\n");
        }
        let config = config(&text);
        for role in Role::ALL.map(Role::name) {
            assert_eq!(config.model_of(role), format!("local:{role}"));
            assert_eq!(config.fallbacks_of(role), [format!("local:{role}-2"), "reflex".to_owned()]);
        }
        assert_eq!((config.model_of("other"), config.fallbacks_of("other")), ("m", ["reflex".to_owned()].as_slice()));
    }

    #[test]
    fn a_cost_is_known_where_each_model_has_a_price() {
        let used = |cost_micros| Usage { input_tokens: 9, cost_micros, ..Usage::default() };
        let free = "model = \"local:m\"\n[model_settings.\"local:m\"]\ninput_price = 0\noutput_price = 0";
        let unpriced = "model = \"local:m\"";
        assert_eq!(config(unpriced).known_cost(used(0)), None);
        assert_eq!(config(unpriced).known_cost(used(7)), Some(7));
        assert_eq!(config(unpriced).known_cost(Usage::default()), Some(0));
        assert_eq!(config(free).known_cost(used(0)), Some(0));
        assert_eq!(config("model = \"reflex\"").known_cost(used(0)), Some(0));
    }

    #[test]
    fn a_model_string_without_a_prefix_is_of_the_first_provider() {
        let config = config("model = \"gpt-5-mini\"");
        let shown = |string| config.named(string).unwrap().to_string();
        assert_eq!(shown("gpt-5-mini"), "openai:gpt-5-mini");
        assert_eq!(shown("local:qwen3:8b"), "local:qwen3:8b");
        assert_eq!(
            (shown("reflex"), shown("scripted:a:b.toml")),
            ("reflex".to_owned(), "scripted:a:b.toml".to_owned())
        );
        assert_eq!(config.named("scripted:f"), Ok(ModelName::Scripted("f")));
        assert!(config.named("local:").unwrap_err().contains("names no model"));
    }

    #[test]
    fn a_model_whose_provider_does_not_exist_is_told_with_its_place() {
        let text =
            "model = \"gpt\"\n[models]\nworker = \"opnai:gpt\"\n[fallbacks]\nall = [\"reflex\",\n  \"other:x\"]\n";
        assert_eq!(
            problems(text),
            "1:9: model: \"gpt\" has no provider: it is neither \"reflex\" nor \"scripted:FILE\", and there is no \
             provider; `kiso config preset` prints one\n\
             3:10: models.worker: \"opnai:gpt\" needs [providers.opnai]; there is no provider; `kiso config preset` \
             prints one\n\
             6:3: fallbacks.all: \"other:x\" needs [providers.other]; there is no provider; `kiso config preset` prints \
             one\n"
        );
        let told = problems(&format!("model = \"llama3.2:3b\"\n{PROVIDERS}"));
        assert!(told.contains("needs [providers.llama3.2]; providers of this file: openai, local"), "{told}");
        let told = problems("[model_settings.\"gone:x\"]\ncontext_budget = 5_000\n");
        assert!(told.contains("1:17: model_settings: \"gone:x\" needs [providers.gone]"), "{told}");
    }

    #[test]
    fn a_model_that_gives_vectors_is_of_a_provider_that_has_them() {
        let wanted = config("[memory]\nembedding_model = \"local:nomic\"\n").memory.embedding_model;
        assert_eq!(wanted.as_deref(), Some("local:nomic"));
        for (model, said) in [
            ("claude:x", "[providers.claude] is of a kind that has no embeddings; name a model of one of the kind"),
            ("reflex", "\"reflex\" has no embeddings"),
            ("scripted:f", "\"scripted:f\" has no embeddings"),
            ("gone:x", "\"gone:x\" needs [providers.gone]"),
        ] {
            let told = problems(&format!(
                "[memory]\nembedding_model = \"{model}\"\n{PROVIDERS}[providers.claude]\nkind = \"anthropic\"\n\
                 base_url = \"https://api.anthropic.com/v1\"\n"
            ));
            assert!(told.starts_with(&format!("2:19: memory.embedding_model: {said}")), "{told}");
        }
    }

    #[test]
    fn settings_are_found_by_either_spelling_and_prices_are_exact() {
        let config = config(
            "[model_settings.gpt-5-mini]\ncontext_budget = 200_000\ninput_price = 0.25\noutput_price = 2\n\
             [model_settings.\"local:qwen3:8b\"]\njson_schema = \"no\"\nmax_output_tokens = 900\n",
        );
        let gpt = config.settings_of(config.named("openai:gpt-5-mini").unwrap()).unwrap();
        assert_eq!(
            (gpt.context_budget, gpt.input_price, gpt.output_price),
            (Some(200_000), Some(250_000), Some(2_000_000))
        );
        let qwen = config.settings_of(config.named("local:qwen3:8b").unwrap()).unwrap();
        assert_eq!((qwen.json_schema, qwen.max_output_tokens, qwen.input_price), (AbilityUse::No, Some(900), None));
        assert_eq!(config.settings_of(ModelName::Reflex), None);
    }

    #[test]
    fn what_is_wrong_with_settings_is_told() {
        for (line, said) in [
            ("context_budget = 10", "2:18: model_settings.\"reflex\".context_budget = 10 is out of range: 1000 to"),
            ("input_price = -1", "input_price is out of range: 0 to 10_000 US dollars"),
            ("input_price = nan", "input_price is out of range"),
            ("output_price = \"2\"", "output_price must be a number, and this is a string"),
            ("json_schema = true", "json_schema must be \"probe\" or \"yes\" or \"no\""),
            (
                "output_prize = 2",
                "did you mean output_price? Allowed here: audio, cached_input_price, context_budget, input_price",
            ),
        ] {
            let told = problems(&format!("[model_settings.reflex]\n{line}\n"));
            assert!(told.contains(said), "{line}: {told}");
        }
        let twice = problems(&format!("[model_settings.a]\n[model_settings.\"openai:a\"]\n{PROVIDERS}"));
        assert!(twice.contains("2:17: model_settings: \"openai:a\" is set twice"), "{twice}");
    }
}
