//! Sessions: found, renamed, exported, deleted, and marked if something in them is unread.

use super::browser::{Tab, css, role};
use super::fill;
use super::script::{server, talk, title};
use super::stage::{MESSAGE, QUICK, Stage};
use super::themes::audit_in_both;
use crate::harness::{Home, wait_until};
use serde_json::{Value, json};

#[test]
fn a_session_gets_its_title_and_can_be_renamed() {
    let server = server(&[talk("Paris.", ""), title("Capitals of Europe"), talk("Rome.", "")]);
    let Some(stage) = Stage::scripted(&server) else { return };
    let tab = &stage.tab;
    tab.goto(&stage.url(""));
    tab.click(role("button", "New chat"));
    tab.wait_for(MESSAGE);
    stage.say("What is the capital of France?");
    tab.shows("Paris.");
    tab.wait_for(role("link", "Capitals of Europe"));
    tab.wait_until("document.title.startsWith('Capitals of Europe')");
    // In place, by keyboard.
    tab.focus(role("link", "Capitals of Europe"));
    tab.press("F2");
    tab.wait("the title can be changed", || tab.focused().contains("Title of"));
    tab.press("Escape");
    tab.wait_for(role("link", "Capitals of Europe"));
    tab.press("F2");
    tab.wait("the title can be changed", || tab.focused().contains("Title of"));
    tab.insert_text("Capital <b>cities</b>");
    // Events of the session do not disturb the edit.
    stage.daemon.send("default", "And of Italy?");
    tab.shows("Rome.");
    tab.press("Enter");
    tab.wait_for(role("link", "Capital <b>cities</b>"));
    let sessions = stage.daemon.get("/sessions");
    assert_eq!(sessions["items"][0]["title"], "Capital <b>cities</b>");
    tab.click(role("button", "New chat"));
    tab.wait_until("location.hash.startsWith('#/s/chat-')");
    tab.wait_of(MESSAGE, "it === document.activeElement");
    super::script::finish(server);
}

/// Two hundred sessions: today's are shown at once, older ones in groups by time; one without a title
/// is called "New chat".
#[test]
fn many_sessions_stand_in_groups() {
    let fill = |home: &Home| {
        for n in 0..200 {
            fill::session(home, &format!("s{n}"), [format!("question {n}"), "answer".to_owned()]);
        }
        let now = "CAST(unixepoch() AS INTEGER) * 1000";
        crate::crash::store(home)
            .execute_batch(&format!(
                "UPDATE sessions SET active_ms = {now} - 86400000 * id, title = 'Talk ' || id;
                 UPDATE sessions SET title = NULL, name = 'chat-2026-11-28-1904', active_ms = {now} WHERE name = 's7';"
            ))
            .unwrap();
    };
    let Some(stage) = Stage::prepared(Home::new(), QUICK, fill) else { return };
    let tab = &stage.tab;
    stage.open("other");
    tab.wait_for(role("link", "New chat"));
    assert!(!tab.text().contains("chat-2026"), "{}", tab.text());
    let groups =
        tab.eval("JSON.stringify([...document.querySelectorAll('nav.sessions h2')].map((it) => it.innerText))");
    let groups: Vec<String> = serde_json::from_str(groups.as_str().unwrap()).unwrap();
    assert_eq!(groups[..4], ["Today", "Yesterday", "Previous 7 days", "Previous 30 days"], "{groups:?}");
    assert!(groups[4].split(' ').next_back().is_some_and(|year| year.parse::<u32>().is_ok()), "{groups:?}");
    // Most of the room belongs to the conversations: the other screens are one line until it is opened.
    let room = tab.eval("document.querySelector('nav.sessions').offsetHeight / innerHeight");
    assert!(room.as_f64().unwrap() > 0.5, "{room}");
    tab.audit("many sessions");
}

