//! Responses of particular providers, byte for byte where it matters.

use super::{Format, Scene, refused, retryable, with_tools};
use kiso_llm::Stop;
use serde_json::{Value, json};

fn stream(chunks: &[Value]) -> String {
    let mut raw: String = chunks.iter().map(|chunk| format!("data: {chunk}\n\n")).collect();
    raw.push_str("data: [DONE]\n\n");
    raw
}

fn delta(delta: Value) -> Value {
    json!({ "choices": [{ "index": 0, "delta": delta, "finish_reason": null }] })
}

fn end(reason: &str) -> Value {
    json!({ "choices": [{ "index": 0, "delta": {}, "finish_reason": reason }] })
}

async fn completion(format: Format, raw: &str) -> kiso_llm::Completion {
    let script = toml::to_string(&json!({ "reply": [{ "raw": raw }] })).unwrap();
    Scene::new(format, &script).ask(&with_tools()).await.unwrap_or_else(|error| panic!("{error}: {raw}"))
}

/// Each call as `id name arguments`.
#[track_caller]
fn shown(calls: &[kiso_plan::call::ToolCall]) -> Vec<String> {
    calls.iter().map(|call| format!("{} {} {}", call.id, call.name, call.args)).collect()
}

#[tokio::test]
async fn calls_are_put_together_however_they_come() {
    let calls = |pieces: &[Value]| -> Vec<Value> {
        let chunks = pieces.iter().map(|piece| delta(json!({ "tool_calls": piece })));
        chunks.chain([end("tool_calls")]).collect()
    };
    let function = |name: &str, arguments: Value| json!({ "name": name, "arguments": arguments });
    for (what, pieces, expected) in [
        (
            "two calls whose pieces alternate",
            vec![
                json!([{ "index": 0, "id": "a", "function": function("exec", json!("")) }]),
                json!([{ "index": 1, "id": "b", "function": function("search", json!("{\"q\"")) }]),
                json!([{ "index": 0, "function": { "arguments": "{\"c\":1" } }]),
                json!([{ "index": 1, "function": { "arguments": ":2}" } }, { "index": 0, "function": { "arguments": "}" } }]),
            ],
            vec!["a exec {\"c\":1}", "b search {\"q\":2}"],
        ),
        (
            "both whole in one delta, without ids (Ollama)",
            vec![json!([
                { "index": 0, "function": function("exec", json!("{\"c\":1}")) },
                { "index": 1, "function": function("exec", json!("{\"c\":2}")) },
            ])],
            vec!["call_1 exec {\"c\":1}", "call_2 exec {\"c\":2}"],
        ),
        (
            "whole calls that share an index and have no ids",
            vec![
                json!([
                    { "index": 0, "function": function("exec", json!("{\"c\":1}")) },
                    { "index": 0, "function": function("exec", json!("{\"c\":2}")) },
                ]),
                json!([{ "index": 0, "function": function("search", json!("")) }]),
            ],
            vec!["call_1 exec {\"c\":1}", "call_2 exec {\"c\":2}", "call_3 search {}"],
        ),
        (
            "one call whose name comes with every piece",
            vec![
                json!([{ "index": 0, "function": function("exec", json!("{\"c\"")) }]),
                json!([{ "index": 0, "function": function("exec", json!(":1}")) }]),
                json!([{ "index": 0, "function": function("exec", json!("")) }]),
            ],
            vec!["call_1 exec {\"c\":1}"],
        ),
        (
            "whole calls without an index (Gemini)",
            vec![
                json!([{ "id": "", "function": function("exec", json!("{\"c\":1}")) }]),
                json!([{ "id": "", "function": function("exec", json!("{\"c\":2}")) }]),
            ],
            vec!["call_1 exec {\"c\":1}", "call_2 exec {\"c\":2}"],
        ),
        (
            "the same index for different calls",
            vec![
                json!([{ "index": 0, "id": "a", "function": function("exec", json!("{\"c\":1}")) }]),
                json!([{ "index": 0, "id": "b", "function": function("exec", json!("{\"c\":2}")) }]),
            ],
            vec!["a exec {\"c\":1}", "b exec {\"c\":2}"],
        ),
        (
            "the same id for different calls",
            vec![json!([
                { "index": 0, "id": "a", "function": function("exec", json!("{}")) },
                { "index": 1, "id": "a", "function": function("exec", json!("{}")) },
            ])],
            vec!["a exec {}", "call_1 exec {}"],
        ),
        (
            "id and name repeated with every piece",
            vec![
                json!([{ "index": 0, "id": "a", "function": function("exec", json!("{\"c\"")) }]),
                json!([{ "index": 0, "id": "a", "function": function("exec", json!(":1}")) }]),
            ],
            vec!["a exec {\"c\":1}"],
        ),
        (
            "a name in pieces, an id that comes late",
            vec![
                json!([{ "index": 0, "function": function("ex", Value::Null) }]),
                json!([{ "index": 0, "id": "a", "function": function("ec", json!("{}")) }]),
            ],
            vec!["a exec {}"],
        ),
        (
            "arguments as an object, and as nothing",
            vec![json!([
                { "index": 0, "id": "a", "function": function("exec", json!({ "c": 1 })) },
                { "index": 1, "id": "b", "function": { "name": "exec" } },
            ])],
            vec!["a exec {\"c\":1}", "b exec {}"],
        ),
        (
            "no index, pieces after the first",
            vec![
                json!([{ "id": "a", "function": function("exec", json!("{\"c\"")) }]),
                json!([{ "function": { "arguments": ":1}" } }]),
            ],
            vec!["a exec {\"c\":1}"],
        ),
    ] {
        let completion = completion(Format::OpenAi, &stream(&calls(&pieces))).await;
        assert_eq!(shown(&completion.calls), expected, "{what}");
        assert_eq!(completion.stop, Stop::Calls, "{what}");
    }
    let old = [delta(json!({ "function_call": { "name": "exec", "arguments": "{}" } })), end("function_call")];
    assert_eq!(shown(&completion(Format::OpenAi, &stream(&old)).await.calls), ["call_1 exec {}"]);
}

