//! Every fault, once for each format: an error that names it, or an answer in spite of it.

use super::{BOTH, Format, KEY, Scene, question, refused, retryable, with_tools};
use crate::model_server::ModelServer;
use kiso_llm::LlmError;

/// A scene with one reply that has this fault.
fn scene(format: Format, fault: &str) -> Scene {
    let script = format!(
        "[[reply]]\ntext = 'one two three'\ncalls = [{{ name = 'exec', args = {{ command = 'ls' }} }}]\nfault = '{fault}'"
    );
    Scene::new(format, &script)
}

#[tokio::test]
async fn an_answer_that_breaks_off_is_none() {
    for format in BOTH {
        for (fault, message) in [
            ("cut_connection", "the connection broke in the middle of the answer: "),
            ("truncated_json", "a piece of its answer is not JSON ("),
            ("malformed_chunk", "a piece of its answer is not JSON ("),
            ("status_500", "500 Internal Server Error: Internal error"),
            ("error_in_200", "Upstream failed"),
            ("error_body_in_200", "Upstream failed"),
        ] {
            let scene = scene(format, fault);
            let said = retryable(scene.ask(&with_tools()).await.unwrap_err());
            assert!(said.starts_with(message), "{format:?} {fault}: {said}");
            scene.server.finish();
        }
    }
}

#[tokio::test]
async fn a_stream_that_ends_too_early_is_broken() {
    for (format, raw) in [
        (Format::OpenAi, ""),
        (Format::OpenAi, "data: [DONE]\n\n"),
        (Format::OpenAi, "data: {\"choices\": [{\"delta\": {\"content\": \"half\"}}]}\n\n"),
        (Format::OpenAi, ": nothing but comments\n\n"),
        (Format::Anthropic, ""),
        (
            Format::Anthropic,
            "data: {\"type\": \"content_block_delta\", \"delta\": {\"type\": \"text_delta\", \"text\": \"half\"}}\n\n",
        ),
        (Format::Anthropic, "data: {\"type\": \"message_stop\"}\n\n"),
    ] {
        let scene = Scene::new(format, &format!("[[reply]]\nraw = {raw:?}"));
        assert_eq!(retryable(scene.fails().await), "its answer ended before it was complete", "{format:?} {raw:?}");
    }
}

