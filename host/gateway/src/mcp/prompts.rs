//! Pills as prompts: a client fills one in and shows the text to its user.

use serde_json::{Map, Value, json};

use super::server::{Asker, Server};
use kiso_agent::tool::pills::Pills;
use kiso_base::rpc::{RpcError, text_of};
use kiso_plan::pill::expand;

/// The argument of every prompt.
const INPUT: &str = "input";

pub(super) async fn list(server: &Server, asker: &Asker) -> Result<Value, RpcError> {
    let pills = pills(server).for_caller(asker.caller).await.map_err(|error| RpcError::internal(&error))?;
    let prompts: Vec<Value> = pills
        .into_iter()
        .map(|pill| {
            let mut prompt = json!({
                "name": pill.name,
                "arguments": [{ "name": INPUT, "description": "what it is about", "required": false }],
            });
            if !pill.description.is_empty() {
                prompt["description"] = json!(pill.description);
            }
            prompt
        })
        .collect();
    Ok(json!({ "prompts": prompts }))
}

pub(super) async fn get(server: &Server, asker: &Asker, params: &Map<String, Value>) -> Result<Value, RpcError> {
    let name = text_of(params, "name")?;
    let arguments = match params.get("arguments") {
        None | Some(Value::Null) => Map::new(),
        Some(Value::Object(arguments)) => arguments.clone(),
        Some(_) => return Err(RpcError::params("`arguments` must be an object")),
    };
    if let Some(odd) = arguments.keys().find(|key| key.as_str() != INPUT) {
        let odd: String = odd.chars().take(64).collect();
        return Err(RpcError::params(format!("a prompt has one argument, `input`; {odd:?} is not one")));
    }
    let input = match arguments.get(INPUT) {
        None => "",
        Some(Value::String(input)) => input,
        Some(_) => return Err(RpcError::params("`input` must be a text")),
    };
    let known = pills(server).for_caller(asker.caller).await.map_err(|error| RpcError::internal(&error))?;
    let Some(pill) = known.iter().find(|pill| pill.name == name) else {
        let name: String = name.chars().take(64).collect();
        return Err(RpcError::params(format!("there is no prompt {name:?}; prompts/list has all of them")));
    };
    let text = expand(&pill.template, input);
    let mut prompt = json!({ "messages": [{ "role": "user", "content": { "type": "text", "text": text } }] });
    if !pill.description.is_empty() {
        prompt["description"] = json!(pill.description);
    }
    Ok(prompt)
}

fn pills(server: &Server) -> Pills {
    Pills::new(&server.drive().newest_config(), &server.drive().store)
}
