//! Cards in Telegram and ntfy: who may press a button, the effect of a press, and the text afterwards.

use super::bot_api::{BotApi, Sent};
use super::ntfy::Ntfy;
use super::telegram::{ADA, BOB, CAROL, pair, start, talking_with};
use crate::crash::store;
use crate::harness::{Home, wait_for, wait_until};
use crate::mcp::runs;
use crate::mcp::stand_in::{Era, StandIn};
use crate::model_server::ModelServer;
use crate::served::{Served, ask};
use crate::web::Web;
use serde_json::{Value, json};

/// A bot whose owner is Ada, and a model that plans a request for each path.
fn planned(api: &BotApi, web: &Web, paths: &[&str]) -> (ModelServer, Home) {
    let routing = json!({ "effort": "high", "categories": [], "tool_need": 1, "goal": "rain", "durable": false });
    let fetch = |path: &&str| json!({ "type": "skill", "skill": "fetch", "args": { "url": web.url(path) } });
    let message = json!({ "type": "msg", "detail": "say what it says", "notify": true });
    let tasks: Vec<Value> = paths.iter().map(fetch).chain([message.clone()]).collect();
    let plan = |tasks: Vec<Value>| json!({ "goal": "rain", "tasks": tasks }).to_string();
    let (server, home) = talking_with(
        api,
        &json!([
            { "role": "router", "text": routing.to_string() }, { "role": "planner", "text": plan(tasks) },
            { "role": "planner", "text": plan(vec![message]) }, { "role": "worker", "text": "That is all." },
            { "role": "titler", "text": "Rain" },
        ]),
    );
    web.is_asked_for(&home);
    (server, home)
}

/// The same with the built-in rules, which fetch on request.
fn without_a_model(api: &BotApi, web: &Web) -> Home {
    let home = Home::new();
    home.config(&super::telegram::config(api, ""));
    web.is_asked_for(&home);
    home
}

/// The message with the buttons of a card.
fn card(api: &BotApi) -> Sent {
    wait_for("a card with buttons", || api.shown().into_iter().rev().find(|sent| !sent.buttons().is_empty()))
}

fn labels(api: &BotApi, message: i64) -> Vec<String> {
    let shown = api.shown();
    let found = shown.iter().find(|sent| sent.id == message).expect("the message is there");
    found.buttons().into_iter().map(|(label, _)| label).collect()
}

/// The text of a message once its buttons are gone.
fn decided(api: &BotApi, message: i64) -> String {
    wait_until("the buttons to be gone", || labels(api, message).is_empty());
    api.shown().into_iter().find(|sent| sent.id == message).unwrap().text
}

/// Waits until everything was sent: a delivery interrupted by a kill would be sent again as another message.
fn all_is_sent(home: &Home) {
    let pending = "SELECT count(*) FROM outbox WHERE state = 'pending'";
    wait_until("all to be sent", || store(home).query_row(pending, (), |row| row.get::<_, i64>(0)).unwrap() == 0);
}

fn state(served: &Served, id: i64) -> Value {
    served.get(&format!("/approvals/{id}"))["state"].clone()
}

#[test]
fn a_card_is_accepted_with_one_press() {
    let (api, web) = (BotApi::open(), Web::start());
    let (_server, home) = planned(&api, &web, &["a"]);
    let served = start(&home);
    pair(&home, &api, ADA, &["--owner"]);
    api.write(ADA, "will it rain?");
    let asked = card(&api);
    assert_eq!(labels(&api, asked.id), ["Accept", "Refuse"]);
    assert!(asked.text.contains(&web.address) && asked.text.contains("/approve 1"), "{}", asked.text);
    assert_eq!(web.asked(), [""; 0], "nothing goes out before");
    let press = api.press(ADA, "Accept");
    wait_until("the answer", || api.count("That is all.") == 1);
    assert_eq!(web.asked(), ["/a"]);
    wait_until("the press to be answered", || api.answer_to(&press).is_some());
    assert_eq!(api.answer_to(&press).unwrap(), "Approval 1: accepted, by channel.bot.");
    let text = decided(&api, asked.id);
    assert!(text.ends_with("Approval 1: accepted, by channel.bot.") && text.contains(&web.address), "{text}");
    assert_eq!(state(&served, 1), "answered");
}

