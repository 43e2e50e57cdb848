//! OpenAI's interface: the official clients against a real daemon, and requests that they would not send.

mod official;

use crate::harness::{Home, wait_for};
use crate::model_server::ModelServer;
use crate::served::{Answer, Served};
use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;

const CONFIG: &str = "model = \"reflex\"\n[daemon]\ndebounce_ms = 20\n\
    [pills.shout]\ntemplate = \"$ echo {input} | tr a-z A-Z\"\n";

/// A daemon with a token, and a second token.
fn served(home: &Home) -> (Served, String) {
    home.config(CONFIG);
    let mut served = Served::start(home);
    let add = |name: &str| home.kiso(&["token", "add", name]).ok().stdout.trim().to_owned();
    served.token = Some(add("program"));
    let message = served.send("main", "$ echo made");
    served.reply(message);
    (served, add("other"))
}

/// A home that uses the server for all roles.
fn with_models(server: &ModelServer) -> (Home, Served) {
    let home = Home::new();
    home.config(&format!(
        "model = \"test:m\"\n[providers.test]\nkind = \"openai\"\nbase_url = \"{}\"\n\
         [routing]\nfast_path = false\n[daemon]\ndebounce_ms = 20\n[llm]\nmax_retry_wait_s = 1\n",
        server.base_url()
    ));
    let served = Served::start(&home);
    (home, served)
}

const TALK: &str = r#"{"effort": "low", "categories": [], "tool_need": 0, "goal": "an answer", "durable": false}"#;

fn reply(role: &str, text: &str, more: &str) -> String {
    format!("[[reply]]\nrole = \"{role}\"\ntext = {text:?}\n{more}\n")
}

/// Sends a request; the response is read as it arrives.
fn begin(served: &Served, path: &str, headers: &str, body: &Value) -> (String, BufReader<TcpStream>) {
    let mut stream = served.connect();
    let body = body.to_string();
    let token = served.token.as_ref().map(|token| format!("authorization: Bearer {token}\r\n")).unwrap_or_default();
    let head = format!(
        "POST {path} HTTP/1.1\r\nhost: {}\r\nconnection: close\r\n{token}{headers}content-type: application/json\r\n\
         content-length: {}\r\n\r\n{body}",
        served.address,
        body.len()
    );
    stream.write_all(head.as_bytes()).unwrap();
    let (mut reader, mut head) = (BufReader::new(stream), String::new());
    while !head.ends_with("\r\n\r\n") {
        assert!(reader.read_line(&mut head).unwrap() > 0, "{head}");
    }
    (head.to_lowercase(), reader)
}

fn post(served: &Served, path: &str, headers: &str, body: &Value) -> Answer {
    let (head, mut reader) = begin(served, path, headers, body);
    let mut rest = String::new();
    reader.read_to_string(&mut rest).unwrap();
    Answer::parse(format!("{head}{rest}").as_bytes()).unwrap()
}

/// Asks in a conversation. Returns the answer and its session.
#[track_caller]
fn ask(served: &Served, headers: &str, messages: Value) -> (String, String) {
    let answer = post(served, "/v1/chat/completions", headers, &json!({ "model": "kiso", "messages": messages }));
    let text = answer.expect(200)["choices"][0]["message"]["content"].as_str().unwrap().to_owned();
    let session = answer.headers.lines().find_map(|line| line.strip_prefix("x-kiso-session: "));
    (text, session.expect("it says the session").to_owned())
}

/// The contents of the chunks up to and including the one with `part`.
#[track_caller]
fn read_until(reader: &mut impl BufRead, part: &str) -> String {
    let mut text = String::new();
    loop {
        let mut line = String::new();
        assert!(reader.read_line(&mut line).unwrap() > 0, "it ended without {part:?}: {text}");
        let Some(data) = line.trim().strip_prefix("data: ").filter(|data| *data != "[DONE]") else { continue };
        let chunk: Value = serde_json::from_str(data).unwrap();
        text += chunk["choices"][0]["delta"]["content"].as_str().unwrap_or_default();
        if text.contains(part) {
            return text;
        }
    }
}

