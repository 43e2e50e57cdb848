//! The files of the page as a browser receives them.

use crate::harness::{Home, root};
use crate::served::Served;
use flate2::read::GzDecoder;
use serde_json::Value;
use std::collections::BTreeSet;
use std::io::{Read, Write};
use std::path::Path;

const WEB: &str = "host/gateway/src/page/web";

/// The parts of `style.css`.
const STYLES: [&str; 6] = ["base.css", "sessions.css", "chat.css", "composer.css", "vendor/uplot.css", "markdown.css"];

/// Maximum size of a first visit in bytes of bodies.
const FIRST_LOAD: usize = 150_000;

/// A response with its body as bytes.
struct Got {
    status: u16,
    head: String,
    body: Vec<u8>,
}

impl Got {
    #[track_caller]
    fn has(&self, lines: &[&str]) {
        for line in lines {
            assert!(self.head.lines().any(|known| known.eq_ignore_ascii_case(line)), "no {line:?}: {}", self.head);
        }
    }

    fn text(&self) -> String {
        String::from_utf8(self.body.clone()).unwrap()
    }

    fn unzipped(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        GzDecoder::new(self.body.as_slice()).read_to_end(&mut bytes).unwrap();
        bytes
    }
}

#[track_caller]
fn ask(served: &Served, method: &str, path: &str, more: &str) -> Got {
    let mut stream = served.connect();
    let head = format!("{method} {path} HTTP/1.1\r\nhost: {}\r\nconnection: close\r\n{more}\r\n", served.address);
    stream.write_all(head.as_bytes()).unwrap();
    let mut bytes = Vec::new();
    stream.read_to_end(&mut bytes).unwrap();
    let end = bytes.windows(4).position(|part| part == b"\r\n\r\n").expect("an answer has a head");
    let head = String::from_utf8(bytes[..end].to_vec()).unwrap();
    let status = head.split(' ').nth(1).unwrap().parse().unwrap();
    Got { status, head, body: bytes[end + 4..].to_vec() }
}

fn get(served: &Served, path: &str) -> Got {
    ask(served, "GET", path, "")
}

/// The addresses below `/page/` in an HTML file.
fn references(html: &str) -> Vec<String> {
    let quoted = html.split(['"', '\'']).filter(|part| part.starts_with("/page/"));
    quoted.map(str::to_owned).collect()
}

fn home() -> Home {
    let home = Home::new();
    home.config("model = \"reflex\"\n");
    home
}

#[test]
fn everybody_gets_the_page_and_nothing_else_can_run_in_it() {
    let home = home();
    home.kiso(&["token", "add", "phone"]).ok();
    let served = Served::start(&home);
    let index = get(&served, "/");
    assert_eq!(index.status, 200);
    let policy = "content-security-policy: default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' blob: data:; \
        media-src 'self' blob:; connect-src 'self'; font-src 'self'; manifest-src 'self'; base-uri 'none'; form-action 'none'; \
        frame-ancestors 'none'; frame-src 'none'; object-src 'none'; require-trusted-types-for 'script'; \
        trusted-types dompurify kiso";
    let always = [
        "x-content-type-options: nosniff",
        "referrer-policy: no-referrer",
        "cross-origin-resource-policy: same-origin",
        "vary: accept-encoding",
    ];
    index.has(&always);
    index.has(&[policy, "cross-origin-opener-policy: same-origin"]);
    index.has(&["content-type: text/html; charset=utf-8", "cache-control: no-cache"]);
    assert!(index.head.to_lowercase().contains("permissions-policy: ") && index.head.contains("camera=()"));
    let html = index.text();
    assert!(!html.contains("{{"), "{html}");
    for inline in ["<style", " style=", " onload=", " onclick=", "javascript:"] {
        assert!(!html.contains(inline), "the policy would refuse {inline:?}:\n{html}");
    }
    let scripts: Vec<&str> = html.split("<script").skip(1).collect();
    // A data block is not executed, although its element is a script.
    let loads = |tag: &str| tag.contains("src=") || tag.contains("type=\"application/json\"");
    assert!(scripts.iter().all(|rest| loads(rest.split('>').next().unwrap())), "{html}");
    let found = references(&html);
    assert!(found.iter().any(|path| path.ends_with(".js")), "{html}");
    for path in &found {
        let file = get(&served, path);
        assert_eq!(file.status, 200, "{path}");
        file.has(&always);
        file.has(&["content-security-policy: default-src 'none'; script-src 'self'; frame-ancestors 'none'"]);
        file.has(&["cache-control: public, max-age=31536000, immutable"]);
        let name = path.splitn(4, '/').nth(3).unwrap();
        let bytes = |name: &str| std::fs::read(root().join(WEB).join(name)).unwrap();
        if name.ends_with(".png") {
            assert_eq!(file.body, bytes(name), "{path}");
            continue;
        }
        let read = |name: &str| String::from_utf8(bytes(name)).unwrap();
        let source = if name == "style.css" { STYLES.map(read).concat() } else { read(name) };
        let sent = file.text();
        if !name.ends_with(".js") {
            assert_eq!(sent, source, "{path}");
            continue;
        }
        // A script contains its dependencies, and no comments.
        let lines: BTreeSet<&str> = sent.lines().collect();
        let comment = |line: &str| ["//", "/*", "*"].iter().any(|begin| line.trim().starts_with(begin));
        let other = |line: &&str| !comment(line) && !line.contains("import");
        assert!(source.lines().filter(other).all(|line| lines.contains(line)), "{path}");
        assert!(!lines.iter().any(|line| comment(line) && !line.starts_with("/*")), "{path}");
    }
}

