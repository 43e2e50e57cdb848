//! The operations of the files that all sessions share.

use super::Api;

pub(super) fn answers(api: &mut Api, token: Option<&str>) {
    let file = "/files/{path}";
    for (asked, body, status) in [
        ("/files/lists/shop.txt?session=shared", &b"milk"[..], 201),
        ("/files/lists/shop.txt?session=shared", b"eggs", 409),
        ("/files/lists/shop.txt?session=shared&replace=true", b"eggs", 201),
        ("/files/lists%2F..%2Fshop.txt", b"", 400),
        ("/files/a?sessions=shared", b"", 400),
    ] {
        let put = api.ask("PUT", file, asked, token, body);
        assert_eq!(put.status, status, "{asked}: {put:?}");
    }
    for (asked, status) in [
        ("/files", 200),
        ("/files?path=lists&limit=1", 200),
        ("/files?path=lists%2Fshop.txt", 404),
        ("/files?path=.hidden", 400),
    ] {
        api.ask("GET", "/files", asked, token, b"").expect(status);
    }
    let shown = api.ask("GET", file, "/files/lists/shop.txt", token, b"");
    assert!(shown.status == 200, "{shown:?}");
    api.ask("GET", file, "/files/lists", token, b"").refuses(404, "not_found");
    let removed = api.ask("DELETE", file, "/files/lists?session=shared", token, b"").expect(200);
    api.ask("DELETE", file, "/files/lists?session=shared", token, b"").refuses(404, "not_found");
    let undo = "/sessions/{session}/undo";
    let run = format!("{{\"run\": {}}}", removed["run"]);
    api.ask("POST", undo, "/sessions/shared/undo", token, run.as_bytes()).expect(200);
    api.ask("POST", undo, "/sessions/shared/undo", token, run.as_bytes()).refuses(404, "not_found");
    api.ask("POST", undo, "/sessions/nobody/undo", token, b"{}").refuses(404, "not_found");
    api.ask("POST", undo, "/sessions/shared/undo", token, br#"{"runs": 1}"#).refuses(400, "bad_request");
}
