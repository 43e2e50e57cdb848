//! A model that replays a file, for tests and scenarios: everything else in the run is real.
//!
//! The file is JSON lines, or TOML with one `[[call]]` for each answer:
//!
//! ```toml
//! [[call]]
//! role = "planner"
//! expect_contains = "weather.csv"        # must be in the prompt; without it, any prompt is accepted
//! reply = '{"goal": "…", "tasks": […]}'
//! usage = { input_tokens = 900, output_tokens = 80 }   # left out, the call is free
//!
//! [[call]]
//! role = "actor"
//! calls = [{ name = "exec", args = { command = "ls" } }]   # tools that the model wants called
//! ```

use std::borrow::Cow;
use std::fs;
use std::path::Path;
use std::sync::{Mutex, PoisonError};

use serde::Deserialize;

use super::{Completing, Completion, Image, LlmError, Model, Request, Sink, Stop, Turn};
use kiso_base::role::Role;
use kiso_plan::call::ToolCall;
use kiso_plan::limits::Usage;

/// Returns the answers in the order of the file, each to the role that it names.
#[derive(Debug)]
pub struct ScriptedModel {
    name: String,
    calls: Vec<ScriptedCall>,
    /// Number of answers that were returned.
    given: Mutex<usize>,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
struct ScriptedCall {
    role: Role,
    expect_contains: Option<String>,
    #[serde(default)]
    reply: String,
    /// Tool calls of the model, with their arguments.
    #[serde(default)]
    calls: Vec<ScriptedToolCall>,
    #[serde(default)]
    usage: Usage,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
struct ScriptedToolCall {
    name: String,
    /// An object, or a string for invalid JSON.
    #[serde(default)]
    args: serde_json::Value,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Script {
    #[serde(default)]
    call: Vec<ScriptedCall>,
}

impl ScriptedModel {
    /// Loads a script: TOML if the name ends with `.toml`, otherwise JSON lines.
    pub fn load(path: &Path) -> Result<Self, LlmError> {
        let text = fs::read_to_string(path)
            .map_err(|error| LlmError::Script(format!("failed to read the script {}: {error}", path.display())))?;
        Self::parse(&path.display().to_string(), &text)
    }

    /// Parses the script `text`; errors call it `file`.
    pub fn parse(file: &str, text: &str) -> Result<Self, LlmError> {
        let calls = if file.ends_with(".toml") {
            let script: Script =
                toml::from_str(text).map_err(|error| LlmError::Script(format!("script {file}: {error}")))?;
            script.call
        } else {
            let lines = text.lines().zip(1..).filter(|(line, _)| !line.trim().is_empty());
            let calls = lines.map(|(line, number)| {
                serde_json::from_str(line)
                    .map_err(|error| LlmError::Script(format!("script {file}, line {number}: {error}")))
            });
            calls.collect::<Result<_, _>>()?
        };
        Ok(Self { name: format!("scripted:{file}"), calls, given: Mutex::new(0) })
    }

