//! Parts of a reply: commands as in a terminal, tables, pictures and files, also after a reload.

use super::browser::{css, role};
use super::script::{reply, server, talk, title};
use super::stage::{Stage, module};
use crate::harness::Home;
use kiso_tests::root;
use serde_json::json;

/// A command that waits for a file after its first output, so that the test does not depend on time.
const WAITS: &str = "$ echo first; while [ ! -e go ]; do sleep 0.05; done; echo bad >&2; echo last; exit 3";

#[test]
fn a_command_shows_its_output_while_it_runs_and_its_exit_code_in_the_end() {
    let Some(stage) = Stage::reflex() else { return };
    let tab = &stage.tab;
    stage.open("terminal");
    stage.say(WAITS);
    tab.wait_of(css(".terminal-live"), "it.textContent === 'first\\n'");
    tab.audit("a command that runs");
    // A tab that is opened in the middle shows the earlier output.
    let other = tab.beside();
    other.goto(&stage.url("#/s/terminal"));
    other.wait_of(css(".terminal-live"), "it.textContent === 'first\\n'");
    assert!(!tab.has(css(".terminal")), "there is no reply yet");
    std::fs::write(stage.home.work("terminal").join("go"), "").unwrap();
    for tab in [tab, &other] {
        tab.wait_of(css("figure.terminal.failed"), "it.textContent.includes('exit 3')");
        tab.wait_of(css("figure.terminal .terminal-errors"), "it.innerText.trim() === 'bad'");
        let written =
            tab.eval_on(css("figure.terminal .run-output"), "[it.textContent, getComputedStyle(it).whiteSpace]");
        assert_eq!(written, json!(["first\nlast", "pre"]), "lines and columns are what they were");
        let mono = tab.eval_on(css("figure.terminal .run-output"), "getComputedStyle(it).fontFamily.includes('mono')");
        assert_eq!(mono, true);
    }
    tab.wait_for(role("button", "Try again"));
    tab.audit("a command that failed");
    // The run's events contain its output, too, and the message contains the reply as data.
    let reply = stage.daemon.get("/sessions/terminal/messages")["items"][1].clone();
    assert_eq!(reply["status"], "failed");
    let command = json!({ "type": "command", "command": WAITS.trim_start_matches("$ "), "output": "first\nlast", "stderr": "bad", "exit_code": 3 });
    assert_eq!(reply["blocks"][0], command);
}

/// The command is shown only in the message: not in the steps, and not above its output.
#[test]
fn a_command_stands_once() {
    let Some(stage) = Stage::reflex() else { return };
    let tab = &stage.tab;
    stage.open("once");
    let seen = |part: &str| {
        let log = tab.eval_on(role("log", "Messages"), "it.innerText");
        log.as_str().unwrap().matches(part).count()
    };
    stage.say("$ echo begun; while [ ! -e go ]; do sleep 0.05; done; grep nothing /dev/null; cat nowhere");
    tab.wait_of(css(".terminal-live"), "it.textContent.includes('begun')");
    assert_eq!(seen("while ["), 1, "{}", tab.text());
    std::fs::write(stage.home.work("once").join("go"), "").unwrap();
    // After a failure, the steps stay open.
    tab.wait_of(css("figure.terminal.failed"), "it.innerText.includes('nowhere')");
    tab.wait_for(role("button", "Hide steps"));
    tab.wait_of(css(".run-now"), "it.innerText.includes('Failed after')");
    assert_eq!(seen("while ["), 1, "{}", tab.text());
    for again in [false, true] {
        if again {
            tab.reload();
        }
        tab.wait_of(css("figure.terminal.failed"), "it.innerText.includes('begun')");
        assert_eq!(seen("while ["), 1, "{}", tab.text());
    }
    stage.say("$ echo second");
    tab.wait("it is answered", || tab.count(css("figure.terminal")) == 2);
    tab.wait("it stands once", || seen("echo second") == 1);
    tab.click(css("article.chat-reply:last-of-type .chat-done"));
    tab.wait_for(role("group", "Steps"));
    assert_eq!(seen("echo second"), 1, "{}", tab.text());
}

