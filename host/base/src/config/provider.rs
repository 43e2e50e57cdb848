//! `[providers.NAME]`: where to reach models. The file never contains a key, only the name of the variable that holds it.
//!
//! ```toml
//! [providers.openai]
//! kind = "openai"
//! base_url = "https://api.openai.com/v1"
//! key_env = "OPENAI_API_KEY"
//! ```

use super::fields::{NAME_RULE, TableFields, is_name};
use super::key::{Effect, Kind, NamedTable, ValueError, keys, words};
use serde::Serialize;
use std::borrow::Cow;
use toml::Spanned;
use toml::de::DeValue;

/// One `[providers.NAME]`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Provider {
    /// The part of a model string before the colon.
    pub name: String,
    pub kind: ProviderKind,
    /// Without a trailing slash.
    pub base_url: String,
    /// The environment variable that holds the key, or the name of a connected provider's key; `None` for a server that needs
    /// none.
    pub key_env: Option<String>,
    /// Maximum size of a response in MiB.
    pub max_response_mib: u64,
    /// Whether an administrator connected it: then it is not in the file, and its key is in the store.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub connected: bool,
}

/// The API format of a provider.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum ProviderKind {
    /// Chat completions, which most servers support.
    OpenAi,
    /// Anthropic's Messages.
    Anthropic,
}

impl ProviderKind {
    const NAMES: [(&'static str, Self); 2] = [("openai", Self::OpenAi), ("anthropic", Self::Anthropic)];

    /// Returns the kind with this word in `config.toml`.
    pub fn named(word: &str) -> Option<Self> {
        Self::NAMES.into_iter().find(|(name, _)| *name == word).map(|(_, kind)| kind)
    }

    /// Its word in `config.toml`.
    pub fn name(self) -> &'static str {
        match self {
            Self::OpenAi => "openai",
            Self::Anthropic => "anthropic",
        }
    }
}

/// Whether to use an optional ability of a model.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum AbilityUse {
    /// Probed with the first call.
    #[default]
    Probe,
    Yes,
    No,
}

impl AbilityUse {
    pub(super) const NAMES: [(&'static str, Self); 3] = [("probe", Self::Probe), ("yes", Self::Yes), ("no", Self::No)];
}

/// How the commented file of a fresh home shows providers.
const EXAMPLE: &str = "
# Where to reach models; `kiso config preset NAME` prints ready ones for openrouter, openai, anthropic, ollama, llama.cpp
# and vllm. Keys stay in the environment: key_env names the variable. max_response_mib (16) limits a response.
# [providers.openai]
# kind = \"openai\"
# base_url = \"https://api.openai.com/v1\"
# key_env = \"OPENAI_API_KEY\"
";

/// The keys and the documentation of these tables.
#[rustfmt::skip]
pub(super) const TABLE: NamedTable = NamedTable {
    name: "providers",
    heading: "[providers.NAME]",
    doc: "Where to reach models. The first provider in the file serves model strings without a prefix. `kiso config preset NAME` prints ready ones; see [models.md](models.md).",
    example: EXAMPLE,
    after: "fallbacks",
    effect: Effect::NextRun,
    id: "name",
    keys: &keys(Effect::NextRun, [
        ("kind", Kind::Word("", &words(ProviderKind::NAMES)), "API format: chat completions, which most servers use, or Anthropic's Messages."),
        ("base_url", Kind::Characters(MAX_URL, true), "URL up to the part that all calls have in common."),
        ("key_env", Kind::Variable, "Environment variable with its key; without it, no key is sent."),
        ("max_response_mib", Kind::Int(MAX_RESPONSE_MIB, 1, 4_096), "Size in MiB of a response."),
    ]),
};

/// Reserved names: models that need no provider.
pub(super) const TAKEN: [&str; 2] = ["reflex", "scripted"];

/// An answer is text; this is the size of a thousand long ones.
pub(super) const MAX_RESPONSE_MIB: u64 = 16;

/// Maximum characters of an address.
pub(super) const MAX_URL: usize = 500;

/// Reads one table.
pub(super) fn read<'a>(
    name: &'a Spanned<Cow<'a, str>>,
    value: &'a Spanned<DeValue<'a>>,
) -> Result<Provider, Vec<ValueError>> {
    let text = name.get_ref().as_ref();
    if !is_name(text) {
        return Err(vec![(name.span(), format!("providers.{text:?}: a provider's name has {NAME_RULE}"))]);
    }
    if TAKEN.contains(&text) {
        return Err(vec![(name.span(), format!("providers.{text}: {text} is taken; choose another name"))]);
    }
    let mut fields = TableFields::new(&TABLE, format!("providers.{text}"), name.span(), value)?;
    let kind = fields.one_of("kind", &ProviderKind::NAMES);
    if !fields.has("kind") {
        fields.missing("kind", "\"openai\" for every chat-completions server, or \"anthropic\"");
    }
    let base_url = fields.checked("base_url", checked_url);
    if !fields.has("base_url") {
        fields.missing("base_url", "such as \"https://api.openai.com/v1\"");
    }
    let key_env = fields.checked("key_env", variable);
    let max_response_mib = fields.int("max_response_mib");
    fields.finish(|key| {
        is_secret(key).then_some("keys do not belong in this file; name the environment variable with key_env.")
    })?;
    let (Some(kind), Some(base_url)) = (kind, base_url) else { return Err(Vec::new()) };
    Ok(Provider { name: text.to_owned(), kind, base_url, key_env, max_response_mib, connected: false })
}

/// Returns the address without the last slash of its path, or what is wrong with it. The error does not repeat the address, which
/// may contain a password.
pub(super) fn checked_url(url: &str) -> Result<String, &'static str> {
    let rest = url.strip_prefix("https://").or_else(|| url.strip_prefix("http://"));
    let Some(rest) = rest else { return Err("must begin with https:// or http://") };
    if url.contains(|c: char| c.is_whitespace() || c.is_control() || !c.is_ascii()) {
        return Err("must have no spaces and only ASCII characters");
    }
    if url.contains('#') {
        return Err("must end before any #");
    }
    let (base, query) = url.split_once('?').map_or((url, None), |(base, query)| (base, Some(query)));
    if query.is_some_and(|query| query.split('&').any(holds_key)) {
        return Err("must hold no key; name the variable of the key with key_env");
    }
    let host = rest.split(['/', '?']).next().unwrap_or_default();
    if host.contains('@') {
        return Err("must hold no user or password; name the variable of the key with key_env");
    }
    if host.is_empty() || host.starts_with(':') {
        return Err("must name a host, such as \"https://api.openai.com/v1\"");
    }
    let query = query.map(|query| format!("?{query}")).unwrap_or_default();
    Ok(format!("{}{query}", base.trim_end_matches('/')))
}

