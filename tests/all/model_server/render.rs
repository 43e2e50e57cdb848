//! Encodes replies of a script in either format.

use super::{Call, Counted, Fault, Reply};
use serde_json::{Value, json};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Format {
    OpenAi,
    Anthropic,
}

/// An answer in the order in which it is written.
pub(super) struct Answer {
    pub head: Vec<u8>,
    pub body: Vec<Part>,
}

pub(super) enum Part {
    Bytes(Vec<u8>),
    /// Waits for a release.
    Hold,
    /// Closes the connection.
    Cut,
    /// Repeats the bytes without end.
    Endless(Vec<u8>),
}

impl Answer {
    pub(super) fn json(status: u16, value: &Value) -> Self {
        Self { head: head(status, "application/json", &[]), body: vec![Part::Bytes(value.to_string().into_bytes())] }
    }

    /// An error object that is valid in both formats.
    pub(super) fn error(status: u16, message: &str) -> Self {
        Self::json(status, &json!({ "type": "error", "error": { "type": kind(status), "message": message } }))
    }
}

fn kind(status: u16) -> &'static str {
    match status {
        429 => "rate_limit_error",
        500.. => "api_error",
        _ => "invalid_request_error",
    }
}

fn head(status: u16, kind: &str, headers: &[(&str, &str)]) -> Vec<u8> {
    let more: String = headers.iter().map(|(name, value)| format!("{name}: {value}\r\n")).collect();
    format!("HTTP/1.1 {status} X\r\ncontent-type: {kind}\r\ntransfer-encoding: chunked\r\n{more}\r\n").into_bytes()
}

/// Whether a request asks for JSON by a schema.
pub(super) fn wants_schema(format: Format, body: &Value) -> bool {
    match format {
        Format::OpenAi => body.get("response_format").is_some(),
        Format::Anthropic => body["tool_choice"]["type"] == "tool",
    }
}

/// Encodes `reply` as the response to this request.
pub(super) fn answer(reply: &Reply, format: Format, request: &Value) -> Answer {
    match reply.fault {
        Some(Fault::Status429 { retry_after }) => {
            let mut answer = Answer::error(429, "Too many requests");
            let seconds = retry_after.map(|seconds| seconds.to_string());
            let headers: Vec<_> = seconds.iter().map(|seconds| ("retry-after", seconds.as_str())).collect();
            answer.head = head(429, "application/json", &headers);
            return answer;
        }
        Some(Fault::Status500) => return Answer::error(500, "Internal error"),
        Some(Fault::ErrorBodyIn200) => {
            let error = json!({ "error": { "message": "Upstream failed", "code": 502 } });
            return Answer::json(200, &error);
        }
        Some(Fault::NotStreamed) => return Answer::json(200, &whole(reply, format, request)),
        Some(Fault::CloseUnanswered) => return Answer { head: Vec::new(), body: vec![Part::Cut] },
        _ => {}
    }
    let headers: Vec<_> = reply.headers.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
    let head = head(reply.status.unwrap_or(200), "text/event-stream", &headers);
    if let Some(raw) = &reply.raw {
        let mut parts = vec![Part::Bytes(raw.clone().into_bytes())];
        match reply.fault {
            Some(Fault::CutConnection) => parts.push(Part::Cut),
            Some(Fault::StallMidStream) => parts.push(Part::Hold),
            _ => {}
        }
        return Answer { head, body: cut(parts, reply.chunk_bytes) };
    }
    let events = match format {
        Format::OpenAi => open_ai(reply, request),
        Format::Anthropic => anthropic(reply, request),
    };
    Answer { head, body: cut(faulty(reply.fault, events, format), reply.chunk_bytes) }
}

