//! Clients that break rules: each is answered or disconnected as defined, and other clients are served meanwhile.

use crate::harness::{Home, skipped, wait_until};
use crate::served::{Answer, Served};
use serde_json::json;
use std::io::{Read, Write};
use std::net::TcpStream;

const CONFIG: &str = "model = \"reflex\"\n[daemon]\ndebounce_ms = 20\n\
                      [gateway]\nrequest_timeout_s = 1\nstalled_timeout_s = 1\nmax_body_kib = 64\n";

/// A daemon with short timeouts.
fn served(home: &Home) -> Served {
    home.config(CONFIG);
    Served::start(home)
}

/// Sends bytes unchanged. Returns everything received until the connection ends.
fn raw(served: &Served, bytes: &[u8]) -> String {
    let mut stream = served.connect();
    // The daemon may answer and close before it has read all.
    let _ = stream.write_all(bytes);
    rest(&mut stream)
}

/// Reads until the connection ends in any way.
fn rest(stream: &mut TcpStream) -> String {
    let (mut answer, mut part) = (Vec::new(), [0; 4096]);
    loop {
        match stream.read(&mut part) {
            Ok(0) => break,
            Ok(read) => answer.extend(&part[..read]),
            Err(error) if error.kind() == std::io::ErrorKind::ConnectionReset => break,
            Err(error) => panic!("{error} after {:?}", String::from_utf8_lossy(&answer)),
        }
    }
    String::from_utf8_lossy(&answer).into_owned()
}

/// A request that closes its connection.
fn request(line: &str, headers: &str, body: &[u8]) -> Vec<u8> {
    let head = format!("{line}\r\nhost: localhost\r\nconnection: close\r\n{headers}\r\n");
    [head.as_bytes(), body].concat()
}

fn metric(served: &Served, name: &str) -> u64 {
    let text = served.request("GET", "/metrics", None).body;
    let line = text.lines().find(|line| line.split(' ').next() == Some(name));
    line.map_or(0, |line| line.rsplit(' ').next().unwrap().parse().unwrap())
}

#[test]
fn slow_heads_and_bodies_are_dropped_and_others_served() {
    let home = Home::new();
    let served = served(&home);
    let mut head = served.connect();
    head.write_all(b"GET /health HTTP/1.1\r\nhost: loc").unwrap();
    let mut body = served.connect();
    body.write_all(&request("POST /msg HTTP/1.1", "content-length: 100\r\n", b"{\"text\":")).unwrap();
    let mut silent = served.connect();
    let mut kept = served.connect();
    kept.write_all(b"GET /health HTTP/1.1\r\nhost: localhost\r\n\r\n").unwrap();
    served.get("/health");
    assert!(!rest(&mut head).contains("200"));
    assert!(rest(&mut body).starts_with("HTTP/1.1 408"));
    assert!(!rest(&mut silent).contains("200"));
    // A connection may send another request, and is closed if it does not.
    assert!(rest(&mut kept).starts_with("HTTP/1.1 200"));
    assert_eq!(served.terminate(), 0);
}

#[test]
fn bodies_without_end_are_refused() {
    let home = Home::new();
    let served = served(&home);
    let mut chunked = served.connect();
    chunked.write_all(&request("POST /msg HTTP/1.1", "transfer-encoding: chunked\r\n", b"")).unwrap();
    let chunk = format!("1000\r\n{}\r\n", " ".repeat(0x1000));
    // More than the socket buffers, so that writing ends only when the connection is closed.
    is_dropped(&mut chunked, chunk.as_bytes());
    let mut whole = served.connect();
    let _ = whole.write_all(&request("POST /msg HTTP/1.1", "content-length: 99999999\r\n", &[b' '; 1 << 20]));
    let answer = rest(&mut whole);
    assert!(answer.is_empty() || answer.starts_with("HTTP/1.1 413"), "{answer}");
    assert!(metric(&served, "kiso_refused_total{reason=\"too_large\"}") >= 1);
    served.request("POST", "/msg", Some(&json!({ "text": "x".repeat(70_000) }).to_string())).refuses(413, "too_large");
}

