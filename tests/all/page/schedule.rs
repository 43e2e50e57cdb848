//! The schedule: added by a form, run, paused and deleted; its replies are marked unread.

use super::browser::{css, role};
use super::stage::Stage;
use super::themes::audit_in_both;
use serde_json::{Value, json};

#[track_caller]
fn schedules(stage: &Stage) -> Vec<Value> {
    stage.daemon.get("/schedules")["items"].as_array().unwrap().clone()
}

#[test]
fn a_schedule_is_added_by_a_form() {
    let Some(stage) = Stage::reflex() else { return };
    let tab = &stage.tab;
    tab.expects("answer: 400 /schedules").expects("answer: 409 /schedules");
    stage.open("kitchen");
    tab.goto(&stage.url("#/schedule"));
    tab.shows("No schedules yet");
    audit_in_both(tab, "an empty schedule");
    tab.click(role("button", "Add a schedule"));
    tab.wait("the name has the focus", || tab.focused() == "textbox \"Name\"");
    // A dialog's scroll bar is a part of the dialog.
    let pressed = |x: &str| {
        let at = format!("{{ clientX: {x}, clientY: it.getBoundingClientRect().top + 5, bubbles: true }}");
        tab.eval_on(css("dialog"), &format!("it.dispatchEvent(new MouseEvent('mousedown', {at}))"));
    };
    pressed("it.getBoundingClientRect().right - 5");
    tab.type_text("t");
    assert_eq!(tab.eval_on(role("textbox", "Name"), "it.value"), "t");
    pressed("it.getBoundingClientRect().right + 5");
    tab.wait_gone(role("dialog", ""));
    tab.click(role("button", "Add a schedule"));
    // Missing values are reported at their fields, without a request to the daemon.
    tab.press("Enter");
    for name in ["Name", "Message"] {
        tab.wait_of(role("textbox", name), "it.ariaInvalid === 'true' && document.getElementById(it.getAttribute('aria-describedby').split(' ').at(-1))?.innerText.length > 3");
    }
    assert!(!tab.requests_to("/schedules").iter().any(|request| request.method == "POST"));
    tab.focus(role("textbox", "Name"));
    tab.insert_text("tea");
    tab.focus(role("textbox", "Message"));
    tab.insert_text("$ echo tea is ready");
    // The daemon's message about an invalid expression is shown at its field.
    tab.eval_on(
        role("combobox", "How often"),
        "(it.value = 'cron', it.dispatchEvent(new Event('change', { bubbles: true })))",
    );
    tab.focus(role("textbox", "Cron expression"));
    tab.insert_text("61 8 * * *");
    tab.click(role("button", "Add schedule"));
    tab.wait_of(role("textbox", "Cron expression"), "it.ariaInvalid === 'true' && document.activeElement === it");
    let wrong = json!({ "name": "tea", "when": "61 8 * * *", "message": "$ echo tea is ready" }).to_string();
    let wrong = stage.daemon.request("POST", "/schedules", Some(&wrong)).expect(400)["error"]["message"].clone();
    tab.wait_of(css("#schedule-when"), &format!("it.innerText.includes({wrong})"));
    audit_in_both(tab, "a schedule with a mistake");
    assert_eq!(schedules(&stage), Vec::<Value>::new());
    tab.eval_on(role("textbox", "Cron expression"), "it.select()");
    tab.insert_text("30 8 * * MON-FRI");
    tab.wait_of(css("#schedule-when"), "it.innerText.includes('Monday to Friday at 8:30 AM')");
    // Replies go to a new chat named after the schedule, unless another one is chosen.
    let chosen = tab.eval_on(role("combobox", "Send replies to"), "it.selectedOptions[0].text");
    assert_eq!(chosen, "A new chat");
    assert_eq!(tab.eval_on(role("combobox", "Time zone"), "it.value"), "UTC");
    tab.click(role("button", "Add schedule"));
    tab.wait_gone(role("dialog", ""));
    tab.wait_of(
        role("list", "Schedules"),
        "['tea', '$ echo tea is ready', 'Monday to Friday at 8:30 AM', '30 8 * * MON-FRI', 'UTC', 'not yet'].every((part) => it.innerText.includes(part))",
    );
    let all = schedules(&stage);
    let made = ["name", "when", "message", "session", "zone", "paused"].map(|key| all[0][key].clone());
    assert_eq!(json!(made), json!(["tea", "30 8 * * MON-FRI", "$ echo tea is ready", "tea", "UTC", false]));
    // Names are unique.
    tab.click(role("button", "Add a schedule"));
    tab.focus(role("textbox", "Name"));
    tab.insert_text("tea");
    tab.focus(role("textbox", "Message"));
    tab.insert_text("again");
    tab.click(role("button", "Add schedule"));
    tab.wait_of(role("textbox", "Name"), "it.ariaInvalid === 'true' && document.activeElement === it");
    tab.press("Escape");
    tab.wait_gone(role("dialog", ""));
    assert_eq!(schedules(&stage).len(), 1);
}