/// A conversational answer is streamed word by word.
#[test]
fn talk_is_streamed_as_it_is_written() {
    let script = [
        reply("router", TALK, ""),
        reply("worker", "The first half and the second half\n", "pieces = 8\nfault = \"stall_mid_stream\""),
        reply("titler", "Halves", ""),
    ];
    let server = ModelServer::toml(&script.concat());
    let (_home, served) = with_models(&server);
    let body =
        json!({ "model": "kiso", "stream": true, "messages": [{ "role": "user", "content": "tell me of halves" }] });
    let (head, mut reader) = begin(&served, "/v1/chat/completions", "", &body);
    assert!(head.contains("content-type: text/event-stream"), "{head}");
    let first = read_until(&mut reader, "The");
    assert!(!first.contains("second half"), "the model has not written it yet: {first}");
    server.release();
    let text = first + &read_until(&mut reader, "second half");
    let mut rest = String::new();
    reader.read_to_string(&mut rest).unwrap();
    assert_eq!(text, "The first half and the second half");
    assert!(rest.contains("\"finish_reason\":\"stop\"") && rest.contains("data: [DONE]"), "{rest}");
    assert!(!rest.contains("\"content\":\""), "nothing of it is said twice: {rest}");
}

/// A system prompt is passed on once, and edits of the conversation reach the model.
#[test]
fn the_model_knows_what_the_program_shows() {
    let answer = |text: &str, expect: &str| [reply("router", TALK, ""), reply("worker", text, expect)].concat();
    let script = [
        answer("Bonjour", "expect_contains = [\"Answer in French\", \"hello there\"]\nexpect_absent = \"Earlier in\""),
        answer("Encore", "expect_contains = [\"and again\", \"Bonjour\"]\nexpect_absent = \"Earlier in\""),
        answer(
            "Nouveau",
            "expect_contains = [\"User: hello here\", \"Assistant: Salut\", \"what now\", \"Answer in French\"]",
        ),
        reply("titler", "Greetings", ""),
    ];
    let server = ModelServer::toml(&script.concat());
    let (_home, served) = with_models(&server);
    let system = json!({ "role": "system", "content": "Answer in French." });
    let user = |text: &str| json!({ "role": "user", "content": text });
    let assistant = |text: &str| json!({ "role": "assistant", "content": text });
    let chat = "x-openwebui-chat-id: c\r\n";
    let (text, first) = ask(&served, chat, json!([system, user("hello there")]));
    assert_eq!(text, "Bonjour");
    let (_, second) = ask(&served, chat, json!([system, user("hello there"), assistant("Bonjour"), user("and again")]));
    // The first question was changed, and the client asked with another model.
    let (_, third) = ask(&served, chat, json!([system, user("hello here"), assistant("Salut"), user("what now")]));
    assert_eq!((&first, &first), (&second, &third));
    let messages = served.get(&format!("/sessions/{first}/messages"));
    let asked = messages["items"][2]["text"].as_str().unwrap();
    assert_eq!(asked, "and again", "what the session knows is not sent again");
}

/// A request with a used key but any difference gets an error, not the answer of the earlier request.
#[test]
fn a_key_is_of_one_request() {
    let home = Home::new();
    let (served, _) = served(&home);
    let send = |input: &Value, instructions: &str| {
        let body = json!({ "model": "kiso", "input": input, "instructions": instructions });
        post(&served, "/v1/responses", "idempotency-key: k\r\n", &body)
    };
    let asks = |text: &str, data: &str| {
        let file = json!({ "type": "input_file", "filename": "a.txt", "file_data": data });
        json!([{ "role": "user", "content": [{ "type": "input_text", "text": text }, file] }])
    };
    let first = send(&asks("$ cat a.txt", "b25l"), "Be brief.");
    assert_eq!(first.expect(200)["id"], send(&asks("$ cat a.txt", "b25l"), "Be brief.").expect(200)["id"]);
    for other in [
        send(&asks("$ wc a.txt", "b25l"), "Be brief."),
        send(&asks("$ cat a.txt", "dHdv"), "Be brief."),
        send(&asks("$ cat a.txt", "b25l"), "Be polite."),
    ] {
        other.refuses(409, "key_reused");
    }
}

