//! Browsers: logging in to the page and out of it, and the requests that a login cookie allows.

use crate::harness::{Home, wait_until};
use crate::served::{Answer, Events, Served};
use kiso_store::store::{CODE_MS, LOGIN_MS};
use rusqlite::Connection;
use serde_json::{Value, json};
use std::io::{Read, Write};
use std::os::unix::fs::PermissionsExt;

const QUICK: &str = "model = \"reflex\"\n[daemon]\ndebounce_ms = 20\n";

/// Headers of the page's requests in a browser that sends Sec-Fetch-Site.
const PAGE: &str = "x-kiso-page: 1\r\nsec-fetch-site: same-origin\r\n";

fn home() -> Home {
    let home = Home::new();
    home.config(QUICK);
    home
}

fn token(home: &Home, args: &[&str]) -> String {
    home.kiso(&[&["token", "add"], args].concat()).ok().stdout.trim().to_owned()
}

/// Sends one request with these headers.
#[track_caller]
fn ask(served: &Served, method: &str, path: &str, headers: &str, body: &str) -> Answer {
    let mut stream = served.connect();
    let length = body.len();
    let head = format!(
        "{method} {path} HTTP/1.1\r\nhost: {}\r\nconnection: close\r\n{headers}content-length: {length}\r\n\r\n{body}",
        served.address
    );
    stream.write_all(head.as_bytes()).unwrap();
    let mut bytes = Vec::new();
    stream.read_to_end(&mut bytes).unwrap();
    Answer::parse(&bytes).unwrap_or_else(|| panic!("{method} {path}: no answer"))
}

#[track_caller]
fn log_in(served: &Served, given: &Value) -> Answer {
    ask(served, "POST", "/login", PAGE, &given.to_string())
}

/// A browser that is logged in.
struct Browser<'a> {
    served: &'a Served,
    cookie: String,
}

impl Browser<'_> {
    #[track_caller]
    fn new<'a>(served: &'a Served, given: &Value) -> Browser<'a> {
        let answer = log_in(served, given);
        answer.expect(200);
        Browser { served, cookie: answer.cookie() }
    }

    /// Sends a request as the page does.
    #[track_caller]
    fn ask(&self, method: &str, path: &str, body: &str) -> Answer {
        ask(self.served, method, path, &format!("cookie: {}\r\n{PAGE}", self.cookie), body)
    }

    #[track_caller]
    fn me(&self) -> Value {
        self.ask("GET", "/me", "").expect(200)
    }

    #[track_caller]
    fn is_out(&self) {
        self.ask("GET", "/me", "").refuses(401, "unauthorized");
    }

    fn follow(&self) -> Events {
        self.served.follow_with("", &format!("cookie: {}\r\n{PAGE}", self.cookie))
    }
}

/// The code in the link that a command printed.
#[track_caller]
fn code(link: &str) -> Value {
    let code = link.trim().split_once("/#code=").unwrap_or_else(|| panic!("{link:?} has no code")).1;
    json!({ "code": code })
}

fn database(home: &Home) -> Connection {
    Connection::open(home.path().join("store.db")).unwrap()
}

#[test]
fn a_token_logs_a_browser_in_and_the_page_logs_it_out() {
    let home = home();
    let phone = token(&home, &["phone"]);
    let served = Served::start(&home);
    let answer = log_in(&served, &json!({ "token": phone }));
    let who = answer.expect(200);
    assert_eq!((&who["name"], &who["scope"], &who["via"]), (&json!("phone"), &json!("chat"), &json!("page")));
    assert_eq!(who["version"], env!("CARGO_PKG_VERSION"));
    let port = served.address.rsplit_once(':').unwrap().1;
    let set = answer.headers.lines().find(|line| line.starts_with("set-cookie: ")).unwrap();
    assert!(set.starts_with(&format!("set-cookie: kiso-{port}=")), "{set}");
    assert!(set.ends_with("; httponly; samesite=strict; path=/; max-age=2592000"), "{set}");
    let browser = Browser { served: &served, cookie: answer.cookie() };
    assert_eq!(browser.me()["via"], "page");
    let sent = browser.ask("POST", "/msg", &json!({ "text": "$ echo hello" }).to_string()).expect(202);
    browser.ask("GET", "/config", "").refuses(403, "forbidden");
    let message = sent["message"].as_i64().unwrap();
    wait_until("the message to be answered", || {
        browser.ask("GET", &format!("/messages/{message}"), "").expect(200)["status"] == "done"
    });
    // The value is only in the browser, not in the store or the log.
    let value = browser.cookie.split_once('=').unwrap().1;
    for file in ["store.db", "store.db-wal"] {
        let bytes = std::fs::read(home.path().join(file)).unwrap();
        assert!(!bytes.windows(value.len()).any(|part| part == value.as_bytes()), "{file}");
    }
    let log = served.logs("a browser is logged in", 1);
    assert!(log.contains("phone") && !log.contains(value) && !log.contains(&phone), "{log}");

    let mut stream = browser.follow();
    let answer = browser.ask("POST", "/logout", "{}");
    assert_eq!((answer.status, answer.body.as_str()), (204, ""));
    assert!(answer.headers.contains(&format!("set-cookie: kiso-{port}=; ")) && answer.headers.contains("max-age=0"));
    browser.is_out();
    assert_eq!(stream.next(&["unauthorized"]).data, json!({}), "also where nothing happens");
    assert!(stream.ended());
    // If a proxy terminates TLS, the cookie is sent only over TLS.
    let headers = format!("{PAGE}x-forwarded-proto: https\r\n");
    let answer = ask(&served, "POST", "/login", &headers, &json!({ "token": phone }).to_string());
    assert!(answer.headers.contains("max-age=2592000; secure"), "{answer:?}");
}

