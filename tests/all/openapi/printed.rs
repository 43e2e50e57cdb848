//! The JSON output of the command line.

use super::CONFIG;
use crate::harness::Home;
use crate::served::Served;

/// A session, a run, a message and a schedule have the same fields in HTTP and in command output, which adds the type and the
/// names that its options use.
#[test]
fn the_command_line_prints_what_http_sends() {
    let home = Home::new();
    home.config(CONFIG);
    let served = Served::start(&home);
    let message = served.send("main", "$ echo hello #greeting");
    served.reply(message);
    home.kiso(&["schedule", "add", "tick", "@yearly", "hello", "--session", "main"]).ok();
    // A fixed title: a generated one could arrive between both requests.
    home.kiso(&["session", "rename", "main", "Hellos"]).ok();
    for (args, own, path) in [
        (&["session", "list"][..], &["session", "place"][..], "/sessions"),
        (&["session", "show", "main"], &["session", "place"], "/sessions"),
        (&["session", "show", "main"], &[], "/sessions/main/messages"),
        (&["trace"], &["run"], "/runs"),
        (&["schedule", "list"], &[], "/schedules"),
    ] {
        let lines = home.kiso(&[&["--json"], args].concat()).ok().json_lines();
        let sent = &served.get(path)["items"][0];
        let kind = match path {
            "/sessions" => "session",
            "/sessions/main/messages" => "message",
            "/runs" => "run",
            _ => "schedule",
        };
        let mut printed = lines.into_iter().find(|line| line["type"] == kind).unwrap();
        for name in ["type"].iter().chain(own) {
            assert!(printed.as_object_mut().unwrap().remove(*name).is_some(), "{args:?} prints {name}");
        }
        assert_eq!(printed, *sent, "{args:?} and {path}");
    }
}
