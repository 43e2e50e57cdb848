//! Ready-made providers: `kiso config preset NAME` prints one and, with `--write`, puts it into `config.toml`.

use super::{Config, Problem, Provider, ProviderKind};
use toml::de::{DeTable, DeValue};

/// A provider with a model, as a complete `config.toml`.
#[derive(Debug, Clone, Copy)]
pub struct Preset {
    /// Its name on the command line.
    pub name: &'static str,
    /// The provider's own name.
    pub title: &'static str,
    /// The page where keys are created, if one is needed.
    pub key_url: Option<&'static str>,
    /// Further steps for a person, as comment lines.
    about: &'static str,
    /// The model for every role.
    pub model: &'static str,
    /// The tables of the provider.
    tables: &'static str,
}

/// All presets, those in the cloud first.
pub const PRESETS: [Preset; 9] = [
    Preset {
        name: "openrouter",
        title: "OpenRouter",
        key_url: Some("https://openrouter.ai/keys"),
        about: "# OpenRouter: hundreds of models behind one key, from https://openrouter.ai/keys. It reports what a call costs.\n\
                # \"auto\" chooses a model for each prompt; others are listed at https://openrouter.ai/models.\n",
        model: "openrouter:openrouter/auto",
        tables: r#"[providers.openrouter]
kind = "openai"
base_url = "https://openrouter.ai/api/v1"
key_env = "OPENROUTER_API_KEY"

[model_settings."openrouter:openrouter/auto"]
context_budget = 64_000
"#,
    },
    Preset {
        name: "openai",
        title: "OpenAI",
        key_url: Some("https://platform.openai.com/api-keys"),
        about: "# OpenAI, with a key from https://platform.openai.com/api-keys.\n\
                # Prices change: compare them with https://openai.com/api/pricing.\n",
        model: "openai:gpt-5-mini",
        tables: r#"[providers.openai]
kind = "openai"
base_url = "https://api.openai.com/v1"
key_env = "OPENAI_API_KEY"

[model_settings."openai:gpt-5-mini"]
context_budget = 128_000
max_output_tokens = 16_000 # thinking counts as output
input_price = 0.25
output_price = 2.00
"#,
    },
    Preset {
        name: "anthropic",
        title: "Anthropic",
        key_url: Some("https://console.anthropic.com/settings/keys"),
        about: "# Anthropic, with a key from https://console.anthropic.com/settings/keys.\n\
                # Prices change: compare them with https://www.anthropic.com/pricing.\n",
        model: "anthropic:claude-sonnet-4-5",
        tables: r#"[providers.anthropic]
kind = "anthropic"
base_url = "https://api.anthropic.com/v1"
key_env = "ANTHROPIC_API_KEY"

[model_settings."anthropic:claude-sonnet-4-5"]
context_budget = 128_000
max_output_tokens = 8_000
input_price = 3.00
output_price = 15.00
"#,
    },
    Preset {
        name: "gemini",
        title: "Gemini",
        key_url: Some("https://aistudio.google.com/apikey"),
        about: "# Google Gemini by its OpenAI interface, with a key from https://aistudio.google.com/apikey.\n\
                # Prices change: compare them with https://ai.google.dev/gemini-api/docs/pricing.\n",
        model: "gemini:gemini-2.5-flash",
        tables: r#"[providers.gemini]
kind = "openai"
base_url = "https://generativelanguage.googleapis.com/v1beta/openai"
key_env = "GEMINI_API_KEY"

[model_settings."gemini:gemini-2.5-flash"]
context_budget = 128_000
max_output_tokens = 16_000 # thinking counts as output
input_price = 0.30
output_price = 2.50
"#,
    },
    Preset {
        name: "groq",
        title: "Groq",
        key_url: Some("https://console.groq.com/keys"),
        about: "# Groq, with a key from https://console.groq.com/keys.\n\
                # Prices change: compare them with https://groq.com/pricing.\n",
        model: "groq:llama-3.3-70b-versatile",
        tables: r#"[providers.groq]
kind = "openai"
base_url = "https://api.groq.com/openai/v1"
key_env = "GROQ_API_KEY"

[model_settings."groq:llama-3.3-70b-versatile"]
context_budget = 64_000
input_price = 0.59
output_price = 0.79
"#,
    },
    Preset {
        name: "ollama",
        title: "Ollama",
        key_url: None,
        about: "# Ollama on this machine, without a key: `ollama pull qwen3:8b` first.\n\
                # Ollama cuts off what exceeds its own context length, so start it with OLLAMA_CONTEXT_LENGTH=16384.\n",
        model: "ollama:qwen3:8b",
        tables: r#"[providers.ollama]
kind = "openai"
base_url = "http://localhost:11434/v1"

[model_settings."ollama:qwen3:8b"]
context_budget = 16_000
"#,
    },
    Preset {
        name: "lmstudio",
        title: "LM Studio",
        key_url: None,
        about: "# LM Studio on this machine, without a key: load a model, and start the server under Developer.\n\
                # Load it with a context length of at least 16384 tokens.\n",
        model: "lmstudio:qwen/qwen3-8b",
        tables: r#"[providers.lmstudio]
kind = "openai"
base_url = "http://localhost:1234/v1"

[model_settings."lmstudio:qwen/qwen3-8b"]
context_budget = 16_000
"#,
    },
    Preset {
        name: "llama.cpp",
        title: "llama.cpp",
        key_url: None,
        about: "# llama.cpp on this machine, without a key: `llama-server -m MODEL.gguf --jinja -c 16384` first.\n\
                # Tools need --jinja; the name after the colon does not matter, the server has one model.\n",
        model: "llamacpp:default",
        tables: r#"[providers.llamacpp]
kind = "openai"
base_url = "http://localhost:8080/v1"

[model_settings."llamacpp:default"]
context_budget = 16_000
"#,
    },
    Preset {
        name: "vllm",
        title: "vLLM",
        key_url: None,
        about: "# vLLM on this machine, without a key:\n\
                # `vllm serve Qwen/Qwen3-8B --enable-auto-tool-choice --tool-call-parser hermes` first.\n",
        model: "vllm:Qwen/Qwen3-8B",
        tables: r#"[providers.vllm]
kind = "openai"
base_url = "http://localhost:8000/v1"

[model_settings."vllm:Qwen/Qwen3-8B"]
context_budget = 32_000
json_schema = "yes"
"#,
    },
];