/// The events of an answer, with its fault.
fn faulty(fault: Option<Fault>, mut events: Vec<String>, format: Format) -> Vec<Part> {
    let half = events.len() / 2;
    if fault == Some(Fault::CommentLines) {
        events.insert(0, ": OPENROUTER PROCESSING\n\n".to_owned());
        events = events.into_iter().flat_map(|event| [event, ":\n: still there\n\n".to_owned()]).collect();
    }
    if fault == Some(Fault::MalformedChunk) {
        events.insert(half, "data: {\"choices\": [{\"del\n\n".to_owned());
    }
    if fault == Some(Fault::ErrorIn200) {
        events = vec![match format {
            Format::OpenAi => event("", &json!({ "error": { "message": "Upstream failed", "code": 502 } })),
            Format::Anthropic => {
                let error = json!({ "type": "overloaded_error", "message": "Upstream failed" });
                event("error", &json!({ "type": "error", "error": error }))
            }
        }];
    }
    if fault == Some(Fault::TruncatedJson) {
        events.truncate(half + 1);
        if let Some(last) = events.last_mut() {
            last.truncate(last.trim_end().len() - 4);
        }
    }
    let mut parts: Vec<Part> = events.into_iter().map(|event| Part::Bytes(event.into_bytes())).collect();
    match fault {
        Some(Fault::SlowFirstToken) => parts.insert(0, Part::Hold),
        Some(Fault::StallMidStream) => parts.insert(half, Part::Hold),
        Some(Fault::Stepped) => {
            let waits = |part: &Part| matches!(part, Part::Bytes(event) if is_text(event));
            parts = parts
                .into_iter()
                .flat_map(|part| waits(&part).then_some(Part::Hold).into_iter().chain([part]))
                .collect();
        }
        Some(Fault::CutConnection) => {
            parts.truncate(half);
            parts.push(Part::Cut);
        }
        Some(Fault::OnlyComments) => parts = vec![Part::Endless(b": PROCESSING\n\n".to_vec())],
        Some(Fault::Endless) => {
            parts.truncate(half);
            // Varied text, because plain repetition would be cut off for another reason.
            let more = (0..64).map(|n| format!("more than {n} words, and none of them was said before; "));
            let more: String = more
                .map(|words| match format {
                    Format::OpenAi => chunk(&json!({ "content": words }), None),
                    Format::Anthropic => delta(0, &json!({ "type": "text_delta", "text": words })),
                })
                .collect();
            parts.push(Part::Endless(more.into_bytes()));
        }
        _ => {}
    }
    parts
}