#[test]
fn some_of_a_card_are_ticked_and_the_others_refused() {
    let (api, web) = (BotApi::open(), Web::start());
    let (_server, home) = planned(&api, &web, &["a", "b", "c"]);
    let _served = start(&home);
    pair(&home, &api, ADA, &["--owner"]);
    api.write(ADA, "will it rain?");
    let asked = card(&api).id;
    let none = ["Accept all", "Refuse", "☐ 1", "☐ 2", "☐ 3"];
    assert_eq!(labels(&api, asked), none);
    let answer = |press: &str| wait_for("an answer to the press", || api.answer_to(press));
    // Telegram does not show the tick, so the answer must not claim it.
    api.refuse("editMessageReplyMarkup", 502, "Bad Gateway", None);
    assert_eq!(answer(&api.press(ADA, "☐ 1")), "The buttons could not be changed; press again.");
    assert_eq!((labels(&api, asked), api.refusals_left()), (none.map(str::to_owned).to_vec(), 0));
    assert_eq!(answer(&api.press(ADA, "☐ 1")), "1 of 3 ticked.");
    assert_eq!(labels(&api, asked), ["Accept 1", "Refuse", "☑ 1", "☐ 2", "☐ 3"]);
    // A press that the service repeats, and a button pressed twice.
    let data = |label: &str| card(&api).buttons().into_iter().find(|(text, _)| text == label).unwrap().1;
    let third = data("☐ 3");
    api.press_data(ADA, ADA, asked, &third);
    let again = api.press_data(ADA, ADA, asked, &third);
    assert_eq!(answer(&again), "2 of 3 ticked.");
    assert_eq!(labels(&api, asked), ["Accept 1, 3", "Refuse", "☑ 1", "☐ 2", "☑ 3"]);
    api.press(ADA, "☑ 3");
    wait_until("the tick to be gone", || labels(&api, asked)[0] == "Accept 1");
    api.press(ADA, "☐ 2");
    wait_until("another tick", || labels(&api, asked)[0] == "Accept 1, 2");
    assert_eq!(web.asked(), [""; 0]);
    api.press(ADA, "Accept 1, 2");
    wait_until("the answer", || api.count("That is all.") == 1);
    let mut paths = web.asked();
    paths.sort();
    assert_eq!(paths, ["/a", "/b"]);
    assert!(decided(&api, asked).ends_with("Approval 1: accepted 2 of 3 (1, 2), by channel.bot."));
}

#[test]
fn a_press_that_is_not_the_owner_s_or_not_of_now_changes_nothing() {
    let (api, web) = (BotApi::open(), Web::start());
    let home = without_a_model(&api, &web);
    let served = start(&home);
    pair(&home, &api, ADA, &["--owner"]);
    pair(&home, &api, BOB, &[]);
    api.write(ADA, &format!("fetch url={}", web.url("a")));
    let asked = card(&api);
    let [accept, refuse] = [0, 1].map(|index| asked.buttons()[index].1.clone());
    let others = api.shown().len();
    // Presses by a permitted sender who is not the owner, by a stranger, in a group, and by somebody else in the owner's chat.
    let bob = api.press_data(BOB, BOB, asked.id, &accept);
    api.press_data(CAROL, CAROL, asked.id, &accept);
    api.press_data(ADA, -100_200, asked.id, &accept);
    api.press_data(BOB, ADA, asked.id, &accept);
    wait_until("the answer to Bob", || api.answer_to(&bob).is_some());
    assert_eq!(api.answer_to(&bob).unwrap(), "Only the owner of this kiso can choose.");
    // Data that no button has, for another card or for none.
    let odd = ["99.accept.0", "x", "1.accept.zz", "/approve 1", "1.accept.ff0", "1.tick.1.1"];
    let presses = odd.map(|data| api.press_data(ADA, ADA, asked.id, data));
    let said = presses.map(|press| wait_for("an answer", || api.answer_to(&press)));
    assert!(said[0].contains("no approval 99 here"), "{said:?}");
    assert!(said[1..].iter().all(|said| said == "This is not offered any more."), "{said:?}");
    served.send("elsewhere", &format!("fetch url={}", web.url("b")));
    wait_until("a card elsewhere", || served.get("/approvals?session=elsewhere")["items"][0].is_object());
    let elsewhere = served.get("/approvals?session=elsewhere")["items"][0]["id"].as_i64().unwrap();
    let foreign = api.press_data(ADA, ADA, asked.id, &format!("{elsewhere}.accept.0"));
    assert!(wait_for("an answer", || api.answer_to(&foreign)).contains("no approval"));
    assert_eq!((state(&served, 1), state(&served, elsewhere)), (json!("pending"), json!("pending")));
    assert_eq!(web.asked(), [""; 0]);
    assert_eq!(api.shown().len(), others, "no code and no message came of it: {:?}", api.texts());
    // A decision is final, whatever is pressed later.
    api.press(ADA, "Refuse");
    assert!(decided(&api, asked.id).ends_with("Approval 1: refused, by channel.bot."));
    for data in [&accept, &refuse] {
        let late = api.press_data(ADA, ADA, asked.id, data);
        assert_eq!(wait_for("an answer", || api.answer_to(&late)), "Approval 1: refused, by channel.bot.");
    }
    wait_until("the answer", || api.count("refused by the user") > 0);
    assert_eq!(web.asked(), [""; 0]);
}

