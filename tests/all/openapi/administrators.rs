//! Operations for administrators only.

use super::{Api, CONFIG};
use crate::harness::Home;
use crate::served::Served;

/// `gateway.admins` lists the tokens of administrators; a token's name alone gives no rights.
#[test]
fn administrators_are_those_that_the_configuration_names() {
    let mut api = Api::new(&format!("{CONFIG}[gateway]\nadmins = [\"phone\", \"boss\"]\n"));
    let boss = api.home.kiso(&["token", "add", "boss", "--scope", "admin"]).ok().stdout.trim().to_owned();
    let (phone, root) = (api.chat.clone(), api.admin.clone());
    api.ask("GET", "/config", "/config", Some(&boss), b"").expect(200);
    api.ask("GET", "/config", "/config", Some(&root), b"").refuses(403, "forbidden");
    api.ask("GET", "/config", "/config", Some(&phone), b"").refuses(403, "forbidden");
    api.ask("GET", "/sessions", "/sessions", Some(&root), b"").expect(200);
    api.home.kiso(&["token", "revoke", "boss"]).ok();
    api.ask("GET", "/config", "/config", Some(&boss), b"").refuses(401, "unauthorized");
}

/// Without any token, a program of this machine may only chat.
#[test]
fn who_needs_no_token_is_no_administrator() {
    let home = Home::new();
    home.config(CONFIG);
    let served = Served::start(&home);
    for (method, path) in
        [("GET", "/config"), ("GET", "/memory"), ("DELETE", "/skills/chart"), ("DELETE", "/sessions/main")]
    {
        served.request(method, path, None).refuses(403, "forbidden");
    }
    served.get("/skills");
}
