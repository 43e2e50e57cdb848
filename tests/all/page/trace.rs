//! The trace of a run, during it and afterwards: its steps on a timeline, their details, and a comparison of two runs.

use super::browser::{Tab, css, role};
use super::script::{plan, reply, server, title};
use super::skills::ASKING;
use super::stage::{Stage, scripted};
use super::themes::audit_in_both;
use crate::harness::{Home, guest};
use serde_json::{Value, json};

/// The router's answer to a message that needs tools and no plan.
const TOOLS: &str = r#"{"effort": "medium", "categories": ["shell", "test"], "tool_need": 1, "goal": "To greet the house", "durable": false}"#;

/// Prices in dollars for a million tokens; a call of the scripted model has 10 input and 5 output tokens.
const PRICES: &str = "[model_settings.\"test:m\"]\ninput_price = 1000\noutput_price = 1000\n";

/// Opens the trace of the last reply by keyboard. Returns the id of its run.
#[track_caller]
fn open_last(stage: &Stage) -> String {
    let tab = &stage.tab;
    tab.wait_gone(role("button", "Stop"));
    // Wait until the streamed text has become a reply, because that replaces its menu.
    tab.wait_for(role("button", "Copy reply"));
    assert_eq!(traces(tab).len(), 0, "nobody opened a trace yet");
    tab.focus(css("[role=log] article:last-of-type .chat-acts .menu > button"));
    assert_eq!(tab.focused(), "button \"Actions for this reply\"");
    tab.press("Enter");
    tab.wait_for(role("menuitem", "Trace"));
    tab.click(role("menuitem", "Trace"));
    tab.wait_until("location.hash.startsWith('#/run/')");
    tab.wait_for(role("list", "Steps"));
    let address = tab.eval("location.hash");
    address.as_str().unwrap().trim_start_matches("#/run/").to_owned()
}

/// Requests for any trace.
fn traces(tab: &Tab) -> Vec<String> {
    let all = tab.requests_to("/runs/").into_iter().map(|request| request.path().to_owned());
    all.filter(|path| path.contains("/trace")).collect()
}

#[track_caller]
fn events(stage: &Stage, run: &str) -> Vec<Value> {
    stage.daemon.get(&format!("/runs/{run}/trace?limit=500"))["items"].as_array().unwrap().clone()
}

/// The number of the first event of this kind.
#[track_caller]
fn seq(events: &[Value], kind: &str) -> u64 {
    let found = events.iter().find(|event| event["kind"] == kind);
    found.unwrap_or_else(|| panic!("no {kind} in {events:#?}"))["seq"].as_u64().unwrap()
}

/// Opens a step of the list. Returns the selector of its content.
#[track_caller]
fn open_step(tab: &Tab, seq: u64) -> String {
    tab.click(css(&format!("#step-{seq} > .trace-line")));
    let body = format!("#step-{seq}-body");
    tab.wait_for(css(&body));
    body
}

/// Names and values of a description list, as an object.
#[track_caller]
fn facts(tab: &Tab, selector: &str) -> Value {
    tab.eval_on(
        css(selector),
        "Object.fromEntries([...it.children].map((row) => [...row.children].map((cell) => cell.innerText.trim())))",
    )
}

