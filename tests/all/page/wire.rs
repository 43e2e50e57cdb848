//! Requests of the page, and their times.

use super::browser::{Browser, css, role};
use super::fill;
use super::shifts::settled;
use super::stage::{MESSAGE, QUICK, Stage};
use crate::harness::Home;
use crate::served::Served;
use serde_json::json;

/// Maximum size of all data that a browser loads before the login, with heads and compressed bodies.
const FIRST_LOAD: u64 = 150_000;

#[test]
fn the_first_load_is_small() {
    let Some(browser) = Browser::get() else { return };
    let home = Home::new();
    let daemon = Served::start(&home);
    let tab = browser.tab();
    tab.expects("answer: 401 /me");
    tab.goto(&format!("http://{}/", daemon.address));
    tab.wait_for(role("textbox", "Token"));
    tab.wait("all of it is there", || tab.requests().iter().all(|request| request.ended));
    let bytes: u64 = tab.requests().iter().map(|request| request.bytes).sum();
    assert!(
        bytes < FIRST_LOAD,
        "{bytes} bytes in {} requests: {:#?}",
        tab.requests().len(),
        tab.requests().iter().map(|request| (request.path().to_owned(), request.bytes)).collect::<Vec<_>>()
    );
    assert!(tab.requests().iter().all(|request| request.url.contains(&daemon.address)), "nothing comes from elsewhere");
    assert!(
        tab.requests_to("/page/").iter().all(|request| request.header("content-encoding") == Some("gzip")
            || request.header("content-type").is_some_and(|kind| kind.starts_with("image/"))),
        "{:?}",
        tab.requests_to("/page/")
    );
    // The second time, almost nothing is loaded.
    tab.forget_requests();
    tab.goto(&format!("http://{}/?again", daemon.address));
    tab.wait_for(role("textbox", "Token"));
    tab.wait("all of it is there again", || tab.requests().iter().all(|request| request.ended));
    assert!(tab.requests_to("/page/").iter().all(|request| request.cached), "{:#?}", tab.requests_to("/page/"));
}

/// A session with an old turn and a new one, which was read, and the run of the new one.
fn talked() -> Option<(Stage, String)> {
    let fill = |home: &Home| fill::session(home, "talk", ["Tell me".to_owned(), "This is it.".to_owned()]);
    let stage = Stage::prepared(Home::new(), QUICK, fill)?;
    stage.daemon.reply(stage.daemon.send("talk", "$ echo hello"));
    stage.open("talk");
    stage.tab.wait("it is read", || stage.daemon.get("/sessions?limit=1")["items"][0]["unread"] == 0);
    let run = stage.daemon.get("/runs?session=talk")["items"][0]["id"].as_str().expect("it has an id").to_owned();
    Some((stage, run))
}

/// A screen's data is requested while its scripts load, and not again when they are there.
#[test]
fn nothing_is_asked_for_twice() {
    let Some((stage, run)) = talked() else { return };
    let tab = &stage.tab;
    let of_run = [format!("/runs/{run}"), format!("/runs/{run}/trace?after=0&limit=100")];
    let screens = [
        ("#/s/talk", vec!["/sessions/talk/messages?limit=50", "/status/talk"]),
        ("", vec!["/sessions/talk/messages?limit=50", "/status/talk"]),
        ("#/run", vec!["/runs?limit=50"]),
        (&format!("#/run/{run}"), of_run.iter().map(String::as_str).collect()),
        ("#/skills", vec!["/skills?limit=100"]),
        ("#/skills/chart", vec!["/skills/chart"]),
        ("#/sites", vec![]),
        ("#/pills", vec!["/pills"]),
        ("#/schedule", vec!["/schedules"]),
        ("#/files", vec!["/files?limit=100"]),
        ("#/memory", vec![]),
        ("#/usage", vec!["/usage?limit=90"]),
        ("#/health", vec!["/health/details"]),
    ];
    for (screen, first) in screens {
        tab.goto("about:blank");
        tab.forget_requests();
        tab.goto(&stage.url(screen));
        settled(tab, screen);
        let asked: Vec<String> =
            tab.requests().iter().filter(|one| one.kind == "Fetch").map(|one| one.path().to_owned()).collect();
        // The usage screen requests the models itself, to explain why there are none.
        let mut each: Vec<&String> = asked.iter().filter(|path| *path != "/models").collect();
        let all = each.len();
        each.sort();
        each.dedup();
        assert_eq!(each.len(), all, "{screen}: {asked:#?}");
        // In the order in which the data is needed, and without a request for the user, who is named in the document.
        assert_eq!(asked[..first.len()], first, "{screen}");
        assert!(
            asked[first.len()].starts_with("/sessions?placement=listed") && !asked.contains(&"/me".to_owned()),
            "{asked:#?}"
        );
    }
}

/// The stream reports that it is open only when the test calls `begin()`. That returns the timeouts that the page then sets, in
/// milliseconds, except the one for silence.
const LATE: &str = "window.EventSource = class extends EventSource {
    set onopen(heard) {
        super.onopen = (event) => {
            window.begin = () => {
                const [waits, wait] = [[], setTimeout];
                window.setTimeout = (work, ms, ...rest) => { waits.push(ms); return wait(work, ms, ...rest); };
                heard.call(this, event);
                window.setTimeout = wait;
                return waits.filter((ms) => ms < 40000);
            };
        };
    }
};";