/// A finished run is reported like one that was watched.
#[test]
fn what_was_done_is_told_of_an_answer_that_was_there_already() {
    let home = Home::new();
    let (served, _) = served(&home);
    let body = json!({ "model": "kiso", "messages": [{ "role": "user", "content": "$ echo seen" }] });
    let ask = || post(&served, "/v1/chat/completions", "idempotency-key: k\r\n", &body);
    for answer in [ask(), ask()] {
        let message = &answer.expect(200)["choices"][0]["message"];
        let thoughts = message["reasoning_content"].as_str().unwrap_or_default();
        assert!(thoughts.contains("echo seen"), "{message}");
    }
}

/// An accepted request is answered even if the client disconnects or the daemon is killed; the same request runs once.
#[test]
fn what_was_accepted_is_answered_once() {
    let home = Home::new();
    let (served, _) = served(&home);
    let body = json!({ "model": "kiso", "input": "$ echo x >> times; wc -l times", "background": true });
    let begun = post(&served, "/v1/responses", "idempotency-key: k\r\n", &body);
    let (id, session) = (begun.expect(200)["id"].as_str().unwrap().to_owned(), header(&begun, "x-kiso-session"));
    let token = served.token.clone();
    served.kill();
    let mut served = Served::start(&home);
    served.token = token;
    let again = post(&served, "/v1/responses", "idempotency-key: k\r\n", &body);
    assert_eq!(
        (again.expect(200)["id"].as_str(), header(&again, "x-kiso-session")),
        (Some(id.as_str()), session.clone())
    );
    let done = wait_for("the response", || {
        Some(served.get(&format!("/v1/responses/{id}"))).filter(|now| now["status"] == "completed")
    });
    let text = done["output"].as_array().unwrap().last().unwrap()["content"][0]["text"].as_str().unwrap().to_owned();
    assert!(text.contains("1 times"), "{text}");
    let count = |session: &str| {
        let messages = served.get(&format!("/sessions/{session}/messages"));
        messages["items"].as_array().unwrap().iter().filter(|message| message["role"] == "user").count()
    };
    assert_eq!(count(&session), 1);

    let body = json!({ "model": "kiso", "stream": true, "messages": [{ "role": "user", "content": "$ echo gone" }] });
    let (head, reader) = begin(&served, "/v1/chat/completions", "", &body);
    drop(reader);
    let session = head.lines().find_map(|line| line.strip_prefix("x-kiso-session: ")).unwrap().to_owned();
    wait_for("the answer", || {
        let messages = served.get(&format!("/sessions/{session}/messages"));
        messages["items"].as_array().unwrap().iter().find(|message| message["role"] == "assistant").map(|_| ())
    });
    assert_eq!(count(&session), 1);
}

fn header(answer: &Answer, name: &str) -> String {
    let line = answer.headers.lines().find_map(|line| line.strip_prefix(&format!("{name}: ")));
    line.unwrap_or_else(|| panic!("{name} is not in {answer:?}")).to_owned()
}