/// An exit code that means "not found", as of grep, is an answer.
#[test]
fn an_exit_code_that_is_an_answer_looks_like_no_failure() {
    let Some(stage) = Stage::reflex() else { return };
    let tab = &stage.tab;
    stage.open("answer");
    stage.say("$ echo tea | grep coffee");
    tab.wait_of(css("figure.terminal:not(.failed)"), "it.innerText.includes('exit 1')");
    assert!(!tab.has(role("button", "Try again")), "{}", tab.text());
}

#[test]
fn a_stopped_command_keeps_its_lines_after_a_reload() {
    let Some(stage) = Stage::reflex() else { return };
    let tab = &stage.tab;
    stage.open("stopped");
    stage.say("$ echo kept; while :; do sleep 0.05; done");
    tab.wait_of(css(".terminal-live"), "it.textContent.includes('kept')");
    tab.click(role("button", "Stop"));
    for again in [false, true] {
        if again {
            tab.reload();
        }
        tab.wait_of(css("figure.terminal .run-output"), "it.textContent === 'kept'");
        tab.wait_of(css(".chat-from"), "it.innerText.includes('Cancelled')");
        tab.wait_for(role("button", "Try again"));
    }
}

#[test]
fn what_a_model_wrote_before_it_was_stopped_is_there_after_a_reload() {
    let server = server(&[talk("One two three four five six.", "pieces = 6\nfault = \"stepped\""), title("Counting")]);
    let Some(stage) = Stage::scripted(&server) else { return };
    let tab = &stage.tab;
    stage.open("partial");
    stage.say("Count");
    tab.wait("the model writes", || server.held() == 1);
    server.release_many(3);
    tab.shows("One two three");
    tab.click(role("button", "Stop"));
    tab.wait_for(role("button", "Try again"));
    tab.reload();
    tab.wait_of(css(".chat-cut"), "it.innerText.includes('Partial reply') && it.innerText.includes('One two three')");
    tab.wait_for(role("button", "Try again"));
}

#[test]
fn a_table_is_a_table_and_a_picture_stands_once() {
    let Some(stage) = Stage::reflex() else { return };
    let tab = &stage.tab;
    stage.open("table");
    std::fs::create_dir_all(stage.home.work("table")).unwrap();
    std::fs::copy(root().join("examples/weather.csv"), stage.home.work("table").join("weather.csv")).unwrap();
    // The created file is smaller than a kilobyte.
    stage.say("data file=weather.csv group=[\"city\"] compute=[\"sum(rain_mm)\"] save=sums.csv");
    tab.wait_of(css(".reply-table table"), "it.rows.length === 3 && it.rows[0].cells[0].textContent === 'city'");
    tab.wait_of(css(".reply-table td.md-right"), "it.textContent.length > 0");
    tab.wait_for(role("link", "sums.csv"));
    tab.audit("a reply with a table");
    stage.say("plot temperature over date from weather.csv");
    tab.wait_for(css("article canvas"));
    tab.wait_for(role("link", ".svg"));
    tab.wait_for(role("link", ".png"));
    assert!(!tab.has(css(".made-picture")), "what is drawn as a chart is not a picture beside it");
    let list = tab.eval_on(css("[role=log] article:last-of-type"), "it.innerText.includes('Files:')");
    assert_eq!(list, false, "files are told as data, and stand once");
    let width = tab.eval_on(css("article .chart"), "it.offsetWidth / it.closest('article').offsetWidth");
    assert!(width.as_f64().unwrap() > 0.98, "{width}");
    tab.reload();
    tab.wait_for(css("article canvas"));
    assert!(!tab.has(css(".made-picture")));
}

const PLAN: &str = r#"<FINAL_PRD>{"goal": "A chart", "tasks": [
  {"type": "skill", "skill": "chart", "args": {"file": "weather.csv", "x": "date", "y": ["rain_mm"]}, "detail": "Draw the rain"},
  {"type": "msg", "detail": "Say that it is drawn", "notify": true}]}</FINAL_PRD>"#;

