//! The composer: suggestions, attachments, and saved drafts.

use super::browser::{css, role};
use super::script::{server, talk, title};
use super::stage::{MESSAGE, QUICK, Stage, log_out};
use crate::harness::{Home, wait_until};
use kiso_tests::root;
use serde_json::json;

const PILLS: &str = "[pills.digest]\ntemplate = \"Read {input} and name what matters\"\ndescription = \"What matters in a text\"\n\
                     effort = \"medium\"\n[pills.kind]\ntemplate = \"Say something kind about {input}\"\neffort = \"low\"\n";

#[test]
fn what_can_be_written_is_offered() {
    let Some(stage) = Stage::with(Home::new(), &format!("{QUICK}{PILLS}")) else { return };
    let tab = &stage.tab;
    stage.open("offers");
    // Pills are toggle buttons.
    tab.click(role("button", "digest"));
    tab.wait_of(MESSAGE, "it.value === '!digest '");
    tab.wait_of(role("button", "digest"), "it.getAttribute('aria-pressed') === 'true'");
    tab.click(role("button", "kind"));
    tab.wait_of(MESSAGE, "it.value === '!kind '");
    tab.click(role("button", "kind"));
    tab.wait_of(MESSAGE, "it.value === ''");
    // Words are completed; the selected option is announced to screen readers.
    tab.focus(MESSAGE);
    for (typed, list, option, written) in [
        ("/mod", "Commands", "/model", "/model "),
        ("how about #da", "Tags", "#data", "how about #data "),
        ("@da", "Skills", "@data", "@data "),
        ("!di", "Pills", "!digest", "!digest "),
    ] {
        tab.type_text(typed);
        tab.wait_for(role("listbox", list));
        tab.wait_for(role("option", option));
        tab.wait_of(MESSAGE, "document.getElementById(it.getAttribute('aria-activedescendant'))?.getAttribute('aria-selected') === 'true'");
        if list == "Tags" {
            tab.audit("chat with completions");
        }
        // The first option fits best; the arrow keys wrap around.
        tab.press("ArrowUp");
        tab.press("ArrowDown");
        tab.press("Tab");
        tab.wait_of(MESSAGE, &format!("it.value === {}", json!(written)));
        tab.press("Control+a");
        tab.press("Delete");
        tab.wait_of(MESSAGE, "it.value === ''");
    }
    // Escape closes the suggestions, and they stay closed for that word.
    tab.type_text("#da");
    tab.wait_for(role("listbox", "Tags"));
    tab.press("Escape");
    tab.wait_gone(role("listbox", "Tags"));
    tab.type_text("t");
    assert!(!tab.has(role("listbox", "Tags")));
    tab.press("Control+a");
    tab.press("Delete");
    stage.say("@data file=nothing.csv");
    tab.wait_for(role("button", "Copy reply"));
    tab.shows("nothing.csv");
}

#[test]
fn older_messages_come_back_with_the_arrows() {
    let Some(stage) = Stage::reflex() else { return };
    let tab = &stage.tab;
    stage.open("history");
    for text in ["$ echo first", "$ echo second", "my password is hunter2 and correct"] {
        let before = tab.count(role("button", "Copy reply"));
        stage.say(text);
        tab.wait("it is answered", || tab.count(role("button", "Copy reply")) > before);
        tab.wait_gone(role("button", "Stop"));
    }
    tab.reload();
    tab.wait_for(role("button", "Copy reply"));
    tab.focus(MESSAGE);
    tab.press("ArrowUp");
    tab.wait_of(MESSAGE, "it.value === '$ echo second'");
    tab.press("ArrowUp");
    tab.wait_of(MESSAGE, "it.value === '$ echo first'");
    tab.press("ArrowDown");
    tab.press("ArrowDown");
    tab.wait_of(MESSAGE, "it.value === ''");
    let kept = tab.eval("JSON.stringify(localStorage)");
    assert!(!kept.as_str().unwrap().contains("hunter2"), "what looks like a secret is not kept: {kept}");
}