#[tokio::test]
async fn a_call_without_a_name_is_a_broken_answer() {
    let chunks = [delta(json!({ "tool_calls": [{ "index": 0, "id": "a", "function": {} }] })), end("tool_calls")];
    let script = toml::to_string(&json!({ "reply": [{ "raw": stream(&chunks) }] })).unwrap();
    let error = Scene::new(Format::OpenAi, &script).ask(&with_tools()).await.unwrap_err();
    assert_eq!(retryable(error), "it called a tool without a name");
}

#[tokio::test]
async fn streams_of_all_shapes_are_read() {
    let word = |text: &str| delta(json!({ "content": text }));
    for (what, raw) in [
        ("no end mark", format!("data: {}\n\ndata: {}\n\n", word("Hello"), end("stop"))),
        ("no blank line at the end", format!("data: {}\n\ndata: {}", word("Hello"), end("stop"))),
        ("no reason of the end", format!("data: {}\n\ndata: [DONE]\n\n", word("Hello"))),
        ("no blank lines", format!("data: {}\ndata: {}\ndata: [DONE]\n", word("Hello"), end("stop"))),
        ("CRLF", stream(&[word("Hel"), word("lo"), end("stop")]).replace('\n', "\r\n")),
        ("CR", stream(&[word("Hel"), word("lo"), end("stop")]).replace('\n', "\r")),
        ("no space after the colon", stream(&[word("Hello"), end("stop")]).replace("data: ", "data:")),
        ("blank lines at the beginning", format!("\r\n\r\n{}", stream(&[word("Hello"), end("stop")]))),
        ("one value over several lines", {
            let pretty = serde_json::to_string_pretty(&word("Hello")).unwrap();
            let lines: String = pretty.lines().map(|line| format!("data: {line}\n")).collect();
            format!("{lines}\n{}", stream(&[end("stop")]))
        }),
        (
            "thoughts beside the text",
            stream(&[
                delta(json!({ "reasoning": "hm", "content": null })),
                delta(json!({ "reasoning_content": "hm", "content": "Hello" })),
                end("stop"),
            ]),
        ),
        (
            "text in parts",
            stream(&[word("Hel"), delta(json!({ "content": [{ "type": "text", "text": "lo" }] })), end("stop")]),
        ),
        (
            "another choice",
            stream(&[
                json!({ "choices": [{ "index": 1, "delta": { "content": "no" } }, { "index": 0, "delta": { "content": "Hello" } }] }),
                end("stop"),
            ]),
        ),
        (
            "fields that are null",
            stream(&[
                json!({ "error": null, "usage": null, "choices": [{ "delta": { "content": "Hello", "tool_calls": null, "refusal": null, "function_call": null }, "finish_reason": "" }] }),
                end("stop"),
            ]),
        ),
        ("a filter's chunk without choices (Azure)", stream(&[json!({ "choices": [] }), word("Hello"), end("stop")])),
    ] {
        let completion = completion(Format::OpenAi, &raw).await;
        assert_eq!((completion.text.as_str(), completion.stop), ("Hello", Stop::End), "{what}");
    }
}

