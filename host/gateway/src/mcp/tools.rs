//! Calls of tools, and their results.

use serde_json::{Map, Value, json};

use super::catalog::RUN;
use super::progress::ProgressTeller;
use super::resources::uri;
use super::server::{Asker, RunAnswer, RunMessage, Runner, Server};
use crate::attachment::{Attachment, MAX_ATTACHMENTS};
use kiso_agent::tool::builtin::{self, CallContext, MEMORY_SEARCH, ToolFault};
use kiso_agent::tool::{EXEC, ToolAnswer};
use kiso_base::clock::now_ms;
use kiso_base::home::{HomeError, SessionName};
use kiso_base::rpc::{RpcError, text_of};
use kiso_llm::ToolSpec;
use kiso_plan::call::ToolCall;
use kiso_plan::code::ErrorCode;
use kiso_plan::limits::Usage;
use kiso_plan::report::{TaskReport, TaskStatus};
use kiso_sandbox::effect::network::Network;
use kiso_sandbox::skill::Caller;

/// Maximum size of a message in bytes; larger content belongs in a file.
const MAX_MESSAGE: usize = 256 << 10;

pub(super) fn list(server: &Server, params: &Map<String, Value>) -> Result<Value, RpcError> {
    if params.get("cursor").is_some_and(|cursor| !cursor.is_null()) {
        return Err(RpcError::params("`cursor`: the list of tools has one page"));
    }
    let tools: Vec<Value> = server.offered().iter().map(|tool| tool.listed.clone()).collect();
    Ok(json!({ "tools": tools }))
}

/// Returns whether a call may take long enough for its client to want a stream.
pub(super) fn is_run(params: &Map<String, Value>) -> bool {
    params.get("name").is_some_and(|name| name == RUN)
}

/// Calls a tool. A failure, or arguments that do not match the schema, are reported as a result; an unknown tool is a protocol
/// error.
pub(super) async fn call(
    server: &Server,
    params: &Map<String, Value>,
    asker: &Asker,
    runner: &dyn Runner,
    progress: &ProgressTeller,
) -> Result<Value, RpcError> {
    let name = text_of(params, "name")?;
    let args = match params.get("arguments") {
        None | Some(Value::Null) => &Value::Object(Map::new()),
        Some(args @ Value::Object(_)) => args,
        Some(_) => return Err(RpcError::params("`arguments` must be an object")),
    };
    let offered = server.offered();
    let Some(tool) = offered.iter().find(|tool| tool.spec.name == name) else {
        let near = kiso_sandbox::skill::near_names(name, offered.iter().map(|tool| tool.spec.name.as_str()));
        let hint = near.first().map_or("tools/list has all of them".to_owned(), |near| format!("near: {near}"));
        let name: String = name.chars().take(64).collect();
        return Err(RpcError::params(format!("there is no tool {name:?}; {hint}")));
    };
    let called = match name {
        RUN => run(args, asker, runner, progress).await.map(|answer| told_run(&answer, &asker.session)),
        _ => call_tool(server, &tool.spec, args, asker).await?.map(|called| match called {
            ToolAnswer::Text(text) => json!({ "content": [{ "type": "text", "text": text }] }),
            ToolAnswer::Task(report) => told_task(&report, &asker.session, name == EXEC),
        }),
    };
    let mut told = called.unwrap_or_else(|fault| failed(&fault));
    if name != MEMORY_SEARCH {
        for waiting in waiting(server, asker).await {
            add_text(&mut told, waiting);
        }
    }
    Ok(told)
}

/// Adds a text to the result of a call.
pub(super) fn add_text(told: &mut Value, text: String) {
    if let Some(content) = told["content"].as_array_mut() {
        content.push(json!({ "type": "text", "text": text }));
    }
}

/// Returns one sentence for each folder of the session with pending changes.
async fn waiting(server: &Server, asker: &Asker) -> Vec<String> {
    let (drive, session) = (server.drive().newest(), &asker.session);
    if drive.home.folders(session).map_or(true, |folders| folders.is_empty()) {
        return Vec::new();
    }
    // If a run has started in the meantime, it reports the changes itself.
    let Ok(_hold) = server.holds().take(&drive.home, session).await else { return Vec::new() };
    let waiting = drive.waiting_changes(session, asker.caller).await;
    let sentence = |(at, changes): (String, usize)| {
        let changes = if changes == 1 { "1 change".to_owned() } else { format!("{changes} changes") };
        format!("{changes} to {at} waiting: `kiso diff --session {session}` shows them, with --accept it applies them.")
    };
    waiting.into_iter().map(sentence).collect()
}

async fn run(
    args: &Value,
    asker: &Asker,
    runner: &dyn Runner,
    progress: &ProgressTeller,
) -> Result<RunAnswer, ToolFault> {
    let wrong = |message: &str| ToolFault {
        code: ErrorCode::BadArgs,
        message: message.to_owned(),
        hint: Some("call it again with {\"message\": \"…\"}".to_owned()),
    };
    let known = |name: &String| name == "message" || name == "files";
    let only = args.as_object().filter(|args| args.keys().all(known)).and_then(|args| args.get("message"));
    let Some(message) = only.and_then(Value::as_str).map(str::trim).filter(|message| !message.is_empty()) else {
        return Err(wrong("run takes message, a text that is not empty, and may take files"));
    };
    if message.len() > MAX_MESSAGE {
        return Err(wrong("the message has more than 256 KiB; put the text into a file in /work and name it"));
    }
    let files = files(&args["files"]).map_err(|why| wrong(&why))?;
    runner.run(asker, RunMessage { text: message.to_owned(), files }, progress).await
}

