//! Timeouts of a call, and that other calls do not wait.

use super::{BOTH, Format, Scene, endpoint, model, question, retryable, unusable};
use kiso_llm::endpoint::Timeouts;
use kiso_llm::{LlmError, Sink};
use std::time::Duration;

/// Long enough for a piece that is already sent, and short enough for a test.
const SHORT: Duration = Duration::from_millis(250);

fn scene(format: Format, script: &str, adjust: impl FnOnce(&mut Timeouts)) -> Scene {
    Scene::with(format, script, |endpoint| {
        adjust(&mut endpoint.patience);
        endpoint.max_response = usize::MAX;
    })
}

#[tokio::test]
async fn an_answer_has_to_begin() {
    for format in BOTH {
        for fault in ["slow_first_token", "only_comments"] {
            let script = format!("[[reply]]\ntext = 'x'\nfault = '{fault}'");
            let scene = scene(format, &script, |patience| patience.first_token = SHORT);
            let message = retryable(scene.fails().await);
            assert_eq!(message, "no answer within 250ms (the first_token time-out)", "{format:?} {fault}");
        }
    }
}

#[tokio::test]
async fn an_answer_has_to_go_on() {
    for format in BOTH {
        let script = "[[reply]]\ntext = 'one two'\npieces = 7\nfault = 'stall_mid_stream'";
        let scene = scene(format, script, |patience| patience.next_token = SHORT);
        let message = retryable(scene.fails().await);
        assert_eq!(message, "no further piece of the answer within 250ms (the next_token time-out)", "{format:?}");
    }
}

#[tokio::test]
async fn an_answer_has_to_end() {
    for format in BOTH {
        let script = "[[reply]]\ntext = 'one two'\nfault = 'endless'";
        let scene = scene(format, script, |patience| patience.total = SHORT);
        let message = retryable(scene.fails().await);
        assert_eq!(message, "no end of the answer within 250ms (the total time-out)", "{format:?}");
    }
}

/// A fault after a complete answer does not fail the call.
#[tokio::test]
async fn an_answer_that_is_complete_needs_no_end() {
    let text = serde_json::json!([{ "type": "text", "text": "a" }]);
    for (format, last) in [
        (Format::OpenAi, serde_json::json!({ "choices": [{ "delta": { "content": "a" }, "finish_reason": "stop" }] })),
        (Format::Anthropic, serde_json::json!({ "type": "message", "content": text, "stop_reason": "end_turn" })),
    ] {
        for fault in ["cut_connection", "stall_mid_stream"] {
            let reply = serde_json::json!({ "raw": format!("data: {last}\n\n"), "fault": fault });
            let script = toml::to_string(&serde_json::json!({ "reply": [reply] })).unwrap();
            let scene = scene(format, &script, |patience| patience.next_token = SHORT);
            assert_eq!(scene.text().await, "a", "{format:?} {fault}");
        }
    }
}

#[tokio::test]
async fn an_answer_without_end_is_cut_off_by_a_limit() {
    for format in BOTH {
        let script = "[[reply]]\ntext = 'one two'\nfault = 'endless'";
        let scene = Scene::with(format, script, |endpoint| endpoint.max_response = 100_000);
        let message = unusable(scene.fails().await);
        let expected = "its answer is longer than 100000 bytes and was cut off; the setting \
                        providers.test.max_response_mib raises the limit";
        assert_eq!(message, expected, "{format:?}");
    }
}

/// A server that accepts the connection and sends nothing; the timeout is that of the handshake.
#[tokio::test]
async fn a_connection_has_to_come_about() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let mut endpoint = endpoint(&format!("https://{address}/v1"));
    endpoint.patience.connect = SHORT;
    let model = model(Format::OpenAi, endpoint).unwrap();
    let error = model.complete(&question(), &mut |_: &str| {}).await.unwrap_err();
    assert_eq!(retryable(error), "no connection within 250ms (the connect time-out)");
}

#[tokio::test]
async fn a_server_that_is_not_there_is_unavailable() {
    for format in BOTH {
        let url = format!("http://127.0.0.1:{}/v1", crate::harness::own_port());
        let model = model(format, endpoint(&url)).unwrap();
        let error = model.complete(&question(), &mut |_: &str| {}).await.unwrap_err();
        let message = retryable(error);
        assert!(message.starts_with("no connection: ") && message.contains("refused"), "{message}");
    }
}

/// Runs other tasks until `done`.
async fn until_done(done: impl Fn() -> bool) {
    while !done() {
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn a_dropped_call_is_cancelled() {
    for format in BOTH {
        for fault in ["slow_first_token", "stall_mid_stream"] {
            let script = format!("[[reply]]\ntext = 'x'\nfault = '{fault}'");
            let scene = Scene::new(format, &script);
            let (request, mut sink) = (question(), |_: &str| {});
            let mut call = scene.model.complete(&request, &mut sink as &mut dyn Sink);
            tokio::select! {
                _ = &mut call => panic!("the server holds the answer back"),
                () = until_done(|| scene.server.held() == 1) => {}
            }
            drop(call);
            // The server notices that its client disconnected.
            until_done(|| scene.server.held() == 0).await;
        }
    }
}

/// A body that is read to its end, so that its connection is free afterwards.
const WORKER: &str = r#"
[[reply]]
role = "worker"
raw = "data: {\"choices\": [{\"delta\": {\"content\": \"a\"}, \"finish_reason\": \"stop\"}]}\n\n"
"#;

async fn settle() {
    for _ in 0..100 {
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn connections_are_kept_and_shared() {
    let scene = Scene::new(Format::OpenAi, &WORKER.repeat(3));
    let other = model(Format::OpenAi, endpoint(&scene.server.base_url())).unwrap();
    for model in [&scene.model, &scene.model, &other] {
        model.complete(&question(), &mut |_: &str| {}).await.unwrap();
        settle().await;
    }
    assert_eq!(scene.server.connections(), 1);
    scene.server.finish();
}

/// The server closes a connection just when a request arrives on it.
#[tokio::test]
async fn a_connection_that_went_stale_fails_no_call() {
    let close = "[[reply]]\nrole = 'worker'\nfault = 'close_unanswered'\n";
    let scene = Scene::new(Format::OpenAi, &format!("{WORKER}{close}{WORKER}{close}"));
    for _ in 0..2 {
        assert_eq!(scene.text().await, "a");
        settle().await;
    }
    assert_eq!(scene.server.requests().iter().map(|seen| seen.connection).collect::<Vec<_>>(), [0, 0, 1]);
    // On a new connection, the same is an error.
    let message = retryable(scene.fails().await);
    assert!(message.starts_with("the connection broke before the answer"), "{message}");
    scene.server.finish();
}

#[tokio::test]
async fn a_wait_that_is_asked_for_is_passed_on() {
    for format in BOTH {
        let script = "[[reply]]\nfault = { status_429 = { retry_after = 7 } }\n[[reply]]\nfault = { status_429 = {} }";
        let scene = Scene::new(format, script);
        for expected in [Some(Duration::from_secs(7)), None] {
            let LlmError::Unavailable { message, retryable, retry_after, .. } = scene.fails().await else { panic!() };
            assert_eq!((retryable, retry_after), (true, expected));
            assert_eq!(message, "429 Too Many Requests: Too many requests");
        }
    }
}
