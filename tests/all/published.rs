//! Published files, as browsers and players request them.

use crate::harness::Home;
use crate::served::Served;
use kiso_base::home::SessionName;
use kiso_plan::label::Label;
use kiso_store::store::{Publication, Store};
use std::io::{Read, Write};

const QUICK: &str = "model = \"reflex\"\n";

/// Writes a file to the workspace and publishes it, as a skill does. Returns its link.
pub(crate) fn publish(home: &Home, name: &str, media_type: &'static str, bytes: &[u8]) -> String {
    let dir = home.work("main").join("pub");
    std::fs::create_dir_all(&dir).unwrap();
    std::fs::write(dir.join(name), bytes).unwrap();
    let store = Store::open(&home.path().join("store.db")).unwrap();
    let path = format!("pub/{name}");
    let session = SessionName::parse("main").unwrap();
    let id = store
        .write_blocking(move |tx| {
            let file = Publication { path: &path, media_type, title: None, label: &Label::default() };
            tx.publish(&session, file, 1)
        })
        .unwrap();
    store.close();
    format!("/pub/{id}")
}

/// Status, headers in lower case, and body of a response.
pub(crate) fn ask(served: &Served, method: &str, path: &str, more: &str) -> (u16, String, String) {
    let mut stream = served.connect();
    let head = format!("{method} {path} HTTP/1.1\r\nhost: {}\r\nconnection: close\r\n{more}\r\n", served.address);
    stream.write_all(head.as_bytes()).unwrap();
    let mut text = String::new();
    stream.read_to_string(&mut text).unwrap();
    let (head, body) = text.split_once("\r\n\r\n").unwrap();
    let status = head.split(' ').nth(1).unwrap().parse().unwrap();
    (status, head.to_lowercase(), body.to_owned())
}

#[track_caller]
fn has(head: &str, lines: &[&str]) {
    for line in lines {
        assert!(head.lines().any(|known| known == *line), "no {line:?}: {head}");
    }
}

#[test]
fn a_file_is_shown_played_or_downloaded_and_nothing_in_it_runs() {
    let home = Home::new();
    home.config(QUICK);
    let page = publish(&home, "page.html", "text/html", b"<script>alert(1)</script>");
    let drawing = publish(&home, "drawing.svg", "image/svg+xml", b"<svg onload='alert(1)'/>");
    let letter = publish(&home, "gr\u{fc}\u{df}e 1.txt", "text/plain", "Grüße".as_bytes());
    let song = publish(&home, "song.mp3", "audio/mpeg", b"la la la");
    let odd = publish(&home, "odd", "text/html\r\nx-evil: 1", b"x");
    let served = Served::start(&home);
    let get = |path: &str| ask(&served, "GET", path, "");

    let (status, head, body) = get(&page);
    assert_eq!((status, body.as_str()), (200, "<script>alert(1)</script>"));
    has(&head, &["content-type: application/octet-stream", "content-disposition: attachment; filename=\"page.html\""]);
    has(&head, &["x-content-type-options: nosniff", "cross-origin-resource-policy: same-origin"]);
    let (_, head, _) = get(&drawing);
    has(&head, &["content-type: image/svg+xml", "content-disposition: inline; filename=\"drawing.svg\""]);
    let policy = "content-security-policy: default-src 'none'; style-src 'unsafe-inline'; img-src data:; sandbox";
    has(&head, &[policy, "cache-control: private, no-cache", "referrer-policy: no-referrer"]);
    let (_, head, body) = get(&letter);
    assert_eq!(body, "Grüße");
    has(&head, &["content-type: text/plain; charset=utf-8"]);
    has(&head, &["content-disposition: inline; filename=\"gr__e_1.txt\"; filename*=utf-8''gr%c3%bc%c3%9fe%201.txt"]);
    let (_, head, _) = get(&song);
    has(&head, &["content-type: audio/mpeg", "accept-ranges: bytes"]);
    assert!(head.contains("media-src 'self'") && !head.contains("script-src"), "{head}");
    let (_, head, _) = get(&odd);
    has(&head, &["content-type: application/octet-stream"]);
    assert!(!head.contains("x-evil"), "{head}");

    // A file that was deleted or replaced by a link gets another answer than one that was never published.
    let dir = home.work("main").join("pub");
    std::fs::remove_file(dir.join("song.mp3")).unwrap();
    std::fs::remove_file(dir.join("page.html")).unwrap();
    std::os::unix::fs::symlink("/etc/passwd", dir.join("page.html")).unwrap();
    // A link in its place is not served either: its target was not published.
    std::fs::write(home.work("main").join("private.txt"), "private").unwrap();
    std::os::unix::fs::symlink("../private.txt", dir.join("song.mp3")).unwrap();
    for gone in [&song, &page, "/pub/00000000000000000000000000"] {
        assert_eq!(get(gone).0, 404, "{gone}");
    }
}

#[test]
fn a_part_of_a_file_is_sent_and_what_the_client_has_is_not() {
    let home = Home::new();
    home.config(QUICK);
    // More than one read returns.
    let bytes: String = (0..40_000).map(|n| format!("{n:05}")).collect();
    let song = publish(&home, "song.ogg", "audio/ogg", bytes.as_bytes());
    let served = Served::start(&home);
    let (status, head, body) = ask(&served, "GET", &song, "");
    assert_eq!((status, body.len()), (200, 200_000));
    let tag = head.lines().find_map(|line| line.strip_prefix("etag: ")).unwrap().to_owned();

    let part = |range: &str| ask(&served, "GET", &song, &format!("range: bytes={range}\r\n"));
    let (status, head, body) = part("100000-199998");
    assert_eq!((status, body.as_str()), (206, &bytes[100_000..199_999]));
    has(&head, &["content-range: bytes 100000-199998/200000", "content-length: 99999", "content-type: audio/ogg"]);
    assert_eq!(part("-5").2, "39999");
    assert_eq!(part("199995-").2, "39999");
    assert_eq!(part("0-0,5-6").0, 200, "several parts are too much to ask");
    let (status, head, body) = part("200000-");
    assert_eq!((status, body.as_str()), (416, ""));
    has(&head, &["content-range: bytes */200000"]);

    let (status, head, body) = ask(&served, "HEAD", &song, "");
    assert_eq!((status, body.as_str()), (200, ""));
    has(&head, &["content-length: 200000", &format!("etag: {tag}")]);
    let (status, head, body) = ask(&served, "GET", &song, &format!("if-none-match: {tag}\r\n"));
    assert_eq!((status, body.as_str()), (304, ""));
    has(&head, &[&format!("etag: {tag}")]);
    let resumed = format!("range: bytes=10-\r\nif-range: {tag}\r\n");
    assert_eq!(ask(&served, "GET", &song, &resumed).0, 206);
    // The file was replaced: the rest of the old one cannot be served.
    publish(&home, "song.ogg", "audio/ogg", b"la");
    let (status, _, body) = ask(&served, "GET", &song, &resumed);
    assert_eq!((status, body.as_str()), (200, "la"));
}