/// An accepted request that cannot be waited for must not be sent again; the error says so in the form that the official clients
/// know. A request refused before that was not accepted.
#[test]
fn a_client_is_told_whether_to_send_again() {
    let home = Home::new();
    home.config(&format!("{CONFIG}[gateway]\nmax_streams = 1\n"));
    let mut served = Served::start(&home);
    served.token = Some(home.kiso(&["token", "add", "program"]).ok().stdout.trim().to_owned());
    let sleep = json!({ "model": "kiso", "input": "$ sleep 50", "background": true });
    let begun = post(&served, "/v1/responses", "idempotency-key: k\r\n", &sleep);
    let (id, session) = (begun.expect(200)["id"].as_str().unwrap().to_owned(), header(&begun, "x-kiso-session"));
    let run = wait_for("the run", || {
        let runs = served.get(&format!("/runs?session={session}"));
        runs["items"][0]["id"].as_str().map(str::to_owned)
    });

    let body = json!({ "model": "kiso", "stream": true, "messages": [{ "role": "user", "content": "$ sleep 50" }] });
    let (head, mut stream) = begin(&served, "/v1/chat/completions", "", &body);
    assert!(head.starts_with("http/1.1 200"), "{head}");
    let sessions = served.get("/sessions")["items"].as_array().unwrap().len();
    let full = post(&served, "/v1/chat/completions", "", &json!({ "model": "kiso", "messages": body["messages"] }));
    full.refuses(503, "too_many_streams");
    assert!(full.headers.contains("retry-after") && !full.headers.contains("x-should-retry"), "{full:?}");
    assert_eq!(served.get("/sessions")["items"].as_array().unwrap().len(), sessions, "nothing was taken");

    // A client with a revoked token receives nothing more of its streams.
    let other = home.kiso(&["token", "add", "other"]).ok().stdout.trim().to_owned();
    home.kiso(&["token", "revoke", "program"]).ok();
    let mut rest = String::new();
    stream.read_to_string(&mut rest).unwrap();
    assert!(rest.contains("\"code\":\"unauthorized\"") && !rest.contains("[DONE]"), "{rest}");
    served.token = Some(other);
    served.request("GET", &format!("/v1/responses/{id}"), None).refuses(404, "not_found");

    // tests/all/held.rs shows how a run becomes held.
    let sleep = json!({ "model": "kiso", "input": "$ sleep 50", "background": true });
    let begun = post(&served, "/v1/responses", "idempotency-key: k\r\n", &sleep);
    let session = header(&begun, "x-kiso-session");
    let own = wait_for("the run", || {
        let runs = served.get(&format!("/runs?session={session}"));
        runs["items"][0]["id"].as_str().map(str::to_owned)
    });
    assert_ne!(run, own, "a key is one token's");
    crate::crash::store(&home).execute("UPDATE runs SET held_ms = 1 WHERE id = ?1", [&own]).unwrap();
    let waits = json!({ "model": "kiso", "input": "$ sleep 50" });
    let held = post(&served, "/v1/responses", "idempotency-key: k\r\n", &waits);
    held.refuses(409, "held");
    assert_eq!(header(&held, "x-should-retry"), "false");
}

/// Deleting a session also removes the keys by which clients know it.
#[test]
fn a_session_that_was_deleted_is_begun_anew() {
    let home = Home::new();
    let (mut served, _) = served(&home);
    let chat = "x-kiso-chat-id: gone\r\n";
    let messages = json!([{ "role": "user", "content": "$ echo here > here; cat here" }]);
    let (text, session) = ask(&served, chat, messages.clone());
    let program =
        served.token.replace(home.kiso(&["token", "add", "root", "--scope", "admin"]).ok().stdout.trim().into());
    served.request("DELETE", &format!("/sessions/{session}"), None).expect(200);
    served.token = program;
    let asked =
        json!([messages[0], { "role": "assistant", "content": text }, { "role": "user", "content": "$ cat here" }]);
    let (text, same) = ask(&served, chat, asked);
    assert_eq!(session, same, "it has the chat's name");
    assert!(text.contains("No such file"), "{text}");
}