/// A late stream still delivers the events since the page was loaded.
#[test]
fn nothing_is_asked_for_anew_when_the_stream_begins() {
    let Some((stage, run)) = talked() else { return };
    let tab = &stage.tab;
    tab.call("Page.addScriptToEvaluateOnNewDocument", json!({ "source": LATE }));
    for screen in ["#/s/talk", &format!("#/run/{run}"), "#/run"] {
        tab.goto("about:blank");
        tab.goto(&stage.url(screen));
        settled(tab, screen);
        tab.wait_until("Boolean(window.begin)");
        tab.forget_requests();
        assert_eq!(tab.eval("begin()"), json!([]), "{screen}: nothing is asked for in a moment");
        settled(tab, screen);
        // Files of other screens may be prefetched at this time.
        let asked = tab.requests().iter().map(|one| one.path().to_owned()).collect::<Vec<_>>();
        let asked: Vec<_> = asked.iter().filter(|path| !path.starts_with("/page/")).collect();
        assert!(asked.is_empty(), "{screen}: {asked:?}");
    }
}

/// No other event would report a run that is silent at the moment.
#[test]
fn what_was_out_of_reach_is_asked_for_when_the_stream_begins() {
    let Some(stage) = Stage::reflex() else { return };
    let tab = &stage.tab;
    stage.daemon.send("talk", "$ touch begun; until [ -e go ]; do sleep 0.1; done");
    tab.wait("the step has begun", || stage.home.work("talk").join("begun").exists());
    let away = "const reach = fetch;
        window.fetch = (address, how) => {
            if (window.isThere || !String(address).includes('/runs/')) return reach(address, how);
            window.isMissed = true;
            return Promise.reject(new TypeError('out of reach'));
        };";
    for source in [LATE, away] {
        tab.call("Page.addScriptToEvaluateOnNewDocument", json!({ "source": source }));
    }
    tab.goto("about:blank");
    tab.goto(&stage.url("#/s/talk"));
    tab.wait_until("Boolean(window.begin && window.isMissed)");
    settled(tab, "the conversation");
    tab.eval("window.isThere = true");
    tab.forget_requests();
    tab.eval("begin()");
    tab.wait("the run is asked for", || !tab.requests_to("/runs/").is_empty());
    std::fs::write(stage.home.work("talk").join("go"), "").expect("there is room");
}

/// The end is shown at once; the rest is loaded during scrolling, and traces only when they are opened.
#[test]
fn a_session_of_ten_thousand_messages_shows_its_end_at_once() {
    let texts = (0..10_000).map(|n| format!("number {n}, with **some** text and `code`"));
    let fill = |home: &Home| fill::session(home, "long", texts);
    let Some(stage) = Stage::prepared(Home::new(), QUICK, fill) else { return };
    let tab = &stage.tab;
    stage.open("long");
    tab.shows("number 9999");
    let asked = tab.requests_to("/sessions/long/messages");
    assert!(asked.len() <= 3, "{asked:#?}");
    let bytes: u64 = asked.iter().map(|request| request.bytes).sum();
    assert!(bytes < 100_000, "{bytes} bytes of messages");
    let visible =
        "[...document.querySelectorAll('[role=log] article')].some((it) => it.textContent.includes('number 9999')
      && it.getBoundingClientRect().top < innerHeight && it.getBoundingClientRect().bottom > 0)";
    assert_eq!(tab.eval(visible), true, "the end is in view");
    assert_eq!(tab.requests_to("/runs/").len(), 0, "{:#?}", tab.requests_to("/runs/"));
    // Scrolling up through a large part: the visible text stays in place, and the document does not grow without bound.
    let first = |tab: &super::browser::Tab| {
        tab.eval("[...document.querySelectorAll('[role=log] article')].map((it) => Number(/number (\\d+)/.exec(it.textContent)?.[1])).find((n) => n >= 0)")
            .as_u64().unwrap_or(10_000)
    };
    let mut seen = first(tab);
    while seen > 9_300 {
        stage.scroll_up();
        let now = first(tab);
        assert!(now <= seen, "it jumped from {seen} to {now}");
        seen = now;
        let articles = tab.count(css("[role=log] article"));
        assert!(articles <= 400, "{articles} messages are in the document");
    }
    assert_eq!(tab.requests().iter().filter(|request| request.path().contains("/trace")).count(), 0);
    // A jump to the end, and a link to a message in the middle.
    tab.click(role("button", "Jump to latest"));
    tab.wait_until(visible);
    let middle = stage.daemon.get("/search?q=number+5000&session=long")["items"][0]["id"].to_string();
    tab.goto(&stage.url(&format!("#/s/long/m/{middle}")));
    tab.wait_of(css("article.marked"), "it.textContent.includes('number 5000')");
    assert!(tab.has(MESSAGE));
}
