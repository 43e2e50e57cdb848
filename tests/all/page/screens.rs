//! The screens beside the conversation: schedule, memory, usage, health.

use super::browser::{Browser, css, role};
use super::stage::{QUICK, Stage};
use crate::harness::Home;

#[test]
fn a_schedule_is_added_run_paused_and_deleted() {
    let Some(stage) = Stage::reflex() else { return };
    let tab = &stage.tab;
    tab.expects("answer: 400 /schedules");
    tab.goto(&stage.url("#/schedule"));
    tab.shows("Nothing is scheduled");
    tab.audit("schedule, empty");
    tab.click(role("button", "Add a schedule"));
    tab.wait_for(role("dialog", ""));
    tab.audit("form of a schedule");
    tab.focus(css("#schedule-name"));
    tab.insert_text("tea");
    tab.focus(css("#schedule-message"));
    tab.insert_text("$ echo tea time");
    tab.eval("{ const it = document.querySelector('#schedule-preset'); it.value = 'cron'; it.dispatchEvent(new Event('change', { bubbles: true })); }");
    tab.focus(css("#schedule-cron"));
    tab.press("Control+a");
    tab.insert_text("0 25 * * *");
    tab.click(css("dialog button.primary"));
    // What is wrong is said where it was written.
    tab.wait_for(css("#schedule-cron[aria-invalid=true]"));
    tab.focus(css("#schedule-cron"));
    tab.press("Control+a");
    tab.insert_text("0 16 * * *");
    tab.click(css("dialog button.primary"));
    tab.wait_gone(role("dialog", ""));
    tab.wait_for(role("list", "Schedules"));
    tab.shows("tea");
    tab.audit("schedule");
    tab.click(role("button", "Run now: tea"));
    stage.daemon.until(|| stage.daemon.get("/sessions")["items"].to_string().contains("schedule.tea"));
    tab.click(role("button", "Pause tea"));
    tab.wait_for(role("button", "Resume tea"));
    assert_eq!(stage.daemon.get("/schedules")["items"][0]["paused"], true);
    tab.click(role("button", "Actions for tea"));
    tab.click(role("menuitem", "Delete"));
    tab.click(role("button", "Delete"));
    tab.shows("Nothing is scheduled");
}

#[test]
fn what_is_remembered_is_shown_and_forgotten() {
    let Some(stage) = Stage::prepared(Home::new(), QUICK, |home| {
        home.kiso(&["fact", "add", "The house is <b>blue</b>"]).ok();
        home.kiso(&["fact", "add", "The garden is green"]).ok();
        let store = rusqlite::Connection::open(home.path().join("store.db")).unwrap();
        store
            .execute_batch(
                r#"INSERT INTO core_memory VALUES (1, '{"user": {"name": "Ada"}}', 1);
                   INSERT INTO memory_chunks (digest, source, at_ms, text, grams) VALUES (x'00', 'turn', 1, 'the gate is red', '')"#,
            )
            .unwrap();
    }) else {
        return;
    };
    let tab = &stage.tab;
    tab.goto(&stage.url("#/memory"));
    tab.wait_for(role("navigation", "Kinds of memory"));
    for (place, text) in [("Core", "Ada"), ("Passages", "the gate is red"), ("Facts", "The house is <b>blue</b>")] {
        tab.click(role("link", place));
        tab.shows(text);
        tab.audit(&format!("memory: {place}"));
    }
    tab.click(role("button", "Forget fact"));
    tab.wait_for(role("dialog", ""));
    tab.click(css("dialog button.danger"));
    stage.daemon.until(|| stage.daemon.get("/facts")["items"].as_array().unwrap().len() == 1);
    tab.wait("it is gone", || tab.names("button").iter().filter(|name| name.starts_with("Forget fact")).count() == 1);
}

#[test]
fn usage_is_drawn_and_listed() {
    let Some(stage) = Stage::prepared(Home::new(), QUICK, |home| {
        let store = rusqlite::Connection::open(home.path().join("store.db")).unwrap();
        let today =
            std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap().as_secs() as i64 / 86_400;
        for back in 0..40_i64 {
            store
                .execute(
                    "INSERT INTO usage_totals VALUES ('day', ?1, ?2, ?3, ?4, ?5)",
                    (
                        today - back,
                        3 + back % 7,
                        40_000 + 900 * back,
                        9_000 + 100 * back,
                        120_000 + 41_000 * (back % 5),
                    ),
                )
                .unwrap();
        }
    }) else {
        return;
    };
    let tab = &stage.tab;
    tab.goto(&stage.url("#/usage"));
    tab.wait_for(css("main canvas"));
    tab.wait_for(role("region", "30 days"));
    tab.audit("usage");
    tab.click(role("radio", "Calls"));
    tab.wait_of(role("radio", "Calls"), "it.checked");
    tab.click(css("details.usage-table summary"));
    tab.wait_for(role("table", "Usage by day"));
    let rows = tab.of(role("table", "Usage by day"), "it.tBodies[0].rows.length");
    assert!(rows.as_u64() >= Some(30), "{rows}");
    tab.audit("usage as a table");
}

#[test]
fn health_is_told_in_words() {
    let Some(stage) = Stage::reflex() else { return };
    let tab = &stage.tab;
    tab.goto(&stage.url("#/health"));
    tab.wait_for(role("region", "State"));
    tab.wait_for(role("region", "At work"));
    tab.audit("health");
    tab.click(css("details.health-config summary"));
    tab.wait_for(role("table", "Configuration"));
    tab.focus(role("searchbox", "Search in the configuration"));
    tab.insert_text("debounce_ms");
    tab.wait_of(role("table", "Configuration"), "it.tBodies[0].rows.length === 1");
    tab.audit("health with the configuration");
    // For administrators alone.
    let token = stage.home.kiso(&["--json", "token", "add", "guest", "--scope", "chat"]).json();
    let guest = Browser::get().expect("it is there").tab();
    stage.log_in_with(&guest, token["token"].as_str().unwrap());
    guest.goto(&stage.url("#/health"));
    guest.wait_for(role("region", "At work"));
    assert!(!guest.has(css("details.health-config")));
}