/// Why a preset was not merged into a file. The file is unchanged.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NotMerged {
    /// The file is not a valid configuration.
    #[error("the file has mistakes")]
    Invalid(Vec<Problem>),
    /// The file already sets something else, which is not overwritten.
    #[error("{0}")]
    Decided(String),
}

impl Preset {
    /// Returns the preset with this name.
    pub fn named(name: &str) -> Option<&'static Preset> {
        PRESETS.iter().find(|preset| preset.name == name)
    }

    /// Returns it as a complete, valid `config.toml`.
    pub fn text(&self) -> String {
        format!("{}model = {:?}\n\n{}", self.about, self.model, self.tables)
    }

    /// Returns the further steps for a person.
    pub fn advice(&self) -> String {
        self.about.lines().map(|line| line.trim_start_matches("# ")).collect::<Vec<_>>().join(" ")
    }

    /// The variable that must hold the key, if the provider needs one.
    pub fn key_env(&self) -> Option<String> {
        self.provider()?.key_env
    }

    /// The provider's format.
    pub fn kind(&self) -> ProviderKind {
        self.provider().map_or(ProviderKind::OpenAi, |provider| provider.kind)
    }

    /// The provider's address.
    pub fn base_url(&self) -> String {
        self.provider().map(|provider| provider.base_url).unwrap_or_default()
    }

    /// The context size of its model in tokens.
    pub fn context_budget(&self) -> Option<u64> {
        let config = Config::parse(self.text().as_bytes()).ok()?;
        config.model_settings.first()?.context_budget
    }

    fn provider(&self) -> Option<Provider> {
        Config::parse(self.text().as_bytes()).ok()?.providers.into_iter().next()
    }

    /// Returns `text` with the preset merged and every comment kept: the model at its place, the tables at the end. `None` if the
    /// file already contains all of it.
    pub fn merge(&self, text: &str) -> Result<Option<String>, NotMerged> {
        let config = Config::parse(text.as_bytes()).map_err(NotMerged::Invalid)?;
        let own = Config::parse(self.text().as_bytes()).map_err(NotMerged::Invalid)?;
        if own.providers.iter().all(|provider| config.providers.contains(provider)) && config.model == own.model {
            return Ok(None);
        }
        if let Some(provider) = config.providers.first() {
            let name = &provider.name;
            return Err(NotMerged::Decided(format!("it has a provider already, [providers.{name}]")));
        }
        if config.model != "reflex" {
            return Err(NotMerged::Decided(format!("it has a model already, {:?}", config.model)));
        }
        if !config.model_settings.is_empty() {
            return Err(NotMerged::Decided("it has model settings already".to_owned()));
        }
        let mut merged = match model_span(text) {
            Some(span) => format!("{}{:?}{}", &text[..span.start], self.model, &text[span.end..]),
            None => format!("model = {:?}\n{text}", self.model),
        };
        if !merged.ends_with('\n') {
            merged.push('\n');
        }
        merged.push('\n');
        merged += self.about;
        merged += self.tables;
        // Verifies the result, however unusual the file is.
        let wanted =
            Config { model: own.model, providers: own.providers, model_settings: own.model_settings, ..config };
        match Config::parse(merged.as_bytes()) {
            Ok(found) if found == wanted => Ok(Some(merged)),
            _ => Err(NotMerged::Decided("its form leaves no place for it".to_owned())),
        }
    }
}

