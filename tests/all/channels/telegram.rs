//! Telegram: a real daemon, the Bot API on loopback, and people who press the wrong buttons.

use super::bot_api::{BotApi, TOKEN, now};
use super::{all_answered, asked, texts_by_role};
use crate::harness::{Home, wait_for, wait_until};
use crate::model_server::ModelServer;
use crate::served::Served;
use serde_json::{Value, json};
use std::process::Command;

pub(super) const ADA: i64 = 7_001;
pub(super) const BOB: i64 = 7_002;
pub(super) const CAROL: i64 = 7_003;

pub(super) fn config(api: &BotApi, more: &str) -> String {
    format!(
        "model = \"reflex\"\n[daemon]\ndebounce_ms = 20\n[channels.bot]\ncomponent = \"telegram\"\nurl = \"http://{}\"\n\
         token_env = \"BOT_TOKEN\"\nallow_private = true\npoll_s = 1\n{more}",
        api.address
    )
}

fn home(api: &BotApi, more: &str) -> Home {
    let home = Home::new();
    home.config(&config(api, more));
    home
}

pub(super) fn start(home: &Home) -> Served {
    start_as(home, TOKEN)
}

fn start_as(home: &Home, token: &str) -> Served {
    Served::start_with(home, &[], |command| {
        command.env("BOT_TOKEN", token);
    })
}

fn listed(home: &Home) -> Value {
    let environment = |command: &mut Command| {
        command.env("BOT_TOKEN", TOKEN);
    };
    home.kiso_with(&["--json", "connect", "channel", "list"], environment).ok().json()
}

fn trouble(home: &Home, with: &str) -> String {
    wait_for("the trouble", || listed(home)["error"].as_str().filter(|error| error.contains(with)).map(str::to_owned))
}

/// Pairs a person; `more` may make them the owner.
pub(super) fn pair(home: &Home, api: &BotApi, person: i64, more: &[&str]) {
    api.write(person, "/start");
    let code = wait_for("a pairing code", || {
        let shown = api.shown();
        let invitation = shown.iter().rev().find(|sent| sent.chat == person && sent.text.contains("allow bot"))?;
        Some(invitation.text.split("allow bot ").nth(1)?.split_whitespace().next()?.to_owned())
    });
    home.kiso(&[&["connect", "channel", "allow", "bot", code.as_str()], more].concat()).ok();
    wait_until("the welcome", || to(api, person).iter().any(|text| text == "You can write to kiso now."));
}

/// Messages to a person.
fn to(api: &BotApi, person: i64) -> Vec<String> {
    api.shown().into_iter().filter(|sent| sent.chat == person).map(|sent| sent.text).collect()
}

/// A stranger gets a code; groups and other bots are ignored. The owner has kiso's commands.
#[test]
fn a_stranger_is_paired_and_groups_and_bots_are_not_heard() {
    let api = BotApi::open();
    let home = home(&api, "");
    let person = json!({ "id": BOB, "is_bot": false, "first_name": "Bob" });
    let group = json!({ "id": -100_200, "type": "supergroup", "title": "All" });
    for message in [
        json!({ "chat": group, "from": person, "text": "/start@kiso_bot" }),
        json!({ "chat": group, "from": { "id": 1_087_968_824, "is_bot": true, "first_name": "Group" }, "text": "hi" }),
        json!({ "chat": { "id": BOB, "type": "private" }, "from": { "id": BOB, "is_bot": true, "first_name": "B" } }),
    ] {
        let mut message = message;
        (message["message_id"], message["date"]) = (1.into(), now().into());
        api.update(json!({ "message": message }));
    }
    api.update(json!({ "channel_post": { "message_id": 2, "date": now(), "chat": { "id": -5, "type": "channel" } } }));
    api.update(json!({ "my_chat_member": { "chat": { "id": ADA, "type": "private" } } }));
    // A message from before the channel existed.
    api.put(CAROL, json!({ "text": "/start", "date": now() - 86_400 }));
    let served = start(&home);
    pair(&home, &api, ADA, &["--owner"]);
    assert!(api.shown().iter().all(|sent| sent.chat == ADA), "{:?}", api.shown());
    assert_eq!(api.shown().len(), 2, "a code and a welcome");
    let sender = &listed(&home)["senders"][0];
    assert_eq!((&sender["sender"], &sender["name"]), (&json!(ADA.to_string()), &json!("Person7001")));
    api.write(ADA, "/start");
    wait_until("the help", || api.count("/status") == 1);
    api.write(ADA, "/status@kiso_bot");
    wait_until("the status", || api.shown().len() == 4);
    api.write(ADA, "$ echo it is $((6 * 7))");
    wait_until("the answer", || api.count("it is 42") == 1);
    wait_until("it is shown that something is being written", || api.calls("sendChatAction") == 1);
    assert_eq!(asked(&served, "channel.bot"), ["$ echo it is $((6 * 7))"]);
    api.write(BOB, "/status");
    wait_until("a code", || to(&api, BOB).len() == 1);
    assert!(to(&api, BOB)[0].contains("kiso connect channel allow bot"), "one who is let in is not yet two");
}

