//! The operations of providers of models.

use super::Api;
use std::io::{Read, Write};
use std::net::TcpListener;

pub(super) fn answers(api: &mut Api, admin: Option<&str>) {
    let (all, one, models, check) =
        ("/providers", "/providers/{name}", "/providers/{name}/models", "/providers/{name}/check");
    let entry = |address: &str| format!(r#"{{"kind": "openai", "base_url": "{address}", "key": "sk-1"}}"#);
    let address = lists_a_model();
    for (name, body, status) in [
        ("lab", entry(&address), 200),
        ("gone", entry("http://127.0.0.1:9/v1"), 200),
        ("lab", entry("file:///etc/passwd"), 400),
        ("lab", entry(&address).replace("openai", "other"), 400),
        ("No name", entry(&address), 400),
    ] {
        api.ask("PUT", one, &format!("/providers/{}", name.replace(' ', "%20")), admin, body.as_bytes()).expect(status);
    }
    let listed = api.ask("GET", all, all, admin, b"").expect(200);
    assert!(!listed.to_string().contains("sk-1"), "{listed}");
    let offered = api.ask("GET", models, "/providers/lab/models", admin, b"").expect(200);
    assert_eq!(offered["items"][0]["name"], "small");
    api.ask("GET", models, "/providers/gone/models", admin, b"").expect(502);
    api.ask("GET", models, "/providers/none/models", admin, b"").refuses(404, "not_found");
    let small = br#"{"model": "small", "default": false}"#;
    let used = api.ask("PUT", models, "/providers/lab/models", admin, small).expect(200);
    assert_eq!(used["model"], "lab:small");
    api.ask("PUT", models, "/providers/none/models", admin, small).refuses(404, "not_found");
    api.ask("PUT", models, "/providers/lab/models", admin, br#"{"model": "a b", "default": false}"#)
        .refuses(400, "bad_request");
    // The server lists its models and answers nothing else.
    let checked = api.ask("POST", check, "/providers/lab/check", admin, br#"{"model": "small"}"#).expect(200);
    assert_eq!(checked["ok"], false);
    api.ask("POST", check, "/providers/none/check", admin, br#"{"model": "small"}"#).refuses(404, "not_found");
    for status in [200, 404] {
        api.ask("DELETE", models, "/providers/lab/models?model=small", admin, b"").expect(status);
        api.ask("DELETE", one, "/providers/gone", admin, b"").expect(status);
    }
}

/// A server that answers once, with a list of one model.
fn lists_a_model() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("http://{}/v1", listener.local_addr().unwrap());
    std::thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            let mut head = [0; 16 << 10];
            let read = stream.read(&mut head).unwrap_or(0);
            let is_list = head[..read].starts_with(b"GET /v1/models ");
            let (status, body) =
                if is_list { ("200 OK", r#"{"data": [{"id": "small"}]}"#) } else { ("404 Not Found", "{}") };
            let length = body.len();
            let head = "content-type: application/json\r\nconnection: close";
            let _ = write!(stream, "HTTP/1.1 {status}\r\n{head}\r\ncontent-length: {length}\r\n\r\n{body}");
        }
    });
    address
}
