//! Requests and answers without faults.

use super::{BOTH, Format, Heard, KEY, Scene, endpoint, model, question, refused, with_tools};
use kiso_base::role::Role;
use kiso_llm::{Stop, Turn};
use kiso_plan::call::ToolCall;
use kiso_store::secret::SecretValue;
use serde_json::json;

#[tokio::test]
async fn text_comes_in_pieces_and_is_counted() {
    for format in BOTH {
        let scene =
            Scene::new(format, "[[reply]]\ntext = 'größer 🦀 news'\npieces = 5\nusage = { input = 120, output = 7 }");
        let mut heard = Heard::default();
        let completion = scene.model.complete(&question(), &mut heard).await.unwrap();
        assert_eq!(completion.text, "größer 🦀 news");
        assert_eq!(heard.0, ["grö", "ßer", " 🦀 ", "new", "s"], "{format:?}: as the server sent them");
        assert_eq!((completion.usage.input_tokens, completion.usage.output_tokens), (120, 7));
        assert_eq!((completion.stop, completion.calls.len()), (Stop::End, 0));
        assert_eq!(completion.model, "test:model-1");
        assert_eq!(scene.model.name(), "test:model-1");
        scene.server.finish();
    }
}

/// The first piece is delivered before the server has sent the rest.
#[tokio::test]
async fn a_piece_is_heard_before_the_next_is_sent() {
    for format in BOTH {
        let scene = Scene::new(format, "[[reply]]\ntext = 'one two'\npieces = 7\nfault = 'stall_mid_stream'");
        let mut text = String::new();
        let mut sink = |piece: &str| {
            if text.is_empty() {
                scene.server.release();
            }
            text.push_str(piece);
        };
        // The server holds the second half until the first was received; otherwise this would not end.
        scene.model.complete(&question(), &mut sink).await.unwrap();
        assert_eq!(text, "one two");
        scene.server.finish();
    }
}

#[tokio::test]
async fn a_request_says_who_asks_for_what() {
    for format in BOTH {
        let script = "[[reply]]\nrole = 'planner'\nexpect_contains = ['You answer.', 'What is new?']\n\
                      expect_absent = 'sk-test'\ntext = 'ok'";
        let scene = Scene::new(format, script);
        let mut request = with_tools();
        (request.role, request.temperature, request.max_tokens) = (Role::Planner, Some(0.2), 333);
        scene.ask(&request).await.unwrap();
        let seen = scene.server.requests().remove(0);
        let header = |name: &str| seen.headers.get(name).map_or("", String::as_str);
        assert_eq!((header("x-kiso-role"), header("content-type")), ("planner", "application/json"));
        assert!(header("user-agent").starts_with("kiso/"));
        assert_eq!(header("host"), scene.server.base_url().trim_start_matches("http://").trim_end_matches("/v1"));
        assert_eq!((&seen.body["model"], &seen.body["stream"]), (&json!("model-1"), &json!(true)));
        assert_eq!((&seen.body["max_tokens"], &seen.body["temperature"]), (&json!(333), &json!(0.2)));
        let parameters = &request.tools[0].parameters;
        match format {
            Format::OpenAi => {
                assert_eq!(seen.path, "/v1/chat/completions");
                assert_eq!(header("authorization"), format!("Bearer {KEY}"));
                assert_eq!(seen.body["stream_options"], json!({ "include_usage": true }));
                assert_eq!(
                    seen.body["messages"],
                    json!([{ "role": "system", "content": "You answer." }, { "role": "user", "content": "What is new?" }])
                );
                let function = json!({ "name": "exec", "description": "Runs a command", "parameters": parameters });
                assert_eq!(seen.body["tools"], json!([{ "type": "function", "function": function }]));
            }
            Format::Anthropic => {
                assert_eq!(seen.path, "/v1/messages");
                assert_eq!((header("x-api-key"), header("authorization")), (KEY, ""));
                assert_eq!(header("anthropic-version"), "2023-06-01");
                assert_eq!(seen.body["system"], json!("You answer."));
                let text = json!([{ "type": "text", "text": "What is new?" }]);
                assert_eq!(seen.body["messages"], json!([{ "role": "user", "content": text }]));
                let tool = json!({ "name": "exec", "description": "Runs a command", "input_schema": parameters });
                assert_eq!(seen.body["tools"], json!([tool]));
            }
        }
        scene.server.finish();
    }
}

