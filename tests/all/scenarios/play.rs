//! Plays a scenario: its home, its servers, and its turns.

use super::check::{asked, check_message, fits, holding, printed, select, traced};
use super::{Query, Scenario, Turn};
use crate::harness::{Home, Ran};
use crate::model_server::{ModelServer, Reply, Script};
use crate::served::Served;
use crate::webhooks::Inbox;
use serde_json::json;
use std::io::Read as _;
use std::process::{ExitStatus, Output, Stdio};
use std::time::Duration;

/// A guard against deliveries that never come.
const PATIENCE: Duration = Duration::from_secs(60);

/// The session of all turns.
const SESSION: &str = "main";

/// Plays a scenario. Returns the deviations.
pub(super) fn play(scenario: &Scenario, format: &str) -> Vec<String> {
    let mut wrong = Vec::new();
    let home = Home::new();
    let mut reply = scenario.reply.clone();
    let titled = reply.iter().any(|reply| reply.role.as_deref() == Some("titler"));
    if !titled {
        reply.push(Reply { role: Some("titler".to_owned()), text: "A title".to_owned(), ..Reply::default() });
    }
    let count = reply.len();
    let server = ModelServer::start(Script { refuses: scenario.refuses.clone(), reply, ..Script::default() });
    let inbox = (!scenario.delivery.is_empty()).then(Inbox::open);
    let hook = inbox.as_ref().map(|inbox| {
        format!("[webhooks.inbox]\nurl = \"http://{}/\"\nallow_private = true\ntimeout_s = 300\n", inbox.address)
    });
    let hook = hook.unwrap_or_default();
    home.config(&format!(
        "model = \"lab:m\"\n[providers.lab]\nkind = {format:?}\nbase_url = {:?}\n[llm]\nmax_attempts = 1\n\
         connect_timeout_s = 5\nfirst_token_timeout_s = 60\nnext_token_timeout_s = 60\n{}\n{hook}",
        server.base_url(),
        scenario.config
    ));
    for (name, text) in &scenario.home {
        let path = home.path().join(name);
        std::fs::create_dir_all(path.parent().expect("it is in the home")).expect("the home can be written");
        std::fs::write(path, text).expect("the home can be written");
    }
    for skill in &scenario.skills {
        home.add(skill);
    }
    let daemon = scenario.daemon.then(|| Served::start(&home));
    for (number, turn) in (1..).zip(&scenario.turn) {
        let mut found = Vec::new();
        let before = server.requests().len();
        match (&daemon, &turn.say) {
            (Some(daemon), Some(say)) => tell(&home, daemon, turn, say, &mut found),
            _ => take(&home, scenario, turn, &server, &mut found),
        }
        if let Some(say) = &turn.say {
            check_message(turn.told.as_ref().unwrap_or(say), &server.requests()[before..], &mut found);
        }
        wrong.extend(found.into_iter().map(|text| format!("- turn {number}: {text}")));
    }
    if let Some(inbox) = inbox {
        delivered(scenario, &inbox, &mut wrong);
    }
    if let Some(daemon) = daemon
        && daemon.terminate() != 0
    {
        wrong.push("- the daemon does not end as it should".to_owned());
    }
    let ours = format!("reply {count} (titler) was never asked for");
    wrong.extend(server.problems().into_iter().filter(|text| titled || *text != ours).map(|text| format!("- {text}")));
    let seen = server.requests();
    for request in &scenario.request {
        let of = format!("request {} of the {}", request.nth, request.role);
        match seen.iter().filter(|seen| seen.role() == request.role).nth(request.nth - 1) {
            Some(seen) => wrong.extend(asked(request, seen).into_iter().map(|text| format!("- {of}: {text}"))),
            None => wrong.push(format!("- there is no {of}")),
        }
    }
    if !scenario.store.is_empty() {
        let store = rusqlite::Connection::open(home.path().join("store.db")).expect("there is a store");
        for Query { query, rows } in &scenario.store {
            let found = select(&store, query);
            let same =
                found.len() == rows.len() && rows.iter().zip(&found).all(|(row, found)| fits(&json!(row), found));
            if !same {
                wrong.push(format!("- {query}\n    expected {}\n    found    {}", json!(rows), json!(found)));
            }
        }
    }
    for text in &scenario.nowhere {
        for path in holding(&home.path(), text.as_bytes()) {
            wrong.push(format!("- {text:?} stands in {}", path.display()));
        }
    }
    for (name, text) in &scenario.work {
        match std::fs::read_to_string(home.work(SESSION).join(name)) {
            Ok(found) if found.contains(text) => {}
            Ok(found) => wrong.push(format!("- {name} has {found:?}, which is without {text:?}")),
            Err(error) => wrong.push(format!("- {name}: {error}")),
        }
    }
    wrong.extend(scenario.impossible().into_iter().map(|text| format!("- {text}")));
    wrong
}