#[test]
fn a_schedule_is_run_paused_resumed_and_deleted() {
    let Some(stage) = Stage::reflex() else { return };
    let tab = &stage.tab;
    let tea = json!({ "name": "tea", "when": "0 16 * * *", "message": "$ echo tea is ready", "session": "kitchen" });
    stage.daemon.request("POST", "/schedules", Some(&tea.to_string())).expect(201);
    stage.daemon.reply(stage.daemon.send("kitchen", "$ echo hello"));
    stage.open("kitchen");
    tab.shows("hello");
    let unread = |session: &str| {
        let all = stage.daemon.get("/sessions")["items"].as_array().unwrap().clone();
        all.into_iter().find(|one| one["name"] == session).map(|one| one["unread"].clone())
    };
    tab.wait("it is read", || unread("kitchen") == Some(json!(0)));
    tab.goto(&stage.url("#/schedule"));
    tab.wait_for(role("button", "Run now: tea"));
    audit_in_both(tab, "schedule");
    // Run now: the reply goes to its session, and is marked unread there.
    tab.click(role("button", "Run now: tea"));
    tab.shows("tea was sent");
    tab.wait_of(css(".lists-facts"), "it.innerText.includes('done')");
    tab.wait("the answer is unread", || unread("kitchen") == Some(json!(1)));
    tab.wait("the sidebar says so", || {
        tab.names("link").iter().any(|name| name.starts_with("$ echo hello") && name.ends_with(", 1 unread"))
    });
    // The schedule's internal session is not listed beside it.
    assert!(tab.names("link").iter().all(|name| !name.starts_with("schedule.tea")));
    audit_in_both(tab, "schedule with an answer that nobody has read");
    // Opening the session marks it as read.
    stage.open("kitchen");
    tab.shows("tea is ready");
    tab.wait("the answer is read", || unread("kitchen") == Some(json!(0)));

    tab.goto(&stage.url("#/schedule"));
    tab.click(role("button", "Pause tea"));
    tab.wait_for(role("button", "Resume tea"));
    tab.wait_of(role("list", "Schedules"), "it.innerText.includes('paused')");
    assert_eq!(schedules(&stage)[0]["paused"], true);
    tab.click(role("button", "Resume tea"));
    tab.wait_for(role("button", "Pause tea"));
    assert_eq!(schedules(&stage)[0]["paused"], false);
    // The result of the last time links to its run.
    tab.click(role("button", "History of tea"));
    tab.wait_for(role("dialog", "History of tea"));
    tab.wait_of(
        role("list", "Times"),
        "it.children.length === 1 && ['done', 'by hand'].every((part) => it.innerText.includes(part))",
    );
    audit_in_both(tab, "the times of a schedule");
    tab.press("Escape");
    tab.wait_gone(role("dialog", ""));
    tab.click(css(".lists-facts a[href^='#/run/']"));
    tab.wait_for(role("heading", "$ echo tea is ready"));
    // The schedule's own session is not listed, but its messages can be read.
    tab.goto(&stage.url("#/schedule"));
    tab.click(role("button", "Actions for tea"));
    tab.click(role("menuitem", "Open chat"));
    tab.wait_of(role("log", ""), "it.innerText.includes('tea is ready')");
    tab.click(css(".chat-head > .menu button"));
    tab.wait_for(role("menuitem", "Export"));
    tab.press("Escape");
    tab.goto(&stage.url("#/schedule"));
    // Deleting needs a confirmation.
    tab.click(role("button", "Actions for tea"));
    tab.click(role("menuitem", "Delete"));
    tab.wait_for(role("dialog", "Delete the schedule tea?"));
    tab.click(role("button", "Cancel"));
    tab.wait_gone(role("dialog", ""));
    assert_eq!(schedules(&stage).len(), 1);
    tab.click(role("button", "Actions for tea"));
    tab.click(role("menuitem", "Delete"));
    tab.wait_for(role("dialog", "Delete the schedule tea?"));
    tab.click(role("button", "Delete"));
    tab.shows("No schedules yet");
    assert_eq!(schedules(&stage), Vec::<Value>::new());
}