#[tokio::test]
async fn tokens_and_costs_are_found() {
    let with = |last: Value| stream(&[delta(json!({ "content": "Hello" })), end("stop"), last]);
    for (what, last, expected) in [
        (
            "OpenRouter",
            json!({ "choices": [], "usage": { "prompt_tokens": 9, "completion_tokens": 3, "cost": 0.0023 } }),
            (9, 3, 2_300),
        ),
        (
            "a cost below a millionth",
            json!({ "usage": { "prompt_tokens": 9, "completion_tokens": 3, "cost": 0.000_000_2 } }),
            (9, 3, 1),
        ),
        ("Groq", json!({ "x_groq": { "usage": { "prompt_tokens": 9, "completion_tokens": 3 } } }), (9, 3, 0)),
        ("zeros", json!({ "usage": { "prompt_tokens": 0, "completion_tokens": 0 } }), (6 + 20, 2, 0)),
    ] {
        let usage = completion(Format::OpenAi, &with(last)).await.usage;
        let (input, output, cost) = (usage.input_tokens, usage.output_tokens, usage.cost_micros);
        if what == "zeros" {
            assert!(input > 6 && output == expected.1 && cost == 0, "{usage:?}");
        } else {
            assert_eq!((input, output, cost), expected, "{what}");
        }
    }
    let raw = [
        json!({ "type": "message_start", "message": { "usage": {
            "input_tokens": 5, "cache_creation_input_tokens": 100, "cache_read_input_tokens": 1_000, "output_tokens": 1 } } }),
        json!({ "type": "content_block_start", "index": 0, "content_block": { "type": "text", "text": "Hel" } }),
        json!({ "type": "content_block_delta", "index": 0, "delta": { "type": "text_delta", "text": "lo" } }),
        json!({ "type": "message_delta", "delta": { "stop_reason": "end_turn" }, "usage": { "output_tokens": 12 } }),
    ];
    let completion = completion(Format::Anthropic, &stream(&raw)).await;
    assert_eq!(completion.text, "Hello");
    assert_eq!((completion.usage.input_tokens, completion.usage.output_tokens), (1_105, 12));
}

#[tokio::test]
async fn a_refusal_in_words_is_one() {
    let refusal = [delta(json!({ "refusal": "I can't" })), delta(json!({ "refusal": " help." })), end("stop")];
    let completion = completion(Format::OpenAi, &stream(&refusal)).await;
    assert_eq!((completion.text.as_str(), completion.stop), ("I can't help.", Stop::Filter));
}

#[tokio::test]
async fn errors_inside_an_answer_are_told_apart() {
    let openrouter =
        json!({ "error": { "code": 429, "message": "Rate limited" }, "choices": [{ "finish_reason": "error" }] });
    for (format, error, again) in [
        (Format::OpenAi, openrouter, true),
        (Format::OpenAi, json!({ "error": { "code": "context_length_exceeded", "message": "Too long" } }), false),
        (
            Format::OpenAi,
            json!({ "error": { "message": "Bad key", "type": "invalid_request_error", "code": "invalid_api_key" } }),
            false,
        ),
        (Format::OpenAi, json!({ "error": "out of memory" }), true),
        (Format::OpenAi, json!({ "choices": [{ "delta": {}, "finish_reason": "error" }] }), true),
        (Format::OpenAi, json!({ "choices": [{ "error": { "code": 502, "message": "Upstream" } }] }), true),
        (
            Format::Anthropic,
            json!({ "type": "error", "error": { "type": "overloaded_error", "message": "Overloaded" } }),
            true,
        ),
        (Format::Anthropic, json!({ "type": "error", "error": { "type": "api_error", "message": "Internal" } }), true),
        (
            Format::Anthropic,
            json!({ "type": "error", "error": { "type": "invalid_request_error", "message": "No" } }),
            false,
        ),
    ] {
        // In the middle of a stream, at its beginning, and as the whole body.
        let begun = match format {
            Format::OpenAi => delta(json!({ "content": "Hel" })),
            Format::Anthropic => json!({ "type": "message_start", "message": {} }),
        };
        for raw in [
            format!("data: {begun}\n\ndata: {error}\n\n"),
            format!("event: error\ndata: {error}\n\n"),
            error.to_string(),
        ] {
            let script = toml::to_string(&json!({ "reply": [{ "raw": raw }] })).unwrap();
            let failed = Scene::new(format, &script).ask(&with_tools()).await.unwrap_err();
            if again {
                retryable(failed)
            } else {
                refused(failed)
            };
        }
    }
}

