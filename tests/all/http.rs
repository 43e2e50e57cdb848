//! Requests of skills: only to granted hosts, never into this machine's network, with secrets that skills cannot read.

use crate::harness::{Home, guest, own_port, root};
use std::io::{Read, Write};
use std::net::TcpListener;
use std::sync::mpsc::{Receiver, channel};

/// A server for a number of requests, all with the same response. Returns its address and the received requests.
fn serve(answers: usize, answer: &'static [u8]) -> (String, Receiver<String>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let (sender, receiver) = channel();
    std::thread::spawn(move || {
        for _ in 0..answers {
            let Ok((mut stream, _)) = listener.accept() else { return };
            let mut request = Vec::new();
            let mut chunk = [0; 1024];
            while !request.windows(4).any(|w| w == b"\r\n\r\n") {
                match stream.read(&mut chunk) {
                    Ok(n) if n > 0 => request.extend_from_slice(&chunk[..n]),
                    _ => break,
                }
            }
            let _ = sender.send(String::from_utf8_lossy(&request).into_owned());
            let _ = stream.write_all(answer);
        }
    });
    (address, receiver)
}

const PAGE: &[u8] = b"HTTP/1.1 200 OK\r\ncontent-type: text/html; charset=utf-8\r\nconnection: close\r\n\r\n\
<html><head><title>Rain</title></head><body><h1>Rain in Oslo</h1><p>It <b>rains</b>.</p></body></html>";

#[test]
fn a_host_that_is_not_granted_is_refused() {
    let home = Home::new();
    let (address, asked) = serve(1, PAGE);
    let ran = home.kiso(&["skill", "run", "fetch", &format!("url=http://{address}/")]);
    ran.exit(4).says(&["not allowed", &format!("kiso network allow {address} --private")]);
    assert!(asked.try_recv().is_err(), "nothing went over the wire");
}

#[test]
fn a_private_address_needs_a_grant_of_its_own() {
    let home = Home::new();
    let (address, asked) = serve(1, PAGE);
    home.kiso(&["skill", "grant", "fetch", "--host", &address]).ok();
    let ran = home.kiso(&["skill", "run", "fetch", &format!("url=http://{address}/")]);
    let hint = format!("`kiso network allow {address} --private` allows it");
    ran.exit(4).says(&["in this machine's own network", &hint]);
    assert!(!ran.stderr.contains("ErrorCode"), "{}", ran.stderr);
    assert!(asked.try_recv().is_err(), "nothing went over the wire");
    home.kiso(&["skill", "grant", "fetch", "--host", &address, "--private"]).ok();
    let ran = home.kiso(&["skill", "run", "fetch", &format!("url=http://{address}/")]);
    ran.ok().prints(&["Rain in Oslo", "rains"]);
    let request = asked.recv().unwrap();
    assert!(request.to_lowercase().contains(&format!("host: {address}")), "{request}");
}

/// The gate is one for both versions of WASI.
#[test]
fn a_component_of_wasi_0_3_reaches_what_was_granted() {
    let home = Home::new();
    let (file, manifest) = (guest("hostile3"), root().join("tests/guests/hostile3/kiso.toml"));
    let (file, manifest) = (file.to_str().unwrap(), manifest.to_str().unwrap());
    home.kiso(&["skill", "add", file, "--manifest", manifest, "--grant", "none"]).ok();
    let (address, asked) = serve(1, PAGE);
    let ask = || home.kiso(&["skill", "run", "hostile3", "mode=http", &format!("path={address}"), "text=/"]);
    ask().ok().prints(&["HttpRequestDenied"]);
    home.kiso(&["skill", "grant", "hostile3", "--host", &address]).ok();
    ask().ok().prints(&["DestinationIpProhibited"]);
    assert!(asked.try_recv().is_err(), "nothing went over the wire");
    home.kiso(&["skill", "grant", "hostile3", "--host", &address, "--private"]).ok();
    ask().ok().prints(&["Rain in Oslo"]);
    let request = asked.recv().unwrap();
    assert!(request.starts_with("GET / ") && request.to_lowercase().contains(&format!("host: {address}")), "{request}");
}

