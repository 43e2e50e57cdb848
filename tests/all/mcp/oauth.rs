//! Logging in at servers that require it, with a browser that follows redirects.

use super::authority::{Authority, Wrong, visit};
use super::runs::{self, ask, plan, say};
use crate::harness::Home;
use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Read, Write};
use std::process::{Child, ChildStdout, Stdio};

fn config(url: &str, more: &str) -> String {
    format!("[mcp.oracle]\nurl = \"{url}\"\nallow = [\"ask\"]\n{more}")
}

fn configured(authority: &Authority, more: &str) -> Home {
    let home = Home::new();
    home.config(&config(&authority.url(), more));
    home
}

/// A `kiso mcp login` that waits for its browser.
struct Login {
    child: Child,
    output: BufReader<ChildStdout>,
    /// The link for the browser.
    link: String,
}

impl Login {
    fn start(home: &Home) -> Login {
        let mut command = home.command(&["mcp", "login", "oracle", "--print"]);
        command
            .env("ORACLE_SECRET", "sesame-of-kiso")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let mut child = command.spawn().expect("kiso starts");
        let (mut output, mut link) = (BufReader::new(child.stdout.take().unwrap()), String::new());
        output.read_line(&mut link).unwrap();
        Login { child, output, link: link.trim().to_owned() }
    }

    /// The address to which the authorization server redirects the browser.
    fn back(&self) -> String {
        let (status, location) = visit(&self.link);
        assert_eq!(status, 302, "{}", self.link);
        location.unwrap()
    }

    /// Exit code and whole output.
    fn end(mut self) -> (i32, String) {
        let mut said = String::new();
        self.output.read_to_string(&mut said).unwrap();
        self.child.stderr.take().unwrap().read_to_string(&mut said).unwrap();
        (self.child.wait().unwrap().code().unwrap_or(-1), said)
    }
}

#[track_caller]
fn log_in(home: &Home) {
    let login = Login::start(home);
    assert_eq!(visit(&login.back()).0, 200);
    let (code, said) = login.end();
    assert!(code == 0 && said.contains("logged in to oracle at http://127.0.0.1"), "{code} {said}");
}

fn logged_in(authority: &Authority, more: &str) -> Home {
    let home = configured(authority, more);
    log_in(&home);
    home.kiso(&["mcp", "allow", "oracle"]).ok().prints(&["oracle.ask is allowed as it is now"]);
    home
}

#[track_caller]
fn call(home: &Home, authority: &Authority) {
    // The server repeats the token; no prompt contains it.
    let told = "you came with [secret oracle_access_token]";
    runs::run_with(home, &config(&authority.url(), ""), "why", told);
}

#[track_caller]
fn call_without(home: &Home, url: &str, told: &str) {
    runs::run_without(home, &config(url, ""), told);
}

/// No file of the home and no command output contains a token.
#[track_caller]
fn tells_no_token(home: &Home, authority: &Authority) {
    let given = authority.state().given.clone();
    assert!(!given.is_empty());
    let mut texts = Vec::new();
    for args in
        [&["mcp", "list"][..], &["doctor"], &["trace", "last"], &["session", "export"], &["--json", "mcp", "list"]]
    {
        let ran = home.kiso(args);
        texts.push((args.join(" "), (ran.stdout.clone() + &ran.stderr).into_bytes()));
    }
    let mut places = vec![home.path()];
    while let Some(place) = places.pop() {
        for entry in std::fs::read_dir(&place).unwrap().flatten() {
            match entry.file_type().unwrap() {
                kind if kind.is_dir() => places.push(entry.path()),
                kind if kind.is_file() => {
                    texts.push((entry.path().display().to_string(), std::fs::read(entry.path()).unwrap()));
                }
                _ => {}
            }
        }
    }
    for token in given {
        for (place, text) in &texts {
            assert!(!text.windows(token.len()).any(|part| part == token.as_bytes()), "{place} has {token}");
        }
    }
}

#[test]
fn a_person_logs_in_and_out() {
    let authority = Authority::start();
    let home = configured(&authority, "");
    home.kiso(&["mcp", "list"]).exit(1).says(&["not logged in; run `kiso mcp login oracle`"]);
    log_in(&home);
    home.kiso(&["mcp", "allow", "oracle"]).ok();
    call(&home, &authority);
    {
        let state = authority.state();
        assert_eq!(state.scope.as_deref(), Some("read"), "as the server's refusal says");
        let asked = &state.registered[0];
        assert_eq!(
            (&asked["token_endpoint_auth_method"], &asked["application_type"]),
            (&json!("none"), &json!("native"))
        );
        assert!(asked["redirect_uris"][0].as_str().unwrap().starts_with("http://127.0.0.1:"), "{asked}");
        assert_eq!((state.calls, state.grants.len()), (1, 1), "a token that lives is not renewed");
    }
    let logged_in = format!("logged in at {}", authority.state().issuer);
    home.kiso(&["mcp", "list"]).ok().prints(&[&logged_in]);
    home.kiso(&["doctor"]).prints(&[&logged_in]);
    let listed = home.kiso(&["--json", "mcp", "list"]).ok().json_lines();
    assert_eq!(listed[0]["login"], json!(logged_in), "{listed:?}");
    tells_no_token(&home, &authority);
    home.kiso(&["mcp", "logout", "oracle"]).ok().prints(&["logged out of oracle"]);
    {
        let state = authority.state();
        assert_eq!(state.revoked, [state.refresh.clone().unwrap()]);
    }
    home.kiso(&["mcp", "logout", "oracle"]).ok().prints(&["there was no login at oracle"]);
    call_without(&home, &authority.url(), "kiso mcp login oracle");
    home.kiso(&["mcp", "login", "nobody"]).exit(2).says(&["add it as [mcp.nobody]"]);
}