#[tokio::test]
async fn what_a_model_does_wrong_is_for_its_caller() {
    for format in BOTH {
        let call = async |fault: &str| {
            let completion = scene(format, fault).ask(&with_tools()).await.unwrap();
            assert_eq!(completion.text, "one two three");
            completion.calls.into_iter().next().unwrap()
        };
        assert_eq!(call("bad_arguments").await.args, r#"{"command":"ls""#);
        assert_eq!(call("wrong_tool").await.name, "no_such_tool");
        let made = call("missing_ids").await;
        assert_eq!(
            (made.id.as_str(), made.name.as_str(), made.args.as_str()),
            ("call_1", "exec", r#"{"command":"ls"}"#)
        );

        let empty = scene(format, "empty").ask(&with_tools()).await.unwrap();
        assert_eq!((empty.text.as_str(), empty.calls.len()), ("", 0));
    }
}

#[tokio::test]
async fn careless_servers_are_understood() {
    for format in BOTH {
        for fault in ["comment_lines", "not_streamed"] {
            let completion = scene(format, fault).ask(&with_tools()).await.unwrap();
            assert_eq!(completion.text, "one two three", "{format:?} {fault}");
            assert_eq!(completion.calls[0].args, r#"{"command":"ls"}"#, "{format:?} {fault}");
            assert_eq!((completion.usage.input_tokens, completion.usage.output_tokens), (10, 5));
        }
        for bytes in [1, 2, 3, 7, 64] {
            let script = format!("[[reply]]\ntext = 'größer 🦀'\nchunk_bytes = {bytes}");
            assert_eq!(Scene::new(format, &script).text().await, "größer 🦀", "{format:?} in pieces of {bytes}");
        }
    }
}

#[tokio::test]
async fn a_status_decides_whose_fault_it_is() {
    for format in BOTH {
        for status in [400, 401, 403, 404, 413, 422] {
            let scene =
                Scene::new(format, &format!("[[reply]]\nstatus = {status}\nraw = '{{\"error\": \"because\"}}'"));
            let message = refused(scene.fails().await);
            assert!(message.starts_with(&format!("{status} ")) && message.ends_with(": because"), "{message}");
        }
        for status in [408, 409, 429, 500, 502, 503, 504, 529] {
            let scene =
                Scene::new(format, &format!("[[reply]]\nstatus = {status}\nraw = '{{\"error\": \"because\"}}'"));
            let message = retryable(scene.fails().await);
            assert!(message.starts_with(&format!("{status} ")) && message.ends_with(": because"), "{message}");
        }
    }
}

#[tokio::test]
async fn a_redirect_is_not_followed() {
    for format in BOTH {
        let script = "[[reply]]\nstatus = 307\nraw = ''\nheaders = { location = '/elsewhere' }";
        let scene = Scene::new(format, script);
        let message = refused(scene.fails().await);
        assert!(message.contains("it points to /elsewhere, and redirects are not followed"), "{message}");
        assert_eq!(scene.bodies().len(), 1);
    }
}

#[tokio::test]
async fn a_key_that_is_echoed_is_not_passed_on() {
    for format in BOTH {
        for (status, raw) in [
            (401, format!(r#"{{"error": {{"message": "no such key {KEY}"}}}}"#)),
            (200, format!("data: {{\"error\": {{\"message\": \"no such key {KEY}\", \"code\": 401}}}}\n\n")),
            (200, format!("data: no such key {KEY}\n\n")),
        ] {
            let reply = serde_json::json!({ "status": status, "raw": raw });
            let scene = Scene::new(format, &toml::to_string(&serde_json::json!({ "reply": [reply] })).unwrap());
            let error = scene.fails().await;
            assert!(error.to_string().contains("no such key [key]"), "{error}");
            assert!(!format!("{error:?}").contains(KEY), "{error:?}");
        }
        // Wherever an error text is cut, it contains no part of the key.
        for before in 60..84 {
            let raw = format!("data: {}{KEY} and more\n\n", "x".repeat(before));
            let reply = serde_json::json!({ "status": 200, "raw": raw });
            let scene = Scene::new(format, &toml::to_string(&serde_json::json!({ "reply": [reply] })).unwrap());
            let error = scene.fails().await.to_string();
            assert!(error.contains("is not JSON") && !error.contains(&KEY[..3]), "{error}");
        }
    }
}

#[tokio::test]
async fn a_web_page_is_no_answer() {
    for format in BOTH {
        let server = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let address = server.local_addr().unwrap();
        let page = std::thread::spawn(move || {
            use std::io::{Read, Write};
            let (mut stream, _) = server.accept().unwrap();
            let _ = stream.read(&mut [0; 65_536]);
            stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-type: text/html\r\ncontent-length: 6\r\n\r\n<html>").unwrap();
        });
        let model = super::model(format, super::endpoint(&format!("http://{address}"))).unwrap();
        let error = model.complete(&question(), &mut |_: &str| {}).await.unwrap_err();
        assert!(refused(error).contains("its base_url may lack a part such as /v1"));
        page.join().unwrap();
    }
}

/// An untrusted certificate: the call fails, and a retry would not help.
#[tokio::test]
async fn a_server_that_is_not_trusted_is_not_asked() {
    use tokio_rustls::rustls::{ServerConfig, crypto, pki_types};
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    // A certificate for localhost and for this test only.
    let certificate = pki_types::CertificateDer::from(include_bytes!("tls/cert.der").as_slice());
    let key = pki_types::PrivateKeyDer::try_from(include_bytes!("tls/key.der").as_slice()).unwrap();
    let config = ServerConfig::builder_with_provider(crypto::ring::default_provider().into())
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![certificate], key)
        .unwrap();
    let acceptor = tokio_rustls::TlsAcceptor::from(std::sync::Arc::new(config));
    let server = async {
        let (stream, _) = listener.accept().await.unwrap();
        assert!(acceptor.accept(stream).await.is_err(), "the client breaks the handshake off");
    };
    let model = super::model(Format::OpenAi, super::endpoint(&format!("https://{address}/v1"))).unwrap();
    let request = question();
    let mut sink = |_: &str| {};
    let (error, ()) = tokio::join!(model.complete(&request, &mut sink), server);
    let message = super::unusable(error.unwrap_err());
    assert!(message.starts_with("no connection: ") && message.contains("certificate"), "{message}");
}

#[tokio::test]
async fn a_model_that_calls_without_end_is_stopped() {
    let calls = "{ name = 'exec' },".repeat(65);
    for format in BOTH {
        let scene = Scene::new(format, &format!("[[reply]]\ncalls = [{calls}]"));
        let error = scene.ask(&with_tools()).await.unwrap_err();
        assert_eq!(super::unusable(error), "it called more than 64 tools in one answer");
    }
}

/// The server reports deviations from its script.
#[tokio::test]
async fn a_script_that_is_not_followed_is_noticed() {
    let script = "[[reply]]\nrole = 'worker'\nexpect_contains = 'weather.csv'\ntext = 'x'\n\
                  [[reply]]\nrole = 'worker'\nexpect_absent = 'new'\n[[reply]]\nrole = 'titler'";
    let scene = Scene::new(Format::OpenAi, script);
    let message = retryable(scene.fails().await);
    let expected = "request 1 (the worker's): \"weather.csv\" is not in the prompt, and reply 1 expects it";
    assert!(message.ends_with(expected), "{message}");
    let mut request = question();
    request.user = "weather.csv".to_owned();
    assert_eq!(scene.ask(&request).await.unwrap().text, "x");
    assert!(retryable(scene.fails().await).contains("\"new\" is in the prompt, and reply 2 forbids it"));
    request.role = kiso_base::role::Role::Planner;
    assert!(retryable(scene.ask(&request).await.unwrap_err()).contains("the script has no reply left"));
    let problems = scene.server.problems();
    assert_eq!(problems.len(), 5, "{problems:#?}");
    assert_eq!(problems[4], "reply 3 (titler) was never asked for");
    let panicked = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| scene.server.finish()));
    assert!(panicked.is_err());
    assert!(toml::from_str::<crate::model_server::Script>("[[reply]]\nfaults = 'empty'").is_err());
}

/// Several calls on one endpoint: a fault does not affect the next call.
#[tokio::test]
async fn a_fault_does_not_spoil_the_next_call() {
    for format in BOTH {
        for fault in ["cut_connection", "malformed_chunk", "status_500", "error_in_200", "truncated_json"] {
            let script = format!("[[reply]]\ntext = 'a b'\nfault = '{fault}'\n[[reply]]\ntext = 'good'");
            let scene = Scene::new(format, &script);
            assert!(matches!(scene.fails().await, LlmError::Unavailable { retryable: true, .. }));
            assert_eq!(scene.text().await, "good", "{format:?} {fault}");
            ModelServer::finish(scene.server);
        }
    }
}