#[test]
fn a_trace_tells_what_each_step_took_and_cost() {
    let server = server(&[
        reply("router", TOOLS, ""),
        reply(
            "actor",
            "I begin with a greeting.",
            r#"calls = [{ name = "echo", args = { text = "hello, house" } }, { name = "exec", args = { command = "echo plum >&2; exit 3" } }]"#,
        ),
        reply("actor", "Hello to all.", ""),
        title("Greetings"),
    ]);
    let install = |home: &Home| {
        let (wasm, manifest) = (guest("echo"), home.file("kiso.toml", ASKING));
        let [wasm, manifest] = [&wasm, &manifest].map(|path| path.to_str().unwrap());
        home.kiso(&["skill", "add", wasm, "--manifest", manifest, "--grant", "all"]).ok();
    };
    let config = format!("{}{PRICES}", scripted(&server));
    let Some(stage) = Stage::prepared(Home::new(), &config, install) else { return };
    let tab = &stage.tab;
    stage.open("house");
    stage.say("say hello to the house");
    tab.shows("Hello to all.");
    // The title arrives after the reply, and moves the list of sessions.
    tab.wait_for(role("link", "Greetings"));
    let run = open_last(&stage);
    let (events, board) = (events(&stage, &run), stage.daemon.get(&format!("/runs/{run}")));
    tab.wait_for(role("heading", "say hello to the house"));
    assert!(traces(tab).iter().all(|path| !path.contains("prompts")), "{:?}", traces(tab));

    // The header shows the run's figures.
    let usage = &board["usage"];
    let figures = facts(tab, ".trace-figures");
    assert_eq!(figures["Steps"], events.len().to_string(), "{figures}");
    for (name, key) in [("Model calls", "calls"), ("Tokens in", "input_tokens"), ("Tokens out", "output_tokens")] {
        assert_eq!(figures[name], usage[key].to_string(), "{figures} {usage}");
    }
    assert_eq!(usage["cost_micros"], 15_000 * usage["calls"].as_u64().unwrap());
    // Half a cent is rounded up.
    let cents = (usage["cost_micros"].as_u64().unwrap() + 5_000) / 10_000;
    assert_eq!(figures["Cost"], format!("${}.{:02}", cents / 100, cents % 100));
    assert_eq!(tab.count(css(".trace-step")), events.len());

    // The timeline: a lane for each node with a step, and a bar for each step, navigated by keyboard.
    let lanes = tab.eval("[...document.querySelectorAll('.timeline-lane')].map((it) => it.innerText.trim())");
    assert_eq!(lanes, json!(["Message", "Context", "Router", "Actor", "Tools", "Reply"]));
    tab.wait_for(role("region", "Timeline"));
    assert_eq!(tab.count(css(".timeline-bar")), events.len());
    assert_eq!(tab.count(css(".timeline-bar[tabindex='0']")), 1, "the keyboard gets there");
    tab.focus(role("button", "Step 1. "));
    tab.press("ArrowRight");
    tab.wait("the second bar has the focus", || tab.focused().starts_with("button \"Step 2. "));
    tab.press("Enter");
    tab.wait_until("location.hash.endsWith('/step/2')");
    tab.wait_of(css("#step-2 > .trace-line"), "it.getAttribute('aria-expanded') === 'true'");

    // A step in the list shows its duration, tokens, cost, next node and reason.
    let routed = seq(&events, "routed");
    let line = tab.eval_on(
        css(&format!("#step-{routed}")),
        "['at', 'took', 'tokens', 'cost', 'moves'].map((name) => it.querySelector(`.trace-${name}`).innerText.trim().replace('\\ntokens', ''))",
    );
    assert!(line[0].as_str().unwrap().starts_with('+') && line[1].as_str().unwrap().ends_with('s'), "{line}");
    assert_eq!((&line[2], &line[3]), (&json!("15"), &json!("$0.02")), "{line}");
    assert!(
        line[4].as_str().unwrap().contains("Next: the work because the message needs tools, but no plan"),
        "{line}"
    );

    called_tools_are_told(&stage, &events);
    prompts_come_on_demand(&stage, &run, &events);
    audit_in_both(tab, "trace");
    a_link_leads_to_a_step(&stage, &run, &events);
    steps_are_narrowed_down(tab, &events);
    super::script::finish(server);
}