#[test]
fn a_draft_survives_a_reload_in_its_own_session() {
    let Some(stage) = Stage::reflex() else { return };
    let tab = &stage.tab;
    stage.open("one");
    tab.focus(MESSAGE);
    tab.insert_text("Half a thou");
    tab.type_text("ght");
    tab.wait_until("JSON.stringify(localStorage).includes('Half a thought')");
    tab.reload();
    tab.wait_of(MESSAGE, "it.value === 'Half a thought'");
    stage.open("two");
    tab.wait_of(MESSAGE, "it.value === ''");
    stage.open("one");
    tab.wait_of(MESSAGE, "it.value === 'Half a thought'");
    tab.focus(MESSAGE);
    tab.press("Control+a");
    tab.insert_text("$ echo whole");
    tab.press("Enter");
    tab.wait_for(role("button", "Copy reply"));
    tab.reload();
    tab.wait_for(role("button", "Copy reply"));
    tab.wait_of(MESSAGE, "it.value === ''");
    // Nothing of the draft is left for the next user of this browser.
    tab.focus(MESSAGE);
    tab.type_text("not for others");
    log_out(tab);
    tab.wait_for(role("textbox", "Token"));
    tab.wait_until("![localStorage, sessionStorage].some((place) => JSON.stringify(place).includes('not for others'))");
}

/// Shift+Enter inserts a line break; a large text is sent unchanged.
#[test]
fn a_message_of_many_lines_is_sent_as_it_is() {
    let server = server(&[talk("Thank you.", ""), title("Lines")]);
    let Some(stage) = Stage::scripted(&server) else { return };
    let tab = &stage.tab;
    stage.open("lines");
    tab.focus(MESSAGE);
    tab.type_text("one\ntwo <b>\n\nthree & \"four\"");
    tab.press("Enter");
    tab.shows("Thank you.");
    let sent = stage.daemon.get("/sessions/lines/messages")["items"][0]["text"].clone();
    assert_eq!(sent, "one\ntwo <b>\n\nthree & \"four\"");
    tab.wait_of(css("[role=log] article"), "it.innerText.includes('two <b>')");
    super::script::finish(server);
}

/// Dropped, pasted and chosen files are saved in the workspace under separate names, and the message names them.
#[test]
fn files_go_into_the_workspace() {
    let Some(stage) = Stage::reflex() else { return };
    let tab = &stage.tab;
    stage.open("files");
    // The page checks whether a name is free.
    tab.expects("answer: 404 /sessions/files/files/").expects("answer: 409 /sessions/files/files/");
    let (table, picture) = (root().join("examples/weather.csv"), root().join("docs/mean-temperature.svg"));
    tab.drop_file(css("main"), &table);
    tab.wait_for(role("button", "Remove weather.csv"));
    tab.paste_file(MESSAGE, "image.png", "image/png", b"\x89PNG\r\n\x1a\nnot much of one");
    tab.wait("it has a name of its own", || tab.names("button").iter().any(|name| name.starts_with("Remove pasted-")));
    tab.choose_file(css("input[type=file]"), &picture);
    tab.wait("who attached a file goes on with writing", || tab.eval("document.activeElement.tagName") == "TEXTAREA");
    tab.wait_for(role("button", "Remove mean-temperature.svg"));
    // The same name does not replace the existing file.
    tab.drop_file(css("main"), &table);
    tab.wait_for(role("button", "Remove weather-2.csv"));
    tab.audit("chat with files to send");
    tab.click(role("button", "Remove mean-temperature.svg"));
    tab.wait_gone(role("button", "Remove mean-temperature.svg"));
    wait_until("the file to be gone", || !stage.home.work("files").join("mean-temperature.svg").exists());
    tab.focus(MESSAGE);
    tab.type_text("describe weather.csv");
    tab.press("Enter");
    tab.wait_for(role("button", "Copy reply"));
    let sent = stage.daemon.get("/sessions/files/messages")["items"][0]["text"].as_str().unwrap().to_owned();
    assert!(sent.contains("weather-2.csv") && sent.contains("pasted-"), "{sent}");
    let work = stage.home.work("files");
    assert_eq!(std::fs::read(work.join("weather.csv")).unwrap(), std::fs::read(&table).unwrap());
    assert_eq!(std::fs::read(work.join("weather-2.csv")).unwrap(), std::fs::read(&table).unwrap());
    // A folder with its files, except hidden ones; an empty file; and a name that comes from outside.
    let dir = tempfile::TempDir::new().unwrap();
    for name in ["folder/sub", "folder/.git"] {
        std::fs::create_dir_all(dir.path().join(name)).unwrap();
    }
    for name in ["folder/a.txt", "folder/sub/b c.txt", "folder/.git/config", "folder/.env"] {
        std::fs::write(dir.path().join(name), name).unwrap();
    }
    std::fs::write(dir.path().join("<img src=x onerror=alert(1)>.txt"), "").unwrap();
    tab.drop_file(css("main"), &dir.path().join("folder"));
    tab.drop_file(css("main"), &dir.path().join("<img src=x onerror=alert(1)>.txt"));
    tab.wait("the empty file is there", || {
        tab.names("button").iter().any(|name| name.starts_with("Remove") && name.contains("img"))
    });
    tab.wait_of(css(".composer-files"), "it.innerText.includes('2 files')");
    assert_eq!(std::fs::read_to_string(work.join("folder/sub/b-c.txt")).unwrap(), "folder/sub/b c.txt");
    assert!(!work.join("folder/.git").exists() && !work.join("folder/.env").exists());
    // Another folder of the same name gets its own directory, and removing it removes its files.
    tab.drop_file(css("main"), &dir.path().join("folder"));
    tab.wait_for(role("button", "Remove folder-2"));
    wait_until("its files to be there", || work.join("folder-2/sub/b-c.txt").exists());
    tab.click(role("button", "Remove folder-2"));
    wait_until("its files to be gone", || !work.join("folder-2/a.txt").exists());
    tab.focus(MESSAGE);
    tab.type_text("how many files are there?");
    tab.press("Enter");
    tab.wait_of(
        css(".chat-asked [aria-label='Attached folders']"),
        "it.innerText.includes('folder') && it.innerText.includes('2 files')",
    );
    let sent = stage.daemon.get("/sessions/files/messages")["items"][2]["text"].as_str().unwrap().to_owned();
    assert!(sent.contains("folder/") && !sent.contains("b-c.txt"), "{sent}");
}

