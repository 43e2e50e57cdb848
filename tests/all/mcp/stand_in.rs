//! A server of the protocol in both eras, for kiso as its client, with faults that a test selects.

use super::MODERN;
use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Era {
    Modern,
    Legacy,
}

/// The fault of a tool call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fault {
    /// Gives no answer.
    Hang,
    /// Sends notifications without end.
    Flood,
    /// Closes the connection in the middle of an answer.
    Die,
    /// Closes the connection without an answer.
    Close,
    /// Answers twice, differently.
    Twice,
    /// Answers another request.
    Other,
    /// Answers with 100 MB.
    Huge,
    /// Lists 10,000 tools from then on.
    ManyTools,
    /// Lists pages without end.
    EndlessPages,
    BadJson,
    /// Redirects the caller with its request.
    Redirect,
    /// Answers with a web page.
    Page,
    /// Has forgotten the session, once.
    Forgets,
    Unauthorized,
}

/// The server's configuration, and the requests it received.
#[derive(Debug)]
pub(crate) struct State {
    pub era: Era,
    pub fault: Option<Fault>,
    pub description: String,
    pub schema: Value,
    /// The result of tools/call.
    pub result: Value,
    /// Requested methods, in order.
    pub asked: Vec<String>,
    /// Arguments of calls.
    pub calls: Vec<Value>,
    /// Values of the header X-Key.
    pub keys: Vec<String>,
    sessions: u32,
}

pub(crate) struct StandIn {
    pub url: String,
    state: Arc<Mutex<State>>,
}

impl StandIn {
    pub(crate) fn start(era: Era) -> StandIn {
        let listener = TcpListener::bind("127.0.0.1:0").expect("there is a port");
        let url = format!("http://{}/mcp", listener.local_addr().unwrap());
        let schema = json!({ "type": "object", "properties": { "text": { "type": "string", "maxLength": 20 } },
            "required": ["text"], "additionalProperties": false });
        let result = json!({ "content": [{ "type": "text", "text": "the oracle says 42" }] });
        let state = Arc::new(Mutex::new(State {
            era,
            fault: None,
            description: "Asks the oracle".to_owned(),
            schema,
            result,
            asked: Vec::new(),
            calls: Vec::new(),
            keys: Vec::new(),
            sessions: 0,
        }));
        let shared = state.clone();
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let state = shared.clone();
                std::thread::spawn(move || serve(&stream, &state));
            }
        });
        StandIn { url, state }
    }

    pub(crate) fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn serve(stream: &TcpStream, state: &Mutex<State>) {
    let mut input = BufReader::new(stream);
    let (mut length, mut session, mut method, mut name) = (0, None, None, None);
    let mut key = None;
    let mut line = String::new();
    while input.read_line(&mut line).is_ok_and(|read| read > 2) {
        let (header, value) = line.split_once(':').unwrap_or((&line, ""));
        let value = value.trim().to_owned();
        match header.to_ascii_lowercase().as_str() {
            "content-length" => length = value.parse().unwrap(),
            "mcp-session-id" => session = Some(value),
            "mcp-method" => method = Some(value),
            "mcp-name" => name = Some(value),
            "x-key" => key = Some(value),
            _ => {}
        }
        line.clear();
    }
    let mut body = vec![0; length];
    if length == 0 || input.read_exact(&mut body).is_err() {
        return;
    }
    let message: Value = serde_json::from_slice(&body).expect("kiso sends JSON");
    let mut state = state.lock().unwrap_or_else(PoisonError::into_inner);
    let asked = message["method"].as_str().unwrap().to_owned();
    state.asked.push(asked.clone());
    state.keys.extend(key);
    let id = &message["id"];
    let write = |bytes: &[u8]| (&*stream).write_all(bytes).is_ok();
    if state.era == Era::Modern {
        let says_all = method.as_deref() == Some(&*asked)
            && name.as_deref() == message["params"]["name"].as_str()
            && message["params"]["_meta"]["io.modelcontextprotocol/protocolVersion"] == MODERN;
        assert!(says_all, "a request of the newer era says everything: {message}");
    } else if asked == "server/discover" {
        write(&json_answer(400, "", &error(id, -32_600, "no session")));
        return;
    } else if asked != "initialize" && session != Some(format!("s{}", state.sessions)) {
        write(&head(404, "application/json", "", Some(0)));
        return;
    }
    let answer = match asked.as_str() {
        "server/discover" => json!({ "supportedVersions": [MODERN], "capabilities": { "tools": {} } }),
        "initialize" => {
            state.sessions += 1;
            let version = "2025-06-18";
            let answer = json!({ "protocolVersion": version, "capabilities": { "tools": {} },
                "serverInfo": { "name": "oracle", "version": "1" } });
            let begun = format!("Mcp-Session-Id: s{}\r\n", state.sessions);
            write(&json_answer(200, &begun, &result(id, answer)));
            return;
        }
        "notifications/initialized" => {
            write(&head(202, "text/plain", "", Some(0)));
            return;
        }
        "tools/list" => match state.fault {
            Some(Fault::ManyTools) => {
                let tool = |n: u32| json!({ "name": format!("t{n}"), "inputSchema": { "type": "object" } });
                json!({ "tools": (0..10_000).map(tool).collect::<Vec<_>>() })
            }
            Some(Fault::EndlessPages) => json!({ "tools": [], "nextCursor": "on" }),
            _ => json!({ "tools": [
                { "name": "ask", "description": state.description, "inputSchema": state.schema,
                  "annotations": { "readOnlyHint": true } },
                { "name": "burn", "description": "Burns everything down", "inputSchema": { "type": "object" } },
            ] }),
        },
        "tools/call" => {
            state.calls.push(message["params"]["arguments"].clone());
            let answer = state.result.clone();
            let fault = state.fault;
            if fault == Some(Fault::Forgets) {
                state.fault = None;
                state.sessions += 1;
            }
            drop(state);
            match fault {
                Some(fault) => go_wrong(fault, stream, id, answer),
                // As events, preceded by an unrequested notification.
                None => {
                    let note = json!({ "jsonrpc": "2.0", "method": "notifications/progress", "params": {} });
                    let events = format!(": hello\n\ndata: {note}\n\ndata: {}\n\n", result(id, answer));
                    let length = Some(events.len());
                    write(&[&head(200, "text/event-stream", "", length), events.as_bytes()].concat());
                }
            }
            return;
        }
        other => panic!("kiso asks {other}"),
    };
    let mut answer = answer;
    if state.era == Era::Modern {
        answer["resultType"] = json!("complete");
    }
    write(&json_answer(200, "", &result(id, answer)));
}

