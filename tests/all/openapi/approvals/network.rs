//! The operations for network rules.

use super::super::Api;

/// `admin` is a token of that scope.
pub(super) fn answers(api: &mut Api, db: &rusqlite::Connection, admin: Option<&str>) {
    let path = "/network";
    for (rule, status) in [
        (r#"{"host":"Example.org","access":"allow"}"#, 200),
        (r#"{"host":"127.0.0.1:81","access":"ask","methods":["GET","POST"],"private":true,"session":"s"}"#, 404),
        (r#"{"host":"https://example.org","access":"allow"}"#, 400),
        (r#"{"host":"*","access":"allow","private":true}"#, 400),
        (r#"{"host":"example.org","access":"allow","methods":["BREW"]}"#, 400),
        (r#"{"host":"example.org","access":"allow","methods":["GET","GET","GET","GET","GET","GET","GET","GET"]}"#, 400),
        (r#"{"host":"example.org","access":"always"}"#, 400),
    ] {
        let answer = api.ask("POST", path, path, admin, rule.as_bytes());
        match status {
            200 => assert_eq!(answer.expect(200)["host"], "example.org"),
            404 => answer.refuses(404, "not_found"),
            _ => answer.refuses(400, "bad_request"),
        }
    }
    let shown = api.ask("GET", path, path, admin, b"").expect(200);
    assert_eq!((&shown["remembered"][0]["host"], &shown["default"]), (&"example.org".into(), &"ask".into()));
    let gone = api.ask("DELETE", path, "/network?host=EXAMPLE.org", admin, b"").expect(200);
    assert_eq!(gone["forgotten"], 1);
    api.ask("DELETE", path, "/network?host=example.org", admin, b"").refuses(404, "not_found");
    db.execute_batch(
        "WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 1000)
         INSERT INTO network_rules (host, rule, made_by, created_ms)
         SELECT 'a' || i, '{\"host\":\"a' || i || '\",\"access\":\"deny\"}', 'x', 1 FROM n",
    )
    .unwrap();
    api.ask("POST", path, path, admin, br#"{"host":"b.example","access":"deny"}"#).refuses(507, "quota");
    db.execute("DELETE FROM network_rules WHERE made_by = 'x'", ()).unwrap();
}
