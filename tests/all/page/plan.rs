//! What a run does, while it does it and afterwards: plan, tasks, outputs, verdicts, files.

use super::browser::{css, role};
use super::script::{plan, reply, scenario, server, title};
use super::stage::Stage;
use kiso_tests::root;
use serde_json::json;

/// Three tasks, of which the second is looked at by the reviewer.
const THREE: &str = r#"<FINAL_PRD>{"goal": "Count the words of the notes", "tasks": [
  {"type": "exec", "detail": "printf 'one two three\n' > notes.txt; cat notes.txt"},
  {"type": "exec", "detail": "wc -w notes.txt", "expect": "a number", "review": true},
  {"type": "msg", "detail": "Say how many words there are", "notify": true}]}</FINAL_PRD>"#;

#[test]
fn a_plan_is_seen_while_it_is_carried_out() {
    let server = server(&[
        plan(THREE),
        reply("reviewer", r#"{"status": "ok", "reason": "It is a number"}"#, "fault = \"slow_first_token\""),
        reply("worker", "There are **three** words.", ""),
        title("Words"),
    ]);
    let Some(stage) = Stage::scripted(&server) else { return };
    let tab = &stage.tab;
    stage.open("words");
    stage.say("Count the words");
    tab.wait("the reviewer is asked", || server.held() == 1);
    tab.shows("Count the words of the notes");
    tab.shows("1 of 3 tasks done");
    tab.wait_of(css(".run-task.done"), "it.textContent.includes('notes.txt')");
    tab.wait_of(css(".run-task.running"), "it.textContent.includes('wc -w notes.txt')");
    tab.wait_for(css(".run-task.waiting"));
    tab.wait_for(role("timer", ""));
    tab.audit("plan in progress");
    // Outputs are folded until somebody wants to see them.
    assert!(!tab.text().contains("one two three\n"), "{}", tab.text());
    tab.click(css(".run-task.done summary"));
    tab.shows("one two three");
    server.release();
    tab.shows("There are three words.");
    tab.wait_gone(role("button", "Stop"));
    // Afterwards it is folded, and can be opened again.
    tab.reload();
    tab.wait_for(role("button", "Copy reply"));
    assert_eq!(tab.requests_to("/runs/").len(), 0, "nothing of the run is asked for: {:?}", tab.requests_to("/runs/"));
    tab.click(role("button", "Show what was done"));
    tab.shows("3 of 3 tasks done");
    assert!(tab.requests_to("/runs/").iter().all(|request| !request.path().contains("/trace")));
    tab.click(css(".run-task:nth-child(2) summary"));
    tab.shows("It is a number");
    tab.audit("plan that was carried out");
    tab.click(role("link", "Trace"));
    tab.wait_until("location.hash.startsWith('#/run/')");
    server.finish();
}

#[test]
fn a_new_plan_says_why() {
    let server = scenario("replan.toml");
    let Some(stage) = Stage::scripted(&server) else { return };
    let tab = &stage.tab;
    stage.open("replan");
    stage.say("add a middleware to the project");
    tab.shows("Done the other way.");
    tab.wait_gone(role("button", "Stop"));
    stage.open("replan");
    tab.reload();
    tab.click(role("button", "Show what was done"));
    tab.shows("Plan 3: because Flask is not installed");
    tab.shows("Plan 1 was replaced: The project uses Flask, not FastAPI");
    tab.click(css(".run-earlier summary"));
    tab.shows("echo import fastapi");
    tab.audit("a plan that was replaced");
    server.finish();
}

#[test]
fn a_fix_stands_where_it_was_asked_for() {
    let server = scenario("needs_fix.toml");
    let Some(stage) = Stage::scripted(&server) else { return };
    let tab = &stage.tab;
    stage.open("fix");
    stage.say("make a greeting file");
    tab.shows("It is there.");
    tab.wait_gone(role("button", "Stop"));
    tab.shows("asks for a fix");
}

/// Files are previews and links; a picture opens in front of everything, also by keyboard.
#[test]
fn a_picture_opens_in_front_of_everything() {
    let Some(stage) = Stage::reflex() else { return };
    let tab = &stage.tab;
    let work = stage.home.work("pictures");
    stage.daemon.reply(stage.daemon.send("pictures", "$ echo begin"));
    std::fs::copy(root().join("examples/weather.csv"), work.join("weather.csv")).unwrap();
    stage.open("pictures");
    stage.say("plot rain_mm over date from weather.csv");
    tab.wait("there is a picture", || {
        tab.eval("[...document.querySelectorAll('article img')].some((it) => it.naturalWidth > 0)") == true
    });
    tab.wait_gone(role("button", "Stop"));
    let thumbs =
        tab.names("button").into_iter().filter(|name| name.to_lowercase().contains("open")).collect::<Vec<_>>();
    assert!(!thumbs.is_empty(), "a button opens the picture: {:?}", tab.names("button"));
    tab.focus(role("button", &thumbs[0]));
    let before = tab.focused();
    tab.press("Enter");
    tab.wait_for(role("dialog", ""));
    tab.wait_of(css("dialog img"), "it.naturalWidth > 0");
    tab.audit("lightbox");
    tab.press("ArrowRight");
    tab.press("ArrowLeft");
    tab.press("Escape");
    tab.wait_gone(role("dialog", ""));
    assert_eq!(tab.focused(), before, "the focus is where it was");
    let downloads =
        tab.eval("[...document.querySelectorAll('article a[href]')].map((it) => new URL(it.href).pathname)");
    assert!(downloads.as_array().unwrap().iter().any(|path| path != &json!("/")), "{downloads}");
}
