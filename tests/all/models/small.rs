//! Support for small models and their servers: ending endless answers, calls written as text, and slots.

use super::{BOTH, Format, Scene, question, with_schema, with_tools};
use kiso_llm::endpoint::Support;
use kiso_llm::{Answer, Calling, Completion, Form, LlmError, Request, Stop, ToolChoice, Turn};
use kiso_plan::call::ToolCall;
use serde_json::{Value, json};

fn script(value: Value) -> String {
    toml::to_string(&value).unwrap()
}

/// Each kind of output can repeat: text, reasoning, arguments.
#[tokio::test]
async fn a_model_that_only_repeats_itself_is_not_listened_to_any_more() {
    let circle = "I am here to help you. ".repeat(400);
    for format in BOTH {
        for reply in [
            json!({ "text": circle, "pieces": 900, "fault": "stall_mid_stream" }),
            json!({ "reasoning": circle, "text": "So.", "pieces": 900 }),
            json!({ "calls": [{ "name": "exec", "args": { "command": circle } }], "pieces": 900 }),
        ] {
            // A stalled answer is never released: nobody waits for it.
            let scene = Scene::new(format, &script(json!({ "reply": [reply] })));
            let completion = scene.ask(&with_tools()).await.unwrap();
            assert_eq!(completion.stop, Stop::Repetition, "{format:?} {reply}");
            assert!(completion.text.len() < 4_000 && !completion.counted, "{}", completion.text.len());
            assert!(completion.usage.output_tokens > 300, "it is paid for: {:?}", completion.usage);
        }
    }
}

/// The format's "tools" are refused with different error texts, and the model is then asked for JSON.
#[tokio::test]
async fn a_model_without_tools_calls_them_in_json() {
    let answer = json!({ "say": "I look.", "calls": [{ "tool": "exec", "args": { "command": "ls" } }] }).to_string();
    let refusals = [
        "registry.ollama.ai/library/gemma:2b does not support tools",
        "tools param requires --jinja flag",
        "\"auto\" tool choice requires --enable-auto-tool-choice and --tool-call-parser to be set",
        "Unsupported parameter: 'tools' is not supported with this model.",
    ];
    for refusal in refusals {
        let refused = json!({ "status": 400, "raw": json!({ "error": { "message": refusal } }).to_string() });
        let replies =
            json!({ "reply": [refused, { "text": answer }, { "text": "{\"say\": \"Two files.\", \"calls\": []}" }] });
        let scene = Scene::new(Format::OpenAi, &script(replies));
        let completion = scene.ask(&with_tools()).await.unwrap();
        let call = ToolCall::new("call_1", "exec", json!({ "command": "ls" }).to_string());
        assert_eq!(completion.calls, std::slice::from_ref(&call));
        assert_eq!((completion.text.as_str(), completion.stop), ("I look.", Stop::Calls));
        assert_eq!((completion.calling, completion.form), (Calling::Json, Form::Schema));
        let turns = vec![
            Turn::Assistant { text: completion.text, calls: completion.calls },
            Turn::Tool { id: call.id, name: call.name, text: "a b".to_owned() },
            Turn::Note("Go on.".to_owned()),
        ];
        let completion = scene.ask(&Request { turns, ..with_tools() }).await.unwrap();
        assert_eq!((completion.text.as_str(), completion.stop, completion.calls.len()), ("Two files.", Stop::End, 0));
        let bodies = scene.bodies();
        assert!(bodies[0]["tools"].is_array() && bodies[1..].iter().all(|body| body.get("tools").is_none()));
        let schema = &bodies[1]["response_format"]["json_schema"]["schema"]["properties"]["calls"]["items"]["anyOf"][0];
        assert_eq!(schema["properties"]["tool"]["enum"], json!(["exec"]));
        let (before, after) = (bodies[1]["messages"].as_array().unwrap(), bodies[2]["messages"].as_array().unwrap());
        assert!(before[0]["content"].as_str().unwrap().contains("- exec: Runs a command {"), "{}", before[0]);
        assert_eq!(before[..], after[..before.len()], "what was sent before is sent again");
        assert_eq!(after[before.len()]["content"], answer, "as it was answered");
        assert_eq!(after[before.len() + 1]["content"], "Result of the tool exec:\na b\n\nGo on.");
        scene.server.finish();
    }
}

