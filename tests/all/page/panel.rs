//! Files in a conversation: chips of sent and created files, and the panel beside it, where no code of a file runs.

use super::browser::{Tab, css, role};
use super::stage::Stage;
use kiso_tests::root;
use serde_json::json;

/// A picture of one pixel.
const PIXEL: &[u8] = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\0\x01\0\0\0\x01\x08\x06\0\0\0\x1f\x15\xc4\x89\0\0\0\rIDATx\x9cc\xf8\xcf\xc0\xf0\x1f\0\x05\0\x01\xff\xa7\x1a\xd4\xcb\0\0\0\0IEND\xaeB`\x82";

const RUNS: &str = "<script>window.owned = 1</script>";

/// Files of the session, with a PDF and a workbook that the sandbox creates.
fn with_files() -> Option<Stage> {
    let stage = Stage::reflex()?;
    let work = stage.home.work("panel");
    std::fs::create_dir_all(work.join("sub")).unwrap();
    std::fs::copy(root().join("examples/weather.csv"), work.join("weather.csv")).unwrap();
    let svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"40\" height=\"40\" onload=\"window.owned=1\">{RUNS}<rect width=\"40\" height=\"40\"/></svg>"
    );
    let notes = format!("# Notes\n\n{}\n\nSee [the code](code.py).\n", "A line of the notes.\n\n".repeat(120));
    for (name, bytes) in [
        ("photo.png", PIXEL),
        ("sub/notes.md", notes.as_bytes()),
        ("sub/code.py", b"def f(x):\n    return x + 1\n"),
        ("page.html", format!("<h1>Hello</h1>{RUNS}").as_bytes()),
        ("drawing.svg", svg.as_bytes()),
        ("list.json", b"[{\"city\": \"Oslo\", \"rain\": 1}, {\"city\": \"Rome\", \"rain\": 2}]"),
        ("empty.txt", b""),
        ("data.bin", b"\0\x01\x02"),
    ] {
        std::fs::write(work.join(name), bytes).unwrap();
    }
    let made = "$ pandoc sub/notes.md -o notes.pdf && csv2xlsx weather.csv weather.xlsx";
    stage.daemon.reply(stage.daemon.send("panel", made));
    Some(stage)
}

fn show(stage: &Stage, path: &str) {
    let fragment = format!("#/s/panel/f/{}", path.replace('/', "%2F"));
    stage.tab.eval(&format!("location.hash = {}", json!(fragment)));
    stage.tab.wait_of(css("aside.panel h2"), &format!("it.textContent === {}", json!(path.rsplit('/').next())));
}

fn keep(tab: &Tab, name: &str) {
    if std::env::var_os("KISO_SCREENSHOTS").is_some() {
        let shots = root().join("target/page");
        std::fs::create_dir_all(&shots).unwrap();
        std::fs::write(shots.join(format!("{name}.png")), tab.screenshot()).unwrap();
    }
}

#[test]
fn files_open_beside_the_conversation() {
    let Some(stage) = with_files() else { return };
    let tab = &stage.tab;
    stage.daemon.reply(
        stage
            .daemon
            .send("panel", "what is in weather.csv?\n\nFiles: photo.png, weather.csv, notes.pdf, data.bin, sub/"),
    );
    stage.open("panel");
    // Sent files are chips, not a line of names.
    let chips = css(".chat-asked .file-chips .file-chip");
    tab.wait("the chips are there", || tab.count(chips) == 5);
    let last = css(".chat-asked:nth-last-child(2 of article)");
    tab.wait_of(
        last,
        "!it.innerText.includes('Files:') && it.innerText.includes('26 kB') && it.innerText.includes('2 files')",
    );
    tab.wait_of(css(".chat-asked .file-chip img"), "it.naturalWidth === 1");
    assert_eq!(tab.eval_on(role("link", "data.bin"), "it.download"), "data.bin", "what has no preview is downloaded");
    tab.audit("a message with files");
    keep(tab, "files-sent");

    tab.click(role("link", "weather.csv"));
    tab.wait_of(css(".panel table"), "it.rows.length === 201 && it.rows[0].cells[0].textContent === 'date'");
    tab.wait_of(
        css("aside.panel"),
        "it === document.activeElement && it.getBoundingClientRect().width < innerWidth / 2",
    );
    tab.audit("a table beside the conversation");
    keep(tab, "panel-table");
    tab.click(role("button", "Show more"));
    tab.wait_of(css(".panel table"), "it.rows.length === 733");
    tab.click(role("button", "Show as text"));
    tab.wait_of(css(".panel code"), "it.textContent.startsWith('date,city')");
    tab.click(role("button", "Open as table"));
    tab.wait_for(css(".panel table"));
    // The address contains the file, and Escape returns to the previous place.
    tab.reload();
    tab.wait_for(css(".panel table"));
    tab.press("Escape");
    tab.wait_gone(css("aside.panel"));
    assert_eq!(tab.eval("location.hash"), "#/s/panel");
    tab.click(role("link", "photo.png"));
    tab.wait_of(css(".panel-picture img"), "it.naturalWidth === 1");
    tab.press("Escape");
    tab.wait_of(role("link", "photo.png"), "it === document.activeElement");

    show(&stage, "notes.pdf");
    tab.wait_of(css(".panel-page"), "it.naturalWidth > 400 && it.alt === 'Page 1 of notes.pdf'");
    tab.audit("a page of a document beside the conversation");
    keep(tab, "panel-pdf");
    tab.click(role("button", "Next page"));
    tab.wait_of(css(".panel-page"), "it.naturalWidth > 400 && it.alt === 'Page 2 of notes.pdf'");
    tab.click(role("button", "Show the text"));
    tab.wait_of(css(".panel-body"), "it.innerText.includes('A line of the notes.')");
    show(&stage, "weather.xlsx");
    tab.wait_of(css(".panel table"), "it.rows[0].cells[1].textContent === 'city'");
    show(&stage, "sub/notes.md");
    tab.wait_of(css(".panel-body"), "Boolean(it.querySelector('h3'))");
    tab.wait_of(css(".panel-body a"), "decodeURIComponent(it.hash) === '#/s/panel/f/sub/code.py'");
    show(&stage, "sub/code.py");
    tab.wait_of(
        css(".panel code"),
        "it.textContent.includes('return x + 1') && Boolean(it.querySelector('[class^=hl-]'))",
    );
    show(&stage, "list.json");
    tab.click(role("button", "Open as table"));
    tab.wait_of(css(".panel table"), "it.rows.length === 3 && it.rows[2].cells[0].textContent === 'Rome'");
    show(&stage, "empty.txt");
    tab.shows("This file is empty");

    // No code of a file runs.
    show(&stage, "page.html");
    tab.wait_of(css(".panel code"), "it.textContent.includes('<script>') && !document.querySelector('.panel h1')");
    show(&stage, "drawing.svg");
    tab.wait_of(css(".panel-picture img"), "it.naturalWidth === 40");
    assert_eq!(tab.eval("window.owned === undefined"), true);

    // A version that a run has replaced.
    stage.daemon.reply(stage.daemon.send("panel", "$ echo changed > sub/code.py"));
    show(&stage, "sub/code.py");
    tab.click(role("button", "Versions"));
    tab.click(role("button", "Put back…"));
    tab.click(role("button", "Undo"));
    tab.shows("File changes undone");
    let kept = std::fs::read_to_string(stage.home.work("panel").join("sub/code.py")).unwrap();
    assert!(kept.contains("return x + 1"), "{kept}");

    tab.expects("answer: 404 /sessions/panel/files/gone.txt");
    show(&stage, "gone.txt");
    tab.wait_of(css(".panel"), "it.innerText.includes('This file is not there any more')");

    // On a phone it covers the conversation.
    tab.set_viewport(390, 844, true);
    show(&stage, "weather.csv");
    tab.wait_for(css(".panel table"));
    tab.wait_of(
        css("aside.panel"),
        "it.getBoundingClientRect().width === innerWidth && document.querySelector('.chat').inert",
    );
    tab.audit("a file on a phone");
    keep(tab, "panel-phone");
    tab.set_theme("dark");
    keep(tab, "panel-phone-dark");
    tab.click(role("button", "Close the file"));
    tab.wait_of(css(".chat"), "!it.inert");
}

/// A replacement of the system's notifications, in a background tab.
const IN_THE_BACKGROUND: &str = "
  window.shown = [];
  window.asked = 0;
  window.Notification = class {
    static permission = 'default';
    static async requestPermission() { window.asked += 1; return Notification.permission = 'granted'; }
    constructor(title, more) { window.shown.push({ title, ...more }); window.last = this; }
    close() {}
  };
  window.EventSource = class extends EventSource {
    constructor(...given) { super(...given); window.stream = this; }
  };
  window.tell = (run) => window.stream.dispatchEvent(new MessageEvent('run', { data: JSON.stringify(run) }));
  Object.defineProperty(document, 'hidden', { get: () => Boolean(window.away) });
";

#[test]
fn a_run_that_ends_in_the_background_is_told() {
    let Some(stage) = Stage::reflex() else { return };
    let tab = &stage.tab;
    tab.call("Page.addScriptToEvaluateOnNewDocument", json!({ "source": IN_THE_BACKGROUND }));
    tab.reload();
    stage.open("told");
    // Permission is requested only after a click.
    assert_eq!(tab.eval("window.asked"), 0);
    tab.click(super::stage::ACCOUNT);
    tab.click(role("menuitem", "Turn on notifications"));
    tab.shows("Notifications are on");
    assert_eq!(tab.eval("window.asked"), 1);
    tab.eval("window.away = true");
    // An event claims a run of fifteen seconds, so the test need not take so long.
    tab.wait_until("window.stream?.readyState === 1");
    let run = |id: &str, status: &str, took: u64| {
        let run =
            json!({ "id": id, "session": "told", "status": status, "started_ms": 1_000, "ended_ms": 1_000 + took });
        tab.eval(&format!("window.tell({run})"));
    };
    run("short", "done", 2_000);
    run("long", "done", 65_000);
    run("stopped", "cancelled", 65_000);
    run("asks", "waiting", 0);
    let shown = tab.eval("window.shown.map((one) => [one.tag, one.body])");
    assert_eq!(shown, json!([["long", "Done after 1 min 05 s"], ["asks", "Needs your approval"]]));
    tab.eval("window.away = false");
    run("seen", "done", 65_000);
    assert_eq!(tab.eval("window.shown.length"), 2, "who looks at the page sees it there");
    tab.eval("location.hash = '#/usage'");
    tab.eval("window.last.onclick()");
    tab.wait_until("location.hash === '#/s/told'");
    tab.click(super::stage::ACCOUNT);
    tab.click(role("menuitem", "Turn off notifications"));
    tab.eval("window.away = true");
    run("later", "failed", 65_000);
    assert_eq!(tab.eval("window.shown.length"), 2);
}

/// A browser offers to install the page: its manifest is complete, and its icons exist.
#[test]
fn the_page_can_be_installed() {
    let Some(stage) = Stage::reflex() else { return };
    let tab = &stage.tab;
    let manifest = tab.call("Page.getAppManifest", json!({}));
    assert_eq!(manifest["errors"], json!([]));
    assert_eq!(tab.call("Page.getInstallabilityErrors", json!({}))["installabilityErrors"], json!([]));
    let icons = tab.eval(
        "(async () => {
          const { href } = document.querySelector('link[rel=manifest]');
          const { icons } = await (await fetch(href)).json();
          return Promise.all(icons.map(async ({ src }) => (await fetch(new URL(src, href))).headers.get('content-type')));
        })()",
    );
    assert_eq!(icons, json!(["image/svg+xml", "image/png", "image/png"]));
}
