//! Limits of cards, cards for secrets, and cards for command lines that name a skill.

use super::{QUICK, Web, answer, asking, card, grant, routed};
use crate::crash::serve;
use crate::harness::{Home, guest, root, wait_until};
use crate::served::Served;
use crate::web;
use serde_json::json;
use std::io::{BufRead, BufReader, Write};
use std::net::TcpListener;
use std::sync::mpsc::{Receiver, channel};

/// A model that asks without end does not wear out the person who answers.
#[test]
fn a_run_shows_ten_cards_and_no_more() {
    let web = Web::start();
    let home = Home::new();
    let call = |n: usize| {
        let args = json!({ "url": web.url(&n.to_string()) });
        ("actor", json!({ "calls": [{ "name": "fetch", "args": args }] }))
    };
    let mut replies = vec![routed("medium")];
    replies.extend((1..=11).map(call));
    replies.push(("actor", json!({ "text": "That was enough." })));
    let model = serve(&home, &replies, &format!("{QUICK}[limits]\nmax_tool_call_rounds = 20\n"));
    grant(&home, &web);
    let served = Served::start(&home);
    let message = served.send("main", "what is the weather?");
    for n in 1..=10 {
        let asked = card(&served, "main");
        assert!(asked["effects"][0]["args"].to_string().contains(&web.url(&n.to_string())), "{asked}");
        answer(&served, &asked, json!([1]));
        wait_until("the page to be asked for", || web.asked().len() == n);
    }
    assert!(served.reply(message).contains("That was enough."));
    assert_eq!(web.asked().len(), 10, "{:?}", web.asked());
    assert_eq!(served.get("/approvals?all=true")["items"].as_array().unwrap().len(), 10);
    let heard =
        model.requests().into_iter().any(|seen| format!("{seen:?}").contains("no more of them can be asked for"));
    assert!(heard, "the model reads why the eleventh call was not made");
}

/// A hundred cards can be pending at once. They survive a restart of the daemon and occupy no slot; further requests are refused
/// and recorded.
#[test]
fn a_hundred_cards_wait_at_once_and_no_more() {
    let web = Web::start();
    let home = asking(&web);
    let served = Served::start(&home);
    let waiting = |served: &Served| served.get("/approvals?limit=500")["items"].as_array().unwrap().len();
    let ask =
        |served: &Served, n: usize| served.send(&format!("s{n}"), &format!("fetch url={}", web.url(&n.to_string())));
    for n in 1..=100 {
        ask(&served, n);
        wait_until("another to wait", || waiting(&served) == n);
    }
    let beyond = ask(&served, 101);
    let reply = served.reply(beyond);
    assert!(reply.contains("no more of them can be asked for"), "{reply}");
    assert!(served.reply(served.send("other", "$ echo free")).contains("free"));
    served.kill();
    let served = Served::start(&home);
    assert_eq!((waiting(&served), web.asked().len()), (100, 0));
    // One place is free again.
    answer(&served, &card(&served, "s7"), json!([]));
    ask(&served, 102);
    wait_until("a hundred to wait", || waiting(&served) == 100);
    answer(&served, &card(&served, "s102"), json!([1]));
    wait_until("the page to be asked for", || web.asked() == ["/102"]);
}

/// A server that reports the requests it received.
fn listen() -> (String, Receiver<String>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let (tell, told) = channel();
    std::thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            let head: String = BufReader::new(&stream)
                .lines()
                .map_while(Result::ok)
                .take_while(|line| !line.is_empty())
                .map(|line| line.to_lowercase() + "\n")
                .collect();
            let _ = stream.write_all(&web::text("Rain in Oslo"));
            if tell.send(head).is_err() {
                return;
            }
        }
    });
    (address, told)
}

/// A skill reads a secret marked `ask` after a person accepted; where nobody can be asked, it is refused.
#[test]
fn a_secret_is_read_once_a_person_has_said_so() {
    const KEY: &str = "k-123-of-the-weather";
    let home = Home::new();
    home.config("model = \"reflex\"\n[daemon]\ndebounce_ms = 0\n");
    home.add("hostile");
    home.kiso(&["skill", "grant", "hostile", "--ask-secret", "api_key"]).ok();
    home.kiso(&["skill", "grant", "hostile"]).ok().prints(&["[ask]", "api_key"]);
    let with_key = |command: &mut std::process::Command| {
        command.env("KISO_SKILL_HOSTILE_API_KEY", KEY);
    };
    home.kiso_with(&["skill", "run", "hostile", "mode=secrets"], with_key).ok().prints(&["api_key: denied"]);
    let served = Served::start_with(&home, &[], with_key);
    let ask = || served.send("main", "hostile mode=secrets");
    let refused = ask();
    let asked = card(&served, "main");
    let access = &asked["effects"][0]["access"];
    assert_eq!(access, &json!([{ "of": "hostile", "secrets": ["api_key"] }]), "{asked}");
    let said = served.get("/sessions/main/messages")["items"][1]["text"].to_string();
    assert!(said.contains("with the secret `api_key`") && !said.contains(KEY), "{said}");
    answer(&served, &asked, json!([]));
    assert!(served.reply(refused).contains("refused by the user"));
    let accepted = ask();
    answer(&served, &card(&served, "main"), json!([1]));
    let reply = served.reply(accepted);
    assert!(reply.contains("api_key: ok") && !reply.contains(KEY), "{reply}");
    assert!(!served.log().contains(KEY));
}