/// `?` lists the keys, unless it is typed into a text.
#[test]
fn a_question_mark_lists_the_keys() {
    let Some(stage) = Stage::reflex() else { return };
    let tab = &stage.tab;
    stage.open("keys");
    tab.focus(MESSAGE);
    tab.type_text("?");
    assert_eq!(tab.eval_on(MESSAGE, "it.value"), "?");
    assert!(!tab.has(role("dialog", "Keyboard shortcuts")));
    tab.goto(&stage.url("#/pills"));
    tab.wait_for(role("button", "New pill"));
    tab.focus(css("#main h1"));
    tab.type_text("?");
    tab.wait_for(role("dialog", "Keyboard shortcuts"));
    tab.audit("the keys");
    tab.shows("Begin a new chat");
    tab.press("Escape");
    tab.wait_gone(role("dialog", ""));
    tab.press("Control+Shift+o");
    tab.wait_until("location.hash.startsWith('#/s/chat-')");
}

#[test]
fn what_was_said_is_found_again() {
    let mut said: Vec<String> = (0..400).map(|n| format!("nothing much happened on day {n}")).collect();
    said[101] = "On that day a *zeppelin* landed in the garden.".to_owned();
    let fill = |home: &Home| {
        fill::session(home, "diary", said);
        fill::session(home, "zeppelins", ["what are they?".to_owned(), "Airships.".to_owned()]);
    };
    let Some(stage) = Stage::prepared(Home::new(), QUICK, fill) else { return };
    let tab = &stage.tab;
    stage.open("other");
    tab.press("Control+k");
    tab.wait("the search has the focus", || tab.focused().contains("Search"));
    tab.type_text("zeppelin");
    tab.wait_for(role("region", "Messages found"));
    tab.wait_for(role("region", "Chats found"));
    tab.wait_of(css("mark"), "it.textContent.toLowerCase() === 'zeppelin'");
    tab.audit("search");
    tab.click(css("a.sessions-hit"));
    tab.wait_until("location.hash.startsWith('#/s/diary/m/')");
    tab.wait_of(css("article.marked"), "it.textContent.includes('landed in the garden')");
    tab.wait_of(
        css("article.marked"),
        "it.getBoundingClientRect().top >= 0 && it.getBoundingClientRect().bottom <= innerHeight",
    );
    // This works repeatedly; after scrolling to the end, a reload does not return to the message.
    let in_view = "document.querySelector('article.marked')?.getBoundingClientRect().top >= 0";
    // The message is scrolled into view twice, the second time in the next frame.
    tab.eval("new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(() => done(true))))");
    tab.eval_on(role("log", "Messages"), "it.scrollTop = 0");
    tab.wait_until(&format!(
        "!({in_view}) || document.querySelector('article.marked').getBoundingClientRect().top > innerHeight"
    ));
    tab.click(css("a.sessions-hit"));
    tab.wait_of(
        css("article.marked"),
        "it.getBoundingClientRect().top >= 0 && it.getBoundingClientRect().bottom <= innerHeight",
    );
    tab.click(role("button", "Jump to latest"));
    tab.wait_until("location.hash === '#/s/diary'");
    tab.shows("on day 399");
    tab.press("Control+k");
    tab.wait("the search has the focus", || tab.focused().contains("Search"));
    tab.press("Escape");
    tab.wait_gone(role("region", "Messages found"));
}

#[test]
fn a_session_is_exported_and_deleted() {
    let fill = |home: &Home| {
        fill::session(home, "keep", ["hello".to_owned(), "Hello yourself.".to_owned()]);
        fill::session(home, "gone", ["forget".to_owned(), "Forgotten soon.".to_owned()]);
    };
    let Some(stage) = Stage::prepared(Home::new(), QUICK, fill) else { return };
    let tab = &stage.tab;
    let tea = json!({ "name": "tea", "when": "0 16 * * *", "message": "$ echo tea", "session": "gone" });
    stage.daemon.request("POST", "/schedules", Some(&tea.to_string())).expect(201);
    stage.open("gone");
    tab.shows("Forgotten soon.");
    tab.click(css(".chat-head > .menu button"));
    let export = tab.eval_on(role("menuitem", "Export"), "[new URL(it.href).pathname, it.download]");
    assert_eq!(export, json!(["/sessions/gone/export", "gone.jsonl"]));
    tab.audit("menu of a session");
    tab.press("End");
    assert!(tab.focused().contains("Delete"), "{}", tab.focused());
    tab.press("Enter");
    tab.wait_for(role("dialog", "gone"));
    // Schedules that report to the session are deleted with it, which may be unwanted.
    tab.shows("1 schedule with replies in it is deleted, too: “tea”.");
    tab.audit("question before a session is deleted");
    // Escape cancels.
    tab.press("Escape");
    tab.wait_gone(role("dialog", ""));
    assert_eq!(stage.daemon.get("/sessions")["items"].as_array().unwrap().len(), 2);
    tab.click(css(".chat-head > .menu button"));
    tab.click(role("menuitem", "Delete"));
    tab.click(role("button", "Delete"));
    tab.wait_until("location.hash === '#/s/keep'");
    tab.shows("Hello yourself.");
    tab.wait_gone(role("link", "gone"));
    stage.daemon.request("GET", "/sessions/gone/messages", None).refuses(404, "not_found");
}