/// Whether an event is a piece of text, in either format.
fn is_text(event: &[u8]) -> bool {
    let event = String::from_utf8_lossy(event);
    event.contains(r#""delta":{"content":"#) || event.contains(r#""type":"text_delta""#)
}

fn cut(parts: Vec<Part>, size: Option<usize>) -> Vec<Part> {
    let Some(size) = size else { return parts };
    let pieces = parts.into_iter().flat_map(|part| match part {
        Part::Bytes(bytes) => bytes.chunks(size).map(|piece| Part::Bytes(piece.to_vec())).collect(),
        other => vec![other],
    });
    pieces.collect()
}

/// `text` in `count` pieces of about the same length.
fn pieces(text: &str, count: Option<usize>) -> Vec<String> {
    let characters: Vec<char> = text.chars().collect();
    let size = characters.len().div_ceil(count.unwrap_or(3).max(1)).max(1);
    characters.chunks(size).map(|piece| piece.iter().collect()).collect()
}

fn calls(reply: &Reply) -> Vec<(String, String)> {
    if reply.fault == Some(Fault::Empty) {
        return Vec::new();
    }
    let call = |Call { name, args }: &Call| {
        let mut args = match args {
            Value::String(text) => text.clone(),
            Value::Null => "{}".to_owned(),
            args => args.to_string(),
        };
        if reply.fault == Some(Fault::BadArguments) {
            args.pop();
        }
        (if reply.fault == Some(Fault::WrongTool) { "no_such_tool".to_owned() } else { name.clone() }, args)
    };
    reply.calls.iter().map(call).collect()
}

fn text(reply: &Reply) -> &str {
    if reply.fault == Some(Fault::Empty) { "" } else { &reply.text }
}

fn counted(reply: &Reply) -> Counted {
    reply.usage.unwrap_or(Counted { input: 10, output: 5, cached: 0, cost: None })
}

fn id(reply: &Reply, number: usize) -> Option<String> {
    (reply.fault != Some(Fault::MissingIds)).then(|| format!("toolu_{number}"))
}

fn event(name: &str, data: &Value) -> String {
    if name.is_empty() { format!("data: {data}\n\n") } else { format!("event: {name}\ndata: {data}\n\n") }
}

fn chunk(delta: &Value, finish: Option<&str>) -> String {
    let choice = json!({ "index": 0, "delta": delta, "finish_reason": finish });
    event("", &json!({ "id": "gen-1", "object": "chat.completion.chunk", "choices": [choice] }))
}

fn open_ai(reply: &Reply, request: &Value) -> Vec<String> {
    let mut events = vec![chunk(&json!({ "role": "assistant", "content": "" }), None)];
    if !reply.reasoning.is_empty() {
        events.push(chunk(&json!({ "reasoning_content": reply.reasoning }), None));
    }
    let said = pieces(text(reply), reply.pieces);
    events.extend(said.iter().map(|piece| chunk(&json!({ "content": piece }), None)));
    for (index, (name, args)) in calls(reply).into_iter().enumerate() {
        let mut first = json!({ "index": index, "type": "function", "function": { "name": name, "arguments": "" } });
        if let Some(id) = id(reply, index) {
            first["id"] = json!(id);
        }
        events.push(chunk(&json!({ "tool_calls": [first] }), None));
        for piece in pieces(&args, reply.pieces) {
            let call = json!({ "index": index, "function": { "arguments": piece } });
            events.push(chunk(&json!({ "tool_calls": [call] }), None));
        }
    }
    events.push(chunk(&json!({}), Some(open_ai_stop(reply))));
    let wanted = request["stream_options"]["include_usage"] == true;
    if wanted && reply.fault != Some(Fault::NoUsage) {
        events.push(event("", &json!({ "choices": [], "usage": open_ai_usage(reply) })));
    }
    events.push("data: [DONE]\n\n".to_owned());
    events
}

fn open_ai_stop(reply: &Reply) -> &str {
    let stop = if calls(reply).is_empty() { "stop" } else { "tool_calls" };
    reply.stop.as_deref().unwrap_or(stop)
}

fn open_ai_usage(reply: &Reply) -> Value {
    let Counted { input, output, cached, cost } = counted(reply);
    let mut usage = json!({ "prompt_tokens": input, "completion_tokens": output, "total_tokens": input + output });
    if cached > 0 {
        usage["prompt_tokens_details"] = json!({ "cached_tokens": cached });
    }
    if let Some(cost) = cost {
        usage["cost"] = json!(cost);
    }
    usage
}

fn delta(index: usize, delta: &Value) -> String {
    event("content_block_delta", &json!({ "type": "content_block_delta", "index": index, "delta": delta }))
}

fn begin(index: usize, block: &Value) -> String {
    let block = json!({ "type": "content_block_start", "index": index, "content_block": block });
    event("content_block_start", &block)
}

fn end(index: usize) -> String {
    event("content_block_stop", &json!({ "type": "content_block_stop", "index": index }))
}

fn anthropic(reply: &Reply, request: &Value) -> Vec<String> {
    let Counted { input, output, cached, .. } = counted(reply);
    let usage = |usage: Value| if reply.fault == Some(Fault::NoUsage) { json!({}) } else { usage };
    let message = json!({
        "id": "msg_1", "type": "message", "role": "assistant", "content": [], "stop_reason": null,
        "usage": usage(json!({ "input_tokens": input - cached, "cache_read_input_tokens": cached, "output_tokens": 1 })),
    });
    let mut events = vec![event("message_start", &json!({ "type": "message_start", "message": message }))];
    events.push(event("ping", &json!({ "type": "ping" })));
    let mut index = 0;
    let mut block = |start: &Value, deltas: Vec<Value>| {
        events.push(begin(index, start));
        events.extend(deltas.iter().map(|piece| delta(index, piece)));
        events.push(end(index));
        index += 1;
    };
    if !reply.reasoning.is_empty() {
        let thought = json!({ "type": "thinking_delta", "thinking": reply.reasoning });
        let signature = json!({ "type": "signature_delta", "signature": "c2ln" });
        block(&json!({ "type": "thinking", "thinking": "" }), vec![thought, signature]);
    }
    let arguments = |piece: String| json!({ "type": "input_json_delta", "partial_json": piece });
    let said = pieces(text(reply), reply.pieces);
    if wants_schema(Format::Anthropic, request) {
        let start = json!({ "type": "tool_use", "id": "toolu_a", "name": request["tool_choice"]["name"], "input": {} });
        block(&start, said.into_iter().map(arguments).collect());
    } else if !said.is_empty() {
        let said = said.into_iter().map(|piece| json!({ "type": "text_delta", "text": piece }));
        block(&json!({ "type": "text", "text": "" }), said.collect());
    }
    for (number, (name, args)) in calls(reply).into_iter().enumerate() {
        let start = json!({ "type": "tool_use", "id": id(reply, number), "name": name, "input": {} });
        block(&start, pieces(&args, reply.pieces).into_iter().map(arguments).collect());
    }
    let stop = json!({ "stop_reason": anthropic_stop(reply, request), "stop_sequence": null });
    let counted = usage(json!({ "output_tokens": output }));
    events.push(event("message_delta", &json!({ "type": "message_delta", "delta": stop, "usage": counted })));
    events.push(event("message_stop", &json!({ "type": "message_stop" })));
    events
}

fn anthropic_stop<'a>(reply: &'a Reply, request: &Value) -> &'a str {
    let called = !calls(reply).is_empty() || wants_schema(Format::Anthropic, request);
    reply.stop.as_deref().unwrap_or(if called { "tool_use" } else { "end_turn" })
}

