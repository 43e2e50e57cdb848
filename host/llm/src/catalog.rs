//! The models that a provider lists at `GET /models`.

use std::time::Duration;

use serde_json::Value;
use tokio::time::Instant;

use super::LlmError;
use super::endpoint::Endpoint;
use super::http::{KeyHeader, Wire};
use kiso_base::config::ProviderKind;

/// Maximum bytes of a list. Providers with hundreds of models describe each in a few thousand bytes.
const MAX_LIST: usize = 8 << 20;

/// Maximum models of a list; a person chooses one of them.
const MAX_MODELS: usize = 2_000;

/// Maximum characters of a model's name.
pub const MAX_NAME: usize = 200;

/// The timeout for the list: a person waits for it.
const PATIENCE: Duration = Duration::from_secs(20);

/// Parts of names of models that do not answer messages.
const OTHERS: [&str; 11] =
    ["embed", "whisper", "tts", "dall-e", "moderation", "transcribe", "rerank", "realtime", "-image", "imagen", "sora"];

/// A model of a provider.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OfferedModel {
    /// The name in requests.
    pub name: String,
    /// Tokens of prompt and answer together, if the provider lists them.
    pub context: Option<u64>,
}

/// Requests the provider's models. Models whose names show that they only embed, speak or draw are left out. `endpoint.model` is
/// not used.
pub async fn offered(kind: ProviderKind, endpoint: Endpoint) -> Result<Vec<OfferedModel>, LlmError> {
    let wire = match kind {
        ProviderKind::OpenAi => Wire::new(endpoint, "/models", KeyHeader::Bearer)?,
        ProviderKind::Anthropic => {
            let path = if endpoint.base_url.contains('?') { "/models" } else { "/models?limit=1000" };
            let mut wire = Wire::new(endpoint, path, KeyHeader::Named("x-api-key"))?;
            wire.header("anthropic-version", super::anthropic::VERSION);
            wire
        }
    };
    let list = wire.get(MAX_LIST, Instant::now() + PATIENCE).await?;
    let Some(listed) = ["data", "models"].iter().find_map(|name| list[*name].as_array()).or(list.as_array()) else {
        return Err(wire.unusable("its answer is not a list of models; its base_url may lack a part such as /v1"));
    };
    let mut models: Vec<OfferedModel> = Vec::new();
    for model in listed.iter().filter_map(of_entry) {
        if models.len() == MAX_MODELS {
            break;
        }
        if !models.iter().any(|known| known.name == model.name) {
            models.push(model);
        }
    }
    Ok(models)
}

/// Whether a name can be sent as a model's, and used in a model string.
pub fn is_model_name(name: &str) -> bool {
    !name.is_empty() && name.len() <= MAX_NAME && name.bytes().all(|byte| byte.is_ascii_graphic())
}

fn of_entry(entry: &Value) -> Option<OfferedModel> {
    let name = entry["id"].as_str().or_else(|| entry["name"].as_str()).or_else(|| entry.as_str())?;
    // Google lists each name with a folder, and accepts it without.
    let name = name.strip_prefix("models/").unwrap_or(name);
    let lower = name.to_ascii_lowercase();
    if !is_model_name(name) || OTHERS.iter().any(|part| lower.contains(part)) {
        return None;
    }
    let context = ["context_length", "context_window", "max_model_len", "max_context_length", "max_input_tokens"];
    Some(OfferedModel { name: name.to_owned(), context: context.iter().find_map(|field| entry[*field].as_u64()) })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn entries_are_read_as_providers_write_them() {
        for (entry, read) in [
            (json!({"id": "gpt-5-mini", "object": "model"}), Some(("gpt-5-mini", None))),
            (json!({"id": "a/b:free", "context_length": 4096}), Some(("a/b:free", Some(4096)))),
            (json!({"id": "models/gemini-2.5-flash"}), Some(("gemini-2.5-flash", None))),
            (json!({"id": "qwen", "max_model_len": 32768}), Some(("qwen", Some(32768)))),
            (json!("plain"), Some(("plain", None))),
            (json!({"id": "text-embedding-3-small"}), None),
            (json!({"id": "whisper-1"}), None),
            (json!({"id": "with space"}), None),
            (json!({"id": "x\u{1b}[2J"}), None),
            (json!({"id": "x".repeat(201)}), None),
            (json!({"id": 3}), None),
        ] {
            let shown = of_entry(&entry);
            assert_eq!(shown.as_ref().map(|model| (model.name.as_str(), model.context)), read, "{entry}");
        }
    }
}
