//! The browser's driver on small test pages: it detects every kind of problem, so that a test without problems is meaningful.

use super::browser::{Browser, Tab, css, role};
use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::net::TcpListener;
use std::panic::{AssertUnwindSafe, catch_unwind};

const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; \
                      require-trusted-types-for 'script'; trusted-types 'none'";

/// Serves these pages until the process ends. Returns the address.
fn site(pages: &[(&str, &str)]) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let pages: BTreeMap<String, String> =
        pages.iter().map(|(path, text)| (path.to_string(), text.to_string())).collect();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let Ok(mut stream) = stream else { return };
            let mut request = Vec::new();
            let mut chunk = [0; 1024];
            while !request.windows(4).any(|window| window == b"\r\n\r\n") {
                match stream.read(&mut chunk) {
                    Ok(n) if n > 0 => request.extend_from_slice(&chunk[..n]),
                    _ => break,
                }
            }
            let request = String::from_utf8_lossy(&request);
            let path = request.split(' ').nth(1).unwrap_or_default().to_owned();
            let (status, text) = pages.get(&path).map_or((404, ""), |text| (200, text.as_str()));
            let kind = if path.ends_with(".js") { "text/javascript" } else { "text/html; charset=utf-8" };
            let _ = write!(
                stream,
                "HTTP/1.1 {status} X\r\ncontent-type: {kind}\r\ncontent-length: {}\r\nconnection: close\r\n\
                 content-security-policy: {POLICY}\r\n\r\n{text}",
                text.len()
            );
        }
    });
    format!("http://{address}")
}

const PAGE: &str = "<!doctype html><html lang=en><head><title>A page</title><meta name=viewport content='width=device-width'><link rel=icon href=/icon>
<script type=module src=/page.js></script></head>
<body><main><h1>A page</h1><label>Your name <input id=name></label> <button id=greet>Greet</button>
<button disabled>Never</button><p role=status></p><ul></ul></main></body></html>";

const SCRIPT: &str = "const status = document.querySelector('[role=status]');
document.querySelector('#greet').addEventListener('click', (event) => {
  status.textContent = `Hello ${document.querySelector('#name').value}${event.isTrusted ? '' : ', robot'}`;
});
document.addEventListener('keydown', (event) => {
  if (event.ctrlKey && event.key === 'k') { status.textContent = 'k was pressed'; event.preventDefault(); }
});
document.addEventListener('dragover', (event) => event.preventDefault());
for (const kind of ['drop', 'paste']) document.addEventListener(kind, async (event) => {
  event.preventDefault();
  const [file] = (event.dataTransfer ?? event.clipboardData).files;
  status.textContent = `${kind} of ${file.name}: ${await file.text()}`;
});";

/// A page that removes the element under dragged files as soon as it handles the event.
const CHANGING: &str = "const cover = document.createElement('div');
cover.style.setProperty('position', 'fixed');
cover.style.setProperty('inset', '0');
document.querySelector('main').append(cover);
document.addEventListener('dragover', (event) => {
  event.preventDefault();
  cover.remove();
});
document.addEventListener('drop', (event) => {
  event.preventDefault();
  document.querySelector('[role=status]').textContent = `a drop of ${event.dataTransfer.files[0].name}`;
});";

/// A tab on a page with this script. Returns `None`, with a message, if there is no browser.
fn on(script: &str) -> Option<Tab> {
    let browser = Browser::get()?;
    let site = site(&[("/", PAGE), ("/page.js", script), ("/icon", ""), ("/other", "<title>Another</title>")]);
    let tab = browser.tab();
    tab.goto(&format!("{site}/"));
    Some(tab)
}

#[test]
fn a_page_is_used_as_a_person_uses_it() {
    let Some(tab) = on(SCRIPT) else { return };
    assert_eq!(tab.names("button"), ["Greet", "Never"]);
    tab.focus(role("textbox", "your name"));
    tab.type_text("Adá");
    tab.press("Tab");
    assert_eq!(tab.focused(), "button \"Greet\"");
    tab.press("Enter");
    tab.shows("Hello Adá");
    tab.focus(role("textbox", "Your name"));
    tab.insert_text(" Lovelace");
    tab.click(role("button", "greet"));
    tab.wait_of(role("status", ""), "it.textContent === 'Hello Adá Lovelace'");
    tab.press("Control+k");
    tab.shows("k was pressed");
    let dir = tempfile::TempDir::new().unwrap();
    let file = dir.path().join("note.txt");
    std::fs::write(&file, "dropped words").unwrap();
    tab.drop_file(css("main"), &file);
    tab.shows("drop of note.txt: dropped words");
    tab.paste_file(css("body"), "shot.txt", "text/plain", b"pasted words");
    tab.shows("paste of shot.txt: pasted words");
    tab.audit("a page");
}