const ROUTED: &str = r#"{"effort": "high", "categories": [], "tool_need": 1, "goal": "A chart", "durable": false}"#;

#[test]
fn a_picture_that_nothing_else_shows_stands_in_the_reply() {
    let server = server(&[
        reply("router", ROUTED, ""),
        reply("planner", PLAN, ""),
        reply("worker", "It is drawn.", ""),
        title("Rain"),
    ]);
    let Some(stage) = Stage::scripted(&server) else { return };
    let tab = &stage.tab;
    stage.open("drawn");
    std::fs::create_dir_all(stage.home.work("drawn")).unwrap();
    std::fs::copy(root().join("examples/weather.csv"), stage.home.work("drawn").join("weather.csv")).unwrap();
    stage.say("Draw the rain");
    let picture = css(".made-picture img");
    tab.wait_of(picture, "it.naturalWidth > 0 && it.src.endsWith('.svg')");
    let width = tab.eval_on(picture, "it.offsetWidth / it.closest('article').offsetWidth");
    assert!(width.as_f64().unwrap() > 0.98, "{width}");
    assert_eq!(tab.count(css(".made-picture")), 1, "the same as SVG and as PNG is one picture");
    tab.audit("a reply with a picture");
    tab.click(css(".made-picture"));
    tab.wait_for(role("dialog", "Picture"));
    super::script::finish(server);
}

/// Each card of the built-in rules works as written, and shows its result.
#[test]
fn the_cards_of_an_empty_session_show_what_the_program_answers() {
    let Some(stage) = Stage::reflex() else { return };
    let tab = &stage.tab;
    for (at, card) in ["Compare", "Run a command", "Draw a chart"].into_iter().enumerate() {
        let session = format!("card-{at}");
        stage.open(&session);
        tab.wait_for(role("button", "Connect a model"));
        tab.audit(&format!("the first screen before {card}"));
        let shown = tab.eval(&format!(
            "[...document.querySelectorAll('.chat-welcome button')].find((it) => it.innerText.includes({}))
               .querySelector('.welcome-shown').innerText",
            json!(card)
        ));
        tab.click(role("button", card));
        tab.wait_of(css(".composer"), "it.innerText.includes('weather.csv')");
        tab.wait_until("document.querySelector('.composer textarea').value !== ''");
        tab.click(role("button", "Send"));
        tab.wait_for(role("button", "Copy reply"));
        assert!(!tab.has(role("button", "Try again")), "{card}: {}", tab.text());
        let words: Vec<String> = shown.as_str().unwrap().split_whitespace().map(str::to_owned).collect();
        tab.wait_of(css(".chat-reply"), &format!("{}.every((word) => it.innerText.includes(word))", json!(words)));
    }
    tab.wait_for(css(".chat-reply figure"));
    // The chart on the card is a smaller version of the skill's chart of the same table.
    for theme in ["light", "dark"] {
        let call = format!(
            "chart file=mean-temperature-month.csv x=month y=[\"mean_temperature_c\"] width=480 height=240 theme={theme} \
             title=\"Mean temperature by month\" out=pub/card-{theme}.svg"
        );
        let message = stage.daemon.send("card-2", &call);
        stage.daemon.reply(message);
        let drawn = std::fs::read_to_string(stage.home.work("card-2").join(format!("pub/card-{theme}.svg"))).unwrap();
        let path = format!("host/gateway/src/page/web/welcome/chart-{theme}.svg");
        assert!(drawn == std::fs::read_to_string(root().join(&path)).unwrap(), "{path} is not what the program draws");
    }
}