#[test]
fn a_card_that_is_over_shows_it_wherever_that_was_decided() {
    let (api, web) = (BotApi::open(), Web::start());
    let home = without_a_model(&api, &web);
    let mut served = start(&home);
    pair(&home, &api, ADA, &["--owner"]);
    let asks = |served: &Served, path: &str| {
        let before = api.shown().len();
        served.send("channel.bot", &format!("fetch url={}", web.url(path)));
        let is_new = |sent: &Sent| !sent.buttons().is_empty();
        wait_for("a card", || api.shown().split_off(before).into_iter().find(is_new))
    };
    let first = asks(&served, "a");
    // The card is answered while no daemon runs.
    all_is_sent(&home);
    served.kill();
    home.kiso(&["approval", "accept", "1"]).ok();
    served = start(&home);
    assert!(decided(&api, first.id).ends_with("Approval 1: accepted, by command line."));
    let second = asks(&served, "b");
    served.request("POST", "/approvals/2", Some("{\"accept\":[]}")).expect(200);
    assert!(decided(&api, second.id).contains("Approval 2: refused"));
    let third = asks(&served, "c");
    api.write(ADA, "/cancel");
    assert!(decided(&api, third.id).ends_with("Approval 3: not needed any more."));
    let fourth = asks(&served, "d");
    // Telegram is unavailable for a while, and then the card has expired.
    api.refuse("editMessageText", 502, "Bad Gateway", None);
    api.refuse("editMessageText", 429, "Too Many Requests: retry after 1", Some(1));
    store(&home)
        .execute("UPDATE approvals SET expires_ms = 1, card = json_set(card, '$.expires_ms', 1) WHERE id = 4", ())
        .unwrap();
    let late = api.press_data(ADA, ADA, fourth.id, &fourth.buttons()[0].1);
    assert_eq!(wait_for("an answer", || api.answer_to(&late)), "Approval 4: nobody answered in time.");
    assert!(decided(&api, fourth.id).ends_with("Approval 4: nobody answered in time."));
    let fifth = asks(&served, "e");
    api.delete(fifth.id);
    served.request("POST", "/approvals/5", Some("{\"accept\":[]}")).expect(200);
    wait_until("nothing to be shown any more", || {
        store(&home).query_row("SELECT count(*) FROM channel_offers", (), |row| row.get::<_, i64>(0)).unwrap() == 0
    });
    let edits = api.calls("editMessageText");
    let polls = api.polls();
    wait_until("two further polls", || api.polls() > polls + 2);
    assert_eq!(api.calls("editMessageText"), edits, "what is gone is not tried again");
    assert_eq!(web.asked(), ["/a"]);
}