/// A schedule is edited in the form that created it; unchanged fields are not sent.
#[test]
fn a_schedule_is_edited() {
    let Some(stage) = Stage::reflex() else { return };
    let tab = &stage.tab;
    tab.expects("answer: 400 /schedules");
    let tea = json!({ "name": "tea", "when": "0 16 * * MON-FRI", "message": "$ echo tea", "session": "kitchen", "zone": "UTC" });
    stage.daemon.request("POST", "/schedules", Some(&tea.to_string())).expect(201);
    let before = schedules(&stage)[0].clone();
    tab.goto(&stage.url("#/schedule"));
    let edit = || {
        tab.click(role("button", "Actions for tea"));
        tab.click(role("menuitem", "Edit"));
        tab.wait_for(role("dialog", "Edit tea"));
    };
    edit();
    assert_eq!(tab.eval_on(role("textbox", "Message"), "it.value"), "$ echo tea");
    assert_eq!(tab.eval_on(role("combobox", "How often"), "it.value"), "workdays");
    assert_eq!(tab.eval_on(css("#schedule-time"), "it.value"), "16:00");
    assert!(!tab.has(role("textbox", "Name")), "the name is that of its session, and stays");
    audit_in_both(tab, "a schedule that is edited");
    // Without a change, nothing is sent.
    tab.click(role("button", "Save"));
    tab.wait_gone(role("dialog", ""));
    assert!(!tab.requests_to("/schedules/tea").iter().any(|request| request.method == "PATCH"));
    edit();
    tab.eval_on(role("textbox", "Message"), "it.select()");
    tab.focus(role("textbox", "Message"));
    tab.insert_text("$ echo coffee");
    tab.click(role("button", "Save"));
    tab.shows("tea was changed");
    tab.wait_of(role("list", "Schedules"), "it.innerText.includes('$ echo coffee')");
    let sent = tab.requests_to("/schedules/tea").into_iter().find(|request| request.method == "PATCH").unwrap();
    assert_eq!(sent.body.as_deref(), Some(r#"{"message":"$ echo coffee"}"#));
    let mut wanted = before.clone();
    wanted["message"] = json!("$ echo coffee");
    assert_eq!(schedules(&stage), [wanted]);
    // A refusal by the daemon is shown at its field, and nothing changes.
    edit();
    tab.eval_on(
        css("#schedule-preset"),
        "(it.value = 'cron', it.dispatchEvent(new Event('change', { bubbles: true })))",
    );
    tab.eval_on(role("textbox", "Cron expression"), "it.select()");
    tab.focus(role("textbox", "Cron expression"));
    tab.insert_text("61 * * * *");
    tab.click(role("button", "Save"));
    tab.wait_of(role("textbox", "Cron expression"), "it.ariaInvalid === 'true'");
    assert_eq!(schedules(&stage)[0]["when"], "0 16 * * MON-FRI");
    tab.eval_on(role("textbox", "Cron expression"), "it.select()");
    tab.insert_text("*/15 * * * *");
    tab.eval_on(
        role("combobox", "Send replies to"),
        "(it.value = '', it.dispatchEvent(new Event('input', { bubbles: true })))",
    );
    tab.click(role("button", "Save"));
    tab.wait_gone(role("dialog", ""));
    tab.wait_of(role("list", "Schedules"), "it.innerText.includes('every 15 minutes')");
    let changed = schedules(&stage)[0].clone();
    assert_eq!((&changed["when"], &changed["session"]), (&json!("*/15 * * * *"), &Value::Null));
    assert!(changed["next_ms"].as_i64() < before["next_ms"].as_i64().map(|ms| ms + 1));
}

/// A name with spaces is converted to a valid one, times are shown in words, and a session is chosen by its title.
#[test]
fn a_schedule_is_written_as_people_speak() {
    let Some(stage) = Stage::reflex() else { return };
    let tab = &stage.tab;
    tab.expects("answer: 400 /schedules");
    stage.daemon.reply(stage.daemon.send("chat-2026-11-28-1904", "$ echo the news of today"));
    tab.goto(&stage.url("#/schedule"));
    tab.click(role("button", "Add a schedule"));
    tab.focus(role("textbox", "Name"));
    tab.insert_text("Morning news: Zürich");
    tab.wait_of(css("#schedule-name-help"), "it.innerText.includes('morning-news-zurich')");
    tab.focus(role("textbox", "Message"));
    tab.insert_text("$ echo news");
    tab.eval_on(
        css("#schedule-preset"),
        "(it.value = 'words', it.dispatchEvent(new Event('change', { bubbles: true })))",
    );
    tab.focus(role("textbox", "When, in words"));
    tab.insert_text("every fortnight");
    tab.click(role("button", "Add schedule"));
    tab.wait_of(role("textbox", "When, in words"), "it.ariaInvalid === 'true' && document.activeElement === it");
    tab.eval_on(role("textbox", "When, in words"), "it.select()");
    tab.insert_text("every weekday at 8");
    let titles = tab.eval_on(role("combobox", "Send replies to"), "[...it.options].map((one) => one.text).join('|')");
    assert!(titles.as_str().unwrap().contains("$ echo the news of today"), "{titles}");
    tab.eval_on(
        role("combobox", "Send replies to"),
        "(it.value = 'chat-2026-11-28-1904', it.dispatchEvent(new Event('input', { bubbles: true })))",
    );
    audit_in_both(tab, "a schedule in words");
    tab.click(role("button", "Add schedule"));
    tab.wait_gone(role("dialog", ""));
    tab.wait_of(
        role("list", "Schedules"),
        "['every weekday at 8', '$ echo the news of today'].every((part) => it.innerText.includes(part))
           && !it.innerText.includes('chat-2026')",
    );
    let made = schedules(&stage)[0].clone();
    assert_eq!((&made["name"], &made["when"]), (&json!("morning-news-zurich"), &json!("every weekday at 8")));
}