/// A reply of background work marks its session as unread in every tab, until it is read.
#[test]
fn a_reply_of_scheduled_work_is_unread_until_it_is_read() {
    let Some(stage) = Stage::reflex() else { return };
    let tab = &stage.tab;
    stage.open("desk");
    let added = json!({ "name": "tick", "when": "@every 30d", "message": "$ echo it is time" });
    stage.daemon.request("POST", "/schedules", Some(&added.to_string())).expect(201);
    stage.daemon.request("POST", "/schedules/tick/run", None).expect(202);
    tab.wait_for(role("link", "unread"));
    tab.wait_until("document.title.startsWith('(1) ')");
    tab.audit("sessions with something unread");
    let other = tab.beside();
    other.goto(&stage.url("#/s/desk"));
    other.wait_for(role("link", "unread"));
    tab.click(role("link", "unread"));
    tab.shows("it is time");
    tab.wait_gone(role("link", "unread"));
    other.wait_gone(role("link", "unread"));
    wait_until("everything to be read", || {
        stage.daemon.get("/sessions")["items"].as_array().unwrap().iter().all(|one| one["unread"] == 0)
    });
}

/// Thousands of sessions are loaded during scrolling.
#[test]
fn many_sessions_are_fetched_as_they_are_needed() {
    let fill = |home: &Home| {
        let store = rusqlite::Connection::open(home.path().join("store.db")).unwrap();
        store
            .execute_batch(
                "WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 3000)
                 INSERT INTO sessions (name, created_ms, active_ms) SELECT 's' || i, i * 60000, i * 60000 FROM n",
            )
            .unwrap();
    };
    let Some(stage) = Stage::prepared(Home::new(), QUICK, fill) else { return };
    let tab = &stage.tab;
    stage.open("s3000");
    tab.wait_for(css("nav.sessions a[href='#/s/s2990']"));
    assert!(tab.count(css("nav.sessions a")) < 1_000, "not all at once");
    assert!(!tab.has(css("nav.sessions a[href='#/s/s2500']")));
    tab.wait("older ones come", || {
        tab.eval("document.querySelector('nav.sessions').scrollTop = 1e9");
        tab.has(css("nav.sessions a[href='#/s/s2500']"))
    });
}

/// A session opened by its address, far outside the loaded list, shows its title and time everywhere.
#[test]
fn a_session_that_is_not_listed_yet_is_called_by_its_title() {
    let fill = |home: &Home| {
        fill::session(home, "old", ["hello".to_owned(), "Hello yourself.".to_owned()]);
        let store = rusqlite::Connection::open(home.path().join("store.db")).unwrap();
        store
            .execute_batch(
                "UPDATE sessions SET title = 'The first of all' WHERE name = 'old';
                 WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 700)
                 INSERT INTO sessions (name, title, created_ms, active_ms)
                     SELECT 's' || i, 'Number ' || i, 1790000000000 + i * 60000, 1790000000000 + i * 60000 FROM n",
            )
            .unwrap();
    };
    let Some(stage) = Stage::prepared(Home::new(), QUICK, fill) else { return };
    let tab = &stage.tab;
    stage.open("old");
    tab.shows("Hello yourself.");
    let row = css("nav.sessions a[href='#/s/old']");
    tab.wait_of(row, "it.innerText.includes('The first of all')");
    tab.wait_of(row, "it.querySelector('time').dateTime.startsWith('2026-01-05')");
    tab.click(css(".chat-head > .menu button"));
    tab.click(role("menuitem", "Rename"));
    tab.wait_of(role("textbox", "Title"), "it.value === 'The first of all'");
    tab.press("Escape");
    tab.click(css(".chat-head > .menu button"));
    tab.click(role("menuitem", "Delete"));
    tab.wait_for(role("dialog", "Delete “The first of all”?"));
    tab.click(role("button", "Delete"));
    tab.shows("Deleted “The first of all”");
    stage.daemon.request("GET", "/sessions/old/messages", None).refuses(404, "not_found");
    assert_eq!(stage.daemon.get("/sessions?limit=500")["items"].as_array().unwrap().len(), 500);
}

