//! Nothing on a screen moves while the rest loads: a person who aims at a button hits it.

use super::browser::{Tab, css};
use super::fill;
use super::stage::{QUICK, Stage};
use crate::harness::{Home, root};
use serde_json::json;

/// Maximum sum of all layout shifts of a load, as measured by Chromium: half of the limit for "good" in Google's Web Vitals.
const MOST: f64 = 0.05;

/// The sum of the shifts that were not caused by a click or a key.
const SHIFTED: &str = "new Promise((done) => {
  const found = [];
  const take = (entries) => found.push(...entries.filter((one) => !one.hadRecentInput));
  const watch = new PerformanceObserver((list) => take(list.getEntries()));
  watch.observe({ type: 'layout-shift', buffered: true });
  requestAnimationFrame(() => requestAnimationFrame(() => {
    take(watch.takeRecords());
    done({ sum: found.reduce((sum, one) => sum + one.value, 0), of: found.flatMap((one) => one.sources.map(({ node, previousRect: from, currentRect: to }) =>
      `${one.value.toFixed(4)} ${from.top}+${from.height} to ${to.top}+${to.height} ${node?.outerHTML?.slice(0, 120) ?? node?.textContent?.slice(0, 120)}`)) });
  }));
})";

/// A month of use, so that every screen has content.
fn month(home: &Home) {
    for n in 0..30 {
        let texts =
            (0..20).map(|at| format!("message {at} of session {n}, with **some** text and a list:\n\n- one\n- two"));
        fill::session(home, &format!("chat-{n:02}"), texts);
    }
    let store = rusqlite::Connection::open(home.path().join("store.db")).unwrap();
    for back in 0..30_i64 {
        store
            .execute(
                "INSERT INTO usage_totals (scope, key, calls, input, output, cost_micros) VALUES ('day', unixepoch() / 86400 - ?1, 9, 41000 * ?1, 7300, 90000 + ?1)",
                [back],
            )
            .unwrap();
    }
}

/// Waits until a screen has loaded everything.
#[track_caller]
pub(super) fn settled(tab: &Tab, screen: &str) {
    tab.wait(&format!("{screen} has all that it asked for"), || {
        tab.requests_of_this_load().iter().all(|request| request.ended || request.path().starts_with("/events"))
            && !tab.has(css("main .busy"))
            && tab.has(css("main :is(h1, h2)"))
    });
    // Wait for idle work.
    tab.eval("document.fonts.ready.then(() => new Promise((done) => requestIdleCallback(() => requestAnimationFrame(done))).then(() => true))");
}

#[test]
fn no_screen_shifts_while_it_comes() {
    let config = format!("model = \"reflex\"\n{QUICK}");
    let Some(stage) = Stage::prepared(Home::new(), &config, month) else { return };
    let tab = &stage.tab;
    let put = std::fs::read_to_string(root().join("examples/weather.csv")).unwrap();
    stage.daemon.request("PUT", "/sessions/weather/files/weather.csv", Some(&put)).expect(201);
    for text in [
        "plot temperature over date from weather.csv",
        "show the first 12 rows of weather.csv",
        "$ head -5 weather.csv",
    ] {
        stage.daemon.reply(stage.daemon.send("weather", text));
    }
    for (name, when) in [("tea", "0 16 * * *"), ("report", "@every 12h")] {
        let schedule = json!({ "name": name, "when": when, "message": "$ echo now", "session": "weather" });
        stage.daemon.request("POST", "/schedules", Some(&schedule.to_string())).expect(201);
    }
    let run = stage.daemon.get("/runs?session=weather")["items"][0]["id"].as_str().unwrap().to_owned();
    let trace = format!("#/run/{run}");
    let screens = [
        "#/s/weather",
        "#/s/chat-07",
        "#/s/chat-new",
        "#/run",
        &trace,
        "#/skills",
        "#/skills/data",
        "#/sites",
        "#/pills",
        "#/schedule",
        "#/files",
        "#/memory",
        "#/usage",
        "#/health",
    ];
    for (width, height, phone) in [(412, 823, true), (1280, 800, false)] {
        tab.set_viewport(width, height, phone);
        // Data that arrives in one frame on a fast line takes several on a phone's.
        let line = json!({
            "offline": false, "latency": if phone { 60 } else { 0 }, "downloadThroughput": -1, "uploadThroughput": -1,
        });
        tab.call("Network.emulateNetworkConditions", line);
        for screen in screens {
            // Drawing that takes one frame on a fast machine takes several on a phone.
            let slow = phone && screen.starts_with("#/s/");
            tab.call("Emulation.setCPUThrottlingRate", json!({ "rate": if slow { 4 } else { 1 } }));
            // A new document for each screen, as after following a link.
            tab.goto("about:blank");
            tab.goto(&stage.url(screen));
            settled(tab, screen);
            let shifted = tab.eval(SHIFTED);
            let sum = shifted["sum"].as_f64().unwrap();
            assert!(sum < MOST, "{screen} at {width}: it shifted by {sum}: {:#}", shifted["of"]);
        }
    }
}

/// A slow machine draws the texts in many frames.
#[test]
fn a_conversation_does_not_shift_on_a_slow_machine() {
    let config = format!("model = \"reflex\"\n{QUICK}");
    let texts = (0..20).map(|at| format!("message {at}, with **some** text and a list:\n\n- one\n- two"));
    let Some(stage) = Stage::prepared(Home::new(), &config, |home| fill::session(home, "long", texts)) else { return };
    let tab = &stage.tab;
    tab.set_viewport(412, 823, true);
    tab.call("Emulation.setCPUThrottlingRate", json!({ "rate": 15 }));
    tab.goto("about:blank");
    tab.goto(&stage.url("#/s/long"));
    settled(tab, "#/s/long");
    tab.wait("all of it is seen", || !tab.has(css(".building")));
    let shifted = tab.eval(SHIFTED);
    let sum = shifted["sum"].as_f64().unwrap();
    assert!(sum < MOST, "it shifted by {sum}: {:#}", shifted["of"]);
}
