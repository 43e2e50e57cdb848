//! The card of a run that waits for a person, in the conversation.

use super::browser::role;
use super::stage::Stage;
use crate::harness::{Home, root};
use std::io::{BufRead, BufReader, Write};
use std::net::TcpListener;

#[test]
fn a_card_is_answered_with_its_buttons() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let lines = BufReader::new(stream.try_clone().unwrap()).lines().map_while(Result::ok);
            lines.take_while(|line| !line.is_empty()).for_each(drop);
            let head = "HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\nconnection: close\r\n\r\n";
            stream.write_all(format!("{head}It rains.").as_bytes()).unwrap();
        }
    });
    let grant = |home: &Home| {
        home.kiso(&["skill", "grant", "fetch", "--ask-host", &address, "--private"]).ok();
    };
    let Some(stage) = Stage::prepared(Home::new(), "model = \"reflex\"\n[daemon]\ndebounce_ms = 0\n", grant) else {
        return;
    };
    let tab = &stage.tab;
    stage.open("asked");
    stage.say(&format!("fetch url=http://{address}/one"));
    tab.wait_for(role("group", "Approval 1"));
    tab.shows(&format!("GET to {address}"));
    tab.shows(&format!("http://{address}/one"));
    if std::env::var_os("KISO_SCREENSHOTS").is_some() {
        let folder = root().join("target/page");
        std::fs::create_dir_all(&folder).unwrap();
        std::fs::write(folder.join("approval.png"), tab.screenshot()).unwrap();
    }
    tab.click(role("button", "Refuse"));
    tab.shows("refused by the user");
    stage.say(&format!("fetch url=http://{address}/two"));
    tab.wait_for(role("group", "Approval 2"));
    tab.click(role("button", "Approve"));
    tab.shows("It rains.");
}
