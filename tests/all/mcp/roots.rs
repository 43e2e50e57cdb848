//! The folders in which a client works: its roots, `--dir`, and those of config.toml over HTTP.

use super::{CONFIG, Pipe, modern, request};
use crate::harness::Home;
use crate::served::Served;
use serde_json::{Value, json};
use std::fs;
use std::path::{Path, PathBuf};

/// A home and a folder beside it with one file.
fn desk() -> (Home, PathBuf) {
    let home = Home::new();
    home.config(CONFIG);
    let dir = home.dir.path().join("my site");
    fs::create_dir(&dir).unwrap();
    fs::write(dir.join("a.txt"), "one\n").unwrap();
    (home, dir)
}

fn address(dir: &Path) -> Value {
    json!({ "uri": format!("file://{}", dir.display().to_string().replace(' ', "%20")), "name": "x" })
}

/// Sends the handshake of a client with these roots.
fn client_with(pipe: &mut Pipe, roots: &[Value]) {
    let client = json!({ "name": "tester", "version": "1" });
    let capabilities = json!({ "roots": { "listChanged": true } });
    let params = json!({ "protocolVersion": "2025-11-25", "capabilities": capabilities, "clientInfo": client });
    pipe.ask("initialize", params);
    tell(pipe, "notifications/initialized", roots);
}

/// Sends a notification, and answers the request for the roots that follows.
fn tell(pipe: &mut Pipe, notification: &str, roots: &[Value]) {
    pipe.say(&json!({ "jsonrpc": "2.0", "method": notification }).to_string());
    let asked = pipe.hear();
    assert_eq!(asked["method"], "roots/list", "{asked}");
    pipe.say(&json!({ "jsonrpc": "2.0", "id": asked["id"], "result": { "roots": roots } }).to_string());
}

fn line(command: &str) -> Value {
    json!({ "name": "exec", "arguments": { "command": command } })
}

/// All texts of a result in one.
fn all_text(answer: &Value) -> String {
    let content = answer["result"]["content"].as_array().unwrap_or_else(|| panic!("{answer}"));
    content.iter().filter_map(|part| part["text"].as_str()).collect::<Vec<_>>().join("\n")
}

/// The session that a text names after `--session`.
#[track_caller]
fn session_in(text: &str) -> &str {
    let rest = text.split("--session ").nth(1).unwrap_or_else(|| panic!("{text}"));
    rest.split(['`', ' ']).next().unwrap()
}

#[test]
fn tools_work_in_the_roots_of_a_client_and_say_what_waits() {
    let (home, dir) = desk();
    let other = home.dir.path().join("notes");
    fs::create_dir(&other).unwrap();
    let mut pipe = Pipe::start(&home, &[]);
    client_with(&mut pipe, &[address(&dir), address(&other)]);
    let answer = pipe.ask("tools/call", line("pwd; cat a.txt; ls -d /notes"));
    assert_eq!(answer["result"]["structuredContent"]["stdout"], "/project\none\n/notes\n", "{answer}");
    assert!(!all_text(&answer).contains("waiting"), "{answer}");
    let answer = pipe.ask("tools/call", line("echo two > b.txt; echo n > /notes/n"));
    let text = all_text(&answer);
    assert!(text.contains("1 change to /project waiting") && text.contains("1 change to /notes waiting"), "{text}");
    let answer = pipe.ask("tools/call", json!({ "name": "run", "arguments": { "message": "$ cat b.txt; rm a.txt" } }));
    let text = all_text(&answer);
    assert!(text.contains("two") && text.contains("2 changes to /project waiting"), "{text}");
    assert!(dir.join("a.txt").exists() && !dir.join("b.txt").exists());
    let session = session_in(&text);
    assert!(session.starts_with("mcp-tester-my-site-"), "{session}");
    assert_eq!(answer["result"]["structuredContent"]["session"], session);

    // Another project has another session, and its own /project.
    tell(&mut pipe, "notifications/roots/list_changed", &[address(&other)]);
    let answer = pipe.ask("tools/call", line("pwd; ls"));
    assert_eq!(answer["result"]["structuredContent"]["stdout"], "/project\n", "{answer}");
    assert_eq!(pipe.end(), 0);
    home.kiso(&["diff", "--session", session, "--accept", "--at", "/project"]).ok();
    assert_eq!(fs::read_to_string(dir.join("b.txt")).unwrap(), "two\n");
    assert!(!dir.join("a.txt").exists() && !other.join("n").exists());
}