/// If the daemon is killed around a press, the press takes effect once, and nothing else does.
#[test]
fn a_press_is_done_once_however_often_the_daemon_is_killed() {
    let (api, web) = (BotApi::open(), Web::start());
    let (_server, home) = planned(&api, &web, &["a", "b"]);
    let mut served = start(&home);
    pair(&home, &api, ADA, &["--owner"]);
    api.write(ADA, "will it rain?");
    let asked = card(&api).id;
    all_is_sent(&home);
    served.kill();
    // The button is pressed while no daemon runs, and Telegram accepts no answer when one does.
    let tick = api.press(ADA, "☐ 1");
    api.forget_press(&tick);
    served = start(&home);
    wait_until("the tick", || labels(&api, asked)[0] == "Accept 1");
    api.confirm_nothing();
    api.press(ADA, "Accept 1");
    wait_until("the answer to the card", || state(&served, 1) == "answered");
    served.kill();
    served = start(&home);
    wait_until("the answer", || api.count("That is all.") >= 1);
    let polls = api.polls();
    wait_until("two further polls", || api.polls() > polls + 2);
    // A request interrupted by a kill is not sent again; an interrupted answer is.
    assert!(web.asked().len() <= 1 && web.asked().iter().all(|path| path == "/a"), "{:?}", web.asked());
    assert_eq!(served.get("/approvals/1")["answer"]["accepted"], json!([1]));
    assert!(decided(&api, asked).ends_with("Approval 1: accepted 1 of 2 (1), by channel.bot."));
    assert!(api.count("That is all.") <= 2);
}

/// A hook's card goes to the channel that gets the hook's answers, and can be answered there.
#[test]
fn a_card_of_a_hook_is_answered_where_its_answers_go() {
    let (api, web) = (BotApi::open(), Web::start());
    let (_server, home) = planned(&api, &web, &["a"]);
    let hook =
        "[hooks.rain]\nauth = \"token\"\ntemplate = \"Will it rain in {body.city}?\"\nsession = \"channel.bot\"\n";
    let config = std::fs::read_to_string(home.path().join("config.toml")).unwrap();
    home.config(&format!("{config}{hook}"));
    let served = start(&home);
    pair(&home, &api, ADA, &["--owner"]);
    let secret = home.kiso(&["connect", "hook", "secret", "rain"]).ok().stdout.trim().to_owned();
    let event = Some("{\"city\":\"Oslo\"}");
    ask(&served.address, Some(&secret), "POST", "/hooks/rain", event).unwrap().expect(202);
    let asked = card(&api);
    assert!(asked.text.contains(&web.address), "{}", asked.text);
    api.press(ADA, "Accept");
    wait_until("the answer", || api.count("That is all.") == 1);
    assert_eq!(web.asked(), ["/a"]);
}

/// A daemon whose owner writes in ntfy's topic alpha, with a card for a request there. Returns the card.
fn asked_in_ntfy(ntfy: &Ntfy, web: &Web, config: &str) -> (Home, Served, Value) {
    let home = Home::new();
    home.config(config);
    web.is_asked_for(&home);
    let served = Served::start_with(&home, &[], |command| {
        command.env("PHONE_TOKEN", super::TOKEN);
    });
    super::pair(&home, ntfy, &["--owner"]);
    ntfy.publish("alpha", &format!("fetch url={}", web.url("a")));
    let card = wait_for("a card", || {
        ntfy.shown().into_iter().find(|shown| shown["message"].as_str().unwrap_or_default().contains("/approve 1"))
    });
    (home, served, card)
}

/// The message in place of a card after the decision.
fn decided_in_ntfy(ntfy: &Ntfy, card: &Value) -> Value {
    wait_until("the card to show it", || ntfy.count("Approval 1: accepted, by message.") == 1);
    let now = ntfy.shown().into_iter().find(|shown| shown["sequence_id"] == card["sequence_id"]).unwrap();
    assert_eq!((&now["message"], &now["actions"]), (&json!("Approval 1: accepted, by message."), &Value::Null));
    now
}