/// The card for a key that kiso puts into requests names the host.
#[test]
fn a_secret_for_requests_is_asked_for_with_its_host() {
    const KEY: &str = "k-123-of-the-weather";
    let (address, told) = listen();
    let home = Home::new();
    home.config("model = \"reflex\"\n[daemon]\ndebounce_ms = 0\n");
    let manifest = std::fs::read_to_string(root().join("skills/fetch/kiso.toml")).unwrap();
    let head = manifest.split("[kiso.skill.needs]").next().unwrap().replace("name = \"fetch\"", "name = \"fetcher\"");
    let needs = format!(
        "[kiso.skill.env]\napi_key = {{ required = false }}\n[kiso.skill.needs]\n\
         http = [{{ host = \"{address}\", inject = {{ header = \"X-Api-Key\", secret = \"api_key\" }} }}]\n"
    );
    let manifest = home.file("kiso.toml", head + &needs);
    let wasm = guest("fetch");
    home.kiso(&["skill", "add", wasm.to_str().unwrap(), "--manifest", manifest.to_str().unwrap(), "--grant", "none"])
        .ok();
    let alone = home.kiso(&["skill", "grant", "fetcher", "--host", &address, "--private", "--ask-secret", "api_key"]);
    alone.exit(2).says(&["`--ask-host` asks for both"]);
    home.kiso(&["skill", "grant", "fetcher", "--ask-host", &address, "--private"]).ok();
    let served = Served::start_with(&home, &[], |command| {
        command.env("KISO_SKILL_FETCHER_API_KEY", KEY);
    });
    let ask = || served.send("main", &format!("fetcher url=http://{address}/a"));
    let refused = ask();
    let asked = card(&served, "main");
    let access = &asked["effects"][0]["access"][0];
    assert_eq!((&access["of"], &access["secrets"]), (&json!("fetcher"), &json!(["api_key"])), "{asked}");
    assert_eq!(access["hosts"][0]["host"], json!(address), "{asked}");
    let said = served.get("/sessions/main/messages")["items"][1]["text"].to_string();
    assert!(said.contains("`api_key`") && !said.contains(KEY), "{said}");
    answer(&served, &asked, json!([]));
    assert!(!served.reply(refused).contains("Rain"));
    assert!(told.try_recv().is_err(), "nothing went out without it");
    let accepted = ask();
    answer(&served, &card(&served, "main"), json!([1]));
    let reply = served.reply(accepted);
    assert!(reply.contains("Rain in Oslo") && !reply.contains(KEY), "{reply}");
    assert!(told.recv().unwrap().contains(&format!("x-api-key: {KEY}")));
    assert!(!served.log().contains(KEY));
}

/// A command line that names a skill needs one approval, which covers what that skill may do. A skill that the line hides gets
/// nothing.
#[test]
fn a_command_line_asks_for_the_skills_that_it_names() {
    let web = Web::start();
    let home = Home::new();
    home.config("model = \"reflex\"\n[daemon]\ndebounce_ms = 0\n");
    home.kiso(&["skill", "add", guest("probe").to_str().unwrap()]).ok();
    home.kiso(&["skill", "grant", "probe", "--ask-host", &web.address, "--private"]).ok();
    let served = Served::start(&home);
    let line = |path: &str| format!("$ probe get {} && echo we$((1))nt", web.url(path));
    let accepted = served.send("main", &line("a"));
    let asked = card(&served, "main");
    let effect = &asked["effects"][0];
    assert_eq!(effect["tool"], "exec", "{asked}");
    let access = &effect["access"][0];
    assert_eq!((&access["of"], &access["hosts"][0]["host"]), (&json!("probe"), &json!(web.address)), "{asked}");
    assert_eq!(effect["args"][0]["shown"], json!(line("a")[2..]), "{asked}");
    answer(&served, &asked, json!([1]));
    assert!(served.reply(accepted).contains("we1nt"));
    assert_eq!(web.asked(), ["/a"]);
    // A different line needs its own approval, even with the same words and one more.
    let refused = served.send("main", &format!("{}; true", line("a")));
    answer(&served, &card(&served, "main"), json!([]));
    let reply = served.reply(refused);
    assert!(reply.contains("refused by the user") && !reply.contains("we1nt"), "{reply}");
    // Another host than the card names, and a skill name that the line does not show.
    let hidden =
        served.reply(served.send("main", &format!("$ p=pro; ${{p}}be get {} || echo sta$((1))ys", web.url("b"))));
    assert!(hidden.contains("sta1ys"), "{hidden}");
    assert_eq!(served.get("/approvals?session=main")["items"], json!([]), "it asks for nothing");
    let other = served
        .send("main", &format!("$ probe get {}; probe get http://other.example/ || echo sta$((1))ys", web.url("c")));
    let asked = card(&served, "main");
    assert_eq!(asked["effects"][0]["access"][0]["hosts"].as_array().unwrap().len(), 1, "{asked}");
    answer(&served, &asked, json!([1]));
    assert!(served.reply(other).contains("sta1ys"));
    assert_eq!(web.asked(), ["/a", "/c"]);
}

/// A person who accepts several calls has read them in this order: one may only make sense after another.
#[test]
fn calls_of_one_card_are_made_in_its_order() {
    let web = Web::start();
    let home = Home::new();
    let paths: Vec<String> = (1..=8).map(|n| n.to_string()).collect();
    let calls: Vec<_> = paths.iter().map(|path| json!({ "name": "fetch", "args": { "url": web.url(path) } })).collect();
    let replies = [routed("medium"), ("actor", json!({ "calls": calls })), ("actor", json!({ "text": "It rains." }))];
    let _model = serve(&home, &replies, QUICK);
    grant(&home, &web);
    let served = Served::start(&home);
    let message = served.send("main", "what is the weather?");
    answer(&served, &card(&served, "main"), json!((1..=8).collect::<Vec<_>>()));
    assert!(served.reply(message).contains("It rains."));
    assert_eq!(web.asked(), paths.iter().map(|path| format!("/{path}")).collect::<Vec<_>>());
}
