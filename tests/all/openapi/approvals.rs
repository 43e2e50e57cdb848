//! The operations of approvals, with a card in the store.

mod network;

use super::Api;
use serde_json::json;

/// `admin` and `chat` are tokens of these scopes.
pub(super) fn answers(api: &mut Api, db: &rusqlite::Connection, admin: Option<&str>, chat: Option<&str>) {
    let access = json!([{ "of": "fetch", "hosts": [{ "host": "a.example", "methods": ["GET"] }] }]);
    let effect = json!({ "tool": "fetch", "access": access, "digest": "00" });
    let card = json!({ "effects": [effect], "expires_ms": i64::MAX }).to_string();
    let insert = "INSERT INTO approvals (run, seq, card, asked_ms, expires_ms, state)
                  SELECT num, ?1, ?2, 1, ?3, 'pending' FROM runs ORDER BY num LIMIT 1";
    for seq in [1_001, 1_002] {
        db.execute(insert, (seq, &card, i64::MAX)).unwrap();
    }
    let listed = api.ask("GET", "/approvals", "/approvals", chat, b"").expect(200);
    let ids: Vec<_> = listed["items"].as_array().unwrap().iter().map(|card| card["id"].to_string()).collect();
    let one = "/approvals/{id}";
    let [first, second] = [0, 1].map(|at| format!("/approvals/{}", ids[at]));
    api.ask("GET", one, &first, chat, b"").expect(200);
    api.ask("GET", one, "/approvals/999", chat, b"").refuses(404, "not_found");
    api.ask("POST", one, "/approvals/999", chat, b"{\"accept\":[]}").refuses(404, "not_found");
    api.ask("POST", one, &first, chat, b"{\"accept\":[2]}").refuses(400, "bad_request");
    api.ask("POST", one, &first, chat, b"{\"accept\":[1],\"always\":\"30_days\"}").refuses(403, "forbidden");
    api.ask("POST", one, &first, chat, b"{\"accept\":[1],\"always\":\"session\"}").expect(200);
    api.ask("POST", one, &first, chat, b"{\"accept\":[1]}").refuses(409, "over");
    db.execute_batch(
        "WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 500)
         INSERT INTO approval_rules (access, tool, made_ms, until_ms) SELECT '[]', 'x', 1, 9223372036854775806 FROM n",
    )
    .unwrap();
    let always = b"{\"accept\":[1],\"always\":\"30_days\"}";
    api.ask("POST", one, &second, admin, always).refuses(507, "quota");
    db.execute("DELETE FROM approval_rules WHERE tool = 'x'", ()).unwrap();
    let kept = api.ask("GET", "/remembered_approvals", "/remembered_approvals", chat, b"").expect(200);
    let rule = "/remembered_approvals/{id}";
    api.ask("DELETE", rule, &format!("/remembered_approvals/{}", kept["items"][0]["id"]), chat, b"").expect(200);
    api.ask("DELETE", rule, "/remembered_approvals/999", chat, b"").refuses(404, "not_found");
    network::answers(api, db, admin);
}
