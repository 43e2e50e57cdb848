//! Files of workspaces over HTTP: uploading, listing, reading and deleting, without access to anything outside.

use crate::harness::{Home, wait_until};
use crate::served::{Answer, Served};
use serde_json::json;
use std::io::{Read, Write};
use std::os::unix::fs::symlink;

const QUICK: &str = "model = \"reflex\"\n[daemon]\ndebounce_ms = 20\n";

fn home(config: &str) -> Home {
    let home = Home::new();
    home.config(config);
    home
}

/// A daemon with an administrator's token for requests, and the token.
fn for_boss(home: &Home) -> (Served, String) {
    let token = home.kiso(&["token", "add", "boss", "--scope", "admin"]).ok().stdout.trim().to_owned();
    let mut served = Served::start(home);
    served.token = Some(token.clone());
    (served, token)
}

fn put(served: &Served, path: &str, body: &str) -> Answer {
    served.request("PUT", path, Some(body))
}

fn paths(served: &Served, query: &str) -> Vec<String> {
    let items = served.get(query)["items"].as_array().unwrap().clone();
    items.iter().map(|file| file["path"].as_str().unwrap().to_owned()).collect()
}

/// The entries beside a workspace.
fn beside(home: &Home, session: &str) -> Vec<String> {
    let dir = home.work(session).parent().unwrap().to_owned();
    let entries = std::fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
    entries.filter(|name| !["labels", "lock", "shared", "tmp", "work"].contains(&name.as_str())).collect()
}

#[test]
fn a_file_is_put_listed_read_and_deleted() {
    let home = home(QUICK);
    let served = Served::start(&home);
    let mut events = served.follow("", None);
    let made = put(&served, "/sessions/new/files", "x");
    made.refuses(405, "wrong_method");
    served.request("GET", "/sessions/fresh/files", None).refuses(404, "not_found");
    let made = put(&served, "/sessions/fresh/files/in/caf%C3%A9%20list.csv", "town,rain\nOslo,3\n").expect(201);
    assert_eq!(made, json!({ "path": "in/café list.csv", "bytes": 17, "media_type": "text/csv" }));
    assert_eq!(events.next(&["session"]).data["name"], "fresh", "a session was made");
    assert_eq!(put(&served, "/sessions/fresh/files/a.txt", "").expect(201)["bytes"], 0);
    put(&served, "/sessions/fresh/files/z/page.html", "<script>").expect(201);
    let listed = served.get("/sessions/fresh/files");
    assert_eq!(listed["items"][1]["bytes"], 17);
    assert!(listed["items"][1]["modified_ms"].as_i64().unwrap() > 1_700_000_000_000, "{listed}");
    assert_eq!(paths(&served, "/sessions/fresh/files"), ["a.txt", "in/café list.csv", "z/page.html"]);
    // Page by page.
    let first = served.get("/sessions/fresh/files?limit=2");
    assert_eq!(first["next"], "in/café list.csv");
    assert_eq!(paths(&served, "/sessions/fresh/files?limit=2&before=in/caf%C3%A9%20list.csv"), ["z/page.html"]);
    // A task finds the file.
    assert!(served.reply(served.send("fresh", "$ cat in/*.csv | wc -l")).contains('2'));
    // Displayed or downloaded, like a published file.
    let csv = served.request("GET", "/sessions/fresh/files/in/caf%C3%A9%20list.csv", None);
    assert_eq!((csv.status, csv.body.as_str()), (200, "town,rain\nOslo,3\n"));
    assert!(csv.headers.contains("content-type: text/csv; charset=utf-8"), "{csv:?}");
    assert!(csv.headers.contains("content-disposition: inline") && csv.headers.contains("sandbox"), "{csv:?}");
    let page = served.request("GET", "/sessions/fresh/files/z/page.html", None);
    assert!(page.headers.contains("content-disposition: attachment"), "{page:?}");
    assert!(page.headers.contains("content-type: application/octet-stream"), "{page:?}");
    let mut stream = served.connect();
    let head = "GET /sessions/fresh/files/in/caf%C3%A9%20list.csv HTTP/1.1\r\nhost: localhost\r\nrange: bytes=0-3\r\n\
                connection: close\r\n\r\n";
    stream.write_all(head.as_bytes()).unwrap();
    let mut bytes = Vec::new();
    stream.read_to_end(&mut bytes).unwrap();
    let part = Answer::parse(&bytes).unwrap();
    assert_eq!((part.status, part.body.as_str()), (206, "town"));
    // An existing file is only overwritten with `replace`.
    put(&served, "/sessions/fresh/files/a.txt", "more").refuses(409, "taken");
    assert_eq!(served.request("GET", "/sessions/fresh/files/a.txt", None).body, "");
    put(&served, "/sessions/fresh/files/a.txt?replace=true", "more").expect(201);
    assert_eq!(served.request("GET", "/sessions/fresh/files/a.txt", None).body, "more");
    for path in ["in", "a.txt/below"] {
        put(&served, &format!("/sessions/fresh/files/{path}?replace=true"), "x").refuses(409, "taken");
    }
    served.request("DELETE", "/sessions/fresh/files/in", None).refuses(409, "taken");
    assert_eq!(served.request("DELETE", "/sessions/fresh/files/a.txt", None).status, 204);
    served.request("DELETE", "/sessions/fresh/files/a.txt", None).refuses(404, "not_found");
    served.request("GET", "/sessions/fresh/files/a.txt", None).refuses(404, "not_found");
    served.request("GET", "/sessions/fresh/files/in", None).refuses(404, "not_found");
    assert_eq!(beside(&home, "fresh"), [""; 0], "nothing is left beside the workspace");
}

