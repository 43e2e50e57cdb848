//! The text about a skill for models and their providers: the names of its tools, their schemas, a summary and examples.
//!
//! One bad skill breaks the requests of all runs: a provider refuses an invalid name, and a catalog that is too long leaves no
//! room for the message. So this is checked when a skill is installed, and again when it is read, because an older kiso may have
//! accepted it.

pub use kiso_plan::plan::wire_name;

use super::manifest::Manifest;
use serde_json::Value;
use std::collections::HashSet;

/// Bytes of the text about one skill in a prompt. The default context has room for two such skills.
pub(super) const MAX_BYTES: usize = 32 << 10;

/// Longest name of a tool; the strictest provider takes 1 to 64 of `[a-zA-Z0-9_-]`.
const MAX_NAME: usize = 64;

/// Names of built-in tools that a skill could have. The others contain a `_`, which names of skills do not.
const RESERVED: [&str; 2] = ["exec", "scratchpad"];

/// Whether a built-in tool has the name.
pub(super) fn is_reserved(name: &str) -> bool {
    RESERVED.contains(&name)
}

/// Whether a built-in tool may have this name: no skill can have a tool of that name for providers.
pub fn is_kept_free(wire: &str) -> bool {
    RESERVED.contains(&wire) || wire.contains('_') && !wire.contains("__")
}

/// Returns an error, with the way out, if a skill with these tools (name and schema) exceeds a limit.
pub(super) fn check(manifest: &Manifest, tools: &[(String, &Value)]) -> Result<(), String> {
    let mut names = HashSet::new();
    for (name, _) in tools {
        if RESERVED.contains(&name.as_str()) {
            return Err(format!("`{name}` is the name of a built-in tool; --name gives the skill another one"));
        }
        let wire = wire_name(name);
        if let Some(odd) = wire.chars().find(|c| !c.is_ascii_alphanumeric() && !matches!(c, '_' | '-')) {
            let name = brief(name, 80);
            return Err(format!(
                "the name of its tool {name} holds {odd:?}; models can call a-z, A-Z, 0-9, _ and - only"
            ));
        }
        if wire.len() > MAX_NAME {
            let (short, length) = (brief(&wire, 80), wire.len());
            return Err(format!(
                "models would be told its tool as {short}, which is {length} characters long, and they take {MAX_NAME}; \
                 shorten the function's name, or the skill's with --name"
            ));
        }
        if !names.insert(wire) {
            return Err(format!("two of its functions would be the tool {name}"));
        }
    }
    let bytes = bytes(manifest, tools);
    if bytes > MAX_BYTES {
        let largest = tools.iter().map(|(name, schema)| (json_bytes(schema), name)).max();
        let (of_largest, largest) = largest.map_or((0, ""), |(bytes, name)| (bytes, name.as_str()));
        let of_examples: usize = manifest.examples.iter().map(String::len).sum();
        return Err(format!(
            "what models are told of it has {bytes} bytes, and {MAX_BYTES} are the limit for a skill: {} tools, of which the \
             arguments of {largest} take {of_largest}, each with the summary ({}) and the examples ({of_examples}); shorten these, \
             or split the skill",
            tools.len(),
            manifest.summary.len(),
        ));
    }
    Ok(())
}

/// The size of the text about a skill: a prompt contains every tool with the summary and the examples.
pub(super) fn bytes(manifest: &Manifest, tools: &[(String, &Value)]) -> usize {
    let examples: usize = manifest.examples.iter().map(String::len).sum();
    let each = manifest.summary.len() + manifest.category.len() + examples;
    tools.iter().map(|(name, schema)| name.len() + json_bytes(schema) + each).sum()
}

/// The length of a JSON text, without building it.
#[expect(clippy::expect_used, reason = "counting takes any value")]
fn json_bytes(value: &Value) -> usize {
    struct Count(usize);
    impl std::io::Write for Count {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            self.0 += bytes.len();
            Ok(bytes.len())
        }
        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }
    let mut count = Count(0);
    serde_json::to_writer(&mut count, value).expect("counting takes any value");
    count.0
}

/// The beginning of an untrusted text, for a message.
pub(super) fn brief(text: &str, max: usize) -> String {
    match text.char_indices().nth(max) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use kiso_base::home::SkillName;
    use serde_json::json;

    fn refusal(name: &str, tools: &[&str], schema: &Value) -> String {
        let manifest = Manifest::derived(SkillName::parse(name).unwrap(), "Does it".to_owned(), json!({}));
        let tools: Vec<_> = tools.iter().map(|tool| ((*tool).to_owned(), schema)).collect();
        check(&manifest, &tools).err().unwrap_or_default()
    }

    #[test]
    fn names_are_those_that_every_provider_takes() {
        let empty = json!({});
        let long = format!("calc.{}", "x".repeat(59));
        let table: [(&[&str], &str); 7] = [
            (&["calc.add", "calc.sub"], ""),
            (&["calc.i.add"], ""),
            (&[&long[..63]], ""),
            (&["exec"], "built-in tool"),
            (&[&long], "65 characters long, and they take 64"),
            (&["calc.[method]x"], "holds '['"),
            (&["calc.i.f", "calc.i.f"], "two of its functions"),
        ];
        for (tools, expected) in table {
            let message = refusal("calc", tools, &empty);
            assert!(message.contains(expected) && message.is_empty() == expected.is_empty(), "{tools:?}: {message}");
        }
    }

    #[test]
    fn all_tools_together_have_a_limit() {
        let schema = json!({ "enum": ["x".repeat(10_000)] });
        assert_eq!(refusal("calc", &["calc.a", "calc.b", "calc.c"], &schema), "");
        let message = refusal("calc", &["calc.a", "calc.b", "calc.c", "calc.d"], &schema);
        assert!(message.contains("32768") && message.contains("4 tools"), "{message}");
    }
}