/// Only a limited number of strangers get a code, however often they write; and a code is valid for an hour.
#[test]
fn a_crowd_of_strangers_gets_so_many_codes() {
    let api = BotApi::open();
    let home = home(&api, "");
    let served = start(&home);
    for person in 8_001..=8_030 {
        api.write(person, "let me in");
        api.write(person, "let me in, please");
    }
    wait_until("the codes", || api.shown().len() == 20);
    let polls = api.polls();
    wait_until("two further polls", || api.polls() > polls + 2);
    let mut invited: Vec<i64> = api.shown().iter().map(|sent| sent.chat).collect();
    invited.dedup();
    assert_eq!((invited.len(), api.shown().len()), (20, 20), "one code each");
    assert_eq!(listed(&home)["senders"].as_array().unwrap().len(), 20);
    assert!(asked(&served, "channel.bot").is_empty(), "nothing of it was kept");
    // An hour later the codes are invalid, and others may ask for one.
    crate::crash::store(&home).execute("UPDATE channel_senders SET at_ms = 1", ()).unwrap();
    let text = api.shown()[0].text.clone();
    let code = text.split("allow bot ").nth(1).unwrap().split_whitespace().next().unwrap();
    home.kiso(&["connect", "channel", "allow", "bot", code]).exit(1).says(&["nobody has this code"]);
    pair(&home, &api, ADA, &["--owner"]);
}

/// The token is in the path of every request and nowhere else: not in a header, a log, a listing or a message, whatever the
/// service returns.
#[test]
fn the_token_is_put_into_the_path_and_shown_nowhere() {
    let key = TOKEN.split_once(':').unwrap().1;
    let api = BotApi::open();
    let home = home(&api, "");
    let served = start(&home);
    pair(&home, &api, ADA, &["--owner"]);
    for head in api.heads() {
        let (line, headers) = head.split_once("\r\n").unwrap();
        assert!(line.starts_with(&format!("POST /bot{TOKEN}/")), "{line}");
        assert!(!headers.contains(key) && !headers.to_lowercase().contains("authorization"), "{headers}");
    }
    // The component never has the token: it is removed from responses of the service.
    api.gossip();
    wait_until("what the service repeats", || !asked(&served, "channel.bot").is_empty());
    let told = asked(&served, "channel.bot").concat();
    assert!(told.contains("I was asked for /bot[token]*") && !told.contains(key), "{told}");
    api.echo();
    api.token("110201543:AAAnother_one_0123456789abcdefghi");
    let shown = trouble(&home, "401");
    assert!(shown.contains("Unauthorized") && shown.contains("[token]") && !shown.contains(key), "{shown}");
    let log = served.logs("messages cannot be received", 1);
    assert!(!log.contains(key), "{log}");
    api.write(ADA, "$ echo it is $((6 * 7))");
    assert!(served.get("/health").is_object(), "nothing else suffers");
    drop(served);
    let served = start_as(&home, "110201543:AAAnother_one_0123456789abcdefghi");
    wait_until("the answer", || api.count("it is 42") == 1);
    assert_eq!(api.count("it is 42"), 1);
    drop(served);
    let config = config(&api, "").replace("token_env = \"BOT_TOKEN\"\n", "");
    home.config(&config);
    home.kiso(&["serve", "--port", "0"]).says(&["[channels.bot] needs token_env"]);
    for entry in std::fs::read_dir(home.path()).unwrap().flatten().filter(|entry| entry.path().is_file()) {
        let bytes = std::fs::read(entry.path()).unwrap();
        let found = bytes.windows(key.len()).any(|window| window == key.as_bytes());
        assert!(!found, "{} has the token", entry.path().display());
    }
}

