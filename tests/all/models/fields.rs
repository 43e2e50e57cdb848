//! Fields that some endpoints refuse: left out after a refusal, and remembered.

use super::{BOTH, Format, Scene, question, refused, with_schema, with_tools};
use kiso_llm::endpoint::Support;
use kiso_llm::{Answer, Request, Stop, Turn};
use kiso_plan::call::ToolCall;
use serde_json::{Value, json};

const THREE: &str = "[[reply]]\ntext = '{\"status\": \"ok\"}'\n\
                     [[reply]]\ntext = '{\"status\": \"ok\"}'\n[[reply]]\ntext = '{\"status\": \"ok\"}'";

/// The answer format that each request asked for.
fn formats(scene: &Scene) -> Vec<Value> {
    let wanted = |body: Value| match body.get("response_format").or(body.get("tool_choice")) {
        Some(format) => format["type"].clone(),
        None => Value::Null,
    };
    scene.bodies().into_iter().map(wanted).collect()
}

#[tokio::test]
async fn a_schema_is_asked_for_and_enforced() {
    for format in BOTH {
        let scene = Scene::new(format, THREE);
        let completion = scene.ask(&with_schema()).await.unwrap();
        assert_eq!((completion.text.as_str(), completion.stop), (r#"{"status": "ok"}"#, Stop::End));
        assert_eq!(completion.calls, []);
        let (body, Answer::Json(schema)) = (scene.bodies().remove(0), with_schema().answer) else { panic!() };
        match format {
            Format::OpenAi => {
                let named = json!({ "name": "reviewer", "strict": false, "schema": *schema });
                assert_eq!(body["response_format"], json!({ "type": "json_schema", "json_schema": named }));
            }
            Format::Anthropic => {
                assert_eq!(body["tools"][0]["input_schema"], *schema);
                assert_eq!(body["tool_choice"], json!({ "type": "tool", "name": "answer" }));
            }
        }
    }
}

#[tokio::test]
async fn a_schema_that_is_refused_is_not_asked_for_again() {
    for format in BOTH {
        let scene = Scene::new(format, &THREE.replacen("[[reply]]", "[[reply]]\nfault = 'refuse_schema'", 1));
        for _ in 0..2 {
            assert_eq!(scene.ask(&with_schema()).await.unwrap().text, r#"{"status": "ok"}"#);
        }
        let expected = match format {
            Format::OpenAi => json!(["json_schema", "json_object", null, null]),
            Format::Anthropic => json!(["tool", null, null]),
        };
        assert_eq!(Value::Array(formats(&scene)), expected, "{format:?}");
    }
}

/// Gateways start to answer before they have asked the provider, whose refusal then comes inside the answer.
#[tokio::test]
async fn a_refusal_inside_an_answer_is_one_all_the_same() {
    let said = "response_format with a json_schema is not supported, nor is the tool_choice";
    for format in BOTH {
        for raw in [
            json!({ "error": { "message": said, "code": 400 } }).to_string(),
            json!({ "object": "error", "message": said, "code": 400 }).to_string(),
            format!("data: {}\n\n", json!({ "error": { "message": said, "type": "invalid_request_error" } })),
            format!("event: error\ndata: {}\n\n", json!({ "message": said, "code": "400" })),
            format!("event: error\ndata: {said}\n\n"),
        ] {
            let refusal = json!({ "raw": raw });
            let refusals = if format == Format::OpenAi { vec![refusal; 2] } else { vec![refusal] };
            let refusals = toml::to_string(&json!({ "reply": refusals })).unwrap();
            let scene = Scene::new(format, &format!("{refusals}\n{THREE}"));
            for _ in 0..2 {
                assert_eq!(scene.ask(&with_schema()).await.unwrap().text, r#"{"status": "ok"}"#, "{format:?} {raw}");
            }
            let expected = match format {
                Format::OpenAi => json!(["json_schema", "json_object", null, null]),
                Format::Anthropic => json!(["tool", null, null]),
            };
            assert_eq!(Value::Array(formats(&scene)), expected, "{format:?} {raw}");
        }
    }
}

#[tokio::test]
async fn a_refusal_after_words_is_a_failure() {
    let word = json!({ "choices": [{ "index": 0, "delta": { "content": "Half" } }] });
    let error = json!({ "error": { "message": "json_schema is not supported", "code": 400 } });
    let raw = format!("data: {word}\n\ndata: {error}\n\n");
    let scene = Scene::new(Format::OpenAi, &toml::to_string(&json!({ "reply": [{ "raw": raw }] })).unwrap());
    assert_eq!(refused(scene.ask(&with_schema()).await.unwrap_err()), "json_schema is not supported");
    assert_eq!(scene.bodies().len(), 1);
}

#[tokio::test]
async fn some_json_is_asked_for_where_only_that_is_known() {
    let refusal = "[[reply]]\nstatus = 400\nraw = '{\"error\": {\"message\": \"json_schema is not supported\"}}'\n";
    let scene = Scene::new(Format::OpenAi, &format!("{refusal}{THREE}"));
    for _ in 0..2 {
        scene.ask(&with_schema()).await.unwrap();
    }
    assert_eq!(formats(&scene), [json!("json_schema"), json!("json_object"), json!("json_object")]);
}

#[tokio::test]
async fn the_administrator_knows_better() {
    for format in BOTH {
        let script = THREE.replacen("[[reply]]", "[[reply]]\nfault = 'refuse_schema'", 1);
        let scene = Scene::with(format, &script, |endpoint| endpoint.schema = Support::Yes);
        let message = refused(scene.ask(&with_schema()).await.unwrap_err());
        assert!(message.contains("is not supported by this model"), "{message}");
        assert_eq!(formats(&scene).len(), 1);

        let scene = Scene::with(format, THREE, |endpoint| endpoint.schema = Support::No);
        scene.ask(&with_schema()).await.unwrap();
        assert_eq!(formats(&scene), [Value::Null]);
    }
}

/// A refusal that is not caused by the field is not remembered.
#[tokio::test]
async fn a_failed_repeat_is_not_remembered() {
    let refusal = "[[reply]]\nstatus = 400\nraw = 'the schema of your tool is wrong'\n";
    let scene = Scene::new(Format::OpenAi, &format!("{}{THREE}", refusal.repeat(3)));
    let message = refused(scene.ask(&with_schema()).await.unwrap_err());
    assert!(message.contains("400 Bad Request: the schema of your tool is wrong"), "{message}");
    scene.ask(&with_schema()).await.unwrap();
    assert_eq!(formats(&scene), [json!("json_schema"), json!("json_object"), Value::Null, json!("json_schema")]);
}

#[tokio::test]
async fn with_tools_anthropic_is_not_forced_into_the_answer() {
    let scene = Scene::new(Format::Anthropic, THREE);
    let request = Request { answer: with_schema().answer, ..with_tools() };
    scene.ask(&request).await.unwrap();
    assert_eq!(formats(&scene), [Value::Null]);
    assert_eq!(scene.bodies()[0]["tools"].as_array().unwrap().len(), 1);
}

#[tokio::test]
async fn fields_that_are_refused_are_left_out_from_then_on() {
    let warm = Request { temperature: Some(0.0), ..question() };
    let scene = Scene::new(Format::OpenAi, &format!("refuses = ['stream_options', 'temperature']\n{THREE}"));
    let completion = scene.ask(&warm).await.unwrap();
    assert_eq!((completion.usage.input_tokens, completion.usage.output_tokens), (6, 4), "estimated");
    scene.ask(&warm).await.unwrap();
    let bodies = scene.bodies();
    assert_eq!(bodies.len(), 4, "two refusals, and none the second time");
    for body in &bodies[2..] {
        assert!(body.get("stream_options").is_none() && body.get("temperature").is_none());
    }

    let scene = Scene::new(Format::Anthropic, &format!("refuses = ['temperature']\n{THREE}"));
    scene.ask(&warm).await.unwrap();
    scene.ask(&warm).await.unwrap();
    assert_eq!(
        scene.bodies().iter().map(|body| body.get("temperature").is_some()).collect::<Vec<_>>(),
        [true, false, false]
    );
}

#[tokio::test]
async fn the_limit_of_an_answer_has_two_names() {
    let scene = Scene::new(Format::OpenAi, &format!("refuses = ['max_tokens']\n{THREE}"));
    scene.text().await;
    scene.text().await;
    let names = scene
        .bodies()
        .into_iter()
        .map(|body| (body["max_tokens"].as_u64().unwrap_or(0), body["max_completion_tokens"].as_u64().unwrap_or(0)));
    assert_eq!(names.collect::<Vec<_>>(), [(2048, 0), (0, 2048), (0, 2048)]);

    let too_large = "[[reply]]\nstatus = 400\nraw = 'max_tokens: 9999 is larger than 4096'\n";
    let scene = Scene::new(Format::OpenAi, too_large);
    assert!(refused(scene.fails().await).contains("is larger than 4096"));
    assert_eq!(scene.bodies().len(), 1, "the field is not what is refused");
}

/// The limit is derived from a model's context; some models accept only a smaller one.
#[tokio::test]
async fn a_limit_that_is_too_large_for_the_model_is_lowered() {
    for (format, refusals, limits) in [
        (
            Format::OpenAi,
            &["max_tokens is too large: 16000. This model gpt-4-1106 supports at most 4096 completion tokens"][..],
            &[16_000, 4_096, 4_096][..],
        ),
        (
            Format::Anthropic,
            &["max_tokens: 16000 > 8192, which is the maximum allowed number of output tokens for claude-3-20240620"],
            &[16_000, 8_192, 8_192],
        ),
        (Format::Anthropic, &["max_tokens is too large", "max_tokens is too large"], &[16_000, 8_000, 4_000, 4_000]),
    ] {
        let replies: String =
            refusals.iter().map(|said| format!("[[reply]]\nstatus = 400\nraw = '{said}'\n")).collect();
        let scene = Scene::new(format, &format!("{replies}{THREE}"));
        let long = Request { max_tokens: 16_000, ..question() };
        scene.ask(&long).await.unwrap();
        scene.ask(&long).await.unwrap();
        let sent: Vec<_> = scene.bodies().iter().map(|body| body["max_tokens"].as_u64().unwrap()).collect();
        assert_eq!(sent, limits, "{format:?} {refusals:?}");
    }
}

#[tokio::test]
async fn tokens_that_are_not_counted_are_estimated() {
    for format in BOTH {
        let scene = Scene::new(format, "[[reply]]\ntext = '0123456789'\nfault = 'no_usage'");
        let usage = scene.ask(&question()).await.unwrap().usage;
        assert_eq!((usage.input_tokens, usage.output_tokens, usage.cost_micros), (3 + 3, 3, 0), "{format:?}");
    }
}

/// Mistral requires an assistant message after tool results; the host's note is then added to the last result.
#[tokio::test]
async fn a_note_that_may_not_follow_a_result_goes_into_it() {
    let refusal = r#"[[reply]]
status = 400
raw = "{\"message\": \"Unexpected role 'user' after role 'tool'\", \"code\": \"3230\"}"
"#;
    let scene = Scene::new(Format::OpenAi, &format!("{refusal}{THREE}"));
    let call = |id: &str| ToolCall::new(id, "exec", "{}");
    let result = |id: &str| Turn::Tool { id: id.to_owned(), name: "exec".to_owned(), text: format!("{id} done") };
    let asked = Turn::Assistant { text: String::new(), calls: vec![call("a"), call("b")] };
    let request =
        Request { turns: vec![asked, result("a"), result("b"), Turn::Note("note".to_owned())], ..with_tools() };
    scene.ask(&request).await.unwrap();
    scene.ask(&request).await.unwrap();
    let tails = scene.bodies().into_iter().map(|body| {
        let messages = body["messages"].as_array().unwrap()[3..].iter();
        messages.map(|m| format!("{}: {}", m["role"].as_str().unwrap(), m["content"].as_str().unwrap())).collect()
    });
    let folded = vec!["tool: a done", "tool: b done\n\nnote"];
    let apart = vec!["tool: a done", "tool: b done", "user: note"];
    assert_eq!(tails.collect::<Vec<Vec<String>>>(), [apart, folded.clone(), folded]);
}

/// Templates of some local models do not support a system prompt.
#[tokio::test]
async fn a_system_prompt_that_is_refused_goes_into_the_first_message() {
    for refusal in ["System role not supported", "Conversation roles must alternate user/assistant/user/assistant/..."]
    {
        let refused = format!("[[reply]]\nstatus = 400\nraw = '{refusal}'\n");
        let scene = Scene::new(Format::OpenAi, &format!("{refused}{THREE}"));
        scene.text().await;
        scene.text().await;
        let bodies = scene.bodies();
        assert_eq!(bodies.len(), 3, "one refusal, and none the second time");
        for body in &bodies[1..] {
            assert_eq!(body["messages"], json!([{ "role": "user", "content": "You answer.\n\nWhat is new?" }]));
        }
    }
}

/// The common beginning of requests is marked for the provider's cache; a provider that refuses the field does not get it again.
#[tokio::test]
async fn what_was_read_is_kept_where_the_provider_can() {
    for (format, field) in [(Format::OpenAi, "prompt_cache_key"), (Format::Anthropic, "cache_control")] {
        let refusal = json!({ "error": { "message": format!("{field}: Extra inputs are not permitted") } }).to_string();
        let replies = json!({ "reply": [{ "text": "ok" }, { "status": 400, "raw": refusal }, { "text": "ok" }, { "text": "ok" }] });
        let scene = Scene::new(format, &toml::to_string(&replies).unwrap());
        let request = Request { cache_key: "7f3a".to_owned(), ..with_schema() };
        for _ in 0..3 {
            scene.ask(&request).await.unwrap();
        }
        let bodies = scene.bodies();
        let told: Vec<_> = bodies.iter().map(|body| body.to_string().contains(field)).collect();
        assert_eq!(told, [true, true, false, false], "{format:?}");
        match format {
            Format::OpenAi => assert_eq!(bodies[0]["prompt_cache_key"], "7f3a"),
            Format::Anthropic => {
                let mark = json!({ "type": "ephemeral" });
                assert_eq!(
                    (&bodies[0]["system"][0]["text"], &bodies[0]["system"][0]["cache_control"]),
                    (&json!("You answer."), &mark)
                );
                let last = bodies[0]["messages"].as_array().unwrap().last().unwrap();
                assert_eq!(last["content"].as_array().unwrap().last().unwrap()["cache_control"], mark);
                assert_eq!(bodies[3]["system"], "You answer.");
            }
        }
    }
}
