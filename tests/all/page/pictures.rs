//! The pictures of docs/, taken of what the page really shows. They are written only with `KISO_SCREENSHOTS=1`; each run of
//! the tests sees that they can be taken.

use super::browser::{Tab, css, role};
use super::fill;
use super::script::{reply, server, title};
use super::stage::{Stage, scripted};
use crate::harness::Home;
use kiso_tests::root;
use serde_json::json;

/// Bytes of a picture; the documentation is read on the machine that it is about.
const LARGEST: usize = 300_000;

/// What was talked about before, by the names that stand in the list.
const BEFORE: [(&str, &str); 6] = [
    ("tides", "Tide tables for Porto"),
    ("invoices", "Invoices of October, summed up"),
    ("garden", "When to prune the fig tree"),
    ("backup", "Nightly backup of the photos"),
    ("router", "Why the router drops packets"),
    ("reading", "Notes on three papers about WebAssembly"),
];

const ROUTED: &str = r#"{"effort": "high", "categories": [], "tool_need": 1, "goal": "An answer", "durable": false}"#;

/// Sessions and usage of a month.
fn past(home: &Home) {
    for (name, _) in BEFORE.iter().rev() {
        fill::session(home, name, ["a question".to_owned(), "an answer".to_owned()]);
    }
    let store = rusqlite::Connection::open(home.path().join("store.db")).unwrap();
    for (n, (name, title)) in BEFORE.iter().enumerate() {
        let ago = 1_000 * (7_200 + 86_400 * n as i64 * n as i64);
        let update = "UPDATE sessions SET title = ?1, active_ms = unixepoch() * 1000 - ?2 WHERE name = ?3";
        store.execute(update, (title, ago, name)).unwrap();
    }
    let today = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap().as_secs() as i64 / 86_400;
    for back in 0..30_i64 {
        let busy = (back * 7 % 5 + 2) * i64::from(back % 7 != 5) + back % 3;
        let (input, output) = (busy * 41_000 + back * 700, busy * 7_300 + back * 90);
        store
            .execute(
                "INSERT INTO usage_totals VALUES ('day', ?1, ?2, ?3, ?4, ?5)",
                (today - back, busy * 9, input, output, input * 3 / 2 + output * 9),
            )
            .unwrap();
    }
}

#[track_caller]
fn take(tab: &Tab, name: &str) {
    // What is drawn when the browser has nothing else to do is drawn, and what moves has come to rest.
    tab.eval("document.fonts.ready.then(() => new Promise((done) => requestIdleCallback(done)))");
    tab.wait_until("!document.getAnimations().some((it) => it.playState === 'running' && it.effect.getComputedTiming().iterations !== Infinity)");
    let picture = tab.screenshot();
    assert!(picture.starts_with(b"\x89PNG") && picture.len() > 10_000, "{name}: {} bytes", picture.len());
    assert!(picture.len() < LARGEST, "{name}: {} bytes", picture.len());
    if std::env::var_os("KISO_SCREENSHOTS").is_some() {
        std::fs::write(root().join("docs").join(format!("page-{name}.png")), picture).unwrap();
    }
}

const PLAN: &str = r#"<FINAL_PRD>{"goal": "A report on the rain of 2024, with a chart, ready to be sent", "tasks": [
  {"type": "exec", "detail": "cut -d, -f2 weather.csv | sort | uniq -c", "expect": "one line for each city", "review": true},
  {"type": "skill", "skill": "chart", "args": {"file": "weather.csv", "x": "date", "y": ["rain_mm"], "title": "Rain by day"}, "detail": "Draw the rain"},
  {"type": "act", "detail": "Find the three wettest weeks and what they had in common", "expect": "three weeks with their sums", "review": true},
  {"type": "exec", "detail": "zip report.zip pub/*.svg summary.md"},
  {"type": "msg", "detail": "Send the report with a short summary", "notify": true}]}</FINAL_PRD>"#;