#[test]
fn nothing_outside_a_workspace_is_reached() {
    let home = home(QUICK);
    let served = Served::start(&home);
    put(&served, "/sessions/main/files/own.txt", "own").expect(201);
    let outside = home.path().join("outside");
    std::fs::create_dir(&outside).unwrap();
    std::fs::write(outside.join("secret.txt"), "secret").unwrap();
    let work = home.work("main");
    symlink(outside.join("secret.txt"), work.join("link.txt")).unwrap();
    symlink(&outside, work.join("dir")).unwrap();
    symlink("own.txt", work.join("inner.txt")).unwrap();
    rustix::fs::mknodat(rustix::fs::CWD, work.join("pipe"), rustix::fs::FileType::Fifo, rustix::fs::Mode::RUSR, 0)
        .unwrap();
    std::fs::write(work.join(".hidden"), "x").unwrap();
    assert_eq!(paths(&served, "/sessions/main/files"), ["own.txt"]);
    for path in ["link.txt", "dir/secret.txt", "inner.txt", "pipe"] {
        served.request("GET", &format!("/sessions/main/files/{path}"), None).refuses(404, "not_found");
    }
    for path in ["..%2F..%2F..%2Fconfig.toml", "a/../b", ".hidden", "a//b", "%2Fetc%2Fpasswd", "a%00b", "a%5Cb", "a/"] {
        let url = format!("/sessions/main/files/{path}");
        served.request("GET", &url, None).refuses(400, "bad_request");
        put(&served, &url, "x").refuses(400, "bad_request");
        served.request("DELETE", &url, None).refuses(400, "bad_request");
    }
    let deep = vec!["a"; 17].join("/");
    put(&served, &format!("/sessions/main/files/{deep}"), "x").refuses(400, "bad_request");
    put(&served, &format!("/sessions/main/files/{}", "n".repeat(256)), "x").refuses(400, "bad_request");
    put(&served, "/sessions/main/files/dir/new.txt", "x").refuses(409, "taken");
    put(&served, "/sessions/main/files/link.txt", "x").refuses(409, "taken");
    // A link is replaced by the file; its target stays unchanged.
    put(&served, "/sessions/main/files/link.txt?replace=true", "mine").expect(201);
    assert_eq!(std::fs::read_to_string(outside.join("secret.txt")).unwrap(), "secret");
    assert_eq!(std::fs::read_to_string(work.join("link.txt")).unwrap(), "mine");
    served.request("DELETE", "/sessions/main/files/dir/secret.txt", None).refuses(404, "not_found");
    assert_eq!(served.request("DELETE", "/sessions/main/files/inner.txt", None).status, 204);
    assert_eq!(paths(&served, "/sessions/main/files"), ["link.txt", "own.txt"]);
}