    /// Number of answers that have not been requested.
    pub fn remaining(&self) -> usize {
        self.calls.len() - *self.given.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn answer(&self, request: &Request) -> Result<Completion, LlmError> {
        let mut given = self.given.lock().unwrap_or_else(PoisonError::into_inner);
        let script = self.name.trim_start_matches("scripted:");
        let (role, number) = (request.role, *given + 1);
        let Some(call) = self.calls.get(*given) else {
            let all = self.calls.len();
            return Err(LlmError::Script(format!(
                "script {script} is exhausted: it has {all} answers, and call {number} is for the {role}"
            )));
        };
        if call.role != role {
            return Err(LlmError::Script(format!(
                "script {script}: answer {number} is for the {}, but the {role} was called",
                call.role
            )));
        }
        if let Some(part) = &call.expect_contains
            && !request.user.contains(part)
            && !request.system.contains(part)
            && !request.turns.iter().any(|turn| turn_text(turn).contains(part))
        {
            return Err(LlmError::Script(format!(
                "script {script}: call {number} expects {part:?} in the prompt of the {role}, and it is not there"
            )));
        }
        *given += 1;
        let calls: Vec<_> = (1..).zip(&call.calls).map(|(n, wanted)| wanted.call(number, n)).collect();
        let stop = if calls.is_empty() { Stop::End } else { Stop::Calls };
        let (text, model) = (call.reply.clone(), self.name.clone());
        Ok(Completion { text, calls, stop, usage: call.usage, model, ..Completion::default() })
    }
}

/// The text of a turn.
fn turn_text(turn: &Turn) -> Cow<'_, str> {
    match turn {
        Turn::User(text) | Turn::Note(text) | Turn::Assistant { text, .. } | Turn::Tool { text, .. } => text.into(),
        Turn::Pictures(images) => images.iter().map(Image::caption).collect::<Vec<_>>().join("\n").into(),
    }
}

impl ScriptedToolCall {
    fn call(&self, answer: usize, number: usize) -> ToolCall {
        let args = match &self.args {
            serde_json::Value::String(text) => text.clone(),
            serde_json::Value::Null => "{}".to_owned(),
            args => args.to_string(),
        };
        ToolCall::new(format!("call_{answer}_{number}"), self.name.as_str(), args)
    }
}

impl Model for ScriptedModel {
    fn name(&self) -> &str {
        &self.name
    }

    fn complete<'a>(&'a self, request: &'a Request, sink: &'a mut dyn Sink) -> Completing<'a> {
        Box::pin(async move {
            let completion = self.answer(request)?;
            sink.text(&completion.text);
            Ok(completion)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(role: Role, user: &str) -> Request {
        Request::new(role, "You plan.".to_owned(), user.to_owned())
    }

    async fn ask(model: &ScriptedModel, role: Role, user: &str) -> Result<String, String> {
        let mut streamed = String::new();
        let request = request(role, user);
        let result = model.complete(&request, &mut |piece: &str| streamed.push_str(piece)).await;
        result.map(|completion| assert_eq!(completion.text, streamed)).map_err(|error| error.to_string())?;
        Ok(streamed)
    }

    #[tokio::test(flavor = "current_thread")]
    async fn answers_come_in_order_and_only_to_their_role() {
        let toml = r#"
            [[call]]
            role = "planner"
            expect_contains = "sea.csv"
            reply = "one"
            usage = { input_tokens = 3, output_tokens = 4 }
            [[call]]
            role = "worker"
            reply = "two"
        "#;
        let lines = "{\"role\": \"planner\", \"expect_contains\": \"sea.csv\", \"reply\": \"one\"}\n\n\
                     {\"role\": \"worker\", \"reply\": \"two\"}\n";
        for model in [ScriptedModel::parse("a.toml", toml).unwrap(), ScriptedModel::parse("a.jsonl", lines).unwrap()] {
            let missing = ask(&model, Role::Planner, "plot").await.unwrap_err();
            assert!(missing.contains("call 1 expects \"sea.csv\" in the prompt of the planner"), "{missing}");
            assert_eq!(ask(&model, Role::Planner, "plot sea.csv").await.as_deref(), Ok("one"));
            let other = ask(&model, Role::Reviewer, "").await.unwrap_err();
            assert!(other.contains("answer 2 is for the worker, but the reviewer was called"), "{other}");
            assert_eq!((ask(&model, Role::Worker, "").await.as_deref(), model.remaining()), (Ok("two"), 0));
            let over = ask(&model, Role::Worker, "").await.unwrap_err();
            assert!(over.contains("is exhausted: it has 2 answers, and call 3 is for the worker"), "{over}");
        }
    }

    #[test]
    fn a_broken_script_names_the_place() {
        let error = |file, text| ScriptedModel::parse(file, text).unwrap_err().to_string();
        assert!(error("a.jsonl", "\n{\"role\": \"oracle\"}").contains("script a.jsonl, line 2: unknown variant"));
        assert!(error("a.toml", "[[call]]\nrole = 1").contains("script a.toml: "));
        assert!(error("a.jsonl", "{\"role\": \"worker\", \"reply\": \"x\", \"y\": 1}").contains("unknown field"));
        assert!(ScriptedModel::load(Path::new("/nowhere.toml")).unwrap_err().to_string().contains("failed to read"));
    }
}
