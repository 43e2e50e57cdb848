//! The Model Context Protocol from outside, with messages as they are sent.

mod agents;
mod authority;
mod clients;
mod component;
mod door;
mod labels;
mod native;
mod oauth;
mod outside;
mod pipe;
mod roots;
pub(crate) mod runs;
mod skills;
pub(crate) mod stand_in;

use crate::harness::Home;
use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, ChildStdout, Stdio};

pub(crate) const MODERN: &str = "2026-07-28";

/// Metadata that a client of the newer era sends with each request.
pub(crate) fn meta() -> Value {
    json!({
        "io.modelcontextprotocol/protocolVersion": MODERN,
        "io.modelcontextprotocol/clientInfo": { "name": "tester", "version": "1" },
        "io.modelcontextprotocol/clientCapabilities": {},
    })
}

/// Parameters for the newer era.
pub(crate) fn modern(mut params: Value) -> Value {
    params["_meta"] = meta();
    params
}

pub(crate) fn request(id: impl Into<Value>, method: &str, params: Value) -> Value {
    json!({ "jsonrpc": "2.0", "id": id.into(), "method": method, "params": params })
}

/// The text of a tool's result.
#[track_caller]
pub(crate) fn text(answer: &Value) -> &str {
    answer["result"]["content"][0]["text"].as_str().unwrap_or_else(|| panic!("{answer}"))
}

pub(crate) const CONFIG: &str = "model = \"reflex\"\n[daemon]\ndebounce_ms = 20\n\
    [pills.shout]\ntemplate = \"$ echo {input} | tr a-z A-Z\"\ndescription = \"In capitals\"\n";

/// A home with a skill that answers and one that can loop for ever.
pub(crate) fn home() -> Home {
    let home = Home::new();
    home.config(CONFIG);
    home.add("echo").add("command");
    home
}

/// A `kiso mcp` process and its client.
pub(crate) struct Pipe {
    pub child: Child,
    input: Option<ChildStdin>,
    output: BufReader<ChildStdout>,
    count: i64,
}

impl Pipe {
    pub(crate) fn start(home: &Home, args: &[&str]) -> Pipe {
        let mut command = home.command(&[&["mcp"], args].concat());
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("kiso starts");
        let (input, output) = (child.stdin.take(), BufReader::new(child.stdout.take().unwrap()));
        Pipe { child, input, output, count: 0 }
    }

    pub(crate) fn say(&mut self, line: &str) {
        let input = self.input.as_mut().expect("it is open");
        input.write_all(line.as_bytes()).and_then(|()| input.write_all(b"\n")).expect("it reads");
    }

    pub(crate) fn hear(&mut self) -> Value {
        let mut line = String::new();
        assert!(self.output.read_line(&mut line).expect("it can be read") > 0, "kiso mcp has ended");
        serde_json::from_str(&line).expect("a line is JSON")
    }

    /// Returns the answer to a request. Skips messages that arrive before it.
    pub(crate) fn ask(&mut self, method: &str, params: Value) -> Value {
        self.count += 1;
        self.say(&request(self.count, method, params).to_string());
        loop {
            let heard = self.hear();
            if heard["id"] == self.count {
                return heard;
            }
        }
    }

    /// Starts a connection of the older era.
    pub(crate) fn initialize(&mut self) {
        let client = json!({ "name": "tester", "version": "1" });
        let params = json!({ "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": client });
        let answer = self.ask("initialize", params);
        assert_eq!(answer["result"]["protocolVersion"], "2025-06-18", "{answer}");
        self.say(&json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }).to_string());
    }

    /// Closes the input, and waits for the process to end.
    pub(crate) fn end(mut self) -> i32 {
        self.input = None;
        self.child.wait().expect("it ends").code().unwrap_or(-1)
    }
}

impl Drop for Pipe {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