#[tokio::test]
async fn an_answer_in_place_of_calls_is_one_whatever_its_form() {
    for (text, said, stop) in [
        ("There is nothing to do.", "There is nothing to do.", Stop::End),
        ("{\"calls\": [], \"say\": \"Done.\"}", "Done.", Stop::End),
        ("{\"rows\": 3}", "{\"rows\": 3}", Stop::End),
        ("{\"say\": \"I was just", "I was just", Stop::Length),
    ] {
        let reason = if stop == Stop::Length { "length" } else { "stop" };
        let replies = script(json!({ "reply": [{ "text": text, "stop": reason, "pieces": 5 }] }));
        let scene = Scene::with(Format::OpenAi, &replies, |endpoint| endpoint.tools = Support::No);
        let completion = scene.ask(&with_tools()).await.unwrap();
        assert_eq!((completion.text.as_str(), completion.stop, completion.calls.len()), (said, stop, 0), "{text}");
    }
}

/// A provider cuts off an answer at its limit.
#[tokio::test]
async fn of_calls_as_json_those_before_the_cut_are_whole() {
    let text =
        r#"{"say": "Two.", "calls": [{"tool": "exec", "args": {"command": "ls"}}, {"tool": "exec", "args": {"comm"#;
    let replies = script(json!({ "reply": [{ "text": text, "stop": "length", "pieces": 5 }] }));
    let scene = Scene::with(Format::OpenAi, &replies, |endpoint| endpoint.tools = Support::No);
    let completion = scene.ask(&with_tools()).await.unwrap();
    let calls: Vec<_> = completion.calls.iter().map(|call| (call.name.as_str(), call.args.as_str())).collect();
    assert_eq!(calls, [("exec", r#"{"command":"ls"}"#), ("exec", r#"{"tool": "exec", "args": {"comm"#)]);
    assert_eq!((completion.text.as_str(), completion.cut, completion.stop), ("Two.", true, Stop::Length));
}

/// The answer of a small model to a request for calls as JSON: one command of this length.
async fn one_command(length: usize, short: bool) -> (Completion, Option<u64>) {
    let files: String = (0..length).map(|n| format!("f{n} ")).collect();
    let command = format!("rm -r {}", &files[..length - 6]);
    let call = json!({ "say": "", "calls": [{ "tool": "exec", "args": { "command": command } }] });
    let replies = script(json!({ "reply": [{ "text": call.to_string() }] }));
    let scene = Scene::with(Format::OpenAi, &replies, |endpoint| endpoint.tools = Support::No);
    let completion = scene.ask(&Request { short, ..with_tools() }).await.unwrap();
    let schema = scene.bodies()[0]["response_format"]["json_schema"]["schema"].clone();
    let exec = &schema["properties"]["calls"]["items"]["anyOf"][0]["properties"]["args"]["properties"]["command"];
    (completion, exec["maxLength"].as_u64())
}

/// A grammar cuts off a long text anywhere, and half a command line is a different command.
#[tokio::test]
async fn a_call_with_an_argument_that_fills_its_room_is_not_whole() {
    let most = one_command(10, true).await.1.expect("the schema of a small model has lengths") as usize;
    for (length, cut) in [(most - 1, false), (most, true), (most + 1, false)] {
        let why = one_command(length, true).await.0.calls.remove(0).cut;
        assert_eq!(why.is_some(), cut, "{length} of {most}: {why:?}");
        assert!(why.is_none_or(|why| why.contains(&format!("its argument command fills the {most} characters"))));
    }
    let (completion, room) = one_command(most, false).await;
    assert_eq!((&completion.calls[0].cut, room), (&None, None), "a large model has no such bound");
}

#[tokio::test]
async fn the_administrator_knows_whether_a_model_has_tools() {
    let refused = json!({ "status": 400, "raw": "{\"error\": \"it does not support tools\"}" });
    let scene = Scene::with(Format::OpenAi, &script(json!({ "reply": [refused] })), |endpoint| {
        endpoint.tools = Support::Yes;
    });
    let error = scene.ask(&with_tools()).await.unwrap_err();
    assert!(matches!(error, LlmError::Refused { .. }), "{error}");
}

/// The server identifies itself in its first answer; later requests use the features that only it supports.
#[tokio::test]
async fn a_llama_server_is_asked_for_slots_and_grammars() {
    let reply = |text: &str| json!({ "text": text, "headers": { "server": "llama.cpp" } });
    let props = json!({ "total_slots": 2, "chat_template_caps": { "supports_tools": true } });
    let replies: Vec<_> = (0..5).map(|_| reply("{}")).collect();
    let scene = Scene::new(Format::OpenAi, &script(json!({ "props": props, "reply": replies })));
    let Answer::Json(small) = with_schema().answer else { panic!() };
    let large = json!({ "type": "object", "properties": { "status": { "enum": ["ok"] } } });
    for key in ["a", "b", "a", "c", ""] {
        let request = Request { cache_key: key.to_owned(), grammar: Some(large.clone().into()), ..with_schema() };
        scene.ask(&request).await.unwrap();
    }
    let requests = scene.server.requests();
    assert_eq!(requests.iter().filter(|seen| seen.path == "/props").count(), 1);
    let bodies: Vec<_> = requests.iter().filter(|seen| seen.path != "/props").map(|seen| &seen.body).collect();
    let slots: Vec<_> = bodies.iter().map(|body| body["id_slot"].as_u64()).collect();
    assert_eq!(slots, [None, Some(0), Some(1), Some(0), None], "the first request finds out");
    let schema = |n: usize| &bodies[n]["response_format"]["json_schema"]["schema"];
    assert_eq!((schema(0), schema(1)), (&*small, &large));
    assert!(bodies[0].get("cache_prompt").is_none() && bodies[1]["cache_prompt"] == true);
}

/// A template without tools drops them silently, so the server is asked before its model's answer is trusted.
#[tokio::test]
async fn a_template_that_shows_no_tools_is_known_before_its_answer() {
    let reply = |text: &str| json!({ "text": text, "headers": { "server": "llama.cpp" } });
    let props = json!({ "total_slots": 1, "chat_template_caps": { "supports_tools": false } });
    let call = "{\"say\": \"\", \"calls\": [{\"tool\": \"exec\", \"args\": {\"command\": \"ls\"}}]}";
    let replies = [reply("I see no tools."), reply(call)];
    let scene = Scene::new(Format::OpenAi, &script(json!({ "props": props, "reply": replies })));
    let completion = scene.ask(&with_tools()).await.unwrap();
    assert_eq!((completion.calls.len(), completion.text.as_str()), (1, ""));
    scene.server.finish();
}

/// Other servers are not asked for llama.cpp's properties.
#[tokio::test]
async fn other_servers_are_not_asked_about_themselves() {
    let replies = script(json!({ "reply": [{ "text": "a", "headers": { "server": "uvicorn" } }, { "text": "b" }] }));
    let scene = Scene::new(Format::OpenAi, &replies);
    for _ in 0..2 {
        scene.ask(&Request { cache_key: "k".to_owned(), ..question() }).await.unwrap();
    }
    for body in scene.bodies() {
        assert!(body.get("id_slot").is_none() && body.get("cache_prompt").is_none(), "{body}");
    }
    scene.server.finish();
}

/// Tools are at the beginning of a prompt, so a request that must not call any still lists them.
#[tokio::test]
async fn tools_are_shown_that_may_not_be_called() {
    for format in BOTH {
        let scene = Scene::new(format, &script(json!({ "reply": [{ "text": "a" }] })));
        scene.ask(&Request { tool_choice: ToolChoice::None, ..with_tools() }).await.unwrap();
        let body = scene.bodies().remove(0);
        let none = if format == Format::OpenAi { json!("none") } else { json!({ "type": "none" }) };
        assert_eq!((body["tools"].as_array().map(Vec::len), &body["tool_choice"]), (Some(1), &none), "{format:?}");
    }
    let script = script(json!({ "refuses": ["tool_choice"], "reply": [{ "text": "a" }] }));
    let scene = Scene::new(Format::OpenAi, &script);
    let Completion { text, .. } = scene.ask(&Request { tool_choice: ToolChoice::None, ..with_tools() }).await.unwrap();
    assert_eq!((text.as_str(), scene.bodies().pop().unwrap().get("tools")), ("a", None));
}
