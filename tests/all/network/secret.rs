//! The secret of a rule reaches the server, and nobody else.

use crate::harness::Home;
use std::io::{BufRead, BufReader, Write};
use std::net::TcpListener;

const TOKEN: &str = "s3cret-of-the-server-42";

/// A server that answers with the head of the request.
fn echo() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let mut reader = BufReader::new(stream);
            let mut head = String::new();
            while reader.read_line(&mut head).is_ok_and(|read| read > 2) {}
            let answer = format!(
                "HTTP/1.1 200 OK\r\ncontent-length: {}\r\nx-echo: {TOKEN}\r\nconnection: close\r\n\r\n{head}",
                head.len()
            );
            let _ = reader.into_inner().write_all(answer.as_bytes());
        }
    });
    address
}

#[test]
fn a_secret_goes_to_its_host_and_into_no_command_line() {
    let (home, address, other) = (Home::new(), echo(), echo());
    let rule = |more: &str| {
        home.config(&format!(
            "[[network.rules]]\nhost = \"{other}\"\naccess = \"allow\"\nprivate = true\n\
             [[network.rules]]\nhost = \"{address}\"\naccess = \"allow\"\nprivate = true\nsecret = \"example\"\n{more}"
        ));
    };
    let run = |line: &str| {
        let ran = home.kiso_with(&["shell", "-c", line], |command| {
            command.env("KISO_SKILL_NETWORK_EXAMPLE", TOKEN);
        });
        assert!(!ran.stdout.contains(TOKEN) && !ran.stderr.contains(TOKEN), "{ran:?}");
        ran.ok().stdout.to_lowercase()
    };
    rule("");
    // The server receives it, and it is removed from heads and bodies of responses.
    let said =
        run(&format!("curl -si http://{address}/; env; wget -qO- --header='Authorization: mine' http://{address}/"));
    assert_eq!(said.matches("authorization: bearer [token]").count(), 2, "{said}");
    assert!(said.contains("x-echo: [token]") && !said.contains("mine"), "{said}");
    // Other servers do not receive it.
    let said = run(&format!("curl -s http://{other}/"));
    assert!(!said.contains("authorization"), "{said}");
    rule("secret_header = \"X-Key\"\n");
    assert!(run(&format!("curl -s http://{address}/")).contains("x-key: [token]"));
    rule("secret_user = \"git\"\n");
    assert!(run(&format!("curl -s http://{address}/")).contains("authorization: basic [token]"));
    // Without its value, no request is sent.
    let ran = home.kiso(&["shell", "-c", &format!("curl -s http://{address}/")]);
    ran.exit(7).says(&["carry the secret `example`, which is not set"]);
}