#[test]
fn a_token_is_renewed_before_its_end_and_when_it_is_refused() {
    let authority = Authority::start();
    authority.state().life_s = 0;
    let home = logged_in(&authority, "");
    let before = authority.state().grants.len();
    call(&home, &authority);
    let renewed: Vec<_> = authority.state().grants[before..].to_vec();
    assert!(
        !renewed.is_empty() && renewed.iter().all(|grant| *grant == ("refresh_token".to_owned(), 200)),
        "{renewed:?}"
    );
    // A token that is valid by its own lifetime, but that the server has revoked.
    authority.state().life_s = 3_600;
    call(&home, &authority);
    let before = authority.state().grants.len();
    authority.state().access = Some("another".to_owned());
    call(&home, &authority);
    assert_eq!(authority.state().grants.len(), before + 1);
    tells_no_token(&home, &authority);
    // A server that refuses every token.
    authority.state().refuses = true;
    let before = authority.state().grants.len();
    call_without(&home, &authority.url(), "run `kiso mcp login oracle`");
    assert_eq!(authority.state().grants.len(), before + 1, "once, and not again and again");
}

/// Two parallel refreshes would use a token twice, which ends a login.
#[test]
fn processes_that_renew_at_once_do_it_one_after_the_other() {
    let authority = Authority::start();
    let home = logged_in(&authority, "");
    authority.state().access = Some("another".to_owned());
    let all: Vec<Child> = (0..4)
        .map(|_| home.command(&["mcp", "list"]).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap())
        .collect();
    for child in all {
        let output = child.wait_with_output().unwrap();
        assert!(output.status.success(), "{output:?}");
    }
    let state = authority.state();
    let grants: Vec<_> = state.grants.iter().map(|(grant, status)| (grant.as_str(), *status)).collect();
    assert_eq!(grants, [("authorization_code", 200), ("refresh_token", 200)]);
}

#[test]
fn a_login_that_is_not_renewed_is_asked_for_again() {
    let authority = Authority::start();
    authority.state().life_s = 0;
    let home = logged_in(&authority, "");
    authority.state().renews = false;
    call_without(&home, &authority.url(), "does not renew it any more");
    home.kiso(&["mcp", "list"]).exit(1).says(&["not logged in; run `kiso mcp login oracle`"]);
    authority.state().renews = true;
    log_in(&home);
    call(&home, &authority);
}

#[test]
fn rights_that_are_missing_are_asked_for_at_the_next_login() {
    let authority = Authority::start();
    let home = logged_in(&authority, "");
    authority.state().needs = Some("write".to_owned());
    call_without(&home, &authority.url(), "lacks rights that this needs (write); run `kiso mcp login oracle`");
    log_in(&home);
    assert_eq!(authority.state().scope.as_deref(), Some("read write"));
    call(&home, &authority);
}

#[test]
fn a_login_is_for_one_address_and_one_issuer() {
    let (authority, other) = (Authority::start(), Authority::start());
    let home = logged_in(&authority, "");
    home.config(&config(&other.url(), ""));
    home.kiso(&["mcp", "list"]).exit(1).says(&["url in config.toml is another one now", "kiso mcp login oracle"]);
    home.kiso(&["doctor"]).prints(&["url in config.toml is another one now"]);
    home.config(&config(&authority.url(), ""));
    home.kiso(&["mcp", "list"]).ok();
    // The server changes to another authorization server, which must not receive tokens of the first.
    authority.state().access = Some("another".to_owned());
    authority.state().issuer = format!("{}/tenant", other.base);
    other.state().issuer = format!("{}/tenant", other.base);
    home.kiso(&["mcp", "list"]).exit(1).says(&["the server names another issuer now"]);
    assert_eq!(other.state().grants.len(), 0);
}

#[test]
fn a_client_that_is_registered_by_hand_says_who_it_is() {
    let authority = Authority::start();
    let more = "client_id = \"by-hand\"\nclient_secret_env = \"ORACLE_SECRET\"\n";
    let home = configured(&authority, more);
    home.kiso(&["mcp", "login", "oracle"]).exit(1).says(&["the variable ORACLE_SECRET is not set"]);
    log_in(&home);
    let state = authority.state();
    let both = data_encoding::BASE64.encode(b"by-hand:sesame-of-kiso");
    assert_eq!(state.clients, [format!("Basic {both}")]);
    assert_eq!(state.registered, [Value::Null; 0]);
    drop(state);
    authority.state().given.push("sesame-of-kiso".to_owned());
    tells_no_token(&home, &authority);
    home.config(&config(&authority.url(), "client_id = \"other\"\n"));
    home.kiso(&["mcp", "list"]).exit(1).says(&["client_id in config.toml is another one now"]);
}