#[test]
fn roots_are_refused_as_other_folders_are() {
    let (home, dir) = desk();
    let mut pipe = Pipe::start(&home, &[]);
    let remote = json!({ "uri": "https://example.org/x" });
    client_with(&mut pipe, &[remote, address(home.dir.path())]);
    let answer = pipe.ask("tools/call", line("pwd; ls /project"));
    assert!(all_text(&answer).contains("A folder of this client is not open: "), "{answer}");
    assert!(all_text(&answer).contains("it holds kiso's own home, or is in it"), "{answer}");
    assert!(answer["result"]["structuredContent"]["stdout"].as_str().unwrap().starts_with("/work\n"), "{answer}");
    let answer = pipe.ask("tools/call", line("pwd"));
    assert!(!all_text(&answer).contains("is not open"), "it is told once: {answer}");
    pipe.end();
    // A client that answers with an error has no roots, and roots that it sends unasked are ignored.
    let mut pipe = Pipe::start(&home, &[]);
    let client = json!({ "name": "tester", "version": "1" });
    let params = json!({ "protocolVersion": "2025-11-25", "capabilities": { "roots": {} }, "clientInfo": client });
    pipe.ask("initialize", params);
    pipe.say(&json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }).to_string());
    let asked = pipe.hear();
    let roots = json!({ "roots": [address(&dir)] });
    pipe.say(&json!({ "jsonrpc": "2.0", "id": "roots-9", "result": roots }).to_string());
    let error = json!({ "code": -32_603, "message": "no" });
    pipe.say(&json!({ "jsonrpc": "2.0", "id": asked["id"], "error": error }).to_string());
    let answer = pipe.ask("tools/call", line("pwd"));
    assert_eq!(answer["result"]["structuredContent"]["stdout"], "/work\n", "{answer}");
}

#[test]
fn a_folder_of_the_command_line_goes_before_roots() {
    let (home, dir) = desk();
    let mut pipe = Pipe::start(&home, &["--dir", dir.to_str().unwrap()]);
    let client = json!({ "name": "tester", "version": "1" });
    let params = json!({ "protocolVersion": "2025-11-25", "capabilities": { "roots": {} }, "clientInfo": client });
    pipe.ask("initialize", params);
    pipe.say(&json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }).to_string());
    pipe.say(&request(70, "tools/call", line("pwd; cat a.txt")).to_string());
    // The first message received: no roots were requested.
    let answer = pipe.hear();
    assert_eq!(
        (&answer["id"], &answer["result"]["structuredContent"]["stdout"]),
        (&json!(70), &json!("/project\none\n"))
    );
    let answer = pipe.ask("tools/call", modern(line("rm a.txt; pwd")));
    assert!(all_text(&answer).contains("/project") && all_text(&answer).contains("1 change"), "{answer}");
    assert!(dir.join("a.txt").exists());
}

#[test]
fn over_http_a_client_works_in_a_folder_of_the_configuration() {
    let (home, dir) = desk();
    let own = home.dir.path().join("own");
    fs::create_dir(&own).unwrap();
    let entry = |name: &str, dir: &Path, rest: &str| {
        format!("[folders.{name}]\npath = {:?}\n{rest}", dir.display().to_string())
    };
    home.config(&format!("{CONFIG}{}{}", entry("site", &dir, "role = \"user\"\n"), entry("own", &own, "")));
    let served = Served::start(&home);
    let call = |query: &str, command: &str| {
        let message = request(1, "tools/call", modern(line(command))).to_string();
        let head = format!(
            "POST /mcp{query} HTTP/1.1\r\nhost: {}\r\nconnection: close\r\naccept: application/json\r\nmcp-protocol-version: 2026-07-28\r\n\
             mcp-method: tools/call\r\nmcp-name: exec\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n{message}",
            served.address,
            message.len()
        );
        use std::io::{Read, Write};
        let mut stream = served.connect();
        stream.write_all(head.as_bytes()).unwrap();
        let mut bytes = Vec::new();
        stream.read_to_end(&mut bytes).unwrap();
        crate::served::Answer::parse(&bytes).unwrap()
    };
    let answer = call("?folder=site", "pwd; cat a.txt; echo two > b.txt").expect(200);
    let text = all_text(&answer);
    assert!(text.contains("/project\none") && text.contains("1 change to /project waiting"), "{text}");
    assert!(!dir.join("b.txt").exists());
    assert!(all_text(&call("?folder=site", "cat b.txt").expect(200)).contains("two"));
    call("?folder=own", "pwd").refuses(404, "not_found");
    call("?folder=..%2Fsite", "pwd").refuses(404, "not_found");
}
