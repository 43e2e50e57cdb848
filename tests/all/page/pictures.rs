//! Screenshots of every screen of the page, after real runs of the built-in model. They are saved only with `KISO_SCREENSHOTS=1`:
//! those of the documentation in docs/, and each screen in light and dark, on desktop and phone, in target/page. Each test run
//! checks that they can be taken.

use super::browser::{Tab, css, role};
use super::stage::{Stage, log_out};
use kiso_tests::root;
use serde_json::json;

/// Maximum size of a screenshot in bytes, because the program serves the documentation itself.
const LARGEST: usize = 300_000;

/// Earlier messages, each in its own session, which [reflex](../../../docs/reflex.md) can process.
const BEFORE: [(&str, &str); 6] = [
    ("prices", "plot close over day from market.csv"),
    ("volume", "compute the monthly sum of volume from market.csv"),
    ("sunshine", "mean sunshine per city from weather.csv"),
    ("disk", "$ du -sh . && ls -l"),
    ("wind", "draw a bar chart of the monthly mean wind from weather.csv"),
    ("cities", "what columns does market.csv have?"),
];

/// Two steps with a table and a chart, and a third that prints a line each second.
const REPORT: &str =
    "Compute the monthly mean temperature and total rain from weather.csv, then plot both as a line chart
$ for month in $(seq -w 1 12); do grep -c \"^2024-$month\" weather.csv; sleep 1; done";

/// Screenshots used in the documentation.
const IN_DOCS: [&str; 6] = ["welcome", "chat", "dark", "plan", "phone", "trace"];

/// Width and height of a desktop and a phone screen.
const SIZES: [(&str, u32, u32); 2] = [("desk", 1_280, 800), ("phone", 390, 844)];

fn is_wanted() -> bool {
    std::env::var_os("KISO_SCREENSHOTS").is_some()
}

/// A screenshot of the tab when everything is drawn.
#[track_caller]
fn shot(tab: &Tab, name: &str) -> Vec<u8> {
    // Wait for idle work, with a timeout for a busy page, and for the end of animations.
    tab.eval("document.fonts.ready.then(() => new Promise((done) => requestIdleCallback(done, { timeout: 2000 })))");
    tab.wait_until("!document.getAnimations().some((it) => it.playState === 'running' && it.effect.getComputedTiming().iterations !== Infinity)");
    let picture = tab.screenshot();
    assert!(picture.starts_with(b"\x89PNG") && picture.len() > 10_000, "{name}: {} bytes", picture.len());
    picture
}

#[track_caller]
fn take(tab: &Tab, name: &str) {
    let picture = shot(tab, name);
    assert!(picture.len() < LARGEST, "{name}: {} bytes", picture.len());
    if is_wanted() && IN_DOCS.contains(&name) {
        std::fs::write(root().join("docs").join(format!("page-{name}.png")), picture).unwrap();
    }
}

/// The same, and the screen in every theme and size, only if screenshots are requested: each takes a moment.
#[track_caller]
fn take_looks(tab: &Tab, name: &str) {
    take(tab, name);
    if !is_wanted() {
        return;
    }
    let folder = root().join("target/page/screens");
    std::fs::create_dir_all(&folder).unwrap();
    for theme in ["dark", "light"] {
        tab.set_theme(theme);
        for (size, width, height) in SIZES.into_iter().rev() {
            tab.set_viewport(width, height, size == "phone");
            std::fs::write(folder.join(format!("{name}-{size}-{theme}.png")), shot(tab, name)).unwrap();
        }
    }
}

/// A session whose workspace has the tables of examples/.
fn with_tables(stage: &Stage, session: &str) {
    let work = stage.home.work(session);
    std::fs::create_dir_all(&work).unwrap();
    for table in ["weather.csv", "market.csv"] {
        std::fs::copy(root().join("examples").join(table), work.join(table)).unwrap();
    }
}

/// Opens a screen as by a link.
fn screen(stage: &Stage, fragment: &str) {
    stage.tab.goto("about:blank");
    stage.tab.goto(&stage.url(fragment));
}