#[test]
fn a_token_that_is_revoked_ends_its_logins_and_their_streams() {
    let home = home();
    let (phone, laptop) = (token(&home, &["phone"]), token(&home, &["laptop"]));
    let mut served = Served::start(&home);
    served.token = Some(laptop.clone());
    let [one, other] = [&phone, &laptop].map(|token| Browser::new(&served, &json!({ "token": token })));
    let mut stream = one.follow();
    home.kiso(&["token", "revoke", "phone"]).ok();
    // Events after the revocation are not sent.
    served.send("main", "$ echo secret");
    assert_eq!(stream.next(&["message", "unauthorized"]).name, "unauthorized");
    assert!(stream.ended());
    one.is_out();
    assert_eq!(other.me()["name"], "laptop");
    // A new token with the old name does not restore the login.
    token(&home, &["phone"]);
    one.is_out();
    log_in(&served, &json!({ "token": phone })).refuses(401, "unauthorized");
}

#[test]
fn what_is_wrong_is_refused_and_counted() {
    let home = home();
    let phone = token(&home, &["phone"]);
    let served = Served::start(&home);
    for body in ["", "[]", "{}", "null", r#"{"token": null}"#, r#"{"token": "a", "code": "b"}"#, r#"{"name": "x"}"#] {
        ask(&served, "POST", "/login", PAGE, body).refuses(400, "bad_request");
    }
    let guesses = [json!({ "token": format!("{phone}0") }), json!({ "code": "0".repeat(64) }), json!({ "token": "" })];
    for guess in guesses.iter().cycle().take(20) {
        let answer = log_in(&served, guess);
        answer.refuses(401, "unauthorized");
        assert!(!answer.headers.contains("set-cookie"), "{answer:?}");
    }
    guesses.iter().for_each(|guess| log_in(&served, guess).refuses(429, "too_many_failures"));
    // A valid token logs in.
    let browser = Browser::new(&served, &json!({ "token": phone }));
    assert_eq!(browser.me()["name"], "phone");
}