/// The details of a call: arguments, result, used and granted permissions, the component and its grant, and the host's
/// reflection.
#[track_caller]
fn called_tools_are_told(stage: &Stage, events: &[Value]) {
    let tab = &stage.tab;
    let called = seq(events, "called");
    let body = open_step(tab, called);
    let results = events.iter().find(|event| event["kind"] == "called").unwrap()["body"]["results"].clone();
    let echo = format!("{body} .trace-results > li:nth-child(1)");
    let text = tab.eval_on(css(&echo), "it.innerText");
    for part in
        ["\"text\": \"hello, house\"", "Limits used", "Component", "GET api.example.org", "secret token", "96 MiB"]
    {
        assert!(text.as_str().unwrap().contains(part), "{part}: {text}");
    }
    tab.wait_of(css(&format!("{echo} > header .badge")), "it.textContent === 'ok'");
    let digest = stage.daemon.get("/skills/echo")["digest"].clone();
    assert_eq!(results[0]["skill_digest"], digest);
    assert_eq!(tab.eval_on(css(&format!("{echo} .trace-digest code")), "it.title"), digest);
    let meters = tab.eval_on(
        css(&format!("{echo} .trace-limits")),
        "Object.fromEntries([...it.querySelectorAll('[role=meter]')].map((one) => [one.ariaLabel, [one.ariaValueNow, one.ariaValueMax]]))",
    );
    let limits = &results[0]["limits"];
    assert_eq!(
        meters["Memory"],
        json!([results[0]["used"]["memory_bytes"].to_string(), limits["memory_bytes"].to_string()])
    );
    assert_eq!(meters["Time"][1], limits["millis"].to_string(), "{meters}");
    // The other call failed; the host's message to the model about it is below.
    let exec = tab.eval_on(css(&format!("{body} .trace-results > li:nth-child(2)")), "it.innerText");
    for part in ["exit 3", "exit code: 3", "plum", "Reflection", "error"] {
        assert!(exec.as_str().unwrap().contains(part), "{part}: {exec}");
    }
}

/// A prompt is only loaded after a click.
#[track_caller]
fn prompts_come_on_demand(stage: &Stage, run: &str, events: &[Value]) {
    let tab = &stage.tab;
    let acted = seq(events, "acted");
    open_step(tab, acted);
    tab.wait_for(css(&format!("#step-{acted} .trace-raw")));
    assert!(traces(tab).iter().all(|path| !path.contains("prompts")), "{:?}", traces(tab));
    tab.click(css(&format!("#step-{acted}-body .trace-foot > button")));
    let prompt = format!("Prompt and answer of step {acted}");
    tab.wait_for(role("region", &prompt));
    let asked: Vec<_> = traces(tab).into_iter().filter(|path| path.contains("prompts")).collect();
    assert_eq!(asked, [format!("/runs/{run}/trace?after={}&limit=1&prompts=true", acted - 1)]);
    tab.wait_of(
        role("region", &prompt),
        "['Asked of the actor', '[system]', '[user]', 'say hello to the house', '[answer] text', 'I begin with a greeting.', '\"name\": \"exec\"', '\"args\": {']
          .every((part) => it.innerText.includes(part))",
    );
    // The system prompt is long, and folded until it is opened.
    let system = format!("#step-{acted} .trace-prompt details:first-of-type");
    tab.click(css(&format!("{system} > summary")));
    tab.wait_of(css(&format!("{system} pre")), "it.textContent.length > 100");
    tab.click(css(&format!("#step-{acted} .trace-raw > summary")));
    let raw = tab.eval_on(css(&format!("#step-{acted} .trace-raw pre")), "JSON.parse(it.textContent)");
    assert_eq!(raw["body"], events.iter().find(|event| event["seq"] == acted).unwrap()["body"]);
}

/// A link opens the step for anybody who has it.
#[track_caller]
fn a_link_leads_to_a_step(stage: &Stage, run: &str, events: &[Value]) {
    let tab = &stage.tab;
    let called = seq(events, "called");
    let _clipboard = tab.allow_clipboard();
    tab.click(role("button", &format!("Copy link to step {called}")));
    let link = stage.url(&format!("#/run/{run}/step/{called}"));
    tab.wait(&format!("{link} is in the clipboard"), || tab.clipboard() == link);
    let other = tab.beside();
    other.goto(&link);
    other.wait_of(css(&format!("#step-{called}.marked > .trace-line")), "it.getAttribute('aria-expanded') === 'true'");
    other.wait_of(
        css(&format!("#step-{called}")),
        "((box) => box.top >= 0 && box.top < innerHeight)(it.getBoundingClientRect()) && it.contains(document.activeElement)",
    );
    other.wait_of(css(".timeline-bar[aria-current=step]"), &format!("it.dataset.seq === '{called}'"));
    other.goto(&stage.url(&format!("#/run/{run}/step/999")));
    other.shows("The run has no step 999.");
}