/// A daemon that is killed between receipt and answer loses and repeats nothing.
#[test]
fn a_daemon_that_is_killed_loses_and_repeats_nothing() {
    let api = BotApi::open();
    let home = home(&api, "");
    // Two kills may happen at the same step of one run, which would then wait for a person.
    home.config(&config(&api, "").replace("[daemon]\n", "[daemon]\nhold_after = 1000\n"));
    let mut served = start(&home);
    pair(&home, &api, ADA, &["--owner"]);
    let paired = api.shown().len();
    for round in 0..3 {
        // Nothing is sent at the moment of the kill: Telegram has no id for a sent message, and cannot recognize a repetition.
        for _ in 0..50 {
            api.refuse("sendMessage", 502, "Bad Gateway", None);
        }
        for n in 0..3 {
            api.write(ADA, &format!("$ echo answer-$(({round} * 10 + {n}))"));
        }
        wait_until("a message of the round", || asked(&served, "channel.bot").len() > round * 3);
        served.kill();
        api.accept_all();
        served = start(&home);
        wait_until("all of the round", || asked(&served, "channel.bot").len() == (round + 1) * 3);
    }
    let items = served.get("/sessions/channel.bot/messages?limit=500")["items"].as_array().unwrap().clone();
    let mine = items.iter().filter(|item| item["role"] == "user");
    mine.for_each(|item| drop(served.reply(item["id"].as_i64().unwrap())));
    let mut questions = asked(&served, "channel.bot");
    questions.sort();
    questions.dedup();
    assert_eq!(questions.len(), 9, "each once: {questions:?}");
    // An answer reports interrupted work.
    let replies = texts_by_role(&served, "channel.bot", "assistant");
    let shown = |reply: &String| api.texts().iter().filter(|text| *text == reply).count();
    wait_until("every answer", || replies.iter().all(|reply| shown(reply) > 0));
    // Repeated messages would arrive now.
    let polls = api.polls();
    wait_until("two further polls", || api.polls() > polls + 2);
    for reply in &replies {
        let written = replies.iter().filter(|other| *other == reply).count();
        assert_eq!(shown(reply), written, "{reply}: {:?}", api.texts());
    }
    // The number of answers depends on which questions wait at the same time: those are answered together.
    assert!(!replies.is_empty() && api.shown().len() > paired);
}

/// A message that Telegram repeats, or that somebody edits, is not a new message.
#[test]
fn what_comes_again_or_is_edited_is_answered_once() {
    let api = BotApi::open();
    let home = home(&api, "");
    let served = start(&home);
    pair(&home, &api, ADA, &["--owner"]);
    let id = api.write(ADA, "$ echo one-$((1 + 1))");
    wait_until("the answer", || api.count("one-2") == 1);
    let edited = json!({
        "message_id": id, "date": now(), "edit_date": now(), "text": "$ echo edited-$((1 + 1))",
        "from": { "id": ADA, "is_bot": false, "first_name": "A" }, "chat": { "id": ADA, "type": "private" },
    });
    // The second is sent to bots that subscribed to edits.
    api.update(json!({ "message": edited }));
    api.update(json!({ "edited_message": edited }));
    api.confirm_nothing();
    let polls = api.polls();
    wait_until("two further polls", || api.polls() > polls + 2);
    api.write(ADA, "$ echo last-$((1 + 1))");
    wait_until("the last answer", || api.count("last-2") == 1);
    assert_eq!(asked(&served, "channel.bot"), ["$ echo one-$((1 + 1))", "$ echo last-$((1 + 1))"]);
    assert_eq!((api.count("one-2"), api.count("edited-2")), (1, 0));
}

