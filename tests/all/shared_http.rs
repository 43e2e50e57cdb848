//! The files that all sessions share, over HTTP: listed, read, written, deleted and restored.

use crate::harness::{Home, wait_until};
use crate::served::{Answer, Served, ask};
use serde_json::{Value, json};
use std::fs;

const QUICK: &str = "model = \"reflex\"\n[daemon]\ndebounce_ms = 20\n";

fn served(more: &str) -> (Home, Served) {
    let home = Home::new();
    home.config(&format!("{QUICK}{more}"));
    let token = home.kiso(&["token", "add", "root", "--scope", "admin"]).ok().stdout.trim().to_owned();
    let mut served = Served::start(&home);
    served.token = Some(token);
    (home, served)
}

/// The entries of a directory: path, size and whether they come from outside.
#[track_caller]
fn entries(served: &Served, dir: &str) -> Vec<(String, u64, bool)> {
    let query = if dir.is_empty() { String::new() } else { format!("?path={dir}") };
    let listed = served.get(&format!("/files{query}"));
    let of = |item: &Value| {
        let text = item["path"].as_str().unwrap().to_owned();
        (text, item["bytes"].as_u64().unwrap(), item["from_outside"].as_bool().unwrap())
    };
    listed["items"].as_array().unwrap().iter().map(of).collect()
}

fn put(served: &Served, path: &str, body: &str) -> Answer {
    served.request("PUT", &format!("/files/{path}"), Some(body))
}

#[test]
fn a_file_comes_in_goes_out_is_deleted_and_put_back() {
    let (home, served) = served("");
    assert_eq!(served.get("/files"), json!({ "items": [] }));
    let added = put(&served, "lists/shop%20now.txt?session=s", "milk\n").expect(201);
    assert_eq!((added["path"].as_str(), added["session"].as_str()), (Some("lists/shop now.txt"), Some("s")));
    put(&served, "a.html", "<script>alert(1)</script>").expect(201);
    let root = [("a.html".to_owned(), 25, false), ("lists".to_owned(), 0, false)];
    assert_eq!(served.get("/files")["items"][1]["is_directory"], true);
    let listed = served.get("/files?limit=1");
    assert_eq!((listed["items"][0]["path"].as_str(), listed["next"].as_str()), (Some("a.html"), Some("a.html")));
    assert_eq!(served.get("/files?limit=1&before=a.html")["items"][0]["path"], "lists");
    assert_eq!(entries(&served, "lists"), [("lists/shop now.txt".to_owned(), 5, false)]);
    let reply = served.reply(served.send("other", "$ cat '/shared/lists/shop now.txt'; ls /shared"));
    assert!(reply.contains("milk") && reply.contains("a.html"), "{reply}");

    // A page among them does not run in the browser.
    let page = served.request("GET", "/files/a.html", None);
    assert!(page.headers.contains("content-disposition: attachment"), "{page:?}");
    assert!(page.headers.contains("x-content-type-options: nosniff") && page.headers.contains("; sandbox"), "{page:?}");
    assert_eq!(served.request("GET", "/files/lists/shop%20now.txt", None).body, "milk\n");

    put(&served, "a.html", "").refuses(409, "taken");
    put(&served, "a.html?replace=true", "two").expect(201);
    assert_eq!(served.request("GET", "/files/a.html", None).body, "two");
    put(&served, "a.html/b", "x").refuses(409, "taken");
    put(&served, "lists?replace=true", "x").refuses(409, "taken");
    for path in ["..%2Fx", ".x", "a%2F%2Fb", "a%00b", "lists%2F.kiso~up", &"d%2F".repeat(20)] {
        put(&served, path, "x").refuses(400, "bad_request");
    }
    for path in ["none", "lists", "lists/none"] {
        served.request("GET", &format!("/files/{path}"), None).refuses(404, "not_found");
    }
    served.request("GET", "/files?path=a.html", None).refuses(404, "not_found");
    served.request("GET", "/files?path=..", None).refuses(400, "bad_request");

    let removed = served.request("DELETE", "/files/lists?session=s", None).expect(200);
    assert_eq!(served.get("/files")["items"].as_array().unwrap().len(), 1);
    served.request("GET", "/files/lists/shop%20now.txt", None).refuses(404, "not_found");
    served.request("DELETE", "/files/lists?session=s", None).refuses(404, "not_found");
    let undo = json!({ "run": removed["run"] }).to_string();
    let undone = served.request("POST", "/sessions/s/undo", Some(&undo)).expect(200);
    assert!(undone["changes"].to_string().contains("/shared/lists"), "{undone}");
    assert_eq!(entries(&served, ""), root.map(|(path, bytes, outside)| (path, bytes.min(3), outside)));
    served.request("POST", "/sessions/s/undo", Some(&undo)).refuses(404, "not_found");
    served.request("POST", "/sessions/nobody/undo", Some("{}")).refuses(404, "not_found");
    // Without a name, the last change is undone: the file was added earlier.
    served.request("POST", "/sessions/s/undo", Some("{}")).expect(200);
    assert_eq!(entries(&served, "").len(), 1);
    // Uploads leave no temporary files in the home.
    let left: Vec<_> = fs::read_dir(home.path().join("cache")).unwrap().map(|entry| entry.unwrap().path()).collect();
    assert!(left.iter().all(|path| !path.display().to_string().contains(".new-")), "{left:?}");
}