/// The groups in the list of sessions, from top to bottom, each with its sessions.
#[track_caller]
fn groups(tab: &Tab) -> Value {
    tab.eval(
        "[...document.querySelectorAll('nav.sessions section')].map((it) => [it.getAttribute('aria-label'),
          ...[...it.querySelectorAll('.sessions-title')].map((title) => title.innerText)])",
    )
}

/// Chooses an item in the menu of a session's row.
#[track_caller]
fn act(tab: &Tab, session: &str, action: &str) {
    let row = format!("nav.sessions li:has(a[href='#/s/{session}'])");
    // The menu appears when the pointer is over the row.
    tab.hover(css(&format!("{row} > a")));
    tab.click(css(&format!("{row} .menu button")));
    tab.click(role("menuitem", action));
}

fn five(home: &Home) {
    for name in ["alpha", "beta", "gamma", "delta", "omega"] {
        fill::session(home, name, [format!("about {name}"), format!("All of {name}.")]);
        let store = rusqlite::Connection::open(home.path().join("store.db")).unwrap();
        store.execute("UPDATE sessions SET title = 'The ' || name WHERE name = ?1", [name]).unwrap();
    }
}

/// A pinned session stays above the others; an archived one is folded away, found by search, and can be restored.
#[test]
fn sessions_are_pinned_and_archived() {
    let Some(stage) = Stage::prepared(Home::new(), QUICK, five) else { return };
    let tab = &stage.tab;
    let placement = |name: &str| stage.daemon.get(&format!("/status/{name}"))["placement"].clone();
    stage.open("alpha");
    tab.shows("All of alpha.");
    let act = |session: &str, action: &str| act(tab, session, action);
    act("gamma", "Pin");
    tab.wait("it stands above the others", || groups(tab)[0] == json!(["Pinned", "The gamma"]));
    assert_eq!(placement("gamma"), "pinned");
    act("beta", "Archive");
    tab.wait("it is folded away", || {
        !groups(tab).to_string().contains("beta") && groups(tab).to_string().contains("Archived")
    });
    assert_eq!(placement("beta"), "archived");
    audit_in_both(tab, "a pinned and an archived session");
    // Also in another tab, and after a reload.
    let other = tab.beside();
    other.goto(&stage.url("#/s/alpha"));
    other.wait("another tab shows the same", || groups(&other) == groups(tab));
    tab.reload();
    tab.wait("it is the same after a reload", || groups(tab)[0] == json!(["Pinned", "The gamma"]));
    assert!(!groups(tab).to_string().contains("beta"));
    tab.click(role("button", "Archived"));
    tab.wait("what is archived is unfolded", || {
        groups(tab).as_array().unwrap().last() == Some(&json!(["Archived", "The beta"]))
    });
    tab.click(role("button", "Archived"));
    // By title and by message text.
    tab.press("Control+k");
    tab.wait("the search has the focus", || tab.focused().contains("Search"));
    tab.insert_text("beta");
    tab.wait_of(
        role("region", "Chats found"),
        "it.innerText.includes('The beta') && it.querySelector('[aria-label=archived]')",
    );
    tab.wait_of(role("region", "Messages found"), "it.innerText.includes('about beta')");
    tab.click(css("section[aria-label='Chats found'] a"));
    tab.shows("All of beta.");
    tab.press("Control+k");
    tab.wait("the search has the focus", || tab.focused().contains("Search"));
    tab.press("Escape");
    // An archived session that is open is visible in its group.
    tab.wait_of(css("section[aria-label=Archived] li.current"), "it.innerText.includes('The beta')");
    act("beta", "Unarchive");
    tab.wait("it is back", || !groups(tab).to_string().contains("Archived"));
    other.wait("in the other tab as well", || groups(&other) == groups(tab));
    act("gamma", "Unpin");
    tab.wait("no session is pinned", || !groups(tab).to_string().contains("Pinned"));
    assert_eq!((placement("beta"), placement("gamma")), (json!("listed"), json!("listed")));
}