#[test]
fn a_file_that_is_too_large_leaves_nothing() {
    let home = home(&format!("{QUICK}[gateway]\nmax_upload_mib = 1\n[engine]\nworkspace_mib = 2\n"));
    let served = Served::start(&home);
    let whole = "x".repeat(1 << 20);
    put(&served, "/sessions/main/files/two", &format!("{whole}x")).refuses(413, "too_large");
    // Without a length, the limit is noticed during the upload.
    let mut stream = served.connect();
    let head = "PUT /sessions/main/files/two HTTP/1.1\r\nhost: localhost\r\ntransfer-encoding: chunked\r\n\r\n";
    let chunk = format!("100000\r\n{whole}\r\n");
    let _ = stream.write_all([head, &chunk, &chunk].concat().as_bytes());
    let mut bytes = vec![0; 12];
    stream.read_exact(&mut bytes).unwrap();
    assert_eq!(String::from_utf8_lossy(&bytes), "HTTP/1.1 413");
    drop(stream);
    put(&served, "/sessions/main/files/one", &whole).expect(201);
    let over = put(&served, "/sessions/main/files/two", &whole);
    over.refuses(507, "quota");
    assert!(over.body.contains("workspace_mib"), "{over:?}");
    // An incomplete upload leaves no file anywhere.
    let mut stream = served.connect();
    stream
        .write_all(b"PUT /sessions/main/files/two HTTP/1.1\r\nhost: localhost\r\ncontent-length: 100\r\n\r\nhalf")
        .unwrap();
    drop(stream);
    wait_until("the half upload to be gone", || beside(&home, "main").is_empty());
    assert_eq!(paths(&served, "/sessions/main/files"), ["one"]);
    put(&served, "/sessions/main/files/small", "fits").expect(201);
}

/// Uploads work during a run: a task may wait for a person's file.
#[test]
fn a_file_is_put_into_a_session_at_work() {
    let home = home(QUICK);
    let served = Served::start(&home);
    let message = served.send("main", "$ while [ ! -e go ]; do sleep 0.02; done; cat go");
    wait_until("the command to run", || served.get("/status/main")["running"].is_string());
    put(&served, "/sessions/main/files/go", "it went on").expect(201);
    assert!(served.reply(message).contains("it went on"));
}

/// The next upload removes what an upload of a killed daemon left.
#[test]
fn what_a_killed_upload_left_is_swept() {
    let home = home(QUICK);
    let served = Served::start(&home);
    put(&served, "/sessions/main/files/a", "x").expect(201);
    let left = home.work("main").parent().unwrap().join("upload-1-0");
    std::fs::write(&left, "half").unwrap();
    put(&served, "/sessions/main/files/b", "x").expect(201);
    assert!(!left.exists());
}

/// Failed uploads and replaced files do not count against the quota, even during a run.
#[test]
fn uploads_that_fail_or_replace_take_no_room_from_a_session_at_work() {
    let home = home(&format!("{QUICK}[gateway]\nmax_upload_mib = 1\n[engine]\nworkspace_mib = 2\n"));
    let served = Served::start(&home);
    let message = served.send("main", "$ while [ ! -e go ]; do sleep 0.02; done; echo it went on > said; cat said");
    wait_until("the command to run", || served.get("/status/main")["running"].is_string());
    let most = "x".repeat(900 << 10);
    for _ in 0..4 {
        put(&served, "/sessions/main/files/same?replace=true", &most).expect(201);
        put(&served, "/sessions/main/files/same", &most).refuses(409, "taken");
    }
    put(&served, "/sessions/main/files/go", "").expect(201);
    assert!(served.reply(message).contains("it went on"));
}