/// Another site's page may make the browser send requests with the cookie; all are refused.
#[test]
fn what_another_page_sends_is_refused() {
    let home = home();
    let root = token(&home, &["root", "--scope", "admin"]);
    let served = Served::start(&home);
    let browser = Browser::new(&served, &json!({ "token": root }));
    let own = format!("origin: http://{}\r\n", served.address);
    let said = |method: &str, path: &str, headers: &str| {
        let body = if method == "GET" { String::new() } else { json!({ "text": "/help" }).to_string() };
        ask(&served, method, path, &format!("cookie: {}\r\n{headers}", browser.cookie), &body)
    };
    // Origin or Sec-Fetch-Site, and whether a POST and a GET with it are answered.
    let cases = [
        ("", false, true),
        ("sec-fetch-site: none\r\n", false, true),
        ("sec-fetch-site: same-origin\r\n", true, true),
        (own.as_str(), true, true),
        // A proxy changed the request's host.
        ("sec-fetch-site: same-origin\r\norigin: https://kiso.example\r\n", true, true),
        ("sec-fetch-site: same-site\r\n", false, false),
        ("sec-fetch-site: cross-site\r\n", false, false),
        (&format!("sec-fetch-site: cross-site\r\n{own}"), false, false),
        ("origin: http://evil.example\r\n", false, false),
        ("origin: http://127.0.0.1:1\r\n", false, false),
        ("origin: null\r\n", false, false),
    ];
    for (from, post, get) in cases {
        let page = format!("{from}x-kiso-page: 1\r\n");
        match post {
            true => drop(said("POST", "/msg", &page).expect(200)),
            false => said("POST", "/msg", &page).refuses(403, "forbidden"),
        }
        match get {
            true => drop(said("GET", "/sessions", from).expect(200)),
            false => said("GET", "/sessions", from).refuses(403, "forbidden"),
        }
        // Without the page's header nothing is changed, whatever the origin.
        for header in ["", "x-kiso-page: 0\r\n", "x-kiso-page:\r\n"] {
            said("POST", "/msg", &format!("{from}{header}")).refuses(403, "forbidden");
            said("DELETE", "/sessions/main", &format!("{from}{header}")).refuses(403, "forbidden");
        }
    }
    // Another site's page cannot log the browser in as somebody else either.
    let given = json!({ "token": root }).to_string();
    ask(&served, "POST", "/login", "sec-fetch-site: cross-site\r\n", &given).refuses(403, "forbidden");
    ask(&served, "POST", "/login", "origin: null\r\n", &given).refuses(403, "forbidden");
    // A request with a token does not depend on the cookie: a program needs nothing else.
    let both = format!("cookie: {}\r\nauthorization: Bearer {root}\r\n", browser.cookie);
    ask(&served, "POST", "/msg", &both, &json!({ "text": "/help" }).to_string()).expect(200);
    assert_eq!(ask(&served, "GET", "/me", &both, "").expect(200)["via"], "token");
    let wrong = format!("cookie: {}\r\nauthorization: Bearer x\r\n", browser.cookie);
    ask(&served, "GET", "/me", &wrong, "").refuses(401, "unauthorized");
}

/// Programs of this machine may chat without a token, but the page may not: its user is unknown.
#[test]
fn a_page_that_is_not_logged_in_is_no_program_of_this_machine() {
    let home = home();
    let served = Served::start(&home);
    assert_eq!(ask(&served, "GET", "/me", "", "").expect(200)["via"], "machine");
    for headers in ["sec-fetch-site: same-origin\r\n", "x-kiso-page: 1\r\n", PAGE, "x-kiso-page: 1\r\ncookie: a=b\r\n"]
    {
        ask(&served, "GET", "/me", headers, "").refuses(401, "unauthorized");
        ask(&served, "GET", "/events", headers, "").refuses(401, "unauthorized");
        ask(&served, "POST", "/msg", headers, "{\"text\": \"/help\"}").refuses(401, "unauthorized");
    }
}

#[test]
fn one_cookie_counts_and_what_is_unclear_does_not() {
    let home = home();
    let served = Served::start(&home);
    let browser = Browser::new(&served, &code(&home.kiso(&["open", "--print"]).ok().stdout));
    let (name, value) = browser.cookie.split_once('=').unwrap();
    let me = |cookies: &str| ask(&served, "GET", "/me", &format!("{cookies}{PAGE}"), "");
    me(&format!("cookie: theme=dark; kiso-1={value}; {name}={value}; x=\"y\"\r\n")).expect(200);
    me(&format!("cookie: a=b\r\ncookie: {name}={value}\r\n")).expect(200);
    let other = "f".repeat(64);
    for cookies in [
        format!("cookie: {name}={value}; {name}={value}\r\n"),
        format!("cookie: {name}={other}; {name}={value}\r\n"),
        format!("cookie: {name}={value}\r\ncookie: {name}=\r\n"),
        format!("cookie: {name}={other}\r\n"),
        format!("cookie: {name}=\r\n"),
        format!("cookie: {name}={value}0\r\n"),
        format!("cookie: kiso-1={value}\r\n"),
    ] {
        me(&cookies).refuses(401, "unauthorized");
    }
    // An invalid cookie does not count as a guess, however often a browser sends it.
    for _ in 0..30 {
        me(&format!("cookie: {name}={other}\r\n")).refuses(401, "unauthorized");
    }
    assert_eq!(browser.me()["name"], Value::Null);
}