/// A document receives no drop on a removed element.
#[test]
fn what_is_dropped_arrives_while_the_page_changes() {
    let Some(tab) = on(CHANGING) else { return };
    let dir = tempfile::TempDir::new().unwrap();
    let file = dir.path().join("note.txt");
    std::fs::write(&file, "words").unwrap();
    tab.drop_file(css("main"), &file);
    tab.shows("a drop of note.txt");
}

#[test]
fn a_page_is_seen_at_any_size_and_in_any_theme() {
    let Some(tab) = on("") else { return };
    let wide = tab.screenshot();
    assert!(wide.starts_with(b"\x89PNG"), "{:?}", &wide[..8]);
    tab.set_viewport(390, 844, true);
    assert_eq!(tab.eval("[innerWidth, navigator.maxTouchPoints > 0]").to_string(), "[390,true]");
    for theme in ["dark", "light"] {
        tab.set_theme(theme);
        assert_eq!(tab.eval(&format!("matchMedia('(prefers-color-scheme: {theme})').matches")), true);
    }
    tab.set_reduced_motion(true);
    assert_eq!(
        tab.eval("matchMedia('(prefers-reduced-motion: reduce) and (prefers-color-scheme: light)').matches"),
        true
    );
}

#[test]
fn requests_are_seen_and_the_network_can_be_cut() {
    let Some(tab) = on("") else { return };
    let requests = tab.requests();
    let paths: Vec<_> = requests.iter().map(|request| (request.path(), request.status)).collect();
    assert!(paths.starts_with(&[("/", Some(200)), ("/page.js", Some(200))]), "{paths:?}");
    assert!(requests[0].bytes as usize > PAGE.len(), "{requests:?}");
    tab.expects("ERR_INTERNET_DISCONNECTED");
    tab.set_offline(true);
    let fails = "fetch('/other').then(() => false, () => true)";
    tab.wait("the network is cut", || tab.eval(fails) == true);
    tab.set_offline(false);
    tab.wait("the network is mended", || tab.eval(fails) == false);
    // Names are not resolved.
    tab.expects("connect-src").expects("Content Security Policy");
    assert_eq!(tab.eval("fetch('https://example.org/').then(() => false, () => true)"), true);
}

/// The end of a tab with a problem fails, and reports it.
#[test]
fn what_should_not_be_fails_the_test() {
    if Browser::get().is_none() {
        return;
    }
    let cases = [
        ("alert(1)", "dialog: alert 1"),
        ("throw new Error('broken')", "exception: Error: broken"),
        ("Promise.reject(new Error('unheard'))", "exception: Error: unheard"),
        ("console.error('this', { is: 'bad' })", "console: this"),
        (
            "const s = document.createElement('img'); s.setAttribute('src', 'http://127.0.0.1:1/x.png'); document.body.append(s)",
            "violation: img-src",
        ),
        ("document.querySelector('h1').setAttribute('style', 'color: red')", "violation: style-src-attr"),
        ("document.querySelector('h1').innerHTML = '<b>no</b>'", "violation: require-trusted-types-for"),
        ("window.open('/other')", "window: "),
        ("document.body.append(document.createElement('iframe'))", "frame: "),
        ("fetch('/missing')", "answer: 404 /missing"),
    ];
    for (script, problem) in cases {
        let tab = on(script).expect("it was there before");
        tab.wait(&format!("{script}: {problem}"), || tab.problems().iter().any(|seen| seen.contains(problem)));
        let ended = catch_unwind(AssertUnwindSafe(|| drop(tab)));
        let said = ended.expect_err("it fails").downcast::<String>().expect("it says why");
        assert!(said.contains(problem), "{script}: {said}");
    }
}

#[test]
fn what_a_screen_reader_cannot_use_is_found() {
    let Some(tab) = on("document.querySelector('main').append(document.createElement('input'))") else { return };
    tab.wait_until("document.querySelectorAll('input').length === 2");
    let found = catch_unwind(AssertUnwindSafe(|| tab.audit("a page with a nameless field")));
    let said = found.expect_err("it fails").downcast::<String>().expect("it says why");
    assert!(said.contains("label"), "{said}");
}
