//! A message and its reply: streaming, display, and actions.

use super::browser::{Tab, css, role};
use super::fill;
use super::script::{server, talk, title};
use super::stage::{MESSAGE, QUICK, Stage};
use crate::harness::Home;
use serde_json::json;

/// All elements of Markdown that the page supports.
const ANSWER: &str = "## A heading

The first paragraph has **bold**, *slanted*, ~~struck~~ and `code` in it, and [a link](https://example.org/path).

- one
- two
  - [x] done
  - [ ] open

```rust
fn main() { let answer = 42; println!(\"{answer}\"); }
```

| city | people |
|:-----|-------:|
| Oslo | 709000 |
| Rome | 2750000 |

> quoted

The mass is $E = mc^2_0$ and costs $5 or $6.

The last words.";

/// The current or last reply.
const REPLY: &str = "[role=log] article:last-of-type";

/// Marks the elements in the reply now; returns the number of blocks.
#[track_caller]
fn keep(tab: &Tab) -> u64 {
    let kept = format!(
        "(window.kept = [...document.querySelectorAll('{REPLY} :is(h2, h3, h4, h5, p, ul, pre, table)')]).length"
    );
    tab.eval(&kept).as_u64().unwrap()
}

#[test]
fn a_reply_streams_in_and_is_never_drawn_anew() {
    let pieces = 120;
    let server = server(&[talk(ANSWER, &format!("pieces = {pieces}\nfault = \"stepped\"")), title("Headings")]);
    let Some(stage) = Stage::scripted(&server) else { return };
    let tab = &stage.tab;
    stage.open("stream");
    stage.say("Tell me everything");
    tab.wait_for(role("article", "You,"));
    tab.wait("the model writes", || server.held() == 1);
    // Before the first text: the current activity and its duration.
    let run = stage.daemon.get("/runs?session=stream")["items"][0]["id"].as_str().unwrap().to_owned();
    let thought = stage.daemon.get(&format!("/runs/{run}"))["thought"].clone();
    assert_eq!(thought["kind"], "synthesizing", "{thought}");
    let same = format!("it.role === 'status' && it.textContent === {}", thought["text"]);
    tab.wait_of(css(".run-thought"), &same);
    tab.wait_of(role("timer", ""), "/^(\\d+:)?\\d+\\.\\d( ?s)?$/.test(it.textContent)");
    let began = tab.eval_on(role("timer", ""), "it.textContent");
    tab.wait_of(role("timer", ""), &format!("it.textContent !== {began}"));
    server.release_many(40);
    tab.shows("The first paragraph has bold, slanted, struck and code in it");
    // The next block has started, so the paragraph is complete.
    tab.wait_for(css(&format!("{REPLY} li")));
    assert!(!tab.text().contains("The last words."), "it is not there yet");
    let finished =
        format!("[...document.querySelectorAll('{REPLY} *')].findLast((it) => it.textContent.startsWith('The first'))");
    tab.eval(&format!("getSelection().selectAllChildren(window.first = {finished})"));
    let selected = tab.eval("String(getSelection())");
    assert!(selected.as_str().unwrap().starts_with("The first paragraph"), "{selected}");
    server.release_many(pieces);
    tab.shows("The last words.");
    tab.wait_for(role("button", "Copy reply"));
    assert_eq!(
        tab.eval(&format!("window.first === {finished}")),
        true,
        "the paragraph is the one that was there before"
    );
    assert_eq!(tab.eval("String(getSelection())"), selected, "what was selected still is");
    // The text from the store equals the streamed one.
    let live = tab.eval_on(css(REPLY), "it.querySelector('.chat-text').innerText");
    stage.open("stream");
    tab.reload();
    tab.wait_for(role("button", "Copy reply"));
    tab.wait_of(css(REPLY), &format!("it.querySelector('.chat-text').innerText === {live}"));
    assert!(keep(tab) >= 8);
    super::script::finish(server);
}

/// A piece costs the same however long the answer gets: each element is created about once, and finished ones are not touched.
/// The test counts elements, because times depend on the machine.
#[test]
fn a_long_answer_is_not_made_again_with_each_piece() {
    // Plain repetition would be cut off, so the parts differ.
    let part = |n: u32| {
        format!(
            "Some **words** about `it {n}`, with [a link](https://example.org/), and then:\n\n- one thing\n- another\n\n"
        )
    };
    let text = format!("{}The end.", (0..60).map(part).collect::<String>());
    let pieces = 600;
    let server = server(&[talk(&text, &format!("pieces = {pieces}\nfault = \"stepped\"")), title("Long")]);
    let Some(stage) = Stage::scripted(&server) else { return };
    let tab = &stage.tab;
    stage.open("long");
    tab.eval(
        "window.made = 0, window.touched = 0, new MutationObserver((all) => { for (const { addedNodes, removedNodes } of all) {
           for (const it of addedNodes) window.made += it.nodeType === 1 ? 1 + it.querySelectorAll('*').length : 0;
           for (const it of removedNodes) window.touched += it.nodeType === 1 ? 1 + it.querySelectorAll('*').length : 0;
         } }).observe(document.body, { childList: true, subtree: true }), 0",
    );
    stage.say("Tell me a lot");
    for _ in 0..pieces {
        server.release();
    }
    tab.shows("The end.");
    tab.wait_for(role("button", "Copy reply"));
    let [made, touched, there] = ["window.made", "window.touched", "document.querySelectorAll('.chat-text *').length"]
        .map(|count| tab.eval(count).as_u64().unwrap());
    assert!(there > 400, "{there}");
    // The unfinished end is rebuilt now and then, and the rest of the page changes a little.
    assert!(made < 6 * there + 600, "{made} elements were made for {there}");
    assert!(touched < 5 * there + 600, "{touched} elements were taken away for {there} that stayed");
    super::script::finish(server);
}