/// An upload that completes after its session was deleted does not restore the session.
#[test]
fn a_file_for_a_session_that_was_deleted_meanwhile_goes_with_it() {
    let home = home(QUICK);
    let (served, token) = for_boss(&home);
    put(&served, "/sessions/main/files/a", "x").expect(201);
    let mut stream = served.connect();
    let head = format!(
        "PUT /sessions/main/files/b HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer {token}\r\ncontent-length: 8\r\n\r\nhalf"
    );
    stream.write_all(head.as_bytes()).unwrap();
    wait_until("the half upload", || !beside(&home, "main").is_empty());
    let mut events = served.follow("", None);
    served.request("DELETE", "/sessions/main", None).expect(200);
    assert_eq!(events.next(&["deleted"]).data, json!({ "name": "main" }));
    stream.write_all(b" and all").unwrap();
    let mut status = vec![0; 12];
    stream.read_exact(&mut status).unwrap();
    assert_eq!(String::from_utf8_lossy(&status), "HTTP/1.1 404");
    assert_eq!(served.get("/sessions")["items"], json!([]));
    assert!(!home.work("main").exists());
}

/// A client that disconnects at any time leaves no untracked file, and no files of a deleted session.
#[test]
fn who_hangs_up_leaves_nothing_half_done() {
    let home = home(QUICK);
    let (served, token) = for_boss(&home);
    let ask = |request: String| {
        let mut stream = served.connect();
        let (line, body) = request.split_once('|').unwrap();
        let head = format!("{line} HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer {token}\r\n");
        write!(stream, "{head}content-length: {}\r\n\r\n{body}", body.len()).unwrap();
    };
    let found = |name: &str| served.request("GET", &format!("/status/{name}"), None).status == 200;
    let has_file = |name: &str| home.path().join("sessions").join(name).join("work/a").exists();
    let mut events = served.follow("", None);
    let names: Vec<_> = (0..30).map(|n| format!("s{n}")).collect();
    for name in &names {
        ask(format!("PUT /sessions/{name}/files/a|x"));
    }
    // Each file is complete, or does not exist.
    wait_until("all of it or nothing", || names.iter().all(|name| found(name) == has_file(name)));
    for name in names.iter().filter(|name| !found(name)) {
        put(&served, &format!("/sessions/{name}/files/a"), "x").expect(201);
    }
    for name in &names {
        ask(format!("DELETE /sessions/{name}|"));
    }
    let aside = |name: &str| home.path().join("sessions").join(format!(".gone-{name}")).exists();
    wait_until("all of it or nothing", || names.iter().all(|name| found(name) == has_file(name) && !aside(name)));
    let left: Vec<_> = names.iter().filter(|name| found(name)).collect();
    for name in left {
        served.request("DELETE", &format!("/sessions/{name}"), None).expect(200);
    }
    let mut told: Vec<_> = names.iter().map(|_| events.next(&["deleted"]).data["name"].clone()).collect();
    told.sort_by_key(ToString::to_string);
    let mut all: Vec<_> = names.iter().map(|name| json!(name)).collect();
    all.sort_by_key(ToString::to_string);
    assert_eq!(told, all, "whoever listens is told of each");
}