/// The place of the model for every role in the text, if it is set.
fn model_span(text: &str) -> Option<std::ops::Range<usize>> {
    let document = DeTable::parse(text).ok()?;
    let value = document.get_ref().get("model")?;
    matches!(value.get_ref(), DeValue::String(_)).then(|| value.span())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_preset_is_a_configuration_by_itself() {
        for preset in PRESETS {
            let config = Config::parse(preset.text().as_bytes()).unwrap_or_else(|p| panic!("{}: {p:?}", preset.name));
            let name = config.named(&config.model).unwrap();
            assert_eq!(name.to_string(), preset.model);
            assert!(config.settings_of(name).is_some_and(|s| s.context_budget.is_some()), "{}", preset.name);
            let local = config.providers[0].base_url.starts_with("http://localhost");
            assert_eq!(preset.key_env().is_none(), local, "{}", preset.name);
            assert!(Preset::named(preset.name).is_some());
        }
        assert!(Preset::named("none").is_none());
    }

    #[test]
    fn a_fresh_file_takes_a_preset_and_keeps_every_comment() {
        let fresh = Config::default_file();
        for preset in PRESETS {
            let merged = preset.merge(fresh).unwrap().unwrap();
            for line in fresh.lines().filter(|line| *line != "model = \"reflex\"") {
                assert!(merged.contains(line), "{line}");
            }
            assert_eq!(Config::parse(merged.as_bytes()).unwrap(), Config::parse(preset.text().as_bytes()).unwrap());
            assert_eq!(preset.merge(&merged), Ok(None), "a second time changes nothing");
        }
    }

    #[test]
    fn settings_of_the_file_stay() {
        let text = "# mine\r\n[limits]\r\nmax_tasks = 7 # few\r\n[exec.mounts]\r\n\"/a\" = \"/srv\"";
        let merged = PRESETS.iter().find(|preset| preset.name == "ollama").unwrap().merge(text).unwrap().unwrap();
        assert!(
            merged.starts_with("model = \"ollama:qwen3:8b\"\n# mine\r\n[limits]\r\nmax_tasks = 7 # few\r\n"),
            "{merged}"
        );
        let config = Config::parse(merged.as_bytes()).unwrap();
        assert_eq!((config.limits.max_tasks, config.mounts.len(), config.providers.len()), (7, 1, 1));
    }

    #[test]
    fn what_somebody_decided_is_not_overwritten() {
        let provider = "[providers.a]\nkind = \"openai\"\nbase_url = \"http://a/v1\"\n";
        for (text, said) in [
            ("model = \"scripted:a\"\n", "it has a model already, \"scripted:a\""),
            (provider, "it has a provider already, [providers.a]"),
            ("[model_settings.reflex]\ncontext_budget = 2_000\n", "it has model settings already"),
            ("providers = {}\n", "its form leaves no place for it"),
        ] {
            assert_eq!(PRESETS[0].merge(text), Err(NotMerged::Decided(said.to_owned())), "{text}");
        }
        assert!(matches!(PRESETS[0].merge("modle = 1"), Err(NotMerged::Invalid(problems)) if problems.len() == 1));
    }
}
