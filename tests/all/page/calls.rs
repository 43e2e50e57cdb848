//! The calls of a tool loop, while they run and afterwards; the display of a failed run; and the list of runs.

use super::browser::{css, role};
use super::script::{reply, server, title};
use super::stage::{MESSAGE, QUICK, Stage, scripted};
use crate::harness::{Home, root};
use crate::web;
use serde_json::json;

/// The router's answer to a message that needs tools, and no plan.
const TOOLS: &str = r#"{"effort": "medium", "categories": ["shell", "web"], "tool_need": 1, "goal": "Make a file and look at a page", "durable": false}"#;

/// Saves a screenshot of the tab if screenshots are requested.
fn keep(stage: &Stage, name: &str) {
    if std::env::var_os("KISO_SCREENSHOTS").is_some() {
        let folder = root().join("target/page");
        std::fs::create_dir_all(&folder).unwrap();
        std::fs::write(folder.join(format!("{name}.png")), stage.tab.screenshot()).unwrap();
    }
}

#[test]
fn a_tool_loop_is_seen_call_by_call() {
    let address = web::serve(|_| web::text("It rains."));
    let command = "echo first; while ! test -e go; do sleep 0.1; done; echo more > made.txt; echo done; exit 3";
    let calls = format!(
        "[[reply]]\nrole = \"actor\"\ncalls = [{{ name = \"exec\", args = {{ command = {command:?} }} }}, {{ name = \"fetch\", args = {{ url = \"http://{address}/page\" }} }}]\n"
    );
    let server =
        server(&[reply("router", TOOLS, ""), calls, reply("actor", "The file is there.", ""), title("A file")]);
    let grant = |home: &Home| {
        home.kiso(&["skill", "grant", "fetch", "--host", &address, "--private"]).ok();
    };
    let Some(stage) = Stage::prepared(Home::new(), &scripted(&server), grant) else { return };
    let tab = &stage.tab;
    stage.open("calls");
    stage.say("Make a file and look at a page");
    // During the run: the command and its output so far.
    tab.wait_of(css(".run-call.running .run-label"), "it.textContent.includes('echo first')");
    tab.wait_of(css(".run-call .terminal-live"), "it.textContent.trim() === 'first'");
    tab.wait_of(css(".run-call:last-of-type"), "it.innerText.includes('fetch') && it.innerText.includes('/page')");
    tab.audit("a tool loop that runs");
    keep(&stage, "calls-running");
    std::fs::write(stage.home.work("calls").join("go"), "").unwrap();
    tab.shows("The file is there.");
    tab.wait_gone(role("button", "Stop"));
    // Afterwards each call has a line that can be opened, also after a reload.
    tab.reload();
    tab.wait_for(role("button", "Copy reply"));
    tab.click(role("button", "Show steps"));
    let first = css(".run-call:first-of-type");
    tab.wait_of(first, "it.innerText.includes('exit 3') && it.innerText.includes('1 file changed')");
    assert_eq!(tab.eval_on(first, "Boolean(it.querySelector('.outside'))"), false, "{}", tab.describe());
    tab.wait_of(
        css(".run-call:last-of-type"),
        "it.innerText.includes('fetch') && Boolean(it.querySelector('.outside'))",
    );
    tab.click(css(".run-call:first-of-type summary"));
    tab.wait_of(first, "it.querySelector('.terminal .run-output')?.textContent.trim() === 'first\\ndone'");
    tab.wait_of(css(".run-call .run-changed"), "it.innerText.includes('made.txt') && it.innerText.includes('created')");
    tab.click(css(".run-call:last-of-type summary"));
    tab.wait_of(css(".run-call:last-of-type"), "it.innerText.includes('It rains.') && it.innerText.includes('/page')");
    tab.audit("a tool loop that is open");
    keep(&stage, "calls-open");
    tab.set_viewport(390, 844, true);
    tab.wait_until("document.scrollingElement.scrollWidth <= innerWidth");
    keep(&stage, "calls-phone");
    tab.click(css(".run-call:first-of-type .run-body a"));
    tab.wait_until("location.hash.includes('/step/')");
    super::script::finish(server);
}

/// The tasks shown for a run agree with its outcome; the list of runs has titles, and can be filtered by status.
#[test]
fn a_run_that_failed_says_what_failed_and_is_found_by_its_state() {
    let Some(stage) = Stage::with(Home::new(), QUICK) else { return };
    let tab = &stage.tab;
    stage.open("failing");
    stage.say("$ false");
    tab.wait_of(css(".chat-from"), "it.innerText.includes('Failed')");
    tab.wait_of(css(".run-now"), "it.innerText.includes('Failed after')");
    tab.wait_of(css(".run-goal"), "it.innerText.includes('1 task failed')");
    assert_eq!(tab.eval_on(css(".run"), "it.innerText.includes('of 1 task done')"), false, "{}", tab.describe());
    tab.wait_of(css(".run-thoughts summary"), "it.textContent === 'Activity'");
    stage.open("working");
    stage.say("$ echo fine");
    tab.shows("fine");
    tab.wait_gone(role("button", "Stop"));
    stage.daemon.request("PATCH", "/sessions/failing", Some(&json!({ "title": "What fails" }).to_string())).expect(200);
    tab.goto(&stage.url("#/run"));
    tab.wait_of(css(".trace-runs"), "it.children.length === 2 && it.innerText.includes('What fails')");
    tab.audit("the list of runs");
    tab.eval("(() => { const it = document.querySelector('.trace-state select'); it.value = 'failed'; it.dispatchEvent(new Event('change', { bubbles: true })); })()");
    tab.wait_of(css(".trace-runs"), "it.children.length === 1 && it.innerText.includes('$ false')");
    keep(&stage, "runs");
    tab.eval("(() => { const it = document.querySelector('.trace-state select'); it.value = 'cancelled'; it.dispatchEvent(new Event('change', { bubbles: true })); })()");
    tab.shows("No such runs");
    tab.goto(&stage.url("#/s/failing"));
    tab.wait_for(MESSAGE);
}