#[track_caller]
fn steps_are_narrowed_down(tab: &Tab, events: &[Value]) {
    let tools = events.iter().filter(|event| event["kind"] == "called" || event["kind"] == "calls_started").count();
    tab.focus(role("radio", "All"));
    tab.press("ArrowRight");
    tab.press("ArrowRight");
    tab.wait("the steps of tools are left", || tab.count(css(".trace-step")) == tools);
    tab.shows(&format!("{tools} of {} steps", events.len()));
    tab.press("ArrowLeft");
    tab.press("ArrowLeft");
    tab.focus(role("searchbox", "Search in the steps"));
    tab.insert_text("plum");
    tab.wait("the step with plums is left", || {
        let left = tab.count(css(".trace-step"));
        left > 0 && left < events.len()
    });
    tab.insert_text(" of a kind that is not there");
    tab.shows("No matching steps");
}

/// The trace of a running run grows, and shows its verdicts.
#[test]
fn a_trace_grows_while_the_run_goes_on() {
    let made = r#"{"goal": "A greeting", "tasks": [
      {"type": "exec", "detail": "echo helo > greeting.txt", "expect": "a greeting that is spelt right", "review": true},
      {"type": "msg", "detail": "Say that it is there", "notify": true}]}"#;
    let fix = r#"{"status": "needs_fix", "reason": "hello has two of the letter l", "inject": [
      {"type": "exec", "detail": "echo hello > greeting.txt; cat greeting.txt", "expect": "hello", "review": true}]}"#;
    let server = server(&[
        plan(made),
        reply("reviewer", fix, "fault = \"slow_first_token\""),
        reply("reviewer", r#"{"status": "ok", "reason": "this is fine now"}"#, ""),
        reply("worker", "It is there.", ""),
        title("A greeting"),
    ]);
    let Some(stage) = Stage::scripted(&server) else { return };
    let tab = &stage.tab;
    stage.open("greeting");
    stage.say("make a greeting file");
    tab.wait("the reviewer is asked", || server.held() == 1);
    let run = stage.daemon.get("/runs")["items"][0]["id"].as_str().unwrap().to_owned();
    tab.goto(&stage.url(&format!("#/run/{run}")));
    tab.wait_of(css(".trace-when .badge"), "it.textContent === 'running'");
    tab.wait_of(css(".trace-list"), "it.innerText.includes('$ echo helo > greeting.txt')");
    tab.wait_for(css(".trace-going"));
    assert!(!tab.text().contains("needs a fix"), "{}", tab.text());
    audit_in_both(tab, "trace of a run under way");
    let before = tab.count(css(".trace-step"));
    server.release();
    tab.wait_of(css(".trace-when .badge"), "it.textContent === 'done'");
    tab.wait("every step is there", || tab.count(css(".trace-step")) == events(&stage, &run).len());
    let events = events(&stage, &run);
    assert!(events.len() > before, "{} steps after {before}", events.len());
    // The verdict, its reason, and the tasks it added.
    let reviewed = seq(&events, "reviewed");
    tab.wait_of(
        css(&format!("#step-{reviewed} .trace-moves")),
        "it.innerText.includes('Next: the preparation of a task because the result needs a fix')",
    );
    let body = open_step(tab, reviewed);
    tab.wait_of(
        css(&body),
        "['needs a fix', 'hello has two of the letter l', 'Tasks added', 'echo hello > greeting.txt'].every((part) => it.innerText.includes(part))",
    );
    let executed = open_step(tab, seq(&events, "executed"));
    tab.wait_of(
        css(&executed),
        "it.innerText.includes('a greeting that is spelt right') && it.querySelector('[role=meter]')",
    );
    audit_in_both(tab, "trace with a verdict");
    super::script::finish(server);
}