/// The document names the user who is logged in, and only to that user.
#[test]
fn the_document_says_who_is_logged_in() {
    let home = home();
    let token =
        home.kiso(&["--json", "token", "add", "phone", "--scope", "chat"]).json()["token"].as_str().unwrap().to_owned();
    let served = Served::start(&home);
    let login = served.request("POST", "/login", Some(&serde_json::json!({ "token": token }).to_string()));
    let cookie = format!("cookie: {}\r\n", login.cookie());
    let said = |got: &Got| {
        let html = got.text();
        let (_, rest) = html.split_once("id=\"me\">").expect("there is a place for it");
        rest.split("</script>").next().unwrap().to_owned()
    };
    let own = ask(&served, "GET", "/", &cookie);
    let who: Value = serde_json::from_str(&said(&own)).unwrap();
    assert_eq!((&who["name"], &who["scope"], &who["via"]), (&"phone".into(), &"chat".into(), &"page".into()), "{who}");
    assert!(who["last_event_id"].is_i64() && who["now_ms"].is_i64(), "{who}");
    own.has(&["cache-control: no-store", "vary: accept-encoding"]);
    let zipped = ask(&served, "GET", "/", &format!("{cookie}accept-encoding: gzip\r\n"));
    assert!(String::from_utf8(zipped.unzipped()).unwrap().contains("\"phone\""));
    let void = cookie.replace(|sign: char| sign.is_ascii_digit(), "7");
    for other in [
        String::new(),
        void,
        format!("{cookie}{cookie}"),
        format!("{cookie}sec-fetch-site: cross-site\r\n"),
        format!("{cookie}origin: http://127.0.0.1:1\r\n"),
        format!("authorization: Bearer {token}\r\n"),
    ] {
        let got = ask(&served, "GET", "/", &other);
        assert_eq!((got.status, said(&got)), (200, String::new()), "{other}");
        got.has(&["cache-control: no-cache"]);
    }
    home.kiso(&["token", "revoke", "phone"]).ok();
    assert_eq!(said(&ask(&served, "GET", "/", &cookie)), "");
}