#[test]
fn a_long_paste_becomes_a_file() {
    let Some(stage) = Stage::reflex() else { return };
    let tab = &stage.tab;
    tab.expects("answer: 404 /sessions/paste/files/");
    stage.open("paste");
    tab.focus(MESSAGE);
    let paste = |characters: usize| {
        tab.eval_on(
            MESSAGE,
            &format!(
                "(() => {{
                  const data = new DataTransfer();
                  data.setData('text/plain', 'word '.repeat({characters} / 5));
                  return it.dispatchEvent(new ClipboardEvent('paste', {{ clipboardData: data, bubbles: true, cancelable: true }}));
                }})()"
            ),
        )
    };
    assert_eq!(paste(9_000), true, "the browser puts a shorter one into the field");
    assert_eq!(paste(20_000), false);
    tab.wait("it is a file", || tab.names("button").iter().any(|name| name.starts_with("Remove pasted-")));
    let files = stage.daemon.get("/sessions/paste/files")["items"].clone();
    assert_eq!((files.as_array().unwrap().len(), &files[0]["bytes"]), (1, &json!(20_000)));
}

/// A draft is restored after a reload, only in its session, until it is sent.
#[test]
fn a_draft_survives_a_reload() {
    let Some(stage) = Stage::reflex() else { return };
    let tab = &stage.tab;
    stage.open("draft");
    tab.focus(MESSAGE);
    tab.insert_text("half of a thought");
    let kept = "Object.entries({ ...localStorage, ...sessionStorage })
        .some(([key, text]) => key.startsWith('kiso.draft.') && text.includes('half of a thought'))";
    tab.wait_until(kept);
    tab.reload();
    tab.wait_of(MESSAGE, "it.value === 'half of a thought'");
    stage.open("elsewhere");
    assert_eq!(tab.eval_on(MESSAGE, "it.value"), "");
    stage.open("draft");
    tab.wait_of(MESSAGE, "it.value === 'half of a thought'");
    tab.focus(MESSAGE);
    tab.press("Enter");
    tab.wait_for(role("article", "You,"));
    tab.wait_of(MESSAGE, "it.value === ''");
    tab.wait_until(&format!("!{kept}"));
    tab.reload();
    tab.wait_for(role("article", "You,"));
    assert_eq!(tab.eval_on(MESSAGE, "it.value"), "");
}