/// A deletion interrupted by a crash: an existing session gets its files back, and other files are removed.
#[test]
fn a_deletion_that_was_cut_off_is_brought_to_an_end() {
    let home = home(QUICK);
    let served = Served::start(&home);
    put(&served, "/sessions/main/files/a", "x").expect(201);
    served.kill();
    let sessions = home.path().join("sessions");
    std::fs::rename(sessions.join("main"), sessions.join(".gone-main")).unwrap();
    std::fs::create_dir_all(sessions.join(".gone-other/work")).unwrap();
    std::fs::write(sessions.join(".gone-other/work/b"), "y").unwrap();
    let served = Served::start(&home);
    assert_eq!(paths(&served, "/sessions/main/files"), ["a"]);
    wait_until("the rest to be removed", || !sessions.join(".gone-other").exists());
    assert!(!sessions.join("other").exists() && !sessions.join(".gone-main").exists());
}

/// Files of a skill called by hand are listed, and can be deleted.
#[test]
fn a_call_by_hand_makes_its_session() {
    let home = home(QUICK);
    let (served, _) = for_boss(&home);
    let call = json!({ "session": "by-hand", "args": { "file": "none.csv" } }).to_string();
    served.request("POST", "/skills/data/call", Some(&call));
    served.request("GET", "/status/by-hand", None).expect(200);
    served.request("DELETE", "/sessions/by-hand", None).expect(200);
    assert!(!home.path().join("sessions/by-hand").exists());
}

/// Pages are rendered and documents read in the sandbox; an error says why a file cannot be shown, and nothing else is reached.
#[test]
fn documents_have_previews() {
    let home = home(QUICK);
    let (served, _) = for_boss(&home);
    put(&served, "/sessions/docs/files/notes.md", &"A line.\n\n".repeat(200)).expect(201);
    put(&served, "/sessions/docs/files/prices.csv", "name,price\ntea,2\nrice,3\n").expect(201);
    put(&served, "/sessions/docs/files/broken.pdf", "%PDF-1.7 and nothing else").expect(201);
    served.reply(served.send("docs", "$ pandoc notes.md -o in/notes.pdf || { mkdir in && pandoc notes.md -o in/notes.pdf; }; csv2xlsx prices.csv prices.xlsx"));
    let before = beside(&home, "docs");
    let page = served.request("GET", "/sessions/docs/pages/in/notes.pdf?page=2", None);
    assert_eq!(page.status, 200, "{}", page.body);
    let head = page.headers.to_lowercase();
    assert!(head.contains("content-type: image/") && head.contains("cache-control: private, no-store"), "{head}");
    let pages = head.lines().find_map(|line| line.strip_prefix("x-kiso-pages: ")).expect("it says how many there are");
    assert!(pages.trim().parse::<u64>().unwrap() >= 3, "{pages}");
    let text = served.get("/sessions/docs/text/prices.xlsx");
    assert_eq!((&text["kind"], text["parts"].as_array().unwrap().len()), (&json!("XLSX"), 1));
    assert!(text["parts"][0]["text"].as_str().unwrap().contains("| tea | 2 |"), "{text}");
    for (path, status, code) in [
        ("/sessions/docs/pages/in/notes.pdf?page=0", 400, "bad_request"),
        ("/sessions/docs/pages/in/notes.pdf?page=999", 422, "no_preview"),
        ("/sessions/docs/pages/broken.pdf", 422, "no_preview"),
        ("/sessions/docs/pages/prices.csv", 422, "no_preview"),
        ("/sessions/docs/pages/gone.pdf", 404, "not_found"),
        ("/sessions/docs/text/gone.xlsx", 404, "not_found"),
        ("/sessions/docs/pages/..%2f..%2fconfig.toml", 400, "bad_request"),
        ("/sessions/nobody/pages/notes.pdf", 404, "not_found"),
    ] {
        served.request("GET", path, None).refuses(status, code);
    }
    // A link out of the workspace is not followed.
    symlink(home.path().join("config.toml"), home.work("docs").join("out.md")).unwrap();
    served.request("GET", "/sessions/docs/text/out.md", None).refuses(404, "not_found");
    assert_eq!(beside(&home, "docs"), before, "a preview leaves nothing behind");
}