/// A home after a week of use: conversations, facts, pills and schedules.
fn used() -> Option<Stage> {
    let stage = Stage::reflex()?;
    for (session, message) in BEFORE {
        with_tables(&stage, session);
        stage.daemon.reply(stage.daemon.send(session, message));
    }
    for fact in ["Remember that the garden is watered on Mondays", "Remember that I prefer metric units"] {
        stage.daemon.reply(stage.daemon.send("notes", fact));
    }
    stage.home.kiso(&["pill", "add", "rain", "total rain per city from {input}", "--effort", "high"]).ok();
    stage.home.kiso(&["pill", "add", "columns", "what columns does {input} have?"]).ok();
    for (name, when, message) in [
        ("morning", "30 7 * * *", "plot temperature over date from weather.csv"),
        ("disk", "@every 12h", "$ du -sh ."),
        ("month", "0 9 1 * *", "total rain per city from weather.csv"),
    ] {
        let schedule = json!({ "name": name, "when": when, "message": message, "session": "weather" });
        stage.daemon.request("POST", "/schedules", Some(&schedule.to_string())).expect(201);
    }
    Some(stage)
}

#[test]
fn every_screen_in_pictures() {
    let Some(stage) = used() else { return };
    let tab = &stage.tab;
    tab.set_viewport(1280, 800, false);
    stage.open("first");
    tab.wait_for(role("button", "Connect a model"));
    take_looks(tab, "welcome");
    tab.click(role("button", "Connect a model"));
    tab.wait_for(role("dialog", "Connect a model"));
    tab.click(role("radio", "OpenAI"));
    tab.shows("Create a key at");
    take_looks(tab, "connect");

    tab.set_viewport(1280, 1000, false);
    with_tables(&stage, "weather");
    screen(&stage, "#/s/weather");
    stage.say("plot temperature over date from weather.csv");
    tab.wait_for(css("article canvas"));
    tab.wait_gone(role("button", "Stop"));
    tab.wait_for(role("button", "Show steps"));
    tab.eval("document.activeElement.blur(), document.querySelector('[role=log]').scrollTop = 1e6");
    tab.wait("the reply is read", || stage.daemon.get("/sessions?limit=1")["items"][0]["unread"] == json!(0));
    take(tab, "chat");
    tab.set_viewport(1280, 800, false);
    tab.set_theme("dark");
    take(tab, "dark");
    tab.set_theme("light");
    take_looks(tab, "conversation");

    with_tables(&stage, "report");
    tab.set_viewport(1280, 920, false);
    screen(&stage, "#/s/report");
    stage.say(REPORT);
    // Its output is shown while it runs.
    tab.wait_of(css(".run-task.running"), "/62\\s+58/.test(it.textContent)");
    tab.eval("document.activeElement.blur()");
    take(tab, "plan");
    tab.set_viewport(390, 844, true);
    take(tab, "phone");
    tab.set_viewport(1280, 800, false);
    tab.wait_gone(role("button", "Stop"));

    let run = stage.daemon.get("/runs?session=report")["items"][0]["id"].as_str().unwrap().to_owned();
    for (name, fragment, there) in [
        ("runs", "#/run".to_owned(), role("heading", "Runs")),
        ("trace", format!("#/run/{run}"), role("list", "Steps")),
        ("skills", "#/skills/fetch".to_owned(), role("heading", "Permissions")),
        ("pills", "#/pills".to_owned(), role("heading", "!rain")),
        ("schedule", "#/schedule".to_owned(), role("button", "Run now")),
        ("memory", "#/memory/passages".to_owned(), role("list", "passages")),
        ("usage", "#/usage".to_owned(), css("main h1")),
        ("health", "#/health".to_owned(), css("main details")),
        ("skill-list", "#/skills".to_owned(), role("link", "fetch")),
        ("facts", "#/memory".to_owned(), css("main h1")),
        ("files", "#/files".to_owned(), css("main h1")),
    ] {
        screen(&stage, &fragment);
        tab.wait_for(there);
        take_looks(tab, name);
    }
    screen(&stage, "#/s/weather/f/weather.csv");
    tab.wait_for(css(".panel table"));
    take_looks(tab, "file");
    screen(&stage, "#/s/first");
    tab.wait_for(super::stage::MESSAGE);
    tab.drop_file(css("main"), &root().join("examples/weather.csv"));
    tab.wait_for(role("button", "Remove weather.csv"));
    take_looks(tab, "composer");
    log_out(tab);
    tab.wait_for(role("textbox", "Token"));
    take_looks(tab, "login");
}