/// A home with a model that answers one message from a script.
fn talking(api: &BotApi, answer: &str) -> (ModelServer, Home) {
    let low = json!({ "effort": "low", "categories": [], "tool_need": 0, "goal": "talk", "durable": false });
    let reply = json!([
        { "role": "router", "text": low.to_string() }, { "role": "worker", "text": answer },
        { "role": "titler", "text": "Talk" },
    ]);
    talking_with(api, &reply)
}

/// A home with a model that gives these answers, in order for each role.
pub(super) fn talking_with(api: &BotApi, reply: &Value) -> (ModelServer, Home) {
    let server = ModelServer::start(serde_json::from_value(json!({ "reply": reply })).unwrap());
    let home = Home::new();
    let config = config(api, "").replace("model = \"reflex\"", "model = \"lab:m\"");
    home.config(&format!("{config}[providers.lab]\nkind = \"openai\"\nbase_url = {:?}\n", server.base_url()));
    (server, home)
}

/// Telegram gets no requests for the time it names, and then receives a long answer once, in parts of valid size.
#[test]
fn telegram_is_left_alone_for_as_long_as_it_says() {
    let words: Vec<String> = (0..1_500).map(|n| format!("word-{n}")).collect();
    let api = BotApi::open();
    let (_server, home) = talking(&api, &words.join(" "));
    let _served = start(&home);
    pair(&home, &api, ADA, &["--owner"]);
    api.refuse("getUpdates", 429, "Too Many Requests: retry after 1", Some(1));
    api.refuse("getUpdates", 502, "Bad Gateway", None);
    api.refuse("sendMessage", 429, "Too Many Requests: retry after 1", Some(1));
    api.refuse("sendMessage", 500, "Internal Server Error", None);
    api.write(ADA, "hello, who are you?");
    wait_until("the last part", || api.count("word-1499") == 1);
    assert_eq!(api.refusals_left(), 0);
    let parts = &api.texts()[2..];
    assert!(parts.len() >= 3 && parts.iter().all(|part| part.encode_utf16().count() <= 4_096), "{}", parts.len());
    let shown: Vec<&str> = parts.iter().flat_map(|part| part.split_whitespace()).collect();
    assert_eq!(shown, words, "nothing is missing, and nothing is there twice");
}

/// An answer's Markdown is formatted, its addresses are not fetched, and a part that Telegram refuses arrives as plain text.
#[test]
fn markdown_is_shown_and_no_address_is_fetched() {
    let api = BotApi::open();
    let answer = "# Result\nIt is **forty-two**, see [here](https://a.example/?q=1).\n\n```sh\necho 1\n```";
    let (_server, home) = talking(&api, answer);
    let _served = start(&home);
    pair(&home, &api, ADA, &["--owner"]);
    api.refuse("sendMessage", 400, "Bad Request: can't parse entities", None);
    api.write(ADA, "hello, who are you?");
    wait_until("the answer", || api.count("forty-two") == 1);
    let plain = api.shown().pop().unwrap();
    assert_eq!((plain.text.as_str(), &plain.arguments["entities"]), (answer, &Value::Null));
    let invitation = &api.shown()[0];
    assert_eq!(invitation.arguments["entities"][0]["type"], "code", "{invitation:?}");
    assert!(api.shown().iter().all(|sent| sent.arguments["link_preview_options"]["is_disabled"] == true));
}

