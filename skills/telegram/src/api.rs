//! Calls of the Bot API: requests in JSON or, with a file, in parts; answers with `ok`, a result or what is wrong.

use crate::{Config, Failure, File, failure};
use channel::head;
use channel::http::Method;
use channel::http::{Request, Response, encoded};
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};

/// Bytes of an answer.
const MAX_ANSWER: usize = 8 << 20;

/// Bytes of an attachment.
const MAX_FILE: usize = 8 << 20;

/// The fields of an answer, whatever its status.
#[derive(Deserialize)]
struct Answer {
    #[serde(default)]
    ok: bool,
    result: Option<Box<RawValue>>,
    #[serde(default)]
    description: String,
    #[serde(default)]
    parameters: Parameters,
}

#[derive(Default, Deserialize)]
struct Parameters {
    retry_after: Option<u32>,
}

#[derive(Deserialize)]
struct Path {
    file_path: Option<String>,
}

/// Calls a method with arguments.
pub fn call(config: &Config, method: &str, arguments: &Value) -> Result<Box<RawValue>, Failure> {
    post(config, method, "application/json", arguments.to_string().as_bytes())
}

/// Calls a method that sends a file.
pub fn upload(config: &Config, method: &str, field: &str, chat: i64, file: &File) -> Result<(), Failure> {
    let boundary = boundary(&file.content);
    let name: String =
        file.name.chars().map(|c| if c.is_control() || matches!(c, '"' | '\\' | '/') { '_' } else { c }).collect();
    let media_type: String = file.media_type.chars().filter(char::is_ascii_graphic).collect();
    let head = format!(
        "--{boundary}\r\ncontent-disposition: form-data; name=\"chat_id\"\r\n\r\n{chat}\r\n--{boundary}\r\n\
         content-disposition: form-data; name=\"{field}\"; filename=\"{name}\"\r\ncontent-type: {media_type}\r\n\r\n"
    );
    let tail = format!("\r\n--{boundary}--\r\n");
    let body = [head.as_bytes(), &file.content, tail.as_bytes()].concat();
    post(config, method, &format!("multipart/form-data; boundary={boundary}"), &body).map(drop)
}

/// A line that does not stand in the file: who made it may know which one is tried first.
fn boundary(content: &[u8]) -> String {
    let stands = |boundary: &String| content.windows(boundary.len()).any(|window| window == boundary.as_bytes());
    let mut boundaries = (0_u64..).map(|number| format!("kiso-{number:016x}"));
    boundaries.find(|boundary| !stands(boundary)).expect("a file has no end of them")
}

/// The content of a file of which a message has the id.
pub fn download(config: &Config, file: &str) -> Result<Vec<u8>, Failure> {
    let gone = || failure("gone", "Telegram does not have the file any more, or not over HTTP");
    let found = call(config, "getFile", &json!({ "file_id": file })).map_err(|mut failure| {
        if failure.message.contains("file is too big") {
            failure.code = "too-large".to_owned();
        } else if failure.message.contains("temporarily unavailable") {
            failure.code = "unavailable".to_owned();
        } else if failure.code == "failed" {
            failure.code = "gone".to_owned();
        }
        failure
    })?;
    let path = serde_json::from_str::<Path>(found.get()).ok().and_then(|found| found.file_path).ok_or_else(gone)?;
    let segments: Vec<&str> = path.split('/').collect();
    // A server in local mode names a file of its own machine.
    if segments.iter().any(|segment| matches!(*segment, "" | "." | "..")) {
        return Err(gone());
    }
    let path: Vec<String> = segments.into_iter().map(encoded).collect();
    let url = format!("{}/file/bot$TOKEN/{}", config.url, path.join("/"));
    let asked = Request { method: Method::Get, url: &url, headers: &[], body: &[], max_bytes: MAX_FILE };
    let answer = asked.send()?;
    match answer.status {
        200 => Ok(answer.body),
        404 => Err(gone()),
        _ => Err(refusal(&answer, None)),
    }
}

fn post(config: &Config, method: &str, content_type: &str, body: &[u8]) -> Result<Box<RawValue>, Failure> {
    let url = format!("{}/bot$TOKEN/{method}", config.url);
    let headers = [("content-type", content_type)];
    let asked = Request { method: Method::Post, url: &url, headers: &headers, body, max_bytes: MAX_ANSWER };
    let response = asked.send()?;
    let answer = serde_json::from_slice::<Answer>(&response.body).ok();
    match answer {
        Some(Answer { ok: true, result: Some(result), .. }) if response.status == 200 => Ok(result),
        answer => Err(refusal(&response, answer.as_ref())),
    }
}

/// Turns an answer without success into a failure.
fn refusal(response: &Response, answer: Option<&Answer>) -> Failure {
    let said = match answer {
        Some(answer) if !answer.description.is_empty() => answer.description.clone(),
        _ => String::from_utf8_lossy(&response.body).into_owned(),
    };
    let says = |what: &str| said.contains(what);
    let (code, hint) = match response.status {
        401 => ("unauthorized", ""),
        // An address without a valid token does not exist.
        404 => ("unauthorized", "; no bot has this token, or the url is not that of the Bot API"),
        403 => ("gone", ""),
        // A chat that moved or was never there.
        400 if says("chat not found") || says("user is deactivated") || says("PEER_ID_INVALID") => ("gone", ""),
        400 => ("failed", ""),
        409 if says("webhook") => ("bad-config", "; the bot has a webhook, and gives messages to nobody else"),
        409 => ("bad-config", "; another program receives this bot's messages, and each goes to one of the two"),
        413 => ("too-large", ""),
        429 => ("rate-limited", ""),
        _ => ("unavailable", ""),
    };
    let message = format!("Telegram answered {}: {}{hint}", response.status, head(said.trim(), 300));
    let parameters = answer.map(|answer| &answer.parameters);
    let retry_after_s = parameters.and_then(|parameters| parameters.retry_after).or(response.retry_after_s);
    Failure { retry_after_s: retry_after_s.filter(|_| response.status >= 429), ..failure(code, message) }
}