/// A question can be edited or sent again, and an answer can be repeated.
#[test]
fn a_message_is_edited_and_sent_again_and_a_reply_made_anew() {
    let Some(stage) = Stage::reflex() else { return };
    let tab = &stage.tab;
    stage.open("again");
    stage.say("$ echo one > one.txt; cat one.txt");
    let said = || {
        let all = stage.daemon.get("/sessions/again/messages")["items"].as_array().unwrap().clone();
        let of = |who: &str| {
            let of = all.iter().filter(|one| one["role"] == who);
            of.map(|one| one["text"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
        };
        (of("user"), of("assistant").len())
    };
    // Visible for the last message and its reply, without hovering.
    let press = |kind: &str, name: &str| {
        let of_last = format!("[role=log] article:nth-last-child(1 of .{kind}) .chat-acts");
        tab.wait_of(css(&of_last), "getComputedStyle(it).opacity === '1'");
        tab.eval_on(
            css(&of_last),
            &format!("[...it.querySelectorAll('button')].find((one) => one.innerText === '{name}').click()"),
        );
    };
    // By keyboard, in the menu of the last message or reply.
    let choose = |kind: &str, item: &str| {
        let menu = format!("[role=log] article:nth-last-child(1 of .{kind}) .chat-acts .menu > button");
        tab.focus(css(&menu));
        tab.press("Enter");
        tab.click(role("menuitem", item));
    };
    let answered = |asked: &[&str]| {
        tab.wait(&format!("{asked:?} are answered"), || {
            tab.count(css(".chat-reply .chat-acts")) == asked.len() && {
                let (texts, replies) = said();
                texts == asked && replies == asked.len()
            }
        });
    };
    let versions = |at: &str| tab.wait_for(role("group", at));
    answered(&["$ echo one > one.txt; cat one.txt"]);
    press("chat-asked", "Edit");
    tab.wait_of(MESSAGE, "it.value.startsWith('$ echo one') && it === document.activeElement");
    tab.shows("Editing a message");
    tab.audit("chat while a message is edited");
    assert_eq!(said().0.len(), 1, "nothing is sent before it is edited");
    // A command is executed, and does not replace the message.
    tab.press("Control+a");
    tab.insert_text("/help");
    tab.press("Enter");
    tab.wait_for(role("article", "Answer to /help"));
    assert!(!tab.text().contains("Editing a message"));
    tab.click(role("button", "Dismiss the answer"));
    press("chat-asked", "Edit");
    tab.shows("Editing a message");
    tab.press("Control+a");
    tab.type_text("$ cat one.txt || echo none");
    tab.press("Enter");
    // The run has created a file, which can be removed with it.
    tab.wait_for(role("dialog", "Make a new version?"));
    tab.shows("The earlier version and what followed it are kept.");
    tab.shows("one.txt");
    tab.audit("the question before a turn is replaced");
    tab.click(role("button", "Undo 1 file change"));
    answered(&["$ cat one.txt || echo none"]);
    tab.wait_of(css(".chat-reply"), "it.textContent.includes('none')");
    versions("Version 2 of 2");
    tab.audit("chat with versions");
    press("chat-reply", "Regenerate");
    // Another answer to the same text is not another version of the message.
    versions("Answer 2 of 2");
    versions("Version 2 of 2");
    answered(&["$ cat one.txt || echo none"]);
    tab.audit("chat with answers");
    choose("chat-asked", "Send again");
    answered(&["$ cat one.txt || echo none", "$ cat one.txt || echo none"]);
    // The other answer has no follow-up messages; returning to this one restores its own.
    tab.click(role("button", "Previous answer"));
    versions("Answer 1 of 2");
    answered(&["$ cat one.txt || echo none"]);
    tab.wait("the other way is in focus", || tab.focused() == "button \"Next answer\"");
    assert!(!tab.has(role("button", "Jump to latest")), "all of it is in view");
    tab.click(role("button", "Previous version"));
    answered(&["$ echo one > one.txt; cat one.txt"]);
    tab.reload();
    versions("Version 1 of 2");
    tab.click(role("button", "Next version"));
    answered(&["$ cat one.txt || echo none", "$ cat one.txt || echo none"]);
    versions("Answer 2 of 2");
    // Both answers are shown side by side, the older one first, with a link back to the chat.
    tab.click(role("link", "Compare this answer with the one before"));
    tab.wait_for(role("heading", "Two runs compared"));
    tab.wait_for(css(".trace-sides a.mono"));
    let ids = tab
        .eval_on(css(".trace"), "[...it.querySelectorAll('.trace-sides a.mono')].map((one) => one.innerText.trim())");
    assert!(ids[0].as_str().unwrap() < ids[1].as_str().unwrap(), "{ids}");
    for side in ["Answer A", "Answer B"] {
        tab.wait_of(role("region", side), "it.innerText.includes('none')");
    }
    assert!(!tab.text().contains("under way"), "both have ended");
    tab.click(role("link", "Back to the chat"));
    answered(&["$ cat one.txt || echo none", "$ cat one.txt || echo none"]);
}