#[test]
fn a_flood_is_cut_off() {
    let api = BotApi::open();
    let home = home(&api, "per_minute = 2\n");
    let served = start(&home);
    pair(&home, &api, ADA, &["--owner"]);
    for n in 0..250 {
        api.write(ADA, &format!("$ echo flood-{n}"));
    }
    let polls = api.polls();
    wait_until("all of it to be read", || api.polls() > polls + 4);
    wait_until("the refusal", || api.count("Not all messages were accepted") == 1);
    assert!((2..=10).contains(&asked(&served, "channel.bot").len()), "{:?}", asked(&served, "channel.bot"));
    assert_eq!(api.count("Not all messages were accepted"), 1);
}

/// Files are transferred in both directions: a person's file is saved in the workspace, also if Telegram fails once; a run's
/// files are sent, pictures as pictures.
#[test]
fn files_go_both_ways() {
    let api = BotApi::open();
    let home = home(&api, "");
    let served = start(&home);
    pair(&home, &api, ADA, &["--owner"]);
    let table = json!({ "file_id": api.keep(b"a,b\nx,2\ny,3\n"), "file_name": "../t.csv", "file_size": 12 });
    api.refuse("file", 502, "Bad Gateway", None);
    api.put(ADA, json!({ "document": table, "caption": "look" }));
    wait_until("the file", || home.work("channel.bot").join("t.csv").exists());
    assert_eq!(std::fs::read(home.work("channel.bot").join("t.csv")).unwrap(), b"a,b\nx,2\ny,3\n");
    let sizes =
        json!([{ "file_id": "thumb", "file_size": 1 }, { "file_id": api.keep(b"\xff\xd8jpeg"), "file_size": 6 }]);
    let id = api.put(ADA, json!({ "photo": sizes }));
    let photo = home.work("channel.bot").join(format!("photo-{id}.jpg"));
    wait_until("the picture", || photo.exists());
    api.put(ADA, json!({ "voice": { "file_id": "gone", "duration": 1 } }));
    let huge = json!({ "file_id": api.keep(b"x"), "file_name": "huge.bin", "file_size": 9 << 20 });
    api.put(ADA, json!({ "document": huge }));
    wait_until("the messages", || asked(&served, "channel.bot").len() == 4);
    let asked = asked(&served, "channel.bot");
    assert!(asked[0] == "look\n\nFiles: t.csv" && asked[1] == format!("Files: photo-{id}.jpg"), "{asked:?}");
    assert!(
        asked[2].contains("could not be received: Telegram answered 400: Bad Request: invalid file_id"),
        "{asked:?}"
    );
    assert!(asked[3].contains("larger than 8 MiB"), "{asked:?}");
    all_answered(&served, "channel.bot");
    // A command with a file is a command.
    let lines = json!({ "file_id": api.keep(b"1\n2\n3\n"), "file_name": "lines.txt", "file_size": 6 });
    api.put(ADA, json!({ "document": lines, "caption": "$ cat lines.txt | wc -l | sed s/^/lines:/" }));
    wait_until("the number of lines", || api.count("lines:3") == 1);
    let draw = |name: &str, refused: bool| {
        if refused {
            api.refuse("sendPhoto", 400, "Bad Request: PHOTO_INVALID_DIMENSIONS", None);
        }
        let before = api.shown().len();
        api.write(ADA, "draw a bar chart of b by a from t.csv");
        let sent = wait_for(name, || api.shown().split_off(before).into_iter().find(|sent| sent.file.is_some()));
        let (_, media_type, content) = sent.file.clone().unwrap();
        assert!(media_type == "image/png" && content.starts_with(b"\x89PNG"), "{media_type}");
        sent.method
    };
    assert_eq!(draw("the chart", false), "sendPhoto");
    assert_eq!(draw("the chart as a file", true), "sendDocument");
    // A file that a command line publishes is sent, too, and no other file.
    let before = api.shown().len();
    api.write(ADA, "$ echo a,b > pub/made.csv; echo scratch > scratch.txt");
    let sent = wait_for("the table", || api.shown().split_off(before).into_iter().find(|sent| sent.file.is_some()));
    let (name, _, content) = sent.file.clone().unwrap();
    assert_eq!((sent.method.as_str(), name.as_str(), content.as_slice()), ("sendDocument", "made.csv", &b"a,b\n"[..]));
    // A file that Telegram refuses is named.
    api.refuse("sendPhoto", 413, "Request Entity Too Large", None);
    api.refuse("sendDocument", 413, "Request Entity Too Large", None);
    api.write(ADA, "draw a bar chart of b by a from t.csv");
    wait_until("the sentence", || api.count("could not be sent: Telegram answered 413") == 1);
}

