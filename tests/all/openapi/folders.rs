//! The operations of folders.

use super::Api;

pub(super) fn answers(api: &mut Api, token: Option<&str>) {
    let dir = api.home.dir.path().join("desk");
    std::fs::create_dir(&dir).unwrap();
    for name in ["a", "b", "c"] {
        std::fs::write(dir.join(name), name).unwrap();
    }
    let line = "for name in a b c; do echo changed > $name; done";
    api.home.kiso(&["shell", "--session", "desk", "--dir", dir.to_str().unwrap(), "-c", line]).ok();
    let list = "/sessions/{session}/folders";
    let listed = api.ask("GET", list, "/sessions/desk/folders", token, b"").expect(200);
    assert_eq!(listed["items"][0]["changes"].as_array().unwrap().len(), 3);
    api.ask("GET", list, "/sessions/nobody/folders", token, b"").expect(200);
    let change = |name: &str| format!("/sessions/desk/folders/change?at=/project&path={name}");
    let path = "/sessions/{session}/folders/change";
    api.ask("GET", path, &change("a"), token, b"").expect(200);
    api.ask("GET", path, &change("none"), token, b"").refuses(404, "not_found");
    let listed = api.ask("GET", path, &change("c"), token, b"").expect(200);
    let side = |name: &str| format!("/sessions/desk/folders/side?at=/project&path={name}&side=before");
    let path = "/sessions/{session}/folders/side";
    api.ask("GET", path, &side("none"), token, b"").refuses(404, "not_found");
    assert_eq!(api.ask("GET", path, &side("a"), token, b"").status, 200);
    let (path, asked) = (format!("{list}/accept"), "/sessions/desk/folders/accept");
    let hunks = |number: u32| {
        let revision = &listed["revision"];
        format!(r#"{{"at": "/project", "paths": ["c"], "hunks": [{number}], "revision": {revision}}}"#)
    };
    api.ask("POST", &path, asked, token, hunks(2).as_bytes()).refuses(400, "bad_request");
    let other = br#"{"at": "/project", "paths": ["c"], "hunks": [1], "revision": "x"}"#;
    api.ask("POST", &path, asked, token, other).refuses(409, "changed_since");
    for (verb, body, status) in [
        ("accept", r#"{"at": "/project", "paths": ["none"]}"#, 404),
        ("accept", r#"{"at": "/project", "paths": ["a"]}"#, 200),
        ("undo", "{}", 200),
        ("discard", r#"{"at": "/project", "paths": ["b"]}"#, 200),
        ("discard", r#"{"at": "/elsewhere"}"#, 404),
    ] {
        let (path, asked) = (format!("{list}/{verb}"), format!("/sessions/desk/folders/{verb}"));
        api.ask("POST", &path, &asked, token, body.as_bytes()).expect(status);
    }
    std::fs::write(dir.join("c"), "somebody else's").unwrap();
    let (path, asked) = (format!("{list}/accept"), "/sessions/desk/folders/accept");
    api.ask("POST", &path, asked, token, br#"{"at": "/project"}"#).refuses(409, "changed_since");
}