/// With a model, the first screen offers tasks, in a complete grid.
#[test]
fn tasks_are_offered_where_there_is_a_model() {
    let server = server(&[]);
    let Some(stage) = Stage::scripted(&server) else { return };
    let tab = &stage.tab;
    stage.open("fresh");
    tab.wait_for(role("button", "Ask about a file"));
    let places = tab.eval(
        "JSON.stringify([...document.querySelectorAll('.chat-welcome li')].map((it) => [it.offsetLeft, it.offsetTop]))",
    );
    let places: Vec<[f64; 2]> = serde_json::from_str(places.as_str().unwrap()).unwrap();
    // No folder is configured, so none is offered.
    assert_eq!(places.len(), 3, "{places:?}");
    assert!(places.iter().all(|place| place[1] == places[0][1]), "in one row: {places:?}");
    tab.click(role("button", "Ask about a file"));
    tab.wait_of(css(".composer"), "it.innerText.includes('weather.csv')");
    tab.audit("the first screen with a model");
    super::script::finish(server);
}

#[test]
fn the_model_of_a_session_is_chosen_in_its_head() {
    let server = server(&[talk("Hello.", ""), title("Hello")]);
    let config = format!("{}\n[models]\ntitler = \"reflex\"\n", super::stage::scripted(&server));
    let Some(stage) = Stage::with(Home::new(), &config) else { return };
    let tab = &stage.tab;
    stage.open("chosen");
    tab.click(role("button", "Model: test:m"));
    tab.wait_for(role("menuitemradio", "test:m"));
    tab.click(role("menuitemradio", "reflex"));
    tab.wait_for(role("button", "Model: reflex"));
    assert_eq!(stage.daemon.get("/status/chosen")["model"], "reflex");
    tab.audit("the model in the head");
}

/// Attaching files creates the session; the first screen stays until the first message.
#[test]
fn the_first_screen_stays_while_files_are_attached() {
    let Some(stage) = Stage::reflex() else { return };
    let tab = &stage.tab;
    stage.open("attached");
    tab.shows("What would you like to do?");
    stage.daemon.request("PUT", "/sessions/attached/files/a.csv", Some("a,b\n1,2\n")).expect(201);
    tab.reload();
    tab.wait_for(role("button", "Actions for attached"));
    tab.shows("What would you like to do?");
    tab.wait_for(role("button", "Connect a model"));
}

#[test]
fn a_message_that_waits_says_so_after_a_reload() {
    let Some(stage) = Stage::reflex() else { return };
    let tab = &stage.tab;
    stage.open("queue");
    stage.say("$ echo first; while [ ! -e go ]; do sleep 0.05; done");
    tab.wait_of(css(".terminal-live"), "it.textContent.includes('first')");
    stage.say("$ echo second");
    let waits = css(".chat-asked:last-of-type .chat-state");
    for again in [false, true] {
        if again {
            tab.reload();
        }
        tab.wait_of(waits, "it.textContent === 'Queued'");
    }
    std::fs::write(stage.home.work("queue").join("go"), "").unwrap();
    tab.wait("both are answered", || tab.count(css("figure.terminal")) == 2);
    assert!(!tab.has(css(".chat-state")));
}

/// A notice does not cover the composer's button, and disappears with its screen.
#[test]
fn a_notice_covers_no_button_and_goes_with_its_screen() {
    let Some(stage) = Stage::reflex() else { return };
    let tab = &stage.tab;
    stage.open("notice");
    for width in [390, 820, 1280] {
        tab.set_viewport(width, 800, width < 500);
        let ui = module("lib/ui.js");
        tab.eval(&format!(
            "(async () => {ui}.toast('Something that takes a line or two to say, on most screens', 'bad', 'and a hint'))()"
        ));
        tab.wait_for(css(".toast"));
        let apart = "(() => { const [a, b] = ['.toast', '.composer'].map((one) => document.querySelector(one).getBoundingClientRect());
            return a.bottom <= b.top || a.top >= b.bottom || a.right <= b.left || a.left >= b.right; })()";
        assert_eq!(tab.eval(apart), true, "at {width} pixels");
    }
    // The notice has been shown for a while when the user goes to another screen.
    tab.eval("Date.now = ((now) => () => now() + 60_000)(Date.now), 0");
    tab.eval("location.hash = '#/usage', 0");
    tab.wait_gone(css(".toast"));
}