#[test]
fn a_link_logs_one_browser_in() {
    let home = home();
    home.kiso(&["open", "--print"]).exit(1).says(&["no daemon is running for", "kiso serve"]);
    let served = Served::start(&home);
    served.logs("`kiso open` logs", 1);
    let printed = home.kiso(&["open", "--print"]);
    printed.ok().says(&["once, within 5 minutes"]);
    let link = printed.stdout.trim();
    assert!(link.starts_with(&format!("http://{}/#code=", served.address)), "{link}");
    let browser = Browser::new(&served, &code(link));
    let me = browser.me();
    assert_eq!((&me["name"], &me["scope"], &me["via"]), (&Value::Null, &json!("admin"), &json!("page")));
    browser.ask("GET", "/config", "").expect(200);
    log_in(&served, &code(link)).refuses(401, "unauthorized");

    let object = home.kiso(&["--json", "open", "--print", "--scope", "chat"]).ok().json();
    assert_eq!((&object["type"], &object["scope"], &object["opened"]), (&json!("link"), &json!("chat"), &json!(false)));
    let chatting = Browser::new(&served, &code(object["url"].as_str().unwrap()));
    chatting.ask("GET", "/config", "").refuses(403, "forbidden");
    // Two logins with one code at the same time: only one succeeds.
    let link = code(&home.kiso(&["open", "--print"]).ok().stdout);
    let statuses: Vec<u16> = std::thread::scope(|scope| {
        let tries: Vec<_> = (0..8).map(|_| scope.spawn(|| log_in(&served, &link).status)).collect();
        tries.into_iter().map(|one| one.join().unwrap()).collect()
    });
    assert_eq!(statuses.iter().filter(|status| **status == 200).count(), 1, "{statuses:?}");
    // Codes are stored as hashes, and removed after use.
    let left: i64 = database(&home).query_row("SELECT count(*) FROM login_codes", (), |row| row.get(0)).unwrap();
    assert_eq!(left, 0);

    let mut stream = browser.follow();
    let unused = code(&home.kiso(&["open", "--print"]).ok().stdout);
    home.kiso(&["open", "--log-out"]).ok().prints(&["logged out 3 browsers"]);
    assert_eq!(home.kiso(&["--json", "open", "--log-out"]).ok().json(), json!({ "type": "logged_out", "browsers": 0 }));
    browser.is_out();
    chatting.is_out();
    log_in(&served, &unused).refuses(401, "unauthorized");
    stream.next(&["unauthorized"]);
    home.kiso(&["open", "--log-out", "--print"]).exit(2);
    home.kiso(&["open", "--scope", "root"]).exit(2);
}

#[test]
fn links_and_logins_that_are_not_used_end() {
    let home = home();
    let served = Served::start(&home);
    let link = || code(&home.kiso(&["open", "--print"]).ok().stdout);
    let database = database(&home);
    let set = |sql: &str, ms: i64| assert_eq!(database.execute(sql, [ms]).unwrap(), 1, "{sql}");
    let old = link();
    set("UPDATE login_codes SET created_ms = created_ms - ?1", CODE_MS);
    log_in(&served, &old).refuses(401, "unauthorized");
    let fresh = link();
    set("UPDATE login_codes SET created_ms = created_ms - ?1", CODE_MS - 60_000);
    let browser = Browser::new(&served, &fresh);
    // Within the hour nothing is recorded, and the cookie is not renewed.
    assert!(!browser.ask("GET", "/me", "").headers.contains("set-cookie"));
    set("UPDATE logins SET used_ms = used_ms - ?1", LOGIN_MS - 60_000);
    let used = || database.query_row("SELECT used_ms FROM logins", (), |row| row.get::<_, i64>(0)).unwrap();
    let before = used();
    let answer = browser.ask("GET", "/me", "");
    answer.expect(200);
    assert_eq!(answer.cookie(), browser.cookie, "it is kept for another month");
    assert!(used() >= before + LOGIN_MS - 60_000);
    assert!(!browser.ask("GET", "/me", "").headers.contains("set-cookie"));
    let mut stream = browser.follow();
    set("UPDATE logins SET used_ms = used_ms - ?1", LOGIN_MS);
    browser.is_out();
    stream.next(&["unauthorized"]);
}

#[test]
fn a_browser_has_one_login() {
    let home = home();
    let (phone, laptop) = (token(&home, &["phone"]), token(&home, &["laptop"]));
    let served = Served::start(&home);
    let before = Browser::new(&served, &json!({ "token": phone }));
    let headers = format!("cookie: {}\r\n{PAGE}", before.cookie);
    // A failed login changes nothing.
    ask(&served, "POST", "/login", &headers, "{\"token\": \"x\"}").refuses(401, "unauthorized");
    before.me();
    let answer = ask(&served, "POST", "/login", &headers, &json!({ "token": laptop }).to_string());
    assert_eq!(answer.expect(200)["name"], "laptop");
    before.is_out();
    assert_eq!(Browser { served: &served, cookie: answer.cookie() }.me()["name"], "laptop");
}