#[test]
fn markdown_is_shown_as_what_it_is() {
    let server = server(&[talk(ANSWER, ""), title("Headings")]);
    let Some(stage) = Stage::scripted(&server) else { return };
    let tab = &stage.tab;
    stage.open("marked");
    stage.say("Tell me everything");
    tab.wait_for(role("button", "Copy reply"));
    tab.shows("The last words.");
    tab.wait_for(role("heading", "A heading"));
    let link = tab.eval_on(role("link", "a link"), "[it.href, it.target, it.rel.split(' ').includes('noopener')]");
    assert_eq!(link, json!(["https://example.org/path", "_blank", true]));
    assert_eq!(
        tab.eval_on(role("table", ""), "[...it.rows].map((row) => [...row.cells].map((cell) => cell.textContent))"),
        json!([["city", "people"], ["Oslo", "709000"], ["Rome", "2750000"]])
    );
    assert_eq!(tab.count(css(&format!("{REPLY} input[type=checkbox]"))), 2);
    assert!(tab.text().contains("costs $5 or $6."), "prices are no formulas: {}", tab.text());
    tab.wait_of(css(&format!("{REPLY} .md-math > math")), "it.textContent === 'E=mc02'");
    assert!(!tab.text().contains("$E"), "{}", tab.text());
    // Code is highlighted when it is complete; its text stays the same.
    tab.wait_for(css(&format!("{REPLY} pre code [class^=hl-]")));
    let code = "fn main() { let answer = 42; println!(\"{answer}\"); }";
    tab.wait_of(css(&format!("{REPLY} pre code")), &format!("it.textContent.trim() === {}", json!(code)));
    let _clipboard = tab.allow_clipboard();
    tab.click(role("button", "Copy code"));
    tab.wait(&format!("{code} is in the clipboard"), || tab.clipboard().trim() == code);
    tab.click(role("button", "Copy reply"));
    tab.wait("the reply is in the clipboard", || tab.clipboard() == ANSWER);
    tab.audit("chat");
    super::script::finish(server);
}

#[test]
fn a_chart_can_be_used_and_read_as_a_table() {
    let chart = json!({
        "type": "line", "title": "Rain by month", "unit": "mm", "x": ["Jan", "Feb", "Mar"],
        "series": [{ "name": "Oslo", "values": [49, 36.5, null] }, { "name": "Rome", "values": [67, 73, 58] }],
    });
    let text = format!("Here it is:\n\n```chart\n{chart:#}\n```\n\nThat is all.");
    let wrong = "```chart\n{\"type\": \"line\", \"x\": [1], \"series\": [{\"name\": \"a\", \"values\": [1, 2]}]}\n```";
    let server = server(&[talk(&text, "pieces = 30"), title("Rain"), talk(wrong, "")]);
    let Some(stage) = Stage::scripted(&server) else { return };
    let tab = &stage.tab;
    stage.open("rain");
    stage.say("Draw the rain");
    tab.wait_for(css(&format!("{REPLY} canvas")));
    tab.shows("Rain by month");
    tab.shows("That is all.");
    // A series is hidden and shown by keyboard.
    tab.focus(role("button", "Oslo"));
    let pressed = tab.eval_on(role("button", "Oslo"), "it.getAttribute('aria-pressed')");
    tab.press("Enter");
    tab.wait_of(role("button", "Oslo"), &format!("it.getAttribute('aria-pressed') !== {pressed}"));
    tab.audit("chat with a chart");
    tab.click(role("button", "Table"));
    tab.wait_for(role("table", ""));
    let rows = tab
        .eval_on(role("table", ""), "[...it.rows].map((row) => [...row.cells].map((cell) => cell.innerText.trim()))");
    assert_eq!(rows[1], json!(["Jan", "49\u{a0}mm", "67\u{a0}mm"]), "{rows}");
    assert_eq!(rows[2], json!(["Feb", "36.5\u{a0}mm", "73\u{a0}mm"]), "{rows}");
    tab.audit("chat with a table behind a chart");
    // Invalid chart data is shown as written, with the reason.
    stage.say("Draw something else");
    tab.wait_of(css(REPLY), "it.textContent.includes('\"values\": [1, 2]')");
    assert_eq!(tab.count(css(&format!("{REPLY} canvas"))), 0);
    super::script::finish(server);
}