/// ntfy gets buttons if every reader of the card may know their content.
#[test]
fn ntfy_has_buttons_that_say_nothing_secret() {
    let (ntfy, web) = (Ntfy::open(), Web::start());
    let (_home, served, card) = asked_in_ntfy(&ntfy, &web, &super::config(&ntfy, ""));
    let actions = card["actions"].as_array().expect("buttons").clone();
    assert_eq!(
        actions.iter().map(|action| action["label"].as_str().unwrap()).collect::<Vec<_>>(),
        ["Accept", "Refuse"]
    );
    assert_eq!(web.asked(), [""; 0]);
    ntfy.press(&actions[0]);
    wait_until("the answer", || ntfy.count("Rain in Oslo") == 1);
    decided_in_ntfy(&ntfy, &card);
    ntfy.press(&actions[1]);
    wait_until("the refusal of a late press", || {
        ntfy.count("Nothing was changed: approval 1 waits for no answer") == 1
    });
    assert_eq!((state(&served, 1), web.asked()), (json!("answered"), vec!["/a".to_owned()]));
}

/// A button would need the channel's token, or show the reader of the answers where the owner writes.
#[test]
fn ntfy_has_no_buttons_where_they_would_say_something_secret() {
    let web = Web::start();
    for (token, topic) in [(Some(super::TOKEN), "alpha"), (None, "beta")] {
        let ntfy = Ntfy::open();
        ntfy.token(token);
        let more = token.map_or("", |_| "token_env = \"PHONE_TOKEN\"\n");
        let options = format!("\"topic=alpha\", \"reply_topic={topic}\"");
        let config = super::config(&ntfy, more).replace("\"topic=alpha\"", &options);
        let (_home, _served, card) = asked_in_ntfy(&ntfy, &web, &config);
        assert_eq!((&card["topic"], &card["actions"]), (&json!(topic), &Value::Null));
        ntfy.publish("alpha", "/approve 1");
        wait_until("the answer", || ntfy.count("Rain in Oslo") == 1);
        assert_eq!(decided_in_ntfy(&ntfy, &card)["topic"], topic);
        let of_answers = |message: &&Value| message["topic"] == "beta";
        let named = ntfy.shown().iter().filter(of_answers).any(|message| message.to_string().contains("alpha"));
        assert!(!named, "who reads the answers learns nothing of where the owner writes: {:?}", ntfy.shown());
    }
}

#[test]
fn a_card_in_ntfy_shows_what_was_decided_however_much_was_said_since() {
    let (ntfy, web) = (Ntfy::open(), Web::start());
    let config = super::config(&ntfy, "per_minute = 1000\n");
    let (_home, _served, card) = asked_in_ntfy(&ntfy, &web, &config);
    // More senders than the number whose delivery positions are remembered.
    for _ in 0..101 {
        ntfy.publish("alpha", "/approve one");
    }
    wait_until("all of them to be answered", || ntfy.count("Write /approve NUMBER") == 101);
    ntfy.publish("alpha", "/approve 1");
    decided_in_ntfy(&ntfy, &card);
}

/// Content that may not leave kiso is not asked about in a channel: nobody can accept a card that they cannot see.
#[test]
fn a_card_that_may_not_be_shown_has_no_buttons() {
    let (api, oracle) = (BotApi::open(), StandIn::start(Era::Modern));
    let tables = format!("[mcp.oracle]\nurl = \"{}\"\nallow = [\"ask\"]\nresults = \"nobody\"\n", oracle.url);
    let home = runs::allowed(&tables);
    let tasks =
        runs::plan(&[runs::ask(&json!({ "text": "why" })), runs::ask(&json!({ "text": { "from": 1 } })), runs::say()]);
    let script = json!({ "role": "planner", "reply": tasks }).to_string() + "\n";
    let script = home.file("script.jsonl", script);
    let config = super::telegram::config(&api, &tables);
    home.config(&config.replace("model = \"reflex\"", &format!("model = \"scripted:{}\"", script.display())));
    let served = start(&home);
    pair(&home, &api, ADA, &["--owner"]);
    api.write(ADA, "what is the answer?");
    let told =
        wait_for("a message", || api.shown().into_iter().find(|sent| sent.text.contains("may not be sent here")));
    assert_eq!((told.buttons().len(), state(&served, 1)), (0, json!("pending")));
    assert!(api.texts().iter().all(|text| !text.contains("says 42")), "{:?}", api.texts());
    assert!(served.get("/approvals?session=channel.bot")["items"][0].to_string().contains("the oracle says 42"));
}