/// Whether a parameter of an address carries credentials, judging by its name.
fn holds_key(parameter: &str) -> bool {
    let name = parameter.split('=').next().unwrap_or_default().to_ascii_lowercase();
    // A percent-encoded name could be anything.
    name.contains('%')
        || ["key", "token", "sig", "secret", "passw", "auth", "code"].iter().any(|word| name.contains(word))
}

/// Whether a key of this name is meant to put a secret into the file.
pub(super) fn is_secret(key: &str) -> bool {
    ["key", "token", "secret", "password"].iter().any(|word| key.to_ascii_lowercase().contains(word))
}

/// Returns the name of a variable, or why it is invalid.
pub(super) fn variable(text: &str) -> Result<String, &'static str> {
    const IS_KEY: &str = "looks like a key itself, and keys do not belong in this file: put it into the environment, \
                          give the variable's name here, and change the key if others could read this file";
    let starts = ["sk-", "sk_", "gsk_", "ghp_", "xai-", "AIza", "hf_", "r8_", "pk-", "Bearer "];
    // Names of variables have words in capitals, with underscores; keys are long and have digits anywhere.
    let random = text.bytes().any(|b| b.is_ascii_digit())
        && (text.bytes().any(|b| b.is_ascii_lowercase()) || !text.contains('_'));
    if starts.iter().any(|start| text.starts_with(start)) || (random && text.len() >= 20) || text.len() > 64 {
        return Err(IS_KEY);
    }
    let mut bytes = text.bytes();
    let first = bytes.next().is_some_and(|b| b.is_ascii_alphabetic() || b == b'_');
    if first && bytes.all(|b| b.is_ascii_alphanumeric() || b == b'_') {
        return Ok(text.to_owned());
    }
    Err("must be the name of an environment variable, such as \"OPENAI_API_KEY\"")
}

#[cfg(test)]
mod tests {
    use crate::config::{Config, ProviderKind};

    fn problems(text: &str) -> String {
        let problems = Config::parse(text.as_bytes()).unwrap_err();
        problems.iter().map(|problem| format!("{problem}\n")).collect()
    }