#[test]
fn who_sends_too_much_hears_why() {
    let home = Home::new();
    // A longer timeout than the one second of the others: the whole body has to arrive within that time.
    home.config(&CONFIG.replace("request_timeout_s = 1", "request_timeout_s = 60\nmax_upload_mib = 1"));
    let served = Served::start(&home);
    // Far more than sockets buffer: if the connection ended in the middle, the response would be lost.
    let text = json!({ "text": "x".repeat(12 << 20) }).to_string();
    served.request("POST", "/msg", Some(&text)).refuses(413, "too_large");
    served.request("PUT", "/sessions/main/files/large", Some(&text)).refuses(413, "too_large");
    // The same for requests whose body is not read.
    served.request("POST", "/nowhere", Some(&text)).refuses(404, "not_found");
    served.request("PUT", "/msg", Some(&text)).refuses(405, "wrong_method");
    let mut stranger = served.connect();
    let head = format!("authorization: Bearer wrong\r\ncontent-length: {}\r\n", text.len());
    stranger.write_all(&request("POST /msg HTTP/1.1", &head, text.as_bytes())).unwrap();
    assert!(rest(&mut stranger).starts_with("HTTP/1.1 401"));
    // A client that waits for permission gets the refusal before it sends the body.
    let mut waits = served.connect();
    let head = format!("expect: 100-continue\r\ncontent-length: {}\r\n", text.len());
    waits.write_all(&request("POST /nowhere HTTP/1.1", &head, b"")).unwrap();
    let answer = rest(&mut waits);
    assert!(answer.starts_with("HTTP/1.1 404") && !answer.contains("100 Continue"), "{answer}");
}

