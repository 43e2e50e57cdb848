//! Coding agents from npm with the settings of docs/clients.md, against the real program.

use super::clients::{blocks, official, section, served, with_kiso};
use super::home;
use crate::harness::Home;
use crate::served::Served;
use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::process::{Command, Output};
use std::sync::{Arc, Mutex};

/// Runs a program in a separate home directory, with `kiso` on its path and without network.
fn quiet(mut command: Command, home: &Home, token: &str) -> Output {
    let place = home.dir.path().join("project");
    std::fs::create_dir_all(&place).unwrap();
    command.current_dir(place).env("HOME", home.dir.path()).env("PATH", with_kiso(home));
    command.env("KISO_TOKEN", token).env_remove("KISO_HOME").env_remove("CODEX_HOME").env_remove("CLAUDE_CONFIG_DIR");
    for (name, value) in [
        ("CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "1"),
        ("DISABLE_AUTOUPDATER", "1"),
        ("DISABLE_TELEMETRY", "1"),
        ("DISABLE_ERROR_REPORTING", "1"),
        // Addresses outside this machine cannot be reached.
        ("HTTPS_PROXY", "http://127.0.0.1:9"),
        ("NO_PROXY", "127.0.0.1,localhost"),
    ] {
        command.env(name, value);
    }
    command.stdin(std::process::Stdio::null()).output().expect("it starts")
}

/// Text of the page with the address and token of the test's daemon.
fn here(text: &str, served: &Served) -> String {
    let token = served.token.as_deref().unwrap();
    text.replace("127.0.0.1:8333", &served.address).replace("kiso_…", token)
}

#[test]
fn claude_code_connects_with_the_lines_of_the_page() {
    let Some(dir) = official("claude-code") else { return };
    let programs = std::fs::read_dir(dir.join("node_modules/@anthropic-ai")).unwrap().flatten();
    let program = programs.map(|entry| entry.path().join("claude")).find(|path| path.is_file()).expect("the program");
    let text = section("Claude Code");
    let lines: Vec<&str> = blocks(&text, "text")[0].lines().collect();
    assert_eq!(lines.len(), 2, "{lines:?}");
    for line in lines {
        let home = home();
        let served = served(&home);
        let run = |words: &str| {
            let mut command = Command::new("bash");
            command.args(["-c", &format!("claude() {{ {:?} \"$@\"; }}; {words}", program.display().to_string())]);
            quiet(command, &home, served.token.as_deref().unwrap())
        };
        let added = run(&here(line, &served));
        assert!(added.status.success(), "{added:?}");
        let listed = run("claude mcp list");
        let said = String::from_utf8_lossy(&listed.stdout);
        assert!(said.contains("kiso") && said.contains("Connected") && !said.contains("Failed"), "{line}: {listed:?}");
    }
}

/// A model for Codex that calls a tool of kiso, and then repeats its result.
fn model() -> (String, Arc<Mutex<Vec<Value>>>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let asked: Arc<Mutex<Vec<Value>>> = Arc::default();
    let kept = asked.clone();
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let kept = kept.clone();
            std::thread::spawn(move || answer(&stream, &kept));
        }
    });
    (address, asked)
}

fn answer(mut stream: &TcpStream, asked: &Mutex<Vec<Value>>) -> Option<()> {
    let mut reader = BufReader::new(stream);
    let (mut line, mut length) = (String::new(), 0);
    reader.read_line(&mut line).ok()?;
    let is_answered = line.starts_with("POST ");
    while line.len() > 2 {
        line.clear();
        reader.read_line(&mut line).ok()?;
        if let Some(value) = line.to_ascii_lowercase().strip_prefix("content-length:") {
            length = value.trim().parse().ok()?;
        }
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body).ok()?;
    if !is_answered {
        return stream.write_all(b"HTTP/1.1 404 X\r\ncontent-length: 0\r\nconnection: close\r\n\r\n").ok();
    }
    let body: Value = serde_json::from_slice(&body).ok()?;
    let has_called = body["input"].to_string().contains("function_call_output");
    asked.lock().unwrap().push(body);
    let item = match has_called {
        false => json!({
            "type": "function_call", "id": "f1", "call_id": "c1", "namespace": "mcp__kiso", "name": "exec",
            "arguments": "{\"command\":\"echo $((3 * 4))\"}",
        }),
        true => json!({
            "type": "message", "role": "assistant", "id": "m1",
            "content": [{ "type": "output_text", "text": "That was all." }],
        }),
    };
    let usage = json!({ "input_tokens": 1, "output_tokens": 1, "total_tokens": 2 });
    let response = json!({ "id": "r1", "object": "response", "status": "completed", "output": [item], "usage": usage });
    let events = [
        json!({ "type": "response.created", "response": { "id": "r1" } }),
        json!({ "type": "response.output_item.done", "output_index": 0, "item": item }),
        json!({ "type": "response.completed", "response": response }),
    ];
    let told: String =
        events.iter().map(|event| format!("event: {}\ndata: {event}\n\n", event["type"].as_str().unwrap())).collect();
    let head = format!(
        "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ncontent-length: {}\r\nconnection: close\r\n\r\n",
        told.len()
    );
    stream.write_all([head, told].concat().as_bytes()).ok()
}

#[test]
fn codex_calls_a_tool_with_the_lines_of_the_page() {
    let Some(dir) = official("codex") else { return };
    let text = section("Codex");
    let tables = blocks(&text, "toml");
    assert_eq!(tables.len(), 2, "{tables:?}");
    for table in tables {
        let home = home();
        let served = served(&home);
        let (address, asked) = model();
        let config = format!(
            "model = \"test\"\nmodel_provider = \"test\"\ncheck_for_update_on_startup = false\n[analytics]\nenabled = false\n\
             [model_providers.test]\nname = \"test\"\nbase_url = \"http://{address}/v1\"\nwire_api = \"responses\"\n{}\
             default_tools_approval_mode = \"approve\"\n",
            here(table, &served)
        );
        let place = home.dir.path().join(".codex");
        std::fs::create_dir_all(&place).unwrap();
        std::fs::write(place.join("config.toml"), config).unwrap();
        let mut command = Command::new("node");
        command.arg(dir.join("node_modules/@openai/codex/bin/codex.js"));
        command.args(["exec", "--skip-git-repo-check", "what is three times four?"]);
        let ran = quiet(command, &home, served.token.as_deref().unwrap());
        assert!(String::from_utf8_lossy(&ran.stdout).contains("That was all."), "{table}: {ran:?}");
        let asked = asked.lock().unwrap();
        assert!(asked[0]["tools"].to_string().contains("mcp__kiso"), "{table}: it has kiso's tools");
        let told = asked.last().unwrap()["input"].to_string();
        assert!(told.contains("exit_code") && told.contains("12"), "{table}: {told}");
    }
}