/// A comparison shows the differences between two runs of a message by step and by line.
#[test]
fn two_runs_of_a_message_are_compared() {
    let made = |more: &str| {
        format!(
            r#"{{"goal": "Count the words", "tasks": [
              {{"type": "exec", "detail": "echo again >> notes.txt; cat notes.txt"}}{more},
              {{"type": "msg", "detail": "Say how many there are", "notify": true}}]}}"#
        )
    };
    let server = server(&[
        plan(&made("")),
        reply("worker", "There is one.", ""),
        title("Words"),
        plan(&made(r#", {"type": "exec", "detail": "wc -w notes.txt"}"#)),
        reply("worker", "There are two.", ""),
    ]);
    let Some(stage) = Stage::scripted(&server) else { return };
    let tab = &stage.tab;
    stage.open("words");
    stage.say("Count the words");
    tab.shows("There is one.");
    tab.wait_gone(role("button", "Stop"));
    stage.say("Count the words");
    tab.shows("There are two.");
    let second = open_last(&stage);
    let first = stage.daemon.get("/runs?session=words")["items"][1]["id"].as_str().unwrap().to_owned();
    tab.click(role("button", "Compare with"));
    tab.wait_for(role("dialog", "Compare with another run"));
    tab.wait_of(css(".trace-choice li:first-child"), "it.innerText.includes('same message')");
    audit_in_both(tab, "the choice of a run to compare with");
    tab.click(css(".trace-choice li:first-child a"));
    tab.wait_until(&format!("location.hash === '#/run/{second}/diff/{first}'"));
    tab.wait("the head has the focus", || tab.focused() == "heading \"Two runs compared\"");
    // The older run is on the left, whichever was opened first.
    tab.wait_for(role("link", "Back to the chat"));
    for (side, run) in [("Run A", &first), ("Run B", &second)] {
        tab.wait_of(
            role("region", side),
            &format!("it.innerText.includes('{run}') && it.innerText.includes('Count the words')"),
        );
    }
    let figures = tab.eval_on(
        role("table", "Figures of both runs"),
        "Object.fromEntries([...it.tBodies[0].rows].map((row) => [row.cells[0].innerText, [...row.cells].slice(1).map((cell) => cell.innerText.trim())]))",
    );
    let calls = |run: &str| stage.daemon.get(&format!("/runs/{run}"))["usage"]["calls"].to_string();
    assert_eq!(
        (&figures["Model calls"][0], &figures["Model calls"][1]),
        (&json!(calls(&first)), &json!(calls(&second)))
    );
    let steps = [&first, &second].map(|run| events(&stage, run).len());
    assert_eq!(
        figures["Steps"],
        json!([
            steps[0].to_string(),
            steps[1].to_string(),
            format!(
                "+{} (+{}\u{a0}%)",
                steps[1] - steps[0],
                ((steps[1] - steps[0]) as f64 * 100. / steps[0] as f64).round()
            )
        ])
    );
    // One command had another output; one command is only in the second run. Lines out of view are not drawn.
    tab.wait_of(
        css(".trace-pairs[aria-label=Tasks] .only"),
        "it.textContent.includes('$ wc -w notes.txt') && it.textContent.includes('only in B')",
    );
    let changed = "[aria-label=Tasks] button.trace-pair";
    tab.wait_of(
        css(changed),
        "it.textContent.includes('$ echo again >> notes.txt') && it.textContent.includes('output')",
    );
    tab.focus(css(changed));
    tab.press("Enter");
    tab.wait_of(
        css("[aria-label=Tasks] .trace-lines"),
        "it.querySelector('.come')?.textContent.replace(/\\s+/g, ' ').includes('Only in B: again')",
    );
    tab.shows("Only what differs, of the steps");
    audit_in_both(tab, "two runs compared");
    tab.click(css("[aria-label=Tasks] .only a"));
    tab.wait_until(&format!("location.hash.startsWith('#/run/{second}/step/')"));
    tab.wait_of(css(".trace-step.marked"), "it.innerText.includes('wc -w notes.txt')");
    super::script::finish(server);
}