/// Every error has OpenAI's form, and nothing of a refused request is kept.
#[test]
fn bad_input_is_refused_in_openais_form() {
    let home = Home::new();
    let (served, _) = served(&home);
    let user = |content: Value| json!({ "model": "kiso", "messages": [{ "role": "user", "content": content }] });
    let with = |member: &str, value: Value| {
        let mut body = user(json!("$ echo refused"));
        body[member] = value;
        body
    };
    let part = |part: Value| user(json!([{ "type": "text", "text": "$ echo refused" }, part]));
    let long = format!("x-kiso-chat-id: {}\r\n", "x".repeat(300));
    let chat = "/v1/chat/completions";
    let responses = "/v1/responses";
    let cases = [
        (chat, "", json!({}), 400, "bad_request", "model"),
        (chat, "", json!([]), 400, "bad_request", "JSON"),
        (chat, "", with("model", json!("gpt-4o")), 404, "model_not_found", "GET /v1/models"),
        (chat, "", with("model", json!("kiso/../x")), 404, "model_not_found", "kiso/../x"),
        (chat, "", with("model", json!("kiso/nowhere")), 404, "model_not_found", "kiso/nowhere"),
        (chat, "", with("messages", json!([])), 400, "bad_request", "the last message"),
        (chat, "", with("messages", json!([{ "role": "king", "content": "x" }])), 400, "bad_request", "king"),
        (chat, "", with("messages", json!([{ "role": "assistant", "content": "x" }])), 400, "bad_request", "the last"),
        (chat, "", user(json!("  ")), 400, "bad_request", "empty"),
        (chat, "", user(json!(7)), 400, "bad_request", "a text or a list of parts"),
        (chat, "", part(json!({ "type": "video" })), 400, "bad_request", "video"),
        (
            chat,
            "",
            part(json!({ "type": "image_url", "image_url": { "url": "http://127.0.0.1/x.png" } })),
            400,
            "bad_request",
            "data URL",
        ),
        (
            chat,
            "",
            part(json!({ "type": "file", "file": { "filename": "a", "file_data": "!" } })),
            400,
            "bad_request",
            "base64",
        ),
        (chat, "", user(json!("x".repeat((1 << 20) + 1))), 413, "too_large", "1048577 bytes"),
        (chat, "", with("metadata", json!({ "a": "x".repeat(600) })), 400, "bad_request", "metadata"),
        (chat, "", with("metadata", json!({ "a": [1] })), 400, "bad_request", "metadata"),
        (chat, "", with("user", json!("")), 400, "bad_request", "`user`"),
        (chat, "", with("n", json!(2)), 400, "bad_request", "`n`"),
        (chat, "", with("logprobs", json!(true)), 400, "bad_request", "logprobs"),
        (chat, "idempotency-key: \r\n", user(json!("$ echo refused")), 400, "bad_request", "Idempotency-Key"),
        (chat, &long, user(json!("$ echo refused")), 400, "bad_request", "x-kiso-chat-id"),
        (responses, "", json!({ "model": "kiso" }), 400, "bad_request", "input"),
        (responses, "", json!({ "model": "kiso", "input": [{ "content": "x" }] }), 400, "bad_request", "role"),
        (
            responses,
            "",
            json!({ "model": "kiso", "input": [{ "type": "function_call_output", "output": "x" }] }),
            400,
            "bad_request",
            "function_call_output",
        ),
        (
            responses,
            "",
            json!({ "model": "kiso", "input": "x", "previous_response_id": "resp_none" }),
            404,
            "not_found",
            "resp_none",
        ),
        (
            responses,
            "",
            json!({ "model": "kiso", "input": "x", "background": true, "store": false }),
            400,
            "bad_request",
            "background",
        ),
        ("/v1/embeddings", "", json!({}), 404, "not_found", "/v1/embeddings"),
        ("/v1/models", "", json!({}), 405, "wrong_method", "POST"),
    ];
    for (path, headers, body, status, code, part) in cases {
        let answer = post(&served, path, headers, &body);
        let error = &answer.expect(status)["error"];
        let shown: String = body.to_string().chars().take(200).collect();
        assert_eq!(
            (error["code"].as_str(), error["type"].as_str()),
            (Some(code), Some("invalid_request_error")),
            "{shown}"
        );
        assert!(error["message"].as_str().unwrap().contains(part), "{shown}: {error}");
        assert!(error.get("param").is_some() && error.get("hint").is_none(), "{error}");
    }
    // A body that is too large is refused before it is sent.
    let mut stream = served.connect();
    let token = served.token.as_deref().unwrap();
    let head = format!(
        "POST {chat} HTTP/1.1\r\nhost: x\r\nconnection: close\r\nauthorization: Bearer {token}\r\ncontent-length: {}\r\n\r\n",
        17 << 20
    );
    stream.write_all(head.as_bytes()).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    assert!(answer.starts_with("HTTP/1.1 413") && answer.contains("PUT /sessions"), "{answer}");
    let unknown = served.ask_with("kiso_none", "/v1/models");
    assert!(unknown.starts_with("HTTP/1.1 401") && unknown.contains("authentication_error"), "{unknown}");
    let sessions = served.get("/sessions");
    let names: Vec<_> = sessions["items"].as_array().unwrap().iter().map(|session| &session["name"]).collect();
    assert_eq!(names, ["main"], "nothing was begun");
}
