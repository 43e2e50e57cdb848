//! The display of a run, during it and afterwards: plan, tasks, outputs, verdicts, files.

use super::browser::{css, role};
use super::script::{plan, reply, scenario, server, title};
use super::stage::Stage;
use kiso_tests::root;
use serde_json::json;

/// A given task, one that the actor works out, and the answer.
const THREE: &str = r#"<FINAL_PRD>{"goal": "Count the words of the notes", "tasks": [
  {"type": "exec", "detail": "printf 'one two three\n' > notes.txt; cat notes.txt", "expect": "three words", "review": true},
  {"type": "act", "detail": "Count the words of notes.txt", "expect": "a number", "review": true},
  {"type": "msg", "detail": "Say how many words there are", "notify": true}]}</FINAL_PRD>"#;

#[test]
fn a_plan_is_seen_while_it_is_carried_out() {
    let server = server(&[
        plan(THREE),
        reply("reviewer", r#"{"status": "ok", "reason": "There are three words"}"#, ""),
        reply("actor", "There are **three** words.", "fault = \"slow_first_token\""),
        reply("reviewer", r#"{"status": "ok", "reason": "It is a number"}"#, ""),
        title("Words"),
    ]);
    let Some(stage) = Stage::scripted(&server) else { return };
    let tab = &stage.tab;
    stage.open("words");
    stage.say("Count the words");
    tab.wait("the actor is asked", || server.held() == 1);
    tab.shows("Count the words of the notes");
    tab.shows("1 of 3 tasks done");
    tab.wait_of(css(".run-task.done"), "it.textContent.includes('cat notes.txt')");
    tab.wait_of(css(".run-task.running"), "it.textContent.includes('Count the words of notes.txt')");
    tab.wait_for(css(".run-task.waiting"));
    tab.wait_for(role("timer", ""));
    let order =
        "[...document.querySelectorAll('[role=log] article')].map((it) => it.getAttribute('aria-label').split(',')[0])";
    assert_eq!(tab.eval(order), json!(["You", "kiso"]), "the answer stands below its question\n{}", tab.describe());
    tab.audit("plan in progress");
    // Outputs are folded until somebody opens them.
    let output = "[...document.querySelectorAll('.run-output')].some((it) => it.checkVisibility() && it.textContent.trim() === 'one two three')";
    assert_eq!(tab.eval(output), false, "{}", tab.describe());
    tab.click(css(".run-task.done summary"));
    tab.wait_until(output);
    tab.shows("There are three words");
    server.release();
    tab.shows("There are three words.");
    tab.wait_gone(role("button", "Stop"));
    // Afterwards the plan is folded, and can be opened again.
    tab.reload();
    tab.wait_for(role("button", "Copy reply"));
    tab.shows("There are three words.");
    let of_runs = || tab.requests_of_this_load().into_iter().filter(|request| request.path().starts_with("/runs/"));
    assert_eq!(of_runs().count(), 0, "nothing of the run is asked for: {:?}", of_runs().collect::<Vec<_>>());
    tab.click(role("button", "Show steps"));
    tab.shows("3 of 3 tasks done");
    assert!(of_runs().all(|request| !request.path().contains("/trace")));
    tab.click(css(".run-task:nth-child(2) summary"));
    tab.shows("It is a number");
    tab.audit("plan that was carried out");
    tab.click(role("link", "Trace"));
    tab.wait_until("location.hash.startsWith('#/run/')");
    super::script::finish(server);
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
    tab.reload();
    tab.click(role("button", "Show steps"));
    tab.shows("Flask is not installed");
    tab.click(css(".run-earlier summary"));
    tab.shows("echo import fastapi");
    tab.shows("The project uses Flask, not FastAPI");
    tab.audit("a plan that was replaced");
    super::script::finish(server);
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
    tab.click(role("button", "Show steps"));
    tab.shows("asks for a fix");
}

/// Files have previews and links; a picture opens in front of the page, also by keyboard.
#[test]
fn a_picture_opens_in_front_of_everything() {
    let Some(stage) = Stage::reflex() else { return };
    let tab = &stage.tab;
    let work = stage.home.work("pictures");
    stage.daemon.reply(stage.daemon.send("pictures", "$ echo begin"));
    std::fs::copy(root().join("examples/weather.csv"), work.join("weather.csv")).unwrap();
    stage.open("pictures");
    stage.say("plot rain_mm over date from weather.csv");
    tab.wait_for(css("article canvas"));
    tab.click(css("[role=log] article:last-of-type .chat-done"));
    tab.click(css(".run-task.done summary"));
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
    // Position and zoom are controlled by keys; there are a vector picture and a bitmap.
    let place = css("dialog header [role=status]");
    tab.wait_of(place, "/^1 of [2-9]$/.test(it.textContent)");
    let count = tab.eval_on(place, "Number(it.textContent.split(' ').pop())").as_u64().unwrap();
    let first = tab.eval_on(css("dialog img"), "it.src");
    for (key, at) in
        [("ArrowRight", 2), ("ArrowLeft", 1), ("End", count), ("Home", 1), ("ArrowLeft", count), ("ArrowRight", 1)]
    {
        tab.press(key);
        tab.wait_of(place, &format!("it.textContent === '{at} of {count}'"));
        tab.wait_of(css("dialog img"), &format!("it.naturalWidth > 0 && (it.src === {first}) === {}", at == 1));
    }
    let fit = role("button", "Fit the window");
    for (key, shown) in [("=", "it.textContent.endsWith('%')"), ("0", "it.textContent === 'Fit'")] {
        tab.press(key);
        tab.wait_of(fit, shown);
    }
    tab.press("Escape");
    tab.wait_gone(role("dialog", ""));
    assert_eq!(tab.focused(), before, "the focus is where it was");
    let sources = tab.eval("[...document.querySelectorAll('article img')].map((it) => new URL(it.src).pathname)");
    assert!(sources.to_string().contains("/sessions/pictures/files/pub/"), "{sources}");
}
