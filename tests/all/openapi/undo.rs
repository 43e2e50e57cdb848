//! The operations of undo and redo.

use super::Api;

/// Undo and redo of a finished run, of an unfinished one (`slow`), and of one that does not exist.
pub(super) fn answers(api: &mut Api, slow: &str, token: Option<&str>) {
    let made = api.served.send("undone", "$ echo made > made.txt");
    api.served.reply(made);
    let run = api.served.get(&format!("/messages/{made}"))["run"].as_str().unwrap().to_owned();
    let none = "0".repeat(14);
    let list = "/sessions/{session}/undo";
    let listed = api.ask("GET", list, "/sessions/undone/undo", token, b"").expect(200);
    assert_eq!(listed["items"][0]["run"], run.as_str());
    api.ask("GET", list, "/sessions/nobody/undo", token, b"").refuses(404, "not_found");
    for (method, verb) in [("GET", "undo"), ("POST", "undo"), ("POST", "redo")] {
        let path = format!("/runs/{{run}}/{verb}");
        let body: &[u8] = if method == "GET" { b"" } else { b"{}" };
        api.ask(method, &path, &format!("/runs/{run}/{verb}"), token, body).expect(200);
        api.ask(method, &path, &format!("/runs/{none}/{verb}"), token, body).refuses(404, "not_found");
        if method == "POST" {
            api.ask(method, &path, &format!("/runs/{slow}/{verb}"), token, body).refuses(409, "at_work");
        }
    }
}