fn go_wrong(fault: Fault, stream: &TcpStream, id: &Value, answer: Value) {
    let write = |bytes: &[u8]| (&*stream).write_all(bytes).is_ok();
    let events = head(200, "text/event-stream", "", None);
    let fine = result(id, answer);
    match fault {
        Fault::Hang => drop((&*stream).read(&mut [0; 16])),
        Fault::Flood => {
            let note = json!({ "jsonrpc": "2.0", "method": "notifications/message", "params": {} });
            let event = format!("data: {note}\n\n").repeat(64);
            write(&events);
            while write(event.as_bytes()) {}
        }
        Fault::Die => drop(write(&[&events, &b"data: {\"jsonrpc\": \"2.0\", \"id\""[..]].concat())),
        Fault::Close => {}
        Fault::Twice => {
            let other = result(id, json!({ "content": [{ "type": "text", "text": "or is it 43" }] }));
            write(&[&events, format!("data: {fine}\n\ndata: {other}\n\n").as_bytes()].concat());
        }
        Fault::Other => drop(write(&json_answer(200, "", &result(&json!("other"), json!({ "content": [] }))))),
        Fault::Huge => {
            write(&head(200, "application/json", "", Some(100 << 20)));
            let piece = vec![b' '; 1 << 20];
            for _ in 0..100 {
                if !write(&piece) {
                    break;
                }
            }
        }
        Fault::BadJson => drop(write(&raw(200, "application/json", "", b"{\"jsonrpc\": ."))),
        Fault::Redirect => drop(write(&head(307, "text/plain", "Location: http://elsewhere.example/mcp\r\n", Some(0)))),
        Fault::Page => drop(write(&raw(200, "text/html", "", b"<h1>Welcome</h1>"))),
        Fault::Forgets => drop(write(&head(404, "text/plain", "", Some(0)))),
        Fault::Unauthorized => drop(write(&head(401, "text/plain", "", Some(0)))),
        Fault::ManyTools | Fault::EndlessPages => drop(write(&json_answer(200, "", &fine))),
    }
}

fn result(id: &Value, result: Value) -> Value {
    json!({ "jsonrpc": "2.0", "id": id, "result": result })
}

fn error(id: &Value, code: i64, message: &str) -> Value {
    json!({ "jsonrpc": "2.0", "id": id, "error": { "code": code, "message": message } })
}

fn json_answer(status: u16, more: &str, body: &Value) -> Vec<u8> {
    raw(status, "application/json", more, body.to_string().as_bytes())
}

fn raw(status: u16, kind: &str, more: &str, body: &[u8]) -> Vec<u8> {
    [&head(status, kind, more, Some(body.len())), body].concat()
}

fn head(status: u16, kind: &str, more: &str, length: Option<usize>) -> Vec<u8> {
    let length = length.map(|length| format!("Content-Length: {length}\r\n")).unwrap_or_default();
    format!("HTTP/1.1 {status} X\r\nContent-Type: {kind}\r\nConnection: close\r\n{length}{more}\r\n").into_bytes()
}