/// Each request and the status of its response; 0 if the connection is closed without one.
#[test]
fn odd_requests_are_answered_each_by_its_rule() {
    let home = Home::new();
    let served = served(&home);
    let json = "content-type: application/json\r\n";
    let post = |body: &[u8]| request("POST /msg HTTP/1.1", &format!("{json}content-length: {}\r\n", body.len()), body);
    let get = |target: &str| request(&format!("GET {target} HTTP/1.1"), "", b"");
    let deep = [&b"{\"text\":"[..], &[b'['; 50_000]].concat();
    let many: String = (0..100).map(|n| format!("x-{n}: 1\r\n")).collect();
    let table: Vec<(&str, Vec<u8>, u16)> = vec![
        ("invalid UTF-8", post(b"{\"text\": \"\xff\xfe\"}"), 400),
        ("half a surrogate", post(b"{\"text\": \"\\ud800\"}"), 400),
        ("deep JSON", post(&deep), 400),
        ("a number too large", post(b"{\"text\": 1e999}"), 400),
        ("a key twice", post(b"{\"text\": \"a\", \"text\": \"b\"}"), 400),
        ("more behind the JSON", post(b"{\"text\": \"a\"} x"), 400),
        ("no body", post(b""), 400),
        ("too many headers", request("GET /health HTTP/1.1", &many, b""), 431),
        ("a head too large", request("GET /health HTTP/1.1", &format!("x: {}\r\n", "y".repeat(64 << 10)), b""), 431),
        (
            "a head of 40,000 bytes",
            request("GET /health HTTP/1.1", &format!("x: {}\r\n", "y".repeat(40_000)), b""),
            431,
        ),
        (
            "a head just too large",
            request("GET /health HTTP/1.1", &format!("x: {}\r\n", "y".repeat(32 << 10)), b""),
            431,
        ),
        (
            "a head just small enough",
            request("GET /health HTTP/1.1", &format!("x: {}\r\n", "y".repeat(32_500)), b""),
            200,
        ),
        ("a target too long", get(&format!("/health?{}", "x".repeat(10_000))), 414),
        (
            "both lengths",
            request("POST /msg HTTP/1.1", "content-length: 2\r\ntransfer-encoding: chunked\r\n", b"0\r\n\r\n"),
            400,
        ),
        ("two lengths", request("POST /msg HTTP/1.1", "content-length: 2\r\ncontent-length: 3\r\n", b"{} "), 400),
        ("a length that is none", request("POST /msg HTTP/1.1", "content-length: -1\r\n", b""), 400),
        ("an encoding that is none", request("POST /msg HTTP/1.1", "transfer-encoding: xchunked\r\n", b""), 400),
        ("chunks that are none", request("POST /msg HTTP/1.1", "transfer-encoding: chunked\r\n", b"zz\r\n"), 400),
        ("two hosts", request("GET /sessions HTTP/1.1", "host: other\r\n", b""), 400),
        ("no host", b"GET /sessions HTTP/1.1\r\nconnection: close\r\n\r\n".to_vec(), 400),
        ("an old client", b"GET /health HTTP/1.0\r\n\r\n".to_vec(), 200),
        ("a folded header", request("GET /health HTTP/1.1", "x: a\r\n b\r\n", b""), 400),
        ("a space before the colon", request("GET /health HTTP/1.1", "x : a\r\n", b""), 400),
        ("a zero byte", request("GET /health HTTP/1.1", "x: a\0b\r\n", b""), 400),
        ("no HTTP at all", b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n".to_vec(), 400),
        ("HTTP/2", b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".to_vec(), 0),
        ("absolute form", get("http://127.0.0.1/health"), 200),
        ("absolute form of a page", get("http://evil.example/sessions"), 401),
        ("authority form", request("CONNECT evil.example:443 HTTP/1.1", "", b""), 404),
        ("asterisk form", request("OPTIONS * HTTP/1.1", "", b""), 404),
        (
            "OPTIONS",
            request(
                "OPTIONS /msg HTTP/1.1",
                "origin: http://a.example\r\naccess-control-request-method: POST\r\n",
                b"",
            ),
            405,
        ),
        ("a method of its own", request("BREW /msg HTTP/1.1", "", b""), 405),
        ("a path out of the root", get("/../../etc/passwd"), 404),
        ("the same, encoded", get("/pub/..%2f..%2fetc%2fpasswd"), 404),
        ("a path that is not UTF-8", get("/pub/%ff%fe"), 404),
        ("a path with half an escape", get("/pub/%f"), 404),
        ("a zero byte in a path", get("/sessions/a%00b/messages"), 400),
        ("a session that is none", get("/sessions/%2e%2e/messages"), 400),
        ("an id that is none", get("/messages/abc"), 404),
        ("an id out of range", get("/messages/99999999999999999999"), 404),
        ("a negative id", get("/messages/-1"), 404),
        ("a query key twice", get("/runs?limit=1&limit=2"), 400),
        ("a query key that is unknown", get("/runs?limti=1"), 400),
        ("a page of nothing", get("/runs?limit=0"), 400),
        ("a page too large", get("/sessions?limit=501"), 400),
        ("a page larger than numbers", get("/sessions?limit=99999999999"), 400),
        ("a page of the largest size", get("/sessions?limit=500"), 200),
        ("a page before nothing", get("/sessions?before=x-y"), 400),
        ("an event id that is none", request("GET /events HTTP/1.1", "last-event-id: x\r\n", b""), 400),
        ("another site", request("GET /sessions HTTP/1.1", "sec-fetch-site: cross-site\r\n", b""), 401),
        ("a body of another site", request("POST /msg HTTP/1.1", "origin: null\r\ncontent-length: 2\r\n", b"{}"), 401),
        ("a wrong scheme", request("GET /sessions HTTP/1.1", "authorization: Basic eDp5\r\n", b""), 401),
        ("a token that is not a text", request("GET /sessions HTTP/1.1", "authorization: Bearer \u{fc}\r\n", b""), 401),
        (
            "two tokens",
            request("GET /sessions HTTP/1.1", "authorization: Bearer a\r\nauthorization: Bearer b\r\n", b""),
            401,
        ),
    ];
    for (what, bytes, status) in table {
        let answer = raw(&served, &bytes);
        let got = answer.split(' ').nth(1).map_or(0, |status| status.parse().unwrap_or(0));
        assert_eq!(got, status, "{what}: {answer}");
        assert_eq!(
            answer.matches("HTTP/1.1 ").count() + answer.matches("HTTP/1.0 ").count(),
            usize::from(status > 0),
            "{what}: {answer}"
        );
        assert!(!answer.to_lowercase().contains("access-control-"), "{what}: no other site may read answers: {answer}");
    }
    // The host is not a name of this machine: a page of another site whose name resolves to this address.
    let rebound = raw(&served, b"GET /sessions HTTP/1.1\r\nhost: evil.example\r\nconnection: close\r\n\r\n");
    assert!(rebound.starts_with("HTTP/1.1 401"), "{rebound}");
    assert_eq!(served.get("/sessions")["items"], json!([]), "nothing of all this was taken for a message");
    assert_eq!(served.terminate(), 0);
}

#[test]
fn a_request_in_the_body_of_another_is_no_request() {
    let home = Home::new();
    let served = served(&home);
    let hidden = "POST /msg HTTP/1.1\r\nhost: localhost\r\ncontent-length: 15\r\n\r\n{\"text\": \"evil\"}";
    let chunked = "host: localhost\r\ntransfer-encoding: chunked\r\n";
    for headers in [
        format!("{chunked}content-length: 5\r\n"),
        format!("host: localhost\r\ncontent-length: 5\r\n{}", &chunked[17..]),
        chunked.to_owned(),
    ] {
        let answer = raw(&served, format!("POST /msg HTTP/1.1\r\n{headers}\r\n0\r\n\r\n{hidden}").as_bytes());
        assert_eq!(answer.matches("HTTP/1.1 ").count(), 1, "{answer}");
    }
    assert_eq!(served.get("/sessions")["items"], json!([]));
}

#[test]
fn requests_that_come_together_are_answered_in_order() {
    let home = Home::new();
    let served = served(&home);
    let one = |target: &str, last: &str| format!("GET {target} HTTP/1.1\r\nhost: localhost\r\n{last}\r\n");
    let answer =
        raw(&served, (one("/health", "") + &one("/nothing", "") + &one("/health", "connection: close\r\n")).as_bytes());
    let statuses: Vec<_> = answer.split("HTTP/1.1 ").skip(1).map(|part| &part[..3]).collect();
    assert_eq!(statuses, ["200", "404", "200"]);
    let head = raw(&served, &request("HEAD /health HTTP/1.1", "", b""));
    assert!(head.starts_with("HTTP/1.1 200") && head.ends_with("\r\n\r\n"), "{head}");
    assert!(!head.contains("content-length: 0"), "it says how long the answer to GET is: {head}");
}

/// A client that sends requests and never reads the responses.
#[test]
fn a_client_that_does_not_read_is_dropped() {
    let home = Home::new();
    let served = served(&home);
    let mut deaf = served.connect();
    let asked = "GET /openapi.json HTTP/1.1\r\nhost: localhost\r\n\r\n".repeat(100);
    is_dropped(&mut deaf, asked.as_bytes());
    served.get("/health");
    assert_eq!(served.terminate(), 0);
}

/// A client that opens a stream and does not read it: its events do not pile up, and its slot is freed.
#[test]
fn a_stream_that_nobody_reads_is_dropped() {
    let home = Home::new();
    home.config(&CONFIG.replace("debounce_ms = 20", "debounce_ms = 60000"));
    let served = Served::start(&home);
    // More than the buffers between both sides hold.
    for n in 0..150 {
        served.send(&format!("s{n}"), &"0123456789".repeat(6_000));
    }
    let before = served.resident();
    let deaf = served.follow("?after=0", None);
    wait_until("the deaf one to be let go", || metric(&served, "kiso_event_streams") == 0);
    assert!(served.resident() < 2 * before, "{before} KiB before, {} KiB now", served.resident());
    drop(deaf);
    served.follow("?after=0", None).next(&["message"]);
    assert_eq!(served.terminate(), 0);
}

#[test]
fn a_token_that_is_revoked_ends_its_streams_and_opens_nothing_again() {
    let home = Home::new();
    let mut served = served(&home);
    let mut anonymous = served.follow("", None);
    let add = |name: &str| home.kiso(&["token", "add", name]).ok().stdout.trim().to_owned();
    let (phone, laptop) = (add("phone"), add("laptop"));
    assert_eq!(anonymous.next(&["unauthorized"]).data, json!({}), "as soon as there is a token, everybody needs one");
    served.token = Some(phone.clone());
    served.reply(served.send("quiet", "$ true"));
    let mut quiet = served.follow("?session=quiet", None);
    let mut busy = served.follow("", None);
    home.kiso(&["token", "revoke", "phone"]).ok();
    served.token = Some(laptop);
    // Events after the revocation are not sent.
    served.send("main", "$ echo secret");
    let heard = busy.next(&["message", "unauthorized"]);
    assert_eq!((heard.name.as_str(), heard.data), ("unauthorized", json!({})));
    assert!(busy.ended() && anonymous.ended());
    assert_eq!(quiet.next(&["unauthorized"]).data, json!({}), "also where nothing happens");
    assert!(quiet.ended());
    // A new token with the old name does not restore the old one.
    add("phone");
    served.token = Some(phone);
    served.request("GET", "/sessions", None).refuses(401, "unauthorized");
}

#[test]
fn who_guesses_tokens_is_told_to_stop_and_others_are_let_in() {
    let home = Home::new();
    let mut served = served(&home);
    let right = home.kiso(&["token", "add", "phone"]).ok().stdout.trim().to_owned();
    let guess = |n: u32| {
        // Every second attempt uses a valid handle.
        let handle = if n.is_multiple_of(2) { &right[..17] } else { "kiso_000000000000" };
        let header = format!("authorization: Bearer {handle}_{n:048x}\r\n");
        let answer = raw(&served, format!("GET /sessions HTTP/1.1\r\nhost: localhost\r\n{header}\r\n").as_bytes());
        Answer::parse(answer.as_bytes()).unwrap()
    };
    let answers: Vec<Answer> = (0..30).map(guess).collect();
    for (n, answer) in answers.iter().enumerate() {
        match n {
            0..20 => answer.refuses(401, "unauthorized"),
            _ => answer.refuses(429, "too_many_failures"),
        }
        assert!(!answer.body.contains(&right[..17]), "{answer:?}");
    }
    assert!(answers[29].headers.contains("retry-after: "), "{:?}", answers[29]);
    served.token = Some(right);
    served.get("/sessions");
    assert_eq!(metric(&served, "kiso_refused_total{reason=\"unauthorized\"}"), 20);
    assert_eq!(metric(&served, "kiso_refused_total{reason=\"too_many_failures\"}"), 10);
}

#[test]
fn streams_leave_places_for_requests() {
    let home = Home::new();
    home.config("model = \"reflex\"\n[gateway]\nmax_connections = 8\nmax_streams = 4\n");
    let served = Served::start(&home);
    let streams: Vec<_> = (0..4).map(|_| served.follow("", None)).collect();
    served.request("GET", "/events", None).refuses(503, "too_many_streams");
    served.get("/sessions");
    drop(streams);
    wait_until("every stream to end", || metric(&served, "kiso_event_streams") == 0);
    served.follow("", None);
}

/// Up to ten thousand connections that send nothing, or half a request.
#[test]
fn idle_connections_lock_nobody_out_and_fill_no_memory() {
    let home = Home::new();
    home.config("model = \"reflex\"\n[daemon]\ndebounce_ms = 20\n");
    let served = Served::start(&home);
    let mut stream = served.follow("", None);
    let limit = rustix::process::getrlimit(rustix::process::Resource::Nofile);
    let most = limit.maximum.unwrap_or(u64::MAX);
    let raised = rustix::process::Rlimit { current: limit.maximum, maximum: limit.maximum };
    rustix::process::setrlimit(rustix::process::Resource::Nofile, raised).expect("a process may raise its own limit");
    // The other tests of this process need some descriptors, too.
    let count = usize::try_from(most.saturating_sub(1_000)).unwrap_or(usize::MAX).min(10_000);
    if count < 10_000 {
        skipped("some of 10,000 idle connections", &format!("a process may have only {most} open files here"));
    }
    if count < 1_000 {
        eprintln!("!!! SKIPPED: 10,000 idle connections: a process may have only {count} more files open here");
        return;
    }
    let mut idle = Vec::with_capacity(count);
    let mut early = None;
    for n in 0..count {
        let mut connection = served.connect();
        if n.is_multiple_of(2) {
            connection.write_all(b"GET /health HTTP/1.1\r\nhost: loc").unwrap();
        }
        idle.push(connection);
        if n % 1_000 == 999 {
            served.get("/health");
            early.get_or_insert_with(|| served.resident());
        }
    }
    let (early, late) = (early.expect("there are a thousand at least"), served.resident());
    assert!(late * 2 < early * 3, "{early} KiB with 1,000 connections, {late} KiB with {count}");
    // A closed connection counts until its task has ended.
    wait_until("connections to be let go", || metric(&served, "kiso_http_connections") <= 512);
    // A client that has sent a request keeps its connection.
    let message = served.send("main", "$ echo hello");
    assert_eq!(stream.next(&["message"]).data["id"], message);
    assert!(served.reply(message).contains("hello"));
    drop(idle);
    assert_eq!(served.terminate(), 0);
}

/// Writes until the daemon closes the connection.
#[track_caller]
fn is_dropped(stream: &mut TcpStream, bytes: &[u8]) {
    let error = loop {
        if let Err(error) = stream.write_all(bytes) {
            break error;
        }
    };
    assert_ne!(error.kind(), std::io::ErrorKind::WouldBlock, "it is not dropped");
}