#[test]
fn a_body_without_end_is_cut_off_by_a_limit() {
    let home = Home::new();
    home.config("[http]\nmax_response_mib = 1\n");
    let mut answer = b"HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\nconnection: close\r\n\r\n".to_vec();
    answer.resize(3 << 20, b'x');
    let (address, _asked) = serve(1, answer.leak());
    home.kiso(&["skill", "grant", "fetch", "--host", &address, "--private"]).ok();
    let ran = home.kiso(&["skill", "run", "fetch", &format!("url=http://{address}/")]);
    assert_ne!(ran.code, 0, "{ran:?}");
    assert!(ran.stderr.contains("fetch"), "{ran:?}");
}

#[test]
fn a_feed_is_read() {
    let home = Home::new();
    let feed = b"HTTP/1.1 200 OK\r\ncontent-type: application/rss+xml\r\nconnection: close\r\n\r\n<?xml version=\"1.0\"?>\
<rss version=\"2.0\"><channel><title>News</title><item><title>First &amp; last</title><link>https://example.org/1</link>\
<pubDate>Mon, 02 Sep 2024 10:00:00 GMT</pubDate></item></channel></rss>";
    let (address, _asked) = serve(1, feed);
    home.kiso(&["skill", "grant", "feed", "--host", &address, "--private"]).ok();
    home.kiso(&["skill", "run", "feed", &format!("url=http://{address}/feed.xml")])
        .ok()
        .prints(&["First & last", "2024-09-02"]);
}

/// The error for a server that is down says so, and that a retry may help.
#[test]
fn a_server_that_is_not_there_is_unavailable() {
    let home = Home::new();
    let address = format!("127.0.0.1:{}", own_port());
    home.kiso(&["skill", "grant", "fetch", "--host", &address, "--private"]).ok();
    let object = home.call("fetch", &serde_json::json!({ "url": format!("http://{address}/") }));
    assert_eq!(object["error"]["retryable"], true, "{object}");
}

/// A server that never responds: the deadline includes time that the guest waits in the host.
#[test]
fn a_server_that_never_answers_ends_with_the_deadline() {
    let home = Home::new();
    home.config("[engine]\ndefault_timeout_s = 1\nmax_timeout_s = 1\n");
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    home.kiso(&["skill", "grant", "fetch", "--host", &address, "--private"]).ok();
    home.kiso(&["skill", "run", "fetch", &format!("url=http://{address}/")]).exit(5).says(&["deadline of 1 s"]);
}

/// A skill that requests `address` with a key in a header. `required` is whether the manifest requires the key.
fn with_key(home: &Home, guest: &str, name: &str, address: &str, required: bool) {
    let root = crate::harness::root();
    let places = [format!("skills/{guest}/kiso.toml"), format!("tests/guests/{guest}/kiso.toml")];
    let manifest = places.iter().find_map(|place| std::fs::read_to_string(root.join(place)).ok()).unwrap();
    let head = manifest.split("[kiso.skill.needs]").next().unwrap().split("[kiso.skill.env]").next().unwrap();
    let needs = format!(
        "[kiso.skill.env]\napi_key = {{ required = {required} }}\n[kiso.skill.needs]\n\
         http = [{{ host = \"{address}\", inject = {{ header = \"X-Api-Key\", secret = \"api_key\" }} }}]\n"
    );
    let named = head.replace(&format!("name = \"{guest}\""), &format!("name = \"{name}\""));
    let manifest = home.file("kiso.toml", named + &needs);
    let wasm = crate::harness::guest(guest);
    home.kiso(&["skill", "add", wasm.to_str().unwrap(), "--manifest", manifest.to_str().unwrap(), "--grant", "all"])
        .ok();
    home.kiso(&["skill", "grant", name, "--host", address, "--private"]).ok();
}

