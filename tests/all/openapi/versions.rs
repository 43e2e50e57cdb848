//! The operations for versions of a turn, and for previews in a conversation.

use super::Api;
use crate::documents::pdf;

pub(super) fn answers(api: &mut Api, token: Option<&str>) {
    let message = api.served.send("turns", "$ echo one");
    api.served.reply(message);
    let [turn, replace, show] = ["turn", "replace", "show"].map(|what| format!("/messages/{{id}}/{what}"));
    let path = |what: &str, id: i64| format!("/messages/{id}/{what}");
    let shown = api.ask("GET", &turn, &path("turn", message), token, b"").expect(200);
    assert_eq!((&shown["session"], &shown["messages"]), (&"turns".into(), &vec![message].into()));
    api.ask("GET", &turn, &path("turn", 999_999), token, b"").refuses(404, "not_found");
    api.ask("POST", &replace, &path("replace", message), token, br#"{"text": " "}"#).refuses(400, "bad_request");
    api.ask("POST", &replace, &path("replace", 999_999), token, b"{}").refuses(404, "not_found");
    let other = api.ask("POST", &replace, &path("replace", message), token, br#"{"text": "$ echo two"}"#).expect(202);
    let other = other["message"].as_i64().unwrap();
    assert!(api.served.reply(other).contains("two"));
    api.ask("POST", &replace, &path("replace", message), token, b"{}").refuses(409, "other_version");
    api.ask("POST", &show, &path("show", message), token, b"").expect(200);
    api.ask("POST", &show, &path("show", 999_999), token, b"").refuses(404, "not_found");
    let put = "/sessions/{session}/files/{path}";
    for (name, bytes) in [("a.pdf", pdf(&["Opening hours"])), ("b.bin", vec![0, 1, 2])] {
        let put = api.ask("PUT", put, &format!("/sessions/turns/files/{name}"), token, &bytes);
        assert_eq!(put.status, 201, "{put:?}");
    }
    let [pages, text] = ["pages", "text"].map(|what| format!("/sessions/{{session}}/{what}/{{path}}"));
    let at = |what: &str, rest: &str| format!("/sessions/turns/{what}/{rest}");
    assert_eq!(api.ask("GET", &pages, &at("pages", "a.pdf?page=1"), token, b"").status, 200);
    assert_eq!(api.ask("GET", &pages, &at("pages", "a.pdf?page=9"), token, b"").status, 422);
    assert_eq!(api.ask("GET", &pages, &at("pages", "none.pdf"), token, b"").status, 404);
    let read = api.ask("GET", &text, &at("text", "a.pdf"), token, b"").expect(200);
    assert!(read.to_string().contains("Opening hours"), "{read}");
    assert_eq!(api.ask("GET", &text, &at("text", "b.bin"), token, b"").status, 422);
    assert_eq!(api.ask("GET", &text, &at("text", "none"), token, b"").status, 404);
}