/// Alternating pieces of two calls.
#[tokio::test]
async fn calls_of_anthropic_are_joined_by_their_index() {
    let begin = |index: u64, name: &str| json!({ "type": "content_block_start", "index": index, "content_block": { "type": "tool_use", "id": name, "name": name, "input": {} } });
    let piece = |index: u64, text: &str| json!({ "type": "content_block_delta", "index": index, "delta": { "type": "input_json_delta", "partial_json": text } });
    let raw = [
        begin(0, "a"),
        begin(1, "b"),
        piece(0, "{\"x\": "),
        piece(1, "{\"y\""),
        piece(0, "1}"),
        piece(1, ": 2}"),
        json!({ "type": "message_delta", "delta": { "stop_reason": "tool_use" } }),
        json!({ "type": "message_stop" }),
    ];
    let completion = completion(Format::Anthropic, &stream(&raw)).await;
    let calls: Vec<_> = completion.calls.iter().map(|call| (call.name.as_str(), call.args.as_str())).collect();
    assert_eq!(calls, [("a", "{\"x\": 1}"), ("b", "{\"y\": 2}")]);
}

/// Unrequested blocks, and thoughts whose text is withheld.
#[tokio::test]
async fn blocks_of_anthropic_that_are_no_answer_are_skipped() {
    let raw = [
        json!({ "type": "content_block_start", "index": 0, "content_block": { "type": "redacted_thinking", "data": "x" } }),
        json!({ "type": "content_block_start", "index": 1, "content_block": { "type": "server_tool_use", "name": "web_search", "input": {} } }),
        json!({ "type": "content_block_delta", "index": 1, "delta": { "type": "input_json_delta", "partial_json": "{}" } }),
        json!({ "type": "content_block_stop", "index": 1 }),
        json!({ "type": "something_new" }),
        json!({ "type": "content_block_start", "index": 2, "content_block": { "type": "text", "text": "" } }),
        json!({ "type": "content_block_delta", "index": 2, "delta": { "type": "text_delta", "text": "Hello" } }),
        json!({ "type": "message_delta", "delta": { "stop_reason": "end_turn" } }),
        json!({ "type": "message_stop" }),
    ];
    let completion = completion(Format::Anthropic, &stream(&raw)).await;
    assert_eq!((completion.text.as_str(), completion.calls.len(), completion.stop), ("Hello", 0, Stop::End));
}

#[tokio::test]
async fn calls_of_anthropic_whose_pieces_come_in_turns_are_told_apart_by_their_index() {
    let begin = |index: u32, name: &str| {
        let block = json!({ "type": "tool_use", "id": format!("t{index}"), "name": name, "input": {} });
        json!({ "type": "content_block_start", "index": index, "content_block": block })
    };
    let piece = |index: u32, text: &str| {
        let delta = json!({ "type": "input_json_delta", "partial_json": text });
        json!({ "type": "content_block_delta", "index": index, "delta": delta })
    };
    let raw = [
        begin(0, "exec"),
        begin(1, "fetch"),
        piece(0, "{\"command\":"),
        piece(1, "{\"url\":"),
        piece(0, " \"ls\"}"),
        piece(1, " \"u\"}"),
        json!({ "type": "message_delta", "delta": { "stop_reason": "tool_use" } }),
        json!({ "type": "message_stop" }),
    ];
    let completion = completion(Format::Anthropic, &stream(&raw)).await;
    let calls: Vec<_> = completion.calls.iter().map(|call| format!("{} {}", call.name, call.args)).collect();
    assert_eq!(calls, ["exec {\"command\": \"ls\"}", "fetch {\"url\": \"u\"}"]);
}
