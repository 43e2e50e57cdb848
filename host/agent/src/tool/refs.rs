//! Refs in arguments of tools: `ref:KEY` as an argument is replaced by the text, and a command line gets a file with the text.

use super::Tools;
use kiso_base::home::SessionName;
use kiso_plan::code::ErrorCode;
use kiso_plan::plan::Violation;
use kiso_plan::report::TaskError;
use kiso_sandbox::effect::label::LabelId;
use kiso_sandbox::effect::sink::Permit;
use kiso_sandbox::exec::Scratch;
use kiso_store::scratchpad;
use serde_json::Value;

/// Directory with the scratchpad entries that a command line names: `/tmp/ref/KEY`. They are copies that only this command line
/// can access.
const DIR: &str = "/tmp/ref/";

impl Tools {
    /// Returns the arguments with every `ref:KEY` replaced by its text, or an error. The reader gets the texts' labels.
    pub(super) async fn resolved(
        &self,
        session: &SessionName,
        args: Value,
        permit: Option<&Permit>,
    ) -> Result<Value, Vec<Violation>> {
        match scratchpad::resolve(&self.store, session, args).await {
            Ok(Ok((args, label))) => {
                if let Some(permit) = permit {
                    permit.read().join(LabelId::from_label(&label));
                }
                Ok(args)
            }
            Ok(Err(violations)) => Err(violations),
            Err(error) => Err(vec![Violation::new("", error.to_string())]),
        }
    }

    /// Returns a new `/tmp` for a command line, with the entries that it names, or an error.
    pub(super) async fn scratch(
        &self,
        session: &SessionName,
        command: &str,
        permit: Option<&Permit>,
    ) -> Result<Scratch, TaskError> {
        let scratch = self.exec.scratch(session).map_err(|error| TaskError::of_host(error.to_string()))?;
        let keys = named(command);
        let refs = Value::from_iter(keys.iter().map(|key| format!("ref:{key}")));
        let texts = self.resolved(session, refs, permit).await.map_err(|wrong| {
            let wrong: Vec<_> = wrong.into_iter().map(|violation| violation.message).collect();
            TaskError { code: ErrorCode::BadArgs, ..TaskError::of_host(wrong.join("; ")) }
        })?;
        for (key, text) in keys.iter().zip(texts.as_array().into_iter().flatten()) {
            let text = text.as_str().unwrap_or_default();
            let put = scratch.put("ref", key, text);
            put.map_err(|error| TaskError::of_host(format!("failed to write {DIR}{key}: {error}")))?;
        }
        Ok(scratch)
    }
}

/// Returns the keys of files in [`DIR`] that a command line mentions, each once.
fn named(command: &str) -> Vec<&str> {
    let mut keys = Vec::new();
    for (at, _) in command.match_indices(DIR) {
        let rest = &command[at + DIR.len()..];
        let end = rest.find(|c: char| !c.is_ascii_alphanumeric() && !"_-.".contains(c)).unwrap_or(rest.len());
        let key = &rest[..end];
        if scratchpad::check_key(key).is_ok() && !keys.contains(&key) {
            keys.push(key);
        }
    }
    keys
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_line_names_its_files() {
        assert_eq!(named("wc -l /tmp/ref/input-1 '/tmp/ref/tool-2' </tmp/ref/input-1"), ["input-1", "tool-2"]);
        for none in ["ls /tmp/ref/", "cat ref:input-1", "cat /tmp/ref/../x", "cat /tmp/ref/.hidden", ""] {
            assert_eq!(named(none), [""; 0], "{none}");
        }
    }
}