/// Several selected sessions are deleted after one question that names them all; one with a running run stays.
#[test]
fn several_sessions_are_deleted_at_once() {
    let Some(stage) = Stage::prepared(Home::new(), QUICK, five) else { return };
    let tab = &stage.tab;
    stage.open("alpha");
    tab.shows("All of alpha.");
    let left = || {
        let items = stage.daemon.get("/sessions")["items"].as_array().unwrap().clone();
        let mut names: Vec<String> = items.iter().map(|one| one["name"].as_str().unwrap().to_owned()).collect();
        names.sort();
        names
    };
    act(tab, "alpha", "Select");
    tab.wait_of(role("checkbox", "The alpha"), "it.checked");
    tab.click(role("checkbox", "The beta"));
    tab.wait_of(role("group", "Selected chats"), "it.innerText.includes('2 selected')");
    audit_in_both(tab, "sessions that are selected");
    tab.click(role("button", "Stop selecting"));
    tab.wait_gone(role("checkbox", ""));
    act(tab, "alpha", "Select");
    tab.click(role("checkbox", "The beta"));
    tab.click(role("checkbox", "The delta"));
    tab.click(css(".sessions-selection button[aria-label=Delete]"));
    tab.wait_for(role("dialog", "Delete 3 chats?"));
    let named = tab.eval_on(css("dialog .dialog-list"), "[...it.children].map((one) => one.innerText.trim())");
    let mut named: Vec<&str> = named.as_array().unwrap().iter().map(|one| one.as_str().unwrap()).collect();
    named.sort_unstable();
    assert_eq!(named, ["The alpha", "The beta", "The delta"]);
    audit_in_both(tab, "the question before several sessions are deleted");
    tab.click(role("button", "Cancel"));
    tab.wait_gone(role("dialog", ""));
    assert_eq!(left().len(), 5, "nothing is done before it is confirmed");
    tab.click(css(".sessions-selection button[aria-label=Delete]"));
    tab.wait_for(role("dialog", "Delete 3 chats?"));
    tab.click(css("dialog footer button.danger"));
    tab.shows("Deleted 3 chats");
    tab.wait("they are gone", || left() == ["gamma", "omega"]);
    // The open session was deleted, too.
    tab.wait_until("['#/s/gamma', '#/s/omega'].includes(location.hash)");
    tab.wait_gone(role("group", "Selected chats"));
    tab.wait_gone(role("checkbox", ""));
    // A range, with Shift.
    for name in ["nu", "xi", "pi"] {
        stage.daemon.reply(stage.daemon.send(name, "$ echo here"));
    }
    // All of them: one that appears later would move the others away from the pointer.
    tab.wait("they are listed", || {
        ["nu", "xi", "pi"].iter().all(|name| tab.has(css(&format!("nav.sessions a[href='#/s/{name}']"))))
    });
    act(tab, "gamma", "Select");
    tab.click(role("checkbox", "The gamma"));
    tab.wait_of(role("group", "Selected chats"), "it.innerText.includes('0 selected')");
    assert_eq!(tab.eval_on(css(".sessions-selection button[aria-label=Archive]"), "it.disabled"), true);
    let boxes = "[...document.querySelectorAll('nav.sessions input')]";
    tab.eval(&format!("{boxes}[0].click()"));
    tab.eval(&format!(
        "{boxes}[2].dispatchEvent(new MouseEvent('click', {{ bubbles: true, cancelable: true, shiftKey: true }}))"
    ));
    tab.wait_of(role("group", "Selected chats"), "it.innerText.includes('3 selected')");
    tab.click(css(".sessions-selection button[aria-label=Archive]"));
    tab.wait("what is selected is archived", || {
        let items = stage.daemon.get("/sessions?placement=archived")["items"].as_array().unwrap().clone();
        let mut names: Vec<&str> = items.iter().map(|one| one["name"].as_str().unwrap()).collect();
        names.sort_unstable();
        names == ["nu", "pi", "xi"]
    });
    tab.wait_gone(role("checkbox", ""));
}