/// `gateway.admins` selects the tokens of administrators, also in a browser; the home's owner is always one.
#[test]
fn logins_are_narrowed_as_their_tokens_are() {
    let home = home();
    home.config(&format!("{QUICK}[gateway]\nadmins = [\"boss\", \"phone\"]\n"));
    let admin = |name| token(&home, &[name, "--scope", "admin"]);
    let (boss, root, phone) = (admin("boss"), admin("root"), token(&home, &["phone"]));
    let served = Served::start(&home);
    let scope = |given: &Value| Browser::new(&served, given).me()["scope"].as_str().unwrap().to_owned();
    assert_eq!(scope(&json!({ "token": boss })), "admin");
    assert_eq!(scope(&json!({ "token": root })), "chat");
    assert_eq!(scope(&json!({ "token": phone })), "chat");
    assert_eq!(scope(&code(&home.kiso(&["open", "--print"]).ok().stdout)), "admin");
}

/// The link is opened with the system's program if there is a display.
#[test]
fn a_browser_is_opened_where_the_person_sees_it() {
    if cfg!(target_os = "macos") {
        return;
    }
    let home = home();
    let served = Served::start(&home);
    let asked = home.dir.path().join("asked");
    let program = home.file("bin/xdg-open", format!("#!/bin/sh\nprintf %s \"$1\" > {}\nexit $CODE\n", asked.display()));
    std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o755)).unwrap();
    let path = format!("{}:{}", program.parent().unwrap().display(), std::env::var("PATH").unwrap_or_default());
    let open = |args: &[&str], variables: &[(&str, &str)]| {
        let _ = std::fs::remove_file(&asked);
        let ran = home.kiso_with(&[&["--json", "open"], args].concat(), |command| {
            for name in ["DISPLAY", "WAYLAND_DISPLAY", "SSH_CONNECTION", "SSH_TTY"] {
                command.env_remove(name);
            }
            command.env("PATH", &path).env("CODE", "0").envs(variables.iter().copied());
        });
        let object = ran.ok().json();
        let link = object["url"].as_str().unwrap().to_owned();
        let given = std::fs::read_to_string(&asked).ok();
        assert!(given.as_ref().is_none_or(|given| *given == link), "{given:?}");
        (object["opened"].as_bool().unwrap(), given.is_some())
    };
    assert_eq!(open(&[], &[("DISPLAY", ":0")]), (true, true));
    assert_eq!(open(&[], &[("WAYLAND_DISPLAY", "wayland-0")]), (true, true));
    assert_eq!(open(&[], &[("DISPLAY", ":0"), ("CODE", "3")]), (false, true));
    assert_eq!(open(&[], &[("DISPLAY", "")]), (false, false));
    assert_eq!(open(&[], &[("DISPLAY", ":0"), ("SSH_CONNECTION", "a b c d")]), (false, false));
    assert_eq!(open(&["--print"], &[("DISPLAY", ":0")]), (false, false));
    let shell = [("DISPLAY", ":0"), ("PATH", "/nowhere")];
    assert_eq!(open(&[], &shell), (false, false));
    drop(served);
}

/// Too many logins of one token remove only logins of that token.
#[test]
fn a_crowd_of_logins_leaves_those_of_others() {
    let home = home();
    let phone = token(&home, &["phone"]);
    let served = Served::start(&home);
    let owner = Browser::new(&served, &code(&home.kiso(&["open", "--print"]).ok().stdout));
    let first = Browser::new(&served, &json!({ "token": phone }));
    for _ in 0..100 {
        log_in(&served, &json!({ "token": phone })).expect(200);
    }
    let count = "SELECT count(*) FROM logins";
    assert_eq!(database(&home).query_row(count, (), |row| row.get::<_, i64>(0)).unwrap(), 101);
    owner.me();
    first.is_out();
}

/// A session that was logged out after a backup stays logged out when the backup is restored.
#[test]
fn a_backup_that_is_restored_logs_nobody_in() {
    let home = home();
    let served = Served::start(&home);
    let cookie = Browser::new(&served, &code(&home.kiso(&["open", "--print"]).ok().stdout)).cookie;
    home.kiso(&["backup", "copy.db"]).ok();
    assert_eq!(served.terminate(), 0);
    home.kiso(&["restore", "copy.db"]).ok();
    let served = Served::start(&home);
    // The cookie's name contains the port.
    let (port, value) = (served.address.rsplit(':').next().unwrap(), cookie.split_once('=').unwrap().1);
    Browser { served: &served, cookie: format!("kiso-{port}={value}") }.is_out();
}
