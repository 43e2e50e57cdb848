//! The list of tools for clients.

use serde_json::{Value, json};

use crate::attachment::MAX_ATTACHMENTS;
use kiso_agent::tool::EXEC;
use kiso_agent::tool::builtin::MEMORY_SEARCH;
use kiso_llm::ToolSpec;

/// The tool that sends a message to kiso.
pub(super) const RUN: &str = "run";

/// A tool with its specification for calls and its entry in the list.
#[derive(Debug)]
pub(super) struct OfferedTool {
    pub spec: ToolSpec,
    pub listed: Value,
}

/// Returns the list of tools. The tool `run` replaces a skill of the same name.
pub(super) fn offered(specs: Vec<ToolSpec>) -> Vec<OfferedTool> {
    let run = ToolSpec {
        name: RUN.to_owned(),
        description:
            "Hand a task to kiso in plain words. It makes a plan, runs it with the tools of this list, and answers. \
            This may take minutes; progress is told on the way."
                .to_owned(),
        parameters: json!({
            "type": "object",
            "properties": {
                "message": { "type": "string", "minLength": 1, "description": "what is to be done" },
                "files": {
                    "type": "array",
                    "maxItems": MAX_ATTACHMENTS,
                    "description": "pictures, documents and recordings that come with the message",
                    "items": {
                        "type": "object",
                        "properties": {
                            "data": { "type": "string", "description": "the file in base64, or a data URL" },
                            "name": { "type": "string", "description": "such as photo.jpg; a data URL of an image needs none" },
                        },
                        "required": ["data"],
                        "additionalProperties": false,
                    },
                },
            },
            "required": ["message"],
            "additionalProperties": false,
        }),
    };
    let others = specs.into_iter().filter(|spec| spec.name != RUN);
    std::iter::once(run).chain(others).map(|spec| OfferedTool { listed: listed(&spec), spec }).collect()
}

fn listed(spec: &ToolSpec) -> Value {
    let mut tool = json!({ "name": spec.name, "description": spec.description, "inputSchema": spec.parameters });
    match spec.name.as_str() {
        EXEC => tool["outputSchema"] = exec_output(),
        RUN => tool["outputSchema"] = run_output(),
        MEMORY_SEARCH => tool["annotations"] = json!({ "readOnlyHint": true, "openWorldHint": false }),
        _ => {}
    }
    tool
}

fn exec_output() -> Value {
    json!({
        "type": "object",
        "properties": {
            "exit_code": { "type": "integer" },
            "stdout": { "type": "string" },
            "stderr": { "type": "string" },
        },
        "required": ["exit_code", "stdout", "stderr"],
    })
}

fn run_output() -> Value {
    json!({
        "type": "object",
        "properties": {
            "status": { "type": "string", "enum": ["done", "failed", "cancelled", "limit"] },
            "session": { "type": "string" },
            "run": { "type": ["string", "null"] },
        },
        "required": ["status", "session", "run"],
    })
}