/// Decodes the files of a message.
fn files(given: &Value) -> Result<Vec<Attachment>, String> {
    let items = match given {
        Value::Null => return Ok(Vec::new()),
        Value::Array(items) if items.len() <= MAX_ATTACHMENTS => items,
        Value::Array(_) => return Err(format!("a message has at most {MAX_ATTACHMENTS} files")),
        _ => return Err("`files` is a list".to_owned()),
    };
    let file = |item: &Value| {
        let data = item["data"].as_str().ok_or("a file has `data`: base64, or a data URL")?;
        let file = match item["name"].as_str() {
            None if data.starts_with("data:") => Attachment::of_data_url(data, "file"),
            name => Attachment::file(data, name),
        };
        file.map_err(|error| error.message)
    };
    items.iter().map(file).collect()
}

async fn call_tool(
    server: &Server,
    spec: &ToolSpec,
    args: &Value,
    asker: &Asker,
) -> Result<Result<ToolAnswer, ToolFault>, RpcError> {
    let drive = server.drive().newest();
    // Command lines have their own limit.
    let _place = match spec.name == EXEC || spec.name == MEMORY_SEARCH {
        true => None,
        false => Some(server.admission().enter(&spec.name).await),
    };
    let session = &asker.session;
    let known = {
        let of = session.clone();
        drive.store.read(move |view| view.has_session(&of)).await
    };
    if !known.map_err(|error| RpcError::internal(&error))? {
        // Creates the session, so that files that the tool leaves in its workspace can be found and deleted.
        let of = session.clone();
        if let Err(error) = drive.store.write(move |tx| tx.open_session(&of, now_ms())).await {
            return Ok(Err(ToolFault { code: ErrorCode::Unavailable, message: error.to_string(), hint: None }));
        }
    }
    let _hold = match server.holds().take(&drive.home, session).await {
        Ok(hold) => hold,
        Err(HomeError::Busy { .. }) => {
            return Ok(Err(ToolFault {
                code: ErrorCode::Busy,
                message: format!("a run is working in the session {session}"),
                hint: Some("call it again when it has finished, or work in another session".to_owned()),
            }));
        }
        Err(error) => return Err(RpcError::internal(&error)),
    };
    let secrets = drive.secrets_with(session, server.secrets().clone()).await;
    let secrets = secrets.map_err(|error| RpcError::internal(&error))?;
    let call = ToolCall::new("", spec.name.as_str(), args.to_string());
    let mut at = CallContext {
        context_budget: 0,
        label: Default::default(),
        read: Default::default(),
        session: session.clone(),
        run: None,
        subagent: false,
        caller: asker.caller,
        call: (0, 0),
        meanings: Vec::new(),
        result_tokens: usize::MAX,
    };
    if let Some(question) = builtin::question(&call) {
        let meaning = drive.meaning(&question, &secrets, Some(session), None, Usage::default()).await;
        if let Some(meaning) = meaning.map_err(|error| RpcError::internal(&error))? {
            at.meanings.push((question, meaning));
        }
    }
    let network = Network::by_hand(&drive.store, &drive.config, session, asker.caller).await;
    let network = network.map_err(|error| RpcError::internal(&error))?;
    let caller = Caller { network: Some(&network), ..Caller::by_hand(session, &secrets) };
    let called = drive.tools.perform(&call, std::slice::from_ref(spec), asker.caller, caller, &at, None).await;
    Ok(match called {
        Ok(ToolAnswer::Text(text)) => Ok(ToolAnswer::Text(secrets.redact(&text))),
        Err(fault) => Err(ToolFault { message: secrets.redact(&fault.message), ..fault }),
        task => task,
    })
}

fn told_task(report: &TaskReport, session: &SessionName, is_exec: bool) -> Value {
    let mut text = match &report.data {
        Some(data) if report.text.is_empty() => data.to_string(),
        _ => report.text.clone(),
    };
    if is_exec {
        if !report.stderr.is_empty() {
            text.push_str(&format!("\n[standard error]\n{}", report.stderr));
        }
        if let Some(code) = report.exit_code.filter(|code| *code != 0) {
            text.push_str(&format!("\n[exit code {code}]"));
        }
    }
    if let Some(error) = &report.error {
        text = if text.is_empty() { error.message.clone() } else { format!("{}\n{text}", error.message) };
    }
    let mut content = vec![json!({ "type": "text", "text": text })];
    content.extend(report.files.iter().map(|file| {
        let mut link = json!({
            "type": "resource_link", "uri": uri(session, &file.path), "name": file.path,
            "mimeType": file.media_type, "size": file.bytes,
        });
        if let Some(published) = &file.link {
            link["description"] = json!(format!("published as {published}"));
        }
        link
    }));
    let mut told = json!({ "content": content });
    match (is_exec, &report.data) {
        (true, _) => {
            if let Some(code) = report.exit_code {
                told["structuredContent"] =
                    json!({ "exit_code": code, "stdout": report.text, "stderr": report.stderr });
            }
        }
        // The older era allows only objects.
        (false, Some(data @ Value::Object(_))) => told["structuredContent"] = data.clone(),
        (false, Some(data)) => told["structuredContent"] = json!({ "data": data }),
        (false, None) => {}
    }
    if report.status != TaskStatus::Done {
        told["isError"] = json!(true);
    }
    told
}

fn told_run(answer: &RunAnswer, session: &SessionName) -> Value {
    let mut told = json!({
        "content": [{ "type": "text", "text": answer.text }],
        "structuredContent": { "status": answer.status, "session": session, "run": answer.run },
    });
    if answer.status != "done" {
        told["isError"] = json!(true);
    }
    told
}

fn failed(fault: &ToolFault) -> Value {
    json!({ "content": [{ "type": "text", "text": fault.to_string() }], "isError": true })
}