#[tokio::test]
async fn calls_come_with_their_arguments() {
    for format in BOTH {
        let script = "[[reply]]\ntext = 'I look.'\npieces = 4\ncalls = [\
                      { name = 'exec', args = { command = 'ls \"größer\"' } }, { name = 'exec' }]";
        let scene = Scene::new(format, script);
        let completion = scene.ask(&with_tools()).await.unwrap();
        let call = |id: &str, args: &str| ToolCall::new(id, "exec", args);
        assert_eq!(completion.calls, [call("toolu_0", r#"{"command":"ls \"größer\""}"#), call("toolu_1", "{}")]);
        assert_eq!((completion.stop, completion.text.as_str()), (Stop::Calls, "I look."));
        scene.server.finish();
    }
}

/// Turns of an interrupted run are sent in the form that each format requires.
#[tokio::test]
async fn a_conversation_is_sent_in_legal_form() {
    let call = |id: &str, args: &str| ToolCall::new(id, "exec", args);
    let turns = vec![
        Turn::Assistant { text: String::new(), calls: vec![call("x", "{\"command\":\"ls\"}"), call("x", "{broken")] },
        Turn::Tool { id: "x".to_owned(), name: "exec".to_owned(), text: "a.txt".to_owned() },
        Turn::Note("[TOOL REFLECTION]".to_owned()),
        Turn::Assistant { text: String::new(), calls: Vec::new() },
        Turn::Note("Only two rounds are left.".to_owned()),
        Turn::Assistant { text: "Done.".to_owned(), calls: Vec::new() },
    ];
    let lost = "interrupted: there is no result of this call";
    let note = "[TOOL REFLECTION]\n\nOnly two rounds are left.";
    let (ls, broken) = (json!({ "command": "ls" }), json!({ "arguments_that_were_no_object": "{broken" }));
    for format in BOTH {
        let scene = Scene::new(format, "[[reply]]\ntext = 'ok'");
        let request = kiso_llm::Request { turns: turns.clone(), ..question() };
        scene.ask(&request).await.unwrap();
        let body = scene.bodies().remove(0);
        match format {
            Format::OpenAi => {
                let called = |id: &str, args: &serde_json::Value| {
                    let function = json!({ "name": "exec", "arguments": args.to_string() });
                    json!({ "id": id, "type": "function", "function": function })
                };
                let calls = [called("call00001", &ls), called("call00002", &broken)];
                assert_eq!(
                    body["messages"],
                    json!([
                        { "role": "system", "content": "You answer." },
                        { "role": "user", "content": "What is new?" },
                        { "role": "assistant", "content": null, "tool_calls": calls },
                        { "role": "tool", "tool_call_id": "call00001", "content": "a.txt" },
                        { "role": "tool", "tool_call_id": "call00002", "content": lost },
                        { "role": "user", "content": note },
                        { "role": "assistant", "content": "Done." },
                        { "role": "user", "content": "Go on." },
                    ])
                );
                assert!(body.get("tools").is_none());
            }
            Format::Anthropic => {
                let text = |text: &str| json!({ "type": "text", "text": text });
                let used = |id: &str, input: &serde_json::Value| json!({ "type": "tool_use", "id": id, "name": "exec", "input": input });
                let result =
                    |id: &str, text: &str| json!({ "type": "tool_result", "tool_use_id": id, "content": text });
                let results = [result("call00001", "a.txt"), result("call00002", lost), text(note)];
                assert_eq!(
                    body["messages"],
                    json!([
                        { "role": "user", "content": [text("What is new?")] },
                        { "role": "assistant", "content": [used("call00001", &ls), used("call00002", &broken)] },
                        { "role": "user", "content": results },
                        { "role": "assistant", "content": [text("Done.")] },
                        { "role": "user", "content": [text("Go on.")] },
                    ])
                );
                // The tool was called earlier, so it has to be listed, but it must not be called again.
                assert_eq!(body["tools"], json!([{ "name": "exec", "input_schema": { "type": "object" } }]));
                assert_eq!(body["tool_choice"], json!({ "type": "none" }));
            }
        }
        scene.server.finish();
    }
}

#[tokio::test]
async fn thoughts_are_never_part_of_the_text() {
    for format in BOTH {
        for (text, reasoning) in [
            ("<think>Let me see…</think>\n\nHello", ""),
            ("Hello", "Let me see…"),
            (" <thinking>x</thinking>Hello", "y"),
        ] {
            let script =
                format!("[[reply]]\ntext = {text:?}\nreasoning = {reasoning:?}\npieces = 9\nfault = 'no_usage'");
            let scene = Scene::new(format, &script);
            let completion = scene.ask(&question()).await.unwrap();
            assert_eq!(completion.text, "Hello", "{format:?} {text:?}");
            assert!(completion.usage.output_tokens > 2, "thoughts are output: {:?}", completion.usage);
            scene.server.finish();
        }
    }
}

#[tokio::test]
async fn the_end_of_an_answer_has_a_reason() {
    for (format, reason, stop) in [
        (Format::OpenAi, "stop", Stop::End),
        (Format::OpenAi, "eos", Stop::End),
        (Format::OpenAi, "length", Stop::Length),
        (Format::OpenAi, "content_filter", Stop::Filter),
        (Format::OpenAi, "tool_calls", Stop::End),
        (Format::Anthropic, "end_turn", Stop::End),
        (Format::Anthropic, "stop_sequence", Stop::End),
        (Format::Anthropic, "pause_turn", Stop::End),
        (Format::Anthropic, "max_tokens", Stop::Length),
        (Format::Anthropic, "model_context_window_exceeded", Stop::Length),
        (Format::Anthropic, "refusal", Stop::Filter),
    ] {
        let scene = Scene::new(format, &format!("[[reply]]\ntext = 'x'\nstop = '{reason}'"));
        assert_eq!(scene.ask(&question()).await.unwrap().stop, stop, "{reason}");
    }
}

/// Local servers need no key, and a key from a file ends with a line feed.
#[tokio::test]
async fn a_key_is_sent_as_it_is_meant() {
    for format in BOTH {
        for (key, sent) in [(None, None), (Some(" \n"), None), (Some(" sk-1\n"), Some("sk-1"))] {
            let scene = Scene::with(format, "[[reply]]\ntext = 'x'", |endpoint| {
                endpoint.key = key.map(|key| SecretValue::new(key.to_owned()));
            });
            scene.text().await;
            let headers = scene.server.requests().remove(0).headers;
            let header = headers.get("x-api-key").or_else(|| headers.get("authorization"));
            assert_eq!(header.map(|value| value.trim_start_matches("Bearer ")), sent);
        }
    }
}

#[test]
fn an_endpoint_that_cannot_be_asked_is_refused_at_once() {
    for format in BOTH {
        let fails = |base_url: &str, key: &str| {
            let mut endpoint = endpoint(base_url);
            endpoint.key = Some(SecretValue::new(key.to_owned()));
            refused(model(format, endpoint).map(|_| ()).unwrap_err())
        };
        assert!(fails("not an address", "k").contains("base_url is not an address"));
        assert!(fails("localhost:8080", "k").contains("base_url"));
        assert!(fails("ftp://example.org/v1", "k").contains("neither https:// nor http://"));
        assert!(fails("https://me:pw@example.org/v1", "k").contains("has a user or a password in it"));
        let message = fails("https://example.org/v1", "sk-se\ncret");
        assert!(message.contains("characters that no header can carry") && !message.contains("cret"), "{message}");
    }
}

/// A gateway's address may have a query, as Azure's does.
#[tokio::test]
async fn a_query_of_the_address_stays() {
    for format in BOTH {
        let scene = Scene::with(format, "", |endpoint| endpoint.base_url.push_str("/?api-version=1"));
        scene.fails().await;
        let path = scene.server.requests().remove(0).path;
        assert!(
            path.ends_with("/messages?api-version=1") || path.ends_with("/chat/completions?api-version=1"),
            "{path}"
        );
    }
}
