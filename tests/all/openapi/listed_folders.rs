//! The operations of the folders that config.toml lists.

use super::Api;

pub(super) fn answers(api: &mut Api, token: Option<&str>) {
    api.ask("GET", "/folders", "/folders?session=listed", token, b"").expect(200);
    api.ask("GET", "/folders", "/folders?sessions=a", token, b"").refuses(400, "bad_request");
    let open = "/sessions/{session}/folders";
    for (body, status) in
        [(&br#"{"name": "share"}"#[..], 200), (br#"{"name": "none"}"#, 404), (br#"{"path": "/etc"}"#, 400)]
    {
        api.ask("POST", open, "/sessions/listed/folders", token, body).expect(status);
    }
    let put = api.ask("PUT", "/sessions/{session}/files/{path}", "/sessions/listed/files/in/b.txt", token, b"b");
    assert_eq!(put.status, 201, "{put:?}");
    let deliver = "/sessions/{session}/deliver";
    for (body, status) in [
        (&br#"{"file": "a.txt", "folder": "share"}"#[..], 400),
        (br#"{"file": "in/b.txt", "folder": "share"}"#, 403),
        (br#"{"file": "in/b.txt", "folder": "none"}"#, 404),
        (br#"{"file": "in/b.txt", "folder": "drop"}"#, 200),
        (br#"{"file": "in/b.txt", "folder": "shared"}"#, 200),
    ] {
        api.ask("POST", deliver, "/sessions/listed/deliver", token, body).expect(status);
    }
    let close = "/sessions/{session}/folders/close";
    for (body, status) in [(&br#"{"at": "/elsewhere"}"#[..], 404), (br#"{"at": 1}"#, 400)] {
        api.ask("POST", close, "/sessions/listed/folders/close", token, body).expect(status);
    }
    let closed = api.ask("POST", close, "/sessions/listed/folders/close", token, br#"{"at": "/project"}"#);
    assert_eq!(closed.status, 204, "{closed:?}");
    super::shared_files::answers(api, token);
}