#[test]
fn a_command_is_answered_beside_the_conversation() {
    let Some(stage) = Stage::reflex() else { return };
    let tab = &stage.tab;
    stage.open("commands");
    stage.say("/help");
    tab.wait_for(role("article", "Answer to /help"));
    tab.shows("/status");
    tab.click(role("button", "Dismiss the answer"));
    tab.wait_gone(role("article", "Answer to /help"));
    assert_eq!(tab.eval_on(MESSAGE, "it.value"), "");
}

/// The text before a stop stays visible.
#[test]
fn what_was_written_before_a_stop_stays_in_view() {
    let server = server(&[talk("One two three four five six.", "pieces = 6\nfault = \"stepped\""), title("Counting")]);
    let Some(stage) = Stage::scripted(&server) else { return };
    let tab = &stage.tab;
    stage.open("cut");
    stage.say("Count");
    tab.wait("the model writes", || server.held() == 1);
    server.release_many(3);
    tab.shows("One two three");
    tab.click(role("button", "Stop"));
    tab.shows("Cancelled after");
    tab.wait_for(role("button", "Copy reply"));
    tab.wait_of(
        css(".chat-cut"),
        "it.open && it.innerText.includes('Partial reply') && it.innerText.includes('One two')",
    );
    tab.audit("a reply that was cut off");
}

/// The message is sent, stopped and tried again without a mouse.
#[test]
fn a_run_is_stopped_and_tried_again() {
    let server = server(&[
        talk("This takes its time", "pieces = 4\nfault = \"slow_first_token\""),
        title("Patience"),
        talk("This time it is quick.", ""),
    ]);
    let Some(stage) = Stage::scripted(&server) else { return };
    let tab = &stage.tab;
    stage.open("stopped");
    stage.say("Take your time");
    tab.wait("the model is asked", || server.held() == 1);
    tab.wait_for(role("button", "Stop"));
    tab.press("Control+.");
    tab.shows("Cancelled after");
    tab.wait_gone(role("button", "Stop"));
    tab.audit("chat with a run that was stopped");
    tab.click(role("button", "Try again"));
    tab.shows("This time it is quick.");
    assert_eq!(
        stage.daemon.get("/sessions/stopped/messages")["items"]
            .as_array()
            .unwrap()
            .iter()
            .filter(|message| message["role"] == "user" && message["text"] == "Take your time")
            .count(),
        1,
        "it is answered in its place"
    );
}

/// A menu opened at the end of a conversation stays in place while the content above it grows: an open menu is not text that
/// somebody is reading.
#[test]
fn a_menu_stays_where_it_was_opened() {
    let Some(stage) = Stage::reflex() else { return };
    let tab = &stage.tab;
    stage.open("menu");
    // More than fits into the window.
    for said in 1..=6 {
        stage.say("What can you do?");
        tab.wait("it is answered", || tab.count(css(".chat-reply .chat-acts")) == said);
    }
    let menu = css("[role=log] article:last-of-type .chat-acts .menu > button");
    // In one step, so that no frame is drawn between the click and the growth.
    let moved = tab.eval_on(
        menu,
        "(async () => {
          const frame = () => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)));
          await frame();
          it.click();
          await frame();
          const item = document.querySelector('[role=menuitem]');
          const before = item.getBoundingClientRect().top;
          const tall = document.createElement('div');
          tall.style.height = '300px';
          document.querySelector('[role=log] article:last-of-type .chat-from').after(tall);
          await frame();
          return item.getBoundingClientRect().top - before;
        })()",
    );
    assert_eq!(moved, 0, "it moved by so many pixels");
}

/// Code that is too wide scrolls sideways, and does not block vertical scrolling over it.
#[test]
fn the_wheel_over_code_scrolls_the_conversation() {
    let code = format!("```\n{}\n```", vec!["wider than a conversation ".repeat(20); 8].join("\n"));
    let texts = vec![code; 24];
    let Some(stage) = Stage::prepared(Home::new(), QUICK, |home| fill::session(home, "code", texts)) else { return };
    let tab = &stage.tab;
    stage.open("code");
    let code = css(".md-code pre");
    tab.hover(code);
    let top = || tab.eval("document.querySelector('[role=log]').scrollTop").as_f64().unwrap();
    let before = top();
    tab.scroll(code, 200);
    tab.wait("it is scrolled down", || top() > before);
}