/// Over ssh, the browser runs on a machine where nobody listens at the port.
#[test]
fn the_address_can_be_pasted() {
    let authority = Authority::start();
    let home = configured(&authority, "");
    for (text, code, told) in [
        ("http://127.0.0.1:1/callback?code=x&state=y", 1, "belongs to another login"),
        ("http://evil.example/callback?code=x", 1, "what was pasted is not the address"),
        ("", 0, "logged in to oracle"),
    ] {
        let mut login = Login::start(&home);
        let text = if text.is_empty() { login.back() } else { text.to_owned() };
        writeln!(login.child.stdin.take().unwrap(), "\n{text}").unwrap();
        let ended = login.end();
        assert!(ended.0 == code && ended.1.contains(told), "{text}: {ended:?}");
    }
}

#[test]
fn who_comes_back_with_another_state_is_turned_away() {
    let authority = Authority::start();
    let home = configured(&authority, "");
    let login = Login::start(&home);
    let back = login.back();
    let (before, _) = back.split_once("&state=").unwrap();
    assert_eq!(visit(&format!("{before}&state=guessed")).0, 400);
    assert_eq!(visit(&back.replace("/callback", "/other")).0, 404);
    assert_eq!(visit(&format!("{back}&code=second")).0, 404, "what can be read in two ways is not read");
    assert_eq!(visit(&back).0, 200);
    assert_eq!(login.end().0, 0);
    // The code was used, and its port is closed.
    assert_eq!(authority.state().grants.len(), 1);
    let host = back.strip_prefix("http://").unwrap().split('/').next().unwrap();
    assert!(std::net::TcpStream::connect(host).is_err());
    // The same code again, as if somebody had intercepted it.
    let again = Login::start(&home);
    let (_, state) = again.back().split_once("&state=").map(|(a, b)| (a.to_owned(), b.to_owned())).unwrap();
    let used = back.split("code=").nth(1).unwrap().split('&').next().unwrap();
    let place = again.back().split('?').next().unwrap().to_owned();
    assert_eq!(visit(&format!("{place}?code={used}&state={state}")).0, 200);
    let (code, said) = again.end();
    assert!(code == 1 && said.contains("refuses: invalid_grant: no [31m"), "{said:?}");
}

#[test]
fn servers_that_do_it_wrong_get_no_login() {
    for (wrong, told) in [
        (Wrong::NoPkce, "does not offer PKCE with S256"),
        (Wrong::Issuer, "the answer is from the issuer"),
        (Wrong::MixUp, "https://evil.example"),
        (Wrong::NoIssuer, "the answer is from the issuer \"\""),
        (Wrong::Giant, "is longer than 128 KiB"),
        (Wrong::Slow, "does not answer within 2 s (timeout_s)"),
        (Wrong::Redirects, "redirects, which is not followed"),
        (Wrong::OtherResource, "its metadata are those of another resource"),
        (Wrong::ForeignMetadata, "must be at the same host as the server"),
        (Wrong::NoRegistration, "write client_id in its table"),
        (Wrong::TokenType, "of another type than Bearer"),
    ] {
        let authority = Authority::start();
        authority.state().wrong = Some(wrong);
        let home = configured(&authority, if wrong == Wrong::Slow { "timeout_s = 2\n" } else { "" });
        let login = Login::start(&home);
        if !login.link.is_empty() {
            visit(&login.back());
        }
        let (code, said) = login.end();
        assert!(code == 1 && said.contains(told), "{wrong:?}: {code} {said}");
        let has_grant = wrong == Wrong::TokenType;
        assert_eq!(!authority.state().grants.is_empty(), has_grant, "{wrong:?}: no code is sent");
        home.kiso(&["mcp", "list"]).exit(1);
    }
    // A server with a configured key, or without a need for one, has no login.
    let authority = Authority::start();
    let home = configured(&authority, "headers_env = [\"Authorization = ORACLE_SECRET\"]\n");
    home.kiso(&["mcp", "login", "oracle"]).exit(2).says(&["there is no login at oracle"]);
    let plain = super::stand_in::StandIn::start(super::stand_in::Era::Modern);
    home.config(&config(&plain.url, ""));
    home.kiso(&["mcp", "login", "oracle"]).exit(1);
}

#[test]
fn two_calls_of_a_run_share_a_login() {
    let authority = Authority::start();
    let home = logged_in(&authority, "");
    authority.state().access = Some("another".to_owned());
    let calls = [
        ("planner", "", plan(&[ask(&json!({ "text": "a" })), ask(&json!({ "text": "b" })), say()])),
        ("worker", "you came with", "It is 42.".to_owned()),
    ];
    runs::run(&home, &config(&authority.url(), ""), &calls).ok().prints(&["It is 42."]);
    let state = authority.state();
    assert_eq!((state.calls, state.grants.len()), (2, 2));
}
