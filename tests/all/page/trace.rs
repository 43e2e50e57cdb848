//! A run after the fact: every step, what it cost, what was asked of the models; fetched when it is opened.

use super::browser::{css, role};
use super::script::{scenario, server, talk, title};
use super::stage::Stage;
use kiso_tests::root;
use serde_json::json;

#[test]
fn every_step_of_a_run_can_be_opened() {
    let server = scenario("parallel_tools.toml");
    let Some(stage) = Stage::scripted(&server) else { return };
    let tab = &stage.tab;
    stage.daemon.reply(stage.daemon.send("steps", &said("parallel_tools.toml")));
    stage.open("steps");
    tab.wait_for(role("button", "Copy reply"));
    assert!(tab.requests().iter().all(|request| !request.path().contains("/trace")), "it is fetched when it is opened");
    tab.click(role("button", "Actions for this reply"));
    tab.click(role("menuitem", "Trace"));
    tab.wait_for(role("list", "Steps"));
    assert!(
        tab.requests()
            .iter()
            .any(|request| request.path().contains("/trace") && !request.path().contains("prompts=true"))
    );
    tab.audit("trace");
    for figure in ["Duration", "Calls of models", "Tokens in", "Cost"] {
        tab.shows(figure);
    }
    // A call of tools with what it was given, what it gave, what it used and which component did it.
    let called = css("li.trace-step.lane-tools button.trace-line");
    tab.click(called);
    tab.wait_of(css("li.trace-step.lane-tools .trace-body"), "it.textContent.includes('Result')");
    tab.audit("trace with a step open");
    // Prompt and answer only when they are asked for.
    assert!(tab.requests().iter().all(|request| !request.path().contains("prompts=true")));
    tab.click(css("li.trace-step:not(.lane-tools):has(.trace-tokens span) button.trace-line"));
    tab.click(role("button", "Prompt and answer"));
    tab.wait_for(role("region", "Prompt and answer of step"));
    tab.wait_of(css(".trace-prompt"), "it.textContent.includes('system')");
    tab.audit("trace with a prompt");
    // A filter, a search, and a link to one step.
    tab.click(role("radio", "Tools"));
    tab.wait_until(
        "[...document.querySelectorAll('li.trace-step')].every((it) => it.classList.contains('lane-tools'))",
    );
    tab.click(role("radio", "All"));
    tab.focus(role("searchbox", "Search in the steps"));
    tab.type_text("nothing has these words");
    tab.shows("No step fits");
    tab.press("Control+a");
    tab.press("Delete");
    let run = stage.daemon.get("/runs?session=steps")["items"][0]["id"].as_str().unwrap().to_owned();
    tab.goto(&stage.url(&format!("?again#/run/{run}/step/2")));
    tab.wait_of(css("#step-2 button.trace-line"), "it.getAttribute('aria-expanded') === 'true'");
    tab.wait_of(css("#step-2"), "it.getBoundingClientRect().top >= 0 && it.getBoundingClientRect().top < innerHeight");
}

/// What the first turn of a scenario says.
fn said(scenario: &str) -> String {
    let text = std::fs::read_to_string(root().join("tests/scenarios").join(scenario)).unwrap();
    let table: toml::Table = toml::from_str(&text).unwrap();
    table["turn"][0]["say"].as_str().unwrap().to_owned()
}

#[test]
fn limits_digest_and_grant_of_a_skill_are_told() {
    let Some(stage) = Stage::reflex() else { return };
    let tab = &stage.tab;
    stage.daemon.reply(stage.daemon.send("data", "$ echo begin"));
    std::fs::copy(root().join("examples/weather.csv"), stage.home.work("data").join("weather.csv")).unwrap();
    stage.daemon.reply(stage.daemon.send("data", "describe weather.csv"));
    let run = stage.daemon.get("/runs?session=data")["items"][0]["id"].as_str().unwrap().to_owned();
    let trace = stage.daemon.get(&format!("/runs/{run}/trace?limit=100"));
    let digest = trace.to_string().split("\"skill_digest\":\"").nth(1).expect("a skill ran")[..12].to_owned();
    tab.goto(&stage.url(&format!("#/run/{run}")));
    tab.wait_for(role("list", "Steps"));
    tab.eval("document.querySelectorAll('button.trace-line').forEach((it) => it.click())");
    tab.shows(&digest);
    tab.wait_for(role("meter", ""));
    tab.wait_for(role("button", "Copy the digest"));
    tab.audit("trace with all steps open");
}

#[test]
fn two_runs_of_a_message_are_compared() {
    let server = server(&[
        talk("The capital is Paris.\nIt has two million people.", ""),
        title("Capitals"),
        talk("The capital is Paris.\nIt has three million people.", ""),
    ]);
    let Some(stage) = Stage::scripted(&server) else { return };
    let tab = &stage.tab;
    for _ in 0..2 {
        stage.daemon.reply(stage.daemon.send("twice", "What is the capital?"));
    }
    let runs = stage.daemon.get("/runs?session=twice")["items"].clone();
    let [second, first] = [0, 1].map(|n: usize| runs[n]["id"].as_str().unwrap().to_owned());
    tab.goto(&stage.url(&format!("#/run/{first}")));
    tab.click(role("button", "Compare with"));
    tab.wait_for(role("dialog", "Compare with another run"));
    tab.audit("choice of a run to compare with");
    tab.shows("same message");
    tab.click(css(&format!("a[href='#/run/{first}/diff/{second}']")));
    tab.wait_for(role("group", "Differences line by line"));
    let lines = tab.of(role("group", "Differences line by line"), "it.innerText");
    let lines = lines.as_str().unwrap();
    assert!(lines.contains("two million") && lines.contains("three million"), "{lines}");
    tab.audit("two runs compared");
    assert_eq!(tab.eval("location.hash"), json!(format!("#/run/{first}/diff/{second}")));
}