    #[test]
    fn providers_keep_the_order_of_the_file() {
        let config = Config::parse(
            b"[providers.zeta]\nkind = \"openai\"\nbase_url = \"http://localhost:8080/v1/\"\n\
              [providers.alpha]\nkind = \"anthropic\"\nbase_url = \"https://api.anthropic.com/v1\"\n\
              key_env = \"ANTHROPIC_API_KEY\"\nmax_response_mib = 2\n",
        )
        .unwrap();
        let [zeta, alpha] = config.providers.as_slice() else { panic!("{:?}", config.providers) };
        assert_eq!((zeta.name.as_str(), zeta.base_url.as_str()), ("zeta", "http://localhost:8080/v1"));
        assert_eq!((zeta.kind, zeta.key_env.as_deref(), zeta.max_response_mib), (ProviderKind::OpenAi, None, 16));
        assert_eq!((alpha.kind, alpha.max_response_mib), (ProviderKind::Anthropic, 2));
        assert_eq!(alpha.key_env.as_deref(), Some("ANTHROPIC_API_KEY"));
    }

    /// Azure expects its version there.
    #[test]
    fn an_address_may_have_a_query() {
        let text =
            "[providers.a]\nkind = \"openai\"\nbase_url = \"https://a.example/openai/?api-version=2024-10-21\"\n";
        let config = Config::parse(text.as_bytes()).unwrap();
        assert_eq!(config.providers[0].base_url, "https://a.example/openai?api-version=2024-10-21");
    }

    #[test]
    fn what_is_wrong_with_a_provider_is_told_at_once_with_its_place() {
        let text =
            "[providers.mine]\nkind = \"open-ai\"\nbase_url = \"ftp://x\"\nkey_evn = \"A\"\nmax_response_mib = 0\n";
        assert_eq!(
            problems(text),
            "2:8: providers.mine.kind must be \"openai\" or \"anthropic\"\n\
             3:12: providers.mine.base_url must begin with https:// or http://\n\
             4:1: unknown key providers.mine.key_evn: keys do not belong in this file; name the environment variable \
             with key_env. Allowed here: base_url, key_env, kind, max_response_mib\n\
             5:20: providers.mine.max_response_mib = 0 is out of range: 1 to 4096\n"
        );
        let empty = problems("[providers.mine]\n");
        assert!(empty.contains("1:12: [providers.mine] needs kind: ") && empty.contains("needs base_url"), "{empty}");
        for (text, said) in [
            ("[providers.\"a b\"]\n", "1:12: providers.\"a b\": a provider's name has 1 to 32 letters"),
            ("[providers.reflex]\n", "providers.reflex: reflex is taken"),
            ("providers = 3\n", "[providers] must be a table, and this is an integer"),
            ("[providers]\nmine = 3\n", "2:8: [providers.mine] must be a table, and this is an integer"),
            ("[providers.a]\nbase_urll = \"x\"\n", "did you mean base_url?"),
            ("[providers.a]\nbase_url = \"https://u:geheim@x\"\n", "must hold no user or password"),
            ("[providers.a]\nbase_url = \"https://\"\n", "must name a host"),
            ("[providers.a]\nbase_url = \"https://a/v1#geheim\"\n", "must end before any #"),
            ("[providers.a]\nbase_url = \"https://a/v1?x=1&api-KEY=geheim\"\n", "must hold no key"),
            ("[providers.a]\nbase_url = \"https://a/v1?sig=geheim\"\n", "must hold no key"),
            ("[providers.a]\nbase_url = \"https://a/v1?to%6ben=geheim\"\n", "must hold no key"),
            ("[providers.a]\nbase_url = \"https://?a=b\"\n", "must name a host"),
            ("[providers.a]\nbase_url = \"https://a b\"\n", "must have no spaces"),
        ] {
            let told = problems(text);
            assert!(told.contains(said) && !told.contains("geheim"), "{text}: {told}");
        }
    }

    /// A person who pastes a key gets an error that does not repeat the key.
    #[test]
    fn a_key_in_the_place_of_its_variable_is_refused_and_not_repeated() {
        for key in [
            "sk-proj-abcdef",
            "gsk_geheim",
            "AIzaSyGeheim",
            "0123456789abcdef0123456789abcdef",
            "AKIAIOSFODNN7EXAMPLE",
            &"A".repeat(80),
        ] {
            let told = problems(&format!("[providers.a]\nkey_env = \"{key}\"\n"));
            assert!(told.contains("2:11: providers.a.key_env looks like a key itself"), "{told}");
            assert!(!told.contains(key), "{told}");
        }
        let told = problems("[providers.a]\nkey_env = \"my-key\"\n");
        assert!(told.contains("must be the name of an environment variable"), "{told}");
        let told = problems("[providers.a]\napi_key = \"sk-geheim\"\n");
        assert!(told.contains("name the environment variable with key_env") && !told.contains("geheim"), "{told}");
    }
}