const BRIEF: &str = r#"{"goal": "The wettest weeks are known", "required": [], "delta": "nobody has looked yet", "success": ["three weeks"],
  "action": "Sum the rain by week and sort", "context": {"discovery": [], "credentials": [], "artifacts": [], "blockers": []}}"#;

const OK: &str = r#"{"status": "ok", "reason": "Two cities, 366 rows each"}"#;

#[test]
fn chat_plan_trace_skills_and_usage_in_pictures() {
    let server = server(&[
        title("Temperatures of Lisbon and Oslo"),
        reply("router", ROUTED, ""),
        reply("planner", PLAN, "usage = { input = 3120, output = 388, cost = 0.0182 }"),
        reply("reviewer", OK, "usage = { input = 910, output = 41, cost = 0.0031 }"),
        reply("reasoner", BRIEF, "usage = { input = 2045, output = 160, cost = 0.0084 }"),
        reply("actor", "The wettest weeks are 3, 40 and 47.", "fault = \"slow_first_token\""),
        title("Rain report for 2024"),
    ]);
    let config = scripted(&server).replace("test:m", "local:gemma-3-27b").replace("providers.test", "providers.local");
    // The first conversation is with the rules that are built in, so that its chart is that of a run.
    let config = format!("{config}\n[models]\nsummarizer = \"reflex\"\n");
    let Some(stage) = Stage::prepared(Home::new(), &config, past) else { return };
    let tab = &stage.tab;
    tab.goto(stage.home.kiso(&["open", "--print"]).ok().stdout.trim());
    tab.wait_for(super::stage::ACCOUNT);
    tab.set_viewport(1280, 1000, false);
    stage.daemon.command("weather", "/model reflex");
    std::fs::create_dir_all(stage.home.work("weather")).unwrap();
    std::fs::copy(root().join("examples/weather.csv"), stage.home.work("weather").join("weather.csv")).unwrap();
    stage.open("weather");
    stage.say("plot temperature over date from weather.csv");
    tab.wait_for(css("article canvas"));
    tab.wait_for(role("link", "Temperatures of Lisbon and Oslo"));
    tab.wait_gone(role("button", "Stop"));
    tab.wait_for(role("button", "Show steps"));
    tab.eval("document.activeElement.blur(), document.querySelector('[role=log]').scrollTop = 1e6");
    let read = || stage.daemon.get("/sessions?limit=1")["items"][0]["unread"] == json!(0);
    tab.wait("the reply is read", read);
    take(tab, "chat");
    tab.set_viewport(1280, 800, false);
    tab.set_theme("dark");
    take(tab, "dark");
    tab.set_theme("light");

    std::fs::create_dir_all(stage.home.work("rain")).unwrap();
    std::fs::copy(root().join("examples/weather.csv"), stage.home.work("rain").join("weather.csv")).unwrap();
    tab.set_viewport(1280, 920, false);
    stage.open("rain");
    stage.say("Make me a report on the rain of 2024 with a chart, and find out what the wettest weeks had in common.");
    tab.wait("the actor works", || server.held() == 1);
    tab.wait_of(css(".run-task.running"), "it.textContent.includes('wettest weeks')");
    tab.click(css(".run-task.done summary"));
    tab.shows("366 Lisbon");
    take(tab, "plan");
    tab.set_viewport(390, 844, true);
    tab.reload();
    tab.wait_of(css(".run-task.running"), "it.textContent.includes('wettest weeks')");
    take(tab, "phone");
    tab.set_viewport(1280, 800, false);

    let run = stage.daemon.get("/runs?session=rain")["items"][0]["id"].as_str().unwrap().to_owned();
    tab.goto(&stage.url(&format!("#/run/{run}")));
    tab.wait_for(role("list", "Steps"));
    take(tab, "trace");
    tab.goto(&stage.url("#/skills/fetch"));
    tab.wait_for(role("heading", "Permissions"));
    take(tab, "skills");
    tab.goto(&stage.url("#/usage"));
    tab.wait_for(css("main canvas"));
    take(tab, "usage");
    server.release();
}