/// The error for a missing key names the key, not a missing grant.
#[test]
fn a_request_whose_secret_is_not_set_says_so() {
    let home = Home::new();
    let (address, asked) = serve(1, PAGE);
    with_key(&home, "fetch", "fetcher", &address, false);
    let ran = home.kiso(&["skill", "run", "fetcher", &format!("url=http://{address}/")]);
    let words = ["carry the secret `api_key`, which is not set", "set KISO_SKILL_FETCHER_API_KEY where kiso runs"];
    ran.exit(2).says(&words);
    assert!(!ran.stderr.contains("not allowed") && !ran.stderr.contains("skill grant"), "{}", ran.stderr);
    assert!(asked.try_recv().is_err(), "nothing went over the wire without its key");
}

/// A key for requests is declared, but a skill cannot read it.
#[test]
fn an_injected_secret_cannot_be_read_and_says_why() {
    let home = Home::new();
    with_key(&home, "hostile", "reader", "127.0.0.1:9", false);
    for value in [None, Some("k-123-secret")] {
        let ran = home.kiso_with(&["--json", "skill", "run", "reader", "mode=secrets"], |command| {
            value.map(|value| command.env("KISO_SKILL_READER_API_KEY", value));
        });
        let data = &ran.ok().json()["data"];
        // A skill may learn that the key is not set.
        let (code, words) = match value {
            Some(_) => ("denied", "goes into the headers of requests"),
            None => ("not-found", "set KISO_SKILL_READER_API_KEY"),
        };
        assert_eq!(data["api_key"], code, "{data}");
        let message = data["message"].as_str().unwrap();
        assert!(message.contains(words) && !message.contains("declare"), "{message}");
    }
}

/// An injected secret reaches the server, but neither the guest nor any output.
#[test]
fn an_injected_secret_goes_to_the_server_and_nowhere_else() {
    let home = Home::new();
    let (address, asked) = serve(1, PAGE);
    with_key(&home, "fetch", "fetcher", &address, true);
    let url = format!("url=http://{address}/");
    home.kiso(&["skill", "run", "fetcher", &url]).exit(2).says(&["KISO_SKILL_FETCHER_API_KEY"]);
    let ran = home.kiso_with(&["--json", "skill", "run", "fetcher", &url], |c| {
        c.env("KISO_SKILL_FETCHER_API_KEY", "k-123-secret");
    });
    ran.ok().prints(&["Rain in Oslo"]);
    assert!(asked.recv().unwrap().to_lowercase().contains("x-api-key: k-123-secret"));
    assert!(!ran.stdout.contains("k-123-secret") && !ran.stderr.contains("k-123-secret"));
}

/// A component without a manifest that imports `wasi:http`, as a command and as a skill: the error names the host and the command
/// that grants it; with the grant it works.
#[test]
fn a_component_without_a_manifest_is_granted_a_host() {
    let home = Home::new();
    home.kiso(&["skill", "add", crate::harness::guest("probe").to_str().unwrap()]).ok();
    let (address, asked) = serve(2, PAGE);
    let url = format!("http://{address}/");
    let hint = format!(
        "probe may not send GET requests to {address}; allow it with `kiso skill grant probe --host {address}`"
    );
    home.kiso(&["shell", "-c", &format!("probe get {url}")]).exit(1).says(&[&hint]);
    home.kiso(&["skill", "run", "probe", &format!("url={url}")]).exit(4).says(&[&hint]);
    home.kiso(&["skill", "grant", "probe", "--host", &address]).ok();
    home.kiso(&["shell", "-c", &format!("probe get {url}")]).exit(1).says(&["has a private address", "--private"]);
    assert!(asked.try_recv().is_err(), "nothing went over the wire");
    home.kiso(&["skill", "grant", "probe", "--host", &address, "--private"]).ok();
    home.kiso(&["shell", "-c", &format!("probe get {url}")]).ok().prints(&["200"]);
    home.kiso(&["skill", "run", "probe", &format!("url={url}")]).ok().prints(&["200"]);
    // Another host needs another grant, and a successful call prints no hint.
    let other = home.kiso(&["shell", "-c", "probe get http://example.org/ || echo failed"]);
    other.ok().prints(&["failed"]).says(&["probe may not send GET requests to example.org"]);
}