#[test]
fn a_file_of_another_version_is_none() {
    let home = home();
    let served = Served::start(&home);
    let path = references(&get(&served, "/").text()).remove(0);
    let (place, name) = path.rsplit_once('/').unwrap();
    let digest = place.split('/').nth(2).unwrap();
    assert!(digest.len() == 16 && digest.bytes().all(|byte| byte.is_ascii_hexdigit()), "{digest}");
    for wrong in [
        format!("/page/0000000000000000/{name}"),
        format!("{place}/none.js"),
        format!("{place}/"),
        format!("{place}/index.html"),
        format!("{place}/vendor/manifest.json"),
        format!("{place}/../{name}"),
        format!("{place}/%2e%2e/files.rs"),
        format!("{place}/..%2ffiles.rs"),
        "/page/".to_owned(),
        format!("/page/{digest}"),
    ] {
        let got = get(&served, &wrong);
        assert_eq!(got.status, 404, "{wrong}: {}", got.head);
        got.has(&["cache-control: no-store", "content-type: application/json"]);
        let error: Value = serde_json::from_slice(&got.body).unwrap();
        assert_eq!(error["error"]["code"], "not_found", "{wrong}");
    }
    assert_eq!(ask(&served, "POST", &path, "content-length: 0\r\n").status, 405);
}

#[test]
fn a_file_is_the_same_with_gzip_and_without() {
    let home = home();
    let served = Served::start(&home);
    let html = get(&served, "/").text();
    for path in references(&html).into_iter().chain(["/".to_owned()]) {
        let plain = get(&served, &path);
        assert!(!plain.head.to_lowercase().contains("content-encoding"), "{path}");
        let zipped = ask(&served, "GET", &path, "accept-encoding: br, gzip;q=0.8\r\n");
        let head = ask(&served, "HEAD", &path, "accept-encoding: gzip\r\n");
        if zipped.head.to_lowercase().contains("content-encoding") {
            zipped.has(&["content-encoding: gzip"]);
            head.has(&["content-encoding: gzip"]);
            assert!(zipped.body.len() < plain.body.len(), "{path}");
            assert_eq!(zipped.unzipped(), plain.body, "{path}");
        } else {
            assert_eq!(zipped.body, plain.body, "{path}");
        }
        head.has(&[&format!("content-length: {}", zipped.body.len())]);
        assert!(head.status == 200 && head.body.is_empty(), "{path}");
        let refused = ask(&served, "GET", &path, "accept-encoding: gzip;q=0\r\n");
        assert_eq!(refused.body, plain.body, "{path}");
    }
}

/// The addresses of a module's static imports, without dynamic ones by `import(…)`.
fn imports(path: &str, text: &str) -> Vec<String> {
    let mut found = Vec::new();
    for word in ["from", "import"] {
        for (at, _) in text.match_indices(word) {
            let before = text[..at].chars().next_back();
            let mut rest = text[at + word.len()..].trim_start().chars();
            let (Some(quote @ ('"' | '\'')), None | Some('\n' | ' ' | '}' | ';' | '*')) = (rest.next(), before) else {
                continue;
            };
            let name = rest.as_str().split(quote).next().unwrap();
            if name.starts_with('.') && name.ends_with(".js") {
                found.push(beside(path, name));
            }
        }
    }
    found
}

/// The path of `name` relative to the file at `path`.
fn beside(path: &str, name: &str) -> String {
    let mut parts: Vec<&str> = path.split('/').collect();
    parts.pop();
    for part in name.split('/') {
        match part {
            "." => {}
            ".." => drop(parts.pop()),
            part => parts.push(part),
        }
    }
    parts.join("/")
}

#[test]
fn a_first_visit_transfers_little() {
    let home = home();
    let served = Served::start(&home);
    let zipped = |path: &str| ask(&served, "GET", path, "accept-encoding: gzip\r\n");
    let index = zipped("/");
    let mut total = index.body.len();
    let mut waiting = references(&get(&served, "/").text());
    let mut seen = BTreeSet::new();
    while let Some(path) = waiting.pop() {
        if !seen.insert(path.clone()) {
            continue;
        }
        let got = zipped(&path);
        assert_eq!(got.status, 200, "{path}");
        println!("{:7} {path}", got.body.len());
        total += got.body.len();
        if path.ends_with(".js") {
            waiting.extend(imports(&path, &get(&served, &path).text()));
        }
    }
    assert!(seen.len() > 1, "{seen:?}");
    assert!(total < FIRST_LOAD, "{total} bytes, of {seen:#?}");
    // Check that imports are found at all.
    let text = "import { a } from './lib/a.js';\nexport {b} from\"../b.js\";import'./c.js';\nawait import('./d.js'); 'from ./e.js'";
    let found: BTreeSet<String> = imports("/page/0/x/y.js", text).into_iter().collect();
    assert_eq!(found.into_iter().collect::<Vec<_>>(), ["/page/0/b.js", "/page/0/x/c.js", "/page/0/x/lib/a.js"]);
}