/// Messages without text: some are described in words, others are reported as unsupported, and Telegram's own notices are
/// ignored.
#[test]
fn messages_without_text_are_told_in_words() {
    let api = BotApi::open();
    let home = home(&api, "");
    let served = start(&home);
    pair(&home, &api, ADA, &["--owner"]);
    api.put(ADA, json!({ "pinned_message": { "message_id": 1, "date": now() } }));
    api.put(ADA, json!({ "story": { "id": 1, "chat": { "id": 5, "type": "private" } } }));
    wait_until("what is said of it", || api.count("nothing in this message that kiso can read") == 1);
    api.put(ADA, json!({ "location": { "latitude": 52.5, "longitude": 13.25 } }));
    wait_until("the place", || asked(&served, "channel.bot") == ["Location: 52.5, 13.25"]);
    // A forwarded message of somebody else is not the owner's command.
    let origin = json!({ "type": "hidden_user", "sender_user_name": "Eve", "date": 1 });
    api.put(ADA, json!({ "text": "$ echo pwned > pwned.txt", "forward_origin": origin }));
    wait_until("the message", || asked(&served, "channel.bot").len() == 2);
    assert_eq!(asked(&served, "channel.bot")[1], "Forwarded from Eve:\n> $ echo pwned > pwned.txt");
    all_answered(&served, "channel.bot");
    api.write(ADA, "$ echo done-$((1 + 1))");
    wait_until("the answer", || api.count("done-2") == 1);
    assert!(!home.work("channel.bot").join("pwned.txt").exists());
}

/// Two programs cannot read one bot's messages. The error is listed, and the channel recovers by itself.
#[test]
fn a_conflict_is_listed_and_ends_by_itself() {
    let api = BotApi::open();
    let home = home(&api, "");
    let served = start(&home);
    pair(&home, &api, ADA, &["--owner"]);
    for (conflict, shown) in [
        ("terminated by other getUpdates request", "another program receives this bot's messages"),
        ("can't use getUpdates method while webhook is active", "the bot has a webhook"),
    ] {
        for _ in 0..1_000 {
            api.refuse("getUpdates", 409, &format!("Conflict: {conflict}"), None);
        }
        trouble(&home, shown);
        api.accept_all();
    }
    api.write(ADA, "$ echo it is $((6 * 7))");
    wait_until("the answer", || api.count("it is 42") == 1);
    wait_until("no trouble", || listed(&home)["error"].is_null());
    assert!(served.get("/health").is_object());
}

/// Deliveries to a person who blocked the bot are given up, and do not block those to others.
#[test]
fn one_who_blocks_the_bot_holds_nobody_up() {
    let api = BotApi::open();
    let home = home(&api, "");
    let served = start(&home);
    pair(&home, &api, ADA, &["--owner"]);
    pair(&home, &api, BOB, &[]);
    api.block(BOB);
    api.write(BOB, "hello");
    served.logs("bot was blocked by the user", 1);
    api.write(ADA, "$ echo it is $((6 * 7))");
    wait_until("the answer", || api.count("it is 42") == 1);
    let tried = api.calls("sendMessage");
    let polls = api.polls();
    wait_until("two further polls", || api.polls() > polls + 2);
    assert_eq!(api.calls("sendMessage"), tried, "it is not tried again");
}