#[test]
fn links_and_hidden_files_are_not_shown() {
    let (_home, served) = served("");
    served.reply(served.send("s", "$ cd /shared; echo x > .hidden; echo y > y; ln -s y link; ln -s /etc/passwd out"));
    assert_eq!(entries(&served, ""), [("y".to_owned(), 2, false)]);
    for path in ["link", "out"] {
        served.request("GET", &format!("/files/{path}"), None).refuses(404, "not_found");
    }
}

#[test]
fn sizes_are_limited_and_a_session_at_work_keeps_no_change() {
    let (_home, served) = served("[gateway]\nmax_upload_mib = 1\n[engine]\nshared_mib = 1\n");
    let large = "x".repeat((1 << 20) + 1);
    put(&served, "large", &large).refuses(413, "too_large");
    put(&served, "one", &large[..600_000]).expect(201);
    put(&served, "two", &large[..600_000]).refuses(507, "quota");
    assert_eq!(entries(&served, ""), [("one".to_owned(), 600_000, false)]);

    served.send("slow", "$ sleep 50");
    wait_until("the run begins", || served.get("/runs?session=slow")["items"][0]["status"] == "running");
    put(&served, "three?session=slow", "x").refuses(409, "at_work");
    served.request("DELETE", "/files/one?session=slow", None).refuses(409, "at_work");
    put(&served, "three?session=quick", "x").expect(201);
}

/// A token of scope `chat` reads and writes them; its files are labelled as another person's.
#[test]
fn files_of_a_chat_token_are_from_outside() {
    let (home, served) = served("");
    let chat = home.kiso(&["token", "add", "phone"]).ok().stdout.trim().to_owned();
    ask(&served.address, None, "GET", "/files", None).unwrap().refuses(401, "unauthorized");
    let by_chat =
        |method: &str, path: &str, body: Option<&str>| ask(&served.address, Some(&chat), method, path, body).unwrap();
    by_chat("PUT", "/files/theirs.txt", Some("pay me")).expect(201);
    put(&served, "mine.txt", "mine").expect(201);
    assert_eq!(by_chat("GET", "/files/mine.txt", None).body, "mine");

    // A file copied to or from the workspace keeps its label.
    served.reply(served.send("s", "$ echo own > own.txt"));
    served.reply(served.send("s", "$ cp /shared/theirs.txt copy.txt"));
    for file in ["copy.txt", "own.txt", "own.txt"] {
        let body = json!({ "file": file, "folder": "shared" }).to_string();
        served.request("POST", "/sessions/s/deliver", Some(&body)).expect(200);
    }
    let body = json!({ "file": "own.txt", "folder": "shared", "name": "by phone.txt" }).to_string();
    by_chat("POST", "/sessions/s/deliver", Some(&body)).refuses(404, "not_found");
    by_chat("PUT", "/sessions/phone/files/own.txt", Some("own\n")).expect(201);
    let saved = by_chat("POST", "/sessions/phone/deliver", Some(&body)).expect(200);
    assert_eq!(saved, json!({ "folder": "shared", "name": "by phone.txt", "bytes": 4 }));
    let outside = |path: &str| {
        entries(&served, "").into_iter().find(|(known, ..)| known == path).unwrap_or_else(|| panic!("{path}")).2
    };
    for (path, is_outside) in [
        ("theirs.txt", true),
        ("mine.txt", false),
        ("copy.txt", true),
        ("own.txt", false),
        ("own (2).txt", false),
        ("by phone.txt", true),
    ] {
        assert_eq!(outside(path), is_outside, "{path}");
    }
    // The last change is undone first.
    served.command("phone", "/undo");
    assert!(entries(&served, "").iter().all(|(path, ..)| path != "by phone.txt"));
    let missing = json!({ "file": "none", "folder": "shared" }).to_string();
    served.request("POST", "/sessions/s/deliver", Some(&missing)).refuses(400, "bad_request");
}