/// In a debug build, a folder can replace the compiled-in files.
#[test]
fn a_folder_is_served_while_the_page_is_written() {
    if !cfg!(debug_assertions) {
        return;
    }
    let home = home();
    let file = home.file("web/lib/a.js", "one");
    home.file("web/index.html", "<script src=\"{{page}}/lib/a.js\"></script>");
    let folder = home.dir.path().join("web");
    let served = Served::start_with(&home, &[], |command| {
        command.env("KISO_PAGE", &folder);
    });
    let path = references(&get(&served, "/").text()).remove(0);
    assert_eq!(get(&served, &path).text(), "one");
    std::fs::write(file, "two").unwrap();
    assert_eq!(get(&served, &path).status, 404, "it is another version now");
    let path = references(&get(&served, "/").text()).remove(0);
    assert_eq!(get(&served, &path).text(), "two");
    std::fs::remove_dir_all(&folder).unwrap();
    assert_eq!(get(&served, "/").status, 500);
}

/// Every vendored library has a name, version, license, source and digest.
#[test]
fn what_is_vendored_is_what_its_manifest_says() {
    let folder = root().join(WEB).join("vendor");
    let wrong = wrong_in(&folder);
    assert!(wrong.is_empty(), "{wrong:#?}");
    // A changed file is detected.
    let home = home();
    let sum = digest(b"code");
    let entry = |file: &str, sum: &str, version: &str| serde_json::json!({ "file": file, "name": "n", "version": version, "license": "MIT", "source": "s", "sha256": sum });
    let manifest = serde_json::json!([entry("a.js", &sum, "1"), entry("b.js", &sum, "1"), entry("c.js", &sum, "")]);
    home.file("vendor/manifest.json", manifest.to_string());
    for (name, text) in [("a.js", "evil"), ("c.js", "code"), ("d.js", "code")] {
        home.file(&format!("vendor/{name}"), text);
    }
    let found = wrong_in(&home.dir.path().join("vendor"));
    assert_eq!(found.len(), 4, "{found:#?}");
}

fn wrong_in(folder: &Path) -> Vec<String> {
    let manifest = std::fs::read(folder.join("manifest.json")).expect("there is a manifest");
    let manifest: Vec<Value> = serde_json::from_slice(&manifest).expect("it is a list");
    let mut wrong = Vec::new();
    let mut listed = BTreeSet::new();
    for entry in &manifest {
        let of = |member: &str| entry[member].as_str().unwrap_or_default().trim().to_owned();
        let file = of("file");
        for member in ["file", "name", "version", "license", "source", "sha256"] {
            if of(member).is_empty() {
                wrong.push(format!("{file} has no {member}"));
            }
        }
        match std::fs::read(folder.join(&file)) {
            Ok(bytes) if digest(&bytes) == of("sha256") => {}
            Ok(_) => wrong.push(format!("{file} is not what its digest says")),
            Err(error) => wrong.push(format!("{file}: {error}")),
        }
        if !listed.insert(file.clone()) {
            wrong.push(format!("{file} is listed twice"));
        }
    }
    for entry in std::fs::read_dir(folder).expect("it is a folder").flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        if name != "manifest.json" && !listed.contains(&name) {
            wrong.push(format!("{name} is not in the manifest"));
        }
    }
    wrong
}

fn digest(bytes: &[u8]) -> String {
    let digest = ring::digest::digest(&ring::digest::SHA256, bytes);
    digest.as_ref().iter().map(|byte| format!("{byte:02x}")).collect()
}