/// Sends a text to a daemon: a command, which it answers at once, or a message.
fn tell(home: &Home, daemon: &Served, turn: &Turn, say: &str, wrong: &mut Vec<String>) {
    let alone = turn.args.is_empty() && turn.files.is_empty() && turn.env.is_empty() && turn.meanwhile.is_empty();
    if !alone || turn.json || turn.prints_first || turn.repeat.is_some() {
        wrong.push("to a daemon, only `say` can be said".to_owned());
    }
    let body = json!({ "session": SESSION, "text": say }).to_string();
    let told = daemon.request("POST", "/msg", Some(&body));
    let command = told.status == 200;
    let answer = match told.expect(if command { 200 } else { 202 }) {
        told if command => told["answer"].as_str().expect("it answers").to_owned(),
        told => daemon.reply(told["message"].as_i64().expect("it has an id")),
    };
    let output = Output { status: ExitStatus::default(), stdout: answer.into_bytes(), stderr: Vec::new() };
    printed(turn, &Ran::new(&[say], output), wrong);
    if !command {
        traced(home, turn, wrong);
    }
}

/// Checks the deliveries to a webhook, and responds to them.
fn delivered(scenario: &Scenario, inbox: &Inbox, wrong: &mut Vec<String>) {
    let mut found = Vec::new();
    while found.len() < scenario.delivery.len()
        && let Ok(request) = inbox.requests.recv_timeout(PATIENCE)
    {
        found.push(request.json());
        request.answer("204 No Content", "");
    }
    for wanted in &scenario.delivery {
        match found.iter().position(|found| fits(wanted, found)) {
            Some(at) => drop(found.swap_remove(at)),
            None => wrong.push(format!("- the webhook was not sent {wanted}")),
        }
    }
    wrong.extend(found.iter().map(|more| format!("- the webhook was sent {more}")));
}

fn take(home: &Home, scenario: &Scenario, turn: &Turn, server: &ModelServer, wrong: &mut Vec<String>) {
    if !turn.sql.is_empty() {
        let store = rusqlite::Connection::open(home.path().join("store.db")).expect("there is a store");
        store.execute_batch(&turn.sql).unwrap_or_else(|error| panic!("{}: {error}", turn.sql));
    }
    let mut args: Vec<String> = turn.args.clone();
    if let Some(say) = &turn.say {
        let more = turn.repeat.as_ref().map(|(text, times)| text.repeat(*times)).unwrap_or_default();
        args.extend(["run".to_owned(), "--session".to_owned(), SESSION.to_owned(), format!("{say}{more}")]);
        for name in &turn.files {
            let path = home.file(name, &scenario.files[name]);
            args.extend(["--file".to_owned(), path.to_str().expect("a plain path").to_owned()]);
        }
    }
    if turn.json {
        args.insert(0, "--json".to_owned());
    }
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    let mut command = home.command(&args);
    command.envs(&turn.env);
    let output = if turn.prints_first || !turn.meanwhile.is_empty() {
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("kiso starts");
        let mut printed = Vec::new();
        let mut out = child.stdout.take().expect("it is piped");
        let mut piece = [0; 4096];
        if !turn.meanwhile.is_empty() {
            while server.held() == 0 && child.try_wait().is_ok_and(|ended| ended.is_none()) {
                std::thread::park_timeout(Duration::from_millis(1));
            }
            let args: Vec<&str> = turn.meanwhile.iter().map(String::as_str).collect();
            home.kiso(&args).ok();
        }
        let lacks = |printed: &[u8]| turn.stdout.iter().any(|text| !String::from_utf8_lossy(printed).contains(text));
        while turn.prints_first && lacks(&printed) {
            match out.read(&mut piece).expect("a pipe can be read") {
                0 => break,
                n => printed.extend_from_slice(&piece[..n]),
            }
        }
        if turn.prints_first {
            server.release();
        }
        out.read_to_end(&mut printed).expect("a pipe can be read");
        let mut output = child.wait_with_output().expect("it ends");
        output.stdout = printed;
        output
    } else {
        command.output().expect("kiso starts")
    };
    let ran = Ran::new(&args, output);
    printed(turn, &ran, wrong);
    if turn.say.is_some() || turn.args.first().is_some_and(|command| command == "run") {
        traced(home, turn, wrong);
    }
}