/// The answer as one object.
fn whole(reply: &Reply, format: Format, request: &Value) -> Value {
    let Counted { input, output, .. } = counted(reply);
    let calls = calls(reply).into_iter().enumerate();
    match format {
        Format::OpenAi => {
            let calls: Vec<Value> = calls
                .map(|(n, (name, args))| {
                    json!({ "id": id(reply, n), "type": "function", "function": { "name": name, "arguments": args } })
                })
                .collect();
            let message = json!({ "role": "assistant", "content": text(reply), "tool_calls": calls });
            let choice = json!({ "index": 0, "message": message, "finish_reason": open_ai_stop(reply) });
            json!({ "object": "chat.completion", "choices": [choice], "usage": open_ai_usage(reply) })
        }
        Format::Anthropic => {
            let parsed = |text: &str| serde_json::from_str(text).unwrap_or_else(|_| json!({}));
            let mut content = Vec::new();
            if wants_schema(format, request) {
                let name = &request["tool_choice"]["name"];
                content
                    .push(json!({ "type": "tool_use", "id": "toolu_a", "name": name, "input": parsed(text(reply)) }));
            } else if !text(reply).is_empty() {
                content.push(json!({ "type": "text", "text": text(reply) }));
            }
            content.extend(calls.map(|(n, (name, args))| {
                json!({ "type": "tool_use", "id": id(reply, n), "name": name, "input": parsed(&args) })
            }));
            let usage = json!({ "input_tokens": input, "output_tokens": output });
            let stop = anthropic_stop(reply, request);
            json!({ "type": "message", "role": "assistant", "content": content, "stop_reason": stop, "usage": usage })
        }
    }
}
